/* conv_last_ops.cu: the ops of the convolution family in tf32 on Hopper, on images that lie
 * channels last (last.h). What lies the other way is turned in the workspace (carry.h); weights
 * always are, and rounded to tf32. */
#include "backend/cuda/carry.h"
#include "backend/cuda/conv_last.h"

/* Pieces of sums, or what is turned, whichever the op needs; both where weights are weighed. */
static uint64_t workspace_last(const struct program *program, const struct op *op)
{
    const struct carry_form form = carry_form_of(program, op, true);
    return carry_bytes(program, op) +
           (form.task == CARRY_WEIGH ? conv_last_weigh_bytes(form.conv) : 0);
}

/* [channel of the result][ky][kx][channel of the source] from [out][in][ky][kx] */
static void turn_weights(const struct carried &made, struct queue *queue)
{
    const struct conv &conv = made.conv;
    const int32_t all = conv.in * conv.taps;
    last_turn(queue,
              made.form.task == CARRY_BACK ? turning{1, conv.out, all, all, conv.out, false, true}
                                           : turning{conv.out, conv.in, conv.taps, conv.taps,
                                                     made.form.conv.in, false, true},
              made.w, made.at_w);
}

static void run_last(const struct call *call, struct queue *queue, const struct conv_ending &ending,
                     bool ends)
{
    const struct carried made =
        carry(call, carry_form_of(call->program, call->op, true), false, true);
    const bool back = made.form.task == CARRY_BACK;
    const bool apart = back ? made.x_apart : made.y_apart;
    const float *from = back ? made.at_y : made.at_x;
    carry_images_in(made, queue);
    turn_weights(made, queue);
    conv_last_gather(queue, made.form.conv, back, from, made.at_w, back ? made.at_x : made.at_y,
                     apart ? conv_ending{} : ending);
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

#define ROW(kind, launch)                                                                          \
    {                                                                                              \
        OP_##kind, #kind "_tf32_last_cuda", launch, workspace_last, NULL, 0, false                 \
    }

/* Where tiles of 64 channels are mostly full, and channels of the result are vectors. */
const struct kernel *conv_last_kernel(const struct program *program, const struct op *op)
{
    enum { LEAST = 32 };
    static const struct kernel kernels[] = {
        ROW(conv, launch_conv_last), ROW(conv_t, launch_conv_last),
        ROW(conv_fused, launch_conv_fused_last), ROW(conv_dw, launch_conv_dw_last)};
    for (const struct kernel &kernel : kernels) {
        if (kernel.kind != op->kind)
            continue;
        const struct carry_form form = carry_form_of(program, op, true);
        const struct conv conv = conv_of(program, op);
        const bool fits = form.task == CARRY_BACK ? conv.in >= LEAST && conv.in % LAST_WIDE == 0
                                                  : conv.out >= LEAST;
        return form.last && fits ? &kernel : NULL;
    }
    return NULL;
}

bool conv_last_turns(const struct kernel *kernel)
{
    return kernel->workspace_bytes == workspace_last;
}
