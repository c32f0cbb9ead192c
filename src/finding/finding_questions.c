/* finding_questions.c: which batch, does a framework waste the hardware, training or inference. */
#include "finding/finding_inside.h"

#include <string.h>

static const double NEARLY = 0.9; /* of the best: not worth a larger batch */

/* Which batch */

static const struct store_mark *first_near(const struct series *series, double rate)
{
    const struct store_mark *mark = series->marks;
    while (mark->y < NEARLY * rate)
        mark++;
    return mark;
}

static void say_batch(const struct finding_about *about, const struct series *series,
                      const struct store_mark *chosen, struct finding *finding)
{
    struct text *out = &finding->sentence;
    const struct store_mark *first = series->marks, *near = first_near(series, chosen->y);
    text_printf(out, "Batch %s for %s %s on ", chosen->values[3], about->phase, about->model);
    finding_add_place(out, series->point.unit, about->server);
    text_add(out, ": ");
    finding_add_rate(out, chosen->y);
    text_add(out, " with ");
    finding_add_maker(out, &series->point);
    if (chosen != first) {
        text_add(out, ", ");
        finding_add_ratio(out, chosen->y / first->y);
        text_printf(out, " those of batch %s", first->values[3]);
    }
    if (near != chosen)
        text_printf(out, "; batch %s already gives %.0f %% of it", near->values[3],
                    100 * near->y / chosen->y);
    if (chosen == &series->marks[series->count - 1])
        text_add(out, near == chosen ? "; a larger one may give more" : "");
    else if (chosen == series->top)
        text_add(out, "; no larger one that was measured gives more");
    else
        text_printf(out, "; batch %s gives %.3g × that, which is no gain beyond the noise",
                    series->top->values[3], series->best / chosen->y);
    text_add(out, ".");
    finding_rests_on(finding, chosen);
    finding_rests_on(finding, first);
    finding_rests_on(finding, near);
    finding_rests_on(finding, series->top);
}

enum status finding_batch(const struct finding_about *about, struct finding *finding)
{
    const struct finding_chart wanted = {.x = "batch",
                                         .y = "throughput",
                                         .groups = {"framework", "backend", "threads"},
                                         .phase = about->phase,
                                         .server = about->server,
                                         .unit = ""};
    struct text *out = &finding->sentence;
    struct store_chart chart;
    struct series series;
    TRY(finding_draw_best(about, &wanted, 2, finding, &chart, &series));
    finding_begin_command("bench", finding->known ? &series.point : &about->best, about->phase,
                          FINDING_BENCH, finding);
    text_add(&finding->command, " --batch 1-1024*2");
    enum status status = STATUS_OK;
    if (finding->known) {
        const struct store_mark *chosen;
        status = finding_first_as_good(about, &series, &chosen);
        if (status == STATUS_OK)
            say_batch(about, &series, chosen, finding);
    } else {
        text_printf(out, "Not known: %s %s was not measured with two batches, all else alike, on ",
                    about->phase, about->model);
        finding_add_place(out, about->best.unit, about->server);
        text_add(out, ".");
    }
    store_chart_free(&chart);
    return status;
}

/* Does a framework waste the hardware */

static double least_of(const struct store_mark *marks, size_t count)
{
    double least = marks[0].y;
    for (size_t i = 1; i < count; i++)
        least = marks[i].y < least ? marks[i].y : least;
    return least;
}

/* The batch, all else alike, under which the most frameworks were measured; of equals the largest,
 * then what is nearest to its floor. */
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
        const struct store_mark *marks = chart->marks + first, *other = chart->marks + widest;
        if (least_of(marks, end - first) < FINDING_FLOOR_LEAST)
            continue;
        bool better = end - first > *count;
        if (end - first == *count)
            better = marks->places[0] > other->places[0] ||
                     (marks->places[0] == other->places[0] &&
                      least_of(marks, *count) < least_of(other, *count));
        if (better) {
            widest = first;
            *count = end - first;
        }
    }
    return widest;
}

/* "2 threads of box", "the GPU of box": what a floor is of. */
static void add_hardware(const struct point *point, const char *server, struct text *out)
{
    if (point->threads)
        text_printf(out, "%lld thread%s of ", (long long)point->threads,
                    point->threads == 1 ? "" : "s");
    finding_add_place(out, point->unit, server);
}

static void say_shares(const struct finding_about *about, const struct point *point,
                       const struct store_mark *marks, size_t count, struct finding *finding)
{
    struct text *out = &finding->sentence;
    const struct store_mark *best = marks, *asked = NULL;
    for (size_t i = 0; i < count; i++) {
        best = marks[i].y < best->y ? &marks[i] : best;
        if (strcmp(marks[i].values[1], about->framework) == 0)
            asked = &marks[i];
    }
    text_add(out, "Of what ");
    add_hardware(point, about->server, out);
    text_printf(out, " can do, %s %s at batch %s", about->phase, about->model, marks[0].values[0]);
    finding_add_manner(out, point);
    text_add(out, " uses");
    for (size_t i = 0; i < count; i++) {
        double share = marks[i].y > 1 ? 100 / marks[i].y : 100;
        text_printf(out, "%s ", i ? "," : "");
        text_printf(out, share < 9.95 ? "%.2g" : "%.0f", share);
        text_printf(out, " %% with %s (", marks[i].values[1]);
        finding_add_ratio(out, marks[i].y);
        text_add(out, " the floor)");
        finding_rests_on(finding, &marks[i]);
    }
    if (asked && asked != best) {
        text_printf(out, ": %s takes ", asked->values[1]);
        finding_add_ratio(out, asked->y / best->y);
        text_printf(out, " the time that %s takes.", best->values[1]);
    } else if (count > 1) {
        text_printf(out, ": %s wastes the least.", best->values[1]);
    } else {
        text_add(out, best->y > 2      ? ": it wastes more than half."
                      : best->y > 1.25 ? ": it wastes less than half."
                                       : ": it wastes little.");
    }
}

enum status finding_framework(const struct finding_about *about, struct finding *finding)
{
    const struct finding_chart wanted = {.x = "framework",
                                         .y = "times_floor",
                                         .groups = {"batch"},
                                         .phase = about->phase,
                                         .server = about->server,
                                         .unit = about->best.unit};
    struct store_query query;
    struct store_chart chart;
    struct store_row row = {.point = about->best};
    size_t count;
    TRY(finding_draw(about, &wanted, finding, &query, &chart));
    size_t first = widest_series(&chart, &query, &count);
    enum status status = STATUS_OK;
    finding->known = count > 0;
    if (finding->known)
        status = store_row(about->store, chart.marks[first].id, &row);
    bool gpu = strcmp(row.point.unit, "gpu") == 0;
    finding_begin_command("bench", &row.point, about->phase,
                          FINDING_BENCH & ~(FINDING_BIT(framework) | FINDING_BIT(backend)),
                          finding);
    text_printf(&finding->command, " --framework prony,pytorch,%s --batch %s",
                gpu ? "jax" : "numpy", count ? chart.marks[first].values[0] : "64");
    if (status == STATUS_OK && finding->known) {
        finding_keep_like(&row.point, &query, &chart, finding);
        say_shares(about, &row.point, chart.marks + first, count, finding);
    } else {
        text_printf(&finding->sentence,
                    "Not known: no result of %s %s on %s says how far it is from the floor%s.",
                    about->phase, about->model, about->server,
                    chart.count ? ", but for those that are faster: their ceilings are too low"
                                : "");
    }
    store_chart_free(&chart);
    return status;
}

/* Training or inference */

enum status finding_phase(const struct finding_about *about, struct finding *finding)
{
    const struct finding_chart wanted = {.x = "phase",
                                         .y = "throughput",
                                         .groups = {"framework", "backend", "batch", "threads"},
                                         .phase = "",
                                         .server = about->server,
                                         .unit = ""};
    struct text *out = &finding->sentence;
    struct store_chart chart;
    struct series series;
    TRY(finding_draw_best(about, &wanted, 2, finding, &chart, &series));
    finding_begin_command("bench", finding->known ? &series.point : &about->best,
                          "training,inference", FINDING_BENCH & ~FINDING_BIT(optimiser), finding);
    text_add(&finding->command, " --batch 1,64");
    if (finding->known) {
        const struct store_mark *inference = &series.marks[0], *training = &series.marks[1];
        bool usual = training->y <= inference->y;
        const struct store_mark *more = usual ? training : inference;
        const struct store_mark *less = usual ? inference : training;
        text_add(out, "A sample costs ");
        finding_add_ratio(out, less->y / more->y);
        text_printf(out, " as much in %s as in %s: ", more->values[4], less->values[4]);
        finding_add_rate(out, more->y);
        text_add(out, " against ");
        finding_add_rate(out, less->y);
        text_printf(out, " for %s at batch %s with ", about->model, more->values[2]);
        finding_add_maker(out, &series.point);
        text_add(out, " on ");
        finding_add_place(out, series.point.unit, about->server);
        text_add(out, ".");
        finding_rests_on(finding, more);
        finding_rests_on(finding, less);
    } else {
        text_printf(out,
                    "Not known: training and inference of %s were not both measured at one "
                    "batch, all else alike, on %s.",
                    about->model, about->server);
    }
    store_chart_free(&chart);
    return STATUS_OK;
}
