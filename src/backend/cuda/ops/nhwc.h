/* nhwc.h: images in NHWC order.
 *
 * Everywhere in prony images are [n, channels, rows, columns]. The quickest convolutions, on tensor
 * cores (conv_nhwc.h) and cuDNN's, want the channels of a pixel side by side. So a plan may keep an
 * activation as [n, rows, columns, channels] where everything that touches it can: these,
 * batch-norm, pooling, sums over channels, and whatever goes element by element. All others find
 * images as they expect them: a convolution turns what lies the other way, in its workspace. */
#ifndef PRONY_BACKEND_CUDA_NHWC_H
#define PRONY_BACKEND_CUDA_NHWC_H

#include "backend/cuda/device/launch.h"

enum { NHWC_VECTOR = 4 }; /* the channels of such an image are a multiple of this */

static inline bool call_is_nhwc(const struct call *call, int32_t operand)
{
    const int32_t tensor = call->program->operands[call->op->first + operand];
    return tensor >= 0 && call->places[tensor].nhwc;
}

/* An image operand as kernels see it. */
struct image {
    int32_t channels, rows, columns;
    bool nhwc;
    __device__ int64_t at(int64_t sample, int32_t channel, int32_t row, int32_t column) const
    {
        return nhwc ? ((sample * rows + row) * columns + column) * channels + channel
                    : ((sample * channels + channel) * rows + row) * columns + column;
    }
};

static inline struct image image_of(const struct call *call, int32_t operand)
{
    const struct image image = {(int32_t)call_dim(call, operand, 1),
                                (int32_t)call_dim(call, operand, 2),
                                (int32_t)call_dim(call, operand, 3), call_is_nhwc(call, operand)};
    return image;
}

/* The pixel of an image that is numbered in the order of its memory, WIDE channels at once. */
struct pixel {
    int64_t sample;
    uint32_t channel, row, column;
};

template <int WIDE>
static inline __device__ struct pixel pixel_of(const struct image &image, int64_t number)
{
    struct pixel at;
    if (image.nhwc) {
        number = split_number(number, (uint32_t)image.channels / WIDE, &at.channel);
        at.channel *= WIDE;
    }
    number = split_number(number, (uint32_t)image.columns, &at.column);
    number = split_number(number, (uint32_t)image.rows, &at.row);
    if (!image.nhwc)
        number = split_number(number, (uint32_t)image.channels, &at.channel);
    at.sample = number;
    return at;
}

/* pool.cu: the max_pool that wrote the places which a max_unpool takes, or NULL. */
const struct op *pool_of_places(const struct program *program, const struct op *unpool);

/* Matrices side by side that change rows and columns: from [rows][columns] to [columns][pitch],
 * 0 beyond the last row. */
struct transposition {
    int64_t count;         /* matrices */
    int32_t rows, columns; /* of each */
    int32_t from_pitch, pitch;
    bool accumulate;   /* adds to what is there */
    enum precision as; /* what is written: floats, those rounded to tf32, or numbers of 16 bits */
};

void nhwc_transpose(struct queue *queue, const struct transposition &transposition,
                    const float *from, void *to);

/* An image from NCHW to NHWC, `channels` of them in the result; and back, when
 * the channels of `from` are as many. */
void nhwc_from_nchw(struct queue *queue, int64_t samples, const struct image &image,
                    int32_t channels, const float *from, float *to);
void nhwc_to_nchw(struct queue *queue, int64_t samples, const struct image &image, int32_t channels,
                  const float *from, float *to);
/* … of elements of 8 bits (int8.cu) */
void nhwc_bytes_to_nchw(struct queue *queue, int64_t samples, const struct image &image,
                        const uint8_t *from, uint8_t *to);

#endif
