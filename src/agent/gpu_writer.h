/* gpu_writer.h: the agent's side of the file of gpu_file.h. Any thread may call; none waits for
 * another, but for a new block. */
#ifndef PRONY_AGENT_GPU_WRITER_H
#define PRONY_AGENT_GPU_WRITER_H

#include "agent/gpu_file.h"

#include <stdbool.h>
#include <stddef.h>

/* What a thread keeps. */
struct gpu_desk {
    unsigned char *block; /* NULL: none yet */
    uint32_t used;
    uint32_t thread;
    int depth;         /* calls of CUDA that it is in */
    uint64_t start_ns; /* of the outermost */
    uint32_t stack;    /* of it */
    /* Where another thread was that this one borrows its stack from. */
    uint64_t seen[3];
    uint32_t seen_stack;
};

/* Makes the file in the folder. NULL: it cannot be, and nothing else may be called. */
struct gpu_head *gpu_writer_open(const char *folder, uint64_t start_ns);
/* In the child of a fork: the file is its parent's. Nothing is written any more. */
void gpu_writer_leave(void);
bool gpu_writer_is_open(void);

/* The calling thread's; NULL where nothing can be written. */
struct gpu_desk *gpu_desk(void);

void gpu_write_span(struct gpu_desk *desk, const struct gpu_span *span);
/* The number of a text, which is written when it is new; 0: none, or too many. */
uint32_t gpu_write_text(struct gpu_desk *desk, const char *text, size_t length);
void gpu_write_gpu(struct gpu_desk *desk, uint32_t device, const char *name);

/* The number of a stack with this key (not 0); *is_new: gpu_write_stack has to follow. 0: there are
 * too many. */
uint32_t gpu_stack_number(uint64_t key, bool *is_new);
void gpu_write_stack(struct gpu_desk *desk, uint32_t number, const struct gpu_frame *frames,
                     size_t count);
void gpu_writer_lost(uint64_t count);

#endif
