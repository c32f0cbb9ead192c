/* nest.c: sites from Python functions that were recorded as spans: a call has the functions around
 * it as its stack. */
#include "base/memory.h"
#include "trace/trace_inside.h"

#include <stdlib.h>
#include <string.h>

struct open_frame {
    int64_t end_ns;
    uint32_t site;
};

struct open_lane {
    struct open_frame *frames;
    size_t count, room;
};

/* "path/file.py(58): step" of Kineto, "$file.py:58 step" of JAX. */
static enum status parse_frame(struct trace *trace, const char *name, struct site *site)
{
    const char *open = strstr(name, ".py("), *colon = strstr(name, ".py:");
    const char *number = open ? open + 4 : colon ? colon + 4 : NULL;
    if (!number)
        return trace_text(trace, name, strlen(name), &site->function);
    const char *file = *name == '$' ? name + 1 : name;
    char *rest;
    unsigned long line = strtoul(number, &rest, 10);
    rest += strspn(rest, "): ");
    site->line = line <= UINT32_MAX ? (uint32_t)line : 0;
    TRY(trace_text(trace, file, (size_t)(number - 1 - file), &site->file));
    return trace_text(trace, rest, strlen(rest), &site->function);
}

static enum status push(struct open_lane *lane, int64_t end_ns, uint32_t site)
{
    if (lane->count == lane->room) {
        size_t room = lane->room ? 2 * lane->room : 32;
        struct open_frame *frames;
        NEED(frames = mem_grow(lane->frames, room, sizeof *frames));
        lane->frames = frames;
        lane->room = room;
    }
    lane->frames[lane->count++] = (struct open_frame){end_ns, site};
    return STATUS_OK;
}

static enum status nest_span(struct trace *trace, struct open_lane *lanes, struct span *span)
{
    struct open_lane *lane = &lanes[span->lane];
    while (lane->count && lane->frames[lane->count - 1].end_ns <= span->start_ns)
        lane->count--;
    uint32_t caller = lane->count ? lane->frames[lane->count - 1].site : 0;
    if (span->kind != SPAN_python) {
        if (!span->site)
            span->site = caller;
        return STATUS_OK;
    }
    struct site site = {.caller = caller};
    TRY(parse_frame(trace, trace_word(trace, span->name), &site));
    TRY(trace_site(trace, &site, &span->site));
    return push(lane, span->end_ns, span->site);
}

enum status trace_nest(struct trace *trace)
{
    bool any = false;
    for (size_t i = 0; i < trace->span_count && !any; i++)
        any = trace->spans[i].kind == SPAN_python;
    if (!any)
        return STATUS_OK;
    struct open_lane *lanes;
    enum status status = STATUS_OK;
    NEED(lanes = mem_array(trace->lane_count, sizeof *lanes));
    for (size_t i = 0; i < trace->span_count && status == STATUS_OK; i++)
        status = nest_span(trace, lanes, &trace->spans[i]);
    for (size_t i = 0; i < trace->lane_count; i++)
        mem_free(lanes[i].frames);
    mem_free(lanes);
    return status;
}
