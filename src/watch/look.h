/* look.h: looks at all threads of a program and of the processes that it started, at one moment.
 *
 * A thread that runs is asked where it is (agent/agent_ring.h). The system call and the Python
 * frames of one that waits are read from outside, once each time it begins to wait. Answers of
 * threads are taken in with the next look. An answer stands for all looks since the one before, so
 * a thread which runs but gets no core loses nothing. */
#ifndef PRONY_WATCH_LOOK_H
#define PRONY_WATCH_LOOK_H

#include "watch/gathered.h"
#include "watch/ring.h"

enum { LOOK_PROCESSES = 256 };

struct look_thread {
    pid_t number;
    size_t seen;   /* its place in gathered.threads */
    int schedstat; /* a descriptor, or -1 */
    bool waits, found;
    double pending_ns;     /* looks that no answer stands for yet */
    uint64_t asked_ran_ns; /* its time on a core when the first of them was asked */
    uint64_t ran_ns, runnable_ns, slices;
    size_t nap; /* its sighting, while it waits; SIZE_MAX: none */
};

struct look_process {
    pid_t number;
    bool gone;
    struct ring ring; /* head NULL: it has no agent */
    struct maps maps;
    struct look_thread *threads;
    size_t thread_count, thread_room;
};

struct look {
    const char *folder; /* of the agents' files */
    pid_t eldest;
    struct gathered *gathered;
    struct look_process processes[LOOK_PROCESSES];
    size_t process_count;
    uint64_t last_ns, family_ns;
    /* What it did, for the report. */
    uint64_t looks, asked, answered, torn, unreadable;
    double cost_ns;                    /* CPU time of the looks */
    bool call_refused, memory_refused; /* the system did not let us read calls, frames */
    uint32_t python_version;           /* of the first interpreter that was seen … */
    bool python_unknown;               /* … whose layout is not known */
};

enum status look_open(struct look *look, const char *folder, pid_t eldest,
                      struct gathered *gathered);
/* `period_ns`: so long a running thread's sighting stands for. */
enum status look_once(struct look *look, double period_ns);
/* After the program ended: what was answered last; those that did not answer. */
enum status look_finish(struct look *look);
/* Of all agents: samples that were lost, time in their handlers. */
void look_sum(const struct look *look, double *lost, double *handler_ns);
void look_close(struct look *look);

#endif
