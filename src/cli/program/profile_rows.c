/* profile_rows.c: see profile_rows.h. */
#include "cli/program/profile_rows.h"

#include "trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum status read_side(const struct json *profile, struct profile_side *side)
{
    const struct json *budget = json_get(profile, "budget");
    *side = (struct profile_side){.title = json_text(profile, "title", "a profile"),
                                  .steps = json_int(profile, "steps", 0),
                                  .ns = json_real(profile, "step_ns", (double)NAN),
                                  .window_ns = json_real(budget, "window_ns", 0),
                                  .unwatched = json_bool(profile, "unwatched", false)};
    if (!(side->window_ns > 0))
        FAIL(STATUS_INPUT, "%s: found no time in it, expected a profile of a run", side->title);
    return STATUS_OK;
}

/* The time of a step: unwatched where both know it, else as both were watched. */
static void choose_times(struct profile_pair *pair)
{
    struct profile_side *const sides[] = {&pair->before, &pair->after};
    const bool unwatched = pair->before.unwatched && pair->after.unwatched;
    pair->by_step = pair->before.steps > 0 && pair->after.steps > 0;
    for (int i = 0; i < 2; i++) {
        if (pair->by_step)
            sides[i]->window_ns /= (double)sides[i]->steps;
        sides[i]->unwatched = unwatched;
        if (!unwatched || isnan(sides[i]->ns))
            sides[i]->ns = sides[i]->window_ns;
    }
}

static struct profile_row *find_row(struct profile_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->list[i].name, name) == 0)
            return &rows->list[i];
    rows->list[rows->count] = (struct profile_row){name, (double)NAN, (double)NAN, 0};
    return &rows->list[rows->count++];
}

static void add_to(double *sum, double ns)
{
    *sum = isnan(*sum) ? ns : *sum + ns;
}

static void add_change(struct profile_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct profile_row *row = &rows->list[i];
        row->change_ns = (isnan(row->after_ns) ? 0 : row->after_ns) -
                         (isnan(row->before_ns) ? 0 : row->before_ns);
        rows->gained_ns += fmax(-row->change_ns, 0);
        rows->lost_ns += fmax(row->change_ns, 0);
    }
}

/* ---- the budget ------------------------------------------------------------------------------ */

static void add_parts(const struct json *profile, double steps, bool after,
                      struct profile_rows *rows)
{
    const struct json *budget = json_get(profile, "budget");
    for (const struct json *part = budget ? budget->first : NULL; part; part = part->next) {
        if (strcmp(part->key, "window_ns") == 0 || !(part->number > 0))
            continue;
        struct profile_row *row = find_row(rows, part->key);
        add_to(after ? &row->after_ns : &row->before_ns, part->number / steps);
    }
}

/* ---- ops, kernels, functions ----------------------------------------------------------------- */

static enum status add_rows(struct arena *arena, const struct json *list, double steps, bool after,
                            struct profile_rows *rows)
{
    for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
        const char *kept;
        struct text name = {0};
        trace_add_name(json_text(one, "name", ""), &name);
        kept = arena_text(arena, name.length ? text_of(&name) : "without a name");
        text_free(&name);
        NEED(kept);
        struct profile_row *row = find_row(rows, kept);
        add_to(after ? &row->after_ns : &row->before_ns, json_real(one, "ns", 0) / steps);
    }
    return STATUS_OK;
}

static int most_changed(const void *a, const void *b)
{
    const struct profile_row *x = a, *y = b;
    const double first = fabs(x->change_ns), second = fabs(y->change_ns);
    return first != second ? (first > second ? -1 : 1) : strcmp(x->name, y->name);
}

static size_t count_of(const struct json *list)
{
    return list ? list->count : 0;
}

static enum status make_rows(struct arena *arena, const struct json *before,
                             const struct json *after, const double steps[2],
                             struct profile_pair *pair)
{
    struct profile_rows *rows = &pair->rows;
    const char *key = "kernels";
    pair->what = "ops and kernels";
    if (!count_of(json_get(before, key)) && !count_of(json_get(after, key))) {
        key = "functions";
        pair->what = "ops and functions";
    }
    const struct json *const lists[] = {json_get(before, key), json_get(after, key)};
    NEED(rows->list =
             arena_array(arena, count_of(lists[0]) + count_of(lists[1]) + 1, sizeof *rows->list));
    TRY(add_rows(arena, lists[0], steps[0], false, rows));
    TRY(add_rows(arena, lists[1], steps[1], true, rows));
    add_change(rows);
    qsort(rows->list, rows->count, sizeof *rows->list, most_changed);
    return STATUS_OK;
}

enum status profile_pair_make(struct arena *arena, const struct json *before,
                              const struct json *after, struct profile_pair *out)
{
    *out = (struct profile_pair){0};
    TRY(read_side(before, &out->before));
    TRY(read_side(after, &out->after));
    choose_times(out);
    const double steps[2] = {out->by_step ? (double)out->before.steps : 1,
                             out->by_step ? (double)out->after.steps : 1};
    NEED(out->parts.list = arena_array(
             arena, count_of(json_get(before, "budget")) + count_of(json_get(after, "budget")) + 1,
             sizeof *out->parts.list));
    add_parts(before, steps[0], false, &out->parts);
    add_parts(after, steps[1], true, &out->parts);
    add_change(&out->parts);
    return make_rows(arena, before, after, steps, out);
}
