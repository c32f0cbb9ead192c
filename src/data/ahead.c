/* ahead.c: a thread, a request, and a lock around both. */
#include "data/ahead.h"

#include "base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

struct ahead {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ahead_work *work; /* asked and not done; or NULL */
    void *context;
    bool ends;
    struct error error; /* of the last request; code STATUS_OK: it succeeded */
};

static void *run(void *argument)
{
    struct ahead *ahead = argument;
    pthread_mutex_lock(&ahead->lock);
    for (;;) {
        while (!ahead->work && !ahead->ends)
            pthread_cond_wait(&ahead->changed, &ahead->lock);
        if (!ahead->work)
            break;
        ahead_work *work = ahead->work;
        void *context = ahead->context;
        pthread_mutex_unlock(&ahead->lock);
        enum status status = work(context);
        pthread_mutex_lock(&ahead->lock);
        ahead->error.code = status;
        if (status != STATUS_OK)
            ahead->error = *status_last();
        ahead->work = NULL;
        pthread_cond_broadcast(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

/* Signals are for the thread that runs the program: they stop it between two steps. */
static int start(struct ahead *ahead)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&ahead->thread, NULL, run, ahead);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

enum status ahead_open(struct ahead **out)
{
    struct ahead *ahead;
    NEED(ahead = mem_alloc(sizeof *ahead));
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    int error = start(ahead);
    if (error) {
        mem_free(ahead);
        FAIL(STATUS_IO, "cannot start a thread to read data ahead: %s", strerror(error));
    }
    *out = ahead;
    return STATUS_OK;
}

void ahead_close(struct ahead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->ends = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    mem_free(ahead);
}

void ahead_ask(struct ahead *ahead, ahead_work *work, void *context)
{
    pthread_mutex_lock(&ahead->lock);
    assert(!ahead->work);
    ahead->work = work;
    ahead->context = context;
    ahead->error.code = STATUS_OK;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

enum status ahead_take(struct ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    while (ahead->work)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    const struct error error = ahead->error;
    ahead->error.code = STATUS_OK;
    pthread_mutex_unlock(&ahead->lock);
    if (error.code != STATUS_OK)
        return status_fail(error.code, error.file, error.line, "%s", error.message);
    return STATUS_OK;
}
