/* finding_next.c: the next step, from the bound of the best result. A GPU is advised as a GPU. */
#include "finding/finding_inside.h"

#include <math.h>
#include <string.h>

struct best {
    struct store_row row;
    bool larger; /* larger batches were measured, all else alike */
};

static const double FAR = 2; /* × the floor: something else than the hardware takes the time */

/* What a profile can be told of a point; of another framework's only where it computes. */
static uint64_t profiled(const struct point *point)
{
    uint64_t set = FINDING_BIT(batch) | FINDING_BIT(unit) | FINDING_BIT(precision);
    if (strcmp(point->framework, "prony") == 0)
        set |= FINDING_BIT(backend) | FINDING_BIT(threads);
    return set;
}

static void try_profile(const struct point *point, struct finding *finding)
{
    finding_begin_command("profile", point, point->phase, profiled(point), finding);
}

static void try_batches(const struct point *point, uint64_t set, struct finding *finding)
{
    int64_t most;
    finding_begin_command("bench", point, point->phase, set, finding);
    if (__builtin_mul_overflow(point->batch, 8, &most))
        most = point->batch;
    text_printf(&finding->command, " --batch %lld-%lld*2", (long long)point->batch,
                (long long)most);
}

/* A larger batch is advised where none was measured: else that one would be the best. */
static void advise_batches(const struct best *best, const char *why, struct finding *finding)
{
    if (best->larger) {
        text_add(&finding->sentence,
                 "no larger batch that was measured gives more; see where the time goes.");
        try_profile(&best->row.point, finding);
    } else {
        text_add(&finding->sentence, why);
        try_batches(&best->row.point, FINDING_BENCH, finding);
    }
}

/* " --threads 1,2,4": values of one axis, at the batch that it has. */
static void try_values(const struct point *point, uint64_t axis, const char *flags,
                       struct finding *finding)
{
    finding_begin_command("bench", point, point->phase,
                          (FINDING_BENCH | FINDING_BIT(batch)) & ~axis, finding);
    text_add(&finding->command, flags);
}

static void advise_cpu(const struct best *best, struct finding *finding)
{
    struct text *out = &finding->sentence;
    const struct point *point = &best->row.point;
    if (strcmp(best->row.bound, "bytes") == 0) {
        text_add(out, "bound by memory: ");
        advise_batches(best, "a larger batch reads the weights less often.", finding);
    } else {
        text_add(out, "bound by arithmetic: only more cores or a GPU make it faster.");
        try_values(point, FINDING_BIT(threads), " --threads 1,2,4", finding);
    }
}

/* Tensor cores multiply numbers of fewer bits several times as fast. */
static void advise_precision(const struct point *point, struct finding *finding)
{
    struct text *out = &finding->sentence;
    if (point_is(point, CHOICE_precision_fp32)) {
        text_add(out, "bound by arithmetic in fp32: tf32 and bf16 use the tensor cores.");
        try_values(point, FINDING_BIT(precision), " --precision fp32,tf32,bf16", finding);
    } else if (point_is(point, CHOICE_precision_tf32)) {
        text_add(out, "bound by arithmetic in tf32: bf16 multiplies twice as fast.");
        try_values(point, FINDING_BIT(precision), " --precision tf32,bf16", finding);
    } else {
        text_printf(out, "bound by arithmetic in %s: that factor is all that is left here.",
                    point->precision);
        try_values(point, 0, "", finding);
    }
}

static void advise_gpu(const struct best *best, struct finding *finding)
{
    struct text *out = &finding->sentence;
    const struct point *point = &best->row.point;
    bool wide = point_is(point, CHOICE_precision_fp32) || point_is(point, CHOICE_precision_tf32);
    if (strcmp(best->row.bound, "bytes") != 0) {
        advise_precision(point, finding);
    } else if (wide) {
        text_add(out, "bound by memory: 16 bits halve the bytes of the weights");
        text_add(out, best->larger ? "." : ", and a larger batch reads them less often.");
        if (best->larger)
            try_values(point, FINDING_BIT(precision), "", finding);
        else
            try_batches(point, FINDING_BENCH & ~FINDING_BIT(precision), finding);
        text_printf(&finding->command, " --precision %s,bf16", point->precision);
    } else {
        text_add(out, "bound by memory: ");
        advise_batches(best, "a larger batch reads the weights less often.", finding);
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

/* What is said of a GPU that waits; false: it does not. */
static bool advise_waiting_gpu(const struct best *best, struct finding *finding)
{
    struct text *out = &finding->sentence;
    const struct point *point = &best->row.point;
    if (is_copied(point)) {
        text_printf(out,
                    ") waits for its samples (%s ingestion): overlapped, they are copied while the "
                    "GPU computes.",
                    point->ingestion);
        finding_begin_command("bench", point, point->phase,
                              (FINDING_BENCH | FINDING_BIT(batch)) & ~FINDING_BIT(ingestion),
                              finding);
        text_printf(&finding->command, " --ingestion %s,overlapped", point->ingestion);
        return true;
    }
    bool calls = is_call(point) && best->row.metrics[METRIC_times_floor] > FAR;
    if (!calls && strcmp(best->row.bound, "latency") != 0)
        return false;
    text_add(out, calls ? ") answers calls, of which launch and bus take much of the time: "
                        : ") is bound by latency: it waits for launches (prony explain counts "
                          "them) or for memory; ");
    advise_batches(
        best, calls ? "more samples a call cost little more." : "a larger batch costs little more.",
        finding);
    return true;
}

static void advise(const struct finding_about *about, const struct best *best,
                   struct finding *finding)
{
    struct text *out = &finding->sentence;
    double floors = best->row.metrics[METRIC_times_floor];
    const struct point *point = &best->row.point;
    bool gpu = strcmp(point->unit, "gpu") == 0;
    text_printf(out, "The best of %s %s on ", about->phase, about->model);
    finding_add_place(out, point->unit, about->server);
    text_printf(out, " (batch %lld with ", (long long)point->batch);
    finding_add_maker(out, point);
    if (floors < FINDING_FLOOR_LEAST) {
        text_add(out, ") is faster than its floor: the ceilings were seen too low. Measure it "
                      "again while nothing else runs.");
        try_values(point, 0, "", finding);
        return;
    }
    if (gpu && advise_waiting_gpu(best, finding))
        return;
    if (isnan(floors) && strcmp(best->row.bound, "latency") == 0) {
        text_add(out, ") is bound by latency: ");
        advise_batches(best, "a larger batch costs little more.", finding);
    } else if (isnan(floors)) {
        text_add(out, ") has no floor to be compared with: measure it here.");
        try_values(point, 0, "", finding);
    } else if (floors > FAR) {
        text_add(out, ") takes ");
        finding_add_ratio(out, floors);
        text_add(out, " its floor: see where the time goes before buying anything.");
        try_profile(point, finding);
    } else {
        text_printf(out, ") is at %.3g × its floor and ", floors);
        (gpu ? advise_gpu : advise_cpu)(best, finding);
    }
}

enum status finding_draw_fastest(const struct finding_about *about, struct finding *finding,
                                 struct store_chart *chart, struct series *best)
{
    const struct finding_chart wanted = {.x = "batch",
                                         .y = "throughput",
                                         .groups = {"framework", "backend"},
                                         .phase = about->phase,
                                         .server = about->server,
                                         .unit = ""};
    return finding_draw_best(about, &wanted, 1, finding, chart, best);
}

enum status finding_next(const struct finding_about *about, struct finding *finding)
{
    struct store_chart chart;
    struct series series;
    struct best best;
    TRY(finding_draw_fastest(about, finding, &chart, &series));
    enum status status = STATUS_OK;
    if (finding->known) {
        finding_rests_on(finding, series.top);
        best.larger = series.top != &series.marks[series.count - 1];
        status = store_row(about->store, series.top->id, &best.row);
        if (status == STATUS_OK)
            advise(about, &best, finding);
    } else {
        text_printf(&finding->sentence, "Not known: there is no result of %s %s on %s.",
                    about->phase, about->model, about->server);
        finding_begin_command("bench", &about->best, about->phase, FINDING_BENCH, finding);
    }
    store_chart_free(&chart);
    return status;
}
