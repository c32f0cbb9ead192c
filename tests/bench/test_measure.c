/* measure over jobs whose times are made up. */
#include "check.h"
#include "fake_job.h"

#include "base/memory.h"
#include "bench/meter/meters.h"
#include "record/stats.h"

#include <math.h>
#include <string.h>

TEST(steady_jobs_end_tight_and_keep_every_sample)
{
    struct fake a = fake('a', 1e7), b = fake('b', 2e7);
    struct timing list[2] = {{.job = &a.job}, {.job = &b.job}};
    if (!CHECK_OK(measure(&quick, list, 2)))
        return;
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL_INT(list[i].stop, MEASURE_TIGHT);
        CHECK_EQUAL_INT(list[i].per, 1);
        CHECK(list[i].steady);
        CHECK(list[i].count >= 6);
        CHECK_EQUAL_INT(list[i].count, list[0].count);
        for (size_t s = 0; s < list[i].count; s++)
            CHECK_NEAR(list[i].samples_ns[s], i ? 2e7 : 1e7, 1);
    }
    timing_free(&list[0]);
    timing_free(&list[1]);
}

TEST(rounds_go_forth_and_back)
{
    struct fake a = fake('a', 1e7), b = fake('b', 1e7), c = fake('c', 1e7);
    struct timing list[3] = {{.job = &a.job}, {.job = &b.job}, {.job = &c.job}};
    traced = 0;
    if (!CHECK_OK(measure(&quick, list, 3)))
        return;
    size_t samples = 6 * list[0].count;            /* one thrown away and one kept in each turn */
    const char *rounds = trace + traced - samples; /* before them: calibration and warm-up */
    for (size_t i = 0; i < samples; i++)
        CHECK_EQUAL_INT(rounds[i], "aabbccccbbaa"[i % 12]);
    CHECK_EQUAL_INT(list[0].turn_count, list[0].count);
    for (int i = 0; i < 3; i++)
        timing_free(&list[i]);
}

/* A probe has a tenth of the time, before rounds forth and before rounds back; whoever comes after
 * it throws its first sample away. */
TEST(probes_take_turns_with_what_is_timed)
{
    struct fake a = fake('a', 1e7), b = fake('b', 1e7), p = fake('p', 1);
    struct timing list[2] = {{.job = &a.job}, {.job = &b.job}};
    struct job *const probes[] = {&p.job};
    struct measure_options options = quick;
    options.target = 0; /* to the end of the time */
    options.limit_ns = 100000000;
    options.probes = probes;
    options.probe_count = 1;
    a.sleeps_ns = b.sleeps_ns = 2000000;
    p.sleeps_ns = 1000000;
    traced = 0;
    if (!CHECK_OK(measure(&options, list, 2)))
        return;
    const long before_a = probed_before('a'), before_b = probed_before('b');
    CHECK_EQUAL_INT(trace[traced - 1], 'p');
    CHECK(before_a >= 2 && before_b >= 2);
    CHECK(before_a - before_b <= 1 && before_b - before_a <= 1);
    CHECK(p.calls <= 2 + (long)(list[0].count + list[1].count) * 2 / PROBED_LEAST);
    timing_free(&list[0]);
    timing_free(&list[1]);
}

/* One contender alone is not interrupted by others, but by a probe it is. */
TEST(a_probe_costs_one_alone_a_sample)
{
    struct fake a = fake('a', 1e7), p = fake('p', 1);
    struct timing list[1] = {{.job = &a.job}};
    struct job *const probes[] = {&p.job};
    struct measure_options options = quick;
    options.probes = probes;
    options.probe_count = 1;
    traced = 0;
    p.fails_at = 2; /* which is its own business */
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    const char *first = memchr(trace, 'p', traced);
    if (CHECK(first != NULL)) {
        size_t rounds = 0, thrown = 0; /* a turn is one sample of 10 ms, or with a probe two */
        for (const char *at = first; at < trace + traced - 1; at++) {
            rounds += *at == 'a';
            thrown += *at == 'p';
        }
        CHECK_EQUAL_INT(rounds - thrown, list[0].count);
        CHECK(thrown >= 1);
    }
    CHECK_EQUAL_INT(list[0].stop, MEASURE_TIGHT);
    timing_free(&list[0]);
}

TEST(short_iterations_are_grouped)
{
    struct fake a = fake('a', 10);
    struct timing list[1] = {{.job = &a.job}};
    if (!CHECK_OK(measure(&quick, list, 1)))
        return;
    double group_ns = (double)list[0].per * 10;
    CHECK(group_ns >= 200.0 * (double)clock_cost_ns());
    CHECK(list[0].per > 1);
    CHECK_NEAR(list[0].samples_ns[0], 10, 0.01);
    timing_free(&list[0]);
}

TEST(the_price_of_a_call_is_spread_over_a_group)
{
    struct fake a = fake('a', 10000);
    a.call_ns = 20000;
    struct timing list[1] = {{.job = &a.job}};
    if (!CHECK_OK(measure(&quick, list, 1)))
        return;
    CHECK(list[0].per >= 64); /* 20 µs over 64 × 10 µs is 3 %; doubling gains 1.5 %, then less */
    CHECK(list[0].samples_ns[0] < 10000 * 1.03);
    timing_free(&list[0]);
}

/* What is waited for at the end of a sample only: a sample is as long, and has as many iterations,
 * as was asked for, or as the time has. */
TEST(what_runs_on_by_itself_is_timed_in_long_groups)
{
    const struct {
        double each_ns;
        uint64_t lasts_ns;
        int64_t together, least, most;
    } rows[] = {{1e5, 5000000, 0, 50, 50},
                {1e7, 5000000, 0, 1, 1},
                {1e6, 5000000, 16, 16, 16},
                {1e8, 0, 16, 1, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake a = fake('a', rows[i].each_ns);
        struct timing list[1] = {
            {.job = &a.job, .lasts_ns = rows[i].lasts_ns, .together = rows[i].together}};
        if (!CHECK_OK(measure(&quick, list, 1)))
            return;
        CHECK(list[0].per >= rows[i].least);
        CHECK(list[0].per <= rows[i].most);
        CHECK_NEAR(list[0].samples_ns[0], rows[i].each_ns, 1);
        timing_free(&list[0]);
    }
}

/* Waking a peer up takes time outside its own clock, which a sample must be ten times as long as.
 */
TEST(what_passes_outside_a_jobs_clock_is_spread_over_a_group)
{
    struct fake a = fake('a', 1000);
    a.sleeps_ns = 1000000;
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {.target = 0.01, .limit_ns = 60000000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK(list[0].per >= 512); /* within a call that takes a millisecond: of it nine tenths */
    timing_free(&list[0]);
}

/* Emptying the caches is not what is measured, however little time there is. */
TEST(what_passes_outside_is_no_sample)
{
    struct fake a = fake('a', 1000);
    a.sleeps_ns = 5000000;
    struct timing list[1] = {{.job = &a.job, .alone = true}};
    const struct measure_options options = {.target = 0.01, .limit_ns = 2000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK(list[0].count >= 1);
    for (size_t i = 0; i < list[0].count; i++)
        CHECK_NEAR(list[0].samples_ns[i], 1000, 1e-9);
    timing_free(&list[0]);
}

/* A peer warms up by an iteration of its own: where that is long it would be ten to a group. */
TEST(long_iterations_are_not_grouped_for_what_passes_outside)
{
    struct fake a = fake('a', 6000000);
    a.sleeps_ns = 6000000;
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {.target = 0.01, .limit_ns = 1000000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK(list[0].per <= 2);
    timing_free(&list[0]);
}

/* A single look is not enough for the interval to be as narrow as was asked for. */
TEST(the_interval_is_within_the_target_when_it_stops)
{
    const double targets[] = {0.05, 0.01};
    for (int i = 0; i < 2; i++) {
        struct fake a = fake('a', 1e7);
        a.spread = 0.2;
        struct timing list[1] = {{.job = &a.job}};
        const struct measure_options options = {.target = targets[i], .limit_ns = 60000000000};
        struct stats stats;
        if (!CHECK_OK(measure(&options, list, 1)) ||
            !CHECK_OK(stats_compute(list[0].samples_ns, list[0].count, 1, &stats)))
            return;
        CHECK_EQUAL_INT(list[0].stop, MEASURE_TIGHT);
        CHECK((stats.ci_high - stats.ci_low) / 2 <= targets[i] * stats.median);
        CHECK(stats.count > 6);
        timing_free(&list[0]);
    }
}

TEST(noise_runs_until_the_time_is_up)
{
    struct fake a = fake('a', 1e7);
    a.spread = 0.8;
    a.sleeps_ns = 1000000;
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {.target = 0.0001, .limit_ns = 500000000};
    uint64_t start_ns = clock_ns();
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK_EQUAL_INT(list[0].stop, MEASURE_TIME);
    CHECK(clock_ns() - start_ns < 20000000000);
    CHECK(list[0].count > 6);
    timing_free(&list[0]);
}

TEST(what_outruns_its_time_is_measured_once)
{
    struct fake a = fake('a', 6e7);
    a.sleeps_ns = 60000000;
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {.target = 0.01, .limit_ns = 20000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK_EQUAL_INT(a.calls, 2); /* one to warm up */
    CHECK_EQUAL_INT(list[0].count, 1);
    CHECK_EQUAL_INT(list[0].stop, MEASURE_TIME);
    CHECK_NEAR(list[0].samples_ns[0], 6e7, 1);
    /* what it used is metered, and not what was used to warm up */
    CHECK_NEAR(list[0].meters.wall_ns, 6e7, 3e7);
    timing_free(&list[0]);
}

/* Code is loaded, or compiled, by the first iteration: whether it was run before or is run here, it
 * is not what an iteration takes. */
TEST(a_first_iteration_is_no_sample)
{
    for (int before = 0; before < 2; before++) {
        struct fake a = fake('a', 1e6);
        a.stalls_at = before ? 0 : 1;
        a.sleeps_ns = before ? 0 : 600000000;
        struct timing list[1] = {{.job = &a.job, .first_ns = before ? 601000000 : 0}};
        if (!CHECK_OK(measure(&quick, list, 1)))
            return;
        CHECK(list[0].count >= 6);
        CHECK_NEAR(list[0].samples_ns[0], 1e6, 1);
        CHECK_EQUAL_INT(list[0].stop, MEASURE_TIGHT);
        timing_free(&list[0]);
    }
}

/* One of which only two fit into the time has as many samples as an interval needs. */
TEST(what_does_not_outrun_its_time_has_an_interval)
{
    struct fake a = fake('a', 6e7);
    a.sleeps_ns = 60000000;
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {.target = 0.01, .limit_ns = 100000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    struct stats stats;
    CHECK_EQUAL_INT(list[0].count, 6);
    CHECK_OK(stats_compute(list[0].samples_ns, list[0].count, 1, &stats));
    CHECK(!isnan(stats.ci_low));
    timing_free(&list[0]);
}

TEST(a_warm_iteration_known_to_be_too_long_is_not_run_again)
{
    struct fake a = fake('a', 6e7);
    struct timing list[1] = {{.job = &a.job,
                              .first_ns = 600000000,
                              .first_meters = {.wall_ns = 600000001, .page_faults = 7},
                              .warm = true}};
    if (!CHECK_OK(measure(&quick, list, 1)))
        return;
    CHECK_EQUAL_INT(a.calls, 0);
    CHECK_EQUAL_INT(list[0].count, 1);
    CHECK_EQUAL_INT(list[0].per, 1);
    CHECK_NEAR(list[0].samples_ns[0], 6e8, 1);
    CHECK_EQUAL_INT(list[0].meters.wall_ns, 600000001);
    CHECK_EQUAL_INT(list[0].meters.page_faults, 7);
    timing_free(&list[0]);
}

TEST(a_stall_that_eats_the_time_leaves_samples)
{
    struct fake a = fake('a', 2e6);
    a.stalls_at = 5; /* the first call, then three to calibrate: the first of the warm-up */
    a.sleeps_ns = 30000000;
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {.target = 0.01, .limit_ns = 20000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK_EQUAL_INT(list[0].count, 6);
    timing_free(&list[0]);
}

/* What it takes to find out is not the length of a sample. */
TEST(a_stall_in_calibration_does_not_make_it_outrun_its_time)
{
    struct fake a = fake('a', 2e6);
    a.stalls_at = 4;
    a.sleeps_ns = 30000000;
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {.target = 0.01, .limit_ns = 20000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK_EQUAL_INT(list[0].count, 6);
    CHECK_NEAR(list[0].samples_ns[0], 2e6, 1);
    timing_free(&list[0]);
}

/* A fake of which no time passes is as tight as can be after the first look. */
TEST(what_is_tight_is_timed_for_the_least_time)
{
    struct fake a = fake('a', 1e6);
    a.sleeps_ns = 1000000;
    struct timing list[1] = {{.job = &a.job}};
    struct measure_options options = {
        .target = 0.5, .limit_ns = 60000000000, .least_ns = 300000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK_EQUAL_INT(list[0].stop, MEASURE_TIGHT);
    CHECK(list[0].spent_ns - list[0].warm_ns >= options.least_ns);
    timing_free(&list[0]);
    CHECK_EQUAL_INT((long long)measure_usual_least(3000000000), 500000000);
    CHECK_EQUAL_INT((long long)measure_usual_least(100000000), 50000000);
}

TEST(a_stall_in_calibration_is_no_reason_to_refuse)
{
    struct fake a = fake('a', 10); /* needs groups; a call leaves no time to find them */
    a.stalls_at = 2;
    a.sleeps_ns = 15000000;
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {.target = 0.01, .limit_ns = 40000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK(list[0].stop != MEASURE_FAILED);
    if (CHECK(list[0].count > 0))
        CHECK_NEAR(list[0].samples_ns[0], 10, 0.01);
    CHECK((uint64_t)list[0].per * 10 >= 200 * clock_cost_ns());
    timing_free(&list[0]);
}

/* As when another process held the device: it was quick before, so it is not taken to be slow. */
TEST(a_long_stall_in_calibration_leaves_the_groups)
{
    struct fake a = fake('a', 1000);
    a.call_ns = 100000;
    a.stalls_at = 1;
    a.sleeps_ns = 60000000;
    struct timing list[1] = {{.job = &a.job, .first_ns = 101000}};
    const struct measure_options options = {.target = 0.01, .limit_ns = 200000000};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK(list[0].per >= 1000); /* a call costs as much as 100 iterations */
    timing_free(&list[0]);
}

TEST(a_failing_job_does_not_stop_the_others)
{
    struct fake a = fake('a', 1e7), b = fake('b', 1e7);
    b.fails_at = 7;
    struct timing list[2] = {{.job = &a.job}, {.job = &b.job}};
    if (!CHECK_OK(measure(&quick, list, 2)))
        return;
    CHECK_EQUAL_INT(list[0].stop, MEASURE_TIGHT);
    CHECK_EQUAL_INT(list[1].stop, MEASURE_FAILED);
    CHECK_EQUAL_INT(list[1].status, STATUS_DEVICE);
    CHECK_EQUAL_TEXT(list[1].message, "it broke at call 7");
    timing_free(&list[0]);
    timing_free(&list[1]);
}

TEST(a_job_that_takes_no_time_is_refused)
{
    struct fake a = fake('a', 0);
    struct timing list[1] = {{.job = &a.job}};
    if (!CHECK_OK(measure(&quick, list, 1)))
        return;
    CHECK_EQUAL_INT(list[0].stop, MEASURE_FAILED);
    CHECK(strstr(list[0].message, "nothing is being measured") != NULL);
}

/* As on a machine that was busy elsewhere during all of the first call. */
TEST(a_job_is_measured_though_its_time_is_up_at_once)
{
    struct fake a = fake('a', 2000);
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {.target = 0.05, .limit_ns = 1};
    if (!CHECK_OK(measure(&options, list, 1)))
        return;
    CHECK_EQUAL_INT(list[0].stop, MEASURE_TIME);
    CHECK_EQUAL_INT(list[0].count, 1);
    timing_free(&list[0]);
}

static int asked;
static bool stops_soon(void)
{
    return ++asked > 20;
}

TEST(an_interrupted_run_says_so)
{
    struct fake a = fake('a', 1e7);
    a.spread = 0.8;
    struct timing list[1] = {{.job = &a.job}};
    const struct measure_options options = {
        .target = 0.0001, .limit_ns = 10000000000, .stopped = stops_soon};
    CHECK_STATUS(STATUS_INTERRUPTED, measure(&options, list, 1));
    timing_free(&list[0]);
}

static bool stops_at_once(void)
{
    return true;
}

TEST(an_interrupted_warm_up_leaves_the_others_untouched)
{
    struct fake a = fake('a', 1e7), b = fake('b', 1e7);
    struct timing list[2] = {{.job = &a.job}, {.job = &b.job}};
    const struct measure_options options = {
        .target = 0.05, .limit_ns = 10000000000, .stopped = stops_at_once};
    CHECK_STATUS(STATUS_INTERRUPTED, measure(&options, list, 2));
    CHECK_EQUAL_INT(list[0].count, 0);
    CHECK_EQUAL_INT(list[1].per, 0);
    CHECK(list[1].stop != MEASURE_FAILED);
}

TEST(every_failed_allocation_is_survived)
{
    bool failed = true;
    for (long nth = 1; failed && nth < 1000; nth++) {
        struct fake a = fake('a', 1e7);
        struct timing list[1] = {{.job = &a.job}};
        memory_fail_at(nth);
        CHECK_OK(measure(&quick, list, 1));
        failed = memory_failed();
        memory_fail_at(0);
        if (failed)
            CHECK_EQUAL_INT(list[0].status, STATUS_MEMORY);
        timing_free(&list[0]);
    }
    CHECK(!failed);
}

/* Per cent of the time, bytes, and events a second. */
TEST(meters_have_their_units)
{
    enum { BYTES = 64 << 20 };
    const struct meters meters = {
        .wall_ns = 2000000000, .cpu_ns = 1000000000, .page_faults = 10, .context_switches = 4};
    const struct family ours = {.count = 0};
    struct record_meter before[METERS_COUNT], rows[METERS_COUNT];
    meters_report(&meters, &ours, before);
    char *touched = mem_array(BYTES, 1);
    if (!CHECK(touched != NULL))
        return;
    memset(touched, 1, BYTES);
    meters_report(&meters, &ours, rows);
    mem_free(touched);
    CHECK_NEAR(rows[0].value, 50, 1e-9);
    CHECK(rows[1].value - before[1].value > 0.99 * BYTES);
    CHECK_NEAR(rows[2].value, 5, 1e-9);
    CHECK_NEAR(rows[3].value, 2, 1e-9);
}

CHECK_MAIN
