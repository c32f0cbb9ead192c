/* family.h: a process and those that it started, and they in turn: a peer may be a script that lets
 * another process compute. What is metered, traced and tied to a CPU is the whole family. */
#ifndef PRONY_BENCH_METER_FAMILY_H
#define PRONY_BENCH_METER_FAMILY_H

#include <sys/types.h>

enum { FAMILY_MOST = 64, FAMILY_THREADS = 512 };

/* A plain value. */
struct family {
    pid_t processes[FAMILY_MOST]; /* the eldest first */
    int count;                    /* 0: this process, without its children, which are peers */
};

/* Those that live now; process 0 gives the empty family. */
void family_find(pid_t process, struct family *out);

/* All threads of all of them; how many. -1, with errno, when the eldest is gone. */
int family_threads(const struct family *family, pid_t threads[FAMILY_THREADS]);

/* The children of a process, not theirs; how many. */
int family_children(pid_t parent, pid_t children[FAMILY_MOST]);

#endif
