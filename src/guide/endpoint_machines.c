/* endpoint_machines.c: /api/machines, and /api/roofline: what a machine can do and what was done on
 * it. */
#include "guide/endpoints.h"

#include <math.h>
#include <string.h>

enum { MACHINE_LINES = 200, ROOFLINE_POINTS = 2000 };

/* What is known of one machine; trees are in the call's arena. */
struct machine {
    const char *server;
    int64_t records;
    const struct json *facts, *software, *calibration;
    const char *newest;
    struct machine *next;
};
struct machines {
    struct call *call;
    struct machine *first, **end;
};

static enum status add_server(void *context, const char *key, const char *value, int64_t count)
{
    struct machines *machines = context;
    struct machine *machine;
    (void)key;
    if (!value || !*value)
        return STATUS_OK;
    NEED(machine = arena_alloc(&machines->call->arena, sizeof *machine));
    NEED(machine->server = arena_text(&machines->call->arena, value));
    machine->records = count;
    *machines->end = machine;
    machines->end = &machine->next;
    return STATUS_OK;
}

/* A record of any kind: what it says of its machine, unless a newer one said it before. */
static void take_facts(struct machine *machine, const struct json *record)
{
    if (!machine->facts)
        machine->facts = json_get(record, "machine");
    if (!machine->software)
        machine->software = json_get(record, "software");
    if (!machine->calibration)
        machine->calibration = json_get(record, "calibration");
    if (!machine->newest)
        machine->newest = json_text(record, "at", NULL);
}

static enum status take_machine_line(void *context, int64_t id, const char *line, size_t length)
{
    struct machines *machines = context;
    struct json *record;
    (void)id;
    TRY(json_parse(&machines->call->arena, "store", line, length, &record));
    const char *server = json_text(json_get(record, "machine"), "server", "");
    for (struct machine *machine = machines->first; machine; machine = machine->next)
        if (strcmp(machine->server, server) == 0)
            take_facts(machine, record);
    return STATUS_OK;
}

struct newest {
    struct call *call;
    struct machine *machine;
};

static enum status take_result(void *context, int64_t id, const char *line, size_t length)
{
    struct newest *newest = context;
    struct json *record;
    (void)id;
    TRY(json_parse(&newest->call->arena, "store", line, length, &record));
    newest->machine->newest = json_text(record, "at", NULL);
    take_facts(newest->machine, record);
    return STATUS_OK;
}

/* The machines that have results under the filters. */
static enum status find_machines(struct call *call, struct store_where where,
                                 struct machines *machines)
{
    *machines = (struct machines){.call = call, .end = &machines->first};
    if (!call->store)
        return STATUS_OK;
    TRY(store_values(call->store, "server", where, add_server, machines));
    return store_recent(call->store, "machine", MACHINE_LINES, take_machine_line, machines);
}

static enum status add_unit_name(void *context, const char *key, const char *value, int64_t count)
{
    (void)key, (void)count;
    if (value && *value)
        json_add_text(context, value);
    return STATUS_OK;
}

static void add_tree(struct json_writer *json, const char *key, const struct json *tree)
{
    json_key(json, key);
    if (tree)
        json_add_tree(json, tree);
    else
        json_add_null(json);
}

static enum status add_machine(struct call *call, struct machine *machine)
{
    struct json_writer *json = &call->json;
    struct store_filter filter = {"server", machine->server};
    struct store_where where = {&filter, 1};
    struct newest newest = {call, machine};
    char title[TITLE_TEXT];
    TRY(store_title(call->store, machine->server, title));
    TRY(store_list(call->store, where, 1, 0, take_result, &newest));
    if (!title[0])
        machine_title(machine->facts, title);
    json_object(json);
    call_add_text(json, "server", machine->server);
    call_add_text(json, "title", title);
    json_key(json, "unit_names");
    json_array(json);
    TRY(store_values(call->store, "unit_name", where, add_unit_name, json));
    json_end(json);
    call_add_int(json, "records", machine->records);
    call_add_text(json, "newest", machine->newest);
    add_tree(json, "machine", machine->facts);
    add_tree(json, "software", machine->software);
    add_tree(json, "calibration", machine->calibration);
    json_end(json);
    return STATUS_OK;
}

enum status endpoint_machines(struct call *call)
{
    struct machines machines;
    TRY(find_machines(call, (struct store_where){0}, &machines));
    json_object(&call->json);
    json_key(&call->json, "machines");
    json_array(&call->json);
    for (struct machine *machine = machines.first; machine; machine = machine->next)
        TRY(add_machine(call, machine));
    json_end(&call->json);
    json_end(&call->json);
    return STATUS_OK;
}

/* /api/roofline */

static enum status add_roofline_point(void *context, const struct store_row *row)
{
    struct json_writer *json = context;
    struct text label = {0};
    double flop_rate = row->metrics[METRIC_flop_rate], byte_rate = row->metrics[METRIC_byte_rate];
    if (strcmp(row->status, "ok") || isnan(flop_rate) || isnan(byte_rate) || byte_rate <= 0)
        return STATUS_OK;
    point_label(&row->point, &label);
    json_object(json);
    call_add_int(json, "id", row->id);
    call_add_real(json, "intensity", flop_rate / byte_rate);
    call_add_real(json, "flop_rate", flop_rate);
    call_add_real(json, "byte_rate", byte_rate);
    call_add_real(json, "times_floor", row->metrics[METRIC_times_floor]);
    call_add_text(json, "bound", *row->bound ? row->bound : NULL);
    call_add_text(json, "check", row->check);
    call_add_text(json, "label", text_of(&label));
    json_key(json, "point");
    point_write(&row->point, json);
    json_end(json);
    enum status status = text_done(&label);
    text_free(&label);
    return status;
}

/* The filters, but of servers only this one. */
static enum status where_server(struct call *call, const char *server, struct store_where *out)
{
    struct store_filter *filters;
    size_t count = 0;
    NEED(filters = arena_array(&call->arena, call->filter_count + 1, sizeof *filters));
    for (size_t i = 0; i < call->filter_count; i++)
        if (strcmp(call->filters[i].key, "server"))
            filters[count++] = call->filters[i];
    filters[count++] = (struct store_filter){"server", server};
    *out = (struct store_where){filters, count};
    return STATUS_OK;
}

static const struct machine *choose_machine(const struct machines *machines, struct call *call)
{
    const struct machine *chosen = NULL;
    for (const struct machine *machine = machines->first; machine; machine = machine->next) {
        bool wanted = !store_where_has(call_where(call), "server", NULL) ||
                      store_where_has(call_where(call), "server", machine->server);
        if (wanted && (!chosen || machine->records > chosen->records))
            chosen = machine;
    }
    return chosen;
}

static enum status add_points(struct call *call, const char *server)
{
    static const enum metric_index wanted[] = {METRIC_flop_rate, METRIC_byte_rate,
                                               METRIC_times_floor, METRIC_COUNT};
    struct store_glance glance = {.metrics = wanted, .limit = ROOFLINE_POINTS};
    int64_t count = 0;
    TRY(where_server(call, server, &glance.where));
    json_key(&call->json, "points");
    json_array(&call->json);
    TRY(store_rows(call->store, &glance, add_roofline_point, &call->json, &count));
    json_end(&call->json);
    call_add_int(&call->json, "count", count);
    return STATUS_OK;
}

/* Are two rows of the same unit: as many threads of the CPU, or the same GPU? */
static bool same_unit(const struct json *a, const struct json *b)
{
    return json_int(a, "threads", 0) == json_int(b, "threads", 0) &&
           strcmp(json_text(a, "unit_name", ""), json_text(b, "unit_name", "")) == 0;
}

/* The largest rate of a kind ("fp32", "read" …) that was seen on the unit of `like` and, of memory,
 * with this working set; NaN without one. */
static double best_rate(const struct json *ceilings, const char *kind, const struct json *like,
                        int64_t set_bytes)
{
    double best = NAN;
    for (const struct json *row = ceilings->first; row; row = row->next)
        if (text_equal(json_text(row, "ceiling", NULL), kind) && same_unit(row, like) &&
            json_int(row, "set_bytes", 0) == set_bytes)
            best = fmax(best, json_real(row, "per_s", NAN));
    return best;
}

/* Was this working set already read, on the same unit, by a row before? */
static bool is_repeated(const struct json *ceilings, const struct json *row)
{
    for (const struct json *other = ceilings->first; other != row; other = other->next)
        if (text_equal(json_text(other, "ceiling", NULL), "read") && same_unit(other, row) &&
            json_int(other, "set_bytes", 0) == json_int(row, "set_bytes", 0))
            return true;
    return false;
}

static void add_roof(struct json_writer *json, const struct json *ceilings, const struct json *read,
                     const char *precision)
{
    int64_t set_bytes = json_int(read, "set_bytes", 0);
    json_object(json);
    call_add_text(json, "unit_name", json_text(read, "unit_name", NULL));
    call_add_int(json, "threads", json_int(read, "threads", 0));
    call_add_int(json, "set_bytes", set_bytes);
    call_add_text(json, "isa", json_text(read, "isa", NULL));
    call_add_text(json, "precision", precision);
    call_add_real(json, "flop_per_s", best_rate(ceilings, precision, read, 0));
    call_add_real(json, "read_per_s", best_rate(ceilings, "read", read, set_bytes));
    call_add_real(json, "update_per_s", best_rate(ceilings, "update", read, set_bytes));
    json_end(json);
}

/* Calibration has a row for each ceiling; a roof needs those of arithmetic and of memory together:
 * the best of all ISAs and page sizes. A GPU has one for each precision, a CPU that of fp32. */
static void add_ceilings(struct json_writer *json, const struct json *ceilings)
{
    static const char *const precisions[] = {"fp32", "tf32", "bf16", "fp16"};
    json_array(json);
    for (const struct json *row = ceilings ? ceilings->first : NULL; row; row = row->next) {
        if (!text_equal(json_text(row, "ceiling", NULL), "read") || is_repeated(ceilings, row))
            continue;
        size_t count = json_get(row, "unit_name") ? sizeof precisions / sizeof *precisions : 1;
        for (size_t i = 0; i < count; i++)
            if (i == 0 || !isnan(best_rate(ceilings, precisions[i], row, 0)))
                add_roof(json, ceilings, row, precisions[i]);
    }
    json_end(json);
}

enum status endpoint_roofline(struct call *call)
{
    struct json_writer *json = &call->json;
    struct machines machines;
    TRY(find_machines(call, call_where(call), &machines));
    const struct machine *chosen = choose_machine(&machines, call);
    json_object(json);
    call_add_text(json, "server", chosen ? chosen->server : NULL);
    json_key(json, "servers");
    json_array(json);
    for (const struct machine *machine = machines.first; machine; machine = machine->next)
        json_add_text(json, machine->server);
    json_end(json);
    add_tree(json, "machine", chosen ? chosen->facts : NULL);
    json_key(json, "ceilings");
    add_ceilings(json, json_get(chosen ? chosen->calibration : NULL, "ceilings"));
    if (chosen)
        TRY(add_points(call, chosen->server));
    json_end(json);
    return STATUS_OK;
}
