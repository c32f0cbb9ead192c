/* workers.h: several processes that do one command together: those that this one starts here, or
 * those that mpirun or srun has started.
 *
 * Worker 0 speaks; the others are silent. One that dies or fails ends all, and its reason is the
 * only one that is told. */
#ifndef PRONY_CLI_TRAINING_WORKERS_H
#define PRONY_CLI_TRAINING_WORKERS_H

#include "base/status.h"

#include <stdbool.h>

struct comm;
struct launcher;

struct worker {
    int rank, size;        /* of 1: it works alone */
    int local;             /* workers on this machine, itself included */
    struct comm *comm;     /* to the others; NULL: there are none */
    struct common *common; /* with the process that started it; or NULL */
};

typedef enum status worker_main(const struct worker *worker, void *context);

/* With `count` above 1, runs `main` in so many processes and waits for them. With 0 it is run by
 * the ranks that mpirun or srun has started, where there are such, else alone. Called before there
 * are threads. `folder`: the executable's. `patience_s`: a worker that is waited for so long hangs;
 * 0: as usual. */
enum status workers_run(const char *folder, int count, double patience_s, worker_main *main,
                        void *context);

/* launcher_open, and its error is told by the first rank alone. */
enum status worker_join(const char *folder, const struct launcher *launcher, struct comm **out);
/* All ranks fail alike: returns on the first, which says why, and ends the others. */
void worker_silent(const struct launcher *launcher);

/* Has anybody asked this worker, or the process that started it, to stop? */
bool worker_stopped(const struct worker *worker);

/* Threads for each of so many workers on this machine, where nothing was asked for. */
int worker_threads(int workers);

#endif
