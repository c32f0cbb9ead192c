/* profile_output.c: see profile_output.h. */
#include "cli/show/profile_output.h"

#include "base/clock.h"
#include "base/json.h"
#include "cli/program/trace_output.h"
#include "cli/show/top_costs.h"
#include "cli/table/show_figure.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* One line of figures: of an op, a part or the step. */
struct figures {
    double ns, floor_ns;
    uint64_t flop, bytes;
};

static struct figures op_figures(const struct profile *profile, int32_t o)
{
    const struct op *op = &profile->program->ops[o];
    return (struct figures){profile->ops[o].ns, profile->ops[o].floor_ns,
                            op_flop(profile->program, op), op_bytes(profile->program, op)};
}

static struct figures part_figures(const struct profile *profile, enum part part)
{
    struct figures sum = {0};
    for (int32_t o = profile->program->parts[part].from; o < profile->program->parts[part].to;
         o++) {
        struct figures op = op_figures(profile, o);
        sum.ns += isnan(op.ns) ? 0 : op.ns;
        sum.floor_ns += isnan(op.floor_ns) ? 0 : op.floor_ns;
        sum.flop += op.flop;
        sum.bytes += op.bytes;
    }
    return sum;
}

static void add_rate(struct text *cell, double amount, double ns)
{
    if (amount > 0 && ns > 0)
        text_add_count(cell, amount / ns * 1e9);
    else
        text_add(cell, "–");
}

/* A row of the table: of an op, a part, a program or the step. */
static void add_row(struct show_table *table, const char *name, const char *kernel,
                    const struct figures *figures, double step_ns)
{
    enum { CELLS = 5 };
    const bool limited = figures->floor_ns >= FLOOR_LEAST_NS && figures->ns > 0;
    struct text cells[CELLS] = {{0}};
    show_time(&cells[0], figures->ns);
    text_printf(&cells[1], "%.1f %%", isnan(figures->ns) ? 0 : 100 * figures->ns / step_ns);
    show_share(&cells[2], limited ? 100 * figures->floor_ns / figures->ns : (double)NAN);
    add_rate(&cells[3], (double)figures->flop, figures->ns);
    add_rate(&cells[4], (double)figures->bytes, figures->ns);
    show_table_row(table, (const char *const[]){name, text_of(&cells[0]), text_of(&cells[1]),
                                                text_of(&cells[2]), kernel, text_of(&cells[3]),
                                                text_of(&cells[4])});
    show_table_spend(table, cells, CELLS);
}

static void add_op(struct show_table *table, const struct profile *profile, int32_t o,
                   double step_ns)
{
    const struct op *op = &profile->program->ops[o];
    const struct figures figures = op_figures(profile, o);
    struct text name = {0};
    text_printf(&name, "  %s%s%s", op->layer, *op->layer ? " " : "", op_name(op->kind));
    add_row(table, text_of(&name),
            *profile->ops[o].kernel ? profile->ops[o].kernel : "in another op", &figures, step_ns);
    table->failed |= name.failed;
    text_free(&name);
}

/* Of a GPU: is it computing, or launching? */
static void add_launches(const struct inside *inside, struct text *out)
{
    enum { SHORT = 2 }; /* × what a launch takes: hardly anything is computed in that time */
    struct text each = {0};
    if (inside->launches == 0)
        return;
    double ns = inside->time_ns.median / (double)inside->launches;
    text_add_time(&each, ns);
    text_printf(out, "a step has %lld launches, one in %s", (long long)inside->launches,
                text_of(&each));
    if (ns < SHORT * inside->launch_ns)
        text_add(out, ", which is hardly more than a launch takes: a larger batch costs little "
                      "more");
    text_add(out, "\n");
    text_free(&each);
}

/* Does what the ops take add up to what a step takes when nobody watches? */
static void add_balance(const struct inside *inside, struct text *out)
{
    double missing = inside_missing(inside);
    struct text timed = {0}, difference = {0}, disturbed = {0};
    watch_note(&inside->watch, &disturbed);
    text_add_time(&timed, inside->time_ns.median);
    text_add_time(&difference, fabs(missing) * inside->time_ns.median);
    text_printf(out, "\ntimed alone, a step takes %s", text_of(&timed));
    if (inside->floor_ns > 0)
        text_printf(out, ", %.0f %% of the limit", 100 * inside->floor_ns / inside->time_ns.median);
    if (fabs(missing) <= PROFILE_ADDS_UP)
        text_printf(out, "; the ops add up to it within %.1f %%\n", 100 * fabs(missing));
    else if (inside->merged[0])
        text_printf(out, "; the ops, one by one, take %s (%.0f %%) %s\n", text_of(&difference),
                    100 * fabs(missing), missing > 0 ? "less" : "more");
    else if (inside->clock_reads && missing > 0)
        text_printf(out, "; its layers, watched inside it, take %s (%.0f %%) less\n",
                    text_of(&difference), 100 * missing);
    else if (missing > 0)
        text_printf(out, "; %s of it (%.0f %%) is missing%s\n", text_of(&difference), 100 * missing,
                    disturbed.length ? "" : ": it passes between ops");
    else
        text_printf(out,
                    "; the ops take %s (%.0f %%) more: watched one by one they cannot overlap, and "
                    "the clock is read between them\n",
                    text_of(&difference), -100 * missing);
    if (inside->clock_reads)
        text_printf(out,
                    "the step is one kernel: it was watched inside, where the clock is read %d "
                    "times; %llu ns for each are subtracted\n",
                    inside->clock_reads, (unsigned long long)clock_cost_ns() - 1);
    if (inside->merged[0])
        text_printf(out,
                    inside->profiles[0].program->whole
                        ? "the timed step runs in %s, which does at once what is shown op by op\n"
                        : "the timed step has ops merged that are shown one by one: %s\n",
                    inside->merged);
    add_launches(inside, out);
    if (disturbed.length) /* without the first "; " */
        text_printf(out, "the machine was disturbed, so that times may not add up: %s\n",
                    text_of(&disturbed) + 2);
    if (inside->unfounded[0])
        text_printf(out, "no floors: %s\n", inside->unfounded);
    text_free(&disturbed);
    text_free(&timed);
    text_free(&difference);
}

static void sum_figures(struct figures *sum, const struct figures *figures)
{
    sum->flop += figures->flop;
    sum->bytes += figures->bytes;
    sum->floor_ns += figures->floor_ns;
}

/* A row for each part and each of its ops; adds up what they do. */
static void add_program(struct show_table *table, const struct profile *profile, double step_ns,
                        struct figures *all)
{
    const struct program *program = profile->program;
    for (int part = 0; part < PART_COUNT; part++) {
        struct figures figures = part_figures(profile, (enum part)part);
        if (program->parts[part].from == program->parts[part].to)
            continue;
        add_row(table, part_name((enum part)part), "", &figures, step_ns);
        for (int32_t o = program->parts[part].from; o < program->parts[part].to; o++)
            add_op(table, profile, o, step_ns);
        sum_figures(all, &figures);
    }
}

static void add_columns(struct show_table *table)
{
    show_table_column(table, "part, op", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(table, "time", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(table, "share", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(table, "of the limit", SHOW_RIGHT, 90, 0);
    show_table_column(table, "kernel", SHOW_LEFT, 80, 0);
    show_table_column(table, "FLOP/s", SHOW_RIGHT, 60, 0);
    show_table_column(table, "bytes/s", SHOW_RIGHT, 50, 0);
}

static void print_table(const struct profiled *profiled, struct text *out)
{
    const struct inside *inside = profiled->inside;
    const double step_ns = inside_step_ns(inside);
    struct show_table table = {.width = wrap_screen()};
    struct figures all = {.ns = step_ns};
    text_printf(&table.title, "%s, %s, batch %d, %s", profiled->task->network->name,
                profiled->phase, profiled->task->batch, profiled->backend);
    if (profiled->threads)
        text_printf(&table.title, ", %d thread%s", profiled->threads,
                    profiled->threads == 1 ? "" : "s");
    text_printf(&table.title, ", %d steps watched", inside->profiles[0].steps);
    add_columns(&table);
    for (int32_t p = 0; p < inside->count; p++) {
        const struct profile *profile = &inside->profiles[p];
        struct figures program = {.ns = profile_step_ns(profile)};
        if (inside->count > 1)
            show_table_line(&table, profile->program->name);
        add_program(&table, profile, step_ns, &program);
        if (inside->count > 1)
            add_row(&table, profile->program->name, "", &program, step_ns);
        if (inside->count > 1)
            show_table_line(&table, "");
        sum_figures(&all, &program);
    }
    add_row(&table, "all", "", &all, step_ns);
    show_table_print(&table, out);
    out->failed |= table.failed || table.title.failed;
    show_table_free(&table);
}

/* What an op's floor is made of: its FLOP at the peak, or the bytes that make it longer. */
static const char *op_bound(const struct profiled *profiled, const struct figures *figures)
{
    static const double NEARLY = 0.99;
    if (!(figures->floor_ns >= FLOOR_LEAST_NS))
        return isnan(profiled->inside->floor_ns) ? NULL : "latency";
    if (profiled->flop_per_s <= 0)
        return NULL;
    return (double)figures->flop / profiled->flop_per_s * 1e9 >= NEARLY * figures->floor_ns
               ? "flop"
               : "bytes";
}

static void add_cost(const struct top_costs *costs, int i, struct text *line)
{
    const struct top_cost *cost = &costs->list[i];
    static const double FAR = 0.1; /* of the limit: something else takes the time */
    const bool latency = cost->bound && strcmp(cost->bound, "latency") == 0;
    const double reached = cost->floor_ns / cost->size;
    top_cost_name(cost, line);
    text_add(line, ": ");
    show_share(line, 100 * cost->size / costs->all);
    text_add(line, " of the step");
    if (latency)
        text_add(line, ", too little work for a limit: latency bounds it");
    else if (cost->bound) {
        text_add(line, reached < FAR ? ", mostly overhead; its limit is " : ", bounded by ");
        top_cost_bound(cost, line);
        text_add(line, ", of which it reaches ");
        show_share(line, 100 * reached);
    }
}

/* The three ops that take longest. */
static void print_costs(const struct profiled *profiled, struct text *out)
{
    const struct inside *inside = profiled->inside;
    struct top_costs costs = {0};
    for (int32_t p = 0; p < inside->count; p++)
        for (int32_t o = 0; o < inside->profiles[p].program->op_count; o++) {
            const struct figures figures = op_figures(&inside->profiles[p], o);
            const struct program *program = inside->profiles[p].program;
            const struct top_cost cost = {.program = program,
                                          .op = &program->ops[o],
                                          .size = figures.ns,
                                          .floor_ns = figures.floor_ns,
                                          .bound = op_bound(profiled, &figures)};
            top_costs_add(&costs, &cost);
        }
    top_costs_print(&costs, add_cost, out);
}

/* The watched steps, every nanosecond once. */
static enum status print_budget(const struct profiled *profiled, struct text *out)
{
    struct advice advice;
    TRY(advise_budget(&profiled->inside->trace, &advice));
    text_add(out, "\n");
    enum status status = traced_budget(&advice, wrap_screen(), out);
    advice_free(&advice);
    return status;
}

enum status profiled_text(const struct profiled *profiled, struct text *out)
{
    struct text balance = {0};
    print_table(profiled, out);
    add_balance(profiled->inside, &balance);
    for (char *line = balance.data, *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        wrap_add(out, "", line, wrap_screen());
    }
    out->failed |= balance.failed;
    text_free(&balance);
    print_costs(profiled, out);
    return print_budget(profiled, out);
}

static void write_figures(struct json_writer *json, const struct figures *figures, double step_ns)
{
    json_put_real(json, "ns", figures->ns);
    json_put_real(json, "share", figures->ns / step_ns);
    json_put_real(json, "flop", (double)figures->flop);
    json_put_real(json, "bytes", (double)figures->bytes);
    json_put_real(json, "flop_per_s", (double)figures->flop / figures->ns * 1e9);
    json_put_real(json, "bytes_per_s", (double)figures->bytes / figures->ns * 1e9);
    json_put_real(json, "floor_ns", figures->floor_ns);
    json_put_real(json, "times_floor", figures->ns / figures->floor_ns);
}

static void write_ops(struct json_writer *json, const struct profile *profile, double step_ns)
{
    json_key(json, "ops");
    json_array(json);
    for (int32_t o = 0; o < profile->program->op_count; o++) {
        const struct op *op = &profile->program->ops[o];
        struct figures figures = op_figures(profile, o);
        json_object(json);
        json_put_text(json, "op", op_name(op->kind));
        json_put_text(json, "part", part_name(op->part));
        json_put_text(json, "layer", op->layer);
        json_put_text(json, "kernel", *profile->ops[o].kernel ? profile->ops[o].kernel : NULL);
        write_figures(json, &figures, step_ns);
        json_end(json);
    }
    json_end(json);
}

static void write_parts(struct json_writer *json, const struct profile *profile, double step_ns)
{
    json_key(json, "parts");
    json_object(json);
    for (int part = 0; part < PART_COUNT; part++) {
        struct figures figures = part_figures(profile, (enum part)part);
        if (profile->program->parts[part].from == profile->program->parts[part].to)
            continue;
        json_key(json, part_name((enum part)part));
        json_object(json);
        write_figures(json, &figures, step_ns);
        json_end(json);
    }
    json_end(json);
}

static void write_hash(struct json_writer *json, uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    json_put_text(json, "program", text);
}

static void write_disturbed(struct json_writer *json, const struct watch *watch)
{
    struct text notes = {0};
    watch_note(watch, &notes);
    json_put_text(json, "disturbed", notes.length ? text_of(&notes) + 2 : NULL);
    text_free(&notes);
}

enum status profiled_json(const struct profiled *profiled, struct text *out)
{
    const struct inside *inside = profiled->inside;
    double step_ns = inside_step_ns(inside);
    struct json_writer json;
    struct advice advice;

    json_begin(&json, out);
    json_object(&json);
    json_put_text(&json, "model", profiled->task->network->name);
    json_put_text(&json, "phase", profiled->phase);
    json_put_real(&json, "batch", profiled->task->batch);
    json_put_text(&json, "backend", profiled->backend);
    if (profiled->threads)
        json_put_real(&json, "threads", profiled->threads);
    json_put_real(&json, "launches", (double)inside->launches);
    json_put_real(&json, "timed_ns", inside->time_ns.median);
    json_put_real(&json, "floor_ns", inside->floor_ns);
    json_put_real(&json, "watched_ns", step_ns);
    json_put_real(&json, "watched_steps", inside->profiles[0].steps);
    json_put_real(&json, "missing", inside_missing(inside));
    json_put_text(&json, "merged", inside->merged[0] ? inside->merged : NULL);
    json_put_int(&json, "clock_reads", inside->clock_reads);
    write_disturbed(&json, &inside->watch);
    TRY(advise_budget(&inside->trace, &advice));
    traced_json_budget(&json, &advice.budget);
    advice_free(&advice);
    json_key(&json, "programs");
    json_array(&json);
    for (int32_t p = 0; p < inside->count; p++) {
        const struct profile *profile = &inside->profiles[p];
        json_object(&json);
        json_put_text(&json, "name", profile->program->name);
        write_hash(&json, profile->program->hash);
        write_parts(&json, profile, step_ns);
        write_ops(&json, profile, step_ns);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    text_add(out, "\n");
    return STATUS_OK;
}
