/* sweep.c: see sweep.h. */
#include "bench/sweep/sweep.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "bench/job/task.h"
#include "bench/peer/peers.h"
#include "bench/sweep/entry.h"
#include "nn/optimiser.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { WORKERS_MOST = 256 };

static const enum axis_index interleaved[] = {
    AXIS_framework,   AXIS_backend, AXIS_threads,   AXIS_affinity, AXIS_isa,
    AXIS_fusion,      AXIS_data,    AXIS_ingestion, AXIS_through,  AXIS_workers,
    AXIS_parallelism, AXIS_servers, AXIS_scaling,   AXIS_recompute};

static bool sweep_interleaves(int axis)
{
    for (size_t i = 0; i < sizeof interleaved / sizeof *interleaved; i++)
        if ((int)interleaved[i] == axis)
            return true;
    return false;
}

static bool sweep_has_peers(const struct sweep *sweep)
{
    const struct sweep_list *frameworks = &sweep->lists[AXIS_framework];
    for (int i = 0; i < frameworks->count; i++)
        if (strcmp(frameworks->values[i], "prony") != 0)
            return true;
    return false;
}

static enum status check_framework(const struct bench *bench, const char *name)
{
    struct arena scratch = {0};
    const char *path;
    enum status status = peers_find(bench->peers, name, &scratch, &path);
    arena_free(&scratch);
    return status;
}

/* Does the name say who is asked, not who computes? */
static bool is_way(const char *name)
{
    return axis_check(&axes[AXIS_through], name) == STATUS_OK;
}

/* Whom to compare with: one of our backends, the other way to ask them, or whatever a framework may
 * be. */
static enum status check_opponent(const struct bench *bench, const char *name)
{
    const struct backend *backend;
    if (is_way(name))
        return STATUS_OK;
    if (registry_find(bench->registry, name, &backend) != STATUS_INPUT)
        return STATUS_OK; /* one that cannot be loaded becomes a skip */
    enum status status = check_framework(bench, name);
    return status == STATUS_INPUT
               ? status_prefix(status, "--against: there is no backend of this name")
               : status;
}

/* A number beyond this would not fit where it is used. */
static enum status sweep_check_most(const struct sweep *sweep, enum axis_index axis, int64_t most)
{
    const struct sweep_list *list = &sweep->lists[axis];
    int64_t number;

    for (int i = 0; i < list->count; i++)
        if (text_to_int(list->values[i], &number) && number > most)
            FAIL(STATUS_INPUT, "--%s: found \"%s\", expected at most %lld", axes[axis].key,
                 list->values[i], (long long)most);
    return STATUS_OK;
}

/* Under strong scaling workers share the batch; a point says what one of them has. */
static enum status sweep_check_shares(const struct sweep *sweep)
{
    const struct sweep_list *batches = &sweep->lists[AXIS_batch];
    const struct sweep_list *workers = &sweep->lists[AXIS_workers];
    int64_t batch, count;
    if (!sweep_has(&sweep->lists[AXIS_scaling], "strong"))
        return STATUS_OK;
    for (int i = 0; i < workers->count; i++)
        for (int k = 0; k < (batches->count ? batches->count : 1); k++)
            if (text_to_int(workers->values[i], &count) &&
                text_to_int(batches->count ? batches->values[k] : "1", &batch) && batch % count)
                FAIL(STATUS_INPUT,
                     "--scaling strong: found batch %lld and %lld workers, expected a batch that "
                     "the workers divide: --batch %lld",
                     (long long)batch, (long long)count, (long long)((batch / count + 1) * count));
    return STATUS_OK;
}

enum status sweep_check(const struct sweep *sweep, const struct bench *bench)
{
    const struct sweep_list *models = &sweep->lists[AXIS_model];
    const struct sweep_list *frameworks = &sweep->lists[AXIS_framework];
    const struct sweep_list *backends = &sweep->lists[AXIS_backend];
    const struct sweep_list *optimisers = &sweep->lists[AXIS_optimiser];
    struct optimiser optimiser;

    TRY(sweep_check_most(sweep, AXIS_batch, TASK_BATCH_MOST));
    TRY(sweep_check_most(sweep, AXIS_threads, INT_MAX));
    TRY(sweep_check_most(sweep, AXIS_workers, WORKERS_MOST));
    TRY(sweep_check_shares(sweep));
    for (int i = 0; i < models->count; i++) {
        struct network *network = NULL;
        enum status status = network_open(models->values[i], &network);
        network_free(network);
        if (status != STATUS_UNSUPPORTED || !sweep_has_peers(sweep)) /* they may open the file */
            TRY(status);
    }
    for (int i = 0; i < optimisers->count; i++)
        TRY(optimiser_parse(optimisers->values[i], &optimiser));
    for (int i = 0; i < frameworks->count; i++)
        if (strcmp(frameworks->values[i], "prony") != 0)
            TRY(check_framework(bench, frameworks->values[i]));
    if (sweep->against && strcmp(sweep->against, "prony") == 0)
        FAIL(STATUS_INPUT, "--against: found \"prony\", expected one of its backends, another "
                           "framework or an executable such as build/prony");
    if (sweep->against)
        TRY(check_opponent(bench, sweep->against));
    for (int i = 0; i < backends->count && !sweep_has_peers(sweep); i++) {
        const struct backend *backend;
        enum status status = registry_find(bench->registry, backends->values[i], &backend);
        if (status != STATUS_OK && status != STATUS_UNSUPPORTED) /* the latter becomes a skip */
            return status;
    }
    return STATUS_OK;
}

/* The work that is being gone through. */
struct walk {
    const struct sweep *sweep;
    struct bench *bench;
    struct workload workload; /* of the group; closed where it need not be known */
    struct point *group;      /* the points of the group being gathered */
    int group_count;
    bool later[AXIS_COUNT]; /* the axis has another value than its first */
    int points;             /* gone through so far */
    double seconds;         /* planned for them */
    bool running;           /* else they are only counted … */
    bool planning;          /* … or it is said how long they take */
};

static bool term_holds(const struct sweep_term *term, const struct point *point)
{
    char number[POINT_NUMBER];
    const char *value = point_get(point, term->axis, number);
    for (int i = 0; i < term->values.count; i++)
        if (strcmp(term->values.values[i], value) == 0)
            return true;
    return false;
}

/* Does a rule name it? */
static bool sweep_skips(const struct sweep *sweep, const struct point *point)
{
    bool holds = true;
    for (int i = 0; i < sweep->skip_count; i++) {
        holds = holds && term_holds(&sweep->skip[i], point);
        if (sweep->skip[i].ends && holds)
            return true;
        if (sweep->skip[i].ends)
            holds = true;
    }
    return false;
}

/* What computes where no backend was asked for: the first on the unit that was, or on any. Without
 * one the point keeps none, and its record will say why. */
static enum status walk_choose_backend(const struct walk *walk, struct point *point)
{
    const char *unit = walk->sweep->lists[AXIS_unit].count ? point->unit : NULL;
    const struct backend *backend;
    if (registry_first(walk->bench->registry, unit, &backend) != STATUS_OK)
        return point_set(point, &axes[AXIS_backend], "");
    return point_set(point, &axes[AXIS_backend], backend->name);
}

/* Empties what does not apply, and "engine", which records do not say: those that were made before
 * the library could be asked are the same. Another prony has the axes of this one. */
static enum status walk_settle(struct walk *walk, struct point *point)
{
    char name[POINT_TEXT];
    bool is_prony = false;
    if (strchr(point->framework, '/'))
        TRY(peer_bank_is_prony(&walk->bench->waiting, point->framework, &is_prony));
    memcpy(name, point->framework, sizeof name);
    if (is_prony)
        TRY(point_set(point, &axes[AXIS_framework], "prony"));
    point_settle(point);
    if (point_is(point, CHOICE_through_engine))
        TRY(point_set(point, &axes[AXIS_through], ""));
    if (point_is(point, CHOICE_recompute_off))
        TRY(point_set(point, &axes[AXIS_recompute], ""));
    return point_set(point, &axes[AXIS_framework], name);
}

/* The same work by the one it is compared with. */
static enum status walk_opponent(struct walk *walk, const struct point *point, struct point *out)
{
    const char *name = walk->sweep->against;
    const struct backend *backend;
    enum status found = registry_find(walk->bench->registry, name, &backend);

    *out = *point;
    if (is_way(name)) {
        TRY(point_set(out, &axes[AXIS_through], name));
    } else if (found != STATUS_INPUT) {
        point_start(out);
        for (int i = 0; i < AXIS_COUNT; i++) {
            char number[POINT_NUMBER];
            const char *value = point_get(point, &axes[i], number);
            if (value[0])
                TRY(point_set(out, &axes[i], value));
        }
        TRY(point_set(out, &axes[AXIS_framework], "prony"));
        TRY(point_set(out, &axes[AXIS_backend], name));
        if (found == STATUS_OK)
            TRY(point_set(out, &axes[AXIS_unit], backend->unit));
    } else {
        bool same_backends = false;
        TRY(point_set(out, &axes[AXIS_framework], name));
        if (strchr(name, '/'))
            TRY(peer_bank_is_prony(&walk->bench->waiting, name, &same_backends));
        if (!same_backends)
            TRY(point_set(out, &axes[AXIS_backend], "default"));
    }
    return walk_settle(walk, out);
}

/* Is it left out, or whom it is compared with? */
static enum status walk_skips(struct walk *walk, const struct point *point, bool *out)
{
    struct point other;
    *out = sweep_skips(walk->sweep, point);
    if (*out || !walk->sweep->against)
        return STATUS_OK;
    TRY(walk_opponent(walk, point, &other));
    *out = sweep_skips(walk->sweep, &other);
    return STATUS_OK;
}

/* A backend of ours means its unit to a peer (another prony has the same ones), a peer's own leaves
 * us our first; what runs on a GPU has no threads. Such points come out equal and are taken once.
 */
static enum status walk_gather(struct walk *walk, const struct point *asked)
{
    const struct registry *registry = walk->bench->registry;
    struct point point = *asked;
    const struct backend *backend;
    bool is_prony = strcmp(point.framework, "prony") == 0;
    bool same_backends = false, skipped;
    enum status found =
        point.backend[0] ? registry_find(registry, point.backend, &backend) : STATUS_INPUT;

    if (found == STATUS_INPUT && is_prony && (!point.backend[0] || sweep_has_peers(walk->sweep))) {
        TRY(walk_choose_backend(walk, &point));
        found = registry_find(registry, point.backend, &backend);
    }
    if (found == STATUS_OK && !walk->sweep->lists[AXIS_unit].count)
        TRY(point_set(&point, &axes[AXIS_unit], backend->unit));
    if (!point_is(&point, CHOICE_ingestion_resident) && !walk->sweep->lists[AXIS_data].count)
        TRY(point_set(&point, &axes[AXIS_data], "real/dram")); /* else nothing would come */
    if (found == STATUS_OK && strchr(point.framework, '/'))
        TRY(peer_bank_is_prony(&walk->bench->waiting, point.framework, &same_backends));
    if (!is_prony && ((found == STATUS_OK && !same_backends) || !point.backend[0]))
        TRY(point_set(&point, &axes[AXIS_backend], "default"));
    TRY(walk_settle(walk, &point));
    if (point.workers > 1 && point_is(&point, CHOICE_scaling_strong))
        point.batch /= point.workers; /* what was asked for is the batch of all of them */
    TRY(walk_skips(walk, &point, &skipped));
    if (skipped)
        return STATUS_OK;
    for (int i = 0; i < walk->group_count; i++)
        if (point_compare(&walk->group[i], &point) == 0)
            return STATUS_OK;
    walk->group[walk->group_count++] = point;
    return STATUS_OK;
}

static enum status walk_compare(struct walk *walk)
{
    for (int i = 0; i < walk->group_count; i++) {
        struct point pair[2] = {walk->group[i]};
        TRY(walk_opponent(walk, &pair[0], &pair[1]));
        TRY(group_run(walk->bench, &walk->workload, pair, 2));
    }
    return STATUS_OK;
}

/* When the executable was changed, if it is a file that somebody named and that is later. */
static void walk_changed(const char *framework, char since[CLOCK_STAMP])
{
    char at[CLOCK_STAMP];
    struct stat info;
    if (!strchr(framework, '/') || stat(framework, &info) != 0)
        return;
    clock_stamp_of(info.st_mtime, at);
    if (strcmp(at, since) > 0)
        memcpy(since, at, CLOCK_STAMP);
}

/* What is known of a point of the group, from before. */
static enum status walk_find(struct walk *walk, const struct point *point, const char *program,
                             enum done_state *out)
{
    struct arena arena = {0};
    struct record asked;
    struct point other;
    char since[CLOCK_STAMP] = "";
    enum status status = bench_start_record(walk->bench, point, &arena, &asked);

    asked.program = program;
    walk_changed(point->framework, since);
    if (status == STATUS_OK && walk->sweep->against)
        status = walk_opponent(walk, point, &other);
    if (status == STATUS_OK && walk->sweep->against)
        status = bench_name(&other, &arena, &asked.against.other);
    if (status == STATUS_OK && walk->sweep->against)
        walk_changed(other.framework, since);
    if (status == STATUS_OK)
        status = done_find(walk->bench->done, &asked, since, out);
    arena_free(&arena);
    return status;
}

/* Takes what need not be measured out of the group. Who takes turns is measured together: one of
 * whom nothing is known keeps all of them; but who was skipped before is tried by itself. */
static enum status walk_leave_done(struct walk *walk)
{
    const char *program = walk->workload.task ? walk->workload.task->program : "";
    enum done_state state;
    int left = 0;

    if (walk->group_count == 0 || !walk->bench->done)
        return STATUS_OK;
    for (int i = 0; i < walk->group_count && !walk->sweep->against; i++) {
        TRY(walk_find(walk, &walk->group[i], program, &state));
        if (state == DONE_NOT)
            return STATUS_OK;
    }
    for (int i = 0; i < walk->group_count; i++) {
        TRY(walk_find(walk, &walk->group[i], program, &state));
        if (state != DONE_MEASURED)
            walk->group[left++] = walk->group[i];
    }
    walk->group_count = left;
    return STATUS_OK;
}

/* Opens what the group computes. Where nobody asked for an optimiser it is the network's. Points
 * can be counted without, unless the optimiser or the program decides which of them are left. */
static enum status walk_open(struct walk *walk, struct point *point)
{
    const bool asked = walk->sweep->lists[AXIS_optimiser].count > 0;
    if (!walk->running && !walk->planning && !walk->bench->done && !walk->sweep->skip_count)
        return STATUS_OK;
    struct point own = *point;
    if (!asked)
        own.optimiser[0] = '\0';
    TRY(workload_open(&own, &walk->workload));
    const struct network *network = walk->workload.task->network;
    if (asked || !network) /* whoever opens the file has no use for one */
        return STATUS_OK;
    return point_set(point, &axes[AXIS_optimiser], network->optimiser.kind->name);
}

/* Is all of the group what it was with the first value of an axis that means nothing to it? */
static bool walk_repeats(const struct walk *walk)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        bool applies = !walk->later[axis];
        for (int i = 0; i < walk->group_count && !applies; i++)
            applies = point_applies(&walk->group[i], &axes[axis]);
        if (!applies)
            return true;
    }
    return false;
}

/* FLOP/s of one thread, as far as it is calibrated. */
static double known_fp32(const struct calibration *calibration)
{
    double best = 0;
    for (size_t i = 0; i < calibration->count; i++) {
        const struct ceiling_row *row = &calibration->rows[i];
        if (row->ceiling == CEILING_FP32 && row->threads == 1 && row->per_s > best)
            best = row->per_s;
    }
    return best;
}

/* May the point be measured here, as far as that is known without starting anything? */
static bool walk_runs(const void *context, const struct point *point)
{
    const struct bench *bench = context;
    const struct backend *unit;
    const bool prony = strcmp(point->framework, "prony") == 0;
    if (strcmp(point->unit, "gpu") == 0 &&
        registry_first(bench->registry, "gpu", &unit) != STATUS_OK)
        return false;
    if (prony && strcmp(point->unit, "cpu") == 0 && !point_is(point, CHOICE_precision_fp32) &&
        !point_is(point, CHOICE_precision_bf16) && !point_is(point, CHOICE_precision_int8))
        return false; /* only backends of a GPU compute in others */
    return entry_check(bench, point) == STATUS_OK &&
           (!prony || entry_probe(bench, point) == STATUS_OK);
}

/* Seconds for the group; of a comparison each point has its opponent beside it. */
static double walk_plan(const struct walk *walk)
{
    const struct bench *bench = walk->bench;
    const bool trains = bench->until.accuracy > 0 || bench->until.loss > 0;
    const struct pace_plan plan = {.seconds = (double)bench->measure.limit_ns * 1e-9,
                                   .patience = (double)bench->patience_ns * 1e-9,
                                   .counts = !bench->unread,
                                   .cores = bench->facts.cpu.cores > 0 ? bench->facts.cpu.cores : 1,
                                   .fp32_per_s = known_fp32(&bench->calibration),
                                   .crowd = bench->crowd,
                                   .trainings = trains ? (double)bench->until.seeds : 0,
                                   .runs = walk_runs,
                                   .context = bench};
    const double seconds =
        pace_group(&bench->pace, &plan, walk->workload.task, walk->group, walk->group_count);
    return walk->sweep->against ? 2 * seconds : seconds;
}

static enum status walk_axes(struct walk *walk, struct point *point, int axis, bool within);

/* Gathers the points of a group, and measures them. */
static enum status walk_group(struct walk *walk, const struct point *point)
{
    struct point inner = *point;
    walk->group_count = 0;
    TRY(walk_axes(walk, &inner, 0, true));
    TRY(walk_leave_done(walk));
    if (walk->group_count == 0 || walk_repeats(walk))
        return STATUS_OK;
    const double seconds = walk_plan(walk);
    for (int i = 0; i < walk->group_count && walk->planning; i++)
        walk->bench->absent += !walk_runs(walk->bench, &walk->group[i]);
    walk->points += walk->group_count;
    walk->seconds += seconds;
    if (!walk->running)
        return STATUS_OK;
    if (walk->sweep->progress)
        walk->sweep->progress(walk->sweep->context, walk->group, walk->group_count, seconds);
    return walk->sweep->against
               ? walk_compare(walk)
               : group_run(walk->bench, &walk->workload, walk->group, walk->group_count);
}

/* What comes as an ONNX file was trained elsewhere: unless something is asked for, it predicts. */
static void walk_phase(const struct walk *walk, struct point *point)
{
    if (walk->sweep->lists[AXIS_phase].count == 0 && task_onnx_end(point->model) &&
        !point_is(point, CHOICE_scenario_target))
        point_choose(point, CHOICE_phase_inference);
}

/* Goes through the values of the axes from `axis` on: first those that make groups apart, then,
 * within a group, those that take turns. */
static enum status walk_axes(struct walk *walk, struct point *point, int axis, bool within)
{
    while (axis < AXIS_COUNT &&
           (sweep_interleaves(axis) != within || walk->sweep->lists[axis].count == 0))
        axis++;
    if (axis < AXIS_COUNT) {
        const struct sweep_list *list = &walk->sweep->lists[axis];
        for (int i = 0; i < list->count; i++) {
            TRY(point_set(point, &axes[axis], list->values[i]));
            walk->later[axis] = i > 0 && !within;
            TRY(walk_axes(walk, point, axis + 1, within));
        }
        walk->later[axis] = false;
        return STATUS_OK;
    }
    if (within)
        return walk_gather(walk, point);
    struct point inner = *point;
    walk_phase(walk, &inner);
    enum status status = walk_open(walk, &inner);
    if (status == STATUS_OK)
        status = walk_group(walk, &inner);
    workload_close(&walk->workload);
    return status;
}

static enum status walk_all(struct walk *walk)
{
    size_t group_most = 1;
    struct point point;

    for (int axis = 0; axis < AXIS_COUNT; axis++)
        if (walk->sweep->lists[axis].count && sweep_interleaves(axis))
            group_most *= (size_t)walk->sweep->lists[axis].count;
    NEED(walk->group = mem_array(group_most, sizeof *walk->group));
    point_start(&point);
    enum status status = walk_axes(walk, &point, 0, false);
    mem_free(walk->group);
    return status;
}

enum status sweep_count(const struct sweep *sweep, struct bench *bench, int *points,
                        double *seconds)
{
    struct walk walk = {.sweep = sweep, .bench = bench, .planning = seconds != NULL};
    TRY(walk_all(&walk));
    *points = walk.points;
    if (seconds)
        *seconds = walk.seconds;
    return STATUS_OK;
}

enum status sweep_run(const struct sweep *sweep, struct bench *bench)
{
    struct walk walk = {.sweep = sweep, .bench = bench, .running = true};
    return walk_all(&walk);
}
