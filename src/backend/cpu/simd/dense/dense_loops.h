/* dense_loops.h: what the loops of the dense family over blocked weights share. dense_blocked_isa.c
 * makes a job of each op; it runs forward (dense_forward.c) or backward (dense_backward.c). What an
 * ISA does differently is in its struct dense_kernels.
 *
 * Threads take ranges of output groups, the same in every pass, so each finds its weights in its
 * own cache. */
#ifndef PRONY_BACKEND_CPU_SIMD_DENSE_DENSE_LOOPS_H
#define PRONY_BACKEND_CPU_SIMD_DENSE_DENSE_LOOPS_H

#include "backend/cpu/blocked.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/dense/dense_shared.h"
#include "base/pool.h"

enum {
    /* Samples taken together: their inputs of a chunk and a few groups' weights fit in L2. */
    DENSE_BLOCK = 192,
    /* Of them when they are packed: so many rows are read, and whole lines are written. */
    DENSE_ABREAST = 8,
};

/* One dense op, whichever: what every thread needs. */
struct dense_job {
    const struct dense_kernels *kernels;
    int64_t batch, in, out;
    const float *x;  /* [n, in] */
    float *w;        /* blocked [in, out] */
    const float *b;  /* forward: [out] or NULL; transposed: [in] or NULL */
    float *y;        /* [n, out] */
    const float *dy; /* [n, out] */
    float *dx;       /* [n, in] or NULL */
    int32_t activation;
    /* The weight's gradient: what takes it, by which kernels, times what. NULL: there is none. */
    float *target;
    dense_outer *const *outer;
    float scale, shrink;
    float *bias; /* takes its own as target does, or NULL */
    /* An optimiser takes the weight's gradient instead. Of several blocks of samples the last
     * updates, and sums them [in, out], blocked; of one there is no such place. */
    const struct call *update;
    float *sums;
    bool last;
    int members;
    char *workspace;
    uint64_t member_bytes;
};

static inline int64_t dense_groups(const struct dense_job *job)
{
    return blocked_up(job->out, BLOCKED_ROWS) / BLOCKED_ROWS;
}

static inline float *dense_memory(const struct dense_job *job, int member)
{
    return (float *)(job->workspace + (uint64_t)member * job->member_bytes);
}

/* y = f(y) */
static inline void dense_finish(const struct dense_job *job, float *y, int64_t count)
{
    if (job->activation != ACTIVATION_NONE)
        job->kernels->activate(job->activation, y, y, count);
}

/* Floats a thread needs. Forward: x of a chunk, transposed and not, and y transposed. Backward: x
 * of a chunk, dx, dy, and a group's gradient. */
uint64_t dense_member_floats(int64_t batch, int64_t in, int64_t out);

/* xs[vector][sample][16] = scale·x, zero where the input ends. */
void dense_pack_x(const float *x, int64_t in, int64_t from, int64_t width, int64_t samples,
                  float scale, float *xs);

/* Runs the job on as many threads as it is worth. */
void dense_run(const struct call *call, struct dense_job *job, pool_task *task);

void dense_forward(const struct call *call, struct dense_job *job);
/* Of a large batch one block of samples after the other. */
void dense_backward(const struct call *call, const struct dense_job *whole);

#endif
