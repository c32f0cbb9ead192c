/* hot.h: sums over the samples of a trace: where time is spent, the most first. */
#ifndef PRONY_WATCH_HOT_H
#define PRONY_WATCH_HOT_H

#include "trace/trace.h"

enum hot_by {
    HOT_LINES,     /* lines of the user's own files, what they call included */
    HOT_NAMES,     /* ops and functions, themselves */
    HOT_FUNCTIONS, /* functions of Python (of C in other programs), what they call included */
    HOT_CALLS,     /* system calls that threads wait in */
};

struct hot_row {
    uint64_t key;
    uint32_t site; /* one of them: its file, line and function */
    uint32_t name; /* a text; of lines the op or function that takes most of its time */
    double ns, name_ns;
    size_t samples;
};

/* mem_free frees rows. A zeroed struct is empty. */
struct hot {
    struct hot_row *rows; /* the most first */
    size_t count;
    double all_ns; /* of all samples, also of those that have no key */
};

/* Of the spans of one lane, or of all where it is -1. */
enum status hot_find(const struct trace *trace, enum hot_by by, int lane, struct hot *out);
void hot_free(struct hot *hot);

/* The call graph as a tree of functions: a node for each way to get there. */
struct hot_node {
    uint32_t function, file; /* texts */
    double ns, self_ns;
    size_t first, next; /* child, sibling; 0: none */
};
struct hot_tree {
    struct hot_node *nodes; /* nodes[0] is the root */
    size_t count, room;
};
enum status hot_tree_find(const struct trace *trace, struct hot_tree *out);
void hot_tree_free(struct hot_tree *tree);

#endif
