/* test_stream.c: data that is read while it is used: the same bits as from memory, errors that come
 * out of the thread, and what happens when other rows are wanted than were expected. */
#include "base/file.h"
#include "base/memory.h"
#include "check.h"
#include "data/dataset.h"
#include "folder.h"
#include "prony.h"

#include <math.h>
#include <unistd.h>

enum { ROWS = 60, COLUMNS = 5, BAD_ROW = 37, WIDE = 1000 };

/* A file of floats, and one of labels; with a NaN in one row when that is wanted. */
static bool write_files(bool bad)
{
    struct text data = {0}, labels = {0};
    text_printf(&data, "\x93NUMPY\x01%c%c%c%-69s\n", 0, 70, 0,
                "{'descr': '<f4', 'fortran_order': False, 'shape': (60, 5)}");
    text_printf(&labels, "\x93NUMPY\x01%c%c%c%-69s\n", 0, 70, 0,
                "{'descr': '|u1', 'fortran_order': False, 'shape': (60,)}");
    for (int row = 0; row < ROWS; row++) {
        text_add_char(&labels, (char)(row % 3));
        for (int column = 0; column < COLUMNS; column++) {
            float value = (float)(row % 3 * (column + 1)) + 0.01f * (float)(row * 7 % 11);
            if (bad && row == BAD_ROW && column == 2)
                value = NAN;
            text_add_bytes(&data, (const char *)&value, sizeof value);
        }
    }
    bool written = CHECK_OK(text_done(&data)) && CHECK_OK(text_done(&labels)) &&
                   CHECK_OK(file_write(at("x"), data.data, data.length)) &&
                   CHECK_OK(file_write(at("y"), labels.data, labels.length));
    text_free(&data);
    text_free(&labels);
    return written;
}

/* Streamed, a few rows at a time; NULL when it could not be opened. */
static struct dataset *open_streamed(bool bad)
{
    struct dataset *dataset = NULL;
    const struct dataset_options options = {.memory_bytes = 1000};
    if (!write_files(bad) || !CHECK_OK(dataset_open(at("x"), &options, &dataset)))
        return NULL;
    CHECK(dataset->stream != NULL);
    return dataset;
}

static float first_of(const struct dataset *dataset, int64_t row)
{
    return dataset->features[row * COLUMNS];
}

static float expected_first(int64_t row)
{
    return (float)(row % 3) + 0.01f * (float)(row * 7 % 11);
}

TEST(expected_rows_are_there_when_they_are_fetched)
{
    uint32_t order[] = {5, 40, 7, 59, 0, 22};
    struct dataset *dataset = open_streamed(false);
    if (!dataset)
        return;
    CHECK_OK(dataset_fetch(dataset, order, 0, 2));
    CHECK_OK(dataset_expect(dataset, order, 2, 2));
    CHECK(first_of(dataset, 5) == expected_first(5) && first_of(dataset, 40) == expected_first(40));
    CHECK_OK(dataset_fetch(dataset, order, 2, 2));
    CHECK_OK(dataset_expect(dataset, order, 4, 2));
    CHECK(first_of(dataset, 7) == expected_first(7) && first_of(dataset, 59) == expected_first(59));
    CHECK(first_of(dataset, 40) == 0); /* no longer there */
    order[4] = 1;                      /* the list is another one by now */
    CHECK_OK(dataset_fetch(dataset, order, 4, 2));
    CHECK(first_of(dataset, 1) == expected_first(1) && first_of(dataset, 22) == expected_first(22));
    CHECK_OK(dataset_expect(dataset, NULL, 10, 3)); /* never fetched */
    dataset_free(dataset);
}

/* A file that is not held in memory: 200 rows of 1000 floats, each its row's number. */
static struct dataset *open_wide(void)
{
    const struct dataset_options options = {.memory_bytes = 20000};
    struct dataset *dataset = NULL;
    struct text data = {0};
    text_printf(&data, "\x93NUMPY\x01%c%c%c%-69s\n", 0, 70, 0,
                "{'descr': '<f4', 'fortran_order': False, 'shape': (200, 1000)}");
    for (int i = 0; i < 200 * WIDE; i++) {
        float value = (float)(i / WIDE);
        text_add_bytes(&data, (const char *)&value, sizeof value);
    }
    if (CHECK_OK(text_done(&data)) && CHECK_OK(file_write(at("wide"), data.data, data.length)))
        CHECK_OK(dataset_open(at("wide"), &options, &dataset));
    text_free(&data);
    return dataset;
}

TEST(a_file_that_becomes_shorter_is_an_error)
{
    struct dataset *dataset = open_wide();
    if (!dataset)
        return;
    CHECK_OK(dataset_fetch(dataset, NULL, 0, 2));
    CHECK(truncate(at("wide"), 80 + 100 * WIDE * (off_t)sizeof(float)) == 0);
    CHECK_OK(dataset_fetch(dataset, (uint32_t[]){99, 7}, 0, 2));
    CHECK(dataset->features[99 * WIDE] == 99 && dataset->features[8 * WIDE - 1] == 7);
    CHECK_STATUS(STATUS_INPUT, dataset_fetch(dataset, (uint32_t[]){140, 7}, 0, 2));
    CHECK_MESSAGE(
        "wide: found its end before byte 560081, expected 564080 bytes: it became shorter");
    CHECK_OK(dataset_expect(dataset, NULL, 150, 2)); /* in the thread */
    CHECK_STATUS(STATUS_INPUT, dataset_fetch(dataset, NULL, 150, 2));
    CHECK_OK(dataset_fetch(dataset, NULL, 3, 2)); /* what is there can still be read */
    CHECK(dataset->features[3 * WIDE] == 3 && dataset->features[4 * WIDE] == 4);
    dataset_free(dataset);
}

TEST(what_is_wrong_with_expected_rows_is_said_when_they_are_fetched)
{
    struct dataset *dataset = open_streamed(true);
    if (!dataset)
        return;
    CHECK_OK(dataset_fetch(dataset, NULL, 0, 30));
    CHECK_OK(dataset_expect(dataset, NULL, 30, 30));
    CHECK_STATUS(STATUS_INPUT, dataset_fetch(dataset, NULL, 30, 30));
    CHECK_MESSAGE("x: row 38, value 3: found ");
    CHECK_OK(dataset_expect(dataset, NULL, 30, 30));
    CHECK_OK(dataset_fetch(dataset, NULL, 0, 30)); /* others are fine */
    CHECK(first_of(dataset, 29) == expected_first(29));
    dataset_free(dataset);
}

/* Trains a little, in memory or streamed, and saves. */
static int train(uint64_t memory_bytes, const char *path)
{
    struct prony *network = NULL;
    struct prony_data *data = NULL;
    struct prony_progress progress = {0};
    const struct prony_options options = {.seed = 3, .threads = 1};
    const struct prony_data_options how = {.labels = at("y"), .memory_bytes = memory_bytes};
    const struct prony_course course = {.epochs = 3, .batch = 4, .test = 0.2, .validate = 0.1};
    static const char net[] = "input 5\ndense 8\ntanh\ndropout 0.3\ndense 3\n";
    int code = prony_open_text("net", net, &options, &network);
    if (!code)
        code = prony_data_open(at("x"), &how, &data);
    if (!code)
        code = prony_begin(network, data, &course);
    while (!code && !progress.finished)
        code = prony_run(network, 3, &progress);
    if (!code)
        code = prony_end(network, NULL);
    if (!code && path)
        code = prony_save(network, path);
    if (!code && !CHECK((progress.window > 0) == (memory_bytes > 0)))
        code = PRONY_WRONG;
    prony_close(network);
    prony_data_close(data);
    return code;
}

TEST(streamed_training_ends_with_the_same_bytes)
{
    struct text whole = {0}, streamed = {0};
    if (write_files(false) && CHECK_EQUAL_INT(train(0, at("whole")), PRONY_OK) &&
        CHECK_EQUAL_INT(train(900, at("streamed")), PRONY_OK) &&
        CHECK_OK(file_read(at("whole"), 1 << 20, &whole)) &&
        CHECK_OK(file_read(at("streamed"), 1 << 20, &streamed)))
        CHECK(whole.length == streamed.length && !memcmp(whole.data, streamed.data, whole.length));
    text_free(&whole);
    text_free(&streamed);
}

TEST(every_failed_allocation_ends_cleanly)
{
    int code = PRONY_MEMORY;
    if (!write_files(false))
        return;
    for (long nth = 1; nth < 10000 && code != PRONY_OK; nth++) {
        memory_fail_at(nth);
        code = train(900, NULL);
        memory_fail_at(0);
        if (code != PRONY_OK && !CHECK_EQUAL_INT(code, PRONY_MEMORY))
            return;
    }
    CHECK_EQUAL_INT(code, PRONY_OK);
}

CHECK_MAIN
