/* trace_steps.c: see trace_steps.h. */
#include "trace/trace_steps.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOKED_AT = 1 << 16, /* kernels, the last ones: comparing takes time by their square */
    STEPS_LEAST = 3,     /* fewer repetitions are chance */
    STEPS_MANY = 10,
    GPUS_MOST = 64,
};

bool steps_on_gpu(const struct trace *trace, const struct span *span, int64_t gpu)
{
    const struct lane *lane = &trace->lanes[span->lane];
    return span_kind_on_device(span->kind) && lane->kind == LANE_STREAM && lane->group == gpu;
}

static int64_t find_gpu(const struct trace *trace)
{
    struct {
        int64_t group, ns;
    } gpus[GPUS_MOST];
    size_t count = 0, best = 0;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        const struct lane *lane = &trace->lanes[span->lane];
        size_t at = 0;
        if (span->kind != SPAN_kernel || lane->kind != LANE_STREAM)
            continue;
        while (at < count && gpus[at].group != lane->group)
            at++;
        if (at == GPUS_MOST)
            continue;
        if (at == count) {
            gpus[count].group = lane->group;
            gpus[count++].ns = 0;
        }
        gpus[at].ns += span_ns(span);
    }
    for (size_t i = 1; i < count; i++)
        if (gpus[i].ns > gpus[best].ns)
            best = i;
    return count ? gpus[best].group : -1;
}

/* ---- what is launched, in launch order ------------------------------------------------------- */

struct launches {
    uint32_t *spans;
    size_t count;
};

static int launch_order(const void *a, const void *b, void *context)
{
    const struct span *spans = context;
    uint32_t i, k;
    memcpy(&i, a, sizeof i);
    memcpy(&k, b, sizeof k);
    if (spans[i].correlation != spans[k].correlation)
        return spans[i].correlation < spans[k].correlation ? -1 : 1;
    return (i > k) - (i < k);
}

static enum status find_launches(const struct trace *trace, int64_t gpu, struct launches *launches)
{
    size_t count = 0;
    bool correlated = true;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (gpu >= 0 ? span->kind != SPAN_kernel || !steps_on_gpu(trace, span, gpu)
                     : span->kind != SPAN_op)
            continue;
        correlated = correlated && span->correlation;
        count++;
    }
    NEED(launches->spans = mem_array(count, sizeof *launches->spans));
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (gpu >= 0 ? span->kind == SPAN_kernel && steps_on_gpu(trace, span, gpu)
                     : span->kind == SPAN_op)
            launches->spans[launches->count++] = (uint32_t)i;
    }
    if (count && correlated)
        qsort_r(launches->spans, count, sizeof *launches->spans, launch_order, trace->spans);
    return STATUS_OK;
}

/* ---- the shortest period --------------------------------------------------------------------- */

struct period {
    size_t length, from, count; /* kernels of a step; where it begins to repeat; kernels there */
};

/* The longest stretch in which each name is that of `length` kernels before. */
static struct period longest_stretch(const uint32_t *names, size_t count, size_t length)
{
    struct period best = {.length = length};
    size_t run = 0;
    for (size_t i = length; i <= count; i++) {
        if (i < count && names[i] == names[i - length]) {
            run++;
            continue;
        }
        if (run && run + length > best.count) {
            best.count = run + length;
            best.from = i - run - length;
        }
        run = 0;
    }
    return best;
}

/* First one that holds for half of the run; else one that repeats often somewhere. */
static struct period find_period(const uint32_t *names, size_t count)
{
    for (size_t length = 1; length <= count / STEPS_LEAST; length++) {
        struct period period = longest_stretch(names, count, length);
        if (period.count >= STEPS_LEAST * length && period.count >= count / 2)
            return period;
    }
    for (size_t length = 1; length <= count / STEPS_MANY; length++) {
        struct period period = longest_stretch(names, count, length);
        if (period.count >= STEPS_MANY * length && period.count >= count / 10)
            return period;
    }
    return (struct period){0};
}

/* A step begins where the GPU had waited longest before: after the host made a batch. */
static size_t find_phase(const struct trace *trace, const struct launches *launches,
                         const struct period *period)
{
    size_t best = 0;
    int64_t most = -1;
    for (size_t phase = 0; phase < period->length; phase++) {
        int64_t sum = 0;
        for (size_t i = period->from + phase; i < period->from + period->count;
             i += period->length) {
            if (!i)
                continue;
            int64_t gap = trace->spans[launches->spans[i]].start_ns -
                          trace->spans[launches->spans[i - 1]].end_ns;
            sum += gap > 0 ? gap : 0;
        }
        if (sum > most) {
            most = sum;
            best = phase;
        }
    }
    return best;
}

static enum status steps_by_names(const struct trace *trace, const struct launches *launches,
                                  struct steps *steps)
{
    size_t count = launches->count < LOOKED_AT ? launches->count : LOOKED_AT;
    const struct launches last = {launches->spans + launches->count - count, count};
    uint32_t *names;
    NEED(names = mem_array(count, sizeof *names));
    for (size_t i = 0; i < count; i++)
        names[i] = trace->spans[last.spans[i]].name;
    struct period period = find_period(names, count);
    mem_free(names);
    if (!period.length)
        return STATUS_OK;
    size_t phase = find_phase(trace, &last, &period);
    size_t begun = (period.count - phase + period.length - 1) / period.length;
    NEED(steps->first = mem_array(begun, sizeof *steps->first));
    for (size_t i = 0; i < begun; i++)
        steps->first[i] = last.spans[period.from + phase + i * period.length];
    steps->count = begun - 1;
    steps->period = period.length;
    steps->by = steps->gpu >= 0 ? STEPS_KERNELS : STEPS_OPS;
    return STATUS_OK;
}

/* ---- marks ----------------------------------------------------------------------------------- */

/* When each was launched: the start of its call, or its own where the call is not in the trace. */
static enum status starts_of_calls(const struct trace *trace, const struct launches *launches,
                                   int64_t *starts)
{
    uint32_t *calls;
    TRY(trace_calls(trace, &calls));
    for (size_t i = 0; i < launches->count; i++) {
        uint32_t call = calls[launches->spans[i]];
        starts[i] = trace->spans[call ? call - 1 : launches->spans[i]].start_ns;
    }
    mem_free(calls);
    return STATUS_OK;
}

static enum status steps_by_marks(const struct trace *trace, const struct launches *launches,
                                  struct steps *steps)
{
    size_t marks = 0, next = 0;
    int64_t *calls;
    for (size_t i = 0; i < trace->span_count; i++)
        marks += trace->spans[i].kind == SPAN_step;
    if (marks < 2 || launches->count < marks)
        return STATUS_OK;
    NEED(calls = mem_array(launches->count, sizeof *calls));
    steps->first = mem_array(marks, sizeof *steps->first);
    if (!steps->first) {
        mem_free(calls);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    enum status status = starts_of_calls(trace, launches, calls);
    size_t begun = 0;
    for (size_t i = 0; i < trace->span_count && status == STATUS_OK; i++) {
        const struct span *mark = &trace->spans[i];
        if (mark->kind != SPAN_step)
            continue;
        while (next < launches->count && calls[next] < mark->start_ns)
            next++;
        if (next < launches->count && (!begun || steps->first[begun - 1] != launches->spans[next]))
            steps->first[begun++] = launches->spans[next];
    }
    mem_free(calls);
    steps->count = begun > 1 ? begun - 1 : 0;
    steps->period = steps->count ? launches->count / begun : 0;
    steps->by = steps->count ? STEPS_MARKS : STEPS_NONE;
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void set_window(const struct trace *trace, struct steps *steps)
{
    bool any = false;
    if (steps->count) {
        steps->start_ns = trace->spans[steps->first[0]].start_ns;
        steps->end_ns = trace->spans[steps->first[steps->count]].start_ns;
        if (steps->end_ns > steps->start_ns)
            return;
        steps->count = 0;
    }
    steps->by = STEPS_NONE;
    steps->start_ns = steps->end_ns = 0;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (!any || span->start_ns < steps->start_ns)
            steps->start_ns = span->start_ns;
        if (!any || span->end_ns > steps->end_ns)
            steps->end_ns = span->end_ns;
        any = true;
    }
}

enum status steps_find(const struct trace *trace, struct steps *steps)
{
    struct launches launches = {0};
    *steps = (struct steps){.gpu = find_gpu(trace)};
    enum status status = find_launches(trace, steps->gpu, &launches);
    if (status == STATUS_OK)
        status = steps_by_marks(trace, &launches, steps);
    if (status == STATUS_OK && !steps->count) {
        mem_free(steps->first);
        steps->first = NULL;
        status = steps_by_names(trace, &launches, steps);
    }
    mem_free(launches.spans);
    if (status != STATUS_OK)
        steps_free(steps);
    else
        set_window(trace, steps);
    return status;
}

void steps_keep_last(const struct trace *trace, struct steps *steps, size_t count)
{
    size_t gone = steps->count - count;
    memmove(steps->first, steps->first + gone, (count + 1) * sizeof *steps->first);
    steps->count = count;
    steps->start_ns = trace->spans[steps->first[0]].start_ns;
}

void steps_free(struct steps *steps)
{
    mem_free(steps->first);
    *steps = (struct steps){0};
}

static int order_of(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

double steps_median_ns(const struct trace *trace, const struct steps *steps, double *spread)
{
    double *lengths = mem_array(steps->count + 1, sizeof *lengths);
    *spread = 0;
    if (!lengths || !steps->count) {
        mem_free(lengths);
        return (double)(steps->end_ns - steps->start_ns);
    }
    for (size_t i = 0; i < steps->count; i++)
        lengths[i] = (double)(trace->spans[steps->first[i + 1]].start_ns -
                              trace->spans[steps->first[i]].start_ns);
    qsort(lengths, steps->count, sizeof *lengths, order_of);
    double median = lengths[steps->count / 2];
    if (median > 0)
        *spread = (lengths[steps->count - 1 - steps->count / 4] - lengths[steps->count / 4]) /
                  (2 * median);
    mem_free(lengths);
    return median;
}
