/* trace_steps.h: the steps of a run, found without the program's help.
 *
 * A training step launches the same kernels as the one before it: its length is the shortest period
 * of the kernels' names in launch order. Where the program marked its steps, the marks say it.
 * Without a GPU, framework operators stand in for kernels. */
#ifndef PRONY_TRACE_TRACE_STEPS_H
#define PRONY_TRACE_TRACE_STEPS_H

#include "trace/trace.h"

enum steps_by { STEPS_NONE, STEPS_KERNELS, STEPS_OPS, STEPS_MARKS };

struct steps {
    enum steps_by by;
    int64_t gpu;              /* the GPU that computed longest: a group of lanes; -1: none */
    int64_t start_ns, end_ns; /* the window: `count` steps; without steps, all of the trace */
    int64_t startup_ns;       /* before it, left out by steps_skip_startup */
    size_t count, period;     /* whole steps; kernels of one */
    uint32_t *first; /* [count + 1] the span that begins each, and the one after the last */
};

/* Does a span occupy a stream of that GPU? */
bool steps_on_gpu(const struct trace *trace, const struct span *span, int64_t gpu);

/* Steps without any are no failure: count is 0. steps_free frees. */
enum status steps_find(const struct trace *trace, struct steps *steps);
/* Keeps `count` steps at the end, fewer than there are; the window is theirs. */
void steps_keep_last(const struct trace *trace, struct steps *steps, size_t count);
/* Of a program without steps, begins the window where its libraries are loaded and its modules are
 * imported. */
enum status steps_skip_startup(const struct trace *trace, struct steps *steps);
void steps_free(struct steps *steps);

/* Of each step, from its first kernel to that of the next: the median, and half of the spread of
 * the middle half as a share of it. */
double steps_median_ns(const struct trace *trace, const struct steps *steps, double *spread);

#endif
