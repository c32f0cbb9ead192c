/* export_chrome.c: a timeline in the Trace Event Format. See export.h. */
#include "base/json.h"
#include "trace/export.h"

#include <stdio.h>

/* GPUs and processes are numbered alike; a viewer wants them apart. */
static int64_t process_of(const struct lane *lane)
{
    const int64_t gpus = 1000000000;
    return lane->kind == LANE_STREAM ? gpus + lane->group : lane->group;
}

static void add_name(struct json_writer *json, const char *what, const struct lane *lane,
                     const char *name)
{
    json_object(json);
    json_put_text(json, "ph", "M");
    json_put_text(json, "name", what);
    json_put_int(json, "pid", process_of(lane));
    json_put_int(json, "tid", lane->number);
    json_key(json, "args");
    json_object(json);
    json_put_text(json, "name", name);
    json_end(json);
    json_end(json);
}

static void add_lane(struct json_writer *json, const struct trace *trace, const struct lane *lane)
{
    char name[200];
    snprintf(name, sizeof name, "%s %lld", lane->kind == LANE_STREAM ? "GPU" : "process",
             (long long)lane->group);
    add_name(json, "process_name", lane, lane->process ? trace_word(trace, lane->process) : name);
    snprintf(name, sizeof name, "%s %lld%s%s", lane_kind_name(lane->kind), (long long)lane->number,
             lane->name ? ": " : "", trace_word(trace, lane->name));
    add_name(json, "thread_name", lane, name);
}

static void add_args(struct json_writer *json, const struct trace *trace, const struct span *span)
{
    json_key(json, "args");
    json_object(json);
    if (span->bytes)
        json_put_int(json, "bytes", (int64_t)span->bytes);
    if (span->from_memory || span->to_memory) {
        json_put_text(json, "from", memory_kind_name(span->from_memory));
        json_put_text(json, "to", memory_kind_name(span->to_memory));
    }
    if (span->correlation)
        json_put_int(json, "correlation", span->correlation);
    if (span->site) {
        struct text line = {0};
        trace_add_line(trace, span->site, &line);
        json_put_text(json, trace->sites[span->site].line ? "line" : "function", text_of(&line));
        text_free(&line);
    }
    json_end(json);
}

static void add_span(struct json_writer *json, const struct trace *trace, const struct span *span,
                     int64_t zero_ns)
{
    const struct lane *lane = &trace->lanes[span->lane];
    json_object(json);
    json_put_text(json, "ph", "X");
    json_put_text(json, "name",
                  span->name ? trace_word(trace, span->name) : span_kind_name(span->kind));
    json_put_text(json, "cat", span_kind_name(span->kind));
    json_put_int(json, "pid", process_of(lane));
    json_put_int(json, "tid", lane->number);
    json_put_real(json, "ts", (double)(span->start_ns - zero_ns) * 1e-3);
    json_put_real(json, "dur", (double)span_ns(span) * 1e-3);
    add_args(json, trace, span);
    json_end(json);
}

void trace_export_chrome(const struct trace *trace, struct text *out)
{
    struct json_writer json;
    json_begin(&json, out);
    json_object(&json);
    json_put_text(&json, "displayTimeUnit", "ns");
    json_key(&json, "traceEvents");
    json_array(&json);
    for (size_t i = 0; i < trace->lane_count; i++)
        add_lane(&json, trace, &trace->lanes[i]);
    for (size_t i = 0; i < trace->span_count; i++)
        add_span(&json, trace, &trace->spans[i], trace->spans[0].start_ns);
    json_end(&json);
    json_end(&json);
    text_add(out, "\n");
}
