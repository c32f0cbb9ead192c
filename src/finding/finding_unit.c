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
static enum status leave_parts_out(struct asking *asking, bool *any)
{
    const struct store_chart *chart = &asking->chart;
    *any = false;
    for (size_t i = 0; i < chart->count; i++) {
        bool whole;
        TRY(finding_whole_unit(asking->about->store, chart->marks[i].values[UNIT], &chart->marks[i],
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
    int cpu_wins, gpu_wins, ties;
    bool crossed; /* a larger batch was better for the CPU than one that the GPU had won */
    struct figure least, most;                     /* GPU's rate ÷ CPU's, of those that differ */
    const struct store_mark *last_cpu, *first_gpu; /* the largest batch for the CPU … */
    struct pair last;                              /* at the largest batch of both */
    struct figure at_last;
};

static void count_win(const struct pair *pair, struct figure ratio, struct contest *contest)
{
    const bool none = contest->gpu_wins + contest->cpu_wins == 0;
    contest->least = none || ratio.value < contest->least.value ? ratio : contest->least;
    contest->most = none || ratio.value > contest->most.value ? ratio : contest->most;
    if (ratio.value > 1) {
        contest->gpu_wins++;
        contest->first_gpu = contest->first_gpu ? contest->first_gpu : pair->gpu;
    } else {
        contest->cpu_wins++;
        contest->crossed |= contest->gpu_wins > 0;
        contest->last_cpu = pair->cpu;
    }
}

static enum status count_pair(const struct asking *asking, const struct pair *pair,
                              struct contest *contest)
{
    struct figure cpu, gpu;
    TRY(finding_figure(asking, pair->cpu, &cpu));
    TRY(finding_figure(asking, pair->gpu, &gpu));
    contest->last = *pair;
    contest->at_last = finding_ratio(gpu, cpu);
    if (finding_exceeds(asking, gpu, cpu) || finding_exceeds(asking, cpu, gpu))
        count_win(pair, contest->at_last, contest);
    else
        contest->ties++;
    return STATUS_OK;
}

/* Over all batches that those of the pair have. */
static enum status hold_contest(const struct asking *asking, const struct pair *found,
                                struct contest *contest)
{
    const struct store_chart *chart = &asking->chart;
    *contest = (struct contest){.ties = 0};
    for (size_t c = 0; c < chart->count; c++) {
        for (size_t g = 0; g < chart->count; g++) {
            const struct pair pair = {&chart->marks[c], &chart->marks[g]};
            if (is_pair(&pair) && is_like(pair.cpu, found->cpu) && is_like(pair.gpu, found->gpu))
                TRY(count_pair(asking, &pair, contest));
        }
    }
    return STATUS_OK;
}

/* What is measured on each side: the points of the last pair. */
struct sides {
    struct store_row cpu, gpu;
};

static struct figure inverse(struct figure figure)
{
    return (struct figure){1 / figure.value, figure.spread};
}

/* One of them wins at every batch. */
static void say_always(struct asking *asking, const struct contest *contest,
                       const struct sides *sides, bool gpu)
{
    struct text *out = &asking->finding->sentence;
    const struct point *winner = gpu ? &sides->gpu.point : &sides->cpu.point;
    const struct point *loser = gpu ? &sides->cpu.point : &sides->gpu.point;
    finding_add_unit(out, asking->about, winner);
    finding_capitalise(out, 0);
    text_printf(out, " %s `%s` ", finding_verb(asking->about), asking->about->model);
    if (gpu)
        finding_add_range(asking, contest->least, contest->most);
    else
        finding_add_range(asking, inverse(contest->most), inverse(contest->least));
    text_add(out, " as fast as ");
    finding_add_unit(out, asking->about, loser);
    if (contest->cpu_wins + contest->gpu_wins + contest->ties == 1)
        finding_add_batch(out, winner);
}

static void say_winner(struct asking *asking, const struct contest *contest,
                       const struct sides *sides)
{
    struct text *out = &asking->finding->sentence;
    asking->finding->nothing = contest->gpu_wins + contest->cpu_wins == 0;
    if (asking->finding->nothing) {
        text_printf(out, "CPU and GPU are equally fast for `%s`", asking->about->model);
    } else if (contest->cpu_wins == 0 || contest->gpu_wins == 0) {
        say_always(asking, contest, sides, contest->gpu_wins > 0);
    } else if (contest->crossed) {
        text_printf(out, "The GPU is faster for `%s` at %d of %d batches", asking->about->model,
                    contest->gpu_wins, contest->gpu_wins + contest->cpu_wins + contest->ties);
    } else {
        text_printf(out, "Up to batch %s the CPU is faster; take the GPU from batch %s on: it %s ",
                    contest->last_cpu->values[BATCH], contest->first_gpu->values[BATCH],
                    finding_verb(asking->about));
        text_printf(out, "`%s` ", asking->about->model);
        finding_add_times(asking, contest->at_last);
        text_printf(out, " as fast at batch %s", contest->last.gpu->values[BATCH]);
    }
}

/* " (CPU: box; GPU: far, shipped with prony.)": where they are not of one machine. */
static void say_machines(const struct sides *sides, const char *sources[2], struct text *out)
{
    const struct point *cpu = &sides->cpu.point, *gpu = &sides->gpu.point;
    if (strcmp(cpu->server, gpu->server) == 0 && strcmp(sources[0], sources[1]) == 0)
        return;
    text_printf(out, " (CPU: %s%s; GPU: %s%s.)", cpu->server,
                strcmp(sources[0], "shipped") ? "" : ", shipped with prony", gpu->server,
                strcmp(sources[1], "shipped") ? "" : ", shipped with prony");
}

static enum status say_contest(struct asking *asking, const struct pair *pair)
{
    struct finding *finding = asking->finding;
    struct contest contest;
    struct sides sides;
    TRY(hold_contest(asking, pair, &contest));
    TRY(store_row(asking->about->store, contest.last.cpu->id, &sides.cpu));
    TRY(store_row(asking->about->store, contest.last.gpu->id, &sides.gpu));
    const char *sources[] = {contest.last.cpu->values[SOURCE], contest.last.gpu->values[SOURCE]};
    say_winner(asking, &contest, &sides);
    finding_add_spread(asking);
    text_add(&finding->sentence, ".");
    say_machines(&sides, sources, &finding->sentence);
    finding_keep_like(asking, &sides.gpu.point);
    finding_rests_on(finding, contest.last.cpu);
    finding_rests_on(finding, contest.last.gpu);
    return STATUS_OK;
}

/* Are there results of this unit at all? */
static bool has_unit(const struct store_chart *chart, const char *unit)
{
    for (size_t i = 0; i < chart->count; i++)
        if (is_of(&chart->marks[i], unit))
            return true;
    return false;
}

static void say_unknown(struct asking *asking, bool part)
{
    const struct finding_about *about = asking->about;
    struct text *out = &asking->finding->sentence;
    const bool cpu = has_unit(&asking->chart, "cpu"), gpu = has_unit(&asking->chart, "gpu");
    text_add(out, "Not known: ");
    if (part && gpu) {
        text_add(out, "a GPU is compared with a whole CPU, and no result of ");
        finding_add_work(out, about);
        text_add(out, " had a thread for each core.");
        return;
    }
    finding_add_work(out, about);
    if (cpu && gpu)
        text_add(out, " was measured on both, but not at one batch and all else alike.");
    else
        text_printf(out, " was measured on %s only.", gpu ? "a GPU" : "a CPU");
}

/* A GPU is only asked for where there is one. */
static void suggest(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    if (!about->machine.gpu && !finding_is_gpu(&about->best))
        return;
    finding_begin_command("bench", &about->best, about->phase, FINDING_BIT(optimiser),
                          asking->finding);
    text_add(&asking->finding->command, " --unit cpu,gpu --batch 1-1024*4");
}

enum status finding_unit(struct asking *asking)
{
    struct pair pair;
    bool part;
    TRY(leave_parts_out(asking, &part));
    asking->finding->known = find_pair(&asking->chart, &pair);
    suggest(asking);
    if (asking->finding->known)
        return say_contest(asking, &pair);
    say_unknown(asking, part);
    return STATUS_OK;
}
