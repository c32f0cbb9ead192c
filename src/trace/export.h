/* export.h: a trace for other tools. */
#ifndef PRONY_TRACE_EXPORT_H
#define PRONY_TRACE_EXPORT_H

#include "trace/trace.h"

/* The Trace Event Format that ui.perfetto.dev, chrome://tracing and speedscope read: a process for
 * each process and GPU, a row for each thread and stream. */
void trace_export_chrome(const struct trace *trace, struct text *out);
/* Stacks with their time, a line each, as flame graphs are made of: "main;train;step 1234". Samples
 * where there are any; else what the lines of the host started on the GPU; else ops of the host.
 * Times are in microseconds. */
enum status trace_export_folded(const struct trace *trace, struct text *out);
/* The same as a call graph, for KCachegrind and callgrind_annotate; in nanoseconds. */
enum status trace_export_callgrind(const struct trace *trace, const char *creator,
                                   struct text *out);

#endif
