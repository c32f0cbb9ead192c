/* judge.c: see judge.h. */
#include "bench/judge.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

/* How many times as far as the shaken reference: that has each weight off by the most that rounding
 * takes away, which is a fifth more than what rounding weights and activations comes to. */
static const double ROUNDINGS = 1.5;
/* … of a single entry, where chance does more. */
static const double ENTRY_ROUNDINGS = 2;
/* Of an entry's way. A relu that rounding turns on or off is worth a fifth of a gradient, while
 * what does not learn is off by all of it. */
static const double ENTRY_MOST = 0.5;
/* How much longer or shorter a way may be: by this, or by five times what chance does to the length
 * of so many numbers, each off by as much as the shaken ones are. */
static const double LENGTH_MOST = 1.5, DEVIATIONS = 5;
/* What moves less than this share of the typical is moved by rounding alone, as a bias before a
 * batch norm. */
static const double LEAST_SHARE = 1e-3;

/* Roots of mean squares over some of the values. */
struct way {
    double count;
    double expected; /* how far the reference moved (of outputs: how large they are), … */
    double found;    /* … who is judged, … */
    double off;      /* … how far that is from the reference, … */
    double shaken;   /* … and how far the reference is from itself; 0: not shaken */
};

static struct way judge_way(const struct task *task, const struct outcome *found, int64_t from,
                            int64_t to)
{
    struct way sum = {0};
    for (int64_t i = from; i < to; i++) {
        double start = task->phase == PHASE_TRAINING ? (double)task_initial(task, i) : 0;
        double reference = (double)task->reference.values[i], value = (double)found->values[i];
        double shaken = task->shaken.values ? (double)task->shaken.values[i] : reference;
        sum.expected += (reference - start) * (reference - start);
        sum.found += (value - start) * (value - start);
        sum.off += (value - reference) * (value - reference);
        sum.shaken += (shaken - reference) * (shaken - reference);
    }
    double count = (double)(to - from);
    return (struct way){count, sqrt(sum.expected / count), sqrt(sum.found / count),
                        sqrt(sum.off / count), sqrt(sum.shaken / count)};
}

/* What is not a number is infinitely wrong. */
static double judge_relative(double difference, double scale)
{
    return isnan(difference) ? (double)INFINITY : difference / (scale + DBL_MIN);
}

static enum status judge_entry(const struct task *task, const char *name, const struct way *way,
                               double typical)
{
    const double scale = fmax(way->expected, LEAST_SHARE * typical);
    const double off = judge_relative(way->off, scale);
    const double shaken = judge_relative(way->shaken, scale);
    const double length = judge_relative(way->found, way->expected);
    const double most = fmax(ENTRY_MOST, ENTRY_ROUNDINGS * shaken);
    const double longest = fmax(LENGTH_MOST, 1 + DEVIATIONS * shaken / sqrt(way->count));
    if (off > most)
        FAIL(STATUS_WRONG,
             "%s did not move as it should: it is off by %.2g of its way, at most %.2g", name, off,
             most);
    if (task->shaken.values && way->expected >= LEAST_SHARE * typical &&
        (length > longest || length * longest < 1))
        FAIL(STATUS_WRONG, "%s moved %.2g times as far as it should", name, length);
    return STATUS_OK;
}

static enum status judge_entries(const struct task *task, const struct outcome *found,
                                 double typical)
{
    for (int64_t from = 0, to = 0; from < task->value_count; from = to) {
        const int32_t entry = task->places[from].entry;
        while (to < task->value_count && task->places[to].entry == entry)
            to++;
        const struct way way = judge_way(task, found, from, to);
        TRY(judge_entry(task, task->params.entries[entry].name, &way, typical));
    }
    return STATUS_OK;
}

/* The relative difference of each value, beyond what the last rounding of a parameter explains: the
 * largest and where it is, and the root of the mean square. */
struct differences {
    double largest, mean;
    int64_t worst;
};

static struct differences judge_values(const struct task *task, const struct outcome *found,
                                       double typical)
{
    struct differences out = {0};
    double squares = 0;
    for (int64_t i = 0; i < task->value_count; i++) {
        double expected = (double)task->reference.values[i];
        double difference = fabs((double)found->values[i] - expected);
        if (task->phase == PHASE_TRAINING) /* each step's update rounds it once, here and there */
            difference -= 2 * task->check_steps * (double)FLT_EPSILON * fabs(expected);
        double relative = judge_relative(difference < 0 ? 0 : difference, typical);
        squares += relative * relative;
        if (relative > out.largest) {
            out.largest = relative;
            out.worst = i;
        }
    }
    out.mean = sqrt(squares / (double)task->value_count);
    return out;
}

double judge_tolerance(const struct task *task)
{
    if (!task->shaken.values)
        return task->tolerance;
    const struct way way = judge_way(task, &task->reference, 0, task->value_count);
    return fmax(task->tolerance, ROUNDINGS * judge_relative(way.shaken, way.expected));
}

bool judge_may_shake(const struct task *task)
{
    return task->rounding > 0 && task->referred && !task->shaken.values;
}

enum status judge_outcome(const struct task *task, const struct outcome *found, double *error)
{
    if (!task->referred)
        FAIL(STATUS_UNSUPPORTED, "there is no reference to compare with");
    const bool training = task->phase == PHASE_TRAINING;
    const struct outcome *reference = &task->reference;
    const double typical = judge_way(task, reference, 0, task->value_count).expected;
    const struct differences values = judge_values(task, found, typical);
    const double values_error = task->coarse ? values.mean : values.largest;
    const double loss_error =
        training ? judge_relative(fabs(found->loss - reference->loss), fabs(reference->loss)) : 0;

    *error = fmax(loss_error, values_error);
    if (loss_error > task->tolerance)
        FAIL(STATUS_WRONG, "the loss after %d steps is %.6g, expected %.6g", task->check_steps,
             found->loss, reference->loss);
    if (values_error <= judge_tolerance(task))
        return training && (!task->coarse || task->rounding > 0)
                   ? judge_entries(task, found, typical)
                   : STATUS_OK;
    if (!training)
        FAIL(STATUS_WRONG, "output %" PRId64 " is %.6g, expected %.6g", values.worst,
             (double)found->values[values.worst], (double)reference->values[values.worst]);
    const struct task_place *place = &task->places[values.worst];
    FAIL(STATUS_WRONG, "%s[%" PRId64 "] after %d steps is %.6g, expected %.6g; it was %.6g",
         task->params.entries[place->entry].name, place->element, task->check_steps,
         (double)found->values[values.worst], (double)reference->values[values.worst],
         (double)task_initial(task, values.worst));
}
