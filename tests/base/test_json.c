/* The JSON reader against RFC 8259, the writer against the reader. */
#include "base/json.h"
#include "base/memory.h"
#include "check.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static enum status parse(struct arena *arena, const char *text, struct json **out)
{
    return json_parse(arena, "t", text, strlen(text), out);
}

/* The text is refused with exactly this message. */
static void check_refused(const char *text, const char *message)
{
    struct arena arena = {0};
    struct json *value;
    if (!CHECK_STATUS(STATUS_INPUT, parse(&arena, text, &value)))
        printf("  the text was: %s\n", text);
    else
        CHECK_EQUAL_TEXT(status_message(), message);
    arena_free(&arena);
}

/* The text reads, and is written again as this. */
static void check_rewritten(const char *text, const char *expected)
{
    struct arena arena = {0};
    struct text out = {0};
    struct json_writer writer;
    struct json *value;
    if (CHECK_OK(parse(&arena, text, &value))) {
        json_begin(&writer, &out);
        json_add_tree(&writer, value);
        CHECK_OK(text_done(&out));
        CHECK_EQUAL_TEXT(text_of(&out), expected);
    }
    text_free(&out);
    arena_free(&arena);
}

TEST(reads_a_tree)
{
    struct arena arena = {0};
    struct json *value;
    const char *text =
        " {\"a\" : [1, 2.5, \"x\", true, false, null, {}, []],\r\n\t\"b\":{\"c\":-3}} ";
    if (!CHECK_OK(parse(&arena, text, &value)))
        return;
    CHECK_EQUAL_INT(value->kind, JSON_OBJECT);
    CHECK_EQUAL_INT(value->count, 2);
    const struct json *list = json_get(value, "a");
    CHECK_EQUAL_INT(list->kind, JSON_ARRAY);
    CHECK_EQUAL_INT(list->count, 8);
    const struct json *item = list->first;
    CHECK(item->is_integer && item->integer == 1 && item->number == 1);
    item = item->next;
    CHECK(!item->is_integer && item->number == 2.5);
    item = item->next;
    CHECK_EQUAL_TEXT(item->string, "x");
    item = item->next;
    CHECK(item->kind == JSON_BOOL && item->boolean);
    item = item->next;
    CHECK(item->kind == JSON_BOOL && !item->boolean);
    item = item->next;
    CHECK_EQUAL_INT(item->kind, JSON_NULL);
    item = item->next;
    CHECK(item->kind == JSON_OBJECT && item->count == 0 && !item->first);
    item = item->next;
    CHECK(item->kind == JSON_ARRAY && item->count == 0 && !item->next);
    CHECK_EQUAL_INT(json_int(json_get(value, "b"), "c", 0), -3);
    arena_free(&arena);
}

TEST(looks_up_with_defaults)
{
    struct arena arena = {0};
    struct json *value;
    const char *text =
        "{\"i\":3,\"w\":4.0,\"r\":0.5,\"big\":1e300,\"s\":\"x\",\"b\":true,\"n\":null}";
    if (!CHECK_OK(parse(&arena, text, &value)))
        return;
    CHECK_EQUAL_INT(json_int(value, "i", 9), 3);
    CHECK_EQUAL_INT(json_int(value, "w", 9), 4);
    CHECK_EQUAL_INT(json_int(value, "r", 9), 9);
    CHECK_EQUAL_INT(json_int(value, "big", 9), 9);
    CHECK_EQUAL_INT(json_int(value, "s", 9), 9);
    CHECK(json_real(value, "r", 9) == 0.5 && json_real(value, "i", 9) == 3);
    CHECK(json_real(value, "none", 9) == 9);
    CHECK_EQUAL_TEXT(json_text(value, "s", "d"), "x");
    CHECK_EQUAL_TEXT(json_text(value, "n", "d"), "d");
    CHECK(json_bool(value, "b", false) && json_bool(value, "s", true));
    CHECK(json_get(NULL, "a") == NULL && json_get(json_get(value, "s"), "a") == NULL);
    arena_free(&arena);
}

TEST(refuses_what_the_rfc_refuses)
{
    check_refused("", "t:1:1: found the end, expected a value");
    check_refused("  \n ", "t:2:2: found the end, expected a value");
    check_refused("1 2", "t:1:3: found '2', expected nothing after the value");
    check_refused("[1,]", "t:1:4: found ']', expected a value");
    check_refused("[1 2]", "t:1:4: found '2', expected ',' or ']'");
    check_refused("[1", "t:1:3: found the end, expected ',' or ']'");
    check_refused("{\"a\":1,}", "t:1:8: found '}', expected a key in quotes");
    check_refused("{a:1}", "t:1:2: found 'a', expected a key in quotes");
    check_refused("{\"a\" 1}", "t:1:6: found '1', expected ':' after a key");
    check_refused("{\"a\":1", "t:1:7: found the end, expected ',' or '}'");
    check_refused("{\"a\":\n  nul}", "t:2:3: found 'n', expected a value");
    check_refused("'a'", "t:1:1: found ''', expected a value");
    check_refused("True", "t:1:1: found 'T', expected a value");
    check_refused("// x\n1", "t:1:1: found '/', expected a value");
    check_refused("[\"é\" €]", "t:1:6: found '€', expected ',' or ']'");
    check_refused("\xEF\xBB\xBF{}", "t:1:1: found '\xEF\xBB\xBF', expected a value");
    check_refused("\v1", "t:1:1: found byte 0x0B, expected a value");
}

TEST(refuses_wrong_numbers)
{
    check_refused("01", "t:1:1: found a number that starts with 0, expected no leading zeros");
    check_refused("-00", "t:1:1: found a number that starts with 0, expected no leading zeros");
    check_refused("1.", "t:1:3: found the end, expected a digit after the point");
    check_refused(".5", "t:1:1: found '.', expected a value");
    check_refused("-", "t:1:2: found the end, expected a digit");
    check_refused("+1", "t:1:1: found '+', expected a value");
    check_refused("1e", "t:1:3: found the end, expected a digit of the exponent");
    check_refused("1e+x", "t:1:4: found 'x', expected a digit of the exponent");
    check_refused("0x10", "t:1:2: found 'x', expected nothing after the value");
    check_refused("NaN", "t:1:1: found 'N', expected a value");
    check_refused("Infinity", "t:1:1: found 'I', expected a value");
    check_refused("[1e309]",
                  "t:1:2: found a number too large for a double, expected less than 1.8e308");
}

TEST(refuses_wrong_strings)
{
    check_refused("\"a", "t:1:3: found the end, expected the closing quote of a string");
    check_refused("\"a\\\"", "t:1:5: found the end, expected the closing quote of a string");
    check_refused("\"\\",
                  "t:1:3: found the end, expected one of \" \\ / b f n r t u after a backslash");
    check_refused("\"\\x\"",
                  "t:1:3: found 'x', expected one of \" \\ / b f n r t u after a backslash");
    check_refused("\"\\u12g4\"", "t:1:6: found 'g', expected four hexadecimal digits after \\u");
    check_refused("\"\t\"",
                  "t:1:2: found byte 0x09, expected control characters in a string to be escaped");
    check_refused("\"\xC0\x80\"", "t:1:2: found byte 0xC0, expected valid UTF-8");
    check_refused("\"\xED\xA0\x80\"", "t:1:2: found byte 0xED, expected valid UTF-8");
    check_refused("\"a\xFF\"", "t:1:3: found byte 0xFF, expected valid UTF-8");
    check_refused("\"\\ud800\"", "t:1:8: found '\"', expected the second half of a surrogate pair");
    check_refused("\"\\ud800\\n\"",
                  "t:1:9: found 'n', expected the second half of a surrogate pair");
    check_refused("\"\\ud800\\u0041\"", "t:1:8: found another character, expected the second half "
                                        "of a surrogate pair");
    check_refused("\"\\ud800\\ue000\"", "t:1:8: found another character, expected the second half "
                                        "of a surrogate pair");
    check_refused("\"\\udc00\"", "t:1:2: found the second half of a surrogate pair, expected the "
                                 "first half");
}

TEST(refuses_duplicate_keys)
{
    check_refused("{\"a\":1,\n \"b\":2, \"a\":3}",
                  "t:2:9: found the key \"a\" a second time, expected each key once");
    check_refused("{\"a\":1,\"\\u0061\":3}",
                  "t:1:8: found the key \"a\" a second time, expected each key once");
    check_refused("{\"a\\u0000b\":1}",
                  "t:1:2: found a key with \\u0000 inside, expected a key without");
    check_rewritten("{\"a\":{\"a\":{\"a\":1}},\"\":0}", "{\"a\":{\"a\":{\"a\":1}},\"\":0}");
    struct text many = {0};
    text_add_char(&many, '{');
    for (int i = 0; i < 50000; i++)
        text_printf(&many, "\"k%d\":%d,", i, i);
    text_add(&many, "\"last\":0}");
    struct arena arena = {0};
    struct json *value;
    CHECK_OK(json_parse(&arena, "t", many.data, many.length, &value));
    CHECK_EQUAL_INT(value->count, 50001);
    many.length -= strlen("\"last\":0}");
    text_add(&many, "\"k777\":0}");
    CHECK_STATUS(STATUS_INPUT, json_parse(&arena, "t", many.data, many.length, &value));
    CHECK_MESSAGE("found the key \"k777\" a second time");
    arena_free(&arena);
    text_free(&many);
}

TEST(bounds_the_depth)
{
    char text[4 * JSON_DEPTH + 1];
    for (int depth = JSON_DEPTH; depth <= JSON_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        if (depth == JSON_DEPTH)
            check_rewritten(text, text);
        else
            check_refused(text, "t:1:65: found '[', expected at most 64 arrays and objects inside "
                                "each other");
    }
}

TEST(reads_escapes)
{
    check_rewritten("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
    check_rewritten("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "\"Aé€\xF0\x9F\x98\x80\"");
    check_rewritten("\"\\uDBFF\\uDFFF\\uFFFF\"", "\"\xF4\x8F\xBF\xBF\xEF\xBF\xBF\"");
    check_rewritten("\"a\\u0000b\\u001f\x7F\"", "\"a\\u0000b\\u001f\x7F\"");
    struct arena arena = {0};
    struct json *value;
    if (CHECK_OK(parse(&arena, "\"a\\u0000b\"", &value))) {
        CHECK_EQUAL_INT(value->length, 3);
        CHECK(memcmp(value->string, "a\0b", 4) == 0);
    }
    arena_free(&arena);
}

TEST(keeps_integers_exact)
{
    check_rewritten("[0,-1,9223372036854775807,-9223372036854775808]",
                    "[0,-1,9223372036854775807,-9223372036854775808]");
    check_rewritten("9007199254740993", "9007199254740993");
    check_rewritten("9223372036854775808", "9.223372036854776e+18");
    check_rewritten("-0", "-0");
    check_rewritten("1e2", "100");
    check_rewritten("-0.0e5", "-0");
    check_rewritten("123456789012345678901234567890123456789012345678901234567890123456789012345",
                    "1.2345678901234568e+74");
}

/* What the writer makes of a double; read back, it must be the same. */
static const char *drawn(double number)
{
    static char result[64];
    struct text text = {0};
    struct json_writer writer;
    json_begin(&writer, &text);
    json_add_figure(&writer, number);
    snprintf(result, sizeof result, "%s", text_of(&text));
    text_free(&text);
    return result;
}

TEST(writes_figures_to_twelve_digits)
{
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1, "1"},
        {-0.5, "-0.5"},
        {1000, "1000"},
        {97.640625, "97.640625"},
        {1.0 / 3, "0.333333333333"},
        {2.0 / 3e5, "6.66666666667e-06"},
        {2.0 / 3e4, "0.0000666666666667"},
        {999999999999.9, "1000000000000"},
        {123456789012.3, "123456789012"},
        {1234567890123.0, "1.23456789012e+12"},
        {DBL_MAX, "1.79769313486e+308"},
        {(double)NAN, "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_EQUAL_TEXT(drawn(cases[i].number), cases[i].text);
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double number = ldexp((double)(bits >> 11), i % 120 - 110);
        if (!CHECK(fabs(strtod(drawn(number), NULL) - number) <= 5.01e-12 * number))
            return;
    }
}

static const char *written(double number)
{
    static char result[64];
    struct text text = {0};
    struct json_writer writer;
    json_begin(&writer, &text);
    json_add_real(&writer, number);
    snprintf(result, sizeof result, "%s", text_of(&text));
    text_free(&text);
    return result;
}

TEST(writes_the_shortest_real)
{
    CHECK_EQUAL_TEXT(written(0.1), "0.1");
    CHECK_EQUAL_TEXT(written(1.0 / 3), "0.3333333333333333");
    CHECK_EQUAL_TEXT(written(0.1 + 0.2), "0.30000000000000004");
    CHECK_EQUAL_TEXT(written(5e-324), "5e-324");
    CHECK_EQUAL_TEXT(written(DBL_MIN), "2.2250738585072014e-308");
    CHECK_EQUAL_TEXT(written(DBL_MAX), "1.7976931348623157e+308");
    CHECK_EQUAL_TEXT(written(-2.5e-10), "-2.5e-10");
    CHECK_EQUAL_TEXT(written(NAN), "null");
    CHECK_EQUAL_TEXT(written(-INFINITY), "null");
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double number;
        memcpy(&number, &bits, sizeof number);
        if (isfinite(number) && !CHECK(strtod(written(number), NULL) == number))
            return;
    }
}

TEST(writes_the_shortest_float)
{
    struct text text = {0};
    struct json_writer writer;
    json_begin(&writer, &text);
    json_array(&writer);
    json_add_float(&writer, 0.1f);
    json_add_float(&writer, 1.0f / 3);
    json_add_float(&writer, 16777217.0f);
    json_add_float(&writer, 1e-45f);
    json_add_float(&writer, INFINITY);
    json_end(&writer);
    CHECK_EQUAL_TEXT(text_of(&text), "[0.1,0.33333334,16777216,1e-45,null]");
    text_free(&text);
}

TEST(writes_every_kind)
{
    struct text text = {0};
    struct json_writer writer;
    json_begin(&writer, &text);
    json_object(&writer);
    json_key(&writer, "list");
    json_array(&writer);
    json_add_int(&writer, INT64_MIN);
    json_add_uint(&writer, UINT64_MAX);
    json_add_bool(&writer, true);
    json_add_null(&writer);
    json_object(&writer);
    json_end(&writer);
    json_end(&writer);
    json_key(&writer, "a \"quoted\"\nkey");
    json_add_text(&writer, "not UTF-8: \xFF\xE2\x82");
    json_key(&writer, "absent");
    json_add_text(&writer, NULL);
    json_end(&writer);
    CHECK_OK(text_done(&text));
    CHECK_EQUAL_TEXT(text_of(&text),
                     "{\"list\":[-9223372036854775808,18446744073709551615,true,null,{}],"
                     "\"a \\\"quoted\\\"\\nkey\":\"not UTF-8: \uFFFD\uFFFD\uFFFD\","
                     "\"absent\":null}");
    struct arena arena = {0};
    struct json *value;
    CHECK_OK(parse(&arena, text.data, &value));
    arena_free(&arena);
    text_free(&text);
}

TEST(survives_every_failed_allocation)
{
    struct text document = {0};
    text_add_char(&document, '{');
    for (int i = 0; i < 300; i++)
        text_printf(&document, "\"key %d\":[%d,\"\\u00e9\",{\"x\":1.5}],", i, i);
    text_add(&document, "\"end\":100000000000000000000000000000000000000000000000000000000000000}");
    enum status status = STATUS_MEMORY;
    for (long nth = 1; status != STATUS_OK; nth++) {
        struct arena arena = {0};
        struct json *value;
        memory_fail_at(nth);
        status = json_parse(&arena, "t", document.data, document.length, &value);
        bool failed = memory_failed();
        memory_fail_at(0);
        arena_free(&arena);
        if (!CHECK_EQUAL_INT(status, failed ? STATUS_MEMORY : STATUS_OK) || !CHECK(nth < 1000))
            break;
    }
    text_free(&document);
}

CHECK_MAIN
