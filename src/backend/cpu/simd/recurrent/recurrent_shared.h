/* recurrent_shared.h: the seam between the loops of layers over time (recurrent.c: steps, samples,
 * threads, written once) and what a step does with its sums (recurrent_isa.c: compiled once per
 * ISA). */
#ifndef PRONY_BACKEND_CPU_SIMD_RECURRENT_RECURRENT_SHARED_H
#define PRONY_BACKEND_CPU_SIMD_RECURRENT_RECURRENT_SHARED_H

#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/gemm/gemm_packed.h"

/* One step of one sample, some of its units: at most the columns of a gemm's tile. */
struct recurrent_step {
    int64_t units;
    int32_t function; /* of a plain layer */
    const float *z;   /* the units' sums, those of one gate `apart` from the next's … */
    int64_t apart;
    float *gates; /* … and where what they become is kept, `hidden` apart, or NULL */
    int64_t hidden;
    float *h, *c; /* the state: before, then after the step */
};

/* The same on the way back. dh and dc are what flows to the state after the step, then what reaches
 * the one before it other than through the sums. */
struct recurrent_back {
    int64_t hidden;
    int32_t function;
    const float *gates, *y, *cells;
    const float *before; /* the state before the step whose gradient needs it: c or h; NULL: 0 */
    const float *dy;     /* or NULL */
    float *dh, *dc;
    float *dzx, *dzh;     /* of the sums with x and with h; dzh NULL: the same */
    float *flow;          /* what goes on to the step before: a copy of dzh, or dzx */
    float *sum_x, *sum_h; /* added to: dzx and dzh over samples and steps */
};

typedef void recurrent_forward(const struct recurrent_step *step);
typedef void recurrent_backward(const struct recurrent_back *back);

struct recurrent_kernels {
    recurrent_forward *lstm, *gru, *rnn;
    recurrent_backward *lstm_back, *gru_back, *rnn_back;
};

typedef void recurrent_run(const struct call *call, const struct gemm_kernels *gemm,
                           const struct recurrent_kernels *kernels);
recurrent_run recurrent_lstm, recurrent_gru, recurrent_rnn;
recurrent_run recurrent_lstm_grad, recurrent_gru_grad, recurrent_rnn_grad;
uint64_t recurrent_workspace(const struct program *program, const struct op *op, int threads,
                             const struct gemm_kernels *gemm);

#endif
