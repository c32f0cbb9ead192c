/* gpu_file.h: the file in which the GPU's agent leaves what it saw in one process, and prony's side
 * of it.
 *
 * The file is mapped and grows by blocks. A block belongs to one thread at a time, which appends
 * records and then says how far it got: so what was written survives a program that is killed. The
 * first block is the head. Names and stacks are written once and named by number. Both sides are of
 * one build, so the layout is C's; prony checks every record. */
#ifndef PRONY_AGENT_GPU_FILE_H
#define PRONY_AGENT_GPU_FILE_H

#include <stdatomic.h>
#include <stdint.h>

/* In the program's environment: CUDA loads the agent that the second names, which writes to the
 * folder of agent_ring.h. */
#define GPU_INJECTION_VARIABLE "CUDA_INJECTION64_PATH"
/* A call by its name: only when it begins is noted, so that steps can be timed without being
 * watched. */
#define GPU_BEAT_VARIABLE "PRONY_AGENT_BEAT"
#define GPU_PREFIX "gpu." /* of the file: gpu.PROCESS.NANOSECONDS */
#define GPU_MAGIC "pronygp"

enum {
    GPU_VERSION = 1,
    GPU_BLOCK = 1 << 15,       /* bytes */
    GPU_BLOCKS_MOST = 1 << 14, /* 512 MB */
    GPU_TEXT_MOST = 4000,      /* bytes of a name */
    GPU_FRAMES_MOST = 160,
    GPU_REASON = 256,
};
static const uint32_t GPU_STREAM_NONE = UINT32_MAX; /* of a wait for all streams */

enum gpu_kind {
    GPU_TEXT = 1, /* gpu_text */
    GPU_STACK,    /* gpu_stack */
    GPU_GPU,      /* a GPU's name, which `device` of spans means: gpu_text */
    /* gpu_span: */
    GPU_KERNEL,
    GPU_COPY,
    GPU_FILL,
    GPU_WAIT,
    GPU_EVENT, /* without times: its call has them */
    GPU_CALL,
    GPU_KINDS
};

struct gpu_record {
    uint16_t kind, bytes; /* all of it, a multiple of 8 */
    uint32_t number;      /* of a text, stack or GPU; of a span its correlation */
};

struct gpu_text {
    struct gpu_record record;
    uint32_t length;
    /* char bytes[length] */
};

struct gpu_frame {
    uint32_t file, function; /* texts; 0: not known */
    int32_t line;
};

struct gpu_stack { /* the innermost frame first */
    struct gpu_record record;
    uint32_t count;
    /* struct gpu_frame frames[count] */
};

/* What a wait is for. */
enum gpu_wait { GPU_WAIT_EVENT = 1, GPU_WAIT_QUEUE, GPU_WAIT_STREAM, GPU_WAIT_DEVICE };

struct gpu_span {
    struct gpu_record record;
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    uint64_t bytes;            /* of a copy, fill, allocation; the number of an event */
    uint32_t name;             /* a text; 0: none */
    uint32_t stack;            /* of a call; 0: none */
    uint32_t place;            /* a stream; of a call the thread */
    uint8_t device, from, to; /* a copy's memories as CUPTI numbers them: 1 pageable, 2 pinned … */
    uint8_t wait;             /* enum gpu_wait */
};

struct gpu_block {
    _Atomic uint32_t used; /* bytes of records behind it that are whole */
    uint32_t unused;
};

struct gpu_head {
    char magic[8]; /* GPU_MAGIC, written last */
    uint32_t version;
    int32_t process;
    uint64_t start_ns, init_ns; /* when it began, how long that took */
    uint32_t cupti;             /* what CUPTI says its version is; 0: there is none */
    int32_t refused;         /* the number of the error with which CUPTI refused; 0: it did not */
    _Atomic uint32_t blocks; /* in use, the head included */
    _Atomic uint32_t ended;  /* the program ended by itself: everything was written */
    _Atomic uint64_t lost;   /* records without room, here or in CUPTI */
    char reason[GPU_REASON]; /* why nothing is watched; "": it is */
};

#endif
