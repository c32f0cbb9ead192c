/* shm.h: ranks that are processes of this machine.
 *
 * The memory is anonymous: when the last process ends, however it ends, nothing is left. A rank
 * that dies is noticed by those who wait for it within half a second. */
#ifndef PRONY_COMM_SHM_H
#define PRONY_COMM_SHM_H

#include "core/comm.h"

struct shm;

enum { SHM_MOST = 256 }; /* ranks */

/* Before the processes are forked. */
enum status shm_create(int size, struct shm **out);
void shm_free(struct shm *shm); /* NULL is fine; after comm_close of what was joined */
/* In the process of this rank, once. */
enum status shm_join(struct shm *shm, int rank, struct comm **out);
/* The process that started the ranks tells the others how one ended; the first such word counts. */
void shm_lost(struct shm *shm, int rank, const char *how);
/* Fails with what failed first on any rank. */
enum status shm_failure(const struct shm *shm);

/* Forks `size` processes, runs `main` in each as one rank, and waits. When one fails or dies the
 * others are given a few seconds to end, then killed; the status and message are those of what
 * failed first. Call it before any other thread is started. What the ranks print is theirs. */
enum status shm_run(int size, comm_main *main, void *context);

#endif
