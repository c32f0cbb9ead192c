/* double_buffer.h: steps of inference that overlap. While a step computes, the rows of the next one
 * are taken in and the results of the last one stored, in a stream of their own. So that neither
 * meets what computes, a slot's memory is there twice and steps take turns; what computes stays in
 * its order. */
#ifndef PRONY_BACKEND_CUDA_DOUBLE_BUFFER_H
#define PRONY_BACKEND_CUDA_DOUBLE_BUFFER_H

#include "backend/cuda/device/launch.h"

struct plan;

/* What a plan has for it. */
struct double_buffer {
    cudaStream_t stream; /* nothing runs in it: it is captured */
    cudaEvent_t made;    /* where a step has computed … */
    cudaEvent_t taken;   /* … and where the rows of one are there */
};

/* Do steps of this plan overlap? Known when its kernels and the bytes of a slot are. */
bool double_buffer_takes(const struct plan *plan);
enum status double_buffer_open(struct plan *plan);
void double_buffer_close(struct plan *plan);

/* Is this op enqueued by the functions below, where steps overlap? */
bool double_buffer_has(const struct op *op);
/* Before what a step computes, and behind it. It is one of several: `left` come after it, and it
 * computes in the copy left & 1 of the slot. */
void double_buffer_before(const struct plan *plan, int32_t steps, int32_t left,
                          struct queue *queue);
void double_buffer_after(const struct plan *plan, int32_t left, struct queue *queue);

#endif
