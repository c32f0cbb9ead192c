/* endpoint_timeline.c: /api/timeline/ID: a stretch of a kept profile as few blocks. */
#include "guide/endpoints.h"
#include "record/profile_line.h"
#include "trace/timeline.h"

#include <string.h>

enum { BLOCKS_USUALLY = 2000, BLOCKS_LEAST = 400, BLOCKS_MOST = 4000 };

/* Texts that blocks name, each once, in the order in which they come. */
struct names {
    struct call *call;
    const struct trace *trace;
    int64_t *of_text, *of_site; /* place + 1; 0: not there yet */
    const char **list;
    size_t count;
};

static enum status keep_name(struct names *names, struct text *text, int64_t *place)
{
    NEED(names->list[names->count] = arena_text(&names->call->arena, text_of(text)));
    *place = (int64_t)++names->count;
    text_clear(text);
    return STATUS_OK;
}

/* The name of what ran, and the user's line that asked for it, or -1. */
static enum status name_block(struct names *names, const struct timeline_block *block,
                              struct text *text, int64_t *name, int64_t *line)
{
    const struct trace *trace = names->trace;
    const uint32_t site = trace_user_site(trace, block->site);
    if (!names->of_text[block->name]) {
        trace_add_name(trace_word(trace, block->name), text);
        TRY(keep_name(names, text, &names->of_text[block->name]));
    }
    if (site && !names->of_site[site]) {
        trace_add_line(trace, site, text);
        TRY(keep_name(names, text, &names->of_site[site]));
    }
    *name = names->of_text[block->name] - 1;
    *line = site ? names->of_site[site] - 1 : -1;
    return STATUS_OK;
}

/* [LANE, DEPTH, START, LENGTH, NAME, KIND, COUNT, LINE], times from the start of the trace. */
static enum status add_blocks(struct names *names, const struct timeline *timeline)
{
    struct json_writer *json = &names->call->json;
    struct text text = {0};
    enum status status = STATUS_OK;
    json_key(json, "blocks");
    json_array(json);
    for (size_t i = 0; i < timeline->count && status == STATUS_OK; i++) {
        const struct timeline_block *block = &timeline->blocks[i];
        int64_t name = 0, line = 0;
        status = name_block(names, block, &text, &name, &line);
        const int64_t values[] = {block->lane,
                                  block->depth,
                                  block->start_ns - timeline->start_ns,
                                  block->end_ns - block->start_ns,
                                  name,
                                  block->kind,
                                  block->count,
                                  line};
        json_array(json);
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            json_add_int(json, values[k]);
        json_end(json);
    }
    json_end(json);
    text_free(&text);
    return status;
}

static void add_lanes(struct json_writer *json, const struct trace *trace,
                      const struct timeline *timeline)
{
    json_key(json, "lanes");
    json_array(json);
    for (size_t i = 0; i < timeline->lane_count; i++) {
        const struct lane *lane = &trace->lanes[timeline->lanes[i]];
        struct text name = {0};
        trace_add_lane(trace, lane, &name);
        json_object(json);
        call_add_text(json, "name", text_of(&name));
        call_add_text(json, "kind", lane_kind_name(lane->kind));
        call_add_int(json, "rows", timeline->depths[i]);
        json_end(json);
        text_free(&name);
    }
    json_end(json);
}

static void add_words(struct json_writer *json, const struct names *names)
{
    json_key(json, "names");
    json_array(json);
    for (size_t i = 0; i < names->count; i++)
        json_add_text(json, names->list[i]);
    json_end(json);
    json_key(json, "kinds");
    json_array(json);
    for (int kind = 0; kind < SPAN_KINDS; kind++)
        json_add_text(json, span_kind_name((enum span_kind)kind));
    json_end(json);
}

static enum status write_timeline(struct call *call, const struct trace *trace,
                                  const struct timeline *timeline)
{
    struct json_writer *json = &call->json;
    struct names names = {.call = call, .trace = trace};
    struct arena *arena = &call->arena;
    NEED(names.of_text = arena_array(arena, trace->text_count + 1, sizeof *names.of_text));
    NEED(names.of_site = arena_array(arena, trace->site_count + 1, sizeof *names.of_site));
    NEED(names.list = arena_array(arena, 2 * timeline->count + 1, sizeof *names.list));
    json_object(json);
    call_add_int(json, "from", timeline->from_ns - timeline->start_ns);
    call_add_int(json, "to", timeline->to_ns - timeline->start_ns);
    call_add_int(json, "end", timeline->end_ns - timeline->start_ns);
    call_add_int(json, "left_out", (int64_t)timeline->left_out);
    add_lanes(json, trace, timeline);
    TRY(add_blocks(&names, timeline));
    add_words(json, &names);
    json_end(json);
    return STATUS_OK;
}

static enum status read_trace(const struct profile_line *profile, struct trace *trace)
{
    if (!profile->trace)
        FAIL(STATUS_INPUT, "this profile was kept without a timeline");
    return trace_read_text("the profile's trace", profile->trace, profile->trace_length, trace);
}

enum status endpoint_timeline(struct call *call)
{
    enum { FROM, TO, MOST };
    struct record record;
    struct profile_line profile;
    struct trace trace;
    struct timeline timeline;
    int64_t id, from = 0, to = 0, most = BLOCKS_USUALLY;
    TRY(call_number(call, FROM, 0, INT64_MAX / 4, &from));
    TRY(call_number(call, TO, 0, INT64_MAX / 4, &to));
    TRY(call_number(call, MOST, BLOCKS_LEAST, BLOCKS_MOST, &most));
    TRY(call_profile(call, &id, &record, &profile));
    TRY(read_trace(&profile, &trace));
    const int64_t start_ns = trace.span_count ? trace.spans[0].start_ns : 0;
    enum status status =
        timeline_make(&trace, start_ns + from, start_ns + to, (size_t)most, &timeline);
    if (status == STATUS_OK) {
        status = write_timeline(call, &trace, &timeline);
        timeline_free(&timeline);
    }
    trace_free(&trace);
    return status;
}
