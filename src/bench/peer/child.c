/* child.c: see child.h. Its input is a socket, not a pipe, because writing to a dead reader must be
 * an error and not a signal; everything on our side is non-blocking and waits in poll. */
#include "bench/peer/child.h"

#include "base/clock.h"
#include "base/load/trust.h"
#include "base/memory.h"
#include "bench/meter/family.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child, between fork and exec: only calls that are safe there. Does not return. */
static void child_become(char *const *arguments, char *const *environment, int input, int output,
                         int errors, pid_t parent)
{
    signal(SIGPIPE, SIG_DFL); /* we may ignore it; our child should not */
    setpgid(0, 0);
    personality(
        ADDR_NO_RANDOMIZE); /* where memory lies is worth per cents: always the same place */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* we died before it could be told to follow */
    if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0)
        _exit(127);
    close_range(3, ~0u, 0);
    execve(arguments[0], arguments, environment);
    dprintf(2, "%s\n", strerror(errno));
    _exit(127);
}

static void child_close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

/* What MPI's launchers tell a rank: a peer is none, even where we are. */
static bool is_of_launcher(const char *variable)
{
    static const char *const prefixes[] = {"OMPI_",     "PMIX_",        "PMI_",
                                           "MPI_LOCAL", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};
    bool is = false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        is = is || text_starts(variable, prefixes[i]);
    return is;
}

/* Ours with the child's mark in it. */
static enum status child_environment(struct child *child, char ***out)
{
    size_t count = 0;
    while (environ[count])
        count++;
    NEED(*out = mem_array(count + 2, sizeof **out));
    for (size_t i = 0, kept = 1; i < count; i++)
        if (!is_of_launcher(environ[i]))
            (*out)[kept++] = environ[i];
    snprintf(child->mark, sizeof child->mark, "PRONY_PEER=%d.%" PRIu64, (int)getpid(), clock_ns());
    (*out)[0] = child->mark;
    return STATUS_OK;
}

static enum status child_start(struct child *child, char *const *arguments,
                               char *const *environment)
{
    const char *path = arguments[0];
    int input[2], output[2], errors[2];
    pid_t parent = getpid();

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) < 0)
        FAIL(STATUS_IO, "%s: no socket for its input: %s", path, strerror(errno));
    if (pipe2(output, O_CLOEXEC) < 0) {
        child_close_pair(input);
        FAIL(STATUS_IO, "%s: no pipe for its output: %s", path, strerror(errno));
    }
    if (pipe2(errors, O_CLOEXEC) < 0) {
        child_close_pair(input);
        child_close_pair(output);
        FAIL(STATUS_IO, "%s: no pipe for its errors: %s", path, strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0)
        child_become(arguments, environment, input[1], output[1], errors[1], parent);
    int trouble = errno;
    close(input[1]);
    close(output[1]);
    close(errors[1]);
    child->to = input[0];
    child->from = output[0];
    child->errors = errors[0];
    if (pid < 0) {
        close(child->to);
        close(child->from);
        close(child->errors);
        FAIL(STATUS_IO, "%s: cannot start a process: %s", path, strerror(trouble));
    }
    setpgid(pid, pid); /* here too: whichever of the two runs first */
    fcntl(child->from, F_SETFL, O_NONBLOCK);
    fcntl(child->errors, F_SETFL, O_NONBLOCK);
    child->pid = pid;
    return STATUS_OK;
}

/* The path to start: that of the file that was checked, with those beside it, which it may load. */
static enum status child_check(const char *path, char real[PATH_MAX])
{
    char folder[PATH_MAX];
    TRY(trust_check(path, real));
    int length = (int)(strrchr(real, '/') - real);
    snprintf(folder, sizeof folder, "%.*s", length ? length : 1, real);
    enum status status = trust_check_files(folder);
    return status == STATUS_OK ? status
                               : status_prefix(status, "a peer may load the files beside it");
}

enum status child_open(struct child *child, const char *path, int64_t workers)
{
    char **environment, real[PATH_MAX], count[24];
    char *const arguments[] = {real, (char[]){"peer"}, workers > 1 ? (char[]){"--workers"} : NULL,
                               count, NULL};

    memset(child, 0, sizeof *child);
    TRY(child_check(path, real));
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* whom it leaves behind becomes a child of ours */
    TRY(child_environment(child, &environment));
    snprintf(count, sizeof count, "%" PRId64, workers);
    enum status status = child_start(child, arguments, environment);
    mem_free(environment);
    return status;
}

/* Takes what is there of its standard error and keeps the end. One that writes faster than this
 * reads must not keep us here: the deadline is looked at between two of these. */
static void child_drain(struct child *child)
{
    enum { READS = 64 };
    char bytes[4096];
    ssize_t count;

    for (int left = READS; left > 0 && (count = read(child->errors, bytes, sizeof bytes)) > 0;
         left--) {
        size_t added = (size_t)count, room = sizeof child->complaint - 1;
        const char *from = bytes;
        if (added > room) {
            from += added - room;
            added = room;
        }
        size_t kept = strlen(child->complaint);
        if (kept + added > room) {
            memmove(child->complaint, child->complaint + kept + added - room, room - added);
            kept = room - added;
        }
        for (size_t i = 0; i < added; i++)
            child->complaint[kept + i] = from[i] ? from[i] : ' ';
        child->complaint[kept + added] = '\0';
    }
}

/* The last line that is not blank of what it wrote to its standard error. */
static const char *child_last_words(struct child *child)
{
    child_drain(child);
    char *end = child->complaint + strlen(child->complaint);
    while (end > child->complaint && strchr(" \n\r\t", end[-1]))
        *--end = '\0';
    char *line = strrchr(child->complaint, '\n');
    return line ? line + 1 : child->complaint;
}

/* Is it gone? It is not reaped, so that its id stays its own. *code is its status, or of a signal
 * the negative number. */
static bool child_is_gone(const struct child *child, int *code)
{
    siginfo_t ended = {0};
    if (waitid(P_PID, (id_t)child->pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || !ended.si_pid)
        return false;
    *code = ended.si_code == CLD_EXITED ? ended.si_status : -ended.si_status;
    return true;
}

/* 127 is what shells, env and child_become end with when there is nothing to run: an interpreter is
 * not installed. */
static enum status child_ended(struct child *child)
{
    enum { NOT_FOUND = 127 };
    char by[80] = "";
    int code = 0;
    for (int tries = 0; !child_is_gone(child, &code) && tries < 100; tries++)
        clock_sleep_ns(1000000); /* it closed its output a moment before it ends */
    const char *words = child_last_words(child);
    if (code == NOT_FOUND)
        FAIL(STATUS_UNSUPPORTED, "it cannot be started: %s", *words ? words : "status 127");
    if (code < 0)
        snprintf(by, sizeof by, " by signal %d (%s)", -code,
                 code == -SIGKILL ? "killed, as where memory is out" : strsignal(-code));
    FAIL(STATUS_DEVICE, "the process ended%s%s%s", by, *words ? ": " : "", words);
}

/* How long a wait may take, and who ends it before. */
struct child_patience {
    uint64_t deadline_ns;
    bool (*stopped)(void); /* or NULL */
};

/* Waits until `fd` is ready for `events`, draining its standard error meanwhile. */
static enum status child_wait(struct child *child, int fd, short events,
                              const struct child_patience *patience)
{
    const uint64_t deadline_ns = patience->deadline_ns;
    for (;;) {
        uint64_t now_ns = clock_ns();
        if (patience->stopped && patience->stopped())
            FAIL(STATUS_INTERRUPTED, "stopped");
        if (now_ns >= deadline_ns) {
            const char *words = child_last_words(child);
            FAIL(STATUS_TIMEOUT, "no answer in time%s%s", *words ? ": " : "", words);
        }
        uint64_t left_ms = (deadline_ns - now_ns) / 1000000 + 1;
        struct pollfd wait[2] = {{fd, events, 0}, {child->errors, POLLIN, 0}};
        if (poll(wait, 2, left_ms > 1000 ? 1000 : (int)left_ms) < 0 && errno != EINTR)
            FAIL(STATUS_IO, "waiting for a child process: %s", strerror(errno));
        int code;
        if (wait[0].revents)
            return STATUS_OK;
        if (!wait[1].revents && child_is_gone(child, &code)) /* what it started may hold it open */
            return poll(wait, 1, 0) > 0 ? STATUS_OK : child_ended(child);
        if (wait[1].revents & POLLIN)
            child_drain(child);
        else if (wait[1].revents)
            clock_sleep_ns(1000000); /* it closed its errors: poll would return at once for ever */
    }
}

static enum status child_send(struct child *child, const char *bytes, size_t length,
                              const struct child_patience *patience)
{
    while (length) {
        ssize_t sent = send(child->to, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            bytes += sent;
            length -= (size_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            TRY(child_wait(child, child->to, POLLOUT, patience));
        } else if (errno != EINTR) {
            return child_ended(child);
        }
    }
    return STATUS_OK;
}

/* Adds what it wrote, if anything, to what is pending. */
static enum status child_read(struct child *child)
{
    char bytes[16384];
    ssize_t count = read(child->from, bytes, sizeof bytes);
    if (count > 0)
        text_add_bytes(&child->pending, bytes, (size_t)count);
    else if (count == 0 || (errno != EAGAIN && errno != EINTR))
        return child_ended(child);
    return text_done(&child->pending);
}

enum status child_ask(struct child *child, const char *line, uint64_t limit_ns,
                      bool (*stopped)(void), struct text *answer)
{
    const struct child_patience patience = {clock_ns() + limit_ns, stopped};
    size_t searched = 0;

    TRY(child_read(child));
    if (child->pending.length)
        FAIL(STATUS_DEVICE, "the process wrote \"%.60s\" before it was asked",
             text_of(&child->pending));
    TRY(child_send(child, line, strlen(line), &patience));
    TRY(child_send(child, "\n", 1, &patience));
    for (;;) {
        struct text *pending = &child->pending;
        const char *start = text_of(pending);
        const char *end = memchr(start + searched, '\n', pending->length - searched);
        if (end) {
            size_t length = (size_t)(end - start);
            text_clear(answer);
            text_add_bytes(answer, start, length);
            memmove(pending->data, end + 1, pending->length - length - 1);
            pending->length -= length + 1;
            pending->data[pending->length] = '\0';
            return text_done(answer);
        }
        searched = pending->length;
        if (pending->length > CHILD_LINE_MOST)
            FAIL(STATUS_DEVICE, "the process wrote over %d bytes without a line end",
                 CHILD_LINE_MOST);
        TRY(child_wait(child, child->from, POLLIN, &patience));
        TRY(child_read(child));
    }
}

/* Waits for a child that was killed, or for all those of a group (negative). */
static void child_reap(pid_t which)
{
    pid_t found;
    do
        found = waitpid(which, NULL, 0);
    while ((found > 0 && which < 0) || (found < 0 && errno == EINTR));
}

/* Was it started by this child, or by one that was? */
static bool child_is_parent_of(const struct child *child, pid_t process)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)process);
    FILE *environment = fopen(path, "re");
    bool found = false, same = true; /* as the mark, so far */
    size_t at = 0;
    for (int c; environment && !found && (c = fgetc(environment)) != EOF;) {
        same = same && c == child->mark[at];
        found = same && c == '\0';
        at = same && c != '\0' ? at + 1 : 0;
        same = same || c == '\0';
    }
    if (environment)
        fclose(environment);
    return found;
}

/* What went into another group or session became our child when its parent ended; when it is
 * killed, its own children do. */
static void child_end_orphans(const struct child *child)
{
    pid_t children[FAMILY_MOST];
    for (bool found = true; found;) {
        int count = family_children(getpid(), children);
        found = false;
        for (int i = 0; i < count; i++) {
            if (!child_is_parent_of(child, children[i]))
                continue;
            kill(children[i], SIGKILL);
            child_reap(children[i]);
            found = true;
        }
    }
}

void child_close(struct child *child, uint64_t grace_ns)
{
    if (!child->pid)
        return;
    close(child->to);
    uint64_t deadline_ns = clock_ns() + grace_ns;
    int code;
    while (clock_ns() < deadline_ns) {
        child_drain(child); /* or it may hang writing its last words */
        if (child_is_gone(child, &code))
            break;
        clock_sleep_ns(500000);
    }
    kill(-child->pid, SIGKILL); /* it is not reaped yet: the id is its own */
    child_reap(child->pid);
    child_reap(-child->pid);
    child_end_orphans(child);
    close(child->from);
    close(child->errors);
    text_free(&child->pending);
    child->pid = 0;
}
