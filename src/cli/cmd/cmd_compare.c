/* cmd_compare.c: prony compare: what became faster or slower between two files of records, or
 * between two profiles (compare_profiles.h).
 *
 * Results of the same configuration are matched; of several in one file the last counts. Compared
 * is what was to be found out: the time of an iteration or a query; of a server how many queries a
 * second hold the bound; of a training to a target the time until it got there, and how many seeds
 * did. Two files come from two runs, so this can see less than `bench --against`, which takes
 * turns.
 */
#include "base/file.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/gate.h"
#include "cli/program/compare_profiles.h"
#include "cli/table/show_record.h"
#include "cli/table/wrap.h"
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
        const char *goal; /* what the scenario was to reach; or "" */
        struct stats time_ns;
        double rate;           /* server: queries a second; else NaN */
        double reached;        /* target: the share of the seeds that got there; else NaN */
        const char *disturbed; /* by what, or "" */
        bool failed;
    } * list;
    size_t count, room;
    size_t handicapped; /* left out */
    struct arena arena; /* of the goals */
};

/* What is found out about a run does not tell configurations apart, but the machine does. What
 * failed may not have come so far as to know its instructions. */
static bool same_configuration(const struct result *a, const struct result *b, bool anywhere)
{
    struct point left = a->point, right = b->point;
    if (strcmp(a->goal, b->goal) != 0)
        return false;
    memcpy(left.software, right.software, sizeof left.software);
    memcpy(left.tuning, right.tuning, sizeof left.tuning);
    if (!left.isa[0] || !right.isa[0])
        memcpy(left.isa, right.isa, sizeof left.isa);
    if (anywhere)
        memcpy(left.unit_name, right.unit_name, sizeof left.unit_name);
    if (anywhere)
        memcpy(left.server, right.server, sizeof left.server);
    return point_compare(&left, &right) == 0;
}

static struct result *results_find(const struct results *results, const struct result *like,
                                   bool anywhere)
{
    for (size_t i = 0; i < results->count; i++)
        if (same_configuration(&results->list[i], like, anywhere))
            return &results->list[i];
    return NULL;
}

/* Of one figure there is no interval. */
static struct stats stats_of_one(double ns)
{
    const double unknown = (double)NAN;
    return (struct stats){.min = ns,
                          .median = ns,
                          .mean = ns,
                          .p90 = unknown,
                          .p99 = unknown,
                          .ci_low = unknown,
                          .ci_high = unknown,
                          .count = 1,
                          .per = 1};
}

static struct result result_of(const struct record *record)
{
    struct result out = {.point = record->point,
                         .goal = record->goal ? record->goal : "",
                         .time_ns = record->time_ns,
                         .rate = (double)NAN,
                         .reached = (double)NAN,
                         .disturbed = record_disturbed(record),
                         .failed = record->status == RECORD_FAILED};
    if (point_is(&record->point, CHOICE_scenario_server)) {
        out.rate = record_meter(record, "rate");
        out.time_ns = stats_of_one(1e9 / out.rate);
    } else if (point_is(&record->point, CHOICE_scenario_target)) {
        out.reached = record_meter(record, "reached");
        out.time_ns = stats_of_one(1e9 * record_meter(record, "target_time"));
    }
    return out;
}

static enum status results_add(void *context, const struct record *record, const char *line,
                               size_t length)
{
    struct results *results = context;
    (void)line;
    (void)length;
    struct result result = result_of(record);
    if (record->kind != RECORD_RESULT || record->status == RECORD_SKIPPED ||
        (!result.failed && isnan(result.time_ns.median) && isnan(result.reached)))
        return STATUS_OK;
    if (record->handicap) {
        results->handicapped++;
        return STATUS_OK;
    }
    NEED(result.goal = arena_text(&results->arena, result.goal));
    struct result *known = results_find(results, &result, false);
    if (!known && results->count == results->room) {
        size_t room = results->room ? 2 * results->room : 64;
        struct result *grown = mem_grow(results->list, room, sizeof *grown);
        NEED(grown);
        results->list = grown;
        results->room = room;
    }
    *(known ? known : &results->list[results->count++]) = result;
    return STATUS_OK;
}

static void results_free(struct results *results)
{
    mem_free(results->list);
    arena_free(&results->arena);
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

enum { COLUMN_USUAL = 11, FIGURES_USUAL = 3, JOINED_LEAST = 30 }; /* widths, and how many */

/* Both files, and what tells their results apart. */
struct pair {
    struct results old, new;
    bool varies[AXIS_COUNT], goals;
    bool joined; /* what differs is one column: there is no room for several */
    struct show_table table;
};

/* Which software was compared is in the files; it differs where a change is looked at. */
static void pair_look(struct pair *pair, const struct results *results)
{
    const struct result *first = pair->old.count ? pair->old.list : pair->new.list;
    for (size_t i = 0; i < results->count; i++) {
        const struct result *result = &results->list[i];
        pair->goals = pair->goals || strcmp(first->goal, result->goal) != 0;
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            char a[POINT_NUMBER], b[POINT_NUMBER];
            if (!(axes[axis].where & AXIS_ASIDE) &&
                strcmp(point_get(&first->point, &axes[axis], a),
                       point_get(&result->point, &axes[axis], b)) != 0)
                pair->varies[axis] = true;
        }
    }
}

/* A column for each axis in which they differ; what they share is the title. */
static void pair_columns(struct pair *pair)
{
    const struct result *first = pair->old.count ? pair->old.list : pair->new.list;
    struct show_table *table = &pair->table;
    bool told[AXIS_COUNT];
    int varying = 0;
    table->width = wrap_screen();
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        told[axis] = !pair->varies[axis];
        varying += pair->varies[axis];
    }
    pair->joined = varying > table->width / COLUMN_USUAL - FIGURES_USUAL;
    if (pair->joined)
        show_table_flex(table, show_table_column(table, "configuration", SHOW_LEFT, SHOW_ALWAYS, 0),
                        JOINED_LEAST);
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        if (pair->varies[axis] && !pair->joined)
            show_table_column(table, axes[axis].key,
                              axes[axis].kind == AXIS_INT ? SHOW_RIGHT : SHOW_LEFT, SHOW_ALWAYS, 0);
    if (pair->goals)
        show_table_column(table, "goal", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(table, "old", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(table, "new", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(table, "new ÷ old", SHOW_RIGHT, 90, 0);
    show_table_column(table, "interval", SHOW_RIGHT, 80, 0);
    show_table_column(table, "verdict", SHOW_LEFT, SHOW_ALWAYS, 0);
    if (first) {
        struct record shown;
        record_start(&shown);
        shown.point = first->point;
        show_record_title(&shown, told, &table->title);
    }
    if (first && !pair->goals && first->goal[0])
        text_printf(&table->title, ", %s", first->goal);
}

static void add_label(const struct pair *pair, const struct result *result, struct text *out)
{
    point_label(&result->point, out);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        char number[POINT_NUMBER];
        const char *value = point_get(&result->point, &axes[axis], number);
        if (pair->varies[axis] && value[0] && !strstr(text_of(out), value))
            text_printf(out, ", %s %s", axes[axis].key, value);
    }
    if (pair->goals && result->goal[0])
        text_printf(out, ", %s", result->goal);
}

static void add_figure(const struct result *result, struct text *out)
{
    if (!isnan(result->rate)) {
        text_add_count(out, result->rate);
        text_add(out, " queries/s");
    } else if (isnan(result->time_ns.median)) {
        text_add(out, "never");
    } else {
        text_add_time(out, result->time_ns.median);
    }
    if (!isnan(result->reached))
        text_printf(out, " by %.0f %%", 100 * result->reached);
}

/* Two runs that were not alike on the machine say nothing about the program. */
static const char *pair_disturbed(const struct result *old, const struct result *new)
{
    return *new->disturbed ? new->disturbed : old->disturbed;
}

/* The mark of what disturbed them, which is told once. */
static void add_disturbed(struct pair *pair, const char *by, struct text *verdict)
{
    struct text note = {0};
    text_printf(&note, "disturbed by %s", by);
    if (*by)
        text_add(verdict, show_table_mark(&pair->table, text_of(&note)));
    verdict->failed |= note.failed;
    text_free(&note);
}

/* A row: what was compared, both figures, and what came out. */
static void add_row(struct pair *pair, const struct result *old, const struct result *new,
                    const struct comparison *found, const char *verdict)
{
    char numbers[AXIS_COUNT][POINT_NUMBER];
    const char *cells[SHOW_COLUMNS] = {NULL};
    struct text joined = {0}, before = {0}, now = {0}, ratio = {0}, interval = {0};
    int c = 0;
    show_record_values(&new->point, pair->varies, &joined);
    if (pair->joined)
        cells[c++] = text_of(&joined);
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        if (pair->varies[axis] && !pair->joined)
            cells[c++] = point_get(&new->point, &axes[axis], numbers[axis]);
    if (pair->goals)
        cells[c++] = new->goal;
    add_figure(old, &before);
    if (new->failed)
        text_add(&now, "–");
    else
        add_figure(new, &now);
    if (found && !isnan(found->ratio))
        text_printf(&ratio, "%.3f", found->ratio);
    if (found && !isnan(found->low))
        text_printf(&interval, "%.3f to %.3f", found->low, found->high);
    cells[c++] = text_of(&before);
    cells[c++] = text_of(&now);
    cells[c++] = text_of(&ratio);
    cells[c++] = text_of(&interval);
    cells[c++] = verdict;
    show_table_row(&pair->table, cells);
    pair->table.failed |=
        joined.failed || before.failed || now.failed || ratio.failed || interval.failed;
    text_free(&joined);
    text_free(&before);
    text_free(&now);
    text_free(&ratio);
    text_free(&interval);
}

static enum status print_table(struct pair *pair)
{
    struct text out = {0};
    show_table_print(&pair->table, &out);
    enum status status = show_table_done(&pair->table);
    if (status == STATUS_OK)
        status = text_done(&out);
    if (status == STATUS_OK)
        printf("%s\n", text_of(&out));
    text_free(&out);
    return status;
}

static void print_lost(const struct pair *pair, const struct result *result)
{
    struct text line = {0}, out = {0};
    add_label(pair, result, &line);
    wrap_add(&out, "measured before, not now: ", text_of(&line), wrap_screen());
    fputs(text_of(&out), stdout);
    text_free(&line);
    text_free(&out);
}

/* How many were measured in the old file of which the new one has nothing. */
static int print_gone(const struct pair *pair)
{
    int gone = 0;
    for (size_t i = 0; i < pair->old.count; i++) {
        const struct result *before = &pair->old.list[i];
        if (before->failed || results_find(&pair->new, before, false))
            continue;
        print_lost(pair, before);
        gone++;
    }
    return gone;
}

/* What the files do not share, where nothing is shared: the machine, if that is all. */
static enum status nothing_compared(const struct pair *pair)
{
    for (size_t i = 0; i < pair->new.count; i++) {
        const struct result *now = &pair->new.list[i];
        const struct result *before = results_find(&pair->old, now, true);
        if (before && results_find(&pair->old, now, false))
            FAIL(STATUS_INPUT,
                 "nothing was compared: all common configurations failed in the old file");
        if (before)
            FAIL(STATUS_INPUT,
                 "nothing was compared: the old file is of %s (%s), the new one of %s (%s)",
                 before->point.server, before->point.unit_name, now->point.server,
                 now->point.unit_name);
    }
    FAIL(STATUS_INPUT, "the files have no configuration in common: nothing was compared");
}

/* How many configurations there are of each kind. */
struct tally {
    struct gate gate;             /* of those measured before, and in both */
    size_t failed_before, mended; /* in both, but not measured before */
};

/* One that was measured before, and now. Fewer seeds that get to a target are a failure. */
static void compare_one(struct pair *pair, const struct result *before, const struct result *now,
                        struct gate *gate)
{
    struct comparison found;
    if (now->failed || now->reached < before->reached) {
        add_row(pair, before, now, NULL, now->failed ? "failed now" : "reached by fewer seeds now");
        gate->pairs++;
        gate->failed++;
        return;
    }
    compare_results(&now->time_ns, &before->time_ns, COMPARE_MARGIN, &found);
    if (now->reached > before->reached)
        found.verdict = VERDICT_FASTER;
    if (*pair_disturbed(before, now))
        found.verdict = VERDICT_UNKNOWN;
    struct text verdict = {0};
    text_add(&verdict, verdict_name(found.verdict));
    add_disturbed(pair, pair_disturbed(before, now), &verdict);
    add_row(pair, before, now, &found, text_of(&verdict));
    pair->table.failed |= verdict.failed;
    text_free(&verdict);
    gate_count(gate, &found, pair_disturbed(before, now));
}

static void print_tally(const struct pair *pair, const struct tally *tally)
{
    const size_t matched = tally->gate.pairs, both = matched + tally->failed_before;
    struct text line = {0}, out = {0};
    text_printf(&line,
                "%zu configuration%s in both; %zu only in the old file, %zu only in the new one",
                matched, matched == 1 ? "" : "s", pair->old.count - both, pair->new.count - both);
    if (tally->failed_before > tally->mended)
        text_printf(&line, "; %zu failed in both", tally->failed_before - tally->mended);
    if (tally->mended)
        text_printf(&line, "; %zu failed before, and not now", tally->mended);
    if (pair->old.handicapped + pair->new.handicapped)
        text_printf(&line, "; %zu handicapped in the old file and %zu in the new one are left out",
                    pair->old.handicapped, pair->new.handicapped);
    wrap_add(&out, "", text_of(&line), wrap_screen());
    fputs(text_of(&out), stdout);
    text_free(&line);
    text_free(&out);
}

/* What broke off must not pass for what became no slower. */
static enum status judge_tally(const struct pair *pair, const struct gate *gate)
{
    const int gone = print_gone(pair);
    if (gone && !gate->failed)
        FAIL(STATUS_WRONG, "%d of the old file %s not in the new one", gone,
             gone == 1 ? "is" : "are");
    return gate_judge(gate);
}

static enum status compare_all(struct pair *pair, double share)
{
    struct tally tally = {.gate.share = share};
    pair_look(pair, &pair->old);
    pair_look(pair, &pair->new);
    pair_columns(pair);
    for (size_t i = 0; i < pair->new.count; i++) {
        const struct result *now = &pair->new.list[i];
        const struct result *before = results_find(&pair->old, now, false);
        if (before && before->failed) {
            tally.failed_before++;
            tally.mended += !now->failed;
        } else if (before) {
            compare_one(pair, before, now, &tally.gate);
        }
    }
    if (tally.gate.pairs)
        TRY(print_table(pair));
    print_tally(pair, &tally);
    if (!tally.gate.pairs)
        return nothing_compared(pair);
    return isfinite(share) ? judge_tally(pair, &tally.gate) : STATUS_OK;
}

/* Status 1 says that something became slower: what cannot be read must not look like that. */
static enum status read_both(const char *const *paths, struct pair *pair)
{
    enum status status = results_read(paths[0], &pair->old);
    if (status == STATUS_OK)
        status = results_read(paths[1], &pair->new);
    return status == STATUS_IO ? status_prefix(STATUS_INPUT, "nothing was compared") : status;
}

struct compare_flags {
    double share; /* 0: nothing fails, however slow */
    const char *store;
    bool json;
};

/* Both are profiles, or both are files of records. */
static enum status are_profiles(const char *const *words, bool *out)
{
    const bool first = profile_is_one(words[0]), second = profile_is_one(words[1]);
    if (first != second)
        FAIL(STATUS_INPUT,
             "%s is a profile and %s is none, expected two profiles or two files of "
             "records",
             words[first ? 0 : 1], words[first ? 1 : 0]);
    *out = first;
    return STATUS_OK;
}

static enum status run_compare(struct cli *cli, void *options)
{
    const struct compare_flags *flags = options;
    const bool judged = args_given(cli->args, &cli->found, "fail-if-slower");
    struct pair pair = {0};
    bool profiles = false;
    TRY(are_profiles(cli->found.positional, &profiles));
    if (profiles)
        return compare_profiles(&(struct profiles_wish){.before = cli->found.positional[0],
                                                        .after = cli->found.positional[1],
                                                        .store = flags->store,
                                                        .json = flags->json});
    if (flags->json)
        FAIL(STATUS_INPUT, "--json: found two files of records, expected two profiles");
    enum status status = read_both(cli->found.positional, &pair);
    if (status == STATUS_OK)
        status = compare_all(&pair, judged ? flags->share : (double)INFINITY);
    show_table_free(&pair.table);
    results_free(&pair.old);
    results_free(&pair.new);
    return status;
}

static const struct arg rows[] = {
    {GATE_ARG(struct compare_flags)},
    {ARG(struct compare_flags, json), NULL, "one JSON object; two profiles only"},
    {CLI_STORE(struct compare_flags)},
    ARG_END,
};

const struct command cmd_compare = {
    .summary = "say what became faster or slower between two files or profiles",
    .run = run_compare,
    .alone = true,
    .bytes = sizeof(struct compare_flags),
    .args = {.command = "prony compare",
             .usage = "OLD NEW [options]",
             .summary =
                 "Says which configurations became faster or slower from one file of "
                 "records to another.\n\n"
                 "Two profiles are compared row by row, the most changed first: ops, layers, "
                 "kernels and functions.\nA profile is a trace that prony profile reads, or "
                 "the number of one that prony profile\n--keep has kept.",
             .examples = "  prony bench small --out old.jsonl\n"
                         "  prony compare old.jsonl new.jsonl --fail-if-slower 5%\n"
                         "  prony compare before.trace after.trace\n"
                         "  prony compare 12 15\n",
             .lists = {{rows, 0}},
             .least = 2,
             .most = 2},
};
