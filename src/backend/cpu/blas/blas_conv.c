/* blas_conv.c: convolutions as products of a BLAS, through patches: for a group of channels of a
 * sample, what each weight meets, [weight][place of y], is copied side by side.
 *
 *   conv      y = w · patches
 *   conv_t    patches = wᵀ · y, added up where they overlap
 *   conv_dw   dw = Σ dy · patchesᵀ
 *
 * Threads share the channels of the copies. */
#include "backend/cpu/blas/blas_library.h"
#include "backend/cpu/conv_relation.h"
#include "backend/cpu/real.h"
#include "backend/cpu/team.h"

#include <string.h>

/* The sizes, and the group of a sample that is being copied. */
struct patches {
    struct conv_relation r; /* from x to the smaller image y, in every op */
    int64_t taps, places;   /* weights of an output; pixels of y */
    bool plain;             /* x is its own patches */
    float *x;               /* the group's first channel */
    float *copy;            /* [taps][places] */
};

static bool is_plain(const struct conv_axis *axis)
{
    return axis->kernel == 1 && axis->stride == 1 && axis->pad == 0;
}

static struct patches patches_of(const struct shape *x, const struct shape *w,
                                 const struct shape *y, const union attributes *attr)
{
    struct patches p = {.r = conv_relation_of(x, w, y, attr, false)};
    p.taps = p.r.taps;
    p.places = p.r.down.out * p.r.across.out;
    p.plain = is_plain(&p.r.down) && is_plain(&p.r.across);
    return p;
}

/* The places along an axis at which the tap meets no padding: [*from, *to). The first meets the
 * pixel that is returned. */
static int64_t meets(const struct conv_axis *axis, int64_t tap, int64_t *from, int64_t *to)
{
    int64_t first = tap * axis->dilation - axis->pad, behind = axis->in - first;
    *from = first < 0 ? (-first + axis->stride - 1) / axis->stride : 0;
    *to = behind <= 0 ? 0 : (behind - 1) / axis->stride + 1;
    *to = *to < axis->out ? *to : axis->out;
    *from = *from < *to ? *from : *to;
    return first + *from * axis->stride;
}

/* One row of the patches from x, or back into it. */
static void copy_tap(const struct patches *p, int64_t channel, int64_t ky, int64_t kx, bool back)
{
    const struct conv_axis *down = &p->r.down, *across = &p->r.across;
    int64_t top, bottom, left, right, width = across->out;
    int64_t row = meets(down, ky, &top, &bottom), column = meets(across, kx, &left, &right);
    float *copy = p->copy + ((channel * down->kernel + ky) * across->kernel + kx) * p->places;
    if (!back)
        memset(copy, 0, (size_t)p->places * sizeof *copy);
    for (int64_t i = top; i < bottom; i++, row += down->stride) {
        float *x = p->x + (channel * down->in + row) * across->in + column;
        float *c = copy + i * width;
        if (back)
            for (int64_t j = left; j < right; j++, x += across->stride)
                *x += c[j];
        else
            for (int64_t j = left; j < right; j++, x += across->stride)
                c[j] = *x;
    }
}

static void copy_channels(const struct patches *p, int member, int members, bool back)
{
    long channel, last;
    pool_share(p->r.in_group, 1, member, members, &channel, &last);
    for (; channel < last; channel++)
        for (int64_t ky = 0; ky < p->r.down.kernel; ky++)
            for (int64_t kx = 0; kx < p->r.across.kernel; kx++)
                copy_tap(p, channel, ky, kx, back);
}

static void gather_member(void *context, int member, int members)
{
    copy_channels(context, member, members, false);
}

static void scatter_member(void *context, int member, int members)
{
    copy_channels(context, member, members, true);
}

static void share_channels(const struct call *call, struct patches *p, pool_task *task)
{
    int64_t bytes = 2 * p->taps * p->places * (int64_t)sizeof(float);
    pool_run(call->pool, team_for_bytes(call->pool, bytes, p->r.in_group), task, p);
}

/* The patches of group g of sample n, which are x itself where it is plain. */
static const float *gather(const struct call *call, struct patches *p, int64_t n, int64_t g)
{
    p->x = reals(call, AT_gather_table) +
           (n * p->r.in + g * p->r.in_group) * p->r.down.in * p->r.across.in;
    p->copy = call->workspace;
    if (p->plain)
        return p->x;
    share_channels(call, p, gather_member);
    return p->copy;
}

/* planes[i] = b[i], or 0; or that is added to them. */
static void start_planes(float *planes, const float *b, int64_t count, int64_t size, bool add)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < size; k++, planes++)
            *planes = (add ? *planes : 0) + (b ? b[i] : 0);
}

static void conv(const struct call *call)
{
    struct patches p =
        patches_of(&call->tensors[AT_conv_x]->shape, &call->tensors[AT_conv_w]->shape,
                   &call->tensors[AT_conv_y]->shape, &call->op->attr);
    const struct conv_relation *r = &p.r;
    for (int64_t n = 0; n < r->batch; n++) {
        float *y = reals(call, AT_conv_y) + n * r->out * p.places;
        for (int64_t g = 0; g < r->groups; g++)
            blas_multiply(call, false, false, r->out_group, p.places, p.taps, 1,
                          reals(call, AT_conv_w) + g * r->out_group * p.taps,
                          gather(call, &p, n, g), 0, y + g * r->out_group * p.places);
        if (reals(call, AT_conv_b))
            start_planes(y, reals(call, AT_conv_b), r->out, p.places, true);
    }
}

static void conv_t(const struct call *call)
{
    struct patches p =
        patches_of(&call->tensors[AT_conv_t_y]->shape, &call->tensors[AT_conv_t_w]->shape,
                   &call->tensors[AT_conv_t_x]->shape, &call->op->attr);
    const struct conv_relation *r = &p.r;
    int64_t plane = r->down.in * r->across.in;
    p.copy = call->workspace;
    for (int64_t n = 0; n < r->batch; n++) {
        start_planes(reals(call, AT_conv_t_y) + n * r->in * plane, reals(call, AT_conv_t_b), r->in,
                     plane, false);
        for (int64_t g = 0; g < r->groups; g++) {
            const float *y = reals(call, AT_conv_t_x) + (n * r->out + g * r->out_group) * p.places;
            const float *w = reals(call, AT_conv_t_w) + g * r->out_group * p.taps;
            p.x = reals(call, AT_conv_t_y) + (n * r->in + g * r->in_group) * plane;
            blas_multiply(call, true, false, p.taps, p.places, r->out_group, 1, w, y, p.plain,
                          p.plain ? p.x : p.copy);
            if (!p.plain)
                share_channels(call, &p, scatter_member);
        }
    }
}

static void conv_dw(const struct call *call)
{
    struct patches p =
        patches_of(&call->tensors[AT_conv_dw_x]->shape, &call->tensors[AT_conv_dw_dw]->shape,
                   &call->tensors[AT_conv_dw_dy]->shape, &call->op->attr);
    const struct conv_relation *r = &p.r;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t g = 0; g < r->groups; g++)
            blas_multiply(call, false, true, r->out_group, p.taps, p.places, 1,
                          reals(call, AT_conv_dw_dy) + (n * r->out + g * r->out_group) * p.places,
                          gather(call, &p, n, g),
                          n > 0 || call->op->attr.conv_dw.accumulate ? 1 : 0,
                          reals(call, AT_conv_dw_dw) + g * r->out_group * p.taps);
}

static const struct shape *shape_of(const struct program *program, const struct op *op, int operand)
{
    return &program->tensors[program->operands[op->first + operand]].shape;
}

static uint64_t workspace_of(const struct program *program, const struct op *op, int x, int w,
                             int y)
{
    struct patches p = patches_of(shape_of(program, op, x), shape_of(program, op, w),
                                  shape_of(program, op, y), &op->attr);
    return p.plain ? 0 : (uint64_t)(p.taps * p.places) * sizeof(float);
}

static uint64_t conv_workspace(const struct program *program, const struct op *op, int threads)
{
    (void)threads;
    return workspace_of(program, op, 0, 1, 3);
}

static uint64_t conv_t_workspace(const struct program *program, const struct op *op, int threads)
{
    (void)threads;
    return workspace_of(program, op, 3, 1, 0);
}

static uint64_t conv_dw_workspace(const struct program *program, const struct op *op, int threads)
{
    (void)threads;
    return workspace_of(program, op, 0, 2, 1);
}

#define CONV_ROW(kind, library)                                                                    \
    {                                                                                              \
        .op = OP_##kind, .name = #kind "_f32_" library, .workspace = kind##_workspace, .run = kind \
    }
#define ROWS(library)                                                                              \
    CONV_ROW(conv, library), CONV_ROW(conv_t, library), CONV_ROW(conv_dw, library),                \
    {                                                                                              \
        .op = OP_conv_fused,                                                                       \
        .why = "bias and activation stay ops of their own after the library's product"             \
    }
static const struct kernel openblas[] = {ROWS("openblas")}, blis[] = {ROWS("blis")};

const struct kernel_list *blas_conv_list(void)
{
    static const struct kernel_list lists[BLAS_LIBRARIES] = {KERNEL_LIST(openblas),
                                                             KERNEL_LIST(blis)};
    return &lists[blas_library()];
}
