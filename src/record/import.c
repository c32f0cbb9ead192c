/* import.c: see import.h. */
#include "record/import.h"

#include "base/log.h"
#include "base/memory.h"
#include "record/record.h"

#include <math.h>
#include <string.h>

/* What is being read. */
struct import {
    struct arena *arena;
    struct text *lines;
};

/* What is longer than a point has room for keeps its beginning and its end. */
static enum status import_fit(struct import *import, const char **text)
{
    enum { KEPT = POINT_TEXT / 2 - 4 };
    size_t length = strlen(*text), first = KEPT, last = length - KEPT;
    if (length < POINT_TEXT)
        return STATUS_OK;
    while (((unsigned char)(*text)[first] & 0xC0) == 0x80) /* whole characters */
        first--;
    while (((unsigned char)(*text)[last] & 0xC0) == 0x80)
        last++;
    NEED(*text = arena_format(import->arena, "%.*s…%s", (int)first, *text, *text + last));
    return STATUS_OK;
}

/* A record of which nothing is known but who ran what. */
static enum status import_start(struct import *import, struct record *record, const char *framework,
                                const char *model)
{
    record_start(record);
    memset(&record->point, 0, sizeof record->point);
    TRY(import_fit(import, &model));
    TRY(point_set(&record->point, &axes[AXIS_framework], framework));
    return point_set(&record->point, &axes[AXIS_model], model);
}

/* Writes it, with these times of one iteration each; none at all is a failed benchmark. */
static enum status import_write(struct import *import, struct record *record,
                                const double *samples_ns, size_t count, int64_t per)
{
    if (count && per > 0) {
        TRY(record_measure(record, import->arena, samples_ns, count, per));
    } else {
        record->status = RECORD_FAILED;
        record->reason = record->reason ? record->reason : "the log has no time";
    }
    record_write(record, import->lines);
    text_add_char(import->lines, '\n');
    return text_done(import->lines);
}

/* The positive numbers of an array, each times `scale`; in the arena. */
static enum status import_samples(struct import *import, const struct json *array, double scale,
                                  double **samples, size_t *count)
{
    *count = 0;
    NEED(*samples = arena_array(import->arena, array ? array->count + 1 : 1, sizeof **samples));
    for (const struct json *value = array ? array->first : NULL; value; value = value->next)
        if (value->kind == JSON_NUMBER && value->number > 0)
            (*samples)[(*count)++] = value->number * scale;
    return STATUS_OK;
}

/* A count of a foreign file; what no run could have is as if it were not given. */
static int64_t import_count(const struct json *object, const char *key, int64_t otherwise)
{
    static const int64_t most = (int64_t)1 << 40;
    int64_t count = json_int(object, key, otherwise);
    return count >= 0 && count <= most ? count : otherwise;
}

/* hyperfine: seconds of whole commands. A run that ended with another status than 0 did not do
 * what was to be timed. */
static enum status import_hyperfine(struct import *import, const struct json *results)
{
    for (const struct json *result = results->first; result; result = result->next) {
        const struct json *times = json_get(result, "times");
        const struct json *codes = json_get(result, "exit_codes");
        const struct json *code = codes ? codes->first : NULL;
        struct record record;
        double *samples;
        size_t count = 0;
        TRY(import_start(import, &record, "command", json_text(result, "command", "")));
        NEED(samples = arena_array(import->arena, times ? times->count + 1 : 1, sizeof *samples));
        for (const struct json *at = times ? times->first : NULL; at; at = at->next) {
            bool well = !code || (code->kind == JSON_NUMBER && code->integer == 0);
            if (well && at->kind == JSON_NUMBER && at->number > 0)
                samples[count++] = at->number * 1e9;
            record.reason = well ? record.reason : "the command ended with a status other than 0";
            code = code ? code->next : NULL;
        }
        record.reason = count ? NULL : record.reason;
        TRY(import_write(import, &record, samples, count, 1));
    }
    return STATUS_OK;
}

/* 0: it is none that is known. */
static double unit_ns(const char *unit)
{
    return strcmp(unit, "s") == 0    ? 1e9
           : strcmp(unit, "ms") == 0 ? 1e6
           : strcmp(unit, "us") == 0 ? 1e3
           : strcmp(unit, "ns") == 0 ? 1
                                     : 0;
}

/* google-benchmark: each repetition is a sample, the mean over so many iterations; what it
 * aggregated itself is passed over; one that reports an error has no time. */
static enum status import_google(struct import *import, const struct json *context,
                                 const struct json *benchmarks)
{
    double *samples;
    size_t count = 0;
    int64_t per = 1;
    NEED(samples = arena_array(import->arena, benchmarks->count + 1, sizeof *samples));
    for (const struct json *at = benchmarks->first; at; at = at->next) {
        const char *name = json_text(at, "run_name", json_text(at, "name", ""));
        const char *next = json_text(at->next, "run_name", json_text(at->next, "name", ""));
        const double unit = unit_ns(json_text(at, "time_unit", "ns"));
        const char *trouble =
            json_text(at, "error_message", unit > 0 ? NULL : "its time_unit is unknown");
        double real_ns = json_real(at, "real_time", 0) * unit;
        bool measured = strcmp(json_text(at, "run_type", "iteration"), "iteration") == 0;
        if (measured && !trouble && real_ns > 0) {
            samples[count++] = real_ns;
            per = import_count(at, "iterations", 1); /* of an aggregate: how many it was made of */
        }
        if ((count == 0 && !measured) || (at->next && strcmp(name, next) == 0))
            continue;
        struct record record;
        TRY(import_start(import, &record, "google-benchmark", name));
        record.reason = count ? NULL : trouble;
        record.point.threads = import_count(at, "threads", 0);
        TRY(point_set(&record.point, &axes[AXIS_server], json_text(context, "host_name", "")));
        TRY(import_write(import, &record, samples, count, per));
        count = 0;
    }
    return STATUS_OK;
}

/* llama-bench: a prompt is one iteration over so many tokens, those that are made after it in the
 * same run included; generating alone is an iteration a token. */
static enum status import_llama(struct import *import, const struct json *result)
{
    struct record record;
    double *samples;
    size_t count;
    int64_t prompt = import_count(result, "n_prompt", 0), made = import_count(result, "n_gen", 0);
    int64_t per = prompt > 0 ? 1 : made > 0 ? made : 1;
    TRY(import_start(import, &record, "llama.cpp", json_text(result, "model_type", "")));
    point_choose(&record.point, CHOICE_phase_inference);
    TRY(point_set(&record.point, &axes[AXIS_backend], json_text(result, "backends", "")));
    TRY(point_set(&record.point, &axes[AXIS_unit_name], json_text(result, "cpu_info", "")));
    record.point.batch = prompt > 0 ? prompt + made : 1;
    record.point.threads = import_count(result, "n_threads", 0);
    record.at = json_text(result, "test_time", NULL);
    TRY(import_samples(import, json_get(result, "samples_ns"), 1 / (double)per, &samples, &count));
    return import_write(import, &record, samples, count, per);
}

static bool is_llama(const struct json *tree)
{
    return json_get(tree, "avg_ns") && json_get(tree, "samples_ns");
}

static size_t line_bytes(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return (size_t)((newline ? newline : end) - at);
}

/* llama-bench -o jsonl: an object a line. Any other file is not touched. */
static enum status import_llama_lines(struct import *import, const char *text, size_t length,
                                      bool *foreign)
{
    const char *end = text + length;
    size_t line = 1;
    for (const char *at = text; at < end; at += line_bytes(at, end) + 1, line++) {
        struct json *tree;
        if (at[0] != '{')
            continue; /* a blank one at the end */
        enum status status =
            json_parse_line(import->arena, "line", line, at, line_bytes(at, end), &tree);
        if (!*foreign && status != STATUS_MEMORY && (status != STATUS_OK || !is_llama(tree)))
            return STATUS_OK;
        if (status == STATUS_INPUT && at + line_bytes(at, end) + 1 >= end) {
            log_warning("line %zu: the last one was cut short and is passed over", line);
            return STATUS_OK;
        }
        TRY(status);
        *foreign = true;
        TRY(import_llama(import, tree));
    }
    return STATUS_OK;
}

/* One `__key__=json` of a DLBS log. */
static enum status import_dlbs_value(struct record *record, const char *key,
                                     const struct json *value, struct import *import,
                                     double **samples, size_t *count)
{
    for (int i = 0; i < AXIS_COUNT; i++)
        if (axes[i].dlbs[0] && strcmp(axes[i].dlbs, key) == 0) {
            const char *text = value->kind == JSON_STRING ? value->string : "";
            if (value->kind == JSON_NUMBER && value->is_integer)
                NEED(text = arena_format(import->arena, "%lld", (long long)value->integer));
            return point_set(&record->point, &axes[i], text);
        }
    if (strcmp(key, "results.time_data") == 0 && value->kind == JSON_ARRAY)
        return import_samples(import, value, 1e6, samples, count);
    if (strcmp(key, "results.time") == 0 && value->kind == JSON_NUMBER && value->number > 0 &&
        *count == 0) {
        NEED(*samples = arena_array(import->arena, 1, sizeof **samples));
        (*samples)[(*count)++] = value->number * 1e6;
    }
    return STATUS_OK;
}

/* A line of a log; what is not `__key__=json` is some framework's own output. */
static enum status import_dlbs_line(struct import *import, struct record *record, const char *line,
                                    size_t length, double **samples, size_t *count)
{
    const char *start = memmem(line, length, "__", 2);
    const char *end =
        start ? memmem(start + 2, length - (size_t)(start + 2 - line), "__=", 3) : NULL;
    struct json *value;
    if (!end)
        return STATUS_OK;
    char *key = arena_bytes(import->arena, start + 2, (size_t)(end - start - 2));
    NEED(key);
    size_t rest = length - (size_t)(end + 3 - line);
    while (rest && (end[3 + rest - 1] == '\r' || end[3 + rest - 1] == ' '))
        rest--;
    enum status status = json_parse(import->arena, key, end + 3, rest, &value);
    if (status != STATUS_OK)
        return status == STATUS_MEMORY ? status : STATUS_OK;
    return import_dlbs_value(record, key, value, import, samples, count);
}

/* DLBS: one log is one benchmark. Later lines win. */
static enum status import_dlbs(struct import *import, const char *text, size_t length)
{
    struct record record;
    double *samples = NULL;
    size_t count = 0;
    TRY(import_start(import, &record, "", ""));
    for (const char *at = text, *end = text + length; at < end;) {
        size_t bytes = line_bytes(at, end);
        TRY(import_dlbs_line(import, &record, at, bytes, &samples, &count));
        at += bytes + 1;
    }
    return import_write(import, &record, samples, count, 1);
}

static enum status import_json(struct import *import, const struct json *tree, bool *foreign)
{
    const struct json *results = json_get(tree, "results"), *list = json_get(tree, "benchmarks");
    *foreign = true;
    if (results && results->kind == JSON_ARRAY && json_get(results->first, "command"))
        return import_hyperfine(import, results);
    if (list && list->kind == JSON_ARRAY && json_get(tree, "context"))
        return import_google(import, json_get(tree, "context"), list);
    *foreign = tree->kind == JSON_ARRAY && is_llama(tree->first);
    for (const struct json *result = *foreign ? tree->first : NULL; result; result = result->next)
        TRY(import_llama(import, result));
    return STATUS_OK;
}

enum status import_lines(const char *name, const char *text, size_t length, bool *foreign,
                         struct text *lines)
{
    struct arena arena = {0};
    struct import import = {&arena, lines};
    struct json *tree;
    enum status status = STATUS_OK;

    *foreign = memmem(text, length, "__exp.", 6) && memmem(text, length, "__=", 3);
    if (*foreign && text[0] != '{')
        status = import_dlbs(&import, text, length);
    else {
        *foreign = false; /* lines of our own do not parse as one, and reading them says the rest */
        status = json_parse(&arena, name, text, length, &tree);
        if (status == STATUS_OK)
            status = import_json(&import, tree, foreign);
        if (status != STATUS_MEMORY && !*foreign)
            status = import_llama_lines(&import, text, length, foreign);
    }
    arena_free(&arena);
    return status == STATUS_OK ? STATUS_OK : status_prefix(status, "%s", name);
}
