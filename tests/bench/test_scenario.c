/* Scenarios over jobs that take a known time or say so: no time is asserted beyond what holds on
 * any machine. */
#include "check.h"

#include "base/clock.h"
#include "bench/scenario.h"
#include "bench/sweep/target.h"

#include "backend/cpu/cpu_backends.h"

struct fake {
    struct job job;
    uint64_t sleeps_ns, says_ns;
    int64_t calls, iterations, breaks_at;
    bool boasts; /* it says that any number of iterations takes a nanosecond */
};

static enum status fake_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct fake *fake = (struct fake *)job;
    fake->iterations += iterations;
    if (++fake->calls == fake->breaks_at)
        FAIL(STATUS_DEVICE, "it broke");
    if (fake->sleeps_ns)
        clock_sleep_ns(fake->sleeps_ns);
    *elapsed_ns = fake->boasts ? 1 : fake->says_ns * (uint64_t)iterations;
    return STATUS_OK;
}

static const struct job_kind fake_kind = {.name = "fake", .run = fake_run};

static struct scenario_options options_for(enum scenario scenario)
{
    return (struct scenario_options){
        .scenario = scenario, .seed = 1, .limit_ns = 50000000, .patience_ns = 600000000000};
}

TEST(bounds_are_read)
{
    struct scenario_bound bound;
    CHECK_OK(scenario_parse_bound("p99=10ms", &bound));
    CHECK_NEAR(bound.quantile, 0.99, 0);
    CHECK_NEAR(bound.ns, 1e7, 1e-3);
    CHECK_OK(scenario_parse_bound("p90=2.5us", &bound));
    CHECK_NEAR(bound.quantile, 0.90, 0);
    CHECK_NEAR(bound.ns, 2500, 1e-6);
    static const char *const wrong[] = {"",        "10ms",     "p99",     "p99=",    "p99=10",
                                        "p99=ms",  "p50=1ms",  "p99=0ms", "p99=-1s", "p99=1e3ms",
                                        "p99=1 s", "p99=1min", "p99=..ms"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_STATUS(STATUS_INPUT, scenario_parse_bound(wrong[i], &bound));
}

TEST(a_stream_gives_the_latency_of_every_query)
{
    struct fake fake = {.job = {&fake_kind}, .says_ns = 1000};
    struct scenario_options options = options_for(SCENARIO_SINGLE_STREAM);
    struct scenario_result result;
    if (CHECK_OK(scenario_run(&options, &fake.job, &result))) {
        CHECK_EQUAL_INT(fake.calls, (int64_t)result.count + 2); /* and some to warm up */
        CHECK_EQUAL_INT(result.per, 1);
        CHECK_NEAR(result.rate, 1e6, 1e-3);
        CHECK_NEAR(result.latencies_ns[0], 1000, 0);
    }
    scenario_free(&result);
}

TEST(offline_asks_for_much_at_once)
{
    struct fake fake = {.job = {&fake_kind}, .says_ns = 1000};
    struct scenario_options options = options_for(SCENARIO_OFFLINE);
    struct scenario_result result;
    if (CHECK_OK(scenario_run(&options, &fake.job, &result))) {
        CHECK(result.per > 100);
        CHECK_NEAR(result.rate, 1e6, 1e-3);
        CHECK_NEAR(result.latencies_ns[0], 1000, 1e-9);
    }
    scenario_free(&result);
}

static void check_together(enum scenario scenario)
{
    struct fake fake = {.job = {&fake_kind}, .says_ns = 1000};
    struct scenario_options options = options_for(scenario);
    struct scenario_result result;
    if (CHECK_OK(scenario_run(&options, &fake.job, &result))) {
        CHECK_EQUAL_INT(result.per, 1000);
        CHECK(!result.cut);
        CHECK_NEAR(result.rate, 1e6, 1e-3);
        CHECK_NEAR(result.latencies_ns[0], 1000, 1e-9);
    }
    scenario_free(&result);
}

TEST(what_is_queued_or_chained_is_timed_together)
{
    check_together(SCENARIO_QUEUED);
    check_together(SCENARIO_CHAINED);
}

/* A thousand of slow ones would take minutes, during which nobody could stop it. */
TEST(slow_queries_are_not_asked_a_thousand_at_a_time)
{
    static const enum scenario all[] = {SCENARIO_QUEUED, SCENARIO_CHAINED};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct fake fake = {.job = {&fake_kind}, .says_ns = 10000000, .sleeps_ns = 1000};
        struct scenario_options options = options_for(all[i]);
        struct scenario_result result;
        if (CHECK_OK(scenario_run(&options, &fake.job, &result))) {
            CHECK_EQUAL_INT(result.per, 10);
            CHECK_NEAR(result.latencies_ns[0], 1e7, 1e-3);
        }
        scenario_free(&result);
    }
}

TEST(what_outruns_the_time_is_asked_once)
{
    static const enum scenario all[] = {SCENARIO_QUEUED, SCENARIO_CHAINED, SCENARIO_OFFLINE,
                                        SCENARIO_SINGLE_STREAM};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct fake fake = {.job = {&fake_kind}, .says_ns = 1000000000};
        struct scenario_options options = options_for(all[i]);
        struct scenario_result result;
        if (CHECK_OK(scenario_run(&options, &fake.job, &result))) {
            CHECK(result.cut);
            CHECK_EQUAL_INT(result.count, 1);
            CHECK_EQUAL_INT(result.per, 1);
            CHECK_EQUAL_INT(fake.iterations, 2); /* something might have held up the first */
            CHECK_NEAR(result.rate, 1, 1e-9);
        }
        scenario_free(&result);
        fake.iterations = 0;
        options.patience_ns = 500000000;
        CHECK_OK(scenario_run(&options, &fake.job, &result));
        CHECK_EQUAL_INT(fake.iterations, 1);
        scenario_free(&result);
    }
}

TEST(offline_ends_with_its_time)
{
    struct fake fake = {.job = {&fake_kind}, .says_ns = 20000000, .sleeps_ns = 20000000};
    struct scenario_options options = options_for(SCENARIO_OFFLINE); /* 50 ms */
    struct scenario_result result;
    if (CHECK_OK(scenario_run(&options, &fake.job, &result))) {
        CHECK(result.cut && result.count >= 1 && result.count < 3);
        CHECK_NEAR(result.rate, 50, 1e-9);
    }
    scenario_free(&result);
}

static bool stop_now(void)
{
    return true;
}

TEST(whoever_stops_it_does_not_wait_for_a_query)
{
    for (int i = 0; i < SCENARIO_COUNT; i++) {
        struct fake fake = {.job = {&fake_kind}, .says_ns = 1000};
        struct scenario_options options = options_for((enum scenario)i);
        struct scenario_result result;
        options.bound = (struct scenario_bound){0.99, 1e6};
        options.stopped = stop_now;
        CHECK_STATUS(STATUS_INTERRUPTED, scenario_run(&options, &fake.job, &result));
        CHECK_EQUAL_INT(fake.calls, 0);
        scenario_free(&result);
    }
}

TEST(scenarios_say_how_to_answer)
{
    CHECK_EQUAL_INT(scenario_answering("iterate"), ANSWER_STEPS);
    CHECK_EQUAL_INT(scenario_answering("offline"), ANSWER_STEPS);
    CHECK_EQUAL_INT(scenario_answering("single-stream"), ANSWER_CALLS);
    CHECK_EQUAL_INT(scenario_answering("queued"), ANSWER_QUEUED);
    CHECK_EQUAL_INT(scenario_answering("chained"), ANSWER_CALLS);
    CHECK_EQUAL_INT(scenario_answering("resident"), ANSWER_RESIDENT);
    CHECK(scenario_chains("chained") && !scenario_chains("queued") && !scenario_chains("iterate"));
}

TEST(what_takes_no_time_is_not_measured)
{
    static const enum scenario all[] = {SCENARIO_OFFLINE, SCENARIO_SINGLE_STREAM, SCENARIO_QUEUED};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct fake fake = {.job = {&fake_kind}, .boasts = true};
        struct scenario_options options = options_for(all[i]);
        struct scenario_result result;
        CHECK_STATUS(STATUS_DEVICE, scenario_run(&options, &fake.job, &result));
        CHECK_MESSAGE("no time: nothing is being measured");
        CHECK(fake.iterations < (int64_t)1 << 40);
        scenario_free(&result);
    }
}

TEST(a_server_needs_no_more_than_patience)
{
    struct fake fake = {.job = {&fake_kind}, .says_ns = 10000000};
    struct scenario_options options = options_for(SCENARIO_SERVER);
    struct scenario_result result;
    options.bound = (struct scenario_bound){0.99, 1e9};
    options.patience_ns = 59000000000; /* 662 queries of 10 ms, nine times, are 59.6 s */
    CHECK_STATUS(STATUS_UNSUPPORTED, scenario_run(&options, &fake.job, &result));
    CHECK_MESSAGE("more than --patience");
    CHECK(fake.calls < 10);
    scenario_free(&result);
}

/* A query takes a millisecond or more, so that a thousand a second cannot be answered. */
TEST(a_server_finds_a_rate_that_holds)
{
    struct fake fake = {.job = {&fake_kind}, .says_ns = 1000000};
    struct scenario_options options = options_for(SCENARIO_SERVER);
    struct scenario_result result;
    options.bound = (struct scenario_bound){0.90, 2e9};
    if (CHECK_OK(scenario_run(&options, &fake.job, &result))) {
        CHECK(result.rate > 0 && result.rate < 1000);
        CHECK(result.count >= 64);
        for (size_t i = 0; i < result.count; i++) /* it counts from when the query was due */
            CHECK(result.latencies_ns[i] >= 1e6 - 1);
    }
    scenario_free(&result);
}

/* Of a thousand latencies nine tenths are short, 5 % longer, 5 % very long. */
TEST(a_bound_is_held_by_its_own_percentile)
{
    double latencies[1000], percentile;
    bool holds;
    for (int i = 0; i < 1000; i++)
        latencies[i] = i % 20 == 0 ? 100 : i % 20 == 1 ? 10 : 1;
    struct scenario_result result = {.latencies_ns = latencies, .count = 1000, .per = 1};
    const struct {
        struct scenario_bound bound;
        bool holds;
    } cases[] = {{{0.90, 1}, true},
                 {{0.90, 0.9}, false},
                 {{0.99, 1}, false},
                 {{0.99, 10}, false},
                 {{0.99, 100}, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_OK(scenario_holds(&cases[i].bound, &result, &percentile, &holds));
        CHECK_EQUAL_INT(holds, cases[i].holds);
        CHECK_NEAR(percentile, cases[i].bound.quantile > 0.95 ? 100 : 1, 0);
    }
    result.behind = true;
    CHECK_OK(scenario_holds(&cases[4].bound, &result, &percentile, &holds));
    CHECK(!holds);
    result.behind = false;
    result.count = 600; /* too few for a p99 */
    CHECK_OK(scenario_holds(&cases[4].bound, &result, &percentile, &holds));
    CHECK(!holds);
}

/* It says that a query takes 10 µs, and takes a third of a millisecond: whatever the bound, more
 * than three thousand a second only make the queue grow. */
TEST(a_growing_queue_holds_no_bound)
{
    struct fake fake = {.job = {&fake_kind}, .says_ns = 10000, .sleeps_ns = 333333};
    struct scenario_options options = options_for(SCENARIO_SERVER);
    struct scenario_result result;
    options.bound = (struct scenario_bound){0.90, 1e12};
    enum status status = scenario_run(&options, &fake.job, &result);
    if (status == STATUS_UNSUPPORTED) /* a machine on which nothing returns soon */
        CHECK_MESSAGE("no rate from");
    else if (CHECK_OK(status))
        CHECK(result.rate < 10000);
    scenario_free(&result);
}

TEST(a_bound_that_nothing_holds_is_said)
{
    struct fake fake = {.job = {&fake_kind}, .says_ns = 1000000};
    struct scenario_options options = options_for(SCENARIO_SERVER);
    struct scenario_result result;
    options.bound = (struct scenario_bound){0.99, 1000};
    CHECK_STATUS(STATUS_UNSUPPORTED, scenario_run(&options, &fake.job, &result));
    CHECK_MESSAGE("no rate holds the bound");
    scenario_free(&result);
}

TEST(a_job_that_breaks_ends_it)
{
    for (int scenario = 0; scenario < SCENARIO_COUNT; scenario++) {
        struct fake fake = {.job = {&fake_kind}, .says_ns = 1000, .breaks_at = 3};
        struct scenario_options options = options_for((enum scenario)scenario);
        struct scenario_result result;
        options.bound = (struct scenario_bound){0.99, 1e9};
        CHECK_STATUS(STATUS_DEVICE, scenario_run(&options, &fake.job, &result));
        scenario_free(&result);
    }
}

TEST(targets_are_read)
{
    double accuracy, loss;
    CHECK_OK(target_parse("accuracy=0.95", &accuracy, &loss));
    CHECK_NEAR(accuracy, 0.95, 0);
    CHECK_OK(target_parse("loss=0.1", &accuracy, &loss));
    CHECK_NEAR(loss, 0.1, 0);
    static const char *const wrong[] = {"",        "accuracy", "accuracy=", "accuracy=1.5",
                                        "loss=-1", "0.95"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_STATUS(STATUS_INPUT, target_parse(wrong[i], &accuracy, &loss));
}

/* A loss that every network has at once, and one that none reaches in no time. */
TEST(a_training_reaches_its_target_or_does_not)
{
    struct target_run runs[2];
    struct network *small;
    if (!CHECK_OK(network_open("small", &small)))
        return;
    struct target_options options = {.network = small,
                                     .dataset = "iris",
                                     .backend = &backend_ref,
                                     .device = {.threads = 1},
                                     .batch = 8,
                                     .loss = 100,
                                     .seed = 1,
                                     .seeds = 2,
                                     .limit_ns = 20000000000};
    if (!CHECK_OK(target_run_all(&options, runs)))
        return;
    for (int i = 0; i < 2; i++) {
        CHECK(runs[i].reached);
        CHECK_EQUAL_INT(runs[i].epochs, 1);
        CHECK(runs[i].ns > 0);
        CHECK_EQUAL_INT(runs[i].steps, 15);
        CHECK_EQUAL_INT(runs[i].samples, 120); /* of 150 rows a fifth is held out */
    }
    CHECK(runs[0].loss < runs[1].loss || runs[0].loss > runs[1].loss); /* seeds differ */
    options.loss = 1e-12;
    options.limit_ns = 1;
    CHECK_OK(target_run_all(&options, runs));
    CHECK(!runs[0].reached && !runs[1].reached);
    options.device.threads = 2; /* which ref has not: never recorded as if it had */
    CHECK_STATUS(STATUS_UNSUPPORTED, target_run_all(&options, runs));
    network_free(small);
}

CHECK_MAIN
