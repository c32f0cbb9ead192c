/* workers.c: see workers.h. */
#include "cli/training/workers.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/machine/cpu.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/screen.h"
#include "comm/launcher.h"
#include "comm/shm.h"
#include "record/version.h"
#include "train/workers/agree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the process that starts workers shares with the first of them. */
struct common {
    atomic_int stop;    /* it was asked to stop */
    enum status status; /* how the first ended … */
    char message[1000]; /* … and why: comms keep less of it */
};

struct start {
    worker_main *main;
    void *context;
    struct common *common;
    double patience_s;
};

static struct common *asked; /* by signals to the process that starts workers */

/* A second signal ends it at once, and its workers with it. */
static void pass_on(int signal_number)
{
    if (atomic_exchange(&asked->stop, 1) && signal_number != SIGHUP)
        _exit(128 + signal_number);
}

bool worker_stopped(const struct worker *worker)
{
    return cli_interrupted() || (worker->common && atomic_load(&worker->common->stop));
}

/* Ctrl-C goes to all processes of a terminal: worker 0 decides when all of them stop. */
static void be_silent(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0)
        nowhere = memfd_create("nowhere", MFD_CLOEXEC); /* a root without /dev */
    if (nowhere >= 0)
        dup2(nowhere, STDOUT_FILENO);
    log_to(NULL, NULL, LOG_WARNING);
    signal(SIGINT, SIG_IGN);
}

/* Of a machine with several GPUs the worker sees one, by its place among the workers there, unless
 * somebody has chosen. Before CUDA is used. */
static void choose_gpu(int place)
{
    enum { GPUS_MOST = 64 };
    char text[32];
    int count = 0;
    while (count < GPUS_MOST) {
        snprintf(text, sizeof text, "/dev/nvidia%d", count);
        if (access(text, F_OK) != 0)
            break;
        count++;
    }
    snprintf(text, sizeof text, "%d", place % (count ? count : 1));
    if (count > 1)
        setenv("CUDA_VISIBLE_DEVICES", text, 0);
}

static enum status work(const struct worker *worker, int place, const struct start *start)
{
    choose_gpu(place);
    if (start->patience_s > 0 && worker->comm)
        worker->comm->patience_ns = (uint64_t)(start->patience_s * 1e9);
    if (worker->rank > 0)
        be_silent();
    enum status status = start->main(worker, start->context);
    if (worker->rank > 0)
        return status;
    screen_status(NULL);
    return status == STATUS_OK ? cli_flush() : status;
}

/* The life of a worker that was started here. */
static enum status work_here(struct comm *comm, void *context)
{
    const struct start *start = context;
    const struct worker worker = {.rank = comm->rank,
                                  .size = comm->size,
                                  .local = comm->size,
                                  .comm = comm,
                                  .common = start->common};
    enum status status = work(&worker, comm->rank, start);
    if (status != STATUS_OK && worker.rank == 0) {
        start->common->status = status;
        snprintf(start->common->message, sizeof start->common->message, "%s", status_message());
    }
    return status;
}

static enum status run_here(int count, struct start *start)
{
    struct common *common =
        mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED)
        FAIL(STATUS_MEMORY, "no memory to share with %d workers: %s", count, strerror(errno));
    struct sigaction action = {.sa_handler = pass_on}, before[3];
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    asked = start->common = common;
    for (int i = 0; i < 3; i++)
        sigaction(signals[i], NULL, &before[i]);
    for (int i = 0; i < 3; i++)
        if (before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    enum status status = shm_run(count, work_here, start);
    for (int i = 0; i < 3; i++)
        sigaction(signals[i], &before[i], NULL);
    if (status != STATUS_OK && common->status == status)
        status = status_fail(status, __FILE__, __LINE__, "%s", common->message);
    munmap(common, sizeof *common);
    return status;
}

/* The first of these variables that is a number from `least` to `most`; -1: none is. */
static int read_launcher(const char *const names[3], int least, int most)
{
    for (int i = 0; i < 3; i++) {
        const long number = getenv(names[i]) ? strtol(getenv(names[i]), NULL, 10) : -1;
        if (number >= least && number <= most)
            return (int)number;
    }
    return -1;
}

/* Ranks on this machine, as far as who started them says so. */
static int count_local(int size)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_TASKS_PER_NODE"};
    const int local = read_launcher(names, 1, size);
    return local < 0 ? size : local;
}

/* Which of them this one is. */
static int local_place(const struct comm *comm)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "SLURM_LOCALID"};
    const int place = read_launcher(names, 0, comm->size - 1);
    return place < 0 ? comm->rank : place;
}

/* Launchers end all when one fails: the first speaks before. */
static _Noreturn void end_behind_first(int code)
{
    clock_sleep_ns(1000000000);
    _exit(code);
}

void worker_silent(const struct launcher *launcher)
{
    if (launcher->rank > 0)
        end_behind_first(2);
}

/* Builds may compute, and say to each other, something else. */
static enum status agree_on_build(struct comm *comm)
{
    struct text facts = {0};
    void *bytes;
    size_t length;
    TRY(file_load("/proc/self/exe", &bytes, &length));
    agree_fact(&facts, "the build", "%s %s (%016" PRIx64 ")", version_number, version_commit,
               agree_hash(0, bytes, length));
    mem_free(bytes);
    enum status status = agree(comm, &facts);
    text_free(&facts);
    return status;
}

enum status worker_join(const char *folder, const struct launcher *launcher, struct comm **out)
{
    enum status status = launcher_open(folder, launcher, out);
    if (status == STATUS_INPUT)
        worker_silent(launcher);
    TRY(status);
    status = agree_on_build(*out);
    if (status == STATUS_INPUT)
        worker_silent(launcher);
    return status;
}

/* One rank of those that somebody else started. What another has failed at, rank 0 tells. */
static enum status run_there(const char *folder, const struct launcher *launcher,
                             const struct start *start)
{
    struct comm *comm;
    TRY(worker_join(folder, launcher, &comm));
    const struct worker worker = {.rank = comm->rank,
                                  .size = comm->size,
                                  .local = count_local(comm->size),
                                  .comm = comm->size > 1 ? comm : NULL};
    enum status status = work(&worker, local_place(comm), start);
    const bool told = comm->broken != STATUS_OK && comm->rank > 0;
    if (status != STATUS_OK)
        comm_abandon(comm, status);
    comm_close(comm);
    if (status != STATUS_OK && told)
        end_behind_first(1);
    return status;
}

enum status workers_run(const char *folder, int count, double patience_s, worker_main *main,
                        void *context)
{
    struct start start = {main, context, NULL, patience_s};
    const struct worker alone = {.size = 1, .local = 1};
    struct launcher launcher;
    if (launcher_found(&launcher) && launcher.size > 1) {
        if (count)
            FAIL(STATUS_INPUT,
                 "%s says that %d ranks were started: leave out --workers, or start prony without "
                 "it",
                 launcher.by, launcher.size);
        return run_there(folder, &launcher, &start);
    }
    return count > 1 ? run_here(count, &start) : main(&alone, context);
}

int worker_threads(int workers)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    return cpu.cores > workers ? cpu.cores / workers : 1;
}
