/* export_stacks.c: time by stack: folded lines and a call graph. See export.h. */
#include "base/memory.h"
#include "trace/export.h"
#include "trace/own_time.h"

#include <string.h>

/* Time that each site has of its own, in nanoseconds. */
static enum status own_times(const struct trace *trace, int64_t **out)
{
    enum own_of of;
    int64_t *own;
    TRY(trace_own_times(trace, &own, &of));
    if ((*out = mem_array(trace->site_count + 1, sizeof **out)))
        for (size_t i = 0; i < trace->span_count; i++)
            (*out)[trace->spans[i].site] += own[i];
    mem_free(own);
    NEED(*out);
    return STATUS_OK;
}

/* A frame in a word; ';' and blanks separate. */
static void add_frame(const struct trace *trace, uint32_t site, struct text *out)
{
    const struct site *frame = &trace->sites[site];
    const char *parts[] = {trace_word(trace, frame->function), trace_word(trace, frame->file)};
    for (int i = 0; i < 2; i++) {
        if (i && *parts[i])
            text_add(out, *parts[0] ? "@" : "");
        for (const char *c = parts[i]; *c; c++)
            text_add_char(out, *c == ';' || *c == ' ' ? '_' : *c);
    }
    if (frame->line)
        text_printf(out, ":%u", frame->line);
}

static void add_stack(const struct trace *trace, uint32_t site, struct text *out)
{
    enum { DEEPEST = 512 };
    uint32_t frames[DEEPEST];
    size_t depth = 0;
    for (; site && depth < DEEPEST; site = trace->sites[site].caller)
        frames[depth++] = site;
    if (!depth)
        text_add(out, "no_stack");
    while (depth) {
        add_frame(trace, frames[--depth], out);
        if (depth)
            text_add_char(out, ';');
    }
}

enum status trace_export_folded(const struct trace *trace, struct text *out)
{
    int64_t *own;
    TRY(own_times(trace, &own));
    for (size_t site = 0; site < trace->site_count || !site; site++) {
        if (own[site] < 1000)
            continue;
        add_stack(trace, (uint32_t)site, out);
        text_printf(out, " %lld\n", (long long)(own[site] / 1000));
    }
    mem_free(own);
    return STATUS_OK;
}

/* ---- call graph ------------------------------------------------------------------------------ */

/* A caller has a smaller number than whom it calls, so one walk from the end sums all below. */
static void sum_up(const struct trace *trace, int64_t *all)
{
    for (size_t site = trace->site_count; site-- > 1;)
        all[trace->sites[site].caller] += all[site];
}

static void add_function(const struct trace *trace, const char *key, const char *file_key,
                         uint32_t site, struct text *out)
{
    const struct site *frame = &trace->sites[site];
    const char *file = trace_word(trace, frame->file);
    const char *function = trace_word(trace, frame->function);
    text_printf(out, "%s=%s\n%s=%s\n", file_key, *file ? file : "unknown", key,
                *function ? function : "unknown");
}

enum status trace_export_callgrind(const struct trace *trace, const char *creator, struct text *out)
{
    int64_t *own, *all;
    TRY(own_times(trace, &own));
    if (!(all = mem_array(trace->site_count + 1, sizeof *all))) {
        mem_free(own);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    memcpy(all, own, (trace->site_count + 1) * sizeof *all);
    sum_up(trace, all);
    text_printf(out, "# callgrind format\nversion: 1\ncreator: %s\npositions: line\nevents: ns\n",
                creator);
    for (size_t site = 1; site < trace->site_count; site++) {
        const struct site *frame = &trace->sites[site];
        if (!all[site])
            continue;
        text_add(out, "\n");
        add_function(trace, "fn", "fl", (uint32_t)site, out);
        text_printf(out, "%u %lld\n", frame->line, (long long)own[site]);
        if (!frame->caller)
            continue;
        text_add(out, "\n");
        add_function(trace, "fn", "fl", frame->caller, out);
        add_function(trace, "cfn", "cfi", (uint32_t)site, out);
        text_printf(out, "calls=1 %u\n%u %lld\n", frame->line, trace->sites[frame->caller].line,
                    (long long)all[site]);
    }
    mem_free(own);
    mem_free(all);
    return STATUS_OK;
}
