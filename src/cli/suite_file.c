/* suite_file.c: see suite_file.h. */
#include "cli/suite_file.h"

#include "base/embed.h"
#include "base/file.h"
#include "base/load/trust.h"

#include <stdio.h>
#include <string.h>

extern const struct embedded suite_files[];

enum { SUITE_BYTES = 1 << 20, WORDS_MOST = 200 };
static const char suffix[] = ".suite";

/* Splits a line at blanks; what is in '…' or "…" stays together. */
static enum status split_words(struct suite *suite, const char *line, const char **words,
                               int *count)
{
    *count = 1; /* the first is the command's name */
    for (const char *at = line + strspn(line, " \t"); *at; at += strspn(at, " \t")) {
        struct text word = {0};
        for (; *at && *at != ' ' && *at != '\t'; at++) {
            const char *end = *at == '\'' || *at == '"' ? strchr(at + 1, *at) : NULL;
            if (end)
                text_add_bytes(&word, at + 1, (size_t)(end - at - 1));
            else
                text_add_char(&word, *at);
            at = end ? end : at;
        }
        words[*count] = arena_text(&suite->arena, text_of(&word));
        text_free(&word);
        NEED(words[*count]);
        if (++*count == WORDS_MOST)
            FAIL(STATUS_INPUT, "found more than %d words in a line", WORDS_MOST);
    }
    return STATUS_OK;
}

/* A line that measures: what `prony bench` takes but for where its records go. */
static const struct args line_args = {.command = "prony bench",
                                      .lists = {{request_flags, 0}},
                                      .least = 1,
                                      .most = -1};

static enum status read_bench(struct suite *suite, int line, int argc, const char *const *argv)
{
    struct args_found *said;
    struct bench_request *request = arena_alloc(&suite->arena, sizeof *request);
    const char **models = arena_array(&suite->arena, (size_t)argc, sizeof *models);
    if (!request || !models || suite->count == SUITE_LINES)
        FAIL(STATUS_INPUT, "it is too long");
    NEED(said = arena_alloc(&suite->arena, sizeof *said));
    said->positional = models;
    request->args = &line_args;
    request->said = said;
    NEED(request->place = arena_format(&suite->arena, "%s:%d", suite->name, line));
    TRY(args_parse(&line_args, argc, argv, request, said));
    if (suite->seconds > 0)
        request->seconds = suite->seconds;
    suite->requests[suite->count++] = request;
    return bench_request_sweep(request, models, said->count, &suite->arena);
}

/* A line that says neither where it runs nor by what runs on the suite's unit. */
static void add_unit(const struct suite *suite, const char **words, int *count)
{
    for (int i = 1; i < *count; i++)
        if (text_starts(words[i], "--unit") || text_starts(words[i], "--backend"))
            return;
    words[(*count)++] = "--unit";
    words[(*count)++] = suite->unit;
}

static enum status read_own(struct suite *suite, int argc, const char *const *argv)
{
    static const struct args own = {.command = "prony suite", .lists = {{output_flags, 0}}};
    struct args_found found = {0};
    return args_parse(&own, argc, argv, &suite->written, &found);
}

static enum status read_lines(struct suite *suite, const char *text)
{
    const char *words[WORDS_MOST + 2]; /* and the suite's unit */
    int number = 1, count;

    for (const char *at = text; *at; number++) {
        size_t length = strcspn(at, "\r\n");
        char *line = arena_bytes(&suite->arena, at, length);
        NEED(line);
        at += length;
        at += *at == '\r';
        at += *at == '\n';
        if (line[strspn(line, " \t")] == '#')
            continue;
        enum status status = split_words(suite, line, words, &count);
        words[0] = "prony bench";
        if (status == STATUS_OK && count > 1 && suite->unit && !text_starts(words[1], "--"))
            add_unit(suite, words, &count);
        if (status == STATUS_OK && count > 1)
            status = text_starts(words[1], "--") ? read_own(suite, count, words)
                                                 : read_bench(suite, number, count, words);
        if (status != STATUS_OK)
            return status_prefix(status, "%s:%d", suite->name, number);
    }
    return STATUS_OK;
}

static const struct embedded *find_suite(const char *name)
{
    for (const struct embedded *file = suite_files; file->name; file++) {
        size_t length = strlen(file->name) - strlen(suffix);
        if (strlen(name) == length && strncmp(file->name, name, length) == 0)
            return file;
    }
    return NULL;
}

enum status suite_names(struct arena *arena, const char *names[SUITE_NAMES], size_t *count)
{
    *count = 0;
    for (const struct embedded *file = suite_files; file->name && *count < SUITE_NAMES; file++) {
        const char *name = arena_bytes(arena, file->name, strlen(file->name) - strlen(suffix));
        NEED(name);
        names[(*count)++] = name;
    }
    return STATUS_OK;
}

bool suite_ships(const char *name)
{
    return find_suite(name) != NULL;
}

const char *suite_text(const char *name)
{
    const struct embedded *file = find_suite(name);
    return file ? (const char *)file->bytes : "";
}

static enum status unknown_suite(struct arena *arena, const char *name)
{
    const char *names[SUITE_NAMES];
    size_t count;
    TRY(suite_names(arena, names, &count));
    const char *near = text_nearest(name, names, count);
    if (near)
        FAIL(STATUS_INPUT, "there is no suite '%s'; did you mean '%s'? (prony suites lists all)",
             name, near);
    FAIL(STATUS_INPUT,
         "there is no suite '%s'; expected one that prony suites lists, or the path of a file",
         name);
}

enum status suite_read(struct suite *suite)
{
    const struct embedded *file = find_suite(suite->name);
    struct text text = {0};
    if (file)
        return read_lines(suite, (const char *)file->bytes);
    if (!file_exists(suite->name))
        return unknown_suite(&suite->arena, suite->name);
    char real[PATH_MAX];
    TRY(trust_check(suite->name, real)); /* it says what is run */
    enum status status = file_read(real, SUITE_BYTES, &text);
    if (status == STATUS_OK && strlen(text_of(&text)) != text.length)
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "%s: found byte 0x00, expected lines of text", suite->name);
    if (status == STATUS_OK)
        status = read_lines(suite, text_of(&text));
    text_free(&text);
    return status;
}
