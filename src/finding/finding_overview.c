/* finding_overview.c: the findings of one machine, the most important first, each about the network
 * that says most of it. The page and the terminal show the same. */
#include "finding/finding_inside.h"

#include <string.h>

enum { NETWORKS = 32, NETWORKS_ASKED = 4 };

struct network_count {
    const char *model;
    int64_t results, parameters;
};
struct networks {
    struct arena *arena;
    struct network_count list[NETWORKS];
    size_t count;
};

/* Which machines there are */

struct machines {
    struct arena *arena;
    const char *source;
    struct overview *overview;
};

/* The one that was chosen, or one of the others. */
static enum status take_machine(void *context, const char *key, const char *value, int64_t count)
{
    struct machines *machines = context;
    struct overview *overview = machines->overview;
    const struct overview_machine *chosen = &overview->machine;
    (void)key;
    if (!value || !*value)
        return STATUS_OK;
    if (strcmp(value, chosen->server) == 0 && strcmp(machines->source, chosen->source) == 0) {
        overview->machine.results = count;
    } else if (overview->other_count < OVERVIEW_OTHERS) {
        struct overview_machine *other = &overview->others[overview->other_count];
        NEED(other->server = arena_text(machines->arena, value));

        other->source = machines->source;
        other->results = count;
        overview->other_count++;
    }
    return STATUS_OK;
}

/* What people call a machine; its server's name where no record tells. */
static enum status name_machine(struct store *store, struct arena *arena,
                                struct overview_machine *machine)
{
    char title[TITLE_TEXT];
    TRY(store_title(store, machine->server, title));
    NEED(machine->title = arena_text(arena, *title ? title : machine->server));
    return STATUS_OK;
}

static enum status list_machines(struct store *store, struct arena *arena, struct overview *out)
{
    static const char *const sources[] = {"own", "shipped"};
    for (size_t i = 0; i < 2; i++) {
        const struct store_filter filters[] = {{"status", "ok"}, {"source", sources[i]}};
        struct machines machines = {arena, sources[i], out};
        TRY(store_values(store, "server", (struct store_where){filters, 2}, take_machine,
                         &machines));
    }
    for (size_t i = 0; i < out->other_count; i++)
        TRY(name_machine(store, arena, &out->others[i]));
    return name_machine(store, arena, &out->machine);
}

struct newest {
    struct arena *arena;
    struct overview *overview;
};

static enum status take_newest(void *context, const struct store_row *row)
{
    struct newest *newest = context;
    struct overview *overview = newest->overview;
    NEED(overview->machine.server = arena_text(newest->arena, row->point.server));
    NEED(overview->machine.source = arena_text(newest->arena, row->source));
    NEED(overview->newest = arena_text(newest->arena, row->at));
    return STATUS_OK;
}

/* The machine of the newest result under the filters: of one's own results, where there are any. */
static enum status choose_machine(struct store *store, struct arena *arena,
                                  struct store_where where, struct overview *out)
{
    static const enum metric_index none[] = {METRIC_COUNT};
    const struct store_filter more[] = {{"status", "ok"}, {"source", "own"}};
    struct newest newest = {arena, out};
    int64_t count = 0;
    for (size_t i = finding_asked_for(where, "source") ? 1 : 0; i < 2 && !*out->machine.server;
         i++) {
        struct store_glance glance = {.metrics = none, .limit = 1};
        TRY(finding_add_filters(arena, where, more, i == 0 ? 2 : 1, &glance.where));
        TRY(store_rows(store, &glance, take_newest, &newest, &count));
    }
    return STATUS_OK;
}

/* Which networks */

static enum status take_network(void *context, const char *key, const char *value, int64_t count)
{
    struct networks *networks = context;
    (void)key;
    if (!value || !*value || networks->count == NETWORKS)
        return STATUS_OK;
    struct network_count *network = &networks->list[networks->count];
    NEED(network->model = arena_text(networks->arena, value));
    network->results = count;
    networks->count++;
    return STATUS_OK;
}

static enum status take_parameters(void *context, const char *key, const char *value, int64_t count)
{
    int64_t *most = context, number;
    (void)key, (void)count;
    if (value && text_to_int(value, &number) && number > *most)
        *most = number;
    return STATUS_OK;
}

/* One with many results before one with few; of these the larger network. */
static bool comes_before(const struct network_count *a, const struct network_count *b, int64_t most)
{
    const bool many = 2 * a->results >= most, others_many = 2 * b->results >= most;
    if (many != others_many)
        return many;
    return many && a->parameters != b->parameters ? a->parameters > b->parameters
                                                  : a->results > b->results;
}

static void sort_networks(struct networks *networks)
{
    int64_t most = 0;
    for (size_t i = 0; i < networks->count; i++)
        most = networks->list[i].results > most ? networks->list[i].results : most;
    for (size_t i = 1; i < networks->count; i++) {
        const struct network_count moved = networks->list[i];
        size_t place = i;
        for (; place > 0 && comes_before(&moved, &networks->list[place - 1], most); place--)
            networks->list[place] = networks->list[place - 1];
        networks->list[place] = moved;
    }
}

static enum status list_networks(struct store *store, struct arena *arena, struct store_where where,
                                 struct networks *out)
{
    *out = (struct networks){.arena = arena};
    TRY(store_values(store, "model", where, take_network, out));
    for (size_t i = 0; i < out->count; i++) {
        const struct store_filter model = {"model", out->list[i].model};
        struct store_where of_model;
        TRY(finding_add_filters(arena, where, &model, 1, &of_model));
        TRY(store_values(store, "parameters", of_model, take_parameters, &out->list[i].parameters));
    }
    sort_networks(out);
    return STATUS_OK;
}

/* Which findings */

/* What the findings of one machine can be about: each network in training, then in inference. */
struct subjects {
    struct finding_about list[2 * NETWORKS_ASKED];
    size_t count;
};

static enum status find_subjects(struct store *store, struct arena *arena, struct store_where where,
                                 struct subjects *out)
{
    static const char *const phases[] = {"training", "inference"};
    const struct store_filter ok = {"status", "ok"};
    struct networks networks;
    struct store_where measured;
    out->count = 0;
    TRY(finding_add_filters(arena, where, &ok, 1, &measured));
    TRY(list_networks(store, arena, measured, &networks));
    for (size_t i = 0; i < networks.count && i < NETWORKS_ASKED; i++) {
        for (size_t k = 0; k < 2; k++) {
            const struct store_filter more[] = {{"model", networks.list[i].model},
                                                {"phase", phases[k]}};
            struct store_where of_work, counted;
            int64_t count;
            TRY(finding_add_filters(arena, where, more, 2, &of_work));
            TRY(finding_add_filters(arena, measured, more, 2, &counted));
            TRY(store_count(store, counted, &count));
            if (!count)
                continue;
            TRY(finding_about(store, arena, of_work, &out->list[out->count]));
            out->list[out->count++].one_machine = true;
        }
    }
    return STATUS_OK;
}

/* The best result may be the slowest framework's, too: how far it is from the limit is said once.
 */
static bool is_said(const struct overview *overview, const struct finding *finding)
{
    bool said = false;
    for (size_t i = 0; strcmp(finding->name, "slowest") == 0 && i < overview->count; i++)
        said |= strcmp(overview->findings[i].name, "limit") == 0 &&
                overview->findings[i].ids[0] == finding->ids[0];
    return said;
}

/* The first subject that it is known of; of other networks than the first only a difference counts.
 * Else nothing is added. */
static enum status add_finding(const struct subjects *subjects, size_t index, struct overview *out)
{
    struct finding *finding = &out->findings[out->count];
    for (size_t i = 0; i < subjects->count; i++) {
        TRY(finding_ask(&subjects->list[i], index, finding));
        const bool first = strcmp(subjects->list[i].model, subjects->list[0].model) == 0;
        if (finding->known && (first || !finding->nothing) && !is_said(out, finding)) {
            out->count++;
            return STATUS_OK;
        }
        finding_free(finding);
    }
    return STATUS_OK;
}

/* The filters, but of machines the chosen one only. */
static enum status where_here(struct arena *arena, struct store_where where,
                              const struct overview_machine *machine, struct store_where *out)
{
    const struct store_filter more[] = {{"server", machine->server}, {"source", machine->source}};
    struct store_filter *kept;
    size_t count = 0;
    NEED(kept = arena_array(arena, where.count + 1, sizeof *kept));
    for (size_t i = 0; i < where.count; i++)
        if (strcmp(where.filters[i].key, "server") && strcmp(where.filters[i].key, "source"))
            kept[count++] = where.filters[i];
    return finding_add_filters(arena, (struct store_where){kept, count}, more, 2, out);
}

static enum status find_findings(struct store *store, struct arena *arena, struct store_where where,
                                 struct overview *out)
{
    struct store_where here;
    struct subjects subjects;
    TRY(where_here(arena, where, &out->machine, &here));
    TRY(find_subjects(store, arena, here, &subjects));

    for (size_t i = 0; i < FINDINGS && out->count < OVERVIEW_FINDINGS; i++)
        TRY(add_finding(&subjects, i, out));
    if (!out->count)
        return finding_say_lack(store, arena, here, &out->lacking, &out->command);
    return STATUS_OK;
}

enum status overview_find(struct store *store, struct arena *arena, struct store_where where,
                          struct overview *out)
{
    *out = (struct overview){.machine = {"", "", "", 0}, .newest = ""};
    TRY(choose_machine(store, arena, where, out));
    if (!*out->machine.server && !*out->machine.source)
        return STATUS_OK;
    TRY(list_machines(store, arena, out));
    enum status status = find_findings(store, arena, where, out);
    if (status != STATUS_OK)
        overview_free(out);
    return status;
}

void overview_free(struct overview *overview)
{
    for (size_t i = 0; i < overview->count; i++)
        finding_free(&overview->findings[i]);
    overview->count = 0;
    text_free(&overview->lacking);
    text_free(&overview->command);
}

static void write_text(struct json_writer *json, const char *key, const char *value)
{
    json_put_text(json, key, *value ? value : NULL);
}

static void write_machine(struct json_writer *json, const struct overview_machine *machine)
{
    write_text(json, "server", machine->server);
    write_text(json, "machine", machine->title);
    write_text(json, "source", machine->source);
    json_put_int(json, "results", machine->results);
}

void finding_write(const struct finding *finding, struct json_writer *json)
{
    json_object(json);
    write_text(json, "name", finding->name);
    write_text(json, "title", finding->title);
    write_text(json, "question", finding->question);
    write_text(json, "sentence", text_of(&finding->sentence));
    json_put_bool(json, "known", finding->known);
    json_put_bool(json, "approximate", finding->approximate);
    write_text(json, "chart", text_of(&finding->chart));
    write_text(json, "kind", finding->kind);
    write_text(json, "command", text_of(&finding->command));
    json_key(json, "ids");
    json_array(json);
    for (size_t i = 0; i < finding->id_count; i++)
        json_add_int(json, finding->ids[i]);
    json_end(json);
    json_end(json);
}

void overview_write(const struct overview *overview, struct json_writer *json)
{
    json_object(json);
    write_machine(json, &overview->machine);
    write_text(json, "newest", overview->newest);
    json_key(json, "others");
    json_array(json);
    for (size_t i = 0; i < overview->other_count; i++) {
        json_object(json);
        write_machine(json, &overview->others[i]);
        json_end(json);
    }
    json_end(json);
    json_key(json, "findings");
    json_array(json);
    for (size_t i = 0; i < overview->count; i++)
        finding_write(&overview->findings[i], json);
    json_end(json);
    write_text(json, "lacking", text_of(&overview->lacking));
    write_text(json, "command", text_of(&overview->command));
    json_end(json);
}
