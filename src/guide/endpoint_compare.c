/* endpoint_compare.c: /api/compare, two selections side by side. */
#include "guide/endpoints.h"

#include <string.h>

static void add_opponent(struct json_writer *json, const char *key,
                         const struct store_opponent *opponent)
{
    json_key(json, key);
    json_object(json);
    call_add_int(json, "id", opponent->id);
    call_add_real(json, "y", opponent->y);
    call_add_real(json, "low", opponent->low);
    call_add_real(json, "high", opponent->high);
    call_add_text(json, "check", opponent->check);
    json_end(json);
}

static void add_match(struct json_writer *json, const struct store_match *match, uint64_t shown)
{
    json_object(json);
    json_key(json, "point");
    json_object(json);
    for (size_t i = 0; i < AXIS_COUNT; i++)
        if (shown & (uint64_t)1 << i) {
            json_key(json, axes[i].key);
            store_value_write(json, axes[i].key, match->values[i]);
        }
    json_end(json);
    add_opponent(json, "a", &match->a);
    add_opponent(json, "b", &match->b);
    call_add_real(json, "ratio", match->found.ratio);
    call_add_real(json, "low", match->found.low);
    call_add_real(json, "high", match->found.high);
    call_add_text(json, "verdict", verdict_name(match->found.verdict));
    json_end(json);
}

static void add_summary(struct json_writer *json, const struct store_matches *matches)
{
    json_key(json, "summary");
    json_object(json);
    call_add_int(json, "matched", (int64_t)matches->count);
    call_add_int(json, "faster", matches->verdicts[VERDICT_FASTER]);
    call_add_int(json, "slower", matches->verdicts[VERDICT_SLOWER]);
    call_add_int(json, "same", matches->verdicts[VERDICT_SAME]);
    call_add_int(json, "unknown", matches->verdicts[VERDICT_UNKNOWN]);
    call_add_real(json, "ratio", matches->ratio);
    call_add_int(json, "only_a", matches->only_a);
    call_add_int(json, "only_b", matches->only_b);
    call_add_int(json, "handicapped", matches->handicapped);
    json_end(json);
}

static enum status read_side(struct call *call, const char *name, const char *words,
                             struct store_where *out)
{
    if (!words)
        return call_refuse(call, name, "", "a selection: KEY=VALUE …");
    enum status status = store_where_parse(&call->arena, words, out);
    return status == STATUS_INPUT ? call_refuse(call, name, words, "KEY=VALUE …; %s",
                                                arena_text(&call->arena, status_message()))
                                  : status;
}

enum status endpoint_compare(struct call *call)
{
    enum { A, B, Y };
    struct json_writer *json = &call->json;
    struct store_opposed question = {.where = call_where(call),
                                     .y = call->own[Y] ? call->own[Y] : "time_median"};
    struct store_matches matches = {0};
    TRY(read_side(call, "a", call->own[A], &question.a));
    TRY(read_side(call, "b", call->own[B], &question.b));
    TRY(call_need_metric(call, "y", question.y));
    if (call->store) { /* what the words hold is looked at there */
        enum status status = store_compare(call->store, &question, &matches);
        if (status == STATUS_INPUT)
            return call_refuse(call, "b", call->own[B], "a and b that hold values; %s",
                               arena_text(&call->arena, status_message()));
        TRY(status);
    }
    json_object(json);
    call_add_text(json, "y", question.y);
    json_key(json, "axes");
    store_axes_write(json, matches.axes);
    json_key(json, "rows");
    json_array(json);
    for (size_t i = 0; i < matches.count; i++)
        add_match(json, &matches.list[i], matches.axes);
    json_end(json);
    add_summary(json, &matches);
    json_end(json);
    store_matches_free(&matches);
    return STATUS_OK;
}
