/* finding.c: see finding.h. Here is what the questions share; they are in finding_questions.c,
 * finding_unit.c, finding_scaling.c and finding_next.c. */
#include "finding/finding_inside.h"

#include <math.h>
#include <string.h>

const char finding_came_with[] = "results that came with prony";

static const struct {
    const char *name, *question;
    finding_question *ask;
} questions[FINDINGS] = {
    {"unit", "CPU or GPU for this network?", finding_unit},
    {"batch", "Which batch?", finding_batch},
    {"threads", "How many threads?", finding_threads},
    {"framework", "Does this framework waste my hardware?", finding_framework},
    {"phase", "Training or inference?", finding_phase},
    {"workers", "What would twice the machines bring?", finding_workers},
    {"next", "What to do next?", finding_next},
};

bool finding_named(const char *name, size_t *index)
{
    for (*index = 0; *index < FINDINGS; ++*index)
        if (strcmp(questions[*index].name, name) == 0)
            return true;
    return false;
}

/* The first value that the filters have of a key; NULL when they have none. */
static const char *asked_for(struct store_where where, const char *key)
{
    for (size_t i = 0; i < where.count; i++)
        if (strcmp(where.filters[i].key, key) == 0)
            return where.filters[i].value;
    return NULL;
}

struct newest {
    struct arena *arena;
    const char *model, *server;
    bool own; /* it did not come with prony */
};

static enum status take_newest(void *context, const struct store_row *row)
{
    struct newest *newest = context;
    NEED(newest->model = arena_text(newest->arena, row->point.model));
    NEED(newest->server = arena_text(newest->arena, row->point.server));
    newest->own = strcmp(row->source, "own") == 0;
    return STATUS_OK;
}

/* The filters and some more; the list is in the arena. */
static enum status add_filters(struct arena *arena, struct store_where where,
                               const struct store_filter *more, size_t more_count,
                               struct store_where *out)
{
    struct store_filter *filters;
    NEED(filters = arena_array(arena, where.count + more_count, sizeof *filters));
    if (where.count)
        memcpy(filters, where.filters, where.count * sizeof *filters);
    memcpy(filters + where.count, more, more_count * sizeof *filters);
    *out = (struct store_where){filters, where.count + more_count};
    return STATUS_OK;
}

/* The newest ok result under the filters and a model ("": any); its own results before those that
 * came with prony. */
static enum status find_newest(const struct finding_about *about, const char *model,
                               struct newest *out)
{
    static const enum metric_index none[] = {METRIC_COUNT};
    static const char *const sources[] = {"own", "shipped"};
    *out = (struct newest){.arena = about->arena};
    for (int i = 0; i < 2 && !out->model; i++) {
        const struct store_filter more[] = {
            {"status", "ok"}, {"source", sources[i]}, {"model", model}};
        struct store_glance glance = {.metrics = none, .limit = 1};
        int64_t count;
        TRY(add_filters(about->arena, about->where, more, *model ? 3 : 2, &glance.where));
        TRY(store_rows(about->store, &glance, take_newest, out, &count));
    }
    return STATUS_OK;
}

static enum status choose_phase(struct finding_about *about)
{
    const struct store_filter more[] = {
        {"phase", "training"}, {"model", about->model}, {"status", "ok"}};
    struct store_where where;
    int64_t count;
    about->phase = asked_for(about->where, "phase");
    if (about->phase)
        return STATUS_OK;
    TRY(add_filters(about->arena, about->where, more, 3, &where));
    TRY(store_count(about->store, where, &count));
    about->phase = count ? "training" : "inference";
    return STATUS_OK;
}

/* Fills in what is best. */
static enum status find_best(struct finding_about *about)
{
    struct finding scratch = {0};
    struct store_chart chart;
    struct series series;
    const char *unit = asked_for(about->where, "unit");
    about->best_id = 0;
    point_start(&about->best);
    TRY(point_set(&about->best, &axes[AXIS_model], about->model));
    TRY(point_set(&about->best, &axes[AXIS_phase], about->phase));
    TRY(point_set(&about->best, &axes[AXIS_unit], unit ? unit : "cpu"));
    point_settle(&about->best);
    enum status status = finding_draw_fastest(about, &scratch, &chart, &series);
    if (status == STATUS_OK && scratch.known) {
        about->best_id = series.top->id;
        about->best = series.point;
    }
    if (status == STATUS_OK)
        store_chart_free(&chart);
    finding_free(&scratch);
    return status;
}

/* Was this key among the filters before this one? */
static bool told_before(struct store_where where, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(where.filters[i].key, where.filters[index].key) == 0)
            return true;
    return false;
}

/* "fp32,tf32": all values that a key may have. */
static void join_values(struct store_where where, const char *key, struct text *out)
{
    text_clear(out);
    for (size_t i = 0; i < where.count; i++)
        if (strcmp(where.filters[i].key, key) == 0)
            text_printf(out, "%s%s", out->length ? "," : "", where.filters[i].value);
}

/* Fails for want of results, with a command that can be copied. */
static enum status lack(const struct finding_about *about)
{
    struct text asked = {0}, flags = {0}, values = {0}, words = {0};
    for (size_t i = 0; i < about->where.count; i++) {
        const struct axis *axis = axis_find(about->where.filters[i].key);
        if (!axis || axis == &axes[AXIS_model] || told_before(about->where, i))
            continue;
        join_values(about->where, axis->key, &values);
        text_printf(&asked, "%s %s %s", asked.length ? "," : " with", axis->key, text_of(&values));
        if (axis->where & AXIS_FOUND)
            continue;
        text_printf(&flags, " --%s ", axis->key);
        text_add_word(&flags, text_of(&values));
    }
    text_add_word(&words, about->model ? about->model : "small");
    text_printf(&words, "%s%s", text_of(&flags), store_flag(about->store));
    enum status status = text_done(&flags);
    if (status == STATUS_OK)
        status = text_done(&asked);
    if (status == STATUS_OK)
        status = text_done(&words);
    if (status == STATUS_OK)
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "there is no result%s%s%s yet; to add some: prony bench %s",
                             about->model ? " of " : "", about->model ? about->model : "",
                             text_of(&asked), text_of(&words));
    text_free(&asked);
    text_free(&flags);
    text_free(&values);
    text_free(&words);
    return status;
}

enum status finding_about(struct store *store, struct arena *arena, struct store_where where,
                          struct finding_about *out)
{
    struct newest newest;
    *out = (struct finding_about){.store = store, .arena = arena, .where = where};
    out->model = asked_for(where, "model");
    if (!out->model) {
        TRY(find_newest(out, "", &newest));
        out->model = newest.model;
    }
    if (out->model)
        TRY(find_newest(out, out->model, &newest));
    if (!out->model || !newest.model)
        return lack(out);
    out->server = asked_for(where, "server") ? asked_for(where, "server") : newest.server;
    out->framework = asked_for(where, "framework") ? asked_for(where, "framework") : "";
    out->source = newest.own && !asked_for(where, "source") ? "own" : "";
    TRY(choose_phase(out));
    return find_best(out);
}

static enum status take_program(void *context, const char *key, const char *value, int64_t count)
{
    (void)key, (void)count;
    *(bool *)context |= value && *value;
    return STATUS_OK;
}

/* A record has its program's hash when prony opened the network. Other programs' models and
 * frameworks are names that prony need not know, so no command has them. */
static enum status drop_foreign(const struct finding_about *about, struct finding *finding)
{
    const struct store_filter filters[] = {{"model", about->model}, {"framework", finding->asks}};
    const struct store_where where = {filters, *finding->asks ? 2 : 1};
    bool opened = false;
    TRY(store_values(about->store, "program", where, take_program, &opened));
    if (!opened)
        text_clear(&finding->command);
    return STATUS_OK;
}

static enum status ask(const struct finding_about *about, size_t index, struct finding *out)
{
    *out = (struct finding){.name = questions[index].name, .question = questions[index].question};
    enum status status = questions[index].ask(about, out);
    if (status == STATUS_OK)
        status = drop_foreign(about, out);
    if (status == STATUS_OK)
        status = text_done(&out->sentence);
    if (status == STATUS_OK)
        status = text_done(&out->chart);
    if (status == STATUS_OK)
        status = text_done(&out->command);
    if (status != STATUS_OK)
        finding_free(out);
    return status;
}

enum { SERVERS = 16 };
struct servers {
    struct arena *arena;
    const char *list[SERVERS];
    size_t count;
};

static enum status take_server(void *context, const char *key, const char *value, int64_t count)
{
    struct servers *servers = context;
    (void)key, (void)count;
    if (value && servers->count < SERVERS)
        NEED(servers->list[servers->count++] = arena_text(servers->arena, value));
    return STATUS_OK;
}

/* A machine that came with prony may have the name of one's own, and is another. */
static enum status ask_other(const struct finding_about *about, const char *server,
                             const char *source, size_t index, struct finding *out)
{
    struct finding_about other = *about;
    struct finding found;
    other.server = server;
    other.source = source;
    TRY(find_best(&other));
    TRY(ask(&other, index, &found));
    finding_free(found.known ? out : &found);
    *out = found.known ? found : *out;
    return STATUS_OK;
}

/* Asks of each machine until one knows. */
static enum status ask_others(const struct finding_about *about, size_t index, struct finding *out)
{
    static const char *const sources[] = {"own", "shipped"};
    const struct store_filter more[] = {{"model", about->model}, {"status", "ok"}};
    struct servers servers = {.arena = about->arena};
    struct store_where where;
    TRY(add_filters(about->arena, about->where, more, 2, &where));
    TRY(store_values(about->store, "server", where, take_server, &servers));
    for (size_t i = 0; i < 2 * servers.count && !out->known; i++)
        TRY(ask_other(about, servers.list[i % servers.count], sources[i / servers.count], index,
                      out));
    return STATUS_OK;
}

/* Where results came with prony their reader should know: they are of another machine. */
static enum status say_source(const struct finding_about *about, struct finding *finding)
{
    struct store_row row;
    if (!finding->id_count || strstr(text_of(&finding->sentence), finding_came_with))
        return STATUS_OK;
    TRY(store_row(about->store, finding->ids[0], &row));
    if (strcmp(row.source, "shipped") == 0)
        text_printf(&finding->sentence, " (From %s.)", finding_came_with);
    return text_done(&finding->sentence);
}

/* Where no machine was asked for and the newest result's does not know, another may. */
enum status finding_ask(const struct finding_about *about, size_t index, struct finding *out)
{
    enum status status;
    TRY(ask(about, index, out));
    if (!out->known && !asked_for(about->where, "server"))
        TRY_OR(failed, ask_others(about, index, out));
    TRY_OR(failed, say_source(about, out));
    /* once: where frameworks are compared, or where there is nothing else */
    if (out->left_out.length && (!about->best_id || strcmp(out->name, "framework") == 0))
        text_printf(&out->sentence, " (Left out as handicapped: %s.)", text_of(&out->left_out));
    TRY_OR(failed, text_done(&out->sentence));
    return STATUS_OK;
failed:
    finding_free(out);
    return status;
}

void finding_free(struct finding *finding)
{
    text_free(&finding->sentence);
    text_free(&finding->chart);
    text_free(&finding->command);
    text_free(&finding->left_out);
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

/* The filters that were asked for, but those of x, which is what the question is about, and when it
 * is about units, of what names one. */
static enum status keep_filters(const struct finding_about *about,
                                const struct finding_chart *wanted, struct store_where *out)
{
    static const char *const machine[] = {"unit", "unit_name", "server", "backend", "threads"};
    struct store_filter *filters;
    size_t count = 0;
    NEED(filters = arena_array(about->arena, about->where.count + 1, sizeof *filters));
    for (size_t i = 0; i < about->where.count; i++) {
        const char *key = about->where.filters[i].key;
        bool left_out = strcmp(key, wanted->x) == 0;
        for (size_t k = 0; wanted->any_machine && k < sizeof machine / sizeof *machine; k++)
            left_out |= strcmp(key, machine[k]) == 0;
        if (!left_out)
            filters[count++] = about->where.filters[i];
    }
    *out = (struct store_where){filters, count};
    return STATUS_OK;
}

/* What x and the question are about is compared; of the groups each value is a series. */
static uint64_t alike_axes(const struct finding_chart *wanted)
{
    const struct axis *x = axis_find(wanted->x);
    uint64_t groups = 0;
    for (size_t i = 0; wanted->groups[i]; i++)
        if (axis_find(wanted->groups[i]))
            groups |= (uint64_t)1 << (axis_find(wanted->groups[i]) - axes);
    return store_axes_alike(wanted->across | (uint64_t)1 << (x - axes)) & ~groups;
}

enum status finding_draw(const struct finding_about *about, const struct finding_chart *wanted,
                         struct finding *finding, struct store_query *query,
                         struct store_chart *chart)
{
    const struct store_filter own[] = {{"model", about->model},
                                       {"phase", wanted->phase},
                                       {"server", wanted->server},
                                       {"unit", wanted->unit},
                                       {"source", wanted->any_machine ? "" : about->source},
                                       {"check", "right"},
                                       {"check", "none"}};
    struct store_where kept = {0};
    struct store_filter more[sizeof own / sizeof *own];
    size_t count = 0;
    TRY(keep_filters(about, wanted, &kept));
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (*own[i].value && !asked_for(kept, own[i].key))
            more[count++] = own[i];
    *query = (struct store_query){.x = wanted->x,
                                  .y = wanted->y,
                                  .aggregate = STORE_BEST,
                                  .alike = alike_axes(wanted),
                                  .fair = true,
                                  .baseline = wanted->baseline};
    while (wanted->groups[query->group_count]) {
        query->groups[query->group_count] = wanted->groups[query->group_count];
        query->group_count++;
    }
    TRY(add_filters(about->arena, kept, more, count, &query->where));
    text_clear(&finding->chart);
    write_address(query, &finding->chart);
    TRY(store_chart(about->store, query, chart));
    text_clear(&finding->left_out);
    text_add(&finding->left_out, chart->left_out);
    return STATUS_OK;
}

void finding_keep_like(const struct point *point, const struct store_query *query,
                       const struct store_chart *chart, struct finding *finding)
{
    char buffer[POINT_NUMBER];
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        const char *value = point_get(point, &axes[i], buffer);
        if (!(chart->parted & (uint64_t)1 << i) || !*value ||
            asked_for(query->where, axes[i].key) || (axes[i].where & (AXIS_PRONY | AXIS_FOUND)))
            continue; /* what not every framework has, or says, would leave the others out */
        text_printf(&finding->chart, "&%s=", axes[i].key);
        add_escaped(&finding->chart, value);
    }
}

enum status finding_draw_best(const struct finding_about *about, const struct finding_chart *wanted,
                              size_t least, struct finding *finding, struct store_chart *chart,
                              struct series *best)
{
    struct store_query query;
    struct store_row row;
    TRY(finding_draw(about, wanted, finding, &query, chart));
    *best = (struct series){.best = -(double)INFINITY};
    for (size_t first = 0, end; first < chart->count; first = end) {
        const struct store_mark *marks = chart->marks + first, *top = marks;
        for (end = first;
             end < chart->count && store_same_series(&chart->marks[end], marks, &query); end++)
            top = chart->marks[end].y > top->y ? &chart->marks[end] : top;
        if (end - first >= least && top->y > best->best)
            *best =
                (struct series){.marks = marks, .count = end - first, .best = top->y, .top = top};
    }
    finding->known = best->count > 0;
    if (!finding->known)
        return STATUS_OK;
    enum status status = store_row(about->store, best->top->id, &row);
    if (status != STATUS_OK) {
        store_chart_free(chart);
        return status;
    }
    best->point = row.point;
    finding_keep_like(&best->point, &query, chart, finding);
    return STATUS_OK;
}

/* The interval of the result that a mark shows: older and slower ones beside it are no noise. */
static enum status read_interval(struct store *store, const struct store_mark *mark, double *low,
                                 double *high)
{
    struct store_row row;
    TRY(store_row(store, mark->id, &row));
    *low = fmin(mark->y, row.metrics[METRIC_throughput_ci_low]);
    *high = fmax(mark->y, row.metrics[METRIC_throughput_ci_high]);
    return STATUS_OK;
}

enum status finding_first_as_good(const struct finding_about *about, const struct series *series,
                                  const struct store_mark **out)
{
    static const double WORTH = 1.05;
    double top_low, low, high;
    TRY(read_interval(about->store, series->top, &top_low, &high));
    for (*out = series->marks; *out != series->top; ++*out) {
        TRY(read_interval(about->store, *out, &low, &high));
        if (series->best <= WORTH * (*out)->y || top_low <= high)
            break;
    }
    return STATUS_OK;
}

void finding_rests_on(struct finding *finding, const struct store_mark *mark)
{
    for (size_t i = 0; i < finding->id_count; i++)
        if (finding->ids[i] == mark->id)
            return;
    if (finding->id_count < FINDING_IDS)
        finding->ids[finding->id_count++] = mark->id;
}

void finding_add_name(struct text *out, const struct point *point)
{
    text_printf(out, "%s%s%s", point->framework, point->backend[0] ? "/" : "", point->backend);
}

void finding_add_maker(struct text *out, const struct point *point)
{
    finding_add_name(out, point);
    finding_add_manner(out, point);
    if (point->threads)
        text_printf(out, ", %lld thread%s", (long long)point->threads,
                    point->threads == 1 ? "" : "s");
}

void finding_add_manner(struct text *out, const struct point *point)
{
    if (strcmp(point->unit, "cpu") != 0 || !point_is(point, CHOICE_precision_fp32))
        text_printf(out, " in %s", point->precision);
    if (!point_is(point, CHOICE_scenario_iterate) && point->scenario[0])
        text_printf(out, " in scenario %s", point->scenario);
    if (!point_is(point, CHOICE_ingestion_resident) && point->ingestion[0])
        text_printf(out, " with %s ingestion", point->ingestion);
}

void finding_add_place(struct text *out, const char *unit, const char *server)
{
    text_printf(out, "%s%s", strcmp(unit, "gpu") ? "" : "the GPU of ", server);
}

void finding_begin_command(const char *command, const struct point *point, const char *phase,
                           uint64_t set, struct finding *finding)
{
    bool named = set & FINDING_BIT(framework) && strcmp(point->framework, "prony") != 0;
    snprintf(finding->asks, sizeof finding->asks, "%s", named ? point->framework : "");
    text_printf(&finding->command, "prony %s ", command);
    text_add_word(&finding->command, point->model);
    text_add(&finding->command, " --phase ");
    text_add_word(&finding->command, phase);
    point_flags(point, set, &finding->command);
    if (set & FINDING_BIT(scenario) && point_is(point, CHOICE_scenario_server))
        text_add(&finding->command, " --bound p99=10ms"); /* without one it is refused */
}

void finding_add_ratio(struct text *out, double ratio)
{
    text_printf(out, ratio < 999.5 ? "%.3g ×" : "%.0f ×", ratio);
}

void finding_add_rate(struct text *out, double rate)
{
    text_add_count(out, rate);
    text_add(out, " samples/s");
}
