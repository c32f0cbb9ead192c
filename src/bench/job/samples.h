/* samples.h: where a task's samples lie while it is timed: in memory, or in a file of the folder
 * for temporary files (TMPDIR), mapped, in the system's cache or on the disk.
 *
 * The file has no name: it goes with the process. */
#ifndef PRONY_BENCH_JOB_SAMPLES_H
#define PRONY_BENCH_JOB_SAMPLES_H

#include "bench/job/task.h"

enum samples_place {
    SAMPLES_MEMORY,
    SAMPLES_CACHE, /* in a file, which was just written: the system has it in memory */
    SAMPLES_DISK,  /* in a file, which samples_evict puts out of memory */
};

/* A zeroed struct is closed, and one of a task's samples in memory needs no more. */
struct samples {
    int file;  /* 0: none */
    char *map; /* the block of the task's data */
    size_t bytes;
    const char *storage; /* that the file lies on (storage.h) */
};

enum status samples_open(struct samples *samples, const struct task *task,
                         enum samples_place place);
void samples_close(struct samples *samples);

/* The rows of the task's data number `entry`. */
void *samples_data(const struct samples *samples, const struct task *task, int32_t entry);

/* They will be read from the disk again; STATUS_UNSUPPORTED where the system keeps them in memory.
 */
enum status samples_evict(const struct samples *samples);

#endif
