/* whole_grid.cu: a stack of dense layers at a small batch, on all multiprocessors at once, for as
 * many steps as are asked for.
 *
 * Each block owns some columns (outputs) of every layer for the whole launch. They lie [out][in],
 * as many as fit in shared memory, the rest in device memory that stays in L2. Going up, a block
 * needs all inputs of a layer and makes the outputs of its columns; going down, it has the
 * gradients of its columns, adds its part of the gradient of every input, and updates its weights
 * in the same pass, with the gradient summed over the batch first. A last layer with few weights is
 * copied: every block has all of it and computes the same.
 *
 * Blocks never meet at a barrier. What they exchange travels in packets of 16 bytes: three floats
 * and the number of the step, written and read as one. Who needs a packet reads it until the
 * number is right. There are two sets, for even and odd steps: nobody can be two steps ahead of a
 * block that still reads, since every step needs something of every block.
 *
 * Sums have a fixed order: lanes of a warp by halving, warps and blocks by number.
 *
 * Bound: each weight is read once up, read and written once down, from shared memory (128 bytes a
 * cycle) or L2; an exchange costs about 0.7 µs, and there are two a layer, less the first. */
#include "backend/cuda/update.h"
#include "backend/cuda/whole_run.h"

/* More samples need more registers a thread. */
template <int N> constexpr int BLOCK_THREADS = GRID_THREADS_FOR(N);
template <int N> constexpr int BLOCK_WARPS = BLOCK_THREADS<N> / 32;

struct grid_net {
    struct whole_step step;
    struct grid_layout layout;
    uint32_t first; /* the number of the launch's first step; never the same twice */
    struct {
        int32_t in, out;
        enum activation function;
        float *w, *b;  /* [in][out], [out] or NULL */
        float *turned; /* [out][quads·4] */
        uint4 *up;     /* [2][out][packets]: outputs */
        uint4 *down;   /* [2][owners][in][packets]: parts of the inputs' gradients */
    } layer[CHAIN_MOST];
};

static __device__ void packet_put(uint4 *to, float a, float b, float c, uint32_t number)
{
    const uint64_t low = (uint64_t)__float_as_uint(b) << 32 | __float_as_uint(a);
    const uint64_t high = (uint64_t)number << 32 | __float_as_uint(c);
    asm volatile("{ .reg .b128 packet;\n\tmov.b128 packet, {%1, %2};\n\t"
                 "st.relaxed.gpu.global.b128 [%0], packet; }" ::"l"(to),
                 "l"(low), "l"(high)
                 : "memory");
}

static __device__ uint4 packet_look(const uint4 *from)
{
    uint64_t low, high;
    asm volatile("{ .reg .b128 packet;\n\tld.relaxed.gpu.global.b128 packet, [%2];\n\t"
                 "mov.b128 {%0, %1}, packet; }"
                 : "=l"(low), "=l"(high)
                 : "l"(from)
                 : "memory");
    return make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
}

/* Calls take(k, packet) for `count` packets, `apart` from each other, once they have come. Several
 * are under way at a time. */
template <typename Take>
static __device__ void packets_take(const uint4 *from, int count, int64_t apart, uint32_t number,
                                    Take take)
{
    enum { AHEAD = 4 };
    for (int k0 = 0; k0 < count; k0 += AHEAD) {
        uint4 packet[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (k0 + k < count)
                packet[k] = packet_look(from + (k0 + k) * apart);
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            if (k0 + k >= count)
                break;
            while (packet[k].w != number)
                packet[k] = packet_look(from + (k0 + k) * apart);
            take(k0 + k, packet[k]);
        }
    }
}

/* The columns of a layer that a block has. */
struct columns {
    int first, count, resident, quads;
    float4 *shared; /* [resident][quads] */
    float4 *far;    /* [count][quads]; only those that are not resident */
    __device__ float4 load(int column, int quad) const
    {
        return column < resident ? shared[column * quads + quad]
                                 : __ldcg(&far[column * quads + quad]);
    }
    __device__ void store(int column, int quad, float4 w) const
    {
        if (column < resident)
            shared[column * quads + quad] = w;
        else
            __stcg(&far[column * quads + quad], w);
    }
};

static __device__ struct columns columns_of(const struct grid_net *net, float *shared, int l)
{
    const auto &at = net->layout.layer[l];
    const int block = (int)blockIdx.x, out = net->layer[l].out;
    struct columns columns = {
        0, 0, at.resident, quads_of(net->layer[l].in), (float4 *)&shared[at.weights], NULL};
    if (at.copied) {
        columns.count = out;
    } else if (block < at.owners) {
        columns.first = (int)((int64_t)out * block / at.owners);
        columns.count = (int)((int64_t)out * (block + 1) / at.owners) - columns.first;
    }
    columns.far = (float4 *)net->layer[l].turned + (int64_t)columns.first * columns.quads;
    return columns;
}

/* Weights from [in][out] to where they are worked on. */
static __device__ void grid_begin(const struct grid_net *net, float *shared)
{
    for (int l = 0; l < net->step.layers; l++) {
        const struct columns columns = columns_of(net, shared, l);
        const int in = net->layer[l].in;
        const int64_t out = net->layer[l].out;
        const float *w = net->layer[l].w + columns.first;
        for (int e = (int)threadIdx.x; e < columns.count * columns.quads; e += (int)blockDim.x) {
            const int column = e % columns.count, quad = e / columns.count;
            float q[4];
#pragma unroll
            for (int k = 0; k < 4; k++)
                q[k] = 4 * quad + k < in ? w[(4 * quad + k) * out + column] : 0.0f;
            columns.store(column, quad, make_float4(q[0], q[1], q[2], q[3]));
        }
        for (int c = (int)threadIdx.x; c < columns.count; c += (int)blockDim.x)
            shared[net->layout.layer[l].bias + c] =
                net->layer[l].b ? net->layer[l].b[columns.first + c] : 0.0f;
    }
}

static __device__ void grid_end(const struct grid_net *net, float *shared)
{
    for (int l = 0; l < net->step.layers; l++) {
        const struct columns columns = columns_of(net, shared, l);
        const int in = net->layer[l].in;
        const int64_t out = net->layer[l].out;
        float *w = net->layer[l].w + columns.first;
        if (net->layout.layer[l].copied && blockIdx.x > 0)
            continue;
        for (int e = (int)threadIdx.x; e < columns.count * columns.quads; e += (int)blockDim.x) {
            const int column = e % columns.count, quad = e / columns.count;
            const float4 weights = columns.load(column, quad);
            const float q[4] = {weights.x, weights.y, weights.z, weights.w};
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (4 * quad + k < in)
                    w[(4 * quad + k) * out + column] = q[k];
        }
        for (int c = (int)threadIdx.x; net->layer[l].b && c < columns.count; c += (int)blockDim.x)
            net->layer[l].b[columns.first + c] = shared[net->layout.layer[l].bias + c];
    }
}

/* Sums `values` over the lanes of a warp: V numbers in about V exchanges, since each lane keeps
 * half of what it has and gives the other half away. The sums go to out[V]. */
template <int V> static __device__ void warp_sums(float (&values)[V], float *out)
{
    constexpr int V1 = (V + 1) / 2, V2 = (V1 + 1) / 2, V3 = (V2 + 1) / 2, V4 = (V3 + 1) / 2,
                  V5 = (V4 + 1) / 2;
    constexpr int sizes[6] = {V, V1, V2, V3, V4, V5};
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int level = 0; level < 5; level++) {
        const int half = sizes[level + 1];
        const bool upper = lane >> level & 1;
#pragma unroll
        for (int k = 0; k < half; k++) {
            const float low = values[k], high = k + half < sizes[level] ? values[k + half] : 0.0f;
            const float other = __shfl_xor_sync(~0u, upper ? low : high, 1 << level);
            values[k] = (upper ? high : low) + other;
        }
    }
#pragma unroll
    for (int k = 0; k < V5; k++) {
        int place = k;
        bool valid = true;
#pragma unroll
        for (int level = 4; level >= 0; level--) {
            place += lane >> level & 1 ? sizes[level + 1] : 0;
            valid = valid && place < sizes[level];
        }
        /* with fewer values than lanes, several lanes have the same sum of one value */
        if (valid)
            out[place] = values[k];
    }
}

/* x·W of the block's columns: out[chunk of four columns, part of the inputs][4][N]. Warps share the
 * chunks, and where there are fewer chunks than warps, the inputs. */
template <int N> struct parting {
    int chunks, parts;
    __device__ explicit parting(int columns)
        : chunks((columns + 3) / 4),
          parts(chunks == 0 || chunks > BLOCK_WARPS<N> ? 1 : BLOCK_WARPS<N> / chunks)
    {
    }
};

template <int N> static __device__ void load_quad(const float *x, int quad, float (&into)[4 * N])
{
    const float4 *from = (const float4 *)&x[quad * grid_quad_floats(N)];
#pragma unroll
    for (int k = 0; k < N; k++)
        *(float4 *)&into[4 * k] = from[k];
}

template <int N>
static __device__ void grid_up(const struct columns &columns, const float *x, float *sums)
{
    const struct parting<N> parting(columns.count);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int part = warp % parting.parts;
    for (int chunk = warp / parting.parts; chunk < parting.chunks;
         chunk += BLOCK_WARPS<N> / parting.parts) {
        float sum[4 * N] = {};
        for (int quad = part * 32 + lane; quad < columns.quads; quad += 32 * parting.parts) {
            float4 w[4];
            float in[4 * N];
#pragma unroll
            for (int c = 0; c < 4; c++)
                w[c] = 4 * chunk + c < columns.count ? columns.load(4 * chunk + c, quad)
                                                     : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            load_quad<N>(x, quad, in);
#pragma unroll
            for (int c = 0; c < 4; c++)
#pragma unroll
                for (int n = 0; n < N; n++) {
                    float *to = &sum[c * N + n];
                    *to = fmaf(w[c].x, in[n], *to);
                    *to = fmaf(w[c].y, in[N + n], *to);
                    *to = fmaf(w[c].z, in[2 * N + n], *to);
                    *to = fmaf(w[c].w, in[3 * N + n], *to);
                }
        }
        warp_sums<4 * N>(sum, &sums[(chunk * parting.parts + part) * 4 * N]);
    }
}

/* y = f(sum + b) of the own columns, kept[column][N] and sent to all. */
template <int N>
static __device__ void grid_finish(const struct columns &columns, const float *sums,
                                   const float *bias, enum activation function, float *kept,
                                   uint4 *up, uint32_t number)
{
    constexpr int PACKETS = (N + 2) / 3;
    const struct parting<N> parting(columns.count);
    for (int item = (int)threadIdx.x; item < columns.count * PACKETS; item += BLOCK_THREADS<N>) {
        const int column = item / PACKETS, n0 = item % PACKETS * 3;
        const float *from = &sums[column / 4 * parting.parts * 4 * N + column % 4 * N];
        float y[3] = {};
#pragma unroll
        for (int k = 0; k < 3; k++) {
            if (n0 + k >= N)
                break;
            for (int part = 0; part < parting.parts; part++)
                y[k] += from[part * 4 * N + n0 + k];
            y[k] = whole_activation(function, y[k] + bias[column]);
            kept[column * N + n0 + k] = y[k];
        }
        if (up)
            packet_put(&up[(int64_t)columns.first * PACKETS + item], y[0], y[1], y[2], number);
    }
}

/* Where feature i of sample n lies among the inputs of a layer. */
template <int N> static __device__ int input_place(int i, int n)
{
    return i / 4 * grid_quad_floats(N) + i % 4 * N + n;
}

/* All outputs of a layer, from all blocks: to x as the next layer's inputs, or to y[out][N]. */
template <int N, bool AS_INPUTS>
static __device__ void grid_gather(const uint4 *up, int out, uint32_t number, float *to)
{
    constexpr int PACKETS = (N + 2) / 3;
    const int first = (int)threadIdx.x, all = out * PACKETS;
    const int count = first < all ? (all - first + BLOCK_THREADS<N> - 1) / BLOCK_THREADS<N> : 0;
    packets_take(up + first, count, BLOCK_THREADS<N>, number, [&](int k, uint4 packet) {
        const int item = first + k * BLOCK_THREADS<N>, i = item / PACKETS, n0 = item % PACKETS * 3;
        float *place = AS_INPUTS ? &to[input_place<N>(i, n0)] : &to[i * N + n0];
        place[0] = __uint_as_float(packet.x);
        if (n0 + 1 < N)
            place[1] = __uint_as_float(packet.y);
        if (n0 + 2 < N)
            place[2] = __uint_as_float(packet.z);
    });
    if (AS_INPUTS && first < 4 * N && out + first / N < 4 * quads_of(out))
        to[input_place<N>(out + first / N, first % N)] = 0.0f;
}

constexpr __host__ __device__ int delta_floats(int samples)
{
    return (samples + 3) / 4 * 4;
}

/* The way down through the block's columns: each input's gradient, as far as these columns make
 * it, is sent (to `down`, or nowhere), and the weights are updated. Half of a warp takes half of
 * the columns. */
template <int N>
static __device__ void grid_down(const struct columns &columns, const float *x, const float *delta,
                                 float rate, uint4 *down, int in, uint32_t number)
{
    constexpr int PACKETS = (N + 2) / 3, AT_ONCE = N <= 4 ? 4 : 2;
    const int lane = (int)threadIdx.x % 32, half = lane / 16;
    const int each = (columns.count + 1) / 2, from = half * each;
    const int to = from + each < columns.count ? from + each : columns.count;
    for (int line = (int)threadIdx.x / 32; line * 16 < columns.quads; line += BLOCK_WARPS<N>) {
        const int quad = line * 16 + lane % 16;
        const bool inside = quad < columns.quads;
        float input[4 * N], dx[4 * N] = {};
        load_quad<N>(x, inside ? quad : 0, input);
        for (int c0 = from; c0 < from + each; c0 += AT_ONCE) {
            float4 w[AT_ONCE];
#pragma unroll
            for (int c = 0; c < AT_ONCE; c++)
                if (inside && c0 + c < to)
                    w[c] = columns.load(c0 + c, quad);
#pragma unroll
            for (int c = 0; c < AT_ONCE; c++) {
                if (!inside || c0 + c >= to)
                    continue;
                float dy[delta_floats(N)], g[4] = {};
#pragma unroll
                for (int n = 0; n < N; n += 4)
                    *(float4 *)&dy[n] = *(const float4 *)&delta[(c0 + c) * delta_floats(N) + n];
#pragma unroll
                for (int n = 0; n < N; n++)
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        g[k] = fmaf(input[k * N + n], dy[n], g[k]);
                if (down) {
#pragma unroll
                    for (int n = 0; n < N; n++) {
                        dx[n] = fmaf(w[c].x, dy[n], dx[n]);
                        dx[N + n] = fmaf(w[c].y, dy[n], dx[N + n]);
                        dx[2 * N + n] = fmaf(w[c].z, dy[n], dx[2 * N + n]);
                        dx[3 * N + n] = fmaf(w[c].w, dy[n], dx[3 * N + n]);
                    }
                }
                columns.store(
                    c0 + c, quad,
                    make_float4(update_sgd(w[c].x, g[0], rate), update_sgd(w[c].y, g[1], rate),
                                update_sgd(w[c].z, g[2], rate), update_sgd(w[c].w, g[3], rate)));
            }
        }
        if (!down)
            continue;
#pragma unroll
        for (int k = 0; k < 4 * N; k++)
            dx[k] += __shfl_xor_sync(~0u, dx[k], 16);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int i = 4 * quad + k;
            if (k / 2 != half || i >= in)
                continue;
#pragma unroll
            for (int p = 0; p < PACKETS; p++)
                packet_put(&down[(int64_t)i * PACKETS + p], dx[k * N + 3 * p],
                           3 * p + 1 < N ? dx[k * N + 3 * p + 1] : 0.0f,
                           3 * p + 2 < N ? dx[k * N + 3 * p + 2] : 0.0f, number);
        }
    }
}

static __device__ void grid_bias(const struct columns &columns, const float *delta, int stride,
                                 int samples, float rate, float *bias)
{
    for (int c = (int)threadIdx.x; c < columns.count; c += (int)blockDim.x) {
        float sum = 0.0f;
        for (int n = 0; n < samples; n++)
            sum += delta[c * stride + n];
        bias[c] = update_sgd(bias[c], sum, rate);
    }
}

/* delta of the layer below, own columns: what all owners of the layer sent, summed, through the
 * slope of the activation. Holds a barrier. */
template <int N>
static __device__ void grid_collect(const struct columns &below, const uint4 *down, int owners,
                                    int in, uint32_t number, enum activation function,
                                    const float *kept, float *scratch, float *delta)
{
    constexpr int PACKETS = (N + 2) / 3;
    const int items = below.count * PACKETS;
    const int parts = items > BLOCK_THREADS<N> || items == 0 ? 1 : BLOCK_THREADS<N> / items;
    const int64_t apart = (int64_t)in * PACKETS;
    const int width = parts > 1 ? items : BLOCK_THREADS<N>;
    for (int base = 0; base < items; base += BLOCK_THREADS<N>) {
        const int item = base + (int)threadIdx.x % width, part = (int)threadIdx.x / width;
        float sum[3] = {};
        if (base > 0)
            __syncthreads();
        if (item < items && part < parts)
            packets_take(down + part * apart + (int64_t)below.first * PACKETS + item,
                         (owners - part + parts - 1) / parts, parts * apart, number,
                         [&](int, uint4 packet) {
                             sum[0] += __uint_as_float(packet.x);
                             sum[1] += __uint_as_float(packet.y);
                             sum[2] += __uint_as_float(packet.z);
                         });
#pragma unroll
        for (int k = 0; k < 3; k++)
            scratch[k * BLOCK_THREADS<N> + (int)threadIdx.x] = sum[k];
        __syncthreads();
        if (part > 0 || item >= items)
            continue;
        const int column = item / PACKETS, n0 = item % PACKETS * 3;
#pragma unroll
        for (int k = 0; k < 3; k++) {
            if (n0 + k >= N)
                break;
            float total = 0.0f;
            for (int other = 0; other < parts; other++)
                total += scratch[k * BLOCK_THREADS<N> + other * width + (int)threadIdx.x];
            delta[column * delta_floats(N) + n0 + k] =
                total * activation_slope(function, 0.0f, kept[column * N + n0 + k]);
        }
    }
}

/* delta of the layer below a copied one: nothing has to be exchanged. */
template <int N>
static __device__ void grid_descend(const struct columns &last, const struct columns &below,
                                    const float *delta, enum activation function, const float *kept,
                                    float *into)
{
    for (int item = (int)threadIdx.x; item < below.count * N; item += BLOCK_THREADS<N>) {
        const int column = item / N, n = item % N, i = below.first + column;
        float sum = 0.0f;
        for (int o = 0; o < last.count; o++)
            sum = fmaf(((const float *)last.shared)[o * last.quads * 4 + i],
                       delta[o * delta_floats(N) + n], sum);
        into[column * delta_floats(N) + n] =
            sum * activation_slope(function, 0.0f, kept[column * N + n]);
    }
}

static __device__ float warp_sum(float value)
{
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        value += __shfl_xor_sync(~0u, value, apart);
    return value;
}

static __device__ float warp_max(float value)
{
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, apart));
    return value;
}

/* Largest output and Σ e^(y - largest) of every sample: softmax[N][2]. A warp a sample. */
template <int N>
static __device__ void grid_softmax(const float *y, int out, int batch, float *softmax)
{
    for (int n = (int)threadIdx.x / 32; n < batch; n += BLOCK_WARPS<N>) {
        float most = -INFINITY, sum = 0.0f;
        for (int o = (int)threadIdx.x % 32; o < out; o += 32)
            most = fmaxf(most, y[o * N + n]);
        most = warp_max(most);
        for (int o = (int)threadIdx.x % 32; o < out; o += 32)
            sum += expf(y[o * N + n] - most);
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0) {
            softmax[2 * n] = most;
            softmax[2 * n + 1] = sum;
        }
    }
}

/* delta of the last layer's own columns. Targets are [N][out] or labels[N]. */
template <int N>
static __device__ void grid_loss_grad(const struct whole_step *step, const struct columns &last,
                                      int out, enum activation function, const float *y,
                                      const float *target, const float *softmax, float *delta)
{
    for (int item = (int)threadIdx.x; item < last.count * N; item += BLOCK_THREADS<N>) {
        const int column = item / N, n = item % N, o = last.first + column;
        const float value = y[o * N + n];
        float gradient = 0.0f;
        if (step->loss_kind == OP_mse)
            gradient = value - target[n * out + o];
        else if (step->loss_kind == OP_binary_cross_entropy)
            gradient = sigmoid(value) - target[n * out + o];
        else
            gradient = expf(value - softmax[2 * n]) / softmax[2 * n + 1] -
                       (__float_as_int(target[n]) == o ? 1.0f : 0.0f);
        delta[column * delta_floats(N) + n] =
            n < step->batch ? step->gradient * gradient * activation_slope(function, 0.0f, value)
                            : 0.0f;
    }
}

/* The step's loss and right answers: one warp of one block. */
template <int N>
static __device__ void grid_report(const struct whole_step *step, int out, const float *y,
                                   const float *target, const float *softmax, struct ring *loss,
                                   struct ring *right)
{
    const int lane = (int)threadIdx.x % 32, all = step->batch * out;
    float sum = 0.0f, hits = 0.0f;
    for (int e = lane; e < (step->loss_kind == OP_cross_entropy ? step->batch : all); e += 32) {
        if (step->loss_kind == OP_cross_entropy) {
            const int label = __float_as_int(target[e]);
            sum += (logf(softmax[2 * e + 1]) - (y[label * N + e] - softmax[2 * e])) /
                   (float)step->batch;
            continue;
        }
        const float value = y[e % out * N + e / out], wanted = target[e], error = value - wanted;
        sum += (step->loss_kind == OP_mse
                    ? error * error
                    : fmaxf(value, 0.0f) - value * wanted + log1pf(expf(-fabsf(value)))) /
               (float)all;
        hits += step->right_kind == OP_right_level && fabsf(error) < step->half ? 1.0f : 0.0f;
    }
    for (int n = lane; step->right_kind == OP_right_class && n < step->batch; n += 32) {
        int best = 0;
        for (int o = 1; o < out; o++)
            best = y[o * N + n] > y[best * N + n] ? o : best;
        hits += best == __float_as_int(target[n]) ? 1.0f : 0.0f;
    }
    sum = warp_sum(sum);
    hits = warp_sum(hits);
    if (lane == 0) {
        ring_put(loss, sum);
        ring_put(right, hits);
    }
}

/* What a step reads from the data: its inputs, then its targets, each a numbered element. */
template <int N> struct data_intake {
    const struct grid_net *net;
    int in, wide, inputs, all; /* elements */
    __device__ explicit data_intake(const struct grid_net *of) : net(of), in(of->layer[0].in)
    {
        const int out = of->layer[of->step.layers - 1].out;
        wide = !of->step.target ? 0 : of->step.loss_kind == OP_cross_entropy ? 1 : out;
        inputs = in * N;
        all = inputs + wide * N;
    }
    /* 0 where the batch has no such sample */
    __device__ float read(const uint32_t *rows, int e) const
    {
        const int width = e < inputs ? in : wide, k = e < inputs ? e : e - inputs;
        const int n = k / width;
        if (n >= net->step.batch)
            return 0.0f;
        const struct feed_view *view = e < inputs ? net->step.x : net->step.target;
        return __uint_as_float(__ldg(&view->data[(uint64_t)rows[n] * (unsigned)width + k % width]));
    }
    __device__ void put(float *shared, int e, float value) const
    {
        if (e < inputs)
            shared[net->layout.x + input_place<N>(e % in, e / in)] = value;
        else
            shared[net->layout.target + e - inputs] = value;
    }
    /* the inputs behind the last, up to a whole quadruple */
    __device__ void fill(float *shared) const
    {
        const int i = in + (int)threadIdx.x / N;
        if (i < 4 * quads_of(in))
            shared[net->layout.x + input_place<N>(i, (int)threadIdx.x % N)] = 0.0f;
    }
};

/* What one block remembers from step to step. */
template <int N> struct grid_block {
    const struct grid_net *net;
    float *shared;
    struct data_intake<N> intake;
    uint32_t *rows; /* of this step's samples */
    float rate;

    __device__ grid_block(const struct grid_net *of, float *memory)
        : net(of), shared(memory), intake(of), rows((uint32_t *)&memory[of->layout.rows]), rate(0)
    {
    }
    __device__ uint4 *up(int l, uint32_t number) const
    {
        return net->layer[l].up + (int64_t)(number & 1) * net->layer[l].out * ((N + 2) / 3);
    }
    __device__ uint4 *down(int l, uint32_t number, int owner) const
    {
        const int64_t set = (int64_t)net->layer[l].in * ((N + 2) / 3);
        return net->layer[l].down +
               ((int64_t)(number & 1) * net->layout.layer[l].owners + owner) * set;
    }
    __device__ void forward(uint32_t number);
    __device__ void backward(uint32_t number);
    __device__ void store_outputs(void);
};

/* Begins with the step's inputs in place; ends with its outputs in y. */
template <int N> __device__ void grid_block<N>::forward(uint32_t number)
{
    const struct grid_layout &at = net->layout;
    const int last = net->step.layers - 1;
    for (int l = 0; l <= last; l++) {
        const struct columns columns = columns_of(net, shared, l);
        grid_up<N>(columns, &shared[at.x], &shared[at.scratch]);
        __syncthreads();
        grid_finish<N>(columns, &shared[at.scratch], &shared[at.layer[l].bias],
                       net->layer[l].function,
                       &shared[at.layer[l].copied ? at.y : at.layer[l].kept],
                       at.layer[l].copied ? NULL : up(l, number), number);
        if (l < last)
            grid_gather<N, true>(up(l, number), net->layer[l].out, number, &shared[at.x]);
        else if (!at.layer[l].copied)
            grid_gather<N, false>(up(l, number), net->layer[l].out, number, &shared[at.y]);
        __syncthreads();
    }
}

/* From the outputs in y, with the last layer's inputs still in place, down to the first layer. */
template <int N> __device__ void grid_block<N>::backward(uint32_t number)
{
    const struct grid_layout &at = net->layout;
    const int last = net->step.layers - 1;
    float *x = &shared[at.x], *delta = &shared[at.delta], *scratch = &shared[at.scratch];
    grid_loss_grad<N>(&net->step, columns_of(net, shared, last), net->layer[last].out,
                      net->layer[last].function, &shared[at.y], &shared[at.target], scratch, delta);
    __syncthreads();
    for (int l = last; l >= 0; l--) {
        const struct columns columns = columns_of(net, shared, l);
        const bool copied = at.layer[l].copied != 0;
        const bool sends = l > 0 && !copied && columns.count > 0;
        if (copied && l > 0) {
            grid_descend<N>(columns, columns_of(net, shared, l - 1), delta,
                            net->layer[l - 1].function, &shared[at.layer[l - 1].kept], scratch);
            __syncthreads();
        }
        grid_down<N>(columns, x, delta, rate, sends ? down(l, number, (int)blockIdx.x) : NULL,
                     net->layer[l].in, number);
        grid_bias(columns, delta, delta_floats(N), N, rate, &shared[at.layer[l].bias]);
        __syncthreads();
        if (l == 0)
            return;
        const struct columns below = columns_of(net, shared, l - 1);
        if (l > 1) {
            grid_gather<N, true>(up(l - 2, number), net->layer[l - 2].out, number, x);
        } else {
            for (int e = (int)threadIdx.x; e < intake.inputs; e += BLOCK_THREADS<N>)
                intake.put(shared, e, intake.read(rows, e));
            intake.fill(shared);
        }
        if (copied)
            for (int e = (int)threadIdx.x; e < below.count * delta_floats(N); e += BLOCK_THREADS<N>)
                delta[e] = scratch[e];
        else
            grid_collect<N>(below, down(l, number, 0), at.layer[l].owners, net->layer[l].in, number,
                            net->layer[l - 1].function, &shared[at.layer[l - 1].kept], scratch,
                            delta);
        __syncthreads();
    }
}

/* The first block hands the outputs out. */
template <int N> __device__ void grid_block<N>::store_outputs(void)
{
    const struct feed_view *view = net->step.y;
    const int out = net->layer[net->step.layers - 1].out;
    if (!view || !view->data || blockIdx.x > 0)
        return;
    for (int e = (int)threadIdx.x; e < net->step.batch * out; e += BLOCK_THREADS<N>) {
        const int n = e / out;
        view->data[(uint64_t)rows[n] * (unsigned)out + (unsigned)(e % out)] =
            __float_as_uint(shared[net->layout.y + e % out * N + n]);
        view->written[rows[n]] = 1;
    }
}

template <int N>
static __global__ void __launch_bounds__(BLOCK_THREADS<N>, 1)
    whole_grid(const __grid_constant__ struct grid_net net, int64_t steps)
{
    constexpr int AHEAD =
        N <= 4 ? 4 : 1; /* elements of the next step that a thread fetches early */
    extern __shared__ float4 shared_quads[];
    float *shared = (float *)shared_quads;
    const struct whole_step &step = net.step;
    const int last = step.layers - 1, thread = (int)threadIdx.x;
    const bool has_sample = thread < step.batch;
    const uint64_t samples = step.feed->samples, jump = (uint64_t)step.batch % samples;
    const int32_t updates = step.count ? *step.count : 0;
    uint64_t place = (step.feed->place + (uint64_t)thread) % samples;
    struct grid_block<N> block(&net, shared);
    struct ring loss = ring_of(step.loss), right = ring_of(step.right);
    uint32_t *rows = (uint32_t *)&shared[net.layout.rows]; /* of even and of odd steps */

    if (step.count)
        block.rate = whole_rate(&step, updates);
    grid_begin(&net, shared);
    if (has_sample) {
        rows[thread] = whole_row(step.feed, place);
        place = whole_move(place, jump, samples);
        rows[GRID_BATCH_MOST + thread] = whole_row(step.feed, place);
    }
    __syncthreads();
    for (int e = thread; e < block.intake.all; e += BLOCK_THREADS<N>)
        block.intake.put(shared, e, block.intake.read(rows, e));
    block.intake.fill(shared);
    __syncthreads();
    for (int64_t done = 0; done < steps; done++) {
        const uint32_t number = net.first + (uint32_t)done;
        const uint32_t *next_rows = &rows[(done + 1) % 2 * GRID_BATCH_MOST];
        float ahead[AHEAD];
        block.rows = &rows[done % 2 * GRID_BATCH_MOST];
        place = whole_move(place, jump, samples);
        const uint32_t row_after = has_sample ? whole_row(step.feed, place) : 0;
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (thread + k * BLOCK_THREADS<N> < block.intake.all)
                ahead[k] = block.intake.read(next_rows, thread + k * BLOCK_THREADS<N>);

        block.forward(number);
        block.store_outputs();
        if (step.loss_kind == OP_cross_entropy) {
            grid_softmax<N>(&shared[net.layout.y], net.layer[last].out, step.batch,
                            &shared[net.layout.scratch]);
            __syncthreads();
        }
        if (step.loss_kind != OP_COUNT && blockIdx.x == gridDim.x - 1 && thread < 32)
            grid_report<N>(&step, net.layer[last].out, &shared[net.layout.y],
                           &shared[net.layout.target], &shared[net.layout.scratch], &loss, &right);
        if (step.count) {
            if (!whole_rate_is_fixed(&step))
                block.rate = whole_rate(&step, updates + (int32_t)done);
            block.backward(number);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (thread + k * BLOCK_THREADS<N> < block.intake.all)
                block.intake.put(shared, thread + k * BLOCK_THREADS<N>, ahead[k]);
        for (int e = thread + AHEAD * BLOCK_THREADS<N>; e < block.intake.all; e += BLOCK_THREADS<N>)
            block.intake.put(shared, e, block.intake.read(next_rows, e));
        block.intake.fill(shared);
        if (has_sample)
            block.rows[thread] = row_after;
        __syncthreads();
    }
    if (step.count)
        grid_end(&net, shared);
    /* Every block has read the feed by now: it has taken part in an exchange. */
    if (blockIdx.x == 0 && thread == 0)
        whole_end(&step, steps);
}

static void *grid_kernel(int32_t samples)
{
    switch (samples) {
    case 1: return (void *)whole_grid<1>;
    case 2: return (void *)whole_grid<2>;
    case 3: return (void *)whole_grid<3>;
    case 4: return (void *)whole_grid<4>;
    case 6: return (void *)whole_grid<6>;
    case 8: return (void *)whole_grid<8>;
    case 10: return (void *)whole_grid<10>;
    case 12: return (void *)whole_grid<12>;
    default: return (void *)whole_grid<GRID_BATCH_MOST>;
    }
}

uint64_t grid_bytes(const struct grid_layout *layout)
{
    return (uint64_t)layout->weights_bytes + (uint64_t)layout->packets * sizeof(uint4);
}

void grid_prepare(struct whole *whole, const struct chain *chain, const struct whole_step *step,
                  const struct grid_layout *layout)
{
    struct grid_net *net = (struct grid_net *)whole->net;
    const int64_t packets = grid_packets(layout->samples);
    float *turned = (float *)whole->memory;
    uint4 *exchange = (uint4 *)(whole->memory + layout->weights_bytes);
    net->step = *step;
    net->layout = *layout;
    net->first = 1; /* no packet has come yet: all numbers are 0 */
    for (int32_t l = 0; l < chain->layers; l++) {
        const struct chain_layer *layer = &chain->layer[l];
        net->layer[l].in = layer->in;
        net->layer[l].out = layer->out;
        net->layer[l].function = layer->activation;
        net->layer[l].w = whole->weights[l];
        net->layer[l].b = whole->biases[l];
        net->layer[l].turned = turned;
        net->layer[l].up = exchange;
        net->layer[l].down = exchange + 2 * packets * layer->out;
        turned += 4 * (int64_t)quads_of(layer->in) * layer->out;
        exchange += 2 * packets * (layer->out + (int64_t)layer->in * layout->layer[l].owners);
    }
}

cudaError_t grid_launch(struct whole *whole, int64_t steps, cudaStream_t stream)
{
    struct grid_net *net = (struct grid_net *)whole->net;
    void *arguments[] = {net, &steps};
    void *kernel = grid_kernel(net->layout.samples);
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             (int)net->layout.shared_bytes);
    if (error == cudaSuccess)
        error = cudaLaunchCooperativeKernel(kernel, dim3((unsigned)net->layout.blocks),
                                            dim3(GRID_THREADS_FOR((unsigned)net->layout.samples)),
                                            arguments, (size_t)net->layout.shared_bytes, stream);
    net->first += (uint32_t)steps;
    return error;
}
