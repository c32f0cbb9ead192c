/* record.c: what a record is before and beside its line: empty, measured, asked for a metric. The
 * line itself is record_write.c and record_read.c. */
#include "record/record.h"
#include "record/names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const record_kinds[RECORD_KINDS] = {"result", "machine", "network", "proof", "profile"};
const char *const record_statuses[RECORD_STATUSES] = {"ok", "skipped", "failed"};
const char *const record_verdicts[RECORD_VERDICTS] = {"none", "right", "wrong"};
const char record_unavailable[] = "not available: ";

const char *framework_title(const char *framework)
{
    static const struct {
        const char *key, *title;
    } rows[] = {
#define FRAMEWORK(key, title) {key, title},
#include "record/words/frameworks.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].key, framework) == 0)
            return rows[i].title;
    return framework;
}

const char *const metric_groups[METRIC_GROUPS] = {
#define METRIC_GROUP(key, title) title,
#include "record/metrics.def"
};

const struct metric metrics[METRIC_COUNT] = {
#define METRIC(key, title, group, unit, better, shown, value, help)                                \
    {#key, title, METRIC_GROUP_##group, unit, METRIC_##better, shown, help},
#include "record/metrics.def"
};

const struct derived deriveds[DERIVED_COUNT] = {
#define DERIVED(key, kind, value, help) {#key, AXIS_##kind, help},
#include "record/axes.def"
};

void record_start(struct record *record)
{
    *record = (struct record){
        .time_ns = stats_nothing(),
        .parts_ns = {NAN, NAN, NAN, NAN, NAN, NAN},
        .start_ns = NAN,
        .throughput = NAN,
        .floor_ns = NAN,
        .times_floor = NAN,
        .best_times_floor = NAN,
        .times_now = NAN,
        .flop = NAN,
        .bytes = NAN,
        .check = {.difference = NAN, .tolerance = NAN},
        .against = {.found = {.ratio = NAN, .low = NAN, .high = NAN}},
    };
    point_start(&record->point);
}

int64_t record_effective_batch(const struct record *record)
{
    int64_t samples;
    int64_t workers = record->point.workers ? record->point.workers : 1;
    return __builtin_mul_overflow(record->point.batch, workers, &samples) ? 0 : samples;
}

int64_t record_units_per_node(const struct record *record)
{
    int64_t nodes = record->point.nodes ? record->point.nodes : 1;
    return record->point.workers / nodes;
}

int64_t record_flop(const struct record *record)
{
    return record->flop > 0 && record->flop < 9e18 ? (int64_t)record->flop : 0;
}

double record_quantile(const struct record *record, double quantile)
{
    return stats_quantile(record->samples_ns, record->sample_count, quantile);
}

enum status record_measure(struct record *record, struct arena *arena, const double *samples_ns,
                           size_t count, int64_t per)
{
    TRY(stats_compute(samples_ns, count, per, &record->time_ns));
    double *kept;
    NEED(kept = arena_array(arena, count < RECORD_SAMPLES ? count : RECORD_SAMPLES, sizeof *kept));
    record->sample_count = stats_thin(samples_ns, count, kept, RECORD_SAMPLES);
    record->samples_ns = kept;
    double batch = (double)record_effective_batch(record);
    record->throughput = batch > 0 ? batch / record->time_ns.median * 1e9 : (double)NAN;
    record_compare_floor(record);
    return STATUS_OK;
}

double record_work_ns(const struct record *record)
{
    const bool queues = point_is(&record->point, CHOICE_scenario_server);
    return queues ? (double)NAN : record->time_ns.median;
}

void record_compare_floor(struct record *record)
{
    const bool works = !isnan(record_work_ns(record));
    record->times_floor = record_work_ns(record) / record->floor_ns;
    record->best_times_floor = works ? record->time_ns.min / record->floor_ns : (double)NAN;
}

void record_compare_hour(struct record *record, double floor_now_ns)
{
    const double times = record_work_ns(record) / floor_now_ns;
    record->times_now = isnan(times) ? times : fmin(record->times_floor, fmax(times, 1));
}

bool record_slow_hour(const struct record *record)
{
    return record->times_floor > 1.05 * record->times_now; /* NaN: no */
}

double record_of_limit(const struct record *record)
{
    const double times = isnan(record->times_now) ? record->times_floor : record->times_now;
    return times >= RECORD_FLOOR_LEAST ? 100 / fmax(times, 1) : (double)NAN;
}

/* Did others compute on the GPU meanwhile? Those that only have memory there do not count. */
static bool is_gpu_shared(const struct record *record)
{
    return strcmp(record->point.unit, "gpu") == 0 && record_meter(record, "gpu_others") > 0 &&
           !(record_meter(record, "gpu_others_busy") < RECORD_GPU_OTHERS_MATTER);
}

static double threads_of(const struct record *record)
{
    const double workers = record->point.workers > 1 ? (double)record->point.workers : 1;
    return workers * (record->point.threads > 0 ? (double)record->point.threads : 1);
}

/* What disturbed it, where others may keep this many cores busy. */
static const char *disturbed_beyond(const struct record *record, double cores)
{
    if (record_meter(record, "other_load") > cores)
        return "other programs";
    if (is_gpu_shared(record))
        return "other programs on the GPU";
    return record_meter(record, "steal") > RECORD_STEAL_SPOILS ? "the host" : "";
}

const char *record_disturbed(const struct record *record)
{
    const double cores = (double)json_int(record->machine, "cores", 0);
    return disturbed_beyond(record, fmax(cores - 1 - threads_of(record), RECORD_OTHERS_MATTER));
}

const char *record_crowded(const struct record *record, int64_t cores)
{
    return disturbed_beyond(record,
                            fmax((double)cores - threads_of(record), 0) + RECORD_OTHERS_MATTER);
}

double record_meter(const struct record *record, const char *name)
{
    for (size_t i = 0; i < record->meter_count; i++)
        if (strcmp(record->meters[i].name, name) == 0)
            return record->meters[i].unavailable ? (double)NAN : record->meters[i].value;
    return NAN;
}

double record_compute_ns(const struct record *record)
{
    const struct record_parts *parts = &record->parts_ns;
    const double seen = record_meter(record, "compute");
    return isnan(seen) ? parts->forward + (isnan(parts->backward) ? 0 : parts->backward) +
                             (isnan(parts->update) ? 0 : parts->update)
                       : seen;
}

double record_compute_share(const struct record *record)
{
    const double staged = record_meter(record, "staged_iteration");
    return record_compute_ns(record) / (isnan(staged) ? record->time_ns.median : staged);
}

double record_idle_ns(const struct record *record)
{
    const double gather = 1 - record_meter(record, "gather_overlap") / 100;
    const double copy = 1 - record_meter(record, "copy_overlap") / 100;
    return record_meter(record, "staged_iteration") - gather * record_meter(record, "gather") -
           copy * record_meter(record, "copy") - record_meter(record, "compute");
}

static enum status copy_text(struct arena *arena, const char **text)
{
    if (*text)
        NEED(*text = arena_text(arena, *text));
    return STATUS_OK;
}

static enum status copy_tree(struct arena *arena, const struct json **tree)
{
    if (*tree)
        NEED(*tree = json_copy(arena, *tree));
    return STATUS_OK;
}

static enum status copy_kernels(struct arena *arena, struct record *out)
{
    const char **kernels;
    NEED(kernels = arena_array(arena, out->kernel_count + 1, sizeof *kernels));
    for (size_t i = 0; i < out->kernel_count; i++)
        NEED(kernels[i] = arena_text(arena, out->kernels[i]));
    out->kernels = kernels;
    return STATUS_OK;
}

static enum status copy_meters(struct arena *arena, struct record *out)
{
    struct record_meter *meters;
    NEED(meters = arena_array(arena, out->meter_count + 1, sizeof *meters));
    for (size_t i = 0; i < out->meter_count; i++) {
        meters[i] = out->meters[i];
        TRY(copy_text(arena, &meters[i].name));
        TRY(copy_text(arena, &meters[i].unavailable));
    }
    out->meters = meters;
    return STATUS_OK;
}

enum status record_copy(struct arena *arena, const struct record *record, struct record *out)
{
    *out = *record;
    const char **const texts[] = {&out->reason,
                                  &out->program,
                                  &out->goal,
                                  &out->handicap,
                                  &out->bound,
                                  &out->check.against,
                                  &out->check.reason,
                                  &out->against.other,
                                  &out->against.disturbed,
                                  &out->at};
    const struct json **const trees[] = {&out->machine, &out->software, &out->calibration,
                                         &out->network, &out->proof,    &out->profile};
    double *samples;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        TRY(copy_text(arena, texts[i]));
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        TRY(copy_tree(arena, trees[i]));
    NEED(samples = arena_array(arena, record->sample_count + 1, sizeof *samples));
    for (size_t i = 0; i < record->sample_count; i++)
        samples[i] = record->samples_ns[i];
    out->samples_ns = samples;
    TRY(copy_kernels(arena, out));
    return copy_meters(arena, out);
}

const char *record_status_name(enum record_status status)
{
    return record_statuses[status];
}

const struct metric *metric_find(const char *key)
{
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metrics[i].key, key) == 0)
            return &metrics[i];
    return NULL;
}

double record_metric(const struct record *record, const struct metric *metric)
{
    double found = NAN;
    switch ((enum metric_index)(metric - metrics)) {
#define METRIC(key, title, group, unit, better, shown, value, help)                                \
    case METRIC_##key:                                                                             \
        found = value;                                                                             \
        break;
#include "record/metrics.def"
    case METRIC_COUNT: break;
    }
    return isfinite(found) ? found : (double)NAN;
}

static const char *derived_TEXT(const char *text, char *buffer)
{
    (void)buffer;
    return text ? text : "";
}

static const char *derived_INT(int64_t number, char *buffer)
{
    if (number == 0)
        return "";
    snprintf(buffer, POINT_NUMBER, "%lld", (long long)number);
    return buffer;
}

const char *record_derived(const struct record *record, const struct derived *derived,
                           char buffer[TITLE_TEXT])
{
    const char *found = "";
    switch ((enum derived_index)(derived - deriveds)) {
#define DERIVED(key, kind, value, help)                                                            \
    case DERIVED_##key:                                                                            \
        found = derived_##kind(value, buffer);                                                     \
        break;
#include "record/axes.def"
    case DERIVED_COUNT: break;
    }
    return found;
}
