/* rules_cpu.c: rules from samples of the host: Python, threads, memory, storage (R10 to R13). */
#include "advise/crowd.h"
#include "advise/rules.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS 10e6 /* between two looks at a thread that waits, as is usual */

struct shares {
    int64_t all_ns, seen_ns;
    double squares; /* the sum of the squares of their times */
    double busy;    /* the part of the window in which one of these threads runs */
    uint32_t site;  /* the user's line that has most of it */
};

static bool has_line(const struct trace *trace, uint32_t site)
{
    while (site && site < trace->site_count && !trace->sites[site].line)
        site = trace->sites[site].caller;
    return site && site < trace->site_count;
}

/* The thread that runs Python longest stands for the main one: others may spin all the time. */
static enum status find_main_lane(const struct look *look, uint16_t *out)
{
    const struct trace *trace = look->trace;
    int64_t *by_lane;
    *out = 0;
    NEED(by_lane = mem_array(trace->lane_count + 1, sizeof *by_lane));
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind == SPAN_sample && look_in_window(look, &trace->spans[i]) &&
            has_line(trace, trace->spans[i].site))
            by_lane[trace->spans[i].lane] += span_ns(&trace->spans[i]);
    for (size_t lane = 1; lane < trace->lane_count; lane++)
        if (by_lane[lane] > by_lane[*out])
            *out = (uint16_t)lane;
    mem_free(by_lane);
    return STATUS_OK;
}

/* A thread that waits most of the time gains nothing then. */
static enum status find_busy(const struct look *look, bool main_only, struct shares *shares)
{
    const struct steps *steps = &look->advice->steps;
    const double window_ns = fmax((double)(steps->end_ns - steps->start_ns), 1);
    struct crowd crowd;
    shares->busy = fmin((double)shares->all_ns / window_ns, 1);
    if (main_only)
        return STATUS_OK;
    TRY(crowd_find(look->trace, steps, 0, &crowd));
    shares->busy = fmin(crowd.any_ns / window_ns, 1);
    return STATUS_OK;
}

static enum status share_of(const struct look *look, enum seen seen, bool main_only,
                            struct shares *shares)
{
    const struct trace *trace = look->trace;
    struct budget_line *lines;
    uint16_t main_lane;
    *shares = (struct shares){0};
    TRY(find_main_lane(look, &main_lane));
    NEED(lines = mem_array(trace->site_count + 1, sizeof *lines));
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind != SPAN_sample || !look_in_window(look, span) ||
            (main_only && span->lane != main_lane))
            continue;
        shares->all_ns += span_ns(span);
        shares->squares += (double)span_ns(span) * (double)span_ns(span);
        if (seen_in(trace, span->site) != seen ||
            (seen == SEEN_PYTHON && look->loader_seen && look_under_loader(trace, span->site)))
            continue;
        shares->seen_ns += span_ns(span);
        lines[trace_user_site(trace, span->site)].ns += span_ns(span);
    }
    budget_join_lines(trace, lines, trace->site_count);
    for (size_t site = 1; site < trace->site_count; site++)
        if (lines[site].ns > (shares->site ? lines[shares->site].ns : 0))
            shares->site = (uint32_t)site;
    mem_free(lines);
    return find_busy(look, main_only, shares);
}

/* The share, where there are samples enough to say one; else 0. */
static double share(const struct look *look, const struct shares *shares)
{
    if (look->advice->samples < ADVICE_SAMPLES_LEAST || shares->all_ns <= 0)
        return 0;
    return (double)shares->seen_ns / (double)shares->all_ns;
}

/* How many samples of equal weight would know as much: one that came late stands for more time. */
static double sample_count(const struct shares *shares)
{
    return shares->squares > 0 ? (double)shares->all_ns * (double)shares->all_ns / shares->squares
                               : 0;
}

/* The share that is sure: two standard errors less, by Agresti and Coull, so that the error of a
 * share of all samples is not 0. */
static double sure_share(double part, double count)
{
    const double all = count + 4, middle = (part * count + 2) / all;
    return fmax(middle - 2 * sqrt(middle * (1 - middle) / all), 0);
}

/* If that share of the time of threads that run so much of it went away. Where a GPU runs, only its
 * idle time can be won. */
static double gain_of(const struct look *look, double part, double busy)
{
    const struct budget *budget = &look->advice->budget;
    const bool gpu = look->advice->steps.gpu >= 0 && budget->window_ns > 0;
    part *= gpu ? (double)budget->idle_ns / (double)budget->window_ns : busy;
    return 1 / fmax(1 - part, 0.01);
}

static enum status rule_by_share(const struct look *look, enum seen seen, bool main_only,
                                 double least, const char *evidence, struct rule_found *found)
{
    struct shares shares;
    TRY(share_of(look, seen, main_only, &shares));
    double part = share(look, &shares);
    if (part < least)
        return STATUS_OK;
    found->applies = true;
    found->gain = gain_of(look, part, shares.busy);
    found->least = gain_of(look, sure_share(part, sample_count(&shares)), shares.busy);
    found->site = shares.site;
    text_printf(&found->evidence, "%.0f %% of %zu samples %s", 100 * part, look->advice->samples,
                evidence);
    return STATUS_OK;
}

enum status rule_python(const struct look *look, struct replay *change, struct rule_found *found)
{
    (void)change;
    return rule_by_share(look, SEEN_PYTHON, true, 0.3,
                         "are in the interpreter itself, on the main thread", found);
}

/* Threads that spin take time from others only where there are more of both than cores. */
enum status rule_spin(const struct look *look, struct replay *change, struct rule_found *found)
{
    const double cores = trace_fact_real(look->trace, "cores", 0);
    struct shares shares;
    struct crowd crowd;
    (void)change;
    TRY(share_of(look, SEEN_SPIN, false, &shares));
    const double part = share(look, &shares);
    if (part < 0.1)
        return STATUS_OK;
    TRY(crowd_find(look->trace, &look->advice->steps, cores, &crowd));
    if (crowd.crowded_ns < 0.1 * crowd.window_ns)
        return STATUS_OK;
    found->applies = true;
    found->gain = gain_of(look, crowd.lost_ns / crowd.window_ns, 1);
    found->least =
        gain_of(look, sure_share(crowd.lost_ns / crowd.window_ns, sample_count(&shares)), 1);
    found->site = shares.site;
    text_printf(&found->evidence,
                "%.0f %% of %zu samples are of threads that spin until another is done. ",
                100 * part, look->advice->samples);
    text_printf(&found->evidence,
                "%.0f %% of the time more threads want a core than the %.0f there %s",
                100 * crowd.crowded_ns / crowd.window_ns, cores, cores > 1 ? "are" : "is");
    return STATUS_OK;
}

/* The share of its CPU time for pages that come again. Samples do not show it: the function that
 * touches a page first seems to take that time. A fault takes 2 µs at most. */
static double share_again(const struct trace *trace)
{
    static const double fault_ns = 2000;
    const double cpu_ns = trace_fact_real(trace, "on_core_ns", 0);
    const double system_ns = trace_fact_real(trace, "system_ns", 0);
    const double faults = trace_fact_real(trace, "faults", 0);
    const double again = trace_fact_real(trace, "faults_again", 0);
    if (cpu_ns <= 0 || faults <= 0)
        return 0;
    return fmin(fmin(system_ns, faults * fault_ns) * again / faults / cpu_ns, 0.99);
}

enum status rule_faults(const struct look *look, struct replay *change, struct rule_found *found)
{
    const double again = share_again(look->trace);
    struct shares shares;
    (void)change;
    TRY(share_of(look, SEEN_FAULT, false, &shares));
    const double part = share(look, &shares);
    if (again <= part)
        return rule_by_share(look, SEEN_FAULT, false, 0.05,
                             "map memory, give it back, or fill new pages", found);
    if (again < 0.08)
        return STATUS_OK;
    found->applies = true;
    found->gain = gain_of(look, again, shares.busy);
    found->site = shares.site;
    text_printf(&found->evidence,
                "%.0f %% of the CPU time fills pages that it had before: ", 100 * again);
    text_add_grouped(&found->evidence, (uint64_t)trace_fact_real(look->trace, "faults_again", 0));
    text_add(&found->evidence, " of ");
    text_add_grouped(&found->evidence, (uint64_t)trace_fact_real(look->trace, "faults", 0));
    text_add(&found->evidence, " page faults");
    return STATUS_OK;
}

/* Of a thread that waits for storage longest: its line. */
static uint32_t storage_site(const struct look *look)
{
    const struct trace *trace = look->trace;
    int64_t longest = 0;
    uint32_t site = 0;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span *span = &trace->spans[i];
        if (span->kind == SPAN_sleep && look_in_window(look, span) &&
            text_ends(trace_word(trace, span->name), TRACE_STORAGE) && span_ns(span) > longest) {
            longest = span_ns(span);
            site = span->site;
        }
    }
    return site;
}

enum status rule_storage(const struct look *look, struct replay *change, struct rule_found *found)
{
    struct crowd crowd;
    (void)change;
    TRY(crowd_find(look->trace, &look->advice->steps, 0, &crowd));
    const double part = crowd.storage_ns / fmax(crowd.window_ns, 1);
    if (look->advice->seen_ns < ADVICE_SEEN_NS || part < 0.1)
        return STATUS_OK;
    found->applies = true;
    found->gain = gain_of(look, fmin(part, 0.99), 1);
    found->least = gain_of(look, sure_share(fmin(part, 0.99), crowd.window_ns / LOOK_NS), 1);
    found->site = storage_site(look);
    text_printf(&found->evidence, "%.0f %% of the time a thread waits for storage, and none runs",
                100 * part);
    return STATUS_OK;
}
