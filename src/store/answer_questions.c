/* answer_questions.c: CPU or GPU, which batch, does a framework waste the hardware, training or
 * inference, what next. How it scales: answer_scaling.c. */
#include "store/answer_inside.h"

#include <math.h>
#include <string.h>

static const double NEARLY = 0.9; /* of the best: not worth a larger batch */

/* CPU or GPU */

/* The values of a mark: */
enum { UNIT, SOURCE, BATCH };

/* Of a unit with own results, those that came with prony do not count. Own ones are first. */
static bool counts(const struct store_chart *chart, const struct store_mark *mark)
{
    const struct store_mark *first = chart->marks;
    while (strcmp(first->values[UNIT], mark->values[UNIT]))
        first++;
    return strcmp(first->values[SOURCE], mark->values[SOURCE]) == 0;
}

/* The mark of a unit at the same batch (NULL: any); NULL when there is none. */
static const struct store_mark *at_batch(const struct store_chart *chart, const char *unit,
                                         const char *batch)
{
    for (size_t i = 0; i < chart->count; i++) {
        const struct store_mark *mark = &chart->marks[i];
        if (strcmp(mark->values[UNIT], unit) == 0 &&
            (!batch || strcmp(mark->values[BATCH], batch) == 0) && counts(chart, mark))
            return mark;
    }
    return NULL;
}

/* At which batches each is faster. */
struct contest {
    int cpu_wins, gpu_wins;
    bool crossed;       /* a larger batch was better for the CPU than one that the GPU had won */
    double least, most; /* GPU's rate ÷ CPU's */
    const struct store_mark *last_cpu, *first_gpu; /* the largest batch for the CPU … */
    const struct store_mark *cpu, *gpu;            /* at the largest batch of both */
};

static struct contest hold_contest(const struct store_chart *chart)
{
    struct contest contest = {.least = INFINITY};
    for (size_t i = 0; i < chart->count; i++) {
        const struct store_mark *cpu = &chart->marks[i];
        const struct store_mark *gpu = at_batch(chart, "gpu", cpu->values[BATCH]);
        if (strcmp(cpu->values[UNIT], "cpu") || !gpu || !counts(chart, cpu))
            continue;
        double ratio = gpu->y / cpu->y;
        contest.cpu = cpu;
        contest.gpu = gpu;
        contest.least = fmin(contest.least, ratio);
        contest.most = fmax(contest.most, ratio);
        if (ratio > 1) {
            contest.gpu_wins++;
            contest.first_gpu = contest.first_gpu ? contest.first_gpu : gpu;
        } else {
            contest.cpu_wins++;
            contest.crossed |= contest.gpu_wins > 0;
            contest.last_cpu = cpu;
        }
    }
    return contest;
}

static void say_always(const char *winner, double least, double most, const char *loser,
                       struct text *out)
{
    text_printf(out, "The %s, at every batch that both were measured with: ", winner);
    answer_add_ratio(out, least);
    text_add(out, " to ");
    answer_add_ratio(out, most);
    text_printf(out, " the %s's samples/s", loser);
}

static void say_winner(const struct contest *contest, struct text *out)
{
    if (contest->gpu_wins == 0) {
        say_always("CPU", 1 / contest->most, 1 / contest->least, "GPU", out);
        return;
    }
    if (contest->cpu_wins == 0) {
        say_always("GPU", contest->least, contest->most, "CPU", out);
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
    answer_add_ratio(out, contest->gpu->y / contest->cpu->y);
    text_printf(out, " the CPU's samples/s at batch %s", contest->gpu->values[BATCH]);
}

enum status answer_unit(const struct answer_about *about, struct answer *answer)
{
    const struct answer_chart wanted = {.x = "batch",
                                        .y = "throughput",
                                        .groups = {"unit", "source"},
                                        .phase = about->phase,
                                        .server = "",
                                        .unit = "",
                                        .any_machine = true};
    struct text *out = &answer->sentence;
    struct store_query query;
    struct store_chart chart;
    TRY(answer_draw(about, &wanted, answer, &query, &chart));
    struct contest contest = hold_contest(&chart);
    enum status status = STATUS_OK;
    answer->known = contest.cpu != NULL;
    answer_begin_command(about, "bench", about->phase, answer);
    text_add(&answer->command, " --unit cpu,gpu --batch 1-1024*4");
    if (answer->known) {
        say_winner(&contest, out);
        text_printf(out, ", %s %s; the CPU", about->phase, about->model);
        status = answer_add_place(about, contest.cpu, out);
        text_add(out, ", the GPU");
        if (status == STATUS_OK)
            status = answer_add_place(about, contest.gpu, out);
        text_add(out, ".");
        answer_rests_on(answer, contest.cpu);
        answer_rests_on(answer, contest.gpu);
    } else {
        const char *have = at_batch(&chart, "gpu", NULL)   ? "a GPU"
                           : at_batch(&chart, "cpu", NULL) ? "a CPU"
                                                           : NULL;
        text_printf(out, "Not known: %s %s was measured on %s, so there is nothing to compare.",
                    about->phase, about->model, have ? have : "neither");
        if (have)
            text_add(out, " Measure the other at the same batch.");
    }
    store_chart_free(&chart);
    return status;
}

/* Which batch */

static const struct store_mark *first_near(const struct series *series)
{
    const struct store_mark *mark = series->marks;
    while (mark->y < NEARLY * series->best)
        mark++;
    return mark;
}

/* ", 2 threads"; nothing where none are counted, as on a GPU. */
static void add_threads(struct text *out, const char *threads)
{
    if (*threads)
        text_printf(out, ", %s thread%s", threads, strcmp(threads, "1") ? "s" : "");
}

enum status answer_batch(const struct answer_about *about, struct answer *answer)
{
    const struct answer_chart wanted = {.x = "batch",
                                        .y = "throughput",
                                        .groups = {"framework", "backend", "threads"},
                                        .phase = about->phase,
                                        .server = about->server,
                                        .unit = ""};
    struct text *out = &answer->sentence;
    struct store_chart chart;
    struct series series;
    TRY(answer_draw_best(about, &wanted, 2, answer, &chart, &series));
    answer_begin_command(about, "bench", about->phase, answer);
    text_add(&answer->command, " --batch 1-1024*2");
    if (answer->known) {
        const struct store_mark *near = first_near(&series);
        text_printf(out, "Batch %s for %s %s on %s: ", series.top->values[3], about->phase,
                    about->model, about->server);
        answer_add_rate(out, series.best);
        text_add(out, " with ");
        answer_add_maker(out, series.top, 0);
        add_threads(out, series.top->values[2]);
        text_add(out, ", ");
        answer_add_ratio(out, series.best / series.marks[0].y);
        text_printf(out, " those of batch %s", series.marks[0].values[3]);
        if (near != series.top)
            text_printf(out, "; batch %s already gives %.0f %% of it", near->values[3],
                        100 * near->y / series.best);
        else if (series.top == &series.marks[series.count - 1])
            text_add(out, "; a larger one may give more");
        text_add(out, ".");
        answer_rests_on(answer, series.top);
        answer_rests_on(answer, series.marks);
        answer_rests_on(answer, near);
    } else {
        text_printf(out, "Not known: %s %s was not measured with two batches on %s.", about->phase,
                    about->model, about->server);
    }
    store_chart_free(&chart);
    return STATUS_OK;
}

/* Does a framework waste the hardware */

/* The value of the first group (a batch) under which the most second groups (frameworks) were
 * measured; of equals the last, the largest batch. */
static size_t widest_series(const struct store_chart *chart, const struct store_query *query,
                            size_t *count)
{
    size_t widest = 0;
    *count = 0;
    for (size_t first = 0, end; first < chart->count; first = end) {
        for (end = first; end < chart->count &&
                          store_same_series(&chart->marks[end], &chart->marks[first], query);
             end++)
            ;
        if (end - first >= *count) {
            widest = first;
            *count = end - first;
        }
    }
    return widest;
}

static void say_shares(const struct answer_about *about, const struct store_mark *marks,
                       size_t count, struct answer *answer)
{
    struct text *out = &answer->sentence;
    const struct store_mark *best = marks, *asked = NULL;
    for (size_t i = 0; i < count; i++) {
        best = marks[i].y < best->y ? &marks[i] : best;
        if (strcmp(marks[i].values[1], about->framework) == 0)
            asked = &marks[i];
    }
    text_printf(out, "Of what %s can do, %s %s at batch %s uses", about->server, about->phase,
                about->model, marks[0].values[0]);
    for (size_t i = 0; i < count; i++) {
        double share = 100 / marks[i].y;
        text_printf(out, "%s ", i ? "," : "");
        text_printf(out, share < 9.95 ? "%.2g" : "%.0f", share);
        text_printf(out, " %% with %s (", marks[i].values[1]);
        answer_add_ratio(out, marks[i].y);
        text_add(out, " the floor)");
        answer_rests_on(answer, &marks[i]);
    }
    if (asked && asked != best) {
        text_printf(out, ": %s takes ", asked->values[1]);
        answer_add_ratio(out, asked->y / best->y);
        text_printf(out, " the time that %s takes.", best->values[1]);
    } else if (count > 1) {
        text_printf(out, ": %s wastes the least.", best->values[1]);
    } else {
        text_add(out, best->y > 2      ? ": it wastes more than half."
                      : best->y > 1.25 ? ": it wastes less than half."
                                       : ": it wastes little.");
    }
}

enum status answer_framework(const struct answer_about *about, struct answer *answer)
{
    struct answer_chart wanted = {.x = "framework",
                                  .y = "times_floor",
                                  .groups = {"batch"},
                                  .phase = about->phase,
                                  .server = about->server,
                                  .unit = "cpu"};
    struct store_query query;
    struct store_chart chart;
    size_t count;
    TRY(answer_draw(about, &wanted, answer, &query, &chart));
    size_t first = widest_series(&chart, &query, &count);
    answer->known = count > 0;
    answer_begin_command(about, "bench", about->phase, answer);
    text_printf(&answer->command, " --framework prony,pytorch,numpy --batch %s",
                count ? chart.marks[first].values[0] : "64");
    if (answer->known)
        say_shares(about, chart.marks + first, count, answer);
    else
        text_printf(&answer->sentence,
                    "Not known: no result of %s %s on %s says how far it is from the floor.",
                    about->phase, about->model, about->server);
    store_chart_free(&chart);
    return STATUS_OK;
}

/* Training or inference */

enum status answer_phase(const struct answer_about *about, struct answer *answer)
{
    const struct answer_chart wanted = {.x = "phase",
                                        .y = "throughput",
                                        .groups = {"framework", "backend", "batch", "threads"},
                                        .phase = "",
                                        .server = about->server,
                                        .unit = ""};
    struct text *out = &answer->sentence;
    struct store_chart chart;
    struct series series;
    TRY(answer_draw_best(about, &wanted, 2, answer, &chart, &series));
    answer_begin_command(about, "bench", "training,inference", answer);
    text_add(&answer->command, " --batch 1,64");
    if (answer->known) {
        const struct store_mark *inference = &series.marks[0], *training = &series.marks[1];
        bool usual = training->y <= inference->y;
        const struct store_mark *more = usual ? training : inference;
        const struct store_mark *less = usual ? inference : training;
        text_add(out, "A sample costs ");
        answer_add_ratio(out, less->y / more->y);
        text_printf(out, " as much in %s as in %s: ", more->values[4], less->values[4]);
        answer_add_rate(out, more->y);
        text_add(out, " against ");
        answer_add_rate(out, less->y);
        text_printf(out, " for %s at batch %s with ", about->model, more->values[2]);
        answer_add_maker(out, more, 0);
        add_threads(out, more->values[3]);
        text_printf(out, " on %s.", about->server);
        answer_rests_on(answer, more);
        answer_rests_on(answer, less);
    } else {
        text_printf(out,
                    "Not known: training and inference of %s were not both measured at one "
                    "batch on %s.",
                    about->model, about->server);
    }
    store_chart_free(&chart);
    return STATUS_OK;
}

/* What next */

static void advise(const struct answer_about *about, const struct store_row *best,
                   struct answer *answer)
{
    struct text *out = &answer->sentence;
    double floors = best->metrics[METRIC_times_floor];
    const struct point *point = &best->point;
    text_printf(out, "The best of %s %s on %s (%s%s%s, batch %lld", about->phase, about->model,
                about->server, point->framework, point->backend[0] ? "/" : "", point->backend,
                (long long)point->batch);
    if (point->threads)
        text_printf(out, ", %lld thread%s", (long long)point->threads,
                    point->threads == 1 ? "" : "s");
    if (isnan(floors) && strcmp(best->bound, "latency") == 0) {
        text_add(out, ") is bound by latency: a larger batch costs little more.");
        answer_begin_command(about, "bench", about->phase, answer);
        text_printf(&answer->command, " --batch %lld-%lld*2", (long long)point->batch,
                    (long long)point->batch * 8);
    } else if (isnan(floors)) {
        text_add(out, ") has no floor to be compared with: measure it on a CPU.");
    } else if (floors > 2) {
        text_add(out, ") takes ");
        answer_add_ratio(out, floors);
        text_add(out, " its floor: see where the time goes before buying anything.");
        answer_begin_command(about, "profile", about->phase, answer);
        text_printf(&answer->command, " --batch %lld", (long long)point->batch);
    } else if (strcmp(best->bound, "bytes") == 0) {
        text_printf(out,
                    ") is at %.3g × its floor and bound by memory: a larger batch reads the "
                    "weights less often.",
                    floors);
        answer_begin_command(about, "bench", about->phase, answer);
        text_printf(&answer->command, " --batch %lld-%lld*2", (long long)point->batch,
                    (long long)point->batch * 8);
    } else {
        text_printf(out,
                    ") is at %.3g × its floor and bound by arithmetic: only more cores, a lower "
                    "precision or a GPU make it faster.",
                    floors);
        answer_begin_command(about, "bench", about->phase, answer);
        text_printf(&answer->command, " --batch %lld --threads 1,2,4", (long long)point->batch);
    }
}

enum status answer_next(const struct answer_about *about, struct answer *answer)
{
    const struct answer_chart wanted = {.x = "batch",
                                        .y = "throughput",
                                        .groups = {"framework", "backend"},
                                        .phase = about->phase,
                                        .server = about->server,
                                        .unit = ""};
    struct store_chart chart;
    struct series series;
    struct store_row best;
    TRY(answer_draw_best(about, &wanted, 1, answer, &chart, &series));
    enum status status = STATUS_OK;
    if (answer->known) {
        answer_rests_on(answer, series.top);
        status = store_row(about->store, series.top->id, &best);
        if (status == STATUS_OK)
            advise(about, &best, answer);
    } else {
        text_printf(&answer->sentence, "Not known: there is no result of %s %s on %s.",
                    about->phase, about->model, about->server);
    }
    if (answer->command.length == 0)
        answer_begin_command(about, "bench", about->phase, answer);
    store_chart_free(&chart);
    return status;
}
