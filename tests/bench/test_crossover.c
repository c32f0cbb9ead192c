/* From where on the GPU is faster, as records of both units say. */
#include "backend/cpu/cpu_backends.h"
#include "bench/sweep/crossover.h"
#include "check.h"

enum { MOST = 12 };
static struct record records[MOST];
static struct table_row rows[MOST];
static int count;

/* One more result; within: the half of its interval, as a share. */
static void add(const char *model, const char *unit, int64_t batch, double ns, double within)
{
    struct record *record = &records[count];
    record_start(record);
    CHECK_OK(point_set(&record->point, &axes[AXIS_model], model));
    CHECK_OK(point_set(&record->point, &axes[AXIS_unit], unit));
    record->point.batch = batch;
    record->time_ns.median = ns;
    record->time_ns.ci_low = ns * (1 - within);
    record->time_ns.ci_high = ns * (1 + within);
    rows[count++] = (struct table_row){.record = record};
}

/* A table of batches, or widths, 4, 16, 64 …: of each what the GPU is: '+' faster, '-' slower, '~'
 * as fast, '?' not known, '.' could not run. */
static void check_says(const char *verdicts, bool widths, const char *expected)
{
    struct text out = {0};
    int64_t place = 4;
    count = 0;
    for (const char *at = verdicts; *at; at++, place *= 4) {
        char model[64];
        snprintf(model, sizeof model, "mlp:4-%lld-%lld-%lld-1:sigmoid", (long long)place,
                 (long long)place, (long long)place);
        const char *name = widths ? model : "mlp:4-64-64-64-1:sigmoid";
        const int64_t batch = widths ? 10 : place;
        const double gpu = *at == '+' ? 500 : *at == '-' ? 2000 : 1000;
        add(name, "cpu", batch, 1000, 0.001);
        add(name, "gpu", batch, gpu, *at == '?' ? 0.3 : 0.001);
        if (*at == '.')
            records[count - 1].status = RECORD_SKIPPED;
    }
    CHECK_OK(crossover_print(rows, (size_t)count, widths, &out));
    const char *sentence = strstr(text_of(&out), " |\n\n");
    CHECK_EQUAL_TEXT(sentence ? sentence + strlen(" |\n\n") : text_of(&out), expected);
    text_free(&out);
}

TEST(says_from_where_on)
{
    check_says("-++", false, "The GPU is faster from batch 16 on.\n");
    check_says("+-+", false, "The GPU is faster from batch 64 on.\n");
    check_says("++-", false, "The GPU is not faster at the largest batch measured.\n");
    check_says("-+~", false, "The GPU is not faster at the largest batch measured.\n");
    check_says("-++", true, "The GPU is faster from width 16 on.\n");
}

TEST(concludes_nothing_where_intervals_overlap)
{
    check_says("-+??", false, "The GPU is faster at batch 16; at 64, 256 it cannot be told.\n");
    check_says("++?", false, "The GPU is faster from batch 4 to 16; at 64 it cannot be told.\n");
    check_says("+?+", false, "The GPU is faster from batch 4 on; at 16 it cannot be told.\n");
    check_says("?-?+", false, "The GPU is faster from batch 256 on.\n");
    check_says("-?", false,
               "It cannot be told whether the GPU is faster at the largest batch measured.\n");
    check_says("-+.", false, "The GPU is faster at batch 16; at 64 it cannot be told.\n");
}

/* A network of the user's may be one of those that are asked for growing widths. */
TEST(batches_of_any_network_are_one_table)
{
    struct text out = {0};
    count = 0;
    for (int64_t batch = 1; batch <= 4; batch *= 4) {
        add("mlp:4-64-64-64-1:sigmoid", "cpu", batch, 1000, 0.001);
        add("mlp:4-64-64-64-1:sigmoid", "gpu", batch, 500, 0.001);
    }
    CHECK_OK(crossover_print(rows, (size_t)count, false, &out));
    CHECK(strstr(text_of(&out), "| batch | CPU | GPU |") != NULL);
    CHECK(strstr(text_of(&out), "| 1 |") < strstr(text_of(&out), "| 4 |"));
    const char *first = strstr(text_of(&out), "The GPU is faster from batch 1 on.");
    CHECK(first != NULL && strstr(first + 1, "The GPU") == NULL);
    text_free(&out);
}

/* Sums of a wide layer must not saturate: subnormal numbers would be timed. */
TEST(widths_learn_slowly)
{
    struct bench_request request, named;
    const char *const own[] = {"small"}, *const *models = NULL, *const *given = own;
    struct registry registry = {0};
    struct arena arena = {0};
    int widths = 0, one = 1;
    cpu_register(&registry);
    bench_request_start(&request);
    bench_request_start(&named);
    CHECK_OK(crossover_ask(&registry, &request, &arena, &models, &widths));
    CHECK_EQUAL_INT(widths, 10);
    CHECK_EQUAL_TEXT(request.axis_text[AXIS_optimiser], "sgd:rate=0.01");
    CHECK_OK(crossover_ask(&registry, &named, &arena, &given, &one));
    CHECK(named.axis_text[AXIS_optimiser] == NULL);
    registry_close(&registry);
    arena_free(&arena);
}

CHECK_MAIN
