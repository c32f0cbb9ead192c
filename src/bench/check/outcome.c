/* outcome.c: see outcome.h. */
#include "bench/check/outcome.h"

#include "bench/job/task.h"
#include "core/cases.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The numbers below must find what tests/bench/test_teeth.c plants in every network of the zoo, and
 * pass four backends on its 200 random networks of three seeds. */
/* Of scale, distance, worst, loss: so many times the noise of the worst draw. Draws of fp32 are
 * perturbed by sixteen roundings (reference.h), and still need not meet a relu that flips, which
 * moves few numbers far; draws of lower precisions by one. */
static const double TIMES[] = {4, 8, 16, 8}, TIMES_LOW[] = {2, 2, 4, 4};
/* So many roundings are always allowed: others compute exponentials in another way. A weight
 * that is off by a twentieth (FAULT_OLD) is off by 13 of bf16's. */
static const double ROUNDINGS = 64, ROUNDINGS_LOW = 8;
/* … and of how far a parameter moved this much: scale, distance, worst, loss. A single relu that
 * flips is a thousandth of a parameter's way, and no draw need meet it; a gradient × 1.01 a
 * hundredth. Once full steps (task.h) were taken, much more: weights of ad_autoencoder that the
 * last of two steps leaves out are off by 0.28 along their way (batch 2). */
static const double MOVED[] = {4e-3, 4e-3, 4e-2, 1e-4}, MOVED_ON[] = {0.2, 0.8, 1, 0.1};
/* … and with kinks, once later steps begin elsewhere: of few samples one is a large part. ResNet-18
 * at batch 2 with another number of threads is off by a distance of 0.017. Along the way such parts
 * cancel, so the scale stays. */
static const double MOVED_KINKS[] = {4e-3, 3e-2, 0.3, 1e-4};
/* The farthest of many random numbers is about four times as far as their root mean square. */
static const double WORST_TIMES = 4;
/* A figure that may be so large lets pass what does nothing: no update is off by 1. */
static const double SAYS_NOTHING = 0.9;
/* A number that is off by so much of a parameter's way went elsewhere: a flipped step is off by 2,
 * an update that is missing by 1, rounding that flips nothing in the first step by less than 0.1.
 */
static const double ELSEWHERE = 0.1;
/* One number in so many of a parameter of more than FEW may go elsewhere where numbers may flip. Of
 * the random networks' 2,400 results 5 have one after the first step that no draw has met, in one
 * parameter each: so after it one parameter in FLIPS_IN may have some, and one at least. */
enum { ONE_IN = 50, FEW = 4, FLIPS_IN = 4 };

enum figure { SCALE, DISTANCE, WORST, LOSS, FIGURES, FLIPS = FIGURES };

struct figures {
    double of[FIGURES];
    bool flips; /* a number was left out that went elsewhere */
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
    int64_t counted;
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

/* May rounding alone send single numbers elsewhere? Full steps and kinks do. */
static bool numbers_may_flip(const struct task *task)
{
    return task->phase == PHASE_TRAINING && (task_steps_are_full(task) || task_has_kinks(task));
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
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

/* As far as a number can be off that went elsewhere. A kink takes a sample's part of the gradient:
 * ResNet-18 at batch 2 was off by 0.38 of the parameter's size. Full steps may all have gone the
 * other way: twice the largest step of the parameter, for each of them, and a little for rounding.
 */
static double span_flipped(const struct span *span, double size)
{
    static const double TWICE = 2.1;
    if (!task_steps_are_full(span->task))
        return size;
    const struct span first = {span->task, 0, span->from, span->to};
    const double steps = task_steps(span->task, span->stage);
    double most = 0;
    for (int64_t i = span->from; i < span->to; i++) {
        const double start = span_start(span, i);
        const double step = fabs(span_value(&first, &span->task->reference, i) - start);
        const double way = fabs(span_value(span, &span->task->reference, i) - start);
        most = fmax(most, fmax(steps * step, way));
    }
    return TWICE * most;
}

/* Did the number stay where it was, in a step of the reference? A flipped step is as long as a
 * right one. Low precisions round small gradients to nothing. */
static bool span_stays(const struct span *span, const struct outcome *outcome, int64_t i,
                       double size)
{
    const struct span before = {span->task, span->stage - 1, span->from, span->to};
    const struct outcome *reference = &span->task->reference;
    const double was = span->stage ? span_value(&before, outcome, i) : span_start(span, i);
    const double from = span->stage ? span_value(&before, reference, i) : was;
    return !is_low(span->task) && span_value(span, outcome, i) == was &&
           fabs(span_value(span, reference, i) - from) > ELSEWHERE * size;
}

/* The largest difference that counts: where numbers may flip one in fifty, and one at least, may be
 * further off. */
static double span_most(const struct span *span, const struct outcome *outcome)
{
    const int64_t count = span->to - span->from;
    double off[TASK_PLACES];
    if (!numbers_may_flip(span->task) || count <= FEW)
        return (double)INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = span->from + i;
        off[i] = fabs(span_value(span, outcome, at) - span_value(span, &span->task->reference, at));
        if (!isfinite(off[i]))
            return (double)INFINITY;
    }
    qsort(off, (size_t)count, sizeof *off, compare_doubles);
    return off[count - 1 - (count < ONE_IN ? 1 : count / ONE_IN)];
}

/* Did a draw move this number elsewhere, too? Draws themselves count in full: they say what is
 * allowed. */
static bool span_is_luck(const struct span *span, const struct outcome *outcome, int64_t i,
                         double size)
{
    if (outcome >= span->task->draws && outcome < span->task->draws + TASK_DRAWS)
        return false;
    const double expected = span_value(span, &span->task->reference, i);
    if (!numbers_may_flip(span->task))
        return false;
    for (int32_t draw = 0; draw < span->task->draw_count; draw++)
        if (fabs(span_value(span, &span->task->draws[draw], i) - expected) > ELSEWHERE * size)
            return true;
    return false;
}

static struct figures span_figures(const struct span *span, const struct outcome *outcome)
{
    const struct outcome *reference = &span->task->reference;
    const double size = span_size(span), squares = size * size * (double)(span->to - span->from);
    const double most = span_most(span, outcome), flipped = span_flipped(span, size);
    double along = 0, off = 0, worst = 0;
    bool flips = false;
    for (int64_t i = span->from; i < span->to; i++) {
        const double way = span_value(span, reference, i) - span_start(span, i);
        const double difference = span_value(span, outcome, i) - span_value(span, reference, i);
        const double size_off = isfinite(difference) ? fabs(difference) : (double)INFINITY;
        if (size_off <= flipped && span_is_luck(span, outcome, i, size))
            continue;
        if (size_off <= flipped && size_off > most && !span_stays(span, outcome, i, size)) {
            flips = flips || size_off > ELSEWHERE * size;
            continue;
        }
        along += way * difference;
        off += difference * difference;
        worst = fmax(worst, size_off);
    }
    return (struct figures){{as_share(fabs(along), squares), as_share(sqrt(off), sqrt(squares)),
                             as_share(worst, size), 0},
                            flips};
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
        {distance / sqrt(count), distance, as_share(rounding * largest, sqrt(squares / count)), 0},
        false};
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

static double figure_allowed(const struct span *span, enum figure figure, double noise)
{
    const struct task *task = span->task;
    const bool low = is_low(task);
    const double *moved = steps_are_full(task) && span->stage     ? MOVED_ON
                          : numbers_may_flip(task) && span->stage ? MOVED_KINKS
                                                                  : MOVED;
    const double least =
        (low ? ROUNDINGS_LOW : ROUNDINGS) * task->rounding * (figure == WORST ? WORST_TIMES : 1);
    return fmax(fmax(least, task->phase == PHASE_TRAINING ? moved[figure] : 0),
                (low ? TIMES_LOW : TIMES)[figure] * noise);
}

/* Keeps the figure that is the largest share of what is allowed. What may be infinite says
 * nothing. */
static void verdict_add(const struct span *span, enum figure figure, double found, double noise,
                        struct verdict *out)
{
    const double tolerance = figure_allowed(span, figure, noise);
    if (!isfinite(tolerance) || (tolerance > SAYS_NOTHING && isfinite(found)))
        return;
    out->counted++;
    if (found / tolerance <= out->error / out->tolerance)
        return;
    *out = (struct verdict){found, tolerance, *span, figure, out->counted};
}

/* Do numbers of it go elsewhere? */
static bool span_check(const struct span *span, const struct outcome *found, struct verdict *out)
{
    const struct figures noise = span_noise(span), seen = span_figures(span, found);
    for (enum figure figure = SCALE; figure <= WORST; figure++)
        verdict_add(span, figure, seen.of[figure], noise.of[figure], out);
    return seen.flips;
}

/* Rounding flips a number of a few parameters; a mistake at the end of each, one of all. */
static void verdict_add_flips(const struct span *span, int64_t flips, int64_t spans,
                              struct verdict *out)
{
    const int64_t most = spans < FLIPS_IN ? 1 : spans / FLIPS_IN;
    if (is_low(span->task) || span->stage || flips <= most || out->error > out->tolerance)
        return;
    *out = (struct verdict){(double)flips / (double)spans, (double)most / (double)spans, *span,
                            FLIPS, out->counted};
}

static void verdict_add_loss(const struct task *task, int32_t stage, const struct outcome *found,
                             struct verdict *out)
{
    const struct span span = {task, stage, 0, task->value_count};
    const double expected = task->reference.loss[stage];
    double noise = 0;
    for (int32_t draw = 0; draw < task->draw_count; draw++)
        noise =
            fmax(noise, as_share(fabs(task->draws[draw].loss[stage] - expected), fabs(expected)));
    verdict_add(&span, LOSS, as_share(fabs(found->loss[stage] - expected), fabs(expected)), noise,
                out);
}

static void verdict_add_stage(const struct task *task, int32_t stage, const struct outcome *found,
                              struct verdict *out)
{
    const bool training = task->phase == PHASE_TRAINING;
    struct span last = {task, stage, 0, 0};
    int64_t flips = 0, spans = 0;
    for (int64_t from = 0, to = 0; from < task->value_count; from = to) {
        const int32_t entry = training ? task->places[from].entry : 0;
        while (to < task->value_count && (!training || task->places[to].entry == entry))
            to++;
        last = (struct span){task, stage, from, to};
        const bool flipped = span_check(&last, found, out);
        flips += flipped;
        spans++;
    }
    verdict_add_flips(&last, flips, spans, out);
    if (training)
        verdict_add_loss(task, stage, found, out);
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

static enum status verdict_fail_parameter(const struct verdict *verdict, const char *name,
                                          const struct outcome *found, int64_t worst)
{
    static const char *const says[] = {
        [SCALE] = "moved by another amount: along the reference's way it differs by",
        [DISTANCE] = "did not move as it should: it is off by",
        [WORST] = "has a number that did not move as it should: it is off by"};
    const struct span *span = &verdict->span;
    const double initial = task_initial(span->task, worst);
    FAIL(STATUS_WRONG,
         "%s %s %.2g of its way, at most %.2g; in %d step%s [%" PRId64
         "] moved by %.3g, expected %.3g",
         name, says[verdict->figure], verdict->error, verdict->tolerance,
         task_steps(span->task, span->stage), task_steps(span->task, span->stage) == 1 ? "" : "s",
         span->task->places[worst].element, span_value(span, found, worst) - initial,
         span_value(span, &span->task->reference, worst) - initial);
}

static enum status verdict_fail(const struct verdict *verdict, const struct outcome *found)
{
    const struct span *span = &verdict->span;
    const struct task *task = span->task;
    if (verdict->figure == LOSS)
        FAIL(STATUS_WRONG, "the loss after %d steps is %.6g, expected %.6g (at most %.2g off)",
             task_steps(task, span->stage), found->loss[span->stage],
             task->reference.loss[span->stage], verdict->tolerance);
    if (verdict->figure == FLIPS)
        FAIL(STATUS_WRONG,
             "%.0f %% of the parameters have a number that went elsewhere in the first step; "
             "rounding sends one in at most %.0f %%",
             100 * verdict->error, 100 * verdict->tolerance);
    const int64_t worst = span_worst(span, found);
    if (task->phase == PHASE_TRAINING)
        return verdict_fail_parameter(verdict, task->params.entries[task->places[worst].entry].name,
                                      found, worst);
    FAIL(STATUS_WRONG, "output %" PRId64 " is %.6g, expected %.6g: off by %.2g, at most %.2g",
         worst, span_value(span, found, worst), span_value(span, &task->reference, worst),
         verdict->error, verdict->tolerance);
}

enum status outcome_make(const struct task *task, struct arena *arena, struct outcome *out)
{
    const size_t count = (size_t)task_stages(task) * (size_t)task->value_count;
    *out = (struct outcome){.loss = {0}};
    NEED(out->values = arena_array(arena, count, sizeof *out->values));
    return STATUS_OK;
}

static bool outcome_is_finite(const struct task *task, const struct outcome *outcome)
{
    bool finite = true;
    for (int32_t stage = 0; stage < task_stages(task); stage++) {
        finite = finite && (task->phase != PHASE_TRAINING || isfinite(outcome->loss[stage]));
        for (int64_t i = 0; i < task->value_count && finite; i++)
            finite = isfinite(outcome->values[stage * task->value_count + i]);
    }
    return finite;
}

/* Are there ops over reals between the integers and the output, as softmax is? */
static bool ends_in_reals(const struct program *program)
{
    for (int32_t o = program->parts[PART_FORWARD].from; o < program->parts[PART_FORWARD].to; o++) {
        const enum op_kind kind = program->ops[o].kind;
        if (!case_is_exact(kind) && kind != OP_store)
            return true;
    }
    return false;
}

/* Of a network in 8 bits every output is the reference's, bit for bit, but for what ops over reals
 * behind them round. */
static enum status outcome_check_exact(struct task *task, const struct outcome *found,
                                       double *error)
{
    static const double OF_REALS = 64 * 0x1p-24;
    double largest = 0, most = 0;
    for (int64_t i = 0; i < task->value_count; i++) {
        const double off = fabs(found->values[i] - task->reference.values[i]);
        largest = fmax(largest, fabs(task->reference.values[i]));
        most = isfinite(off) ? fmax(most, off) : HUGE_VAL;
    }
    task->tolerance = ends_in_reals(task->step.programs[0]) ? OF_REALS : 0;
    *error = most > 0 ? most / fmax(largest, DBL_MIN) : 0;
    if (*error > task->tolerance)
        FAIL(STATUS_WRONG, "an output is off by %.3g of the largest, expected %s", *error,
             task->tolerance > 0 ? "rounding of the reals behind the integers" : "the same bits");
    return STATUS_OK;
}

/* Products, each of which rounds its sums to levels. */
static int32_t count_products(const struct program *program)
{
    int32_t count = 0;
    for (int32_t o = 0; o < program->op_count; o++)
        count += program->ops[o].kind == OP_dense_int8 || program->ops[o].kind == OP_conv_int8;
    return count;
}

enum status outcome_check_near(struct task *task, const struct outcome *found, double *error)
{
    enum status status = outcome_check(task, found, error);
    if (!task->network || !task->network->quantised || status != STATUS_WRONG)
        return status;
    task->tolerance = task->rounding * count_products(task->step.programs[0]);
    if (*error > task->tolerance)
        FAIL(STATUS_WRONG,
             "an output is off by %.3g of the largest, expected at most %.3g: a step of 8 bits a "
             "layer",
             *error, task->tolerance);
    return STATUS_OK;
}

enum status outcome_check(struct task *task, const struct outcome *found, double *error)
{
    if (!task->has_reference)
        FAIL(STATUS_UNSUPPORTED, "there is no reference to compare with");
    if (!outcome_is_finite(task, &task->reference))
        FAIL(STATUS_UNSUPPORTED, "the reference diverges: it has numbers that are not finite");
    if (task->network->quantised)
        return outcome_check_exact(task, found, error);
    struct verdict verdict = {.error = -1, .tolerance = 1};
    for (int32_t stage = 0; stage < task_stages(task); stage++)
        verdict_add_stage(task, stage, found, &verdict);
    if (!verdict.counted)
        FAIL(STATUS_UNSUPPORTED, "rounding alone decides the result");
    *error = verdict.error;
    task->tolerance = verdict.tolerance;
    return verdict.error > verdict.tolerance ? verdict_fail(&verdict, found) : STATUS_OK;
}
