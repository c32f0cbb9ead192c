/* ranks.h: runs a function on every rank of a comm, each a thread, and checks that all end well. A
 * rank's own checks are counted in its slot: check.h is for one thread. */
#ifndef PRONY_TESTS_RANKS_H
#define PRONY_TESTS_RANKS_H

#include "base/memory.h"
#include "check.h"
#include "comm/threads.h"

#include <pthread.h>

struct ranks_one {
    struct comm *comm;
    enum status (*run)(struct comm *comm, void *context);
    void *context;
    enum status status;
    char message[400];
};

static void *ranks_main(void *argument)
{
    struct ranks_one *one = argument;
    one->status = one->run(one->comm, one->context);
    if (one->status != STATUS_OK)
        snprintf(one->message, sizeof one->message, "%s", status_message());
    comm_close(one->comm);
    return NULL;
}

enum { RANKS_MOST = 16 };

/* ones[i].status and message are rank i's. */
static bool ranks_threads(int size, enum status (*run)(struct comm *comm, void *context),
                          void *context, struct ranks_one *ones)
{
    struct comm *ends[RANKS_MOST];
    pthread_t threads[RANKS_MOST];
    if (!CHECK_OK(threads_open(size, ends)))
        return false;
    for (int i = 0; i < size; i++) {
        ones[i] = (struct ranks_one){.comm = ends[i], .run = run, .context = context};
        pthread_create(&threads[i], NULL, ranks_main, &ones[i]);
    }
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    return true;
}

#endif
