/* describe.h: what prony's own jobs say of themselves. */
#ifndef PRONY_BENCH_JOB_DESCRIBE_H
#define PRONY_BENCH_JOB_DESCRIBE_H

#include "core/backend.h"
#include "core/job.h"

/* The device, and the kernels of all plans together (job.h: describe). */
enum status describe_plans(const struct backend *backend, const struct device *device,
                           struct plan *const *plans, int32_t count, struct arena *arena,
                           struct job_info *out);

/* Has the device as many threads as were asked for? 0 asks for none. */
enum status describe_check_threads(const char *backend, const struct device_info *device,
                                   int64_t asked);

/* The bench's software with one member more, "peer": what a peer said of its own. */
enum status describe_join_software(const struct json *software, const struct json *peer,
                                   struct arena *arena, const struct json **out);

#endif
