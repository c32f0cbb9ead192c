/* layer_pool.c: pooling of images and its undoing. */
#include "nn/layers/layer_image.h"

layer_emitter emit_max_pool, emit_average_pool, emit_global_average_pool, emit_global_max_pool,
    emit_max_unpool;

static void set_slide(struct op *op, const struct slide *slide)
{
    op->attr.max_pool.window_h = (int32_t)slide->window.h;
    op->attr.max_pool.window_w = (int32_t)slide->window.w;
    op->attr.max_pool.stride_h = (int32_t)slide->stride.h;
    op->attr.max_pool.stride_w = (int32_t)slide->stride.w;
    op->attr.max_pool.pad_h = (int32_t)slide->pad.h;
    op->attr.max_pool.pad_w = (int32_t)slide->pad.w;
}

enum { WINDOW, STRIDE, PAD }; /* the first arguments of both kinds of pooling */

/* Reads the arguments window, stride, pad and ceil. */
static bool read_slide(struct layer_emit *emit, struct slide *slide)
{
    *slide = (struct slide){.dilation = {1, 1}, .ceil = layer_value(emit, "ceil") != 0};
    if (!image_pair(emit, WINDOW, "window", 1, &slide->window) ||
        !image_pair(emit, STRIDE, "stride", 0, &slide->stride) ||
        !image_pair(emit, PAD, "pad", 0, &slide->pad))
        return false;
    if (!slide->stride.h)
        slide->stride.h = slide->window.h;
    if (!slide->stride.w)
        slide->stride.w = slide->window.w;
    if (slide->pad.h < slide->window.h && slide->pad.w < slide->window.w)
        return true;
    draft_fail(emit->draft, STATUS_INPUT,
               "%s: pad is %lldx%lld, expected less than the window of %lldx%lld: some would hold "
               "nothing of the image",
               emit->layer->name, (long long)slide->pad.h, (long long)slide->pad.w,
               (long long)slide->window.h, (long long)slide->window.w);
    return false;
}

/* The window over the whole image. */
static struct slide whole(const struct shape *x)
{
    struct pair size = {x->dim[2], x->dim[3]};
    return (struct slide){.window = size, .stride = size, .dilation = {1, 1}};
}

/* [batch, channels, 1, 1] → [batch, channels] */
static int32_t as_row(struct layer_emit *emit, int32_t pooled)
{
    if (pooled < 0)
        return -1;
    const struct shape *shape = draft_shape(emit->draft, pooled);
    return draft_view(emit->draft, pooled, SHAPE(shape->dim[0], shape->dim[1]));
}

static int32_t new_places(struct draft *draft, struct shape pooled)
{
    return draft_tensor(draft, ROLE_ACTIVATION, DTYPE_I32, "places", pooled);
}

/* The gradient needs the places; without it they are kept when a max_unpool asks for them. */
static int32_t pool_max(struct layer_emit *emit, const struct shape *x, const struct slide *slide)
{
    struct pair size;
    if (!image_places(emit, x, slide, &size))
        return -1;
    struct shape pooled = SHAPE(x->dim[0], x->dim[1], size.h, size.w);
    int32_t y = layer_output(emit, pooled);
    int32_t places = emit->phase == PHASE_TRAINING ? new_places(emit->draft, pooled) : -1;
    set_slide(draft_op(emit->draft, OP_max_pool, IN(emit->inputs[0]), OUT(y, places)), slide);
    return y;
}

static int32_t pool_average(struct layer_emit *emit, const struct shape *x,
                            const struct slide *slide, bool include_pad)
{
    struct pair size;
    if (!image_places(emit, x, slide, &size))
        return -1;
    int32_t y = layer_output(emit, SHAPE(x->dim[0], x->dim[1], size.h, size.w));
    struct op *op = draft_op(emit->draft, OP_average_pool, IN(emit->inputs[0]), OUT(y));
    set_slide(op, slide);
    op->attr.average_pool.include_pad = include_pad;
    return y;
}

int32_t emit_max_pool(struct layer_emit *emit)
{
    struct shape x;
    struct slide slide;
    if (!image_input(emit, &x) || !read_slide(emit, &slide))
        return -1;
    return pool_max(emit, &x, &slide);
}

int32_t emit_average_pool(struct layer_emit *emit)
{
    struct shape x;
    struct slide slide;
    if (!image_input(emit, &x) || !read_slide(emit, &slide))
        return -1;
    return pool_average(emit, &x, &slide, layer_value(emit, "count_pad") != 0);
}

int32_t emit_global_max_pool(struct layer_emit *emit)
{
    struct shape x;
    if (!image_input(emit, &x))
        return -1;
    struct slide slide = whole(&x);
    return as_row(emit, pool_max(emit, &x, &slide));
}

int32_t emit_global_average_pool(struct layer_emit *emit)
{
    struct shape x;
    if (!image_input(emit, &x))
        return -1;
    struct slide slide = whole(&x);
    return as_row(emit, pool_average(emit, &x, &slide, false));
}

/* The max_pool op that wrote this tensor, or NULL. */
static struct op *find_pool(const struct draft *draft, int32_t pooled)
{
    struct program *program = draft->program;
    for (int32_t o = 0; o < program->op_count; o++)
        if (program->ops[o].kind == OP_max_pool &&
            op_output(program, &program->ops[o], 0) == pooled)
            return &program->ops[o];
    return NULL;
}

int32_t emit_max_unpool(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    int32_t x = emit->inputs[0], pooled = emit->inputs[1];
    const struct op *pool = draft->status == STATUS_OK ? find_pool(draft, pooled) : NULL;
    if (!pool) {
        draft_fail(draft, STATUS_INPUT,
                   "%s: its second input is '%s', expected the name of a max_pool",
                   emit->layer->name, draft->program->tensors[pooled].name);
        return -1;
    }
    int32_t image = op_input(draft->program, pool, 0);
    int32_t *places = &draft->program->operands[pool->first + pool->inputs + 1];
    if (*places < 0)
        *places = new_places(draft, *draft_shape(draft, pooled));
    int32_t y = layer_output(emit, *draft_shape(draft, image));
    draft_op(draft, OP_max_unpool, IN(x, *places), OUT(y));
    return y;
}
