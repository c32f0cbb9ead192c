/* cmd_compare.c: prony compare: what became faster or slower between two files of records.
 *
 * Results of the same configuration are matched; of several in one file the last counts. Two files
 * come from two runs, so this can see less than `bench --against`, which takes turns. */
#include "base/file.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "record/import.h"
#include "record/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t FILE_MOST = (size_t)1 << 30;

/* The results of a file, in its order: what was measured, and what failed. */
struct results {
    struct result {
        struct point point;
        struct stats time_ns;
        bool failed;
    } * list;
    size_t count, room;
};

/* What is found out about a run does not tell configurations apart, but the machine does. What
 * failed may not have come so far as to know its instructions. */
static bool same_configuration(const struct point *a, const struct point *b, bool anywhere)
{
    struct point left = *a, right = *b;
    memcpy(left.software, right.software, sizeof left.software);
    if (!left.isa[0] || !right.isa[0])
        memcpy(left.isa, right.isa, sizeof left.isa);
    if (anywhere)
        memcpy(left.unit_name, right.unit_name, sizeof left.unit_name);
    if (anywhere)
        memcpy(left.server, right.server, sizeof left.server);
    return point_compare(&left, &right) == 0;
}

static struct result *results_find(const struct results *results, const struct point *point,
                                   bool anywhere)
{
    for (size_t i = 0; i < results->count; i++)
        if (same_configuration(&results->list[i].point, point, anywhere))
            return &results->list[i];
    return NULL;
}

static enum status results_add(void *context, const struct record *record, const char *line,
                               size_t length)
{
    struct results *results = context;
    (void)line;
    (void)length;
    bool failed = record->status == RECORD_FAILED;
    if (record->kind != RECORD_RESULT || record->status == RECORD_SKIPPED ||
        (!failed && isnan(record->time_ns.median)))
        return STATUS_OK;
    struct result *known = results_find(results, &record->point, false);
    if (!known && results->count == results->room) {
        size_t room = results->room ? 2 * results->room : 64;
        struct result *grown = mem_grow(results->list, room, sizeof *grown);
        NEED(grown);
        results->list = grown;
        results->room = room;
    }
    *(known ? known : &results->list[results->count++]) =
        (struct result){record->point, record->time_ns, failed};
    return STATUS_OK;
}

static enum status results_read(const char *path, struct results *out)
{
    struct text text = {0}, imported = {0};
    bool foreign;
    enum status status;

    TRY_OR(done, file_read(path, FILE_MOST, &text));
    TRY_OR(done, import_lines(path, text_of(&text), text.length, &foreign, &imported));
    const struct text *lines = foreign ? &imported : &text;
    TRY_OR(done, record_read_whole(path, text_of(lines), lines->length, results_add, out));
done:
    text_free(&text);
    text_free(&imported);
    return status;
}

static void print_comparison(const struct result *old, const struct result *new,
                             const struct comparison *found)
{
    struct text line = {0};
    text_add_time(&line, old->time_ns.median);
    text_add(&line, " → ");
    text_add_time(&line, new->time_ns.median);
    text_printf(&line, "  × %.3f", found->ratio);
    if (!isnan(found->low))
        text_printf(&line, " (%.3f … %.3f)", found->low, found->high);
    text_printf(&line, "  %-10s  ", verdict_name(found->verdict));
    point_label(&new->point, &line);
    puts(text_of(&line));
    text_free(&line);
}

static void print_lost(const struct result *result, const char *how)
{
    struct text line = {0};
    point_label(&result->point, &line);
    printf("measured before, %s: %s\n", how, text_of(&line));
    text_free(&line);
}

/* How many were measured in the old file of which the new one has nothing. */
static int print_gone(const struct results *old, const struct results *new)
{
    int gone = 0;
    for (size_t i = 0; i < old->count; i++) {
        const struct result *before = &old->list[i];
        if (before->failed || results_find(new, &before->point, false))
            continue;
        print_lost(before, "not now");
        gone++;
    }
    return gone;
}

/* What the files do not share, where nothing is shared: the machine, if that is all. */
static enum status nothing_compared(const struct results *old, const struct results *new)
{
    for (size_t i = 0; i < new->count; i++) {
        const struct point *now = &new->list[i].point;
        const struct result *before = results_find(old, now, true);
        if (before)
            FAIL(STATUS_INPUT,
                 "nothing was compared: the old file is of %s (%s), the new one of %s (%s)",
                 before->point.server, before->point.unit_name, now->server, now->unit_name);
    }
    FAIL(STATUS_INPUT, "the files have no configuration in common: nothing was compared");
}

static enum status compare_all(const struct results *old, const struct results *new, double share)
{
    int matched = 0, slower = 0, failed = 0, unjudged = 0;
    for (size_t i = 0; i < new->count; i++) {
        const struct result *now = &new->list[i], *before = results_find(old, &now->point, false);
        struct comparison found;
        if (!before || before->failed)
            continue;
        matched++;
        if (now->failed) {
            print_lost(now, "failed now");
            failed++;
            continue;
        }
        compare_results(&now->time_ns, &before->time_ns, COMPARE_MARGIN, &found);
        print_comparison(before, now, &found);
        slower += found.verdict == VERDICT_SLOWER && found.ratio > 1 + share;
        unjudged += isnan(found.low) && !(found.ratio <= 1 + share);
    }
    printf("%d configuration%s in both; %zu only in the old file, %zu only in the new one\n",
           matched, matched == 1 ? "" : "s", old->count - (size_t)matched,
           new->count - (size_t)matched);
    if (!matched)
        return nothing_compared(old, new);
    const int gone = isfinite(share) ? print_gone(old, new) : 0;
    if (failed && isfinite(share))
        FAIL(STATUS_WRONG, "%d of %d failed, and did not before", failed, matched);
    if (gone)
        FAIL(STATUS_WRONG, "%d of the old file %s not in the new one", gone,
             gone == 1 ? "is" : "are");
    if (slower && isfinite(share))
        FAIL(STATUS_WRONG, "%d of %d became slower by more than %g %%", slower, matched,
             100 * share);
    if (unjudged && isfinite(share))
        FAIL(STATUS_WRONG,
             "%d of %d cannot be judged: slower by more than %g %%, but measured too few times to "
             "have an interval (--seconds gives it more)",
             unjudged, matched, 100 * share);
    return STATUS_OK;
}

/* Status 1 says that something became slower: what cannot be read must not look like that. */
static enum status read_both(const char *const *paths, struct results *old, struct results *new)
{
    enum status status = results_read(paths[0], old);
    if (status == STATUS_OK)
        status = results_read(paths[1], new);
    return status == STATUS_IO ? status_prefix(STATUS_INPUT, "nothing was compared") : status;
}

enum status cmd_compare(struct cli *cli, int argc, const char *const *argv)
{
    double share = (double)INFINITY;
    struct arg list[] = {
        {.name = "fail-if-slower",
         .kind = ARG_SHARE,
         .value = &share,
         .meaning = "SHARE",
         .help =
             "end with status 1 when something is slower by more, such as 5%, failed, is gone, or cannot "
             "be judged"}};
    struct args args = {
        .command = "prony compare",
        .usage = "OLD.jsonl NEW.jsonl [options]",
        .summary = "Says which configurations became faster or slower from one file of records to "
                   "another.",
        .examples = "  prony bench small --out old.jsonl\n"
                    "  prony compare old.jsonl new.jsonl --fail-if-slower 5%\n",
        .list = list,
        .count = sizeof list / sizeof *list,
        .least = 2,
        .most = 2,
        .positional = cli->positional,
    };
    TRY(cli_args(&args, argc, argv));
    if (args.help)
        return STATUS_OK;
    struct results old = {0}, new = {0};
    enum status status = read_both(args.positional, &old, &new);
    if (status == STATUS_OK)
        status = compare_all(&old, &new, share);
    mem_free(old.list);
    mem_free(new.list);
    return status;
}
