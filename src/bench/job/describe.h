/* describe.h: what a job says of itself. */
#ifndef PRONY_BENCH_JOB_DESCRIBE_H
#define PRONY_BENCH_JOB_DESCRIBE_H

#include "base/arena.h"
#include "core/backend.h"
#include "core/job.h"

/* Adds "device" and "kernels", of all plans together, to the open JSON object (job.h: describe). */
void describe_plans(const struct backend *backend, const struct device *device,
                    struct plan *const *plans, int32_t count, struct json_writer *out);

/* The job's whole description, in the arena. */
enum status describe_job(struct job *job, struct arena *arena, struct json **out);

/* The same of a device alone. */
enum status describe_device(const struct backend *backend, const struct device *device,
                            struct arena *arena, struct json **out);

/* The bench's software with one member more, "peer": what a peer said of its own. */
enum status describe_peer(const struct json *software, const struct json *peer, struct arena *arena,
                          const struct json **out);

/* Has the device as many threads as were asked for? 0 asks for none. */
enum status describe_check_threads(const char *backend, const struct json *device, int64_t asked);

#endif
