/* startup.c: where the start-up of a program ends: its libraries are loaded, its modules imported.
 *
 * A program that computes for hours is watched for seconds, of which imports may take half. Their
 * time is no part of what is judged. It ends with the last sample up to which half of all samples
 * or more are of loading; a module that is imported later is work like any other. */
#include "base/memory.h"
#include "trace/trace_steps.h"

#include <string.h>

/* For each site: does it, or a caller of it, import or load? A caller has a smaller number. */
static bool *find_loading(const struct trace *trace)
{
    bool *loads = mem_array(trace->site_count + 1, sizeof *loads);
    for (size_t i = 1; loads && i < trace->site_count; i++) {
        const struct site *site = &trace->sites[i];
        const char *file = trace_word(trace, site->file);
        loads[i] = loads[site->caller] || strstr(file, "importlib._bootstrap") ||
                   (!site->caller && text_starts(file, "ld-linux"));
    }
    return loads;
}

static bool is_work(const struct trace *trace, const struct span *span)
{
    return span->kind == SPAN_sample ||
           (span->kind == SPAN_sleep && text_ends(trace_word(trace, span->name), TRACE_STORAGE));
}

enum status steps_skip_startup(const struct trace *trace, struct steps *steps)
{
    double all_ns = 0, loading_ns = 0;
    int64_t end_ns = steps->start_ns;
    bool *loads;
    NEED(loads = find_loading(trace));
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (!is_work(trace, span))
            continue;
        all_ns += (double)span_ns(span);
        if (!loads[span->site])
            continue;
        loading_ns += (double)span_ns(span);
        if (2 * loading_ns >= all_ns && span->end_ns > end_ns)
            end_ns = span->end_ns;
    }
    mem_free(loads);
    end_ns = end_ns < steps->end_ns ? end_ns : steps->end_ns;
    steps->startup_ns = end_ns - steps->start_ns;
    steps->start_ns = end_ns;
    return STATUS_OK;
}
