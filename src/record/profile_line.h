/* profile_line.h: where the time of a run went: a record of kind "profile".
 *
 *   {"prony":1,"kind":"profile","profile":{"title":"python3 train.py","command":…,"gpu":…,
 *    "steps":200,"step_ns":…,"budget":{"window_ns":…,"compute":…,…},"figures":{…},
 *    "kernels":[…],"functions":[…],"lines":[…],"findings":[{"rule":"R1","title":…,"gain":4.6,…}],
 *    "kept":{"spans":…,"of_spans":…,"from_ns":…,"to_ns":…},
 *    "flame":{"of":"samples","names":["",…],"nodes":[[PARENT,FUNCTION,FILE,SELF_NS],…]},
 *    "trace":"prony trace 1\n…"},"machine":{…},"at":"…"}
 *
 * `budget` has each nanosecond of the window once. `flame` is one tree of all stacks: a node names
 * its parent, which stands before it, and its function and file by their places in `names`; node 0
 * is the root. `trace` is an excerpt in the format of trace/trace_own.c, for a timeline. */
#ifndef PRONY_RECORD_PROFILE_LINE_H
#define PRONY_RECORD_PROFILE_LINE_H

#include "base/json.h"

struct profile_line {
    const char *title;                    /* what was profiled */
    const char *command;                  /* that was run; "": not known */
    const char *gpu;                      /* its name, or NULL */
    int64_t steps;                        /* 0: the window is all of it */
    double step_ns;                       /* NaN: not known */
    const struct json *budget, *findings; /* findings: an array, or NULL */
    const struct json *flame;             /* or NULL */
    const char *trace;                    /* or NULL */
    size_t trace_length;
};

/* Reads the object, which may come from anywhere: the budget must sum to its window, and the tree
 * must be one. What the trace is says trace_read_text. Texts point into the object. */
enum status profile_line_read(const struct json *object, struct profile_line *out);

#endif
