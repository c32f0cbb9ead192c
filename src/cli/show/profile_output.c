/* profile_output.c: see profile_output.h. */
#include "cli/show/profile_output.h"

#include "base/json.h"
#include "record/tables/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { NAME_WIDTH = 34, KERNEL_WIDTH = 30 };

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

static void add_right(struct text *out, struct text *cell, int width)
{
    int used = (int)table_width(text_of(cell));
    text_printf(out, "%*s%s", width > used ? width - used : 1, "", text_of(cell));
    text_clear(cell);
}

static void add_rate(struct text *cell, double amount, double ns)
{
    if (amount > 0 && ns > 0)
        text_add_count(cell, amount / ns * 1e9);
    else
        text_add(cell, "–");
}

static void add_figures(const struct figures *figures, double step_ns, struct text *out)
{
    struct text cell = {0};
    if (isnan(figures->ns))
        text_add(&cell, "–");
    else
        text_add_time(&cell, figures->ns);
    add_right(out, &cell, 10);
    text_printf(&cell, "%.1f %%", isnan(figures->ns) ? 0 : 100 * figures->ns / step_ns);
    add_right(out, &cell, 9);
    add_rate(&cell, (double)figures->flop, figures->ns);
    add_right(out, &cell, 10);
    add_rate(&cell, (double)figures->bytes, figures->ns);
    add_right(out, &cell, 10);
    if (figures->floor_ns >= FLOOR_LEAST_NS && figures->ns > 0)
        text_printf(&cell, "%.2f", figures->ns / figures->floor_ns);
    else
        text_add(&cell, "–");
    add_right(out, &cell, 9);
    text_free(&cell);
}

static void add_op(const struct profile *profile, int32_t o, double step_ns, struct text *out)
{
    const struct op *op = &profile->program->ops[o];
    struct figures figures = op_figures(profile, o);
    char name[NAME_WIDTH + 1];
    snprintf(name, sizeof name, "%s%s%s", op->layer, *op->layer ? " " : "", op_name(op->kind));
    text_printf(out, "  %-*s %-*s", NAME_WIDTH, name, KERNEL_WIDTH,
                *profile->ops[o].kernel ? profile->ops[o].kernel : "in another op");
    add_figures(&figures, step_ns, out);
    text_add(out, "\n");
}

static void add_line(const char *name, const struct figures *figures, double step_ns,
                     struct text *out)
{
    text_printf(out, "%-*s", NAME_WIDTH + KERNEL_WIDTH + 3, name);
    add_figures(figures, step_ns, out);
    text_add(out, "\n");
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
        text_printf(out, ", %.2f × its floor", inside->time_ns.median / inside->floor_ns);
    if (fabs(missing) <= PROFILE_ADDS_UP)
        text_printf(out, "; the ops add up to it within %.1f %%\n", 100 * fabs(missing));
    else if (inside->merged[0])
        text_printf(out, "; the ops, one by one, take %s (%.0f %%) %s\n", text_of(&difference),
                    100 * fabs(missing), missing > 0 ? "less" : "more");
    else if (missing > 0)
        text_printf(out, "; %s of it (%.0f %%) is missing%s\n", text_of(&difference), 100 * missing,
                    disturbed.length ? "" : ": it passes between ops");
    else
        text_printf(out,
                    "; the ops take %s (%.0f %%) more: watched one by one they cannot overlap, and "
                    "the clock is read between them\n",
                    text_of(&difference), -100 * missing);
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

/* A line for each part and each of its ops; adds up what they do. */
static void add_program(const struct profile *profile, double step_ns, struct figures *all,
                        struct text *out)
{
    const struct program *program = profile->program;
    for (int part = 0; part < PART_COUNT; part++) {
        struct figures figures = part_figures(profile, (enum part)part);
        if (program->parts[part].from == program->parts[part].to)
            continue;
        add_line(part_name((enum part)part), &figures, step_ns, out);
        for (int32_t o = program->parts[part].from; o < program->parts[part].to; o++)
            add_op(profile, o, step_ns, out);
        sum_figures(all, &figures);
    }
}

void profiled_text(const struct profiled *profiled, struct text *out)
{
    const struct inside *inside = profiled->inside;
    double step_ns = inside_step_ns(inside);
    struct figures all = {.ns = step_ns};

    text_printf(out, "%s, batch %d, %s, on %s", profiled->task->network->name,
                profiled->task->batch, profiled->phase, profiled->backend);
    if (profiled->threads)
        text_printf(out, " with %d thread%s", profiled->threads, profiled->threads == 1 ? "" : "s");
    text_printf(out, "; %d steps watched\n", inside->profiles[0].steps);
    text_printf(out, "\n%-*s %-*s%10s%9s%10s%10s%10s\n", NAME_WIDTH + 2, "part, op", KERNEL_WIDTH,
                "kernel", "time", "share", "FLOP/s", "B/s", "× floor");
    for (int32_t p = 0; p < inside->count; p++) {
        const struct profile *profile = &inside->profiles[p];
        struct figures program = {.ns = profile_step_ns(profile)};
        if (inside->count > 1)
            text_printf(out, "%s%s\n", p ? "\n" : "", profile->program->name);
        add_program(profile, step_ns, &program, out);
        if (inside->count > 1)
            add_line(profile->program->name, &program, step_ns, out);
        sum_figures(&all, &program);
    }
    if (inside->count > 1)
        text_add(out, "\n");
    add_line("all", &all, step_ns, out);
    add_balance(inside, out);
}

static void write_real(struct json_writer *json, const char *key, double value)
{
    json_key(json, key);
    json_add_real(json, value);
}

static void write_text(struct json_writer *json, const char *key, const char *value)
{
    json_key(json, key);
    json_add_text(json, value);
}

static void write_figures(struct json_writer *json, const struct figures *figures, double step_ns)
{
    write_real(json, "ns", figures->ns);
    write_real(json, "share", figures->ns / step_ns);
    write_real(json, "flop", (double)figures->flop);
    write_real(json, "bytes", (double)figures->bytes);
    write_real(json, "flop_per_s", (double)figures->flop / figures->ns * 1e9);
    write_real(json, "bytes_per_s", (double)figures->bytes / figures->ns * 1e9);
    write_real(json, "floor_ns", figures->floor_ns);
    write_real(json, "times_floor", figures->ns / figures->floor_ns);
}

static void write_ops(struct json_writer *json, const struct profile *profile, double step_ns)
{
    json_key(json, "ops");
    json_array(json);
    for (int32_t o = 0; o < profile->program->op_count; o++) {
        const struct op *op = &profile->program->ops[o];
        struct figures figures = op_figures(profile, o);
        json_object(json);
        write_text(json, "op", op_name(op->kind));
        write_text(json, "part", part_name(op->part));
        write_text(json, "layer", op->layer);
        write_text(json, "kernel", *profile->ops[o].kernel ? profile->ops[o].kernel : NULL);
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
    write_text(json, "program", text);
}

static void write_disturbed(struct json_writer *json, const struct watch *watch)
{
    struct text notes = {0};
    watch_note(watch, &notes);
    write_text(json, "disturbed", notes.length ? text_of(&notes) + 2 : NULL);
    text_free(&notes);
}

void profiled_json(const struct profiled *profiled, struct text *out)
{
    const struct inside *inside = profiled->inside;
    double step_ns = inside_step_ns(inside);
    struct json_writer json;

    json_begin(&json, out);
    json_object(&json);
    write_text(&json, "model", profiled->task->network->name);
    write_text(&json, "phase", profiled->phase);
    write_real(&json, "batch", profiled->task->batch);
    write_text(&json, "backend", profiled->backend);
    if (profiled->threads)
        write_real(&json, "threads", profiled->threads);
    write_real(&json, "launches", (double)inside->launches);
    write_real(&json, "timed_ns", inside->time_ns.median);
    write_real(&json, "floor_ns", inside->floor_ns);
    write_real(&json, "watched_ns", step_ns);
    write_real(&json, "watched_steps", inside->profiles[0].steps);
    write_real(&json, "missing", inside_missing(inside));
    write_text(&json, "merged", inside->merged[0] ? inside->merged : NULL);
    write_disturbed(&json, &inside->watch);
    json_key(&json, "programs");
    json_array(&json);
    for (int32_t p = 0; p < inside->count; p++) {
        const struct profile *profile = &inside->profiles[p];
        json_object(&json);
        write_text(&json, "name", profile->program->name);
        write_hash(&json, profile->program->hash);
        write_parts(&json, profile, step_ns);
        write_ops(&json, profile, step_ns);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    text_add(out, "\n");
}
