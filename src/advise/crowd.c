/* crowd.c: see crowd.h. Stretches begin and end at moments, which are sorted and walked once. */
#include "advise/crowd.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool contains_any(const char *text, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(text, *parts))
            return true;
    return false;
}

/* The innermost frame decides; frames of the interpreter itself are passed over: they run the line
 * that called them. */
enum seen seen_in(const struct trace *trace, uint32_t site)
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

/* What a thread does in a stretch. */
enum doing { RUNS, SPINS, STORES, DOINGS };

struct moment {
    int64_t at_ns;
    int8_t doing, change; /* one more, or one less */
};

static int earlier_first(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* A sample stands for the looks before it, a wait for the time after. No thread does two things at
 * once: `until` says up to where each lane is known. */
static size_t find_moments(const struct trace *trace, const struct steps *steps, int64_t *until,
                           struct moment *moments)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->lane_count; i++)
        until[i] = steps->start_ns;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        const bool sample = span->kind == SPAN_sample;
        if (!sample &&
            (span->kind != SPAN_sleep || !text_ends(trace_word(trace, span->name), TRACE_STORAGE)))
            continue;
        int64_t from = sample ? span->start_ns - span_ns(span) : span->start_ns;
        int64_t to = sample ? span->start_ns : span->end_ns;
        from = from > until[span->lane] ? from : until[span->lane];
        to = to < steps->end_ns ? to : steps->end_ns;
        const int8_t doing = (int8_t)(!sample                                   ? STORES
                                      : seen_in(trace, span->site) == SEEN_SPIN ? SPINS
                                                                                : RUNS);
        if (to <= from)
            continue;
        until[span->lane] = to;
        moments[count++] = (struct moment){from, doing, 1};
        moments[count++] = (struct moment){to, doing, -1};
    }
    qsort(moments, count, sizeof *moments, earlier_first);
    return count;
}

/* Cores are shared out evenly. Where all spin, one of them has its turn and waits for a core. */
static void add_stretch(const int threads[DOINGS], double ns, double cores, struct crowd *out)
{
    const int running = threads[RUNS] + threads[SPINS];
    out->thread_ns += running * ns;
    out->any_ns += running ? ns : 0;
    out->storage_ns += !running && threads[STORES] ? ns : 0;
    if (cores <= 0 || running <= cores || !threads[SPINS])
        return;
    out->crowded_ns += ns;
    out->lost_ns += ns * (1 - cores / running / fmin(1, cores / fmax(threads[RUNS], 1)));
}

enum status crowd_find(const struct trace *trace, const struct steps *steps, double cores,
                       struct crowd *out)
{
    struct moment *moments;
    int64_t *until;
    int threads[DOINGS] = {0};
    *out = (struct crowd){.window_ns = (double)(steps->end_ns - steps->start_ns)};
    NEED(moments = mem_array(2 * trace->span_count + 1, sizeof *moments));
    if (!(until = mem_array(trace->lane_count + 1, sizeof *until))) {
        mem_free(moments);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    const size_t count = find_moments(trace, steps, until, moments);
    mem_free(until);
    for (size_t i = 0; i < count; i++) {
        threads[moments[i].doing] += moments[i].change;
        if (i + 1 < count)
            add_stretch(threads, (double)(moments[i + 1].at_ns - moments[i].at_ns), cores, out);
    }
    mem_free(moments);
    return STATUS_OK;
}
