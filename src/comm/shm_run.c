/* shm_run.c: starts the processes of all ranks, and sees that all of them end.
 *
 * Every child holds the writing end of a pipe: it closes when the child ends, so that the parent
 * waits for any of them without touching children that are not its own. */
#include "comm/shm.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_NS (3 * 1000000000ull) /* after a failure the others may take so long to end */

struct child {
    pid_t process; /* 0: ended, or never started */
    int pipe;
};

struct crew {
    struct shm *shm;
    struct child *children;
    struct pollfd *polls;
    int size;
    uint64_t failed_ns; /* when the first did not end well */
};

/* Never returns. A rank dies with its parent: nobody else would end it. */
static void run_child(struct crew *crew, int rank, pid_t parent, comm_main *main, void *context)
{
    struct comm *comm;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(STATUS_INTERRUPTED);
    enum status status = shm_join(crew->shm, rank, &comm);
    if (status != STATUS_OK) {
        shm_lost(crew->shm, rank, status_message());
        _exit((int)status);
    }
    status = main(comm, context);
    if (status != STATUS_OK)
        comm_abandon(comm, status);
    comm_close(comm);
    fflush(NULL);
    _exit((int)status);
}

static enum status start_child(struct crew *crew, int rank, comm_main *main, void *context)
{
    int ends[2];
    const pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        FAIL(STATUS_IO, "no pipe for rank %d: %s", rank, strerror(errno));
    const pid_t process = fork();
    if (process == 0) {
        for (int i = 0; i < rank; i++)
            close(crew->children[i].pipe);
        close(ends[0]);
        run_child(crew, rank, parent, main, context);
    }
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        FAIL(STATUS_IO, "no process for rank %d: %s", rank, strerror(errno));
    }
    crew->children[rank] = (struct child){process, ends[0]};
    return STATUS_OK;
}

/* Why a child ended, for those who still wait for it. */
static void note_end(struct crew *crew, int rank, int ended)
{
    char how[120];
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return;
    if (WIFSIGNALED(ended))
        snprintf(how, sizeof how, "was killed by signal %d (%s)", WTERMSIG(ended),
                 strsignal(WTERMSIG(ended)));
    else
        snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(ended));
    if (!crew->failed_ns)
        crew->failed_ns = clock_ns();
    shm_lost(crew->shm, rank, how);
}

static void reap(struct crew *crew, int rank)
{
    int ended = 0;
    struct child *child = &crew->children[rank];
    while (waitpid(child->process, &ended, 0) < 0 && errno == EINTR)
        ;
    close(child->pipe);
    child->process = 0;
    note_end(crew, rank, ended);
}

static void kill_rest(struct crew *crew)
{
    for (int i = 0; i < crew->size; i++)
        if (crew->children[i].process)
            kill(crew->children[i].process, SIGKILL);
}

/* Until no child is left. */
static void wait_for_all(struct crew *crew)
{
    for (;;) {
        nfds_t count = 0;
        for (int i = 0; i < crew->size; i++)
            if (crew->children[i].process)
                crew->polls[count++] = (struct pollfd){.fd = crew->children[i].pipe};
        if (!count)
            return;
        poll(crew->polls, count, 100);
        for (int i = crew->size - 1; i >= 0; i--)
            if (crew->children[i].process && crew->polls[--count].revents)
                reap(crew, i);
        if (crew->failed_ns && clock_ns() - crew->failed_ns > GRACE_NS)
            kill_rest(crew);
    }
}

static enum status run_crew(struct crew *crew, comm_main *main, void *context)
{
    fflush(NULL); /* or every child would print it again */
    for (int i = 0; i < crew->size; i++) {
        enum status status = start_child(crew, i, main, context);
        if (status == STATUS_OK)
            continue;
        struct error error = *status_last();
        kill_rest(crew);
        wait_for_all(crew);
        FAIL(status, "%s", error.message);
    }
    wait_for_all(crew);
    return shm_failure(crew->shm);
}

enum status shm_run(int size, comm_main *main, void *context)
{
    struct crew crew = {.size = size};
    enum status status;
    TRY(shm_create(size, &crew.shm));
    NEED_OR(end, crew.children = mem_array((size_t)size, sizeof *crew.children));
    NEED_OR(end, crew.polls = mem_array((size_t)size, sizeof *crew.polls));
    status = run_crew(&crew, main, context);
end:
    mem_free(crew.polls);
    mem_free(crew.children);
    shm_free(crew.shm);
    return status;
}
