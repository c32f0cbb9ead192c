/* task_files.h: a task as files, for peers. */
#ifndef PRONY_BENCH_JOB_TASK_FILES_H
#define PRONY_BENCH_JOB_TASK_FILES_H

#include "bench/job/task.h"

/* Writes the weights and the data (in the order in which they are visited) as safetensors files
 * into a temporary folder; once. Removes those that killed processes left behind. */
enum status task_write_files(struct task *task);
/* Beside them, what the network predicts as ONNX. */
enum status task_write_onnx(struct task *task);
void task_remove_files(struct task *task);

#endif
