/* finding.c: see finding.h. Here is what findings are about, and how a row of the table is asked.
 */
#include "finding/finding_inside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct newest {
    struct arena *arena;
    const char *model, *server;
    int64_t id;
    bool own; /* it did not come with prony */
};

static enum status take_newest(void *context, const struct store_row *row)
{
    struct newest *newest = context;
    NEED(newest->model = arena_text(newest->arena, row->point.model));
    NEED(newest->server = arena_text(newest->arena, row->point.server));
    newest->id = row->id;
    newest->own = strcmp(row->source, "own") == 0;
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
        const char *asked = finding_asked_for(about->where, "source");
        if (asked && strcmp(asked, sources[i]) != 0)
            continue;
        TRY(finding_add_filters(about->arena, about->where, more, *model ? 3 : 2, &glance.where));
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
    about->phase = finding_asked_for(about->where, "phase");
    if (about->phase)
        return STATUS_OK;
    TRY(finding_add_filters(about->arena, about->where, more, 3, &where));
    TRY(store_count(about->store, where, &count));
    about->phase = count ? "training" : "inference";
    return STATUS_OK;
}

/* The best of the results that the row "next" has, or has with these needs. */
static enum status draw_fastest(const struct finding_about *about, unsigned needs, int64_t *id,
                                struct point *point)
{
    struct finding scratch = {0};
    struct finding_row row;
    struct asking asking = {.about = about, .row = &row, .finding = &scratch};
    struct series series;
    size_t next;
    finding_named("next", &next);
    row = finding_rows[next];
    row.needs = needs;
    enum status status = finding_draw(&asking);
    if (status == STATUS_OK)
        status = finding_best_series(&asking, 1, &series);
    if (status == STATUS_OK && scratch.known) {
        *id = series.top->id;
        *point = series.point;
    }
    store_chart_free(&asking.chart);
    finding_free(&scratch);
    return status;
}

enum status finding_find_best(struct finding_about *about)
{
    const char *unit = finding_asked_for(about->where, "unit");
    about->best_id = 0;
    point_start(&about->best);
    TRY(point_set(&about->best, &axes[AXIS_model], about->model));
    TRY(point_set(&about->best, &axes[AXIS_phase], about->phase));
    TRY(point_set(&about->best, &axes[AXIS_unit], unit ? unit : "cpu"));
    point_settle(&about->best);
    return draw_fastest(about, FINDING_CHECKED | FINDING_QUIET, &about->best_id, &about->best);
}

enum status finding_fastest(const struct finding_about *about, int64_t *id)
{
    struct point point;
    *id = 0;
    return draw_fastest(about, 0, id, &point);
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

/* Facts of the machine, from its newest result; the server's name is its title where there are
 * none.
 */
static enum status find_machine(struct finding_about *about, const struct newest *newest)
{
    const struct store_filter gpu[] = {{"server", about->server},
                                       {"source", newest->own ? "own" : "shipped"},
                                       {"unit", "gpu"},
                                       {"status", "ok"}};
    char host[POINT_TEXT] = "", title[TITLE_TEXT];
    struct text line = {0};
    struct json *tree = NULL;
    int64_t count;
    TRY(store_count(about->store, (struct store_where){gpu, 4}, &count));
    enum status status = store_get(about->store, newest->id, &line);
    if (status == STATUS_OK)
        status = json_parse(about->arena, "store", text_of(&line), line.length, &tree);
    text_free(&line);
    TRY(status);
    gethostname(host, sizeof host - 1);
    TRY(store_title(about->store, about->server, title));
    const char *name = arena_text(about->arena, *title ? title : about->server);
    NEED(name);
    about->machine = (struct finding_machine){
        .title = name,
        .cores = json_int(json_get(tree, "machine"), "cores", 0),
        .gpu = count > 0,
        .here = newest->own && strcmp(host, about->server) == 0,
        .shipped = !newest->own,
    };
    return STATUS_OK;
}

static enum status take_workers(void *context, const char *key, const char *value, int64_t count)
{
    (void)key, (void)count;
    *(bool *)context |= value && *value && strcmp(value, "1") != 0;
    return STATUS_OK;
}

enum status finding_about(struct store *store, struct arena *arena, struct store_where where,
                          struct finding_about *out)
{
    struct newest newest;
    *out = (struct finding_about){.store = store, .arena = arena, .where = where};
    out->model = finding_asked_for(where, "model");
    if (!out->model) {
        TRY(find_newest(out, "", &newest));
        out->model = newest.model;
    }
    if (out->model)
        TRY(find_newest(out, out->model, &newest));
    if (!out->model || !newest.model)
        return lack(out);
    const char *server = finding_asked_for(where, "server");
    const char *framework = finding_asked_for(where, "framework");
    out->server = server ? server : newest.server;
    out->framework = framework ? framework : "";
    out->source = newest.own && !finding_asked_for(where, "source") ? "own" : "";
    const struct store_filter model = {"model", out->model};
    TRY(store_values(store, "workers", (struct store_where){&model, 1}, take_workers,
                     &out->workers));
    TRY(find_machine(out, &newest));
    TRY(choose_phase(out));
    return finding_find_best(out);
}

static enum status take_program(void *context, const char *key, const char *value, int64_t count)
{
    (void)key, (void)count;
    *(bool *)context |= value && *value;
    return STATUS_OK;
}

enum status finding_is_opened(struct store *store, const char *model, const char *framework,
                              bool *out)
{
    const struct store_filter filters[] = {{"model", model}, {"framework", framework}};
    *out = false;
    return store_values(store, "program", (struct store_where){filters, *framework ? 2 : 1},
                        take_program, out);
}

/* Other programs' models and frameworks are names that prony need not know, so no command has them.
 */
static enum status drop_foreign(const struct finding_about *about, struct finding *finding)
{
    bool opened;
    TRY(finding_is_opened(about->store, about->model, finding->asks, &opened));
    if (!opened)
        text_clear(&finding->command);
    return STATUS_OK;
}

/* A GPU is not asked for where there is none. */
static void drop_gpu(const struct finding_about *about, struct finding *finding)
{
    static const char *const asks[] = {" --unit gpu", " --unit cpu,gpu", " --backend cuda"};
    const bool none = about->machine.no_gpu || (about->machine.here && !about->machine.gpu);
    for (size_t i = 0; none && i < sizeof asks / sizeof *asks; i++)
        if (finding->command.length && strstr(text_of(&finding->command), asks[i]))
            text_clear(&finding->command);
}

static enum status say(struct asking *asking)
{
    TRY(finding_draw(asking));
    TRY(asking->row->say(asking));
    TRY(drop_foreign(asking->about, asking->finding));
    drop_gpu(asking->about, asking->finding);
    TRY(text_done(&asking->finding->sentence));
    TRY(text_done(&asking->finding->chart));
    return text_done(&asking->finding->command);
}

static enum status ask(const struct finding_about *about, size_t index, struct finding *out)
{
    const struct finding_row *row = &finding_rows[index];
    struct asking asking = {.about = about, .row = row, .finding = out};
    *out = (struct finding){
        .name = row->name, .title = row->title, .question = row->question, .kind = row->kind};
    enum status status = say(&asking);
    store_chart_free(&asking.chart);
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

/* A machine that came with prony may have the name of one's own, and is another. Where it knows,
 * its sentence takes the place of *out; the command stays that of the machine that was asked about.
 */
static enum status ask_other(const struct finding_about *about, const char *server,
                             const char *source, size_t index, struct finding *out)
{
    struct finding_about other = *about;
    struct finding found;
    other.server = server;
    other.source = source;
    other.machine.here &= strcmp(server, about->server) == 0 && strcmp(source, "own") == 0;
    TRY(finding_find_best(&other));
    TRY(ask(&other, index, &found));
    if (!found.known) {
        finding_free(&found);
        return STATUS_OK;
    }
    if (about->machine.here || about->machine.no_gpu) {
        const struct text command = found.command;
        found.command = out->command;
        out->command = command;
        memcpy(found.asks, out->asks, sizeof found.asks);
    }
    finding_free(out);
    *out = found;
    return STATUS_OK;
}

/* The unit of the best result, or where nothing may be concluded of the fastest. */
static enum status unit_of_about(const struct finding_about *about, char unit[POINT_TEXT])
{
    struct point point = about->best;
    int64_t id = 0;
    if (!about->best_id && !finding_asked_for(about->where, "unit"))
        TRY(draw_fastest(about, 0, &id, &point));
    snprintf(unit, POINT_TEXT, "%s", point.unit);
    return STATUS_OK;
}

/* Asks of each machine until one knows: first about the same unit, then about any. */
static enum status ask_others(const struct finding_about *about, size_t index, struct finding *out)
{
    static const char *const sources[] = {"own", "shipped"};
    const struct store_filter more[] = {{"model", about->model}, {"status", "ok"}};
    struct servers servers = {.arena = about->arena};
    struct finding_about alike = *about;
    struct store_where where;
    char unit[POINT_TEXT];
    TRY(finding_add_filters(about->arena, about->where, more, 2, &where));
    TRY(store_values(about->store, "server", where, take_server, &servers));
    TRY(unit_of_about(about, unit));
    const struct store_filter same = {"unit", unit};
    const bool asked = finding_asked_for(about->where, "unit") != NULL;
    TRY(finding_add_filters(about->arena, about->where, &same, asked ? 0 : 1, &alike.where));
    for (size_t i = 0; i < 2 * servers.count && !out->known; i++)
        TRY(ask_other(&alike, servers.list[i % servers.count], sources[i / servers.count], index,
                      out));
    for (size_t i = 0; i < 2 * servers.count && !out->known && !asked; i++)
        TRY(ask_other(about, servers.list[i % servers.count], sources[i / servers.count], index,
                      out));
    return STATUS_OK;
}

/* "On AMD EPYC, 16 cores (shipped with prony): …": where it is not the machine that was asked
 * about.
 */
static enum status say_source(const struct finding_about *about, struct finding *finding)
{
    char title[TITLE_TEXT];
    struct store_row row;
    struct text said = {0};
    if (!finding->id_count || strcmp(finding->name, "unit") == 0)
        return STATUS_OK;
    TRY(store_row(about->store, finding->ids[0], &row));
    const bool shipped = strcmp(row.source, "shipped") == 0;
    if (shipped == about->machine.shipped && strcmp(row.point.server, about->server) == 0)
        return STATUS_OK;
    TRY(store_title(about->store, row.point.server, title));
    text_printf(&said, "On %s%s: %s", *title ? title : row.point.server,
                shipped ? " (shipped with prony)" : "", text_of(&finding->sentence));
    text_free(&finding->sentence);
    finding->sentence = said;
    return text_done(&finding->sentence);
}

struct disturbances {
    int64_t count;
};

static enum status take_disturbed(void *context, const char *key, const char *value, int64_t count)
{
    struct disturbances *disturbances = context;
    (void)key;
    if (value && *value)
        disturbances->count += count;
    return STATUS_OK;
}

/* Why results were left out: once, where frameworks are compared or nothing else is known. */
static enum status say_left_out(const struct finding_about *about, struct finding *finding)
{
    const struct store_filter filters[] = {{"model", about->model},
                                           {"phase", about->phase},
                                           {"server", about->server},
                                           {"status", "ok"},
                                           {"source", about->source}};
    struct disturbances disturbances = {0};
    struct text *out = &finding->sentence;
    if (finding->left_out.length && (!about->best_id || strcmp(finding->name, "frameworks") == 0))
        text_printf(out, " (Left out as handicapped: %s.)", text_of(&finding->left_out));
    if (!finding->known && strcmp(finding->name, "next") != 0) { /* which says so itself */
        TRY(store_values(about->store, "disturbed",
                         (struct store_where){filters, *about->source ? 5 : 4}, take_disturbed,
                         &disturbances));
        if (disturbances.count)
            text_printf(out, " (Left out as disturbed: %lld result%s.)",
                        (long long)disturbances.count, disturbances.count == 1 ? "" : "s");
    }
    return text_done(out);
}

/* Advice is for one machine; of the others another may know. */
static bool may_ask_others(const struct finding_about *about, const struct finding *finding)
{
    return !finding->known && !finding_asked_for(about->where, "server") &&
           strcmp(finding->name, "next") != 0 && strcmp(finding->name, "busy") != 0;
}

/* Where no machine was asked for and the newest result's does not know, another may. */
enum status finding_ask(const struct finding_about *about, size_t index, struct finding *out)
{
    enum status status;
    TRY(ask(about, index, out));
    if (about->one_machine)
        return STATUS_OK;
    if (may_ask_others(about, out))
        TRY_OR(failed, ask_others(about, index, out));
    TRY_OR(failed, say_source(about, out));
    TRY_OR(failed, say_left_out(about, out));
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
