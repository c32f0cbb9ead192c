/* beats.c: see beats.h. */
#include "watch/beats.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_LEAST = 10 };

/* How often each call is made, by the number of its name: in the window, and in all. */
struct counts {
    size_t *window, *all;
};

/* Of these steps? By the numbers of calls, since a host that runs ahead makes them long before;
 * else by time. */
static bool is_within(const struct trace *trace, const struct steps *steps, const struct span *call)
{
    const uint32_t from = trace->spans[steps->first[0]].correlation;
    const uint32_t to = trace->spans[steps->first[steps->count]].correlation;
    if (from && to > from && call->correlation)
        return call->correlation >= from && call->correlation < to;
    return call->start_ns >= steps->start_ns && call->start_ns < steps->end_ns;
}

static void count_calls(const struct trace *trace, const struct steps *steps, struct counts *counts)
{
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind != SPAN_call)
            continue;
        counts->all[span->name]++;
        counts->window[span->name] += is_within(trace, steps, span);
    }
}

/* By time the window is a little later than the calls: one step more or less. */
static bool is_regular(size_t count, size_t steps, size_t *a_step)
{
    *a_step = (count + steps / 2) / steps;
    const size_t expected = *a_step * steps;
    const size_t apart = count > expected ? count - expected : expected - count;
    return *a_step > 0 && apart <= *a_step;
}

struct beat beat_choose(const struct trace *trace, const struct steps *steps)
{
    struct beat best = {0};
    struct counts counts = {mem_array(trace->text_count + 1, sizeof(size_t)),
                            mem_array(trace->text_count + 1, sizeof(size_t))};
    if (steps->gpu >= 0 && steps->count >= STEPS_LEAST && counts.window && counts.all) {
        count_calls(trace, steps, &counts);
        for (size_t i = 1; i < trace->text_count; i++) {
            size_t a_step;
            if (is_regular(counts.window[i], steps->count, &a_step) &&
                (!best.name || a_step < best.a_step))
                best = (struct beat){trace->texts[i], a_step, counts.all[i]};
        }
    }
    mem_free(counts.window);
    mem_free(counts.all);
    return best;
}

static int order_of(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Starts of the call, in order, as spans are; and waits: how many of the starts stand before each,
 * and its end. */
struct rhythm {
    double *starts;
    size_t count;
    struct pause {
        size_t before;
        double end_ns;
    } * pauses;
    size_t pause_count;
};

static void find_rhythm(const struct trace *trace, const char *name, struct rhythm *rhythm)
{
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        const char *call = trace_word(trace, span->name);
        if (span->kind != SPAN_call)
            continue;
        if (!strcmp(call, name))
            rhythm->starts[rhythm->count++] = (double)span->start_ns;
        if (strstr(call, "Synchronize"))
            rhythm->pauses[rhythm->pause_count++] =
                (struct pause){rhythm->count, (double)span->end_ns};
    }
}

/* From the first wait behind the first fifth, which warms up, to the last. */
static bool time_by_pauses(const struct rhythm *rhythm, size_t a_step, double *step_ns)
{
    size_t first = 0;
    while (first < rhythm->pause_count && rhythm->pauses[first].before < rhythm->count / 5)
        first++;
    if (first >= rhythm->pause_count)
        return false;
    const struct pause *from = &rhythm->pauses[first],
                       *to = &rhythm->pauses[rhythm->pause_count - 1];
    const double steps = (double)(to->before - from->before) / (double)a_step;
    if (steps < STEPS_LEAST || to->end_ns <= from->end_ns)
        return false;
    *step_ns = (to->end_ns - from->end_ns) / steps;
    return true;
}

/* The median of the steps behind the first fifth, and half of the spread of their middle half. */
static double time_by_calls(struct rhythm *rhythm, size_t a_step, double *spread_ns)
{
    const size_t steps = rhythm->count / a_step;
    double *lengths = rhythm->starts;
    size_t count = 0;
    for (size_t i = steps / 5; i + 1 < steps; i++)
        lengths[count++] = rhythm->starts[(i + 1) * a_step] - rhythm->starts[i * a_step];
    qsort(lengths, count, sizeof *lengths, order_of);
    *spread_ns = (lengths[count - 1 - count / 4] - lengths[count / 4]) / 2;
    return lengths[count / 2];
}

bool beat_times(const struct trace *trace, const struct beat *beat, double *step_ns,
                double *spread_ns)
{
    enum { TOLERANCE = 50 }; /* a fiftieth more or fewer calls */
    static const double sure = 0.02;
    struct rhythm rhythm = {mem_array(trace->span_count + 1, sizeof(double)), 0,
                            mem_array(trace->span_count + 1, sizeof(struct pause)), 0};
    bool known = false;
    if (rhythm.starts && rhythm.pauses) {
        find_rhythm(trace, beat->name, &rhythm);
        const size_t found = rhythm.count;
        const size_t apart = found > beat->all ? found - beat->all : beat->all - found;
        known = found / beat->a_step > STEPS_LEAST && apart <= beat->all / TOLERANCE + beat->a_step;
    }
    if (known) {
        double paused_ns;
        const bool paused = time_by_pauses(&rhythm, beat->a_step, &paused_ns);
        *step_ns = time_by_calls(&rhythm, beat->a_step, spread_ns);
        if (paused) { /* calls of a host that runs ahead say little */
            *step_ns = paused_ns;
            *spread_ns = *spread_ns < sure * paused_ns ? *spread_ns : sure * paused_ns;
        }
        known = *step_ns > 0;
    }
    mem_free(rhythm.starts);
    mem_free(rhythm.pauses);
    return known;
}
