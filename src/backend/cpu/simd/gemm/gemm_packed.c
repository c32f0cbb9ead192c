/* gemm_packed.c: see gemm_packed.h. */
#include "backend/cpu/simd/gemm/gemm_packed.h"

#include "backend/cpu/team.h"

/* A panel of b stays in L1 (24 KB), a block of its panels and one of a's in L2. */
enum { INNER = 192, COLUMNS = 512, ROWS = 112 };

static int64_t panels_of(const struct gemm_kernels *kernels, int64_t columns)
{
    return (columns + kernels->columns - 1) / kernels->columns;
}

int64_t gemm_b_floats(const struct gemm_kernels *kernels, int64_t inner, int64_t columns)
{
    return panels_of(kernels, columns) * inner * kernels->columns;
}

void gemm_pack_b(const struct gemm_kernels *kernels, struct gemm_side b, int64_t inner,
                 int64_t columns, float *panels)
{
    for (int64_t j = 0; j < columns; j += kernels->columns, panels += inner * kernels->columns) {
        bool whole = b.right == 1 && columns - j >= kernels->columns;
        int64_t at_once = whole ? kernels->columns : kernels->lanes;
        for (int64_t i = 0; i < kernels->columns; i += at_once) {
            int64_t width = columns - j - i;
            width = width < 0 ? 0 : width < at_once ? width : at_once;
            kernels->pack(b.data + (width ? (j + i) * b.right : 0), b.right, b.down, width, inner,
                          panels + i, kernels->columns);
        }
    }
}

void gemm_pack_a(const struct gemm_kernels *kernels, struct gemm_side a, int64_t rows,
                 int64_t inner, float *panels, int64_t whole, int64_t first)
{
    int64_t size;
    for (int64_t i = 0; i < rows; i += size) {
        size = even_part(rows, kernels->rows, i);
        kernels->pack(a.data + i * a.down, a.down, a.right, size, inner,
                      panels + i * whole + first * size, size);
    }
}

void gemm_times_panel(const struct gemm_kernels *kernels, const float *a, int64_t rows,
                      int64_t whole, int64_t first, struct gemm_tile tile)
{
    const struct gemm_tile all = tile;
    int64_t size;
    for (int64_t k = 0; k < all.inner; k += tile.inner) {
        tile.inner = even_part(all.inner, INNER, k);
        tile.b = all.b + k * kernels->columns;
        tile.add = all.add || k > 0;
        for (int64_t i = 0; i < rows; i += size) {
            size = even_part(rows, kernels->rows, i);
            tile.a = a + i * whole + (first + k) * size;
            tile.c = all.c + i * tile.stride;
            if (all.fetch) {
                tile.fetch = all.fetch + (k + tile.inner * i / rows) * kernels->columns;
                tile.fetch_step = kernels->columns * size / rows + 1;
            }
            kernels->tile[size](&tile);
        }
    }
}

int64_t gemm_floats(void)
{
    return INNER * (COLUMNS + ROWS);
}

/* One block of b, packed, times all rows of a. */
static void multiply_block(const struct gemm_kernels *kernels, const struct gemm *gemm,
                           int64_t column, int64_t columns, int64_t from, int64_t inner, float *b,
                           float *a)
{
    int64_t rows;
    for (int64_t i = 0; i < gemm->rows; i += rows) {
        rows = even_part(gemm->rows, ROWS, i);
        struct gemm_side side = gemm->a;
        side.data += i * side.down + from * side.right;
        gemm_pack_a(kernels, side, rows, inner, a, inner, 0);
        for (int64_t j = 0; j < columns; j += kernels->columns)
            gemm_times_panel(
                kernels, a, rows, inner, 0,
                (struct gemm_tile){
                    .inner = inner,
                    .b = b + j * inner,
                    .c = gemm->c + i * gemm->stride + column + j,
                    .stride = gemm->stride,
                    .columns = columns - j < kernels->columns ? columns - j : kernels->columns,
                    .scale = gemm->scale,
                    .add = gemm->add || from > 0,
                });
    }
}

/* The columns [first, last) of the product, and of those behind it. */
static void multiply_columns(const struct gemm_kernels *kernels, const struct gemm *gemm,
                             int64_t first, int64_t last, float *workspace)
{
    for (int64_t j = first; j < last; j += COLUMNS) {
        int64_t columns = last - j < COLUMNS ? last - j : COLUMNS, inner;
        for (int64_t k = 0; k < gemm->inner; k += inner) {
            inner = even_part(gemm->inner, INNER, k);
            struct gemm_side b = gemm->b;
            b.data += k * b.down + j * b.right;
            gemm_pack_b(kernels, b, inner, columns, workspace);
            for (const struct gemm *one = gemm; one; one = one->next)
                multiply_block(kernels, one, j, columns, k, inner, workspace,
                               workspace + INNER * COLUMNS);
        }
    }
}

void gemm_multiply(const struct gemm_kernels *kernels, const struct gemm *gemm, float *workspace)
{
    multiply_columns(kernels, gemm, 0, gemm->columns, workspace);
}

struct job_gemm {
    const struct gemm_kernels *kernels;
    const struct gemm *gemm;
    float *workspace;
    bool by_rows;
};

static void gemm_member(void *context, int member, int members)
{
    const struct job_gemm *job = context;
    const struct gemm_kernels *kernels = job->kernels;
    float *workspace = job->workspace + member * gemm_floats();
    struct gemm part = *job->gemm;
    long from, to;
    if (!job->by_rows) {
        pool_share(part.columns, kernels->columns, member, members, &from, &to);
        multiply_columns(kernels, job->gemm, from, to, workspace);
        return;
    }
    pool_share(part.rows, kernels->rows, member, members, &from, &to);
    part.a.data += from * part.a.down;
    part.c += from * part.stride;
    part.rows = to - from;
    gemm_multiply(kernels, &part, workspace);
}

void gemm_run(const struct gemm_kernels *kernels, const struct gemm *gemm, struct pool *pool,
              float *workspace)
{
    int64_t rows = 0, by_columns = panels_of(kernels, gemm->columns);
    for (const struct gemm *one = gemm; one; one = one->next)
        rows += one->rows;
    int64_t by_rows = gemm->next ? 0 : (rows + kernels->rows - 1) / kernels->rows;
    struct job_gemm job = {kernels, gemm, workspace, by_rows > by_columns};
    int members = team_for_flop(pool, 2 * rows * gemm->inner * gemm->columns,
                                by_rows > by_columns ? by_rows : by_columns);
    pool_run(pool, members, gemm_member, &job);
}
