/* region.c: lanes and bells. A message is a header of one grain, then its bytes, padded to a grain.
 * Sender and receiver work on one message at once: it may be longer than the lane. */
#include "comm/region.h"

#include "base/clock.h"
#include "base/machine/cpu.h"
#include "base/machine/cpu_inside.h"
#include "base/memory.h"
#include "core/comm/comm_inside.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PUBLISH = 64 * 1024, /* bytes that are moved before the other side is told */
    SPIN_TURNS = 2000,   /* looks at the bell before a rank sleeps */
};

static size_t round_up(size_t bytes)
{
    return (bytes + REGION_GRAIN - 1) / REGION_GRAIN * REGION_GRAIN;
}

static size_t lanes_offset(int size)
{
    size_t bytes = sizeof(struct region) + (size_t)size * sizeof(struct region_member);
    return (bytes + REGION_LINE - 1) / REGION_LINE * REGION_LINE;
}

size_t region_bytes(int size)
{
    const size_t lanes = (size_t)size * (size_t)size;
    return lanes_offset(size) + lanes * (sizeof(struct region_lane) + REGION_LANE);
}

void region_init(struct region *region, int size)
{
    region->size = size;
    atomic_store(&region->open, size);
}

static struct region_lane *lane_of(struct region *region, int from, int to, char **bytes)
{
    char *lanes = (char *)region + lanes_offset(region->size);
    const size_t index = (size_t)(from * region->size + to);
    const size_t all = (size_t)region->size * (size_t)region->size;
    *bytes = lanes + all * sizeof(struct region_lane) + index * REGION_LANE;
    return (struct region_lane *)lanes + index;
}

/* ---- bells ---- */

static void ring_bell(struct region *region, int rank)
{
    struct region_member *member = &region->members[rank];
    atomic_fetch_add(&member->bell, 1);
    if (atomic_load(&member->sleepers))
        syscall(SYS_futex, &member->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* `seen` was read before the last look at the lanes: a bell that rang since has another count. */
void region_rest(struct comm *comm, uint64_t limit_ns)
{
    struct region_end *end = (struct region_end *)comm;
    struct region_member *member = &end->region->members[comm->rank];
    for (int turn = 0; turn < SPIN_TURNS && end->spins; turn++) {
        if (atomic_load_explicit(&member->bell, memory_order_acquire) != end->seen)
            break;
        cpu_relax();
    }
    const struct timespec limit = {(time_t)(limit_ns / 1000000000), (long)(limit_ns % 1000000000)};
    atomic_fetch_add(&member->sleepers, 1);
    if (atomic_load(&member->bell) == end->seen)
        syscall(SYS_futex, &member->bell, FUTEX_WAIT, end->seen, &limit, NULL, 0);
    atomic_fetch_sub(&member->sleepers, 1);
    end->seen = atomic_load(&member->bell);
}

/* ---- lanes ---- */

static enum status send_some(struct region_end *end, struct comm_transfer *transfer, bool *active)
{
    char *bytes;
    struct region_lane *lane = lane_of(end->region, end->comm.rank, transfer->peer, &bytes);
    uint64_t at = atomic_load_explicit(&lane->written, memory_order_relaxed);
    size_t room = REGION_LANE - (at - atomic_load_explicit(&lane->taken, memory_order_acquire));
    if (!transfer->begun && room) {
        const uint64_t header = transfer->bytes;
        memcpy(bytes + at % REGION_LANE, &header, sizeof header);
        transfer->begun = true;
        at += REGION_GRAIN;
        room -= REGION_GRAIN;
        *active = true;
    }
    if (!transfer->begun)
        return STATUS_OK;
    size_t some = transfer->bytes - transfer->moved;
    some = some < PUBLISH ? some : PUBLISH;
    some = some < room ? some : room;
    const size_t place = at % REGION_LANE;
    some = some < REGION_LANE - place ? some : REGION_LANE - place;
    if (some) {
        memcpy(bytes + place, (const char *)transfer->data + transfer->moved, some);
        transfer->moved += some;
        *active = true;
    }
    transfer->done = transfer->moved == transfer->bytes;
    if (*active) {
        atomic_store(&lane->written, at + round_up(some));
        ring_bell(end->region, transfer->peer);
    }
    return STATUS_OK;
}

static enum status fail_mismatch(struct comm *comm, int from, uint64_t found, size_t expected)
{
    char theirs[COMM_NAME], ours[COMM_NAME];
    FAIL(STATUS_WRONG, "%s sent %llu bytes, %s expected %zu: the ranks do not run the same program",
         comm_name(comm, from, theirs), (unsigned long long)found,
         comm_name(comm, comm->rank, ours), expected);
}

static enum status receive_some(struct region_end *end, struct comm_transfer *transfer,
                                bool *active)
{
    char *bytes;
    struct region_lane *lane = lane_of(end->region, transfer->peer, end->comm.rank, &bytes);
    uint64_t at = atomic_load_explicit(&lane->taken, memory_order_relaxed);
    size_t there = atomic_load_explicit(&lane->written, memory_order_acquire) - at;
    if (!there)
        return STATUS_OK;
    *active = true;
    if (!transfer->begun) {
        uint64_t header;
        memcpy(&header, bytes + at % REGION_LANE, sizeof header);
        if (header != transfer->bytes)
            return fail_mismatch(&end->comm, transfer->peer, header, transfer->bytes);
        transfer->begun = true;
        at += REGION_GRAIN;
        there -= REGION_GRAIN;
    }
    size_t some = transfer->bytes - transfer->moved;
    some = some < PUBLISH ? some : PUBLISH;
    some = some < there ? some : there;
    const size_t place = at % REGION_LANE;
    some = some < REGION_LANE - place ? some : REGION_LANE - place;
    comm_apply(transfer, bytes + place, some);
    transfer->done = transfer->moved == transfer->bytes;
    atomic_store(&lane->taken, at + round_up(some));
    ring_bell(end->region, transfer->peer);
    return STATUS_OK;
}

enum status region_advance(struct comm *comm, struct comm_transfer *transfer, bool *active)
{
    struct region_end *end = (struct region_end *)comm;
    bool moved = false;
    TRY(transfer->sending ? send_some(end, transfer, &moved) : receive_some(end, transfer, &moved));
    *active |= moved;
    return STATUS_OK;
}

/* ---- who is there ---- */

void region_record(struct region *first, enum status code, const char *why)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&first->failed, &none, 1))
        return;
    first->code = code;
    snprintf(first->why, sizeof first->why, "%s", why);
    atomic_store(&first->failed, 2);
    for (int i = 0; i < first->size; i++)
        ring_bell(first, i);
}

void region_abandon(struct comm *comm, const char *why)
{
    region_record(((struct region_end *)comm)->first, comm->broken, why);
}

enum status region_check(struct comm *comm, int rank)
{
    const struct region_end *end = (const struct region_end *)comm;
    if (atomic_load(&end->first->failed) == 2)
        FAIL(end->first->code, "%s", end->first->why);
    char name[COMM_NAME];
    if (atomic_load(&end->first->members[end->ranks[rank]].state) == REGION_LEFT)
        FAIL(STATUS_DEVICE, "%s ended before its work was done", comm_name(comm, rank, name));
    return STATUS_OK;
}

void region_leave(struct region_end *end)
{
    atomic_store(&end->first->members[end->ranks[end->comm.rank]].state, REGION_LEFT);
    for (int i = 0; i < end->region->size; i++)
        ring_bell(end->region, i);
}

enum status region_open_end(const struct comm_transport *transport, struct region *region,
                            struct region *first, const int *ranks, int count, int rank,
                            struct region_end **out)
{
    struct region_end *end;
    struct cpu cpu;
    cpu_detect(&cpu);
    NEED(end = mem_alloc(sizeof *end + (size_t)count * sizeof *ranks));
    int *copy = (int *)(end + 1);
    for (int i = 0; i < count; i++)
        copy[i] = ranks ? ranks[i] : i;
    *end = (struct region_end){
        .comm = {.transport = transport,
                 .rank = rank,
                 .size = count,
                 .segment = SIZE_MAX,
                 .full_duplex = true,
                 .near = true,
                 .patience_ns = COMM_PATIENCE_NS},
        .region = region,
        .first = first,
        .ranks = copy,
        .spins = first->size <= cpu.cores,
    };
    *out = end;
    return STATUS_OK;
}

void region_close_end(struct region_end *end)
{
    mem_free(end);
}

/* The place of the group's region, from its first rank to the others. */
static enum status agree_on_place(struct comm *comm, const int *ranks, int count, int rank,
                                  uint64_t *place)
{
    if (rank > 0)
        return comm_receive(comm, ranks[0], place, sizeof *place);
    for (int i = 1; i < count; i++)
        TRY(comm_send(comm, ranks[i], place, sizeof *place));
    return STATUS_OK;
}

/* `first` are the members' ranks in the first region, `ranks` those in the end's. */
static enum status open_group(struct region_end *end, const int *ranks, const int *first, int count,
                              region_maker *make, void (*unmake)(struct region *region),
                              struct region_end **out)
{
    struct region *region = NULL;
    uint64_t place = 0;
    int rank = 0;
    enum status status;
    while (ranks[rank] != end->comm.rank)
        rank++;
    if (rank == 0)
        TRY(make(end, count, true, &place, &region));
    TRY_OR(fail, agree_on_place(&end->comm, ranks, count, rank, &place));
    if (rank > 0)
        TRY(make(end, count, false, &place, &region));
    TRY_OR(fail, region_open_end(end->comm.transport, region, end->first, first, count, rank, out));
    (*out)->owner = end->owner;
    return STATUS_OK;
fail:
    if (region)
        unmake(region);
    return status;
}

enum status region_open_group(struct region_end *end, const int *ranks, int count,
                              region_maker *make, void (*unmake)(struct region *region),
                              struct comm **out)
{
    struct region_end *made = NULL;
    int *lists = mem_array((size_t)count, 2 * sizeof *lists);
    NEED(lists);
    for (int i = 0; i < count; i++) {
        lists[i] = ranks ? ranks[i] : i;
        lists[count + i] = end->ranks[lists[i]];
    }
    enum status status = open_group(end, lists, lists + count, count, make, unmake, &made);
    mem_free(lists);
    if (status != STATUS_OK)
        return comm_break(&end->comm, status); /* the others wait for this rank */
    *out = &made->comm;
    return STATUS_OK;
}
