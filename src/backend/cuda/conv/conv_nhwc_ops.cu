/* conv_nhwc_ops.cu: the ops of the convolution family in tf32 and in 16 bits on Hopper, on images
 * that lie channels last (nhwc.h). What lies the other way is turned in the workspace (reorder.h);
 * weights always are, and rounded. Gradients of weights are multiplied in tf32, and so is what has
 * too few channels for vectors of 16 bits. */
#include "backend/cuda/conv/conv_nhwc.h"
#include "backend/cuda/conv/reorder.h"
#include "backend/cuda/plan/mixed_precision.h"

/* Pieces of sums, or what is turned, whichever the op needs; both where weights are weighed. */
static uint64_t workspace_last(const struct program *program, const struct op *op)
{
    const struct carry_form form = carry_form_of(program, op, true);
    return carry_bytes(program, op) +
           (form.task == CARRY_WEIGH ? conv_last_weigh_bytes(form.conv) : 0);
}

/* What is multiplied in, where this precision is asked for. */
static enum precision precision_in(enum precision asked, const struct carry_form &form)
{
    const int32_t source = form.task == CARRY_BACK ? form.conv.out : form.conv.in;
    return precision_is_narrow(asked) && form.task != CARRY_WEIGH && source % CELLS == 0
               ? asked
               : PRECISION_TF32;
}

/* [channel of the result][ky][kx][channel of the source] from [out][in][ky][kx] */
static void turn_weights(const struct carried &made, enum precision as, struct queue *queue)
{
    const struct conv &conv = made.conv;
    const int32_t all = conv.in * conv.taps;
    last_turn(queue,
              made.form.task == CARRY_BACK
                  ? turning{1, conv.out, all, all, conv.out, false, as}
                  : turning{conv.out, conv.in, conv.taps, conv.taps, made.form.conv.in, false, as},
              made.w, made.at_w);
}

static void run_last(const struct call *call, struct queue *queue, const struct conv_ending &ending,
                     bool ends)
{
    const struct carried made =
        carry(call, carry_form_of(call->program, call->op, true), false, true);
    const enum precision type =
        precision_in(call->narrow ? call->narrow->type : PRECISION_TF32, made.form);
    const bool back = made.form.task == CARRY_BACK;
    const bool apart = back ? made.x_apart : made.y_apart;
    const float *from = back ? made.at_y : made.at_x;
    carry_images_in(made, queue);
    turn_weights(made, type, queue);
    conv_last_gather(queue, made.form.conv, back, type, from, made.at_w,
                     back ? made.at_x : made.at_y, apart ? conv_ending{} : ending);
    if (apart)
        carry_out(made, queue, ending, ends);
}

/* conv and conv_t */
static void launch_conv_last(const struct call *call, struct queue *queue)
{
    struct conv_ending ending = {};
    ending.bias = call_reals(call, 2);
    run_last(call, queue, ending, call_has(call, 2));
}

static void launch_conv_fused_last(const struct call *call, struct queue *queue)
{
    run_last(call, queue, conv_ending_of(call), true);
}

static void launch_conv_dw_last(const struct call *call, struct queue *queue)
{
    const struct carried made =
        carry(call, carry_form_of(call->program, call->op, true), false, false);
    carry_images_in(made, queue);
    conv_last_weigh(queue, made.form.conv, made.conv.in, made.at_x, made.at_y, made.w,
                    call->op->attr.conv_dw.accumulate != 0, (float *)made.room);
}

#define ROW(kind, precision, launch)                                                               \
    {                                                                                              \
        OP_##kind, #kind "_" precision "_last_cuda", launch, workspace_last, NULL, 0, false        \
    }
#define ROWS(precision)                                                                            \
    {                                                                                              \
        ROW(conv, precision, launch_conv_last), ROW(conv_t, precision, launch_conv_last),          \
            ROW(conv_fused, precision, launch_conv_fused_last),                                    \
            ROW(conv_dw, precision, launch_conv_dw_last)                                           \
    }

static const struct kernel kernels[2][4] = {ROWS("tf32"), ROWS("16bit")};

/* Where tiles of 64 channels are mostly full, and channels of the result are vectors. */
const struct kernel *conv_last_kernel(enum precision precision, const struct program *program,
                                      const struct op *op)
{
    enum { LEAST = 32 };
    for (int32_t i = 0; i < 4; i++) {
        if (kernels[0][i].kind != op->kind)
            continue;
        const struct carry_form form = carry_form_of(program, op, true);
        const struct conv conv = conv_of(program, op);
        const bool fits = form.task == CARRY_BACK ? conv.in >= LEAST && conv.in % LAST_WIDE == 0
                                                  : conv.out >= LEAST;
        return form.last && fits ? &kernels[precision_is_narrow(precision_in(precision, form))][i]
                                 : NULL;
    }
    return NULL;
}

bool conv_last_is_narrow(const struct kernel *kernel)
{
    return kernel >= kernels[1] && kernel < kernels[2];
}

bool conv_last_turns(const struct kernel *kernel)
{
    return kernel->workspace_bytes == workspace_last;
}
