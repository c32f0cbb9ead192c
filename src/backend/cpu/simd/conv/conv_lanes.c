/* conv_lanes.c: convolution with samples in lanes, for images of few channels, where neither
 * channels nor columns fill vectors: the loops over tiles of samples, bands of rows and blocks of
 * outputs, and the threads that share them. What an ISA does differently is in its struct
 * conv_kernels.
 *
 * A band of the source is transposed into lanes with its padding around it, so that no tap needs a
 * check; a target band is summed in lanes and transposed back. Only bands are ever copied. */
#include "backend/cpu/simd/conv/conv_loops.h"
#include "backend/cpu/simd/workspace.h"
#include "backend/cpu/team.h"

#include <string.h>

enum { BAND_FLOATS = 48 << 10, BAND_WEIGH_FLOATS = 6 << 10 }; /* in L2; in L1 */
enum { WGRAD_OUTPUTS = 6 };                                   /* 6 × 4 accumulators, or 6 × 2 */

/* The tile of the source that a band of target rows needs. */
struct band {
    int64_t steps; /* rows of the target, per phase */
    int64_t rows, width;
    int64_t tiles, bands; /* pieces of work: tiles × bands */
};

/* One phase of the target: where its taps begin in the lists, and how many belong to one row of the
 * weights. */
struct phase {
    int64_t down, across;
    int64_t first, row_taps;
};

struct job_lanes {
    const struct conv_kernels *kernels;
    struct conv_relation relation;
    struct band band;
    const float *x, *w;
    float *y;
    struct conv_after after;
    const float *dy; /* weights' gradient: read like y */
    struct phase *phases;
    int64_t *offsets; /* [taps] in the tile … */
    int64_t *places;  /* [taps] … and in the weights of one output */
    float *packed;    /* [output block][tap][output] */
    char *members;    /* each has a tile of the source and one of the target … */
    uint64_t member_bytes;
    int64_t tile_floats, target_floats;
};

static int64_t band_rows(const struct conv_axis *down, int64_t steps)
{
    return (steps - 1) * down->move + down->high - down->low + 1;
}

/* Columns of the source that a row needs, with padding. */
static int64_t band_width(const struct conv_axis *across)
{
    return (across->steps - 1) * across->move + across->high - across->low + 1;
}

bool conv_lanes_fit(const struct conv_kernels *kernels, const struct conv_relation *relation)
{
    int64_t row = relation->in * band_rows(&relation->down, 1) * band_width(&relation->across);
    return row * kernels->lanes <= BAND_FLOATS;
}

/* As many rows as fit, and bands enough for all threads; what has to fit are these channels. */
static struct band band_of(const struct conv_relation *r, int64_t lanes, int threads,
                           int64_t most_floats, int64_t in, int64_t out)
{
    struct band band = {
        .steps = r->down.steps,
        .width = band_width(&r->across),
        .tiles = (r->batch + lanes - 1) / lanes,
    };
    int64_t per_tile = (threads + band.tiles - 1) / band.tiles;
    int64_t most_steps = (r->down.steps + per_tile - 1) / per_tile;
    int64_t target = out * r->down.every * r->across.out;
    while (band.steps > 1 &&
           (band.steps > most_steps ||
            (in * band_rows(&r->down, band.steps) * band.width + band.steps * target) * lanes >
                most_floats))
        band.steps = (band.steps + 1) / 2;
    band.rows = band_rows(&r->down, band.steps);
    band.bands = (r->down.steps + band.steps - 1) / band.steps;
    return band;
}

/* Divides the workspace; returns how large it must be. */
static uint64_t lay_out(struct job_lanes *job, bool wgrad, int threads, char *workspace)
{
    const struct conv_relation *r = &job->relation;
    int64_t lanes = job->kernels->lanes;
    uint64_t used = 0;
    job->band = wgrad ? band_of(r, lanes, threads, BAND_WEIGH_FLOATS, 1, WGRAD_OUTPUTS)
                      : band_of(r, lanes, threads, BAND_FLOATS, r->in, CONV_OUTPUTS);
    job->phases =
        workspace_take(workspace, &used, r->down.every * r->across.every, sizeof *job->phases);
    job->offsets = workspace_take(workspace, &used, r->taps, sizeof *job->offsets);
    job->places = workspace_take(workspace, &used, r->taps, sizeof *job->places);
    job->packed =
        workspace_take(workspace, &used, wgrad ? 0 : r->out * r->taps, sizeof *job->packed);
    job->after.scale = workspace_take(workspace, &used, wgrad ? 0 : r->out, sizeof(float));
    job->after.shift = workspace_take(workspace, &used, wgrad ? 0 : r->out, sizeof(float));
    job->tile_floats = r->in * job->band.rows * job->band.width * lanes;
    job->target_floats =
        (wgrad ? r->out : CONV_OUTPUTS) * job->band.steps * r->down.every * r->across.out * lanes;
    int64_t sums = wgrad ? (r->out * r->taps + lanes - 1) / lanes * lanes : 0;
    job->member_bytes = 0;
    workspace_take(NULL, &job->member_bytes, job->tile_floats + job->target_floats + sums,
                   sizeof(float));
    job->members = workspace_take(workspace, &used, threads, job->member_bytes);
    return used;
}

/* The taps of a phase: by row of the weights, then column, then channel. */
static int64_t list_phase(struct job_lanes *job, struct phase *phase)
{
    const struct conv_relation *r = &job->relation;
    const struct conv_axis *down = &r->down, *across = &r->across;
    int64_t k = phase->first, kernel = down->kernel * across->kernel, row, column;
    for (int64_t y = 0; y < down->kernel; y++) {
        if (!conv_axis_tap(down, phase->down, y, &row))
            continue;
        int64_t begin = k;
        for (int64_t x = 0; x < across->kernel; x++)
            for (int64_t c = 0; c < r->in_group; c++) {
                if (!conv_axis_tap(across, phase->across, x, &column))
                    continue;
                int64_t line = c * job->band.rows + row - down->low;
                job->offsets[k] =
                    (line * job->band.width + column - across->low) * job->kernels->lanes;
                job->places[k++] =
                    c * kernel * (r->transposed ? r->out_group : 1) + y * across->kernel + x;
            }
        phase->row_taps = k - begin;
    }
    return k;
}

/* Fills phases, offsets and places. */
static void list_taps(struct job_lanes *job)
{
    const struct conv_relation *r = &job->relation;
    int64_t k = 0, across = r->across.every;
    for (int64_t i = 0; i < r->down.every * across; i++) {
        job->phases[i] = (struct phase){i / across, i % across, k, 0};
        k = list_phase(job, &job->phases[i]);
    }
}

static int64_t most_outputs(const struct conv_kernels *kernels)
{
    return kernels->sum[CONV_OUTPUTS][1] ? CONV_OUTPUTS : 6;
}

static int64_t most_pixels(const struct conv_kernels *kernels, int64_t outputs)
{
    int64_t pixels = kernels->accumulators / outputs;
    return pixels < CONV_PIXELS ? pixels : CONV_PIXELS;
}

/* The weights as the kernels read them: block after block of outputs, in it phase after phase. */
static void pack_weights(struct job_lanes *job)
{
    const struct conv_relation *r = &job->relation;
    int64_t kernel = r->down.kernel * r->across.kernel, block;
    int64_t stride = r->transposed ? kernel : r->taps; /* from an output to the next */
    float *to = job->packed;
    for (int64_t g = 0; g < r->groups; g++)
        for (int64_t o = 0; o < r->out_group; o += block) {
            const float *w = job->w + g * r->out_group * r->taps + o * stride;
            block = even_part(r->out_group, most_outputs(job->kernels), o);
            for (int64_t k = 0; k < r->taps; k++)
                for (int64_t i = 0; i < block; i++)
                    *to++ = w[i * stride + job->places[k]];
        }
}

/* Samples from `first` on, source rows from `top` on, as a tile with padding. */
static void load_source(const struct job_lanes *job, int64_t first, int64_t samples, int64_t top,
                        float *tile)
{
    const struct conv_relation *r = &job->relation;
    int64_t lanes = job->kernels->lanes, width = job->band.width, left = -r->across.low;
    int64_t image = r->down.in * r->across.in, columns = r->across.in;
    columns = columns < width - left ? columns : width - left;
    for (int64_t c = 0; c < r->in; c++)
        for (int64_t row = top; row < top + job->band.rows; row++, tile += width * lanes) {
            if (row < 0 || row >= r->down.in) {
                memset(tile, 0, (size_t)(width * lanes) * sizeof *tile);
                continue;
            }
            const float *x = job->x + (first * r->in + c) * image + row * r->across.in;
            memset(tile, 0, (size_t)(left * lanes) * sizeof *tile);
            job->kernels->from_samples(x, r->in * image, samples, columns, tile + left * lanes);
            memset(tile + (left + columns) * lanes, 0,
                   (size_t)((width - left - columns) * lanes) * sizeof *tile);
        }
}

/* A block of outputs over the band: what its pieces share. */
struct block {
    const float *tile, *w;
    int64_t outputs;
    int64_t first, steps; /* of the target's rows */
    struct conv_sum sum;
};

/* One row of one phase. Taps that meet nothing but padding are left out. */
static void sum_row(const struct job_lanes *job, struct block *block, const struct phase *phase,
                    int64_t a, float *target)
{
    const struct conv_relation *r = &job->relation;
    const struct conv_axis *across = &r->across;
    int64_t lanes = job->kernels->lanes, pixels = most_pixels(job->kernels, block->outputs), part;
    int64_t columns = conv_axis_places(across, phase->across), row, column;
    struct conv_sum *sum = &block->sum;
    conv_axis_reach(&r->down, phase->down, block->first + a, 1, &row, &sum->rows);
    for (int64_t q = 0; q < columns; q += part) {
        part = even_part(columns, pixels, q);
        conv_axis_reach(across, phase->across, q, part, &column, &sum->taps);
        int64_t tap = phase->first + row * phase->row_taps + column * r->in_group;
        sum->taps *= r->in_group;
        sum->offsets = job->offsets + tap;
        sum->w = block->w + tap * block->outputs;
        sum->x = block->tile + (a * r->down.move * job->band.width + q * across->move) * lanes;
        sum->y = target + (q * across->every + phase->across) * lanes;
        job->kernels->sum[block->outputs][part](sum);
    }
}

/* All phases and rows, into `target` [output][row][column][lane]. */
static void sum_outputs(const struct job_lanes *job, struct block *block, float *target)
{
    const struct conv_axis *down = &job->relation.down, *across = &job->relation.across;
    int64_t lanes = job->kernels->lanes;
    block->sum.step = across->move * lanes;
    block->sum.place = across->every * lanes;
    block->sum.plane = job->band.steps * down->every * across->out * lanes;
    for (int64_t i = 0; i < down->every * across->every; i++) {
        const struct phase *phase = &job->phases[i];
        int64_t rows = conv_axis_places(down, phase->down) - block->first;
        block->sum.row_taps = phase->row_taps;
        for (int64_t a = 0; a < block->steps && a < rows; a++)
            sum_row(job, block, phase, a,
                    target + (a * down->every + phase->down) * across->out * lanes);
    }
}

static void sum_member(void *context, int member, int members)
{
    const struct job_lanes *job = context;
    const struct conv_relation *r = &job->relation;
    int64_t lanes = job->kernels->lanes, width = r->across.out, block;
    float *tile = (float *)(job->members + (uint64_t)member * job->member_bytes);
    float *target = tile + job->tile_floats;
    long item, last;
    pool_share(job->band.tiles * job->band.bands, 1, member, members, &item, &last);
    for (; item < last; item++) {
        int64_t n = item / job->band.bands * lanes,
                first = item % job->band.bands * job->band.steps;
        int64_t samples = r->batch - n < lanes ? r->batch - n : lanes;
        int64_t steps = r->down.steps - first;
        steps = steps < job->band.steps ? steps : job->band.steps;
        int64_t top = first * r->down.every, rows = steps * r->down.every;
        rows = rows < r->down.out - top ? rows : r->down.out - top;
        load_source(job, n, samples, first * r->down.move + r->down.low, tile);
        for (int64_t o = 0; o < r->out; o += block) {
            int64_t group = o / r->out_group;
            block = even_part(r->out_group, most_outputs(job->kernels), o % r->out_group);
            struct block of = {
                .tile = tile + group * r->in_group * job->band.rows * job->band.width * lanes,
                .w = job->packed + o * r->taps,
                .outputs = block,
                .first = first,
                .steps = steps,
            };
            sum_outputs(job, &of, target);
            for (int64_t i = 0; i < block; i++) {
                float *sums = target + i * job->band.steps * r->down.every * width * lanes;
                job->kernels->finish(&job->after, o + i, 0, sums, rows * width * lanes, sums);
                job->kernels->to_samples(
                    sums, rows * width, job->y + ((n * r->out + o + i) * r->down.out + top) * width,
                    r->out * r->down.out * width, samples);
            }
        }
    }
}

void conv_lanes_sum(const struct call *call, const struct conv_kernels *kernels,
                    const struct conv_relation *relation)
{
    struct job_lanes job = {
        .kernels = kernels,
        .relation = *relation,
        .x = call->data[AT_conv_x],
        .w = call->data[AT_conv_w],
        .y = call->data[call->op->inputs],
    };
    const struct conv_relation *r = &job.relation;
    lay_out(&job, false, pool_at_once(call->pool), call->workspace);
    list_taps(&job);
    pack_weights(&job);
    conv_after_of(call, r->out, &job.after);
    int64_t flop = 2 * call->counts[call->op->inputs] * r->taps / (r->down.every * r->across.every);
    int members = team_for_flop(call->pool, flop, job.band.tiles * job.band.bands);
    pool_run(call->pool, members, sum_member, &job);
}

/* Offsets in the order of the weights: neighbours share a plane of the source. */
static void list_window(struct job_lanes *job)
{
    const struct conv_relation *r = &job->relation;
    int64_t *offset = job->offsets, row, column;
    for (int64_t c = 0; c < r->in_group; c++)
        for (int64_t y = 0; y < r->down.kernel; y++)
            for (int64_t x = 0; x < r->across.kernel; x++) {
                conv_axis_tap(&r->down, 0, y, &row);
                conv_axis_tap(&r->across, 0, x, &column);
                int64_t line = c * job->band.rows + row - r->down.low;
                *offset++ = (line * job->band.width + column - r->across.low) * job->kernels->lanes;
            }
}

/* The band's gradient of y as a tile [channel][row][column][lane]. */
static void load_dy(const struct job_lanes *job, int64_t first, int64_t samples, int64_t top,
                    int64_t rows, float *tile)
{
    const struct conv_relation *r = &job->relation;
    int64_t image = r->down.out * r->across.out;
    for (int64_t c = 0; c < r->out; c++)
        job->kernels->from_samples(
            job->dy + (first * r->out + c) * image + top * r->across.out, r->out * image, samples,
            rows * r->across.out, tile + c * job->band.steps * r->across.out * job->kernels->lanes);
}

/* Adds one band of one tile to the gradients of the weights. */
static void wgrad_band(const struct job_lanes *job, const float *tile, const float *dy,
                       int64_t rows, float *dw)
{
    const struct conv_relation *r = &job->relation;
    int64_t lanes = job->kernels->lanes, outputs, taps;
    int64_t plane = job->band.steps * r->across.out * lanes;
    for (int64_t o = 0; o < r->out; o += outputs) {
        int64_t group = o / r->out_group;
        outputs = even_part(r->out_group, WGRAD_OUTPUTS, o % r->out_group);
        for (int64_t k = 0; k < r->taps; k += taps) {
            taps = even_part(r->taps, most_pixels(job->kernels, outputs), k);
            job->kernels->wgrad[outputs][taps](&(struct conv_wgrad){
                .x = tile + group * r->in_group * job->band.rows * job->band.width * lanes,
                .offsets = job->offsets + k,
                .dy = dy + o * plane,
                .plane = plane,
                .rows = rows,
                .columns = r->across.out,
                .row_step = r->down.move * job->band.width * lanes,
                .step = r->across.move * lanes,
                .dw = dw + o * r->taps + k,
                .stride = r->taps,
            });
        }
    }
}

static float *member_sums(const struct job_lanes *job, int member)
{
    float *tile = (float *)(job->members + (uint64_t)member * job->member_bytes);
    return tile + job->tile_floats + job->target_floats;
}

static void wgrad_member(void *context, int member, int members)
{
    const struct job_lanes *job = context;
    const struct conv_relation *r = &job->relation;
    int64_t lanes = job->kernels->lanes;
    float *tile = (float *)(job->members + (uint64_t)member * job->member_bytes);
    float *sums = member_sums(job, member);
    long item, last;
    memset(sums, 0, (size_t)(r->out * r->taps) * sizeof *sums);
    pool_share(job->band.tiles * job->band.bands, 1, member, members, &item, &last);
    for (; item < last; item++) {
        int64_t n = item / job->band.bands * lanes, top = item % job->band.bands * job->band.steps;
        int64_t samples = r->batch - n < lanes ? r->batch - n : lanes;
        int64_t rows = r->down.out - top;
        rows = rows < job->band.steps ? rows : job->band.steps;
        load_source(job, n, samples, top * r->down.move + r->down.low, tile);
        load_dy(job, n, samples, top, rows, tile + job->tile_floats);
        wgrad_band(job, tile, tile + job->tile_floats, rows, sums);
    }
}

void conv_lanes_wgrad(const struct call *call, const struct conv_kernels *kernels,
                      const struct conv_relation *relation)
{
    struct job_lanes job = {
        .kernels = kernels,
        .relation = *relation,
        .x = call->data[AT_conv_dw_x],
        .dy = call->data[AT_conv_dw_dy],
    };
    const struct conv_relation *r = &job.relation;
    float *dw = call->data[AT_conv_dw_dw];
    lay_out(&job, true, pool_at_once(call->pool), call->workspace);
    list_window(&job);
    int64_t flop = 2 * call->counts[1] * r->taps;
    int members = team_for_flop(call->pool, flop, job.band.tiles * job.band.bands);
    pool_run(call->pool, members, wgrad_member, &job);
    for (int64_t i = 0; i < r->out * r->taps; i++) {
        float sum = 0;
        for (int m = 0; m < members; m++)
            sum += member_sums(&job, m)[i];
        dw[i] = call->op->attr.conv_dw.accumulate ? dw[i] + sum : sum;
    }
}

uint64_t conv_lanes_bytes(const struct conv_kernels *kernels, const struct conv_relation *relation,
                          bool wgrad, int threads)
{
    struct job_lanes job = {.kernels = kernels, .relation = *relation};
    return lay_out(&job, wgrad, threads, NULL);
}
