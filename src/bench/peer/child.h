/* child.h: a child process that answers one line with one line, within a time.
 *
 * It runs in a process group of its own, dies with us, inherits no descriptor beside its three, and
 * is killed and reaped by child_close whatever state it is in, and so is all that it started, also
 * in groups and sessions of their own: orphans come to us (we are their subreaper) and are known by
 * a mark in their environment. What it writes to its standard error
 * is drained and its end kept for messages. A child that dies, hangs, floods or closes its output
 * is a status, never a hang: every wait has a deadline. One thread at a time. */
#ifndef PRONY_BENCH_PEER_CHILD_H
#define PRONY_BENCH_PEER_CHILD_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHILD_LINE_MOST = 1 << 23, CHILD_COMPLAINT = 400, CHILD_MARK = 48 };

struct child {
    pid_t pid;             /* 0: none; a zeroed struct is closed */
    int to, from, errors;  /* its standard input, output and error */
    char mark[CHILD_MARK]; /* "PRONY_PEER=…", in its environment and that of its children */
    struct text pending;   /* bytes of output beyond the last line taken */
    char complaint[CHILD_COMPLAINT]; /* the end of what it wrote to its standard error */
};

/* Starts the executable at `path`, with the argument "peer", for those that are more than a peer.
 */
enum status child_open(struct child *child, const char *path, int64_t workers);

/* Sends the line (the '\n' is added) and takes one line of answer, without its '\n', into *answer.
 * STATUS_TIMEOUT when it takes longer than `limit_ns`; STATUS_INTERRUPTED when `stopped` (or NULL),
 * which is asked while it waits, says so; STATUS_DEVICE when the child ended, or wrote more than
 * CHILD_LINE_MOST bytes without a line end. After a failure only child_close makes sense. */
enum status child_ask(struct child *child, const char *line, uint64_t limit_ns,
                      bool (*stopped)(void), struct text *answer);

/* Gives it `grace_ns` to end by itself once its input is closed, then kills it and all that it
 * started. */
void child_close(struct child *child, uint64_t grace_ns);

#endif
