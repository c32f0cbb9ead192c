/* naming.h: makes a trace of gathered numbers: every frame gets its name, the frames of Python and
 * of C become one stack.
 *
 * In C's stack, each evaluation loop of the interpreter stands for the Python functions that it
 * runs: these take its place. The name of a sample is the op of PyTorch that runs (the innermost
 * at::_ops::NAME::call), else its innermost function. */
#ifndef PRONY_WATCH_NAMING_H
#define PRONY_WATCH_NAMING_H

#include "trace/trace.h"
#include "watch/gathered.h"

/* How many samples of running threads there are, and which of them say what. */
struct named {
    uint64_t samples, with_function, torn, cut, unanswered;
    uint64_t of_python, with_line, with_both; /* of threads that run Python */
};

enum status naming_trace(const struct gathered *gathered, struct trace *trace, struct named *named);

#endif
