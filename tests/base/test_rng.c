/* Philox against the known answers of its authors, the deviates against libm and their moments. */
#include "base/rng.h"
#include "check.h"

static void check_words(struct rng_block found, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const uint32_t expected[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        CHECK_EQUAL_INT(found.word[i], expected[i]);
}

TEST(philox_known_answers)
{
    const uint32_t ones = 0xFFFFFFFFu;
    struct rng_block zero = {{0}}, full = {{ones, ones, ones, ones}};
    struct rng_block pi = {{0x243F6A88u, 0x85A308D3u, 0x13198A2Eu, 0x03707344u}};
    check_words(rng_philox(zero, 0, 0), 0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u);
    check_words(rng_philox(full, ones, ones), 0x408F276Du, 0x41C83B0Eu, 0xA20BC7C6u, 0x6D5451FDu);
    check_words(rng_philox(pi, 0xA4093822u, 0x299F31D0u), 0xD16CFE09u, 0x94FDCCEBu, 0x5001E420u,
                0x24126EA1u);
}

/* Every part of the address changes the word. */
TEST(all_of_the_address_counts)
{
    struct rng_key key = {.seed = 1, .stream = 2, .step = 3};
    uint32_t base = rng_word(key, 4, 5);
    CHECK_EQUAL_INT(rng_word(key, 4, 5), base);
    struct rng_key other[] = {key, key, key, key, key};
    other[0].seed = 2;
    other[1].seed += (uint64_t)1 << 40;
    other[2].stream++;
    other[3].step++;
    other[4].step += (uint64_t)1 << 32;
    for (int i = 0; i < 5; i++)
        CHECK(rng_word(other[i], 4, 5) != base);
    CHECK(rng_word(key, 5, 5) != base);
    CHECK(rng_word(key, 4, 6) != base && rng_word(key, 4, 9) != base);
}

TEST(units_stay_in_range)
{
    CHECK(rng_unit(0) == 0);
    CHECK(rng_unit(0xFFFFFFFFu) == 1 - 0x1p-24f);
    struct rng_key key = {.seed = 42};
    double sum = 0;
    enum { N = 100000 };
    for (uint32_t i = 0; i < N; i++)
        sum += (double)rng_uniform(key, 0, i);
    CHECK_NEAR(sum / N, 0.5, 0.004); /* four standard errors */
}

/* Over every value a deviate can be made of, in steps. */
TEST(log_and_turn_agree_with_libm)
{
    double worst_log = 0, worst_turn = 0;
    for (uint32_t n = 0; n < 1u << 24; n += n < 4096 ? 1 : 61) {
        float u = ((float)n + 1) * 0x1p-24f;
        double log_error = fabs((double)rng_log(u) - log((double)u)) / fmax(1, -log((double)u));
        worst_log = fmax(worst_log, log_error);
        float cosine, sine, turn = (float)n * 0x1p-24f;
        rng_turn(turn, &cosine, &sine);
        double angle = 2 * 3.14159265358979323846 * (double)turn;
        worst_turn = fmax(worst_turn, fabs((double)cosine - cos(angle)));
        worst_turn = fmax(worst_turn, fabs((double)sine - sin(angle)));
    }
    CHECK(rng_log(1) == 0);
    CHECK_NEAR(worst_log, 0, 1.3e-7); /* a float's own rounding is 0.6e-7 */
    CHECK_NEAR(worst_turn, 0, 4e-7);
}

TEST(normals_have_the_right_moments)
{
    struct rng_key key = {.seed = 7, .stream = 1};
    enum { N = 400000 };
    double sum = 0, squares = 0, cubes = 0, fourths = 0, neighbours = 0, last = 0;
    for (uint32_t i = 0; i < N; i++) {
        double x = (double)rng_normal(key, i / 1000, i % 1000);
        sum += x;
        squares += x * x;
        cubes += x * x * x;
        fourths += x * x * x * x;
        neighbours += x * last;
        last = x;
    }
    /* four standard errors: 1, √2, √15, √96 and 1 times 4 ÷ √N */
    CHECK_NEAR(sum / N, 0, 0.0064);
    CHECK_NEAR(squares / N, 1, 0.009);
    CHECK_NEAR(cubes / N, 0, 0.0245);
    CHECK_NEAR(fourths / N, 3, 0.062);
    CHECK_NEAR(neighbours / N, 0, 0.0064);
}

TEST(below_is_even)
{
    struct rng_key key = {.seed = 3};
    int counts[7] = {0};
    for (uint32_t i = 0; i < 70000; i++) {
        uint32_t n = rng_below(key, 0, i, 7);
        if (!CHECK(n < 7))
            return;
        counts[n]++;
    }
    for (int i = 0; i < 7; i++)
        CHECK_NEAR(counts[i], 10000, 371); /* four standard deviations */
    CHECK_EQUAL_INT(rng_below(key, 1, 1, 1), 0);
}

CHECK_MAIN
