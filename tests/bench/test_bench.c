/* From points to records: what is right is timed, what is wrong fails, what is absent is skipped,
 * and no failed allocation does harm. */
#include "check.h"

#include "backend/cpu/cpu_backends.h"
#include "base/memory.h"
#include "bench/check/reference.h"
#include "bench/job/job_network.h"
#include "bench/peer/task_peer.h"
#include "bench/sweep/sweep.h"

#include <math.h>

static struct registry registry;

/* Every network that is opened is counted. */
enum status __real_network_open(const char *spec, struct network **out);
enum status __wrap_network_open(const char *spec, struct network **out);
static int opened;

enum status __wrap_network_open(const char *spec, struct network **out)
{
    opened++;
    return __real_network_open(spec, out);
}

/* What came out, the last line in full. */
struct seen {
    int count;
    struct record records[16]; /* their pointers are not valid any more */
    char reasons[16][300];
    struct text line;
};

static enum status see(void *context, const char *line, const struct record *record)
{
    struct seen *seen = context;
    if (seen->count < 16) {
        snprintf(seen->reasons[seen->count], sizeof seen->reasons[0], "%s",
                 record->reason ? record->reason : "");
        seen->records[seen->count++] = *record;
    }
    text_clear(&seen->line);
    text_add(&seen->line, line);
    return text_done(&seen->line);
}

static struct bench make_bench(struct seen *seen)
{
    if (!registry.count)
        registry_add(&registry, &backend_ref);
    struct bench bench = {.registry = &registry,
                          .peers = "tests/peers",
                          .measure = {.target = 0.05, .limit_ns = 50000000},
                          .patience_ns = 20000000000,
                          .sink = {see, seen}};
    facts_find(&bench.facts);
    return bench;
}

static void end_bench(struct bench *bench, struct seen *seen)
{
    text_free(&seen->line);
    calibration_free(&bench->calibration);
    peer_bank_close(&bench->waiting);
}

static void set(struct sweep *sweep, int axis, const char *const *values, int count)
{
    sweep->lists[axis] = (struct sweep_list){values, count};
}

TEST(a_sweep_is_a_product)
{
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct sweep sweep = {0};
    set(&sweep, AXIS_model, (const char *const[]){"small"}, 1);
    set(&sweep, AXIS_phase, (const char *const[]){"training", "inference"}, 2);
    set(&sweep, AXIS_batch, (const char *const[]){"1", "3"}, 2);
    set(&sweep, AXIS_fusion, (const char *const[]){"on", "off"}, 2);
    CHECK_OK(sweep_check(&sweep, &bench));
    CHECK_OK(sweep_run(&sweep, &bench));
    CHECK_EQUAL_INT(seen.count, 8);
    CHECK_EQUAL_INT(bench.ok, 8);
    for (int i = 0; i < seen.count; i++) {
        const struct record *record = &seen.records[i];
        CHECK_EQUAL_TEXT(record->point.phase, i < 4 ? "training" : "inference");
        CHECK_EQUAL_INT(record->point.batch, i % 4 < 2 ? 1 : 3);
        CHECK_EQUAL_TEXT(record->point.fusion, i % 2 ? "off" : "on");
        CHECK_EQUAL_INT(record->check.verdict, RECORD_RIGHT);
        CHECK(record->time_ns.median > 0);
        CHECK(record->throughput > 0);
        CHECK(record->flop > 0 && record->bytes > 0);
        CHECK(record->parts_ns.forward > 0);
        CHECK(!(record->parts_ns.scaled >= 1));
        CHECK(i < 4 ? record->parts_ns.backward > 0 : isnan(record->parts_ns.backward));
    }
    struct arena arena = {0};
    struct record back;
    CHECK_OK(record_read(&arena, "line", 1, text_of(&seen.line), seen.line.length, &back));
    CHECK(back.sample_count > 0);
    CHECK(back.kernel_count > 0);
    arena_free(&arena);
    end_bench(&bench, &seen);
}

/* … whoever computes it, wherever its samples come from, and however many are compared. */
TEST(a_group_opens_its_network_once)
{
    for (int compares = 0; compares < 2; compares++) {
        struct seen seen = {0};
        struct bench bench = make_bench(&seen);
        struct sweep sweep = {.against = compares ? "ref" : NULL};
        int points = 0;
        bench.measure.compare = compares;
        set(&sweep, AXIS_model, (const char *const[]){"small"}, 1);
        set(&sweep, AXIS_data, (const char *const[]){"synthetic", "real/dram"}, 2);
        set(&sweep, AXIS_fusion, (const char *const[]){"on", "off"}, 2);
        opened = 0;
        CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
        CHECK_EQUAL_INT(points, 4);
        CHECK_EQUAL_INT(opened, 0);
        CHECK_OK(sweep_run(&sweep, &bench));
        CHECK_EQUAL_INT(bench.ok, compares ? 8 : 4);
        CHECK_EQUAL_INT(opened, 1);
        end_bench(&bench, &seen);
    }
}

static const char *split(const char *axis, const char *text)
{
    static char joined[200];
    struct arena arena = {0};
    struct sweep_list list;
    joined[0] = '\0';
    if (sweep_split(axis_find(axis), text, &arena, &list) == STATUS_OK)
        for (int i = 0; i < list.count; i++) {
            size_t used = strlen(joined);
            snprintf(joined + used, sizeof joined - used, "%s%s", i ? " " : "", list.values[i]);
        }
    arena_free(&arena);
    return joined;
}

TEST(lists_and_ranges_are_spelled_out)
{
    CHECK_EQUAL_TEXT(split("batch", "1,2,4"), "1 2 4");
    CHECK_EQUAL_TEXT(split("batch", "1-4"), "1 2 3 4");
    CHECK_EQUAL_TEXT(split("batch", "16-256*2"), "16 32 64 128 256");
    CHECK_EQUAL_TEXT(split("batch", "3,5-6,10-100*10"), "3 5 6 10 100");
    CHECK_EQUAL_TEXT(split("batch", "7-7"), "7");
    CHECK_EQUAL_TEXT(split("batch", "1,1,1"), "1"); /* each is measured once */
    CHECK_EQUAL_TEXT(split("batch", "2,1-4,04,8"), "2 1 3 4 8");
    CHECK_EQUAL_TEXT(split("framework", "numpy,prony,numpy"), "numpy prony");
    CHECK_EQUAL_TEXT(split("batch", "9223372036854775806-9223372036854775807"),
                     "9223372036854775806 9223372036854775807");
    CHECK_EQUAL_TEXT(split("framework", "python-list,numpy"), "python-list numpy");
    CHECK_EQUAL_TEXT(split("model", "small,a.onnx:h=28,w=28,b.onnx:n=2,large"),
                     "small a.onnx:h=28,w=28 b.onnx:n=2 large");
    static const char *const wrong[] = {"8-1",  "0-3",  "1-8*1",    "1-8*0",
                                        "1-8*", "1-",   "1-8+2",    "-3",
                                        "1--3", "1,,2", "1-100000", "99999999999999999999"};
    struct arena arena = {0};
    struct sweep_list list;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_STATUS(STATUS_INPUT, sweep_split(&axes[AXIS_batch], wrong[i], &arena, &list));
    arena_free(&arena);
}

TEST(rules_leave_points_out)
{
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct sweep sweep = {0};
    struct arena arena = {0};
    int points;
    set(&sweep, AXIS_model, (const char *const[]){"small"}, 1);
    set(&sweep, AXIS_phase, (const char *const[]){"training", "inference"}, 2);
    CHECK_OK(sweep_split(&axes[AXIS_batch], "1-3", &arena, &sweep.lists[AXIS_batch]));
    set(&sweep, AXIS_fusion, (const char *const[]){"on", "off"}, 2);
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 12);
    CHECK_OK(sweep_parse_skip(&sweep, "batch=2-3 phase=training; fusion=off batch=1", &arena));
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 12 - 4 - 2);
    /* values of what means nothing to one worker, or to inference, make nothing else of it */
    set(&sweep, AXIS_parallelism, (const char *const[]){"data", "model"}, 2);
    set(&sweep, AXIS_optimiser, (const char *const[]){"sgd", "adam"}, 2);
    int more;
    CHECK_OK(sweep_count(&sweep, &bench, &more, NULL));
    CHECK_EQUAL_INT(more, points + 1); /* training at batch 1, fused, by adam too */
    CHECK_STATUS(STATUS_INPUT, sweep_parse_skip(&sweep, "batch 2", &arena));
    CHECK_STATUS(STATUS_INPUT, sweep_parse_skip(&sweep, "bach=2", &arena));
    CHECK_MESSAGE("did you mean \"batch\"?");
    CHECK_STATUS(STATUS_INPUT, sweep_parse_skip(&sweep, " ; ", &arena));
    arena_free(&arena);
    calibration_free(&bench.calibration);
}

/* What was measured counts as done, for the same commit and machine only; what failed does not. */
TEST(what_is_done_is_passed_over)
{
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct sweep sweep = {0};
    struct done done = {0};
    struct arena arena = {0};
    struct record record;
    int points;
    set(&sweep, AXIS_model, (const char *const[]){"small"}, 1);
    set(&sweep, AXIS_batch, (const char *const[]){"3"}, 1);
    CHECK_OK(facts_trees(&bench.facts, &arena, &bench.machine, &bench.software));
    CHECK_OK(sweep_run(&sweep, &bench));
    CHECK_OK(record_read(&arena, "line", 1, text_of(&seen.line), seen.line.length, &record));

    bench.done = &done;
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 1);
    record.status = RECORD_FAILED;
    CHECK_OK(done_add(&done, &record));
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 1);
    record.status = RECORD_OK;
    CHECK_OK(done_add(&done, &record));
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 0);

    set(&sweep, AXIS_batch, (const char *const[]){"3", "4"}, 2);
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 1);
    set(&sweep, AXIS_fusion, (const char *const[]){"on", "off"}, 2);
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 4); /* a comparison is measured whole */
    set(&sweep, AXIS_fusion, NULL, 0);
    const struct json *here = bench.machine, *software = bench.software;
    static const char *const others[] = {"{\"server\":\"elsewhere\"}", "{\"cpu\":\"another\"}",
                                         "{\"cores\":77}"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct json *other;
        CHECK_OK(json_parse(&arena, "machine", others[i], strlen(others[i]), &other));
        bench.machine = other;
        CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
        CHECK_EQUAL_INT(points, 2);
    }
    bench.machine = here;
    bench.software = NULL; /* of another commit */
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 2);
    bench.software = software;
    sweep.against = "ref"; /* which it was not compared with */
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 2);
    record.against.other = "prony/ref";
    CHECK_OK(done_add(&done, &record));
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 1);
    done_free(&done);
    arena_free(&arena);
    end_bench(&bench, &seen);
}

/* One machine may have two GPUs, of which CUDA_VISIBLE_DEVICES names one, or a new one. */
TEST(what_another_gpu_did_is_not_done)
{
    static const char *const names[] = {"GPU A", "GPU B"};
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct done done = {0};
    struct arena arena = {0};
    struct point point;
    struct record record;
    enum done_state state;
    CHECK_OK(facts_trees(&bench.facts, &arena, &bench.machine, &bench.software));
    for (int gpu = 1; gpu >= 0; gpu--) { /* a CPU's results do not ask which GPU is beside it */
        point_start(&point);
        CHECK_OK(point_set(&point, &axes[AXIS_model], "small"));
        CHECK_OK(point_set(&point, &axes[AXIS_unit], gpu ? "gpu" : "cpu"));
        for (int i = 0; i < 2; i++) {
            snprintf(bench.facts.gpu.name, sizeof bench.facts.gpu.name, "%s", names[i]);
            CHECK_OK(bench_start_record(&bench, &point, &arena, &record));
            CHECK_OK(done_find(&done, &record, "", &state));
            CHECK_EQUAL_INT(state, i && !gpu ? DONE_MEASURED : DONE_NOT);
            record.status = RECORD_OK;
            CHECK_OK(done_add(&done, &record));
            CHECK_OK(done_find(&done, &record, "", &state));
            CHECK_EQUAL_INT(state, DONE_MEASURED);
        }
    }
    done_free(&done);
    arena_free(&arena);
    end_bench(&bench, &seen);
}

/* What a scenario was to reach is part of what was asked for. */
TEST(another_goal_is_not_done)
{
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct sweep sweep = {0};
    struct done done = {0};
    struct arena arena = {0};
    struct record record;
    int points;
    CHECK_OK(facts_trees(&bench.facts, &arena, &bench.machine, &bench.software));
    static const char *const scenarios[] = {"server", "target"};
    for (int i = 0; i < 2; i++) {
        bench.bound = (struct scenario_bound){0.9, 1e10};
        bench.until.dataset = "iris";
        bench.until.loss = 10;
        bench.until.seeds = 1;
        set(&sweep, AXIS_model, (const char *const[]){"small"}, 1);
        set(&sweep, AXIS_batch, (const char *const[]){"1"}, 1);
        set(&sweep, AXIS_phase, (const char *const[]){i ? "training" : "inference"}, 1);
        set(&sweep, AXIS_scenario, &scenarios[i], 1);
        bench.done = NULL;
        CHECK_OK(sweep_run(&sweep, &bench));
        CHECK_OK(record_read(&arena, "line", 1, text_of(&seen.line), seen.line.length, &record));
        CHECK_EQUAL_INT(record.status, RECORD_OK);
        CHECK_OK(done_add(&done, &record));
        bench.done = &done;
        CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
        CHECK_EQUAL_INT(points, 0);
        bench.bound.ns = 1e9;
        bench.until.seeds = 2;
        CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
        CHECK_EQUAL_INT(points, 1);
    }
    done_free(&done);
    arena_free(&arena);
    end_bench(&bench, &seen);
}

/* Who was skipped is tried again, by itself, and what is still missing is not recorded twice. */
TEST(what_was_skipped_is_tried_again)
{
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct sweep sweep = {0};
    struct done done = {0};
    struct arena arena = {0};
    int points;
    set(&sweep, AXIS_model, (const char *const[]){"small"}, 1);
    set(&sweep, AXIS_framework, (const char *const[]){"prony", "absent"}, 2);
    CHECK_OK(facts_trees(&bench.facts, &arena, &bench.machine, &bench.software));
    CHECK_OK(sweep_run(&sweep, &bench));
    CHECK_EQUAL_INT(seen.count, 2);
    char program[DONE_PROGRAM];
    CHECK_OK(done_program(&seen.records[0].point, program));
    for (int i = 0; i < seen.count; i++) {
        struct record *record = &seen.records[i];
        record->program = program; /* its texts are gone */
        record->goal = record->at = NULL;
        CHECK_EQUAL_INT(record->status, i ? RECORD_SKIPPED : RECORD_OK);
        CHECK_OK(done_add(&done, record));
    }
    bench.done = &done;
    CHECK_OK(sweep_count(&sweep, &bench, &points, NULL));
    CHECK_EQUAL_INT(points, 1);
    seen.count = 0;
    CHECK_OK(sweep_run(&sweep, &bench));
    CHECK_EQUAL_INT(seen.count, 0);
    done_free(&done);
    arena_free(&arena);
    end_bench(&bench, &seen);
}

static int stops_after;

static bool is_stopped(void)
{
    return stops_after-- <= 0;
}

/* At whichever moment: what was cut short is no result, and the last error says why it ended. */
TEST(what_is_stopped_is_not_recorded)
{
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct sweep sweep = {0};
    set(&sweep, AXIS_model, (const char *const[]){"small"}, 1);
    set(&sweep, AXIS_fusion, (const char *const[]){"on", "off"}, 2);
    bench.measure.stopped = is_stopped;
    bench.measure.target = 0; /* never tight: nothing else ends it so soon */
    bench.measure.limit_ns = 60000000000;
    for (int after = 0; after < 50; after += 7) {
        stops_after = after;
        CHECK_STATUS(STATUS_INTERRUPTED, sweep_run(&sweep, &bench));
        CHECK_MESSAGE("stopped");
        CHECK_EQUAL_INT(seen.count, 0);
    }
    end_bench(&bench, &seen);
}

TEST(what_cannot_run_is_skipped_and_what_is_wrong_fails)
{
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct sweep sweep = {0};
    set(&sweep, AXIS_model, (const char *const[]){"small"}, 1);
    set(&sweep, AXIS_framework, (const char *const[]){"absent", "liar", "prony"}, 3);
    CHECK_OK(sweep_run(&sweep, &bench));
    if (!CHECK_EQUAL_INT(seen.count, 3))
        return;
    CHECK_EQUAL_INT(seen.records[0].status, RECORD_SKIPPED);
    CHECK_EQUAL_TEXT(seen.reasons[0], "libexample is not installed");
    CHECK_EQUAL_INT(seen.records[1].status, RECORD_FAILED);
    CHECK(strstr(seen.reasons[1], "the peer's check has 2 values") != NULL);
    CHECK_EQUAL_INT(seen.records[2].status, RECORD_OK);

    seen.count = 0;
    set(&sweep, AXIS_framework, NULL, 0);
    set(&sweep, AXIS_precision, (const char *const[]){"fp16"}, 1);
    CHECK_OK(sweep_run(&sweep, &bench));
    CHECK_EQUAL_INT(seen.records[0].status, RECORD_SKIPPED);
    CHECK(strstr(seen.reasons[0], "computes in fp32, bf16 and int8, not in fp16") != NULL);
    end_bench(&bench, &seen);
}

TEST(names_that_do_not_exist_are_refused_before_anything_runs)
{
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct sweep sweep = {0};
    set(&sweep, AXIS_model, (const char *const[]){"smal"}, 1);
    CHECK_STATUS(STATUS_INPUT, sweep_check(&sweep, &bench));
    set(&sweep, AXIS_model, (const char *const[]){"small"}, 1);
    set(&sweep, AXIS_framework, (const char *const[]){"absend"}, 1);
    CHECK_STATUS(STATUS_INPUT, sweep_check(&sweep, &bench));
    CHECK_MESSAGE("did you mean absent?");
    set(&sweep, AXIS_framework, NULL, 0);
    set(&sweep, AXIS_backend, (const char *const[]){"reff"}, 1);
    CHECK_STATUS(STATUS_INPUT, sweep_check(&sweep, &bench));
}

TEST(lists_are_split_and_checked)
{
    struct arena arena = {0};
    struct sweep_list list;
    if (CHECK_OK(sweep_split(&axes[AXIS_batch], "1,3,10", &arena, &list))) {
        CHECK_EQUAL_INT(list.count, 3);
        CHECK_EQUAL_TEXT(list.values[2], "10");
    }
    CHECK_STATUS(STATUS_INPUT, sweep_split(&axes[AXIS_batch], "1,,3", &arena, &list));
    CHECK_STATUS(STATUS_INPUT, sweep_split(&axes[AXIS_batch], "1,x", &arena, &list));
    CHECK_STATUS(STATUS_INPUT, sweep_split(&axes[AXIS_batch], "", &arena, &list));
    CHECK_STATUS(STATUS_INPUT, sweep_split(&axes[AXIS_phase], "trainig", &arena, &list));
    arena_free(&arena);
}

/* Where patience is too short for all of it: one step of a training, some samples of an inference.
 * Which patience that is depends on the cores: it is looked for. */
TEST(a_check_is_cut_to_what_patience_allows)
{
    enum { BATCH = 512, WIDTH = 512 };
    if (backend_simd.probe() != STATUS_OK)
        SKIP("%s", status_message());
    struct seen seen = {0};
    struct bench bench = make_bench(&seen);
    struct registry both = {0};
    registry_add(&both, &backend_ref);
    registry_add(&both, &backend_simd);
    bench.registry = &both;
    for (int phase = PHASE_INFERENCE; phase <= PHASE_TRAINING; phase++) {
        const struct task_options options = {
            .model = "mlp:512-1024-512", .phase = (enum phase)phase, .batch = BATCH};
        const char *cut = phase == PHASE_TRAINING ? ", 1 step" : " of 512 samples";
        struct reference reference = {0};
        struct task *task;
        if (!CHECK_OK(task_open(&options, &task)))
            continue;
        const int32_t steps = task->check_steps;
        const int64_t values = task->value_count;
        for (uint64_t ns = 10000; ns < 1000000000000 && !strstr(reference.name, cut); ns *= 2) {
            bench.patience_ns = ns;
            task->check_steps = steps;
            task->value_count = values;
            reference = (struct reference){0};
            reference_choose(&reference, &bench, task);
        }
        CHECK(strstr(reference.name, cut) != NULL);
        CHECK_EQUAL_TEXT(reference.missing, "");
        CHECK_EQUAL_INT(task->check_steps, 1);
        if (phase == PHASE_INFERENCE)
            CHECK(reference.batch < BATCH && task->value_count <= reference.batch * WIDTH);
        CHECK_OK(reference_compute(&reference, task));
        CHECK(task->has_reference);
        task_close(task);
    }
    end_bench(&bench, &seen);
}

TEST(every_failed_allocation_is_survived)
{
    static const char *const models[] = {"small"}, *const frameworks[] = {"prony", "absent"};
    bool failed = true;
    long nth = 1;
    for (; failed && nth < 5000; nth++) {
        struct seen seen = {0};
        struct bench bench = make_bench(&seen);
        struct sweep sweep = {0};
        bench.measure.limit_ns = 1000000;
        set(&sweep, AXIS_model, models, 1);
        set(&sweep, AXIS_framework, frameworks, 2);
        memory_fail_at(nth);
        enum status status = sweep_check(&sweep, &bench);
        if (status == STATUS_OK)
            status = sweep_run(&sweep, &bench);
        failed = memory_failed();
        memory_fail_at(0);
        if (status != STATUS_OK)
            CHECK_EQUAL_INT(status, STATUS_MEMORY);
        else if (!failed)
            CHECK_EQUAL_INT(bench.ok + bench.skipped, 2);
        end_bench(&bench, &seen);
    }
    CHECK(!failed);
    CHECK(nth > 50); /* it did get somewhere */
}

CHECK_MAIN
