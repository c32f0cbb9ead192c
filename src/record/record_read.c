/* record_read.c: a line that came from a file, a pipe or another machine. Nothing in it is trusted:
 * every member has its kind checked, and what is wrong is named. */
#include "base/clock.h"
#include "base/log.h"
#include "record/member.h"
#include "record/names.h"
#include "record/profile_line.h"
#include "record/record.h"
#include "record/software.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static enum status read_time(const struct json *object, struct stats *out)
{
    static const char path[] = "result.time_ns";
    TRY(member_time(object, path, "min", &out->min));
    TRY(member_time(object, path, "median", &out->median));
    TRY(member_time(object, path, "mean", &out->mean));
    TRY(member_time(object, path, "p90", &out->p90));
    TRY(member_time(object, path, "p99", &out->p99));
    TRY(member_time(object, path, "ci_low", &out->ci_low));
    TRY(member_time(object, path, "ci_high", &out->ci_high));
    if (out->ci_low > out->ci_high)
        return member_fail(path, "ci_low", json_get(object, "ci_low"), "at most ci_high");
    TRY(member_int(object, path, "count", 0, &out->count));
    return member_int(object, path, "per", 1, &out->per);
}

static enum status read_parts(const struct json *object, struct record_parts *out)
{
    static const char path[] = "result.parts_ns";
    TRY(member_real(object, path, "prepare", &out->prepare));
    TRY(member_real(object, path, "forward", &out->forward));
    TRY(member_real(object, path, "backward", &out->backward));
    TRY(member_real(object, path, "communicate", &out->communicate));
    TRY(member_real(object, path, "update", &out->update));
    return member_real(object, path, "scaled", &out->scaled);
}

static enum status read_check(const struct json *object, struct record_check *out)
{
    static const char path[] = "result.check";
    size_t verdict;
    if (!object)
        return STATUS_OK;
    TRY(member_choice(object, path, "verdict", record_verdicts, RECORD_VERDICTS, &verdict));
    out->verdict = (enum record_verdict)verdict;
    TRY(member_text(object, path, "against", &out->against));
    TRY(member_real(object, path, "difference", &out->difference));
    TRY(member_real(object, path, "tolerance", &out->tolerance));
    return member_text(object, path, "reason", &out->reason);
}

static enum status read_against(const struct json *object, struct record_against *out)
{
    static const char path[] = "result.against";
    size_t verdict;
    if (!object)
        return STATUS_OK;
    TRY(member_text(object, path, "other", &out->other));
    TRY(member_choice(object, path, "verdict", record_comparisons, RECORD_COMPARISONS, &verdict));
    out->found.verdict = (enum verdict)verdict;
    TRY(member_text(object, path, "disturbed", &out->disturbed));
    TRY(member_real(object, path, "ratio", &out->found.ratio));
    TRY(member_real(object, path, "low", &out->found.low));
    TRY(member_real(object, path, "high", &out->found.high));
    TRY(member_int(object, path, "rounds", 0, &out->found.rounds));
    return member_int(object, path, "instances", 0, &out->found.instances);
}

static enum status read_meters(struct arena *arena, const struct json *object, struct record *out)
{
    static const char path[] = "result.meters";
    if (!object)
        return STATUS_OK;
    struct record_meter *meters, *meter;
    NEED(meters = meter = arena_array(arena, object->count, sizeof *meters));
    for (const struct json *value = object->first; value; value = value->next, meter++) {
        meter->name = value->key;
        if (value->kind == JSON_STRING && text_starts(value->string, record_unavailable))
            meter->unavailable = value->string + strlen(record_unavailable);
        else if (value->kind == JSON_NUMBER)
            meter->value = value->number;
        else if (value->kind == JSON_NULL)
            meter->value = (double)NAN;
        else
            return member_fail(path, value->key, value, "a number or \"not available: why\"");
    }
    out->meters = meters;
    out->meter_count = object->count;
    return STATUS_OK;
}

static enum status read_result(struct arena *arena, const struct json *object, struct record *out)
{
    static const char path[] = "result";
    const struct json *time, *parts, *check, *against, *meters;
    TRY(member_of_kind(object, path, "time_ns", JSON_OBJECT, &time));
    TRY(read_time(time, &out->time_ns));
    TRY(member_of_kind(object, path, "parts_ns", JSON_OBJECT, &parts));
    TRY(read_parts(parts, &out->parts_ns));
    TRY(member_real(object, path, "start_ns", &out->start_ns));
    TRY(member_real(object, path, "throughput", &out->throughput));
    TRY(member_real(object, path, "floor_ns", &out->floor_ns));
    TRY(member_text(object, path, "bound", &out->bound));
    TRY(member_real(object, path, "times_floor", &out->times_floor));
    TRY(member_real(object, path, "best_times_floor", &out->best_times_floor));
    TRY(member_real(object, path, "times_now", &out->times_now));
    TRY(member_real(object, path, "flop", &out->flop));
    TRY(member_real(object, path, "bytes", &out->bytes));
    TRY(member_int(object, path, "parameters", 0, &out->parameters));
    TRY(member_int(object, path, "layers", 0, &out->layers));
    TRY(member_of_kind(object, path, "check", JSON_OBJECT, &check));
    TRY(read_check(check, &out->check));
    TRY(member_of_kind(object, path, "against", JSON_OBJECT, &against));
    TRY(read_against(against, &out->against));
    TRY(member_of_kind(object, path, "meters", JSON_OBJECT, &meters));
    return read_meters(arena, meters, out);
}

static enum status read_kernels(struct arena *arena, const struct json *array, struct record *out)
{
    if (!array)
        return STATUS_OK;
    const char **kernels, **kernel;
    NEED(kernels = kernel = arena_array(arena, array->count, sizeof *kernels));
    for (const struct json *value = array->first; value; value = value->next) {
        if (value->kind != JSON_STRING)
            return member_fail("", "kernels", value, "strings");
        *kernel++ = value->string;
    }
    out->kernels = kernels;
    out->kernel_count = array->count;
    return STATUS_OK;
}

static enum status read_samples(struct arena *arena, const struct json *array, struct record *out)
{
    if (!array)
        return STATUS_OK;
    if (array->count > RECORD_SAMPLES)
        return member_fail("", "samples_ns", array, "at most 4096 samples");
    double *samples, *sample;
    NEED(samples = sample = arena_array(arena, array->count, sizeof *samples));
    for (const struct json *value = array->first; value; value = value->next) {
        if (value->kind != JSON_NUMBER || value->number <= 0)
            return member_fail("", "samples_ns", value, "numbers above 0");
        *sample++ = value->number;
    }
    out->samples_ns = samples;
    out->sample_count = array->count;
    return STATUS_OK;
}

static enum status read_measured(struct arena *arena, const struct json *tree, struct record *out)
{
    const struct json *point, *kernels, *result, *samples;
    size_t status;
    TRY(member_of_kind(tree, "", "point", JSON_OBJECT, &point));
    if (!point)
        return member_fail("", "point", NULL, "an object");
    TRY(point_read(point, &out->point));
    TRY(member_choice(tree, "", "status", record_statuses, RECORD_STATUSES, &status));
    out->status = (enum record_status)status;
    TRY(member_text(tree, "", "reason", &out->reason));
    TRY(member_text(tree, "", "program", &out->program));
    TRY(member_text(tree, "", "goal", &out->goal));
    TRY(member_text(tree, "", "handicap", &out->handicap));
    TRY(member_of_kind(tree, "", "kernels", JSON_ARRAY, &kernels));
    TRY(read_kernels(arena, kernels, out));
    TRY(member_of_kind(tree, "", "result", JSON_OBJECT, &result));
    TRY(read_result(arena, result, out));
    TRY(member_of_kind(tree, "", "samples_ns", JSON_ARRAY, &samples));
    return read_samples(arena, samples, out);
}

/* Settings once stood among the software of peers. */
static void fill_tuning(struct record *out)
{
    const char *framework = out->point.framework;
    if (!out->point.tuning[0] && framework[0] && strcmp(framework, "prony") != 0)
        software_split(&out->point);
}

/* Results of peers once lacked the name of the unit: the machine's facts have it. */
static void fill_unit_name(struct record *out)
{
    struct point *point = &out->point;
    const char *name = "";
    if (strcmp(point->unit, "cpu") == 0)
        name = json_text(out->machine, "cpu", "");
    else if (strcmp(point->unit, "gpu") == 0)
        name = json_text(json_get(out->machine, "gpu"), "name", "");
    if (!point->unit_name[0] && strlen(name) < sizeof point->unit_name)
        snprintf(point->unit_name, sizeof point->unit_name, "%s", name);
}

static enum status read_members(struct arena *arena, const struct json *tree, struct record *out)
{
    int64_t version = 0;
    size_t kind;
    if (tree->kind != JSON_OBJECT)
        return member_fail("", "record", tree, "an object");
    TRY(member_int(tree, "", "prony", 1, &version));
    if (version != RECORD_VERSION)
        return member_fail("", "prony", json_get(tree, "prony"), "1, the version of the format");
    TRY(member_choice(tree, "", "kind", record_kinds, RECORD_KINDS, &kind));
    out->kind = (enum record_kind)kind;
    if (out->kind == RECORD_RESULT)
        TRY(read_measured(arena, tree, out));
    TRY(member_of_kind(tree, "", "network", JSON_OBJECT, &out->network));
    TRY(member_of_kind(tree, "", "proof", JSON_OBJECT, &out->proof));
    TRY(member_of_kind(tree, "", "profile", JSON_OBJECT, &out->profile));
    TRY(member_of_kind(tree, "", "machine", JSON_OBJECT, &out->machine));
    TRY(member_of_kind(tree, "", "calibration", JSON_OBJECT, &out->calibration));
    TRY(member_of_kind(tree, "", "software", JSON_OBJECT, &out->software));
    fill_tuning(out);
    fill_unit_name(out);
    if (out->kind == RECORD_MACHINE && !out->machine)
        return member_fail("", "machine", NULL, "an object");
    if (out->kind == RECORD_NETWORK && !out->network)
        return member_fail("", "network", NULL, "an object");
    if (out->kind == RECORD_PROOF && !out->proof)
        return member_fail("", "proof", NULL, "an object");
    if (out->kind == RECORD_PROFILE && !out->profile)
        return member_fail("", "profile", NULL, "an object");
    if (out->kind == RECORD_PROFILE)
        TRY(profile_line_read(out->profile, &(struct profile_line){0}));
    return member_text(tree, "", "at", &out->at);
}

enum status record_read(struct arena *arena, const char *name, long line, const char *text,
                        size_t length, struct record *out)
{
    struct json *tree;
    record_start(out);
    memset(&out->point, 0, sizeof out->point);
    if (length > RECORD_BYTES)
        FAIL(STATUS_INPUT, "%s:%ld: found a line of %zu bytes, expected at most %d", name, line,
             length, RECORD_BYTES);
    TRY(json_parse_line(arena, name, (size_t)line, text, length, &tree));
    enum status status = read_members(arena, tree, out);
    return status == STATUS_OK ? STATUS_OK : status_prefix(status, "%s:%ld", name, line);
}

/* "2026-11-15T10:03:58Z": written again it is the same, so there are no 31 days in June. */
static bool is_stamp(const char *text)
{
    char again[CLOCK_STAMP];
    struct tm calendar = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &calendar);
    if (!end || *end)
        return false;
    clock_stamp_of(timegm(&calendar), again);
    return strcmp(text, again) == 0;
}

enum status record_plausible(const struct record *record)
{
    static const double rounding = 0.01; /* samples are written with few digits */
    double least = INFINITY, most = 0, median = record->time_ns.median;
    if (record->at && !is_stamp(record->at))
        FAIL(STATUS_INPUT, "at: found \"%s\", expected a date and time as 2026-11-15T10:03:58Z",
             record->at);
    for (size_t i = 0; i < record->sample_count; i++) {
        least = fmin(least, record->samples_ns[i]);
        most = fmax(most, record->samples_ns[i]);
    }
    if (record->sample_count > 0 &&
        (median < (1 - rounding) * least || median > (1 + rounding) * most))
        FAIL(STATUS_INPUT,
             "result.time_ns.median: found %g, expected a time among the samples, %g to %g", median,
             least, most);
    return STATUS_OK;
}

static bool is_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

/* A killed process may leave the beginning of a line: file_append_line ends it before the next.
 * What begins in another way is no record of ours, cut or not. */
static bool is_cut(const char *text, size_t length)
{
    static const char begins[] = "{\"prony\"";
    const size_t known = sizeof begins - 1 < length ? sizeof begins - 1 : length;
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (text[i] == '{') - (text[i] == '}');
    }
    return memcmp(text, begins, known) == 0 && (quoted || depth > 0);
}

static enum status read_lines(const char *name, const char *text, size_t length, bool cut_too,
                              record_visit *visit, void *context)
{
    enum status status = STATUS_OK;
    const char *end = text + length;
    for (long line = 1; text < end && status == STATUS_OK; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((newline ? newline : end) - text);
        if (!is_blank(text, bytes)) {
            struct arena arena = {0};
            struct record record;
            status = record_read(&arena, name, line, text, bytes, &record);
            if (status == STATUS_OK)
                status = visit(context, &record, text, bytes);
            else if (status == STATUS_INPUT && cut_too && is_cut(text, bytes)) {
                log_warning("%s:%ld: a line that was cut short is passed over", name, line);
                status = STATUS_OK;
            }
            arena_free(&arena);
        }
        text += bytes + (newline ? 1 : 0);
    }
    return status;
}

enum status record_read_all(const char *name, const char *text, size_t length, record_visit *visit,
                            void *context)
{
    return read_lines(name, text, length, false, visit, context);
}

enum status record_read_whole(const char *name, const char *text, size_t length,
                              record_visit *visit, void *context)
{
    return read_lines(name, text, length, true, visit, context);
}
