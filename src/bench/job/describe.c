/* describe.c: see describe.h. */
#include "bench/job/describe.h"

#include <string.h>

/* A growing list of names, each once: the record says which kernels ran, explain how often. */
struct names {
    const char **list;
    size_t count;
};

static bool names_has(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

/* Adds a plan's kernels; their names live as long as the plan, so that they are copied. */
static enum status names_add(struct names *names, const struct explanation *explanation,
                             struct arena *arena)
{
    const size_t most = names->count + (size_t)explanation->kernel_count;
    const char **list = arena_array(arena, most + 1, sizeof *list);
    NEED(list);
    if (names->count)
        memcpy(list, names->list, names->count * sizeof *list);
    names->list = list;
    for (int32_t i = 0; i < explanation->kernel_count; i++)
        if (!names_has(names, explanation->kernels[i].kernel))
            NEED(list[names->count++] = arena_text(arena, explanation->kernels[i].kernel));
    return STATUS_OK;
}

enum status describe_plans(const struct backend *backend, const struct device *device,
                           struct plan *const *plans, int32_t count, struct arena *arena,
                           struct job_info *out)
{
    struct names names = {0};

    *out = (struct job_info){0};
    backend->describe(device, &out->device);
    for (int32_t p = 0; p < count; p++) {
        struct explanation explanation = {0};
        if (backend->explain(plans[p], arena, &explanation) != STATUS_OK)
            continue;
        TRY(names_add(&names, &explanation, arena));
        for (int32_t i = 0; i < explanation.kernel_count; i++)
            out->launches += explanation.kernels[i].launches;
    }
    out->kernels = names.list;
    out->kernel_count = names.count;
    return STATUS_OK;
}

enum status describe_check_threads(const char *backend, const struct device_info *device,
                                   int64_t asked)
{
    const int threads = device->threads;
    if (asked && threads && threads != asked)
        FAIL(STATUS_UNSUPPORTED, "the backend %s makes %d thread%s, not %lld", backend, threads,
             threads == 1 ? "" : "s", (long long)asked);
    return STATUS_OK;
}

enum status describe_join_software(const struct json *software, const struct json *peer,
                                   struct arena *arena, const struct json **out)
{
    struct json *joined = arena_alloc(arena, sizeof *joined), *last = NULL;
    NEED(joined);
    *joined = (struct json){.kind = JSON_OBJECT, .count = software->count + 1};
    for (const struct json *part = software->first;; part = part->next) {
        struct json *copy = arena_alloc(arena, sizeof *copy);
        NEED(copy);
        *copy = part ? *part : *peer;
        *(last ? &last->next : &joined->first) = copy;
        last = copy;
        if (!part)
            break;
    }
    last->key = "peer";
    last->next = NULL;
    *out = joined;
    return STATUS_OK;
}
