/* conv_gemm.c: convolution as a product of packed panels, for many channels or few samples:
 *
 *     y[output, pixel] = w[output, tap] · patches[tap, pixel]
 *
 * over the pixels of all samples, one group and phase (conv_relation.h) at a time. The patches are
 * never there as a whole: each panel of them is gathered from the image, into L1, when it is
 * needed (conv_patches.h), or a band of rows that has them all (conv_band.h). Pixels are in lanes
 * and weights broadcast; where few pixels would leave lanes empty (49 of 64), the product is
 * turned: outputs in lanes, patches broadcast. Of a band both are read alike, so outputs that fill
 * panels are in lanes and the rest (1 of 33) have pixels there. What follows the convolution (bias,
 * batch-norm, a second summand, a function) is done to a block of sums on its way to y. The bound
 * is FMA; gathering costs about two loads and stores per tap of a panel, which all outputs share.
 */
#include "backend/cpu/simd/blocked.h"
#include "backend/cpu/simd/conv_band.h"
#include "backend/cpu/simd/conv_loops.h"
#include "backend/cpu/simd/conv_patches.h"
#include "backend/cpu/simd/team.h"
#include "backend/cpu/simd/workspace.h"

#include <string.h>

/* A panel of patches, or of weights, is read from L1 and L2 (48 KB); the other of them and the sums
 * in L2 (at most 172 + 112 KB). 112 pixels are 8 tiles of 14: images of 7 to 112 pixels a side,
 * whose sizes are often multiples of 14, divide into them evenly. */
enum { TAPS = 384, PIXELS = 112, OUTPUTS = 256, LINE = 16 };
enum { GATHERING = 8 }; /* a panel of patches costs as much as so many outputs of it */
enum { PART_MOST = OUTPUTS + GEMM_ROWS }; /* outputs of a part, which is whole panels */

struct job_panels {
    const struct gemm_kernels *gemm;
    const struct conv_kernels *conv;
    struct conv_relation relation;
    struct conv_after after;
    const float *x, *w;
    float *y;
    int64_t parts; /* that the outputs of a group are divided into */
    bool turned;
    bool blocked; /* the weights */
    bool few;     /* pixels */
    struct conv_band band;
    /* workspace */
    struct patch_phase *phases;
    struct patch_tap *taps;
    float *weights; /* [group][phase][part] in panels of outputs */
    char *members;
    uint64_t member_bytes;
};

/* What a thread has. */
struct member {
    float *patches;            /* [TAPS][columns], turned [TAPS][PIXELS]; a vector behind it. Or a
                                  band of some channels */
    float *sums;               /* [outputs][PIXELS], turned [pixels][outputs] */
    struct conv_piece *pieces; /* of each panel of a block … */
    int64_t *counts;           /* … and how many a tap has there */
    struct patch_run *runs;
};

/* Outputs and pixels of one phase that are computed together. */
struct block {
    const struct patch_phase *phase;
    int64_t group;
    int64_t first, outputs; /* in the group */
    int64_t pixel, pixels;
    bool turned;
};

static uint64_t lay_out_member(const struct job_panels *job, char *memory, struct member *member)
{
    const struct conv_relation *r = &job->relation;
    int64_t most = r->out_group < PART_MOST ? r->out_group : PART_MOST;
    int64_t kernel = r->down.kernel * r->across.kernel, width = job->turned ? PIXELS : GEMM_COLUMNS;
    uint64_t used = 0;
    member->patches = workspace_take(memory, &used, (TAPS + 1) * width, sizeof *member->patches);
    member->sums = workspace_take(memory, &used, most * PIXELS, sizeof *member->sums);
    kernel = kernel < job->band.source.count ? job->band.source.count : kernel;
    member->pieces = workspace_take(memory, &used, kernel * PIXELS, sizeof *member->pieces);
    member->counts = workspace_take(memory, &used, PIXELS, sizeof *member->counts);
    member->runs = workspace_take(memory, &used, PIXELS, sizeof *member->runs);
    return used;
}

/* Must the weights be packed? Blocks are what a turned product of 32 outputs reads. */
static bool packs(const struct job_panels *job)
{
    return !job->blocked || job->relation.transposed || job->gemm->columns != BLOCKED_PANEL;
}

/* Divides the workspace; returns how large it must be. */
static uint64_t lay_out(struct job_panels *job, int threads, char *workspace)
{
    const struct conv_relation *r = &job->relation;
    struct member member;
    uint64_t used = 0;
    job->phases = workspace_take(workspace, &used, patch_phases(r), sizeof *job->phases);
    job->taps =
        workspace_take(workspace, &used, r->down.kernel * r->across.kernel, sizeof *job->taps);
    job->band.taps =
        workspace_take(workspace, &used, job->band.source.count, sizeof *job->band.taps);
    job->band.offsets = workspace_take(workspace, &used, TAPS, sizeof *job->band.offsets);
    job->weights =
        workspace_take(workspace, &used, packs(job) ? r->out * r->taps : 0, sizeof *job->weights);
    job->after.scale = workspace_take(workspace, &used, r->out, sizeof(float));
    job->after.shift = workspace_take(workspace, &used, r->out, sizeof(float));
    job->member_bytes = lay_out_member(job, NULL, &member);
    job->members = workspace_take(workspace, &used, threads, job->member_bytes);
    return used;
}

static int64_t pixels_of(const struct job_panels *job, const struct patch_phase *phase)
{
    return job->relation.batch * phase->rows * phase->columns;
}

/* Pixels of every block but the last, which may have fewer: whole rows for bands, whole panels
 * where pixels are in lanes, otherwise as many in each. */
static int64_t block_size(const struct job_panels *job, const struct patch_phase *phase)
{
    if (job->band.rows)
        return job->band.rows * phase->columns;
    int64_t panel = job->turned ? 1 : job->gemm->columns, most = PIXELS / panel;
    int64_t panels = (pixels_of(job, phase) + panel - 1) / panel;
    int64_t blocks = (panels + most - 1) / most;
    return blocks ? (panels + blocks - 1) / blocks * panel : 1;
}

/* Bands are blocks of one sample each. */
static int64_t sample_blocks(const struct job_panels *job)
{
    return (job->relation.down.steps + job->band.rows - 1) / job->band.rows;
}

static int64_t blocks_of(const struct job_panels *job, const struct patch_phase *phase)
{
    int64_t size = block_size(job, phase);
    if (job->band.rows)
        return job->relation.batch * sample_blocks(job);
    return (pixels_of(job, phase) + size - 1) / size;
}

/* The pixels of block number i. */
static void place_block(const struct job_panels *job, struct block *block, int64_t i)
{
    const struct patch_phase *phase = block->phase;
    int64_t size = block_size(job, phase), end = pixels_of(job, phase);
    block->pixel = i * size;
    if (job->band.rows) {
        int64_t sample = i / sample_blocks(job), image = phase->rows * phase->columns;
        block->pixel = sample * image + i % sample_blocks(job) * size;
        end = (sample + 1) * image;
    }
    block->pixels = end - block->pixel < size ? end - block->pixel : size;
}

/* Of so many outputs, those that are in lanes: of a band all that fill panels. */
static int64_t turned_outputs(const struct job_panels *job, int64_t outputs)
{
    return job->band.rows || job->turned ? outputs / job->gemm->columns * job->gemm->columns : 0;
}

/* Of so many outputs, those of the panel of weights that begins with number `first`. */
static int64_t panel_outputs(const struct job_panels *job, int64_t outputs, int64_t first)
{
    int64_t turned = turned_outputs(job, outputs);
    if (first < turned)
        return job->gemm->columns;
    return even_part(outputs - turned, job->gemm->rows, first - turned);
}

/* Outputs of a part: whole panels, but for the last. */
static int64_t part_size(const struct job_panels *job)
{
    int64_t panel = turned_outputs(job, job->gemm->columns) ? job->gemm->columns : job->gemm->rows;
    int64_t panels = (job->relation.out_group + panel - 1) / panel;
    return (panels + job->parts - 1) / job->parts * panel;
}

static int64_t part_outputs(const struct job_panels *job, int64_t first)
{
    int64_t left = job->relation.out_group - first;
    return left < part_size(job) ? left : part_size(job);
}

/* Where the packed weights of a block are. */
static float *block_weights(const struct job_panels *job, const struct block *block)
{
    const struct conv_relation *r = &job->relation;
    int64_t before = r->in_group * block->phase->first, taps = r->in_group * block->phase->count;
    if (!packs(job))
        return (float *)job->w + block->first * taps;
    return job->weights + (block->group * r->taps + before) * r->out_group + block->first * taps;
}

/* A panel of weights in blocks, for outputs from number `first` on: copied for a convolution;
 * turned for a transposed one, whose outputs are the other's inputs. */
static void pack_blocked(const struct job_panels *job, const struct patch_phase *phase,
                         int64_t first, int64_t outputs, float *to)
{
    const struct conv_relation *r = &job->relation;
    int64_t kernel = r->down.kernel * r->across.kernel, lanes = job->gemm->lanes;
    const float *w = job->w;
    if (!r->transposed) {
        w += first / BLOCKED_PANEL * BLOCKED_PANEL * r->taps + first % BLOCKED_PANEL;
        for (int64_t i = 0; i < outputs; i += lanes)
            job->gemm->pack(w + i, 1, BLOCKED_PANEL, lanes, r->taps, to + i, outputs);
        return;
    }
    for (int64_t c = 0; c < r->in_group; c += BLOCKED_PANEL)
        for (int64_t k = 0; k < phase->count; k++) {
            const float *from =
                w + c * r->out_group * kernel +
                (first * kernel + job->taps[phase->first + k].place) * BLOCKED_PANEL;
            float *panel = to + (c * phase->count + k) * outputs;
            for (int64_t i = 0; i < outputs && job->turned; i += lanes)
                job->gemm->pack(from + i * kernel * BLOCKED_PANEL, kernel * BLOCKED_PANEL, 1, lanes,
                                BLOCKED_PANEL, panel + i, phase->count * outputs);
            for (int64_t i = 0; i < outputs && !job->turned; i++)
                for (int64_t o = 0; o < BLOCKED_PANEL; o++)
                    panel[o * phase->count * outputs + i] = from[i * kernel * BLOCKED_PANEL + o];
        }
}

/* A panel of weights: [tap][outputs], from output `first` of the block on. */
static void pack_panel(const struct job_panels *job, const struct block *block, int64_t first,
                       int64_t outputs)
{
    const struct conv_relation *r = &job->relation;
    const struct patch_phase *phase = block->phase;
    int64_t kernel = r->down.kernel * r->across.kernel, taps = r->in_group * phase->count;
    int64_t lanes = job->gemm->lanes;
    int64_t across = r->transposed ? kernel : r->taps; /* from an output to the next */
    float *to = block_weights(job, block) + first * taps;
    const float *w =
        job->w + block->group * r->taps * r->out_group + (block->first + first) * across;
    if (job->blocked) {
        pack_blocked(job, phase, block->first + first, outputs, to);
        return;
    }
    if (!r->transposed || kernel == 1) {
        int64_t along = r->transposed ? r->out_group : 1;
        for (int64_t i = 0; i < outputs; i += lanes)
            job->gemm->pack(w + i * across, across, along,
                            outputs - i < lanes ? outputs - i : lanes, taps, to + i, outputs);
        return;
    }
    for (int64_t c = 0; c < r->in_group; c++, w += kernel * r->out_group)
        for (int64_t k = 0; k < phase->count; k++, to += outputs)
            for (int64_t i = 0; i < outputs; i++)
                to[i] = w[i * kernel + job->taps[phase->first + k].place];
}

/* Each thread packs its share of every block's panels. */
static void pack_member(void *context, int index, int members)
{
    const struct job_panels *job = context;
    const struct conv_relation *r = &job->relation;
    for (int64_t i = 0; i < r->groups * patch_phases(r) * job->parts; i++) {
        struct block block = {
            .phase = &job->phases[i / job->parts % patch_phases(r)],
            .group = i / job->parts / patch_phases(r),
            .first = i % job->parts * part_size(job),
        };
        block.outputs = part_outputs(job, block.first);
        int64_t size, panel = 0;
        for (int64_t o = 0; o < block.outputs; o += size, panel++) {
            size = panel_outputs(job, block.outputs, o);
            if (panel % members == index)
                pack_panel(job, &block, o, size);
        }
    }
}

/* Sums of one run of pixels to where they belong, `place` of the first output, with what follows.
 */
static void place_run(const struct job_panels *job, const struct member *member,
                      const struct block *block, const struct patch_run *run, int64_t place)
{
    const struct conv_relation *r = &job->relation;
    int64_t image = r->down.out * r->across.out, across = r->across.every, outputs = block->outputs;
    int64_t first = block->group * r->out_group + block->first, lanes = job->conv->lanes;
    const float *sums = member->sums + (block->turned ? run->at * outputs : run->at);
    int64_t down = block->turned ? 1 : PIXELS, right = block->turned ? outputs : 1; /* in sums */
    if (across == 1 && block->turned)
        for (int64_t o = 0; o < outputs; o += lanes)
            job->conv->finish_turned(&job->after, first + o, place + o * image, image, sums + o,
                                     outputs, run->length, job->y);
    else if (across == 1)
        for (int64_t o = 0; o < outputs; o++)
            job->conv->finish(&job->after, first + o, place + o * image, sums + o * PIXELS,
                              run->length, job->y + place + o * image);
    else
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t k = 0; k < run->length; k++)
                job->y[place + o * image + k * across] =
                    sums[o * down + k * right] + job->after.shift[first + o];
}

static void place_sums(const struct job_panels *job, const struct member *member,
                       const struct block *block)
{
    const struct conv_relation *r = &job->relation;
    const struct patch_phase *phase = block->phase;
    int64_t down = r->down.every, across = r->across.every, image = r->down.out * r->across.out;
    int64_t output = block->group * r->out_group + block->first;
    bool flat = job->band.rows && !block->turned;
    bool plain = down * across == 1 && !flat; /* whole images lie as they are computed */
    int64_t rows = plain ? 1 : phase->rows, columns = plain ? image : phase->columns;
    int64_t runs = patch_runs(rows, columns, block->pixel, block->pixels, PIXELS, member->runs);
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
static struct conv_gather gather_of(const struct job_panels *job, const struct member *member,
                                    const struct block *block, int64_t lead)
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
static struct conv_gather gather_band(const struct job_panels *job, const struct member *member,
                                      const struct block *block)
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
static void sum_plain(const struct job_panels *job, const struct member *member,
                      const struct block *block)
{
    const struct patch_phase *phase = block->phase;
    int64_t width = job->gemm->columns, all = job->relation.in_group * phase->count, taps;
    struct conv_gather gather = gather_of(job, member, block, width);
    for (int64_t j = 0; j < block->pixels; j += width)
        member->counts[j] =
            patch_pieces(&job->relation, phase, job->taps, job->conv->lanes, block->pixel + j,
                         block->pixels - j < width ? block->pixels - j : width, width,
                         member->pieces + j * phase->count);
    for (int64_t k = 0; k < all; k += taps) {
        taps = even_part(all, TAPS, k);
        for (int64_t j = 0; j < block->pixels; j += width) {
            gather.pieces = member->pieces + j * phase->count;
            gather.count = member->counts[j];
            job->conv->gather(&gather, k, taps);
            gemm_times_panel(job->gemm, block_weights(job, block), block->outputs, all, k,
                             (struct gemm_tile){
                                 .inner = taps,
                                 .b = member->patches,
                                 .c = member->sums + j,
                                 .stride = PIXELS,
                                 .columns = block->pixels - j < width ? block->pixels - j : width,
                                 .scale = 1,
                                 .add = k > 0,
                             });
        }
    }
}

/* The same from a band, whose rows are one run: what is summed between them is nobody's. */
static void sum_flat(const struct job_panels *job, const struct member *member,
                     const struct block *block)
{
    const struct conv_band *band = &job->band;
    int64_t channels = job->relation.in_group, kernel = block->phase->count, all, some, size;
    int64_t columns = block->phase->columns, width = job->gemm->columns;
    int64_t run = band_run(band, block->pixels / columns, columns);
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
                    .a = block_weights(job, block) + o * all + c * kernel * size,
                    .b = member->patches + j,
                    .places = band->offsets,
                    .c = member->sums + o * PIXELS + j,
                    .stride = PIXELS,
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
static void sum_panel(const struct job_panels *job, const struct member *member,
                      const struct block *block, struct gemm_tile tile, const float *next)
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
static struct conv_gather gather_turned(const struct job_panels *job, const struct member *member,
                                        const struct block *block)
{
    if (job->band.rows)
        return gather_band(job, member, block);
    struct conv_gather gather = gather_of(job, member, block, PIXELS);
    gather.count = patch_pieces(&job->relation, block->phase, job->taps, job->conv->lanes,
                                block->pixel, block->pixels, block->pixels, member->pieces);
    return gather;
}

/* The same, outputs in lanes: a piece of the taps of all pixels, then a panel of weights at a time.
 */
static void sum_turned(const struct job_panels *job, const struct member *member,
                       const struct block *block)
{
    const struct conv_band *band = &job->band;
    int64_t channels = job->relation.in_group, kernel = block->phase->count, taps;
    int64_t width = job->gemm->columns, all = channels * kernel;
    const float *weights = block_weights(job, block);
    struct conv_gather gather = gather_turned(job, member, block);
    for (int64_t k = 0; k < all; k += taps) {
        if (band->rows) {
            int64_t some = even_part(channels, band->channels, k / kernel);
            taps = some * kernel;
            job->conv->gather(&gather, k / kernel * gather.taps, some * gather.taps);
        } else {
            taps = even_part(all, TAPS, k);
            job->conv->gather(&gather, k, taps);
        }
        for (int64_t o = 0; o < block->outputs; o += width) {
            const float *b = weights + o * all + k * width;
            struct gemm_tile tile = {
                .inner = taps,
                .lead = PIXELS,
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

static void sum_block(const struct job_panels *job, const struct member *member,
                      const struct block *block)
{
    if (!block->phase->count) /* no tap ever meets these pixels */
        memset(member->sums, 0, (size_t)(block->outputs * PIXELS) * sizeof *member->sums);
    else if (block->turned)
        sum_turned(job, member, block);
    else if (job->band.rows)
        sum_flat(job, member, block);
    else
        sum_plain(job, member, block);
    place_sums(job, member, block);
}

/* A part of the outputs: those that are in lanes, and the others. */
static void sum_part(const struct job_panels *job, const struct member *member, struct block *block)
{
    int64_t outputs = part_outputs(job, block->first);
    block->outputs = turned_outputs(job, outputs);
    block->turned = true;
    if (block->outputs)
        sum_block(job, member, block);
    block->first += block->outputs;
    block->outputs = outputs - block->outputs;
    block->turned = false;
    if (block->outputs)
        sum_block(job, member, block);
}

static void sum_member(void *context, int index, int members)
{
    const struct job_panels *job = context;
    const struct conv_relation *r = &job->relation;
    struct member member;
    lay_out_member(job, job->members + (uint64_t)index * job->member_bytes, &member);
    for (int64_t i = 0; i < patch_phases(r); i++) {
        const struct patch_phase *phase = &job->phases[i];
        int64_t blocks = blocks_of(job, phase);
        long item, last;
        pool_share(r->groups * job->parts * blocks, 1, index, members, &item, &last);
        for (; item < last; item++) {
            struct block block = {
                .phase = phase,
                .group = item / blocks / job->parts,
                .first = item / blocks % job->parts * part_size(job),
            };
            place_block(job, &block, item % blocks);
            sum_part(job, &member, &block);
        }
    }
}

/* Outputs in lanes, where they fill them: always with weights in blocks, otherwise where pixels
 * would leave more than a twentieth of their lanes empty. */
static bool should_turn(const struct job_panels *job)
{
    const struct conv_relation *r = &job->relation;
    int64_t pixels = r->batch * r->down.steps * r->across.steps, width = job->gemm->columns;
    int64_t empty = (pixels + width - 1) / width * width - pixels;
    return r->out_group % width == 0 && (job->blocked || 20 * empty > pixels);
}

/* Is a flat band less work than panels of patches? The outputs that do not fill panels are summed
 * between its rows too; gathering costs as much as some outputs more. */
static bool flat_suits(const struct job_panels *job, const struct conv_band *band)
{
    const struct conv_relation *r = &job->relation;
    int64_t columns = r->across.steps, rest = r->out_group % job->gemm->columns;
    bool short_rows = 2 * columns < job->gemm->rows; /* would make small tiles */
    return band->rows && !short_rows && (band->lead - columns) * rest < columns * GATHERING;
}

static void choose_form(struct job_panels *job)
{
    struct conv_band flat = band_flat(&job->relation, PIXELS, TAPS, (int64_t)TAPS * GEMM_COLUMNS);
    job->turned = should_turn(job);
    if (job->turned)
        job->band = band_of(&job->relation, PIXELS, TAPS, (int64_t)TAPS * PIXELS, job->gemm->rows);
    else if (flat_suits(job, &flat))
        job->band = flat;
}

/* Parts of the outputs: small enough for L2, and where there are few pixels, as many for each
 * thread as for the others. */
static void choose_parts(struct job_panels *job, int members)
{
    const struct conv_relation *r = &job->relation;
    int64_t parts = (r->out_group + OUTPUTS - 1) / OUTPUTS;
    if (r->groups < members && blocks_of(job, job->phases) < 4 * members)
        parts = (parts + members - 1) / members * members;
    job->parts = parts;
    job->parts = (r->out_group + part_size(job) - 1) / part_size(job);
}

void conv_gemm_sum(const struct call *call, const struct gemm_kernels *gemm,
                   const struct conv_kernels *conv, const struct conv_relation *relation,
                   bool blocked)
{
    struct job_panels job = {
        .blocked = blocked,
        .gemm = gemm,
        .conv = conv,
        .relation = patch_flat(relation),
        .x = call->data[0],
        .w = call->data[1],
        .y = call->data[call->op->inputs],
    };
    const struct conv_relation *r = &job.relation;
    choose_form(&job);
    job.few = r->batch * r->down.steps * r->across.steps <= 4 * PIXELS;
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    patch_list(r, job.phases, job.taps);
    if (job.band.rows)
        band_list(r, job.taps, &job.band);
    conv_after_of(call, r->out, &job.after);
    int64_t flop = 2 * r->batch * r->out * r->taps * r->down.steps * r->across.steps;
    int64_t pixels = r->batch * r->down.steps * r->across.steps;
    int members = team_for_flop(call->pool, flop, pixels * r->out / (PIXELS * gemm->rows) + 1);
    choose_parts(&job, members);
    if (packs(&job))
        pool_run(call->pool,
                 team_for_bytes(call->pool, call->counts[1] * 8, r->out / gemm->rows + 1),
                 pack_member, &job);
    pool_run(call->pool, members, sum_member, &job);
}

uint64_t conv_gemm_sum_bytes(const struct gemm_kernels *gemm, const struct conv_relation *relation,
                             bool blocked, int threads)
{
    struct job_panels job = {.gemm = gemm, .relation = patch_flat(relation), .blocked = blocked};
    choose_form(&job);
    return lay_out(&job, threads, NULL);
}
