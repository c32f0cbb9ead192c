/* Growing strings, strict numbers, "did you mean", and quantities for people. */
#include "base/memory.h"
#include "base/plain.h"
#include "base/text.h"
#include "check.h"

#include <stdint.h>

TEST(words_are_wrapped)
{
    struct text text = {0};
    text_add_wrapped(&text, "one two\nthree  four", 0, 2, 9);
    CHECK_EQUAL_TEXT(text_of(&text), "one two\n  three\n  four");
    text_clear(&text);
    text_add_wrapped(&text, "µµµ µµµ µ\n\nend ", 3, 0, 10);
    CHECK_EQUAL_TEXT(text_of(&text), "µµµ µµµ\nµ\n\nend");
    text_clear(&text);
    text_add_wrapped(&text, "a word_that_is_too_long b", 0, 1, 5);
    CHECK_EQUAL_TEXT(text_of(&text), "a\n word_that_is_too_long\n b");
    text_clear(&text);
    text_clear(&text);
    text_add_wrapped(&text, "accuracy 73.3\n%, 1.63 µs ± 2 % at 6,738 samples/s", 0, 1, 14);
    CHECK_EQUAL_TEXT(text_of(&text), "accuracy\n 73.3 %,\n 1.63 µs ± 2 %\n at\n 6,738 samples/s");
    text_clear(&text);
    text_add_wrapped(&text, " ", 0, 1, 5);
    CHECK_EQUAL_TEXT(text_of(&text), "");
    text_free(&text);
    CHECK(text_width("8×7 …") == 5);
}

/* A figure, its spread and its unit are one to the eye. */
TEST(figures_keep_their_units)
{
    static const struct {
        const char *line;
        size_t blank;
        bool may;
    } cases[] = {{"73.3 %", 4, false},   {"1.63 µs, best", 4, false}, {"± 2", 2, false},
                 {"1.6 × as", 3, false}, {"1.6 × as", 6, false},      {"27 of 60", 2, true},
                 {"batch 64", 5, true},  {"64 threads", 2, true},     {"8 GFLOP/s.", 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(text_may_break(cases[i].line, cases[i].blank) == cases[i].may);
    CHECK_EQUAL_INT(text_unbroken("48 ms ± 2 %"), strlen("48 ms"));
    CHECK_EQUAL_INT(text_unbroken("± 2 % more"), strlen("± 2 %"));
    CHECK_EQUAL_INT(text_unbroken("7 "), 1);
}

TEST(grows)
{
    struct text text = {0};
    CHECK_EQUAL_TEXT(text_of(&text), "");
    for (int i = 0; i < 1000; i++)
        text_printf(&text, "%d,", i);
    text_add_char(&text, 'x');
    text_add_bytes(&text, "a\0b", 3);
    CHECK_OK(text_done(&text));
    CHECK_EQUAL_INT(text.length, 10 * 2 + 90 * 3 + 900 * 4 + 1 + 3);
    CHECK(memcmp(text.data + text.length - 5, ",xa\0b", 6) == 0);
    text_clear(&text);
    CHECK_EQUAL_TEXT(text_of(&text), "");
    text_add(&text, "again");
    CHECK_EQUAL_TEXT(text_of(&text), "again");
    text_free(&text);
    CHECK(text.data == NULL && text.length == 0);
}

TEST(remembers_a_lost_append)
{
    struct text text = {0};
    text_add(&text, "kept");
    memory_fail_at(1);
    text_printf(&text, "%200s", "lost");
    memory_fail_at(0);
    text_add(&text, "also lost, or the middle would be missing");
    CHECK_EQUAL_TEXT(text_of(&text), "kept");
    CHECK_STATUS(STATUS_MEMORY, text_done(&text));
    text_clear(&text);
    CHECK_OK(text_done(&text));
    text_free(&text);
}

TEST(reads_integers)
{
    int64_t value = 7;
    CHECK(text_to_int("0", &value) && value == 0);
    CHECK(text_to_int("-0", &value) && value == 0);
    CHECK(text_to_int("9223372036854775807", &value) && value == INT64_MAX);
    CHECK(text_to_int("-9223372036854775808", &value) && value == INT64_MIN);
    value = 7;
    static const char *const wrong[] = {"",
                                        "-",
                                        " 1",
                                        "1 ",
                                        "+1",
                                        "1.0",
                                        "0x1",
                                        "1e3",
                                        "--1",
                                        "ten",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!text_to_int(wrong[i], &value));
    CHECK_EQUAL_INT(value, 7);
    uint64_t size;
    CHECK(text_to_uint("18446744073709551615", &size) && size == UINT64_MAX);
    CHECK(!text_to_uint("18446744073709551616", &size));
    CHECK(!text_to_uint("-1", &size));
}

TEST(reads_reals)
{
    double value = 7;
    CHECK(text_to_real("0.1", &value) && value == 0.1);
    CHECK(text_to_real("-1e-3", &value) && value == -1e-3);
    CHECK(text_to_real("5e-324", &value) && value > 0);
    CHECK(text_to_real("1e-999", &value) && value == 0);
    value = 7;
    static const char *const wrong[] = {"",      " 1",    "1 ",    "1,5", "inf", "nan",
                                        "0x1p3", "1e999", "1.2.3", "e5",  ".",   "-"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!text_to_real(wrong[i], &value));
    CHECK(value == 7);
}

TEST(compares)
{
    CHECK(text_starts("network", "net") && !text_starts("net", "network"));
    CHECK(text_ends("a.csv", ".csv") && !text_ends("csv", ".csv") && text_ends("a", ""));
    CHECK(text_equal(NULL, NULL) && !text_equal(NULL, "") && text_equal("a", "a"));
}

TEST(finds_what_was_meant)
{
    static const char *const names[] = {"batch", "threads", "backend", "phase", "seed", "isa"};
    CHECK_EQUAL_TEXT(text_nearest("bacth", names, 6), "batch");
    CHECK_EQUAL_TEXT(text_nearest("thread", names, 6), "threads");
    CHECK_EQUAL_TEXT(text_nearest("backened", names, 6), "backend");
    CHECK_EQUAL_TEXT(text_nearest("batch", names, 6), "batch");
    CHECK_EQUAL_TEXT(text_nearest("sed", names, 6), "seed");
    CHECK_EQUAL_TEXT(text_nearest("ias", names, 6), "isa"); /* a swap is one mistake */
    CHECK_EQUAL_TEXT(text_nearest("verbose", names, 6), NULL);
    CHECK_EQUAL_TEXT(text_nearest("x", names, 6), NULL);
    CHECK_EQUAL_TEXT(text_nearest("", names, 6), NULL);
    char endless[300];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    CHECK_EQUAL_TEXT(text_nearest(endless, names, 6), NULL);
}

TEST(knows_utf8)
{
    CHECK_EQUAL_INT(text_utf8("a", 1), 1);
    CHECK_EQUAL_INT(text_utf8("é", 2), 2);
    CHECK_EQUAL_INT(text_utf8("€", 3), 3);
    CHECK_EQUAL_INT(text_utf8("\xF0\x9F\x98\x80", 4), 4);
    CHECK_EQUAL_INT(text_utf8("\xF4\x8F\xBF\xBF", 4), 4);
    CHECK_EQUAL_INT(text_utf8("€", 2), 0);        /* cut short */
    CHECK_EQUAL_INT(text_utf8("\x80", 1), 0);     /* a continuation alone */
    CHECK_EQUAL_INT(text_utf8("\xC0\x80", 2), 0); /* overlong */
    CHECK_EQUAL_INT(text_utf8("\xE0\x80\x80", 3), 0);
    CHECK_EQUAL_INT(text_utf8("\xED\xA0\x80", 3), 0);     /* a surrogate */
    CHECK_EQUAL_INT(text_utf8("\xF4\x90\x80\x80", 4), 0); /* above U+10FFFF */
    CHECK_EQUAL_INT(text_utf8("\xE2\x28\xA1", 3), 0);
    CHECK_EQUAL_INT(text_utf8("\xE2\x82\x28", 3), 0);
}

/* What one of the text_add_… functions makes of a number. */
static const char *written(void (*add)(struct text *, double), double number)
{
    static char result[64];
    struct text text = {0};
    add(&text, number);
    snprintf(result, sizeof result, "%s", text_of(&text));
    text_free(&text);
    return result;
}

TEST(writes_quantities)
{
    CHECK_EQUAL_TEXT(written(text_add_size, 0), "0 B");
    CHECK_EQUAL_TEXT(written(text_add_size, 999), "999 B");
    CHECK_EQUAL_TEXT(written(text_add_size, 1000), "1.00 KB");
    CHECK_EQUAL_TEXT(written(text_add_size, 11.8e6), "11.8 MB");
    CHECK_EQUAL_TEXT(written(text_add_size, 999.9e6), "1.00 GB");
    CHECK_EQUAL_TEXT(written(text_add_size, 5e18), "5000 PB");
    CHECK_EQUAL_TEXT(written(text_add_time, 1.42e6), "1.42 ms");
    CHECK_EQUAL_TEXT(written(text_add_time, 9.996), "10.0 ns");
    CHECK_EQUAL_TEXT(written(text_add_time, 12345), "12.3 µs");
    CHECK_EQUAL_TEXT(written(text_add_time, 3.6e12), "3600 s");
    CHECK_EQUAL_TEXT(written(text_add_count, 62), "62");
    CHECK_EQUAL_TEXT(written(text_add_count, 12337201), "12.3 M");
    CHECK_EQUAL_TEXT(written(text_add_count, -1234), "-1.23 k");
    struct text text = {0};
    text_add_grouped(&text, 1234567);
    text_add_char(&text, ' ');
    text_add_grouped(&text, 12);
    text_add_char(&text, ' ');
    text_add_grouped(&text, UINT64_MAX);
    CHECK_EQUAL_TEXT(text_of(&text), "1,234,567 12 18,446,744,073,709,551,615");
    text_free(&text);
}

TEST(plain_text_is_not_obeyed)
{
    static const struct {
        const char *given, *shown;
    } rows[] = {
        {"plain, \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80",
         "plain, \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"a\x1B[2Jb\a\n\t\x7F", "a\\u001b[2Jb\\u0007\\u000a\\u0009\\u007f"},
        {"\xC2\x9B"
         "31m",
         "\\u009b31m"}, /* the same command, as one character */
        {"\x9B"
         "31m\xFF",
         "\\x9b31m\\xff"},
        {"\xE2\x80\xAEtxt.exe", "\\u202etxt.exe"},
        {"cut \xE2\x82", "cut \\xe2\\x82"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char once[64], twice[64];
        CHECK_EQUAL_INT(plain_copy(once, sizeof once, rows[i].given), strlen(rows[i].shown));
        CHECK_EQUAL_TEXT(once, rows[i].shown);
        plain_copy(twice, sizeof twice, once);
        CHECK_EQUAL_TEXT(twice, once);
    }
    char shown[PLAIN_MOST];
    CHECK(plain_show("\nx", 2, true, shown) == 1 && text_equal(shown, "\n"));
    CHECK(plain_show("\rx", 2, true, shown) == 1 && text_equal(shown, "\\u000d"));
    CHECK_STATUS(STATUS_INPUT, status_fail(STATUS_INPUT, __FILE__, __LINE__, "found '%s'", "\x1B"));
    CHECK_MESSAGE("found '\\u001b'");
}

TEST(characters_are_not_cut)
{
    static const char text[] = "a\xC3\xA9\x1B\xE2\x82\xAC";
    static const char *const begins[] = {
        "",          "a",         "a",         "a\xC3\xA9", "a\xC3\xA9",
        "a\xC3\xA9", "a\xC3\xA9", "a\xC3\xA9", "a\xC3\xA9", "a\xC3\xA9\\u001b"};
    char begin[16];
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        plain_copy(begin, i + 1, text);
        CHECK_EQUAL_TEXT(begin, begins[i]);
    }
    CHECK_EQUAL_TEXT(plain_end(text, 13), text);
    CHECK_EQUAL_TEXT(plain_end(text, 12), text + 1);
    CHECK_EQUAL_TEXT(plain_end(text, 11), text + 3);
    CHECK_EQUAL_TEXT(plain_end(text, 9), text + 4);
    CHECK_EQUAL_TEXT(plain_end(text, 3), "");
}

static bool is_utf8(const char *text)
{
    for (size_t left = strlen(text), size; left; left -= size, text += size)
        if (!(size = text_utf8(text, left)))
            return false;
    return true;
}

TEST(a_long_message_is_cut_between_characters)
{
    char name[4999]; /* whole characters */
    for (size_t i = 0; i < sizeof name - 1; i++)
        name[i] = (char)(i % 3 == 0 ? 0xE2 : i % 3 == 1 ? 0x82 : 0xAC);
    name[sizeof name - 1] = '\0';
    for (int shift = 0; shift < 6; shift++) {
        status_fail(STATUS_INPUT, __FILE__, __LINE__, "%.*s%s%.*s", shift % 3, "xxx", name,
                    shift / 3, "xxx");
        CHECK(is_utf8(status_message()));
        CHECK_MESSAGE("\xE2\x82\xAC … \xE2\x82\xAC");
    }
    memset(name, '\x1B', sizeof name - 1);
    status_fail(STATUS_INPUT, __FILE__, __LINE__, "%s, expected less", name);
    CHECK_MESSAGE("\\u001b … \\u001b");
    CHECK_MESSAGE("\\u001b, expected less");
}

TEST(a_long_message_keeps_its_end)
{
    char name[5000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    status_fail(STATUS_INPUT, __FILE__, __LINE__, "found '%s', expected less", name);
    CHECK_MESSAGE("found 'xxx");
    CHECK_MESSAGE("xxx … xxx");
    CHECK_MESSAGE("xxx', expected less");
    status_prefix(STATUS_INPUT, "%s", name);
    CHECK_MESSAGE("xxx', expected less");
    CHECK(strlen(status_message()) < sizeof status_last()->message);
}

CHECK_MAIN
