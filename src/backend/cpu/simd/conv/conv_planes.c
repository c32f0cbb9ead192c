/* conv_planes.c: depthwise convolution, where each channel of the target is made of one channel of
 * the source: plane by plane, with pixels in lanes.
 *
 * A plane of the source is copied with its padding around it, and taken apart where rows or columns
 * are `move` apart: row by row of each remainder, all rows of one length. In that form a tap is an
 * offset, the same for all pixels, rows follow each other without a seam, and a plane is one run
 * over all of them (struct conv_flat): a few elements more between the rows are summed and not
 * used. Threads share planes (for the weights' gradient, channels): no sum is divided among them.
 */
#include "backend/cpu/simd/conv/conv_loops.h"
#include "backend/cpu/simd/workspace.h"
#include "backend/cpu/team.h"

#include <string.h>

enum { SLACK = 64 }; /* floats behind a plane that a last run of vectors may read */

/* Taking a plane apart and putting it together again takes as long as so many FLOP: for each of its
 * elements, and for itself (measured: 14 × 14 takes 165 ns, of which 40 are the sums, 7 × 7 95 of
 * 12). */
enum { ELEMENT_FLOP = 16, PLANE_FLOP = 4096 };

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

/* Of the elements `remainder`, remainder + move … along the axis, at most `reach`, those that are
 * in the image: how many, and the number of the first. The others are padding. */
static int64_t inside(const struct conv_axis *axis, int64_t remainder, int64_t reach,
                      int64_t *first)
{
    int64_t start = remainder + axis->low;
    int64_t before = start < 0 ? (-start + axis->move - 1) / axis->move : 0;
    int64_t place = start + before * axis->move;
    int64_t count = place < axis->in ? (axis->in - place - 1) / axis->move + 1 : 0;
    *first = before < reach ? before : reach;
    return count < reach - *first ? count : reach - *first;
}

/* A plane of the source in its form. What is padding is so in every plane, and was cleared once. */
static void load_source(const struct job_planes *job, const float *plane, float *source)
{
    const struct conv_axis *down = &job->relation.down, *across = &job->relation.across;
    for (int64_t i = 0; i < down->move; i++)
        for (int64_t j = 0; j < across->move; j++, source += job->rows * job->pitch) {
            int64_t top, left, rows = inside(down, i, job->rows, &top);
            int64_t columns = inside(across, j, job->pitch, &left);
            int64_t row = (top * down->move + i + down->low) * across->in;
            if (rows > 0 && columns > 0)
                job->kernels->pick_rows(plane + row + left * across->move + j + across->low,
                                        down->move * across->in, across->move, rows, columns,
                                        source + top * job->pitch + left, job->pitch);
        }
}

/* A phase's sums to their places in y; a second summand is met row by row. */
static void store_phase(const struct job_planes *job, int64_t phase, int64_t plane, float *sums)
{
    const struct conv_relation *r = &job->relation;
    const struct conv_axis *down = &r->down, *across = &r->across;
    int64_t i = phase / across->every, j = phase % across->every, channel = plane % r->out;
    int64_t rows = conv_axis_places(down, i), columns = conv_axis_places(across, j);
    int64_t place = (plane * down->out + i) * across->out + j, line = down->every * across->out;
    if (!job->after.add)
        job->kernels->finish(&job->after, channel, 0, sums, job->run, sums);
    for (int64_t a = 0; job->after.add && a < rows; a++)
        job->kernels->finish(&job->after, channel, place + a * line, sums + a * job->pitch, columns,
                             sums + a * job->pitch);
    if (across->every == 1)
        job->kernels->pick_rows(sums, job->pitch, 1, rows, columns, job->y + place, line);
    for (int64_t k = 0; across->every > 1 && k < rows * columns; k++)
        job->y[place + k / columns * line + k % columns * across->every] =
            sums[k / columns * job->pitch + k % columns];
}

/* What so many planes are worth. */
static int64_t flop_of(const struct job_planes *job, int64_t planes)
{
    int64_t sums = 2 * job->run * job->relation.taps;
    return planes * (sums + ELEMENT_FLOP * (job->run + job->source_floats) + PLANE_FLOP);
}

static void sum_member(void *context, int member, int members)
{
    const struct job_planes *job = context;
    const struct conv_relation *r = &job->relation;
    float *run = (float *)(job->members + (uint64_t)member * job->member_bytes);
    float *source = run + job->run, *weights = source + job->source_floats;
    long plane, last;
    pool_share(r->batch * r->out, 1, member, members, &plane, &last);
    memset(source, 0, (size_t)job->source_floats * sizeof *source);
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

static void wgrad_member(void *context, int member, int members)
{
    const struct job_planes *job = context;
    const struct conv_relation *r = &job->relation;
    float *run = (float *)(job->members + (uint64_t)member * job->member_bytes);
    float *source = run + job->run, *sums = source + job->source_floats;
    long channel, last;
    pool_share(r->out, 1, member, members, &channel, &last);
    memset(run, 0, (size_t)job->run * sizeof *run); /* between its rows it stays so */
    memset(source, 0, (size_t)job->source_floats * sizeof *source);
    for (; channel < last; channel++) {
        memset(sums, 0, (size_t)r->taps * sizeof *sums);
        for (int64_t n = 0; n < r->batch; n++) {
            int64_t plane = n * r->out + channel;
            load_source(job, job->x + plane * r->down.in * r->across.in, source);
            job->kernels->pick_rows(job->dy + plane * r->down.out * r->across.out, r->across.out, 1,
                                    r->down.out, r->across.out, run, job->pitch);
            job->kernels->flat_wgrad(&(struct conv_flat){
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
        .x = call->data[AT_conv_x],
        .w = call->data[AT_conv_w],
        .y = call->data[call->op->inputs],
    };
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    list_taps(&job);
    conv_after_of(call, relation->out, &job.after);
    int64_t planes = relation->batch * relation->out;
    pool_run(call->pool, team_for_flop(call->pool, flop_of(&job, planes), planes), sum_member,
             &job);
}

void conv_planes_wgrad(const struct call *call, const struct conv_kernels *kernels,
                       const struct conv_relation *relation)
{
    struct job_planes job = {
        .kernels = kernels,
        .relation = *relation,
        .x = call->data[AT_conv_dw_x],
        .dy = call->data[AT_conv_dw_dy],
        .dw = call->data[AT_conv_dw_dw],
        .accumulate = call->op->attr.conv_dw.accumulate,
    };
    lay_out(&job, pool_at_once(call->pool), call->workspace);
    list_taps(&job);
    int64_t flop = flop_of(&job, relation->batch * relation->out);
    pool_run(call->pool, team_for_flop(call->pool, flop, relation->out), wgrad_member, &job);
}

uint64_t conv_planes_bytes(const struct conv_kernels *kernels, const struct conv_relation *relation,
                           int threads)
{
    struct job_planes job = {.kernels = kernels, .relation = *relation};
    return lay_out(&job, threads, NULL);
}
