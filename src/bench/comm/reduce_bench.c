/* reduce_bench.c: rounds of all-reduces. Rank 0 says when they end, for all ranks alike. */
#include "bench/comm/reduce_bench.h"

#include "base/clock.h"
#include "base/memory.h"
#include "record/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WAYS = COMM_ALGORITHMS + 2, /* the library's own, and the copy, which comes last */
    LIBRARY = COMM_ALGORITHMS,
    COPY = COMM_ALGORITHMS + 1,
    MOST_ROUNDS = 2000,
    SAMPLE_NS = 1000000, /* shorter ones are repeated, so that the barrier does not count */
};

/* One size on one rank. */
struct trial {
    struct comm *comm;
    float *data, *copy;
    size_t bytes, count;
    bool has[WAYS], right[WAYS];
    uint32_t repeats[WAYS]; /* in a sample */
    double *samples[WAYS];  /* rank 0's */
    int64_t rounds;
};

static enum status run_way(struct trial *trial, int way)
{
    struct comm *comm = trial->comm;
    if (way == COPY) {
        memcpy(trial->copy, trial->data, trial->bytes);
        return STATUS_OK;
    }
    if (way == LIBRARY)
        return comm->transport->all_reduce(comm, trial->data, trial->count, DTYPE_F32);
    return comm_all_reduce_by(comm, (enum comm_algorithm)way, trial->data, trial->count, DTYPE_F32);
}

/* The slowest rank's time of one sample, known to rank 0 alone; 0 elsewhere. */
static enum status time_way(struct trial *trial, int way, double *slowest)
{
    struct comm *comm = trial->comm;
    TRY(comm_barrier(comm));
    const uint64_t begun = clock_ns();
    for (uint32_t i = 0; i < trial->repeats[way]; i++)
        TRY(run_way(trial, way));
    double mine = (double)(clock_ns() - begun) / trial->repeats[way], theirs;
    *slowest = 0;
    if (comm->rank != 0)
        return comm_send(comm, 0, &mine, sizeof mine);
    *slowest = mine;
    for (int i = 1; i < comm->size; i++) {
        TRY(comm_receive(comm, i, &theirs, sizeof theirs));
        *slowest = theirs > *slowest ? theirs : *slowest;
    }
    return STATUS_OK;
}

/* Small whole numbers: every order of sums gives the same. */
static float value_of(int rank, size_t i)
{
    return (float)((i + (size_t)rank * 7) % 64);
}

static bool sums_are_right(const struct trial *trial)
{
    for (size_t i = 0; i < trial->count; i++) {
        float sum = 0;
        for (int rank = 0; rank < trial->comm->size; rank++)
            sum += value_of(rank, i);
        if (trial->data[i] != sum)
            return false;
    }
    return true;
}

/* Once with numbers that can be told apart; afterwards zeros, which stay what they are. */
static enum status check_way(struct trial *trial, int way)
{
    struct comm *comm = trial->comm;
    for (size_t i = 0; i < trial->count; i++)
        trial->data[i] = value_of(comm->rank, i);
    TRY(run_way(trial, way));
    double wrong = !sums_are_right(trial);
    TRY(comm_all_reduce_by(comm, COMM_HALVING, &wrong, 1, DTYPE_F64));
    trial->right[way] = wrong == 0;
    memset(trial->data, 0, trial->bytes);
    return STATUS_OK;
}

/* How often a way is run in a sample, the same on all ranks. */
static enum status set_repeats(struct trial *trial, int way)
{
    double ns;
    trial->repeats[way] = 1;
    TRY(time_way(trial, way, &ns)); /* the first one is slow */
    TRY(time_way(trial, way, &ns));
    if (ns < SAMPLE_NS)
        trial->repeats[way] = (uint32_t)(SAMPLE_NS / (ns < 100 ? 100 : ns)) + 1;
    return comm_broadcast(trial->comm, 0, &trial->repeats[way], sizeof trial->repeats[way]);
}

static enum status run_rounds(struct trial *trial, const struct reduce_request *request)
{
    const uint64_t until = clock_ns() + (uint64_t)(request->seconds * 1e9);
    for (char go_on = 1;;) {
        if (trial->comm->rank == 0)
            go_on = trial->rounds < MOST_ROUNDS && !request->stopped() &&
                    (trial->rounds < 3 || clock_ns() < until);
        TRY(comm_broadcast(trial->comm, 0, &go_on, 1));
        if (!go_on)
            return STATUS_OK;
        for (int i = 0; i < WAYS; i++) {
            const int way = trial->rounds % 2 ? WAYS - 1 - i : i; /* A B B A */
            double ns;
            if (!trial->has[way])
                continue;
            TRY(time_way(trial, way, &ns));
            if (trial->samples[way])
                trial->samples[way][trial->rounds] = ns;
        }
        trial->rounds++;
    }
}

static const char *way_name(int way)
{
    return way == LIBRARY ? "library's own" : comm_algorithm_name((enum comm_algorithm)way);
}

static enum status add_rows(const struct trial *trial, struct reduce_rows *out)
{
    const struct comm *comm = trial->comm;
    struct stats copy;
    TRY(stats_compute(trial->samples[COPY], (size_t)trial->rounds, trial->repeats[COPY], &copy));
    for (int way = 0; way < COPY && out->count < REDUCE_ROWS; way++) {
        struct stats stats;
        if (!trial->has[way])
            continue;
        TRY(stats_compute(trial->samples[way], (size_t)trial->rounds, trial->repeats[way], &stats));
        struct reduce_row *row = &out->rows[out->count++];
        *row = (struct reduce_row){
            .ranks = comm->size,
            .bytes = trial->bytes,
            .chosen = way == (int)comm_choose(comm, trial->bytes),
            .right = trial->right[way],
            .min_ns = stats.min,
            .median_ns = stats.median,
            .mean_ns = stats.mean,
            .bound_ns = copy.median * 2 * (comm->size - 1) / comm->size,
            .rounds = trial->rounds,
        };
        snprintf(row->transport, sizeof row->transport, "%s", comm->transport->name);
        snprintf(row->way, sizeof row->way, "%s", way_name(way));
    }
    return STATUS_OK;
}

static enum status measure_size(struct trial *trial, const struct reduce_request *request,
                                struct reduce_rows *out)
{
    const struct comm_transport *transport = trial->comm->transport;
    NEED(trial->data = mem_large(trial->bytes));
    NEED(trial->copy = mem_large(trial->bytes));
    memset(trial->copy, 1, trial->bytes); /* its pages are there before anything is timed */
    for (int way = 0; way < WAYS; way++) {
        trial->has[way] = (way != COMM_DIRECT || trial->comm->common == COMM_COMMON_YES) &&
                          (way != LIBRARY || transport->all_reduce);
        if (!trial->has[way])
            continue;
        if (trial->comm->rank == 0)
            NEED(trial->samples[way] = mem_array(MOST_ROUNDS, sizeof **trial->samples));
        if (way != COPY)
            TRY(check_way(trial, way));
        TRY(set_repeats(trial, way));
    }
    TRY(run_rounds(trial, request));
    return trial->comm->rank == 0 ? add_rows(trial, out) : STATUS_OK;
}

enum status reduce_bench(struct comm *comm, const struct reduce_request *request,
                         struct reduce_rows *out)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < request->size_count && status == STATUS_OK; i++) {
        const size_t count = request->sizes[i] / sizeof(float);
        struct trial trial = {.comm = comm, .bytes = count * sizeof(float), .count = count};
        status = measure_size(&trial, request, out);
        mem_free_large(trial.data, trial.bytes);
        mem_free_large(trial.copy, trial.bytes);
        for (int way = 0; way < WAYS; way++)
            mem_free(trial.samples[way]);
    }
    return status;
}
