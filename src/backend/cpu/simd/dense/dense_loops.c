/* dense_loops.c: see dense_loops.h. */
#include "backend/cpu/simd/dense/dense_loops.h"

#include "backend/cpu/team.h"

uint64_t dense_member_floats(int64_t batch, int64_t in, int64_t out)
{
    int64_t samples = blocked_up(batch < DENSE_BLOCK ? batch : DENSE_BLOCK, BLOCKED_LANES);
    int64_t padded_in = blocked_up(in, BLOCKED_LANES), padded_out = blocked_up(out, BLOCKED_LANES);
    return (uint64_t)((samples + DENSE_TILE + BLOCKED_ROWS) * blocked_chunk(in) +
                      samples * (padded_in + padded_out));
}

void dense_pack_x(const float *x, int64_t in, int64_t from, int64_t width, int64_t samples,
                  float scale, float *xs)
{
    for (int64_t first = 0; first < samples; first += DENSE_ABREAST)
        for (int64_t v = 0; v < width / BLOCKED_LANES; v++)
            for (int64_t n = first; n < samples && n < first + DENSE_ABREAST; n++) {
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

void dense_run(const struct call *call, struct dense_job *job, pool_task *task)
{
    int64_t weights = job->in * job->out, flop = 2 * job->batch * weights;
    int by_bytes = team_for_bytes(call->pool, weights * (int64_t)sizeof(float), dense_groups(job));
    int by_flop = team_for_flop(call->pool, flop, dense_groups(job));
    job->members = by_bytes > by_flop ? by_bytes : by_flop;
    job->workspace = call->workspace;
    job->member_bytes = dense_member_floats(job->batch, job->in, job->out) * sizeof(float);
    pool_run(call->pool, job->members, task, job);
}
