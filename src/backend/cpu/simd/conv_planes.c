/* conv_planes.c: depthwise convolution, where each channel of the target is made of one channel of
 * the source: plane by plane, with pixels in lanes.
 *
 * A plane of the source is copied with its padding around it, and taken apart where rows or columns
 * are `move` apart: row by row of each remainder, all rows of one length. In that form a tap is an
 * offset, the same for all pixels, rows follow each other without a seam, and a plane is one run
 * over all of them (struct conv_flat): a few elements more between the rows are summed and not
 * used. Threads share planes (for the weights' gradient, channels): no sum is divided among them.
 */
#include "backend/cpu/simd/conv_loops.h"
#include "backend/cpu/simd/team.h"
#include "backend/cpu/simd/workspace.h"

#include <string.h>

enum { SLACK = 64 }; /* floats behind a plane that a last run of vectors may read */

struct job_planes {
    const struct conv_kernels *kernels;
    struct conv_relation relation;
    const float *x, *w;
    float *y;
    const float *dy; /* weights' gradient: read like y … */
    float *dw;       /* … and written */
    bool accumulate;
    struct conv_after after;
    int64_t rows, pitch; /* of a remainder of the source: rows, and from one to the next */
    int64_t run;         /* elements from the first pixel to the last, whole vectors */
    int64_t *first;      /* [phases + 1] taps of a phase of the target … */
    int64_t *offsets;    /* [taps] … in the source … */
    int64_t *places;     /* [taps] … and in the weights */
    char *members;       /* each has a source, a run and the taps' weights */
    uint64_t member_bytes;
    int64_t source_floats;
};

bool conv_planes_suit(const struct conv_relation *r)
{
    return r->in_group == 1 && r->out_group == 1 && r->groups > 1;
}

/* Steps along the axis, and as many more as its taps reach further. */
static int64_t reach_of(const struct conv_axis *axis)
{
    return axis->steps + (axis->high - axis->low) / axis->move;
}

/* Divides the workspace; returns how large it must be. */
static uint64_t lay_out(struct job_planes *job, int threads, char *workspace)
{
    const struct conv_relation *r = &job->relation;
    uint64_t used = 0;
    job->rows = reach_of(&r->down);
    job->pitch = reach_of(&r->across);
    job->run = ((r->down.steps - 1) * job->pitch + r->across.steps + job->kernels->lanes - 1) /
               job->kernels->lanes * job->kernels->lanes;
    job->source_floats = r->down.move * r->across.move * job->rows * job->pitch + SLACK;
    job->first =
        workspace_take(workspace, &used, r->down.every * r->across.every + 1, sizeof *job->first);
    job->offsets = workspace_take(workspace, &used, r->taps, sizeof *job->offsets);
    job->places = workspace_take(workspace, &used, r->taps, sizeof *job->places);
    job->after.scale = workspace_take(workspace, &used, r->out, sizeof(float));
    job->after.shift = workspace_take(workspace, &used, r->out, sizeof(float));
    job->member_bytes = 0;
    workspace_take(NULL, &job->member_bytes, job->run, sizeof(float));
    workspace_take(NULL, &job->member_bytes, job->source_floats + r->taps, sizeof(float));
    job->members = workspace_take(workspace, &used, threads, job->member_bytes);
    return used;
}

/* Where a tap with these offsets finds its element for the first pixel. */
static int64_t offset_of(const struct job_planes *job, int64_t down, int64_t across)
{
    const struct conv_axis *d = &job->relation.down, *a = &job->relation.across;
    int64_t row = down - d->low, column = across - a->low;
    int64_t remainder = row % d->move * a->move + column % a->move;
    return (remainder * job->rows + row / d->move) * job->pitch + column / a->move;
}

static void list_taps(struct job_planes *job)
{
    const struct conv_axis *down = &job->relation.down, *across = &job->relation.across;
    int64_t k = 0, row, column, phase = 0;
    for (; phase < down->every * across->every; phase++) {
        job->first[phase] = k;
        for (int64_t y = 0; y < down->kernel; y++)
            for (int64_t x = 0; x < across->kernel; x++)
                if (conv_axis_tap(down, phase / across->every, y, &row) &&
                    conv_axis_tap(across, phase % across->every, x, &column)) {
                    job->offsets[k] = offset_of(job, row, column);
                    job->places[k++] = y * across->kernel + x;
                }
    }
    job->first[phase] = k;
}

/* One row of one remainder of the columns, `to`: elements of the source, zeros around them. */
static void load_row(const struct job_planes *job, const float *x, int64_t remainder, float *to)
{
    const struct conv_axis *across = &job->relation.across;
    int64_t start = remainder + across->low; /* the first element's column */
    int64_t before = start < 0 ? (-start + across->move - 1) / across->move : 0;
    int64_t column = start + before * across->move;
    int64_t count = column < across->in ? (across->in - column - 1) / across->move + 1 : 0;
    before = before < job->pitch ? before : job->pitch;
    count = count < job->pitch - before ? count : job->pitch - before;
    memset(to, 0, (size_t)before * sizeof *to);
    job->kernels->pick(x + column, across->move, count, to + before);
    memset(to + before + count, 0, (size_t)(job->pitch - before - count) * sizeof *to);
}

/* A plane of the source in its form. */
static void load_source(const struct job_planes *job, const float *plane, float *source)
{
    const struct conv_axis *down = &job->relation.down, *across = &job->relation.across;
    for (int64_t i = 0; i < down->move; i++)
        for (int64_t j = 0; j < across->move; j++)
            for (int64_t k = 0; k < job->rows; k++, source += job->pitch) {
                int64_t row = k * down->move + i + down->low;
                if (row >= 0 && row < down->in)
                    load_row(job, plane + row * across->in, j, source);
                else
                    memset(source, 0, (size_t)job->pitch * sizeof *source);
            }
    memset(source, 0, SLACK * sizeof *source);
}

/* A phase's sums to their places in y. */
static void store_phase(const struct job_planes *job, int64_t phase, int64_t plane, float *sums)
{
    const struct conv_relation *r = &job->relation;
    const struct conv_axis *down = &r->down, *across = &r->across;
    int64_t i = phase / across->every, j = phase % across->every, channel = plane % r->out;
    int64_t columns = conv_axis_places(across, j);
    for (int64_t a = 0; a < conv_axis_places(down, i); a++, sums += job->pitch) {
        int64_t place = (plane * down->out + a * down->every + i) * across->out + j;
        bool apart = across->every > 1;
        job->kernels->finish(&job->after, channel, place, sums, columns,
                             apart ? sums : job->y + place);
        for (int64_t b = 0; apart && b < columns; b++)
            job->y[place + b * across->every] = sums[b];
    }
}

static void sum_member(void *context, int member, int members)
{
    const struct job_planes *job = context;
    const struct conv_relation *r = &job->relation;
    float *run = (float *)(job->members + (uint64_t)member * job->member_bytes);
    float *source = run + job->run, *weights = source + job->source_floats;
    long plane, last;
    pool_share(r->batch * r->out, 1, member, members, &plane, &last);
    for (; plane < last; plane++) {
        load_source(job, job->x + plane * r->down.in * r->across.in, source);
        for (int64_t k = 0; k < r->taps; k++)
            weights[k] = job->w[plane % r->out * r->taps + job->places[k]];
        for (int64_t phase = 0; phase < r->down.every * r->across.every; phase++) {
            int64_t first = job->first[phase];
            job->kernels->flat_sum(&(struct conv_flat){
                .x = source,
                .offsets = job->offsets + first,
                .taps = job->first[phase + 1] - first,
                .count = job->run,
                .w = weights + first,
                .y = run,
            });
            store_phase(job, phase, plane, run);
        }
    }
}

/* The gradient of y in the form of the sums, zeros between its rows. */
static void load_slopes(const struct job_planes *job, const float *dy, float *run)
{
    const struct conv_relation *r = &job->relation;
    memset(run, 0, (size_t)job->run * sizeof *run);
    for (int64_t a = 0; a < r->down.out; a++)
        job->kernels->pick(dy + a * r->across.out, 1, r->across.out, run + a * job->pitch);
}

static void weigh_member(void *context, int member, int members)
{
    const struct job_planes *job = context;
    const struct conv_relation *r = &job->relation;
    float *run = (float *)(job->members + (uint64_t)member * job->member_bytes);
    float *source = run + job->run, *sums = source + job->source_floats;
    long channel, last;
    pool_share(r->out, 1, member, members, &channel, &last);
    for (; channel < last; channel++) {
        memset(sums, 0, (size_t)r->taps * sizeof *sums);
        for (int64_t n = 0; n < r->batch; n++) {
            int64_t plane = n * r->out + channel;
            load_source(job, job->x + plane * r->down.in * r->across.in, source);
            load_slopes(job, job->dy + plane * r->down.out * r->across.out, run);
            job->kernels->flat_weigh(&(struct conv_flat){
                .x = source,
                .offsets = job->offsets,
                .taps = r->taps,
                .count = job->run,
                .w = sums,
                .y = run,
            });
        }
        float *dw = job->dw + channel * r->taps;
        for (int64_t k = 0; k < r->taps; k++)
            dw[k] = job->accumulate ? dw[k] + sums[k] : sums[k];
    }
}

void conv_planes_sum(const struct call *call, const struct conv_kernels *kernels,
                     const struct conv_relation *relation)
{
    struct job_planes job = {
        .kernels = kernels,
        .relation = *relation,
        .x = call->data[0],
        .w = call->data[1],
        .y = call->data[call->op->inputs],
    };
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    list_taps(&job);
    conv_after_of(call, relation->out, &job.after);
    int64_t planes = relation->batch * relation->out, flop = 2 * planes * job.run * relation->taps;
    pool_run(call->pool, team_for_flop(call->pool, flop, planes), sum_member, &job);
}

void conv_planes_weigh(const struct call *call, const struct conv_kernels *kernels,
                       const struct conv_relation *relation)
{
    struct job_planes job = {
        .kernels = kernels,
        .relation = *relation,
        .x = call->data[0],
        .dy = call->data[1],
        .dw = call->data[2],
        .accumulate = call->op->attr.conv_dw.accumulate,
    };
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    list_taps(&job);
    int64_t flop = 2 * call->counts[1] * relation->taps;
    pool_run(call->pool, team_for_flop(call->pool, flop, relation->out), weigh_member, &job);
}

uint64_t conv_planes_bytes(const struct conv_kernels *kernels, const struct conv_relation *relation,
                           int threads)
{
    struct job_planes job = {.kernels = kernels, .relation = *relation};
    return lay_out(&job, threads, NULL);
}
