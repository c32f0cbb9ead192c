/* conv_gemm.c: convolution as products of packed panels, for many channels or few samples.
 *
 *     y[output, pixel] = w[output, tap] · patches[tap, pixel]
 *     dw[output, tap] = dy[output, pixel] · patches[tap, pixel]ᵀ
 *
 * over the pixels of all samples, one group and phase (conv_relation.h) at a time. The patches are
 * never there as a whole: each panel of them is gathered from the image, in L1, when it is needed.
 * The bound is FMA; gathering costs about a store per vector and 12th of the outputs. */
#include "backend/cpu/simd/conv_loops.h"
#include "backend/cpu/simd/team.h"
#include "backend/cpu/simd/workspace.h"

#include <string.h>

enum { TAPS = 192, PIXELS = 128 }; /* of a block of patches: 96 KB in L2 */

/* Where a tap finds its element: channel of the group, rows and columns from the pixel's. */
struct tap {
    int64_t channel, down, across;
    int64_t place; /* in the weights of one output */
};

struct phase {
    int64_t down, across;
    int64_t rows, columns; /* of its pixels */
    int64_t first, count;  /* taps */
};

/* Neighbouring pixels in one row of one sample. */
struct run {
    int64_t at, length; /* in the panel */
    int64_t sample;
    int64_t row, column; /* in the phase */
};

struct job_panels {
    const struct gemm_kernels *gemm;
    const struct conv_kernels *conv;
    struct conv_relation relation;
    const float *x, *w, *b, *dy;
    float *y, *dw;
    bool accumulate;
    /* workspace */
    struct phase *phases;
    struct tap *taps;
    float *weights; /* [group][phase] in panels of outputs */
    char *members;
    uint64_t member_bytes;
};

/* What a thread has: patches, sums or rows of dy, and the runs of a panel. */
struct member {
    float *patches; /* [TAPS][PIXELS] in panels */
    float *sums;    /* [outputs][PIXELS], or dy in panels */
    float *panel;   /* [columns][TAPS], on the way to a panel */
    struct run *runs;
};

static uint64_t lay_out_member(const struct job_panels *job, char *memory, struct member *member)
{
    uint64_t used = 0;
    int64_t wide = PIXELS > TAPS ? PIXELS : TAPS;
    member->patches = workspace_take(memory, &used, TAPS * PIXELS, sizeof(float));
    member->sums = workspace_take(memory, &used, job->relation.out_group * wide, sizeof(float));
    member->panel = workspace_take(memory, &used, GEMM_COLUMNS * TAPS, sizeof(float));
    member->runs = workspace_take(memory, &used, wide, sizeof *member->runs);
    return used;
}

/* Divides the workspace; returns how large it must be. */
static uint64_t lay_out(struct job_panels *job, int threads, char *workspace)
{
    const struct conv_relation *r = &job->relation;
    struct member member;
    uint64_t used = 0;
    job->phases =
        workspace_take(workspace, &used, r->down.every * r->across.every, sizeof *job->phases);
    job->taps = workspace_take(workspace, &used, r->taps, sizeof *job->taps);
    job->weights = workspace_take(workspace, &used, r->out * r->taps, sizeof *job->weights);
    job->member_bytes = lay_out_member(job, NULL, &member);
    job->members = workspace_take(workspace, &used, threads, job->member_bytes);
    return used;
}

static void list_taps(struct job_panels *job)
{
    const struct conv_relation *r = &job->relation;
    int64_t kernel = r->down.kernel * r->across.kernel, k = 0;
    struct tap tap;
    for (int64_t i = 0; i < r->down.every * r->across.every; i++) {
        struct phase *phase = &job->phases[i];
        *phase = (struct phase){.down = i / r->across.every, .across = i % r->across.every};
        phase->rows = conv_axis_places(&r->down, phase->down);
        phase->columns = conv_axis_places(&r->across, phase->across);
        phase->first = k;
        for (tap.channel = 0; tap.channel < r->in_group; tap.channel++)
            for (int64_t p = 0; p < kernel; p++) {
                if (!conv_axis_tap(&r->down, phase->down, p / r->across.kernel, &tap.down) ||
                    !conv_axis_tap(&r->across, phase->across, p % r->across.kernel, &tap.across))
                    continue;
                tap.place = tap.channel * kernel * (r->transposed ? r->out_group : 1) + p;
                job->taps[k++] = tap;
            }
        phase->count = k - phase->first;
    }
}

/* The weights of a group and phase as panels of outputs. */
static void pack_weights(struct job_panels *job, int64_t group, const struct phase *phase)
{
    const struct conv_relation *r = &job->relation;
    int64_t stride = r->transposed ? r->down.kernel * r->across.kernel : r->taps, size;
    const float *w = job->w + group * r->out_group * r->taps;
    float *to = job->weights + (group * r->taps + phase->first) * r->out_group;
    if (!r->transposed) {
        gemm_pack_a(job->gemm, (struct gemm_side){w, stride, 1}, r->out_group, r->taps, to, r->taps,
                    0);
        return;
    }
    for (int64_t o = 0; o < r->out_group; o += size) {
        size = even_part(r->out_group, job->gemm->rows, o);
        for (int64_t k = 0; k < phase->count; k++)
            for (int64_t i = 0; i < size; i++)
                *to++ = w[(o + i) * stride + job->taps[phase->first + k].place];
    }
}

/* The runs of `count` pixels from number `first` of all samples on; returns how many there are. */
static int64_t list_runs(const struct phase *phase, int64_t first, int64_t count, struct run *runs)
{
    int64_t image = phase->rows * phase->columns, found = 0, at = 0;
    struct run run = {
        .sample = first / image,
        .row = first % image / phase->columns,
        .column = first % phase->columns,
    };
    while (at < count) {
        int64_t left = phase->columns - run.column;
        run.at = at;
        run.length = left < count - at ? left : count - at;
        runs[found++] = run;
        at += run.length;
        run.column = 0;
        if (++run.row == phase->rows) {
            run.row = 0;
            run.sample++;
        }
    }
    return found;
}

/* One tap's elements for a run of pixels; 0 where it meets padding. */
static void gather_run(const struct job_panels *job, int64_t group, const struct tap *tap,
                       const struct run *run, float *out)
{
    const struct conv_relation *r = &job->relation;
    int64_t move = r->across.move, row = run->row * r->down.move + tap->down;
    int64_t column = run->column * move + tap->across, first = 0, last = 0;
    out += run->at;
    if (row >= 0 && row < r->down.in) {
        first = column < 0 ? (move - 1 - column) / move : 0;
        last = column < r->across.in ? (r->across.in - column + move - 1) / move : 0;
        first = first < run->length ? first : run->length;
        last = last < first ? first : last < run->length ? last : run->length;
    }
    for (int64_t i = 0; i < first; i++)
        out[i] = 0;
    if (first < last) {
        int64_t plane = run->sample * r->in + group * r->in_group + tap->channel;
        job->conv->gather(job->x + (plane * r->down.in + row) * r->across.in + column +
                              first * move,
                          move, last - first, out + first);
    }
    for (int64_t i = last; i < run->length; i++)
        out[i] = 0;
}

/* Panels [tap][columns] of the patches of some taps at some pixels. */
static void gather_patches(const struct job_panels *job, struct member *member, int64_t group,
                           const struct phase *phase, int64_t tap, int64_t taps, int64_t pixel,
                           int64_t pixels)
{
    int64_t width = job->gemm->columns;
    for (int64_t j = 0; j < pixels; j += width) {
        int64_t count = pixels - j < width ? pixels - j : width;
        int64_t runs = list_runs(phase, pixel + j, count, member->runs);
        float *panel = member->patches + j * taps;
        for (int64_t k = 0; k < taps; k++, panel += width) {
            for (int64_t i = 0; i < runs; i++)
                gather_run(job, group, &job->taps[phase->first + tap + k], &member->runs[i], panel);
            for (int64_t i = count; i < width; i++)
                panel[i] = 0;
        }
    }
}

/* Sums of a block of pixels to where they belong, with the bias. */
static void place_sums(const struct job_panels *job, const struct member *member, int64_t group,
                       const struct phase *phase, int64_t pixel, int64_t pixels)
{
    const struct conv_relation *r = &job->relation;
    int64_t runs = list_runs(phase, pixel, pixels, member->runs), every = r->across.every;
    for (int64_t o = 0; o < r->out_group; o++) {
        float bias = job->b ? job->b[group * r->out_group + o] : 0;
        for (int64_t i = 0; i < runs; i++) {
            const struct run *run = &member->runs[i];
            int64_t plane = run->sample * r->out + group * r->out_group + o;
            int64_t row = run->row * r->down.every + phase->down;
            float *y = job->y + (plane * r->down.out + row) * r->across.out + run->column * every +
                       phase->across;
            const float *sums = member->sums + o * PIXELS + run->at;
            for (int64_t k = 0; k < run->length; k++)
                y[k * every] = sums[k] + bias;
        }
    }
}

/* All outputs of a group at a block of pixels of one phase. */
static void sum_block(const struct job_panels *job, struct member *member, int64_t group,
                      const struct phase *phase, int64_t pixel, int64_t pixels)
{
    const struct conv_relation *r = &job->relation;
    const float *weights = job->weights + (group * r->taps + phase->first) * r->out_group;
    int64_t width = job->gemm->columns, taps;
    for (int64_t k = 0; k < phase->count; k += taps) {
        taps = even_part(phase->count, TAPS, k);
        gather_patches(job, member, group, phase, k, taps, pixel, pixels);
        for (int64_t j = 0; j < pixels; j += width)
            gemm_times_panel(job->gemm, weights, r->out_group, phase->count, k,
                             (struct gemm_tile){
                                 .inner = taps,
                                 .b = member->patches + j * taps,
                                 .c = member->sums + j,
                                 .stride = PIXELS,
                                 .columns = pixels - j < width ? pixels - j : width,
                                 .scale = 1,
                                 .add = k > 0,
                             });
    }
    if (!phase->count) /* no tap ever meets these pixels */
        memset(member->sums, 0, (size_t)(r->out_group * PIXELS) * sizeof *member->sums);
    place_sums(job, member, group, phase, pixel, pixels);
}

static void sum_member(void *context, int index, int members)
{
    const struct job_panels *job = context;
    const struct conv_relation *r = &job->relation;
    struct member member;
    lay_out_member(job, job->members + (uint64_t)index * job->member_bytes, &member);
    for (int64_t i = 0; i < r->down.every * r->across.every; i++) {
        const struct phase *phase = &job->phases[i];
        int64_t pixels = r->batch * phase->rows * phase->columns;
        int64_t blocks = (pixels + PIXELS - 1) / PIXELS;
        long item, last;
        pool_share(r->groups * blocks, 1, index, members, &item, &last);
        for (; item < last; item++) {
            int64_t pixel = item % blocks * PIXELS;
            int64_t count = pixels - pixel < PIXELS ? pixels - pixel : PIXELS;
            sum_block(job, &member, item / blocks, phase, pixel, count);
        }
    }
}

void conv_gemm_sum(const struct call *call, const struct gemm_kernels *gemm,
                   const struct conv_kernels *conv, const struct conv_relation *relation)
{
    const struct conv_relation *r = relation;
    struct job_panels job = {
        .gemm = gemm,
        .conv = conv,
        .relation = *relation,
        .x = call->data[0],
        .w = call->data[1],
        .b = call->data[2],
        .y = call->data[3],
    };
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    list_taps(&job);
    for (int64_t g = 0; g < r->groups; g++)
        for (int64_t i = 0; i < r->down.every * r->across.every; i++)
            pack_weights(&job, g, &job.phases[i]);
    int64_t flop = 2 * call->counts[3] * r->taps / (r->down.every * r->across.every);
    pool_run(call->pool, team_for_flop(call->pool, flop, call->counts[3] / PIXELS + 1), sum_member,
             &job);
}

/* dy of a block of pixels as panels of outputs. */
static void pack_slopes(const struct job_panels *job, const struct member *member, int64_t group,
                        int64_t runs, int64_t pixels)
{
    const struct conv_relation *r = &job->relation;
    int64_t image = r->down.out * r->across.out;
    for (int64_t i = 0; i < runs; i++) {
        const struct run *run = &member->runs[i];
        const float *dy = job->dy + (run->sample * r->out + group * r->out_group) * image +
                          run->row * r->across.out + run->column;
        gemm_pack_a(job->gemm, (struct gemm_side){dy, image, 1}, r->out_group, run->length,
                    member->sums, pixels, run->at);
    }
}

/* A panel of taps over a block of pixels: gathered tap by tap, then turned. */
static void turn_patches(const struct job_panels *job, const struct member *member, int64_t group,
                         int64_t tap, int64_t taps, int64_t runs, int64_t pixels)
{
    for (int64_t k = 0; k < taps; k++)
        for (int64_t i = 0; i < runs; i++)
            gather_run(job, group, &job->taps[tap + k], &member->runs[i], member->panel + k * TAPS);
    gemm_pack_b(job->gemm, (struct gemm_side){member->panel, 1, TAPS}, pixels, taps,
                member->patches);
}

/* Threads share the taps, so that each gradient is one thread's sum. */
static void weigh_member(void *context, int index, int members)
{
    const struct job_panels *job = context;
    const struct conv_relation *r = &job->relation;
    int64_t all = r->batch * job->phases->rows * job->phases->columns, pixels;
    int64_t width = job->gemm->columns;
    struct member member;
    long from, to;
    lay_out_member(job, job->members + (uint64_t)index * job->member_bytes, &member);
    pool_share(r->taps, width, index, members, &from, &to);
    for (int64_t g = 0; g < r->groups && from < to; g++)
        for (int64_t p = 0; p < all; p += pixels) {
            pixels = even_part(all, TAPS, p);
            int64_t runs = list_runs(job->phases, p, pixels, member.runs);
            pack_slopes(job, &member, g, runs, pixels);
            for (int64_t k = from; k < to; k += width) {
                int64_t taps = to - k < width ? to - k : width;
                turn_patches(job, &member, g, k, taps, runs, pixels);
                gemm_times_panel(job->gemm, member.sums, r->out_group, pixels, 0,
                                 (struct gemm_tile){
                                     .inner = pixels,
                                     .b = member.patches,
                                     .c = job->dw + g * r->out_group * r->taps + k,
                                     .stride = r->taps,
                                     .columns = taps,
                                     .scale = 1,
                                     .add = job->accumulate || p > 0,
                                 });
            }
        }
}

void conv_gemm_weigh(const struct call *call, const struct gemm_kernels *gemm,
                     const struct conv_kernels *conv, const struct conv_relation *relation)
{
    struct job_panels job = {
        .gemm = gemm,
        .conv = conv,
        .relation = *relation,
        .x = call->data[0],
        .dy = call->data[1],
        .dw = call->data[2],
        .accumulate = call->op->attr.conv_dw.accumulate,
    };
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    list_taps(&job);
    int64_t panels = (relation->taps + gemm->columns - 1) / gemm->columns;
    int members = team_for_flop(call->pool, 2 * call->counts[1] * relation->taps, panels);
    pool_run(call->pool, members, weigh_member, &job);
}

uint64_t conv_gemm_bytes(const struct gemm_kernels *gemm, const struct conv_relation *relation,
                         int threads)
{
    struct job_panels job = {.gemm = gemm, .relation = *relation};
    return lay_out(&job, threads, NULL);
}
