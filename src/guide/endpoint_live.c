/* endpoint_live.c: /api/live: what came since, and who is measuring. */
#include "guide/endpoints.h"

#include <string.h>

enum { RECORDS_AT_MOST = 200, PATIENCE_S = 600 };

static enum status add_row(void *context, const struct store_row *row)
{
    struct json_writer *json = context;
    struct text label = {0};
    point_label(&row->point, &label);
    json_object(json);
    call_add_int(json, "id", row->id);
    call_add_text(json, "at", row->at);
    call_add_text(json, "status", row->status);
    call_add_text(json, "check", row->check);
    call_add_text(json, "label", text_of(&label));
    json_key(json, "point");
    point_write(&row->point, json);
    call_add_real(json, "time_median", row->metrics[METRIC_time_median]);
    call_add_real(json, "throughput", row->metrics[METRIC_throughput]);
    call_add_real(json, "times_floor", row->metrics[METRIC_times_floor]);
    json_end(json);
    enum status status = text_done(&label);
    text_free(&label);
    return status;
}

static enum status add_running(void *context, const struct store_running *running)
{
    struct call *call = context;
    struct json_writer *json = &call->json;
    struct json *curve = NULL;
    if (running->curve && json_parse(&call->arena, "the store", running->curve,
                                     strlen(running->curve), &curve) != STATUS_OK)
        curve = NULL; /* in a store from elsewhere */
    json_object(json);
    call_add_text(json, "server", running->server);
    call_add_int(json, "process", running->process);
    call_add_int(json, "done", running->done);
    call_add_int(json, "total", running->total);
    call_add_text(json, "current", running->current);
    call_add_text(json, "started", running->started);
    call_add_real(json, "left_s", running->left_s);
    json_key(json, "curve");
    if (curve)
        json_add_tree(json, curve);
    else
        json_add_null(json);
    json_end(json);
    return STATUS_OK;
}

enum status endpoint_live(struct call *call)
{
    enum { AFTER };
    static const enum metric_index wanted[] = {METRIC_time_median, METRIC_throughput,
                                               METRIC_times_floor, METRIC_COUNT};
    struct json_writer *json = &call->json;
    struct store_glance glance = {
        .metrics = wanted, .limit = RECORDS_AT_MOST, .oldest_first = true};
    struct store_state state = {0};
    int64_t count;
    TRY(call_number(call, AFTER, 0, INT64_MAX, &glance.after));
    if (call->store)
        TRY(store_look(call->store, &state));
    json_object(json);
    call_add_int(json, "newest", state.newest);
    call_add_int(json, "change", state.change);
    json_key(json, "records");
    json_array(json);
    if (call->store)
        TRY(store_rows(call->store, &glance, add_row, json, &count));
    json_end(json);
    json_key(json, "running");
    json_array(json);
    if (call->store)
        TRY(store_running(call->store, PATIENCE_S, add_running, call));
    json_end(json);
    json_end(json);
    return STATUS_OK;
}
