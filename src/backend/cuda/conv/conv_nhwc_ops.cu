/* conv_nhwc_ops.cu: the ops of the convolution family in tf32 and in 16 bits on Hopper, on images
 * in NHWC order (nhwc.h). What lies the other way is transposed in the workspace (reorder.h);
 * weights always are, and rounded. Gradients of weights are multiplied in tf32, and so is what has
 * too few channels for vectors of 16 bits. */
#include "backend/cuda/conv/conv_nhwc.h"
#include "backend/cuda/conv/reorder.h"
#include "backend/cuda/plan/mixed_precision.h"

/* Pieces of sums, or what is transposed, whichever the op needs; both where the op is a wgrad. */
static uint64_t workspace_nhwc(const struct program *program, const struct op *op)
{
    const struct conv_form form = conv_form_of(program, op, true);
    return reorder_bytes(program, op) +
           (form.task == CONV_WGRAD ? conv_nhwc_wgrad_bytes(form.conv) : 0);
}

/* What is multiplied in, where this precision is asked for. */
static enum precision precision_in(enum precision asked, const struct conv_form &form)
{
    const int32_t source = form.task == CONV_DGRAD ? form.conv.out : form.conv.in;
    return precision_is_16bit(asked) && form.task != CONV_WGRAD && source % CELLS == 0
               ? asked
               : PRECISION_TF32;
}

/* [channel of the result][ky][kx][channel of the source] from [out][in][ky][kx] */
static void transpose_weights(const struct reordered &made, enum precision as, struct queue *queue)
{
    const struct conv &conv = made.conv;
    const int32_t all = conv.in * conv.taps;
    nhwc_transpose(
        queue,
        made.form.task == CONV_DGRAD
            ? transposition{1, conv.out, all, all, conv.out, false, as}
            : transposition{conv.out, conv.in, conv.taps, conv.taps, made.form.conv.in, false, as},
        made.w, made.at_w);
}

static void run_nhwc(const struct call *call, struct queue *queue, const struct conv_ending &ending,
                     bool ends)
{
    const struct reordered made =
        reorder_begin(call, conv_form_of(call->program, call->op, true), false, true);
    const enum precision type =
        precision_in(call->mixed ? call->mixed->type : PRECISION_TF32, made.form);
    const bool back = made.form.task == CONV_DGRAD;
    const bool apart = back ? made.x_apart : made.y_apart;
    const float *from = back ? made.at_y : made.at_x;
    reorder_images_in(made, queue);
    transpose_weights(made, type, queue);
    conv_nhwc_gemm(queue, made.form.conv, back, type, from, made.at_w, back ? made.at_x : made.at_y,
                   apart ? conv_ending{} : ending);
    if (apart)
        reorder_out(made, queue, ending, ends);
}

/* conv and conv_t */
static void launch_conv_nhwc(const struct call *call, struct queue *queue)
{
    struct conv_ending ending = {};
    ending.bias = call_reals(call, 2);
    run_nhwc(call, queue, ending, call_has(call, 2));
}

static void launch_conv_fused_nhwc(const struct call *call, struct queue *queue)
{
    run_nhwc(call, queue, conv_ending_of(call), true);
}

static void launch_conv_dw_nhwc(const struct call *call, struct queue *queue)
{
    const struct reordered made =
        reorder_begin(call, conv_form_of(call->program, call->op, true), false, false);
    reorder_images_in(made, queue);
    conv_nhwc_wgrad(queue, made.form.conv, made.conv.in, made.at_x, made.at_y, made.w,
                    call->op->attr.conv_dw.accumulate != 0, (float *)made.room);
}

#define ROW(kind, precision, launch)                                                               \
    {                                                                                              \
        OP_##kind, #kind "_" precision "_last_cuda", launch, workspace_nhwc, NULL, 0, false        \
    }
#define ROWS(precision)                                                                            \
    {                                                                                              \
        ROW(conv, precision, launch_conv_nhwc), ROW(conv_t, precision, launch_conv_nhwc),          \
            ROW(conv_fused, precision, launch_conv_fused_nhwc),                                    \
            ROW(conv_dw, precision, launch_conv_dw_nhwc)                                           \
    }

static const struct kernel kernels[2][4] = {ROWS("tf32"), ROWS("16bit")};

/* Where tiles of 64 channels are mostly full, and channels of the result are vectors. */
const struct kernel *conv_nhwc_kernel(enum precision precision, const struct program *program,
                                      const struct op *op)
{
    enum { LEAST = 32 };
    for (int32_t i = 0; i < 4; i++) {
        if (kernels[0][i].kind != op->kind)
            continue;
        const struct conv_form form = conv_form_of(program, op, true);
        const struct conv conv = conv_of(program, op);
        const bool fits = form.task == CONV_DGRAD ? conv.in >= LEAST && conv.in % NHWC_VECTOR == 0
                                                  : conv.out >= LEAST;
        return form.nhwc && fits ? &kernels[precision_is_16bit(precision_in(precision, form))][i]
                                 : NULL;
    }
    return NULL;
}

bool conv_nhwc_is_16bit(const struct kernel *kernel)
{
    return kernel >= kernels[1] && kernel < kernels[2];
}

bool conv_nhwc_reorders(const struct kernel *kernel)
{
    return kernel->workspace_bytes == workspace_nhwc;
}
