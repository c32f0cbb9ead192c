/* compare_profiles.c: see compare_profiles.h. A trace becomes the object that is kept of it, so
 * both sides are of one form: the members of traced_json. */
#include "cli/program/compare_profiles.h"

#include "base/file.h"
#include "base/memory.h"
#include "cli/program/profile_rows.h"
#include "cli/program/trace_output.h"
#include "cli/screen.h"
#include "cli/store_file.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "record/profile_line.h"
#include "trace/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 20 /* rows; the rest is one */ };

/* ---- reading --------------------------------------------------------------------------------- */

/* JSON is a trace when it has events, "ph" says of what kind; other formats are none of records. */
static bool has_events(const char *path)
{
    enum { PIECE = 1 << 16 };
    static const char record[] = "{\"prony\"", event[] = "\"ph\"";
    struct file_reader reader = {0};
    char *bytes;
    bool found = false;
    if (file_open(&reader, path) != STATUS_OK)
        return false;
    const size_t length = reader.length < PIECE ? reader.length : PIECE;
    if ((bytes = mem_alloc(PIECE)) &&
        file_read_part(&reader, path, 0, length, bytes) == STATUS_OK &&
        memmem(bytes, length, record, sizeof record - 1) != bytes)
        found = memmem(bytes, length, event, sizeof event - 1) || !strchr("{[ \t\r\n", bytes[0]);
    mem_free(bytes);
    file_close(&reader);
    return found;
}

bool profile_is_one(const char *word)
{
    int64_t number;
    if (file_exists(word))
        return trace_is_one(word) && has_events(word);
    return text_to_int(word, &number) && number > 0;
}

static enum status parse(struct arena *arena, const char *name, const struct text *text,
                         const struct json **out)
{
    struct json *tree;
    TRY(json_parse(arena, name, text_of(text), text->length, &tree));
    *out = tree;
    return STATUS_OK;
}

static enum status read_trace(struct arena *arena, const char *path, const struct json **out)
{
    struct trace trace;
    struct advice advice = {0};
    struct text text = {0};
    TRY(trace_read(path, &trace));
    enum status status = advise_budget(&trace, &advice);
    if (status == STATUS_OK)
        status = traced_json(&trace, &advice, traced_title(&trace, path), &text);
    if (status == STATUS_OK)
        status = text_done(&text);
    if (status == STATUS_OK)
        status = parse(arena, path, &text, out);
    text_free(&text);
    advice_free(&advice);
    trace_free(&trace);
    return status;
}

static enum status read_kept(struct arena *arena, const char *store_path, int64_t id,
                             const struct json **out)
{
    struct store *store;
    struct text line = {0};
    struct record record;
    TRY(store_file_open(store_path, STORE_READ, &store));
    enum status status = store_get(store, id, &line);
    if (status == STATUS_OK)
        status = record_read(arena, "the store", (long)id, text_of(&line), line.length, &record);
    if (status == STATUS_OK && record.kind != RECORD_PROFILE)
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "record %lld is no profile, expected one that prony profile --keep "
                             "has kept",
                             (long long)id);
    if (status == STATUS_OK)
        *out = record.profile;
    text_free(&line);
    store_close(store);
    return status;
}

static enum status read_side(struct arena *arena, const struct profiles_wish *wish,
                             const char *word, const struct json **out)
{
    int64_t id;
    if (file_exists(word))
        return read_trace(arena, word, out);
    if (!text_to_int(word, &id))
        FAIL(STATUS_INPUT, "%s: found no such file, expected a trace or the number of a profile",
             word);
    return read_kept(arena, wish->store, id, out);
}

/* ---- for people ------------------------------------------------------------------------------ */

/* One unit for all figures, by the largest. */
struct unit {
    const char *name;
    double ns;
    int digits;
};

static struct unit unit_for(double largest_ns)
{
    struct unit unit = largest_ns >= 1e9   ? (struct unit){"s", 1e9, 0}
                       : largest_ns >= 1e6 ? (struct unit){"ms", 1e6, 0}
                                           : (struct unit){"µs", 1e3, 0};
    const double largest = largest_ns / unit.ns;
    unit.digits = largest < 100 ? 3 : 1;
    return unit;
}

static void add_cell(struct text *cell, const struct unit *unit, double ns, bool sign)
{
    const double shown = ns / unit->ns;
    const bool nothing = fabs(shown) < 0.5 * pow(10, -unit->digits);
    if (isnan(ns))
        text_add(cell, "–");
    else if (nothing && sign)
        text_add(cell, "0");
    else
        text_printf(cell, sign ? "%+.*f" : "%.*f", unit->digits, shown);
}

static void add_row(struct show_table *table, const struct unit *unit,
                    const struct profile_row *row, const char *name)
{
    struct text before = {0}, after = {0}, change = {0}, ratio = {0};
    add_cell(&before, unit, row->before_ns, false);
    add_cell(&after, unit, row->after_ns, false);
    add_cell(&change, unit, row->change_ns, true);
    if (row->before_ns > 0 && row->after_ns > 0)
        text_printf(&ratio, "%.3g", row->after_ns / row->before_ns);
    show_table_row(table, (const char *const[]){name, text_of(&before), text_of(&after),
                                                text_of(&change), text_of(&ratio)});
    text_free(&before);
    text_free(&after);
    text_free(&change);
    text_free(&ratio);
}

static void add_heading(struct text *heading, const char *word, const struct unit *unit)
{
    text_printf(heading, "%s (%s)", word, unit->name);
}

/* The rows that changed most; what is left is one row. */
static enum status add_table(const struct profile_rows *rows, const char *what,
                             const struct unit *unit, struct text *out)
{
    struct show_table table = {.width = wrap_screen()};
    struct text headings[3] = {{0}};
    static const char *const words[] = {"before", "after", "change"};
    struct profile_row rest = {0};
    size_t left = 0;
    for (int i = 0; i < 3; i++)
        add_heading(&headings[i], words[i], unit);
    show_table_column(&table, what, SHOW_LEFT, SHOW_ALWAYS, 0);
    for (int i = 0; i < 3; i++)
        show_table_column(&table, text_of(&headings[i]), SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(&table, "after ÷ before", SHOW_RIGHT, 40, 0);
    for (size_t i = 0; i < rows->count; i++) {
        const struct profile_row *row = &rows->list[i];
        struct text cut = {0};
        if (i >= SHOWN) {
            rest.before_ns += isnan(row->before_ns) ? 0 : row->before_ns;
            rest.after_ns += isnan(row->after_ns) ? 0 : row->after_ns;
            rest.change_ns += row->change_ns;
            left++;
            continue;
        }
        wrap_add_cut(&cut, row->name, (size_t)(table.width > 80 ? table.width - 62 : 36));
        add_row(&table, unit, row, text_of(&cut));
        text_free(&cut);
    }
    if (left) {
        char name[40];
        snprintf(name, sizeof name, "%zu others", left);
        add_row(&table, unit, &rest, name);
    }
    show_table_print(&table, out);
    enum status status = show_table_done(&table);
    show_table_free(&table);
    for (int i = 0; i < 3; i++)
        text_free(&headings[i]);
    return status;
}

static void add_side(const char *lead, const struct profile_side *side, int width, struct text *out)
{
    struct text line = {0};
    text_add(&line, side->title);
    if (side->steps)
        text_printf(&line, ", %lld steps", (long long)side->steps);
    if (side->unwatched)
        text_add(&line, ", timed unwatched");
    wrap_add(out, lead, text_of(&line), width);
    text_free(&line);
}

static void add_gained(const char *where, const struct profile_rows *rows, struct text *line)
{
    text_printf(line, "%s ", where);
    text_add_time(line, rows->gained_ns);
    text_add(line, " gained, ");
    text_add_time(line, rows->lost_ns);
    text_add(line, " lost");
}

static void add_sum(const struct profile_pair *pair, int width, struct text *out)
{
    const double change_ns = pair->after.ns - pair->before.ns;
    struct text line = {0};
    text_printf(&line, "%s takes ", pair->by_step ? "a step" : "the window");
    text_add_time(&line, pair->after.ns);
    text_add(&line, " instead of ");
    text_add_time(&line, pair->before.ns);
    text_add(&line, ": ");
    text_add_time(&line, fabs(change_ns));
    text_printf(&line, " %s", change_ns <= 0 ? "gained" : "lost");
    if (pair->before.ns > 0 && pair->after.ns > 0)
        text_printf(&line, ", %.3g × as fast", pair->before.ns / pair->after.ns);
    wrap_add(out, "", text_of(&line), width);
    text_clear(&line);
    add_gained("in parts of the budget", &pair->parts, &line);
    if (pair->rows.count) {
        text_add(&line, "; ");
        add_gained("in the rows", &pair->rows, &line);
    }
    wrap_add(out, "", text_of(&line), width);
    text_free(&line);
}

static enum status add_text(const struct profile_pair *pair, struct text *out)
{
    const int width = wrap_screen();
    const struct unit unit = unit_for(fmax(pair->before.window_ns, pair->after.window_ns));
    add_side("before  ", &pair->before, width, out);
    add_side("after   ", &pair->after, width, out);
    if (pair->before.steps && !pair->by_step)
        wrap_add(out, "", "steps were found before only, so whole runs are compared", width);
    else if (pair->after.steps && !pair->by_step)
        wrap_add(out, "", "steps were found after only, so whole runs are compared", width);
    text_add(out, "\n");
    TRY(add_table(&pair->parts, pair->by_step ? "of a step" : "of the window", &unit, out));
    if (pair->rows.count) {
        text_add(out, "\n");
        TRY(add_table(&pair->rows, pair->what, &unit, out));
    }
    text_add(out, "\n");
    add_sum(pair, width, out);
    return STATUS_OK;
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void put_side(struct json_writer *json, const char *key, const struct profile_side *side)
{
    json_key(json, key);
    json_object(json);
    json_put_text(json, "title", side->title);
    json_put_int(json, "steps", side->steps);
    json_put_real(json, "ns", side->ns);
    json_put_bool(json, "unwatched", side->unwatched);
    json_end(json);
}

static void put_rows(struct json_writer *json, const char *key, const struct profile_rows *rows)
{
    json_key(json, key);
    json_array(json);
    for (size_t i = 0; i < rows->count; i++) {
        const struct profile_row *row = &rows->list[i];
        json_object(json);
        json_put_text(json, "name", row->name);
        json_put_real(json, "before_ns", row->before_ns);
        json_put_real(json, "after_ns", row->after_ns);
        json_put_real(json, "change_ns", row->change_ns);
        json_end(json);
    }
    json_end(json);
}

static void add_json(const struct profile_pair *pair, struct text *out)
{
    struct json_writer json;
    json_begin(&json, out);
    json_object(&json);
    put_side(&json, "before", &pair->before);
    put_side(&json, "after", &pair->after);
    json_put_text(&json, "per", pair->by_step ? "step" : "window");
    json_put_real(&json, "change_ns", pair->after.ns - pair->before.ns);
    put_rows(&json, "budget", &pair->parts);
    put_rows(&json, "rows", &pair->rows);
    json_put_real(&json, "gained_ns", pair->rows.gained_ns);
    json_put_real(&json, "lost_ns", pair->rows.lost_ns);
    json_end(&json);
    text_add(out, "\n");
}

enum status compare_profiles(const struct profiles_wish *wish)
{
    struct arena arena = {0};
    struct text out = {0};
    struct profile_pair pair = {0};
    const struct json *before, *after;
    enum status status;
    TRY_OR(done, read_side(&arena, wish, wish->before, &before));
    TRY_OR(done, read_side(&arena, wish, wish->after, &after));
    TRY_OR(done, profile_pair_make(&arena, before, after, &pair));
    if (wish->json)
        add_json(&pair, &out);
    else
        TRY_OR(done, add_text(&pair, &out));
    TRY_OR(done, text_done(&out));
    fputs(text_of(&out), stdout);
done:
    text_free(&out);
    arena_free(&arena);
    return status;
}
