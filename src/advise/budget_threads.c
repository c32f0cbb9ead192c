/* budget_threads.c: what the threads of a program did, as it was seen. See budget.h. */
#include "advise/budget.h"
#include "base/memory.h"

#include <stdlib.h>

static int longer_first(const void *a, const void *b)
{
    const struct budget_thread *x = a, *y = b;
    if (x->ran_ns != y->ran_ns)
        return x->ran_ns > y->ran_ns ? -1 : 1;
    if (x->waited_ns != y->waited_ns)
        return x->waited_ns > y->waited_ns ? -1 : 1;
    return (x->lane > y->lane) - (x->lane < y->lane);
}

/* Looks may reach into the next, and beyond the window: each nanosecond counts for the first. */
static void add_looks(const struct trace *trace, const struct steps *steps,
                      struct budget_thread *threads)
{
    for (size_t i = 0; i < trace->lane_count; i++)
        threads[i] = (struct budget_thread){.lane = (uint16_t)i, .until_ns = steps->start_ns};
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        struct budget_thread *thread = &threads[span->lane];
        const int64_t from = span->start_ns > thread->until_ns ? span->start_ns : thread->until_ns;
        const int64_t to = span->end_ns < steps->end_ns ? span->end_ns : steps->end_ns;
        if ((span->kind != SPAN_sample && span->kind != SPAN_sleep) || to <= from)
            continue;
        *(span->kind == SPAN_sample ? &thread->ran_ns : &thread->waited_ns) += to - from;
        thread->until_ns = to;
    }
}

/* The system call that a thread waits in longest. */
static enum status find_call(const struct trace *trace, const struct steps *steps,
                             struct budget_thread *thread)
{
    int64_t *sums;
    thread->until_ns = steps->start_ns;
    NEED(sums = mem_array(trace->text_count + 1, sizeof *sums));
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        const int64_t from = span->start_ns > thread->until_ns ? span->start_ns : thread->until_ns;
        const int64_t to = span->end_ns < steps->end_ns ? span->end_ns : steps->end_ns;
        if (span->lane != thread->lane || to <= from ||
            (span->kind != SPAN_sample && span->kind != SPAN_sleep))
            continue;
        thread->until_ns = to;
        if (span->kind != SPAN_sleep)
            continue;
        sums[span->name] += to - from;
        if (sums[span->name] > thread->call_ns) {
            thread->call = span->name;
            thread->call_ns = sums[span->name];
        }
    }
    mem_free(sums);
    return STATUS_OK;
}

enum status budget_threads(const struct trace *trace, const struct steps *steps,
                           struct budget_thread *threads, size_t room, size_t *count)
{
    struct budget_thread *all;
    enum status status = STATUS_OK;
    *count = 0;
    NEED(all = mem_array(trace->lane_count + 1, sizeof *all));
    add_looks(trace, steps, all);
    qsort(all, trace->lane_count, sizeof *all, longer_first);
    while (status == STATUS_OK && *count < room && *count < trace->lane_count &&
           all[*count].ran_ns + all[*count].waited_ns > 0) {
        threads[*count] = all[*count];
        status = find_call(trace, steps, &threads[(*count)++]);
    }
    mem_free(all);
    return status;
}
