/* Comparisons of made-up times whose answer is known: with long tails, two humps, drift. */
#include "check.h"

#include "base/memory.h"
#include "base/rng.h"
#include "record/compare.h"
#include "record/record.h"

#include <math.h>

enum { ROUNDS = 80, TRIALS = 200, NUMBERS = 16, TURNS_MOST = 2000 };

/* Noise that is never good: a time is 1 and something on top. */
typedef double noise(struct rng_key key, uint32_t round, uint32_t who);

static double uniform(struct rng_key key, uint32_t round, uint32_t number)
{
    return (double)rng_uniform(key, round, number);
}

/* Pareto: now and then many times as long. */
static double long_tail(struct rng_key key, uint32_t round, uint32_t who)
{
    return 1 + 0.01 * (pow(1 - uniform(key, round, who), -0.7) - 1);
}

/* Two states of the machine, 8 % apart, that change for each anew. */
static double two_humps(struct rng_key key, uint32_t round, uint32_t who)
{
    double which = uniform(key, round, who) < 0.3 ? 1.08 : 1;
    return which * (1 + 0.01 * uniform(key, round, who + NUMBERS));
}

/* The machine becomes half as fast while it is measured; both suffer alike. */
static double drift(struct rng_key key, uint32_t round, uint32_t who)
{
    return (1 + (double)round / ROUNDS) * (1 + 0.02 * uniform(key, round, who));
}

static const size_t begins_once[] = {0};

/* Compares when each turn has one sample. */
static struct comparison compare(const double *a, const double *b, size_t turns,
                                 const size_t *begins, size_t instances)
{
    size_t starts[TURNS_MOST];
    struct comparison found;
    for (size_t i = 0; i < turns; i++)
        starts[i] = i;
    const struct turns of_a = {a, turns, starts, turns}, of_b = {b, turns, starts, turns};
    CHECK_OK(compare_turns(&of_a, &of_b, begins, instances, COMPARE_MARGIN, &found));
    return found;
}

/* … and each round an instance. */
static struct comparison compare_rounds(const double *a, const double *b, size_t turns)
{
    size_t begins[ROUNDS];
    for (size_t i = 0; i < turns / 2; i++)
        begins[i] = 2 * i;
    return compare(a, b, turns, begins, turns / 2);
}

/* One comparison in which the first takes `factor` times as long as the second. */
static enum verdict once(noise *of, double factor, uint32_t seed)
{
    const struct rng_key key = {.seed = seed, .stream = 1};
    double a[ROUNDS], b[ROUNDS];
    for (uint32_t i = 0; i < ROUNDS; i++) {
        a[i] = factor * of(key, i, 0);
        b[i] = of(key, i, 1);
    }
    struct comparison found = compare_rounds(a, b, ROUNDS);
    CHECK_EQUAL_INT(found.rounds, ROUNDS / 2);
    CHECK(found.low <= found.ratio && found.ratio <= found.high);
    return found.verdict;
}

static void try_noise(noise *of)
{
    int wrong = 0, found = 0, backwards = 0;
    for (uint32_t i = 0; i < TRIALS; i++) {
        enum verdict same = once(of, 1, i), slower = once(of, 1.05, TRIALS + i);
        wrong += same == VERDICT_FASTER || same == VERDICT_SLOWER;
        found += slower == VERDICT_SLOWER;
        backwards += slower == VERDICT_FASTER;
    }
    CHECK(wrong <= 2);
    CHECK(found >= TRIALS * 95 / 100);
    CHECK_EQUAL_INT(backwards, 0);
}

TEST(long_tails_do_not_deceive)
{
    try_noise(long_tail);
}
TEST(two_humps_do_not_deceive)
{
    try_noise(two_humps);
}
TEST(drift_does_not_deceive)
{
    try_noise(drift);
}

/* Each instance has luck of its own, up to 4 % for as long as it lives: the rounds of one are sure
 * of a difference that is none, so that it is not told; many are not, and still find what is
 * there. */
TEST(the_luck_of_instances_does_not_deceive)
{
    enum { INSTANCES = 16, EACH = 20 };
    int wrong = 0, lucky = 0, found = 0;
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        const struct rng_key key = {.seed = trial, .stream = 2};
        double a[INSTANCES * EACH], b[INSTANCES * EACH];
        size_t begins[INSTANCES];
        struct comparison same, slower;
        for (uint32_t i = 0; i < INSTANCES * EACH; i++) {
            begins[i / EACH] = i / EACH * EACH;
            a[i] = (1 + 0.04 * uniform(key, i / EACH, 0)) * (1 + 0.01 * uniform(key, i, 2));
            b[i] = (1 + 0.04 * uniform(key, i / EACH, 1)) * (1 + 0.01 * uniform(key, i, 3));
        }
        same = compare(a, b, INSTANCES * EACH, begins, INSTANCES);
        wrong += same.verdict == VERDICT_FASTER || same.verdict == VERDICT_SLOWER;
        same = compare(a, b, EACH, begins, 1);
        lucky += same.low > 1 + COMPARE_MARGIN || same.high < 1 - COMPARE_MARGIN;
        wrong += same.verdict == VERDICT_FASTER || same.verdict == VERDICT_SLOWER;
        for (uint32_t i = 0; i < INSTANCES * EACH; i++)
            a[i] *= 1.05;
        slower = compare(a, b, INSTANCES * EACH, begins, INSTANCES);
        found += slower.verdict == VERDICT_SLOWER;
    }
    CHECK(wrong <= 2);
    CHECK(lucky > TRIALS / 20); /* or this test shows nothing */
    CHECK(found >= TRIALS * 95 / 100);
}

/* Others come and go: for some milliseconds they take half of the CPU, then not, and each sample is
 * hit or not for itself. Instances of 24 samples in 6 turns, as a comparison of peers has them. */
static double crowded(struct rng_key key, uint32_t sample, uint32_t who)
{
    bool busy = uniform(key, sample / 8, 2) < 0.5; /* the same moment for both */
    double hit = busy && uniform(key, sample, who) < 0.6 ? 1 + uniform(key, sample, who + 4) : 1;
    return hit * (1 + 0.03 * uniform(key, sample, who + 8));
}

TEST(a_crowd_does_not_hide_a_difference)
{
    enum { INSTANCES = 16, TURNS = 6, EACH = 4, ALL = INSTANCES * TURNS * EACH };
    int wrong = 0, found = 0;
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        const struct rng_key key = {.seed = trial, .stream = 3};
        double a[ALL], slower[ALL], b[ALL];
        size_t starts[INSTANCES * TURNS], begins[INSTANCES];
        struct comparison same, different;
        for (uint32_t i = 0; i < ALL; i++) {
            a[i] = crowded(key, i, 0);
            slower[i] = 1.05 * a[i];
            b[i] = crowded(key, i, 1);
            starts[i / EACH] = i / EACH * EACH;
            begins[i / EACH / TURNS] = i / EACH / TURNS * TURNS;
        }
        const struct turns of_a = {a, ALL, starts, INSTANCES * TURNS},
                           of_slower = {slower, ALL, starts, INSTANCES * TURNS},
                           of_b = {b, ALL, starts, INSTANCES * TURNS};
        CHECK_OK(compare_turns(&of_a, &of_b, begins, INSTANCES, COMPARE_MARGIN, &same));
        CHECK_OK(compare_turns(&of_slower, &of_b, begins, INSTANCES, COMPARE_MARGIN, &different));
        wrong += same.verdict == VERDICT_FASTER || same.verdict == VERDICT_SLOWER;
        found += different.verdict == VERDICT_SLOWER;
    }
    CHECK(wrong <= 2);
    CHECK(found >= TRIALS * 95 / 100);
}

/* Of many turns of one instance the units are equal shares. */
TEST(one_instance_is_shared_out)
{
    double a[TURNS_MOST], b[TURNS_MOST];
    for (int i = 0; i < TURNS_MOST; i++) {
        a[i] = i % 4 == 3 ? 9 : 2; /* a quarter is disturbed */
        b[i] = i % 4 == 1 ? 7 : 1;
    }
    struct comparison found = compare(a, b, TURNS_MOST, begins_once, 1);
    CHECK_EQUAL_INT(found.rounds, TURNS_MOST / 2);
    CHECK_NEAR(found.low, 2, 1e-12);
    CHECK_NEAR(found.high, 2, 1e-12);
    CHECK_EQUAL_INT(found.verdict, VERDICT_SLOWER);
}

/* Looks after every fourth round and stops at the first that is sure, as a measurement does. */
TEST(many_looks_do_not_deceive)
{
    int wrong = 0, found_slower = 0;
    for (uint32_t seed = 1; seed <= TRIALS; seed++) {
        const struct rng_key key = {.seed = seed, .stream = 2};
        double a[ROUNDS], slower[ROUNDS], b[ROUNDS];
        bool ended[2] = {false, false};
        for (uint32_t i = 0; i < ROUNDS; i++) {
            a[i] = two_humps(key, i, 0);
            slower[i] = 1.05 * a[i];
            b[i] = two_humps(key, i, 1);
        }
        for (size_t rounds = 8; rounds <= ROUNDS; rounds += 4)
            for (int which = 0; which < 2; which++) {
                struct comparison found = compare_rounds(which ? slower : a, b, rounds);
                if (ended[which] || !(found.sure || rounds == ROUNDS))
                    continue;
                ended[which] = true;
                wrong +=
                    !which && (found.verdict == VERDICT_FASTER || found.verdict == VERDICT_SLOWER);
                found_slower += which && found.verdict == VERDICT_SLOWER;
            }
    }
    CHECK(wrong * 100 <= TRIALS);
    CHECK(found_slower * 100 >= TRIALS * 90);
}

TEST(verdicts_keep_their_margins)
{
    const struct stats one = {.median = 100, .ci_low = 99.9, .ci_high = 100.1};
    const struct {
        double median;
        enum verdict verdict;
    } cases[] = {{100, VERDICT_SAME},  {100.9, VERDICT_SAME}, {102, VERDICT_SLOWER},
                 {98, VERDICT_FASTER}, {99.2, VERDICT_SAME},  {50, VERDICT_FASTER},
                 {101.1, VERDICT_SAME}};
    struct comparison found;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stats other = {.median = cases[i].median,
                              .ci_low = cases[i].median - 0.1,
                              .ci_high = cases[i].median + 0.1};
        compare_results(&other, &one, COMPARE_MARGIN, &found);
        CHECK_EQUAL_INT(found.verdict, cases[i].verdict);
    }
    const struct stats vague = {.median = 102, .ci_low = 95, .ci_high = 110};
    compare_results(&vague, &one, COMPARE_MARGIN, &found);
    CHECK_EQUAL_INT(found.verdict, VERDICT_UNKNOWN);
    const struct stats unknown = {.median = 150, .ci_low = (double)NAN, .ci_high = (double)NAN};
    compare_results(&unknown, &one, COMPARE_MARGIN, &found);
    CHECK_EQUAL_INT(found.verdict, VERDICT_UNKNOWN);
}

TEST(few_rounds_say_nothing)
{
    const double a[14] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    const double b[14] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct comparison found = compare(a, b, 14, begins_once, 1);
    CHECK_EQUAL_INT(found.verdict, VERDICT_UNKNOWN);
    CHECK_NEAR(found.ratio, 2, 1e-12);
    CHECK(isnan(found.low));
    found = compare(a, b, 1, begins_once, 1);
    CHECK_EQUAL_INT(found.rounds, 0);
}

/* Of 0, 1 … n-1 the 99 % interval by ranks: 8 values: all; 1000: 500 ± 2.576 × √1000 ÷ 2. */
TEST(intervals_have_known_ranks)
{
    double values[1000], median, low, high;
    const struct {
        size_t count;
        double low, high;
    } cases[] = {{8, 0, 7}, {20, 3, 16}, {100, 36, 63}, {1000, 458, 541}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t j = 0; j < cases[i].count; j++)
            values[j] = (double)(cases[i].count - 1 - j);
        stats_median(values, cases[i].count, 0.99, &median, &low, &high);
        CHECK_NEAR(median, ((double)cases[i].count - 1) / 2, 0);
        CHECK_NEAR(low, cases[i].low, 0);
        CHECK_NEAR(high, cases[i].high, 0);
    }
    stats_median(values, 7, 0.99, &median, &low, &high);
    CHECK(isnan(low) && isnan(high));
}

/* Wilcoxon's tables: of 10, 20 and 32 numbers the sum of ranks that is rarer than 1 % is at most 3,
 * 37 and 128; so many means of pairs are left out. */
TEST(centres_have_known_ranks)
{
    double values[32], centre, low, high;
    const struct {
        size_t count;
        double low, high;
    } cases[] = {{8, 0, 7},        {10, 1, 8},    {20, 5.5, 13.5},
                 {32, 10.5, 20.5}, {1, NAN, NAN}, {7, NAN, NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t j = 0; j < cases[i].count; j++)
            values[j] = (double)(cases[i].count - 1 - j);
        CHECK_OK(stats_centre(values, cases[i].count, 0.99, &centre, &low, &high));
        CHECK_NEAR(centre, ((double)cases[i].count - 1) / 2, 0);
        if (isnan(cases[i].low)) {
            CHECK(isnan(low) && isnan(high));
            continue;
        }
        CHECK_NEAR(low, cases[i].low, 0);
        CHECK_NEAR(high, cases[i].high, 0);
    }
}

/* The interval holds the truth as often as it says, whatever numbers that spread alike come from.
 */
TEST(intervals_of_the_centre_hold)
{
    enum { COUNT = 12, TIMES = 2000 };
    int missed[2] = {0, 0};
    for (uint32_t i = 0; i < TIMES; i++) {
        const struct rng_key key = {.seed = i, .stream = 4};
        double values[2][COUNT], centre, low, high;
        for (uint32_t j = 0; j < COUNT; j++) {
            double a = uniform(key, j, 0), b = uniform(key, j, 1);
            values[0][j] = log(long_tail(key, j, 2) / long_tail(key, j, 3));
            values[1][j] = a - b;
        }
        for (int kind = 0; kind < 2; kind++) {
            CHECK_OK(stats_centre(values[kind], COUNT, 0.95, &centre, &low, &high));
            CHECK(low <= centre && centre <= high);
            missed[kind] += low > 0 || high < 0;
        }
    }
    for (int kind = 0; kind < 2; kind++)
        CHECK(missed[kind] >= TIMES * 3 / 100 && missed[kind] <= TIMES * 6 / 100);
}

TEST(a_comparison_travels_in_its_record)
{
    struct record record, back;
    struct arena arena = {0};
    struct text line = {0};
    record_start(&record);
    record.against =
        (struct record_against){"numpy", NULL, {0.5, 0.4, 0.6, 40, 8, VERDICT_FASTER, true}};
    record_write(&record, &line);
    CHECK_OK(text_done(&line));
    if (CHECK_OK(record_read(&arena, "line", 1, text_of(&line), line.length, &back))) {
        CHECK_EQUAL_TEXT(back.against.other, "numpy");
        CHECK(!back.against.disturbed);
        CHECK_EQUAL_INT(back.against.found.verdict, VERDICT_FASTER);
        CHECK_EQUAL_INT(back.against.found.rounds, 40);
        CHECK_EQUAL_INT(back.against.found.instances, 8);
        CHECK_NEAR(back.against.found.low, 0.4, 0);
    }
    text_free(&line);
    arena_free(&arena);
}

CHECK_MAIN
