/* cudnn.cu: convolution through cuDNN. In tf32 it works on images that lie channels last (last.h);
 * what lies the other way is turned in the workspace, and so are weights, whose channels are filled
 * up to a multiple of four. In fp32, and where there are groups or an odd number of results, images
 * are taken as they lie everywhere in prony. What follows a convolution in a fused op is one pass
 * of ours. fp32 never runs on tensor cores.
 *
 * Pads that are not the same on both sides stay with our own kernels. */
#include "backend/cuda/activation.h"
#include "backend/cuda/channel.h"
#include "backend/cuda/cudnn.h"

extern "C" {
#include "base/memory.h"
}

#if __has_include(<cudnn.h>)
#include "backend/cuda/cudnn_plan.h"

#include <dlfcn.h>

static void *library_open(void)
{
    static const char *const names[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
    for (const char *name : names) {
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

enum status cudnn_probe(void)
{
    void *library = library_open();
    if (!library)
        FAIL(STATUS_UNSUPPORTED,
             "cuDNN (libcudnn.so.9) is not installed: install NVIDIA's cuDNN 9");
    dlclose(library);
    return STATUS_OK;
}

static bool library_read(struct cudnn *cudnn)
{
#define DO(name)                                                                                   \
    cudnn->name = (decltype(&cudnn##name))dlsym(cudnn->library, "cudnn" #name);                    \
    if (!cudnn->name)                                                                              \
        return false;
    CUDNN_FUNCTIONS(DO)
#undef DO
    return cudnn->Create(&cudnn->handle) == CUDNN_STATUS_SUCCESS;
}

enum status cudnn_open(bool tf32, struct cudnn **out)
{
    TRY(cudnn_probe());
    struct cudnn *cudnn = (struct cudnn *)mem_alloc(sizeof *cudnn);
    NEED(cudnn);
    cudnn->library = library_open();
    cudnn->tf32 = tf32;
    if (!library_read(cudnn)) {
        dlclose(cudnn->library);
        mem_free(cudnn);
        FAIL(STATUS_UNSUPPORTED, "cuDNN (libcudnn.so.9) is there but does not start");
    }
    *out = cudnn;
    return STATUS_OK;
}

void cudnn_close(struct cudnn *cudnn)
{
    if (!cudnn)
        return;
    cudnn_forget(cudnn);
    cudnn->Destroy(cudnn->handle);
    dlclose(cudnn->library);
    mem_free(cudnn);
}

static struct cudnn_form form_of(const struct cudnn *cudnn, const struct program *program,
                                 const struct op *op)
{
    struct cudnn_form form = {};
    form.conv = conv_of(program, op);
    form.task = op->kind == OP_conv_t    ? CUDNN_BACK
                : op->kind == OP_conv_dw ? CUDNN_WEIGH
                                         : CUDNN_AHEAD;
    form.last = cudnn->tf32 && form.conv.groups == 1 && form.conv.out % LAST_WIDE == 0;
    if (form.last)
        form.conv.in = form.conv.inner = (form.conv.in + LAST_WIDE - 1) / LAST_WIDE * LAST_WIDE;
    return form;
}

static int64_t count_x(const struct conv &conv)
{
    return (int64_t)conv.samples * conv.in * conv.down.x * conv.across.x;
}

static int64_t count_w(const struct conv &conv)
{
    return (int64_t)conv.out * conv.inner * conv.taps;
}

static int64_t count_y(const struct conv &conv)
{
    return (int64_t)conv.samples * conv.out * conv.down.y * conv.across.y;
}

static uint64_t padded_bytes(int64_t count)
{
    return ((uint64_t)count * sizeof(float) + 255) / 256 * 256;
}

/* All that may have to be turned, and what cuDNN may take. */
static uint64_t workspace_cudnn(const struct program *program, const struct op *op)
{
    struct conv conv = conv_of(program, op);
    conv.in += LAST_WIDE - 1;
    conv.inner += LAST_WIDE - 1;
    return padded_bytes(count_x(conv)) + padded_bytes(count_w(conv)) + padded_bytes(count_y(conv)) +
           cudnn_most_bytes();
}

/* The ending of a fused convolution: from its sums, which may lie where the result does, or the
 * other way. What is added may lie where the result does. */
static __global__ void finish_each(int64_t count, struct image from, struct image to,
                                   struct conv_ending ending, const float *sums, float *y)
{
    FOR_EACH(index, count)
    {
        const struct pixel at = pixel_of<1>(to, index);
        const int32_t channel = (int32_t)at.channel;
        struct conv_channel_end end;
        end.take(ending, channel);
        const float value =
            end.of(sums[from.at(at.sample, channel, (int32_t)at.row, (int32_t)at.column)]);
        y[index] =
            activation_value(ending.activation, ending.add ? value + ending.add[index] : value);
    }
}

/* … both channels last */
static __global__ void __launch_bounds__(THREADS)
    finish_lines(struct channels channels, struct conv_ending ending, const float *sums, float *y)
{
    const struct channel_lines at(channels, true);
    struct conv_channel_end end[LAST_WIDE];
    if (at.channel >= channels.channels)
        return;
#pragma unroll
    for (int i = 0; i < LAST_WIDE; i++)
        end[i].take(ending, (int32_t)at.channel + i);
    at.each([&](int64_t index) {
        typedef vector<LAST_WIDE> four;
        four value = *(const four *)(sums + index);
        const four added = ending.add ? *(const four *)(ending.add + index) : four{};
#pragma unroll
        for (int i = 0; i < LAST_WIDE; i++) {
            const float sum = end[i].of(value.at[i]);
            value.at[i] = activation_value(ending.activation, ending.add ? sum + added.at[i] : sum);
        }
        *(four *)(y + index) = value;
    });
}

/* A call as it is carried out: where cuDNN finds x, w and y, and what is behind them. */
struct carried {
    const struct call *call;
    struct cudnn_form form;
    struct conv conv;               /* its channels not filled up */
    float *x, *w, *y;               /* the op's operands */
    bool x_apart, w_apart, y_apart; /* cuDNN's are others, in the workspace */
    float *at_x, *at_w, *at_y;
    struct image image_x, image_y; /* the operands */
    void *room;
};

static struct carried carry(const struct call *call, const struct cudnn *cudnn, int32_t x,
                            int32_t w, int32_t y, bool sums_apart)
{
    struct carried made = {};
    const enum cudnn_task task = (made.form = form_of(cudnn, call->program, call->op)).task;
    const struct conv &conv = made.form.conv;
    char *room = (char *)call->workspace;
    const auto place = [&](float *operand, bool apart, int64_t count) {
        float *at = apart ? (float *)room : operand;
        room += apart ? padded_bytes(count) : 0;
        return at;
    };
    made.call = call;
    made.conv = conv_of(call->program, call->op);
    made.x = call_reals(call, x);
    made.w = call_reals(call, w);
    made.y = call_reals(call, y);
    made.image_x = image_of(call, x);
    made.image_y = image_of(call, y);
    made.x_apart = made.image_x.last != (made.form.last != 0);
    made.y_apart = sums_apart || made.image_y.last != (made.form.last != 0);
    made.w_apart = (made.form.last && (conv.taps > 1 || conv.in != made.conv.in)) ||
                   (task == CUDNN_WEIGH && call->op->attr.conv_dw.accumulate);
    made.at_x = place(made.x, made.x_apart, count_x(conv));
    made.at_w = place(made.w, made.w_apart, count_w(conv));
    made.at_y = place(made.y, made.y_apart, count_y(conv));
    made.room = room;
    return made;
}

/* Turns what is read. */
static void carry_in(const struct carried &made, struct queue *queue)
{
    const enum cudnn_task task = made.form.task;
    const struct conv &conv = made.conv;
    if (task != CUDNN_BACK && made.x_apart)
        last_from_first(queue, conv.samples, made.image_x, made.form.conv.in, made.x, made.at_x);
    if (task != CUDNN_AHEAD && made.y_apart)
        last_from_first(queue, conv.samples, made.image_y, conv.out, made.y, made.at_y);
    if (task != CUDNN_WEIGH && made.w_apart)
        last_turn(queue, turning{conv.out, conv.in, conv.taps, conv.taps, made.form.conv.in, false},
                  made.w, made.at_w);
}

/* … and what is written. */
static void carry_out(const struct carried &made, struct queue *queue,
                      const struct conv_ending &ending, bool ends)
{
    const enum cudnn_task task = made.form.task;
    const struct conv &conv = made.conv;
    const struct image &image = task == CUDNN_BACK ? made.image_x : made.image_y;
    const float *sums = task == CUDNN_BACK ? made.at_x : made.at_y;
    float *to = task == CUDNN_BACK ? made.x : made.y;
    struct image from = image;
    from.last = made.form.last != 0;
    if (task == CUDNN_WEIGH) {
        const bool accumulate = made.call->op->attr.conv_dw.accumulate != 0;
        const int32_t all = (int32_t)count_w(conv);
        const struct turning turned = {conv.out,          conv.taps, conv.in,
                                       made.form.conv.in, conv.taps, accumulate};
        if (made.w_apart)
            last_turn(queue, made.form.last ? turned : turning{1, 1, all, all, 1, accumulate},
                      made.at_w, made.w);
        return;
    }
    const bool filled = task == CUDNN_BACK && conv.in != made.form.conv.in;
    const bool apart = task == CUDNN_BACK ? made.x_apart : made.y_apart;
    if (apart && (!ends || filled)) {
        last_to_first(queue, conv.samples, image, task == CUDNN_BACK ? made.form.conv.in : conv.out,
                      sums, to);
        sums = to;
        from.last = false;
    }
    if (!ends)
        return;
    const int32_t result = made.call->op->inputs;
    const struct channels channels =
        channels_of_shape(&call_tensor(made.call, result)->shape, image.last);
    const int64_t count = call_count(made.call, result);
    if (from.last && image.last)
        enqueue(queue, finish_lines, lines_grid(channels), dim3(THREADS), channels, ending, sums,
                to);
    else
        enqueue(queue, finish_each, dim3(blocks_striding(count)), dim3(THREADS), count, from, image,
                ending, sums, to);
}

static void run_cudnn(const struct carried &made, struct queue *queue,
                      const struct conv_ending &ending, bool ends)
{
    const struct cudnn *cudnn = queue->cudnn;
    carry_in(made, queue);
    queue->launches++;
    if (!queue->counting && queue->error == cudaSuccess) {
        const struct cudnn_choice *choice = cudnn_known(cudnn, &made.form);
        if (!choice || !cudnn_execute(cudnn, choice, made.at_x, made.at_w, made.at_y, made.room,
                                      queue->stream))
            queue->error = cudaErrorNotSupported;
    }
    carry_out(made, queue, ending, ends);
}

static void launch_conv_cudnn(const struct call *call, struct queue *queue)
{
    struct conv_ending ending = {};
    ending.bias = call_reals(call, 2);
    run_cudnn(carry(call, queue->cudnn, 0, 1, 3, false), queue, ending, call_has(call, 2));
}

static void launch_conv_t_cudnn(const struct call *call, struct queue *queue)
{
    struct conv_ending ending = {};
    ending.bias = call_reals(call, 2);
    run_cudnn(carry(call, queue->cudnn, 3, 1, 0, false), queue, ending, call_has(call, 2));
}

static void launch_conv_fused_cudnn(const struct call *call, struct queue *queue)
{
    const struct conv_ending ending = conv_ending_of(call);
    const bool apart = call_has(call, 7) && ending.add == call_reals(call, 8);
    run_cudnn(carry(call, queue->cudnn, 0, 1, 8, apart), queue, ending, true);
}

static void launch_conv_dw_cudnn(const struct call *call, struct queue *queue)
{
    run_cudnn(carry(call, queue->cudnn, 0, 2, 1, false), queue, conv_ending{}, false);
}

#define ROW(kind, precision)                                                                       \
    {                                                                                              \
        OP_##kind, #kind "_" precision "_cudnn", launch_##kind##_cudnn, workspace_cudnn, NULL, 0,  \
            false                                                                                  \
    }

static const struct kernel kernels[2][4] = {
    {ROW(conv, "f32"), ROW(conv_t, "f32"), ROW(conv_fused, "f32"), ROW(conv_dw, "f32")},
    {ROW(conv, "tf32"), ROW(conv_t, "tf32"), ROW(conv_fused, "tf32"), ROW(conv_dw, "tf32")}};

/* Are there as many places as cuDNN works out from pads on both sides? */
static bool is_even(const struct conv_axis &axis)
{
    const int32_t room = axis.x + 2 * axis.pad - (axis.kernel - 1) * axis.dilation - 1;
    return room >= 0 && room / axis.stride + 1 == axis.y;
}

const struct kernel *cudnn_kernel(struct cudnn *cudnn, const struct program *program,
                                  const struct op *op, bool dry)
{
    for (const struct kernel &kernel : kernels[cudnn && cudnn->tf32]) {
        if (!cudnn || kernel.kind != op->kind)
            continue;
        const struct cudnn_form form = form_of(cudnn, program, op);
        if (!is_even(form.conv.down) || !is_even(form.conv.across))
            return NULL;
        const struct cudnn_choice *choice = dry ? NULL : cudnn_choose(cudnn, &form);
        return dry || (choice && choice->plan) ? &kernel : NULL;
    }
    return NULL;
}

bool cudnn_turns(const struct cudnn *cudnn, const struct kernel *kernel,
                 const struct program *program, const struct op *op)
{
    return kernel->workspace_bytes == workspace_cudnn && form_of(cudnn, program, op).last;
}

#else

enum status cudnn_probe(void)
{
    FAIL(STATUS_UNSUPPORTED, "this build has no cuDNN: cudnn.h was not found when it was made");
}

enum status cudnn_open(bool, struct cudnn **)
{
    return cudnn_probe();
}

void cudnn_close(struct cudnn *)
{
}

const struct kernel *cudnn_kernel(struct cudnn *, const struct program *, const struct op *, bool)
{
    return NULL;
}

bool cudnn_turns(const struct cudnn *, const struct kernel *, const struct program *,
                 const struct op *)
{
    return false;
}

#endif
