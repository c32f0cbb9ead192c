/* test_ingestion.c: however rows reach the unit, the steps are the same: bit for bit, from any
 * place in the data, in any number of calls, also after the plan is bound in another way. */
#include "nn/network.h"
#include "rig.h"

#include "base/memory.h"
#include "bench/meter/staging.h"
#include "core/binding.h"

enum { STEPS = 23, ROWS = 61, RING = 64, BATCH = 7, INPUTS = 33 };

struct trial {
    uint64_t version; /* of what is bound */
    int64_t listed;   /* rows of the order that are bound; 0: all */
    struct network *network;
    struct params params;
    struct program *program;
    float x[ROWS * INPUTS], loss[RING];
    int32_t label[ROWS];
    uint32_t order[ROWS];
};

static bool trial_open(struct trial *trial)
{
    const struct compile_options options = {
        .batch = BATCH, .use = USE_TRAINING, .loss = LOSS_CROSS_ENTROPY, .classes = 5};
    *trial = (struct trial){0};
    params_init(&trial->params, DTYPE_F32);
    if (!CHECK_OK(network_open("mlp:33-40-5", &trial->network)) ||
        !CHECK_OK(network_compile(trial->network, &trial->params, &options, &trial->program)) ||
        !CHECK_OK(params_fill(&trial->params, 3)))
        return false;
    trial->params.control.rate = 0.05;
    fill_random(trial->x, ROWS * INPUTS, 5);
    for (uint32_t i = 0; i < ROWS; i++) {
        trial->label[i] = (int32_t)(i * 7 % 5);
        trial->order[i] = i * 17 % ROWS;
    }
    return true;
}

static void trial_close(struct trial *trial)
{
    program_free(trial->program);
    params_free(&trial->params);
    network_free(trial->network);
}

static bool trial_bind(struct trial *trial, struct ready *ready, enum ingestion how, bool ordered)
{
    const struct program *program = trial->program;
    const struct view views[] = {
        {program_find(program, ROLE_INPUT, "x"), trial->x, ROWS},
        {program_find(program, ROLE_INPUT, "label"), trial->label, ROWS},
        {program_find(program, ROLE_OUTPUT, "loss"), trial->loss, RING},
    };
    const struct binding binding = {.views = views,
                                    .view_count = 3,
                                    .order = ordered ? trial->order : NULL,
                                    .order_count = !ordered        ? 0
                                                   : trial->listed ? trial->listed
                                                                   : ROWS,
                                    .start = ROWS - 3,
                                    .ingestion = how,
                                    .version = trial->version};
    return CHECK_OK(ready->backend->bind(ready->plan, &binding));
}

/* All steps, `at_once` in a call; then again from the start, bound in another way before. */
static bool trial_run(struct trial *trial, struct rig *rig, enum ingestion how, bool ordered,
                      int64_t at_once)
{
    struct ready ready;
    bool ok = ready_open(&ready, rig, &trial->params, trial->program) &&
              trial_bind(trial, &ready, INGEST_RESIDENT, ordered) &&
              ready_run(&ready, PARTS_ALL, 0, 2) &&
              CHECK_OK(rig->backend->upload(ready.instance, &trial->params)) &&
              trial_bind(trial, &ready, how, ordered);
    for (int64_t done = 0; ok && done < STEPS; done += at_once)
        ok = ready_run(&ready, PARTS_ALL, 0, STEPS - done < at_once ? STEPS - done : at_once);
    ok = ok && CHECK_OK(rig->backend->download(ready.instance, &trial->params));
    ready_close(&ready);
    return ok;
}

ON_BACKENDS(every_way_gives_the_same_bits)
{
    static const enum ingestion ways[] = {INGEST_BEST, INGEST_DIRECT, INGEST_PINNED,
                                          INGEST_OVERLAPPED};
    static const char *const names[] = {"best", "direct", "pinned", "overlapped"};
    for (int ordered = 0; ordered < 2; ordered++)
        for (size_t way = 0; way < 4; way++)
            for (int64_t at_once = 1; at_once <= STEPS; at_once += 4) {
                if (!check_wants(names[way]))
                    continue;
                struct trial *resident = mem_alloc(sizeof *resident);
                struct trial *staged = mem_alloc(sizeof *staged);
                if (CHECK(resident && staged) && trial_open(resident) && trial_open(staged) &&
                    trial_run(resident, rig, INGEST_RESIDENT, ordered, STEPS) &&
                    trial_run(staged, rig, ways[way], ordered, at_once)) {
                    CHECK(same_params(&resident->params, &staged->params));
                    CHECK(memcmp(resident->loss, staged->loss, STEPS * sizeof(float)) == 0);
                }
                trial_close(resident);
                trial_close(staged);
                mem_free(resident);
                mem_free(staged);
            }
}

/* More than any GPU has room for: nothing is bound then, and nothing runs until something is. */
ON_BACKENDS(what_has_no_room_binds_nothing)
{
    struct trial *trial = mem_alloc(sizeof *trial);
    struct ready ready = {0};
    if (strcmp(rig->backend->unit, "gpu") != 0)
        check_skip("'%s' computes on data where they lie", rig->backend->name);
    else if (CHECK(trial) && trial_open(trial) &&
             ready_open(&ready, rig, &trial->params, trial->program) &&
             trial_bind(trial, &ready, INGEST_RESIDENT, true)) {
        const struct view views[] = {
            {program_find(trial->program, ROLE_INPUT, "x"), trial->x, ROWS},
            {program_find(trial->program, ROLE_INPUT, "label"), trial->label, ROWS},
            {program_find(trial->program, ROLE_OUTPUT, "loss"), trial->loss, INT64_C(1) << 40}};
        const struct binding binding = {.views = views, .view_count = 3};
        CHECK_STATUS(STATUS_MEMORY, rig->backend->bind(ready.plan, &binding));
        CHECK_MESSAGE(" MB for the bound data, and ");
        CHECK_STATUS(STATUS_INPUT, rig->backend->run(ready.plan, PARTS_ALL, 0, 1));
        CHECK_MESSAGE("no data is bound");
        CHECK(trial_bind(trial, &ready, INGEST_RESIDENT, true) &&
              ready_run(&ready, PARTS_ALL, 0, 2));
    }
    ready_close(&ready);
    if (trial)
        trial_close(trial);
    mem_free(trial);
}

/* What a plan learns from what is bound now, from the first weights on, and what it said of it. */
static bool learn(struct trial *trial, struct ready *ready)
{
    memset(trial->loss, 0, sizeof trial->loss);
    return CHECK_OK(ready->backend->upload(ready->instance, &trial->params)) &&
           trial_bind(trial, ready, INGEST_BEST, true) && ready_run(ready, PARTS_ALL, 0, STEPS);
}

/* Does a plan that was bound before learn what one that is new does? */
static bool learns_as_new(struct trial *trial, struct rig *rig, struct ready *ready)
{
    float loss[STEPS];
    struct ready fresh = {0};
    bool ok = learn(trial, ready);
    memcpy(loss, trial->loss, sizeof loss);
    trial->version = 0;
    ok = ok && ready_open(&fresh, rig, &trial->params, trial->program) && learn(trial, &fresh) &&
         CHECK(memcmp(loss, trial->loss, sizeof loss) == 0);
    ready_close(&fresh);
    return ok;
}

ON_BACKENDS(data_that_changed_are_seen)
{
    struct trial *trial = mem_alloc(sizeof *trial);
    struct ready ready = {0};
    bool ok = CHECK(trial) && trial_open(trial) &&
              ready_open(&ready, rig, &trial->params, trial->program);
    for (int turn = 0; ok && turn < 6; turn++) { /* of no version, and of a new one each */
        fill_random(trial->x, ROWS * INPUTS, 20 + (unsigned)turn);
        trial->label[turn] = (trial->label[turn] + 1) % 5;
        trial->version = turn % 3 ? binding_version() : 0;
        ok = learns_as_new(trial, rig, &ready);
    }
    ready_close(&ready);
    if (trial)
        trial_close(trial);
    mem_free(trial);
}

/* Longer and shorter ones, and one that was bound and never run. */
ON_BACKENDS(orders_that_changed_are_seen)
{
    static const int64_t counts[] = {5, ROWS, 1, 40, 0};
    struct trial *trial = mem_alloc(sizeof *trial);
    struct ready ready = {0};
    const uint64_t version = binding_version();
    bool ok = CHECK(trial) && trial_open(trial) &&
              ready_open(&ready, rig, &trial->params, trial->program);
    for (uint32_t turn = 0; ok && turn < 5; turn++) {
        trial->version = version;
        ok = trial_bind(trial, &ready, INGEST_BEST, turn % 2);
        trial->listed = counts[turn];
        for (uint32_t i = 0; i < ROWS; i++)
            trial->order[i] = (i * (3 + turn) + turn) % ROWS;
        ok = ok && learns_as_new(trial, rig, &ready);
    }
    ready_close(&ready);
    if (trial)
        trial_close(trial);
    mem_free(trial);
}

/* Nobody may change data of a version; who does sees whether they are copied again. */
ON_BACKENDS(a_version_is_copied_once_for_all_plans)
{
    struct trial *trial = mem_alloc(sizeof *trial);
    struct ready first = {0}, second = {0}, third = {0};
    float loss[STEPS];
    if (strcmp(rig->backend->unit, "gpu") != 0) {
        check_skip("'%s' computes on data where they lie", rig->backend->name);
    } else if (CHECK(trial) && trial_open(trial) &&
               ready_open(&first, rig, &trial->params, trial->program) &&
               ready_open(&second, rig, &trial->params, trial->program) &&
               ready_open(&third, rig, &trial->params, trial->program)) {
        trial->version = binding_version();
        CHECK(learn(trial, &first));
        memcpy(loss, trial->loss, sizeof loss);
        fill_random(trial->x, ROWS * INPUTS, 77);
        CHECK(learn(trial, &first) && memcmp(loss, trial->loss, sizeof loss) == 0);
        CHECK(learn(trial, &second) && memcmp(loss, trial->loss, sizeof loss) == 0);
        ready_close(&first);
        CHECK(learn(trial, &second) && memcmp(loss, trial->loss, sizeof loss) == 0);
        ready_close(&second); /* the last that was bound to them */
        CHECK(learn(trial, &third) && memcmp(loss, trial->loss, sizeof loss) != 0);
    }
    ready_close(&first);
    ready_close(&second);
    ready_close(&third);
    if (trial)
        trial_close(trial);
    mem_free(trial);
}

/* Inputs that are too many, of a version or not: the device is as good as before. */
ON_BACKENDS(inputs_without_room_leave_nothing_behind)
{
    struct trial *trial = mem_alloc(sizeof *trial);
    struct ready ready = {0};
    if (strcmp(rig->backend->unit, "gpu") != 0)
        check_skip("'%s' computes on data where they lie", rig->backend->name);
    else if (CHECK(trial) && trial_open(trial) &&
             ready_open(&ready, rig, &trial->params, trial->program))
        for (int turn = 0; turn < 4; turn++) {
            const uint64_t version = turn % 2 ? binding_version() : 0;
            const struct view views[] = {
                {program_find(trial->program, ROLE_INPUT, "label"), trial->label, ROWS},
                {program_find(trial->program, ROLE_INPUT, "x"), trial->x, INT32_MAX}};
            const struct binding binding = {.views = views,
                                            .view_count = 2,
                                            .order = trial->order,
                                            .order_count = ROWS,
                                            .ingestion = INGEST_RESIDENT,
                                            .version = version};
            CHECK_STATUS(STATUS_MEMORY, rig->backend->bind(ready.plan, &binding));
            CHECK_MESSAGE(" MB for the bound data, and ");
            CHECK_STATUS(STATUS_INPUT, rig->backend->run(ready.plan, PARTS_ALL, 0, 1));
            trial->version = turn < 2 ? version : 0;
            CHECK(learns_as_new(trial, rig, &ready));
        }
    ready_close(&ready);
    if (trial)
        trial_close(trial);
    mem_free(trial);
}

/* What an observed step says of itself adds up, whichever way its rows came. */
static void count_event(void *context, const struct event *event)
{
    int *counts = context;
    CHECK(event->end_ns >= event->start_ns);
    counts[event->part]++;
}

ON_BACKENDS(watched_steps_have_every_part)
{
    struct trial *trial = mem_alloc(sizeof *trial);
    int counts[PART_COUNT] = {0};
    const struct plan_options options = {.observer = {OBSERVE_PARTS, count_event, counts}};
    struct ready ready = {0};
    struct instance *instance = NULL;
    if (CHECK(trial) && trial_open(trial) &&
        CHECK_OK(rig->backend->attach(rig->device, &trial->params, &instance)) &&
        ready_on(&ready, rig, instance, trial->program, &options) &&
        trial_bind(trial, &ready, INGEST_OVERLAPPED, true) && ready_run(&ready, PARTS_ALL, 0, 5))
        for (int part = 0; part < PART_COUNT; part++)
            CHECK_EQUAL_INT(counts[part], 5);
    ready_close(&ready);
    if (instance)
        rig->backend->detach(instance);
    trial_close(trial);
    mem_free(trial);
}

/* What is told of staged steps: no copy before its rows are gathered, no computing before they are
 * copied, and all of it in the time that it took. */
struct told {
    int count[LANE_COUNT];
    uint64_t copied_ns, first_ns, last_ns;
};

static void tell_stage(void *context, const struct event *event)
{
    struct told *told = context;
    const uint64_t clocks_ns = 100000000; /* that they may be apart, on a busy machine */
    CHECK(event->end_ns >= event->start_ns);
    told->count[event->lane]++;
    if (event->lane == LANE_COPY)
        told->copied_ns = event->end_ns;
    if (event->lane == LANE_COMPUTE)
        CHECK(event->start_ns + 2 >= told->copied_ns); /* both are rounded */
    if (event->lane == LANE_ALL) {
        CHECK(told->first_ns + clocks_ns >= event->start_ns);
        CHECK(told->last_ns <= event->end_ns + clocks_ns);
        told->first_ns = told->copied_ns = 0;
        return;
    }
    told->first_ns = told->first_ns ? told->first_ns : event->start_ns;
    told->last_ns = event->end_ns;
}

ON_BACKENDS(stages_are_told_in_their_order)
{
    static const enum ingestion ways[] = {INGEST_DIRECT, INGEST_PINNED, INGEST_OVERLAPPED};
    enum { LONG_RUN = 70 }; /* more than are told of at once */
    const bool gpu = strcmp(rig->backend->unit, "gpu") == 0;
    for (size_t way = 0; way < 3; way++) {
        struct trial *trial = mem_alloc(sizeof *trial);
        struct told told = {0};
        const struct plan_options options = {.observer = {OBSERVE_NOTHING, tell_stage, &told}};
        struct ready ready = {0};
        struct instance *instance = NULL;
        if (CHECK(trial) && trial_open(trial) &&
            CHECK_OK(rig->backend->attach(rig->device, &trial->params, &instance)) &&
            ready_on(&ready, rig, instance, trial->program, &options) &&
            trial_bind(trial, &ready, ways[way], true) &&
            ready_run(&ready, PARTS_ALL, 0, LONG_RUN)) {
            const int gathered = ways[way] == INGEST_DIRECT ? 0 : LONG_RUN;
            CHECK_EQUAL_INT(told.count[LANE_GATHER], gpu ? gathered : 0);
            CHECK_EQUAL_INT(told.count[LANE_COPY], gpu ? LONG_RUN : 0);
            CHECK_EQUAL_INT(told.count[LANE_COMPUTE], gpu ? LONG_RUN : 0);
            CHECK_EQUAL_INT(told.count[LANE_ALL], gpu ? 2 : 0);
        }
        ready_close(&ready);
        if (instance)
            rig->backend->detach(instance);
        if (trial)
            trial_close(trial);
        mem_free(trial);
    }
}

enum { WIDE = 256, MANY = 512 };

/* Much is computed on few bytes, so that there is time to hide them. */
static bool watch_stages(struct rig *rig, enum ingestion how, struct staging *out)
{
    const struct compile_options options = {.batch = MANY, .use = USE_INFERENCE};
    struct network *network = NULL;
    struct params params;
    struct program *program = NULL;
    struct staging_seen seen = {0};
    const struct plan_options watched = {.observer = {OBSERVE_NOTHING, staging_event, &seen}};
    struct ready ready = {0};
    struct instance *instance = NULL;
    float *x = mem_array(2 * MANY * WIDE, sizeof *x);
    params_init(&params, DTYPE_F32);
    bool ok = CHECK(x) && CHECK_OK(network_open("mlp:256-4096-4096-8", &network)) &&
              CHECK_OK(network_compile(network, &params, &options, &program)) &&
              CHECK_OK(params_fill(&params, 3)) &&
              CHECK_OK(rig->backend->attach(rig->device, &params, &instance)) &&
              ready_on(&ready, rig, instance, program, &watched);
    if (ok) {
        const struct view view = {program_find(program, ROLE_INPUT, "x"), x, 2 * MANY};
        const struct binding binding = {.views = &view, .view_count = 1, .ingestion = how};
        ok = CHECK_OK(ready.backend->bind(ready.plan, &binding)) &&
             ready_run(&ready, PARTS_ALL, 0, STAGING_STEPS);
        seen = (struct staging_seen){0}; /* that was to warm up */
        ok = ok && ready_run(&ready, PARTS_ALL, 0, STAGING_STEPS) && CHECK(staging_of(&seen, out));
        CHECK_EQUAL_INT(seen.count[LANE_GATHER], how == INGEST_DIRECT ? 0 : STAGING_STEPS);
    }
    ready_close(&ready);
    if (instance)
        rig->backend->detach(instance);
    program_free(program);
    params_free(&params);
    network_free(network);
    mem_free(x);
    return ok;
}

/* Copies in the stream that computes cannot be beside computing, those in one of their own are; and
 * nobody is busy for longer than there is time. */
ON_BACKENDS(only_what_has_a_stream_of_its_own_overlaps)
{
    static const enum ingestion ways[] = {INGEST_DIRECT, INGEST_PINNED, INGEST_OVERLAPPED};
    if (strcmp(rig->backend->unit, "gpu") != 0)
        check_skip("'%s' computes on data where they lie", rig->backend->name);
    else
        for (size_t way = 0; way < 3; way++) {
            struct staging found;
            if (!watch_stages(rig, ways[way], &found))
                continue;
            CHECK(found.copy > 0 && found.compute > 0);
            CHECK(found.copy + found.compute - found.copy * found.copy_overlap / 100 <=
                  1.01 * found.iteration);
            CHECK(found.gather <= found.iteration);
            if (ways[way] == INGEST_OVERLAPPED)
                CHECK(found.copy_overlap > 25);
            else
                CHECK(found.copy_overlap < 1);
        }
}

CHECK_MAIN
