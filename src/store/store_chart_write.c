/* store_chart_write.c: a chart as JSON, for the guide and for prony query. */
#include "store/store_inside.h"

#include <math.h>

enum { IDS_MOST = 100 }; /* of one point */

void store_value_write(struct json_writer *json, const char *key, const char *value)
{
    int64_t number;
    if (!*value)
        json_add_null(json);
    else if (store_key_kind(key) == AXIS_INT && text_to_int(value, &number))
        json_add_int(json, number);
    else
        json_add_text(json, value);
}

void store_axes_write(struct json_writer *json, uint64_t set)
{
    json_array(json);
    for (size_t i = 0; i < AXIS_COUNT; i++)
        if (set & (uint64_t)1 << i)
            json_add_text(json, axes[i].key);
    json_end(json);
}

static void add_box(struct json_writer *json, const double box[STORE_BOX])
{
    json_key(json, "box");
    if (isnan(box[0])) {
        json_add_null(json);
        return;
    }
    json_array(json);
    for (int i = 0; i < STORE_BOX; i++)
        json_add_figure(json, box[i]);
    json_end(json);
}

void store_mark_write(const struct store_query *query, const struct store_mark *mark,
                      struct json_writer *json)
{
    json_key(json, "x");
    store_value_write(json, query->x, store_mark_x(mark, query));
    json_put_figure(json, "y", mark->y);
    json_put_figure(json, "low", mark->low);
    json_put_figure(json, "high", mark->high);
    add_box(json, mark->box);
    json_put_int(json, "count", mark->count);
    json_put_int(json, "unchecked", mark->unchecked);
    json_key(json, "handicap");
    if (mark->handicap)
        json_add_text(json, mark->handicap);
    else
        json_add_null(json);
    json_put_int(json, "configurations", mark->configurations);
    json_key(json, "differs");
    store_axes_write(json, mark->differs);
    json_put_int(json, "id", mark->id);
    json_key(json, "ids");
    json_array(json);
    for (int64_t i = 0; i < mark->count && i < IDS_MOST; i++)
        json_add_int(json, mark->ids[i]);
    json_end(json);
    if (!query->baseline)
        return;
    json_put_figure(json, "baseline", mark->baseline);
    json_put_figure(json, "speedup", mark->speedup);
    json_put_figure(json, "speedup_low", mark->speedup_low);
    json_put_figure(json, "speedup_high", mark->speedup_high);
    json_put_figure(json, "efficiency", mark->efficiency);
}

void store_group_write(const struct store_query *query, const struct store_mark *mark,
                       struct json_writer *json)
{
    json_key(json, "group");
    json_array(json);
    for (size_t i = 0; i < query->group_count; i++)
        store_value_write(json, query->groups[i], mark->values[i]);
    json_end(json);
}

void store_chart_write(const struct store_query *query, const struct store_chart *chart,
                       struct json_writer *json)
{
    json_object(json);
    json_key(json, "points");
    json_array(json);
    for (size_t i = 0; i < chart->count; i++) {
        json_object(json);
        store_group_write(query, &chart->marks[i], json);
        store_mark_write(query, &chart->marks[i], json);
        json_end(json);
    }
    json_end(json);
    json_put_int(json, "results", chart->results);
    json_key(json, "differs");
    store_axes_write(json, chart->differs);
    json_end(json);
}
