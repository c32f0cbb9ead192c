/* scenario.c: see scenario.h. */
#include "bench/scenario.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"
#include "record/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    PROBES = 8,             /* rates that are tried */
    QUERIES_MOST = 1 << 20, /* in one */
    OFFLINE_QUERIES = 8,
    TOGETHER = 1000, /* queries that are timed together: queued, chained */
};
/* … fewer where they take longer: waiting does not show in it, and who stops the bench waits too */
static const uint64_t TOGETHER_NS = 100000000;
static const int64_t PER_MOST = (int64_t)1 << 32; /* batches in one query of offline */
static const uint64_t SPIN_NS = 200000; /* the rest of a wait: sleeping would come back too late */
static const double HOPELESS = 20;      /* bounds that a query is late: the queue only grows */
static const double GROWING = 0.02; /* … and the share of a run that its last query is late, */
static const double PAUSE_NS = 5e6; /* beyond what a process may have to wait for its CPU */

bool scenario_parse(const char *name, enum scenario *out)
{
    static const char *const names[SCENARIO_COUNT] = {
        "single-stream", "multi-stream", "offline", "server", "queued", "resident", "chained"};
    for (int i = 0; i < SCENARIO_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum scenario)i;
            return true;
        }
    return false;
}

enum answering scenario_answering(const char *name)
{
    enum scenario scenario;
    if (!scenario_parse(name, &scenario) || scenario == SCENARIO_OFFLINE)
        return ANSWER_STEPS;
    return scenario == SCENARIO_RESIDENT ? ANSWER_RESIDENT
           : scenario == SCENARIO_QUEUED ? ANSWER_QUEUED
                                         : ANSWER_CALLS;
}

bool scenario_streams(enum scenario scenario)
{
    return scenario != SCENARIO_OFFLINE && scenario != SCENARIO_SERVER;
}

bool scenario_chains(const char *name)
{
    enum scenario scenario;
    return scenario_parse(name, &scenario) && scenario == SCENARIO_CHAINED;
}

enum status scenario_parse_bound(const char *text, struct scenario_bound *out)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char number[32];

    *out = (struct scenario_bound){text_starts(text, "p99=")   ? 0.99
                                   : text_starts(text, "p90=") ? 0.90
                                                               : 0,
                                   0};
    size_t length = out->quantile > 0 ? strspn(text + 4, "0123456789.") : 0;
    snprintf(number, sizeof number, "%.*s", (int)length, length ? text + 4 : "");
    for (size_t i = 0; length && i < sizeof units / sizeof *units; i++)
        if (strcmp(text + 4 + length, units[i].name) == 0 && text_to_real(number, &out->ns) &&
            out->ns > 0) {
            out->ns *= units[i].ns;
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT, "--bound: found \"%s\", expected such as p99=10ms or p90=500us", text);
}

void scenario_free(struct scenario_result *result)
{
    mem_free(result->latencies_ns);
    *result = (struct scenario_result){0};
}

static enum status keep_latency(struct scenario_result *out, double latency_ns)
{
    if (out->count == out->room) {
        size_t room = out->room ? 2 * out->room : 1024;
        double *grown = mem_grow(out->latencies_ns, room, sizeof *grown);
        NEED(grown);
        out->latencies_ns = grown;
        out->room = room;
    }
    out->latencies_ns[out->count++] = latency_ns;
    return STATUS_OK;
}

static enum status ask_whether_stopped(const struct scenario_options *options)
{
    if (options->stopped && options->stopped())
        FAIL(STATUS_INTERRUPTED, "stopped");
    return STATUS_OK;
}

/* What takes less than to look at the clock does nothing, or does not say how long it takes. */
static enum status refuse_no_time(double run_ns, int64_t queries)
{
    if (run_ns < 0.5 * (double)clock_cost_ns())
        FAIL(STATUS_DEVICE, "%lld quer%s no time: nothing is being measured", (long long)queries,
             queries == 1 ? "y takes" : "ies take");
    return STATUS_OK;
}

/* One query to warm up, and another where that one took most of the time: if it does so again it is
 * the only one that is measured (*once), and what held up the first otherwise does not count. */
static enum status first_look(const struct scenario_options *options, struct job *job,
                              uint64_t *one_ns, bool *once)
{
    TRY(ask_whether_stopped(options));
    TRY(job->kind->run(job, 1, one_ns));
    *once = *one_ns >= options->limit_ns / 2;
    if (!*once || *one_ns > options->patience_ns)
        return STATUS_OK;
    TRY(ask_whether_stopped(options));
    TRY(job->kind->run(job, 1, one_ns));
    *once = *one_ns >= options->limit_ns / 2;
    return STATUS_OK;
}

static enum status keep_once(struct scenario_result *out, uint64_t one_ns)
{
    TRY(refuse_no_time((double)one_ns, 1));
    out->per = 1;
    out->rate = 1e9 / (double)one_ns;
    out->cut = true;
    return keep_latency(out, (double)one_ns);
}

/* `per` queries after `per` others, for a time, and at least so often. */
static enum status run_stream(const struct scenario_options *options, struct job *job, int64_t per,
                              uint64_t limit_ns, size_t least, struct scenario_result *out)
{
    uint64_t start_ns = clock_ns(), elapsed_ns;
    double sum_ns = 0;

    TRY(job->kind->run(job, per, &elapsed_ns)); /* warm */
    while (out->count < least || (clock_ns() - start_ns < limit_ns && out->count < QUERIES_MOST)) {
        TRY(ask_whether_stopped(options));
        TRY(job->kind->run(job, per, &elapsed_ns));
        TRY(keep_latency(out, (double)elapsed_ns / (double)per));
        sum_ns += (double)elapsed_ns;
    }
    TRY(refuse_no_time(sum_ns / (double)out->count, per));
    out->per = per;
    out->rate = (double)out->count * (double)per / sum_ns * 1e9;
    return STATUS_OK;
}

/* A stream of single queries, or of as many together as there may be. The quickest of a few looks
 * tells how many: something may hold one up. */
static enum status run_queries(const struct scenario_options *options, struct job *job,
                               int64_t together, struct scenario_result *out)
{
    enum { LOOKS = 3 };
    const uint64_t start_ns = clock_ns();
    uint64_t one_ns, again_ns;
    bool once;

    TRY(first_look(options, job, &one_ns, &once));
    if (once)
        return keep_once(out, one_ns);
    for (int look = 1; look < LOOKS && one_ns > TOGETHER_NS / (uint64_t)together &&
                       clock_ns() - start_ns < options->limit_ns / 4;
         look++) {
        TRY(ask_whether_stopped(options));
        TRY(job->kind->run(job, 1, &again_ns));
        one_ns = again_ns < one_ns ? again_ns : one_ns;
    }
    int64_t fits = (int64_t)(TOGETHER_NS / (one_ns ? one_ns : 1));
    int64_t per = fits < 1 ? 1 : fits < together ? fits : together;
    return run_stream(options, job, per, options->limit_ns, 1, out);
}

/* A few long queries, each of as many batches as its share of the time holds; whoever says that it
 * takes less than it does is not asked for ever more. */
static enum status run_offline(const struct scenario_options *options, struct job *job,
                               struct scenario_result *out)
{
    uint64_t start_ns = clock_ns();
    uint64_t elapsed_ns, share_ns = options->limit_ns / (OFFLINE_QUERIES + 1);
    int64_t per = 1;
    double sum_ns = 0;
    bool once;

    TRY(first_look(options, job, &elapsed_ns, &once));
    if (once)
        return keep_once(out, elapsed_ns);
    while (elapsed_ns < share_ns / 4 && per < PER_MOST &&
           clock_ns() - start_ns < options->limit_ns) {
        per *= 2;
        TRY(ask_whether_stopped(options));
        TRY(job->kind->run(job, per, &elapsed_ns));
    }
    TRY(refuse_no_time((double)elapsed_ns, per));
    while (out->count < OFFLINE_QUERIES && !out->cut) {
        TRY(ask_whether_stopped(options));
        TRY(job->kind->run(job, per, &elapsed_ns));
        TRY(keep_latency(out, (double)elapsed_ns / (double)per));
        sum_ns += (double)elapsed_ns;
        out->cut = clock_ns() - start_ns >= options->limit_ns && out->count < OFFLINE_QUERIES;
    }
    out->per = per;
    out->rate = (double)per * (double)out->count / sum_ns * 1e9;
    return STATUS_OK;
}

static void wait_until(uint64_t due_ns)
{
    uint64_t now_ns = clock_ns();
    if (now_ns + SPIN_NS < due_ns)
        clock_sleep_ns(due_ns - now_ns - SPIN_NS);
    while (clock_ns() < due_ns)
        continue;
}

/* Queries at this rate, due at random; `queries` of them, fewer when it is hopeless. */
static enum status run_arrivals(const struct scenario_options *options, struct job *job,
                                double rate, int64_t queries, struct scenario_result *out)
{
    const struct rng_key key = {.seed = options->seed};
    const double hopeless_ns = HOPELESS * options->bound.ns;
    uint64_t start_ns = clock_ns() + SPIN_NS;
    double due_ns = 0; /* after the start */

    out->count = 0;
    out->per = 1;
    out->rate = rate;
    out->behind = false;
    for (int64_t query = 0; query < queries; query++) {
        uint64_t elapsed_ns;
        due_ns -= log1p(-(double)rng_uniform(key, (uint32_t)query, 0)) / rate * 1e9;
        TRY(ask_whether_stopped(options));
        wait_until(start_ns + (uint64_t)due_ns);
        double begun_ns = (double)(clock_ns() - start_ns);
        TRY(job->kind->run(job, 1, &elapsed_ns));
        double latency_ns = begun_ns + (double)elapsed_ns - due_ns;
        TRY(keep_latency(out, latency_ns));
        out->behind = latency_ns > fmax(GROWING * due_ns, PAUSE_NS + (double)elapsed_ns);
        if (latency_ns > hopeless_ns)
            break;
    }
    return STATUS_OK;
}

enum status scenario_holds(const struct scenario_bound *bound, const struct scenario_result *result,
                           double *percentile, bool *out)
{
    struct stats stats;
    TRY(stats_compute(result->latencies_ns, result->count, 1, &stats));
    *percentile = bound->quantile > 0.95 ? stats.p99 : stats.p90;
    *out = !result->behind && *percentile <= bound->ns; /* NaN: false */
    return STATUS_OK;
}

static enum status refuse_bound(const struct scenario_bound *bound, double percentile)
{
    struct text times = {0};
    text_add_time(&times, percentile);
    text_add(&times, ", more than ");
    text_add_time(&times, bound->ns);
    enum status status =
        status_fail(STATUS_UNSUPPORTED, __FILE__, __LINE__,
                    "no rate holds the bound: a query at a time takes %s", text_of(&times));
    text_free(&times);
    return status;
}

/* As many queries as the percentile needs, at each rate: is there time for them? The quickest of a
 * few tells: something may hold one up. */
static enum status refuse_impatience(const struct scenario_options *options, struct job *job,
                                     int64_t needed, double budget_ns)
{
    enum { LOOKS = 5 };
    double needs_ns = (double)INFINITY;
    for (int look = 0; look < LOOKS && needs_ns > budget_ns; look++) {
        uint64_t elapsed_ns;
        TRY(ask_whether_stopped(options));
        TRY(job->kind->run(job, 1, &elapsed_ns));
        needs_ns = fmin(needs_ns, (double)(needed * (PROBES + 1)) * (double)elapsed_ns);
    }
    if (needs_ns > budget_ns)
        FAIL(STATUS_UNSUPPORTED,
             "a p%.0f needs %lld queries at each of %d rates, about %.0f s: more than --patience",
             100 * options->bound.quantile, (long long)needed, PROBES + 1, needs_ns * 1e-9);
    return STATUS_OK;
}

/* The highest rate, by halving: between one that holds and one that does not. What arrives faster
 * than it is answered never holds. */
static enum status run_server(const struct scenario_options *options, struct job *job,
                              struct scenario_result *out)
{
    struct scenario_result tried = {0};
    const uint64_t start_ns = clock_ns(), share_ns = options->limit_ns / (PROBES + 1);
    const double budget_ns = fmax((double)options->limit_ns, (double)options->patience_ns);
    const int64_t needed = stats_needed(options->bound.quantile, 0.99);
    double holding = 0, failing = 0, percentile;
    bool holds, early = false;
    enum status status = STATUS_OK;

    TRY(refuse_impatience(options, job, needed, budget_ns));
    TRY(run_stream(options, job, 1, share_ns, (size_t)needed, out));
    failing = out->rate;
    TRY(scenario_holds(&options->bound, out, &percentile, &holds));
    if (!holds)
        return refuse_bound(&options->bound, percentile);
    for (int probe = 0; probe < PROBES; probe++) {
        double rate = (holding + failing) / 2, queries = rate * (double)share_ns * 1e-9;
        queries = fmin(fmax(queries, (double)needed), QUERIES_MOST);
        early = (double)(clock_ns() - start_ns) + queries / rate * 1e9 > budget_ns;
        if (early)
            break;
        TRY_OR(done, run_arrivals(options, job, rate, (int64_t)queries, &tried));
        TRY_OR(done, scenario_holds(&options->bound, &tried, &percentile, &holds));
        *(holds ? &holding : &failing) = rate;
        if (holds) {
            struct scenario_result older = *out;
            *out = tried;
            tried = older;
        }
    }
    out->early = early;
    if (holding <= 0)
        status = status_fail(STATUS_UNSUPPORTED, __FILE__, __LINE__,
                             "no rate from %.3g queries a second on holds the bound%s", failing,
                             early ? ", and lower ones take longer than --patience" : "");
done:
    scenario_free(&tried);
    return status;
}

enum status scenario_run(const struct scenario_options *options, struct job *job,
                         struct scenario_result *out)
{
    *out = (struct scenario_result){0};
    switch (options->scenario) {
    case SCENARIO_OFFLINE: return run_offline(options, job, out);
    case SCENARIO_SERVER: return run_server(options, job, out);
    case SCENARIO_QUEUED:
    case SCENARIO_CHAINED: return run_queries(options, job, TOGETHER, out);
    default: return run_queries(options, job, 1, out);
    }
}
