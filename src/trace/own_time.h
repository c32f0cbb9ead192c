/* own_time.h: time that each span has of its own, so that stacks can be summed. Samples count where
 * there are any; else what runs on the GPU; else operators on the host, each without the operators
 * within it. */
#ifndef PRONY_TRACE_OWN_TIME_H
#define PRONY_TRACE_OWN_TIME_H

#include "trace/trace.h"

enum own_of { OWN_SAMPLES, OWN_DEVICE, OWN_OPS };
const char *own_of_name(enum own_of of); /* "samples", "gpu", "ops" */

/* For each span its nanoseconds, 0 where it does not count; mem_free frees *out. */
enum status trace_own_times(const struct trace *trace, int64_t **out, enum own_of *of);

/* The same of operators on the host, whatever else the trace has. */
enum status trace_op_times(const struct trace *trace, int64_t **out);

#endif
