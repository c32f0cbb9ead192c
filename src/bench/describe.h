/* describe.h: what a job that runs a plan says of itself. */
#ifndef PRONY_BENCH_DESCRIBE_H
#define PRONY_BENCH_DESCRIBE_H

#include "core/backend.h"

/* Adds "device" and "kernels" to the open JSON object (job.h: describe). */
void describe_plan(const struct backend *backend, const struct device *device,
                   const struct plan *plan, struct json_writer *out);

#endif
