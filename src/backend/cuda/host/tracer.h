/* tracer.h: when each kernel, copy and fill of an observed step ran, as the GPU itself noted it: by
 * NVIDIA's CUPTI, loaded where it is installed. Events, which an observed step has otherwise, lie
 * between ops: they also time what comes before a kernel starts, some two microseconds each.
 *
 * CUPTI watches the whole process, so there is one tracer, shared by the observed plans; they run
 * one after another, as everything in a device does. */
#ifndef PRONY_BACKEND_CUDA_TRACER_H
#define PRONY_BACKEND_CUDA_TRACER_H

#include <cstdint>

/* For one more plan; false: there is no CUPTI, or it serves somebody else (a profiler). */
bool tracer_open(void);
/* Told as often as open was true. */
void tracer_close(void);

/* Before a step: what ran so far, of whoever, is not part of it. */
void tracer_begin(void);

/* What the calling thread launches from now on belongs to this op, until tracer_pause. */
void tracer_op(int32_t op);
void tracer_pause(void);

/* What ran for an op: when the first of it began, and how long all of it took. */
struct span {
    uint64_t start_ns; /* by clock_ns; 0: nothing ran */
    uint64_t busy_ns;
};

/* Once everything that was launched is done: what ran since the step began, for each of `count`
 * ops. False: it was too much to be noted. */
bool tracer_collect(struct span *spans, int32_t count);

#endif
