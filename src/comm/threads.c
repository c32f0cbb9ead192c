/* threads.c: a region on the heap. Ranks share all addresses, so that sums are direct. */
#include "comm/threads.h"

#include "base/memory.h"
#include "comm/region.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void place_of(const struct comm *comm, int rank, char *text, size_t room)
{
    char host[64] = "this machine";
    (void)comm;
    (void)rank;
    gethostname(host, sizeof host - 1);
    snprintf(text, room, "host %s, a thread of process %d", host, (int)getpid());
}

static enum status fetch(struct comm *comm, int rank, const char *theirs, void *to, size_t bytes)
{
    (void)comm;
    (void)rank;
    memcpy(to, theirs, bytes);
    return STATUS_OK;
}

static enum status store(struct comm *comm, int rank, char *theirs, const void *from, size_t bytes)
{
    (void)comm;
    (void)rank;
    memcpy(theirs, from, bytes);
    return STATUS_OK;
}

/* The last end that is closed frees the memory. */
static void let_go(struct region *region)
{
    if (atomic_fetch_sub(&region->open, 1) == 1)
        mem_unreserve(region, region_bytes(region->size));
}

static void close_end(struct comm *comm)
{
    struct region_end *end = (struct region_end *)comm;
    if (end->region == end->first)
        region_leave(end);
    let_go(end->region);
    region_close_end(end);
}

static enum status open_group(struct comm *comm, const int *ranks, int count, struct comm **out);

static const struct comm_transport threads_transport = {
    .name = "threads",
    .advance = region_advance,
    .rest = region_rest,
    .check = region_check,
    .fetch = fetch,
    .store = store,
    .group = open_group,
    .place = place_of,
    .abandon = region_abandon,
    .close = close_end,
};

static enum status make_region(struct region_end *end, int count, bool mine, uint64_t *place,
                               struct region **out)
{
    (void)end;
    *out = mine ? mem_reserve(region_bytes(count)) : (struct region *)(uintptr_t)*place;
    NEED(*out);
    if (mine)
        region_init(*out, count);
    *place = (uint64_t)(uintptr_t)*out;
    return STATUS_OK;
}

static enum status open_group(struct comm *comm, const int *ranks, int count, struct comm **out)
{
    return region_open_group((struct region_end *)comm, ranks, count, make_region, let_go, out);
}

enum status threads_open(int size, struct comm **ends)
{
    struct region *region;
    uint64_t place;
    TRY(make_region(NULL, size, true, &place, &region));
    for (int i = 0; i < size; i++) {
        struct region_end *end;
        enum status status =
            region_open_end(&threads_transport, region, region, NULL, size, i, &end);
        if (status != STATUS_OK) {
            for (int k = 0; k < i; k++)
                comm_close(ends[k]);
            for (int k = i; k < size; k++)
                let_go(region);
            return status;
        }
        atomic_store(&region->members[i].state, REGION_JOINED);
        ends[i] = &end->comm;
    }
    return STATUS_OK;
}

struct rank {
    struct comm *comm;
    comm_main *main;
    void *context;
    pthread_t thread;
    bool started;
};

/* A rank that fails says so to all: what is recorded is the first. */
static void *rank_main(void *argument)
{
    struct rank *rank = argument;
    const enum status status = rank->main(rank->comm, rank->context);
    if (status != STATUS_OK)
        comm_abandon(rank->comm, status);
    return NULL;
}

static enum status start_ranks(struct rank *ranks, int size, comm_main *main, void *context)
{
    for (int i = 0; i < size; i++) {
        ranks[i].main = main;
        ranks[i].context = context;
        ranks[i].started = pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]) == 0;
        if (ranks[i].started)
            continue;
        status_fail(STATUS_IO, __FILE__, __LINE__, "no thread: the system allows no more");
        return comm_abandon(ranks[i].comm, STATUS_IO);
    }
    return STATUS_OK;
}

/* Fails with what failed first on any rank. */
static enum status first_failure(struct comm *comm)
{
    const struct region *region = ((struct region_end *)comm)->first;
    if (atomic_load(&region->failed) == 2)
        FAIL(region->code, "%s", region->why);
    return STATUS_OK;
}

enum status threads_run(int size, comm_main *main, void *context)
{
    struct comm *ends[THREADS_MOST];
    struct rank ranks[THREADS_MOST] = {0};
    if (size < 1 || size > THREADS_MOST)
        FAIL(STATUS_INPUT, "%d ranks: from 1 to %d can be threads", size, THREADS_MOST);
    TRY(threads_open(size, ends));
    for (int i = 0; i < size; i++)
        ranks[i].comm = ends[i];
    (void)start_ranks(ranks, size, main, context); /* what failed is recorded */
    for (int i = 0; i < size; i++)
        if (ranks[i].started)
            pthread_join(ranks[i].thread, NULL);
    const enum status status = first_failure(ends[0]);
    for (int i = 0; i < size; i++)
        comm_close(ends[i]);
    return status;
}
