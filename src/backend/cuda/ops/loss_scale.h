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
#define SCALING_FIRST 4096.0f
#define SCALING_MOST 16777216.0f
enum { SCALING_GROW_AFTER = 2000 };

/* On the device. */
struct scaling {
    float scale;
    int32_t updates; /* since it was changed */
    int32_t out;     /* does some gradient of this step lie out of range? */
    uint64_t lost;   /* updates that were left out at the smallest scale, where nothing helps */
};

/* What undoes it; `scaling` NULL: nothing is scaled. */
static inline __device__ float scaling_down(const struct scaling *scaling)
{
    return scaling ? 1.0f / scaling->scale : 1.0f;
}

static inline __device__ bool scaling_skips(const struct scaling *scaling)
{
    return scaling && scaling->out;
}

/* Does the op begin a gradient? Then its result, in fp32 as all of them are, is scaled. */
bool scaling_begins(enum op_kind kind);
void scaling_apply(struct queue *queue, int64_t count, float *gradient,
                   const struct scaling *scaling);

/* Around the update part: looks through the gradients; moves the scale. */
void scaling_look(struct queue *queue, int64_t count, const float *gradients,
                  struct scaling *scaling);
void scaling_move(struct queue *queue, struct scaling *scaling);

#endif
