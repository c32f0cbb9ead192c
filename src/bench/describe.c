/* describe.c: see describe.h. */
#include "bench/describe.h"

#include <string.h>

void describe_plan(const struct backend *backend, const struct device *device,
                   const struct plan *plan, struct json_writer *out)
{
    struct explanation explanation = {0};
    struct arena scratch = {0};

    json_key(out, "device");
    json_object(out);
    backend->describe(device, out);
    json_end(out);
    json_key(out, "kernels");
    json_array(out);
    if (backend->explain(plan, &scratch, &explanation) == STATUS_OK)
        for (int32_t i = 0; i < explanation.kernel_count; i++) {
            const char *kernel = explanation.kernels[i].kernel;
            bool told = false; /* each kernel once: the record says which ran, explain how often */
            for (int32_t j = 0; j < i && !told; j++)
                told = strcmp(explanation.kernels[j].kernel, kernel) == 0;
            if (!told)
                json_add_text(out, kernel);
        }
    json_end(out);
    arena_free(&scratch);
}

enum status describe_job(struct job *job, struct arena *arena, struct json **out)
{
    struct text text = {0};
    struct json_writer writer;

    json_begin(&writer, &text);
    json_object(&writer);
    job->kind->describe(job, &writer);
    json_end(&writer);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = json_parse(arena, "job", text_of(&text), text.length, out);
    text_free(&text);
    return status;
}
