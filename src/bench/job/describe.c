/* describe.c: see describe.h. */
#include "bench/job/describe.h"

#include <stdio.h>
#include <string.h>

/* Adds the plan's kernels to the list and to the JSON, each once: the record says which ran,
 * explain how often. */
static void describe_kernels(const struct explanation *explanation, struct text *told,
                             struct json_writer *out)
{
    for (int32_t i = 0; i < explanation->kernel_count; i++) {
        char line[200];
        snprintf(line, sizeof line, "\n%s\n", explanation->kernels[i].kernel);
        if (strstr(text_of(told), line))
            continue;
        text_add(told, line);
        json_add_text(out, explanation->kernels[i].kernel);
    }
}

static int64_t launches_of(const struct explanation *explanation)
{
    int64_t launches = 0;
    for (int32_t i = 0; i < explanation->kernel_count; i++)
        launches += explanation->kernels[i].launches;
    return launches;
}

void describe_plans(const struct backend *backend, const struct device *device,
                    struct plan *const *plans, int32_t count, struct json_writer *out)
{
    struct arena scratch = {0};
    struct text told = {0};
    int64_t launches = 0;

    json_key(out, "device");
    json_object(out);
    backend->describe(device, out);
    json_end(out);
    json_key(out, "kernels");
    json_array(out);
    for (int32_t i = 0; i < count; i++) {
        struct explanation explanation = {0};
        if (backend->explain(plans[i], &scratch, &explanation) != STATUS_OK)
            continue;
        describe_kernels(&explanation, &told, out);
        launches += launches_of(&explanation);
    }
    json_end(out);
    json_key(out, "launches");
    json_add_int(out, launches);
    text_free(&told);
    arena_free(&scratch);
}

/* The end of what was begun by json_begin on `text`; frees it. */
static enum status describe_end(struct json_writer *writer, struct text *text, struct arena *arena,
                                struct json **out)
{
    json_end(writer);
    enum status status = text_done(text);
    if (status == STATUS_OK)
        status = json_parse(arena, "job", text_of(text), text->length, out);
    text_free(text);
    return status;
}

enum status describe_job(struct job *job, struct arena *arena, struct json **out)
{
    struct text text = {0};
    struct json_writer writer;

    json_begin(&writer, &text);
    json_object(&writer);
    job->kind->describe(job, &writer);
    return describe_end(&writer, &text, arena, out);
}

enum status describe_device(const struct backend *backend, const struct device *device,
                            struct arena *arena, struct json **out)
{
    struct text text = {0};
    struct json_writer writer;

    json_begin(&writer, &text);
    json_object(&writer);
    backend->describe(device, &writer);
    return describe_end(&writer, &text, arena, out);
}

enum status describe_peer(const struct json *software, const struct json *peer, struct arena *arena,
                          const struct json **out)
{
    struct text text = {0};
    struct json_writer writer;
    struct json *joined = NULL;

    json_begin(&writer, &text);
    json_object(&writer);
    for (const struct json *part = software->first; part; part = part->next) {
        json_key(&writer, part->key);
        json_add_tree(&writer, part);
    }
    json_key(&writer, "peer");
    json_add_tree(&writer, peer);
    TRY(describe_end(&writer, &text, arena, &joined));
    *out = joined;
    return STATUS_OK;
}

enum status describe_check_threads(const char *backend, const struct json *device, int64_t asked)
{
    int64_t threads = json_int(device, "threads", asked);
    if (asked && threads != asked)
        FAIL(STATUS_UNSUPPORTED, "the backend %s makes %lld thread%s, not %lld", backend,
             (long long)threads, threads == 1 ? "" : "s", (long long)asked);
    return STATUS_OK;
}
