/* syscalls.c: see syscalls.h. */
#include "bench/meter/syscalls.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* glibc's <sys/ptrace.h> and the kernel's header cannot both be included. */
extern long ptrace(int request, ...);

enum { WAKE_MOST_NS = 1000000000 };

/* Memory that both processes see. */
struct tally {
    _Atomic int state;    /* TALLY_… */
    _Atomic int trouble;  /* errno, when it could not be traced */
    _Atomic int counting; /* between the first and the last call that counts */
    _Atomic uint64_t counts[SYSCALLS_NUMBERS];
};
enum { TALLY_STARTS, TALLY_TRACES, TALLY_FAILED };

static const struct {
    int number;
    const char *name;
} names[] = {
#define NAME(call)                                                                                 \
    {                                                                                              \
        SYS_##call, #call                                                                          \
    }
    NAME(read),
    NAME(write),
    NAME(close),
    NAME(openat),
    NAME(fstat),
    NAME(lseek),
    NAME(mmap),
    NAME(munmap),
    NAME(mprotect),
    NAME(brk),
    NAME(madvise),
    NAME(mremap),
    NAME(ioctl),
    NAME(futex),
    NAME(sched_yield),
    NAME(nanosleep),
    NAME(clock_nanosleep),
    NAME(clock_gettime),
    NAME(gettimeofday),
    NAME(getrusage),
    NAME(sendto),
    NAME(recvfrom),
    NAME(sendmsg),
    NAME(recvmsg),
    NAME(ppoll),
    NAME(pselect6),
    NAME(getpid),
    NAME(getppid),
    NAME(gettid),
    NAME(getrandom),
    NAME(rt_sigprocmask),
    NAME(rt_sigaction),
    NAME(sched_setaffinity),
    NAME(sched_getaffinity),
    NAME(clone),
    NAME(exit),
    NAME(tgkill),
    NAME(wait4),
    NAME(readv),
    NAME(writev),
    NAME(process_vm_readv),
    NAME(process_vm_writev),
    NAME(pread64),
    NAME(pwrite64),
    NAME(membarrier),
    NAME(epoll_pwait),
    NAME(epoll_ctl),
    NAME(epoll_create1),
    NAME(eventfd2),
    NAME(timerfd_settime),
    NAME(timerfd_gettime),
    NAME(pipe2),
    NAME(dup),
    NAME(dup3),
    NAME(fcntl),
    NAME(ftruncate),
    NAME(statx),
    NAME(newfstatat),
    NAME(getdents64),
    NAME(readlinkat),
    NAME(unlinkat),
    NAME(faccessat2),
    NAME(clone3),
    NAME(execve),
    NAME(exit_group),
    NAME(set_robust_list),
    NAME(rseq),
    NAME(prctl),
    NAME(sched_getscheduler),
    NAME(sched_setscheduler),
    NAME(sched_get_priority_max),
    NAME(getcpu),
    NAME(sysinfo),
    NAME(uname),
    NAME(times),
    NAME(clock_getres),
    NAME(restart_syscall),
    NAME(rt_sigreturn),
    NAME(sigaltstack),
    NAME(kill),
    NAME(socket),
    NAME(connect),
    NAME(accept4),
    NAME(sendmmsg),
    NAME(recvmmsg),
    NAME(shutdown),
    NAME(getsockopt),
    NAME(setsockopt),
    NAME(fsync),
    NAME(fdatasync),
    NAME(fallocate),
    NAME(preadv),
    NAME(pwritev),
    NAME(mlock),
    NAME(munlock),
    NAME(mincore),
    NAME(msync),
    NAME(mbind),
    NAME(set_mempolicy),
    NAME(get_mempolicy),
    NAME(move_pages),
    NAME(io_uring_setup),
    NAME(io_uring_enter),
    NAME(io_setup),
    NAME(io_submit),
    NAME(io_getevents),
    NAME(perf_event_open),
    NAME(process_vm_readv),
    NAME(inotify_add_watch),
    NAME(getuid),
#ifdef SYS_poll /* newer architectures have only what replaced them */
    NAME(poll),
    NAME(select),
    NAME(epoll_wait),
    NAME(time),
#endif
#undef NAME
};

const char *syscall_name(int number)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == number)
            return names[i].name;
    return NULL;
}

uint64_t syscalls_total(const struct syscalls *syscalls)
{
    uint64_t total = 0;
    for (int i = 0; i < SYSCALLS_NUMBERS; i++)
        total += syscalls->counts[i];
    return total;
}

/* What follows runs in the helper, which may only make system calls: its other threads are gone. */

/* A thread that ended since it was listed is none to trace. */
static int seize_threads(const pid_t *threads, int count)
{
    const long options =
        PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
    int seized = 0;
    for (int i = 0; i < count; i++) {
        long thread = threads[i];
        if (ptrace(PTRACE_SEIZE, thread, 0L, options) == 0 &&
            ptrace(PTRACE_INTERRUPT, thread, 0L, 0L) == 0)
            seized++;
        else if (errno != ESRCH)
            return errno;
    }
    return seized ? 0 : ESRCH;
}

/* A thread has stopped: counts the call it is about to make, and lets it go on, with the signal it
 * was to get. */
static void let_go_on(struct tally *tally, pid_t thread, int status)
{
    int signal_number = WSTOPSIG(status);
    bool at_call = signal_number == (SIGTRAP | 0x80), by_us = status >> 16 != 0;
    struct ptrace_syscall_info info;

    if (at_call && atomic_load(&tally->counting) &&
        ptrace(PTRACE_GET_SYSCALL_INFO, (long)thread, sizeof info, &info) > 0 &&
        info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        uint64_t number = info.entry.nr < SYSCALLS_NUMBERS ? info.entry.nr : SYSCALLS_NUMBERS - 1;
        atomic_fetch_add(&tally->counts[number], 1);
    }
    ptrace(PTRACE_SYSCALL, (long)thread, 0L, (long)(at_call || by_us ? 0 : signal_number));
}

/* Until it is killed, which lets whoever is traced go. */
static void trace(struct tally *tally, const pid_t *threads, int count)
{
    int status, trouble = seize_threads(threads, count);
    atomic_store(&tally->trouble, trouble);
    atomic_store(&tally->state, trouble ? TALLY_FAILED : TALLY_TRACES);
    for (pid_t thread; !trouble && (thread = waitpid(-1, &status, __WALL)) > 0;)
        if (WIFSTOPPED(status))
            let_go_on(tally, thread, status);
    _exit(0);
}

/* In the process that asks. */

static enum status start_helper(struct tally *tally, const struct family *family, pid_t *helper)
{
    pid_t ours = getpid(), threads[FAMILY_THREADS];
    int count = family_threads(family, threads);
    if (count < 0)
        FAIL(STATUS_UNSUPPORTED, "it cannot be traced: %s", strerror(errno));
    *helper = fork();
    if (*helper < 0)
        FAIL(STATUS_UNSUPPORTED, "no process to trace with: %s", strerror(errno));
    if (*helper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == ours)
            trace(tally, threads, count);
        _exit(1);
    }
    prctl(PR_SET_PTRACER, *helper); /* where only parents may trace their children */
    uint64_t deadline_ns = clock_ns() + WAKE_MOST_NS;
    while (atomic_load(&tally->state) == TALLY_STARTS && clock_ns() < deadline_ns)
        clock_sleep_ns(100000);
    if (atomic_load(&tally->state) != TALLY_TRACES)
        FAIL(STATUS_UNSUPPORTED, "it cannot be traced: %s",
             atomic_load(&tally->trouble) ? strerror(atomic_load(&tally->trouble))
                                          : "the helper does not start");
    return STATUS_OK;
}

enum status syscalls_count(struct job *job, const struct family *family, int64_t iterations,
                           struct syscalls *out)
{
    pid_t helper = 0;
    uint64_t elapsed_ns;

    memset(out, 0, sizeof *out);
    out->iterations = iterations;
    struct tally *tally =
        mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED)
        FAIL(STATUS_UNSUPPORTED, "no memory to share: %s", strerror(errno));
    enum status status = start_helper(tally, family, &helper);
    if (status == STATUS_OK) {
        atomic_store(&tally->counting, 1);
        status = job->kind->run(job, iterations, &elapsed_ns);
        atomic_store(&tally->counting, 0);
    }
    for (int i = 0; i < SYSCALLS_NUMBERS; i++)
        out->counts[i] = atomic_load(&tally->counts[i]);
    if (helper > 0) {
        kill(helper, SIGKILL);
        while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    munmap(tally, sizeof *tally);
    return status;
}
