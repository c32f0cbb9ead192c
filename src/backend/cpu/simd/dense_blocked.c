/* dense_blocked.c: the dense family over blocked weights: loops over chunks of inputs, tiles of the
 * batch and groups of outputs, and the threads that share them. What an ISA does differently is in
 * its struct dense_kernels. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/blocked.h"
#include "backend/cpu/simd/dense_shared.h"
#include "backend/cpu/simd/fills.h"
#include "base/pool.h"

#include <string.h>

/* One dense op, whichever: what every thread needs. */
struct job_dense {
    const struct dense_kernels *kernels;
    const float *x;  /* [n, in] */
    float *w;        /* blocked [in, out] */
    float *dw;       /* blocked: outer */
    const float *b;  /* [out] or NULL */
    float *bias;     /* the same, to be updated */
    float *y;        /* [n, out] */
    const float *dy; /* [n, out] */
    float *dx;       /* [n, in] or NULL */
    int64_t batch, in, out;
    int32_t activation;
    float rate, scale;
    bool update, accumulate;
    char *workspace;
    uint64_t member_bytes;
};

enum { BYTES_PER_THREAD = 512 << 10 }; /* of weights: less is not worth waking one up */

static int64_t tile_of(int64_t batch, int64_t from)
{
    /* equal tiles: 13 samples are 7 and 6, not 12 and 1 */
    int64_t tiles = (batch + DENSE_TILE - 1) / DENSE_TILE, size = (batch + tiles - 1) / tiles;
    return batch - from < size ? batch - from : size;
}

/* Floats a thread needs: a chunk of x, all of its dx, all of dy by rows, the sums of one group. */
static uint64_t member_floats(int64_t batch, int64_t in, int64_t out)
{
    int64_t padded_in = blocked_up(in, BLOCKED_LANES), padded_out = blocked_up(out, BLOCKED_ROWS);
    return (uint64_t)(batch * BLOCKED_CHUNK + batch * padded_in + batch * padded_out + 256);
}

static uint64_t dense_workspace(const struct program *program, const struct op *op, int threads)
{
    const struct shape *x = &program->tensors[op_input(program, op, 0)].shape;
    int64_t in = 0, out = 0;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int32_t tensor = program->operands[op->first + i];
        if (tensor >= 0 && program->tensors[tensor].matrix) {
            in = program->tensors[tensor].shape.dim[0];
            out = program->tensors[tensor].shape.dim[1];
        }
    }
    return (uint64_t)threads * (member_floats(x->dim[0], in, out) * sizeof(float) + 128);
}

static float *member_memory(const struct job_dense *job, int member)
{
    return (float *)(job->workspace + (uint64_t)member * job->member_bytes);
}

/* xs[vector][sample][16], zero where the input ends. */
static void pack_tile(const float *x, int64_t in, int64_t from, int64_t width, int64_t samples,
                      float *xs)
{
    for (int64_t v = 0; v < width / BLOCKED_LANES; v++)
        for (int64_t n = 0; n < samples; n++) {
            float *to = xs + (v * samples + n) * BLOCKED_LANES;
            int64_t i = from + v * BLOCKED_LANES, have = in - i;
            if (have >= BLOCKED_LANES) {
                memcpy(to, x + n * in + i, BLOCKED_LANES * sizeof *to);
                continue;
            }
            memset(to, 0, BLOCKED_LANES * sizeof *to);
            memcpy(to, x + n * in + i, (size_t)have * sizeof *to);
        }
}

/* y = f(y) */
static void finish_row(const struct job_dense *job, float *y, int64_t count)
{
    if (job->activation != ACTIVATION_NONE)
        job->kernels->activate(job->activation, y, y, count);
}

/* Adds a group's sums [8][samples] to y; the first chunk starts from the bias. */
static void add_sums(const struct job_dense *job, const float *sums, int64_t group, int64_t sample,
                     int64_t samples, bool first)
{
    int64_t o = group * BLOCKED_ROWS;
    int64_t rows = job->out - o < BLOCKED_ROWS ? job->out - o : BLOCKED_ROWS;
    for (int64_t n = 0; n < samples; n++) {
        float *y = job->y + (sample + n) * job->out + o;
        for (int64_t r = 0; r < rows; r++) {
            float before = !first ? y[r] : job->b ? job->b[o + r] : 0;
            y[r] = before + sums[r * samples + n];
        }
    }
}

static void forward_member(void *context, int member, int members)
{
    const struct job_dense *job = context;
    const struct dense_kernels *kernels = job->kernels;
    int64_t groups = blocked_up(job->out, BLOCKED_ROWS) / BLOCKED_ROWS;
    long first_group, last_group;
    float *xs = member_memory(job, member);
    _Alignas(64) float sums[BLOCKED_ROWS * DENSE_TILE];
    pool_share(groups, 1, member, members, &first_group, &last_group);
    for (int64_t from = 0; from < job->in; from += BLOCKED_CHUNK) {
        int64_t width = blocked_width(job->in, from), tile;
        const float *chunk = job->w + from * groups * BLOCKED_ROWS;
        for (int64_t n = 0; n < job->batch; n += tile) {
            tile = tile_of(job->batch, n);
            pack_tile(job->x + n * job->in, job->in, from, width, tile, xs + n * BLOCKED_CHUNK);
        }
        for (int64_t g = first_group; g < last_group; g++)
            for (int64_t n = 0; n < job->batch; n += tile) {
                tile = tile_of(job->batch, n);
                kernels->dot[tile](chunk + g * BLOCKED_ROWS * width, xs + n * BLOCKED_CHUNK,
                                   width / BLOCKED_LANES, sums);
                add_sums(job, sums, g, n, tile, from == 0);
            }
    }
    int64_t o = first_group * BLOCKED_ROWS, end = last_group * BLOCKED_ROWS;
    end = end < job->out ? end : job->out;
    for (int64_t n = 0; o < end && n < job->batch; n++)
        finish_row(job, job->y + n * job->out + o, end - o);
}

/* Runs the job on as many threads as its weights are worth. */
static int run_dense(const struct call *call, struct job_dense *job, pool_task *task)
{
    uint64_t bytes = (uint64_t)job->in * (uint64_t)job->out * sizeof(float) *
                     (uint64_t)(job->batch < 8 ? 1 : job->batch / 4);
    int64_t groups = blocked_up(job->out, BLOCKED_ROWS) / BLOCKED_ROWS;
    int members = pool_threads(call->pool);
    if ((uint64_t)members > bytes / BYTES_PER_THREAD)
        members = bytes < 2 * BYTES_PER_THREAD ? 1 : (int)(bytes / BYTES_PER_THREAD);
    if (members > groups)
        members = (int)groups;
    job->workspace = call->workspace;
    job->member_bytes =
        (member_floats(job->batch, job->in, job->out) * sizeof(float) + 63) / 64 * 64;
    pool_run(call->pool, members, task, job);
    return members;
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

/* dy of a range of groups by rows: [row][sample] per tile, zero beyond the outputs. */
static void turn_dy(const struct job_dense *job, int64_t first_group, int64_t last_group,
                    float *turned)
{
    int64_t tile, o0 = first_group * BLOCKED_ROWS, rows = (last_group - first_group) * BLOCKED_ROWS;
    for (int64_t n = 0; n < job->batch; n += tile) {
        tile = tile_of(job->batch, n);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < tile; k++)
                turned[n * rows + r * tile + k] =
                    o0 + r < job->out ? job->dy[(n + k) * job->out + o0 + r] : 0;
    }
}

enum { ROW_BLOCK = 16 }; /* groups whose weights of one chunk stay in L2: 16 × 8 × 256 floats */

/* dx of one chunk for one tile; with update the tile is the whole batch. */
static void back_chunk(const struct job_dense *job, float *chunk, int64_t width, int64_t groups,
                       const float *dy, const float *xs, float *dxs, int64_t tile)
{
    const struct dense_kernels *kernels = job->kernels;
    int64_t vectors = width / BLOCKED_LANES, group_floats = BLOCKED_ROWS * width;
    if (job->update && tile <= DENSE_STREAM) {
        for (int64_t g = 0; g < groups; g++)
            kernels->stream[tile](chunk + g * group_floats, vectors, dy + g * BLOCKED_ROWS * tile,
                                  xs, dxs, job->rate);
        return;
    }
    for (int64_t g = 0; g < groups; g += ROW_BLOCK) {
        int64_t count = groups - g < ROW_BLOCK ? groups - g : ROW_BLOCK;
        for (int64_t v = 0; v < vectors; v++) {
            float *w = chunk + g * group_floats + v * BLOCKED_ROWS * BLOCKED_LANES;
            const float *x = xs + v * tile * BLOCKED_LANES;
            float *dx = dxs + v * tile * BLOCKED_LANES;
            const float *rows = dy + g * BLOCKED_ROWS * tile;
            if (job->update)
                kernels->step[tile](w, group_floats, count, rows, x, dx, job->rate);
            else
                kernels->back[tile](w, group_floats, count, rows, x, dx);
        }
    }
}

/* This thread's part of dx, in the form of xs: [tile][vector][sample][16] per chunk. */
static void backward_member(void *context, int member, int members)
{
    const struct job_dense *job = context;
    int64_t groups = blocked_up(job->out, BLOCKED_ROWS) / BLOCKED_ROWS, tile;
    int64_t padded_in = blocked_up(job->in, BLOCKED_LANES);
    long first, last;
    float *xs = member_memory(job, member), *dxs = xs + job->batch * BLOCKED_CHUNK;
    float *dy = dxs + job->batch * padded_in;
    pool_share(groups, 1, member, members, &first, &last);
    turn_dy(job, first, last, dy);
    memset(dxs, 0, (size_t)(job->batch * padded_in) * sizeof *dxs);
    for (int64_t from = 0; from < job->in; from += BLOCKED_CHUNK) {
        int64_t width = blocked_width(job->in, from);
        float *chunk = job->w + from * groups * BLOCKED_ROWS + first * BLOCKED_ROWS * width;
        for (int64_t n = 0; n < job->batch; n += tile) {
            tile = tile_of(job->batch, n);
            if (job->update)
                pack_tile(job->x + n * job->in, job->in, from, width, tile, xs);
            else
                memset(xs, 0, (size_t)(tile * width) * sizeof *xs);
            back_chunk(job, chunk, width, last - first, dy + n * (last - first) * BLOCKED_ROWS, xs,
                       dxs + n * padded_in + from * tile, tile);
        }
    }
}

/* Adds up the threads' parts of dx in their order. */
static void add_parts(const struct job_dense *job, int members, const float *bias)
{
    int64_t padded_in = blocked_up(job->in, BLOCKED_LANES), tile;
    for (int64_t n = 0; n < job->batch; n += tile) {
        tile = tile_of(job->batch, n);
        for (int64_t k = 0; k < tile; k++)
            for (int64_t i = 0; i < job->in; i++) {
                int64_t at = n * padded_in + i / BLOCKED_LANES * tile * BLOCKED_LANES +
                             k * BLOCKED_LANES + i % BLOCKED_LANES;
                float sum = 0;
                for (int m = 0; m < members; m++)
                    sum += member_memory(job, m)[job->batch * BLOCKED_CHUNK + at];
                job->dx[(n + k) * job->in + i] = bias ? sum + bias[i] : sum;
            }
        finish_row(job, job->dx + n * job->in, tile * job->in);
    }
}

static void run_transposed(const struct call *call, const struct dense_kernels *kernels)
{
    struct job_dense job = {
        .kernels = kernels,
        .dy = call->data[0],
        .w = call->data[1],
        .dx = call->data[3],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[1]->shape.dim[0],
        .out = call->tensors[1]->shape.dim[1],
        .activation = call->op->attr.dense_t.activation,
    };
    add_parts(&job, run_dense(call, &job, backward_member), call->data[2]);
}

/* Gradient of the weights over the whole batch, given to w or dw. */
static void outer_member(void *context, int member, int members)
{
    const struct job_dense *job = context;
    const struct dense_kernels *kernels = job->kernels;
    int64_t groups = blocked_up(job->out, BLOCKED_ROWS) / BLOCKED_ROWS;
    float *target = job->update ? job->w : job->dw;
    float scale = job->update ? job->rate : job->scale;
    void (*give)(float *, const float *, const float *, int64_t, float) =
        job->update       ? kernels->outer_step
        : job->accumulate ? kernels->outer_add
                          : kernels->outer_set;
    long first, last;
    float *xs = member_memory(job, member), *dy = xs + job->batch * BLOCKED_CHUNK;
    pool_share(groups, 1, member, members, &first, &last);
    for (int64_t g = first; g < last; g++) /* [group][sample][8 rows] */
        for (int64_t n = 0; n < job->batch; n++)
            for (int64_t r = 0; r < BLOCKED_ROWS; r++) {
                int64_t o = g * BLOCKED_ROWS + r;
                dy[((g - first) * job->batch + n) * BLOCKED_ROWS + r] =
                    o < job->out ? job->dy[n * job->out + o] : 0;
            }
    for (int64_t from = 0; from < job->in; from += BLOCKED_CHUNK) {
        int64_t width = blocked_width(job->in, from), vectors = width / BLOCKED_LANES;
        pack_tile(job->x, job->in, from, width, job->batch, xs);
        for (int64_t g = first; g < last; g++)
            for (int64_t v = 0; v < vectors; v++)
                give(target + (from * groups + g * width) * BLOCKED_ROWS +
                         v * BLOCKED_ROWS * BLOCKED_LANES,
                     dy + (g - first) * job->batch * BLOCKED_ROWS,
                     xs + v * job->batch * BLOCKED_LANES, job->batch, scale);
    }
}

static void run_outer(const struct call *call, const struct dense_kernels *kernels)
{
    struct job_dense job = {
        .kernels = kernels,
        .x = call->data[0],
        .dy = call->data[1],
        .dw = call->data[2],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[0]->shape.dim[1],
        .out = call->tensors[1]->shape.dim[1],
        .scale = call->op->attr.outer.scale,
        .accumulate = call->op->attr.outer.accumulate != 0,
    };
    run_dense(call, &job, outer_member);
}

static void update_bias(const struct job_dense *job)
{
    for (int64_t o = 0; job->bias && o < job->out; o++) {
        float sum = 0;
        for (int64_t n = 0; n < job->batch; n++)
            sum += job->dy[n * job->out + o];
        job->bias[o] -= job->rate * sum;
    }
}

/* A batch of one tile: one pass. A larger one: dx with the old weights, then the update. */
static void run_sgd(const struct call *call, const struct dense_kernels *kernels)
{
    struct job_dense job = {
        .kernels = kernels,
        .x = call->data[0],
        .dy = call->data[1],
        .w = call->data[2],
        .bias = call->data[3],
        .rate = *(const float *)call->data[4],
        .dx = call->data[7],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[2]->shape.dim[0],
        .out = call->tensors[2]->shape.dim[1],
    };
    if (job.dx) {
        job.update = job.batch <= DENSE_TILE;
        add_parts(&job, run_dense(call, &job, backward_member), NULL);
    }
    if (!job.update) {
        job.update = true;
        run_dense(call, &job, outer_member);
    }
    update_bias(&job);
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
    }

ENTRIES(avx2)
ENTRIES(avx512)
