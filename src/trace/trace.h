/* trace.h: what a run did and when: spans, for our own runs and those of any other program.
 *
 * A span is an interval on a lane (a stream of a GPU, a thread of the host). Every reader makes
 * this one structure of its format, every budget, rule and writer reads it. Texts are kept once,
 * and spans name them by number; number 0 is "", no site, no caller.
 *
 * A site is a stack: a frame and the site of its caller. Samples are spans too: their site is what
 * the thread was doing, their length the time that they stand for.
 *
 * Memory: 40 bytes a span. A trace is made by one thread. After trace_finish it is not changed, and
 * any number of threads may read it. */
#ifndef PRONY_TRACE_TRACE_H
#define PRONY_TRACE_TRACE_H

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum span_kind {
#define KIND(key, device, help) SPAN_##key,
#include "trace/kinds.def"
    SPAN_KINDS
};
const char *span_kind_name(enum span_kind kind); /* "kernel" */
bool span_kind_on_device(enum span_kind kind);

/* Where the bytes of a copy come from and go to. */
enum memory_kind {
    MEMORY_UNKNOWN,
    MEMORY_PAGEABLE,
    MEMORY_PINNED,
    MEMORY_DEVICE,
    MEMORY_MANAGED,
    MEMORY_KINDS
};
const char *memory_kind_name(enum memory_kind kind); /* "pageable" */

enum lane_kind { LANE_THREAD, LANE_STREAM, LANE_KINDS };
const char *lane_kind_name(enum lane_kind kind); /* "thread" */

struct lane {
    uint8_t kind;     /* enum lane_kind */
    uint32_t name;    /* a text; of a thread its name, of a stream that of its GPU */
    int64_t group;    /* the process, or the number of the GPU */
    int64_t number;   /* of the thread or stream in it */
    uint32_t process; /* a text: what the group is called; 0: by its number */
};

struct site {
    uint32_t file, function; /* texts */
    uint32_t line;           /* 0: not known, as of a frame of C */
    uint32_t caller;         /* a site; 0: the outermost frame */
};

struct span {
    int64_t start_ns, end_ns; /* one clock for all lanes; its zero is arbitrary */
    uint64_t bytes;           /* of a copy or fill; the number of an event */
    uint32_t name;            /* a text */
    uint32_t site;            /* where the host asked for it */
    uint32_t correlation;     /* the call, and what it started, have the same; 0: none */
    uint16_t lane;
    uint8_t kind;                           /* enum span_kind */
    uint8_t from_memory : 4, to_memory : 4; /* enum memory_kind, of a copy */
};

/* The name of a sleep is its system call. With this behind it, the thread waits for a device that
 * stores, and not for a pipe, a socket or another thread. */
#define TRACE_STORAGE " (storage)"

/* What is known of the run beside its spans. Keys are words of ours (trace_fact):
 *   format          the reader that made it: "prony", "Kineto" …
 *   command         what was run
 *   gpu             its name
 *   cores           CPUs that the program may use
 *   on_core_ns, system_ns    of all threads: on a core, and of that in the system
 *   faults, faults_again     pages that were filled or mapped, and those beyond the most it had
 *   unwatched_ns    the time of a step in a run that nobody watched; a fact for each run
 *   machine         what disturbed the run; a fact for each
 *   lost            records that were lost
 *   lacks           something that the format does not have; a fact for each
 *   pinned_up, pinned_down, pageable_up, pageable_down    measured bytes per second
 *   fp32, tf32, bf16                                      measured FLOP per second */
struct fact {
    uint32_t key, value; /* texts */
};

struct trace {
    struct span *spans;
    size_t span_count;
    struct lane *lanes;
    size_t lane_count;
    struct site *sites; /* from 1 */
    size_t site_count;
    const char **texts; /* from 1 */
    size_t text_count;
    struct fact *facts;
    size_t fact_count;
    bool finished;

    /* Of trace.c: room, and tables that find a text, a site, a lane again. */
    struct arena arena;
    size_t span_room, lane_room, site_room, text_room, fact_room;
    uint32_t *text_table, *site_table, *lane_table; /* open addressing; 0: free, else number + 1 */
    size_t text_slots, site_slots, lane_slots;
};

/* A zeroed trace is empty and ready. */
void trace_free(struct trace *trace);

/* The number of a text, which is copied when it is new. Bytes that are no UTF-8 and control
 * characters become their numbers (plain.h). */
enum status trace_text(struct trace *trace, const char *text, size_t length, uint32_t *out);
enum status trace_lane(struct trace *trace, const struct lane *lane, uint16_t *out);
enum status trace_site(struct trace *trace, const struct site *site, uint32_t *out);
enum status trace_add(struct trace *trace, const struct span *span);
enum status trace_add_fact(struct trace *trace, const char *key, const char *value);

/* After the last span: sorts them by start, the longer first. Work that a call started gets the
 * call's site, and the call the site of its work. Refuses spans that end before they begin and
 * times beyond ± 2^62. */
enum status trace_finish(struct trace *trace, const char *name);

static inline const char *trace_word(const struct trace *trace, uint32_t text)
{
    return text < trace->text_count ? trace->texts[text] : "";
}
static inline int64_t span_ns(const struct span *span)
{
    return span->end_ns - span->start_ns;
}
/* The value of the first fact of this key, or NULL; as a number, or `otherwise`. */
const char *trace_fact(const struct trace *trace, const char *key);
double trace_fact_real(const struct trace *trace, const char *key, double otherwise);

/* For each span that has a correlation, and is no call, 1 + the number of the call that started it;
 * else 0. mem_free frees *out. */
enum status trace_calls(const struct trace *trace, uint32_t **out);

/* The innermost frame that belongs to the user: no frame of C, of Python itself or of an installed
 * package. 0: there is none. */
uint32_t trace_user_site(const struct trace *trace, uint32_t site);
/* Adds "train.py:58"; a frame without a line is its function. */
void trace_add_line(const struct trace *trace, uint32_t site, struct text *out);
/* A name of C++ as people write it, without arguments: "at::native::vectorized_kernel". */
void trace_add_name(const char *name, struct text *out);
/* What a thread or stream is called: "train.py, thread 7", "GPU 0, stream 13". */
void trace_add_lane(const struct trace *trace, const struct lane *lane, struct text *out);

/* Reads a trace from a file, packed by gzip or not; its content says which format it is. */
enum status trace_read(const char *path, struct trace *trace);
/* Could the file be a trace? Says false of a network's text and of what cannot be read. */
bool trace_is_one(const char *path);

/* Our own format: see trace_own.c. */
enum status trace_write(const struct trace *trace, const char *path);
void trace_write_text(const struct trace *trace, struct text *out);
/* Reads such a text; `name` is for messages. */
enum status trace_read_text(const char *name, const char *text, size_t length, struct trace *trace);

/* A part of a trace that is small enough to be kept: the spans that touch from_ns … to_ns, of more
 * than `most` the longest, and what they name. Facts and names are cut where they are long. */
enum status trace_excerpt(const struct trace *trace, int64_t from_ns, int64_t to_ns, size_t most,
                          struct trace *out);

#endif
