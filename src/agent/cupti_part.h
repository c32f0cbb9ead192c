/* cupti_part.h: what the agent uses of CUPTI, declared here: the agent is built without CUDA, and
 * finds the program's own CUPTI when it runs.
 *
 * Records grow at their end from version to version of CUDA; these beginnings are the same in those
 * of CUDA 11, 12 and 13. tests/watch/test_cupti_part.c compares them with NVIDIA's headers where it
 * finds these. */
#ifndef PRONY_AGENT_CUPTI_PART_H
#define PRONY_AGENT_CUPTI_PART_H

#include <stddef.h>
#include <stdint.h>

enum {
    CUPTI_OK = 0,
    CUPTI_OTHER_SUBSCRIBER = 39,
    CUPTI_DRIVER = 1, /* domains of callbacks */
    CUPTI_RUNTIME = 2,
    CUPTI_ENTER = 0,
    CUPTI_FLUSH_ALL = 1,
    CUPTI_BUFFER_ALIGNMENT = 8,
};

/* Kinds of activity. */
enum {
    CUPTI_MEMCPY = 1,
    CUPTI_MEMSET = 2,
    CUPTI_KERNEL = 10,
    CUPTI_MEMCPY_PEER = 22,
    CUPTI_EVENT = 36,
    CUPTI_SYNCHRONIZATION = 38,
};

struct cupti_kernel {
    uint32_t kind;
    uint8_t unused_1[12];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    uint8_t unused_2[40];
    uint32_t correlation;
    int64_t grid_id;
    const char *name;
    uint8_t unused_3[32];
    uint64_t graph_node;
};

struct cupti_memcpy {
    uint32_t kind;
    uint8_t direction, from, to, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
};

/* From one GPU to another. */
struct cupti_memcpy_peer {
    uint32_t kind;
    uint8_t direction, from, to, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, from_device, from_context, to_device, to_context, correlation;
};

struct cupti_memset {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
};

struct cupti_synchronization {
    uint32_t kind, type; /* as enum gpu_wait */
    uint64_t start, end;
    uint32_t correlation, context, stream, event;
};

struct cupti_event {
    uint32_t kind, correlation, context, stream, event;
};

struct cupti_call {
    uint32_t site; /* CUPTI_ENTER, or its exit */
    const char *function;
    const void *parameters;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_number;
    uint64_t *data;
    uint32_t correlation;
};

typedef void cupti_callback(void *user, uint32_t domain, uint32_t function, const void *data);
typedef void cupti_give(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void cupti_take(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t used);
typedef uint64_t cupti_clock(void);

/* name, parameters; each returns 0 where it went well. Those without which nothing works. */
#define CUPTI_FUNCTIONS(DO)                                                                        \
    DO(Subscribe, (void **subscriber, cupti_callback *callback, void *user))                       \
    DO(EnableCallback, (uint32_t enable, void *subscriber, uint32_t domain, uint32_t function))    \
    DO(GetCallbackName, (uint32_t domain, uint32_t function, const char **name))                   \
    DO(GetVersion, (uint32_t * version))                                                           \
    DO(ActivityRegisterCallbacks, (cupti_give * give, cupti_take * take))                          \
    DO(ActivityRegisterTimestampCallback, (cupti_clock * clock))                                   \
    DO(ActivityEnable, (uint32_t kind))                                                            \
    DO(ActivityDisable, (uint32_t kind))                                                           \
    DO(ActivityFlushAll, (uint32_t flag))                                                          \
    DO(ActivityFlushPeriod, (uint32_t milliseconds))                                               \
    DO(ActivityGetNextRecord, (uint8_t * buffer, size_t used, void **record))                      \
    DO(ActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))

struct cupti {
    void *library;
#define DO(name, parameters) int32_t(*name) parameters;
    CUPTI_FUNCTIONS(DO)
#undef DO
};

#endif
