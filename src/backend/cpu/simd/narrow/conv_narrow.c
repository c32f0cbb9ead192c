/* conv_narrow.c: see conv_narrow.h. */
#include "backend/cpu/simd/narrow/conv_narrow.h"

#include "backend/cpu/simd/workspace.h"
#include "backend/cpu/team.h"

enum { IMAGE_SLACK = 16 }; /* words behind the image that may be read */

bool narrow_conv_suits(const struct conv_relation *relation)
{
    return !relation->transposed && relation->groups == 1;
}

static int64_t pixels_of(const struct conv_relation *r)
{
    return r->batch * r->down.out * r->across.out;
}

static int64_t reach(const struct conv_axis *axis)
{
    return (axis->out - 1) * axis->stride + (axis->kernel - 1) * axis->dilation + 1;
}

/* Divides the workspace; returns how large it is, without what the product needs behind it. */
static uint64_t lay_out(struct narrow_conv *conv, char *workspace)
{
    const struct conv_relation *r = &conv->relation;
    const int64_t per = conv->product.narrow.per_word;
    uint64_t used = 0;
    conv->height = reach(&r->down);
    conv->width = reach(&r->across);
    conv->planes = (r->in + per - 1) / per;
    int64_t words = r->batch * conv->planes * conv->height * conv->width + IMAGE_SLACK;
    conv->image = workspace_take(workspace, &used, words, sizeof *conv->image);
    conv->offsets =
        workspace_take(workspace, &used, conv->product.narrow.words, sizeof *conv->offsets);
    return used;
}

uint64_t narrow_conv_bytes(const struct narrow_kernels *kernels, const struct narrow *narrow,
                           const struct conv_relation *relation, int threads)
{
    struct narrow_conv conv = {.product = {.kernels = kernels, .narrow = *narrow},
                               .relation = *relation};
    uint64_t own = lay_out(&conv, NULL);
    return own + narrow_product_bytes(kernels, narrow, pixels_of(relation), threads);
}

static void fill(uint32_t *to, uint32_t word, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = word;
}

/* One row of a plane of words, from the rows of its channels. */
static void image_row(const struct narrow_conv *conv, int64_t sample, int64_t plane, int64_t row)
{
    const struct conv_relation *r = &conv->relation;
    const int64_t per = conv->product.narrow.per_word, source = row - r->down.pad;
    const int64_t left = r->across.pad < conv->width ? r->across.pad : conv->width;
    uint32_t *to =
        conv->image + ((sample * conv->planes + plane) * conv->height + row) * conv->width;
    const void *rows[4] = {NULL};
    if (source < 0 || source >= r->down.in) {
        fill(to, conv->pad, conv->width);
        return;
    }
    for (int64_t k = 0; k < per && plane * per + k < r->in; k++)
        rows[k] = conv->x + ((sample * r->in + plane * per + k) * r->down.in + source) *
                                r->across.in * conv->x_bytes;
    int64_t inside = conv->width - left < r->across.in ? conv->width - left : r->across.in;
    fill(to, conv->pad, left);
    conv->product.kernels->words(rows, inside, to + left);
    fill(to + left + inside, conv->pad, conv->width - left - inside);
}

static void image_member(void *context, int member, int members)
{
    const struct narrow_conv *conv = context;
    long first, last;
    pool_share(conv->relation.batch * conv->planes, 1, member, members, &first, &last);
    for (int64_t i = first; i < last; i++)
        for (int64_t row = 0; row < conv->height; row++)
            image_row(conv, i / conv->planes, i % conv->planes, row);
}

static void list_offsets(struct narrow_conv *conv)
{
    const struct conv_relation *r = &conv->relation;
    const int64_t kernel = r->down.kernel * r->across.kernel;
    for (int64_t k = 0; k < conv->product.narrow.words; k++) {
        int64_t plane = k / kernel, tap = k % kernel;
        int64_t down = tap / r->across.kernel * r->down.dilation;
        int64_t across = tap % r->across.kernel * r->across.dilation;
        conv->offsets[k] =
            plane < conv->planes ? (plane * conv->height + down) * conv->width + across : -1;
    }
}

/* Neighbouring pixels of a tile in one row of the target. */
struct run {
    int64_t at, length;
    const uint32_t *first; /* the first pixel's word of the first tap */
};

static int find_runs(const struct narrow_conv *conv, int64_t pixel, int64_t pixels,
                     struct run *runs)
{
    const struct conv_relation *r = &conv->relation;
    const int64_t columns = r->across.out, rows = r->down.out;
    int count = 0;
    for (int64_t at = 0; at < pixels; at += runs[count - 1].length) {
        int64_t column = (pixel + at) % columns, row = (pixel + at) / columns % rows;
        int64_t sample = (pixel + at) / columns / rows, left = columns - column;
        runs[count++] = (struct run){
            .at = at,
            .length = left < pixels - at ? left : pixels - at,
            .first = conv->image +
                     (sample * conv->planes * conv->height + row * r->down.stride) * conv->width +
                     column * r->across.stride};
    }
    return count;
}

/* A tile of pixels. Words come one after the other: what is written behind a run's end is
 * overwritten by what follows. */
static void pack_pixels(const struct narrow_product *product, int64_t pixel, int64_t pixels,
                        char *to)
{
    const struct narrow_conv *conv = (const void *)product->x;
    const struct narrow_kernels *kernels = product->kernels;
    struct run runs[NARROW_ROWS];
    const int count = find_runs(conv, pixel, pixels, runs);
    for (int64_t k = 0; k < product->narrow.words; k++, to += pixels * kernels->x_bytes)
        for (int i = 0; i < count; i++)
            if (conv->offsets[k] < 0)
                kernels->place(NULL, 1, runs[i].length, to + runs[i].at * kernels->x_bytes);
            else
                kernels->place(runs[i].first + conv->offsets[k], conv->relation.across.stride,
                               runs[i].length, to + runs[i].at * kernels->x_bytes);
}

void narrow_conv_run(const struct call *call, struct narrow_conv *conv)
{
    const struct conv_relation *r = &conv->relation;
    uint64_t own = lay_out(conv, call->workspace);
    list_offsets(conv);
    int64_t planes = r->batch * conv->planes, words = planes * conv->height * conv->width;
    pool_run(call->pool, team_for_bytes(call->pool, 4 * words, planes), image_member, conv);
    struct call behind = *call;
    behind.workspace = (char *)call->workspace + own;
    conv->product.x = (const void *)conv;
    conv->product.rows = pixels_of(r);
    conv->product.pack = pack_pixels;
    narrow_product_run(&behind, &conv->product);
}
