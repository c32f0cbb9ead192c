/* How long a measurement is planned to take: what goes into it, what is learnt, what corrects it.
 */
#include "bench/sweep/pace.h"
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct pace_plan usual = {.seconds = 1, .patience = 20, .cores = 2};

static struct point point_of(const char *framework, const char *backend)
{
    struct point point;
    point_start(&point);
    snprintf(point.framework, sizeof point.framework, "%s", framework);
    snprintf(point.backend, sizeof point.backend, "%s", backend);
    return point;
}

TEST(the_time_that_is_given_is_most_of_it)
{
    const struct pace nothing = {0};
    const struct point point = point_of("prony", "simd");
    struct pace_plan plan = usual;
    double one = pace_group(&nothing, &plan, NULL, &point, 1);
    CHECK(one > 0.5 && one < 1.2);
    plan.seconds = 8;
    CHECK(pace_group(&nothing, &plan, NULL, &point, 1) > 3 * one);
    plan.counts = true;
    CHECK(pace_group(&nothing, &plan, NULL, &point, 1) >
          pace_group(&nothing, &usual, NULL, &point, 1));
}

/* Who takes turns goes on until the last is known. */
TEST(a_group_takes_longer_than_its_points)
{
    const struct pace nothing = {0};
    const struct point points[] = {point_of("prony", "simd"), point_of("prony", "ref")};
    double apart = pace_group(&nothing, &usual, NULL, &points[0], 1) +
                   pace_group(&nothing, &usual, NULL, &points[1], 1);
    CHECK(pace_group(&nothing, &usual, NULL, points, 2) > apart);
}

static bool is_ref(const void *context, const struct point *point)
{
    (void)context;
    return strcmp(point->backend, "ref") == 0;
}

TEST(what_does_not_run_takes_no_time)
{
    const struct pace nothing = {0};
    const struct point points[] = {point_of("prony", "simd"), point_of("prony", "ref")};
    struct pace_plan plan = usual;
    plan.runs = is_ref;
    CHECK(pace_group(&nothing, &plan, NULL, points, 1) == 0);
    CHECK(pace_group(&nothing, &plan, NULL, points, 2) ==
          pace_group(&nothing, &usual, NULL, &points[1], 1));
}

static void learn_iteration(struct pace *pace, const struct point *point, double start_s,
                            double spread, const char *server, double median_ns)
{
    char text[100];
    struct arena arena = {0};
    struct json *machine;
    struct record record;
    record_start(&record);
    record.point = *point;
    record.start_ns = start_s * 1e9;
    record.time_ns.median = median_ns;
    record.time_ns.ci_low = median_ns * (1 - spread / 100);
    record.time_ns.ci_high = median_ns * (1 + spread / 100);
    snprintf(text, sizeof text, "{\"server\":\"%s\"}", server);
    CHECK_OK(json_parse(&arena, "machine", text, strlen(text), &machine));
    record.machine = machine;
    pace_learn(pace, &record, "here");
    arena_free(&arena);
}

static void learn(struct pace *pace, const struct point *point, double start_s, double spread,
                  const char *server)
{
    learn_iteration(pace, point, start_s, spread, server, 100);
}

TEST(starts_are_learnt_from_this_machine)
{
    struct pace pace = {0};
    const struct point point = point_of("pytorch", "default");
    double before = pace_group(&pace, &usual, NULL, &point, 1);
    learn(&pace, &point, 90, 5, "elsewhere");
    CHECK(pace_group(&pace, &usual, NULL, &point, 1) == before);
    learn(&pace, &point, 30, 5, "here");
    learn(&pace, &point, 30, 5, "here");
    CHECK(pace_group(&pace, &usual, NULL, &point, 1) > before + 25);
}

TEST(a_steady_machine_needs_less_time)
{
    struct pace steady = {0}, noisy = {0};
    const struct point point = point_of("prony", "simd");
    for (int i = 0; i < 50; i++) {
        learn(&steady, &point, 0.1, 0.5, "here");
        learn(&noisy, &point, 0.1, 5, "here");
    }
    struct pace_plan plan = usual;
    plan.seconds = 3;
    CHECK(pace_group(&noisy, &plan, NULL, &point, 1) >
          3 * pace_group(&steady, &plan, NULL, &point, 1));
}

/* A list of Python that needs half a minute for an iteration is planned so the next time. */
TEST(iterations_are_learnt_from_this_machine)
{
    struct pace pace = {0};
    const struct point slow = point_of("python-list", "default"),
                       other = point_of("numpy", "default");
    const double before = pace_group(&pace, &usual, NULL, &slow, 1),
                 beside = pace_group(&pace, &usual, NULL, &other, 1);
    learn_iteration(&pace, &slow, 0.13, 5, "elsewhere", 30e9);
    CHECK(pace_group(&pace, &usual, NULL, &slow, 1) == before);
    learn_iteration(&pace, &slow, 0.13, 5, "here", 30e9);
    const double after = pace_group(&pace, &usual, NULL, &slow, 1);
    CHECK(before < 3 && after > 4 * 30 && after < 8 * 30);
    CHECK(fabs(pace_group(&pace, &usual, NULL, &other, 1) - beside) < 1);
}

/* Starts and checks take longer beside others, the given time does not. */
TEST(others_make_starts_and_checks_longer)
{
    const struct pace nothing = {0};
    const struct point point = point_of("pytorch", "default");
    struct pace_plan plan = usual;
    const double alone = pace_group(&nothing, &plan, NULL, &point, 1);
    plan.crowd = 1;
    CHECK(pace_group(&nothing, &plan, NULL, &point, 1) == alone);
    plan.crowd = 4;
    const double crowded = pace_group(&nothing, &plan, NULL, &point, 1);
    CHECK(crowded > alone + 2 * 2.5 && crowded < 4 * alone);
}

TEST(frameworks_beyond_the_room_are_not_learnt)
{
    struct pace pace = {0};
    for (int i = 0; i < 2 * PACE_KNOWN; i++) {
        char name[20];
        snprintf(name, sizeof name, "peer%d", i);
        const struct point point = point_of(name, "default");
        learn(&pace, &point, 1, 5, "here");
    }
    CHECK(pace.start_count == PACE_KNOWN && pace.rate_count == PACE_KNOWN);
}

TEST(what_was_taken_corrects_the_rest)
{
    CHECK(pace_correct(100, 0, 0) == 100);
    CHECK(pace_correct(100, 60, 120) > 180 && pace_correct(100, 60, 120) < 200);
    CHECK(pace_correct(100, 60, 30) < 60);
    CHECK(pace_correct(100, 0, 1) < 150); /* a second says little */
}

CHECK_MAIN
