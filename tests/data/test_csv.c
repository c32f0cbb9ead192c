/* CSV text → data set: what is read, and what each refusal names. */
#include "base/memory.h"
#include "check.h"
#include "data/columns.h"
#include "data/dataset.h"
#include "data/gaps.h"

#include <stdlib.h>
#include <string.h>

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

TEST(years_in_turn_are_names)
{
    struct dataset *dataset;
    if (CHECK_OK(parse("country,2019,2020\nFR,1.5,2.5\nIT,2,3\n", NULL, &dataset))) {
        CHECK_EQUAL_INT(dataset->rows, 2);
        CHECK_EQUAL_TEXT(dataset->column_names[1], "2019");
        dataset_free(dataset);
    }
    if (CHECK_OK(parse("x,2019,2019\ny,1.5,2.5\n", NULL, &dataset))) {
        CHECK_EQUAL_INT(dataset->rows, 2);
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

TEST(separators_and_decimals_are_found)
{
    static const char *const texts[] = {
        "a;b;kind\n1,5;2;x\n-3,25;4;y\n",
        "a\tb\tkind\n1.5\t2\tx\n-3.25\t4\ty\n",
        "a|b|kind\r\n1.5 | 2|x\r\n-3.25|4| y \r\n",
        "sep=;\na;b;kind\n1.5;2;x\n-3.25;4;y\n",
        "a,b,kind\r1.5,2,x\r-3.25,4,y\r",
        "1,5;2;x\n-3,25;4;y\n",
        ("\xEF\xBB\xBF"
         "a;b;kind\r\n\"1,5\" ; 2 ;\"x\"\r\n\"-3,25\";4;y\r\n"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dataset *dataset;
        if (!CHECK_OK(parse(texts[i], NULL, &dataset)))
            continue;
        CHECK_EQUAL_INT(dataset->rows, 2);
        CHECK_EQUAL_INT(dataset->columns, 2);
        CHECK(dataset->features[0] == 1.5f && dataset->features[2] == -3.25f);
        CHECK(dataset->class_count == 2 && text_equal(dataset->classes[1], "y"));
        dataset_free(dataset);
    }
}

TEST(texts_become_columns_or_codes)
{
    struct dataset *dataset;
    const char *text = "city,garden,area,price\nRome,yes,1,10.5\nLyon,no,2,20\nBari,yes,3,30\n"
                       "\"Rome\",no,4,40\n";
    static const float expected[4][5] = {
        {0, 0, 1, 1, 1}, {0, 1, 0, 0, 2}, {1, 0, 0, 1, 3}, {0, 0, 1, 0, 4}};
    if (CHECK_OK(parse(text, NULL, &dataset))) {
        CHECK_EQUAL_INT(dataset->columns, 5);
        CHECK(!memcmp(dataset->features, expected, sizeof expected));
        CHECK_EQUAL_TEXT(dataset->column_names[2], "city=Rome");
        CHECK_EQUAL_TEXT(dataset->notes, "city: 3 texts, a column each: Bari, Lyon, Rome\n"
                                         "garden: no is 0, yes is 1\n");
        dataset_free(dataset);
    }
    const struct dataset_options code = {.encode = "city=code,3", .drop = "garden"};
    if (CHECK_OK(parse(text, &code, &dataset))) {
        CHECK_EQUAL_INT(dataset->columns, 5); /* city's number, four areas */
        CHECK(dataset->features[0] == 2 && dataset->features[1] == 1);
        dataset_free(dataset);
    }
    CHECK_STATUS(STATUS_INPUT, parse(text, &(struct dataset_options){.drop = "gaden"}, &dataset));
    CHECK_MESSAGE("did you mean 'garden'?");
    CHECK_STATUS(STATUS_INPUT,
                 parse(text, &(struct dataset_options){.encode = "city=words"}, &dataset));
    CHECK_MESSAGE("expected onehot or code");
}

/* What is held out must not tell the network anything: here 1000 in the last row. */
TEST(gaps_are_filled_from_the_rows_that_are_learnt)
{
    static const uint32_t learnt[] = {1, 3, 0, 4}, none[] = {2};
    const char *text = "a,city,b,y\n1,x,5,1.5\n2,y,5,2\n,z,NA,3\n6,x,5,7\n,y,5,1\n1000,x,5,2.5\n";
    struct dataset *dataset;
    const float wanted[] = {2, 3}; /* the median and the mean of 1, 2 and 6 */
    for (int mean = 0; mean < 2; mean++) {
        if (!CHECK_OK(
                parse(text, &(struct dataset_options){.fill = mean ? "mean" : "median"}, &dataset)))
            return;
        const float *features = dataset->features;
        CHECK(features[2 * 5] > wanted[mean]); /* so far that of all rows */
        CHECK_OK(gaps_fill(dataset, learnt, 4));
        CHECK(features[2 * 5] == wanted[mean] && features[4 * 5] == wanted[mean]);
        CHECK(features[2 * 5 + 4] == 5 && features[5 * 5] == 1000);
        CHECK(dataset->table->list[0].fill == wanted[mean]);
        CHECK(strstr(dataset->notes, mean ? "means of the 4 training rows: a 3, b 5\n"
                                          : "medians of the 4 training rows: a 2, b 5\n"));
        CHECK_OK(gaps_fill(dataset, none, 1)); /* no row has a figure */
        CHECK(features[2 * 5] == 0 && dataset->table->list[0].fill == 0);
        dataset_free(dataset);
    }
}

TEST(all_refused_columns_are_told_at_once)
{
    check_refused("a,when,b,c,y\n1,2020-01-31,5,,1\n2,2020-02-01,x,3,2\n3,2020-03-01,6,4,3\n",
                  "t.csv:2:3: found '2020-01-31', expected a number in column when");
    CHECK_MESSAGE(
        "2 more columns are refused: column b, line 3: found 'x'; column c, line 2: found "
        "a missing value in column c");
}

TEST(missing_values_are_filled_or_left_out)
{
    struct dataset *dataset;
    const char *text = "a,b,city,y\n1,?,Rome,1.5\nNA,4,,2\n3,6,Bari,nan\n8,N/A,Rome,7\n";
    const char *whole = "a,b,city,y\n1,?,Rome,1.5\nNA,4,,2\n3,6,Bari,3\n8,N/A,Rome,7\n";
    if (CHECK_OK(parse(whole, &(struct dataset_options){.fill = "median"}, &dataset))) {
        CHECK_EQUAL_INT(dataset->columns, 5);
        CHECK(dataset->features[1] == 5 && dataset->features[5] == 3); /* of 1, 3 and 8 */
        CHECK(dataset->features[7] == 1); /* the text that is missing is one of its own */
        dataset_free(dataset);
    }
    if (CHECK_OK(parse(whole, &(struct dataset_options){.fill = "mean"}, &dataset))) {
        CHECK(dataset->features[5] == 4);
        dataset_free(dataset);
    }
    if (CHECK_OK(
            parse(text, &(struct dataset_options){.drop_rows = true, .drop = "b"}, &dataset))) {
        CHECK_EQUAL_INT(dataset->rows, 2);
        CHECK(dataset->numbers[1] == 7);
        dataset_free(dataset);
    }
    check_refused(whole, "t.csv:3:1: found 'NA', a missing value, in column a, expected a number; "
                         "add --fill median");
    CHECK_STATUS(STATUS_INPUT, parse(text, &(struct dataset_options){.fill = "zero"}, &dataset));
    CHECK_MESSAGE("t.csv:4:10: found a missing value, expected a label; --drop-rows");
    CHECK_STATUS(STATUS_INPUT, parse(text, &(struct dataset_options){.fill = "most"}, &dataset));
    CHECK_MESSAGE("--fill: found 'most', expected mean, median, zero or a number");
}

TEST(what_can_be_read_in_two_ways_is_refused_with_a_hint)
{
    struct text many = {0};
    check_refused("day,y\n2021-03-04,1.5\n2021-03-05,2\n",
                  "t.csv:2:1: found '2021-03-04', expected a number in column day: a date");
    check_refused("day,y\n4.3.2021,1.5\n5.3.2021,2\n", "--drop day");
    check_refused("a,y\n\"1,200\",1.5\n\"2,300\",2\n", "a thousands separator?");
    check_refused("a;y\n1.200,5;1,5\n1.300,5;2\n", "a thousands separator?");
    check_refused("a,y\n$12,1.5\n$13,2\n", "a unit?");
    check_refused("a,y\n1,\"1,200\"\n2,\"3,400\"\n",
                  "found the label '1,200', expected a plain number");
    check_refused("a,y\n1,2021-03-04\n2,2021-03-05\n", "--target says which column");
    check_refused("a,y\n1,2\n3,4\nfive,6\n",
                  "t.csv:4:1: found 'five', expected a number as elsewhere "
                  "in column a; --encode a");
    check_refused("city,y\ncaf\xE9,1.5\nRome,2\n", "found the byte 0xE9 in a text, expected UTF-8");
    text_add(&many, "comment,y\n");
    for (int i = 0; i < 100; i++)
        text_printf(&many, "words %d,%d.5\n", i, i);
    check_refused(text_of(&many), "t.csv:2:1: found 100 different texts in 100 rows of column "
                                  "comment, as 'words 0', expected texts that rows share");
    text_free(&many);
}

TEST(labels_from_1_and_two_integers_are_classes)
{
    struct dataset *dataset;
    static const struct dataset_options classes = {.as_classes = true};
    static const struct {
        const char *text;
        const struct dataset_options *options;
        int classes;
    } cases[] = {
        {"0,1\n0,2\n0,3\n0,1\n0,2\n0,3\n0,1\n0,2\n0,3\n", NULL, 3},
        {"0,1\n0,2\n0,3\n0,4\n", NULL, 0}, /* a count, as likely */
        {"0,-1\n0,1\n0,-1\n0,1\n0,1\n0,1\n", NULL, 2},
        {"0,5\n0,7\n0,6\n0,5\n", NULL, 0},
        {"0,5\n0,7\n0,6\n0,10\n", &classes, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (CHECK_OK(parse(cases[i].text, cases[i].options, &dataset))) {
            CHECK_EQUAL_INT(dataset->class_count, cases[i].classes);
            if (cases[i].options)
                CHECK_EQUAL_TEXT(dataset->classes[3], "10"); /* by value */
            dataset_free(dataset);
        }
}

/* Reads a file as another was read: by what is saved of its columns. */
static enum status parse_like(const char *learnt, const struct dataset_options *options,
                              const char *text, struct dataset **out)
{
    struct dataset *first;
    struct text saved = {0};
    struct arena arena = {0};
    struct columns *columns = NULL;
    TRY(parse(learnt, options, &first));
    columns_write(first->table, &saved);
    dataset_free(first);
    enum status status = columns_read(&arena, "saved", text_of(&saved), &columns);
    text_free(&saved);
    if (status == STATUS_OK)
        status = parse(text, &(struct dataset_options){.columns = columns}, out);
    arena_free(&arena);
    return status;
}

TEST(other_files_are_read_as_the_network_learnt_it)
{
    struct dataset *dataset;
    const struct dataset_options median = {.fill = "median", .drop = "id"};
    const char *learnt = "id,city,garden,area,price\n1,Rome,yes,10,1.5\n2,Bari,no,20,2\n"
                         "3,Lyon,no,,3\n";
    static const float expected[] = {0, 0, 1, 1, 7, 0, 0, 0, 0, 15};
    if (CHECK_OK(parse_like(learnt, &median, "area;agent;garden;city\n7;Z;yes;Rome\n;Y;no;Oslo\n",
                            &dataset))) {
        CHECK(dataset->columns == 5 && !dataset->numbers && !dataset->labels);
        CHECK(!memcmp(dataset->features, expected, sizeof expected));
        CHECK_EQUAL_TEXT(
            dataset->notes,
            "columns separated by semicolons\n"
            "city: 1 row has a text that was not learnt, as 'Oslo' in line 3: taken as "
            "none of the 3\n");
        dataset_free(dataset);
    }
    if (CHECK_OK(parse_like(learnt, &median,
                            "price,area,garden,city\n5.5,7,yes,Rome\n6,8,no,Bari\n", &dataset))) {
        CHECK(dataset->numbers && dataset->numbers[0] == 5.5f);
        dataset_free(dataset);
    }
    CHECK_STATUS(STATUS_INPUT, parse_like(learnt, &median, "area,city\n1,Rome\n", &dataset));
    CHECK_MESSAGE("found no column 'garden', expected it");
    CHECK_STATUS(STATUS_INPUT,
                 parse_like(learnt, &median, "area,city,garden\n1,Rome,maybe\n", &dataset));
    CHECK_MESSAGE("t.csv:2:8: found 'maybe' in column garden, expected one of the 2 texts");
    if (CHECK_OK(parse_like("1.5,x,3\n2,y,4\n2.5,y,4.5\n", NULL, "9,x\n8,y\n", &dataset))) {
        CHECK(dataset->columns == 2 && dataset->features[3] == 1); /* by their places */
        dataset_free(dataset);
    }
}

TEST(columns_of_a_strange_file_are_refused)
{
    static const char *const texts[] = {
        "[]",
        "{}",
        "{\"target\":[],\"columns\":[]}",
        "{\"target\":[],\"columns\":[{\"name\":\"a\",\"place\":0,\"kind\":\"number\"}]}",
        "{\"target\":[],\"columns\":[{\"name\":\"a\",\"place\":1,\"kind\":\"date\"}]}",
        "{\"target\":[],\"columns\":[{\"name\":\"a\",\"place\":1,\"kind\":\"code\"}]}",
        "{\"target\":[],\"columns\":[{\"name\":\"a\",\"place\":1,\"kind\":\"code\","
        "\"values\":[\"b\",\"a\"]}]}",
        "{\"target\":[1],\"columns\":[{\"name\":\"a\",\"place\":1,\"kind\":\"number\"}]}",
        "{\"target\":[],\"columns\":[{\"name\":\"a\",\"place\":1,\"kind\":\"number\","
        "\"fill\":1e99}]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct arena arena = {0};
        struct columns *columns;
        if (CHECK_STATUS(STATUS_INPUT, columns_read(&arena, "m", texts[i], &columns)))
            CHECK_MESSAGE("expected what prony train writes");
        arena_free(&arena);
    }
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

TEST(every_failed_allocation_of_a_table_is_a_clean_refusal)
{
    const char *text = "city,garden,area,price\nRome,yes,1,10.5\nLyon,no,,20\n,yes,3,30\n";
    enum status status = STATUS_MEMORY;
    for (long nth = 1; nth < 200 && status != STATUS_OK; nth++) {
        struct dataset *dataset = NULL;
        memory_fail_at(nth);
        status = parse(text, &(struct dataset_options){.fill = "median"}, &dataset);
        bool failed = memory_failed();
        memory_fail_at(0);
        if (status == STATUS_OK)
            dataset_free(dataset);
        CHECK(status == (failed ? STATUS_MEMORY : STATUS_OK));
    }
    CHECK_EQUAL_INT(status, STATUS_OK);
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
