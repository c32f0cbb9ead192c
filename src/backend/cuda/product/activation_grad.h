/* activation_grad.h: the gradient through an activation, and in the same pass what the update of
 * the layer below needs of it: sums over chunks of samples, for the gradient of its bias, and in
 * tf32 all of it transposed. Chosen where that update is the next op (dense_sgd through cuBLASLt).
 * Where the op before is the layer above and makes the gradient by a split-K product, its pieces
 * are added up here; where that has few outputs, its gradient is made here. */
#ifndef PRONY_BACKEND_CUDA_ACTIVATION_GRAD_H
#define PRONY_BACKEND_CUDA_ACTIVATION_GRAD_H

#include "backend/cuda/product/split_k.h"

struct choice;
struct plan;

/* A block has a tile of 64 columns, two neighbours a thread, and goes down a chunk of rows, 32 at a
 * time: a line of 32 threads has every 8th of them. */
enum { GRAD_COLS = 64, GRAD_ROWS = 32, GRAD_LINES = 8, GRAD_CHUNKS = 64, GRAD_FROM = 48 };
enum { GRAD_FEW = 256 }; /* samples: then a chunk is a row a thread */

/* What the pass leaves, on the device. */
struct activation_grad {
    int64_t samples, width;
    int64_t chunk_rows, chunks;
    int64_t step;     /* of `transposed`, from one row to the next */
    uint64_t sums_at; /* bytes from the beginning of the plan's memory for these … */
    uint64_t transposed_at, inputs_at, pieces_at;
    bool transposes;
    float *sums;          /* [chunks, width], … which is known when that was taken */
    float *transposed;    /* [width, step]: its negative; NULL: it is not transposed */
    float *inputs;        /* [inputs, step]: place for the other factor, transposed by the update */
    struct pieces pieces; /* of what is read; count 0: it lies there as a whole, … */
    bool few_outputs;     /* … or is made here, of a layer above that has few outputs */
};

/* activation_grad_plan.cu: counts the bytes, when the steps are chosen; then says where they are.
 */
enum status activation_grad_reserve(struct plan *plan, const struct choice *choice);
void activation_grad_place(struct plan *plan);
/* The one that takes what this op makes in pieces, or makes it in its place; or NULL. */
const struct activation_grad *activation_grad_below(const struct plan *plan, int32_t op);

/* activation_grad.cu. Where it makes the gradient of the op before it, that op enqueues it, before
 * it changes the weights that this one reads. */
void launch_activation_grad(const struct call *call, struct queue *queue);

#endif
