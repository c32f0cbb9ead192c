/* crowd.c: see crowd.h. Stretches begin and end at moments, which are sorted and walked once. */
#include "advise/crowd.h"

#include "base/memory.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool contains_any(const char *text, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(text, *parts))
            return true;
    return false;
}

/* The program python3.11 or its library, and its modules in C that compute one number a call. */
static bool is_interpreter(const char *path)
{
    static const char *const modules[] = {"math.",      "cmath.",   "_random.",
                                          "_struct.",   "_bisect.", "_heapq.",
                                          "_datetime.", "array.",   "_statistics."};
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    static const char program[] = "python";
    if (text_starts(file, "libpython"))
        return true;
    if (text_starts(file, program))
        return !file[sizeof program - 1] || isdigit((unsigned char)file[sizeof program - 1]);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (text_starts(file, modules[i]) && strstr(file, "cpython-"))
            return true;
    return false;
}

/* The C library does what its caller asks for: the interpreter allocates, copies and compares by
 * it. Its calls of the system are work of their own. */
static bool is_helper(const char *file, const char *function)
{
    static const char *const calls[] = {
        "read",     "write",     "pread",  "pwrite",  "readv",     "writev",
        "recv",     "send",      "open",   "close",   "stat",      "fstat",
        "lstat",    "poll",      "select", "epoll_",  "nanosleep", "clock_nanosleep",
        "fsync",    "fdatasync", "accept", "connect", "ioctl",     "lseek",
        "getdents", "wait",      "fork",   "vfork",   "syscall",   "pthread_",
        NULL};
    if (!text_starts(file, "libc.so") && !text_starts(file, "libm.so") &&
        !text_starts(file, "libc-2") && !text_starts(file, "libm-2"))
        return false;
    function += strspn(function, "_");
    function += text_starts(function, "libc_") ? strlen("libc_") : 0;
    for (const char *const *call = calls; *call; call++)
        if (text_starts(function, *call))
            return false;
    return true;
}

static bool has_native(const struct trace *trace, uint32_t site)
{
    while (site && site < trace->site_count && trace->sites[site].line)
        site = trace->sites[site].caller;
    return site != 0 && site < trace->site_count;
}

/* The innermost frame decides. Frames of the interpreter itself and of its helpers are passed over:
 * they run the line that called them; the evaluation loop is the line itself. A stack without any
 * frame of C is one of a thread that did not answer: its line is known, and not what it calls. */
enum seen seen_in(const struct trace *trace, uint32_t site)
{
    static const char *const spins[] = {
        "sched_yield", "gomp_barrier", "gomp_team_barrier", "do_spin", "kmp_wait", "__kmp_", NULL};
    static const char *const faults[] = {"munmap",   "madvise", "page_fault", "clear_page",
                                         "__GI_brk", "mmap",    NULL};
    bool inside = false;
    for (; site && site < trace->site_count; site = trace->sites[site].caller) {
        const struct site *frame = &trace->sites[site];
        const char *file = trace_word(trace, frame->file);
        const char *function = trace_word(trace, frame->function);
        if (frame->line)
            return inside || has_native(trace, site) ? SEEN_PYTHON : SEEN_OTHER;
        if (contains_any(function, spins))
            return SEEN_SPIN;
        if (contains_any(function, faults))
            return SEEN_FAULT;
        if (is_interpreter(file) || text_starts(function, "_Py") || text_starts(function, "Py"))
            inside = true;
        else if (!is_helper(file, function))
            return SEEN_OTHER;
    }
    return SEEN_OTHER;
}

/* What a thread does in a stretch. */
enum doing { RUNS, SPINS, STORES, DOINGS };

struct moment {
    int64_t at_ns;
    int8_t doing, change; /* one more, or one less */
};

static int earlier_first(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* A sample stands for the looks before it, a wait for the time after. No thread does two things at
 * once: `until` says up to where each lane is known. */
static size_t find_moments(const struct trace *trace, const struct steps *steps, int64_t *until,
                           struct moment *moments)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->lane_count; i++)
        until[i] = steps->start_ns;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        const bool sample = span->kind == SPAN_sample;
        if (!sample &&
            (span->kind != SPAN_sleep || !text_ends(trace_word(trace, span->name), TRACE_STORAGE)))
            continue;
        int64_t from = sample ? span->start_ns - span_ns(span) : span->start_ns;
        int64_t to = sample ? span->start_ns : span->end_ns;
        from = from > until[span->lane] ? from : until[span->lane];
        to = to < steps->end_ns ? to : steps->end_ns;
        const int8_t doing = (int8_t)(!sample                                   ? STORES
                                      : seen_in(trace, span->site) == SEEN_SPIN ? SPINS
                                                                                : RUNS);
        if (to <= from)
            continue;
        until[span->lane] = to;
        moments[count++] = (struct moment){from, doing, 1};
        moments[count++] = (struct moment){to, doing, -1};
    }
    qsort(moments, count, sizeof *moments, earlier_first);
    return count;
}

/* Cores are shared out evenly. Where all spin, one of them has its turn and waits for a core. */
static void add_stretch(const int threads[DOINGS], double ns, double cores, struct crowd *out)
{
    const int running = threads[RUNS] + threads[SPINS];
    out->thread_ns += running * ns;
    out->any_ns += running ? ns : 0;
    out->storage_ns += !running && threads[STORES] ? ns : 0;
    if (cores <= 0 || running <= cores || !threads[SPINS])
        return;
    out->crowded_ns += ns;
    out->lost_ns += ns * (1 - cores / running / fmin(1, cores / fmax(threads[RUNS], 1)));
}

enum status crowd_find(const struct trace *trace, const struct steps *steps, double cores,
                       struct crowd *out)
{
    struct moment *moments;
    int64_t *until;
    int threads[DOINGS] = {0};
    *out = (struct crowd){.window_ns = (double)(steps->end_ns - steps->start_ns)};
    NEED(moments = mem_array(2 * trace->span_count + 1, sizeof *moments));
    if (!(until = mem_array(trace->lane_count + 1, sizeof *until))) {
        mem_free(moments);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    const size_t count = find_moments(trace, steps, until, moments);
    mem_free(until);
    for (size_t i = 0; i < count; i++) {
        threads[moments[i].doing] += moments[i].change;
        if (i + 1 < count)
            add_stretch(threads, (double)(moments[i + 1].at_ns - moments[i].at_ns), cores, out);
    }
    mem_free(moments);
    return STATUS_OK;
}
