/* agent_ring.h: what the agent in a watched program and the prony that watches it share.
 *
 * The agent is a signal handler and a file, nothing else. prony looks at the program's threads by
 * the wall clock and sends AGENT_SIGNAL to those that run. The handler, in that thread, writes down
 * where it is. The program gets no thread of ours, so that it forks, execs and counts its threads
 * as before.
 *
 * The file is a ring of records, mapped by both sides. Records survive a program that is killed, no
 * descriptor stays open in the program, and memory is bounded. Many handlers may write at once;
 * prony reads, clears and frees. Both are of one build, so the layout is C's. */
#ifndef PRONY_AGENT_AGENT_RING_H
#define PRONY_AGENT_AGENT_RING_H

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

/* Its default is to be ignored, so that one which arrives when a program has just become another
 * (exec) does no harm; no program needs it, but those that read urgent bytes of sockets. */
#define AGENT_SIGNAL SIGURG

/* In the program's environment: the folder for its file, and beside it the agent, in LD_PRELOAD. */
#define AGENT_FOLDER_VARIABLE "PRONY_AGENT_FOLDER"
#define AGENT_PREFIX "cpu." /* of the file: cpu.PROCESS.NANOSECONDS */

enum {
    AGENT_VERSION = 2,
    AGENT_BYTES = 1 << 20, /* of the file */
    AGENT_HEAD = 4096,     /* of them before the ring */
    AGENT_RING = AGENT_BYTES - AGENT_HEAD,
    AGENT_NATIVE_MOST = 192, /* frames of a sample */
    AGENT_PYTHON_MOST = 160,
    AGENT_NAME_MOST = 256,
    AGENT_FILE_MOST = 1024,
    AGENT_TABLE_MOST = 1 << 16, /* bytes of a line table */
};

enum agent_kind {
    AGENT_UNFINISHED, /* it is being written */
    AGENT_SAMPLE,
    AGENT_CODE,
    AGENT_PADDING, /* to the end of the ring */
};

/* Before each record; the next begins `bytes` later, a multiple of 8. */
struct agent_record {
    _Atomic uint32_t kind; /* enum agent_kind, set last */
    uint32_t bytes;
};

struct agent_python {
    uint64_t code;        /* names an agent_code */
    uint32_t instruction; /* bytes from the code's first */
    uint32_t entry; /* it was called from C: the next frame has an evaluation loop of its own */
};

/* Where a thread was: the innermost frame first. */
struct agent_sample {
    struct agent_record record;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    int32_t thread;
    uint16_t native_count, python_count;
    uint32_t cut;  /* there are more frames than there is room for: 1 native, 2 Python */
    uint32_t torn; /* the Python frames were being changed: those that follow are missing */
    /* uint64_t native[native_count]; struct agent_python python[python_count] */
};

/* A Python function, before the first sample that names it. Addresses are used again for other
 * functions, so `code` is made of several of them. */
struct agent_code {
    struct agent_record record;
    uint64_t code;
    int32_t first_line;
    uint32_t lines; /* enum python_lines: how its table is written */
    uint32_t name_bytes, file_bytes, table_bytes;
    /* name, file, line table: bytes without ends */
};

struct agent_head {
    char magic[8]; /* AGENT_MAGIC, written last */
    uint32_t version;
    int32_t process;
    uint64_t start_ns;
    uint64_t nonce;                  /* what prony sends with the signal */
    _Atomic uint64_t written, freed; /* bytes of the ring, ever */
    _Atomic uint64_t lost;           /* samples without room */
    _Atomic uint64_t handler_ns;     /* CPU time in the handler, all threads */
    uint32_t python_version;         /* 0x030b02f0; 0: no Python */
    uint32_t python_readable;        /* its layout is known */
    uint64_t python_runtime;         /* address of _PyRuntime */
    uint64_t python_code_type;       /* address of PyCode_Type */
};
#define AGENT_MAGIC "pronyag"

#endif
