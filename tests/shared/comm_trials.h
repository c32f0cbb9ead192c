/* comm_trials.h: what every transport must do, as a rank sees it: each way of summing against a
 * serial sum in double, the same bits on every rank and both times, messages, groups, the queue. A
 * rank that finds something wrong says so by its status. */
#ifndef PRONY_TESTS_COMM_TRIALS_H
#define PRONY_TESTS_COMM_TRIALS_H

#include "base/memory.h"
#include "core/comm.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What rank `rank` has at place i: numbers whose sums round. */
static double value_at(int rank, size_t i)
{
    uint32_t bits = (uint32_t)(i * 2654435761u) ^ (uint32_t)(rank * 40503 + 977);
    bits ^= bits >> 15;
    bits *= 2246822519u;
    bits ^= bits >> 13;
    return (double)bits / 4294967296.0 - 0.5;
}

static void put(void *data, size_t i, enum dtype dtype, double value)
{
    if (dtype == DTYPE_F32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

static double get(const void *data, size_t i, enum dtype dtype)
{
    return dtype == DTYPE_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

/* A number of the sum, serially in double. */
static double sum_at(int size, size_t i, enum dtype dtype)
{
    double sum = 0;
    for (int rank = 0; rank < size; rank++) {
        double value = value_at(rank, i);
        sum += dtype == DTYPE_F32 ? (double)(float)value : value;
    }
    return sum;
}

struct trial {
    enum comm_algorithm algorithm;
    size_t count;
    enum dtype dtype;
};

static void fill(void *data, const struct trial *trial, int rank)
{
    for (size_t i = 0; i < trial->count; i++)
        put(data, i, trial->dtype, value_at(rank, i));
}

static enum status compare(const void *data, const struct trial *trial, int size, size_t from,
                           size_t to)
{
    const double room = size * (trial->dtype == DTYPE_F32 ? 1.2e-7 : 2.3e-16);
    for (size_t i = from; i < to; i++) {
        double found = get(data, i, trial->dtype), expected = sum_at(size, i, trial->dtype);
        if (!(fabs(found - expected) <= room))
            FAIL(STATUS_WRONG, "number %zu of %zu: found %.17g, expected %.17g", i, trial->count,
                 found, expected);
    }
    return STATUS_OK;
}

static uint64_t hash_of(const void *data, size_t bytes)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

/* A canary on both sides. */
static void *new_data(const struct trial *trial)
{
    char *data = mem_alloc(trial->count * 8 + 128);
    if (data)
        memset(data, 0x5a, trial->count * 8 + 128);
    return data ? data + 64 : NULL;
}

static enum status check_canary(void *data, const struct trial *trial)
{
    const char *first = (char *)data - 64,
               *end = (char *)data + trial->count * dtype_bytes(trial->dtype);
    for (int i = 0; i < 64; i++)
        if (first[i] != 0x5a || end[i] != 0x5a)
            FAIL(STATUS_WRONG, "written outside the data");
    mem_free((char *)data - 64);
    return STATUS_OK;
}

/* Has rank 0 the same bits? */
static enum status same_bits(struct comm *comm, const void *data, const struct trial *trial,
                             uint64_t *last)
{
    uint64_t mine = hash_of(data, trial->count * dtype_bytes(trial->dtype)), first = mine;
    TRY(comm_broadcast(comm, 0, &first, sizeof first));
    if (mine != first)
        FAIL(STATUS_WRONG, "%s of %zu numbers: rank %d of %d has other bits than rank 0",
             comm_algorithm_name(trial->algorithm), trial->count, comm->rank, comm->size);
    if (*last && *last != mine)
        FAIL(STATUS_WRONG, "%s of %zu numbers: other bits than before",
             comm_algorithm_name(trial->algorithm), trial->count);
    *last = mine;
    return STATUS_OK;
}

static enum status reduce_all(struct comm *comm, const struct trial *trial, uint64_t *last)
{
    void *data = new_data(trial);
    NEED(data);
    fill(data, trial, comm->rank);
    TRY(comm_all_reduce_by(comm, trial->algorithm, data, trial->count, trial->dtype));
    TRY(compare(data, trial, comm->size, 0, trial->count));
    TRY(same_bits(comm, data, trial, last));
    return check_canary(data, trial);
}

static enum status scatter_and_gather(struct comm *comm, const struct trial *trial, uint64_t *last)
{
    void *data = new_data(trial);
    NEED(data);
    size_t from, to;
    fill(data, trial, comm->rank);
    comm_slice(trial->count, comm->size, comm->rank, &from, &to);
    TRY(comm_reduce_scatter(comm, data, trial->count, trial->dtype));
    TRY(compare(data, trial, comm->size, from, to));
    for (size_t i = 0; i < trial->count; i++)
        if (i < from || i >= to)
            put(data, i, trial->dtype, (double)NAN);
    TRY(comm_all_gather(comm, data, trial->count, trial->dtype));
    TRY(compare(data, trial, comm->size, 0, trial->count));
    TRY(same_bits(comm, data, trial, last));
    return check_canary(data, trial);
}

/* One count and type, every way twice. */
static enum status sum_all_ways(struct comm *comm, struct trial *trial)
{
    uint64_t last = 0;
    for (int way = 0; way < COMM_ALGORITHMS; way++, last = 0)
        for (int turn = 0; turn < 2; turn++) {
            trial->algorithm = (enum comm_algorithm)way;
            TRY(reduce_all(comm, trial, &last));
        }
    trial->algorithm = COMM_RING;
    TRY(scatter_and_gather(comm, trial, &last));
    return scatter_and_gather(comm, trial, &last);
}

static enum status sum_all_counts(struct comm *comm)
{
    const size_t size = (size_t)comm->size;
    const size_t counts[] = {0, 1, size - 1, size, size + 1, 97, 7919, 65537};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct trial single = {.count = counts[i], .dtype = DTYPE_F32};
        struct trial twice = {.count = counts[i], .dtype = DTYPE_F64};
        TRY(sum_all_ways(comm, &single));
        TRY(sum_all_ways(comm, &twice));
    }
    return STATUS_OK;
}

static enum status talk(struct comm *comm)
{
    int word = comm->rank == 1 ? 41 : 0;
    TRY(comm_broadcast(comm, 1 % comm->size, &word, sizeof word));
    if (comm->size > 1 && word != 41)
        FAIL(STATUS_WRONG, "broadcast: found %d", word);
    const int right = (comm->rank + 1) % comm->size,
              left = (comm->rank + comm->size - 1) % comm->size;
    if (comm->size == 1)
        return comm_barrier(comm);
    /* Messages longer than a lane, begun on all ranks before any is received. */
    enum { LONG = 300000 };
    int *out = mem_array(LONG, sizeof *out), *in = mem_array(LONG, sizeof *in);
    NEED(out && in ? out : NULL);
    struct comm_transfer first, second;
    for (int i = 0; i < LONG; i++)
        out[i] = comm->rank * LONG + i;
    comm_begin_send(comm, right, out, LONG * sizeof *out, &first);
    comm_begin_send(comm, right, &word, sizeof word, &second);
    TRY(comm_receive(comm, left, in, LONG * sizeof *in));
    for (int i = 0; i < LONG; i++)
        if (in[i] != left * LONG + i)
            FAIL(STATUS_WRONG, "found %d at %d", in[i], i);
    TRY(comm_receive(comm, left, &word, sizeof word));
    TRY(comm_finish(comm, &second));
    TRY(comm_finish(comm, &first));
    mem_free(out);
    mem_free(in);
    return comm_barrier(comm);
}

/* A grid of 2 × size/2: a rank sums over its row, then its column. */
static enum status sum_in_groups(struct comm *comm)
{
    const int half = comm->size / 2;
    int row[64], column[2] = {comm->rank % half, comm->rank % half + half};
    for (int i = 0; i < half; i++)
        row[i] = comm->rank / half * half + i;
    struct comm *across, *down;
    TRY(comm_group(comm, row, half, &across));
    TRY(comm_group(comm, column, 2, &down));
    double value = comm->rank + 1;
    TRY(comm_all_reduce(across, &value, 1, DTYPE_F64));
    TRY(comm_all_reduce(down, &value, 1, DTYPE_F64));
    if (value != comm->size * (comm->size + 1) / 2)
        FAIL(STATUS_WRONG, "found %g", value);
    TRY(comm_barrier(comm));
    comm_close(across);
    comm_close(down);
    return STATUS_OK;
}

static enum status sum_beside(struct comm *comm)
{
    enum { BUCKETS = 20, EACH = 3001 };
    struct comm_queue *queue;
    uint64_t tickets[BUCKETS];
    float *data = mem_array(BUCKETS * EACH, sizeof *data);
    NEED(data);
    TRY(comm_queue_open(comm, &queue));
    for (int i = 0; i < BUCKETS * EACH; i++)
        data[i] = (float)(i % 100 + comm->rank);
    for (int i = 0; i < BUCKETS; i++) {
        TRY(comm_start(queue, data + i * EACH, EACH, DTYPE_F32, &tickets[i]));
        TRY(comm_barrier(comm)); /* the comm itself stays free */
    }
    for (int i = 0; i < BUCKETS; i++)
        TRY(comm_wait(queue, tickets[i]));
    for (int i = 0; i < BUCKETS * EACH; i++) {
        float expected = (float)(i % 100 * comm->size + comm->size * (comm->size - 1) / 2);
        if (data[i] != expected)
            FAIL(STATUS_WRONG, "found %g, expected %g", (double)data[i], (double)expected);
    }
    comm_queue_close(queue);
    mem_free(data);
    return STATUS_OK;
}

static const int trials_sizes[] = {1, 2, 3, 4, 5, 7, 8};
enum { TRIALS_SIZES = sizeof trials_sizes / sizeof *trials_sizes };

/* Everything; the comm stays usable. */
__attribute__((unused)) static enum status trials_run(struct comm *comm, void *context)
{
    (void)context;
    TRY(sum_all_counts(comm));
    TRY(talk(comm));
    if (comm->size % 2 == 0)
        TRY(sum_in_groups(comm));
    return sum_beside(comm);
}

__attribute__((unused)) static enum status trials_run_long(struct comm *comm, void *context)
{
    struct trial trial = {.count = 1000003, .dtype = DTYPE_F32};
    (void)context;
    return sum_all_ways(comm, &trial);
}

#endif
