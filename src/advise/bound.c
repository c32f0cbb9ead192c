/* bound.c: what bounds a run: the last sentence of advice. */
#include "advise/advise.h"
#include "advise/crowd.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* Of spans of one kind in the window: the name that most of the time has, and the user's line that
 * has most of that. */
struct largest {
    uint32_t name, site;
    double name_ns, all_ns;
};

static bool is_in(const struct steps *steps, const struct span *span)
{
    return span->start_ns >= steps->start_ns && span->start_ns < steps->end_ns;
}

/* Of one lane, or of all where it is -1. */
static enum status find_largest(const struct trace *trace, const struct steps *steps,
                                enum span_kind kind, int lane, struct largest *out)
{
    int64_t *names, *sites = NULL;
    *out = (struct largest){0};
    NEED(names = mem_array(trace->text_count + 1, sizeof *names));
    if (!(sites = mem_array(trace->site_count + 1, sizeof *sites))) {
        mem_free(names);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind != kind || !is_in(steps, span) || (lane >= 0 && span->lane != lane))
            continue;
        out->all_ns += (double)span_ns(span);
        names[span->name] += span_ns(span);
        if (names[span->name] > names[out->name] || !out->name)
            out->name = span->name;
    }
    out->name_ns = (double)names[out->name];
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind != kind || !is_in(steps, span) || span->name != out->name ||
            (lane >= 0 && span->lane != lane))
            continue;
        const uint32_t site = trace_user_site(trace, span->site);
        sites[site] += span_ns(span);
        if (site && (!out->site || sites[site] > sites[out->site]))
            out->site = site;
    }
    mem_free(names);
    mem_free(sites);
    return STATUS_OK;
}

static void add_place(const struct trace *trace, const struct largest *largest, struct text *out)
{
    if (!largest->site)
        return;
    text_add(out, ", mostly at ");
    trace_add_line(trace, largest->site, out);
}

static void add_share(struct text *out, double part)
{
    text_printf(out, "%.0f %%", 100 * part);
}

/* Threads that run: which function takes the time. */
static enum status add_running(const struct trace *trace, const struct steps *steps,
                               const struct crowd *crowd, struct text *out)
{
    struct largest largest;
    const double cores = trace_fact_real(trace, "cores", 0);
    TRY(find_largest(trace, steps, SPAN_sample, -1, &largest));
    text_printf(out, "bound by the CPU: %.1f thread%s at a time", crowd->thread_ns / crowd->any_ns,
                crowd->thread_ns < 1.05 * crowd->any_ns ? "" : "s");
    if (cores > 0)
        text_printf(out, ", on %.0f core%s", cores, cores > 1 ? "s" : "");
    if (!largest.name)
        return STATUS_OK;
    text_add(out, "; ");
    add_share(out, largest.name_ns / largest.all_ns);
    text_printf(out, " of their time is %s", trace_word(trace, largest.name));
    add_place(trace, &largest, out);
    return STATUS_OK;
}

/* Nothing runs for most of the time: in which call the first thread waits. */
static enum status add_waiting(const struct trace *trace, const struct steps *steps,
                               const struct crowd *crowd, struct text *out)
{
    struct largest largest;
    uint16_t first = 0;
    for (size_t i = trace->span_count; i-- > 0;)
        if (trace->spans[i].kind == SPAN_sample || trace->spans[i].kind == SPAN_sleep)
            first = trace->spans[i].lane;
    TRY(find_largest(trace, steps, SPAN_sleep, first, &largest));
    text_add(out, "bound by waiting: no thread runs ");
    add_share(out, 1 - crowd->any_ns / crowd->window_ns);
    text_add(out, " of the time");
    if (!largest.name)
        return STATUS_OK;
    text_add(out, "; the first one waits in ");
    text_add(out, trace_word(trace, largest.name));
    add_place(trace, &largest, out);
    return STATUS_OK;
}

/* A trace of operators alone: which takes most, without those in it. */
static enum status bound_of_ops(const struct trace *trace, const struct advice *advice,
                                struct text *out)
{
    const double window = fmax((double)advice->budget.window_ns, 1);
    const double outside = (double)advice->budget.idle_ns / window;
    struct budget_kernel first;
    size_t count;
    TRY(budget_kernels(trace, &advice->steps, &first, 1, &count));
    if (!count) {
        text_add(out, "it uses no GPU, and too little was seen to say what bounds it");
        return STATUS_OK;
    }
    if (outside >= 0.5) {
        text_add(out, "bound by the host outside of operators, ");
        add_share(out, outside);
        text_add(out, " of the time; ");
    } else {
        text_add(out, "bound by operators on the host: ");
    }
    add_share(out, (double)first.ns / window);
    text_add(out, outside >= 0.5 ? " is " : " of the time is ");
    trace_add_name(trace_word(trace, first.name), out);
    return STATUS_OK;
}

static enum status bound_of_host(const struct trace *trace, const struct advice *advice,
                                 struct text *out)
{
    const struct steps *steps = &advice->steps;
    struct crowd crowd;
    TRY(crowd_find(trace, steps, trace_fact_real(trace, "cores", 0), &crowd));
    if (crowd.any_ns >= 0.5 * crowd.window_ns && crowd.any_ns > 0)
        return add_running(trace, steps, &crowd, out);
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind == SPAN_sleep)
            return add_waiting(trace, steps, &crowd, out);
    return bound_of_ops(trace, advice, out);
}

/* Where something was found, only how the time is spent. */
static void bound_of_gpu(const struct advice *advice, struct text *out)
{
    const struct budget *budget = &advice->budget;
    const double window = fmax((double)budget->window_ns, 1);
    const double compute = (double)budget->compute_ns / window;
    const double copy = (double)budget->copy_ns / window;
    const double idle = (double)budget->idle_ns / window;
    const char *what = "compute, copies and the host share the time: ";
    if (advice->count)
        what = "as it ran: ";
    else if (compute >= 0.8 && copy >= 0.8)
        what = "bound by compute and the bus together: ";
    else if (compute >= 0.8)
        what = "bound by compute, so only faster kernels, less work or a faster GPU help: ";
    else if (copy >= 0.8)
        what = "bound by the bus, so only fewer bytes help: ";
    else if (idle >= 0.5)
        what = "bound by the host: ";
    text_printf(out, "%scompute %.0f %%, copies %.0f %%, idle %.0f %%", what, 100 * compute,
                100 * copy, 100 * idle);
}

enum status advice_bound(const struct trace *trace, struct advice *advice)
{
    struct text line = {0};
    enum status status = STATUS_OK;
    if (advice->steps.gpu < 0)
        status = bound_of_host(trace, advice, &line);
    else
        bound_of_gpu(advice, &line);
    if (status == STATUS_OK)
        status = text_done(&line);
    if (status == STATUS_OK && !(advice->bound = arena_text(&advice->arena, text_of(&line))))
        status = status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory");
    text_free(&line);
    return status;
}
