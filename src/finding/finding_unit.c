/* finding_unit.c: CPU or GPU. Results of both are held against each other at the same batch, all
 * else alike, and on one machine where there is one that has both. Whole units are compared: a CPU
 * counts where it was also measured with a thread for each core. */
#include "finding/finding_inside.h"

#include <math.h>
#include <string.h>

/* The values of a mark: */
enum { UNIT, SOURCE, SERVER, BATCH };

/* Two marks of the same work, one on each unit. */
struct pair {
    const struct store_mark *cpu, *gpu;
};

static bool same(const struct store_mark *a, const struct store_mark *b, int value)
{
    return strcmp(a->values[value], b->values[value]) == 0;
}

static bool is_of(const struct store_mark *mark, const char *unit)
{
    return strcmp(mark->values[UNIT], unit) == 0;
}

static bool is_pair(const struct pair *pair)
{
    return is_of(pair->cpu, "cpu") && is_of(pair->gpu, "gpu") && pair->cpu->lot == pair->gpu->lot &&
           same(pair->cpu, pair->gpu, BATCH);
}

/* What counts: own results rather than those that came with prony, one machine rather than two. */
static int worth(const struct pair *pair)
{
    return 2 * (strcmp(pair->cpu->values[SOURCE], "own") == 0) +
           2 * (strcmp(pair->gpu->values[SOURCE], "own") == 0) +
           (same(pair->cpu, pair->gpu, SERVER) && same(pair->cpu, pair->gpu, SOURCE));
}

/* Does this result say that each core of its CPU had a thread? */
static enum status has_all_cores(struct store *store, int64_t id, bool *all)
{
    struct arena arena = {0};
    struct text line = {0};
    struct record record;
    enum status status = store_get(store, id, &line);
    if (status == STATUS_OK)
        status = record_read(&arena, "store", (long)id, text_of(&line), line.length, &record);
    if (status == STATUS_OK) {
        int64_t cores = json_int(record.machine, "cores", 0); /* 0: it does not say */
        *all = cores > 0 && record.point.threads >= cores;
    }
    arena_free(&arena);
    text_free(&line);
    return status;
}

enum status finding_whole_unit(struct store *store, const char *unit, const struct store_mark *mark,
                               bool *whole)
{
    enum { LOOKED_AT = 64 }; /* the newest */
    *whole = strcmp(unit, "cpu") != 0;
    for (int64_t i = 0; i < mark->count && i < LOOKED_AT && !*whole; i++)
        TRY(has_all_cores(store, mark->ids[i], whole));
    return STATUS_OK;
}

/* Marks of a part of a CPU are of no unit: no pair has them. */
static enum status leave_parts_out(const struct finding_about *about, struct store_chart *chart,
                                   bool *any)
{
    *any = false;
    for (size_t i = 0; i < chart->count; i++) {
        bool whole;
        TRY(finding_whole_unit(about->store, chart->marks[i].values[UNIT], &chart->marks[i],
                               &whole));
        if (!whole)
            chart->marks[i].values[UNIT] = "a part of a CPU";
        *any |= !whole;
    }
    return STATUS_OK;
}

/* The pair that counts most; of equals the one with the fastest GPU. False: there is none. */
static bool find_pair(const struct store_chart *chart, struct pair *out)
{
    *out = (struct pair){0};
    for (size_t c = 0; c < chart->count; c++) {
        for (size_t g = 0; g < chart->count; g++) {
            const struct pair pair = {&chart->marks[c], &chart->marks[g]};
            if (!is_pair(&pair))
                continue;
            int more = out->cpu ? worth(&pair) - worth(out) : 1;
            if (more > 0 || (more == 0 && pair.gpu->y > out->gpu->y))
                *out = pair;
        }
    }
    return out->cpu != NULL;
}

/* The same units of the same machines, in the same manner? */
static bool is_like(const struct store_mark *mark, const struct store_mark *other)
{
    return mark->lot == other->lot && same(mark, other, UNIT) && same(mark, other, SOURCE) &&
           same(mark, other, SERVER);
}

/* At which batches each is faster. */
struct contest {
    int cpu_wins, gpu_wins;
    bool crossed;       /* a larger batch was better for the CPU than one that the GPU had won */
    double least, most; /* GPU's rate ÷ CPU's */
    const struct store_mark *last_cpu, *first_gpu; /* the largest batch for the CPU … */
    struct pair last;                              /* at the largest batch of both */
};

static void count_pair(const struct pair *pair, struct contest *contest)
{
    double ratio = pair->gpu->y / pair->cpu->y;
    contest->last = *pair;
    contest->least = fmin(contest->least, ratio);
    contest->most = fmax(contest->most, ratio);
    if (ratio > 1) {
        contest->gpu_wins++;
        contest->first_gpu = contest->first_gpu ? contest->first_gpu : pair->gpu;
    } else {
        contest->cpu_wins++;
        contest->crossed |= contest->gpu_wins > 0;
        contest->last_cpu = pair->cpu;
    }
}

/* Over all batches that those of the pair have. */
static struct contest hold_contest(const struct store_chart *chart, const struct pair *found)
{
    struct contest contest = {.least = INFINITY};
    for (size_t c = 0; c < chart->count; c++) {
        for (size_t g = 0; g < chart->count; g++) {
            const struct pair pair = {&chart->marks[c], &chart->marks[g]};
            if (is_pair(&pair) && is_like(pair.cpu, found->cpu) && is_like(pair.gpu, found->gpu))
                count_pair(&pair, &contest);
        }
    }
    return contest;
}

static void say_always(const struct contest *contest, const char *winner, double least, double most,
                       const char *loser, struct text *out)
{
    bool one = contest->cpu_wins + contest->gpu_wins == 1;
    text_printf(out, "The %s, %s%s: ", winner,
                one ? "at batch " : "at every batch that both were measured with",
                one ? contest->last.cpu->values[BATCH] : "");
    finding_add_ratio(out, least);
    if (!one) {
        text_add(out, " to ");
        finding_add_ratio(out, most);
    }
    text_printf(out, " the %s's samples/s", loser);
}

static void say_winner(const struct contest *contest, struct text *out)
{
    if (contest->gpu_wins == 0) {
        say_always(contest, "CPU", 1 / contest->most, 1 / contest->least, "GPU", out);
        return;
    }
    if (contest->cpu_wins == 0) {
        say_always(contest, "GPU", contest->least, contest->most, "CPU", out);
        return;
    }
    if (contest->crossed)
        text_printf(out,
                    "Now the one, now the other: the GPU at %d of the %d batches that both were "
                    "measured with, ",
                    contest->gpu_wins, contest->gpu_wins + contest->cpu_wins);
    else
        text_printf(out, "The CPU up to batch %s, the GPU from batch %s on: ",
                    contest->last_cpu->values[BATCH], contest->first_gpu->values[BATCH]);
    finding_add_ratio(out, contest->last.gpu->y / contest->last.cpu->y);
    text_printf(out, " the CPU's samples/s at batch %s", contest->last.gpu->values[BATCH]);
}

/* "; the CPU with prony/simd, 2 threads on box": what a mark was measured with, and where. */
static enum status add_contestant(const struct finding_about *about, const char *name,
                                  const struct store_mark *mark, struct point *point,
                                  struct text *out)
{
    struct store_row row;
    TRY(store_row(about->store, mark->id, &row));
    text_printf(out, "%s with ", name);
    finding_add_maker(out, &row.point);
    text_printf(out, " on %s", row.point.server);
    if (strcmp(row.source, "shipped") == 0)
        text_printf(out, " (%s)", finding_came_with);
    *point = row.point;
    return STATUS_OK;
}

static enum status say_contest(const struct finding_about *about, const struct store_query *query,
                               const struct store_chart *chart, const struct pair *pair,
                               struct finding *finding)
{
    const struct contest contest = hold_contest(chart, pair);
    struct text *out = &finding->sentence;
    struct point point;
    say_winner(&contest, out);
    text_printf(out, ", %s %s; ", about->phase, about->model);
    TRY(add_contestant(about, "the CPU", contest.last.cpu, &point, out));
    TRY(add_contestant(about, ", the GPU", contest.last.gpu, &point, out));
    text_add(out, ".");
    finding_keep_like(&point, query, chart, finding);
    finding_rests_on(finding, contest.last.cpu);
    finding_rests_on(finding, contest.last.gpu);
    return STATUS_OK;
}

/* Of which unit there are results at all. */
static bool has_unit(const struct store_chart *chart, const char *unit)
{
    for (size_t i = 0; i < chart->count; i++)
        if (is_of(&chart->marks[i], unit))
            return true;
    return false;
}

static void say_unknown(const struct finding_about *about, const struct store_chart *chart,
                        bool part, struct text *out)
{
    if (part) {
        text_printf(
            out,
            "Not known: no result of %s %s had a thread for each core of its CPU, and a GPU is "
            "compared with a whole CPU.",
            about->phase, about->model);
        return;
    }
    bool cpu = has_unit(chart, "cpu"), gpu = has_unit(chart, "gpu");
    text_printf(out, "Not known: %s %s was measured on ", about->phase, about->model);
    if (cpu && gpu)
        text_add(out, "both, but not at one batch and all else alike.");
    else if (cpu || gpu)
        text_printf(out,
                    "a %s, so there is nothing to compare. Measure the other at the same batch.",
                    cpu ? "CPU" : "GPU");
    else
        text_add(out, "neither, so there is nothing to compare.");
}

enum status finding_unit(const struct finding_about *about, struct finding *finding)
{
    const struct finding_chart wanted = {.x = "batch",
                                         .y = "throughput",
                                         .groups = {"unit", "source", "server"},
                                         .phase = about->phase,
                                         .server = "",
                                         .unit = "",
                                         .across = FINDING_BIT(unit) | FINDING_BIT(framework),
                                         .any_machine = true};
    struct store_query query;
    struct store_chart chart;
    struct pair pair;
    bool part;
    TRY(finding_draw(about, &wanted, finding, &query, &chart));
    enum status status = leave_parts_out(about, &chart, &part);
    finding->known = status == STATUS_OK && find_pair(&chart, &pair);
    finding_begin_command("bench", &about->best, about->phase, FINDING_BIT(optimiser), finding);
    text_add(&finding->command, " --unit cpu,gpu --batch 1-1024*4");
    if (finding->known)
        status = say_contest(about, &query, &chart, &pair, finding);
    else
        say_unknown(about, &chart, part, &finding->sentence);
    store_chart_free(&chart);
    return status;
}
