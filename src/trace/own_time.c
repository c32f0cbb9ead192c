/* own_time.c: see own_time.h. */
#include "trace/own_time.h"

#include "base/memory.h"

const char *own_of_name(enum own_of of)
{
    static const char *const names[] = {"samples", "gpu", "ops"};
    return names[of];
}

/* Ops that run within another take their time from it. */
static enum status add_ops(const struct trace *trace, int64_t *own)
{
    enum { DEEPEST = 64 }; /* ops further inside count for these */
    size_t *open, *depths; /* spans that are open on each lane, and how many */
    NEED(open = mem_array(trace->lane_count + 1, DEEPEST * sizeof *open));
    if (!(depths = mem_array(trace->lane_count + 1, sizeof *depths))) {
        mem_free(open);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        size_t *lane = open + (size_t)span->lane * DEEPEST;
        size_t *depth = &depths[span->lane];
        if (span->kind != SPAN_op)
            continue;
        while (*depth && trace->spans[lane[*depth - 1]].end_ns <= span->start_ns)
            --*depth;
        if (*depth == DEEPEST)
            continue;
        if (*depth)
            own[lane[*depth - 1]] -= span_ns(span);
        own[i] += span_ns(span);
        lane[(*depth)++] = i;
    }
    mem_free(depths);
    mem_free(open);
    return STATUS_OK;
}

static enum own_of find_kind(const struct trace *trace)
{
    bool device = false;
    for (size_t i = 0; i < trace->span_count; i++) {
        if (trace->spans[i].kind == SPAN_sample)
            return OWN_SAMPLES;
        device = device || span_kind_on_device(trace->spans[i].kind);
    }
    return device ? OWN_DEVICE : OWN_OPS;
}

/* A sum of all of them is no overflow, whatever a trace says. */
static void bound_times(const struct trace *trace, int64_t *own)
{
    const int64_t most = INT64_MAX / (int64_t)(trace->span_count + 1);
    for (size_t i = 0; i < trace->span_count; i++) {
        own[i] = own[i] < most ? own[i] : most;
        own[i] = own[i] > -most ? own[i] : -most;
    }
}

static void add_spans(const struct trace *trace, enum own_of of, int64_t *own)
{
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (of == OWN_SAMPLES ? span->kind == SPAN_sample : span_kind_on_device(span->kind))
            own[i] = span_ns(span);
    }
}

enum status trace_op_times(const struct trace *trace, int64_t **out)
{
    NEED(*out = mem_array(trace->span_count + 1, sizeof **out));
    enum status status = add_ops(trace, *out);
    bound_times(trace, *out);
    if (status != STATUS_OK)
        mem_free(*out);
    return status;
}

enum status trace_own_times(const struct trace *trace, int64_t **out, enum own_of *of)
{
    *of = find_kind(trace);
    if (*of == OWN_OPS)
        return trace_op_times(trace, out);
    NEED(*out = mem_array(trace->span_count + 1, sizeof **out));
    add_spans(trace, *of, *out);
    bound_times(trace, *out);
    return STATUS_OK;
}
