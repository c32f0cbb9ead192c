/* Split, shuffle and standardisation: complete, fair, and the same bits everywhere. */
#include "base/memory.h"
#include "check.h"
#include "data/split.h"

/* Is it a permutation of 0 … count-1? */
static bool is_permutation(const uint32_t *rows, int64_t count)
{
    bool seen[1000] = {false};
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] >= count || seen[rows[i]])
            return false;
        seen[rows[i]] = true;
    }
    return true;
}

TEST(split_takes_every_row_once)
{
    struct split split;
    if (!CHECK_OK(split_make(150, &(struct split_options){.test_share = 0.2, .seed = 1}, &split)))
        return;
    CHECK_EQUAL_INT(split.train_count, 120);
    CHECK_EQUAL_INT(split.test_count, 30);
    CHECK(is_permutation(split.rows, 150));
    CHECK(split_test(&split) == split.rows + 120);
    split_free(&split);
}

TEST(held_out_rows_are_between_training_and_test)
{
    struct split split;
    const struct split_options options = {.validate_share = 0.3, .test_share = 0.2, .seed = 1};
    if (!CHECK_OK(split_make(10, &options, &split)))
        return;
    CHECK_EQUAL_INT(split.train_count, 5);
    CHECK_EQUAL_INT(split.validate_count, 3);
    CHECK_EQUAL_INT(split.test_count, 2);
    CHECK(is_permutation(split.rows, 10));
    CHECK(split_validate(&split) == split.rows + 5 && split_test(&split) == split.rows + 8);
    split_free(&split);
}

TEST(test_set_of_its_own_is_the_last_rows)
{
    struct split split;
    const struct split_options options = {
        .validate_share = 0.2, .test_share = 0.5, .test_rows = 3, .seed = 1};
    if (!CHECK_OK(split_make(10, &options, &split)))
        return;
    CHECK_EQUAL_INT(split.test_count, 3);
    CHECK_EQUAL_INT(split.validate_count, 2);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQUAL_INT(split_test(&split)[i], 7 + i);
    CHECK(is_permutation(split.rows, 10));
    split_free(&split);
}

TEST(split_leaves_a_row_on_either_side)
{
    static const struct {
        int64_t rows;
        double share;
        int64_t test;
    } cases[] = {{2, 0.01, 1}, {2, 0.99, 1}, {1, 0.5, 0}, {5, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct split split;
        const struct split_options options = {.test_share = cases[i].share, .seed = 1};
        if (!CHECK_OK(split_make(cases[i].rows, &options, &split)))
            return;
        CHECK_EQUAL_INT(split.test_count, cases[i].test);
        split_free(&split);
    }
}

/* Golden numbers: a change of them would change every training that was ever saved. */
TEST(orders_are_the_same_bits_everywhere)
{
    struct split split;
    uint32_t order[8];
    if (!CHECK_OK(split_make(8, &(struct split_options){.test_share = 0.25, .seed = 42}, &split)))
        return;
    static const uint32_t expected_split[8] = {0, 1, 3, 2, 7, 6, 5, 4};
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_EQUAL_INT(split.rows[i], expected_split[i]);
        order[i] = i;
    }
    split_shuffle(order, 8, 42, 3);
    static const uint32_t expected_order[8] = {5, 4, 0, 6, 2, 3, 7, 1};
    for (int i = 0; i < 8; i++)
        CHECK_EQUAL_INT(order[i], expected_order[i]);
    split_free(&split);
}

TEST(shuffles_are_fair)
{
    int first[5][5] = {{0}};
    for (uint64_t epoch = 0; epoch < 5000; epoch++) {
        uint32_t order[5] = {0, 1, 2, 3, 4};
        split_shuffle(order, 5, 7, epoch);
        for (int place = 0; place < 5; place++)
            first[place][order[place]]++;
    }
    for (int place = 0; place < 5; place++) /* 1,000 expected, σ = 28 */
        for (int row = 0; row < 5; row++)
            CHECK_NEAR(first[place][row], 1000, 140);
}

TEST(scaling_gives_mean_0_and_variance_1_over_the_training_rows)
{
    float features[] = {1, 0.1f, 3, 0.1f, 5, 0.1f, 100, 7};
    const uint32_t rows[] = {2, 0, 1};
    struct dataset dataset = {.rows = 4, .columns = 2, .features = features};
    struct scaling scaling;
    if (!CHECK_OK(scaling_make(&dataset, rows, 3, &scaling)))
        return;
    CHECK_NEAR(scaling.mean[0], 3, 1e-6);
    CHECK_NEAR(scaling.scale[0], 1 / 1.6329932, 1e-6);
    CHECK_NEAR(scaling.scale[1], 1, 0); /* constant in training: shifted, not blown up */
    scaling_apply(&scaling, &dataset);
    CHECK_NEAR(features[0], -1.2247449, 1e-6);
    CHECK_NEAR(features[2], 0, 1e-6);
    CHECK_NEAR(features[7], 6.9, 1e-6);
    scaling_free(&scaling);
}

CHECK_MAIN
