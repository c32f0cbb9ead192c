/* look.c: see look.h. */
#include "watch/look.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "bench/meter/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const uint64_t family_every_ns = 250000000, maps_every_ns = 300000000;
/* A thread that says nothing for so long, though it had a core for a while of it, is told as is.
 * One that has had none is waited for. */
static const double unanswered_ns = 300e6, patience_ns = 5e9;
static const uint64_t enough_ns = 20000000;

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct look_process *find_process(struct look *look, pid_t number)
{
    for (size_t i = 0; i < look->process_count; i++)
        if (look->processes[i].number == number && !look->processes[i].gone)
            return &look->processes[i];
    return NULL;
}

static struct look_process *add_process(struct look *look, pid_t number)
{
    struct look_process *process = find_process(look, number);
    if (process || look->process_count == LOOK_PROCESSES)
        return process;
    process = &look->processes[look->process_count++];
    *process = (struct look_process){.number = number};
    return process;
}

enum status look_open(struct look *look, const char *folder, pid_t eldest,
                      struct gathered *gathered)
{
    *look = (struct look){.folder = folder, .eldest = eldest, .gathered = gathered};
    add_process(look, eldest);
    return STATUS_OK;
}

static void end_thread(struct look_process *process, size_t place)
{
    if (process->threads[place].schedstat >= 0)
        close(process->threads[place].schedstat);
    process->threads[place] = process->threads[--process->thread_count];
}

void look_close(struct look *look)
{
    for (size_t i = 0; i < look->process_count; i++) {
        struct look_process *process = &look->processes[i];
        while (process->thread_count)
            end_thread(process, process->thread_count - 1);
        mem_free(process->threads);
        maps_free(&process->maps);
        ring_close(&process->ring);
    }
    look->process_count = 0;
}

/* Takes in what the agents began since the last time. Becoming another program (exec) begins a new
 * file: the one before is over. */
static void find_rings(struct look *look)
{
    DIR *files = opendir(look->folder);
    if (!files)
        return;
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        char path[PATH_MAX];
        if (strncmp(entry->d_name, AGENT_PREFIX, sizeof AGENT_PREFIX - 1) != 0)
            continue;
        pid_t number = (pid_t)strtol(entry->d_name + sizeof AGENT_PREFIX - 1, NULL, 10);
        struct look_process *process = add_process(look, number);
        struct ring ring;
        snprintf(path, sizeof path, "%s/%s", look->folder, entry->d_name);
        if (!process || ring_open(&ring, path) != STATUS_OK)
            continue;
        unlink(path); /* it lives on in both maps, and is found once */
        ring_close(&process->ring);
        process->ring = ring;
        maps_free(&process->maps);
        if (!look->python_version && ring.head->python_version) {
            look->python_version = ring.head->python_version;
            look->python_unknown = !ring.python_readable;
        }
    }
    closedir(files);
}

/* Those that have no agent: static programs, and those that refuse it. */
static void find_family(struct look *look)
{
    struct family family;
    family_find(look->eldest, &family);
    for (int i = 0; i < family.count; i++)
        add_process(look, family.processes[i]);
}

static enum status keep_code(struct gathered *gathered, const struct agent_code *record)
{
    char name[AGENT_NAME_MOST + 1], file[AGENT_FILE_MOST + 1];
    const char *bytes = (const char *)(record + 1);
    memcpy(name, bytes, record->name_bytes);
    name[record->name_bytes] = '\0';
    memcpy(file, bytes + record->name_bytes, record->file_bytes);
    file[record->file_bytes] = '\0';
    const struct code code = {.key = record->code,
                              .name = name,
                              .file = file,
                              .first_line = record->first_line,
                              .lines = record->lines,
                              .table = (const unsigned char *)bytes + record->name_bytes +
                                       record->file_bytes,
                              .table_bytes = record->table_bytes};
    return code.key ? gathered_add_code(gathered, &code) : STATUS_OK;
}

static struct look_thread *find_thread(struct look_process *process, pid_t number)
{
    for (size_t i = 0; i < process->thread_count; i++)
        if (process->threads[i].number == number)
            return &process->threads[i];
    return NULL;
}

static enum status place_frames(struct look *look, struct look_process *process, size_t count,
                                const uint64_t *native, uint64_t *words)
{
    bool unknown = false;
    for (size_t i = 0; i < count; i++) {
        words[i] = maps_place(&process->maps, native[i]);
        unknown = unknown || !words[i];
    }
    if (!unknown || clock_ns() - process->maps.read_ns < maps_every_ns / 10)
        return STATUS_OK;
    TRY(maps_read(&process->maps, process->number, &look->gathered->modules));
    for (size_t i = 0; i < count; i++)
        words[i] = maps_place(&process->maps, native[i]);
    return STATUS_OK;
}

struct reading {
    struct look *look;
    struct look_process *process;
};

static enum status keep_sample(const struct reading *reading, const struct agent_sample *sample)
{
    struct look *look = reading->look;
    struct look_thread *thread = find_thread(reading->process, sample->thread);
    const uint64_t *native = (const uint64_t *)(const void *)(sample + 1);
    const struct agent_python *python =
        (const struct agent_python *)(const void *)(native + sample->native_count);
    uint64_t *words;
    if (!thread || thread->pending_ns <= 0)
        return STATUS_OK;
    const struct sighting sighting = {
        .start_ns = sample->time_ns,
        .end_ns = sample->time_ns + (uint64_t)thread->pending_ns,
        .thread = (uint32_t)thread->seen,
        .call = SIGHTING_RUNS,
        .native = sample->native_count,
        .python = sample->python_count,
        .torn = sample->torn,
        .cut = sample->cut,
    };
    thread->pending_ns = 0;
    look->answered++;
    look->torn += sample->torn != 0;
    TRY(gathered_add(look->gathered, &sighting, &words));
    if (!words)
        return STATUS_OK;
    for (size_t i = 0; i < sample->python_count; i++) {
        words[sample->native_count + 2 * i] = python[i].code;
        words[sample->native_count + 2 * i + 1] =
            (uint64_t)python[i].instruction << 1 | (python[i].entry & 1);
    }
    return place_frames(look, reading->process, sample->native_count, native, words);
}

static enum status keep_record(void *context, const struct agent_record *record, uint32_t kind)
{
    const struct reading *reading = context;
    const struct agent_sample *sample = (const void *)record;
    const struct agent_code *code = (const void *)record;
    if (kind == AGENT_SAMPLE && ring_sample_fits(sample))
        return keep_sample(reading, sample);
    if (kind == AGENT_CODE && ring_code_fits(code))
        return keep_code(reading->look->gathered, code);
    reading->look->unreadable++;
    return STATUS_OK;
}

static enum status read_ring(struct look *look, struct look_process *process)
{
    struct reading reading = {look, process};
    if (!process->ring.head || atomic_load(&process->ring.head->written) == process->ring.freed)
        return STATUS_OK;
    if (clock_ns() - process->maps.read_ns > maps_every_ns)
        TRY(maps_read(&process->maps, process->number, &look->gathered->modules));
    if (ring_read(&process->ring, keep_record, &reading) != STATUS_OK) {
        look->unreadable++; /* and nothing more is read of it */
        ring_close(&process->ring);
    }
    return STATUS_OK;
}

/* Reads a small file of /proc; how many bytes. */
static size_t read_small(const char *path, char *to, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, to, room - 1);
    if (fd >= 0)
        close(fd);
    to[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

/* Time on a core, time of waiting for one, how often it came onto one. Did it move since? */
static bool read_schedule(struct look_thread *thread)
{
    char text[80];
    uint64_t ran, runnable, slices;
    ssize_t got = thread->schedstat < 0 ? -1 : pread(thread->schedstat, text, sizeof text - 1, 0);
    if (got <= 0)
        return true; /* the system does not say: it may have */
    text[got] = '\0';
    if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &ran, &runnable, &slices) != 3)
        return true;
    bool moved = slices != thread->slices || ran != thread->ran_ns;
    thread->ran_ns = ran;
    thread->runnable_ns = runnable;
    thread->slices = slices;
    return moved;
}

/* Faults that need no storage, and time in the system: the seventh field behind the state, and five
 * later. */
static void read_usage(const char *fields, struct seen_thread *seen)
{
    uint64_t faults, ticks;
    const double tick_ns = 1e9 / (double)sysconf(_SC_CLK_TCK);
    if (sscanf(fields, "%*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %*u %*u %*u %" SCNu64, &faults,
               &ticks) != 2)
        return;
    seen->faults = (double)faults;
    seen->system_ns = (double)ticks * tick_ns;
}

/* Its state ('R', 'S' …; 0: it is gone), its name, and what it used. */
static char read_state(const struct look_process *process, pid_t thread, struct seen_thread *seen)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)process->number, (int)thread);
    if (!read_small(path, text, sizeof text))
        return 0;
    const char *open = strchr(text, '('), *end = strrchr(text, ')');
    if (!open || !end || end < open || end[1] != ' ' || !end[2])
        return 0;
    size_t length = (size_t)(end - open - 1);
    length = length < 15 ? length : 15;
    memcpy(seen->name, open + 1, length);
    seen->name[length] = '\0';
    read_usage(end + 3, seen);
    return end[2];
}

/* The system call that a waiting thread is in. */
static int32_t read_call(struct look *look, const struct look_process *process, pid_t thread)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)process->number, (int)thread);
    int64_t number = -1;
    if (!read_small(path, text, sizeof text)) {
        look->call_refused = look->call_refused || errno == EPERM || errno == EACCES;
        return SIGHTING_UNKNOWN;
    }
    text[strcspn(text, " \n")] = '\0';
    if (!text_to_int(text, &number)) /* "running": it has just been woken */
        return SIGHTING_WAKES;
    return number >= 0 && number < INT16_MAX ? (int32_t)number : SIGHTING_FAULT;
}

/* A function that no sample of the agent has named yet. */
static enum status code_from_outside(struct look *look, const struct python_place *python,
                                     const struct python_frame *frame, uint64_t key)
{
    char name[AGENT_NAME_MOST + 1], file[AGENT_FILE_MOST + 1];
    unsigned char *table = mem_alloc(AGENT_TABLE_MOST);
    NEED(table);
    name[python_text(python, frame->name, name, AGENT_NAME_MOST)] = '\0';
    file[python_text(python, frame->file, file, AGENT_FILE_MOST)] = '\0';
    const struct code code = {.key = key,
                              .name = name,
                              .file = file,
                              .first_line = frame->first_line,
                              .lines = python->layout.lines,
                              .table = table,
                              .table_bytes =
                                  python_bytes(python, frame->table, table, AGENT_TABLE_MOST)};
    enum status status = gathered_add_code(look->gathered, &code);
    mem_free(table);
    return status;
}

/* The Python frames of a thread, read from outside; how many. */
static size_t frames_from_outside(struct look *look, const struct look_process *process,
                                  pid_t thread, struct python_frame *frames, bool *torn)
{
    bool cut;
    uint64_t word;
    const struct python_place *python = &process->ring.python;
    *torn = false;
    if (!process->ring.head || !process->ring.python_readable)
        return 0;
    uint64_t state = python_find_thread(python, thread);
    if (state)
        return python_walk(python, state, frames, AGENT_PYTHON_MOST, torn, &cut);
    if (!python_read(process->number, python->runtime, &word, sizeof word))
        look->memory_refused = look->memory_refused || errno == EPERM || errno == ENOSYS;
    return 0;
}

/* Adds a sighting with what can be seen from outside. */
static enum status see_outside(struct look *look, struct look_process *process, pid_t thread,
                               struct sighting *sighting)
{
    struct python_frame frames[AGENT_PYTHON_MOST];
    uint64_t *words;
    size_t count = frames_from_outside(look, process, thread, frames, &sighting->torn);
    sighting->python = (uint32_t)count;
    TRY(gathered_add(look->gathered, sighting, &words));
    for (size_t i = 0; words && i < count; i++) {
        uint64_t key = python_key(&frames[i]);
        words[2 * i] = key;
        words[2 * i + 1] = (uint64_t)frames[i].instruction << 1 | frames[i].entry;
    }
    for (size_t i = 0; words && i < count; i++)
        if (!gathered_code(look->gathered, python_key(&frames[i])))
            TRY(code_from_outside(look, &process->ring.python, &frames[i], python_key(&frames[i])));
    return STATUS_OK;
}

/* Asks a running thread where it is. */
static bool ask(struct look *look, const struct look_process *process, pid_t thread)
{
    if (!process->ring.head)
        return false;
    siginfo_t info = {.si_signo = AGENT_SIGNAL, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(uintptr_t)process->ring.head->nonce;
    look->asked++;
    return syscall(SYS_rt_tgsigqueueinfo, process->number, thread, AGENT_SIGNAL, &info) == 0;
}

/* Has it had a core since it was asked first? Where the system does not say, it may have. */
static bool had_core(const struct look_thread *thread)
{
    return !thread->slices || thread->ran_ns - thread->asked_ran_ns > enough_ns;
}

/* It ran for the time of these looks, and nobody knows where. */
static enum status tell_unanswered(struct look *look, struct look_process *process,
                                   struct look_thread *thread, uint64_t now_ns)
{
    struct sighting sighting = {.start_ns = now_ns,
                                .end_ns = now_ns + (uint64_t)thread->pending_ns,
                                .thread = (uint32_t)thread->seen,
                                .call = SIGHTING_RUNS,
                                .unanswered = had_core(thread)};
    if (thread->pending_ns <= 0)
        return STATUS_OK;
    thread->pending_ns = 0;
    return see_outside(look, process, thread->number, &sighting);
}

static enum status see_running(struct look *look, struct look_process *process,
                               struct look_thread *thread, double period_ns, uint64_t now_ns)
{
    thread->nap = SIZE_MAX;
    look->gathered->threads[thread->seen].ticks_running += period_ns;
    if (thread->pending_ns <= 0)
        thread->asked_ran_ns = thread->ran_ns;
    thread->pending_ns += period_ns;
    const bool asked = ask(look, process, thread->number);
    if (!asked || thread->pending_ns > (had_core(thread) ? unanswered_ns : patience_ns))
        return tell_unanswered(look, process, thread, now_ns);
    return STATUS_OK;
}

static enum status see_waiting(struct look *look, struct look_process *process,
                               struct look_thread *thread, char state, double period_ns,
                               uint64_t now_ns)
{
    struct gathered *gathered = look->gathered;
    gathered->threads[thread->seen].ticks_waiting += period_ns;
    struct sighting sighting = {.start_ns = now_ns,
                                .end_ns = now_ns + (uint64_t)period_ns,
                                .thread = (uint32_t)thread->seen,
                                .call = read_call(look, process, thread->number),
                                .device = state == 'D'};
    TRY(see_outside(look, process, thread->number, &sighting));
    thread->nap = gathered->full ? SIZE_MAX : gathered->sighting_count - 1;
    return STATUS_OK;
}

static enum status see_thread(struct look *look, struct look_process *process,
                              struct look_thread *thread, double period_ns, uint64_t now_ns)
{
    struct seen_thread *seen = &look->gathered->threads[thread->seen];
    bool moved = read_schedule(thread);
    seen->last_ns = now_ns;
    if (thread->slices) {
        seen->ran_ns = (double)thread->ran_ns;
        seen->runnable_ns = (double)thread->runnable_ns;
    }
    if (!moved && thread->nap != SIZE_MAX) { /* it has slept on since the last look */
        look->gathered->sightings[thread->nap].end_ns = now_ns + (uint64_t)period_ns;
        seen->ticks_waiting += period_ns;
        return STATUS_OK;
    }
    char state = read_state(process, thread->number, seen);
    if (!state || state == 'Z' || state == 'X')
        return STATUS_OK;
    return state == 'R' ? see_running(look, process, thread, period_ns, now_ns)
                        : see_waiting(look, process, thread, state, period_ns, now_ns);
}

static enum status add_thread(struct look *look, struct look_process *process, pid_t number,
                              uint64_t now_ns)
{
    char path[64];
    const struct seen_thread seen = {.process = process->number,
                                     .thread = number,
                                     .first_ns = now_ns,
                                     .ran_ns = NAN,
                                     .runnable_ns = NAN};
    if (process->thread_count == process->thread_room) {
        size_t room = process->thread_room ? 2 * process->thread_room : 16;
        struct look_thread *grown = mem_grow(process->threads, room, sizeof *grown);
        NEED(grown);
        process->threads = grown;
        process->thread_room = room;
    }
    struct look_thread *thread = &process->threads[process->thread_count];
    *thread = (struct look_thread){.number = number, .nap = SIZE_MAX};
    TRY(gathered_add_thread(look->gathered, &seen, &thread->seen));
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)process->number, (int)number);
    thread->schedstat = open(path, O_RDONLY | O_CLOEXEC);
    process->thread_count++;
    return STATUS_OK;
}

/* Which threads it has now. */
static enum status list_threads(struct look *look, struct look_process *process, uint64_t now_ns)
{
    char path[40];
    enum status status = STATUS_OK;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process->number);
    for (size_t i = 0; i < process->thread_count; i++)
        process->threads[i].found = false;
    DIR *tasks = opendir(path);
    process->gone = !tasks;
    if (!tasks)
        return STATUS_OK;
    for (struct dirent *task; status == STATUS_OK && (task = readdir(tasks)) != NULL;) {
        pid_t number = (pid_t)strtol(task->d_name, NULL, 10);
        if (number <= 0)
            continue;
        if (!find_thread(process, number))
            status = add_thread(look, process, number, now_ns);
        struct look_thread *thread = find_thread(process, number);
        if (thread)
            thread->found = true;
    }
    closedir(tasks);
    return status;
}

static enum status see_process(struct look *look, struct look_process *process, double period_ns,
                               uint64_t now_ns)
{
    TRY(read_ring(look, process));
    TRY(list_threads(look, process, now_ns));
    for (size_t i = process->thread_count; i-- > 0;) {
        struct look_thread *thread = &process->threads[i];
        if (thread->found) {
            TRY(see_thread(look, process, thread, period_ns, now_ns));
            continue;
        }
        TRY(tell_unanswered(look, process, thread, now_ns));
        end_thread(process, i);
    }
    return STATUS_OK;
}

enum status look_once(struct look *look, double period_ns)
{
    const uint64_t cpu_ns = thread_cpu_ns(), now_ns = clock_ns();
    enum status status = STATUS_OK;
    find_rings(look);
    if (now_ns - look->family_ns > family_every_ns) {
        find_family(look);
        look->family_ns = now_ns;
    }
    for (size_t i = 0; i < look->process_count && status == STATUS_OK; i++)
        if (!look->processes[i].gone)
            status = see_process(look, &look->processes[i], period_ns, now_ns);
    look->looks++;
    look->cost_ns += (double)(thread_cpu_ns() - cpu_ns);
    return status;
}

enum status look_finish(struct look *look)
{
    for (size_t i = 0; i < look->process_count; i++) {
        struct look_process *process = &look->processes[i];
        TRY(read_ring(look, process));
        for (size_t j = 0; j < process->thread_count; j++)
            TRY(tell_unanswered(look, process, &process->threads[j], clock_ns()));
    }
    return STATUS_OK;
}

void look_sum(const struct look *look, double *lost, double *handler_ns)
{
    *lost = *handler_ns = 0;
    for (size_t i = 0; i < look->process_count; i++) {
        const struct agent_head *head = look->processes[i].ring.head;
        if (!head)
            continue;
        *lost += (double)atomic_load(&head->lost);
        *handler_ns += (double)atomic_load(&head->handler_ns);
    }
}
