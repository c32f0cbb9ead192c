/* conv_panels_sum.c: the product of a block of pixels, in one of three forms: pixels in lanes, by
 * panels of patches (plain) or from a band (flat), and outputs in lanes (transposed). What follows
 * the convolution is done to the sums on their way to y. */
#include "backend/cpu/simd/conv/conv_panels.h"
#include "backend/cpu/team.h"

#include <string.h>

/* Sums of one run of pixels to where they belong, `place` of the first output, with what follows.
 */
static void place_run(const struct panel_job *job, const struct panel_member *member,
                      const struct panel_block *block, const struct patch_run *run, int64_t place)
{
    const struct conv_relation *r = &job->relation;
    int64_t image = r->down.out * r->across.out, across = r->across.every, outputs = block->outputs;
    int64_t first = block->group * r->out_group + block->first, lanes = job->conv->lanes;
    const float *sums = member->sums + (block->transposed ? run->at * outputs : run->at);
    int64_t down = block->transposed ? 1 : PANEL_PIXELS; /* in sums */
    int64_t right = block->transposed ? outputs : 1;
    if (across == 1 && block->transposed)
        for (int64_t o = 0; o < outputs; o += lanes)
            job->conv->finish_transposed(&job->after, first + o, place + o * image, image, sums + o,
                                         outputs, run->length, job->y);
    else if (across == 1)
        for (int64_t o = 0; o < outputs; o++)
            job->conv->finish(&job->after, first + o, place + o * image, sums + o * PANEL_PIXELS,
                              run->length, job->y + place + o * image);
    else
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t k = 0; k < run->length; k++)
                job->y[place + o * image + k * across] =
                    sums[o * down + k * right] + job->after.shift[first + o];
}

static void place_sums(const struct panel_job *job, const struct panel_member *member,
                       const struct panel_block *block)
{
    const struct conv_relation *r = &job->relation;
    const struct patch_phase *phase = block->phase;
    int64_t down = r->down.every, across = r->across.every, image = r->down.out * r->across.out;
    int64_t output = block->group * r->out_group + block->first;
    bool flat = job->band.rows && !block->transposed;
    bool plain = down * across == 1 && !flat; /* whole images lie as they are computed */
    int64_t rows = plain ? 1 : phase->rows, columns = plain ? image : phase->columns;
    int64_t runs =
        patch_runs(rows, columns, block->pixel, block->pixels, PANEL_PIXELS, member->runs);
    for (int64_t i = 0; i < runs; i++) {
        struct patch_run *run = &member->runs[i];
        if (flat) /* a run is a row */
            run->at = i * job->band.lead;
        int64_t row = run->row * down + phase->down, column = run->column * across + phase->across;
        place_run(job, member, block, run,
                  (run->sample * r->out + output) * image + row * r->across.out + column);
    }
}

/* How a block's patches are gathered. */
static struct conv_gather gather_of(const struct panel_job *job, const struct panel_member *member,
                                    const struct panel_block *block, int64_t lead)
{
    const struct conv_relation *r = &job->relation;
    int64_t plane = r->down.in * r->across.in;
    return (struct conv_gather){
        .x = job->x + block->group * r->in_group * plane,
        .plane = plane,
        .step = r->across.move,
        .ahead = lead * r->across.move, /* what comes next */
        .pieces = member->pieces,
        .taps = block->phase->count,
        .out = member->patches,
        .lead = lead,
    };
}

/* How its band is. */
static struct conv_gather gather_band(const struct panel_job *job,
                                      const struct panel_member *member,
                                      const struct panel_block *block)
{
    const struct conv_band *band = &job->band;
    struct conv_gather gather = gather_of(job, member, block, band->lead);
    int64_t columns = band->source.columns;
    gather.taps = band->source.count;
    gather.count = patch_pieces(&job->relation, &band->source, band->taps, job->conv->lanes,
                                block->pixel / block->phase->columns * columns, columns, columns,
                                member->pieces);
    return gather;
}

/* The product of a block, pixels in lanes: its taps a piece at a time, a panel of patches in L1. */
static void sum_plain(const struct panel_job *job, const struct panel_member *member,
                      const struct panel_block *block)
{
    const struct patch_phase *phase = block->phase;
    int64_t width = job->gemm->columns, all = job->relation.in_group * phase->count, taps;
    const float *weights = panel_weights(job, block);
    struct conv_gather gather = gather_of(job, member, block, width);
    for (int64_t j = 0; j < block->pixels; j += width)
        member->counts[j] =
            patch_pieces(&job->relation, phase, job->taps, job->conv->lanes, block->pixel + j,
                         block->pixels - j < width ? block->pixels - j : width, width,
                         member->pieces + j * phase->count);
    for (int64_t k = 0; k < all; k += taps) {
        taps = even_part(all, PANEL_TAPS, k);
        for (int64_t j = 0; j < block->pixels; j += width) {
            gather.pieces = member->pieces + j * phase->count;
            gather.count = member->counts[j];
            job->conv->gather(&gather, k, taps);
            gemm_times_panel(job->gemm, weights, block->outputs, all, k,
                             (struct gemm_tile){
                                 .inner = taps,
                                 .b = member->patches,
                                 .c = member->sums + j,
                                 .stride = PANEL_PIXELS,
                                 .columns = block->pixels - j < width ? block->pixels - j : width,
                                 .scale = 1,
                                 .add = k > 0,
                             });
        }
    }
}

/* The same from a band, whose rows are one run: sums between the rows are dropped. */
static void sum_flat(const struct panel_job *job, const struct panel_member *member,
                     const struct panel_block *block)
{
    const struct conv_band *band = &job->band;
    int64_t channels = job->relation.in_group, kernel = block->phase->count, all, some, size;
    int64_t columns = block->phase->columns, width = job->gemm->columns;
    int64_t run = band_run(band, block->pixels / columns, columns);
    const float *weights = panel_weights(job, block);
    struct conv_gather gather = gather_band(job, member, block);
    all = channels * kernel;
    for (int64_t c = 0; c < channels; c += some) {
        some = even_part(channels, band->channels, c);
        job->conv->gather(&gather, c * gather.taps, some * gather.taps);
        for (int64_t j = 0; j < run; j += width)
            for (int64_t o = 0; o < block->outputs; o += size) {
                size = even_part(block->outputs, job->gemm->rows, o);
                job->gemm->tile[size](&(struct gemm_tile){
                    .inner = some * kernel,
                    .a = weights + o * all + c * kernel * size,
                    .b = member->patches + j,
                    .places = band->offsets,
                    .c = member->sums + o * PANEL_PIXELS + j,
                    .stride = PANEL_PIXELS,
                    .columns = run - j < width ? run - j : width,
                    .scale = 1,
                    .add = c > 0,
                });
            }
    }
}

/* A panel of weights by all pixels of a block, a few neighbours in a row at a time. Where pixels
 * are few the weights come from memory: meanwhile the panel that is needed next is fetched into L2.
 */
static void sum_panel(const struct panel_job *job, const struct panel_member *member,
                      const struct panel_block *block, struct gemm_tile tile, const float *next)
{
    int64_t columns = job->band.rows ? block->phase->columns : block->pixels, size;
    int64_t floats = tile.inner * tile.columns;
    float *sums = tile.c;
    for (int64_t j = 0; j < block->pixels; j += size) {
        int64_t row = j / columns, column = j % columns;
        size = even_part(columns, job->gemm->rows, column);
        if (job->few) {
            tile.fetch = next + floats * j / block->pixels;
            tile.fetch_step = tile.columns * size / block->pixels + 1;
        }
        tile.a = member->patches + row * job->band.down + column;
        tile.c = sums + j * tile.stride;
        job->gemm->tile[size](&tile);
    }
}

/* What of the source a block needs: the patches of its pixels, or their band. */
static struct conv_gather gather_transposed(const struct panel_job *job,
                                            const struct panel_member *member,
                                            const struct panel_block *block)
{
    if (job->band.rows)
        return gather_band(job, member, block);
    struct conv_gather gather = gather_of(job, member, block, PANEL_PIXELS);
    gather.count = patch_pieces(&job->relation, block->phase, job->taps, job->conv->lanes,
                                block->pixel, block->pixels, block->pixels, member->pieces);
    return gather;
}

/* The same, outputs in lanes: a piece of the taps of all pixels, then a panel of weights at a time.
 */
static void sum_transposed(const struct panel_job *job, const struct panel_member *member,
                           const struct panel_block *block)
{
    const struct conv_band *band = &job->band;
    int64_t channels = job->relation.in_group, kernel = block->phase->count, taps;
    int64_t width = job->gemm->columns, all = channels * kernel;
    const float *weights = panel_weights(job, block);
    struct conv_gather gather = gather_transposed(job, member, block);
    for (int64_t k = 0; k < all; k += taps) {
        if (band->rows) {
            int64_t some = even_part(channels, band->channels, k / kernel);
            taps = some * kernel;
            job->conv->gather(&gather, k / kernel * gather.taps, some * gather.taps);
        } else {
            taps = even_part(all, PANEL_TAPS, k);
            job->conv->gather(&gather, k, taps);
        }
        for (int64_t o = 0; o < block->outputs; o += width) {
            const float *b = weights + o * all + k * width;
            struct gemm_tile tile = {
                .inner = taps,
                .lead = PANEL_PIXELS,
                .offsets = band->rows ? band->offsets : NULL,
                .b = b,
                .c = member->sums + o,
                .stride = block->outputs,
                .columns = width,
                .scale = 1,
                .add = k > 0,
            };
            bool last = o + width >= block->outputs;
            sum_panel(job, member, block, tile,
                      last ? weights + (k + taps) * width : b + all * width);
        }
    }
}

void panel_sum(const struct panel_job *job, const struct panel_member *member,
               const struct panel_block *block)
{
    if (!block->phase->count) /* no tap ever meets these pixels */
        memset(member->sums, 0, (size_t)(block->outputs * PANEL_PIXELS) * sizeof *member->sums);
    else if (block->transposed)
        sum_transposed(job, member, block);
    else if (job->band.rows)
        sum_flat(job, member, block);
    else
        sum_plain(job, member, block);
    place_sums(job, member, block);
}
