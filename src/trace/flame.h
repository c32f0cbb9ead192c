/* flame.h: the stacks of a trace as one tree, as a flame graph shows them. A node is one way to a
 * function, with its own time and the time of its callees. Where stacks end with the call that
 * started something on the GPU, the kernel is the last frame. */
#ifndef PRONY_TRACE_FLAME_H
#define PRONY_TRACE_FLAME_H

#include "trace/own_time.h"

struct flame_node {
    uint32_t function, file; /* texts */
    uint32_t parent;         /* a node before this one */
    int64_t self_ns, all_ns;
};

/* nodes[0] is the root, all of the time. */
struct flame {
    struct flame_node *nodes;
    size_t count;
    enum own_of of;
};

/* Of more than `most` nodes those with most time; what the others have counts for their callers.
 * flame_free frees, also after failure. */
enum status flame_make(const struct trace *trace, size_t most, struct flame *flame);
void flame_free(struct flame *flame);

#endif
