/* Command lines: every way to be right, every way to be wrong, and --help. */
#include "base/args.h"
#include "base/file.h"
#include "check.h"

#include <math.h>

/* One command with an option of every kind. */
struct fixture {
    int64_t batch, steps;
    double rate, margin;
    const char *backend;
    bool json;
    const char *positional[16];
    struct arg list[6];
    struct args args;
};

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.batch = 32, .steps = 100, .rate = 0.5, .backend = "ref"};
    const struct arg list[] = {
        {.name = "batch",
         .kind = ARG_INT,
         .value = &f->batch,
         .meaning = "N",
         .help = "samples per update (32)",
         .low = 1,
         .high = 1000},
        {.name = "steps",
         .kind = ARG_INT,
         .value = &f->steps,
         .meaning = "N",
         .help = "how many steps (100)",
         .low = 0,
         .high = INFINITY},
        {.name = "rate",
         .kind = ARG_REAL,
         .value = &f->rate,
         .meaning = "R",
         .help = "learning rate (0.5)",
         .low = 0,
         .high = 10},
        {.name = "backend",
         .kind = ARG_TEXT,
         .value = &f->backend,
         .meaning = "NAME,…",
         .help = "where to run (ref)"},
        {.name = "margin",
         .kind = ARG_SHARE,
         .value = &f->margin,
         .meaning = "SHARE",
         .help = "what does not count (1%)",
         .low = 0,
         .high = 1},
        {.name = "json", .kind = ARG_FLAG, .value = &f->json, .help = "print JSON"},
    };
    memcpy(f->list, list, sizeof list);
    f->args = (struct args){.command = "prony train",
                            .usage = "NETWORK [DATA] [options]",
                            .summary = "Trains a network.",
                            .examples = "  prony train small iris\n",
                            .list = f->list,
                            .count = 6,
                            .least = 1,
                            .most = 2,
                            .positional = f->positional};
}

/* The words are an array that ends with NULL; argv[0] is put before them. */
static enum status parse(struct fixture *f, const char *const *words)
{
    const char *argv[16] = {"train"};
    int argc = 1;
    fixture_init(f);
    while (words[argc - 1]) {
        argv[argc] = words[argc - 1];
        argc++;
    }
    return args_parse(&f->args, argc, argv);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void check_refused(const char *const *words, const char *message)
{
    struct fixture f;
    CHECK_STATUS(STATUS_INPUT, parse(&f, words));
    CHECK_EQUAL_TEXT(status_message(), message);
}

TEST(defaults_stay)
{
    struct fixture f;
    CHECK_OK(parse(&f, WORDS("small")));
    CHECK(f.batch == 32 && f.steps == 100 && f.rate == 0.5 && !f.json);
    CHECK_EQUAL_TEXT(f.backend, "ref");
    CHECK_EQUAL_INT(f.args.positional_count, 1);
    for (int i = 0; i < 6; i++)
        CHECK(!f.list[i].given);
}

TEST(reads_every_kind)
{
    struct fixture f;
    CHECK_OK(parse(&f, WORDS("--batch", "8", "small", "--rate=1e-3", "--json", "iris", "--backend",
                             "ref,simd", "--steps=0")));
    CHECK(f.batch == 8 && f.steps == 0 && f.rate == 1e-3 && f.json);
    CHECK_EQUAL_TEXT(f.backend, "ref,simd");
    CHECK_OK(parse(&f, WORDS("x", "--margin", "0.05")));
    CHECK_NEAR(f.margin, 0.05, 1e-15);
    CHECK_OK(parse(&f, WORDS("x", "--margin", "2.5%")));
    CHECK_NEAR(f.margin, 0.025, 1e-15);
    CHECK_OK(parse(&f, WORDS("--batch", "8", "small", "iris", "--json")));
    CHECK_EQUAL_INT(f.args.positional_count, 2);
    CHECK_EQUAL_TEXT(f.positional[0], "small");
    CHECK_EQUAL_TEXT(f.positional[1], "iris");
    CHECK(f.list[0].given && f.list[5].given && !f.args.help);
}

TEST(dashes)
{
    struct fixture f;
    CHECK_OK(parse(&f, WORDS("-", "--", "--batch")));
    CHECK_EQUAL_TEXT(f.positional[0], "-");
    CHECK_EQUAL_TEXT(f.positional[1], "--batch");
    CHECK_OK(parse(&f, WORDS("x", "--backend", "-"))); /* values may begin with one dash */
    CHECK_EQUAL_TEXT(f.backend, "-");
    CHECK_OK(parse(&f, WORDS("x", "--backend=--odd")));
    CHECK_EQUAL_TEXT(f.backend, "--odd");
    check_refused(WORDS("x", "--backend="),
                  "--backend: found an empty text, expected --backend NAME,…");
    check_refused(WORDS("x", "--backend", ""),
                  "--backend: found an empty text, expected --backend NAME,…");
}

TEST(refuses_unknown_options)
{
    check_refused(WORDS("x", "--bacth", "3"), "unknown option --bacth, did you mean --batch?");
    check_refused(WORDS("x", "--bacth=3"), "unknown option --bacth=3, did you mean --batch?");
    check_refused(WORDS("x", "-batch", "3"), "unknown option -batch, did you mean --batch?");
    check_refused(WORDS("x", "--hlep"), "unknown option --hlep, did you mean --help?");
    check_refused(WORDS("x", "--verbose"),
                  "unknown option --verbose, expected one that prony train --help lists");
    check_refused(WORDS("x", "-q"),
                  "unknown option -q, expected one that prony train --help lists");
    check_refused(WORDS("x", "--="),
                  "unknown option --=, expected one that prony train --help lists");
}

TEST(refuses_wrong_values)
{
    check_refused(WORDS("x", "--batch"), "--batch: found no value, expected --batch N");
    check_refused(WORDS("x", "--batch", "--json"), "--batch: found no value, expected --batch N");
    check_refused(WORDS("x", "--batch", "ten"),
                  "--batch: found \"ten\", expected a whole number from 1 to 1000");
    check_refused(WORDS("x", "--batch="),
                  "--batch: found \"\", expected a whole number from 1 to 1000");
    check_refused(WORDS("x", "--batch", "0"),
                  "--batch: found \"0\", expected a whole number from 1 to 1000");
    check_refused(WORDS("x", "--batch", "1001"),
                  "--batch: found \"1001\", expected a whole number from 1 to 1000");
    check_refused(
        WORDS("x", "--batch", "99999999999999999999"),
        "--batch: found \"99999999999999999999\", expected a whole number from 1 to 1000");
    check_refused(WORDS("x", "--steps", "-1"),
                  "--steps: found \"-1\", expected a whole number of at least 0");
    check_refused(WORDS("x", "--rate", "10.5"),
                  "--rate: found \"10.5\", expected a number from 0 to 10");
    check_refused(WORDS("x", "--rate", "nan"),
                  "--rate: found \"nan\", expected a number from 0 to 10");
    const char *const shares[] = {
        "", "%", "5%%", "-1%", "101%", "much", "0.000000000000000000000000000000001"};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct fixture f;
        CHECK_STATUS(STATUS_INPUT, parse(&f, WORDS("x", "--margin", shares[i])));
        CHECK_MESSAGE("expected a share such as 5%");
    }
    check_refused(WORDS("x", "--json=yes"), "--json: found \"yes\", expected no value");
    check_refused(WORDS("x", "--batch", "3", "--batch=4"), "--batch: found twice, expected once");
}

TEST(counts_positional_arguments)
{
    check_refused(WORDS("--json"), "found 0 arguments, expected at least 1: "
                                   "prony train NETWORK [DATA] [options]");
    check_refused(WORDS("a", "b", "c"), "found 3 arguments, expected at most 2 (\"c\" is too "
                                        "many): prony train NETWORK [DATA] [options]");
    struct fixture f;
    fixture_init(&f);
    f.args.least = f.args.most = 1;
    CHECK_STATUS(STATUS_INPUT, args_parse(&f.args, 1, (const char *const[]){"train"}));
    CHECK_MESSAGE("found 0 arguments, expected 1:");
    fixture_init(&f);
    f.args.most = -1;
    CHECK_OK(args_parse(&f.args, 5, (const char *const[]){"train", "a", "b", "c", "d"}));
    CHECK_EQUAL_INT(f.args.positional_count, 4);
    f.args.least = 0;
    CHECK_OK(args_parse(&f.args, 0, NULL)); /* not even a program name */
}

TEST(help_stops_the_reading)
{
    struct fixture f;
    CHECK_OK(parse(&f, WORDS("--help")));
    CHECK(f.args.help);
    CHECK_OK(parse(&f, WORDS("a", "-h", "--nonsense")));
    CHECK(f.args.help);
    CHECK_OK(parse(&f, WORDS("--", "--help")));
    CHECK(!f.args.help);
}

TEST(help_is_as_agreed)
{
    struct fixture f;
    struct text found = {0}, expected = {0};
    fixture_init(&f);
    args_help(&f.args, &found);
    CHECK_OK(file_read("tests/golden/args_help.txt", 10000, &expected));
    CHECK_EQUAL_TEXT(text_of(&found), text_of(&expected));
    text_free(&found);
    text_free(&expected);
}

CHECK_MAIN
