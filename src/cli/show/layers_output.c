/* layers_output.c: see layers_output.h. */
#include "cli/show/layers_output.h"

#include "base/json.h"
#include "cli/table/show_figure.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "record/names.h"

#include <math.h>
#include <string.h>

enum { GAPS_SHOWN = 8, CELLS = 1 + 3 * LAYER_SIDES };
static const double TOO_LONG = 0.05; /* of a step: watched rows take so much more than it */

/* "− 12 µs" where it is negative. */
static void add_signed(struct text *out, double ns)
{
    if (ns < 0)
        text_add(out, "− ");
    show_time(out, fabs(ns));
}

/* "+ 12 µs"; "–" for NaN. */
static void add_difference(struct text *out, double ns)
{
    if (isnan(ns)) {
        text_add(out, "–");
        return;
    }
    text_add(out, ns < 0 ? "− " : "+ ");
    text_add_time(out, fabs(ns));
}

static const struct record *record_of(const struct layered *layered, const char *framework)
{
    for (size_t i = 0; i < layered->row_count; i++)
        if (strcmp(layered->rows[i].record->point.framework, framework) == 0)
            return layered->rows[i].record;
    return NULL;
}

/* Of the sides: who is compared with the first. */
static bool is_compared(const struct layers *layers, int32_t side)
{
    return side > 0 && !layers->sides[0].absent && !layers->sides[side].absent;
}

static void add_columns(struct show_table *table, const struct layers *layers)
{
    const int name = show_table_column(table, "layer", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_flex(table, name, 26);
    for (int32_t s = 0; s < layers->side_count; s++) {
        show_table_column(table, layers->sides[s].name, SHOW_RIGHT, SHOW_ALWAYS, 0);
        if (is_compared(layers, s))
            show_table_column(table, "difference", SHOW_RIGHT, 90 - s, 0);
    }
    for (int32_t s = 0; s < layers->side_count; s++)
        if (!layers->sides[s].absent)
            show_table_flex(table,
                            show_table_column(
                                table, arena_format(&table->arena, "in %s", layers->sides[s].name),
                                SHOW_LEFT, 50 - s, 0),
                            12);
}

/* Times of all sides, of a group, the rest or the step. */
struct times {
    const char *name;
    double ns[LAYER_SIDES];
    const struct layer_group *group; /* or NULL */
};

static void add_times(struct show_table *table, const struct layers *layers,
                      const struct times *times)
{
    struct text cells[CELLS] = {{0}};
    int count = 0;
    text_add(&cells[count++], times->name);
    for (int32_t s = 0; s < layers->side_count; s++) {
        struct text *cell = &cells[count++];
        add_signed(cell, times->ns[s]);
        if (times->group && *times->group->notes[s])
            show_table_hang(show_table_mark(table, times->group->notes[s]), cell);
        if (is_compared(layers, s)) {
            const bool none = isnan(times->ns[0]) && isnan(times->ns[s]);
            const double base = isnan(times->ns[0]) ? 0 : times->ns[0];
            const double own = isnan(times->ns[s]) ? 0 : times->ns[s];
            add_difference(&cells[count++], none ? (double)NAN : own - base);
        }
    }
    for (int32_t s = 0; s < layers->side_count; s++)
        if (!layers->sides[s].absent)
            text_add(&cells[count++], times->group ? times->group->ops[s] : "");
    show_table_texts(table, cells, count);
}

static void add_groups(struct show_table *table, const struct layers *layers, enum part part,
                       bool indented)
{
    for (int32_t g = 0; g < layers->group_count; g++) {
        const struct layer_group *group = &layers->groups[g];
        struct times times = {.name = group->name, .group = group};
        struct text name = {0};
        if (group->part != part || (indented && strcmp(group->name, part_name(part)) == 0))
            continue;
        memcpy(times.ns, group->ns, sizeof times.ns);
        text_printf(&name, "%s%s", indented ? "  " : "", group->name);
        times.name = text_of(&name);
        add_times(table, layers, &times);
        table->failed |= name.failed;
        text_free(&name);
    }
}

/* What each side takes in one part of the step; false where no side has it. */
static bool part_times(const struct layers *layers, enum part part, struct times *out)
{
    bool any = false;
    *out = (struct times){.name = part_name(part)};
    for (int32_t s = 0; s < layers->side_count; s++) {
        out->ns[s] = (double)NAN;
        for (int32_t r = 0; r < layers->sides[s].row_count; r++) {
            const struct layer_row *row = &layers->sides[s].rows[r];
            if (row->part == part)
                out->ns[s] = (isnan(out->ns[s]) ? 0 : out->ns[s]) + row->ns;
        }
        any = any || !isnan(out->ns[s]);
    }
    return any;
}

static void add_whole(struct show_table *table, const struct layers *layers)
{
    struct times outside = {.name = "outside of layers"}, step = {.name = "the step, unwatched"};
    for (int32_t s = 0; s < layers->side_count; s++) {
        outside.ns[s] = layers_outside(&layers->sides[s]);
        step.ns[s] = layers->sides[s].step_ns;
    }
    show_table_line(table, "");
    add_times(table, layers, &outside);
    add_times(table, layers, &step);
}

static void add_title(const struct layered *layered, struct text *title)
{
    const struct point *point = &layered->rows[0].record->point;
    const char *folder = strrchr(point->model, '/');
    text_printf(title, "%s, %s, batch %lld", folder ? folder + 1 : point->model, point->phase,
                (long long)point->batch);
    if (point->threads > 0)
        text_printf(title, ", %lld thread%s", (long long)point->threads,
                    point->threads == 1 ? "" : "s");
    if (*point->unit_name)
        text_printf(title, ", %s", point->unit_name);
}

static void print_table(const struct layered *layered, struct text *out)
{
    const struct layers *layers = layered->layers;
    struct show_table table = {.width = wrap_screen()};
    struct times times;
    add_title(layered, &table.title);
    add_columns(&table, layers);
    const bool trains = part_times(layers, PART_BACKWARD, &times);
    for (int part = 0; part < PART_COUNT; part++) {
        if (trains && part_times(layers, (enum part)part, &times)) {
            show_table_line(&table, "");
            add_times(&table, layers, &times);
        }
        add_groups(&table, layers, (enum part)part, trains);
    }
    add_whole(&table, layers);
    show_table_print(&table, out);
    out->failed |= table.failed || table.title.failed;
    show_table_free(&table);
}

static void add_line(struct text *out, const char *lead, struct text *line)
{
    wrap_add(out, lead, text_of(line), wrap_screen());
    out->failed |= line->failed;
    text_free(line);
}

/* "conv1 + relu1 (backward)"; what a side alone has is told. */
static void add_gap_name(const struct layers *layers, const struct layer_gap *gap, int32_t side,
                         bool trains, struct text *line)
{
    const struct layer_group *group = gap->group;
    if (!group) {
        text_add(line, "outside of layers");
        return;
    }
    text_add(line, group->name);
    if (trains && strcmp(group->name, part_name(group->part)) != 0)
        text_printf(line, ", %s", part_name(group->part));
    if (isnan(group->ns[0]) != isnan(group->ns[side]))
        text_printf(line, " (only in %s)", layers->sides[isnan(group->ns[0]) ? side : 0].name);
}

/* The parts of the gap, which sum to it: the largest ones, then the others together. */
static enum status print_gaps(struct layers *layers, int32_t side, struct text *out)
{
    const struct layer_side *base = &layers->sides[0], *own = &layers->sides[side];
    const double gap_ns = own->step_ns - base->step_ns;
    const int32_t count = layers->group_count + 1;
    struct times times;
    struct layer_gap *gaps;
    struct show_table table = {.width = wrap_screen(), .indent = 2};
    double others_ns = 0;
    TRY(layers_gaps(layers, 0, side, &gaps));
    const bool trains = part_times(layers, PART_BACKWARD, &times);
    show_table_flex(&table, show_table_column(&table, "", SHOW_LEFT, SHOW_ALWAYS, 0), 26);
    show_table_column(&table, "difference", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "of the gap", SHOW_RIGHT, SHOW_ALWAYS, 0);
    for (int32_t g = 0; g <= count; g++) {
        struct text cells[3] = {{0}};
        double ns = g < count ? gaps[g].ns : others_ns;
        if (g < count && g >= GAPS_SHOWN && count > GAPS_SHOWN + 1) {
            others_ns += ns;
            continue;
        }
        if (g == count && count <= GAPS_SHOWN + 1)
            break;
        if (g < count)
            add_gap_name(layers, &gaps[g], side, trains, &cells[0]);
        else
            text_printf(&cells[0], "%d others together", count - GAPS_SHOWN);
        add_difference(&cells[1], ns);
        const double share = round(100 * ns / gap_ns);
        text_printf(&cells[2], "%s%.0f %%", share < 0 ? "− " : "", fabs(share));
        show_table_row(&table, (const char *const[]){text_of(&cells[0]), text_of(&cells[1]),
                                                     text_of(&cells[2])});
        for (int i = 0; i < 3; i++)
            text_free(&cells[i]);
    }
    show_table_print(&table, out);
    out->failed |= table.failed;
    show_table_free(&table);
    return STATUS_OK;
}

/* "PyTorch takes 63 µs more than prony, 1.8 × as long. …" */
static enum status print_gap(struct layers *layers, int32_t side, struct text *out)
{
    const struct layer_side *base = &layers->sides[0], *own = &layers->sides[side];
    const double gap_ns = own->step_ns - base->step_ns;
    const double noise_ns = base->interval_ns + own->interval_ns;
    struct text line = {0}, time = {0};
    text_add_time(&time, fabs(gap_ns));
    text_add(out, "\n");
    if (!(fabs(gap_ns) > noise_ns)) {
        text_printf(&line, "%s and %s take the same time, within the noise.",
                    framework_title(base->name), framework_title(own->name));
        add_line(out, "", &line);
        text_free(&time);
        return STATUS_OK;
    }
    text_printf(&line, "%s takes %s %s than %s, %.3g × as long. The gap arises here:",
                framework_title(own->name), text_of(&time), gap_ns > 0 ? "more" : "less",
                framework_title(base->name), own->step_ns / base->step_ns);
    text_free(&time);
    add_line(out, "", &line);
    return print_gaps(layers, side, out);
}

/* How a side was watched, and what that does to its rows. */
static void print_watched(const struct layer_side *side, struct text *out)
{
    struct text line = {0};
    if (side->absent) {
        text_printf(&line, "%s: no layers: %s", side->name, side->absent);
        add_line(out, "", &line);
        return;
    }
    text_printf(&line, "%s: %d steps watched apart", side->name, side->steps);
    if (!isnan(side->whole_ns)) {
        text_add(&line, ", ");
        text_add_time(&line, side->whole_ns);
        text_add(&line, " each");
    }
    if (side->how)
        text_printf(&line, ": %s", side->how);
    const double more = side->watched_ns / side->step_ns - 1;
    if (more > TOO_LONG)
        text_printf(&line,
                    "; watched, its rows take %.0f %% more than the step takes unwatched, so that "
                    "time outside of layers is negative",
                    100 * more);
    add_line(out, "", &line);
}

/* Who could not run, and who does not run as its users run it. */
static void print_record(const struct record *record, struct text *out)
{
    const char *name = record->point.framework;
    struct text line = {0};
    if (record->status != RECORD_OK) {
        text_printf(&line, "%s: %s: %s", name, record_status_name(record->status),
                    record->reason ? record->reason : "no reason given");
        add_line(out, "", &line);
    }
    if (record->handicap) {
        text_printf(&line, "%s does not run as its users run it: %s", name, record->handicap);
        add_line(out, "", &line);
    }
}

/* Whose results nobody checked, once for each reason. */
static void print_unchecked(const struct layered *layered, size_t number, struct text *out)
{
    const struct record *record = layered->rows[number].record;
    const char *reason = record->check.reason;
    struct text line = {0};
    if (record->status != RECORD_OK || record->check.verdict != RECORD_UNCHECKED)
        return;
    for (size_t i = 0; i < number; i++)
        if (layered->rows[i].record->status == RECORD_OK &&
            text_equal(layered->rows[i].record->check.reason, reason))
            return;
    text_printf(&line, "the results are not checked: %s", reason ? reason : "no reason given");
    add_line(out, "", &line);
}

/* Once: they were timed in turns. */
static void print_disturbed(const struct layered *layered, struct text *out)
{
    struct text line = {0};
    const char *by = "";
    for (size_t i = 0; i < layered->row_count && !*by; i++)
        if (layered->rows[i].record->status == RECORD_OK)
            by = record_disturbed(layered->rows[i].record);
    if (!*by)
        return;
    text_printf(&line,
                "timed beside %s: a step, and with it the time outside of layers, may be too long",
                by);
    add_line(out, "", &line);
}

enum status layered_text(const struct layered *layered, struct text *out)
{
    struct layers *layers = layered->layers;
    if (layers->side_count)
        print_table(layered, out);
    for (int32_t s = 1; s < layers->side_count; s++)
        if (is_compared(layers, s))
            TRY(print_gap(layers, s, out));
    text_add(out, layers->side_count ? "\n" : "");
    for (int32_t s = 0; s < layers->side_count; s++)
        print_watched(&layers->sides[s], out);
    for (size_t i = 0; i < layered->row_count; i++)
        print_record(layered->rows[i].record, out);
    for (size_t i = 0; i < layered->row_count; i++)
        print_unchecked(layered, i, out);
    print_disturbed(layered, out);
    return STATUS_OK;
}

static void write_side(struct json_writer *json, const struct layered *layered,
                       const struct layer_side *side)
{
    const struct record *record = record_of(layered, side->name);
    json_object(json);
    json_put_text(json, "framework", side->name);
    json_put_real(json, "step_ns", side->step_ns);
    json_put_real(json, "interval_ns", side->interval_ns);
    json_put_real(json, "watched_ns", side->absent ? (double)NAN : side->watched_ns);
    json_put_real(json, "watched_step_ns", side->whole_ns);
    json_put_real(json, "outside_ns", layers_outside(side));
    json_put_int(json, "steps", side->steps);
    json_put_text(json, "how", side->how);
    json_put_text(json, "absent", side->absent);
    json_put_text(json, "disturbed", record ? record_disturbed(record) : NULL);
    json_put_text(json, "handicap", record ? record->handicap : NULL);
    json_put_bool(json, "right", record && record->check.verdict == RECORD_RIGHT);
    json_end(json);
}

static void write_group(struct json_writer *json, const struct layers *layers,
                        const struct layer_group *group)
{
    json_object(json);
    json_put_text(json, "name", group->name);
    json_put_text(json, "part", part_name(group->part));
    json_put_bool(json, "layer", !group->outside);
    json_put_int(json, "layers", group->atoms);
    json_key(json, "frameworks");
    json_array(json);
    for (int32_t s = 0; s < layers->side_count; s++) {
        json_object(json);
        json_put_text(json, "framework", layers->sides[s].name);
        json_put_real(json, "ns", group->ns[s]);
        json_put_text(json, "ops", group->ops[s]);
        json_put_text(json, "note", *group->notes[s] ? group->notes[s] : NULL);
        json_end(json);
    }
    json_end(json);
    json_end(json);
}

static enum status write_gaps(struct json_writer *json, struct layers *layers)
{
    json_key(json, "gaps");
    json_array(json);
    for (int32_t s = 1; s < layers->side_count; s++) {
        struct layer_gap *gaps;
        if (!is_compared(layers, s))
            continue;
        TRY(layers_gaps(layers, 0, s, &gaps));
        json_object(json);
        json_put_text(json, "from", layers->sides[0].name);
        json_put_text(json, "to", layers->sides[s].name);
        json_put_real(json, "ns", layers->sides[s].step_ns - layers->sides[0].step_ns);
        json_key(json, "parts");
        json_array(json);
        for (int32_t g = 0; g <= layers->group_count; g++) {
            json_object(json);
            json_put_text(json, "name", gaps[g].group ? gaps[g].group->name : "outside of layers");
            json_put_text(json, "part", gaps[g].group ? part_name(gaps[g].group->part) : NULL);
            json_put_real(json, "ns", gaps[g].ns);
            json_end(json);
        }
        json_end(json);
        json_end(json);
    }
    json_end(json);
    return STATUS_OK;
}

enum status layered_json(const struct layered *layered, struct text *out)
{
    struct layers *layers = layered->layers;
    const struct point *point = &layered->rows[0].record->point;
    struct json_writer json;
    json_begin(&json, out);
    json_object(&json);
    json_put_text(&json, "model", point->model);
    json_put_text(&json, "phase", point->phase);
    json_put_int(&json, "batch", point->batch);
    json_put_int(&json, "threads", point->threads);
    json_key(&json, "frameworks");
    json_array(&json);
    for (int32_t s = 0; s < layers->side_count; s++)
        write_side(&json, layered, &layers->sides[s]);
    json_end(&json);
    json_key(&json, "layers");
    json_array(&json);
    for (int32_t g = 0; g < layers->group_count; g++)
        write_group(&json, layers, &layers->groups[g]);
    json_end(&json);
    TRY(write_gaps(&json, layers));
    json_key(&json, "left_out");
    json_array(&json);
    for (size_t i = 0; i < layered->row_count; i++) {
        const struct record *record = layered->rows[i].record;
        if (record->status == RECORD_OK)
            continue;
        json_object(&json);
        json_put_text(&json, "framework", record->point.framework);
        json_put_text(&json, "reason", record->reason);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    text_add(out, "\n");
    return STATUS_OK;
}
