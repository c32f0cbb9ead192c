/* fuzz_args.c: any command line is read or refused with a message; values stay in their ranges. */
#include "base/args.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_WORDS = 32, MOST_BYTES = 1024 };

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

    int64_t batch = 32, steps = 1;
    double rate = 0.5;
    const char *backend = "ref";
    bool json = false;
    struct arg list[] = {
        {.name = "batch",
         .kind = ARG_INT,
         .value = &batch,
         .meaning = "N",
         .help = "",
         .low = 1,
         .high = 1000},
        {.name = "steps",
         .kind = ARG_INT,
         .value = &steps,
         .meaning = "N",
         .help = "",
         .high = INFINITY},
        {.name = "rate", .kind = ARG_REAL, .value = &rate, .meaning = "R", .help = "", .high = 1},
        {.name = "backend", .kind = ARG_TEXT, .value = &backend, .meaning = "NAME", .help = ""},
        {.name = "json", .kind = ARG_FLAG, .value = &json, .help = ""},
    };
    struct args args = {.command = "fuzz",
                        .usage = "NAME…",
                        .summary = "",
                        .list = list,
                        .count = 5,
                        .least = 0,
                        .most = 3,
                        .positional = positional};
    enum status status = args_parse(&args, count, words);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    need(batch >= 1 && batch <= 1000 && steps >= 0 && rate >= 0 && rate <= 1 && backend);
    need(args.positional_count < MOST_WORDS);
    need(status != STATUS_OK || args.help || args.positional_count <= 3);
    return 0;
}
