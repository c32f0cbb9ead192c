/* dense_blocked.c: the dense family over blocked weights: loops over blocks of samples, chunks of
 * inputs and groups of outputs, and the threads that share them. What an ISA does differently is in
 * its struct dense_kernels.
 *
 * Threads take ranges of output groups, the same in every pass, so each finds its weights in its
 * own cache. In a backward pass each sums its own dx, and these are added in the order of the
 * threads: with one number of threads the bits are always the same. */
#include "backend/cpu/dense_update.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/blocked.h"
#include "backend/cpu/simd/dense_shared.h"
#include "backend/cpu/simd/fills.h"
#include "backend/cpu/simd/team.h"
#include "base/pool.h"

#include <string.h>

enum {
    SAMPLES = 192, /* taken together: their inputs of a chunk and a few groups' weights fit in L2 */
    ABREAST = 8, /* of them when they are packed: so many rows are read, whole lines are written */
    L1_VECTORS = 512, /* of inputs that stay there while weights pass */
    GROUPS = 16, /* down which a backward pass goes at once: their weights of a chunk stay in L2 */
};

/* One dense op, whichever: what every thread needs. */
struct job_dense {
    const struct dense_kernels *kernels;
    int64_t batch, in, out;
    const float *x;  /* [n, in] */
    float *w;        /* blocked [in, out] */
    const float *b;  /* forward: [out] or NULL; transposed: [in] or NULL */
    float *y;        /* [n, out] */
    const float *dy; /* [n, out] */
    float *dx;       /* [n, in] or NULL */
    int32_t activation;
    /* The weight's gradient: what takes it, by which kernels, times what. NULL: there is none. */
    float *target;
    dense_outer *const *outer;
    float scale, shrink;
    float *bias; /* takes its own as target does, or NULL */
    /* An optimiser takes the weight's gradient instead. Of several blocks of samples the last
     * updates, and sums them [in, out], blocked; of one there is no such place. */
    const struct call *update;
    float *sums;
    bool last;
    int members;
    char *workspace;
    uint64_t member_bytes;
};

static int64_t groups_of(const struct job_dense *job)
{
    return blocked_up(job->out, BLOCKED_ROWS) / BLOCKED_ROWS;
}

/* Floats a thread needs. Forward: x of a chunk, turned and not, and y turned. Backward: x of a
 * chunk, dx, dy, and a group's gradient. */
static uint64_t member_floats(int64_t batch, int64_t in, int64_t out)
{
    int64_t samples = blocked_up(batch < SAMPLES ? batch : SAMPLES, BLOCKED_LANES);
    int64_t padded_in = blocked_up(in, BLOCKED_LANES), padded_out = blocked_up(out, BLOCKED_LANES);
    return (uint64_t)((samples + DENSE_TILE + BLOCKED_ROWS) * blocked_chunk(in) +
                      samples * (padded_in + padded_out));
}

static uint64_t dense_workspace(const struct program *program, const struct op *op, int threads)
{
    const struct shape *x = &program->tensors[op_input(program, op, 0)].shape;
    int64_t in = 0, out = 0;
    uint64_t sums = 0;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int32_t tensor = program->operands[op->first + i];
        if (tensor >= 0 && program->tensors[tensor].matrix) {
            in = program->tensors[tensor].shape.dim[0];
            out = program->tensors[tensor].shape.dim[1];
            if (op->kind == OP_dense_update && x->dim[0] > SAMPLES)
                sums = blocked_bytes(&program->tensors[tensor].shape);
        }
    }
    return (uint64_t)threads * member_floats(x->dim[0], in, out) * sizeof(float) + sums;
}

static float *member_memory(const struct job_dense *job, int member)
{
    return (float *)(job->workspace + (uint64_t)member * job->member_bytes);
}

/* xs[vector][sample][16] = scale·x, zero where the input ends. */
static void pack_x(const float *x, int64_t in, int64_t from, int64_t width, int64_t samples,
                   float scale, float *xs)
{
    for (int64_t first = 0; first < samples; first += ABREAST)
        for (int64_t v = 0; v < width / BLOCKED_LANES; v++)
            for (int64_t n = first; n < samples && n < first + ABREAST; n++) {
                float *to = xs + (v * samples + n) * BLOCKED_LANES;
                int64_t i = from + v * BLOCKED_LANES, have = in - i;
                const float *row = x + n * in + i;
                if (have >= BLOCKED_LANES)
                    for (int k = 0; k < BLOCKED_LANES; k++)
                        to[k] = scale * row[k];
                else
                    for (int k = 0; k < BLOCKED_LANES; k++)
                        to[k] = k < have ? scale * row[k] : 0;
            }
}

/* y = f(y) */
static void finish(const struct job_dense *job, float *y, int64_t count)
{
    if (job->activation != ACTIVATION_NONE)
        job->kernels->activate(job->activation, y, y, count);
}

/* Samples on their way forward through a chunk of the inputs. The first `lanes` are turned, so that
 * vectors run along the samples; the rest, too few to fill a vector, are dot products. */
struct forward {
    const float *x;
    float *y;
    int64_t lanes, vectors, rest; /* samples, in so many vectors; samples */
    float *xt, *xs;               /* inputs: turned, and of the rest */
    float *ys;                    /* sums: [group][tile][8 rows][samples of the tile] */
    float *sums;                  /* sums of the rest: [group][8 rows][sample] */
    int64_t from, width;          /* the chunk's inputs */
};

static void pack_inputs(const struct job_dense *job, const struct forward *block)
{
    const int64_t L = job->kernels->lanes_width, from = block->from;
    int64_t have = job->in - from < block->width ? job->in - from : block->width, tile;
    for (int64_t v = 0; v < block->vectors; v += tile) {
        tile = even_part(block->vectors, DENSE_LANES, v);
        int64_t n = v * L, samples = block->lanes - n < tile * L ? block->lanes - n : tile * L;
        float *to = block->xt + n * block->width;
        job->kernels->turn(block->x + n * job->in + from, job->in, samples, have, to, tile * L);
        memset(to + have * tile * L, 0, (size_t)((block->width - have) * tile * L) * sizeof *to);
    }
    if (block->rest)
        pack_x(block->x + block->lanes * job->in, job->in, from, block->width, block->rest, 1,
               block->xs);
}

static const float *group_weights(const struct job_dense *job, int64_t from, int64_t group)
{
    return job->w + (from * groups_of(job) + group * blocked_width(job->in, from)) * BLOCKED_ROWS;
}

/* The rest's dot products with a group, added to what earlier chunks gave. */
static void dot_rest(const struct job_dense *job, const struct forward *block, int64_t group,
                     float *sums)
{
    float more[BLOCKED_ROWS * DENSE_TILE], *to = block->from == 0 ? sums : more;
    job->kernels->dot[block->rest](group_weights(job, block->from, group), block->xs,
                                   block->width / BLOCKED_LANES, to);
    for (int64_t k = 0; to == more && k < BLOCKED_ROWS * block->rest; k++)
        sums[k] += more[k];
}

/* A group's outputs are complete: to their places in y, those that were turned finished. */
static void store_group(const struct job_dense *job, const struct forward *block, int64_t o,
                        const float *bias, float *ys, const float *sums)
{
    const int64_t L = job->kernels->lanes_width;
    int64_t rows = job->out - o < BLOCKED_ROWS ? job->out - o : BLOCKED_ROWS, tile;
    finish(job, ys, block->vectors * L * BLOCKED_ROWS);
    for (int64_t v = 0; v < block->vectors; v += tile) {
        tile = even_part(block->vectors, DENSE_LANES, v);
        int64_t n = v * L, samples = block->lanes - n < tile * L ? block->lanes - n : tile * L;
        job->kernels->turn(ys + n * BLOCKED_ROWS, tile * L, rows, samples,
                           block->y + n * job->out + o, job->out);
    }
    for (int64_t n = 0; n < block->rest; n++)
        for (int64_t r = 0; r < rows; r++)
            block->y[(block->lanes + n) * job->out + o + r] = bias[r] + sums[r * block->rest + n];
}

static void forward_group(const struct job_dense *job, const struct forward *block, int64_t group,
                          float *ys, float *sums)
{
    const int64_t L = job->kernels->lanes_width, o = group * BLOCKED_ROWS;
    float bias[BLOCKED_ROWS] = {0};
    int64_t tile;
    for (int64_t r = 0; job->b && r < BLOCKED_ROWS && o + r < job->out; r++)
        bias[r] = job->b[o + r];
    for (int64_t v = 0; v < block->vectors; v += tile) {
        tile = even_part(block->vectors, DENSE_LANES, v);
        job->kernels->lanes[tile](group_weights(job, block->from, group),
                                  block->xt + v * L * block->width, block->width / BLOCKED_LANES,
                                  block->from == 0 ? bias : NULL, ys + v * L * BLOCKED_ROWS);
    }
    if (block->rest)
        dot_rest(job, block, group, sums);
    if (block->from + block->width >= job->in)
        store_group(job, block, o, bias, ys, sums);
}

static void forward_block(const struct job_dense *job, struct forward *block, int64_t first,
                          int64_t last)
{
    const int64_t L = job->kernels->lanes_width;
    for (block->from = 0; block->from < job->in; block->from += block->width) {
        block->width = blocked_width(job->in, block->from);
        pack_inputs(job, block);
        for (int64_t g = first; g < last; g++)
            forward_group(job, block, g,
                          block->ys + (g - first) * BLOCKED_ROWS * block->vectors * L,
                          block->sums + (g - first) * BLOCKED_ROWS * block->rest);
    }
}

/* The dot products with the groups from `first` on, in `parts` parts of `groups` each. */
static void dot_strip(const struct job_dense *job, struct dense_strip *strip, int64_t chunk,
                      int64_t first, int64_t groups, int parts, int64_t samples, float *sums)
{
    for (int p = 0; p < parts; p++)
        for (int64_t c = 0; c < strip->chunks; c++)
            strip->w[p][c] = group_weights(job, (chunk + c) * strip->vectors * BLOCKED_LANES,
                                           first + p * groups);
    if (parts == 1)
        job->kernels->dot_few[samples](strip, groups, sums);
    else
        job->kernels->dot_pair(strip, groups, sums);
}

/* Few samples: their inputs meet several chunks at once, as many as leave them in L1, and where
 * these are few in the first half of the outputs and in the second. */
static void forward_few(const struct job_dense *job, const struct forward *block, int64_t first,
                        int64_t last)
{
    const int64_t chunk = blocked_chunk(job->in), chunks = (job->in + chunk - 1) / chunk;
    const int64_t samples = block->rest, groups = last - first,
                  end = job->out - first * BLOCKED_ROWS;
    struct dense_strip strip = {.xs = block->xs, .vectors = chunk / BLOCKED_LANES};
    float *sums = block->xs + DENSE_CHUNKS * samples * chunk; /* [group][8][sample] */
    int64_t most = L1_VECTORS / (strip.vectors * samples);
    most = most < DENSE_CHUNKS ? most : DENSE_CHUNKS;
    memset(sums, 0, (size_t)(groups * BLOCKED_ROWS * samples) * sizeof *sums);
    for (int64_t c = 0; c < chunks; c += strip.chunks) {
        strip.chunks = even_part(chunks, most, c);
        int64_t last_width = blocked_width(job->in, (c + strip.chunks - 1) * chunk);
        strip.last = last_width / BLOCKED_LANES;
        pack_x(block->x, job->in, c * chunk, (strip.chunks - 1) * chunk + last_width, samples, 1,
               block->xs);
        bool both = samples == 1 && job->kernels->dot_pair && 2 * strip.chunks <= DENSE_CHUNKS;
        int64_t half = both ? groups / 2 : 0;
        if (half)
            dot_strip(job, &strip, c, first, half, 2, samples, sums);
        dot_strip(job, &strip, c, first + 2 * half, groups - 2 * half, 1, samples,
                  sums + 2 * half * BLOCKED_ROWS);
    }
    for (int64_t k = 0; k < groups * BLOCKED_ROWS && k < end; k++)
        for (int64_t n = 0; n < samples; n++) {
            int64_t o = first * BLOCKED_ROWS + k;
            float sum = sums[k * samples + n];
            block->y[n * job->out + o] = job->b ? job->b[o] + sum : sum;
        }
}

/* Is a block of so many samples bound by memory, and are there several chunks to read at once? */
static bool is_few(const struct job_dense *job, int64_t samples)
{
    return samples <= DENSE_FEW && job->kernels->dot_few[samples] &&
           (samples == 1 || blocked_chunk(job->in) < job->in);
}

static void forward_member(void *context, int member, int members)
{
    const struct job_dense *job = context;
    const int64_t L = job->kernels->lanes_width, chunk = blocked_chunk(job->in);
    long first, last;
    pool_share(groups_of(job), 1, member, members, &first, &last);
    for (int64_t n = 0; n < job->batch; n += SAMPLES) {
        int64_t samples = job->batch - n < SAMPLES ? job->batch - n : SAMPLES;
        struct forward block = {.x = job->x + n * job->in, .y = job->y + n * job->out};
        block.vectors = samples <= DENSE_TILE ? 0 : samples / L;
        block.rest = samples - block.vectors * L;
        if (samples > DENSE_TILE && 3 * block.rest > 2 * L) { /* nearly a vector */
            block.vectors++;
            block.rest = 0;
        }
        block.lanes = samples - block.rest;
        block.xs = member_memory(job, member);
        block.xt = block.xs + DENSE_TILE * chunk;
        block.ys = block.xt + block.vectors * L * chunk;
        block.sums = block.ys + block.vectors * L * (last - first) * BLOCKED_ROWS;
        if (is_few(job, samples))
            forward_few(job, &block, first, last);
        else
            forward_block(job, &block, first, last);
        int64_t o = first * BLOCKED_ROWS, end = last * BLOCKED_ROWS;
        end = end < job->out ? end : job->out;
        for (int64_t k = block.lanes; o < end && k < samples; k++)
            finish(job, block.y + k * job->out + o, end - o);
    }
}

/* Runs the job on as many threads as it is worth. */
static void run_dense(const struct call *call, struct job_dense *job, pool_task *task)
{
    int64_t weights = job->in * job->out, flop = 2 * job->batch * weights;
    int by_bytes = team_for_bytes(call->pool, weights * (int64_t)sizeof(float), groups_of(job));
    int by_flop = team_for_flop(call->pool, flop, groups_of(job));
    job->members = by_bytes > by_flop ? by_bytes : by_flop;
    job->workspace = call->workspace;
    job->member_bytes = member_floats(job->batch, job->in, job->out) * sizeof(float);
    pool_run(call->pool, job->members, task, job);
}

static void run_forward(const struct call *call, const struct dense_kernels *kernels)
{
    struct job_dense job = {
        .kernels = kernels,
        .x = call->data[0],
        .w = call->data[1],
        .b = call->data[2],
        .y = call->data[3],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[1]->shape.dim[0],
        .out = call->tensors[1]->shape.dim[1],
        .activation = call->op->attr.dense.activation,
    };
    run_dense(call, &job, forward_member);
}

/* dy of a range of groups: [group][sample][8], zero beyond the outputs. */
static void pack_dy(const struct job_dense *job, int64_t first, int64_t last, float *dy)
{
    for (int64_t from = 0; from < job->batch; from += ABREAST)
        for (int64_t g = first; g < last; g++)
            for (int64_t n = from; n < job->batch && n < from + ABREAST; n++) {
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
static void step_piece(const struct job_dense *job, struct dense_piece piece, int64_t vectors)
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
static void back_piece(const struct job_dense *job, const struct dense_piece *piece,
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

static void outer_piece(const struct job_dense *job, const struct dense_piece *piece,
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
static void update_piece(const struct job_dense *job, const struct dense_piece *piece,
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

static void update_bias(const struct job_dense *job, int64_t first, int64_t last, const float *dy)
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
    const struct job_dense *job = context;
    const int64_t batch = job->batch, chunk = blocked_chunk(job->in);
    float *dxs = member_memory(job, member);
    float *xs = dxs + batch * blocked_up(job->in, BLOCKED_LANES);
    float *gradient = xs + batch * chunk, *dy = gradient + BLOCKED_ROWS * chunk;
    float *w = job->target ? job->target : job->w;
    struct dense_update update;
    long first, last;
    if (job->update)
        dense_update_begin(&update, job->update);
    pool_share(groups_of(job), 1, member, members, &first, &last);
    pack_dy(job, first, last, dy);
    if (job->dx)
        memset(dxs, 0, (size_t)(batch * blocked_up(job->in, BLOCKED_LANES)) * sizeof *dxs);
    for (int64_t from = (job->in - 1) / chunk * chunk; from >= 0; from -= chunk) {
        int64_t width = blocked_width(job->in, from), vectors = width / BLOCKED_LANES, count;
        if (job->outer)
            pack_x(job->x, job->in, from, width, batch, job->scale, xs);
        for (int64_t end = last; end > first; end -= count) {
            count = even_part(last - first, GROUPS, last - end);
            struct dense_piece piece = {
                .w = w + (from * groups_of(job) + (end - count) * width) * BLOCKED_ROWS,
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
static void sum_vector(const struct job_dense *job, int64_t n, int64_t i)
{
    int64_t width = job->in - i < BLOCKED_LANES ? job->in - i : BLOCKED_LANES;
    float sum[BLOCKED_LANES];
    memcpy(sum, member_memory(job, 0) + i * job->batch + n * BLOCKED_LANES, sizeof sum);
    for (int m = 1; m < job->members; m++) {
        const float *part = member_memory(job, m) + i * job->batch + n * BLOCKED_LANES;
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
    const struct job_dense *job = context;
    long first, last;
    pool_share(job->batch, 1, member, members, &first, &last);
    for (int64_t from = first; from < last; from += ABREAST)
        for (int64_t i = 0; i < job->in; i += BLOCKED_LANES)
            for (int64_t n = from; n < last && n < from + ABREAST; n++)
                sum_vector(job, n, i);
    finish(job, job->dx + first * job->in, (last - first) * job->in);
}

/* Of a large batch one block of samples after the other. */
static void run_backward(const struct call *call, const struct job_dense *whole)
{
    for (int64_t n = 0; n < whole->batch; n += SAMPLES) {
        struct job_dense job = *whole;
        job.batch = job.batch - n < SAMPLES ? job.batch - n : SAMPLES;
        job.dy += n * job.out;
        if (job.x)
            job.x += n * job.in;
        if (job.dx)
            job.dx += n * job.in;
        if (n && job.outer == job.kernels->outer_set)
            job.outer = job.kernels->outer_add;
        job.last = n + job.batch == whole->batch;
        run_dense(call, &job, backward_member);
        int64_t bytes = job.batch * job.in * (int64_t)sizeof(float) * (job.members + 1);
        if (job.dx)
            pool_run(call->pool, team_for_bytes(call->pool, bytes, job.batch), sum_member, &job);
    }
}

static void run_transposed(const struct call *call, const struct dense_kernels *kernels)
{
    struct job_dense job = {
        .kernels = kernels,
        .dy = call->data[0],
        .w = call->data[1],
        .b = call->data[2],
        .dx = call->data[3],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[1]->shape.dim[0],
        .out = call->tensors[1]->shape.dim[1],
        .activation = call->op->attr.dense_t.activation,
    };
    run_backward(call, &job);
}

static void run_outer(const struct call *call, const struct dense_kernels *kernels)
{
    struct job_dense job = {
        .kernels = kernels,
        .x = call->data[0],
        .dy = call->data[1],
        .target = call->data[2],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[0]->shape.dim[1],
        .out = call->tensors[1]->shape.dim[1],
        .scale = call->op->attr.outer.scale,
        .outer = call->op->attr.outer.accumulate ? kernels->outer_add : kernels->outer_set,
    };
    run_backward(call, &job);
}

/* Of several blocks of samples all dx come first, from the old weights. */
static void run_sgd(const struct call *call, const struct dense_kernels *kernels)
{
    struct job_dense job = {
        .kernels = kernels,
        .x = call->data[0],
        .dy = call->data[1],
        .w = call->data[2],
        .target = call->data[2],
        .bias = call->data[3],
        .scale = -*(const float *)call->data[4],
        .dx = call->data[7],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[2]->shape.dim[0],
        .out = call->tensors[2]->shape.dim[1],
        .outer = kernels->outer_add,
    };
    if (job.dx && job.batch > SAMPLES) {
        struct job_dense back = job;
        back.target = NULL;
        back.outer = NULL;
        back.bias = NULL;
        run_backward(call, &back);
        job.dx = NULL;
    }
    run_backward(call, &job);
}

/* Decay is one multiplication more in the pass that sgd without it has for few samples. */
static void run_update(const struct call *call, const struct dense_kernels *kernels)
{
    struct job_dense job = {
        .kernels = kernels,
        .x = call->data[0],
        .dy = call->data[1],
        .w = call->data[2],
        .dx = call->data[8],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[2]->shape.dim[0],
        .out = call->tensors[2]->shape.dim[1],
        .scale = 1,
        .outer = kernels->outer_set,
        .update = call,
    };
    if (call->op->attr.dense_update.optimiser == OP_sgd && job.dx && job.batch <= DENSE_STREAM) {
        float rate = *(const float *)call->data[3];
        job.scale = -rate;
        job.shrink = rate * call->op->attr.dense_update.decay;
        job.target = job.w;
        job.outer = kernels->outer_add;
        job.update = NULL;
    }
    if (job.batch > SAMPLES)
        job.sums = (float *)call->workspace +
                   (uint64_t)pool_at_once(call->pool) * member_floats(job.batch, job.in, job.out);
    run_backward(call, &job);
}

#define ENTRIES(isa)                                                                               \
    static void dense_##isa(const struct call *call)                                               \
    {                                                                                              \
        run_forward(call, &dense_kernels_##isa);                                                   \
    }                                                                                              \
    static void dense_t_##isa(const struct call *call)                                             \
    {                                                                                              \
        run_transposed(call, &dense_kernels_##isa);                                                \
    }                                                                                              \
    static void outer_##isa(const struct call *call)                                               \
    {                                                                                              \
        run_outer(call, &dense_kernels_##isa);                                                     \
    }                                                                                              \
    static void dense_sgd_##isa(const struct call *call)                                           \
    {                                                                                              \
        run_sgd(call, &dense_kernels_##isa);                                                       \
    }                                                                                              \
    static void dense_update_##isa(const struct call *call)                                        \
    {                                                                                              \
        run_update(call, &dense_kernels_##isa);                                                    \
    }                                                                                              \
    void dense_fill_##isa(struct kernel_table *table)                                              \
    {                                                                                              \
        table->blocked[OP_dense] =                                                                 \
            (struct kernel){"dense_f32_" #isa "_8x16", dense_##isa, dense_workspace};              \
        table->blocked[OP_dense_t] =                                                               \
            (struct kernel){"dense_t_f32_" #isa "_8x16", dense_t_##isa, dense_workspace};          \
        table->blocked[OP_outer] =                                                                 \
            (struct kernel){"outer_f32_" #isa "_8x16", outer_##isa, dense_workspace};              \
        table->blocked[OP_dense_sgd] =                                                             \
            (struct kernel){"dense_sgd_f32_" #isa "_8x16", dense_sgd_##isa, dense_workspace};      \
        table->blocked[OP_dense_update] = (struct kernel){"dense_update_f32_" #isa "_8x16",        \
                                                          dense_update_##isa, dense_workspace};    \
    }

ENTRIES(avx2)
ENTRIES(avx512)
