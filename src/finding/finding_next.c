/* finding_next.c: the next step, from what sets the limit of the best result. What cannot work on
 * the machine is not suggested: a GPU where there is none, more threads than cores. */
#include "finding/finding_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct best {
    struct asking *asking;
    struct text *out; /* the sentence */
    struct finding *finding;
    struct store_row row;
    char bound[16];
    bool larger; /* larger batches were measured, all else alike */
};

static const double FAR = 2; /* × the floor: something else than the hardware takes the time */

static bool is_bound_by(const struct best *best, const char *bound)
{
    return strcmp(best->bound, bound) == 0;
}

/* What a profile can be told of a point; of another framework's only where it computes. */
static uint64_t profiled(const struct point *point)
{
    uint64_t set = FINDING_BIT(batch) | FINDING_BIT(unit) | FINDING_BIT(precision);
    if (strcmp(point->framework, "prony") == 0)
        set |= FINDING_BIT(backend) | FINDING_BIT(threads);
    return set;
}

static void try_profile(const struct best *best)
{
    const struct point *point = &best->row.point;
    finding_begin_command("profile", point, point->phase, profiled(point), best->finding);
}

static void try_batches(const struct best *best, uint64_t set)
{
    const struct point *point = &best->row.point;
    int64_t most;
    finding_begin_command("bench", point, point->phase, set, best->finding);
    if (__builtin_mul_overflow(point->batch, 8, &most))
        most = point->batch;
    text_printf(&best->finding->command, " --batch %lld-%lld*2", (long long)point->batch,
                (long long)most);
}

/* " --precision fp32,bf16": values of one axis, at the batch that it has. */
static void try_values(const struct best *best, uint64_t axis, const char *flags)
{
    const struct point *point = &best->row.point;
    finding_begin_command("bench", point, point->phase,
                          (FINDING_BENCH | FINDING_BIT(batch)) & ~axis, best->finding);
    text_add(&best->finding->command, flags);
}

/* "training `large` at batch 64" */
static void add_subject(const struct best *best)
{
    finding_add_work(best->out, best->asking->about);
    finding_add_batch(best->out, &best->row.point);
    finding_add_manner(best->out, &best->row.point);
    if (strcmp(best->row.point.framework, "prony") != 0)
        finding_add_maker(best->out, &best->row.point);
}

/* A larger batch is advised where none was measured: else that one would be the best. */
static void advise_batches(const struct best *best, const char *why)
{
    if (best->larger) {
        text_add(best->out, "See where the time goes: no larger batch brings more to ");
        add_subject(best);
        text_add(best->out, ".");
        try_profile(best);
    } else {
        text_add(best->out, "Try a larger batch for ");
        add_subject(best);
        text_printf(best->out, ": %s.", why);
        try_batches(best, FINDING_BENCH);
    }
}

/* Nothing is left to try. */
static void say_done(const struct best *best)
{
    text_add(best->out, "Nothing is left to try here: arithmetic sets the limit of ");
    add_subject(best);
    text_add(best->out, ", and it is nearly reached.");
    best->finding->known = false;
}

static void advise_arithmetic_cpu(const struct best *best)
{
    const struct finding_about *about = best->asking->about;
    const struct point *point = &best->row.point;
    if (point->threads < about->machine.cores) {
        if (about->machine.cores == 2)
            text_add(best->out, "Try both cores for ");
        else
            text_printf(best->out, "Try all %lld cores for ", (long long)about->machine.cores);
        add_subject(best);
        text_add(best->out, ": arithmetic sets the limit, and more cores raise it.");
        try_values(best, FINDING_BIT(threads), "");
        finding_add_threads(about, &best->finding->command);
    } else if (about->machine.gpu) {
        text_add(best->out, "Try the GPU for ");
        add_subject(best);
        text_add(best->out, ": arithmetic sets the limit of the CPU, and it is nearly reached.");
        finding_begin_command("bench", point, point->phase, FINDING_BIT(optimiser), best->finding);
        text_printf(&best->finding->command, " --unit cpu,gpu --batch %lld",
                    (long long)point->batch);
    } else {
        say_done(best);
    }
}

static void advise_cpu(const struct best *best)
{
    if (is_bound_by(best, "bytes"))
        advise_batches(best, "memory sets the limit, and it reads the weights less often");
    else
        advise_arithmetic_cpu(best);
}

static void advise_precision(const struct best *best, const char *flags, const char *why)
{
    text_printf(best->out, "Try %s for ", strrchr(flags, ',') + 1);
    add_subject(best);
    text_printf(best->out, ": %s.", why);
    try_values(best, FINDING_BIT(precision), flags);
}

static void advise_gpu(const struct best *best)
{
    const struct point *point = &best->row.point;
    const bool fp32 = point_is(point, CHOICE_precision_fp32);
    const bool tf32 = point_is(point, CHOICE_precision_tf32);
    if (!is_bound_by(best, "bytes")) {
        if (fp32)
            advise_precision(best, " --precision fp32,tf32,bf16",
                             "arithmetic sets the limit, and tensor cores do more of it");
        else if (tf32)
            advise_precision(best, " --precision tf32,bf16",
                             "arithmetic sets the limit, and bf16 doubles it");
        else
            say_done(best);
    } else if (fp32 || tf32) {
        advise_precision(best, fp32 ? " --precision fp32,bf16" : " --precision tf32,bf16",
                         "memory sets the limit, and 16 bits halve the bytes of the weights");
    } else {
        advise_batches(best, "memory sets the limit, and it reads the weights less often");
    }
}

/* Where the samples are copied while nothing is computed. */
static bool is_copied(const struct point *point)
{
    return point_is(point, CHOICE_ingestion_direct) || point_is(point, CHOICE_ingestion_pinned);
}

static bool is_call(const struct point *point)
{
    return point->scenario[0] && !point_is(point, CHOICE_scenario_iterate);
}

/* A GPU that waits; false: it does not. */
static bool advise_waiting_gpu(const struct best *best)
{
    const struct point *point = &best->row.point;
    if (is_copied(point)) {
        text_add(best->out, "Try overlapped ingestion for ");
        add_subject(best);
        text_add(best->out, ": samples are then copied while the GPU computes.");
        try_values(best, FINDING_BIT(ingestion), "");
        text_printf(&best->finding->command, " --ingestion %s,overlapped", point->ingestion);
        return true;
    }
    const bool calls = is_call(point) && best->row.metrics[METRIC_times_floor] > FAR;
    if (!calls && !is_bound_by(best, "latency"))
        return false;
    advise_batches(best, calls ? "more samples in a call cost little more"
                               : "the GPU waits for launches, and more samples cost little more");
    return true;
}

static void advise(const struct best *best)
{
    const double floors = best->row.metrics[METRIC_times_floor];
    const bool gpu = finding_is_gpu(&best->row.point);
    if (floors < RECORD_FLOOR_LEAST) {
        text_add(best->out, "Measure ");
        add_subject(best);
        text_add(best->out, " again while nothing else runs: it is faster than its limit, so the "
                            "limit was measured too low.");
        try_values(best, 0, "");
    } else if (gpu && advise_waiting_gpu(best)) {
        return;
    } else if (isnan(floors) && is_bound_by(best, "latency")) {
        advise_batches(best, "waiting times set the limit, and more samples cost little more");
    } else if (isnan(floors)) {
        text_add(best->out, "Measure ");
        add_subject(best);
        text_add(best->out, " here: its limit is not known.");
        try_values(best, 0, "");
    } else if (floors > FAR) {
        text_add(best->out, "See where the time goes: ");
        add_subject(best);
        text_add(best->out, " is far from the limit.");
        try_profile(best);
    } else {
        (gpu ? advise_gpu : advise_cpu)(best);
    }
}

/* No result may be concluded from. */
static enum status say_again(const struct finding_about *about, struct text *out)
{
    const char *asked = finding_asked_for(about->where, "source");
    const char *source = asked ? asked : about->source;
    const struct store_filter filters[] = {{"model", about->model},
                                           {"phase", about->phase},
                                           {"server", about->server},
                                           {"source", source}};
    struct finding_lack lack;
    TRY(finding_count_lack(about->store, about->arena,
                           (struct store_where){filters, *source ? 4 : 3}, &lack));
    text_add(out, "Measure ");
    finding_add_work(out, about);
    finding_add_place(out, about);
    text_add(out, lack.disturbed ? " again while nothing else runs: " : ": ");
    const size_t begin = out->length;
    finding_add_lack(out, &lack);
    if (out->length == begin)
        text_add(out, "nothing may be concluded from its results");
    else if (out->data[begin] >= 'A' && out->data[begin] <= 'Z')
        out->data[begin] = (char)(out->data[begin] - 'A' + 'a');
    text_add_char(out, '.');
    return STATUS_OK;
}

enum status finding_next(struct asking *asking)
{
    const struct finding_about *about = asking->about;
    struct finding *finding = asking->finding;
    struct best best = {.asking = asking, .out = &finding->sentence, .finding = finding};
    struct series series;
    TRY(finding_best_series(asking, 1, &series));
    if (!finding->known) {
        TRY(say_again(about, &finding->sentence));
        finding_begin_command("bench", &about->best, about->phase, FINDING_BENCH, finding);
        return STATUS_OK;
    }
    finding_rests_on(finding, series.top);
    best.larger = series.top != &series.marks[series.count - 1];
    TRY(store_row(about->store, series.top->id, &best.row));
    snprintf(best.bound, sizeof best.bound, "%s", best.row.bound);
    advise(&best);
    return STATUS_OK;
}
