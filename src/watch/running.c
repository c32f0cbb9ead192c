/* running.c: see running.h. */
#include "watch/running.h"

#include "base/clock.h"
#include "base/memory.h"
#include "bench/meter/family.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_STARTED = 127 };
static const uint64_t pause_ns = 2000000;

/* In the child, between fork and exec. Does not return; tells the reason through the pipe. */
static void running_become(const struct running_options *options, char *const *environment,
                           int report)
{
    signal(SIGPIPE, SIG_DFL); /* which we ignore */
    signal(SIGXFSZ, SIG_DFL);
    if (options->silent) {
        int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (nowhere < 0)
            nowhere = memfd_create("nowhere", MFD_CLOEXEC); /* a root without /dev */
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
            dup2(nowhere, fd);
    }
    if (options->aside)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    execvpe(options->words[0], (char *const *)(uintptr_t)options->words, environment);
    int reason = errno;
    ssize_t written = write(report, &reason, sizeof reason);
    (void)written; /* nothing can be done about it here */
    _exit(NOT_STARTED);
}

static bool same_name(const char *a, const char *b)
{
    size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && b[length] == '=';
}

/* Ours, with what was asked for in place of what has the same name. */
static enum status make_environment(const char *const *added, char ***out)
{
    size_t ours = 0, more = 0, count = 0;
    while (environ[ours])
        ours++;
    while (added && added[more])
        more++;
    NEED(*out = mem_array(ours + more + 1, sizeof **out));
    for (size_t i = 0; i < ours; i++) {
        bool replaced = false;
        for (size_t j = 0; j < more; j++)
            replaced = replaced || same_name(added[j], environ[i]);
        if (!replaced)
            (*out)[count++] = environ[i];
    }
    for (size_t j = 0; j < more; j++)
        (*out)[count++] = (char *)(uintptr_t)added[j];
    return STATUS_OK;
}

/* The reason why it could not be started; 0: it was. */
static int read_report(int report)
{
    int reason = 0;
    ssize_t got;
    do
        got = read(report, &reason, sizeof reason);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof reason ? reason : 0;
}

enum status running_start(struct running *program, const struct running_options *options)
{
    int report[2];
    char **environment;
    *program = (struct running){0};
    if (pipe2(report, O_CLOEXEC) < 0)
        FAIL(STATUS_IO, "%s: no pipe to start it: %s", options->words[0], strerror(errno));
    enum status status = make_environment(options->environment, &environment);
    if (status != STATUS_OK) {
        close(report[0]);
        close(report[1]);
        return status;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* whom it leaves behind becomes a child of ours */
    program->start_ns = clock_ns();
    pid_t process = fork();
    if (process == 0)
        running_become(options, environment, report[1]);
    int reason = process < 0 ? errno : 0;
    close(report[1]);
    if (process > 0)
        reason = read_report(report[0]);
    close(report[0]);
    mem_free(environment);
    if (process > 0 && reason)
        waitpid(process, NULL, 0);
    if (reason)
        FAIL(STATUS_INPUT, "%s: it cannot be started: %s", options->words[0], strerror(reason));
    program->process = process;
    return STATUS_OK;
}

static double seconds_ns(struct timeval time)
{
    return (double)time.tv_sec * 1e9 + (double)time.tv_usec * 1e3;
}

bool running_ended(struct running *program, struct running_end *end)
{
    enum { KB = 1024 };
    struct rusage used;
    int how;
    if (!program->process || wait4(program->process, &how, WNOHANG, &used) != program->process)
        return !program->process;
    *end = (struct running_end){.ended = true,
                                .code = WIFEXITED(how) ? WEXITSTATUS(how) : 0,
                                .signal = WIFSIGNALED(how) ? WTERMSIG(how) : 0,
                                .wall_ns = (double)(clock_ns() - program->start_ns),
                                .user_ns = seconds_ns(used.ru_utime),
                                .system_ns = seconds_ns(used.ru_stime),
                                .peak_bytes = (double)used.ru_maxrss * KB,
                                .page_faults = (double)used.ru_minflt,
                                .storage_faults = (double)used.ru_majflt,
                                .switches = (double)used.ru_nvcsw,
                                .preemptions = (double)used.ru_nivcsw};
    program->process = 0;
    return true;
}

/* Sends the signal to the family and gives it time to end. */
static bool end_by(struct running *program, int signal_number, uint64_t patience_ns,
                   void (*look)(void *), void *context, struct running_end *end)
{
    struct family family;
    const uint64_t until_ns = clock_ns() + patience_ns;
    family_find(program->process, &family);
    for (int i = 0; i < family.count; i++)
        kill(family.processes[i], signal_number);
    while (!running_ended(program, end)) {
        if (clock_ns() > until_ns)
            return false;
        if (look)
            look(context);
        clock_sleep_ns(pause_ns);
    }
    for (int i = 1; i < family.count; i++) /* those that outlived it */
        kill(family.processes[i], SIGKILL);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    return true;
}

void running_stop(struct running *program, uint64_t patience_ns, void (*look)(void *context),
                  void *context, struct running_end *end)
{
    static const uint64_t for_ever = UINT64_MAX / 2;
    if (!end_by(program, SIGINT, patience_ns, look, context, end) &&
        !end_by(program, SIGTERM, patience_ns, look, context, end))
        end_by(program, SIGKILL, for_ever - clock_ns(), NULL, NULL, end);
}

void running_wait(struct running *program, bool (*stopped)(void), uint64_t limit_ns,
                  struct running_end *end)
{
    static const uint64_t patience_ns = 3000000000;
    while (!running_ended(program, end)) {
        if ((stopped && stopped()) || (limit_ns && clock_ns() - program->start_ns > limit_ns)) {
            running_stop(program, patience_ns, NULL, NULL, end);
            return;
        }
        clock_sleep_ns(pause_ns);
    }
}

void running_add_end(const struct running_end *end, struct text *out)
{
    if (end->signal)
        text_printf(out, "was killed by signal %d (%s)", end->signal, strsignal(end->signal));
    else if (end->code)
        text_printf(out, "ended with status %d", end->code);
}

int running_exit_status(const struct running_end *end)
{
    enum { SIGNALLED = 128 };
    return end->signal ? SIGNALLED + end->signal : end->code;
}
