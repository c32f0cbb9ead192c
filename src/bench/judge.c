/* judge.c: see judge.h. */
#include "bench/judge.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Draws of fp32 are shaken by many times what it rounds away (referee.h), so that they meet what
 * happens seldom; those of lower precisions by what these round away. */
/* A relu that turns over moves few numbers far: of scale, distance, worst, loss. */
static const double TIMES[] = {4, 8, 16, 8}, TIMES_LOW[] = {2, 2, 4, 4};
/* So many roundings are always allowed: others compute exponentials in another way. */
static const double ROUNDINGS = 64, ROUNDINGS_LOW = 8;
/* … and of how far a parameter moved this much: scale, distance, worst, loss. A single relu that
 * turns over is a thousandth of a parameter's way, and no draw need meet it; a gradient × 1.01 a
 * hundredth. Once a full step (below) was taken, much more. */
static const double MOVED[] = {4e-3, 4e-3, 4e-2, 1e-4}, MOVED_ON[] = {0.3, 0.8, 1, 0.1};
/* A single number may be off by so many times as much as all of them. */
static const double WORST_TIMES = 4;
/* A figure that may be so large lets pass what does nothing. */
static const double SAYS_NOTHING = 0.9;

enum figure { SCALE, DISTANCE, WORST, LOSS, FIGURES };

struct figures {
    double of[FIGURES];
};

/* What is compared: the values from..to of a stage. */
struct span {
    const struct task *task;
    int32_t stage;
    int64_t from, to;
};

/* The figure that says most. */
struct verdict {
    double error, tolerance;
    struct span span;
    enum figure figure;
    int64_t judged;
};

static bool is_low(const struct task *task)
{
    return task->rounding > 0x1p-23;
}

static double span_start(const struct span *span, int64_t i)
{
    return span->task->phase == PHASE_TRAINING ? task_initial(span->task, i) : 0;
}

static double span_value(const struct span *span, const struct outcome *outcome, int64_t i)
{
    return outcome->values[span->stage * span->task->value_count + i];
}

/* What is not a number is infinitely far off. */
static double as_share(double difference, double size)
{
    return isfinite(difference) ? difference / (size + DBL_MIN) : (double)INFINITY;
}

static bool steps_are_full(const struct task *task)
{
    return task->phase == PHASE_TRAINING && task_steps_are_full(task);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest difference that counts: of full steps one number in fifty, and one at least, may be
 * further off. */
static double span_most(const struct span *span, const struct outcome *outcome)
{
    enum { ONE_IN = 50, FEW = 4 };
    const int64_t count = span->to - span->from;
    double off[TASK_PLACES];
    if (!steps_are_full(span->task) || count <= FEW)
        return (double)INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = span->from + i;
        off[i] = fabs(span_value(span, outcome, at) - span_value(span, &span->task->reference, at));
        if (isnan(off[i]))
            return (double)INFINITY;
    }
    qsort(off, (size_t)count, sizeof *off, compare_doubles);
    return off[count - 1 - (count < ONE_IN ? 1 : count / ONE_IN)];
}

/* How far the reference moved the parameter, by the root of the mean square. */
static double span_size(const struct span *span)
{
    double squares = 0;
    for (int64_t i = span->from; i < span->to; i++) {
        const double way = span_value(span, &span->task->reference, i) - span_start(span, i);
        squares += way * way;
    }
    return sqrt(squares / (double)(span->to - span->from));
}

/* Of full steps: did a draw move this number elsewhere? Draws themselves count in full: they say
 * what is allowed. */
static bool span_is_luck(const struct span *span, const struct outcome *outcome, int64_t i,
                         double size)
{
    if (outcome >= span->task->draws && outcome < span->task->draws + TASK_DRAWS)
        return false;
    static const double ELSEWHERE = 0.1;
    const double expected = span_value(span, &span->task->reference, i);
    for (int32_t draw = 0; steps_are_full(span->task) && draw < span->task->draw_count; draw++)
        if (fabs(span_value(span, &span->task->draws[draw], i) - expected) > ELSEWHERE * size)
            return true;
    return false;
}

static struct figures span_figures(const struct span *span, const struct outcome *outcome)
{
    const struct outcome *reference = &span->task->reference;
    const double most = span_most(span, outcome), size = span_size(span);
    const double squares = size * size * (double)(span->to - span->from);
    double along = 0, off = 0, worst = 0;
    for (int64_t i = span->from; i < span->to; i++) {
        const double way = span_value(span, reference, i) - span_start(span, i);
        const double difference = span_value(span, outcome, i) - span_value(span, reference, i);
        if (isfinite(difference) &&
            (fabs(difference) > most || span_is_luck(span, outcome, i, size)))
            continue;
        along += way * difference;
        off += difference * difference;
        worst = fmax(worst, isfinite(difference) ? fabs(difference) : (double)INFINITY);
    }
    return (struct figures){{as_share(fabs(along), squares), as_share(sqrt(off), sqrt(squares)),
                             as_share(worst, size), 0}};
}

/* What the last rounding of each step does to parameters, which are fp32 in every precision. */
static struct figures span_storage(const struct span *span)
{
    const struct outcome *reference = &span->task->reference;
    const double rounding = 0x1p-24 * task_steps(span->task, span->stage);
    double squares = 0, kept = 0, largest = 0;
    for (int64_t i = span->from; i < span->to; i++) {
        const double value = span_value(span, reference, i), way = value - span_start(span, i);
        squares += way * way;
        kept += value * value;
        largest = fmax(largest, fabs(value));
    }
    const double count = (double)(span->to - span->from);
    const double distance = as_share(rounding * sqrt(kept), sqrt(squares));
    return (struct figures){
        {distance / sqrt(count), distance, as_share(rounding * largest, sqrt(squares / count)), 0}};
}

/* What rounding does: the most of all draws. Of the scale one draw may be lucky: it is expected to
 * be off by the distance over the root of so many numbers. */
static struct figures span_noise(const struct span *span)
{
    struct figures noise = span_storage(span);
    for (int32_t draw = 0; draw < span->task->draw_count; draw++) {
        const struct figures seen = span_figures(span, &span->task->draws[draw]);
        for (int figure = 0; figure < FIGURES; figure++)
            noise.of[figure] = fmax(noise.of[figure], seen.of[figure]);
    }
    const double chance = noise.of[DISTANCE] / sqrt((double)(span->to - span->from));
    noise.of[SCALE] = fmax(noise.of[SCALE], chance);
    return noise;
}

static double judge_allowed(const struct span *span, enum figure figure, double noise)
{
    const struct task *task = span->task;
    const bool low = is_low(task);
    const double *moved = steps_are_full(task) && span->stage ? MOVED_ON : MOVED;
    const double least =
        (low ? ROUNDINGS_LOW : ROUNDINGS) * task->rounding * (figure == WORST ? WORST_TIMES : 1);
    return fmax(fmax(least, task->phase == PHASE_TRAINING ? moved[figure] : 0),
                (low ? TIMES_LOW : TIMES)[figure] * noise);
}

/* Keeps the figure that is the largest share of what is allowed. */
static void judge_figure(const struct span *span, enum figure figure, double found, double noise,
                         struct verdict *out)
{
    const double tolerance = judge_allowed(span, figure, noise);
    if (tolerance > SAYS_NOTHING && isfinite(found))
        return;
    out->judged++;
    if (found / tolerance <= out->error / out->tolerance)
        return;
    *out = (struct verdict){found, tolerance, *span, figure, out->judged};
}

static void judge_span(const struct span *span, const struct outcome *found, struct verdict *out)
{
    const struct figures noise = span_noise(span), seen = span_figures(span, found);
    for (enum figure figure = SCALE; figure <= WORST; figure++)
        judge_figure(span, figure, seen.of[figure], noise.of[figure], out);
}

static void judge_loss(const struct task *task, int32_t stage, const struct outcome *found,
                       struct verdict *out)
{
    const struct span span = {task, stage, 0, task->value_count};
    const double expected = task->reference.loss[stage];
    double noise = 0;
    for (int32_t draw = 0; draw < task->draw_count; draw++)
        noise =
            fmax(noise, as_share(fabs(task->draws[draw].loss[stage] - expected), fabs(expected)));
    judge_figure(&span, LOSS, as_share(fabs(found->loss[stage] - expected), fabs(expected)), noise,
                 out);
}

static void judge_stage(const struct task *task, int32_t stage, const struct outcome *found,
                        struct verdict *out)
{
    const bool training = task->phase == PHASE_TRAINING;
    for (int64_t from = 0, to = 0; from < task->value_count; from = to) {
        const int32_t entry = training ? task->places[from].entry : 0;
        while (to < task->value_count && (!training || task->places[to].entry == entry))
            to++;
        const struct span span = {task, stage, from, to};
        judge_span(&span, found, out);
    }
    if (training)
        judge_loss(task, stage, found, out);
}

/* The single number that is furthest off. */
static int64_t span_worst(const struct span *span, const struct outcome *found)
{
    int64_t at = span->from;
    double worst = -1;
    for (int64_t i = span->from; i < span->to; i++) {
        const double value = span_value(span, found, i);
        const double off = fabs(value - span_value(span, &span->task->reference, i));
        const double size = isfinite(off) ? off : (double)INFINITY;
        if (size > worst) {
            worst = size;
            at = i;
        }
    }
    return at;
}

static enum status judge_wrong_parameter(const struct verdict *verdict, const char *name,
                                         const struct outcome *found, int64_t worst)
{
    static const char *const says[] = {
        [SCALE] = "moved by another amount: the way along the reference's differs by",
        [DISTANCE] = "did not move as it should: it is off by",
        [WORST] = "has a number that did not move as it should: it is off by"};
    const struct span *span = &verdict->span;
    FAIL(STATUS_WRONG,
         "%s %s %.2g of its way, at most %.2g; after %d steps [%" PRId64
         "] is %.6g, expected %.6g; it was %.6g",
         name, says[verdict->figure], verdict->error, verdict->tolerance,
         task_steps(span->task, span->stage), span->task->places[worst].element,
         span_value(span, found, worst), span_value(span, &span->task->reference, worst),
         task_initial(span->task, worst));
}

static enum status judge_wrong(const struct verdict *verdict, const struct outcome *found)
{
    const struct span *span = &verdict->span;
    const struct task *task = span->task;
    if (verdict->figure == LOSS)
        FAIL(STATUS_WRONG, "the loss after %d steps is %.6g, expected %.6g (at most %.2g off)",
             task_steps(task, span->stage), found->loss[span->stage],
             task->reference.loss[span->stage], verdict->tolerance);
    const int64_t worst = span_worst(span, found);
    if (task->phase == PHASE_TRAINING)
        return judge_wrong_parameter(verdict, task->params.entries[task->places[worst].entry].name,
                                     found, worst);
    FAIL(STATUS_WRONG, "output %" PRId64 " is %.6g, expected %.6g: off by %.2g, at most %.2g",
         worst, span_value(span, found, worst), span_value(span, &task->reference, worst),
         verdict->error, verdict->tolerance);
}

enum status judge_outcome(struct task *task, const struct outcome *found, double *error)
{
    if (!task->referred)
        FAIL(STATUS_UNSUPPORTED, "there is no reference to compare with");
    struct verdict verdict = {.error = -1, .tolerance = 1};
    for (int32_t stage = 0; stage < task_stages(task); stage++)
        judge_stage(task, stage, found, &verdict);
    if (!verdict.judged)
        FAIL(STATUS_UNSUPPORTED, "rounding alone decides what comes of it");
    *error = verdict.error;
    task->tolerance = verdict.tolerance;
    return verdict.error > verdict.tolerance ? judge_wrong(&verdict, found) : STATUS_OK;
}
