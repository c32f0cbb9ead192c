/* ingestion_table.c: see ingestion_table.h. */
#include "record/tables/ingestion_table.h"

#include <math.h>

static void add_cell(struct text *out, double value, int digits, const char *unit)
{
    if (isnan(value))
        text_add(out, " – |");
    else
        text_printf(out, " %.*f%s |", digits, value, unit);
}

static void add_time(struct text *out, double ns)
{
    text_add(out, isnan(ns) ? " –" : " ");
    if (!isnan(ns))
        text_add_time(out, ns);
    text_add(out, " |");
}

static double metric_of(const struct record *record, const char *key)
{
    return record_metric(record, metric_find(key));
}

static void add_row(struct text *out, const struct record *record)
{
    const struct point *point = &record->point;
    text_printf(out, "| %s, %s | %s | %s | %s | %lld |", point->model, point->phase, point->unit,
                point->data, point->ingestion, (long long)point->batch);
    if (record->status != RECORD_OK) {
        text_printf(out, " %s: %s |\n", record_status_name(record->status),
                    record->reason ? record->reason : "");
        return;
    }
    add_time(out, record->time_ns.median);
    add_time(out, metric_of(record, "staged_iteration"));
    add_time(out, metric_of(record, "gather"));
    add_cell(out, metric_of(record, "gather_overlap"), 0, " %");
    add_time(out, metric_of(record, "copy"));
    add_cell(out, metric_of(record, "copy_overlap"), 0, " %");
    add_time(out, metric_of(record, "compute"));
    add_time(out, metric_of(record, "idle"));
    add_cell(out, metric_of(record, "compute_per_copy"), 3, "");
    add_cell(out, 1e-9 * metric_of(record, "copy_rate"), 2, " GB/s");
    add_cell(out, metric_of(record, "compute_share"), 0, " %");
    add_cell(out, metric_of(record, "gpu_utilisation"), 0, " %");
    add_cell(out, record->throughput, 0, "");
    text_add(out, record->check.verdict == RECORD_RIGHT ? " right |\n" : " unchecked |\n");
}

enum status ingestion_table_print(const struct table_row *rows, size_t count, struct text *out)
{
    text_add(
        out,
        "| work | unit | data | ingestion | batch | iteration | watched | gather | of it beside "
        "| copy | overlap | compute | idle | compute ÷ copy | copy throughput | compute "
        "utilisation | GPU busy | samples/s | check |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++)
        add_row(out, rows[i].record);
    return text_done(out);
}
