/* loss_scale.cu: see loss_scale.h. */
#include "backend/cuda/ops/loss_scale.h"

bool scaling_begins(enum op_kind kind)
{
    return kind == OP_mse_grad || kind == OP_cross_entropy_grad ||
           kind == OP_binary_cross_entropy_grad || kind == OP_divergence_grad;
}

static __global__ void apply_each(int64_t count, float *gradient, const struct scaling *scaling)
{
    FOR_EACH(index, count)
    gradient[index] *= scaling->scale;
}

void scaling_apply(struct queue *queue, int64_t count, float *gradient,
                   const struct scaling *scaling)
{
    enqueue(queue, apply_each, dim3(blocks_striding(count)), dim3(THREADS), count, gradient,
            scaling);
}

/* Whoever finds one says so: all of them write the same. */
static __global__ void look_each(int64_t count, const float *gradients, struct scaling *scaling)
{
    bool out = false;
    FOR_EACH(index, count)
    out = out || !isfinite(gradients[index]);
    if (out)
        scaling->out = 1;
}

void scaling_look(struct queue *queue, int64_t count, const float *gradients,
                  struct scaling *scaling)
{
    enqueue(queue, look_each, dim3(blocks_striding(count)), dim3(THREADS), count, gradients,
            scaling);
}

static __global__ void move_once(struct scaling *scaling)
{
    scaling->updates++;
    if (scaling->out) {
        scaling->lost += scaling->scale == 1.0f;
        scaling->scale = fmaxf(scaling->scale * 0.5f, 1.0f);
        scaling->updates = 0;
    } else if (scaling->updates == SCALING_GROW_AFTER) {
        scaling->scale = fminf(scaling->scale * 2.0f, SCALING_MOST);
        scaling->updates = 0;
    }
    scaling->out = 0;
}

void scaling_move(struct queue *queue, struct scaling *scaling)
{
    enqueue(queue, move_once, dim3(1), dim3(1), scaling);
}
