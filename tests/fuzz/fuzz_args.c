/* fuzz_args.c: any command line is read or refused with a message; values stay in their ranges. */
#include "base/args.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_WORDS = 32, MOST_BYTES = 1024 };

struct values {
    int64_t batch, steps;
    double rate;
    const char *backend;
    bool json;
};
static const struct arg rows[] = {
    {ARG(struct values, batch), "N", "", ARG_FROM(1, 1000), "32"},
    {ARG(struct values, steps), "N", "", ARG_FROM(0, INFINITY), "1"},
    {ARG(struct values, rate), "R", "", ARG_FROM(0, 1), "0.5"},
    {ARG(struct values, backend), "NAME", "", .otherwise = "ref"},
    {ARG(struct values, json), NULL, ""},
    ARG_END,
};
static const struct args fuzz = {.command = "fuzz",
                                 .usage = "NAME…",
                                 .summary = "",
                                 .lists = {{rows, 0}},
                                 .most = 3};

static void need(bool holds)
{
    if (!holds)
        abort();
}

/* The input's lines are the words. */
static int split(char *text, const char **words)
{
    int count = 0;
    while (count < MOST_WORDS) {
        words[count++] = text;
        text = strchr(text, '\n');
        if (!text)
            break;
        *text++ = '\0';
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[MOST_BYTES + 1] = "";
    const char *words[MOST_WORDS], *positional[MOST_WORDS];
    if (size > MOST_BYTES)
        return 0;
    if (size)
        memcpy(text, data, size);
    int count = split(text, words);

    struct args_found found = {.positional = positional};
    struct values values = {0};
    enum status status = args_parse(&fuzz, count, words, &values, &found);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    need(values.batch >= 1 && values.batch <= 1000 && values.steps >= 0);
    need(values.rate >= 0 && values.rate <= 1 && values.backend);
    need(found.count < MOST_WORDS);
    need(status != STATUS_OK || found.help || found.count <= 3);
    return 0;
}
