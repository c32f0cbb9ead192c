/* program_gpu.h: what a watched program did with its GPU: its part of the report, and the time of
 * an unwatched step. */
#ifndef PRONY_CLI_PROGRAM_PROGRAM_GPU_H
#define PRONY_CLI_PROGRAM_PROGRAM_GPU_H

#include "advise/advise.h"
#include "base/json.h"
#include "watch/watching.h"

/* Adds the facts unwatched_ns: of a program without steps on a GPU the whole run's time, else that
 * of a step. A short program is run once more for it. */
enum status program_unwatched(const struct watching_options *options,
                              const struct running_end *unwatched, const struct watched *watched,
                              struct trace *trace);

/* Adds what advice needs to know of the GPU that computed: the rates of pinned copies, and what the
 * calibration found. Notes what slows it on purpose. */
enum status program_gpu_facts(const struct watched *watched, struct trace *trace,
                              struct text *notes);

/* Budget, figures, kernels and lines, where the program ran kernels. */
enum status program_gpu_text(const struct trace *trace, const struct advice *advice, int width,
                             struct text *out);
/* The member "gpu" of an object. */
void program_gpu_json(const struct gpu_seen *gpu, const struct advice *advice,
                      struct json_writer *json);

#endif
