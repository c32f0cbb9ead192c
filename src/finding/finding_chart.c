/* finding_chart.c: the query of a row: which results it has, its address, its series. */
#include "finding/finding_inside.h"

#include <math.h>
#include <string.h>

const char *finding_asked_for(struct store_where where, const char *key)
{
    for (size_t i = 0; i < where.count; i++)
        if (strcmp(where.filters[i].key, key) == 0)
            return where.filters[i].value;
    return NULL;
}

enum status finding_add_filters(struct arena *arena, struct store_where where,
                                const struct store_filter *more, size_t more_count,
                                struct store_where *out)
{
    struct store_filter *filters;
    NEED(filters = arena_array(arena, where.count + more_count + 1, sizeof *filters));
    if (where.count)
        memcpy(filters, where.filters, where.count * sizeof *filters);
    if (more_count)
        memcpy(filters + where.count, more, more_count * sizeof *filters);
    *out = (struct store_where){filters, where.count + more_count};
    return STATUS_OK;
}

/* As a part of an address. */
static void add_escaped(struct text *out, const char *value)
{
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("-_.~", c))
            text_add_char(out, (char)c);
        else
            text_printf(out, "%%%02X", c);
    }
}

static void write_address(const struct store_query *query, struct text *out)
{
    text_printf(out, "x=%s&y=%s&aggregate=best", query->x, query->y);
    for (size_t i = 0; i < query->group_count; i++)
        text_printf(out, "%s%s", i ? "%2C" : "&group=", query->groups[i]);
    if (query->baseline)
        text_printf(out, "&baseline=%s", query->baseline);
    for (size_t i = 0; i < query->where.count; i++) {
        text_printf(out, "&%s=", query->where.filters[i].key);
        add_escaped(out, query->where.filters[i].value);
    }
}

/* May results of other machines be in the chart? */
static bool is_anywhere(const struct asking *asking)
{
    return !(asking->row->chart.scope & FINDING_SERVER) && !asking->about->one_machine;
}

/* The filters that were asked for, but those of x, which the finding is about, and where machines
 * are compared those that name one. */
static enum status keep_filters(const struct asking *asking, struct store_where *out)
{
    static const char *const machine[] = {"unit", "unit_name", "server", "backend", "threads"};
    const struct store_where where = asking->about->where;
    struct store_filter *filters;
    size_t count = 0;
    NEED(filters = arena_array(asking->about->arena, where.count + 1, sizeof *filters));
    for (size_t i = 0; i < where.count; i++) {
        const char *key = where.filters[i].key;
        bool left_out = strcmp(key, asking->row->chart.x) == 0;
        for (size_t k = 0; is_anywhere(asking) && k < sizeof machine / sizeof *machine; k++)
            left_out |= strcmp(key, machine[k]) == 0;
        if (!left_out)
            filters[count++] = where.filters[i];
    }
    *out = (struct store_where){filters, count};
    return STATUS_OK;
}

static const char *unit_of(const struct asking *asking)
{
    const unsigned scope = asking->row->chart.scope;
    return scope & FINDING_CPU         ? "cpu"
           : scope & FINDING_BEST_UNIT ? asking->about->best.unit
                                       : NULL;
}

/* The filters of the row, beside those that were asked for. NULL: no such filter. */
static enum status choose_filters(const struct asking *asking, struct store_where *out)
{
    const struct finding_about *about = asking->about;
    const unsigned scope = asking->row->chart.scope, needs = asking->row->needs;
    const bool anywhere = is_anywhere(asking);
    const bool one = about->workers && !(scope & FINDING_WORKERS);
    const struct store_filter own[] = {
        {"model", strcmp(asking->row->chart.x, "model") ? about->model : NULL},
        {"phase", scope & FINDING_PHASE ? about->phase : NULL},
        {"server", anywhere ? NULL : about->server},
        {"unit", unit_of(asking)},
        {"source", anywhere || !*about->source ? NULL : about->source},
        {"check", "right"},
        {"check", needs & FINDING_CHECKED ? NULL : "none"},
        {"disturbed", needs & FINDING_QUIET ? "" : NULL},
        {"workers", one ? "1" : NULL},
        {"workers", one ? "" : NULL}, /* of who does not say */
    };
    struct store_filter more[sizeof own / sizeof *own];
    struct store_where kept = {0};
    size_t count = 0;
    TRY(keep_filters(asking, &kept));
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i].value && !finding_asked_for(kept, own[i].key))
            more[count++] = own[i];
    return finding_add_filters(about->arena, kept, more, count, out);
}

/* What x and the row compare may differ; of the groups each value is a series. */
static uint64_t alike_axes(const struct finding_chart *chart)
{
    const struct axis *x = axis_find(chart->x);
    uint64_t groups = 0;
    for (size_t i = 0; chart->groups[i]; i++)
        if (axis_find(chart->groups[i]))
            groups |= (uint64_t)1 << (axis_find(chart->groups[i]) - axes);
    return store_axes_alike(chart->across | (uint64_t)1 << (x - axes)) & ~groups;
}

enum status finding_draw(struct asking *asking)
{
    const struct finding_chart *chart = &asking->row->chart;
    struct store_query *query = &asking->query;
    *query = (struct store_query){.x = chart->x,
                                  .y = chart->y,
                                  .aggregate = STORE_BEST,
                                  .alike = alike_axes(chart),
                                  .fair = true,
                                  .baseline = chart->baseline};
    while (chart->groups[query->group_count]) {
        query->groups[query->group_count] = chart->groups[query->group_count];
        query->group_count++;
    }
    TRY(choose_filters(asking, &query->where));
    text_clear(&asking->finding->chart);
    write_address(query, &asking->finding->chart);
    TRY(store_chart(asking->about->store, query, &asking->chart));
    text_clear(&asking->finding->left_out);
    text_add(&asking->finding->left_out, asking->chart.left_out);
    return STATUS_OK;
}

void finding_keep_like(struct asking *asking, const struct point *point)
{
    char buffer[POINT_NUMBER];
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        const char *value = point_get(point, &axes[i], buffer);
        if (!(asking->chart.parted & (uint64_t)1 << i) || !*value ||
            finding_asked_for(asking->query.where, axes[i].key) ||
            (axes[i].where & (AXIS_PRONY | AXIS_FOUND)))
            continue; /* an axis that not every framework has would leave the others out */
        text_printf(&asking->finding->chart, "&%s=", axes[i].key);
        add_escaped(&asking->finding->chart, value);
    }
}

void finding_keep_series(struct asking *asking, const struct store_mark *mark)
{
    struct text *chart = &asking->finding->chart;
    for (size_t i = 0; i < asking->query.group_count; i++) {
        const char *key = asking->query.groups[i];
        struct text member = {0};
        text_printf(&member, "&%s=", key);
        if (!finding_asked_for(asking->query.where, key) &&
            !strstr(text_of(chart), text_of(&member))) {
            text_add(chart, text_of(&member));
            add_escaped(chart, mark->values[i]);
        }
        chart->failed |= member.failed;
        text_free(&member);
    }
}

size_t finding_series_length(const struct asking *asking, size_t first)
{
    const struct store_mark *marks = asking->chart.marks;
    size_t end = first;
    while (end < asking->chart.count &&
           store_same_series(&marks[end], &marks[first], &asking->query))
        end++;
    return end - first;
}

size_t finding_lot_length(const struct asking *asking, size_t first)
{
    const struct store_mark *marks = asking->chart.marks;
    size_t end = first;
    while (end < asking->chart.count && marks[end].lot == marks[first].lot)
        end++;
    return end - first;
}

enum status finding_best_series(struct asking *asking, size_t least, struct series *best)
{
    struct store_row row;
    *best = (struct series){.best = -(double)INFINITY};
    for (size_t first = 0, count; first < asking->chart.count; first += count) {
        const struct store_mark *marks = asking->chart.marks + first, *top = marks;
        count = finding_series_length(asking, first);
        for (size_t i = 1; i < count; i++)
            top = marks[i].y > top->y ? &marks[i] : top;
        if (count >= least && top->y > best->best)
            *best = (struct series){.marks = marks, .count = count, .best = top->y, .top = top};
    }
    asking->finding->known = best->count > 0;
    if (!best->count)
        return STATUS_OK;
    TRY(store_row(asking->about->store, best->top->id, &row));
    best->point = row.point;
    finding_keep_like(asking, &best->point);
    return STATUS_OK;
}
