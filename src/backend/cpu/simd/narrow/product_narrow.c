/* product_narrow.c: see product_narrow.h. */
#include "backend/cpu/simd/narrow/product_narrow.h"

#include "backend/cpu/simd/workspace.h"
#include "backend/cpu/team.h"

#include <string.h>

enum {
    BLOCK_BYTES = 512 << 10,       /* of packed rows, which stay in L2 while weights pass … */
    TILES_LEAST = 8,               /* … but so many tiles at least, or weights pass too often */
    LANES_MOST = 8 * NARROW_LANES, /* of a tile */
    SUM_BYTES = 4,
};

/* How rows are divided: into blocks of tiles. */
struct division {
    int64_t tile;       /* rows of each tile but the last of a block, which may have fewer */
    int64_t block;      /* rows of each block but the last */
    int64_t tile_bytes; /* packed */
    int width;          /* of tiles, 0 to 3 */
};

static struct division divide(const struct narrow_kernels *kernels, const struct narrow *narrow,
                              int64_t rows)
{
    const int64_t most = narrow_rows(kernels);
    struct division division = {.tile = rows, .block = rows, .width = kernels->wide};
    if (rows > most) {
        int64_t bytes = narrow->words * kernels->x_bytes * most;
        int64_t tiles = BLOCK_BYTES / bytes > TILES_LEAST ? BLOCK_BYTES / bytes : TILES_LEAST;
        division.block = even_part(rows, tiles * most, 0);
        division.tile = even_part(division.block, most, 0);
    } else {
        while (division.width + 1 < NARROW_WIDTHS && kernels->tile[division.width + 1][rows])
            division.width++;
    }
    division.tile_bytes = narrow->words * kernels->x_bytes * division.tile + NARROW_SLACK;
    return division;
}

/* What a block of rows and all threads need. */
struct workspace {
    char *x;    /* packed tiles */
    char *sums; /* [member][row][lane of a tile] */
    int64_t sums_bytes;
};

static uint64_t find_workspace(const struct division *division, int threads, char *memory,
                               struct workspace *out)
{
    const int64_t tiles = (division->block + division->tile - 1) / division->tile;
    uint64_t used = 0;
    out->x = workspace_take(memory, &used, tiles * division->tile_bytes, 1);
    out->sums_bytes = division->block * LANES_MOST * SUM_BYTES;
    out->sums = workspace_take(memory, &used, threads * out->sums_bytes, 1);
    return used;
}

uint64_t narrow_product_bytes(const struct narrow_kernels *kernels, const struct narrow *narrow,
                              int64_t rows, int threads)
{
    const struct division division = divide(kernels, narrow, rows);
    struct workspace unused;
    return find_workspace(&division, threads, NULL, &unused);
}

struct pass {
    const struct narrow_product *product;
    struct division division;
    struct workspace workspace;
    int64_t first, rows; /* the block */
};

static void pack_member(void *context, int member, int members)
{
    const struct pass *pass = context;
    const struct narrow_product *product = pass->product;
    const int64_t tile = pass->division.tile, depth = product->narrow.depth;
    long first, last;
    pool_share((pass->rows + tile - 1) / tile, 1, member, members, &first, &last);
    for (int64_t t = first; t < last; t++) {
        int64_t row = t * tile, rows = pass->rows - row < tile ? pass->rows - row : tile;
        char *to = pass->workspace.x + t * pass->division.tile_bytes;
        if (product->pack)
            product->pack(product, pass->first + row, rows, to);
        else
            product->kernels->pack(product->x + (pass->first + row) * depth * product->x_bytes,
                                   depth, rows, depth, product->narrow.words, to);
    }
}

static void multiply_panels(const struct pass *pass, int64_t panel, int width, char *sums)
{
    const struct narrow_product *product = pass->product;
    const struct narrow *narrow = &product->narrow;
    const int64_t lane = panel * NARROW_LANES, lanes = NARROW_LANES << width;
    const int64_t tile = pass->division.tile;
    const int64_t have = narrow->lanes - lane < lanes ? narrow->lanes - lane : lanes;
    _Alignas(64) char start[LANES_MOST * SUM_BYTES] = {0};
    if (product->b)
        memcpy(start, (const char *)product->b + lane * SUM_BYTES, (size_t)(have * SUM_BYTES));
    for (int64_t row = 0, t = 0; row < pass->rows; row += tile, t++) {
        int64_t rows = pass->rows - row < tile ? pass->rows - row : tile;
        product->kernels->tile[width][rows](
            pass->workspace.x + t * pass->division.tile_bytes,
            narrow_panel(product->packed, narrow, panel), narrow->stride * NARROW_LINE,
            narrow->words, product->b ? start : NULL, sums + row * lanes * SUM_BYTES);
    }
    product->store(product, sums, pass->first, pass->rows, lane, lanes, pass->rows > tile);
}

static void multiply_member(void *context, int member, int members)
{
    const struct pass *pass = context;
    const struct narrow_product *product = pass->product;
    char *sums = pass->workspace.sums + member * pass->workspace.sums_bytes;
    long first, last;
    pool_share(product->narrow.panels, 1, member, members, &first, &last);
    for (int64_t panel = first; panel < last;) {
        int width = pass->division.width;
        while (1 << width > last - panel)
            width--;
        multiply_panels(pass, panel, width, sums);
        panel += 1 << width;
    }
    int64_t lane = first * NARROW_LANES, end = last * NARROW_LANES;
    end = end < product->narrow.lanes ? end : product->narrow.lanes;
    if (product->finish && pass->rows <= pass->division.tile && lane < end)
        product->finish(product, pass->first, pass->rows, lane, end);
}

void narrow_product_run(const struct call *call, const struct narrow_product *product)
{
    const struct narrow *narrow = &product->narrow;
    struct pass pass = {.product = product,
                        .division = divide(product->kernels, narrow, product->rows)};
    find_workspace(&pass.division, pool_at_once(call->pool), call->workspace, &pass.workspace);
    const int64_t weights = narrow->depth * narrow->lanes;
    const int by_bytes = team_for_bytes(call->pool, weights * 4 / narrow->per_word, narrow->panels);
    for (; pass.first < product->rows; pass.first += pass.division.block) {
        pass.rows = product->rows - pass.first < pass.division.block ? product->rows - pass.first
                                                                     : pass.division.block;
        int64_t tiles = (pass.rows + pass.division.tile - 1) / pass.division.tile;
        int by_flop = team_for_flop(call->pool, 2 * pass.rows * weights, narrow->panels);
        pool_run(call->pool,
                 team_for_bytes(call->pool, pass.rows * narrow->depth * product->x_bytes, tiles),
                 pack_member, &pass);
        pool_run(call->pool, by_bytes > by_flop ? by_bytes : by_flop, multiply_member, &pass);
    }
}
