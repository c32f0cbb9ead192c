/* loss_scale.cu: see loss_scale.h. */
#include "backend/cuda/ops/loss_scale.h"

bool loss_scale_begins(enum op_kind kind)
{
    return kind == OP_mse_grad || kind == OP_cross_entropy_grad ||
           kind == OP_binary_cross_entropy_grad || kind == OP_divergence_grad;
}

static __global__ void apply_each(int64_t count, float *gradient,
                                  const struct loss_scale *loss_scale)
{
    FOR_EACH(index, count)
    gradient[index] *= loss_scale->scale;
}

void loss_scale_apply(struct queue *queue, int64_t count, float *gradient,
                      const struct loss_scale *loss_scale)
{
    enqueue(queue, apply_each, dim3(blocks_striding(count)), dim3(THREADS), count, gradient,
            loss_scale);
}

/* Whoever finds one says so: all of them write the same. */
static __global__ void look_each(int64_t count, const float *gradients,
                                 struct loss_scale *loss_scale)
{
    bool out = false;
    FOR_EACH(index, count)
    out = out || !isfinite(gradients[index]);
    if (out)
        loss_scale->out = 1;
}

void loss_scale_look(struct queue *queue, int64_t count, const float *gradients,
                     struct loss_scale *loss_scale)
{
    enqueue(queue, look_each, dim3(blocks_striding(count)), dim3(THREADS), count, gradients,
            loss_scale);
}

static __global__ void move_once(struct loss_scale *loss_scale)
{
    loss_scale->updates++;
    if (loss_scale->out) {
        loss_scale->lost += loss_scale->scale == 1.0f;
        loss_scale->scale = fmaxf(loss_scale->scale * 0.5f, 1.0f);
        loss_scale->updates = 0;
    } else if (loss_scale->updates == LOSS_SCALE_GROW_AFTER) {
        loss_scale->scale = fminf(loss_scale->scale * 2.0f, LOSS_SCALE_MOST);
        loss_scale->updates = 0;
    }
    loss_scale->out = 0;
}

void loss_scale_move(struct queue *queue, struct loss_scale *loss_scale)
{
    enqueue(queue, move_once, dim3(1), dim3(1), loss_scale);
}
