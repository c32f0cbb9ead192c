/* agent_cuda.c: what CUDA's driver brings into a watched program (CUDA_INJECTION64_PATH): notes
 * what the GPU ran, copied and set, and the calls that asked for it, each with the line of Python.
 *
 * CUPTI tells of two things. Its activity records say what ran and when; they come in buffers, on a
 * thread of its own. Its callbacks come in the calling thread, at the start and end of a call: only
 * for calls that matter, a dozen of the many that a framework makes. There the thread stands in its
 * own frames, so that these can be read as they are. A thread without frames of Python, as the one
 * that computes gradients, has the line on which the main thread waits for it.
 *
 * Only one client of CUPTI is possible at a time: where another is first, or CUPTI is missing, the
 * file says so, and the program runs as it would. */
#include "agent/agent_ring.h"
#include "agent/cupti_find.h"
#include "agent/gpu_writer.h"
#include "agent/python_layout.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Small buffers, asked for twice a second: a program that is killed loses what is in them. */
enum {
    BUFFER_BYTES = 1 << 16,
    BUFFERS = 256,
    FLUSH_MS = 100,
    FUNCTIONS = 1200,
    CONTEXTS = 64,
    GPUS = 64
};
static const uint64_t flush_every_ns = 500000000;

static struct cupti cupti;
static struct gpu_head *head;
static const char *beat; /* the only call that is noted, beside waits; NULL: all that matter */
static struct python_place python;
static void *(*python_this_thread)(void); /* NULL: no Python, or one that is not known */
static _Atomic uint32_t python_walks;     /* that were checked by the system */
static _Atomic uint64_t python_main;      /* the state of the main thread */
static bool waits[3][FUNCTIONS];
static uint32_t names[3][FUNCTIONS];      /* texts of calls, by domain and number */
static _Atomic uint8_t devices[CONTEXTS]; /* 1 + the GPU of a context */
static _Atomic bool named[GPUS];

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- what ran -------------------------------------------------------------------------------- */

/* Buffers for CUPTI, taken and given back; one more than there are comes from malloc. */
static _Alignas(CUPTI_BUFFER_ALIGNMENT) uint8_t buffers[BUFFERS][BUFFER_BYTES];
static _Atomic bool taken[BUFFERS];

static void give_buffer(uint8_t **buffer, size_t *bytes, size_t *records)
{
    *records = 0; /* as many as there is room for */
    *bytes = BUFFER_BYTES;
    for (size_t i = 0; i < BUFFERS; i++) {
        bool free_one = false;
        if (atomic_compare_exchange_strong(&taken[i], &free_one, true)) {
            *buffer = buffers[i];
            return;
        }
    }
    *buffer = NULL; /* CUPTI drops records, and counts them */
    *bytes = 0;
}

static void return_buffer(const uint8_t *buffer)
{
    const size_t i = (size_t)(buffer - buffers[0]) / BUFFER_BYTES;
    if (buffer >= buffers[0] && i < BUFFERS)
        atomic_store(&taken[i], false);
}

static void note_device(struct gpu_desk *desk, uint32_t context, uint32_t device)
{
    char name[256] = "";
    if (device >= GPUS)
        return;
    atomic_store_explicit(&devices[context % CONTEXTS], (uint8_t)(device + 1),
                          memory_order_relaxed);
    if (atomic_load_explicit(&named[device], memory_order_relaxed) ||
        atomic_exchange(&named[device], true))
        return;
    int32_t (*name_of)(char *, int, int);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *(void **)(void *)&name_of = driver ? dlsym(driver, "cuDeviceGetName") : NULL;
    if (name_of && name_of(name, sizeof name, (int)device) == 0)
        gpu_write_gpu(desk, device, name);
    if (driver)
        dlclose(driver);
}

static void write_kernel(struct gpu_desk *desk, const struct cupti_kernel *ran)
{
    note_device(desk, ran->context, ran->device);
    gpu_write_span(desk,
                   &(struct gpu_span){
                       .record = {.kind = GPU_KERNEL, .number = ran->correlation},
                       .start_ns = ran->start,
                       .end_ns = ran->end,
                       .bytes = ran->graph_node,
                       .name = ran->name ? gpu_write_text(desk, ran->name, strlen(ran->name)) : 0,
                       .place = ran->stream,
                       .device = (uint8_t)ran->device});
}

static void write_copy(struct gpu_desk *desk, const struct cupti_memcpy *ran, uint32_t correlation)
{
    note_device(desk, ran->context, ran->device);
    gpu_write_span(desk, &(struct gpu_span){.record = {.kind = GPU_COPY, .number = correlation},
                                            .start_ns = ran->start,
                                            .end_ns = ran->end,
                                            .bytes = ran->bytes,
                                            .place = ran->stream,
                                            .device = (uint8_t)ran->device,
                                            .from = ran->from,
                                            .to = ran->to});
}

static void write_fill(struct gpu_desk *desk, const struct cupti_memset *ran)
{
    note_device(desk, ran->context, ran->device);
    gpu_write_span(desk,
                   &(struct gpu_span){.record = {.kind = GPU_FILL, .number = ran->correlation},
                                      .start_ns = ran->start,
                                      .end_ns = ran->end,
                                      .bytes = ran->bytes,
                                      .place = ran->stream,
                                      .device = (uint8_t)ran->device});
}

static uint8_t device_of(uint32_t context)
{
    const uint8_t found = atomic_load_explicit(&devices[context % CONTEXTS], memory_order_relaxed);
    return found ? (uint8_t)(found - 1) : 0;
}

static void write_wait(struct gpu_desk *desk, const struct cupti_synchronization *waited)
{
    gpu_write_span(desk,
                   &(struct gpu_span){.record = {.kind = GPU_WAIT, .number = waited->correlation},
                                      .start_ns = waited->start,
                                      .end_ns = waited->end,
                                      .bytes = waited->event,
                                      .place = waited->stream,
                                      .device = device_of(waited->context),
                                      .wait = (uint8_t)waited->type});
}

static void write_event(struct gpu_desk *desk, const struct cupti_event *event)
{
    gpu_write_span(desk,
                   &(struct gpu_span){.record = {.kind = GPU_EVENT, .number = event->correlation},
                                      .bytes = event->event,
                                      .place = event->stream,
                                      .device = device_of(event->context)});
}

static void write_record(struct gpu_desk *desk, const void *record)
{
    const struct cupti_memcpy_peer *peer = record;
    const struct cupti_kernel *kernel = record;
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    switch (kind) {
    case CUPTI_KERNEL:
        if (kernel->end) /* else the program ended before it */
            write_kernel(desk, kernel);
        break;
    case CUPTI_MEMCPY: {
        const struct cupti_memcpy *copy = record;
        write_copy(desk, copy, copy->correlation);
        break;
    }
    case CUPTI_MEMCPY_PEER: write_copy(desk, record, peer->correlation); break;
    case CUPTI_MEMSET: write_fill(desk, record); break;
    case CUPTI_SYNCHRONIZATION: write_wait(desk, record); break;
    case CUPTI_EVENT: write_event(desk, record); break;
    default: break;
    }
}

static void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t used)
{
    struct gpu_desk *desk = gpu_desk();
    void *record = NULL;
    size_t dropped = 0;
    (void)bytes;
    while (desk && used && cupti.ActivityGetNextRecord(buffer, used, &record) == CUPTI_OK)
        write_record(desk, record);
    if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_OK && dropped)
        gpu_writer_lost(dropped);
    return_buffer(buffer);
}

/* ---- lines of Python ------------------------------------------------------------------------- */

/* The memory of this process, read as it is once the layout has proved right. */
static struct python_place place_of(bool own)
{
    enum { CHECKED = 16 };
    struct python_place place = python;
    if (own && atomic_load_explicit(&python_walks, memory_order_relaxed) >= CHECKED)
        place.process = 0;
    return place;
}

static uint32_t write_python_text(struct gpu_desk *desk, uint64_t object, size_t most)
{
    char text[AGENT_FILE_MOST];
    const size_t length = python_text(&python, object, text, most);
    return length ? gpu_write_text(desk, text, length) : 0;
}

static int32_t line_of(const struct python_frame *frame)
{
    enum {
        LONGEST = 1 << 15
    }; /* of a table; a longer one has the line where its function begins */
    unsigned char table[LONGEST];
    const size_t length = python_bytes(&python, frame->table, table, sizeof table);
    return python_line((enum python_lines)python.layout.lines, table, length, frame->first_line,
                       frame->instruction);
}

static void write_stack(struct gpu_desk *desk, uint32_t number, const struct python_frame *frames,
                        size_t count)
{
    struct gpu_frame out[GPU_FRAMES_MOST];
    for (size_t i = 0; i < count; i++) {
        const int32_t line = line_of(&frames[i]);
        out[i] =
            (struct gpu_frame){.file = write_python_text(desk, frames[i].file, AGENT_FILE_MOST),
                               .function = write_python_text(desk, frames[i].name, AGENT_NAME_MOST),
                               .line = line > 0 ? line : frames[i].first_line};
    }
    gpu_write_stack(desk, number, out, count);
}

/* The number of the stack of a thread state; 0: it has no frames. */
static uint32_t stack_of(struct gpu_desk *desk, uint64_t state, bool own)
{
    struct python_frame frames[GPU_FRAMES_MOST];
    const struct python_place place = place_of(own);
    bool torn, cut, is_new;
    uint64_t key = 1;
    const size_t count = python_walk(&place, state, frames, GPU_FRAMES_MOST, &torn, &cut);
    if (own && torn && place.process)
        python_this_thread = NULL; /* own frames do not change: the layout is not as expected */
    if (own && !torn && count)
        atomic_fetch_add_explicit(&python_walks, 1, memory_order_relaxed);
    if (!count || torn)
        return 0;
    for (size_t i = 0; i < count; i++) {
        key = (key ^ python_key(&frames[i])) * 0x9e3779b97f4a7c15u + frames[i].instruction;
        key ^= key >> 31;
    }
    const uint32_t number = gpu_stack_number(key ? key : 1, &is_new);
    if (is_new)
        write_stack(desk, number, frames, count);
    return number;
}

/* Where the main thread is. It waits there while others work for it, so it is looked at in full
 * only after it moved. */
static uint32_t stack_of_main(struct gpu_desk *desk)
{
    uint64_t state = atomic_load_explicit(&python_main, memory_order_relaxed);
    uint64_t seen[3] = {0};
    if (!state) {
        state = python_find_thread(&python, python.process);
        atomic_store(&python_main, state ? state : 1);
    }
    if (state <= 1 || !python_innermost(&python, state, seen))
        return 0;
    if (memcmp(seen, desk->seen, sizeof seen) != 0) {
        desk->seen_stack = stack_of(desk, state, false);
        memcpy(desk->seen, seen, sizeof seen);
    }
    return desk->seen_stack;
}

static uint32_t stack_here(struct gpu_desk *desk)
{
    void *(*this_thread)(void) = python_this_thread;
    if (!this_thread)
        return 0;
    void *state = this_thread();
    const uint32_t own = state ? stack_of(desk, (uint64_t)(uintptr_t)state, true) : 0;
    return own || (int32_t)desk->thread == python.process ? own : stack_of_main(desk);
}

static void find_python(void)
{
    void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    void *code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    void *this_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    if (!runtime || !code_type || !this_thread)
        return;
    python = (struct python_place){.process = getpid(),
                                   .runtime = (uint64_t)(uintptr_t)runtime,
                                   .code_type = (uint64_t)(uintptr_t)code_type};
    if (python_layout_find(python_version(), python.process, python.runtime, &python.layout))
        *(void **)(void *)&python_this_thread = this_thread;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *behind_prefix(const char *name)
{
    return strncmp(name, "cuda", 4) == 0 ? name + 4 : strncmp(name, "cu", 2) == 0 ? name + 2 : "";
}

/* The calls that start something, wait, or allocate. */
static bool matters(const char *name)
{
    static const char *const beginnings[] = {"Launch",
                                             "GraphLaunch",
                                             "Memcpy",
                                             "Memset",
                                             "Malloc",
                                             "Free",
                                             "HostAlloc",
                                             "HostRegister",
                                             "HostUnregister",
                                             "MemAlloc",
                                             "MemFree",
                                             "MemHost",
                                             "MemCreate",
                                             "MemRelease",
                                             "DeviceSynchronize",
                                             "CtxSynchronize",
                                             "StreamSynchronize",
                                             "EventSynchronize",
                                             "EventRecord",
                                             "StreamWaitEvent"};
    const char *rest = behind_prefix(name);
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(rest, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* "cudaLaunchKernel" of "cudaLaunchKernel_v7000", "cuMemcpyHtoDAsync" of "…_v2_ptsz". */
static size_t plain_length(const char *name)
{
    const char *version = strstr(name, "_v"), *stream = strstr(name, "_pt");
    size_t length = strlen(name);
    if (stream && (size_t)(stream - name) < length)
        length = (size_t)(stream - name);
    if (version && (size_t)(version - name) < length)
        length = (size_t)(version - name);
    return length;
}

/* How much a call allocates: its second parameter, where the first is the address of the result. */
static uint64_t bytes_of(const struct cupti_call *call)
{
    const char *rest = behind_prefix(call->function ? call->function : "");
    uint64_t words[2] = {0};
    if (call->parameters &&
        (strncmp(rest, "Malloc", 6) == 0 || strncmp(rest, "HostAlloc", 9) == 0 ||
         strncmp(rest, "MemAlloc", 8) == 0))
        memcpy(words, call->parameters, sizeof words);
    return words[1];
}

/* Buffers that are full come by themselves, others when they are asked for: after a wait, when
 * nothing is under way. */
static void flush_now_and_then(uint64_t time_ns)
{
    static _Atomic uint64_t last_ns;
    uint64_t before = atomic_load_explicit(&last_ns, memory_order_relaxed);
    if (time_ns > before + flush_every_ns &&
        atomic_compare_exchange_strong(&last_ns, &before, time_ns))
        cupti.ActivityFlushAll(0);
}

static void on_call(void *user, uint32_t domain, uint32_t function, const void *data)
{
    const struct cupti_call *call = data;
    struct gpu_desk *desk = gpu_desk();
    (void)user;
    if (!desk || domain > CUPTI_RUNTIME || function >= FUNCTIONS || !names[domain][function])
        return;
    if (call->site == CUPTI_ENTER) {
        if (desk->depth++ == 0) {
            desk->stack = stack_here(desk);
            desk->start_ns = now_ns();
        }
        return;
    }
    if (desk->depth == 0 || --desk->depth > 0)
        return;
    const uint64_t end_ns = now_ns();
    gpu_write_span(desk,
                   &(struct gpu_span){.record = {.kind = GPU_CALL, .number = call->correlation},
                                      .start_ns = desk->start_ns,
                                      .end_ns = end_ns,
                                      .bytes = bytes_of(call),
                                      .name = names[domain][function],
                                      .stack = desk->stack,
                                      .place = desk->thread});
    if (waits[domain][function] && !beat)
        flush_now_and_then(end_ns);
}

static bool is_wanted(const char *name)
{
    if (!beat || !matters(name))
        return matters(name);
    return strstr(name, "Synchronize") ||
           (strlen(beat) == plain_length(name) && strncmp(beat, name, strlen(beat)) == 0);
}

static void enable_calls(struct gpu_desk *desk, void *subscriber)
{
    for (uint32_t domain = CUPTI_DRIVER; domain <= CUPTI_RUNTIME; domain++)
        for (uint32_t function = 1; function < FUNCTIONS; function++) {
            const char *name = NULL;
            if (cupti.GetCallbackName(domain, function, &name) != CUPTI_OK || !name ||
                !is_wanted(name))
                continue;
            waits[domain][function] = strstr(name, "Synchronize") != NULL;
            names[domain][function] = gpu_write_text(desk, name, plain_length(name));
            cupti.EnableCallback(1, subscriber, domain, function);
        }
}

/* ---- from beginning to end ------------------------------------------------------------------- */

static bool listen(void)
{
    static const uint32_t kinds[] = {CUPTI_KERNEL,      CUPTI_MEMCPY, CUPTI_MEMSET,
                                     CUPTI_MEMCPY_PEER, CUPTI_EVENT,  CUPTI_SYNCHRONIZATION};
    void *subscriber = NULL;
    struct gpu_desk *desk = gpu_desk();
    cupti.GetVersion(&head->cupti);
    head->refused = cupti.Subscribe(&subscriber, on_call, NULL);
    if (!head->refused && !beat)
        head->refused = cupti.ActivityRegisterTimestampCallback(now_ns);
    if (!head->refused && !beat)
        head->refused = cupti.ActivityRegisterCallbacks(give_buffer, take_buffer);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !head->refused && !beat; i++)
        head->refused = cupti.ActivityEnable(kinds[i]);
    if (head->refused) {
        snprintf(head->reason, sizeof head->reason,
                 head->refused == CUPTI_OTHER_SUBSCRIBER
                     ? "another profiler is in the program (CUPTI error %d): only one can be"
                     : "CUPTI refused (error %d)",
                 (int)head->refused);
        return false;
    }
    if (!beat)
        cupti.ActivityFlushPeriod(FLUSH_MS);
    if (desk)
        enable_calls(desk, subscriber);
    return true;
}

static void at_end(void)
{
    if (!gpu_writer_is_open())
        return;
    if (!beat)
        cupti.ActivityFlushAll(CUPTI_FLUSH_ALL);
    atomic_store(&head->ended, 1);
}

__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
    const char *folder = getenv(AGENT_FOLDER_VARIABLE);
    const uint64_t start_ns = now_ns();
    if (head || !folder || *folder != '/' || !(head = gpu_writer_open(folder, start_ns)))
        return 1;
    pthread_atfork(NULL, NULL, gpu_writer_leave);
    beat = getenv(GPU_BEAT_VARIABLE);
    if (cupti_find(&cupti, head->reason, sizeof head->reason)) {
        if (!beat)
            find_python();
        if (listen())
            atexit(at_end);
    }
    head->init_ns = now_ns() - start_ns;
    return 1;
}
