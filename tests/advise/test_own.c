/* Advice on our own networks, from results with one thing changed. */
#include "check.h"

#include "advise/own.h"

#include <math.h>
#include <string.h>

/* A result of so many samples a second; half its interval is a share of its time. */
static struct record result(double throughput, double half)
{
    struct record record;
    record_start(&record);
    record.throughput = throughput;
    record.time_ns.median = 1e9 / throughput;
    record.time_ns.ci_low = record.time_ns.median * (1 - half);
    record.time_ns.ci_high = record.time_ns.median * (1 + half);
    return record;
}

static struct own_trial trial(enum rule_key rule, const char *value, const struct record *base,
                              const struct record *changed)
{
    struct own_trial trial = {.rule = rule, .value = value, .base = base, .changed = changed};
    own_weigh(&trial);
    return trial;
}

TEST(takes_the_largest_gain)
{
    const struct record base = result(1000, 0.01), two = result(1600, 0.01),
                        blas = result(1200, 0.01);
    const struct own_trial trials[] = {trial(RULE_own_backend, "blas", &base, &blas),
                                       trial(RULE_own_threads, "2", &base, &two)};
    struct advice advice;
    advice_begin(NULL, &advice);
    const struct own_trial *taken;
    CHECK_NEAR(trials[1].gain, 1.6, 1e-9);
    if (!CHECK_OK(own_take(trials, 2, &advice, &taken)) || !CHECK(taken == &trials[1]))
        return;
    CHECK_EQUAL_TEXT(advice.findings[0].rule->id, "N1");
    CHECK(advice.findings[0].low < 1.6 && advice.findings[0].high > 1.6);
    CHECK(strncmp(advice.findings[0].evidence, "--threads 2: ", 13) == 0);
    CHECK_NEAR(advice.together, 1.6, 1e-9);
    advice_free(&advice);
}

/* Gains below 5 %, or within twice their noise, of results that are wrong or could not run. */
static void check_silence(double gain, double half, enum record_status status,
                          enum record_verdict verdict)
{
    const struct record base = result(1000, half);
    struct record changed = result(1000 * gain, half);
    changed.status = status;
    changed.check.verdict = verdict;
    const struct own_trial trials[] = {trial(RULE_own_smaller, "bf16", &base, &changed)};
    struct advice advice;
    advice_begin(NULL, &advice);
    const struct own_trial *taken = trials;
    CHECK_OK(own_take(trials, 1, &advice, &taken));
    CHECK(!taken && advice.count == 0);
    advice_free(&advice);
}

TEST(says_nothing_of_what_is_not_worth_it)
{
    check_silence(1.04, 0.001, RECORD_OK, RECORD_RIGHT);
    check_silence(1.3, 0.1, RECORD_OK, RECORD_RIGHT); /* twice 20 % */
    check_silence(3, 0.01, RECORD_OK, RECORD_WRONG);
    check_silence(3, 0.01, RECORD_SKIPPED, RECORD_UNCHECKED);
    check_silence(3, (double)NAN, RECORD_OK, RECORD_RIGHT);
}

TEST(says_what_the_noise_hides)
{
    const struct record base = result(1000, 0.1), changed = result(1300, 0.1);
    const struct own_trial trials[] = {trial(RULE_own_batch, "64", &base, &changed)};
    struct advice advice;
    advice_begin(NULL, &advice);
    const struct own_trial *taken;
    CHECK_OK(own_take(trials, 1, &advice, &taken));
    CHECK_NEAR(advice.spread, 0.2, 1e-9);
    advice_free(&advice);
}

TEST(says_what_bounds_it)
{
    struct record record = result(1000, 0.01);
    struct advice advice;
    advice_begin(NULL, &advice);
    record.bound = "bytes";
    record.times_floor = 2;
    if (CHECK_OK(own_bound(&record, &advice)))
        CHECK_EQUAL_TEXT(advice.bound, "memory bounds it: 50 % of that limit is reached");
    record.bound = NULL;
    if (CHECK_OK(own_bound(&record, &advice)))
        CHECK_EQUAL_TEXT(advice.bound, "its limit is not known");
    advice_free(&advice);
}

TEST(each_rule_changes_an_axis)
{
    for (int rule = 0; rule < RULES; rule++) {
        CHECK((rules[rule].axis != NULL) == (rule >= RULES_OF_TRACES));
        CHECK(!rules[rule].axis || axis_find(rules[rule].axis));
        for (int other = 0; other < rule; other++)
            CHECK(strcmp(rules[rule].id, rules[other].id) != 0);
    }
}

CHECK_MAIN
