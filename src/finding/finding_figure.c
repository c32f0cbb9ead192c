/* finding_figure.c: figures with their spread: whether a difference is beyond the noise, and how a
 * sentence says a ratio or a share. */
#include "finding/finding_inside.h"

#include <math.h>

/* Half the interval ÷ the figure: of one without an interval; up to which it is written; above
 * which the sentence says "about". */
static const double UNKNOWN = 0.1, WORTH_A_WORD = 0.01, ABOUT = 0.05;
static const double GAIN = 1.05; /* less is no gain */

/* The interval of the result that a mark shows: older and slower ones beside it are no noise. A
 * share or a time has the same spread as the samples a second. */
enum status finding_figure(const struct asking *asking, const struct store_mark *mark,
                           struct figure *out)
{
    struct store_row row;
    TRY(store_row(asking->about->store, mark->id, &row));
    const double *of = row.metrics;
    out->value = mark->y;
    out->spread = (of[METRIC_throughput_ci_high] - of[METRIC_throughput_ci_low]) /
                  (2 * of[METRIC_throughput]);
    return STATUS_OK;
}

static double spread_of(struct figure figure)
{
    return isnan(figure.spread) ? UNKNOWN : figure.spread;
}

struct figure finding_ratio(struct figure a, struct figure b)
{
    return (struct figure){a.value / b.value, hypot(spread_of(a), spread_of(b))};
}

bool finding_exceeds(const struct asking *asking, struct figure a, struct figure b)
{
    if (!(asking->row->needs & FINDING_SURE))
        return a.value > b.value;
    return a.value > GAIN * b.value && a.value * (1 - spread_of(a)) > b.value * (1 + spread_of(b));
}

enum status finding_first_as_good(const struct asking *asking, const struct series *series,
                                  const struct store_mark **out)
{
    struct figure top, first, here;
    TRY(finding_figure(asking, series->top, &top));
    TRY(finding_figure(asking, series->marks, &first));
    *out = series->marks;
    if (!finding_exceeds(asking, top, first))
        return STATUS_OK;
    for (++*out; *out != series->top; ++*out) {
        TRY(finding_figure(asking, *out, &here));
        if (!finding_exceeds(asking, top, here) && finding_exceeds(asking, here, first))
            break;
    }
    return STATUS_OK;
}

/* "about " where it must be said, and remembers the spread. */
static void note_spread(struct asking *asking, struct figure figure)
{
    asking->spread = fmax(asking->spread, spread_of(figure));
    if (spread_of(figure) > ABOUT) {
        asking->finding->approximate = true;
        text_add(&asking->finding->sentence, "about ");
    }
}

/* Two digits: 1.08, 1.7, 12, 1,400. */
static void add_short(struct text *out, double value)
{
    if (value < 1.095) {
        text_printf(out, "%.2f", value);
    } else if (value < 9.95) {
        double tenths = round(10 * value) / 10;
        text_printf(out, tenths == floor(tenths) ? "%.0f" : "%.1f", tenths);
    } else if (value < 1e15) {
        double unit = pow(10, floor(log10(value * 1.005)) - 1);
        text_add_grouped(out, (uint64_t)(round(value / unit) * unit));
    } else {
        text_printf(out, "%.1e", value);
    }
}

void finding_add_range(struct asking *asking, struct figure least, struct figure most)
{
    if (most.value > GAIN * least.value) {
        note_spread(asking, least.spread > most.spread ? least : most);
        add_short(&asking->finding->sentence, least.value);
        text_add(&asking->finding->sentence, " to ");
        add_short(&asking->finding->sentence, most.value);
        text_add(&asking->finding->sentence, " ×");
    } else {
        finding_add_times(asking, most);
    }
}

void finding_add_times(struct asking *asking, struct figure figure)
{
    note_spread(asking, figure);
    add_short(&asking->finding->sentence, figure.value);
    text_add(&asking->finding->sentence, " ×");
}

void finding_add_share(struct asking *asking, struct figure figure)
{
    note_spread(asking, figure);
    text_printf(&asking->finding->sentence, figure.value < 9.95 ? "%.2g %%" : "%.0f %%",
                figure.value);
}

void finding_add_spread(struct asking *asking)
{
    if (asking->spread >= WORTH_A_WORD && asking->spread <= ABOUT)
        text_printf(&asking->finding->sentence, " (± %.0f %%)", 100 * asking->spread);
}
