/* finding_limit.c: how close to the limit the best result is and what sets the limit; who is
 * farthest from it. */
#include "finding/finding_inside.h"
#include "record/names.h"

#include <stdio.h>
#include <string.h>

static const double WELL = 70, POORLY = 30; /* per cent of the limit */
static const double SLOW = 10;              /* × the limit: worth a warning */

/* The best result's mark; without one of it the mark that is nearest to the limit. */
static const struct store_mark *choose_mark(const struct asking *asking)
{
    const struct store_mark *nearest = NULL;
    for (size_t i = 0; i < asking->chart.count; i++) {
        const struct store_mark *mark = &asking->chart.marks[i];
        for (int64_t k = 0; k < mark->count; k++)
            if (mark->ids[k] == asking->about->best_id)
                return mark;
        if (!nearest || mark->y > nearest->y)
            nearest = mark;
    }
    return nearest;
}

/* "what your CPU can do", "what one core of your CPU can do". */
static void add_hardware(struct text *out, const struct finding_about *about,
                         const struct point *point)
{
    text_add(out, "what ");
    if (!finding_is_gpu(point) && point->threads == 1 && about->machine.cores > 1)
        text_add(out, "one core of ");
    else if (!finding_is_gpu(point) && point->threads < about->machine.cores)
        text_printf(out, "%lld cores of ", (long long)point->threads);
    finding_add_unit(out, about, point);
    text_add(out, " can do");
}

static const char *bound_words(const char *bound)
{
    static const char *const words[][2] = {{"flop", " Arithmetic sets the limit."},
                                           {"bytes", " Memory sets the limit."},
                                           {"latency", " Waiting times set the limit."}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], bound) == 0)
            return words[i][1];
    return "";
}

static void say_share(struct asking *asking, const struct store_row *row, struct figure share)
{
    const struct finding_about *about = asking->about;
    struct text *out = &asking->finding->sentence;
    const bool whole = finding_is_gpu(&row->point) || row->point.threads >= about->machine.cores;
    if (share.value >= WELL && whole) {
        finding_add_unit(out, about, &row->point);
        finding_capitalise(out, 0);
        text_add(out, " is used well: ");
    }
    const size_t begin = out->length;
    finding_add_work(out, about);
    finding_add_batch(out, &row->point);
    finding_add_manner(out, &row->point);
    finding_add_maker(out, &row->point);
    if (begin == 0)
        finding_capitalise(out, 0);
    text_add(out, share.value < POORLY ? " reaches only " : " reaches ");
    finding_add_share(asking, share);
    text_add(out, " of ");
    if (begin > 0)
        text_add(out, "what it can do");
    else
        add_hardware(out, about, &row->point);
    finding_add_spread(asking);
    text_printf(out, ".%s", bound_words(row->bound));
}

/* Why there is no share of the limit. */
static void say_no_share(struct asking *asking)
{
    struct text *out = &asking->finding->sentence;
    text_add(out, "Not known: no result of ");
    finding_add_work(out, asking->about);
    finding_add_place(out, asking->about);
    text_add(out, " can be compared with the limit of the hardware.");
}

enum status finding_limit(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    struct finding *finding = asking->finding;
    const struct store_mark *mark = choose_mark(asking);
    struct store_row row = {.point = about->best};
    struct figure share;
    finding->known = mark != NULL;
    if (mark) {
        TRY(finding_figure(asking, mark, &share));
        TRY(store_row(about->store, mark->id, &row));
        say_share(asking, &row, share);
        finding_keep_like(asking, &row.point);
        finding_rests_on(finding, mark);
    } else {
        say_no_share(asking);
    }
    finding_begin_command("bench", &row.point, about->phase,
                          (FINDING_BENCH | FINDING_BIT(batch)) &
                              ~(FINDING_BIT(framework) | FINDING_BIT(backend)),
                          finding);
    return STATUS_OK;
}

/* Who is farthest from the limit. */

/* Of the other frameworks. */
static const struct store_mark *find_slowest(const struct asking *asking)
{
    const struct store_mark *slowest = NULL;
    for (size_t i = 0; i < asking->chart.count; i++) {
        const struct store_mark *mark = &asking->chart.marks[i];
        if (strcmp(mark->values[0], "prony") != 0 && (!slowest || mark->y > slowest->y))
            slowest = mark;
    }
    return slowest && slowest->y >= SLOW ? slowest : NULL;
}

static void say_slowest(struct asking *asking, const struct point *point, struct figure times)
{
    struct text *out = &asking->finding->sentence;
    const bool python = text_starts(point->framework, "python-");
    text_add(out, framework_title(point->framework));
    finding_capitalise(out, 0);
    text_add(out, " takes ");
    finding_add_times(asking, times);
    text_add(out, " as long as the limit for ");
    finding_add_work(out, asking->about);
    finding_add_batch(out, point);
    text_add(out, python ? ": never loop over weights in Python." : ".");
}

enum status finding_slowest(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    struct finding *finding = asking->finding;
    const struct store_mark *mark = find_slowest(asking);
    struct store_row row = {.point = about->best};
    struct figure times;
    finding->known = mark != NULL;
    if (mark) {
        TRY(finding_figure(asking, mark, &times));
        TRY(store_row(about->store, mark->id, &row));
        say_slowest(asking, &row.point, times);
        finding_keep_like(asking, &row.point);
        finding_rests_on(finding, mark);
    } else {
        text_printf(&finding->sentence,
                    "Nothing to avoid: no other framework was measured that takes %.0f × the "
                    "limit or more.",
                    SLOW);
        return STATUS_OK;
    }
    finding_begin_command("bench", &row.point, about->phase,
                          (FINDING_BENCH | FINDING_BIT(batch)) &
                              ~(FINDING_BIT(framework) | FINDING_BIT(backend)),
                          finding);
    text_add(&finding->command, " --framework prony,");
    text_add_word(&finding->command, row.point.framework);
    snprintf(finding->asks, sizeof finding->asks, "%s", row.point.framework);
    return STATUS_OK;
}
