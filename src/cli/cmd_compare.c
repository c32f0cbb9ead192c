/* cmd_compare.c: prony compare: what became faster or slower between two files of records.
 *
 * Results of the same configuration are matched; of several in one file the last counts. Two files
 * come from two runs, so this can see less than `bench --against`, which takes turns. */
#include "base/file.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "record/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t FILE_MOST = (size_t)1 << 30;

/* The results of a file, in its order. */
struct results {
    struct result {
        struct point point;
        struct stats time_ns;
    } * list;
    size_t count, room;
};

/* What is found out about a run does not tell configurations apart, but the machine does. */
static bool same_configuration(const struct point *a, const struct point *b)
{
    struct point left = *a, right = *b;
    memset(left.software, 0, sizeof left.software);
    memset(right.software, 0, sizeof right.software);
    return point_compare(&left, &right) == 0;
}

static struct result *results_find(const struct results *results, const struct point *point)
{
    for (size_t i = 0; i < results->count; i++)
        if (same_configuration(&results->list[i].point, point))
            return &results->list[i];
    return NULL;
}

static enum status results_add(void *context, const struct record *record, const char *line,
                               size_t length)
{
    struct results *results = context;
    (void)line;
    (void)length;
    if (record->kind != RECORD_RESULT || record->status != RECORD_OK)
        return STATUS_OK;
    struct result *known = results_find(results, &record->point);
    if (!known && results->count == results->room) {
        size_t room = results->room ? 2 * results->room : 64;
        struct result *grown = mem_grow(results->list, room, sizeof *grown);
        NEED(grown);
        results->list = grown;
        results->room = room;
    }
    *(known ? known : &results->list[results->count++]) =
        (struct result){record->point, record->time_ns};
    return STATUS_OK;
}

static enum status results_read(const char *path, struct results *out)
{
    struct text text = {0};
    enum status status = file_read(path, FILE_MOST, &text);
    if (status == STATUS_OK)
        status = record_read_all(path, text_of(&text), text.length, results_add, out);
    text_free(&text);
    return status;
}

/* "5%" or "0.05". */
static enum status parse_share(const char *text, double *out)
{
    char *end;
    double share = strtod(text, &end);
    if (*end == '%')
        share /= 100, end++;
    if (end == text || *end || !isfinite(share) || share < 0)
        FAIL(STATUS_INPUT, "--fail-if-slower: found \"%s\", expected a share such as 5%%", text);
    *out = share;
    return STATUS_OK;
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

static enum status compare_all(const struct results *old, const struct results *new, double share)
{
    int matched = 0, slower = 0;
    for (size_t i = 0; i < new->count; i++) {
        const struct result *now = &new->list[i], *before = results_find(old, &now->point);
        struct comparison found;
        if (!before)
            continue;
        compare_results(&now->time_ns, &before->time_ns, COMPARE_MARGIN, &found);
        print_comparison(before, now, &found);
        matched++;
        slower += found.verdict == VERDICT_SLOWER && found.ratio > 1 + share;
    }
    printf("%d configuration%s in both; %zu only in the old file, %zu only in the new one\n",
           matched, matched == 1 ? "" : "s", old->count - (size_t)matched,
           new->count - (size_t)matched);
    if (!matched)
        FAIL(STATUS_INPUT, "the files have no configuration in common: nothing was compared");
    if (slower && isfinite(share))
        FAIL(STATUS_WRONG, "%d of %d became slower by more than %g %%", slower, matched,
             100 * share);
    return STATUS_OK;
}

enum status cmd_compare(struct cli *cli, int argc, const char *const *argv)
{
    const char *limit = NULL;
    struct arg list[] = {
        {.name = "fail-if-slower",
         .kind = ARG_TEXT,
         .value = &limit,
         .meaning = "SHARE",
         .help = "end with status 1 when something is slower by more, such as 5%"}};
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
    double share = INFINITY;
    enum status status = limit ? parse_share(limit, &share) : STATUS_OK;
    if (status == STATUS_OK)
        status = results_read(args.positional[0], &old);
    if (status == STATUS_OK)
        status = results_read(args.positional[1], &new);
    if (status == STATUS_OK)
        status = compare_all(&old, &new, share);
    mem_free(old.list);
    mem_free(new.list);
    return status;
}
