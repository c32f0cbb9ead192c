/* cuda_stand_in.c: stands in for CUDA's driver and CUPTI where there is no GPU, so that the agent's
 * own part can be tested: how it is loaded and refused, lines of Python, its file. Built as
 * libcupti.so.13; a program loads it and calls stand_*. Times are made up: a stream that works off
 * what it is given. Nothing here says how the real ones behave: tests/gpu/gpu_watch.sh does. */
#include "agent/cupti_part.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

enum { LAUNCH = 1, COPY, WAIT, ALLOCATE, OTHER, FUNCTIONS };
static const char *const functions[FUNCTIONS] = {
    NULL,         "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020",
    "cudaMalloc", "cudaGetDevice_v3020"};

static cupti_callback *callback;
static cupti_give *give;
static cupti_take *take;
static cupti_clock *timer;
static uint8_t *buffer;
static size_t room, used;
static uint32_t correlation;
static uint64_t free_ns; /* when the stream has worked off all it was given */
static int enabled[FUNCTIONS];

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return timer ? timer() : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int32_t refusal(void)
{
    const char *wanted = getenv("STAND_IN_REFUSES");
    return wanted ? atoi(wanted) : 0;
}

SHOWN int32_t cuptiSubscribe(void **subscriber, cupti_callback *asked, void *user)
{
    (void)user;
    *subscriber = &callback;
    if (!refusal())
        callback = asked;
    return refusal();
}

SHOWN int32_t cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain,
                                  uint32_t function)
{
    (void)subscriber;
    enabled[function] = domain == CUPTI_RUNTIME && enable;
    return 0;
}

SHOWN int32_t cuptiGetCallbackName(uint32_t domain, uint32_t function, const char **name)
{
    *name = domain == CUPTI_RUNTIME && function < FUNCTIONS ? functions[function] : NULL;
    return *name ? 0 : 1;
}

SHOWN int32_t cuptiGetVersion(uint32_t *version)
{
    *version = 130000;
    return 0;
}

SHOWN int32_t cuptiActivityRegisterCallbacks(cupti_give *asked, cupti_take *given)
{
    give = asked;
    take = given;
    return 0;
}

SHOWN int32_t cuptiActivityRegisterTimestampCallback(cupti_clock *asked)
{
    timer = asked;
    return 0;
}

SHOWN int32_t cuptiActivityEnable(uint32_t kind)
{
    (void)kind;
    return 0;
}

SHOWN int32_t cuptiActivityDisable(uint32_t kind)
{
    (void)kind;
    return 0;
}

SHOWN int32_t cuptiActivityFlushPeriod(uint32_t milliseconds)
{
    (void)milliseconds;
    return 0;
}

/* Each record has its length before it. */
SHOWN int32_t cuptiActivityGetNextRecord(uint8_t *bytes, size_t length, void **record)
{
    uint64_t size;
    uint8_t *next = bytes;
    if (*record) {
        memcpy(&size, (uint8_t *)*record - sizeof size, sizeof size);
        next = (uint8_t *)*record + size;
    }
    if (next >= bytes + length)
        return 1;
    *record = next + sizeof size;
    return 0;
}

SHOWN int32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = 0;
    return 0;
}

SHOWN int32_t cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    if (buffer)
        take(NULL, 0, buffer, room, used);
    buffer = NULL;
    return 0;
}

static void add_record(const void *record, uint64_t size)
{
    if (buffer && used + sizeof size + size > room)
        cuptiActivityFlushAll(0);
    if (!buffer) {
        size_t count;
        give(&buffer, &room, &count);
        used = 0;
    }
    if (!buffer)
        return;
    memcpy(buffer + used, &size, sizeof size);
    memcpy(buffer + used + sizeof size, record, size);
    used += sizeof size + size;
}

static void tell(uint32_t function, uint32_t site, const void *parameters)
{
    struct cupti_call call = {.site = site,
                              .function = functions[function],
                              .parameters = parameters,
                              .correlation = correlation};
    if (callback && enabled[function])
        callback(NULL, CUPTI_RUNTIME, function, &call);
}

static uint64_t start_now(uint64_t ns)
{
    const uint64_t now = now_ns();
    const uint64_t start = (now > free_ns ? now : free_ns) + 2000;
    free_ns = start + ns;
    return start;
}

static void wait_here(void)
{
    while (now_ns() < free_ns)
        usleep(20);
}

/* As the driver does when a program begins to use it. */
SHOWN int stand_init(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*begin)(void);
    if (path && !library)
        fprintf(stderr, "%s\n", dlerror());
    *(void **)(void *)&begin = library ? dlsym(library, "InitializeInjection") : NULL;
    return begin ? begin() : 0;
}

SHOWN void stand_launch(const char *name, uint64_t ns)
{
    correlation++;
    tell(LAUNCH, CUPTI_ENTER, NULL);
    struct cupti_kernel kernel = {.kind = CUPTI_KERNEL,
                                  .context = 1,
                                  .stream = 7,
                                  .correlation = correlation,
                                  .name = name,
                                  .start = start_now(ns)};
    kernel.end = free_ns;
    if (give)
        add_record(&kernel, sizeof kernel);
    tell(LAUNCH, !CUPTI_ENTER, NULL);
}

/* As CUDA does: from pageable memory it returns when the bytes are there. */
SHOWN void stand_copy(uint64_t bytes, int pageable, uint64_t ns)
{
    correlation++;
    tell(COPY, CUPTI_ENTER, NULL);
    struct cupti_memcpy copy = {.kind = CUPTI_MEMCPY,
                                .direction = 1,
                                .from = pageable ? 1 : 2,
                                .to = 3,
                                .bytes = bytes,
                                .context = 1,
                                .stream = 7,
                                .correlation = correlation,
                                .start = start_now(ns)};
    copy.end = free_ns;
    if (pageable)
        wait_here();
    if (give)
        add_record(&copy, sizeof copy);
    tell(COPY, !CUPTI_ENTER, NULL);
}

SHOWN void stand_wait(void)
{
    correlation++;
    tell(WAIT, CUPTI_ENTER, NULL);
    struct cupti_synchronization wait = {.kind = CUPTI_SYNCHRONIZATION,
                                         .type = 3,
                                         .context = 1,
                                         .stream = 7,
                                         .correlation = correlation,
                                         .start = now_ns()};
    wait_here();
    wait.end = now_ns();
    if (give)
        add_record(&wait, sizeof wait);
    tell(WAIT, !CUPTI_ENTER, NULL);
}

SHOWN void stand_allocate(uint64_t bytes)
{
    const uint64_t parameters[2] = {0, bytes};
    correlation++;
    tell(ALLOCATE, CUPTI_ENTER, parameters);
    tell(ALLOCATE, !CUPTI_ENTER, parameters);
}

/* In a thread that Python knows nothing of, as that which computes gradients. */
struct launch {
    const char *name;
    uint64_t ns;
};

static void *launch_here(void *launch)
{
    const struct launch *asked = launch;
    stand_launch(asked->name, asked->ns);
    return NULL;
}

SHOWN void stand_launch_elsewhere(const char *name, uint64_t ns)
{
    struct launch launch = {name, ns};
    pthread_t thread;
    if (pthread_create(&thread, NULL, launch_here, &launch) == 0)
        pthread_join(thread, NULL);
}

/* One that nobody asked to hear of. */
SHOWN void stand_other(void)
{
    correlation++;
    tell(OTHER, CUPTI_ENTER, NULL);
    tell(OTHER, !CUPTI_ENTER, NULL);
}
