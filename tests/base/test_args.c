/* Command lines: every way to be right, every way to be wrong, and --help. */
#include "base/args.h"
#include "base/file.h"
#include "check.h"

#include <math.h>

/* One command with an option of every kind. */
struct values {
    int64_t batch, steps;
    double rate, margin;
    const char *backend;
    bool json;
};
static const struct arg rows[] = {
    {ARG(struct values, batch), "N", "samples per update (32)", ARG_FROM(1, 1000), "32"},
    {ARG(struct values, steps), "N", "how many steps (100)", ARG_FROM(0, INFINITY), "100"},
    {ARG(struct values, rate), "R", "learning rate (0.5)", ARG_FROM(0, 10), "0.5"},
    {ARG(struct values, backend), "NAME,…", "where to run (ref)", .otherwise = "ref"},
    {.name = "margin",
     .kind = ARG_SHARE,
     ARG_PLACE(struct values, margin),
     "SHARE",
     "what does not count (1%)",
     ARG_FROM(0, 1)},
    {ARG(struct values, json), NULL, "print JSON"},
    ARG_END,
};
struct fixture {
    const char *positional[16];
    struct args_found found;
    struct values values;
};
static const struct args train = {.command = "prony train",
                                  .usage = "NETWORK [DATA] [options]",
                                  .summary = "Trains a network.",
                                  .examples = "  prony train small iris\n",
                                  .lists = {{rows, offsetof(struct fixture, values)}},
                                  .least = 1,
                                  .most = 2};

/* The words are an array that ends with NULL; argv[0] is put before them. */
static enum status parse(struct fixture *f, const char *const *words)
{
    const char *argv[16] = {"train"};
    int argc = 1;
    *f = (struct fixture){.found.positional = f->positional};
    while (words[argc - 1]) {
        argv[argc] = words[argc - 1];
        argc++;
    }
    return args_parse(&train, argc, argv, f, &f->found);
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
    CHECK(f.values.batch == 32 && f.values.steps == 100 && f.values.rate == 0.5 && !f.values.json);
    CHECK_EQUAL_TEXT(f.values.backend, "ref");
    CHECK_EQUAL_INT(f.found.count, 1);
    for (int i = 0; i < 6; i++)
        CHECK(!args_given(&train, &f.found, rows[i].name));
}

TEST(reads_every_kind)
{
    struct fixture f;
    CHECK_OK(parse(&f, WORDS("--batch", "8", "small", "--rate=1e-3", "--json", "iris", "--backend",
                             "ref,simd", "--steps=0")));
    CHECK(f.values.batch == 8 && f.values.steps == 0 && f.values.rate == 1e-3 && f.values.json);
    CHECK_EQUAL_TEXT(f.values.backend, "ref,simd");
    CHECK_OK(parse(&f, WORDS("x", "--margin", "0.05")));
    CHECK_NEAR(f.values.margin, 0.05, 1e-15);
    CHECK_OK(parse(&f, WORDS("x", "--margin", "2.5%")));
    CHECK_NEAR(f.values.margin, 0.025, 1e-15);
    CHECK_OK(parse(&f, WORDS("--batch", "8", "small", "iris", "--json")));
    CHECK_EQUAL_INT(f.found.count, 2);
    CHECK_EQUAL_TEXT(f.positional[0], "small");
    CHECK_EQUAL_TEXT(f.positional[1], "iris");
    CHECK(args_given(&train, &f.found, "batch") && args_given(&train, &f.found, "json"));
    CHECK(!f.found.help);
}

TEST(dashes)
{
    struct fixture f;
    CHECK_OK(parse(&f, WORDS("-", "--", "--batch")));
    CHECK_EQUAL_TEXT(f.positional[0], "-");
    CHECK_EQUAL_TEXT(f.positional[1], "--batch");
    CHECK_OK(parse(&f, WORDS("x", "--backend", "-"))); /* values may begin with one dash */
    CHECK_EQUAL_TEXT(f.values.backend, "-");
    CHECK_OK(parse(&f, WORDS("x", "--backend=--odd")));
    CHECK_EQUAL_TEXT(f.values.backend, "--odd");
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
    struct fixture f = {.found.positional = f.positional};
    struct args other = train;
    other.least = other.most = 1;
    CHECK_STATUS(STATUS_INPUT, args_parse(&other, 1, (const char *const[]){"train"}, &f, &f.found));
    CHECK_MESSAGE("found 0 arguments, expected 1:");
    other.most = -1;
    CHECK_OK(
        args_parse(&other, 5, (const char *const[]){"train", "a", "b", "c", "d"}, &f, &f.found));
    CHECK_EQUAL_INT(f.found.count, 4);
    other.least = 0;
    CHECK_OK(args_parse(&other, 0, NULL, &f, &f.found)); /* not even a program name */
}

/* Another command may fill a part of its struct with the rows of one there is. */
TEST(lists_fill_parts_of_a_struct)
{
    struct both {
        bool last;
        struct values first, second;
    } both = {0};
    static const struct arg one[] = {{ARG(struct both, last), NULL, "the last"},
                                     {ARG_NAMED(NULL, struct both, last), NULL, "no option"},
                                     ARG_END};
    const struct args args = {.command = "x",
                              .lists = {{rows, offsetof(struct both, second)}, {one, 0}}};
    struct args_found found = {0};
    CHECK_OK(
        args_parse(&args, 4, (const char *const[]){"x", "--batch", "9", "--last"}, &both, &found));
    CHECK(both.second.batch == 9 && both.second.steps == 100 && both.first.batch == 0);
    CHECK(both.last && args_given(&args, &found, "last") && !args_given(&args, &found, "rate"));
    CHECK(args_at(&args, 6) == &one[0] && !args_at(&args, 7));
}

TEST(help_stops_the_reading)
{
    struct fixture f;
    CHECK_OK(parse(&f, WORDS("--help")));
    CHECK(f.found.help);
    CHECK_OK(parse(&f, WORDS("a", "-h", "--nonsense")));
    CHECK(f.found.help);
    CHECK_OK(parse(&f, WORDS("--", "--help")));
    CHECK(!f.found.help);
}

TEST(help_of_everything_is_asked_for)
{
    struct fixture f;
    CHECK_OK(parse(&f, WORDS("--help", "all")));
    CHECK(f.found.help && f.found.help_all);
    CHECK_OK(parse(&f, WORDS("--help", "batch")));
    CHECK(f.found.help && !f.found.help_all);
}

enum { MANY = ARGS_FEW + 2 };
struct many {
    bool flags[MANY];
};
static const struct arg many_rows[] = {
#define FLAG(n, word)                                                                              \
    {                                                                                              \
        .name = word, .kind = ARG_FLAG, .offset = n, .bytes = sizeof(bool), .help = "a flag " word \
    }
    FLAG(0, "a"),  FLAG(1, "b"),  FLAG(2, "c"),  FLAG(3, "d"),  FLAG(4, "e"),  FLAG(5, "f"),
    FLAG(6, "g"),  FLAG(7, "h"),  FLAG(8, "i"),  FLAG(9, "j"),  FLAG(10, "k"), FLAG(11, "l"),
    FLAG(12, "m"), FLAG(13, "n"), FLAG(14, "o"), FLAG(15, "p"), ARG_END,
};

TEST(help_shows_few_of_many)
{
    struct args many = {.command = "prony many", .usage = "", .summary = "Many."};
    struct text found = {0};
    many.lists[0].rows = many_rows;
    many.often = "p b";
    args_help(&many, "have many", false, 80, &found);
    CHECK(strstr(text_of(&found), "  --p     a flag p\n  --b     a flag b\n\n14 more: prony many"));
    CHECK(!strstr(text_of(&found), "--a "));
    text_clear(&found);
    args_help(&many, "have many", true, 80, &found);
    CHECK(strstr(text_of(&found), "--a ") && strstr(text_of(&found), "--o "));
    CHECK(!strstr(text_of(&found), "more:"));
    text_clear(&found);
    many.often = NULL;
    args_help(&many, "have many", false, 80, &found);
    CHECK(strstr(text_of(&found), "--j ") && !strstr(text_of(&found), "--k "));
    text_free(&found);
}

/* No line is wider, and a command that is broken can still be pasted. */
TEST(help_fits_its_width)
{
    struct args long_one = train;
    struct text found = {0};
    long_one.examples =
        "prony train small iris --epochs 100 --rate 0.5 --out trained.safetensors\n";
    args_help(&long_one, "learn from data, so that it can be told afterwards", false, 44, &found);
    int column = 0;
    for (const char *at = text_of(&found); *at; at++) {
        column = *at == '\n' ? 0 : column + ((*at & 0xC0) != 0x80);
        CHECK(column <= 44);
    }
    CHECK(strstr(text_of(&found), "  prony train small iris --epochs 100 \\\n"
                                  "      --rate 0.5 --out trained.safetensors\n"));
    text_free(&found);
}

TEST(help_is_as_agreed)
{
    struct text found = {0}, expected = {0};
    args_help(&train, "learn from data", false, 80, &found);
    CHECK_OK(file_read("tests/golden/args_help.txt", 10000, &expected));
    CHECK_EQUAL_TEXT(text_of(&found), text_of(&expected));
    text_free(&found);
    text_free(&expected);
}

CHECK_MAIN
