/* group.c: see group.h. */
#include "bench/sweep/group.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/plain.h"
#include "bench/job/describe.h"
#include "bench/job/job_cold.h"
#include "bench/job/job_library.h"
#include "bench/job/job_network.h"
#include "bench/peer/peers.h"
#include "bench/peer/task_peer.h"
#include "bench/sweep/entry.h"
#include "bench/sweep/group_result.h"
#include "bench/sweep/group_workers.h"
#include "bench/sweep/target_group.h"
#include "record/names.h"
#include "record/software.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A peer that does not answer for so many times the patience is taken for hung. */
enum { HUNG_TIMES = 3 };
/* A peer's search of its settings may take so many times the patience: once, for it is kept. */
enum { SEARCH_TIMES = 6 };
/* Iterations that are timed together where samples come while the unit computes: the first finds
 * nothing to hide behind. */
enum { STAGED_TOGETHER = 16 };

static bool is_prony(const struct point *point)
{
    return strcmp(point->framework, "prony") == 0;
}

/* Several workers are processes of their own, which a peer's protocol asks. */
static bool is_shared(const struct point *point)
{
    return is_prony(point) && point_workers(point) > 1;
}

static bool is_cold(const struct point *point)
{
    return point_is(point, CHOICE_caches_cold);
}

/* Who cannot take part is refused before anything is made for it: parameters and references may
 * take minutes. */
static enum status group_screen(struct group *group, int *left)
{
    *left = 0;
    for (int i = 0; i < group->count; i++) {
        struct contender *contender = &group->contenders[i];
        const struct point *point = &contender->record.point;
        enum status status = group_workers_check(point);
        if (status == STATUS_OK)
            status = entry_check(group->bench, point);
        if (status == STATUS_OK && is_prony(point))
            status = entry_probe(group->bench, point);
        if (status == STATUS_OK)
            ++*left;
        else
            TRY(group_refuse(group, contender, status));
    }
    return STATUS_OK;
}

/* What is right, found out when somebody will be asked. */
static enum status group_refer(const struct group *group, const struct contender *contender)
{
    struct workload *workload = contender->workload;
    return reference_begin(&workload->reference, group->bench, workload->task);
}

static enum status group_open_network(struct group *group, struct contender *contender)
{
    const struct point *point = &contender->record.point;
    struct network_options options = {.fusion = point_is(point, CHOICE_fusion_on),
                                      .recompute = point_is(point, CHOICE_recompute_on),
                                      .answering = scenario_answering(point->scenario),
                                      .chained = scenario_chains(point->scenario),
                                      .stopped = group->bench->measure.stopped};

    TRY(entry_device(group->bench, point, &options.backend, &options.device));
    TRY(entry_samples(point, &options));
    return job_network_open(contender->workload->task, &options, &contender->job);
}

static enum status open_library(struct contender *contender)
{
    const struct point *point = &contender->record.point;
    const struct library_options options = {.model = point->model,
                                            .backend = point->backend,
                                            .precision = point->precision,
                                            .threads = (int)point->threads,
                                            .answering = scenario_answering(point->scenario)};
    return job_library_open(contender->workload->task, &options, &contender->job);
}

static enum status group_open_peer(struct group *group, struct contender *contender)
{
    const struct point *point = &contender->record.point;
    struct task *task = contender->workload->task;
    struct peer_work work = {
        .path = "/proc/self/exe",
        .workers = is_prony(point) || strchr(point->framework, '/') ? point_workers(point) : 1,
        .compare = task_peer_compare,
        .export = task_peer_export,
        .context = task,
        .exactly = scenario_answering(point->scenario) != ANSWER_STEPS || is_cold(point),
        .patience_ns = HUNG_TIMES * group->bench->patience_ns,
        .search_ns = SEARCH_TIMES * group->bench->patience_ns,
        .stopped = group->bench->measure.stopped,
        /* on a CPU a process has its number of threads for life */
        .bank = strcmp(point->unit, "gpu") == 0 ? &group->bench->waiting : NULL,
    };

    task_peer_axes(point, work.axes);
    if (!is_prony(point))
        TRY(peers_find(group->bench->peers, point->framework, &group->arena, &work.path));
    if (point_workers(point) > 1)
        work.bank = NULL; /* a process has its number of workers for life */
    const char *absent = peer_bank_absent(&group->bench->waiting, work.path);
    contender->record.absent = absent != NULL;
    if (absent)
        FAIL(STATUS_UNSUPPORTED, "%s", absent);
    TRY(task_peer_prepare(task, point, (double)work.search_ns * 1e-9, group->bench->look != NULL,
                          &contender->prepare));
    for (int32_t stage = 0; stage < task_stages(task); stage++) {
        TRY(task_peer_check(task, stage, &contender->checks[stage]));
        work.checks[stage] = text_of(&contender->checks[stage]);
    }
    work.prepare = text_of(&contender->prepare);
    contender->is_peer = true;
    return job_peer_open(&work, &contender->job);
}

/* One iteration, and what it used. */
static enum status group_iterate(struct contender *contender)
{
    contender->first_meters = (struct meters){0};
    meters_begin(&contender->first_meters, &contender->family);
    enum status status = contender->job->kind->run(contender->job, 1, &contender->first_ns);
    meters_end(&contender->first_meters, &contender->family);
    return status;
}

/* A peer begins anew for each stage. */
static uint64_t group_check_ns(const struct contender *contender)
{
    uint64_t steps = 0;
    for (int32_t stage = 0; stage < task_stages(contender->workload->task); stage++)
        steps += (uint64_t)task_steps(contender->workload->task, stage);
    return contender->first_ns * steps;
}

/* The first iteration of all may be long for what is done once: where that would decide, one more
 * does. */
static enum status group_warm(struct group *group, struct contender *contender)
{
    if (contender->warm || group_check_ns(contender) <= group->bench->patience_ns)
        return STATUS_OK;
    contender->warm = true;
    return group_iterate(contender);
}

/* Is it right? Only a wrong answer keeps it from being timed; no answer is said in the record. */
static enum status group_check(struct group *group, struct contender *contender)
{
    struct record_check *check = &contender->record.check;
    const struct task *task = contender->workload->task;
    enum status status;
    double error = (double)NAN;

    if (task->refused) {
        NEED(check->reason =
                 arena_format(&group->arena, "prony cannot import it: %s", task->refused));
        return STATUS_OK;
    }
    check->reason = group_workers_differ(contender);
    if (check->reason)
        return STATUS_OK;
    TRY(group_warm(group, contender));
    if (group_check_ns(contender) > group->bench->patience_ns)
        status = reference_refuse(group->bench, (double)group_check_ns(contender), "");
    else if ((status = group_refer(group, contender)) == STATUS_OK)
        status = reference_check(&contender->workload->reference, contender->job, &error);
    if (status == STATUS_UNSUPPORTED) {
        NEED(check->reason = arena_text(&group->arena, status_message()));
        return STATUS_OK;
    }
    check->against = contender->workload->reference.name;
    check->difference = error;
    check->tolerance = task->tolerance;
    TRY(status);
    check->verdict = RECORD_RIGHT;
    return STATUS_OK;
}

/* A peer's words on itself: its software, what it tuned, and what it computes on. */
static enum status group_describe_peer(struct group *group, struct contender *contender,
                                       const struct job_info *info)
{
    enum { HANDICAP_MOST = 300 };
    struct record *record = &contender->record;
    struct point *point = &record->point;

    if (info->handicap)
        NEED(record->handicap = arena_format(&group->arena, "%.*s", HANDICAP_MOST, info->handicap));
    if (info->unit_name && strcmp(point->unit, "cpu") != 0)
        plain_copy(point->unit_name, sizeof point->unit_name, info->unit_name);
    if (!info->software)
        return STATUS_OK;
    point->software[0] = point->tuning[0] = '\0';
    software_add(point->software, info->software);
    software_split(point);
    software_add(point->tuning, info->tuning);
    if (!record->software)
        return STATUS_OK;
    return describe_join_software(record->software, info->software, &group->arena,
                                  &record->software);
}

/* Adds to a text of fixed size. */
static void add_part(char *text, size_t size, const char *name, const char *version)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, ", %s %s", name, version);
}

/* What ours is: unit, kernels, and behind what we are, what its backend computes with. */
static void group_describe_own(const struct group *group, struct contender *contender,
                               const struct job_info *info)
{
    struct record *record = &contender->record;
    struct point *point = &record->point;
    const struct device_info *device = &info->device;
    const char *driver = group->bench->facts.gpu.driver;

    if (device->name[0])
        snprintf(point->unit_name, sizeof point->unit_name, "%s", device->name);
    if (device->isa && point_applies(point, &axes[AXIS_isa]))
        snprintf(point->isa, sizeof point->isa, "%s", device->isa);
    if (device->pages && point_applies(point, &axes[AXIS_pages]))
        snprintf(point->pages, sizeof point->pages, "%s", device->pages);
    record->kernels = info->kernels;
    record->kernel_count = info->kernel_count;
    if (device->software[0].name && strcmp(point->unit, "gpu") == 0 && driver[0])
        add_part(point->software, sizeof point->software, "driver", driver);
    for (int i = 0; i < DEVICE_SOFTWARE && device->software[i].name; i++)
        add_part(point->software, sizeof point->software, device->software[i].name,
                 device->software[i].version);
}

/* What the job says of itself. */
static enum status group_describe(struct group *group, struct contender *contender)
{
    const struct point *point = &contender->record.point;
    struct job_info info;

    TRY(contender->job->kind->describe(contender->job, &group->arena, &info));
    TRY(describe_check_threads(point->backend, &info.device, point->threads));
    if (contender->is_peer && !is_prony(point))
        return group_describe_peer(group, contender, &info);
    group_describe_own(group, contender, &info);
    return entry_name_storage(&contender->record.point, info.storage);
}

/* Makes it ready. A peer that cannot be started is told once, and not tried again in this run. */
static enum status group_ready(struct group *group, struct contender *contender)
{
    const char *framework = contender->record.point.framework, *path;
    enum status status = contender->job->kind->prepare(contender->job);
    if (status != STATUS_UNSUPPORTED || !contender->is_peer ||
        is_shared(&contender->record.point) || job_peer_answered(contender->job))
        return status;
    TRY(peers_find(group->bench->peers, framework, &group->arena, &path));
    TRY(peer_bank_leave_out(&group->bench->waiting, path, status_message()));
    log_info("%s left out: %s", framework_title(framework), status_message());
    contender->record.absent = true;
    return status;
}

/* From a point to a job that is ready to be timed. */
static enum status group_start(struct group *group, struct contender *contender)
{
    struct record *record = &contender->record;
    if (is_prony(&record->point))
        TRY(group_refer(
            group, contender)); /* before this process is tied to a core, and before the clock */
    uint64_t start_ns = clock_ns();

    TRY(!is_prony(&record->point) || is_shared(&record->point) ? group_open_peer(group, contender)
        : entry_through_library(&record->point)                ? open_library(contender)
                                                : group_open_network(group, contender));
    TRY(group_ready(group, contender));
    const pid_t process = contender->is_peer ? job_peer_process(contender->job) : 0;
    family_find(process, &contender->family);
    TRY(group_iterate(contender));
    family_find(process,
                &contender->family); /* some start their helpers in their first iteration */
    record->start_ns = (double)(clock_ns() - start_ns);
    TRY(group_describe(group, contender));
    TRY(group_check(group, contender));
    if (is_cold(&record->point))
        TRY(job_cold_open(contender->job, &group->bench->facts.cpu, &group->cpus,
                          &contender->cold));
    contender->runs = true;
    return STATUS_OK;
}

static enum status group_make(struct group *group, const struct point *points, int count)
{
    NEED(group->contenders = mem_array((size_t)count, sizeof *group->contenders));
    NEED(group->timings = mem_array((size_t)count, sizeof *group->timings));
    group->count = count;
    pins_find(&group->cpus);
    for (int i = 0; i < count; i++) {
        struct record *record = &group->contenders[i].record;
        TRY(bench_start_record(group->bench, &points[i], &group->arena, record));
    }
    return group_workers_open(group);
}

static void group_free(struct group *group)
{
    for (int i = 0; i < group->count; i++) {
        struct contender *contender = &group->contenders[i];
        if (contender->timing)
            timing_free(contender->timing);
        if (contender->cold)
            contender->cold->kind->close(contender->cold);
        if (contender->job)
            contender->job->kind->close(contender->job);
        text_free(&contender->prepare);
        for (int stage = 0; stage < OUTCOME_STAGES; stage++)
            text_free(&contender->checks[stage]);
        text_free(&contender->notes);
    }
    for (int i = 0; i < group->probe_count; i++)
        group->probes[i]->kind->close(group->probes[i]);
    group_workers_close(group);
    mem_free(group->contenders);
    mem_free(group->timings);
    arena_free(&group->arena);
}

/* What is timed: the job, or the job with cold caches. */
static void group_enter(struct group *group, struct contender *contender)
{
    struct timing *timing = &group->timings[group->timing_count];
    const struct point *point = &contender->record.point;
    const bool gpu = strcmp(point->unit, "gpu") == 0;

    timing->job = contender->cold ? contender->cold : contender->job;
    timing->alone = contender->cold != NULL;
    if (contender->cold)
        job_cold_meter(contender->cold, &timing->meters, &timing->family);
    timing->first_ns = contender->first_ns;
    timing->first_meters = contender->first_meters;
    timing->warm = contender->warm;
    timing->family = contender->family;
    timing->threads = point->threads * point_workers(point);
    timing->start_ns = (uint64_t)contender->record.start_ns;
    timing->lasts_ns = gpu ? MEASURE_GPU_NS : 0;
    timing->together = gpu && !point_is(point, CHOICE_ingestion_resident) ? STAGED_TOGETHER : 0;
    watch_family(&group->watch, &timing->family);
    group->watch.gpu = group->watch.gpu || gpu;
    contender->timing = timing;
    group->timing_count++;
}

/* Before and after queries, which leave no gaps: what memory gives. */
static void group_burst(struct contender *contender)
{
    enum { BURSTS = 5 };
    uint64_t elapsed_ns;
    if (contender->probe)
        contender->probe->kind->run(contender->probe, BURSTS, &elapsed_ns);
}

/* Adds a turn's queries to those before. */
static enum status group_keep_turn(struct contender *contender,
                                   const struct scenario_result *result)
{
    struct timing *timing = contender->timing;
    const size_t count = timing->count + result->count, turns = timing->turn_count + 1;
    double *samples, before_s = contender->rate > 0 ? (double)timing->count / contender->rate : 0;
    size_t *starts;

    NEED(samples = mem_grow(timing->samples_ns, count, sizeof *samples));
    timing->samples_ns = samples; /* freed with the timing */
    NEED(starts = mem_grow(timing->turns, turns, sizeof *starts));
    timing->turns = starts;
    memcpy(samples + timing->count, result->latencies_ns, result->count * sizeof *samples);
    starts[timing->turn_count] = timing->count;
    timing->turn_count = turns;
    timing->count = count;
    timing->instances = 1;
    timing->per = result->per;
    timing->stop = result->cut ? MEASURE_TIME : MEASURE_TIGHT;
    timing->steady = true;
    contender->rate = before_s > 0
                          ? (double)count / (before_s + (double)result->count / result->rate)
                          : result->rate;
    if (result->early)
        text_add(&contender->notes, "; patience ended before every rate was tried");
    return STATUS_OK;
}

/* One turn of a scenario. Whoever answers queries must have the machine to itself. */
static enum status group_ask(struct group *group, struct contender *contender, uint64_t limit_ns)
{
    struct timing *timing = contender->timing;
    struct scenario_options options = {.bound = group->bench->bound,
                                       .seed = group->bench->seed,
                                       .limit_ns = limit_ns,
                                       .patience_ns = group->bench->patience_ns,
                                       .stopped = group->bench->measure.stopped};
    struct scenario_result result;

    scenario_parse(contender->record.point.scenario, &options.scenario);
    group_burst(contender);
    meters_begin(&timing->meters, &timing->family);
    enum status status = scenario_run(&options, timing->job, &result);
    meters_end(&timing->meters, &timing->family);
    group_burst(contender);
    if (status == STATUS_OK)
        status = group_keep_turn(contender, &result);
    scenario_free(&result);
    if (status == STATUS_OK)
        return STATUS_OK;
    contender->runs = false;
    return group_refuse(group, contender, status);
}

/* Everyone is started; a refusal is kept for the record. */
static enum status group_prepare(struct group *group)
{
    for (int i = 0; i < group->count; i++) {
        struct contender *contender = &group->contenders[i];
        if (contender->record.status != RECORD_OK)
            continue;
        if (group->bench->measure.stopped && group->bench->measure.stopped())
            FAIL(STATUS_INTERRUPTED, "stopped"); /* starting a peer takes seconds */
        enum status status = group_start(group, contender);
        if (status != STATUS_OK) {
            TRY(group_refuse(group, contender, status));
            continue;
        }
        group_floor(group, contender);
        group_enter(group, contender);
    }
    return STATUS_OK;
}

static void group_end_watch(struct group *group)
{
    group->watch.process_count = 0; /* a comparison starts new ones */
    for (int i = 0; i < group->timing_count; i++)
        watch_family(&group->watch, &group->timings[i].family);
    watch_end(&group->watch);
}

/* Whoever was timed is shown to who wants to look into it. */
static enum status group_show(const struct group *group)
{
    const struct bench *bench = group->bench;
    for (int i = 0; bench->look && i < group->count; i++) {
        const struct contender *contender = &group->contenders[i];
        const struct bench_look look = {.task = contender->workload->task,
                                        .job = contender->job,
                                        .is_peer = contender->is_peer,
                                        .record = &contender->record};
        if (contender->runs && contender->record.status == RECORD_OK)
            TRY(bench->look(bench->look_context, &look));
    }
    return STATUS_OK;
}

/* All were timed in turns: their results, their comparison, their records. */
static enum status group_conclude(struct group *group)
{
    for (int i = 0; i < group->count; i++)
        if (group->contenders[i].runs)
            TRY(group_result(group, &group->contenders[i]));
    TRY(group_compare(group));
    group_workers_compare(group);
    TRY(group_show(group));
    for (int i = 0; i < group->count; i++)
        TRY(bench_write(group->bench, &group->contenders[i].record));
    return STATUS_OK;
}

/* In turns: all are known at the same time. */
static enum status group_interleave(struct group *group)
{
    struct measure_options options = group->bench->measure;
    options.probes = group->probes;
    options.probe_count = group->probe_count;
    watch_begin(&group->watch);
    enum status status = measure(&options, group->timings, group->timing_count);
    group_end_watch(group);
    TRY(status);
    return group_conclude(group);
}

/* Are differences of nanoseconds looked for: by a comparison, or between two ways to ask? */
static bool group_needs_turns(const struct group *group)
{
    bool needs = group->bench->measure.compare;
    for (int i = 0; i < group->count; i++)
        needs = needs || entry_through_library(&group->contenders[i].record.point);
    return needs && group->timing_count > 1;
}

/* In how many turns each is asked: an even number, of which none is shorter than some queries of
 * the slowest, or than two samples of queries that are timed together. 1: all at once. */
static int group_turns(const struct group *group, enum scenario scenario)
{
    enum { TURNS_MOST = 64, TURN_QUERIES = 40 };
    const bool together = scenario == SCENARIO_QUEUED || scenario == SCENARIO_CHAINED;
    uint64_t turn_ns = together ? 400000000 : 1;
    if (!group_needs_turns(group) || !scenario_streams(scenario))
        return 1;
    for (int i = 0; i < group->timing_count; i++)
        if (turn_ns < TURN_QUERIES * group->timings[i].first_ns)
            turn_ns = TURN_QUERIES * group->timings[i].first_ns;
    const uint64_t turns = group->bench->measure.limit_ns / turn_ns;
    return turns < 2 ? 1 : turns > TURNS_MOST ? TURNS_MOST : (int)turns / 2 * 2;
}

/* Forth and back: whatever the machine does meanwhile hits all of them alike. */
static enum status group_query_in_turns(struct group *group, int turns)
{
    watch_begin(&group->watch);
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < group->count; i++) {
            struct contender *contender = &group->contenders[turn % 2 ? group->count - 1 - i : i];
            if (contender->runs)
                TRY(group_ask(group, contender, group->bench->measure.limit_ns / (uint64_t)turns));
        }
    group_end_watch(group);
    return group_conclude(group);
}

/* In turns where that matters, else one after another: whoever is done has its record, whatever
 * becomes of the next. */
static enum status group_query(struct group *group, enum scenario scenario)
{
    const int turns = group_turns(group, scenario);
    if (turns > 1 || group->bench->measure.compare)
        return group_query_in_turns(group, turns);
    for (int i = 0; i < group->count; i++) {
        struct contender *contender = &group->contenders[i];
        watch_begin(&group->watch);
        if (contender->runs)
            TRY(group_ask(group, contender, group->bench->measure.limit_ns));
        group_end_watch(group);
        if (contender->runs)
            TRY(group_result(group, contender));
        TRY(bench_write(group->bench, &contender->record));
    }
    return STATUS_OK;
}

enum status group_run(struct bench *bench, struct workload *workload, const struct point *points,
                      int count)
{
    struct group group = {.bench = bench, .workload = workload};
    enum scenario scenario;
    int left = 0;
    if (point_is(&points[0], CHOICE_scenario_target))
        return target_group(bench, workload->task, points, count);
    watch_open(&group.watch);
    enum status status = group_make(&group, points, count);

    if (status == STATUS_OK)
        status = group_screen(&group, &left);
    if (status == STATUS_OK && left)
        status = group_workers_fill(&group);
    if (status == STATUS_OK)
        status = group_prepare(&group);
    if (status == STATUS_OK)
        status = scenario_parse(points[0].scenario, &scenario) ? group_query(&group, scenario)
                                                               : group_interleave(&group);
    group_free(&group);
    return status;
}
