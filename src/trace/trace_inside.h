/* trace_inside.h: what the readers of formats share. */
#ifndef PRONY_TRACE_TRACE_INSIDE_H
#define PRONY_TRACE_TRACE_INSIDE_H

#include "trace/trace.h"

/* A reader is given a file piece by piece: traces are larger than memory. */
typedef enum status trace_feed(void *context, const char *bytes, size_t length);

/* Hands the unpacked content of a file to `feed`. */
enum status trace_pieces(const char *path, trace_feed *feed, void *context);

/* One reader for each format; `name` is for messages. The trace is not finished yet. */
enum status trace_own_read(const char *path, struct trace *trace);
enum status trace_chrome_read(const char *path, struct trace *trace);
enum status trace_nsys_read(const char *path, struct trace *trace);
enum status trace_xplane_read(const char *path, struct trace *trace);

/* Gives calls and ops the Python functions around them as their site; spans are sorted. */
enum status trace_nest(struct trace *trace);

#endif
