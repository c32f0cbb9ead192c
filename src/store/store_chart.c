/* store_chart.c: y over x, in series. Rows of the same groups and x are a point; what their figures
 * become, how far they spread, in what they are unlike, and what they are beside a baseline. */
#include "store/store_inside.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const store_aggregates[STORE_AGGREGATES] = {
    [STORE_BEST] = "best",     [STORE_MIN] = "min",   [STORE_MAX] = "max",
    [STORE_MEDIAN] = "median", [STORE_MEAN] = "mean",
};

bool store_aggregate_parse(const char *name, enum store_aggregate *out)
{
    for (size_t i = 0; i < STORE_AGGREGATES; i++) {
        if (strcmp(name, store_aggregates[i]) == 0) {
            *out = (enum store_aggregate)i;
            return true;
        }
    }
    return false;
}

/* What the box of one result is made of. */
static const enum metric_index five[STORE_BOX] = {
    METRIC_time_min, METRIC_time_q1, METRIC_time_median, METRIC_time_q3, METRIC_time_max};

/* One result of a point. */
struct member {
    double y;
    uint32_t row, lot;
};

struct charting {
    struct store *store;
    const struct store_query *query;
    struct arena *arena; /* of this question */
    struct store_chart *chart;
    const struct metric *metric;
    enum store_aggregate aggregate; /* not STORE_BEST */
    int keys[STORE_GROUPS + 1];     /* the groups, then x */
    size_t key_count;
    const uint32_t *ranks[STORE_GROUPS + 1];
    struct selection selection;
    const double *y, *low, *high;  /* low, high: NULL where there is no interval */
    const double *five[STORE_BOX]; /* likewise */
    uint64_t varying;              /* keys in which the selection's rows differ */
};

static int order_of_members(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    return left->y < right->y ? -1 : left->y > right->y;
}

static int order_of_hashes(const void *a, const void *b)
{
    uint64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

/* Between the two nearest of sorted figures. */
static double quantile_of(const struct member *sorted, size_t count, double quantile)
{
    double place = quantile * (double)(count - 1);
    size_t below = (size_t)place;
    double part = place - (double)below;
    return part > 0 ? sorted[below].y + part * (sorted[below + 1].y - sorted[below].y)
                    : sorted[below].y;
}

/* The middle figure and the member to look at. */
static double aggregate_of(enum store_aggregate aggregate, const struct member *sorted,
                           size_t count, size_t *chosen)
{
    double sum = 0;
    *chosen = (count - 1) / 2;
    switch (aggregate) {
    case STORE_BEST: /* made one of the others before */
    case STORE_MIN: *chosen = 0; return sorted[0].y;
    case STORE_MAX: *chosen = count - 1; return sorted[count - 1].y;
    case STORE_MEDIAN: return quantile_of(sorted, count, 0.5);
    case STORE_MEAN:
        for (size_t i = 0; i < count; i++)
            sum += sorted[i].y / (double)count;
        break;
    case STORE_AGGREGATES: assert(false);
    }
    return sum;
}

/* Of a time or a throughput: the ends of the intervals, where they are known; else of the figures.
 */
static void set_interval(const struct charting *charting, const struct member *sorted, size_t count,
                         struct store_mark *mark)
{
    mark->low = sorted[0].y;
    mark->high = sorted[count - 1].y;
    for (size_t i = 0; i < count && charting->low; i++) {
        mark->low = fmin(mark->low, charting->low[sorted[i].row]);
        mark->high = fmax(mark->high, charting->high[sorted[i].row]);
    }
}

static void set_box(const struct charting *charting, const struct member *sorted, size_t count,
                    struct store_mark *mark)
{
    for (int i = 0; i < STORE_BOX; i++)
        mark->box[i] = count > 1 ? quantile_of(sorted, count, 0.25 * i) : (double)NAN;
    if (count > 1 || !charting->five[0])
        return;
    uint32_t row = sorted[0].row;
    double median = charting->five[STORE_BOX / 2][row];
    bool inverse = charting->metric == &metrics[METRIC_throughput];
    for (int i = 0; i < STORE_BOX; i++) {
        double time = charting->five[inverse ? STORE_BOX - 1 - i : i][row];
        mark->box[i] = inverse ? sorted[0].y * median / time : time;
    }
    if (!isfinite(mark->box[0]) || !isfinite(mark->box[1]))
        mark->box[0] = NAN; /* no samples: no box */
}

/* In which axes the rows differ, other than those that make the point. */
static uint64_t differences(const struct charting *charting, const struct member *members,
                            size_t count)
{
    uint64_t found = 0;
    for (int key = 0; key < KEY_DERIVED && count > 1; key++) {
        const uint32_t *codes = charting->store->columns.keys[key].codes;
        if (!(charting->varying & (uint64_t)1 << key))
            continue;
        size_t i = 1;
        while (i < count && codes[members[i].row] == codes[members[0].row])
            i++;
        if (i < count)
            found |= (uint64_t)1 << key;
    }
    return found;
}

static enum status count_configurations(const struct charting *charting,
                                        const struct member *members, size_t count, int64_t *out)
{
    uint64_t *hashes;
    NEED(hashes = arena_array(charting->arena, count, sizeof *hashes));
    for (size_t i = 0; i < count; i++)
        hashes[i] = charting->store->columns.configurations[members[i].row];
    qsort(hashes, count, sizeof *hashes, order_of_hashes);
    *out = 1;
    for (size_t i = 1; i < count; i++)
        *out += hashes[i] != hashes[i - 1];
    return STATUS_OK;
}

static int order_of_ids(const void *a, const void *b)
{
    return -order_of_hashes(a, b); /* the newest first; ids are positive */
}

static enum status set_ids(const struct charting *charting, const struct member *members,
                           size_t count, struct store_mark *mark)
{
    int64_t *ids;
    NEED(ids = arena_array(&charting->chart->arena, count, sizeof *ids));
    for (size_t i = 0; i < count; i++)
        ids[i] = charting->store->columns.ids[members[i].row];
    qsort(ids, count, sizeof *ids, order_of_ids);
    mark->ids = ids;
    return STATUS_OK;
}

/* Those that ran as their users run them count, where there are any: they become the first *count.
 */
static void keep_fair(const struct charting *charting, struct member *members, size_t *count)
{
    size_t fair = 0;
    for (size_t i = 0; i < *count; i++) {
        if (is_handicapped(&charting->store->columns, members[i].row))
            continue;
        const struct member first = members[fair];
        members[fair++] = members[i];
        members[i] = first;
    }
    *count = fair ? fair : *count;
}

/* The axes that do not tell configurations apart: bit i for axes[i]. */
static uint64_t axes_aside(void)
{
    uint64_t set = 0;
    for (size_t i = 0; i < AXIS_COUNT; i++)
        if (axes[i].where & AXIS_ASIDE)
            set |= (uint64_t)1 << i;
    return set;
}

/* Reorders the members. */
static enum status make_mark(const struct charting *charting, struct member *members, size_t count,
                             struct store_mark *mark)
{
    const struct columns *columns = &charting->store->columns;
    const struct column *check = &columns->keys[KEY_CHECK];
    uint32_t right = words_find(&check->words, "right");
    size_t chosen;
    keep_fair(charting, members, &count);
    qsort(members, count, sizeof *members, order_of_members);
    *mark = (struct store_mark){.count = (int64_t)count, .lot = members[0].lot};
    mark->y = aggregate_of(charting->aggregate, members, count, &chosen);
    mark->id = columns->ids[members[chosen].row];
    set_interval(charting, members, count, mark);
    set_box(charting, members, count, mark);
    for (size_t i = 0; i < count; i++)
        mark->unchecked += check->codes[members[i].row] != right;
    if (is_handicapped(columns, members[chosen].row)) {
        const struct column *handicap = &columns->keys[KEY_DERIVED + DERIVED_handicap];
        const char *why = handicap->words.texts[handicap->codes[members[chosen].row]];
        NEED(mark->handicap = arena_text(&charting->chart->arena, why));
    }
    mark->differs = differences(charting, members, count);
    mark->configurations = 1;
    if (mark->differs & ~axes_aside())
        TRY(count_configurations(charting, members, count, &mark->configurations));
    for (size_t i = 0; i < charting->key_count; i++) {
        const struct column *column = &columns->keys[charting->keys[i]];
        uint32_t code = column->codes[members[0].row];
        mark->places[i] = charting->ranks[i][code];
        mark->values[i] = arena_text(&charting->chart->arena, column->words.texts[code]);
        NEED(mark->values[i]);
    }
    return set_ids(charting, members, count, mark);
}

static int order_of_marks(const void *a, const void *b)
{
    const struct store_mark *left = a, *right = b;
    if (left->lot != right->lot)
        return left->lot < right->lot ? -1 : 1;
    for (size_t i = 0; i < STORE_GROUPS + 1; i++)
        if (left->places[i] != right->places[i])
            return left->places[i] < right->places[i] ? -1 : 1;
    return 0;
}

/* Which lot each row of the selection belongs to, and which mark. */
static enum status part(const struct charting *charting, uint32_t *lots, uint32_t *classes,
                        uint32_t *class_count)
{
    int keys[AXIS_COUNT + STORE_GROUPS + 1];
    size_t count = 0;
    uint32_t lot_count; /* one where nothing must be alike */
    for (int key = 0; key < AXIS_COUNT; key++)
        if (charting->query->alike & (uint64_t)1 << key)
            keys[count++] = key;
    if (count)
        TRY(classify(charting->store, charting->arena, charting->selection, keys, count, lots,
                     &lot_count));
    for (size_t i = 0; i < charting->key_count; i++)
        keys[count++] = charting->keys[i];
    return classify(charting->store, charting->arena, charting->selection, keys, count, classes,
                    class_count);
}

/* Rows by class, each class's together: starts[c] is where class c begins. */
static enum status gather_members(const struct charting *charting, const uint32_t *lots,
                                  const uint32_t *classes, uint32_t class_count,
                                  struct member **members, size_t **starts)
{
    size_t count = charting->selection.count, *ends;
    NEED(*members = arena_array(charting->arena, count, sizeof **members));
    NEED(*starts = arena_array(charting->arena, class_count + 1, sizeof **starts));
    NEED(ends = arena_array(charting->arena, class_count, sizeof *ends));
    for (size_t i = 0; i < count; i++)
        (*starts)[classes[i] + 1]++;
    for (uint32_t c = 0; c < class_count; c++) {
        (*starts)[c + 1] += (*starts)[c];
        ends[c] = (*starts)[c];
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t row = charting->selection.rows[i];
        (*members)[ends[classes[i]]++] = (struct member){charting->y[row], row, lots[i]};
    }
    return STATUS_OK;
}

static enum status make_marks(struct charting *charting)
{
    struct store_chart *chart = charting->chart;
    struct member *members;
    uint32_t *lots, *classes, count;
    size_t *starts = NULL;
    NEED(lots = arena_array(charting->arena, charting->selection.count, sizeof *lots));
    NEED(classes = arena_array(charting->arena, charting->selection.count, sizeof *classes));
    TRY(part(charting, lots, classes, &count));
    TRY(gather_members(charting, lots, classes, count, &members, &starts));
    NEED(chart->marks = arena_array(&chart->arena, count, sizeof *chart->marks));
    for (uint32_t c = 0; c < count; c++) {
        TRY(make_mark(charting, members + starts[c], starts[c + 1] - starts[c], &chart->marks[c]));
        chart->differs |= chart->marks[c].differs;
        TRY(store_go_on(charting->store));
    }
    chart->count = count;
    chart->results = (int64_t)charting->selection.count;
    qsort(chart->marks, count, sizeof *chart->marks, order_of_marks);
    return STATUS_OK;
}

/* Keeps the rows that have a figure; finds the axes in which these differ. */
static void keep_measured(struct charting *charting)
{
    struct selection *selection = &charting->selection;
    const struct columns *columns = &charting->store->columns;
    size_t kept = 0;
    for (size_t i = 0; i < selection->count; i++) {
        selection->rows[kept] = selection->rows[i];
        kept += (size_t)!isnan(charting->y[selection->rows[i]]);
    }
    selection->count = kept;
    for (int key = 0; key < KEY_DERIVED; key++) {
        const uint32_t *codes = columns->keys[key].codes;
        size_t i = 1;
        while (i < kept && codes[selection->rows[i]] == codes[selection->rows[0]])
            i++;
        if (i < kept)
            charting->varying |= (uint64_t)1 << key;
    }
    for (size_t i = 0; i < charting->key_count; i++)
        charting->varying &= ~((uint64_t)1 << charting->keys[i]);
    charting->chart->parted = charting->varying & charting->query->alike;
}

/* "pytorch: reference BLAS (netlib); …": each framework's handicap once, of the first few. */
static enum status name_left_out(struct charting *charting, struct selection left_out)
{
    enum { NAMED = 4 };
    const int keys[] = {AXIS_framework, KEY_DERIVED + DERIVED_handicap};
    const struct columns *columns = &charting->store->columns;
    struct text text = {0};
    uint32_t *classes, count, next = 0;
    NEED(classes = arena_array(charting->arena, left_out.count + 1, sizeof *classes));
    TRY(classify(charting->store, charting->arena, left_out, keys, 2, classes, &count));
    for (size_t i = 0; i < left_out.count && next < NAMED; i++) {
        if (classes[i] != next) /* they are numbered as they come */
            continue;
        text_add(&text, next++ ? "; " : "");
        for (int k = 0; k < 2; k++) {
            const struct column *column = &columns->keys[keys[k]];
            text_printf(&text, "%s%s", k ? ": " : "",
                        column->words.texts[column->codes[left_out.rows[i]]]);
        }
    }
    if (count > NAMED)
        text_add(&text, "; and others");
    enum status status = text_done(&text);
    charting->chart->left_out = arena_text(&charting->chart->arena, text_of(&text));
    text_free(&text);
    TRY(status);
    NEED(charting->chart->left_out);
    return STATUS_OK;
}

/* Parts the selection from those results that nothing is concluded from. */
static enum status leave_out(struct charting *charting)
{
    struct selection *selection = &charting->selection, left_out = {0};
    size_t kept = 0;
    NEED(left_out.rows = arena_array(charting->arena, selection->count + 1, sizeof(uint32_t)));
    for (size_t i = 0; i < selection->count; i++) {
        const uint32_t row = selection->rows[i];
        if (is_handicapped(&charting->store->columns, row))
            left_out.rows[left_out.count++] = row;
        else
            selection->rows[kept++] = row;
    }
    selection->count = kept;
    return name_left_out(charting, left_out);
}

static enum status read_metrics(struct charting *charting)
{
    struct store *store = charting->store;
    TRY(columns_metric(store, (enum metric_index)(charting->metric - metrics), &charting->y));
    TRY(columns_interval(store, charting->metric, &charting->low, &charting->high));
    for (int i = 0; i < STORE_BOX && charting->low; i++)
        TRY(columns_metric(store, five[i], &charting->five[i]));
    return STATUS_OK;
}

/* What was simulated is a series of its own, or not there. */
static bool tells_origin(const struct charting *charting)
{
    for (size_t i = 0; i < charting->key_count; i++)
        if (charting->keys[i] == AXIS_origin)
            return true;
    return false;
}

static enum status draw(struct charting *charting)
{
    const struct store_query *query = charting->query;
    for (size_t i = 0; i < charting->key_count; i++)
        TRY(columns_ranks(charting->store, charting->keys[i], &charting->ranks[i]));
    TRY(read_metrics(charting));
    TRY(select_ok(charting->store, charting->arena, query->where, tells_origin(charting),
                  &charting->selection));
    charting->chart->left_out = "";
    if (query->fair)
        TRY(leave_out(charting));
    keep_measured(charting);
    TRY(make_marks(charting));
    return query->baseline ? chart_relate(charting->store, query, charting->metric, charting->chart)
                           : STATUS_OK;
}

enum status metric_need(const char *key, const struct metric **out)
{
    const char *keys[METRIC_COUNT];
    for (size_t i = 0; i < METRIC_COUNT; i++)
        keys[i] = metrics[i].key;
    *out = metric_find(key);
    if (*out)
        return STATUS_OK;
    return refuse_name(key, "a metric", keys, METRIC_COUNT);
}

enum status store_chart(struct store *store, const struct store_query *query,
                        struct store_chart *out)
{
    struct arena arena = {0};
    struct charting charting = {.store = store,
                                .query = query,
                                .arena = &arena,
                                .chart = out,
                                .aggregate = query->aggregate,
                                .key_count = query->group_count + 1};
    assert(query->group_count <= STORE_GROUPS);
    *out = (struct store_chart){0};
    TRY(metric_need(query->y, &charting.metric));
    if (charting.aggregate == STORE_BEST)
        charting.aggregate = charting.metric->better == METRIC_LOWER ? STORE_MIN : STORE_MAX;
    for (size_t i = 0; i < query->group_count; i++)
        TRY(key_need(query->groups[i], &charting.keys[i]));
    TRY(key_need(query->x, &charting.keys[query->group_count]));
    TRY(columns_begin(store));
    enum status status = draw(&charting);
    columns_end(store);
    arena_free(&arena);
    if (status != STATUS_OK)
        store_chart_free(out);
    return status;
}

void store_chart_free(struct store_chart *chart)
{
    arena_free(&chart->arena);
    *chart = (struct store_chart){0};
}

const char *store_mark_x(const struct store_mark *mark, const struct store_query *query)
{
    return mark->values[query->group_count];
}

int64_t store_mark_number(const struct store_mark *mark, const struct store_query *query)
{
    int64_t number = 0;
    text_to_int(store_mark_x(mark, query), &number);
    return number;
}

bool store_same_series(const struct store_mark *a, const struct store_mark *b,
                       const struct store_query *query)
{
    return a->lot == b->lot &&
           memcmp(a->places, b->places, query->group_count * sizeof *a->places) == 0;
}
