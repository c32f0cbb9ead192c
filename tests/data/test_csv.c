/* CSV text → data set: what is read, and what each refusal names. */
#include "base/memory.h"
#include "check.h"
#include "data/dataset.h"

#include <stdlib.h>

/* Parses a copy of the text under the name "t.csv". */
static enum status parse(const char *text, const struct dataset_options *options,
                         struct dataset **out)
{
    static const struct dataset_options usual;
    char *copy = mem_copy_text(text);
    NEED(copy);
    enum status status =
        dataset_parse_csv("t.csv", copy, strlen(copy), options ? options : &usual, out);
    mem_free(copy);
    return status;
}

static void check_refused(const char *text, const char *message)
{
    struct dataset *dataset = NULL;
    if (!CHECK_STATUS(STATUS_INPUT, parse(text, NULL, &dataset)))
        dataset_free(dataset);
    else
        CHECK_MESSAGE(message);
}

TEST(iris_is_shipped_with_50_rows_per_class)
{
    struct dataset *iris;
    int counts[3] = {0};
    if (!CHECK_OK(dataset_open("iris", &(struct dataset_options){0}, &iris)))
        return;
    CHECK_EQUAL_INT(iris->rows, 150);
    CHECK_EQUAL_INT(iris->columns, 4);
    CHECK_EQUAL_TEXT(iris->column_names[3], "petal_width");
    if (CHECK_EQUAL_INT(iris->class_count, 3)) {
        CHECK_EQUAL_TEXT(iris->classes[0], "setosa");
        CHECK_EQUAL_TEXT(iris->classes[2], "virginica");
        for (int64_t row = 0; row < iris->rows; row++)
            counts[iris->labels[row]]++;
        CHECK(counts[0] == 50 && counts[1] == 50 && counts[2] == 50);
    }
    CHECK_NEAR(iris->features[0], 5.1, 1e-6);
    CHECK_NEAR(iris->features[149 * 4 + 3], 1.8, 1e-6);
    dataset_free(iris);
}

TEST(header_is_found_and_optional)
{
    struct dataset *dataset;
    if (CHECK_OK(parse("a,b,kind\n1,2,x\n3,4,y\n", NULL, &dataset))) {
        CHECK_EQUAL_INT(dataset->rows, 2);
        CHECK_EQUAL_TEXT(dataset->column_names[1], "b");
        dataset_free(dataset);
    }
    if (CHECK_OK(parse("1,2,x\n3,4,y", NULL, &dataset))) {
        CHECK_EQUAL_INT(dataset->rows, 2);
        CHECK(!dataset->column_names);
        dataset_free(dataset);
    }
}

TEST(quotes_blanks_line_ends_and_marks_are_understood)
{
    struct dataset *dataset;
    const char *text = "\xEF\xBB\xBF\"a,1\",\"kind\"\r\n\r\n 1.5 ,\"say \"\"no\"\"\"\r\n"
                       "\"2\",\"two\nlines\"\r\n";
    if (!CHECK_OK(parse(text, NULL, &dataset)))
        return;
    CHECK_EQUAL_INT(dataset->rows, 2);
    CHECK_EQUAL_TEXT(dataset->column_names[0], "a,1");
    CHECK_EQUAL_TEXT(dataset->classes[0], "say \"no\"");
    CHECK_EQUAL_TEXT(dataset->classes[1], "two\nlines");
    CHECK(dataset->features[0] == 1.5f && dataset->features[1] == 2);
    dataset_free(dataset);
}

TEST(label_column_is_by_name_or_place)
{
    struct dataset *dataset;
    const char *text = "kind,a,b\nx,1,2\ny,3,4\n";
    if (CHECK_OK(parse(text, &(struct dataset_options){.label = "kind"}, &dataset))) {
        CHECK_EQUAL_TEXT(dataset->column_names[0], "a");
        CHECK(dataset->features[3] == 4);
        dataset_free(dataset);
    }
    if (CHECK_OK(parse(text, &(struct dataset_options){.label = "1"}, &dataset)))
        dataset_free(dataset);
    CHECK_STATUS(STATUS_INPUT, parse(text, &(struct dataset_options){.label = "c"}, &dataset));
    CHECK_MESSAGE("'c'");
    CHECK_STATUS(STATUS_INPUT, parse(text, &(struct dataset_options){.label = "4"}, &dataset));
    CHECK_MESSAGE("1 to 3");
}

TEST(file_with_only_inputs_has_no_labels)
{
    struct dataset *dataset;
    if (CHECK_OK(parse("1,2\n3,4\n", &(struct dataset_options){.inputs = 2}, &dataset))) {
        CHECK_EQUAL_INT(dataset->columns, 2);
        CHECK(!dataset->labels && !dataset->numbers);
        dataset_free(dataset);
    }
}

TEST(labels_are_classes_or_numbers)
{
    struct dataset *dataset;
    if (CHECK_OK(
            parse("0,2\n0,10\n0,1\n0,0\n0,3\n0,4\n0,5\n0,6\n0,7\n0,8\n0,9\n", NULL, &dataset))) {
        CHECK_EQUAL_INT(dataset->class_count, 11); /* 0 … 10, each there: by value */
        CHECK_EQUAL_INT(dataset->labels[1], 10);
        CHECK_EQUAL_TEXT(dataset->classes[2], "2");
        dataset_free(dataset);
    }
    if (CHECK_OK(parse("0,1\n0,3\n", NULL, &dataset))) {
        CHECK_EQUAL_INT(dataset->class_count, 0);
        CHECK(dataset->numbers && dataset->numbers[1] == 3);
        dataset_free(dataset);
    }
    if (CHECK_OK(parse("0,0\n0,1\n", &(struct dataset_options){.numbers = true}, &dataset))) {
        CHECK(dataset->numbers && !dataset->labels);
        dataset_free(dataset);
    }
    if (CHECK_OK(parse("0,b\n0,a\n0,b\n", NULL, &dataset))) {
        CHECK_EQUAL_INT(dataset->class_count, 2); /* sorted, whatever came first */
        CHECK_EQUAL_INT(dataset->labels[0], 1);
        dataset_free(dataset);
    }
}

TEST(known_classes_are_kept)
{
    static const char *const classes[] = {"z", "a"};
    struct dataset_options options = {.classes = classes, .class_count = 2};
    struct dataset *dataset;
    if (CHECK_OK(parse("1,a\n2,a\n", &options, &dataset))) {
        CHECK_EQUAL_INT(dataset->labels[0], 1);
        dataset_free(dataset);
    }
    CHECK_STATUS(STATUS_INPUT, parse("1,a\n2,b\n", &options, &dataset));
    CHECK_MESSAGE("t.csv:2:3: found the class 'b'");
}

TEST(bad_input_is_refused_where_it_is)
{
    check_refused("a,b,kind\n1,2,x\n3,,y\n", "t.csv:3:3: found a missing value");
    check_refused("1,2,x\n3,four,y\n", "t.csv:2:3: found 'four', expected a number");
    check_refused("1,2,x\n3,nan,y\n", "t.csv:2:3: found 'nan'");
    check_refused("1,2,x\n3,1e300,y\n", "t.csv:2:3: found '1e300'");
    check_refused("1,2,x\n3,y\n", "t.csv:2:3: found 2 values in the row, expected 3");
    check_refused("1,2,x\n3,4,5,y\n", "expected 3");
    check_refused("1,2,x\n3,4,\n", "t.csv:2:5: found a missing value, expected a label");
    check_refused("1,2,x\n3,4,caf\xE9\n", "t.csv:2:5: found the byte 0xE9 in a label");
    check_refused("1,\"x\n", "t.csv:1:3: found the end of the file, expected a closing quote");
    check_refused("1,\"x\"y\n", "found 'y' after a closing quote");
    check_refused("", "t.csv:1:1: found nothing");
    check_refused("\n\n", "found nothing");
    check_refused("a,b\n", "found no row below the header");
    check_refused("x\ny\n", "found only a label column");

    check_refused("1,0.5\n1,abc\n", "t.csv:2:3: found the label 'abc', expected a number");
}

TEST(unknown_names_are_refused_with_a_proposal)
{
    struct dataset *dataset;
    struct dataset_options options = {0};
    CHECK_STATUS(STATUS_INPUT, dataset_open("iriss", &options, &dataset));
    CHECK_MESSAGE("did you mean 'iris'?");
    CHECK_STATUS(STATUS_INPUT, dataset_open("no/such/file.csv", &options, &dataset));
    CHECK_MESSAGE("no/such/file.csv");
    CHECK_STATUS(STATUS_INPUT, dataset_open("", &options, &dataset));
}

TEST(synthetic_data_is_a_function_of_its_seed)
{
    struct dataset *a, *b, *c;
    if (!CHECK_OK(dataset_synthetic(100, 7, 3, 0, 5, &a)) ||
        !CHECK_OK(dataset_synthetic(100, 7, 3, 0, 5, &b)) ||
        !CHECK_OK(dataset_synthetic(100, 7, 0, 2, 6, &c)))
        return;
    uint64_t hash_a, hash_b, hash_c;
    CHECK_OK(dataset_hash(a, &hash_a));
    CHECK_OK(dataset_hash(b, &hash_b));
    CHECK_OK(dataset_hash(c, &hash_c));
    CHECK(hash_a == hash_b && hash_a != hash_c);
    CHECK(memcmp(a->features, b->features, 700 * sizeof(float)) == 0);
    int seen[3] = {0};
    for (int row = 0; row < 100; row++)
        seen[a->labels[row]]++;
    CHECK(seen[0] > 10 && seen[1] > 10 && seen[2] > 10);
    CHECK(c->numbers && !c->labels && c->number_columns == 2);
    dataset_free(a);
    dataset_free(b);
    dataset_free(c);
}

TEST(every_failed_allocation_is_a_clean_refusal)
{
    enum status status = STATUS_MEMORY;
    for (long nth = 1; nth < 200 && status != STATUS_OK; nth++) {
        struct dataset *dataset = NULL;
        memory_fail_at(nth);
        status = dataset_open("iris", &(struct dataset_options){0}, &dataset);
        bool failed = memory_failed();
        memory_fail_at(0);
        if (status == STATUS_OK)
            dataset_free(dataset);
        CHECK(status == (failed ? STATUS_MEMORY : STATUS_OK));
    }
    CHECK_EQUAL_INT(status, STATUS_OK);
}

CHECK_MAIN
