/* trace_command.h: what `prony profile` and `prony advise` do with a trace. */
#ifndef PRONY_CLI_TRACE_COMMAND_H
#define PRONY_CLI_TRACE_COMMAND_H

#include "trace/trace.h"

struct trace_wish {
    const char *path; /* that it was read from, and is not written over; NULL: from no file */
    bool advice;      /* findings; else budget, figures, kernels, lines */
    bool json;
    const char *against; /* with advice: a trace of the changed program; or NULL */
    const char *chrome, *callgrind, *folded; /* files to write; or NULL */
    bool keep;                               /* as a record */
    const char *store;                       /* of records and proofs; NULL: the user's */
};

/* Writes the files that were asked for. */
enum status trace_write_files(const struct trace *trace, const struct trace_wish *wish);
/* Prints, and writes the files. */
enum status trace_show(const struct trace *trace, const struct trace_wish *wish);
/* The same of the trace in the file. */
enum status trace_show_file(const struct trace_wish *wish);

#endif
