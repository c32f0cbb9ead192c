/* budget.h: where the time of a window went, every nanosecond once.
 *
 * Time in which the GPU computes is compute. Of the rest, time in which bytes move is exposed copy,
 * time in which memory is set is fill, and what is left is idle. Idle time is what the host did
 * meanwhile: it allocated, was in the call of a copy, was in a launch, waited, or ran other code.
 * The parts sum to the window, to the nanosecond.
 *
 * Without a GPU the compute is that of operators on the host. */
#ifndef PRONY_ADVISE_BUDGET_H
#define PRONY_ADVISE_BUDGET_H

#include "trace/trace_steps.h"

/* In order of precedence: a nanosecond in which several happen is the first of them. */
enum budget_part {
    BUDGET_COMPUTE,
    BUDGET_COPY, /* exposed: nothing computes meanwhile */
    BUDGET_FILL,
    BUDGET_ALLOCATION, /* from here on the GPU is idle */
    BUDGET_COPY_CALL,
    BUDGET_LAUNCH,
    BUDGET_WAIT,
    BUDGET_HOST,
    BUDGET_PARTS
};
const char *budget_part_name(enum budget_part part); /* "exposed copy" */

struct budget {
    int64_t window_ns, part_ns[BUDGET_PARTS];
    int64_t idle_ns; /* the parts from BUDGET_ALLOCATION on */
    size_t steps;    /* 0: the window is all of the trace */

    /* The classic figures. */
    int64_t compute_ns, copy_ns;   /* unions, whether hidden or not */
    int64_t overlap_ns;            /* both at once */
    int64_t concurrent_ns;         /* two kernels or more at once */
    size_t kernels, copies;        /* spans in the window */
    int64_t kernel_ns;             /* the sum of theirs */
    uint64_t up_bytes, down_bytes; /* between host and GPU, in copies above COPY_SMALL … */
    int64_t up_ns, down_ns;        /* … and the sum of their times */
};

enum { COPY_SMALL = 64 << 10 }; /* bytes: smaller copies are bound by their launch */

/* What kind of call: by the names of CUDA's and HIP's libraries. */
enum call_kind { CALL_OTHER, CALL_LAUNCH, CALL_COPY, CALL_WAIT, CALL_QUEUE, CALL_ALLOCATION };
enum call_kind call_kind_of(const char *name);

static inline bool is_up(const struct span *span)
{
    return span->to_memory == MEMORY_DEVICE && span->from_memory != MEMORY_DEVICE;
}
static inline bool is_down(const struct span *span)
{
    return span->from_memory == MEMORY_DEVICE && span->to_memory != MEMORY_DEVICE;
}

enum status budget_make(const struct trace *trace, const struct steps *steps,
                        struct budget *budget);

/* When the GPU idles: stretches from … to, in order. mem_free frees stretches. */
struct idle {
    struct stretch {
        int64_t from_ns, to_ns;
    } * stretches;
    size_t count;
};
enum status budget_idle(const struct trace *trace, const struct steps *steps, struct idle *idle);
bool idle_at(const struct idle *idle, int64_t at_ns);
int64_t idle_within(const struct idle *idle, int64_t from_ns, int64_t to_ns);

/* A share of the host's time while the GPU was idle, by the user's line; from samples. */
struct budget_line {
    uint32_t site;
    int64_t ns;
};
/* The lines with most time, longest first; at most `room`. *sampled_ns: of all samples. */
enum status budget_lines(const struct trace *trace, const struct steps *steps,
                         struct budget_line *lines, size_t room, size_t *count,
                         int64_t *sampled_ns);

/* Sums by site, of `count` sites: those of one file and line become one. */
void budget_join_lines(const struct trace *trace, struct budget_line *sums, size_t count);

/* What a thread of a watched program did in the window: it was seen running, or seen waiting; the
 * rest it was not seen, without a core or not there. The three sum to the window. */
struct budget_thread {
    uint16_t lane;
    int64_t ran_ns, waited_ns;
    uint32_t call; /* a text: the system call that it waits in longest; "": not known … */
    int64_t call_ns;
    int64_t until_ns; /* … and up to where it is known */
};
/* Those that ran longest first; at most `room`. */
enum status budget_threads(const struct trace *trace, const struct steps *steps,
                           struct budget_thread *threads, size_t room, size_t *count);

/* Kernels by name, longest first; without a GPU operators, each without those in it. */
struct budget_kernel {
    uint32_t name;
    size_t count;
    int64_t ns;
};
enum status budget_kernels(const struct trace *trace, const struct steps *steps,
                           struct budget_kernel *kernels, size_t room, size_t *count);

#endif
