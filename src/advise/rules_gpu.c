/* rules_gpu.c: rules of traces with a GPU: copies, waits, launches, precision (R1 to R9). */
#include "advise/rules.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_MEDIUM = 256 << 10 };         /* bytes: up to here many copies are worth gathering */
static const double usual_call_ns = 10e3; /* a copy's call that goes on at once */

static const struct span *span_of(const struct look *look, uint32_t span)
{
    return &look->trace->spans[span];
}

static bool is_pageable(const struct span *span)
{
    return span->from_memory == MEMORY_PAGEABLE || span->to_memory == MEMORY_PAGEABLE;
}

/* The place where the user's code asked for it, as a number that is the same for the same line. */
static uint64_t line_of(const struct trace *trace, uint32_t site)
{
    uint32_t user = trace_user_site(trace, site);
    return user ? (uint64_t)trace->sites[user].file << 32 | trace->sites[user].line : 0;
}

static bool same_line(const struct look *look, uint32_t a, uint32_t b)
{
    uint64_t line = line_of(look->trace, a);
    return line && line == line_of(look->trace, b);
}

/* The site whose spans take longest among those that were added. */
struct heaviest {
    uint32_t site;
    int64_t ns;
};
static void weigh(struct heaviest *heaviest, const struct span *span)
{
    if (span_ns(span) > heaviest->ns || !heaviest->site) {
        heaviest->site = span->site;
        heaviest->ns = span_ns(span);
    }
}

/* Bytes per second of pinned memory: measured where the trace came from, else what the bus of most
 * servers gives. */
static double pinned_rate(const struct look *look, const struct span *span, bool *known)
{
    double rate = trace_fact_real(look->trace, is_up(span) ? "pinned_up" : "pinned_down", 0);
    *known = rate > 0;
    return *known ? rate : 25e9;
}

static void go_on(struct replay_call *call)
{
    call->wait = REPLAY_GOES_ON;
    call->ns = fmin(call->ns, usual_call_ns);
}

static void drop_call(struct replay_call *call)
{
    call->wait = REPLAY_GOES_ON;
    call->ns = 0;
}

/* Waits of the same line as a copy that no longer blocks go with it. */
static void drop_waits_at(const struct look *look, struct replay *change, uint32_t site)
{
    for (size_t c = 0; c < change->call_count; c++)
        if (change->calls[c].kind == CALL_WAIT &&
            same_line(look, span_of(look, change->calls[c].span)->site, site))
            drop_call(&change->calls[c]);
}

/* ---- R1 -------------------------------------------------------------------------------------- */

enum status rule_pageable(const struct look *look, struct replay *change, struct rule_found *found)
{
    double bytes = 0, ns = 0;
    bool known = true;
    double pinned = 0;
    struct heaviest heaviest = {0};
    for (size_t c = 0; change && c < change->call_count; c++) {
        struct replay_call *call = &change->calls[c];
        for (size_t o = call->first_op; o < call->first_op + call->ops; o++) {
            struct replay_op *op = &change->ops[o];
            const struct span *span = span_of(look, op->span);
            if (op->kind != SPAN_copy || !is_pageable(span) || span->bytes <= COPY_SMALL ||
                op->dropped)
                continue;
            pinned = pinned_rate(look, span, &known);
            op->ns = fmin(op->ns, (double)span->bytes / pinned * 1e9);
            if (is_up(span))
                go_on(call);
            if (!look_in_window(look, span))
                continue;
            bytes += (double)span->bytes;
            ns += (double)span_ns(span);
            weigh(&heaviest, span);
        }
    }
    if (bytes == 0 || bytes / ns * 1e9 >= 0.7 * pinned)
        return STATUS_OK;
    drop_waits_at(look, change, heaviest.site);
    found->applies = true;
    found->assumed = !known;
    found->site = heaviest.site;
    text_add_size(&found->evidence, look_per_step(look, bytes));
    text_add(&found->evidence, " a step at ");
    look_add_rate(&found->evidence, bytes, ns);
    text_add(&found->evidence, known ? "; pinned memory reaches " : "; pinned memory: taken as ");
    look_add_rate(&found->evidence, pinned, 1e9);
    return STATUS_OK;
}

/* ---- R2 -------------------------------------------------------------------------------------- */

/* Copies on a stream that also computes cannot run beside it. */
static enum status find_computing(const struct look *look, const struct replay *replay, bool **out)
{
    NEED(*out = mem_array(replay->stream_count, sizeof **out));
    for (size_t o = 0; o < replay->op_count; o++)
        if (look->trace->spans[replay->ops[o].span].kind == SPAN_kernel)
            (*out)[replay->ops[o].stream] = true;
    return STATUS_OK;
}

enum status rule_exposed(const struct look *look, struct replay *change, struct rule_found *found)
{
    const struct budget *budget = &look->advice->budget;
    double bytes = 0, ns = 0;
    struct heaviest heaviest = {0};
    bool *computes;
    if (!change)
        return STATUS_OK;
    TRY(find_computing(look, change, &computes));
    for (size_t c = 0; c < change->call_count; c++) {
        struct replay_call *call = &change->calls[c];
        for (size_t o = call->first_op; o < call->first_op + call->ops; o++) {
            struct replay_op *op = &change->ops[o];
            const struct span *span = span_of(look, op->span);
            if (op->kind != SPAN_copy || !is_up(span) || span->bytes <= COPY_SMALL ||
                !computes[op->stream] || op->dropped || call->wait == REPLAY_WAITS_OWN)
                continue;
            op->ahead = true;
            if (!look_in_window(look, span))
                continue;
            bytes += (double)span->bytes;
            ns += op->ns;
            weigh(&heaviest, span);
        }
    }
    mem_free(computes);
    if (bytes == 0)
        return STATUS_OK;
    double least = fmin((double)budget->compute_ns, (double)budget->copy_ns);
    found->applies = true;
    found->site = heaviest.site;
    text_add_size(&found->evidence, look_per_step(look, bytes));
    text_add(&found->evidence, " a step in ");
    text_add_time(&found->evidence, look_per_step(look, ns));
    text_printf(&found->evidence,
                " on the stream that computes; overlap %.0f %% of the smaller of copy and compute",
                least > 0 ? 100 * (double)budget->overlap_ns / least : 0.0);
    return STATUS_OK;
}

/* ---- R3 -------------------------------------------------------------------------------------- */

/* A wait whose copy was of pageable memory belongs to that. */
static bool has_pageable_at(const struct look *look, uint32_t site)
{
    for (size_t i = 0; i < look->trace->span_count; i++) {
        const struct span *span = &look->trace->spans[i];
        if (span->kind == SPAN_copy && is_pageable(span) && span->bytes > COPY_SMALL &&
            same_line(look, span->site, site))
            return true;
    }
    return false;
}

enum status rule_waits(const struct look *look, struct replay *change, struct rule_found *found)
{
    size_t waits = 0;
    int64_t ns = 0;
    struct heaviest heaviest = {0};
    uint32_t pageable_line = 0, other_line = 0; /* the last that were asked about */
    for (size_t c = 0; change && c < change->call_count; c++) {
        struct replay_call *call = &change->calls[c];
        const struct span *span = span_of(look, call->span);
        if (call->kind != CALL_WAIT || call->wait == REPLAY_GOES_ON)
            continue;
        if (span->site != other_line) {
            if (span->site == pageable_line || has_pageable_at(look, span->site)) {
                pageable_line = span->site;
                continue;
            }
            other_line = span->site;
        }
        drop_call(call);
        if (!look_in_window(look, span))
            continue;
        waits++;
        ns += span_ns(span);
        weigh(&heaviest, span);
    }
    if (waits < look->advice->steps.count || !look->advice->steps.count)
        return STATUS_OK;
    found->applies = true;
    found->site = heaviest.site;
    text_printf(&found->evidence, "%.3g a step, ", look_per_step(look, (double)waits));
    text_add_time(&found->evidence, look_per_step(look, (double)ns));
    text_add(&found->evidence, "; after each the GPU has nothing to do until the host comes back");
    return STATUS_OK;
}

/* ---- R4 -------------------------------------------------------------------------------------- */

/* The user's line that launches most. */
static enum status busiest_line(const struct look *look, const struct replay *replay,
                                uint32_t *site)
{
    size_t *counts, most = 0;
    NEED(counts = mem_array(look->trace->site_count + 1, sizeof *counts));
    for (size_t o = 0; o < replay->op_count; o++) {
        const struct span *span = span_of(look, replay->ops[o].span);
        uint32_t user = trace_user_site(look->trace, span->site);
        if (user && look_in_window(look, span) && ++counts[user] > most) {
            most = counts[user];
            *site = user;
        }
    }
    mem_free(counts);
    return STATUS_OK;
}

enum status rule_launch(const struct look *look, struct replay *change, struct rule_found *found)
{
    const struct advice *advice = look->advice;
    const struct budget *budget = &advice->budget;
    if (!change || !budget->kernels)
        return STATUS_OK;
    double busy = (double)(budget->window_ns - budget->idle_ns);
    double idle = look->window_ns - busy - (double)look->loader_ns;
    double kernel = (double)budget->kernel_ns / (double)budget->kernels;
    double host = look->window_ns / (double)budget->kernels;
    if (idle < 0.2 * look->window_ns || kernel >= 3 * host)
        return STATUS_OK;
    for (size_t c = 0; c < change->call_count; c++) {
        change->calls[c].gap_ns = 0;
        change->calls[c].ns = 0;
    }
    for (size_t o = 0; o < change->op_count; o++) {
        change->ops[o].latency_ns = fmin(change->ops[o].latency_ns, 5000);
        change->ops[o].gap_ns = fmin(change->ops[o].gap_ns, 300);
    }
    found->applies = true;
    TRY(busiest_line(look, change, &found->site));
    text_printf(&found->evidence, "%.0f kernels a step of ",
                look_per_step(look, (double)budget->kernels));
    text_add_time(&found->evidence, kernel);
    text_add(&found->evidence, " each, for which the host takes ");
    text_add_time(&found->evidence, host);
    text_printf(&found->evidence, " each; the GPU is idle %.0f %% of the time",
                100 * (look->window_ns - busy) / look->window_ns);
    return STATUS_OK;
}

/* ---- R5 -------------------------------------------------------------------------------------- */

enum status rule_loader(const struct look *look, struct replay *change, struct rule_found *found)
{
    const double window = (double)look->advice->budget.window_ns;
    double loader = (double)look->loader_ns;
    double cores = trace_fact_real(look->trace, "cores", 8);
    (void)change;
    if (loader < 0.05 * window)
        return STATUS_OK;
    /* Of the gain that taking it away would bring, re-runs of three programs got 0.17, 0.38 and
     * 0.44: what was hidden behind it comes out, and workers take cores. */
    double naive = window / fmax(window - loader, loader / fmax(cores - 1, 1));
    found->applies = true;
    found->gain = 1 + 0.35 * (naive - 1);
    found->site = look->loader_site;
    text_printf(&found->evidence, "%.0f %% of the time the GPU idles while the host makes a batch",
                100 * loader / window);
    text_printf(&found->evidence, "; %.0f CPUs", cores);
    if (!look->loader_seen)
        text_add(&found->evidence, "; concluded from the gap before the copy to the GPU");
    return STATUS_OK;
}

/* ---- R6 -------------------------------------------------------------------------------------- */

/* Only names that are certain: a rule that guesses recommends what is already so. */
static bool is_fp32_product(const char *name)
{
    return strstr(name, "simt_sgemm") || strstr(name, "gemm_f32f32_f32f32") ||
           (strstr(name, "_sgemm_") && !strstr(name, "tensorop") && !strstr(name, "tf32"));
}

enum status rule_precision(const struct look *look, struct replay *change, struct rule_found *found)
{
    const double measured =
        trace_fact_real(look->trace, "tf32", 0) / fmax(trace_fact_real(look->trace, "fp32", 0), 1);
    const double ratio = measured > 1 ? measured : 5;
    int64_t ns = 0;
    size_t count = 0;
    struct heaviest heaviest = {0};
    for (size_t o = 0; change && o < change->op_count; o++) {
        struct replay_op *op = &change->ops[o];
        const struct span *span = span_of(look, op->span);
        if (op->kind != SPAN_kernel || !is_fp32_product(trace_word(look->trace, span->name)))
            continue;
        op->ns /= 0.8 * ratio; /* 0.8: of the ceilings' ratio, as a re-run gave it */
        if (!look_in_window(look, span))
            continue;
        ns += span_ns(span);
        count++;
        weigh(&heaviest, span);
    }
    if ((double)ns < 0.1 * (double)look->advice->budget.window_ns)
        return STATUS_OK;
    found->applies = true;
    found->assumed = measured <= 1;
    found->site = heaviest.site;
    text_printf(&found->evidence, "%.0f kernels a step, %.0f %% of the time, without tensor cores",
                look_per_step(look, (double)count),
                100 * (double)ns / (double)look->advice->budget.window_ns);
    text_printf(&found->evidence,
                measured > 1 ? "; tf32 reaches %.1f × fp32 on this GPU"
                             : "; tf32 is taken as %.0f × fp32",
                ratio);
    return STATUS_OK;
}

/* ---- R7 -------------------------------------------------------------------------------------- */

static bool is_small_copy(const struct span *span, bool up)
{
    return span->kind == SPAN_copy && span->bytes && span->bytes <= COPY_MEDIUM &&
           (up ? is_up(span) : is_down(span));
}

/* The line with most small copies in one direction. */
static size_t most_at_a_line(const struct look *look, bool up, uint32_t *site)
{
    size_t most = 0;
    const struct trace *trace = look->trace;
    for (size_t i = 0, tried = 0; i < trace->span_count && tried < 16; i++) {
        if (!look_in_window(look, &trace->spans[i]) || !is_small_copy(&trace->spans[i], up) ||
            !trace->spans[i].site || (*site && same_line(look, *site, trace->spans[i].site)))
            continue;
        size_t count = 0;
        for (size_t k = i; k < trace->span_count; k++)
            count += look_in_window(look, &trace->spans[k]) &&
                     is_small_copy(&trace->spans[k], up) &&
                     same_line(look, trace->spans[k].site, trace->spans[i].site);
        if (count > most) {
            most = count;
            *site = trace->spans[i].site;
        }
        tried++;
    }
    return most;
}

/* One copy of all bytes instead; without the calls of the others and the code between them. */
static void gather(const struct look *look, struct replay *change, bool up, uint32_t site,
                   size_t per_step)
{
    size_t count = 0;
    double bytes = 0;
    struct replay_op *first = NULL;
    for (size_t c = 0; c < change->call_count; c++) {
        struct replay_call *call = &change->calls[c];
        if (call->ops != 1)
            continue;
        struct replay_op *op = &change->ops[call->first_op];
        const struct span *span = span_of(look, op->span);
        if (!is_small_copy(span, up) || !same_line(look, span->site, site))
            continue;
        if (count++ % per_step == 0) {
            first = op;
            bytes = 0;
        } else {
            op->dropped = true;
            drop_call(call);
            call->gap_ns = 0;
        }
        bool known;
        bytes += (double)span->bytes;
        first->ns = fmax(first->ns, bytes / pinned_rate(look, span, &known) * 1e9);
    }
}

enum status rule_small(const struct look *look, struct replay *change, struct rule_found *found)
{
    const size_t steps = look->advice->steps.count;
    uint32_t up_site = 0, down_site = 0;
    if (!change || !steps)
        return STATUS_OK;
    size_t up = most_at_a_line(look, true, &up_site);
    size_t down = most_at_a_line(look, false, &down_site);
    size_t most = up >= down ? up : down;
    if (most < 8 * steps)
        return STATUS_OK;
    found->applies = true;
    found->site = up >= down ? up_site : down_site;
    gather(look, change, up >= down, found->site, most / steps);
    text_printf(&found->evidence, "%zu copies of at most 256 KB a step, all %s the GPU",
                most / steps, up >= down ? "to" : "from");
    return STATUS_OK;
}

/* ---- R8 -------------------------------------------------------------------------------------- */

/* The usual time of the host's own code between two calls. */
static double usual_gap(const struct replay *replay)
{
    double sum = 0;
    size_t count = 0;
    for (size_t c = 0; c < replay->call_count; c++)
        if (!replay->calls[c].beside && replay->calls[c].gap_ns < 1e5) {
            sum += replay->calls[c].gap_ns;
            count++;
        }
    return count ? sum / (double)count : 0;
}

static bool is_brought_back(const struct look *look, const struct replay *replay,
                            const struct replay_call *call)
{
    for (size_t o = call->first_op; o < call->first_op + call->ops; o++) {
        const struct span *span = span_of(look, replay->ops[o].span);
        if (span->kind == SPAN_copy && is_down(span) && span->bytes > COPY_SMALL &&
            !replay->ops[o].dropped)
            return true;
    }
    return false;
}

/* Without the copy, its call and the waits of its line. The host's code beside it belongs to the
 * line too, beyond what is usual: the array is made before, and given back after. */
static void keep_on_gpu(const struct look *look, struct replay *change, bool with_gaps)
{
    const double usual = usual_gap(change);
    for (size_t c = 0; c < change->call_count; c++) {
        struct replay_call *call = &change->calls[c];
        if (!is_brought_back(look, change, call))
            continue;
        for (size_t o = call->first_op; o < call->first_op + call->ops; o++)
            change->ops[o].dropped = true;
        drop_call(call);
        if (with_gaps && !call->beside)
            call->gap_ns = fmin(call->gap_ns, usual);
        size_t next = c + 1;
        for (; next < change->call_count && change->calls[next].kind == CALL_WAIT &&
               same_line(look, span_of(look, change->calls[next].span)->site,
                         span_of(look, call->span)->site);
             next++)
            drop_call(&change->calls[next]);
        if (with_gaps && next < change->call_count && !change->calls[next].beside)
            change->calls[next].gap_ns = fmin(change->calls[next].gap_ns, usual);
    }
}

enum status rule_back(const struct look *look, struct replay *change, struct rule_found *found)
{
    double bytes = 0, ns = 0, window;
    size_t count = 0;
    struct heaviest heaviest = {0};
    struct replay copy = {0};
    for (size_t i = 0; change && i < look->trace->span_count; i++) {
        const struct span *span = &look->trace->spans[i];
        if (span->kind != SPAN_copy || !is_down(span) || span->bytes <= COPY_SMALL ||
            !look_in_window(look, span))
            continue;
        bytes += (double)span->bytes;
        ns += (double)span_ns(span);
        count++;
        weigh(&heaviest, span);
    }
    if (!change || count < look->advice->steps.count)
        return STATUS_OK;
    enum status status = replay_copy(change, &copy);
    if (status == STATUS_OK) {
        keep_on_gpu(look, &copy, false);
        status = replay_run(&copy, &window);
    }
    replay_free(&copy);
    TRY(status);
    keep_on_gpu(look, change, true);
    found->applies = true;
    found->low_gain = window > 0 ? look->window_ns / window : 0;
    found->site = heaviest.site;
    text_add_size(&found->evidence, look_per_step(look, bytes));
    text_add(&found->evidence, " a step in ");
    text_add_time(&found->evidence, look_per_step(look, ns));
    text_add(&found->evidence, ", at ");
    look_add_rate(&found->evidence, bytes, ns);
    return STATUS_OK;
}

/* ---- R9 -------------------------------------------------------------------------------------- */

enum status rule_allocation(const struct look *look, struct replay *change,
                            struct rule_found *found)
{
    size_t count = 0;
    int64_t ns = 0;
    struct heaviest heaviest = {0};
    for (size_t c = 0; change && c < change->call_count; c++) {
        struct replay_call *call = &change->calls[c];
        const struct span *span = span_of(look, call->span);
        if (call->kind != CALL_ALLOCATION)
            continue;
        drop_call(call);
        if (!look_in_window(look, span))
            continue;
        count++;
        ns += span_ns(span);
        weigh(&heaviest, span);
    }
    if (!count || count < look->advice->steps.count)
        return STATUS_OK;
    found->applies = true;
    found->site = heaviest.site;
    text_printf(&found->evidence, "%.1f calls a step (%s), ", look_per_step(look, (double)count),
                "cudaMalloc, cudaFree, cudaHostAlloc");
    text_add_time(&found->evidence, look_per_step(look, (double)ns));
    return STATUS_OK;
}
