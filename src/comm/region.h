/* region.h: a transport through memory that all ranks see: lanes of bytes, a bell a rank.
 *
 * A region serves one group of ranks. A lane is a ring buffer from one rank to another that one
 * thread writes and one reads. A rank that writes to a lane, or empties it, rings the other's bell;
 * a rank with nothing to do sleeps at its own. Threads of one process and processes of one machine
 * differ only in where the memory comes from and how one knows that a rank has ended. */
#ifndef PRONY_COMM_REGION_H
#define PRONY_COMM_REGION_H

#include "core/comm.h"

#include <stdalign.h>
#include <stdatomic.h>

enum {
    REGION_LINE = 128,     /* two cache lines: CPUs fetch them in pairs */
    REGION_GRAIN = 64,     /* messages begin and wrap at multiples: no number is cut in two */
    REGION_LANE = 1 << 20, /* bytes: with a quarter of them the two sides run in lockstep */
    REGION_WHY = 300,
};

struct region_member {
    alignas(REGION_LINE) atomic_uint bell; /* a futex */
    atomic_uint sleepers;
    atomic_uint state; /* enum region_state; in the first region only */
    atomic_int process;
};

enum region_state { REGION_AWAITED, REGION_JOINED, REGION_LEFT };

struct region_lane {
    alignas(REGION_LINE) _Atomic uint64_t written; /* bytes ever; only the sender stores it */
    alignas(REGION_LINE) _Atomic uint64_t taken;   /* only the receiver stores it */
};

/* What is shared. The lanes follow the members, the bytes of the lanes follow these. */
struct region {
    int32_t size;
    atomic_int open;   /* ends that are not closed yet */
    atomic_int failed; /* 0; 1: somebody writes `why`; 2: it is written. First region only */
    enum status code;  /* with `why` */
    char why[REGION_WHY];
    _Atomic uint64_t next; /* where the memory's owner puts the next region. First region only */
    struct region_member members[];
};

/* One rank's end. */
struct region_end {
    struct comm comm;
    struct region *region;
    struct region *first; /* of all ranks: who is there, what failed */
    const int *ranks;     /* of this group in the first region */
    bool spins;           /* every rank has a CPU of its own */
    unsigned seen;        /* of the own bell */
    void *owner;          /* the memory's */
};

size_t region_bytes(int size);
void region_init(struct region *region, int size); /* over zeroed memory */

enum status region_advance(struct comm *comm, struct comm_transfer *transfer, bool *active);
void region_rest(struct comm *comm, uint64_t limit_ns);
void region_abandon(struct comm *comm, const char *why);
/* The failure that somebody recorded; a rank that left although it is waited for. */
enum status region_check(struct comm *comm, int rank);
/* Marks this rank as gone and wakes all that wait for it. First region only. */
void region_leave(struct region_end *end);
/* Fills in an end's comm; `ranks` is copied. */
enum status region_open_end(const struct comm_transport *transport, struct region *region,
                            struct region *first, const int *ranks, int count, int rank,
                            struct region_end **out);
void region_close_end(struct region_end *end);
/* Records what failed, unless something did before. First region only. */
void region_record(struct region *first, enum status code, const char *why);

/* Makes (`mine`), or finds at *place, a region for `count` ranks; *place is for the others. */
typedef enum status region_maker(struct region_end *end, int count, bool mine, uint64_t *place,
                                 struct region **out);
/* A group of ranks gets a region of its own: its first rank makes it, the others are told where. */
enum status region_open_group(struct region_end *end, const int *ranks, int count,
                              region_maker *make, void (*unmake)(struct region *region),
                              struct comm **out);

#endif
