/* finding_frameworks.c: which framework is fastest; which precision; training or inference. */
#include "finding/finding_inside.h"

#include "base/text.h"
#include "record/names.h"

#include <math.h>
#include <string.h>

/* The values of a mark of the frameworks' chart. */
enum { NAME, BATCH };
enum { RIVALS = 16 };

/* The frameworks of one batch, the fastest first. */
struct contest {
    const struct store_mark *marks[RIVALS];
    struct figure rates[RIVALS];
    size_t count;
};

/* How many frameworks of a lot were measured at the batch of this mark. */
static size_t count_rivals(const struct store_mark *marks, size_t count,
                           const struct store_mark *mark)
{
    size_t rivals = 0;
    for (size_t i = 0; i < count; i++)
        rivals += marks[i].places[BATCH] == mark->places[BATCH];
    return rivals;
}

/* The lot with the most frameworks at one batch; of equals the one with the most results, then the
 * one with the most samples a second. Results of a lot are alike in threads, precision and all
 * else.
 */
static size_t widest_lot(const struct asking *asking, size_t *count)
{
    size_t widest = 0, most = 0;
    double fastest = 0;
    *count = 0;
    for (size_t first = 0, length; first < asking->chart.count; first += length) {
        const struct store_mark *marks = asking->chart.marks + first;
        length = finding_lot_length(asking, first);
        for (size_t i = 0; i < length; i++) {
            const size_t rivals = count_rivals(marks, length, &marks[i]);
            bool better = rivals > most;
            if (rivals == most)
                better = length > *count || (length == *count && marks[i].y > fastest);
            if (!better)
                continue;
            widest = first;
            *count = length;
            most = rivals;
            fastest = marks[i].y;
        }
    }
    return widest;
}

static void insert_rival(struct contest *contest, const struct store_mark *mark, struct figure rate)
{
    if (contest->count == RIVALS)
        return;
    size_t place = contest->count++;
    for (; place > 0 && contest->rates[place - 1].value < rate.value; place--) {
        contest->marks[place] = contest->marks[place - 1];
        contest->rates[place] = contest->rates[place - 1];
    }
    contest->marks[place] = mark;
    contest->rates[place] = rate;
}

/* All frameworks of a lot that were measured at this batch. */
static enum status hold_contest(const struct asking *asking, size_t first, size_t length,
                                const char *batch, struct contest *out)
{
    *out = (struct contest){.count = 0};
    for (size_t i = first; i < first + length; i++) {
        const struct store_mark *mark = &asking->chart.marks[i];
        struct figure rate;
        if (strcmp(mark->values[BATCH], batch) != 0)
            continue;
        TRY(finding_figure(asking, mark, &rate));
        insert_rival(out, mark, rate);
    }
    return STATUS_OK;
}

static bool has_winner(const struct contest *contest, const struct contest *other)
{
    for (size_t i = 0; i < contest->count; i++)
        if (strcmp(contest->marks[i]->values[NAME], other->marks[0]->values[NAME]) == 0)
            return true;
    return false;
}

/* How many frameworks met at most at one batch of a lot. */
static size_t most_rivals(const struct store_mark *marks, size_t length)
{
    size_t most = 0;
    for (size_t i = 0; i < length; i++) {
        const size_t rivals = count_rivals(marks, length, &marks[i]);
        most = rivals > most ? rivals : most;
    }
    return most;
}

/* The contest at the largest batch, though one framework be missing there: the slowest is often
 * measured at small batches only; and that at the smallest batch which has the winner, too. Counts
 * are 0 when there is none, or no smaller one. */
static enum status find_contests(const struct asking *asking, struct contest *large,
                                 struct contest *small)
{
    size_t length, first = widest_lot(asking, &length);
    const struct store_mark *marks = asking->chart.marks + first;
    const size_t most = most_rivals(marks, length);
    struct contest contest;
    *large = *small = (struct contest){.count = 0};
    for (size_t i = 0; i < length; i++) {
        const size_t rivals = count_rivals(marks, length, &marks[i]);
        if (rivals < 2 || rivals + 1 < most ||
            (large->count && marks[i].places[BATCH] <= large->marks[0]->places[BATCH]))
            continue;
        TRY(hold_contest(asking, first, length, marks[i].values[BATCH], large));
    }
    for (size_t i = 0; i < length && large->count; i++) {
        const struct contest *least = small->count ? small : large;
        if (marks[i].places[BATCH] >= least->marks[0]->places[BATCH])
            continue;
        TRY(hold_contest(asking, first, length, marks[i].values[BATCH], &contest));
        if (contest.count > 1 && has_winner(&contest, large))
            *small = contest;
    }
    return STATUS_OK;
}

static const char *title_of(const struct contest *contest, size_t place)
{
    return framework_title(contest->marks[place]->values[NAME]);
}

/* How many rivals from `from` on are as fast as that one: the first it exceeds ends them. */
static size_t equals(const struct asking *asking, const struct contest *contest, size_t from)
{
    size_t end = from + 1;
    while (end < contest->count &&
           !finding_exceeds(asking, contest->rates[from], contest->rates[end]))
        end++;
    return end - from;
}

/* "PyTorch", "PyTorch and NumPy", "PyTorch, NumPy and oneDNN" */
static void add_names(struct text *out, const struct contest *contest, size_t from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_printf(out, "%s%s",
                    i == 0           ? ""
                    : i + 1 == count ? " and "
                                     : ", ",
                    title_of(contest, from + i));
}

static void add_at_batch(struct text *out, const struct contest *contest)
{
    text_printf(out, " at batch %s", contest->marks[0]->values[BATCH]);
}

/* "prony trains `large` 1.6 × as fast as PyTorch and NumPy at batch 64" */
static void say_winner(struct asking *asking, const struct contest *contest)
{
    struct text *out = &asking->finding->sentence;
    const size_t winners = equals(asking, contest, 0);
    add_names(out, contest, 0, winners);
    if (strcmp(contest->marks[0]->values[NAME], "prony") != 0) /* which is written so */
        finding_capitalise(out, 0);
    asking->finding->nothing = winners > 1;
    if (winners > 1) {
        text_printf(out, " are equally fast at %s `%s`",
                    strcmp(asking->about->phase, "training") ? "running" : "training",
                    asking->about->model);
        add_at_batch(out, contest);
        return;
    }
    text_printf(out, " %s `%s` ", finding_verb(asking->about), asking->about->model);
    finding_add_times(asking, finding_ratio(contest->rates[0], contest->rates[1]));
    text_add(out, " as fast as ");
    add_names(out, contest, 1, equals(asking, contest, 1));
    add_at_batch(out, contest);
}

/* Are those that come second in one contest among those that come second in the other? */
static bool same_rivals(const struct asking *asking, const struct contest *contest,
                        const struct contest *other)
{
    const size_t count = equals(asking, contest, 1), others = equals(asking, other, 1);
    size_t found = 0;
    for (size_t i = 1; i <= count; i++)
        for (size_t k = 1; k <= others; k++)
            found += strcmp(contest->marks[i]->values[NAME], other->marks[k]->values[NAME]) == 0;
    return found == count;
}

/* ", and 10 × as fast at batch 1"; "; at batch 1 NumPy is fastest" */
static void say_smallest(struct asking *asking, const struct contest *large,
                         const struct contest *small)
{
    struct text *out = &asking->finding->sentence;
    const size_t winners = equals(asking, small, 0);
    const bool same = winners == 1 && equals(asking, large, 0) == 1 &&
                      strcmp(small->marks[0]->values[NAME], large->marks[0]->values[NAME]) == 0;
    if (same) {
        text_add(out, ", and ");
        finding_add_times(asking, finding_ratio(small->rates[0], small->rates[1]));
        text_add(out, " as fast");
        if (!same_rivals(asking, small, large)) {
            text_add(out, " as ");
            add_names(out, small, 1, equals(asking, small, 1));
        }
        add_at_batch(out, small);
    } else {
        text_printf(out, "; at batch %s ", small->marks[0]->values[BATCH]);
        add_names(out, small, 0, winners);
        text_add(out, winners == 1 ? " is fastest" : " are equally fast");
    }
}

static void suggest_frameworks(struct asking *asking, const struct point *point,
                               const struct contest *large, const struct contest *small)
{
    struct text *command = &asking->finding->command;
    finding_begin_command("bench", point, asking->about->phase,
                          FINDING_BENCH & ~(FINDING_BIT(framework) | FINDING_BIT(backend)),
                          asking->finding);
    text_add(command, " --batch ");
    if (small->count)
        text_printf(command, "%s,", small->marks[0]->values[BATCH]);
    text_add(command, large->count ? large->marks[0]->values[BATCH] : "64");
}

static void rest_on(struct finding *finding, const struct contest *contest)
{
    for (size_t i = 0; i < contest->count; i++)
        finding_rests_on(finding, contest->marks[i]);
}

enum status finding_frameworks(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    struct finding *finding = asking->finding;
    struct store_row row = {.point = about->best};
    struct contest large, small;
    TRY(find_contests(asking, &large, &small));
    finding->known = large.count > 0;
    if (finding->known)
        TRY(store_row(about->store, large.marks[0]->id, &row));
    suggest_frameworks(asking, &row.point, &large, &small);
    TRY(finding_add_frameworks(about, finding_is_gpu(&row.point), &finding->command));
    if (!finding->known) {
        text_add(&finding->sentence, "Not known: no two frameworks were measured at one batch of ");
        finding_add_work(&finding->sentence, about);
        finding_add_place(&finding->sentence, about);
        text_add(&finding->sentence, ", all else alike.");
        return STATUS_OK;
    }
    finding_keep_like(asking, &row.point);
    say_winner(asking, &large);
    finding_add_manner(&finding->sentence, &row.point);
    finding_add_cores(&finding->sentence, about, &row.point);
    if (small.count)
        say_smallest(asking, &large, &small);
    finding_add_spread(asking);
    text_add(&finding->sentence, ".");
    rest_on(finding, &large);
    rest_on(finding, &small);
    return STATUS_OK;
}

/* Which precision; x comes after framework, backend, batch. */

enum { SERIES_BATCH = 2, PRECISION = 3 };

/* The fp32 mark of the fastest series that has one and another; NULL: there is none. */
static const struct store_mark *find_usual(const struct asking *asking, struct series *out)
{
    const struct store_mark *found = NULL;
    for (size_t first = 0, count; first < asking->chart.count; first += count) {
        const struct store_mark *marks = asking->chart.marks + first, *top = marks, *usual = NULL;
        count = finding_series_length(asking, first);
        for (size_t i = 0; i < count; i++) {
            top = marks[i].y > top->y ? &marks[i] : top;
            if (strcmp(marks[i].values[PRECISION], "fp32") == 0)
                usual = &marks[i];
        }
        if (count < 2 || !usual || (found && top->y <= out->best))
            continue;
        found = usual;
        *out = (struct series){.marks = marks, .count = count, .best = top->y, .top = top};
    }
    return found;
}

/* What it costs: right answers, or else how far outputs move. */
static enum status say_cost(struct asking *asking, const struct store_mark *mark)
{
    static const double LITTLE = 5e-5; /* of right answers: nothing is said to two places */
    struct text *out = &asking->finding->sentence;
    struct store_row row;
    TRY(store_row(asking->about->store, mark->id, &row));
    const double lost = row.metrics[METRIC_accuracy_lost];
    const double error = row.metrics[METRIC_output_error];
    if (lost >= LITTLE)
        text_printf(out, " It loses %.2g %% of the right answers.", 100 * lost);
    else if (!isnan(lost))
        text_add(out, " It loses no right answers.");
    else if (!isnan(error))
        text_printf(out, " It moves outputs by up to %.2g %%.", 100 * error);
    return STATUS_OK;
}

static enum status say_precision(struct asking *asking, const struct series *series,
                                 const struct store_mark *usual)
{
    struct text *out = &asking->finding->sentence;
    struct figure top, here;
    TRY(finding_figure(asking, series->top, &top));
    TRY(finding_figure(asking, usual, &here));
    const bool gains = finding_exceeds(asking, top, here);
    if (gains) {
        text_printf(out, "%s %s `%s` ", series->top->values[PRECISION], finding_verb(asking->about),
                    asking->about->model);
        finding_add_times(asking, finding_ratio(top, here));
        text_printf(out, " as fast as fp32 at batch %s", usual->values[SERIES_BATCH]);
    } else {
        asking->finding->nothing = true;
        text_printf(out, "fp32 is enough for `%s`: no other precision is faster at batch %s",
                    asking->about->model, usual->values[SERIES_BATCH]);
    }
    text_add(out, " on ");
    finding_add_unit(out, asking->about, &series->point);
    finding_add_spread(asking);
    text_add(out, ".");
    if (gains)
        TRY(say_cost(asking, series->top));
    finding_keep_series(asking, usual);
    finding_rests_on(asking->finding, series->top);
    finding_rests_on(asking->finding, usual);
    return STATUS_OK;
}

enum status finding_precision(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    struct finding *finding = asking->finding;
    struct series series = {.point = about->best};
    struct store_row row;
    const struct store_mark *usual = find_usual(asking, &series);
    finding->known = usual != NULL;
    series.point = about->best;
    if (usual) {
        TRY(store_row(about->store, usual->id, &row));
        series.point = row.point;
        finding_keep_like(asking, &row.point);
    }
    finding_begin_command("bench", &series.point, about->phase,
                          (FINDING_BENCH | FINDING_BIT(batch)) & ~FINDING_BIT(precision), finding);
    text_add(&finding->command, finding_is_gpu(&about->best) ? " --precision fp32,tf32,bf16"
                                : text_equal(about->phase, "inference") ? " --precision all"
                                                                        : " --precision fp32,bf16");
    if (usual)
        return say_precision(asking, &series, usual);
    text_add(&finding->sentence, "Not known: ");
    finding_add_work(&finding->sentence, about);
    text_add(&finding->sentence,
             " was not measured in fp32 and another precision, all else alike,");
    finding_add_place(&finding->sentence, about);
    text_add(&finding->sentence, ".");
    return STATUS_OK;
}

/* Training or inference: the marks of a series are those two. */

static enum status say_phases(struct asking *asking, const struct series *series)
{
    struct text *out = &asking->finding->sentence;
    struct figure inference, training;
    TRY(finding_figure(asking, &series->marks[0], &inference));
    TRY(finding_figure(asking, &series->marks[1], &training));
    const char *model = asking->about->model;
    if (finding_exceeds(asking, inference, training)) {
        text_printf(out, "Training `%s` costs ", model);
        finding_add_times(asking, finding_ratio(inference, training));
        text_add(out, " as much per sample as inference");
    } else if (finding_exceeds(asking, training, inference)) {
        text_printf(out, "Inference of `%s` costs ", model);
        finding_add_times(asking, finding_ratio(training, inference));
        text_add(out, " as much per sample as training");
    } else {
        text_printf(out, "Training and inference of `%s` cost the same per sample", model);
    }
    finding_keep_series(asking, series->marks);
    finding_add_batch(out, &series->point);
    finding_add_manner(out, &series->point);
    if (strcmp(series->point.framework, "prony") != 0)
        finding_add_maker(out, &series->point);
    finding_add_spread(asking);
    text_add(out, ".");
    finding_rests_on(asking->finding, &series->marks[0]);
    finding_rests_on(asking->finding, &series->marks[1]);
    return STATUS_OK;
}

enum status finding_phase(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    struct finding *finding = asking->finding;
    struct series series;
    TRY(finding_best_series(asking, 2, &series));
    finding_begin_command("bench", finding->known ? &series.point : &about->best,
                          "training,inference", FINDING_BENCH & ~FINDING_BIT(optimiser), finding);
    text_add(&finding->command, " --batch 1,64");
    if (finding->known)
        return say_phases(asking, &series);
    text_printf(&finding->sentence,
                "Not known: training and inference of `%s` were not both measured at one batch, "
                "all else alike,",
                about->model);
    finding_add_place(&finding->sentence, about);
    text_add(&finding->sentence, ".");
    return STATUS_OK;
}
