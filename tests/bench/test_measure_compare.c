/* measure, when contenders are compared: rounds, instances, who is first, what ends it. */
#include "check.h"
#include "fake_job.h"

#include <string.h>

TEST(a_comparison_stops_when_the_ratio_is_known)
{
    struct fake a = fake('a', 1.2e7), b = fake('b', 1e7);
    a.spread = b.spread = 0.02;
    struct timing list[2] = {{.job = &a.job}, {.job = &b.job}};
    struct measure_options options = quick;
    struct comparison found;
    options.compare = true;
    options.margin = COMPARE_MARGIN;
    if (!CHECK_OK(measure(&options, list, 2)))
        return;
    CHECK_OK(measure_compare(&options, &list[0], &list[1], &found));
    CHECK_EQUAL_INT(found.verdict, VERDICT_SLOWER);
    CHECK_NEAR(found.ratio, 1.2, 0.03);
    CHECK(found.rounds >= 8);
    timing_free(&list[0]);
    timing_free(&list[1]);
}

/* Long enough not to be held up by what passes outside, short enough to slip between what disturbs;
 * and both alike. */
TEST(samples_that_are_compared_are_short_and_equally_long)
{
    struct fake a = fake('a', 1000), b = fake('b', 3000);
    a.sleeps_ns = b.sleeps_ns = 5000000;
    struct timing list[2] = {{.job = &a.job}, {.job = &b.job}};
    struct measure_options options = {
        .target = 0.01, .limit_ns = 60000000000, .compare = true, .margin = COMPARE_MARGIN};
    if (!CHECK_OK(measure(&options, list, 2)))
        return;
    CHECK_NEAR((double)list[0].per / (double)list[1].per, 3, 0.01);
    CHECK(list[0].per * 1000 <= 3500000); /* not compared, they would be 5 ms */
    CHECK(list[0].per * 1000 >= 900000);
    timing_free(&list[0]);
    timing_free(&list[1]);
}

static enum status fake_renew(struct job *job, int *process)
{
    struct fake *fake = (struct fake *)job;
    (void)process;
    fake->renewals++;
    if (traced < TRACE_MOST)
        trace[traced++] = (char)(fake->name - 'a' + 'A');
    if (fake->renewals == fake->dies_at)
        FAIL(STATUS_DEVICE, "it did not start again");
    return STATUS_OK;
}

static const struct job_kind renewable = {.name = "fake", .run = fake_run, .renew = fake_renew};

/* Both are started afresh, together, at even rounds, and the ratio is not believed before. */
TEST(a_comparison_takes_several_instances)
{
    struct fake a = fake('a', 1e6), b = fake('b', 1e6);
    a.job.kind = b.job.kind = &renewable;
    a.sleeps_ns = b.sleeps_ns = 1000000;
    struct timing list[2] = {{.job = &a.job, .start_ns = 1}, {.job = &b.job, .start_ns = 1}};
    struct measure_options options = quick;
    options.limit_ns = 2000000000; /* enough on a busy machine too */
    options.compare = true;
    options.margin = COMPARE_MARGIN;
    if (!CHECK_OK(measure(&options, list, 2)))
        return;
    CHECK(a.renewals >= COMPARE_INSTANCES - 1);
    CHECK_EQUAL_INT(a.renewals, b.renewals);
    CHECK_EQUAL_INT(list[0].instances, a.renewals + 1);
    for (size_t i = 0; i < list[0].instances; i++) {
        CHECK_EQUAL_INT(list[0].begins[i], list[1].begins[i]);
        CHECK_EQUAL_INT(list[0].begins[i] % 2, 0);
    }
    timing_free(&list[0]);
    timing_free(&list[1]);
}

/* Every other time the other one is started first, and has the first turn. */
TEST(being_first_is_shared)
{
    struct fake a = fake('a', 6e6), b = fake('b', 6e6); /* three samples a turn */
    a.job.kind = b.job.kind = &renewable;
    a.sleeps_ns = b.sleeps_ns = 1000000;
    a.spread = b.spread = 0.3;
    struct timing list[2] = {{.job = &a.job, .start_ns = 1}, {.job = &b.job, .start_ns = 1}};
    struct measure_options options = quick;
    options.limit_ns = 1000000000;
    options.compare = true;
    traced = 0;
    if (!CHECK_OK(measure(&options, list, 2)))
        return;
    long seen = 0;
    for (size_t i = 0; i + 12 < traced && traced < TRACE_MOST; i++)
        if (trace[i] == 'A' || trace[i] == 'B') {
            const char *expected = seen++ % 2 ? "AaaaBbbbaaaa" : "BbbbAaaabbbb";
            CHECK(memcmp(trace + i, expected, 12) == 0);
            i += 12;
        }
    CHECK(seen >= 2);
    timing_free(&list[0]);
    timing_free(&list[1]);
}

/* … whoever begins a round: the other one does in every other instance. */
TEST(probes_take_turns_with_every_instance)
{
    struct fake a = fake('a', 6e6), b = fake('b', 6e6), p = fake('p', 1);
    a.job.kind = b.job.kind = &renewable;
    a.sleeps_ns = b.sleeps_ns = 1000000;
    a.spread = b.spread = 0.3;
    p.sleeps_ns = 6400000; /* about one of them in the time of an instance */
    struct timing list[2] = {{.job = &a.job, .start_ns = 1}, {.job = &b.job, .start_ns = 1}};
    struct job *const probes[] = {&p.job};
    struct measure_options options = quick;
    options.limit_ns = 1000000000;
    options.compare = true;
    options.probes = probes;
    options.probe_count = 1;
    traced = 0;
    if (!CHECK_OK(measure(&options, list, 2)))
        return;
    const long before_a = probed_before('a'), before_b = probed_before('b');
    CHECK(a.renewals >= 2);
    CHECK(before_a >= 2 && before_b >= 2);
    CHECK(before_a - before_b <= 1 && before_b - before_a <= 1);
    timing_free(&list[0]);
    timing_free(&list[1]);
}

TEST(what_takes_long_to_start_is_started_once)
{
    struct fake a = fake('a', 1e7), b = fake('b', 1e7);
    a.job.kind = b.job.kind = &renewable;
    struct timing list[2] = {{.job = &a.job, .start_ns = 1},
                             {.job = &b.job, .start_ns = 400000000}};
    struct measure_options options = quick;
    options.compare = true;
    options.margin = COMPARE_MARGIN;
    CHECK_OK(measure(&options, list, 2));
    CHECK_EQUAL_INT(a.renewals + b.renewals, 0);
    CHECK_EQUAL_INT(list[0].stop, MEASURE_TIGHT);
    timing_free(&list[0]);
    timing_free(&list[1]);
}

TEST(what_does_not_start_again_has_failed)
{
    struct fake a = fake('a', 1e6), b = fake('b', 1e6);
    a.job.kind = b.job.kind = &renewable;
    a.sleeps_ns = b.sleeps_ns = 1000000;
    b.dies_at = 2;
    struct timing list[2] = {{.job = &a.job, .start_ns = 1}, {.job = &b.job, .start_ns = 1}};
    struct measure_options options = quick;
    options.compare = true;
    CHECK_OK(measure(&options, list, 2));
    CHECK_EQUAL_INT(list[1].stop, MEASURE_FAILED);
    CHECK_EQUAL_TEXT(list[1].message, "it did not start again");
    CHECK(list[0].stop != MEASURE_FAILED);
    timing_free(&list[0]);
    timing_free(&list[1]);
}

TEST(a_comparison_ends_when_one_fails)
{
    struct fake a = fake('a', 1e7), b = fake('b', 1e7);
    b.fails_at = 20;
    a.spread = 0.9;
    struct timing list[2] = {{.job = &a.job}, {.job = &b.job}};
    struct measure_options options = quick;
    options.compare = true;
    CHECK_OK(measure(&options, list, 2));
    CHECK_EQUAL_INT(list[1].stop, MEASURE_FAILED);
    CHECK(a.calls < 100);
    timing_free(&list[0]);
    timing_free(&list[1]);
}

CHECK_MAIN
