/* activation_grad.h: the gradient through an activation, and in the same pass what the update of
 * the layer below needs of it: sums over chunks of samples, for the gradient of its bias, and in
 * tf32 all of it turned. Chosen where that update is the next op (dense_sgd through cuBLASLt).
 * Where the op before is the layer above and makes the gradient by a thin product, its pieces are
 * added up here; where that has few outputs, its gradient is made here. */
#ifndef PRONY_BACKEND_CUDA_ACTIVATION_GRAD_H
#define PRONY_BACKEND_CUDA_ACTIVATION_GRAD_H

#include "backend/cuda/product/split_k.h"

struct plan;

/* What the pass leaves, on the device. */
struct slope {
    int64_t samples, width;
    int64_t chunk_rows, chunks;
    int64_t step;     /* of `turned`, from one row to the next */
    uint64_t sums_at; /* bytes from the beginning of the plan's memory for slopes … */
    uint64_t turned_at, inputs_at, pieces_at;
    bool turns;
    float *sums;          /* [chunks, width], … which is known when that was taken */
    float *turned;        /* [width, step]: its negative; NULL: it is not turned */
    float *inputs;        /* [inputs, step]: place for the other factor, turned by the update */
    struct pieces pieces; /* of what is read; count 0: it lies there as a whole, … */
    bool slim;            /* … or is made here, of a layer above that has few outputs */
};

/* Chooses, when the kernels are known, and counts the bytes; then says where they are. */
enum status slope_choose(struct plan *plan);
void slope_place(struct plan *plan);
/* The slope that takes what this op makes in pieces, or makes it in its place; or NULL. */
const struct slope *slope_below(const struct plan *plan, int32_t op);
/* A slope that makes the gradient of the op before it, which enqueues it: that is to change the
 * weights that it reads. */
void slope_launch(const struct call *call, struct queue *queue);

#endif
