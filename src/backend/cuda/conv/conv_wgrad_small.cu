/* conv_wgrad_small.cu: the gradient of few weights of small images: dw[o][i][ky][kx] = Σ x·dy.
 *
 * A block has some rows of y of one sample, brings what of x and dy they meet into shared memory,
 * x with its pads, and needs nothing else. A task is four outputs of one (input, ky, kx); where
 * tasks are few, several threads share the pixels of each. The blocks leave their sums, which are
 * added in order. Tiles (conv_wgrad.cu) would wait for memory more often than they multiply.
 *
 * Bound: a value of x and a vector of dy from shared memory for 4 multiply-adds. */
#include "backend/cuda/conv/conv.h"

enum {
    SMALL_WEIGHTS = 4096,
    SMALL_BYTES = 40 << 10, /* of shared memory */
    SMALL_BLOCKS = 128,     /* wanted: about one for each multiprocessor */
    SMALL_WIDE = 4          /* outputs of a task */
};

/* How the work is cut. */
struct small {
    struct conv conv;
    int32_t parts, rows;   /* of a sample; rows of y of each */
    int32_t height, width; /* of what of x a part meets, pads included */
    int32_t quads, tasks;  /* vectors of outputs; of a block */
    int32_t shares;        /* of a task */
};

static struct small small_of(const struct conv &conv)
{
    struct small small = {};
    const int32_t wanted = (SMALL_BLOCKS + conv.samples - 1) / conv.samples;
    small.conv = conv;
    small.rows = (conv.down.y + wanted - 1) / wanted;
    small.parts = (conv.down.y + small.rows - 1) / small.rows;
    small.height =
        (small.rows - 1) * conv.down.stride + (conv.down.kernel - 1) * conv.down.dilation + 1;
    small.width = (conv.across.y - 1) * conv.across.stride +
                  (conv.across.kernel - 1) * conv.across.dilation + 1;
    small.quads = (conv.out + SMALL_WIDE - 1) / SMALL_WIDE;
    small.tasks = conv.inner * conv.taps * small.quads;
    small.shares = small.tasks < THREADS ? THREADS / small.tasks : 1;
    return small;
}

static int64_t small_floats(const struct small &small)
{
    return (int64_t)small.rows * small.conv.across.y * small.quads * SMALL_WIDE +
           (int64_t)small.conv.in * small.height * small.width;
}

bool small_fits(const struct conv &conv)
{
    return conv.groups == 1 && (int64_t)conv.out * conv.inner * conv.taps <= SMALL_WEIGHTS &&
           small_floats(small_of(conv)) * (int64_t)sizeof(float) <= SMALL_BYTES;
}

int32_t small_pieces(const struct conv &conv)
{
    return conv.samples * small_of(conv).parts;
}

/* dy[place][output], x[channel][row][column] */
static __device__ void bring(const struct small &small, const float *x, const float *dy,
                             int64_t sample, int32_t row0, int32_t rows, float *at_dy, float *at_x)
{
    const struct conv &conv = small.conv;
    const int32_t outputs = small.quads * SMALL_WIDE, plane = small.height * small.width;
    const int32_t places = rows * conv.across.y;
    const int32_t top = row0 * conv.down.stride - conv.down.pad;
    dy += (sample * conv.out * conv.down.y + row0) * conv.across.y;
    x += sample * conv.in * conv.down.x * conv.across.x;
#pragma unroll 4
    for (int32_t i = (int32_t)threadIdx.x; i < outputs * places; i += THREADS) {
        const int32_t output = i / places, place = i % places;
        at_dy[place * outputs + output] =
            output < conv.out ? __ldg(dy + (int64_t)output * conv.down.y * conv.across.y + place)
                              : 0.0f;
    }
#pragma unroll 4
    for (int32_t i = (int32_t)threadIdx.x; i < conv.in * plane; i += THREADS) {
        const int32_t channel = i / plane, within = i % plane;
        const int32_t row = top + within / small.width;
        const int32_t column = within % small.width - conv.across.pad;
        const bool there =
            (uint32_t)row < (uint32_t)conv.down.x && (uint32_t)column < (uint32_t)conv.across.x;
        at_x[i] = there ? __ldg(x + ((int64_t)channel * conv.down.x + row) * conv.across.x + column)
                        : 0.0f;
    }
}

static __global__ void __launch_bounds__(THREADS)
    wgrad_small(struct small small, const float *x, const float *dy, float *pieces)
{
    extern __shared__ float4 shared[];
    __shared__ float4 partial[THREADS];
    const struct conv &conv = small.conv;
    const int64_t sample = blockIdx.x / (unsigned)small.parts;
    const int32_t row0 = (int32_t)(blockIdx.x % (unsigned)small.parts) * small.rows;
    const int32_t rows = min(small.rows, conv.down.y - row0);
    const int32_t columns = conv.inner * conv.taps, thread = (int32_t)threadIdx.x;
    const float *at_x = (const float *)(shared + (int64_t)small.rows * conv.across.y * small.quads);
    pieces += (int64_t)blockIdx.x * conv.out * columns;
    bring(small, x, dy, sample, row0, rows, (float *)shared, (float *)at_x);
    __syncthreads();
    const int32_t share = thread / small.tasks;
    for (int32_t task = small.shares > 1 ? thread % small.tasks : thread; task < small.tasks;
         task += THREADS) {
        const int32_t quad = task / columns, column = task % columns;
        const int32_t channel = column / conv.taps, tap = column % conv.taps;
        const float *from = at_x + channel * small.height * small.width +
                            tap / conv.across.kernel * conv.down.dilation * small.width +
                            tap % conv.across.kernel * conv.across.dilation;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int32_t row = share; share < small.shares && row < rows; row += small.shares) {
            const float *line = from + row * conv.down.stride * small.width;
            const float4 *values = shared + row * conv.across.y * small.quads + quad;
#pragma unroll 4
            for (int32_t q = 0; q < conv.across.y; q++) {
                const float value = line[q * conv.across.stride];
                const float4 four = values[q * small.quads];
                sum.x = fmaf(value, four.x, sum.x);
                sum.y = fmaf(value, four.y, sum.y);
                sum.z = fmaf(value, four.z, sum.z);
                sum.w = fmaf(value, four.w, sum.w);
            }
        }
        if (small.shares > 1) {
            partial[thread] = sum;
            __syncthreads();
            for (int32_t other = 1; share == 0 && other < small.shares; other++) {
                const float4 more = partial[thread + other * small.tasks];
                sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
            }
        }
        const float all[SMALL_WIDE] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
        for (int i = 0; i < SMALL_WIDE; i++)
            if (share == 0 && quad * SMALL_WIDE + i < conv.out)
                pieces[(int64_t)(quad * SMALL_WIDE + i) * columns + column] = all[i];
    }
}

void small_launch(struct queue *queue, const struct conv &conv, const float *x, const float *dy,
                  float *pieces)
{
    const struct small small = small_of(conv);
    enqueue_large(queue, wgrad_small, dim3((unsigned)small_pieces(conv)), dim3(THREADS),
                  (size_t)small_floats(small) * sizeof(float), small, x, dy, pieces);
}
