/* conv_nhwc_ops.cu: the ops of the convolution family in tf32 and in 16 bits on Hopper, on images
 * in NHWC order (nhwc.h). What lies the other way is transposed in the workspace (reorder.h);
 * weights always are, and rounded. Gradients of weights are multiplied in tf32, and so is what has
 * too few channels for vectors of 16 bits. */
#include "backend/cuda/conv/conv_nhwc.h"
#include "backend/cuda/conv/reorder.h"
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/plan/kernel_families.h"

/* Pieces of sums, or what is transposed, whichever the op needs; both where the op is a wgrad. */
uint64_t workspace_conv_nhwc(const struct program *program, const struct op *op)
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
void launch_conv_nhwc(const struct call *call, struct queue *queue)
{
    struct conv_ending ending = {};
    ending.bias = call_reals(call, AT_conv_b);
    run_nhwc(call, queue, ending, call_has(call, AT_conv_b));
}

void launch_conv_fused_nhwc(const struct call *call, struct queue *queue)
{
    run_nhwc(call, queue, conv_ending_of(call), true);
}

void launch_conv_dw_nhwc(const struct call *call, struct queue *queue)
{
    const struct reordered made =
        reorder_begin(call, conv_form_of(call->program, call->op, true), false, false);
    reorder_images_in(made, queue);
    conv_nhwc_wgrad(queue, made.form.conv, made.conv.in, made.at_x, made.at_y, made.w,
                    call->op->attr.conv_dw.accumulate != 0, (float *)made.room);
}

/* Where tiles of 64 channels are mostly full, and channels of the result are vectors. */
bool takes_conv_nhwc(const struct choice *choice)
{
    enum { LEAST = 32 };
    if (!choice->device->warpgroups)
        return false;
    const struct conv_form form = conv_form_of(choice->program, choice->op, true);
    const struct conv conv = conv_of(choice->program, choice->op);
    const bool fits = form.task == CONV_DGRAD ? conv.in >= LEAST && conv.in % NHWC_VECTOR == 0
                                              : conv.out >= LEAST;
    return form.nhwc && fits;
}

bool takes_conv_nhwc_16bit(const struct choice *choice)
{
    return takes_conv_nhwc(choice) &&
           precision_is_16bit(precision_in(choice->device->precision,
                                           conv_form_of(choice->program, choice->op, true)));
}
