/* loss_scale.h: the scale of the loss, for fp16, whose smallest numbers gradients fall below.
 *
 * The gradient of the loss is multiplied by a scale, and so is every gradient behind it; the
 * optimisers divide by it. Before an update all gradients are looked through: when one has left the
 * range the update is left out and the scale halved; after GROW_AFTER updates in a row it is
 * doubled. The scale is the instance's: its programs share it. */
#ifndef PRONY_BACKEND_CUDA_LOSS_SCALE_H
#define PRONY_BACKEND_CUDA_LOSS_SCALE_H

#include "backend/cuda/device/launch.h"

/* Powers of two: they change no digit. At the first, the mean of a batch's gradients is far from
 * either end. */
#define LOSS_SCALE_FIRST 4096.0f
#define LOSS_SCALE_MOST 16777216.0f
enum { LOSS_SCALE_GROW_AFTER = 2000 };

/* On the device. */
struct loss_scale {
    float scale;
    int32_t updates; /* since it was changed */
    int32_t out;     /* does some gradient of this step lie out of range? */
    uint64_t lost;   /* updates that were left out at the smallest scale, where nothing helps */
};

/* What undoes it; `scaling` NULL: nothing is scaled. */
static inline __device__ float loss_scale_down(const struct loss_scale *loss_scale)
{
    return loss_scale ? 1.0f / loss_scale->scale : 1.0f;
}

static inline __device__ bool loss_scale_skips(const struct loss_scale *loss_scale)
{
    return loss_scale && loss_scale->out;
}

/* Does the op begin a gradient? Then its result, in fp32 as all of them are, is scaled. */
bool loss_scale_begins(enum op_kind kind);
void loss_scale_apply(struct queue *queue, int64_t count, float *gradient,
                      const struct loss_scale *loss_scale);

/* Around the update part: looks through the gradients; moves the scale. */
void loss_scale_look(struct queue *queue, int64_t count, const float *gradients,
                     struct loss_scale *loss_scale);
void loss_scale_move(struct queue *queue, struct loss_scale *loss_scale);

#endif
