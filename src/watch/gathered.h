/* gathered.h: what was seen of a watched program before anything has a name: stacks of numbers.
 *
 * Samples come a hundred times a second from every running thread, and finding names takes time
 * that the program would miss. So numbers are kept, and names are found afterwards. */
#ifndef PRONY_WATCH_GATHERED_H
#define PRONY_WATCH_GATHERED_H

#include "agent/agent_ring.h"
#include "watch/modules.h"

#include <stdbool.h>

enum { GATHERED_WORDS_MOST = 1 << 26 }; /* of stacks: 512 MB */

/* A Python function. */
struct code {
    uint64_t key; /* 0: no code */
    const char *name, *file;
    int32_t first_line;
    uint32_t lines; /* enum python_lines */
    const unsigned char *table;
    size_t table_bytes;
};

/* A thread of the program, or of a process that it started. */
struct seen_thread {
    pid_t process, thread;
    char name[16];
    uint64_t first_ns, last_ns; /* when it was seen */
    double ran_ns, runnable_ns; /* on a core; waiting for one. NaN: the system does not say */
    double ticks_running, ticks_waiting; /* of the samples, in ns */
    double faults, system_ns; /* pages that it filled or mapped; its time in the system */
};

/* What a thread did at a moment, or from one moment to another. */
struct sighting {
    uint64_t start_ns, end_ns;
    uint32_t thread;            /* its place in threads */
    int32_t call;               /* the system call it waited in, or one of those below */
    uint32_t native, python;    /* how many words, frames */
    size_t first;               /* of its words: places, then two words for each Python frame */
    bool torn, cut, unanswered; /* unanswered: the thread did not say where it was */
    bool device;                /* its wait cannot be interrupted: for a device, or for memory */
};
enum { PYTHON_WORDS = 2 };
enum {
    SIGHTING_FAULT = -1, /* it waits in no call: for a page */
    SIGHTING_RUNS = -2,
    SIGHTING_WAKES = -3,
    SIGHTING_UNKNOWN = -4, /* the system does not say */
};

struct gathered {
    struct modules modules;
    struct arena arena; /* texts of codes */
    struct code *codes; /* a table by key, half empty */
    size_t code_count, code_slots;
    struct seen_thread *threads;
    size_t thread_count, thread_room;
    struct sighting *sightings;
    size_t sighting_count, sighting_room;
    uint64_t *words;
    size_t word_count, word_room;
    bool full; /* of the words: what came later is missing */
};
void gathered_free(struct gathered *gathered);

const struct code *gathered_code(const struct gathered *gathered, uint64_t key); /* or NULL */
/* Copies what code points to. */
enum status gathered_add_code(struct gathered *gathered, const struct code *code);
enum status gathered_add_thread(struct gathered *gathered, const struct seen_thread *thread,
                                size_t *out);
/* Adds a sighting and makes room for its words, which *words points to, until the next call; NULL:
 * there is no more room. */
enum status gathered_add(struct gathered *gathered, const struct sighting *sighting,
                         uint64_t **words);

#endif
