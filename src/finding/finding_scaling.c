/* finding_scaling.c: how many threads, and what twice the machines would bring. */
#include "finding/finding_inside.h"

#include <math.h>
#include <string.h>

/* The batch of a series, for the sentence; x comes after framework, backend, batch. */
enum { BATCH = 2, X = 3 };

/* What can be said of threads without two numbers of them. */
static void say_no_threads(const struct finding_about *about, bool counted, struct text *out)
{
    if (counted)
        text_printf(out, "Not known: %s %s was measured with one number of threads only on %s.",
                    about->phase, about->model, about->server);
    else if (strcmp(about->best.unit, "cpu") != 0)
        text_printf(out, "None to choose: %s %s was measured on a GPU, which takes no threads.",
                    about->phase, about->model);
    else
        text_printf(out, "Not known: %s %s was not measured on a CPU of %s.", about->phase,
                    about->model, about->server);
}

static void say_threads(const struct finding_about *about, const struct series *series,
                        const struct store_mark *chosen, struct finding *finding)
{
    struct text *out = &finding->sentence;
    const struct store_mark *first = series->marks;
    bool gains = chosen != first;
    const struct store_mark *shown = gains ? chosen : &series->marks[series->count - 1];
    text_printf(out, "%s thread%s for %s %s at batch %s with ", chosen->values[X],
                strcmp(chosen->values[X], "1") ? "s" : "", about->phase, about->model,
                chosen->values[BATCH]);
    finding_add_name(out, &series->point);
    finding_add_manner(out, &series->point);
    text_printf(out, " on %s: %s threads bring ", about->server, shown->values[X]);
    finding_add_ratio(out, shown->speedup);
    text_printf(out, " the samples/s of %s", first->values[X]);
    if (gains)
        text_printf(out, ", %.0f %% of what they could.", 100 * shown->efficiency);
    else
        text_add(out, ", which is not worth them.");
    finding_rests_on(finding, first);
    finding_rests_on(finding, shown);
}

enum status finding_threads(const struct finding_about *about, struct finding *finding)
{
    const struct finding_chart wanted = {.x = "threads",
                                         .y = "throughput",
                                         .groups = {"framework", "backend", "batch"},
                                         .phase = about->phase,
                                         .server = about->server,
                                         .unit = "cpu",
                                         .baseline = "first"};
    struct text *out = &finding->sentence;
    struct store_chart chart;
    struct series series;
    TRY(finding_draw_best(about, &wanted, 2, finding, &chart, &series));
    finding_begin_command(
        "bench", finding->known ? &series.point : &about->best, about->phase,
        finding->known ? FINDING_BENCH & ~FINDING_BIT(threads) : FINDING_BIT(optimiser), finding);
    text_printf(&finding->command, " --batch %s --threads 1,2,4",
                finding->known ? series.top->values[BATCH] : "64");
    enum status status = STATUS_OK;
    if (finding->known) {
        const struct store_mark *chosen;
        status = finding_first_as_good(about, &series, &chosen);
        if (status == STATUS_OK)
            say_threads(about, &series, chosen, finding);
    } else {
        say_no_threads(about, chart.count && *chart.marks[chart.count - 1].values[X], out);
    }
    store_chart_free(&chart);
    return status;
}

/* What the next doubling brings, from the share of the work that does not get faster (Amdahl's law)
 * between the first and the last point: t(n) = serial + parallel ÷ n. */
static double next_doubling(const struct store_mark *last, double units)
{
    double serial = (units / last->speedup - 1) / (units - 1);
    serial = fmin(fmax(serial, 0), 1);
    double now = serial + (1 - serial) / units, then = serial + (1 - serial) / (2 * units);
    return now / then;
}

/* From records that came from elsewhere: nothing here runs several workers, so there is no command.
 */
enum status finding_workers(const struct finding_about *about, struct finding *finding)
{
    const struct finding_chart wanted = {.x = "workers",
                                         .y = "throughput",
                                         .groups = {"framework", "backend", "batch"},
                                         .phase = about->phase,
                                         .server = "",
                                         .unit = "",
                                         .baseline = "first"};
    struct text *out = &finding->sentence;
    struct store_chart chart;
    struct series series;
    TRY(finding_draw_best(about, &wanted, 2, finding, &chart, &series));
    if (finding->known) {
        const struct store_mark *first = series.marks, *last = &series.marks[series.count - 1];
        double more = next_doubling(last, last->ideal);
        text_printf(out,
                    "About %.3g × the samples/s: from %s to %s workers they grew %.3g × (%.0f %% "
                    "of ideal) for %s %s at batch %s with ",
                    more, first->values[X], last->values[X], last->speedup, 100 * last->efficiency,
                    about->phase, about->model, last->values[BATCH]);
        finding_add_maker(out, &series.point);
        text_add(out, more > 1.5 ? ", and the next doubling is worth having."
                                 : ", and the next doubling brings little.");
        finding_rests_on(finding, first);
        finding_rests_on(finding, last);
    } else {
        text_printf(out, "Not known: %s %s was measured with one number of workers only.",
                    about->phase, about->model);
    }
    store_chart_free(&chart);
    return STATUS_OK;
}
