/* dense_backward.c: the gradients of a dense op over blocked weights, and its update: pieces of
 * some groups of outputs and a chunk of inputs, each used for dx and for the weights while it is in
 * L2.
 *
 * Each thread sums its own dx, and these are added in the order of the threads: with one number of
 * threads the bits are always the same. */
#include "backend/cpu/dense_update.h"
#include "backend/cpu/simd/dense/dense_loops.h"
#include "backend/cpu/team.h"

#include <string.h>

enum { GROUPS = 16 }; /* down which a pass goes at once: their weights of a chunk stay in L2 */

/* dy of a range of groups: [group][sample][8], zero beyond the outputs. */
static void pack_dy(const struct dense_job *job, int64_t first, int64_t last, float *dy)
{
    for (int64_t from = 0; from < job->batch; from += DENSE_ABREAST)
        for (int64_t g = first; g < last; g++)
            for (int64_t n = from; n < job->batch && n < from + DENSE_ABREAST; n++) {
                int64_t o = g * BLOCKED_ROWS, have = job->out - o;
                const float *row = job->dy + n * job->out + o;
                float *to = dy + ((g - first) * job->batch + n) * BLOCKED_ROWS;
                if (have >= BLOCKED_ROWS)
                    memcpy(to, row, BLOCKED_ROWS * sizeof *to);
                else
                    for (int k = 0; k < BLOCKED_ROWS; k++)
                        to[k] = k < have ? row[k] : 0;
            }
}

/* A batch that fits in one tile: dx and the update in one pass. */
static void step_piece(const struct dense_job *job, struct dense_piece piece, int64_t vectors)
{
    if (piece.batch <= DENSE_STREAM) {
        for (int64_t g = piece.groups - 1; g >= 0; g--) {
            struct dense_piece group = piece;
            group.w += g * piece.group_floats;
            group.dy += g * BLOCKED_ROWS * piece.batch;
            job->kernels->stream[piece.batch](&group, vectors);
        }
        return;
    }
    for (int64_t v = 0; v < vectors; v++) {
        job->kernels->step[piece.batch](&piece);
        piece.w += BLOCKED_ROWS * BLOCKED_LANES;
        piece.x += piece.batch * BLOCKED_LANES;
        piece.dx += piece.batch * BLOCKED_LANES;
    }
}

/* Of so many vectors that are left the next tile takes three, or two: one alone would be bound by
 * loads. */
static int64_t next_tile(int64_t left)
{
    return left == DENSE_LANES || left > DENSE_LANES + 1 ? DENSE_LANES : left > 1 ? 2 : left;
}

/* Meanwhile the piece below comes into L2. */
static void back_piece(const struct dense_job *job, const struct dense_piece *piece,
                       int64_t vectors)
{
    const int64_t lines = piece->groups * BLOCKED_ROWS * BLOCKED_LANES;
    const float *fetch = piece->w - piece->groups * piece->group_floats;
    int64_t tile, samples;
    for (int64_t v = 0; v < vectors; v += tile) {
        tile = next_tile(vectors - v);
        for (int64_t n = 0; n < piece->batch; n += samples, fetch += lines) {
            samples = even_part(piece->batch, DENSE_SAMPLES, n);
            const float *w = piece->w + v * BLOCKED_ROWS * BLOCKED_LANES;
            job->kernels->back[tile][samples](w, piece->group_floats, piece->groups,
                                              piece->dy + n * BLOCKED_ROWS,
                                              piece->dx + (v * piece->batch + n) * BLOCKED_LANES,
                                              piece->batch, fetch < piece->w ? fetch : w);
        }
    }
}

static void outer_piece(const struct dense_job *job, const struct dense_piece *piece,
                        int64_t vectors)
{
    int64_t tile;
    for (int64_t v = 0; v < vectors; v += tile) {
        tile = next_tile(vectors - v);
        for (int64_t g = 0; g < piece->groups; g++)
            job->outer[tile](piece->w + g * piece->group_floats + v * BLOCKED_ROWS * BLOCKED_LANES,
                             piece->groups * piece->group_floats,
                             piece->dy + g * BLOCKED_ROWS * piece->batch,
                             piece->x + v * piece->batch * BLOCKED_LANES, piece->batch);
    }
}

/* The gradient of one group after the other stays in L1 until the optimiser has taken it, which
 * finds the weights in L2: of weights and states each byte is read and written once. */
static void update_piece(const struct dense_job *job, const struct dense_piece *piece,
                         int64_t vectors, float *gradient, struct dense_update *update)
{
    for (int64_t g = piece->groups - 1; g >= 0; g--) {
        int64_t first = piece->w - job->w + g * piece->group_floats;
        struct dense_piece group = {
            .w = job->sums ? job->sums + first : gradient,
            .group_floats = piece->group_floats,
            .groups = 1,
            .dy = piece->dy + g * BLOCKED_ROWS * piece->batch,
            .x = piece->x,
            .batch = piece->batch,
        };
        outer_piece(job, &group, vectors);
        if (job->last)
            job->kernels->update(dense_update_at(update, first, group.w, piece->group_floats),
                                 piece->group_floats);
    }
}

static void update_bias(const struct dense_job *job, int64_t first, int64_t last, const float *dy)
{
    for (int64_t g = first; g < last; g++) {
        float sum[BLOCKED_ROWS] = {0};
        for (int64_t n = 0; n < job->batch; n++, dy += BLOCKED_ROWS)
            for (int r = 0; r < BLOCKED_ROWS; r++)
                sum[r] += dy[r];
        for (int64_t r = 0; r < BLOCKED_ROWS && g * BLOCKED_ROWS + r < job->out; r++)
            job->bias[g * BLOCKED_ROWS + r] += job->scale * sum[r];
    }
}

/* This thread's groups: its part of dx, as [vector][sample][16], and the weights' gradient. A piece
 * of the weights is used for both while it is in L2. Chunks and groups come in descending order:
 * what the forward pass read last is still in the cache. */
static void backward_member(void *context, int member, int members)
{
    const struct dense_job *job = context;
    const int64_t batch = job->batch, chunk = blocked_chunk(job->in);
    float *dxs = dense_memory(job, member);
    float *xs = dxs + batch * blocked_up(job->in, BLOCKED_LANES);
    float *gradient = xs + batch * chunk, *dy = gradient + BLOCKED_ROWS * chunk;
    float *w = job->target ? job->target : job->w;
    struct dense_update update;
    long first, last;
    if (job->update)
        dense_update_begin(&update, job->update);
    pool_share(dense_groups(job), 1, member, members, &first, &last);
    pack_dy(job, first, last, dy);
    if (job->dx)
        memset(dxs, 0, (size_t)(batch * blocked_up(job->in, BLOCKED_LANES)) * sizeof *dxs);
    for (int64_t from = (job->in - 1) / chunk * chunk; from >= 0; from -= chunk) {
        int64_t width = blocked_width(job->in, from), vectors = width / BLOCKED_LANES, count;
        if (job->outer)
            dense_pack_x(job->x, job->in, from, width, batch, job->scale, xs);
        for (int64_t end = last; end > first; end -= count) {
            count = even_part(last - first, GROUPS, last - end);
            struct dense_piece piece = {
                .w = w + (from * dense_groups(job) + (end - count) * width) * BLOCKED_ROWS,
                .group_floats = BLOCKED_ROWS * width,
                .groups = count,
                .dy = dy + (end - count - first) * BLOCKED_ROWS * batch,
                .x = xs,
                .dx = dxs + from * batch,
                .batch = batch,
                .shrink = job->shrink,
            };
            if (job->dx && job->target && batch <= DENSE_TILE) {
                step_piece(job, piece, vectors);
                continue;
            }
            if (job->dx)
                back_piece(job, &piece, vectors);
            if (job->update)
                update_piece(job, &piece, vectors, gradient, &update);
            else if (job->outer)
                outer_piece(job, &piece, vectors);
        }
    }
    if (job->bias)
        update_bias(job, first, last, dy);
}

/* One sample's vector of dx from input i on: the threads' parts, in their order. */
static void sum_vector(const struct dense_job *job, int64_t n, int64_t i)
{
    int64_t width = job->in - i < BLOCKED_LANES ? job->in - i : BLOCKED_LANES;
    float sum[BLOCKED_LANES];
    memcpy(sum, dense_memory(job, 0) + i * job->batch + n * BLOCKED_LANES, sizeof sum);
    for (int m = 1; m < job->members; m++) {
        const float *part = dense_memory(job, m) + i * job->batch + n * BLOCKED_LANES;
        for (int k = 0; k < BLOCKED_LANES; k++)
            sum[k] += part[k];
    }
    for (int64_t k = 0; job->b && k < width; k++)
        sum[k] += job->b[i + k];
    if (width == BLOCKED_LANES)
        memcpy(job->dx + n * job->in + i, sum, sizeof sum);
    else
        memcpy(job->dx + n * job->in + i, sum, (size_t)width * sizeof *sum);
}

/* Adds up dx for a range of samples. */
static void sum_member(void *context, int member, int members)
{
    const struct dense_job *job = context;
    long first, last;
    pool_share(job->batch, 1, member, members, &first, &last);
    for (int64_t from = first; from < last; from += DENSE_ABREAST)
        for (int64_t i = 0; i < job->in; i += BLOCKED_LANES)
            for (int64_t n = from; n < last && n < from + DENSE_ABREAST; n++)
                sum_vector(job, n, i);
    dense_finish(job, job->dx + first * job->in, (last - first) * job->in);
}

void dense_backward(const struct call *call, const struct dense_job *whole)
{
    for (int64_t n = 0; n < whole->batch; n += DENSE_BLOCK) {
        struct dense_job job = *whole;
        job.batch = job.batch - n < DENSE_BLOCK ? job.batch - n : DENSE_BLOCK;
        job.dy += n * job.out;
        if (job.x)
            job.x += n * job.in;
        if (job.dx)
            job.dx += n * job.in;
        if (n && job.outer == job.kernels->outer_set)
            job.outer = job.kernels->outer_add;
        job.last = n + job.batch == whole->batch;
        dense_run(call, &job, backward_member);
        int64_t bytes = job.batch * job.in * (int64_t)sizeof(float) * (job.members + 1);
        if (job.dx)
            pool_run(call->pool, team_for_bytes(call->pool, bytes, job.batch), sum_member, &job);
    }
}
