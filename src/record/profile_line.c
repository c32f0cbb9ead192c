/* profile_line.c: see profile_line.h. */
#include "record/profile_line.h"

#include "record/member.h"

#include <math.h>
#include <string.h>

static bool is_count(const struct json *value)
{
    return value && value->kind == JSON_NUMBER && value->is_integer && value->integer >= 0;
}

/* Every nanosecond once. */
static enum status check_budget(const struct json *budget)
{
    static const char path[] = "profile.budget";
    const struct json *window = json_get(budget, "window_ns");
    int64_t sum = 0;
    if (!is_count(window))
        return member_fail(path, "window_ns", window, "nanoseconds");
    for (const struct json *part = budget->first; part; part = part->next) {
        if (!is_count(part))
            return member_fail(path, part->key, part, "nanoseconds");
        if (part != window && __builtin_add_overflow(sum, part->integer, &sum))
            return member_fail(path, part->key, part, "fewer nanoseconds");
    }
    if (sum != window->integer)
        FAIL(STATUS_INPUT,
             "%s: found parts of %lld ns, expected them to sum to the window, %lld ns", path,
             (long long)sum, (long long)window->integer);
    return STATUS_OK;
}

static enum status check_findings(const struct json *findings)
{
    static const char path[] = "profile.findings";
    for (const struct json *finding = findings ? findings->first : NULL; finding;
         finding = finding->next) {
        const char *text;
        double gain;
        if (finding->kind != JSON_OBJECT)
            return member_fail(path, "", finding, "objects");
        TRY(member_text(finding, path, "title", &text));
        TRY(member_text(finding, path, "rule", &text));
        if (!text)
            return member_fail(path, "rule", NULL, "a text");
        TRY(member_time(finding, path, "gain", &gain));
        if (isnan(gain))
            return member_fail(path, "gain", NULL, "a number above 0");
    }
    return STATUS_OK;
}

/* [PARENT, FUNCTION, FILE, SELF_NS] */
static bool is_node(const struct json *node, int64_t number, size_t names)
{
    const struct json *value = node->kind == JSON_ARRAY && node->count == 4 ? node->first : NULL;
    if (!is_count(value) || (number ? value->integer >= number : value->integer != 0))
        return false;
    for (int i = 0; i < 2; i++) {
        value = value->next;
        if (!is_count(value) || (uint64_t)value->integer >= names)
            return false;
    }
    return is_count(value->next);
}

static enum status check_flame(const struct json *flame)
{
    static const char path[] = "profile.flame";
    const struct json *names, *nodes;
    int64_t number = 0;
    TRY(member_of_kind(flame, path, "names", JSON_ARRAY, &names));
    TRY(member_of_kind(flame, path, "nodes", JSON_ARRAY, &nodes));
    if (!names || !nodes)
        return member_fail(path, names ? "nodes" : "names", NULL, "an array");
    for (const struct json *name = names->first; name; name = name->next)
        if (name->kind != JSON_STRING)
            return member_fail(path, "names", name, "texts");
    for (const struct json *node = nodes->first; node; node = node->next)
        if (!is_node(node, number++, names->count))
            FAIL(STATUS_INPUT,
                 "%s: found another node %lld, expected a parent before it, two names and its time",
                 path, (long long)number - 1);
    return STATUS_OK;
}

enum status profile_line_read(const struct json *object, struct profile_line *out)
{
    static const char path[] = "profile";
    const struct json *trace;
    *out = (struct profile_line){.step_ns = (double)NAN};
    TRY(member_text(object, path, "title", &out->title));
    TRY(member_text(object, path, "command", &out->command));
    TRY(member_text(object, path, "gpu", &out->gpu));
    TRY(member_int(object, path, "steps", 0, &out->steps));
    TRY(member_real(object, path, "step_ns", &out->step_ns));
    TRY(member_of_kind(object, path, "budget", JSON_OBJECT, &out->budget));
    TRY(member_of_kind(object, path, "findings", JSON_ARRAY, &out->findings));
    TRY(member_of_kind(object, path, "flame", JSON_OBJECT, &out->flame));
    TRY(member_of_kind(object, path, "trace", JSON_STRING, &trace));
    if (!out->title)
        return member_fail(path, "title", NULL, "a text");
    if (!out->budget)
        return member_fail(path, "budget", NULL, "an object");
    if (!out->command)
        out->command = "";
    if (trace) {
        out->trace = trace->string;
        out->trace_length = trace->length;
    }
    TRY(check_budget(out->budget));
    TRY(check_findings(out->findings));
    return out->flame ? check_flame(out->flame) : STATUS_OK;
}
