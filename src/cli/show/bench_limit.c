/* bench_limit.c: see bench_limit.h. */
#include "cli/show/bench_limit.h"

#include "cli/table/show_figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_unit(struct bench_limit *limit, const struct point *point)
{
    struct limit_unit unit = {.threads = point->threads};
    bool cpu = strcmp(point->unit, "cpu") == 0;
    snprintf(unit.name, sizeof unit.name, "%s", cpu ? "" : point->unit_name);
    snprintf(unit.precision, sizeof unit.precision, "%s", point->precision);
    for (int i = 0; i < limit->unit_count; i++)
        if (limit->units[i].threads == unit.threads && !strcmp(limit->units[i].name, unit.name) &&
            !strcmp(limit->units[i].precision, unit.precision))
            return;
    if (limit->unit_count < LIMIT_UNITS)
        limit->units[limit->unit_count++] = unit;
}

void bench_limit_add(struct bench_limit *limit, const struct record *record)
{
    const double ns = record->time_ns.median / show_times_limit(record);
    const double memory = record_meter(record, "memory_rate");
    if (record->status != RECORD_OK || isnan(ns) || !record->bound)
        return;
    limit->low_ns = limit->low_ns > 0 ? fmin(limit->low_ns, ns) : ns;
    limit->high_ns = fmax(limit->high_ns, ns);
    if (strcmp(record->bound, "flop") == 0) {
        limit->flop = true;
        add_unit(limit, &record->point);
    } else if (strcmp(record->bound, "latency") == 0) {
        limit->latency = true;
    } else {
        limit->bytes = true;
        if (!isnan(memory)) {
            limit->slowest = limit->slowest > 0 ? fmin(limit->slowest, memory) : memory;
            limit->fastest = fmax(limit->fastest, memory);
        }
    }
}

/* The best that was measured of this unit: FLOP a second; 0: the calibration does not say. */
static double find_ceiling(const struct json *calibration, const struct limit_unit *unit)
{
    const struct json *list = json_get(calibration, "ceilings");
    double best = 0;
    for (const struct json *row = list ? list->first : NULL; row; row = row->next) {
        bool ours = unit->name[0] ? !strcmp(json_text(row, "unit_name", ""), unit->name)
                                  : !json_text(row, "unit_name", "")[0] &&
                                        json_int(row, "threads", 0) <= unit->threads;
        if (ours && !strcmp(json_text(row, "ceiling", ""), unit->precision))
            best = fmax(best, json_real(row, "per_s", 0));
    }
    return best;
}

/* "118 GFLOP/s", "118 to 235 GFLOP/s"; what differs by little is one figure, the higher. */
static void add_range(struct text *out, double low, double high, const char *unit)
{
    static const double LITTLE = 1.05;
    struct text first = {0}, second = {0};
    show_scaled(&first, low, unit);
    show_scaled(&second, high, unit);
    const char *prefix = strchr(text_of(&first), ' '), *other = strchr(text_of(&second), ' ');
    if (high > LITTLE * low) {
        bool same = text_equal(prefix, other);
        text_add_bytes(out, text_of(&first),
                       same ? (size_t)(prefix - text_of(&first)) : first.length);
        text_add(out, " to ");
    }
    text_add(out, text_of(&second));
    out->failed |= first.failed || second.failed;
    text_free(&first);
    text_free(&second);
}

static void add_multiply(const struct bench_limit *limit, const struct json *calibration,
                         struct text *out)
{
    double low = 0, high = 0;
    for (int i = 0; i < limit->unit_count; i++) {
        double found = find_ceiling(calibration, &limit->units[i]);
        low = low > 0 && found > 0 ? fmin(low, found) : fmax(low, found);
        high = fmax(high, found);
    }
    text_add(out, "multiply-adds");
    if (high > 0) {
        text_add(out, " (");
        add_range(out, low, high, "FLOP/s");
        text_add(out, " measured on this machine)");
    }
}

void bench_limit_print(const struct bench_limit *limit, const struct json *calibration,
                       struct text *out)
{
    struct text low = {0}, high = {0};
    if (limit->high_ns <= 0)
        return;
    text_add_time(&low, limit->low_ns);
    text_add_time(&high, limit->high_ns);
    text_printf(out, "limit: %s", text_of(&low));
    if (strcmp(text_of(&low), text_of(&high)) != 0)
        text_printf(out, " to %s", text_of(&high));
    text_add(out, ", set by ");
    if (limit->flop)
        add_multiply(limit, calibration, out);
    if (limit->bytes) {
        text_printf(out, "%smemory", limit->flop ? " or " : "");
        if (limit->fastest > 0) {
            text_add(out, " (");
            add_range(out, limit->slowest, limit->fastest, "B/s");
            text_add(out, " measured in this run)");
        }
    }
    if (limit->latency)
        text_printf(out, "%slaunch latency", limit->flop || limit->bytes ? " or " : "");
    out->failed |= low.failed || high.failed;
    text_free(&low);
    text_free(&high);
}
