/* watching.h: a program of the user's, run unwatched for its time, and watched for where that time
 * goes. The program stays as it is: what is added is an environment.
 *
 * bench/meter/watch.h looks at the machine; this looks at the program. */
#ifndef PRONY_WATCH_WATCHING_H
#define PRONY_WATCH_WATCHING_H

#include "trace/trace.h"
#include "watch/beats.h"
#include "watch/gpu_seen.h"
#include "watch/naming.h"
#include "watch/running.h"

struct watching_options {
    struct running_options program;
    const char *agent;     /* the path of libprony_agent.so */
    const char *agent_gpu; /* of libprony_agent_cuda.so; NULL: GPUs are not watched */
    double rate;           /* looks a second */
    double seconds;        /* it is stopped then; 0: it runs to its end */
    bool (*stopped)(void);
};

/* With fewer samples no share is worth reading, and silence of the agent means nothing. */
enum { WATCHED_FEW = 10 };

/* What is known beside the trace. */
struct watched {
    struct running_end end;
    uint64_t start_us;           /* since 1970 */
    bool stopped;                /* by us, before its end */
    struct seen_thread *threads; /* mem_free frees it */
    size_t thread_count, process_count;
    struct named named;
    double looks, lost, handler_ns, look_ns; /* CPU time in the program, and in prony */
    uint32_t python_version;
    struct gpu_seen gpu; /* its spans are in the trace */
    struct text notes;   /* a line for each thing to know */
};
void watched_free(struct watched *watched);

enum status watching_unwatched(const struct watching_options *options, struct running_end *end);
/* The trace is finished. A program that fails or is killed is no error: what was seen until then is
 * there, and watched->end says how it ended. */
enum status watching_run(const struct watching_options *options, struct trace *trace,
                         struct watched *watched);

/* Runs it with only the times of one call noted, as beats.h has it. *known false: they say nothing.
 */
enum status watching_beats(const struct watching_options *options, const struct beat *beat,
                           bool *known, double *step_ns, double *spread_ns,
                           struct running_end *end);

#endif
