/* sharing.c: see sharing.h. */
#include "train/workers/sharing.h"

#include <string.h>

static const char *const names[PARALLELISMS] = {"data", "model", "pipeline"};

const char *parallelism_name(enum parallelism parallelism)
{
    return names[parallelism];
}

static enum status read_parallelism(const char *text, enum parallelism *out)
{
    for (int i = 0; i < PARALLELISMS; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum parallelism)i;
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT, "--parallelism: found '%s', expected pipeline, model or data", text);
}

enum status sharing_read(const char *parallelism, const char *schedule, int64_t micros,
                         enum parallelism usual, struct sharing *out)
{
    out->parallelism = usual;
    if (parallelism)
        TRY(read_parallelism(parallelism, &out->parallelism));
    if (out->parallelism != PARALLEL_PIPELINE && (schedule || micros))
        FAIL(STATUS_INPUT, "--micro-batches and --pipeline are for --parallelism pipeline");
    if (schedule)
        TRY(pipeline_schedule_read(schedule, &out->schedule));
    out->micros = (int32_t)micros;
    return STATUS_OK;
}
