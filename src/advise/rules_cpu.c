/* rules_cpu.c: rules from samples of the host: Python, threads, memory, storage (R10 to R13). */
#include "advise/rules.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a sample says of its thread. */
enum seen { SEEN_OTHER, SEEN_PYTHON, SEEN_SPIN, SEEN_FAULT };

static bool contains_any(const char *text, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(text, *parts))
            return true;
    return false;
}

/* The innermost frame decides; frames of the interpreter itself are passed over: they run the line
 * that called them. */
static enum seen seen_in(const struct trace *trace, uint32_t site)
{
    static const char *const spins[] = {
        "sched_yield", "gomp_barrier", "gomp_team_barrier", "do_spin", "kmp_wait", "__kmp_", NULL};
    static const char *const faults[] = {"munmap",   "madvise", "page_fault", "clear_page",
                                         "__GI_brk", "mmap",    NULL};
    static const char *const interpreters[] = {"libpython", "/python3", "bin/python", NULL};
    for (; site && site < trace->site_count; site = trace->sites[site].caller) {
        const struct site *frame = &trace->sites[site];
        const char *file = trace_word(trace, frame->file);
        const char *function = trace_word(trace, frame->function);
        if (frame->line)
            return SEEN_PYTHON;
        if (contains_any(function, spins))
            return SEEN_SPIN;
        if (contains_any(function, faults))
            return SEEN_FAULT;
        if (!contains_any(file, interpreters) && strncmp(function, "_Py", 3) != 0 &&
            strncmp(function, "Py", 2) != 0)
            return SEEN_OTHER;
    }
    return SEEN_OTHER;
}

struct shares {
    int64_t all_ns, seen_ns;
    uint32_t site; /* the user's line that has most of it */
};

static enum status share_of(const struct look *look, enum seen seen, bool main_only,
                            struct shares *shares)
{
    const struct trace *trace = look->trace;
    int64_t *by_lane, *by_site, most = 0;
    uint16_t main_lane = 0;
    *shares = (struct shares){0};
    NEED(by_lane = mem_array(trace->lane_count + 1, sizeof *by_lane));
    if (!(by_site = mem_array(trace->site_count + 1, sizeof *by_site))) {
        mem_free(by_lane);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind == SPAN_sample && look_in_window(look, &trace->spans[i]))
            by_lane[trace->spans[i].lane] += span_ns(&trace->spans[i]);
    for (size_t lane = 1; lane < trace->lane_count; lane++)
        if (by_lane[lane] > by_lane[main_lane])
            main_lane = (uint16_t)lane;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind != SPAN_sample || !look_in_window(look, span) ||
            (main_only && span->lane != main_lane))
            continue;
        shares->all_ns += span_ns(span);
        if (seen_in(trace, span->site) != seen ||
            (seen == SEEN_PYTHON && look->loader_seen && span->lane != main_lane))
            continue;
        uint32_t user = trace_user_site(trace, span->site);
        shares->seen_ns += span_ns(span);
        by_site[user] += span_ns(span);
        if (user && by_site[user] > most) {
            most = by_site[user];
            shares->site = user;
        }
    }
    mem_free(by_lane);
    mem_free(by_site);
    return STATUS_OK;
}

/* The share, where there are samples enough to say one; else 0. */
static double share(const struct look *look, const struct shares *shares)
{
    if (look->advice->samples < ADVICE_SAMPLES || shares->all_ns <= 0)
        return 0;
    return (double)shares->seen_ns / (double)shares->all_ns;
}

/* If that share of the time went away. Where a GPU runs, only its idle time can be won. */
static double gain_of(const struct look *look, double part)
{
    const struct budget *budget = &look->advice->budget;
    if (look->advice->steps.gpu >= 0 && budget->window_ns > 0)
        part *= (double)budget->idle_ns / (double)budget->window_ns;
    return 1 / fmax(1 - part, 0.01);
}

static enum status rule_by_share(const struct look *look, enum seen seen, bool main_only,
                                 double least, const char *evidence, struct rule_found *found)
{
    struct shares shares;
    TRY(share_of(look, seen, main_only, &shares));
    double part = share(look, &shares);
    if (part < least)
        return STATUS_OK;
    found->applies = true;
    found->gain = gain_of(look, part);
    found->site = shares.site;
    text_printf(&found->evidence, "%.0f %% of %zu samples %s", 100 * part, look->advice->samples,
                evidence);
    return STATUS_OK;
}

enum status rule_python(const struct look *look, struct replay *change, struct rule_found *found)
{
    (void)change;
    return rule_by_share(look, SEEN_PYTHON, true, 0.3,
                         "are in the interpreter itself, on the main thread", found);
}

enum status rule_spin(const struct look *look, struct replay *change, struct rule_found *found)
{
    (void)change;
    return rule_by_share(look, SEEN_SPIN, false, 0.1,
                         "are of threads that spin until another is done", found);
}

enum status rule_faults(const struct look *look, struct replay *change, struct rule_found *found)
{
    (void)change;
    return rule_by_share(look, SEEN_FAULT, false, 0.05,
                         "map memory, give it back, or fill new pages", found);
}

enum status rule_storage(const struct look *look, struct replay *change, struct rule_found *found)
{
    static const char *const reads[] = {"read", "pread64", "readv", "preadv", NULL};
    const struct trace *trace = look->trace;
    int64_t ns = 0, longest = 0;
    (void)change;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        const char *name = trace_word(trace, span->name);
        bool is_read = false;
        for (const char *const *word = reads; *word; word++)
            is_read = is_read || !strcmp(name, *word);
        if (span->kind != SPAN_sleep || !is_read || !look_in_window(look, span))
            continue;
        ns += span_ns(span);
        if (span_ns(span) >= longest) {
            longest = span_ns(span);
            found->site = span->site;
        }
    }
    double part = (double)ns / fmax((double)look->advice->budget.window_ns, 1);
    if (look->advice->samples < ADVICE_SAMPLES || part < 0.05)
        return STATUS_OK;
    found->applies = true;
    found->gain = gain_of(look, fmin(part, 0.99));
    text_printf(&found->evidence, "%.0f %% of the time a thread waits in read", 100 * part);
    return STATUS_OK;
}
