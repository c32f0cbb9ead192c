/* comm.h: how ranks talk to each other. The socket of transports, as backend.h is the socket of
 * units.
 *
 * A comm is one rank's end of a group of ranks. A transport moves bytes between two ranks and knows
 * no more: begin, advance, rest. Everything else is written once over these, in core/comm/.
 *
 *   send, receive, exchange, barrier, broadcast     a range of bytes
 *   reduce-scatter, all-gather, all-reduce          a range of f32 or f64
 *   comm_queue                                      all-reduces beside the computation, in order
 *
 * All ranks of a comm make the same collective calls in the same order. A rank that finds another
 * number of bytes than it expected fails, and the message says so. Sums are added in an order that
 * depends on the number of ranks, the count and the transport alone: the same bits on every rank
 * and in every run.
 *
 * A comm is used by one thread at a time. Its groups have ways of their own: another thread may use
 * a group at the same time. A call that fails leaves the comm broken: all later calls fail with the
 * same message, which names rank and host. */
#ifndef PRONY_CORE_COMM_H
#define PRONY_CORE_COMM_H

#include "base/status.h"
#include "core/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comm;

/* A message under way. The caller's, and untouched, from comm_begin to comm_finish. */
struct comm_transfer {
    int peer;
    bool sending;
    bool adds;        /* what is received is added to what is there */
    enum dtype dtype; /* … as numbers of this type */
    void *data;       /* a send only reads it */
    size_t bytes, moved;
    bool begun, done;
    void *handle, *scratch; /* the transport's */
    struct comm_transfer *next;
};

enum {
    COMM_ABI = 3,
    COMM_TURN = -1,      /* as the peer of a plan's message: the rank whose turn it is */
    COMM_PIECE = 1 << 30 /* bytes; a longer message is moved in several pieces */
};

/* Threads, as the ranks of a transport have them: a rank's second thread, and a bell, which is a
 * lock with a condition. */
struct crew_bell;
struct crew_thread;
struct comm_crew {
    enum status (*open_bell)(struct comm *comm, struct crew_bell **out);
    void (*close_bell)(struct crew_bell *bell);
    void (*lock)(struct crew_bell *bell);
    void (*unlock)(struct crew_bell *bell);
    void (*wait)(struct crew_bell *bell); /* with the lock held, until it was rung */
    void (*ring)(struct crew_bell *bell);
    enum status (*start)(struct comm *comm, void *(*main)(void *), void *argument,
                         struct crew_thread **out);
    void (*join)(struct crew_thread *thread);
    uint64_t (*now_ns)(void);
};

/* A transport. Its functions never wait but for `rest`. */
struct comm_transport {
    const char *name; /* "threads", "shm", "openmpi" … */
    bool posts_ahead; /* it keeps the order of messages by itself, so that several may be begun */
    /* Moves what can be moved now; sets `done` at the end and *active when anything moved. Of the
     * transfers with one peer, in one direction, only the first that is not done is advanced; with
     * posts_ahead those behind it as well, in their order. */
    enum status (*advance)(struct comm *comm, struct comm_transfer *transfer, bool *active);
    /* What has not ended, after a failure, is given up. NULL: nothing is held. */
    void (*cancel)(struct comm *comm, struct comm_transfer *transfer);
    /* Returns when something may have changed since the last `advance`, or after limit_ns. */
    void (*rest)(struct comm *comm, uint64_t limit_ns);
    /* Is this rank still there? Where it is not, fails with its rank and host. */
    enum status (*check)(struct comm *comm, int rank);
    /* Copy from and to the memory of another rank, at its own address; or NULL. For direct sums. */
    enum status (*fetch)(struct comm *comm, int rank, const char *theirs, void *to, size_t bytes);
    enum status (*store)(struct comm *comm, int rank, char *theirs, const void *from, size_t bytes);
    /* Called by the members alone, with their ranks in this comm. */
    enum status (*group)(struct comm *comm, const int *ranks, int count, struct comm **out);
    /* The library's own, to be compared with; or NULL. */
    enum status (*all_reduce)(struct comm *comm, void *data, size_t count, enum dtype dtype);
    /* "host nd1, process 4711". */
    void (*place)(const struct comm *comm, int rank, char *text, size_t room);
    /* Tells the others that this rank failed, and why. NULL: they find out. */
    void (*abandon)(struct comm *comm, const char *why);
    void (*close)(struct comm *comm);
    const struct comm_crew *crew; /* NULL: threads of the system, and its clock */
};

/* Can every rank read the others' memory? Found out when it is first of use. */
enum comm_common { COMM_COMMON_UNKNOWN, COMM_COMMON_NO, COMM_COMMON_YES };

struct comm {
    const struct comm_transport *transport;
    int rank, size;
    size_t segment; /* bytes of a message that this transport moves best */
    enum comm_common common;
    bool full_duplex;     /* both directions at once at full speed */
    bool near;            /* all ranks are on one machine: its CPU copies what they send */
    uint64_t patience_ns; /* a rank that moves nothing for so long has failed */
    struct comm_transfer *pending;
    enum status broken;
    char why[300];
    void *scratch; /* of the collectives */
    size_t scratch_bytes;
};

#define COMM_PATIENCE_NS (60 * 1000000000ull)

/* ---- messages ---- */

/* Begins a message; it moves while this comm waits for anything, at the latest in comm_finish.
 * Messages between two ranks arrive in the order in which they were begun. */
void comm_begin_send(struct comm *comm, int to, const void *data, size_t bytes,
                     struct comm_transfer *transfer);
void comm_begin_receive(struct comm *comm, int from, void *data, size_t bytes,
                        struct comm_transfer *transfer);
enum status comm_finish(struct comm *comm, struct comm_transfer *transfer);
/* Until one of several is done, the first such in the list: any[*which]. The others go on. */
enum status comm_finish_any(struct comm *comm, struct comm_transfer *const *any, int count,
                            int *which);

enum status comm_send(struct comm *comm, int to, const void *data, size_t bytes);
enum status comm_receive(struct comm *comm, int from, void *data, size_t bytes);
/* A send and a receive at once: two ranks that both send first would wait for each other. */
enum status comm_exchange(struct comm *comm, int to, const void *out, size_t out_bytes, int from,
                          void *in, size_t in_bytes);

/* ---- collectives ---- */

enum status comm_barrier(struct comm *comm);
enum status comm_broadcast(struct comm *comm, int root, void *data, size_t bytes);

/* Which of `count` elements are a rank's own in a reduce-scatter and an all-gather: pieces of equal
 * length, the first ones longer by one. */
void comm_slice(size_t count, int size, int rank, size_t *from, size_t *to);
/* Afterwards this rank's slice is the sum over all ranks; the rest of `data` is undefined. */
enum status comm_reduce_scatter(struct comm *comm, void *data, size_t count, enum dtype dtype);
/* Every rank's slice goes to all. */
enum status comm_all_gather(struct comm *comm, void *data, size_t count, enum dtype dtype);
/* Afterwards `data` is the sum over all ranks, the same bits on each. */
enum status comm_all_reduce(struct comm *comm, void *data, size_t count, enum dtype dtype);

/* The ways in which an all-reduce goes, for those who compare them. Direct where ranks cannot read
 * each other's memory is the ring. */
enum comm_algorithm { COMM_RING, COMM_HALVING, COMM_DIRECT, COMM_ALGORITHMS };
const char *comm_algorithm_name(enum comm_algorithm algorithm);
enum comm_algorithm comm_choose(const struct comm *comm, size_t bytes);
enum status comm_all_reduce_by(struct comm *comm, enum comm_algorithm algorithm, void *data,
                               size_t count, enum dtype dtype);

/* ---- ranks ---- */

/* A comm of its own for some ranks of this one, which all of them call with the same list; rank i
 * of the group is ranks[i]. NULL for ranks: all of them. Close it before `comm`. */
enum status comm_group(struct comm *comm, const int *ranks, int count, struct comm **out);
/* "rank 2 (host nd1, process 4711)"; text holds COMM_NAME bytes. */
enum { COMM_NAME = 128 };
const char *comm_name(const struct comm *comm, int rank, char *text);
/* This rank cannot go on, for the reason in status_message(): the others fail with it. Returns the
 * code that it is given. */
enum status comm_abandon(struct comm *comm, enum status code);
void comm_close(struct comm *comm); /* NULL is fine */

/* What a rank does, for those who start ranks. */
typedef enum status comm_main(struct comm *comm, void *context);

/* ---- beside the computation ---- */

struct comm_queue;

/* A thread that carries out all-reduces one after the other, over a group of all ranks. Every rank
 * opens it, and starts the same ranges in the same order. */
enum status comm_queue_open(struct comm *comm, struct comm_queue **out);
/* Returns at once, with the number of the range; `data` is the queue's until it was waited for. */
enum status comm_start(struct comm_queue *queue, void *data, size_t count, enum dtype dtype,
                       uint64_t *ticket);
/* Until this range and all before it are summed. */
enum status comm_wait(struct comm_queue *queue, uint64_t ticket);
/* How long the thread has worked since it was opened: what was hidden is this less the waiting. */
uint64_t comm_queue_busy_ns(const struct comm_queue *queue);
void comm_queue_close(struct comm_queue *queue); /* NULL is fine */

#endif
