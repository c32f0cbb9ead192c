/* Statistics on samples whose answers are known. */
#include "base/memory.h"
#include "base/rng.h"
#include "check.h"
#include "record/stats.h"

#include <math.h>

enum { MANY = 4800 };
static double samples[MANY];

static struct stats compute(size_t count, int64_t per)
{
    struct stats stats = stats_nothing();
    CHECK_OK(stats_compute(samples, count, per, &stats));
    return stats;
}

TEST(counts_that_percentiles_need)
{
    CHECK_EQUAL_INT(stats_needed(0.99, 0.99), 662);
    CHECK_EQUAL_INT(stats_needed(0.90, 0.99), 64);
    CHECK_EQUAL_INT(stats_needed(0.50, 0.99), 11);
    CHECK_EQUAL_INT(stats_needed(0.50, 0.5), 3); /* none or one beyond: 1/8 + 3/8 */
}

TEST(known_answers)
{
    for (int i = 0; i < 1000; i++) /* 1 … 1000, out of order: 7 and 1000 have no common factor */
        samples[i] = (double)(i * 7 % 1000 + 1);
    struct stats stats = compute(1000, 1);
    CHECK_EQUAL_INT(stats.count, 1000);
    CHECK_EQUAL_INT(stats.per, 1);
    CHECK_NEAR(stats.min, 1, 0);
    CHECK_NEAR(stats.median, 500.5, 0);
    CHECK_NEAR(stats.mean, 500.5, 1e-9);
    CHECK_NEAR(stats.p90, 900, 0);
    CHECK_NEAR(stats.p99, 990, 0);
    CHECK(stats.ci_low <= 500.5 && stats.ci_high >= 500.5);
}

TEST(few_samples_say_little)
{
    for (int i = 0; i < 662; i++)
        samples[i] = i + 1;
    CHECK_EQUAL_INT(compute(0, 1).count, 0);
    CHECK(isnan(compute(0, 1).median));
    CHECK_NEAR(compute(1, 1).median, 1, 0);
    CHECK_NEAR(compute(2, 1).median, 1.5, 0);
    CHECK(isnan(compute(5, 1).ci_low) && isnan(compute(5, 1).ci_high)); /* 2/32 > 5 % */
    CHECK_NEAR(compute(6, 1).ci_low, 1, 0);                             /* 2/64 < 5 % */
    CHECK_NEAR(compute(6, 1).ci_high, 6, 0);
    CHECK_NEAR(compute(20, 1).ci_low, 6, 0); /* the 6th and 15th of 20: from any table */
    CHECK_NEAR(compute(20, 1).ci_high, 15, 0);
    CHECK(isnan(compute(63, 1).p90));
    CHECK_NEAR(compute(64, 1).p90, 58, 0);
    CHECK(isnan(compute(661, 1).p99));
    CHECK_NEAR(compute(662, 1).p99, 656, 0);
}

TEST(groups_have_no_percentiles)
{
    for (int i = 0; i < 1000; i++)
        samples[i] = i;
    struct stats stats = compute(1000, 10);
    CHECK(isnan(stats.p90) && isnan(stats.p99));
    CHECK_NEAR(stats.median, 499.5, 0);
    CHECK_EQUAL_INT(stats.per, 10);
}

/* One second in a hundred milliseconds: the mean moves, the median and its interval do not. */
TEST(heavy_tail_leaves_the_median)
{
    for (int i = 0; i < MANY; i++)
        samples[i] = i % 97 == 0 ? 1e9 : 100 + i % 5;
    struct stats stats = compute(MANY, 1);
    CHECK_NEAR(stats.median, 102, 0);
    CHECK(stats.ci_low >= 101 && stats.ci_high <= 103);
    CHECK(stats.mean > 1e6);
    CHECK_NEAR(stats.p99, 1e9, 0);
    CHECK_NEAR(stats.p90, 104, 0);
}

/* Half the run at 100, half at 200: no narrow interval may come out of that. */
TEST(interval_spans_a_drift)
{
    for (int i = 0; i < MANY; i++)
        samples[i] = i < MANY / 2 ? 100 : 200;
    struct stats stats = compute(MANY, 1);
    CHECK_NEAR(stats.ci_low, 100, 0);
    CHECK_NEAR(stats.ci_high, 200, 0);
}

/* Times that are all alike say how coarse the clock is, not that the median is exact. */
TEST(interval_is_no_narrower_than_the_instrument)
{
    for (int i = 0; i < MANY; i++)
        samples[i] = 1000;
    CHECK_NEAR(compute(MANY, 1).ci_low, 997.5, 1e-9);
    CHECK_NEAR(compute(20, 1).ci_high, 1002.5, 1e-9);
    CHECK(isnan(compute(5, 1).ci_low));
}

/* Of 400 runs with a known median: how many of the intervals hold it. */
static double coverage(void (*fill)(struct rng_key key, uint32_t count), uint32_t count,
                       double median)
{
    enum { SETS = 400 };
    int held = 0;
    for (uint64_t set = 0; set < SETS; set++) {
        fill((struct rng_key){.seed = 11, .stream = 0, .step = set}, count);
        struct stats stats = compute(count, 1);
        held += stats.ci_low <= median && stats.ci_high >= median;
    }
    return (double)held / SETS;
}

static void fill_skewed(struct rng_key key, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        samples[i] = exp((double)rng_normal(key, 0, i)); /* median 1 */
}

TEST(interval_covers_as_often_as_it_says)
{
    CHECK(coverage(fill_skewed, 30, 1) >= 0.93); /* by ranks */
    CHECK(coverage(fill_skewed, 480, 1) >= 0.93);
}

/* Around 1, on a way that forgets where it was after a tenth of the run. */
static void fill_drifting(struct rng_key key, uint32_t count)
{
    const double keeps = exp(-10.0 / count), moves = sqrt(1 - keeps * keeps);
    double at = (double)rng_normal(key, 1, 0);
    for (uint32_t i = 0; i < count; i++) {
        at = keeps * at + moves * (double)rng_normal(key, 2, i);
        samples[i] = exp(0.02 * at + 0.005 * (double)rng_normal(key, 3, i));
    }
}

/* At 1 for two thirds of the time, at 1.1 for the rest, for a twentieth of the run each on average:
 * a neighbour on the host comes and goes. */
static void fill_disturbed(struct rng_key key, uint32_t count)
{
    bool slow = rng_uniform(key, 0, 0) < 1.0f / 3;
    for (uint32_t i = 0; i < count; i++) {
        if (rng_uniform(key, 1, i) < (slow ? 30.0f : 15.0f) / (float)count)
            slow = !slow;
        samples[i] = (slow ? 1.1 : 1) + 0.005 * (double)rng_normal(key, 2, i);
    }
}

TEST(interval_covers_a_slow_drift)
{
    CHECK(coverage(fill_drifting, 1200, 1) >= 0.9);
    CHECK(coverage(fill_disturbed, 1200, 1.00337) >= 0.9);
}

/* The normal distribution takes over beyond 500: there is no step, and each confidence has its own.
 */
TEST(intervals_of_many_are_those_of_few)
{
    double width[3], median, low, high;
    const double confidences[] = {0.95, 0.99, 0.999};
    for (int c = 0; c < 3; c++) {
        for (int count = 500; count <= 502; count += 2) {
            for (int i = 0; i < count; i++)
                samples[i] = i;
            stats_median(samples, (size_t)count, confidences[c], &median, &low, &high);
            CHECK_NEAR(median, 0.5 * (count - 1), 0);
            CHECK_NEAR(low + high, count - 1, 0);
            if (count == 500)
                width[c] = high - low;
            else
                CHECK_NEAR(high - low, width[c], 3);
        }
    }
    CHECK(width[0] < width[1] && width[1] < width[2]);
}

TEST(a_quantile_is_a_value_that_was_there)
{
    const double values[] = {30, 10, 20};
    CHECK_NEAR(stats_quantile(values, 3, 0), 10, 0);
    CHECK_NEAR(stats_quantile(values, 3, 0.5), 20, 0);
    CHECK_NEAR(stats_quantile(values, 3, 0.7), 30, 0);
    CHECK_NEAR(stats_quantile(values, 3, 1), 30, 0);
    CHECK(isnan(stats_quantile(values, 0, 0.5)));
}

TEST(thinning_keeps_the_order_and_the_ends)
{
    double kept[64];
    for (int i = 0; i < MANY; i++)
        samples[i] = i;
    CHECK_EQUAL_INT(stats_thin(samples, 10, kept, 64), 10);
    CHECK_NEAR(kept[9], 9, 0);
    CHECK_EQUAL_INT(stats_thin(samples, MANY, kept, 64), 64);
    CHECK_NEAR(kept[0], 0, 0);
    for (int i = 1; i < 64; i++)
        CHECK(kept[i] > kept[i - 1]);
    CHECK(kept[63] >= MANY - MANY / 64);
}

TEST(refuses_what_is_not_a_number)
{
    struct stats stats;
    samples[0] = 1;
    samples[1] = NAN;
    CHECK_STATUS(STATUS_INPUT, stats_compute(samples, 2, 1, &stats));
    CHECK_MESSAGE("sample 2");
}

TEST(memory_out_is_said)
{
    struct stats stats;
    samples[0] = 1;
    memory_fail_at(1);
    CHECK_STATUS(STATUS_MEMORY, stats_compute(samples, 1, 1, &stats));
    memory_fail_at(0);
}

CHECK_MAIN
