/* outer_bf16_isa.c: the gradient of a dense layer's weights in bf16, and its row.
 *
 *     dw[input][output] = scale · Σ over samples of x · dy
 *
 * The sum runs along the samples, so a word has two neighbouring ones. Inputs are in lanes, as they
 * are in the blocks that dw is kept in (blocked.h); 8 outputs, a group, are a tile's rows. Both
 * factors are packed for the call: 4 bytes written a pair and factor, beside the multiplications of
 * all its partners. */
#include "backend/cpu/blocked.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/narrow/narrow_shared.h"
#include "backend/cpu/simd/workspace.h"
#include "backend/cpu/team.h"

#include <string.h>

#define KERNELS ISA(bf16_kernels)

enum { PIECE = 256 /* columns that are packed together */, LANES_MOST = 8 * NARROW_LANES };

struct outer {
    const float *x, *dy;
    float *dw;
    struct shape shape; /* of dw */
    int64_t batch, words, rows, tiles, panels;
    int64_t tile_bytes, panel_bytes;
    char *dy_tiles, *x_panels;
    float scale;
    bool add;
};

static uint64_t lay_out(struct outer *outer, int64_t batch, const struct shape *shape,
                        char *workspace)
{
    uint64_t used = 0;
    outer->shape = *shape;
    outer->batch = batch;
    outer->words = blocked_up((batch + 1) / 2, NARROW_VISIT);
    outer->rows = narrow_rows(&KERNELS) < BLOCKED_ROWS ? narrow_rows(&KERNELS) : BLOCKED_ROWS;
    outer->tiles = blocked_up(shape->dim[1], BLOCKED_ROWS) / outer->rows;
    outer->panels = blocked_up(shape->dim[0], NARROW_LANES) / NARROW_LANES;
    outer->tile_bytes = outer->words * outer->rows * KERNELS.x_bytes + NARROW_SLACK;
    outer->panel_bytes = (outer->words | 1) * NARROW_LINE;
    outer->dy_tiles = workspace_take(workspace, &used, outer->tiles, (size_t)outer->tile_bytes);
    outer->x_panels = workspace_take(workspace, &used, outer->panels, (size_t)outer->panel_bytes);
    return used;
}

/* Words of two samples' columns from `from` on, zeros beyond the last column and sample. */
static void words_at(const float *x, int64_t batch, int64_t columns, int64_t word, int64_t from,
                     int64_t count, uint32_t *to)
{
    const int64_t n = 2 * word, have = columns - from < count ? columns - from : count;
    const float *first = x + n * columns + from;
    const void *rows[4] = {first, n + 1 < batch ? first + columns : NULL};
    if (n < batch)
        KERNELS.words(rows, have, to);
    memset(to + (n < batch ? have : 0), 0, (size_t)(count - (n < batch ? have : 0)) * sizeof *to);
}

static void pack_dy(const struct outer *outer, int64_t first, int64_t last)
{
    const int64_t rows = outer->rows;
    _Alignas(64) uint32_t words[PIECE + NARROW_LANES] = {0};
    for (int64_t t = first; t < last; t += PIECE / rows) {
        int64_t tiles = last - t < PIECE / rows ? last - t : PIECE / rows;
        for (int64_t w = 0; w < outer->words; w++) {
            words_at(outer->dy, outer->batch, outer->shape.dim[1], w, t * rows, tiles * rows,
                     words);
            for (int64_t k = 0; k < tiles; k++)
                KERNELS.place(words + k * rows, 1, rows,
                              outer->dy_tiles + (t + k) * outer->tile_bytes +
                                  w * rows * KERNELS.x_bytes);
        }
    }
}

static void pack_x(const struct outer *outer, int64_t first, int64_t last)
{
    enum { PANELS = PIECE / NARROW_LANES };
    _Alignas(64) uint32_t words[PIECE];
    for (int64_t p = first; p < last; p += PANELS) {
        int64_t panels = last - p < PANELS ? last - p : PANELS;
        for (int64_t w = 0; w < outer->words; w++) {
            words_at(outer->x, outer->batch, outer->shape.dim[0], w, p * NARROW_LANES,
                     panels * NARROW_LANES, words);
            for (int64_t k = 0; k < panels; k++)
                memcpy(outer->x_panels + (p + k) * outer->panel_bytes + w * NARROW_LINE,
                       words + k * NARROW_LANES, NARROW_LINE);
        }
    }
}

static void pack_member(void *context, int member, int members)
{
    const struct outer *outer = context;
    long first, last;
    pool_share(outer->tiles, 1, member, members, &first, &last);
    pack_dy(outer, first, last);
    pool_share(outer->panels, 1, member, members, &first, &last);
    pack_x(outer, first, last);
}

/* Some rows of a group and 16 inputs of each of some panels, to their blocks. */
static void store(const struct outer *outer, const float *sums, int64_t tile, int64_t panel,
                  int64_t panels)
{
    const int64_t output = tile * outer->rows, row = output % BLOCKED_ROWS;
    for (int64_t v = 0; v < panels; v++) {
        float *dw = outer->dw + row * BLOCKED_LANES +
                    blocked_place(&outer->shape, (panel + v) * NARROW_LANES, output / BLOCKED_ROWS);
        for (int64_t r = 0; r < outer->rows; r++, dw += BLOCKED_LANES)
            for (int64_t lane = 0; lane < BLOCKED_LANES; lane++) {
                float sum = outer->scale * sums[(r * panels + v) * NARROW_LANES + lane];
                dw[lane] = outer->add ? dw[lane] + sum : sum;
            }
    }
}

static void multiply_member(void *context, int member, int members)
{
    const struct outer *outer = context;
    _Alignas(64) float sums[BLOCKED_ROWS * LANES_MOST];
    long first, last;
    pool_share(outer->panels, 1, member, members, &first, &last);
    for (int64_t panel = first; panel < last;) {
        int width = KERNELS.wide;
        while (1 << width > last - panel)
            width--;
        for (int64_t t = 0; t < outer->tiles; t++) {
            KERNELS.tile[width][outer->rows](outer->dy_tiles + t * outer->tile_bytes,
                                             outer->x_panels + panel * outer->panel_bytes,
                                             outer->panel_bytes, outer->words, NULL, sums);
            store(outer, sums, t, panel, 1 << width);
        }
        panel += 1 << width;
    }
}

static uint64_t outer_workspace(const struct program *program, const struct op *op, int threads)
{
    (void)threads;
    const struct tensor *x = &program->tensors[op_input(program, op, AT_outer_x)];
    struct outer outer;
    return lay_out(&outer, x->shape.dim[0], &program->tensors[op_output(program, op, 0)].shape,
                   NULL);
}

static void run_outer(const struct call *call)
{
    struct outer outer = {.x = call->data[AT_outer_x],
                          .dy = call->data[AT_outer_dy],
                          .dw = call->data[AT_outer_dw],
                          .scale = call->op->attr.outer.scale,
                          .add = call->op->attr.outer.accumulate};
    const struct shape *shape = &call->tensors[AT_outer_dw]->shape;
    const int64_t batch = call->tensors[AT_outer_x]->shape.dim[0];
    const int64_t weights = shape->dim[0] * shape->dim[1];
    lay_out(&outer, batch, shape, call->workspace);
    int64_t bytes = batch * (shape->dim[0] + shape->dim[1]) * (int64_t)sizeof(float);
    int by_bytes = team_for_bytes(call->pool, weights * (int64_t)sizeof(float), outer.panels);
    int by_flop = team_for_flop(call->pool, 2 * batch * weights, outer.panels);
    pool_run(call->pool, team_for_bytes(call->pool, bytes, outer.panels), pack_member, &outer);
    pool_run(call->pool, by_bytes > by_flop ? by_bytes : by_flop, multiply_member, &outer);
}

static const struct kernel rows[] = {
    {.op = OP_outer,
     .precision = PRECISION_BF16,
     .form = FORM_BLOCKED,
     .name = "outer_bf16_" ISA_NAME,
     .workspace = outer_workspace,
     .run = run_outer},
};

const struct kernel_list ISA(outer_bf16_list) = KERNEL_LIST(rows);
