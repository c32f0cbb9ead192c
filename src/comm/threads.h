/* threads.h: ranks that are threads of this process. */
#ifndef PRONY_COMM_THREADS_H
#define PRONY_COMM_THREADS_H

#include "core/comm.h"

/* Opens all ends at once; ends[i] is rank i's, for its thread. Each is closed by comm_close. */
enum status threads_open(int size, struct comm **ends);

enum { THREADS_MOST = 256 }; /* ranks */

/* Starts a thread for each rank, runs `main` in all, and waits. The status and message are those of
 * what failed first. */
enum status threads_run(int size, comm_main *main, void *context);

#endif
