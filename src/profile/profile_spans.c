/* profile_spans.c: the events of watched steps as spans of a trace, which budgets, rules and
 * writers read (trace/trace.h). A program is a process, its lanes are threads, or streams of a GPU.
 * An op's stack is its program, its part, and itself with its kernel. */
#include "profile/profile.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 64 /* of a program */ };
static const int64_t SAME_CLOCK_NS = 1000000000; /* no program waits so long for the one before */

/* One program on its way into the trace. */
struct spans {
    const struct profile *profile;
    struct trace *trace;
    int32_t number; /* of the program, from 0 */
    bool gpu;
    uint32_t parts[PART_COUNT]; /* sites */
    uint32_t *names, *sites;    /* per op; a site of 0 is not made yet */
    uint32_t process;           /* the program's name */
};

static enum status add_text(struct trace *trace, const char *text, uint32_t *out)
{
    return trace_text(trace, text, strlen(text), out);
}

static enum status open_spans(struct spans *spans)
{
    const struct program *program = spans->profile->program;
    struct site whole = {0}, part = {0};
    TRY(add_text(spans->trace, program->name, &spans->process));
    whole.function = whole.file = spans->process;
    TRY(trace_site(spans->trace, &whole, &part.caller));
    part.file = spans->process;
    for (int p = 0; p < PART_COUNT; p++) {
        TRY(add_text(spans->trace, part_name((enum part)p), &part.function));
        TRY(trace_site(spans->trace, &part, &spans->parts[p]));
    }
    NEED(spans->names = mem_array((size_t)program->op_count + 1, sizeof *spans->names));
    NEED(spans->sites = mem_array((size_t)program->op_count + 1, sizeof *spans->sites));
    return STATUS_OK;
}

static void close_spans(struct spans *spans)
{
    mem_free(spans->names);
    mem_free(spans->sites);
}

static enum status name_op(struct spans *spans, const struct event *event)
{
    const struct op *op = &spans->profile->program->ops[event->op];
    struct site site = {.file = spans->process, .caller = spans->parts[event->part]};
    struct text name = {0};
    text_printf(&name, "%s%s%s", op->layer, *op->layer ? " " : "", op_name(op->kind));
    enum status status = text_done(&name);
    if (status == STATUS_OK)
        status = add_text(spans->trace, text_of(&name), &spans->names[event->op]);
    text_printf(&name, " [%s]", event->kernel);
    if (status == STATUS_OK)
        status = text_done(&name);
    if (status == STATUS_OK)
        status = add_text(spans->trace, text_of(&name), &site.function);
    text_free(&name);
    return status == STATUS_OK ? trace_site(spans->trace, &site, &spans->sites[event->op]) : status;
}

static enum status add_event(struct spans *spans, const struct event *event, int64_t shift_ns)
{
    const struct program *program = spans->profile->program;
    const struct lane lane = {.kind = spans->gpu ? LANE_STREAM : LANE_THREAD,
                              .group = spans->gpu ? 0 : spans->number + 1,
                              .number = (spans->gpu ? LANES * spans->number : 0) + event->lane,
                              .process = spans->gpu ? 0 : spans->process};
    if (!spans->sites[event->op])
        TRY(name_op(spans, event));
    struct span span = {.kind = spans->gpu ? SPAN_kernel : SPAN_op,
                        .start_ns = (int64_t)event->start_ns + shift_ns,
                        .end_ns = (int64_t)event->end_ns + shift_ns,
                        .name = spans->names[event->op],
                        .site = spans->sites[event->op],
                        .bytes = op_bytes(program, &program->ops[event->op]) /
                                 (uint64_t)program->portions};
    TRY(trace_lane(spans->trace, &lane, &span.lane));
    return trace_add(spans->trace, &span);
}

/* The events of one step of one program. *now_ns: where the one before it ended; then its end. The
 * first begins there, unless both have one clock: then what passed between them stays. */
static enum status add_step(struct spans *spans, int32_t step, bool first, int64_t *shift_ns,
                            int64_t *now_ns)
{
    const struct profile *profile = spans->profile;
    const size_t from = profile->step_from[step], to = profile->step_from[step + 1];
    int64_t begin = INT64_MAX, end = *now_ns;
    for (size_t i = from; i < to; i++)
        if ((int64_t)profile->events[i].start_ns < begin)
            begin = (int64_t)profile->events[i].start_ns;
    if (from == to)
        return STATUS_OK;
    const int64_t gap = begin + *shift_ns - *now_ns;
    if (first || gap < 0 || gap > SAME_CLOCK_NS)
        *shift_ns = *now_ns - begin;
    for (size_t i = from; i < to; i++) {
        const int64_t ended = (int64_t)profile->events[i].end_ns + *shift_ns;
        end = ended > end ? ended : end;
        TRY(add_event(spans, &profile->events[i], *shift_ns));
    }
    *now_ns = end;
    return STATUS_OK;
}

/* What the ops of all programs took in a step. */
static double step_ns(const struct spans *spans, int32_t count, int32_t step)
{
    double sum = 0;
    for (int32_t p = 0; p < count; p++) {
        const struct profile *profile = spans[p].profile;
        for (size_t i = profile->step_from[step]; i < profile->step_from[step + 1]; i++)
            sum += (double)(profile->events[i].end_ns - profile->events[i].start_ns);
    }
    return sum;
}

static int order_of(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* A step that took so long was interrupted. */
static double longest_step(const struct spans *spans, int32_t count, int32_t steps)
{
    static const double INTERRUPTED = 1.5; /* × the median */
    double lengths[PROFILE_STEPS];
    for (int32_t step = 0; step < steps; step++)
        lengths[step] = step_ns(spans, count, step);
    qsort(lengths, (size_t)steps, sizeof *lengths, order_of);
    return steps ? INTERRUPTED * lengths[steps / 2] : 0;
}

static enum status add_steps(struct spans *spans, int32_t count)
{
    int32_t steps = spans[0].profile->kept_steps;
    int64_t now_ns = 0, shift_ns = 0;
    struct span mark = {.kind = SPAN_step};
    for (int32_t p = 1; p < count; p++)
        steps = spans[p].profile->kept_steps < steps ? spans[p].profile->kept_steps : steps;
    const double longest_ns = longest_step(spans, count, steps);
    TRY(add_text(spans[0].trace, "step", &mark.name));
    for (int32_t step = 0; step < steps; step++) {
        if (step_ns(spans, count, step) > longest_ns)
            continue;
        mark.start_ns = now_ns;
        for (int32_t p = 0; p < count; p++)
            TRY(add_step(&spans[p], step, p == 0, &shift_ns, &now_ns));
        mark.end_ns = now_ns;
        TRY(trace_add(spans[0].trace, &mark));
    }
    return STATUS_OK;
}

enum status profile_spans(const struct profile *profiles, int32_t count, bool gpu,
                          struct trace *trace)
{
    struct spans *spans;
    enum status status = STATUS_OK;
    NEED(spans = mem_array((size_t)count, sizeof *spans));
    for (int32_t p = 0; p < count && status == STATUS_OK; p++) {
        spans[p] = (struct spans){&profiles[p], trace, p, gpu, {0}, NULL, NULL, 0};
        status = open_spans(&spans[p]);
    }
    if (status == STATUS_OK)
        status = add_steps(spans, count);
    for (int32_t p = 0; p < count; p++)
        close_spans(&spans[p]);
    mem_free(spans);
    return status == STATUS_OK ? trace_add_fact(trace, "format", "prony") : status;
}
