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

static void count_calls(const struct trace *trace, const struct steps *steps, struct counts *counts)
{
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind != SPAN_call)
            continue;
        counts->all[span->name]++;
        counts->window[span->name] +=
            span->start_ns >= steps->start_ns && span->start_ns < steps->end_ns;
    }
}

/* The window is that of the GPU, which is a little later than the calls: one step more or less. */
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

/* The starts of calls in order; how many. Spans are sorted. */
static size_t find_starts(const struct trace *trace, double *starts)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind == SPAN_call)
            starts[count++] = (double)trace->spans[i].start_ns;
    return count;
}

bool beat_times(const struct trace *trace, const struct beat *beat, double *step_ns,
                double *spread_ns)
{
    enum { TOLERANCE = 50 }; /* a fiftieth more or fewer calls */
    double *starts = mem_array(trace->span_count + 1, sizeof *starts);
    const size_t found = starts ? find_starts(trace, starts) : 0;
    const size_t apart = found > beat->all ? found - beat->all : beat->all - found;
    const size_t steps = found / beat->a_step;
    bool known = steps > STEPS_LEAST && apart <= beat->all / TOLERANCE + beat->a_step;
    if (known) { /* the first fifth warms up */
        size_t count = 0;
        for (size_t i = steps / 5; i + 1 < steps; i++)
            starts[count++] = starts[(i + 1) * beat->a_step] - starts[i * beat->a_step];
        qsort(starts, count, sizeof *starts, order_of);
        *step_ns = starts[count / 2];
        *spread_ns = (starts[count - 1 - count / 4] - starts[count / 4]) / 2;
        known = *step_ns > 0;
    }
    mem_free(starts);
    return known;
}
