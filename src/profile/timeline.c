/* timeline.c: a timeline, in the Trace Event Format that chrome://tracing, ui.perfetto.dev and
 * speedscope read: complete events ("ph":"X") in microseconds from the first, a process for each
 * program and in it a row for each lane. */
#include "base/json.h"
#include "profile/profile.h"

#include <stdio.h>

static void add_text(struct json_writer *json, const char *key, const char *value)
{
    json_key(json, key);
    json_add_text(json, value);
}

static void add_real(struct json_writer *json, const char *key, double value)
{
    json_key(json, key);
    json_add_real(json, value);
}

/* What a thing of the viewer is called: the process, or one of its rows. */
static void name_row(struct json_writer *json, const char *what, int32_t process, int32_t lane,
                     const char *name)
{
    json_object(json);
    add_text(json, "ph", "M");
    add_text(json, "name", what);
    add_real(json, "pid", process);
    add_real(json, "tid", lane);
    json_key(json, "args");
    json_object(json);
    add_text(json, "name", name);
    json_end(json);
    json_end(json);
}

static void name_lanes(struct json_writer *json, const struct profile *profile, int32_t process)
{
    int32_t most = 0;
    for (size_t i = 0; i < profile->event_count; i++)
        most = profile->events[i].lane > most ? profile->events[i].lane : most;
    for (int32_t lane = 0; lane <= most; lane++) {
        char name[32];
        snprintf(name, sizeof name, "lane %d", lane);
        name_row(json, "thread_name", process, lane, name);
    }
}

static void write_event(struct json_writer *json, const struct program *program, int32_t process,
                        const struct event *event, uint64_t zero_ns)
{
    const struct op *op = &program->ops[event->op];
    const double runs = program->portions; /* of the op in a step, an event each */
    char name[160];
    snprintf(name, sizeof name, "%s%s%s", op->layer, *op->layer ? " " : "", op_name(op->kind));
    json_object(json);
    add_text(json, "ph", "X");
    add_text(json, "name", name);
    add_text(json, "cat", part_name((enum part)event->part));
    add_real(json, "pid", process);
    add_real(json, "tid", event->lane);
    add_real(json, "ts", (double)(event->start_ns - zero_ns) * 1e-3);
    add_real(json, "dur", (double)(event->end_ns - event->start_ns) * 1e-3);
    json_key(json, "args");
    json_object(json);
    add_text(json, "kernel", event->kernel);
    add_real(json, "flop", (double)op_flop(program, op) / runs);
    add_real(json, "bytes", (double)op_bytes(program, op) / runs);
    json_end(json);
    json_end(json);
}

static void write_program(struct json_writer *json, const struct profile *profile, int32_t process)
{
    uint64_t zero_ns = profile->event_count ? profile->events[0].start_ns : 0;
    for (size_t i = 0; i < profile->event_count; i++)
        zero_ns = profile->events[i].start_ns < zero_ns ? profile->events[i].start_ns : zero_ns;
    name_row(json, "process_name", process, 0, profile->program->name);
    name_lanes(json, profile, process);
    for (size_t i = 0; i < profile->event_count; i++)
        write_event(json, profile->program, process, &profile->events[i], zero_ns);
}

void profile_trace(const struct profile *profiles, int32_t count, struct text *out)
{
    struct json_writer json;
    json_begin(&json, out);
    json_object(&json);
    add_text(&json, "displayTimeUnit", "ns");
    json_key(&json, "traceEvents");
    json_array(&json);
    for (int32_t p = 0; p < count; p++)
        write_program(&json, &profiles[p], p + 1);
    json_end(&json);
    json_end(&json);
    text_add(out, "\n");
}
