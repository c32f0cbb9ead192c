/* store_compare.c: two selections side by side. Results of the same configuration are matched, the
 * newest of each; the verdict is that of record/compare.h. */
#include "store/store_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One of the two selections, or a common part of both. */
struct side {
    struct selection selection;
    uint32_t *newest; /* [classes] a row + 1; 0: none */
};

struct comparing {
    struct store *store;
    struct arena *arena;
    const struct store_opposed *question;
    struct store_matches *out;
    const struct metric *metric;
    const double *y, *low, *high; /* low, high: NULL where there is no interval */
    struct side a, b;
    uint32_t class_count;
    uint64_t matched;                  /* the axes that must be the same */
    const char **texts[AXIS_COUNT];    /* by code: copies that outlive the question, where made */
    const uint32_t *ranks[AXIS_COUNT]; /* by code */
};

/* The common filters, but where the side names the same key: its own. */
static enum status join(struct arena *arena, struct store_where common, struct store_where own,
                        struct store_where *out)
{
    struct store_filter *filters;
    size_t count = own.count;
    NEED(filters = arena_array(arena, common.count + own.count + 1, sizeof *filters));
    if (own.count)
        memcpy(filters, own.filters, own.count * sizeof *filters);
    for (size_t i = 0; i < common.count; i++)
        if (!store_where_has(own, common.filters[i].key, NULL))
            filters[count++] = common.filters[i];
    *out = (struct store_where){filters, count};
    return STATUS_OK;
}

static enum status select_side(struct comparing *comparing, struct store_where own,
                               struct selection *out)
{
    struct store_where where;
    size_t kept = 0;
    TRY(join(comparing->arena, comparing->question->where, own, &where));
    TRY(select_ok(comparing->store, comparing->arena, where, false, out));
    for (size_t i = 0; i < out->count; i++) {
        const uint32_t row = out->rows[i];
        const bool handicapped = is_handicapped(&comparing->store->columns, row);
        comparing->out->handicapped += handicapped;
        out->rows[kept] = row;
        kept += (size_t)(!handicapped && !isnan(comparing->y[row]));
    }
    out->count = kept;
    return STATUS_OK;
}

static bool has_row(const struct comparing *comparing, struct selection selection, int key,
                    uint32_t code)
{
    const uint32_t *codes = comparing->store->columns.keys[key].codes;
    for (size_t i = 0; i < selection.count; i++)
        if (codes[selection.rows[i]] == code)
            return true;
    return false;
}

/* Are the two on different kinds of units throughout? */
static bool units_differ(const struct comparing *comparing)
{
    const struct column *unit = &comparing->store->columns.keys[AXIS_unit];
    for (uint32_t code = 0; code < unit->words.count; code++)
        if (has_row(comparing, comparing->a.selection, AXIS_unit, code) &&
            has_row(comparing, comparing->b.selection, AXIS_unit, code))
            return false;
    return true;
}

static bool has(uint64_t set, enum axis_index axis)
{
    return set & (uint64_t)1 << axis;
}

uint64_t store_axes_alike(uint64_t named)
{
    bool units = has(named, AXIS_unit);
    bool machines = units || has(named, AXIS_server) || has(named, AXIS_unit_name);
    uint64_t alike = 0;
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        bool open = has(named, (enum axis_index)i) || (axes[i].where & AXIS_ASIDE);
        open |= machines && (i == AXIS_server || i == AXIS_unit_name);
        open |= units && (i == AXIS_backend || (axes[i].where & AXIS_CPU));
        open |= has(named, AXIS_backend) && i == AXIS_isa;
        open |= has(named, AXIS_framework) &&
                (i == AXIS_backend || i == AXIS_unit_name || (axes[i].where & AXIS_PRONY));
        open |= has(named, AXIS_phase) && (axes[i].where & AXIS_TRAINING);
        open |= has(named, AXIS_workers) && (i == AXIS_nodes || (axes[i].where & AXIS_WORKERS));
        if (!open)
            alike |= (uint64_t)1 << i;
    }
    return alike;
}

/* What neither side names. */
static void choose_axes(struct comparing *comparing)
{
    const struct store_opposed *question = comparing->question;
    uint64_t named = 0;
    for (size_t i = 0; i < AXIS_COUNT; i++)
        if (store_where_has(question->a, axes[i].key, NULL) ||
            store_where_has(question->b, axes[i].key, NULL) ||
            (i == AXIS_unit && units_differ(comparing)))
            named |= (uint64_t)1 << i;
    comparing->matched = store_axes_alike(named);
}

static enum status keep_newest(struct comparing *comparing, struct side *side,
                               const uint32_t *classes)
{
    NEED(side->newest =
             arena_array(comparing->arena, comparing->class_count + 1, sizeof *side->newest));
    for (size_t i = 0; i < side->selection.count; i++) /* ascending: the last is the newest */
        side->newest[classes[i]] = side->selection.rows[i] + 1;
    return STATUS_OK;
}

static enum status match(struct comparing *comparing)
{
    struct selection *a = &comparing->a.selection, *b = &comparing->b.selection, both;
    int keys[AXIS_COUNT];
    size_t key_count = 0;
    uint32_t *classes;
    both.count = a->count + b->count;
    NEED(both.rows = arena_array(comparing->arena, both.count + 1, sizeof *both.rows));
    NEED(classes = arena_array(comparing->arena, both.count + 1, sizeof *classes));
    memcpy(both.rows, a->rows, a->count * sizeof *both.rows);
    memcpy(both.rows + a->count, b->rows, b->count * sizeof *both.rows);
    for (int i = 0; i < AXIS_COUNT; i++)
        if (comparing->matched & (uint64_t)1 << i)
            keys[key_count++] = i;
    TRY(classify(comparing->store, comparing->arena, both, keys, key_count, classes,
                 &comparing->class_count));
    TRY(keep_newest(comparing, &comparing->a, classes));
    return keep_newest(comparing, &comparing->b, classes + a->count);
}

/* As a time: where higher is better, one over the figure. */
static struct stats time_of(const struct comparing *comparing, uint32_t row)
{
    struct stats stats = stats_nothing();
    double low = comparing->low ? comparing->low[row] : (double)NAN;
    double high = comparing->low ? comparing->high[row] : (double)NAN;
    bool lower = comparing->metric->better == METRIC_LOWER;
    stats.median = lower ? comparing->y[row] : 1 / comparing->y[row];
    stats.ci_low = lower ? low : 1 / high;
    stats.ci_high = lower ? high : 1 / low;
    return stats;
}

static struct store_opponent opponent_of(const struct comparing *comparing, uint32_t row)
{
    const struct columns *columns = &comparing->store->columns;
    const struct column *check = &columns->keys[KEY_CHECK];
    return (struct store_opponent){
        .id = columns->ids[row],
        .y = comparing->y[row],
        .low = comparing->low ? comparing->low[row] : (double)NAN,
        .high = comparing->low ? comparing->high[row] : (double)NAN,
        .check = check->words.texts[check->codes[row]],
    };
}

static enum status read_words(struct comparing *comparing)
{
    for (int key = 0; key < AXIS_COUNT; key++) {
        uint32_t count = comparing->store->columns.keys[key].words.count;
        TRY(columns_ranks(comparing->store, key, &comparing->ranks[key]));
        NEED(comparing->texts[key] =
                 arena_array(comparing->arena, count, sizeof *comparing->texts[key]));
    }
    return STATUS_OK;
}

static enum status make_match(struct comparing *comparing, uint32_t a, uint32_t b,
                              struct store_match *out)
{
    const struct columns *columns = &comparing->store->columns;
    struct stats left = time_of(comparing, a), right = time_of(comparing, b);
    out->a = opponent_of(comparing, a);
    out->b = opponent_of(comparing, b);
    compare_results(&left, &right, COMPARE_MARGIN, &out->found);
    for (int key = 0; key < AXIS_COUNT; key++) {
        const struct column *column = &columns->keys[key];
        uint32_t code = column->codes[a];
        const char **text = &comparing->texts[key][code];
        if (!*text)
            NEED(*text = arena_text(&comparing->out->arena, column->words.texts[code]));
        out->values[key] = *text;
        out->places[key] =
            comparing->matched & (uint64_t)1 << key ? comparing->ranks[key][code] : 0;
    }
    return STATUS_OK;
}

static int order_of_matches(const void *a, const void *b)
{
    const struct store_match *left = a, *right = b;
    for (size_t i = 0; i < AXIS_COUNT; i++)
        if (left->places[i] != right->places[i])
            return left->places[i] < right->places[i] ? -1 : 1;
    return 0;
}

static void sum_up(struct store_matches *out)
{
    double logs = 0;
    for (size_t i = 0; i < out->count; i++) {
        out->verdicts[out->list[i].found.verdict]++;
        logs += log(out->list[i].found.ratio);
        for (size_t key = 0; key < AXIS_COUNT; key++)
            if (out->list[i].places[key] != out->list[0].places[key])
                out->axes |= (uint64_t)1 << key;
    }
    out->ratio = out->count ? exp(logs / (double)out->count) : (double)NAN;
}

static enum status compare(struct comparing *comparing)
{
    struct store_matches *out = comparing->out;
    TRY(columns_metric(comparing->store, (enum metric_index)(comparing->metric - metrics),
                       &comparing->y));
    TRY(columns_interval(comparing->store, comparing->metric, &comparing->low, &comparing->high));
    TRY(select_side(comparing, comparing->question->a, &comparing->a.selection));
    TRY(select_side(comparing, comparing->question->b, &comparing->b.selection));
    choose_axes(comparing);
    TRY(match(comparing));
    TRY(read_words(comparing));
    NEED(out->list = arena_array(&out->arena, comparing->class_count + 1, sizeof *out->list));
    for (uint32_t c = 0; c < comparing->class_count; c++) {
        uint32_t a = comparing->a.newest[c], b = comparing->b.newest[c];
        out->only_a += a && !b;
        out->only_b += b && !a;
        if (a && b)
            TRY(make_match(comparing, a - 1, b - 1, &out->list[out->count++]));
        TRY(store_go_on(comparing->store));
    }
    qsort(out->list, out->count, sizeof *out->list, order_of_matches);
    sum_up(out);
    return STATUS_OK;
}

enum status store_compare(struct store *store, const struct store_opposed *question,
                          struct store_matches *out)
{
    struct arena arena = {0};
    struct comparing comparing = {
        .store = store, .arena = &arena, .question = question, .out = out};
    *out = (struct store_matches){0};
    TRY(metric_need(question->y, &comparing.metric));
    TRY(columns_begin(store));
    enum status status = compare(&comparing);
    columns_end(store);
    arena_free(&arena);
    if (status != STATUS_OK)
        store_matches_free(out);
    return status;
}

void store_matches_free(struct store_matches *matches)
{
    arena_free(&matches->arena);
    *matches = (struct store_matches){0};
}
