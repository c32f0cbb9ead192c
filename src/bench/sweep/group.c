/* group.c: see group.h. */
#include "bench/sweep/group.h"

#include "base/clock.h"
#include "base/memory.h"
#include "bench/check/referee.h"
#include "bench/job/describe.h"
#include "bench/job/job_cold.h"
#include "bench/job/job_library.h"
#include "bench/job/job_network.h"
#include "bench/peer/peers.h"
#include "bench/peer/task_peer.h"
#include "bench/sweep/done.h"
#include "bench/sweep/entry.h"
#include "bench/sweep/group_result.h"
#include "bench/sweep/target_group.h"

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

static bool is_cold(const struct point *point)
{
    return strcmp(point->caches, "cold") == 0;
}

/* The record of an entrant that could not run. Absent capability is a skip; anything else failed.
 */
static enum status group_refuse(struct group *group, struct entrant *entrant, enum status status)
{
    struct record *record = &entrant->record;
    if (status == STATUS_INTERRUPTED)
        return status;
    record->status = status == STATUS_UNSUPPORTED ? RECORD_SKIPPED : RECORD_FAILED;
    NEED(record->reason = arena_text(&group->arena, status_message()));
    if (status == STATUS_WRONG) {
        record->check.verdict = RECORD_WRONG;
        record->check.reason = record->reason;
    }
    return STATUS_OK;
}

static enum status group_refuse_all(struct group *group, enum status status)
{
    for (int i = 0; i < group->count; i++)
        TRY(group_refuse(group, &group->entrants[i], status));
    return STATUS_OK;
}

/* Who cannot take part is refused before anything is made for it: parameters and references may
 * take minutes. */
static enum status group_screen(struct group *group, int *left)
{
    *left = 0;
    for (int i = 0; i < group->count; i++) {
        struct entrant *entrant = &group->entrants[i];
        const struct point *point = &entrant->record.point;
        enum status status = entry_check(group->bench, point);
        if (status == STATUS_OK && is_prony(point))
            status = entry_probe(group->bench, point);
        if (status == STATUS_OK)
            ++*left;
        else
            TRY(group_refuse(group, entrant, status));
    }
    return STATUS_OK;
}

/* What is right, found out when somebody will be asked. */
static enum status group_refer(struct group *group)
{
    return referee_begin(&group->referee, group->bench, group->task);
}

static enum status group_open_network(struct group *group, struct entrant *entrant)
{
    const struct point *point = &entrant->record.point;
    struct network_options options = {.fusion = strcmp(point->fusion, "on") == 0,
                                      .answering = scenario_answering(point->scenario),
                                      .chained = scenario_chains(point->scenario)};

    TRY(entry_device(group->bench, point, &options.backend, &options.device));
    TRY(entry_samples(point, &options));
    return job_network_open(group->task, &options, &entrant->job);
}

static enum status group_open_library(struct group *group, struct entrant *entrant)
{
    const struct point *point = &entrant->record.point;
    const struct library_options options = {.model = point->model,
                                            .backend = point->backend,
                                            .precision = point->precision,
                                            .threads = (int)point->threads,
                                            .answering = scenario_answering(point->scenario)};
    return job_library_open(group->task, &options, &entrant->job);
}

static enum status group_open_peer(struct group *group, struct entrant *entrant)
{
    const struct point *point = &entrant->record.point;
    struct peer_work work = {
        .judge = task_peer_judge,
        .export = task_peer_export,
        .context = group->task,
        .exactly = scenario_answering(point->scenario) != ANSWER_STEPS || is_cold(point),
        .patience_ns = HUNG_TIMES * group->bench->patience_ns,
        .search_ns = SEARCH_TIMES * group->bench->patience_ns,
        .stopped = group->bench->measure.stopped,
        /* on a CPU a process has its number of threads for life */
        .bank = strcmp(point->unit, "gpu") == 0 ? &group->bench->waiting : NULL,
    };

    TRY(peers_find(group->bench->peers, point->framework, &group->arena, &work.path));
    TRY(task_peer_prepare(group->task, point, (double)work.search_ns * 1e-9, &entrant->prepare));
    for (int32_t stage = 0; stage < task_stages(group->task); stage++) {
        TRY(task_peer_check(group->task, stage, &entrant->checks[stage]));
        work.checks[stage] = text_of(&entrant->checks[stage]);
    }
    work.prepare = text_of(&entrant->prepare);
    entrant->is_peer = true;
    return job_peer_open(&work, &entrant->job);
}

/* One iteration, and what it used. */
static enum status group_iterate(struct entrant *entrant)
{
    entrant->first_meters = (struct meters){0};
    meters_begin(&entrant->first_meters, &entrant->family);
    enum status status = entrant->job->kind->run(entrant->job, 1, &entrant->first_ns);
    meters_end(&entrant->first_meters, &entrant->family);
    return status;
}

/* A peer begins anew for each stage. */
static uint64_t group_check_ns(const struct group *group, const struct entrant *entrant)
{
    uint64_t steps = 0;
    for (int32_t stage = 0; stage < task_stages(group->task); stage++)
        steps += (uint64_t)task_steps(group->task, stage);
    return entrant->first_ns * steps;
}

/* The first iteration of all may be long for what is done once: where that would decide, one more
 * does. */
static enum status group_warm(struct group *group, struct entrant *entrant)
{
    if (entrant->warm || group_check_ns(group, entrant) <= group->bench->patience_ns)
        return STATUS_OK;
    entrant->warm = true;
    return group_iterate(entrant);
}

/* Is it right? Only a wrong answer keeps it from being timed; no answer is said in the record. */
static enum status group_check(struct group *group, struct entrant *entrant)
{
    struct record_check *check = &entrant->record.check;
    enum status status;
    double error = (double)NAN;

    if (group->task->refused) {
        NEED(check->reason =
                 arena_format(&group->arena, "prony cannot import it: %s", group->task->refused));
        return STATUS_OK;
    }
    TRY(group_warm(group, entrant));
    if (group_check_ns(group, entrant) > group->bench->patience_ns)
        status = referee_refuse(group->bench, (double)group_check_ns(group, entrant), "");
    else if ((status = group_refer(group)) == STATUS_OK)
        status = referee_judge(&group->referee, entrant->job, &error);
    if (status == STATUS_UNSUPPORTED) {
        NEED(check->reason = arena_text(&group->arena, status_message()));
        return STATUS_OK;
    }
    check->against = group->referee.name;
    check->difference = error;
    check->tolerance = group->task->tolerance;
    TRY(status);
    check->verdict = RECORD_RIGHT;
    return STATUS_OK;
}

/* A peer's words on itself, in the record: the bench's software, and in it, the peer's. */
static enum status group_record_peer(struct group *group, struct entrant *entrant,
                                     const struct json *tree)
{
    enum { HANDICAP_MOST = 300 };
    struct record *record = &entrant->record;
    const struct json *software = json_get(tree, "software");
    const char *handicap = json_text(tree, "handicap", "");

    if (handicap[0])
        NEED(record->handicap = arena_format(&group->arena, "%.*s", HANDICAP_MOST, handicap));
    if (!software || !record->software)
        return STATUS_OK;
    return describe_peer(record->software, software, &group->arena, &record->software);
}

/* Of a peer all that it names, of ours what its backend computes with, behind what we are. */
static enum status group_describe_software(const struct group *group, struct entrant *entrant,
                                           const struct json *tree)
{
    struct point *point = &entrant->record.point;
    const struct json *own = entrant->is_peer ? tree : json_get(tree, "device");
    const struct json *software = json_get(own, "software");
    const char *driver = group->bench->facts.gpu.driver;
    struct text text = {0};

    if (!software)
        return STATUS_OK;
    if (!entrant->is_peer)
        text_add(&text, point->software);
    if (!entrant->is_peer && strcmp(point->unit, "gpu") == 0 && driver[0])
        text_printf(&text, ", driver %s", driver);
    for (const struct json *part = software->first; part; part = part->next)
        if (part->kind == JSON_STRING)
            text_printf(&text, "%s%s %s", text.length ? ", " : "", part->key, part->string);
    snprintf(point->software, sizeof point->software, "%s", text_of(&text));
    enum status status = text_done(&text);
    text_free(&text);
    return status;
}

/* What the job says of itself: kernels, unit, threads, software. */
static enum status group_describe(struct group *group, struct entrant *entrant)
{
    struct record *record = &entrant->record;
    struct point *point = &record->point;
    struct json *tree;

    TRY(describe_job(entrant->job, &group->arena, &tree));
    const struct json *device = json_get(tree, "device"), *kernels = json_get(tree, "kernels");
    TRY(describe_check_threads(point->backend, device, point->threads));
    snprintf(point->unit_name, sizeof point->unit_name, "%s",
             json_text(device, "unit_name", point->unit_name));
    if (point_applies(point, &axes[AXIS_isa]))
        snprintf(point->isa, sizeof point->isa, "%s", json_text(device, "isa", point->isa));
    if (point_applies(point, &axes[AXIS_pages]))
        snprintf(point->pages, sizeof point->pages, "%s", json_text(device, "pages", point->pages));
    if (kernels) {
        const char **names = arena_array(&group->arena, kernels->count + 1, sizeof *names);
        NEED(names);
        for (const struct json *kernel = kernels->first; kernel; kernel = kernel->next)
            names[record->kernel_count++] = kernel->string;
        record->kernels = names;
    }
    if (entrant->is_peer)
        TRY(group_record_peer(group, entrant, tree));
    return group_describe_software(group, entrant, tree);
}

/* From a point to a job that is ready to be timed. */
static enum status group_start(struct group *group, struct entrant *entrant)
{
    struct record *record = &entrant->record;
    if (is_prony(&record->point))
        TRY(group_refer(group)); /* before this process is tied to a core, and before the clock */
    uint64_t start_ns = clock_ns();

    TRY(!is_prony(&record->point)               ? group_open_peer(group, entrant)
        : entry_through_library(&record->point) ? group_open_library(group, entrant)
                                                : group_open_network(group, entrant));
    TRY(entrant->job->kind->prepare(entrant->job));
    const pid_t process = entrant->is_peer ? job_peer_process(entrant->job) : 0;
    family_find(process, &entrant->family);
    TRY(group_iterate(entrant));
    family_find(process, &entrant->family); /* some start their helpers in their first iteration */
    record->start_ns = (double)(clock_ns() - start_ns);
    TRY(group_describe(group, entrant));
    TRY(group_check(group, entrant));
    if (is_cold(&record->point))
        TRY(job_cold_open(entrant->job, &group->bench->facts.cpu, &group->cpus, &entrant->cold));
    entrant->runs = true;
    return STATUS_OK;
}

/* An ONNX file that prony cannot import is a task of the peers that open it themselves. */
static enum status group_open_file(struct group *group, const struct task_options *options,
                                   enum status status)
{
    const char *reason = arena_text(&group->arena, status_message());
    NEED(reason);
    for (int i = 0; i < group->count; i++) {
        struct entrant *entrant = &group->entrants[i];
        if (entrant->record.status == RECORD_OK && is_prony(&entrant->record.point))
            TRY(group_refuse(group, entrant, status));
    }
    return task_open_file(options, reason, &group->task);
}

/* A task that cannot be made is every entrant's refusal. */
static enum status group_open_task(struct group *group, const struct point *point)
{
    bool host = true;
    for (int i = 0; i < group->count; i++)
        host = host && strcmp(group->entrants[i].record.point.unit, "gpu") != 0;
    const struct task_options options = {
        .host = host,
        .model = point->model,
        .phase = strcmp(point->phase, "training") == 0 ? PHASE_TRAINING : PHASE_INFERENCE,
        .batch = (int32_t)point->batch,
        .optimiser = point->optimiser,
        .precision = point->precision};

    enum status status = task_open(&options, &group->task);
    if (status == STATUS_UNSUPPORTED && options.phase == PHASE_INFERENCE &&
        task_onnx_end(options.model))
        return group_open_file(group, &options, status);
    TRY(status);
    referee_choose(&group->referee, group->bench, group->task);
    return STATUS_OK;
}

static enum status group_make(struct group *group, const struct point *points, int count)
{
    NEED(group->entrants = mem_array((size_t)count, sizeof *group->entrants));
    NEED(group->contenders = mem_array((size_t)count, sizeof *group->contenders));
    group->count = count;
    pins_find(&group->cpus);
    char *program = arena_alloc(&group->arena, DONE_PROGRAM);
    NEED(program);
    if (done_program(&points[0], program) != STATUS_OK)
        program[0] = '\0'; /* too large: opening the task says so */
    for (int i = 0; i < count; i++) {
        struct record *record = &group->entrants[i].record;
        TRY(bench_start_record(group->bench, &points[i], &group->arena, record));
        record->program = program[0] ? program : NULL;
    }
    return STATUS_OK;
}

static void group_free(struct group *group)
{
    for (int i = 0; i < group->count; i++) {
        struct entrant *entrant = &group->entrants[i];
        if (entrant->contender)
            measure_free(entrant->contender);
        if (entrant->cold)
            entrant->cold->kind->close(entrant->cold);
        if (entrant->job)
            entrant->job->kind->close(entrant->job);
        text_free(&entrant->prepare);
        for (int stage = 0; stage < TASK_STAGES; stage++)
            text_free(&entrant->checks[stage]);
        text_free(&entrant->notes);
    }
    for (int i = 0; i < group->probe_count; i++)
        group->probes[i]->kind->close(group->probes[i]);
    task_close(group->task);
    mem_free(group->entrants);
    mem_free(group->contenders);
    arena_free(&group->arena);
}

/* What is timed: the job, or the job with cold caches. */
static void group_enter(struct group *group, struct entrant *entrant)
{
    struct contender *contender = &group->contenders[group->contender_count];
    const struct point *point = &entrant->record.point;
    const bool gpu = strcmp(point->unit, "gpu") == 0;

    contender->job = entrant->cold ? entrant->cold : entrant->job;
    contender->alone = entrant->cold != NULL;
    if (entrant->cold)
        job_cold_meter(entrant->cold, &contender->meters, &contender->family);
    contender->first_ns = entrant->first_ns;
    contender->first_meters = entrant->first_meters;
    contender->warm = entrant->warm;
    contender->family = entrant->family;
    contender->threads = point->threads;
    contender->start_ns = (uint64_t)entrant->record.start_ns;
    contender->lasts_ns = gpu ? MEASURE_GPU_NS : 0;
    contender->together = gpu && strcmp(point->ingestion, "resident") != 0 ? STAGED_TOGETHER : 0;
    watch_family(&group->watch, &contender->family);
    group->watch.gpu = group->watch.gpu || gpu;
    entrant->contender = contender;
    group->contender_count++;
}

/* Before and after queries, which leave no gaps: what memory gives. */
static void group_burst(struct entrant *entrant)
{
    enum { BURSTS = 5 };
    uint64_t elapsed_ns;
    if (entrant->probe)
        entrant->probe->kind->run(entrant->probe, BURSTS, &elapsed_ns);
}

/* Adds a turn's queries to those before. */
static enum status group_keep_turn(struct entrant *entrant, const struct scenario_result *result)
{
    struct contender *contender = entrant->contender;
    const size_t count = contender->count + result->count, turns = contender->turn_count + 1;
    double *samples, before_s = entrant->rate > 0 ? (double)contender->count / entrant->rate : 0;
    size_t *starts;

    NEED(samples = mem_grow(contender->samples_ns, count, sizeof *samples));
    contender->samples_ns = samples; /* freed with the contender */
    NEED(starts = mem_grow(contender->turns, turns, sizeof *starts));
    contender->turns = starts;
    memcpy(samples + contender->count, result->latencies_ns, result->count * sizeof *samples);
    starts[contender->turn_count] = contender->count;
    contender->turn_count = turns;
    contender->count = count;
    contender->instances = 1;
    contender->per = result->per;
    contender->stop = result->cut ? MEASURE_TIME : MEASURE_TIGHT;
    contender->steady = true;
    entrant->rate = before_s > 0 ? (double)count / (before_s + (double)result->count / result->rate)
                                 : result->rate;
    if (result->early)
        text_add(&entrant->notes, "; patience ended before every rate was tried");
    return STATUS_OK;
}

/* One turn of a scenario. Whoever answers queries must have the machine to itself. */
static enum status group_ask(struct group *group, struct entrant *entrant, uint64_t limit_ns)
{
    struct contender *contender = entrant->contender;
    struct scenario_options options = {.bound = group->bench->bound,
                                       .seed = group->bench->seed,
                                       .limit_ns = limit_ns,
                                       .patience_ns = group->bench->patience_ns,
                                       .stopped = group->bench->measure.stopped};
    struct scenario_result result;

    scenario_parse(entrant->record.point.scenario, &options.scenario);
    group_burst(entrant);
    meters_begin(&contender->meters, &contender->family);
    enum status status = scenario_run(&options, contender->job, &result);
    meters_end(&contender->meters, &contender->family);
    group_burst(entrant);
    if (status == STATUS_OK)
        status = group_keep_turn(entrant, &result);
    scenario_free(&result);
    if (status == STATUS_OK)
        return STATUS_OK;
    entrant->runs = false;
    return group_refuse(group, entrant, status);
}

/* Everyone is started; a refusal is kept for the record. */
static enum status group_prepare(struct group *group)
{
    for (int i = 0; i < group->count; i++) {
        struct entrant *entrant = &group->entrants[i];
        if (entrant->record.status != RECORD_OK)
            continue;
        if (group->bench->measure.stopped && group->bench->measure.stopped())
            FAIL(STATUS_INTERRUPTED, "stopped"); /* starting a peer takes seconds */
        enum status status = group_start(group, entrant);
        if (status != STATUS_OK) {
            TRY(group_refuse(group, entrant, status));
            continue;
        }
        group_floor(group, entrant);
        group_enter(group, entrant);
    }
    return STATUS_OK;
}

static void group_end_watch(struct group *group)
{
    group->watch.process_count = 0; /* a comparison starts new ones */
    for (int i = 0; i < group->contender_count; i++)
        watch_family(&group->watch, &group->contenders[i].family);
    watch_end(&group->watch);
}

/* In turns: all are known at the same time. */
static enum status group_interleave(struct group *group)
{
    struct measure_options options = group->bench->measure;
    options.probes = group->probes;
    options.probe_count = group->probe_count;
    watch_begin(&group->watch);
    enum status status = measure(&options, group->contenders, group->contender_count);
    group_end_watch(group);
    TRY(status);
    for (int i = 0; i < group->count; i++)
        if (group->entrants[i].runs)
            TRY(group_result(group, &group->entrants[i]));
    TRY(group_compare(group));
    for (int i = 0; i < group->count; i++)
        TRY(bench_write(group->bench, &group->entrants[i].record));
    return STATUS_OK;
}

/* Are differences of nanoseconds looked for: by a comparison, or between two ways to ask? */
static bool group_needs_turns(const struct group *group)
{
    bool needs = group->bench->measure.compare;
    for (int i = 0; i < group->count; i++)
        needs = needs || entry_through_library(&group->entrants[i].record.point);
    return needs && group->contender_count > 1;
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
    for (int i = 0; i < group->contender_count; i++)
        if (turn_ns < TURN_QUERIES * group->contenders[i].first_ns)
            turn_ns = TURN_QUERIES * group->contenders[i].first_ns;
    const uint64_t turns = group->bench->measure.limit_ns / turn_ns;
    return turns < 2 ? 1 : turns > TURNS_MOST ? TURNS_MOST : (int)turns / 2 * 2;
}

/* Forth and back: whatever the machine does meanwhile hits all of them alike. */
static enum status group_query_in_turns(struct group *group, int turns)
{
    watch_begin(&group->watch);
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < group->count; i++) {
            struct entrant *entrant = &group->entrants[turn % 2 ? group->count - 1 - i : i];
            if (entrant->runs)
                TRY(group_ask(group, entrant, group->bench->measure.limit_ns / (uint64_t)turns));
        }
    group_end_watch(group);
    for (int i = 0; i < group->count; i++)
        if (group->entrants[i].runs)
            TRY(group_result(group, &group->entrants[i]));
    TRY(group_compare(group));
    for (int i = 0; i < group->count; i++)
        TRY(bench_write(group->bench, &group->entrants[i].record));
    return STATUS_OK;
}

/* In turns where that matters, else one after another: whoever is done has its record, whatever
 * becomes of the next. */
static enum status group_query(struct group *group, enum scenario scenario)
{
    const int turns = group_turns(group, scenario);
    if (turns > 1 || group->bench->measure.compare)
        return group_query_in_turns(group, turns);
    for (int i = 0; i < group->count; i++) {
        struct entrant *entrant = &group->entrants[i];
        watch_begin(&group->watch);
        if (entrant->runs)
            TRY(group_ask(group, entrant, group->bench->measure.limit_ns));
        group_end_watch(group);
        if (entrant->runs)
            TRY(group_result(group, entrant));
        TRY(bench_write(group->bench, &entrant->record));
    }
    return STATUS_OK;
}

enum status group_run(struct bench *bench, const struct point *points, int count)
{
    struct group group = {.bench = bench};
    enum scenario scenario;
    int left = 0;
    if (strcmp(points[0].scenario, "target") == 0)
        return target_group(bench, points, count);
    enum status status = group_make(&group, points, count);

    if (status == STATUS_OK)
        status = group_screen(&group, &left);
    if (status == STATUS_OK && left) {
        status = group_open_task(&group, &points[0]);
        status = status == STATUS_OK ? group_prepare(&group) : group_refuse_all(&group, status);
    }
    if (status == STATUS_OK)
        status = scenario_parse(points[0].scenario, &scenario) ? group_query(&group, scenario)
                                                               : group_interleave(&group);
    group_free(&group);
    return status;
}
