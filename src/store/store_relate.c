/* store_relate.c: the points of a chart beside a baseline: speed-up and efficiency. */
#include "store/store_inside.h"

#include <math.h>
#include <string.h>

/* The baseline's value for each group and x; NULL: the point's own. */
struct baseline {
    const char *values[STORE_GROUPS + 1];
    bool first; /* the series' own first point */
};

static const char *key_at(const struct store_query *query, size_t i)
{
    return i < query->group_count ? query->groups[i] : query->x;
}

static enum status read_baseline(const struct store_query *query, struct arena *arena,
                                 struct baseline *out)
{
    struct store_where where;
    *out = (struct baseline){.first = strcmp(query->baseline, "first") == 0};
    if (out->first)
        return STATUS_OK;
    enum status status = store_where_parse(arena, query->baseline, &where);
    if (status != STATUS_OK)
        return status_prefix(status, "baseline");
    for (size_t f = 0; f < where.count; f++) {
        size_t i = 0;
        while (i <= query->group_count && strcmp(key_at(query, i), where.filters[f].key) != 0)
            i++;
        if (i > query->group_count)
            FAIL(STATUS_INPUT, "baseline: found \"%s\", expected x or an axis of the groups",
                 where.filters[f].key);
        if (out->values[i])
            FAIL(STATUS_INPUT, "baseline: found two values of \"%s\", expected one",
                 where.filters[f].key);
        out->values[i] = where.filters[f].value;
    }
    if (where.count == 0)
        FAIL(STATUS_INPUT, "baseline: found nothing, expected KEY=VALUE or first");
    return STATUS_OK;
}

static bool is_baseline_of(const struct store_mark *base, const struct store_mark *mark,
                           const struct baseline *baseline, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(base->values[i], baseline->values[i] ? baseline->values[i] : mark->values[i]))
            return false;
    return true;
}

static const struct store_mark *find_baseline(const struct store_chart *chart,
                                              const struct store_query *query,
                                              const struct baseline *baseline, size_t at)
{
    const struct store_mark *mark = &chart->marks[at];
    if (baseline->first) {
        while (at > 0 && store_same_series(&chart->marks[at - 1], mark, query))
            at--;
        return &chart->marks[at];
    }
    for (size_t i = 0; i < chart->count; i++)
        if (is_baseline_of(&chart->marks[i], mark, baseline, query->group_count + 1))
            return &chart->marks[i];
    return NULL;
}

/* How many times the baseline's units a point has: *units, 0 where that cannot be told; *ideal is
 * how much faster they would make it. A time under weak scaling stays the same at best. */
static void count_units(const struct store_query *query, bool is_time,
                        const struct store_mark *mark, const struct store_mark *base, double *units,
                        double *ideal)
{
    static const char *const names[] = {"threads", "workers", "nodes"};
    bool weak = is_time && store_where_has(query->where, "scaling", "weak");
    *units = 0;
    *ideal = 1;
    for (size_t i = 0; i <= query->group_count; i++) {
        int64_t more, less;
        size_t n = 0;
        while (n < 3 && strcmp(key_at(query, i), names[n]) != 0)
            n++;
        if (n == 3 || !text_to_int(mark->values[i], &more) ||
            !text_to_int(base->values[i], &less) || less < 1)
            continue;
        *units = (*units > 0 ? *units : 1) * (double)more / (double)less;
        if (!weak || n == 0)
            *ideal *= (double)more / (double)less;
    }
}

static void relate(const struct store_query *query, const struct metric *metric,
                   const struct store_mark *base, struct store_mark *mark)
{
    double units;
    mark->baseline = mark->speedup = mark->speedup_low = mark->speedup_high = NAN;
    mark->efficiency = mark->ideal = NAN;
    if (!base || base->handicap || mark->handicap)
        return;
    bool lower = metric->better == METRIC_LOWER;
    mark->baseline = base->y;
    mark->speedup = lower ? base->y / mark->y : mark->y / base->y;
    mark->speedup_low = lower ? base->low / mark->high : mark->low / base->high;
    mark->speedup_high = lower ? base->high / mark->low : mark->high / base->low;
    if (base == mark)
        mark->speedup_low = mark->speedup_high = 1;
    count_units(query, lower, mark, base, &units, &mark->ideal);
    mark->efficiency = units > 0 ? mark->speedup / mark->ideal : (double)NAN;
}

enum status chart_relate(struct store *store, const struct store_query *query,
                         const struct metric *metric, struct store_chart *chart)
{
    struct baseline baseline;
    TRY(read_baseline(query, &chart->arena, &baseline));
    for (size_t i = 0; i < chart->count; i++) {
        relate(query, metric, find_baseline(chart, query, &baseline, i), &chart->marks[i]);
        TRY(store_go_on(store));
    }
    return STATUS_OK;
}
