/* dense_forward.c: y = f(x·w + b) over blocked weights: blocks of samples, chunks of inputs, groups
 * of outputs. Samples that fill vectors are transposed, so that vectors run along them; few of them
 * are dot products, which the reading of the weights bounds. */
#include "backend/cpu/simd/dense/dense_loops.h"
#include "backend/cpu/team.h"

#include <string.h>

enum { L1_VECTORS = 512 }; /* of inputs that stay there while weights pass */

/* Samples on their way forward through a chunk of the inputs. The first `lanes` are transposed, so
 * that vectors run along the samples; the rest, too few to fill a vector, are dot products. */
struct forward {
    const float *x;
    float *y;
    int64_t lanes, vectors, rest; /* samples, in so many vectors; samples */
    float *xt, *xs;               /* inputs: transposed, and of the rest */
    float *ys;                    /* sums: [group][tile][8 rows][samples of the tile] */
    float *sums;                  /* sums of the rest: [group][8 rows][sample] */
    int64_t from, width;          /* the chunk's inputs */
};

static void pack_inputs(const struct dense_job *job, const struct forward *block)
{
    const int64_t L = job->kernels->lanes_width, from = block->from;
    int64_t have = job->in - from < block->width ? job->in - from : block->width, tile;
    for (int64_t v = 0; v < block->vectors; v += tile) {
        tile = even_part(block->vectors, DENSE_LANES, v);
        int64_t n = v * L, samples = block->lanes - n < tile * L ? block->lanes - n : tile * L;
        float *to = block->xt + n * block->width;
        job->kernels->transpose(block->x + n * job->in + from, job->in, samples, have, to,
                                tile * L);
        memset(to + have * tile * L, 0, (size_t)((block->width - have) * tile * L) * sizeof *to);
    }
    if (block->rest)
        dense_pack_x(block->x + block->lanes * job->in, job->in, from, block->width, block->rest, 1,
                     block->xs);
}

static const float *group_weights(const struct dense_job *job, int64_t from, int64_t group)
{
    return job->w +
           (from * dense_groups(job) + group * blocked_width(job->in, from)) * BLOCKED_ROWS;
}

/* The rest's dot products with a group, added to what earlier chunks gave. */
static void dot_rest(const struct dense_job *job, const struct forward *block, int64_t group,
                     float *sums)
{
    float more[BLOCKED_ROWS * DENSE_TILE], *to = block->from == 0 ? sums : more;
    job->kernels->dot[block->rest](group_weights(job, block->from, group), block->xs,
                                   block->width / BLOCKED_LANES, to);
    for (int64_t k = 0; to == more && k < BLOCKED_ROWS * block->rest; k++)
        sums[k] += more[k];
}

/* A group's outputs are complete: to their places in y, those that were transposed finished. */
static void store_group(const struct dense_job *job, const struct forward *block, int64_t o,
                        const float *bias, float *ys, const float *sums)
{
    const int64_t L = job->kernels->lanes_width;
    int64_t rows = job->out - o < BLOCKED_ROWS ? job->out - o : BLOCKED_ROWS, tile;
    dense_finish(job, ys, block->vectors * L * BLOCKED_ROWS);
    for (int64_t v = 0; v < block->vectors; v += tile) {
        tile = even_part(block->vectors, DENSE_LANES, v);
        int64_t n = v * L, samples = block->lanes - n < tile * L ? block->lanes - n : tile * L;
        job->kernels->transpose(ys + n * BLOCKED_ROWS, tile * L, rows, samples,
                                block->y + n * job->out + o, job->out);
    }
    for (int64_t n = 0; n < block->rest; n++)
        for (int64_t r = 0; r < rows; r++)
            block->y[(block->lanes + n) * job->out + o + r] = bias[r] + sums[r * block->rest + n];
}

static void forward_group(const struct dense_job *job, const struct forward *block, int64_t group,
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

static void forward_block(const struct dense_job *job, struct forward *block, int64_t first,
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
static void dot_strip(const struct dense_job *job, struct dense_strip *strip, int64_t chunk,
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
static void forward_few(const struct dense_job *job, const struct forward *block, int64_t first,
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
        dense_pack_x(block->x, job->in, c * chunk, (strip.chunks - 1) * chunk + last_width, samples,
                     1, block->xs);
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
static bool is_few(const struct dense_job *job, int64_t samples)
{
    return samples <= DENSE_FEW && job->kernels->dot_few[samples] &&
           (samples == 1 || blocked_chunk(job->in) < job->in);
}

static void forward_member(void *context, int member, int members)
{
    const struct dense_job *job = context;
    const int64_t L = job->kernels->lanes_width, chunk = blocked_chunk(job->in);
    long first, last;
    pool_share(dense_groups(job), 1, member, members, &first, &last);
    for (int64_t n = 0; n < job->batch; n += DENSE_BLOCK) {
        int64_t samples = job->batch - n < DENSE_BLOCK ? job->batch - n : DENSE_BLOCK;
        struct forward block = {.x = job->x + n * job->in, .y = job->y + n * job->out};
        block.vectors = samples <= DENSE_TILE ? 0 : samples / L;
        block.rest = samples - block.vectors * L;
        if (samples > DENSE_TILE && 3 * block.rest > 2 * L) { /* nearly a vector */
            block.vectors++;
            block.rest = 0;
        }
        block.lanes = samples - block.rest;
        block.xs = dense_memory(job, member);
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
            dense_finish(job, block.y + k * job->out + o, end - o);
    }
}

void dense_forward(const struct call *call, struct dense_job *job)
{
    dense_run(call, job, forward_member);
}
