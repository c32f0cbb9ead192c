/* finding_scaling.c: which batch, how many threads, what twice the machines would bring. */
#include "finding/finding_inside.h"
#include "record/names.h"

#include <math.h>
#include <string.h>

/* " with PyTorch": prony goes without saying. */
static void add_other_maker(struct text *out, const struct point *point)
{
    if (strcmp(point->framework, "prony") != 0)
        finding_add_maker(out, point);
}

/* Which batch; x comes after framework, backend, threads. */

enum { BATCH_X = 3 };

static enum status say_batch(struct asking *asking, const struct series *series,
                             const struct store_mark *chosen)
{
    struct text *out = &asking->finding->sentence;
    const struct store_mark *first = series->marks, *last = &series->marks[series->count - 1];
    const char *batch = chosen->values[BATCH_X];
    struct figure here, there;
    TRY(finding_figure(asking, chosen, &here));
    TRY(finding_figure(asking, first, &there));
    asking->finding->nothing = chosen == first;
    if (chosen == first) {
        text_printf(out, "Batch %s is enough for ", batch);
        finding_add_work(out, asking->about);
        finding_add_manner(out, &series->point);
        add_other_maker(out, &series->point);
        text_printf(out, ": up to batch %s, no larger one brings more.", last->values[BATCH_X]);
    } else {
        text_printf(out, "Batches pay: batch %s %s ", batch, finding_verb(asking->about));
        finding_add_times(asking, finding_ratio(here, there));
        text_printf(out, " as many samples of `%s` per second as batch %s", asking->about->model,
                    first->values[BATCH_X]);
        finding_add_manner(out, &series->point);
        add_other_maker(out, &series->point);
        finding_add_spread(asking);
        if (chosen == last)
            text_add(out, "; a larger batch may bring more.");
        else
            text_printf(out, "; beyond %s there is little more to gain.", batch);
    }
    finding_rests_on(asking->finding, chosen);
    finding_rests_on(asking->finding, first);
    finding_rests_on(asking->finding, series->top);
    return STATUS_OK;
}

enum status finding_batch(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    struct finding *finding = asking->finding;
    struct text *out = &finding->sentence;
    struct series series;
    TRY(finding_best_series(asking, 2, &series));
    finding_begin_command("bench", finding->known ? &series.point : &about->best, about->phase,
                          FINDING_BENCH, finding);
    text_add(&finding->command, " --batch 1-1024*2");
    if (!finding->known) {
        text_add(out, "Not known: no two batches of ");
        finding_add_work(out, about);
        text_add(out, " were measured");
        finding_add_place(out, about);
        text_add(out, " with all else alike.");
        return STATUS_OK;
    }
    const struct store_mark *chosen;
    TRY(finding_first_as_good(asking, &series, &chosen));
    return say_batch(asking, &series, chosen);
}

/* How many threads; x comes after framework, backend, batch. */

enum { BATCH = 2, X = 3 };

/* What can be said of threads without two numbers of them. */
static void say_no_threads(const struct finding_about *about, bool counted, struct text *out)
{
    if (!counted && finding_is_gpu(&about->best)) {
        text_add(out, "None to choose: ");
        finding_add_work(out, about);
        text_add(out, " was measured on a GPU, which takes no threads.");
        return;
    }
    text_add(out, "Not known: ");
    finding_add_work(out, about);
    text_add(out, counted ? " was measured with one number of threads only"
                          : " was not measured on a CPU");
    finding_add_place(out, about);
    text_add(out, ".");
}

static enum status say_threads(struct asking *asking, const struct series *series,
                               const struct store_mark *chosen)
{
    struct text *out = &asking->finding->sentence;
    const struct store_mark *first = series->marks, *last = &series->marks[series->count - 1];
    const bool second = strcmp(first->values[X], "1") == 0 && strcmp(chosen->values[X], "2") == 0;
    struct figure here, there;
    TRY(finding_figure(asking, chosen, &here));
    TRY(finding_figure(asking, first, &there));
    asking->finding->nothing = chosen == first;
    if (chosen == first) {
        text_printf(out, "%s enough for ",
                    strcmp(first->values[X], "1") ? "Few threads are" : "One thread is");
        finding_add_work(out, asking->about);
        text_printf(out, " at batch %s: up to %s, more bring no gain beyond the noise.",
                    chosen->values[BATCH], last->values[X]);
    } else {
        if (second)
            text_add(out, "A second thread brings ");
        else
            text_printf(out, "%s threads bring ", chosen->values[X]);
        finding_add_times(asking, finding_ratio(here, there));
        text_add(out, " in ");
        finding_add_work(out, asking->about);
        text_printf(out, " at batch %s", chosen->values[BATCH]);
        add_other_maker(out, &series->point);
        if (!second)
            text_printf(out, " over %s", strcmp(first->values[X], "1") ? first->values[X] : "one");
        finding_add_spread(asking);
        text_add(out, ".");
    }
    finding_keep_series(asking, first);
    finding_rests_on(asking->finding, first);
    finding_rests_on(asking->finding, chosen == first ? last : chosen);
    return STATUS_OK;
}

enum status finding_threads(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    struct finding *finding = asking->finding;
    struct series series;
    TRY(finding_best_series(asking, 2, &series));
    finding_begin_command(
        "bench", finding->known ? &series.point : &about->best, about->phase,
        finding->known ? FINDING_BENCH & ~FINDING_BIT(threads) : FINDING_BIT(optimiser), finding);
    text_printf(&finding->command, " --batch %s",
                finding->known ? series.top->values[BATCH] : "64");
    if (!finding_add_threads(about, &finding->command))
        text_clear(&finding->command); /* one core, or nobody knows how many */
    if (!finding->known) {
        const struct store_chart *chart = &asking->chart;
        say_no_threads(about, chart->count && *chart->marks[chart->count - 1].values[X],
                       &finding->sentence);
        return STATUS_OK;
    }
    const struct store_mark *chosen;
    TRY(finding_first_as_good(asking, &series, &chosen));
    return say_threads(asking, &series, chosen);
}

/* What twice the machines would bring: what the next doubling brings, from the share of the work
 * that does not get faster (Amdahl's law) between the first and the last point: t(n) = serial +
 * parallel ÷ n. */
static double next_doubling(const struct store_mark *last, double units)
{
    double serial = (units / last->speedup - 1) / (units - 1);
    serial = fmin(fmax(serial, 0), 1);
    double now = serial + (1 - serial) / units, then = serial + (1 - serial) / (2 * units);
    return now / then;
}

/* What several workers brought beside one that took turns with them: a figure of that run. */
static enum status say_gain(struct asking *asking, const struct series *series,
                            const struct store_mark *several, double speedup)
{
    struct finding *finding = asking->finding;
    struct text *out = &finding->sentence;
    struct store_row row;
    struct figure gain;
    TRY(finding_figure(asking, several, &gain));
    gain = finding_ratio(gain, gain); /* both were measured as well */
    gain.value = speedup;
    TRY(store_row(asking->about->store, several->id, &row));
    finding->nothing = !(gain.value > 1.05 && gain.value * (1 - gain.spread) > 1);
    if (finding->nothing) {
        text_printf(out, "%s workers bring nothing in ", several->values[X]);
    } else {
        text_printf(out, "%s workers bring ", several->values[X]);
        finding_add_times(asking, gain);
        text_add(out, " in ");
    }
    finding_add_work(out, asking->about);
    text_printf(out, " at batch %s each", several->values[BATCH]);
    add_other_maker(out, &row.point);
    text_printf(out, ", %s parallel", row.point.parallelism);
    if (!finding->nothing)
        finding_add_spread(asking);
    text_add(out, ".");
    finding_begin_command("bench", &series->point, asking->about->phase,
                          FINDING_BENCH & ~FINDING_BIT(workers) & ~FINDING_BIT(scaling), finding);
    text_printf(&finding->command, " --batch %s --workers 1,%s", several->values[BATCH],
                several->values[X]);
    finding_rests_on(finding, several);
    return STATUS_OK;
}

/* Of records from elsewhere, which have no one worker beside them, there is no command. */
enum status finding_workers(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    struct text *out = &asking->finding->sentence;
    struct series series;
    TRY(finding_best_series(asking, 2, &series));
    if (!asking->finding->known) {
        text_add(out, "Not known: ");
        finding_add_work(out, about);
        text_add(out, " was measured with one number of workers only.");
        return STATUS_OK;
    }
    const struct store_mark *first = series.marks, *last = &series.marks[series.count - 1];
    struct store_row row;
    TRY(store_row(about->store, last->id, &row));
    if (!isnan(row.metrics[METRIC_worker_speedup]) && strcmp(row.check, "right") == 0)
        return say_gain(asking, &series, last, row.metrics[METRIC_worker_speedup]);
    double more = next_doubling(last, last->ideal);
    text_printf(out, "Twice the workers would bring about %.2g × in ", more);
    finding_add_work(out, about);
    text_printf(out, ": from %s to %s it grew %.2g ×, %.0f %% of the ideal.", first->values[X],
                last->values[X], last->speedup, 100 * last->efficiency);
    asking->finding->approximate = true;
    finding_rests_on(asking->finding, first);
    finding_rests_on(asking->finding, last);
    return STATUS_OK;
}
