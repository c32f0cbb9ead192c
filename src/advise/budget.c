/* budget.c: see budget.h. The edges of all spans are sorted and walked once. */
#include "advise/budget.h"

#include "base/memory.h"
#include "trace/own_time.h"

#include <stdlib.h>
#include <string.h>

const char *budget_part_name(enum budget_part part)
{
    static const char *const names[] = {"compute",         "exposed copy", "fill",
                                        "allocation",      "copy call",    "launch",
                                        "waiting for GPU", "host code"};
    return names[part];
}

enum call_kind call_kind_of(const char *name)
{
    static const struct {
        const char *part;
        enum call_kind kind;
    } kinds[] = {
        {"StreamWaitEvent", CALL_QUEUE}, {"Synchronize", CALL_WAIT},
        {"EventQuery", CALL_OTHER},      {"Malloc", CALL_ALLOCATION},
        {"Free", CALL_ALLOCATION},       {"HostAlloc", CALL_ALLOCATION},
        {"MemAlloc", CALL_ALLOCATION},   {"HostRegister", CALL_ALLOCATION},
        {"Memcpy", CALL_COPY},           {"Memset", CALL_LAUNCH},
        {"Launch", CALL_LAUNCH},
    };
    if (strncmp(name, "cu", 2) != 0 && strncmp(name, "hip", 3) != 0)
        return CALL_OTHER;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(name, kinds[i].part))
            return kinds[i].kind;
    return CALL_OTHER;
}

/* ---- edges ----------------------------------------------------------------------------------- */

struct edge {
    int64_t at_ns;
    int8_t part, change;
};

struct edges {
    struct edge *edges;
    size_t count, room;
};

static int edge_order(const void *a, const void *b)
{
    struct edge x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x.at_ns > y.at_ns) - (x.at_ns < y.at_ns);
}

static enum budget_part part_of_call(const struct trace *trace, const struct span *span)
{
    switch (call_kind_of(trace_word(trace, span->name))) {
    case CALL_ALLOCATION: return BUDGET_ALLOCATION;
    case CALL_COPY: return BUDGET_COPY_CALL;
    case CALL_LAUNCH: return BUDGET_LAUNCH;
    case CALL_WAIT: return BUDGET_WAIT;
    default: return BUDGET_HOST;
    }
}

/* BUDGET_HOST is what is left, so a span of it is none. */
static enum budget_part part_of(const struct trace *trace, const struct steps *steps,
                                const struct span *span)
{
    if (span->kind == SPAN_call)
        return part_of_call(trace, span);
    if (span->kind == SPAN_op && steps->gpu < 0)
        return BUDGET_COMPUTE;
    if (!span_kind_on_device(span->kind) || !steps_on_gpu(trace, span, steps->gpu))
        return BUDGET_HOST;
    return span->kind == SPAN_kernel ? BUDGET_COMPUTE
           : span->kind == SPAN_copy ? BUDGET_COPY
                                     : BUDGET_FILL;
}

static enum status find_edges(const struct trace *trace, const struct steps *steps,
                              struct edges *edges)
{
    size_t most = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        most += part_of(trace, steps, &trace->spans[i]) != BUDGET_HOST;
    NEED(edges->edges = mem_array(most, 2 * sizeof *edges->edges));
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        int64_t from = span->start_ns > steps->start_ns ? span->start_ns : steps->start_ns;
        int64_t to = span->end_ns < steps->end_ns ? span->end_ns : steps->end_ns;
        enum budget_part part = part_of(trace, steps, span);
        if (part == BUDGET_HOST || from >= to)
            continue;
        edges->edges[edges->count++] = (struct edge){from, (int8_t)part, 1};
        edges->edges[edges->count++] = (struct edge){to, (int8_t)part, -1};
    }
    qsort(edges->edges, edges->count, sizeof *edges->edges, edge_order);
    return STATUS_OK;
}

/* Is told of each stretch in which the same spans are open. */
typedef void visit_stretch(void *context, const size_t open[BUDGET_PARTS], int64_t from_ns,
                           int64_t to_ns);

static void walk(const struct edges *edges, const struct steps *steps, visit_stretch *visit,
                 void *context)
{
    size_t open[BUDGET_PARTS] = {0};
    int64_t now = steps->start_ns;
    for (size_t i = 0; i < edges->count; i++) {
        const struct edge *edge = &edges->edges[i];
        if (edge->at_ns > now)
            visit(context, open, now, edge->at_ns);
        now = edge->at_ns;
        open[edge->part] += (size_t)(int64_t)edge->change;
    }
    if (steps->end_ns > now)
        visit(context, open, now, steps->end_ns);
}

static enum budget_part first_open(const size_t open[BUDGET_PARTS])
{
    int part = 0;
    while (part < BUDGET_HOST && !open[part])
        part++;
    return (enum budget_part)part;
}

static void count_stretch(void *context, const size_t open[BUDGET_PARTS], int64_t from_ns,
                          int64_t to_ns)
{
    struct budget *budget = context;
    int64_t ns = to_ns - from_ns;
    budget->part_ns[first_open(open)] += ns;
    budget->compute_ns += open[BUDGET_COMPUTE] ? ns : 0;
    budget->copy_ns += open[BUDGET_COPY] ? ns : 0;
    budget->overlap_ns += open[BUDGET_COMPUTE] && open[BUDGET_COPY] ? ns : 0;
    budget->concurrent_ns += open[BUDGET_COMPUTE] > 1 ? ns : 0;
}

static void count_spans(const struct trace *trace, const struct steps *steps, struct budget *budget)
{
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->start_ns < steps->start_ns || span->start_ns >= steps->end_ns)
            continue;
        enum budget_part part = part_of(trace, steps, span);
        if (part == BUDGET_COMPUTE) {
            budget->kernels++;
            budget->kernel_ns += span_ns(span);
        } else if (part == BUDGET_COPY) {
            budget->copies++;
            if (span->bytes > COPY_SMALL && is_up(span)) {
                budget->up_bytes += span->bytes;
                budget->up_ns += span_ns(span);
            } else if (span->bytes > COPY_SMALL && is_down(span)) {
                budget->down_bytes += span->bytes;
                budget->down_ns += span_ns(span);
            }
        }
    }
}

enum status budget_make(const struct trace *trace, const struct steps *steps, struct budget *budget)
{
    struct edges edges = {0};
    *budget = (struct budget){.window_ns = steps->end_ns - steps->start_ns, .steps = steps->count};
    TRY(find_edges(trace, steps, &edges));
    walk(&edges, steps, count_stretch, budget);
    mem_free(edges.edges);
    count_spans(trace, steps, budget);
    for (int part = BUDGET_ALLOCATION; part < BUDGET_PARTS; part++)
        budget->idle_ns += budget->part_ns[part];
    return STATUS_OK;
}

/* ---- idle ------------------------------------------------------------------------------------ */

static void keep_idle(void *context, const size_t open[BUDGET_PARTS], int64_t from_ns,
                      int64_t to_ns)
{
    struct idle *idle = context;
    if (first_open(open) < BUDGET_ALLOCATION)
        return;
    if (idle->count && idle->stretches[idle->count - 1].to_ns == from_ns)
        idle->stretches[idle->count - 1].to_ns = to_ns;
    else
        idle->stretches[idle->count++] = (struct stretch){from_ns, to_ns};
}

enum status budget_idle(const struct trace *trace, const struct steps *steps, struct idle *idle)
{
    struct edges edges = {0};
    *idle = (struct idle){0};
    TRY(find_edges(trace, steps, &edges));
    idle->stretches = mem_array(edges.count + 2, sizeof *idle->stretches);
    if (idle->stretches)
        walk(&edges, steps, keep_idle, idle);
    mem_free(edges.edges);
    NEED(idle->stretches);
    return STATUS_OK;
}

/* The first stretch that ends after a time. */
static size_t stretch_after(const struct idle *idle, int64_t at_ns)
{
    size_t low = 0, high = idle->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (idle->stretches[middle].to_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool idle_at(const struct idle *idle, int64_t at_ns)
{
    size_t at = stretch_after(idle, at_ns);
    return at < idle->count && idle->stretches[at].from_ns <= at_ns;
}

int64_t idle_within(const struct idle *idle, int64_t from_ns, int64_t to_ns)
{
    int64_t sum = 0;
    for (size_t i = stretch_after(idle, from_ns);
         i < idle->count && idle->stretches[i].from_ns < to_ns; i++) {
        const struct stretch *stretch = &idle->stretches[i];
        int64_t from = stretch->from_ns > from_ns ? stretch->from_ns : from_ns;
        int64_t to = stretch->to_ns < to_ns ? stretch->to_ns : to_ns;
        sum += to - from;
    }
    return sum;
}

/* ---- lines of the host ----------------------------------------------------------------------- */

static int line_order(const void *a, const void *b)
{
    const struct budget_line *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return (x->site > y->site) - (x->site < y->site);
}

/* Samples by the user's line: two sites of one file and line are one. */
static enum status sum_lines(const struct trace *trace, const struct steps *steps,
                             const struct idle *idle, struct budget_line *sums, int64_t *sampled_ns)
{
    *sampled_ns = 0;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind != SPAN_sample || span->start_ns < steps->start_ns ||
            span->start_ns >= steps->end_ns || (steps->gpu >= 0 && !idle_at(idle, span->start_ns)))
            continue;
        uint32_t site = trace_user_site(trace, span->site);
        sums[site].site = site;
        sums[site].ns += span_ns(span);
        *sampled_ns += span_ns(span);
    }
    return STATUS_OK;
}

void budget_join_lines(const struct trace *trace, struct budget_line *sums, size_t count)
{
    enum { JOINED = 4000 }; /* sites with samples beyond these stay apart */
    count = count < JOINED ? count : JOINED;
    for (size_t i = 1; i < count; i++)
        for (size_t k = 1; sums[i].ns && k < i; k++)
            if (sums[k].ns && trace->sites[k].file == trace->sites[i].file &&
                trace->sites[k].line == trace->sites[i].line) {
                sums[k].ns += sums[i].ns;
                sums[i].ns = 0;
            }
}

enum status budget_lines(const struct trace *trace, const struct steps *steps,
                         struct budget_line *lines, size_t room, size_t *count, int64_t *sampled_ns)
{
    struct idle idle = {0};
    struct budget_line *sums = NULL;
    enum status status;
    *count = 0;
    TRY_OR(done, budget_idle(trace, steps, &idle));
    NEED_OR(done, sums = mem_array(trace->site_count + 1, sizeof *sums));
    TRY_OR(done, sum_lines(trace, steps, &idle, sums, sampled_ns));
    budget_join_lines(trace, sums, trace->site_count);
    qsort(sums, trace->site_count + 1, sizeof *sums, line_order);
    while (*count < room && *count <= trace->site_count && sums[*count].ns) {
        lines[*count] = sums[*count];
        (*count)++;
    }
done:
    mem_free(sums);
    mem_free(idle.stretches);
    return status;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static int kernel_order(const void *a, const void *b)
{
    const struct budget_kernel *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

enum status budget_kernels(const struct trace *trace, const struct steps *steps,
                           struct budget_kernel *kernels, size_t room, size_t *count)
{
    struct budget_kernel *sums;
    int64_t *own = NULL;
    if (steps->gpu < 0)
        TRY(trace_op_times(trace, &own));
    if (!(sums = mem_array(trace->text_count + 1, sizeof *sums))) {
        mem_free(own);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->start_ns < steps->start_ns || span->start_ns >= steps->end_ns ||
            part_of(trace, steps, span) != BUDGET_COMPUTE)
            continue;
        sums[span->name].name = span->name;
        sums[span->name].count++;
        sums[span->name].ns += own ? own[i] : span_ns(span);
    }
    mem_free(own);
    qsort(sums, trace->text_count + 1, sizeof *sums, kernel_order);
    *count = 0;
    while (*count < room && *count <= trace->text_count && sums[*count].count) {
        kernels[*count] = sums[*count];
        (*count)++;
    }
    mem_free(sums);
    return STATUS_OK;
}
