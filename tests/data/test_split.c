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
    if (!CHECK_OK(split_make(&(struct dataset){.rows = 150},
                             &(struct split_options){.test_share = 0.2, .seed = 1}, &split)))
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
    if (!CHECK_OK(split_make(&(struct dataset){.rows = 10}, &options, &split)))
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
    const struct dataset dataset = {.rows = 10, .test_rows = 3};
    const struct split_options options = {.validate_share = 0.2, .test_share = 0.5, .seed = 1};
    if (!CHECK_OK(split_make(&dataset, &options, &split)))
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
        if (!CHECK_OK(split_make(&(struct dataset){.rows = cases[i].rows}, &options, &split)))
            return;
        CHECK_EQUAL_INT(split.test_count, cases[i].test);
        split_free(&split);
    }
}

/* 60 rows of class 0, 30 of class 1, 9 of class 2 and one of class 3, mixed. */
TEST(every_class_has_its_share)
{
    enum { ROWS = 100, CLASSES = 4 };
    int32_t labels[ROWS];
    for (int i = 0; i < ROWS; i++) {
        int place = i * 37 % ROWS;
        labels[place] = i < 60 ? 0 : i < 90 ? 1 : i < 99 ? 2 : 3;
    }
    const struct dataset dataset = {
        .rows = ROWS, .class_count = CLASSES, .label_columns = 1, .labels = labels};
    const struct split_options options = {.validate_share = 0.1, .test_share = 0.2, .seed = 5};
    struct split split;
    if (!CHECK_OK(split_make(&dataset, &options, &split)))
        return;
    int test[CLASSES] = {0}, validate[CLASSES] = {0};
    for (int64_t i = 0; i < split.test_count; i++)
        test[labels[split_test(&split)[i]]]++;
    for (int64_t i = 0; i < split.validate_count; i++)
        validate[labels[split_validate(&split)[i]]]++;
    CHECK(split.test_count == 20 && split.validate_count == 10);
    CHECK(test[0] == 12 && test[1] == 6 && test[2] == 2 && test[3] == 0);
    CHECK(validate[0] == 6 && validate[1] == 3 && validate[2] == 1 && validate[3] == 0);
    CHECK(is_permutation(split.rows, ROWS));
    split_free(&split);
}

/* The rows that come first are of every class its share, and the others are still there. */
TEST(first_rows_are_of_every_class)
{
    enum { ROWS = 100, CLASSES = 4, FIRST = 20 };
    int32_t labels[ROWS];
    int first[CLASSES] = {0};
    for (int i = 0; i < ROWS; i++)
        labels[i * 37 % ROWS] = i % CLASSES;
    const struct dataset dataset = {
        .rows = ROWS, .class_count = CLASSES, .label_columns = 1, .labels = labels};
    const struct split_options options = {.test_share = 0.2, .first = FIRST, .seed = 5};
    struct split split;
    if (!CHECK_OK(split_make(&dataset, &options, &split)))
        return;
    for (int64_t i = 0; i < FIRST; i++)
        first[labels[split.rows[i]]]++;
    for (int class = 0; class < CLASSES; class ++)
        CHECK_EQUAL_INT(first[class], FIRST / CLASSES);
    CHECK(split.train_count == 80 && is_permutation(split.rows, ROWS));
    split_free(&split);
}

/* Golden numbers: a change of them would change every training that was ever saved. */
TEST(orders_are_the_same_bits_everywhere)
{
    struct split split;
    uint32_t order[8];
    if (!CHECK_OK(split_make(&(struct dataset){.rows = 8},
                             &(struct split_options){.test_share = 0.25, .seed = 42}, &split)))
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
    struct scaling scaling = {0};
    if (!CHECK_OK(scaling_make(&dataset, rows, 3, &scaling)))
        return;
    CHECK_NEAR(scaling.mean[0], 3, 1e-6);
    CHECK_NEAR(scaling.scale[0], 1 / 1.6329932, 1e-6);
    CHECK_NEAR(scaling.scale[1], 1, 0); /* constant in training: shifted, not blown up */
    CHECK_OK(scaling_apply(&scaling, &dataset));
    CHECK_NEAR(features[0], -1.2247449, 1e-6);
    CHECK_NEAR(features[2], 0, 1e-6);
    CHECK_NEAR(features[7], 6.9, 1e-6);
    scaling_free(&scaling);
}

/* Rows that the scale was not made of have no chance below 0 or above 1 either. */
TEST(scaling_to_chances_holds_for_all_rows)
{
    float features[] = {2, 6, 4, 100, -100};
    const uint32_t rows[] = {0, 1, 2};
    struct dataset dataset = {.rows = 5, .columns = 1, .features = features};
    struct scaling scaling = {.unit = true};
    if (!CHECK_OK(scaling_make(&dataset, rows, 3, &scaling)))
        return;
    CHECK_OK(scaling_apply(&scaling, &dataset));
    CHECK(features[0] == 0 && features[1] == 1 && features[2] == 0.5f);
    CHECK(features[3] == 1 && features[4] == 0);
    scaling_free(&scaling);
}

TEST(tokens_become_integers)
{
    float features[] = {0, 3, 2, 1};
    int32_t found[4];
    struct dataset dataset = {.name = "t", .rows = 2, .columns = 2, .features = features};
    const struct scaling scaling = {.tokens = 4}, other = {.tokens = 3};
    CHECK_OK(scaling_apply(&scaling, &dataset));
    CHECK_OK(scaling_apply(&scaling, &dataset)); /* once is enough */
    memcpy(found, features, sizeof found);
    CHECK(found[0] == 0 && found[1] == 3 && found[2] == 2 && found[3] == 1);
    CHECK_STATUS(STATUS_INPUT, scaling_apply(&other, &dataset));
    CHECK_MESSAGE("t: found features that were scaled for another network");
}

TEST(what_is_no_token_is_refused)
{
    static const float wrong[] = {4, -1, 0.5f, 1e30f};
    for (int i = 0; i < 4; i++) {
        float features[] = {0, 3, 2, wrong[i]};
        struct dataset dataset = {.name = "t", .rows = 2, .columns = 2, .features = features};
        const struct scaling scaling = {.tokens = 4};
        CHECK_STATUS(STATUS_INPUT, scaling_apply(&scaling, &dataset));
        CHECK_MESSAGE("t: row 2, value 2: found ");
        CHECK_MESSAGE("expected a token: a whole number from 0 to 3");
    }
}

CHECK_MAIN
