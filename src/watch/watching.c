/* watching.c: see watching.h. */
#include "watch/watching.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "bench/meter/watch.h"
#include "watch/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static const uint64_t patience_ns = 3000000000;

void watched_free(struct watched *watched)
{
    mem_free(watched->threads);
    text_free(&watched->notes);
    *watched = (struct watched){0};
}

enum status watching_unwatched(const struct watching_options *options, struct running_end *end)
{
    struct running program;
    TRY(running_start(&program, &options->program));
    running_wait(&program, options->stopped, (uint64_t)(options->seconds * 1e9), end);
    return STATUS_OK;
}

/* A folder for the agents' files that only this user can look into: in memory where there is some
 * left there. */
static enum status make_folder(char folder[PATH_MAX])
{
    static const char memory[] = "/dev/shm";
    static const double least = 64e6;
    struct statvfs room;
    bool roomy = statvfs(memory, &room) == 0 && access(memory, W_OK) == 0 &&
                 (double)room.f_bavail * (double)room.f_bsize > least;
    snprintf(folder, PATH_MAX, "%s/prony.XXXXXX", roomy ? memory : file_temporary_folder());
    if (!mkdtemp(folder))
        FAIL(STATUS_IO, "%s: cannot make a folder for the samples: %s", folder, strerror(errno));
    return STATUS_OK;
}

static void remove_folder(const char *folder)
{
    DIR *files = opendir(folder);
    if (!files)
        return;
    for (struct dirent *entry; (entry = readdir(files)) != NULL;)
        if (text_starts(entry->d_name, AGENT_PREFIX) || text_starts(entry->d_name, GPU_PREFIX))
            unlinkat(dirfd(files), entry->d_name, 0);
    closedir(files);
    rmdir(folder);
}

/* What the program's environment gets in addition: what was asked for, and the agents. A profiler
 * of the user's for the GPU stays in its place. */
static enum status make_environment(const struct watching_options *options, const char *folder,
                                    struct arena *arena, const char ***out)
{
    const char *preloaded = getenv("LD_PRELOAD");
    size_t count = 0;
    while (options->program.environment && options->program.environment[count])
        count++;
    NEED(*out = arena_array(arena, count + 4, sizeof **out));
    for (size_t i = 0; i < count; i++)
        (*out)[i] = options->program.environment[i];
    NEED((*out)[count] = arena_format(arena, "%s=%s", AGENT_FOLDER_VARIABLE, folder));
    NEED((*out)[count + 1] =
             arena_format(arena, "LD_PRELOAD=%s%s%s", options->agent,
                          preloaded && *preloaded ? ":" : "", preloaded ? preloaded : ""));
    if (options->agent_gpu && !getenv(GPU_INJECTION_VARIABLE))
        NEED((*out)[count + 2] =
                 arena_format(arena, "%s=%s", GPU_INJECTION_VARIABLE, options->agent_gpu));
    return STATUS_OK;
}

/* Each thread that is looked at keeps a descriptor. */
static void allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void sleep_until(uint64_t time_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(time_ns / 1000000000),
                                   .tv_nsec = (long)(time_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

/* Called while the program is being stopped: it may have last things to say. */
static void look_meanwhile(void *look)
{
    (void)look_once(look, 0); /* what cannot be kept now is missing at the end, and no more */
}

/* Looks until it ends. A look that comes late, since the machine is busy, stands for the time since
 * the one before; and when looks take more than a fiftieth of the time, they become fewer. */
static enum status look_until_end(const struct watching_options *options, struct running *program,
                                  struct look *look, struct watched *watched)
{
    enum { SHARE = 50 };
    const uint64_t start_ns = clock_ns(), wanted_ns = (uint64_t)(1e9 / options->rate);
    uint64_t before_ns = start_ns, next_ns = start_ns;
    while (!running_ended(program, &watched->end)) {
        const uint64_t now_ns = clock_ns();
        const bool late =
            options->seconds > 0 && (double)(now_ns - start_ns) > options->seconds * 1e9;
        if (late || options->stopped()) {
            watched->stopped = true;
            running_stop(program, patience_ns, look_meanwhile, look, &watched->end);
            break;
        }
        TRY(look_once(look, (double)(now_ns - before_ns)));
        before_ns = now_ns;
        const double cost_ns = look->cost_ns / (double)look->looks;
        const uint64_t least_ns = (uint64_t)(cost_ns * SHARE);
        next_ns += wanted_ns > least_ns ? wanted_ns : least_ns;
        next_ns = next_ns > clock_ns() ? next_ns : clock_ns() + wanted_ns;
        sleep_until(next_ns);
    }
    return look_finish(look);
}

/* What there is to know of how it was seen. */
static void add_notes(const struct look *look, const struct watched *watched, struct text *notes)
{
    const struct named *named = &watched->named;
    enum { MAJOR = 24, MINOR = 16, BYTE = 255, FIRST = 8 };
    const unsigned major = look->python_version >> MAJOR & BYTE,
                   minor = look->python_version >> MINOR & BYTE;
    bool agent = false;
    for (size_t i = 0; i < look->process_count; i++)
        agent = agent || look->processes[i].ring.head;
    if (!agent && named->samples >= WATCHED_FEW)
        text_add(notes, "no agent answered: the program is static, or refuses LD_PRELOAD "
                        "(as those with other rights do), so that there are no stacks\n");
    if (look->python_version && look->python_unknown && minor < FIRST)
        text_printf(notes, "this Python is older than 3.%d: frames of C only\n", FIRST);
    else if (look->python_version && look->python_unknown)
        text_printf(notes, "Python %u.%u is not known here: frames of C only\n", major, minor);
    if (look->call_refused)
        text_add(notes, "the system does not say in which calls threads wait\n");
    if (look->memory_refused)
        text_add(notes, "the system does not let prony read the memory of the program: threads "
                        "that wait have no Python lines\n");
    if (agent && named->unanswered * 20 > named->samples)
        text_printf(notes,
                    "%.0f %% of the samples were not answered: threads that block signals, or a "
                    "program with its own handler of SIGURG\n",
                    100.0 * (double)named->unanswered / (double)named->samples);
    if (watched->lost > 0)
        text_printf(notes, "%.0f samples were lost\n", watched->lost);
    if (look->unreadable)
        text_printf(notes, "%llu records of the agent could not be read\n",
                    (unsigned long long)look->unreadable);
}

/* What there is to know of how the GPU was seen. */
static void add_gpu_notes(const struct gpu_seen *gpu, struct text *notes)
{
    if (getenv(GPU_INJECTION_VARIABLE))
        text_add(notes, GPU_INJECTION_VARIABLE " is set already, so that the GPU is not watched\n");
    if (*gpu->reason)
        text_printf(notes, "the GPU was not watched%s: %s\n",
                    gpu->processes > 1 ? " in one of the processes" : "", gpu->reason);
    if (gpu->computed > 1)
        text_printf(notes,
                    "%zu processes computed on GPUs: those of process %lld are shown, whose "
                    "kernels took longest\n",
                    gpu->computed, (long long)gpu->process);
    if (gpu->lost > 0)
        text_printf(notes, "%.0f records of the GPU were lost\n", gpu->lost);
    if (gpu->killed)
        text_add(notes, "the program did not end by itself: the last moments of the GPU may be "
                        "missing\n");
    if (gpu->unreadable)
        text_printf(notes, "%llu records of the GPU could not be read\n",
                    (unsigned long long)gpu->unreadable);
}

/* What else the machine did meanwhile, and what the user's environment did to the GPU. */
static enum status note_machine(struct watch *machine, struct trace *trace)
{
    struct text found = {0};
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    enum status status = STATUS_OK;
    watch_end(machine);
    watch_note(machine, &found);
    if (found.length > 2) /* "; …" */
        status = trace_add_fact(trace, "machine", text_of(&found) + 2);
    text_free(&found);
    if (status == STATUS_OK && blocking && *blocking && strcmp(blocking, "0") != 0)
        status = trace_add_fact(trace, "machine",
                                "CUDA_LAUNCH_BLOCKING is set: each launch waits for its kernel");
    return status;
}

static enum status finish(struct look *look, struct gathered *gathered, struct trace *trace,
                          struct watched *watched)
{
    TRY(naming_trace(gathered, trace, &watched->named));
    TRY(gpu_seen_read(look->folder, trace, &watched->gpu));
    add_gpu_notes(&watched->gpu, &watched->notes);
    watched->looks = (double)look->looks;
    watched->look_ns = look->cost_ns;
    watched->python_version = look->python_version;
    watched->process_count = look->process_count;
    look_sum(look, &watched->lost, &watched->handler_ns);
    add_notes(look, watched, &watched->notes);
    watched->threads = gathered->threads;
    watched->thread_count = gathered->thread_count;
    gathered->threads = NULL;
    TRY(trace_add_fact(trace, "format", "prony"));
    TRY(text_done(&watched->notes));
    return trace_finish(trace, "the samples");
}

enum status watching_run(const struct watching_options *options, struct trace *trace,
                         struct watched *watched)
{
    char folder[PATH_MAX];
    struct arena arena = {0};
    struct gathered gathered = {0};
    struct running program = {0};
    struct watch machine = {0};
    struct running_options started = options->program;
    const char **environment;
    struct look *look = NULL;
    struct timespec now;
    enum status status;

    clock_gettime(CLOCK_REALTIME, &now);
    *watched =
        (struct watched){.start_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000};
    TRY(make_folder(folder));
    allow_descriptors();
    NEED_OR(done, look = mem_alloc(sizeof *look));
    TRY_OR(done, make_environment(options, folder, &arena, &environment));
    started.environment = environment;
    watch_open(&machine);
    watch_begin(&machine);
    TRY_OR(done, running_start(&program, &started));
    TRY_OR(done, look_open(look, folder, program.process, &gathered));
    TRY_OR(done, look_until_end(options, &program, look, watched));
    TRY_OR(done, note_machine(&machine, trace));
    TRY_OR(done, finish(look, &gathered, trace, watched));
done:
    if (program.process)
        running_stop(&program, patience_ns, NULL, NULL, &watched->end);
    if (look)
        look_close(look);
    mem_free(look);
    remove_folder(folder);
    gathered_free(&gathered);
    arena_free(&arena);
    return status;
}

static enum status read_beats(const char *folder, const struct beat *beat, bool *known,
                              double *step_ns, double *spread_ns)
{
    struct trace trace = {0};
    struct gpu_seen seen;
    enum status status = gpu_seen_read(folder, &trace, &seen);
    if (status == STATUS_OK)
        status = trace_finish(&trace, "the calls");
    if (status == STATUS_OK)
        *known = seen.processes > 0 && beat_times(&trace, beat, step_ns, spread_ns);
    trace_free(&trace);
    return status;
}

enum status watching_beats(const struct watching_options *options, const struct beat *beat,
                           bool *known, double *step_ns, double *spread_ns, struct running_end *end)
{
    char folder[PATH_MAX];
    struct arena arena = {0};
    struct running program;
    struct running_options started = options->program;
    const char **environment;
    enum status status;

    *known = false;
    *end = (struct running_end){0};
    TRY(make_folder(folder));
    NEED_OR(done, environment = arena_array(&arena, 4, sizeof *environment));
    NEED_OR(done, environment[0] = arena_format(&arena, "%s=%s", AGENT_FOLDER_VARIABLE, folder));
    NEED_OR(done, environment[1] =
                      arena_format(&arena, "%s=%s", GPU_INJECTION_VARIABLE, options->agent_gpu));
    NEED_OR(done, environment[2] = arena_format(&arena, "%s=%s", GPU_BEAT_VARIABLE, beat->name));
    started.environment = environment;
    started.silent = true; /* it has said it twice */
    TRY_OR(done, running_start(&program, &started));
    running_wait(&program, options->stopped, 0, end);
    if (!end->code && !end->signal)
        TRY_OR(done, read_beats(folder, beat, known, step_ns, spread_ns));
done:
    remove_folder(folder);
    arena_free(&arena);
    return status;
}
