/* pool.h: a team of threads that run the same function at once.
 *
 * A pool belongs to an opened device: there is no global one. The calling thread is member 0.
 * Between calls members spin for a short while (0.1 ms), then sleep: a pool that is not being timed
 * takes nothing from those that are. Nothing is allocated after open. */
#ifndef PRONY_BASE_POOL_H
#define PRONY_BASE_POOL_H

#include "base/status.h"

enum pool_affinity { POOL_NONE, POOL_COMPACT, POOL_SPREAD };

struct pool;
typedef void pool_task(void *context, int member, int members);

enum { POOL_MOST = 64 };

/* POOL_COMPACT fills one core's hardware threads, then the next core; POOL_SPREAD takes one thread
 * of every core first, sockets in turn. The calling thread is pinned too, by pool_run, and gets its
 * own CPUs back by pool_close or running an unpinned pool. `threads` from 1 to
 * POOL_MOST; more than the machine has cores is allowed (members then sleep rather than spin). */
enum status pool_open(int threads, enum pool_affinity affinity, struct pool **out);
void pool_close(struct pool *pool); /* NULL is fine; by the thread that ran it */
int pool_threads(const struct pool *pool);
/* How many members can run at once: all, or as many as there are CPUs. More only get in each
 * other's way, so kernels share their work among these. */
int pool_at_once(const struct pool *pool);

/* Runs task(context, member, members) for every member and returns when all are done; writes by the
 * members happen before the return. A member that is late, and not pinned, has its part run by
 * the caller: parts must not wait for each other. One caller at a time; a task that runs its own
 * pool again is a caller's mistake. `members` may be less than the pool has: a small piece of work
 * is not worth all threads. */
void pool_run(struct pool *pool, int members, pool_task *task, void *context);

/* Splits [0, count) into equal pieces of a multiple of `grain`; sets this member's [*from, *to). */
void pool_share(long count, long grain, int member, int members, long *from, long *to);

#endif
