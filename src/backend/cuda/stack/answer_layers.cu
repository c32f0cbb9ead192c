/* answer_layers.cu: calls of a stack of wide layers at a small batch, one kernel a layer, straight
 * from the parameters where they lie.
 *
 * A block has up to 128 neighbouring outputs and a slice of the inputs, so that each row of it is
 * half a kilobyte in a piece; its warps share the inputs. What the slices of a layer find is added
 * up by whoever needs it as an input of the next. Each thread keeps ROWS loads of weights in
 * flight, and has the first of them on their way before the layer below is done: kernels are
 * launched so that the next one begins as soon as all blocks of the last are running, and waits for
 * its results only when it needs them (programmatic dependent launch).
 *
 * The first kernel of a call only fetches the question, by one block: the bus answers one
 * multiprocessor after the other, a microsecond each. It waits for all that was asked of the GPU
 * before, and lets the next one begin only then: nobody reads weights that an update is still
 * writing.
 *
 * Bound: each weight is read once, from device memory. */
#include "backend/cuda/stack/answer_calls.h"

enum {
    LAYERS_SAMPLES_MOST = 4, /* of more the grid makes a step sooner */
    LAYER_THREADS = 256,
    LAYER_WARPS = LAYER_THREADS / 32,
    LAYER_BLOCKS = TARGET_MULTIPROCESSORS, /* about so many, as far as there is work */
    FIRST_THREADS = 1024,
    FIRST_IN_MOST = 8,
    FIRST_AT_ONCE = 2, /* outputs of a thread whose weights come at once */
    LAYER_SLICE = 32,  /* inputs that are worth a block */
    SLICES_MOST = 16,
    LAST_THREADS = 1024,
    KEPT_BYTES = 34 << 20, /* of weights that L2 keeps */
    LAST_SUMS = 4,         /* outputs of all samples of a last layer that one block ends alone */
};

/* Where a layer's inputs come from and what it is made of. */
struct layer_call {
    struct answer_layer layer, below; /* below: of the last one the bias and the function */
    int32_t batch;
    int32_t lanes;            /* that stand side by side for outputs; the others for inputs */
    int32_t slices;           /* of the inputs … */
    int32_t below_slices;     /* … and of those of the layer below */
    bool last;                /* of the call */
    bool stays;               /* in L2 */
    const uint64_t *question; /* the last layer: whose number is its answer's */
    const float *x;           /* [slice below][in][N] */
    uint64_t *answer;         /* the last layer: its outputs */
    float *y;                 /* else: [slice][out][N] */
};

/* Loads of a thread; more samples need the registers for sums. */
static constexpr __host__ __device__ int rows_in_flight(int samples)
{
    return samples == 1 ? 22 : 12;
}

/* Beside each other in memory: outputs. Four at once where all rows of weights are aligned. */
template <int VECTOR> struct some_weights;
template <> struct some_weights<1> {
    float w[1];
    __device__ void load(const float *from, bool there, uint64_t)
    {
        w[0] = there ? __ldg(from) : 0.0f;
    }
};
template <> struct some_weights<4> {
    float w[4];
    __device__ void load(const float *from, bool there, uint64_t policy)
    {
        asm volatile("{ .reg .pred there;\n\tsetp.ne.s32 there, %5, 0;\n\t"
                     "mov.f32 %0, 0f00000000;\n\tmov.f32 %1, 0f00000000;\n\t"
                     "mov.f32 %2, 0f00000000;\n\tmov.f32 %3, 0f00000000;\n\t"
                     "@there ld.global.nc.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %6; }"
                     : "=&f"(w[0]), "=&f"(w[1]), "=&f"(w[2]), "=&f"(w[3])
                     : "l"(from), "r"((int)there), "l"(policy));
    }
};

/* What becomes of weights in L2, which has not room for all: those of some layers stay there from
 * call to call, the others leave first. */
static __device__ uint64_t policy_of(bool stays)
{
    uint64_t last, first;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
    return stays ? last : first;
}

/* An input of the layer, of a few samples side by side: what the slices below found, added up in
 * order once all of it has come. Written while this kernel runs: L2. */
template <int N, int SOME>
static __device__ void add_slices(const struct layer_call &call, int i, int n, float (&y)[SOME])
{
    const float *from = &call.x[(int64_t)i * N + n];
    const int64_t apart = (int64_t)call.layer.in * N;
    float part[SLICES_MOST][SOME];
#pragma unroll
    for (int k = 0; k < SLICES_MOST; k++)
        if constexpr (SOME == 4)
            *(float4 *)part[k] =
                k < call.below_slices ? __ldcg((const float4 *)(from + k * apart)) : float4{};
        else
            part[k][0] = k < call.below_slices ? __ldcg(from + k * apart) : 0.0f;
#pragma unroll
    for (int j = 0; j < SOME; j++) {
        y[j] = call.below.b ? __ldg(&call.below.b[i]) : 0.0f;
#pragma unroll
        for (int k = 0; k < SLICES_MOST; k++)
            y[j] += part[k][j];
        y[j] = stack_activation(call.below.function, y[j]);
    }
}

/* The question as outputs of a layer below. */
static __global__ void answer_question(const uint64_t *question, int batch, int in, int samples,
                                       float *x)
{
    await_last();
    allow_next();
    for (int e = (int)threadIdx.x; e < in * samples; e += (int)blockDim.x) {
        const int n = e % samples, i = e / samples;
        x[e] = n < batch ? __uint_as_float((uint32_t)note_look(&question[n * in + i])) : 0.0f;
    }
}

/* Or, where the first layer has few inputs, its outputs, [out][samples]: soon done by one block. */
static __global__ void __launch_bounds__(FIRST_THREADS)
    answer_first(const uint64_t *question, int batch, int samples,
                 const __grid_constant__ struct answer_layer layer, float *y)
{
    __shared__ float x[LAYERS_SAMPLES_MOST * FIRST_IN_MOST];
    const int thread = (int)threadIdx.x, in = layer.in, out = layer.out;
    await_last();
    allow_next();
    const uint64_t note = thread < batch * in ? note_look(question + thread) : 0;
    for (int o0 = thread; o0 - thread < out; o0 += FIRST_AT_ONCE * FIRST_THREADS) {
        float w[FIRST_AT_ONCE][FIRST_IN_MOST], b[FIRST_AT_ONCE];
#pragma unroll
        for (int k = 0; k < FIRST_AT_ONCE; k++) {
            const int o = o0 + k * FIRST_THREADS;
            b[k] = layer.b && o < out ? __ldg(&layer.b[o]) : 0.0f;
#pragma unroll
            for (int i = 0; i < FIRST_IN_MOST; i++)
                w[k][i] = i < in && o < out ? __ldg(&layer.w[(int64_t)i * out + o]) : 0.0f;
        }
        if (o0 == thread) { /* the weights are on their way */
            if (thread < batch * in)
                x[thread] = __uint_as_float((uint32_t)note);
            __syncthreads();
        }
#pragma unroll
        for (int k = 0; k < FIRST_AT_ONCE; k++) {
            const int o = o0 + k * FIRST_THREADS;
            for (int n = 0; o < out && n < samples; n++) {
                float sum = b[k];
#pragma unroll
                for (int i = 0; i < FIRST_IN_MOST; i++)
                    sum = n < batch && i < in ? fmaf(x[n * in + i], w[k][i], sum) : sum;
                y[o * samples + n] = stack_activation(layer.function, sum);
            }
        }
    }
}

/* The last layer where it has few outputs: one block of as many threads as there can be, since all
 * they do is to wait for what the slices below have found. */
template <int N>
static __global__ void __launch_bounds__(LAST_THREADS)
    answer_last(const __grid_constant__ struct layer_call call)
{
    __shared__ float parts[LAST_SUMS][LAST_THREADS / 32];
    const int thread = (int)threadIdx.x, in = call.layer.in, out = call.layer.out;
    float sum[LAST_SUMS] = {};
    for (int e = 32 * thread; e < in * out; e += 32 * LAST_THREADS)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(call.layer.w + e));
    /* Its number, by one warp: the bus answers one after the other. The host has asked before it
     * launched. */
    const uint64_t note = thread < LAST_SUMS ? note_look(call.question) : 0;
    await_last();
#pragma unroll 2
    for (int i = thread; i < in; i += LAST_THREADS)
#pragma unroll
        for (int n = 0; n < N; n++) {
            float x[1];
            add_slices<N>(call, i, n, x);
#pragma unroll
            for (int o = 0; o < LAST_SUMS / N; o++)
                if (o < out)
                    sum[o * N + n] = fmaf(x[0], __ldg(&call.layer.w[i * out + o]), sum[o * N + n]);
        }
#pragma unroll
    for (int k = 0; k < LAST_SUMS; k++) {
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            sum[k] += __shfl_xor_sync(~0u, sum[k], apart);
        if (thread % 32 == 0)
            parts[k][thread / 32] = sum[k];
    }
    __syncthreads();
    const int o = thread / N, n = thread % N;
    if (o >= out || n >= call.batch)
        return;
    float y = call.layer.b ? __ldg(&call.layer.b[o]) : 0.0f;
    for (int k = 0; k < LAST_THREADS / 32; k++)
        y += parts[thread][k];
    note_put(&call.answer[n * out + o], stack_activation(call.layer.function, y),
             note_number(note));
}

/* x of this slice's inputs and all samples, [rows + 1][N], zeros for samples that the batch does
 * not have and in the end. */
template <int N>
static __device__ void take_inputs(const struct layer_call &call, int begin, int rows, float *x)
{
    constexpr int SOME = N % 4 == 0 ? 4 : 1;
    if (threadIdx.x < N)
        x[rows * N + (int)threadIdx.x] = 0.0f;
    for (int e = SOME * (int)threadIdx.x; e < rows * N; e += SOME * LAYER_THREADS) {
        const int n = e % N, i = begin + e / N;
        float some[SOME];
        add_slices<N>(call, i, n, some);
#pragma unroll
        for (int j = 0; j < SOME; j++)
            x[e + j] = some[j];
    }
}

/* One input of all samples. */
template <int N> static __device__ void read_input(const float *x, float (&into)[N])
{
    if constexpr (N % 4 == 0) {
#pragma unroll
        for (int n = 0; n < N; n += 4)
            *(float4 *)&into[n] = *(const float4 *)&x[n];
    } else {
#pragma unroll
        for (int n = 0; n < N; n++)
            into[n] = x[n];
    }
}

/* Sums over the lanes of a warp that have the same outputs, then over warps. */
template <int N, int VECTOR>
static __device__ void give_outputs(const struct layer_call &call, uint32_t number,
                                    float (&sum)[VECTOR][N], float *parts)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, out = call.layer.out;
    const int wide = call.lanes * VECTOR * N, first = (int)blockIdx.x * call.lanes * VECTOR;
    for (int apart = call.lanes; apart < 32; apart *= 2)
#pragma unroll
        for (int v = 0; v < VECTOR; v++)
#pragma unroll
            for (int n = 0; n < N; n++)
                sum[v][n] += __shfl_xor_sync(~0u, sum[v][n], apart);
    if (lane < call.lanes)
#pragma unroll
        for (int v = 0; v < VECTOR; v++)
#pragma unroll
            for (int n = 0; n < N; n++)
                parts[warp * wide + (lane * VECTOR + v) * N + n] = sum[v][n];
    __syncthreads();
    for (int e = (int)threadIdx.x; e < wide; e += LAYER_THREADS) {
        const int n = e % N, o = first + e / N;
        float y = 0.0f;
        if (o >= out)
            break;
#pragma unroll
        for (int k = 0; k < LAYER_WARPS; k++)
            y += parts[k * wide + e];
        if (!call.last) {
            call.y[((int64_t)blockIdx.y * out + o) * N + n] = y;
        } else if (n < call.batch) {
            y += call.layer.b ? __ldg(&call.layer.b[o]) : 0.0f;
            note_put(&call.answer[n * out + o], stack_activation(call.layer.function, y), number);
        }
    }
}

/* What the first thread has. */
static __device__ uint32_t first_of_block(uint32_t number)
{
    __shared__ uint32_t of_first;
    if (threadIdx.x == 0)
        of_first = number;
    __syncthreads();
    return of_first;
}

template <int N, int VECTOR>
static __global__ void __launch_bounds__(LAYER_THREADS, 2)
    answer_layer_kernel(const __grid_constant__ struct layer_call call)
{
    constexpr int ROWS = rows_in_flight(N);
    extern __shared__ float4 layer_shared[];
    const int out = call.layer.out, per = (call.layer.in + call.slices - 1) / call.slices;
    const int begin = (int)blockIdx.y * per;
    const int rows = begin + per < call.layer.in ? per : call.layer.in - begin;
    const int at_once = LAYER_THREADS / call.lanes; /* inputs */
    const int o = ((int)blockIdx.x * call.lanes + (int)threadIdx.x % call.lanes) * VECTOR;
    const int64_t apart = (int64_t)at_once * out;
    int i = (int)threadIdx.x / call.lanes;
    const float *from = call.layer.w + (int64_t)(begin + i) * out + o;
    float *x = (float *)layer_shared, *parts = x + (per + 1) * N;
    struct some_weights<VECTOR> w[ROWS];
    float sum[VECTOR][N] = {};
    const uint64_t policy = policy_of(call.stays);
    uint64_t note = 0;

    allow_next();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        w[r].load(from + r * apart, o < out && i + r * at_once < rows, policy);
    if (call.last && threadIdx.x < 32) /* its number; the bus answers one warp after the other */
        note = note_look(call.question);
    await_last();
    take_inputs<N>(call, begin, rows, x);
    __syncthreads();
    for (; i < rows; i += ROWS * at_once) {
        from += ROWS * apart;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int row = i + r * at_once;
            float value[N];
            read_input<N>(&x[(row < rows ? row : rows) * N], value);
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int v = 0; v < VECTOR; v++)
                    sum[v][n] = fmaf(value[n], w[r].w[v], sum[v][n]);
            w[r].load(from + r * apart, o < out && row + ROWS * at_once < rows, policy);
        }
    }
    give_outputs<N, VECTOR>(call, call.last ? first_of_block(note_number(note)) : 0, sum, parts);
}

/* Samples that the kernel is compiled for. */
static int32_t layers_samples(int32_t batch)
{
    return batch <= 1 ? 1 : (int32_t)LAYERS_SAMPLES_MOST;
}

static void *layer_kernel(int32_t samples, bool quads)
{
    return samples == 1
               ? quads ? (void *)answer_layer_kernel<1, 4> : (void *)answer_layer_kernel<1, 1>
           : quads ? (void *)answer_layer_kernel<LAYERS_SAMPLES_MOST, 4>
                   : (void *)answer_layer_kernel<LAYERS_SAMPLES_MOST, 1>;
}

/* Rows of weights begin at multiples of 16 bytes. */
static bool in_quads(const struct answer_layer *layer)
{
    return layer->out % 4 == 0 && (uintptr_t)layer->w % 16 == 0;
}

/* How a layer is cut: into tiles of outputs and slices of inputs. */
struct layer_cut {
    int32_t vector, lanes, tiles, slices, rows;
    int64_t shared_bytes;
};

static struct layer_cut cut_of(const struct answer_net *net, int32_t l)
{
    const struct answer_layer *layer = &net->layer[l];
    const int32_t samples = layers_samples(net->batch);
    struct layer_cut cut = {};
    cut.vector = in_quads(layer) ? 4 : 1;
    const int32_t wanted = (layer->out + cut.vector - 1) / cut.vector;
    for (cut.lanes = 1; cut.lanes < wanted && cut.lanes < 32;)
        cut.lanes *= 2;
    cut.tiles = (wanted + cut.lanes - 1) / cut.lanes;
    /* so that all blocks have some, and a single sample's weights are all on their way at once */
    const int32_t at_once = rows_in_flight(1) * LAYER_THREADS / cut.lanes;
    cut.slices = (layer->in + at_once - 1) / at_once;
    if (cut.slices < LAYER_BLOCKS / cut.tiles)
        cut.slices = LAYER_BLOCKS / cut.tiles;
    if (cut.slices > SLICES_MOST)
        cut.slices = SLICES_MOST;
    if (cut.slices > layer->in / LAYER_SLICE)
        cut.slices = layer->in / LAYER_SLICE;
    if (cut.slices < 1 || l == net->layers - 1)
        cut.slices = 1; /* the last one ends the call */
    cut.rows = (layer->in + cut.slices - 1) / cut.slices;
    cut.slices = (layer->in + cut.rows - 1) / cut.rows;
    cut.shared_bytes = 4 * (int64_t)samples * (cut.rows + 1 + LAYER_WARPS * cut.lanes * cut.vector);
    return cut;
}

static uint64_t bytes(const struct answer_net *net)
{
    uint64_t floats = (uint64_t)net->layer[0].in;
    for (int32_t l = 0; l < net->layers - 1; l++)
        floats += (uint64_t)net->layer[l].out * (uint64_t)cut_of(net, l).slices;
    return floats * (uint64_t)layers_samples(net->batch) * sizeof(float);
}

bool answer_layers_take(const struct answer_net *net, int64_t shared_bytes)
{
    for (int32_t l = 0; l < net->layers; l++)
        if (cut_of(net, l).shared_bytes > shared_bytes)
            return false;
    return net->batch <= LAYERS_SAMPLES_MOST;
}

static cudaError_t part_launch(void *kernel, void **arguments, dim3 grid, unsigned threads,
                               int64_t shared_bytes, bool overlap, cudaStream_t stream)
{
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t launch = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    launch.gridDim = grid;
    launch.blockDim = dim3(threads);
    launch.dynamicSmemBytes = (size_t)shared_bytes;
    launch.stream = stream;
    launch.attrs = &attribute;
    launch.numAttrs = overlap ? 1 : 0;
    return cudaLaunchKernelExC(&launch, kernel, arguments);
}

static cudaError_t layer_launch(struct layer_call *call, const struct layer_cut *cut,
                                int32_t samples, bool overlap, cudaStream_t stream)
{
    if (call->last && call->layer.out * samples <= LAST_SUMS) {
        void *arguments[] = {call};
        return part_launch(samples == 1 ? (void *)answer_last<1> : (void *)answer_last<4>,
                           arguments, dim3(1), LAST_THREADS, 0, overlap, stream);
    }
    void *kernel = layer_kernel(samples, cut->vector == 4), *arguments[] = {call};
    cudaError_t error = cudaSuccess;
    if (cut->shared_bytes > 48 << 10)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)cut->shared_bytes);
    return error == cudaSuccess
               ? part_launch(kernel, arguments, dim3((unsigned)cut->tiles, (unsigned)cut->slices),
                             LAYER_THREADS, cut->shared_bytes, overlap, stream)
               : error;
}

/* May the kernel that reads the question compute the first layer, too? */
static bool question_takes_first(const struct answer_net *net)
{
    return net->layer[0].in <= FIRST_IN_MOST && net->layers > 1;
}

static int32_t launches(const struct answer_net *net, int32_t layer)
{
    return layer == 0 && !question_takes_first(net) ? 2 : 1;
}

static cudaError_t launch(struct answer *answer, uint32_t slot, bool stays, cudaStream_t stream)
{
    const struct answer_net *net = &answer->net;
    const bool overlap = answer->gpu->major >= 9;
    float *between = answer->between;
    (void)stays; /* it cannot */
    int32_t samples = layers_samples(net->batch);
    int64_t kept = 0;
    struct layer_call call = {};
    call.batch = net->batch;
    call.question = net->mail.question(slot);
    call.answer = net->mail.answer(slot);
    call.slices = 1;
    call.layer.function = ACTIVATION_NONE;
    call.y = between;
    struct answer_layer first = net->layer[0];
    const int32_t done = question_takes_first(net) ? 1 : 0;
    void *all[] = {&call.question, &call.batch, &samples, &first, &call.y};
    void *inputs[] = {&call.question, &call.batch, &first.in, &samples, &call.y};
    cudaError_t error =
        part_launch(done ? (void *)answer_first : (void *)answer_question, done ? all : inputs,
                    dim3(1), FIRST_THREADS, 0, overlap, stream);
    between += (int64_t)(done ? first.out : first.in) * samples;
    for (int32_t l = done; l < net->layers && error == cudaSuccess; l++) {
        const struct layer_cut cut = cut_of(net, l);
        call.below = call.layer;
        call.layer = net->layer[l];
        call.lanes = cut.lanes;
        call.below_slices = call.slices;
        call.slices = cut.slices;
        call.last = l == net->layers - 1;
        kept += (int64_t)call.layer.in * call.layer.out * (int64_t)sizeof(float);
        call.stays = kept <= KEPT_BYTES;
        call.x = call.y;
        call.y = between;
        between += (int64_t)call.layer.out * cut.slices * samples;
        error = layer_launch(&call, &cut, samples, overlap, stream);
    }
    return error;
}

const struct answer_kernel calls_by_layers = {false, bytes, launch, launches};
