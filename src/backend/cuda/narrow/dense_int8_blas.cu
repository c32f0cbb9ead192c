/* dense_int8_blas.cu: large dense layers of 8 bits by cuBLASLt, which multiplies i8 by i8 and wants
 * both factors in the order of the depth. So inputs are taken less 128, which is the highest bit
 * turned, weights are transposed, and 128 times the sum of a column's weights is added in the end:
 * the same integers. */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/narrow/integer.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/product/blas.h"

enum {
    BLAS_ALIGN = 16,          /* rows of all factors and results are multiples of this */
    BLAS_SAMPLES_LEAST = 512, /* fewer do not make up for transposing the weights */
    BLAS_WEIGHTS_LEAST = 1 << 20,
    TRANSPOSE_TILE = 64,
};

/* Four words a thread; and the sums of columns begin at 0. */
static __global__ void shift_inputs(int64_t pieces, int32_t out, const uint4 *x, uint4 *shifted,
                                    int32_t *column_sums)
{
    const uint32_t HALF = 0x80808080u;
    FOR_EACH(index, pieces)
    {
        const uint4 from = x[index];
        shifted[index] = make_uint4(from.x ^ HALF, from.y ^ HALF, from.z ^ HALF, from.w ^ HALF);
    }
    FOR_EACH(column, out)
    {
        column_sums[column] = 0;
    }
}

/* w[in][out] becomes [out][in]; a block has a tile. */
static __global__ void __launch_bounds__(THREADS)
    transpose_weights(int32_t in, int32_t out, const int8_t *w, int8_t *transposed,
                      int32_t *column_sums)
{
    __shared__ int8_t tile[TRANSPOSE_TILE][TRANSPOSE_TILE + 4];
    const int32_t row0 = (int32_t)blockIdx.y * TRANSPOSE_TILE;
    const int32_t column0 = (int32_t)blockIdx.x * TRANSPOSE_TILE;
    const int32_t lane = (int32_t)threadIdx.x % 16, line = (int32_t)threadIdx.x / 16;
    for (int32_t r = line; r < TRANSPOSE_TILE; r += THREADS / 16) {
        const bool there = row0 + r < in && column0 + 4 * lane < out;
        *(uint32_t *)&tile[r][4 * lane] =
            there ? *(const uint32_t *)&w[(int64_t)(row0 + r) * out + column0 + 4 * lane] : 0;
    }
    __syncthreads();
    for (int32_t c = line; c < TRANSPOSE_TILE; c += THREADS / 16) {
        uint32_t word = 0;
        int32_t sum = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int8_t weight = tile[4 * lane + i][c];
            word |= (uint32_t)(uint8_t)weight << 8 * i;
            sum += weight;
        }
        if (column0 + c < out && row0 + 4 * lane < in)
            *(uint32_t *)&transposed[(int64_t)(column0 + c) * in + row0 + 4 * lane] = word;
#pragma unroll
        for (int apart = 8; apart > 0; apart /= 2)
            sum += __shfl_xor_sync(~0u, sum, apart);
        if (lane == 0 && column0 + c < out)
            atomicAdd(&column_sums[column0 + c], sum);
    }
}

/* Four neighbouring results a thread. */
static __global__ void end_sums(int64_t quads, uint32_t out, struct int8_ending ending,
                                const int4 *sums, const int32_t *column_sums, void *y)
{
    FOR_EACH(index, quads)
    {
        uint32_t quad;
        (void)split_number(index, out / 4, &quad);
        const int4 four = sums[index];
        const int32_t own[4] = {four.x, four.y, four.z, four.w};
        int32_t whole[4];
        uint32_t levels = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            struct int8_channel channel;
            channel.take(ending, 4 * quad + (uint32_t)i);
            whole[i] = own[i] + channel.bias + 128 * __ldg(&column_sums[4 * quad + (uint32_t)i]);
            if (ending.multiplier)
                levels |= (uint32_t)int8_end(ending, channel, whole[i]) << 8 * i;
        }
        if (ending.multiplier)
            ((uint32_t *)y)[index] = levels;
        else
            ((int4 *)y)[index] = make_int4(whole[0], whole[1], whole[2], whole[3]);
    }
}

static const struct shape *shape_of(const struct program *program, const struct op *op,
                                    int32_t operand)
{
    return &program->tensors[op_input(program, op, operand)].shape;
}

/* What the product takes, the weights, their sums, the inputs, the sums of products. */
struct int8_room {
    void *product;
    int8_t *weights;
    int32_t *column_sums;
    uint8_t *inputs;
    int32_t *sums;
    uint64_t bytes;
};

static struct int8_room room_of(char *base, uint64_t samples, uint64_t in, uint64_t out)
{
    struct int8_room room = {};
    uint64_t at = 0;
    const auto take = [&](uint64_t bytes) {
        char *place = base + at;
        at += (bytes + 255) / 256 * 256;
        return (void *)place;
    };
    room.product = take(PRODUCT_BYTES);
    room.weights = (int8_t *)take(in * out);
    room.column_sums = (int32_t *)take(4 * out);
    room.inputs = (uint8_t *)take(samples * in);
    room.sums = (int32_t *)take(4 * samples * out);
    room.bytes = at;
    return room;
}

uint64_t workspace_dense_int8_blas(const struct program *program, const struct op *op)
{
    const int64_t *w = shape_of(program, op, AT_dense_int8_w)->dim;
    const int64_t samples = shape_of(program, op, AT_dense_int8_x)->dim[0];
    return room_of(NULL, (uint64_t)samples, (uint64_t)w[0], (uint64_t)w[1]).bytes;
}

void launch_dense_int8_blas(const struct call *call, struct queue *queue)
{
    const int64_t samples = call_dim(call, AT_dense_int8_x, 0);
    const int64_t in = call_dim(call, AT_dense_int8_w, 0), out = call_dim(call, AT_dense_int8_w, 1);
    const auto &attr = call->op->attr.dense_int8;
    const struct int8_room room =
        room_of((char *)call->workspace, (uint64_t)samples, (uint64_t)in, (uint64_t)out);
    const struct int8_ending ending = {call_integers(call, AT_dense_int8_b),
                                       call_integers(call, AT_dense_int8_multiplier),
                                       call_integers(call, AT_dense_int8_shift),
                                       (const uint8_t *)call->operands[AT_dense_int8_table],
                                       attr.zero,
                                       attr.low,
                                       attr.high};
    const int64_t pieces = samples * in / BLAS_ALIGN, quads = samples * out / 4;
    enqueue(queue, shift_inputs, dim3(blocks_striding(pieces)), dim3(THREADS), pieces, (int32_t)out,
            (const uint4 *)call->operands[AT_dense_int8_x], (uint4 *)room.inputs, room.column_sums);
    enqueue(queue, transpose_weights,
            dim3(blocks_for(out, TRANSPOSE_TILE), blocks_for(in, TRANSPOSE_TILE)), dim3(THREADS),
            (int32_t)in, (int32_t)out, (const int8_t *)call->operands[AT_dense_int8_w],
            room.weights, room.column_sums);
    struct product product = {};
    product.m = out;
    product.n = samples;
    product.k = in;
    product.a_transposed = true;
    product.a = room.weights;
    product.b = room.inputs;
    product.in = PRECISION_INT8;
    product.d = room.sums;
    product.out = PRECISION_FP32;
    blas_multiply(queue, &product, room.product);
    enqueue(queue, end_sums, dim3(blocks_striding(quads)), dim3(THREADS), quads, (uint32_t)out,
            ending, (const int4 *)room.sums, (const int32_t *)room.column_sums,
            call->operands[AT_dense_int8_y]);
}

bool takes_dense_int8_blas(const struct choice *choice)
{
    const int64_t *w = shape_of(choice->program, choice->op, AT_dense_int8_w)->dim;
    const int64_t samples = shape_of(choice->program, choice->op, AT_dense_int8_x)->dim[0];
    return choice->device->blas && w[0] % BLAS_ALIGN == 0 && w[1] % BLAS_ALIGN == 0 &&
           w[0] * w[1] >= BLAS_WEIGHTS_LEAST && samples >= BLAS_SAMPLES_LEAST;
}
