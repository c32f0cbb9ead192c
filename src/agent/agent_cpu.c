/* agent_cpu.c: what LD_PRELOAD brings into a watched program: a signal handler that writes down
 * where its thread is. See agent_ring.h for the way it is asked, and for what it shares with prony.
 *
 * In the handler nothing allocates, locks or opens: the stack is unwound by backtrace(), which
 * takes no lock since glibc 2.35 (its library is loaded beforehand), Python's frames are read
 * through the system, which refuses a bad address instead of ending the program, and records go
 * into a ring that is mapped. What the program has open, how many threads it has and what it does
 * with SIGPROF stay as they are. Where it installs a handler of its own for AGENT_SIGNAL, that one
 * is left alone. */
#include "agent/agent_ring.h"
#include "agent/python_layout.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { CODES = 1 << 14, DESKS = 32, OURS = 8 };

static struct agent_head *ring; /* NULL: this process is not watched */
static struct python_place python;
static void *(*python_this_thread)(void); /* NULL: no Python, or one that is not known */
static _Atomic uint64_t codes[CODES];     /* keys of functions that are written */
static struct sigaction before;           /* the program's, if it had one */

/* What a handler works on: not its stack, which may be small. As many threads can be asked at once;
 * one more is asked again a moment later. */
static struct desk {
    _Atomic int busy;
    void *found[AGENT_NATIVE_MOST + OURS];
    uint64_t native[AGENT_NATIVE_MOST];
    struct python_frame frames[AGENT_PYTHON_MOST];
    char name[AGENT_NAME_MOST], file[AGENT_FILE_MOST];
} desks[DESKS];

static uint64_t clock_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

static unsigned char *ring_at(uint64_t place)
{
    return (unsigned char *)ring + AGENT_HEAD + place % AGENT_RING;
}

static size_t whole_words(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/* Room for a record, in one piece, or NULL. What is left at the end of the ring becomes padding. */
static struct agent_record *ring_take(size_t bytes)
{
    bytes = whole_words(bytes);
    uint64_t written = atomic_load(&ring->written), place;
    size_t padding;
    do {
        size_t left = AGENT_RING - written % AGENT_RING;
        padding = left < bytes ? left : 0;
        place = written + padding;
        if (place + bytes - atomic_load(&ring->freed) > AGENT_RING)
            return NULL;
    } while (!atomic_compare_exchange_weak(&ring->written, &written, place + bytes));
    if (padding) {
        struct agent_record *rest = (struct agent_record *)(void *)ring_at(written);
        rest->bytes = (uint32_t)padding;
        atomic_store_explicit(&rest->kind, AGENT_PADDING, memory_order_release);
    }
    struct agent_record *record = (struct agent_record *)(void *)ring_at(place);
    record->bytes = (uint32_t)bytes;
    return record;
}

static void ring_finish(struct agent_record *record, enum agent_kind kind)
{
    atomic_store_explicit(&record->kind, kind, memory_order_release);
}

/* True for the first that asks for this function. */
static bool code_is_new(uint64_t key)
{
    enum { TRIES = 64 };
    for (uint64_t i = 0; i < TRIES; i++) {
        _Atomic uint64_t *slot = &codes[(key + i) % CODES];
        uint64_t there = 0;
        if (atomic_load(slot) == key)
            return false;
        if (atomic_compare_exchange_strong(slot, &there, key))
            return true;
        if (there == key)
            return false;
    }
    return false; /* there are too many: its samples have no name */
}

static void code_forget(uint64_t key)
{
    for (size_t i = 0; i < CODES; i++) {
        uint64_t there = key;
        if (atomic_compare_exchange_strong(&codes[(key + i) % CODES], &there, 0))
            return;
    }
}

/* How long the line table is; 0 where it cannot be read or is too long. */
static size_t table_length(uint64_t table)
{
    enum { SIZE = 16 };
    uint64_t length = 0;
    if (!python_read(python.process, table + SIZE, &length, sizeof length) ||
        length > AGENT_TABLE_MOST)
        return 0;
    return (size_t)length;
}

static void write_code(struct desk *desk, const struct python_frame *frame, uint64_t key)
{
    size_t name_bytes = python_text(&python, frame->name, desk->name, sizeof desk->name);
    size_t file_bytes = python_text(&python, frame->file, desk->file, sizeof desk->file);
    size_t table_bytes = table_length(frame->table);
    struct agent_code *code =
        (void *)ring_take(sizeof *code + name_bytes + file_bytes + table_bytes);
    if (!code) {
        code_forget(key);
        return;
    }
    char *bytes = (char *)(code + 1);
    code->code = key;
    code->first_line = frame->first_line;
    code->lines = python.layout.lines;
    code->name_bytes = (uint32_t)name_bytes;
    code->file_bytes = (uint32_t)file_bytes;
    memcpy(bytes, desk->name, name_bytes);
    memcpy(bytes + name_bytes, desk->file, file_bytes);
    code->table_bytes =
        (uint32_t)python_bytes(&python, frame->table, bytes + name_bytes + file_bytes, table_bytes);
    ring_finish(&code->record, AGENT_CODE);
}

/* The instruction that was interrupted. */
static uint64_t interrupted_at(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* The frames of the program, without those of this handler. A return address is behind its call:
 * one less is in it. */
static size_t native_frames(struct desk *desk, const ucontext_t *context, uint32_t *cut)
{
    const int found = backtrace(desk->found, AGENT_NATIVE_MOST + OURS);
    const uint64_t pc = interrupted_at(context);
    size_t count = 0;
    int i = 0;
    while (i < found && i < OURS && (uint64_t)(uintptr_t)desk->found[i] != pc)
        i++;
    desk->native[count++] = pc;
    if (i == found || i == OURS)
        return count; /* nothing is known of how to go on from there */
    for (i++; i < found && count < AGENT_NATIVE_MOST; i++)
        desk->native[count++] = (uint64_t)(uintptr_t)desk->found[i] - 1;
    *cut |= i < found;
    return count;
}

static size_t python_frames(struct desk *desk, bool *torn, uint32_t *cut)
{
    bool more = false;
    void *state = python_this_thread ? python_this_thread() : NULL;
    if (!state)
        return 0;
    size_t count = python_walk(&python, (uint64_t)(uintptr_t)state, desk->frames, AGENT_PYTHON_MOST,
                               torn, &more);
    *cut |= more ? 2 : 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t key = python_key(&desk->frames[i]);
        if (code_is_new(key))
            write_code(desk, &desk->frames[i], key);
    }
    return count;
}

static void write_sample(struct desk *desk, const ucontext_t *context, uint64_t time_ns)
{
    uint32_t cut = 0;
    bool torn = false;
    const size_t natives = native_frames(desk, context, &cut);
    const size_t pythons = python_frames(desk, &torn, &cut);
    struct agent_sample *sample = (void *)ring_take(
        sizeof *sample + natives * sizeof *desk->native + pythons * sizeof(struct agent_python));
    if (!sample) {
        atomic_fetch_add(&ring->lost, 1);
        return;
    }
    sample->time_ns = time_ns;
    sample->thread = gettid();
    sample->native_count = (uint16_t)natives;
    sample->python_count = (uint16_t)pythons;
    sample->cut = cut;
    sample->torn = torn;
    memcpy(sample + 1, desk->native, natives * sizeof *desk->native);
    struct agent_python *out = (void *)((uint64_t *)(void *)(sample + 1) + natives);
    for (size_t i = 0; i < pythons; i++)
        out[i] = (struct agent_python){python_key(&desk->frames[i]), desk->frames[i].instruction,
                                       desk->frames[i].entry};
    ring_finish(&sample->record, AGENT_SAMPLE);
}

static void take_sample(const ucontext_t *context)
{
    const uint64_t time_ns = now_ns(), start_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < DESKS; i++) {
        int free_one = 0;
        if (!atomic_compare_exchange_strong(&desks[i].busy, &free_one, 1))
            continue;
        write_sample(&desks[i], context, time_ns);
        atomic_store(&desks[i].busy, 0);
        atomic_fetch_add(&ring->handler_ns, clock_of(CLOCK_THREAD_CPUTIME_ID) - start_ns);
        return;
    }
    atomic_fetch_add(&ring->lost, 1);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const int saved = errno;
    struct agent_head *head = ring;
    if (head && info->si_code == SI_QUEUE &&
        (uint64_t)(uintptr_t)info->si_value.sival_ptr == head->nonce)
        take_sample(context);
    else if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    errno = saved;
}

/* Does the interpreter in this program have a layout that is known? */
static void find_python(struct agent_head *head)
{
    void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    void *code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    void *this_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    if (!runtime || !code_type || !this_thread)
        return;
    head->python_version = python_version();
    head->python_runtime = (uint64_t)(uintptr_t)runtime;
    head->python_code_type = (uint64_t)(uintptr_t)code_type;
    python = (struct python_place){
        .process = getpid(), .runtime = head->python_runtime, .code_type = head->python_code_type};
    if (!python_layout_find(head->python_version, python.process, python.runtime, &python.layout))
        return;
    head->python_readable = 1;
    *(void **)(void *)&python_this_thread = this_thread;
}

/* A file of this process in the folder, mapped; NULL where that cannot be. It is allocated whole,
 * so that writing to it never fails. */
static struct agent_head *map_file(const char *folder, uint64_t start_ns)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" AGENT_PREFIX "%d.%llu", folder, (int)getpid(),
             (unsigned long long)start_ns);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return NULL;
    void *map = MAP_FAILED;
    if (posix_fallocate(fd, 0, AGENT_BYTES) == 0)
        map = mmap(NULL, AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

static void start(void)
{
    const char *folder = getenv(AGENT_FOLDER_VARIABLE);
    const uint64_t start_ns = now_ns();
    if (!folder || *folder != '/')
        return;
    struct agent_head *head = map_file(folder, start_ns);
    if (!head)
        return;
    head->version = AGENT_VERSION;
    head->process = getpid();
    head->start_ns = start_ns;
    head->nonce = start_ns ^ (uint64_t)(uintptr_t)head;
    python_this_thread = NULL;
    find_python(head);
    memset(codes, 0, sizeof codes);
    memset(desks, 0, sizeof desks); /* of a parent that forked in a handler: none is busy here */
    ring = head;
    atomic_thread_fence(memory_order_release);
    memcpy(head->magic, AGENT_MAGIC, sizeof head->magic);
}

/* After fork: the file is the parent's, so that it is left alone from the first moment on. */
static void start_in_child(void)
{
    if (!ring)
        return;
    munmap(ring, AGENT_BYTES);
    ring = NULL;
    start();
}

__attribute__((constructor)) static void agent_start(void)
{
    void *frames[4];
    if (!getenv(AGENT_FOLDER_VARIABLE))
        return;
    backtrace(frames, 4); /* loads what it needs now, and not in a handler */
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigaction(AGENT_SIGNAL, NULL, &before);
    start();
    if (!ring)
        return;
    sigaction(AGENT_SIGNAL, &action, NULL);
    pthread_atfork(NULL, NULL, start_in_child);
}
