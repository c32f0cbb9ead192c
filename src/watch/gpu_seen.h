/* gpu_seen.h: what the agent in the GPU's programs left (agent/gpu_file.h), as spans of a trace.
 *
 * Each process that used CUDA has a file. The trace gets that of the one whose kernels took
 * longest: numbers of streams and calls are a process's own, and advice is for one. The programs
 * may have written anything there: every record is checked, and what does not fit is counted. */
#ifndef PRONY_WATCH_GPU_SEEN_H
#define PRONY_WATCH_GPU_SEEN_H

#include "agent/gpu_file.h"
#include "trace/trace.h"

struct gpu_seen {
    size_t processes; /* that used CUDA, or tried to */
    size_t computed;  /* of them ran kernels */
    int64_t process;  /* the one in the trace; 0: none */
    uint64_t kernels, copies, fills, calls;
    uint64_t with_call;      /* kernels, copies and fills whose call is known */
    uint64_t with_line;      /* calls that have a line of Python */
    double init_ns;          /* that the agent took to begin */
    double lost;             /* records */
    uint64_t unreadable;     /* records that do not fit */
    uint8_t device;          /* of its first kernel, as CUDA numbers it there */
    bool killed;             /* it did not end by itself, so that the last records may be missing */
    uint32_t cupti;          /* its version */
    char reason[GPU_REASON]; /* why a process was not watched; "": all were */
};

/* Adds the spans, and the facts gpu and lost. A folder without files is no failure. */
enum status gpu_seen_read(const char *folder, struct trace *trace, struct gpu_seen *seen);

/* One file. Its spans are added to the trace where there is one. */
enum status gpu_file_read(const char *path, struct trace *trace, struct gpu_seen *seen);

#endif
