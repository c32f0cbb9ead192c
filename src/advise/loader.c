/* loader.c: figures that several rules use. See rules.h. */
#include "advise/rules.h"
#include "base/memory.h"

#include <string.h>

bool look_in_window(const struct look *look, const struct span *span)
{
    const struct steps *steps = &look->advice->steps;
    return span->start_ns >= steps->start_ns && span->start_ns < steps->end_ns;
}

double look_per_step(const struct look *look, double sum)
{
    size_t steps = look->advice->steps.count;
    return steps ? sum / (double)steps : sum;
}

void look_add_rate(struct text *text, double bytes, double ns)
{
    text_add_size(text, ns > 0 ? bytes / ns * 1e9 : 0);
    text_add(text, "/s");
}

/* ---- the loader ------------------------------------------------------------------------------ */

struct loader {
    int64_t ns, most_ns;
    int64_t hidden_ns; /* that a thread slept, and the system did not say where */
    uint32_t site;
};

static void add(struct loader *loader, int64_t ns, uint32_t site)
{
    loader->ns += ns;
    if (ns > loader->most_ns) {
        loader->most_ns = ns;
        loader->site = site;
    }
}

static struct loader loader_by_spans(const struct look *look, const struct idle *idle)
{
    struct loader loader = {0};
    int64_t until = INT64_MIN; /* one span may lie in another */
    for (size_t i = 0; i < look->trace->span_count; i++) {
        const struct span *span = &look->trace->spans[i];
        int64_t from = span->start_ns > until ? span->start_ns : until;
        if (span->kind != SPAN_loader || from >= span->end_ns)
            continue;
        add(&loader, idle_within(idle, from, span->end_ns), span->site);
        until = span->end_ns;
    }
    return loader;
}

bool look_under_loader(const struct trace *trace, uint32_t site)
{
    for (; site && site < trace->site_count; site = trace->sites[site].caller) {
        const char *file = trace_word(trace, trace->sites[site].file);
        if (strstr(file, "dataloader.py") || strstr(file, "torch/utils/data/") ||
            strstr(file, "data/_utils/") || strstr(file, "tensorflow/python/data/"))
            return true;
    }
    return false;
}

/* Which threads call the GPU's library: what others do beside them, as workers that load, takes no
 * time of the step by itself. */
static bool *callers(const struct trace *trace)
{
    bool *calls = mem_array(trace->lane_count + 1, sizeof *calls);
    for (size_t i = 0; calls && i < trace->span_count; i++)
        calls[trace->spans[i].lane] |= trace->spans[i].kind == SPAN_call;
    return calls;
}

/* A thread that makes a batch runs; one that waits for its workers sleeps. */
static enum status loader_by_samples(const struct look *look, const struct idle *idle,
                                     struct loader *loader)
{
    bool *calls;
    NEED(calls = callers(look->trace));
    for (size_t i = 0; i < look->trace->span_count; i++) {
        const struct span *span = &look->trace->spans[i];
        if ((span->kind != SPAN_sample && span->kind != SPAN_sleep) || !calls[span->lane])
            continue;
        if (span->kind == SPAN_sleep && !span->site)
            loader->hidden_ns += idle_within(idle, span->start_ns, span->end_ns);
        if (!look_under_loader(look->trace, span->site))
            continue;
        if (span->kind == SPAN_sample && look_in_window(look, span) &&
            idle_at(idle, span->start_ns))
            add(loader, span_ns(span), span->site);
        if (span->kind == SPAN_sleep)
            add(loader, idle_within(idle, span->start_ns, span->end_ns), span->site);
    }
    mem_free(calls);
    return STATUS_OK;
}

/* Without either: a long stretch of the host's own code that ends with a copy to the GPU. */
static struct loader loader_by_gaps(const struct look *look, const struct idle *idle)
{
    enum { BYTES_LEAST = 4096, LONG_NS = 200 * 1000 };
    struct loader loader = {0};
    const struct replay *replay = look->base;
    for (size_t c = 0; replay && c < replay->call_count; c++) {
        const struct replay_call *call = &replay->calls[c];
        const struct span *span = &look->trace->spans[call->span];
        if (call->beside || call->gap_ns < LONG_NS || call->ops != 1 || !look_in_window(look, span))
            continue;
        const struct span *op = &look->trace->spans[replay->ops[call->first_op].span];
        if (op->kind == SPAN_copy && is_up(op) && op->bytes >= BYTES_LEAST)
            add(&loader, idle_within(idle, span->start_ns - (int64_t)call->gap_ns, span->start_ns),
                op->site);
    }
    return loader;
}

enum status look_for_loader(struct look *look)
{
    struct idle idle;
    TRY(budget_idle(look->trace, &look->advice->steps, &idle));
    struct loader loader = loader_by_spans(look, &idle);
    enum status status = loader.ns ? STATUS_OK : loader_by_samples(look, &idle, &loader);
    look->loader_seen = loader.ns > loader.hidden_ns;
    if (!look->loader_seen)
        loader = loader_by_gaps(look, &idle);
    look->loader_ns = loader.ns;
    look->loader_site = loader.site;
    mem_free(idle.stretches);
    return status;
}
