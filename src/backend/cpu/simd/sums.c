/* sums.c: see sums.h. */
#include "backend/cpu/simd/sums.h"

#include "backend/cpu/team.h"

enum { PIECES_MOST = POOL_MOST };

struct job_sums {
    sum_piece *piece;
    const void *context;
    int64_t count, grain;
    int pieces;
    float sums[PIECES_MOST];
};

static void sums_member(void *context, int member, int members)
{
    struct job_sums *job = context;
    long p, last, from, to;
    pool_share(job->pieces, 1, member, members, &p, &last);
    for (; p < last; p++) {
        pool_share(job->count, job->grain, (int)p, job->pieces, &from, &to);
        job->sums[p] = from < to ? job->piece(job->context, from, to) : 0;
    }
}

float sum_pieces(struct pool *pool, sum_piece *piece, const void *context, int64_t count,
                 int64_t grain, int64_t bytes)
{
    int64_t pieces = (count + grain - 1) / grain;
    struct job_sums job = {
        .piece = piece,
        .context = context,
        .count = count,
        .grain = grain,
        .pieces = (int)(pieces < PIECES_MOST ? pieces : PIECES_MOST),
    };
    pool_run(pool, team_for_bytes(pool, bytes, job.pieces), sums_member, &job);
    float sum = 0;
    for (int p = 0; p < job.pieces; p++)
        sum += job.sums[p];
    return sum;
}
