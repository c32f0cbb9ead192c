/* reference_file.c: see reference_file.h. A file is a header and the numbers of the outcomes, as
 * this machine has them in memory: the reference, then the draws. It never leaves the machine. */
#include "bench/check/reference_file.h"

#include "base/file.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Is this a commit that names one source and no other? */
static bool is_clean(const char *commit)
{
    return commit[0] && !strchr(commit, '+');
}

/* FNV-1a, by eight bytes at a time: parameters may be gigabytes. */
static uint64_t hash_block(uint64_t hash, const char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, data + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        hash = (hash ^ word ^ (hash >> 32)) * 1099511628211u;
    }
    return hash;
}

static uint64_t hash_params(uint64_t hash, const struct params *params)
{
    for (int32_t e = 0; e < params->count; e++)
        hash = hash_block(hash, params_data(params, e), (size_t)params->entries[e].bytes);
    return hash;
}

/* Of all that goes in: what is computed, from which numbers. The same program may start from other
 * weights: as its network says, or from a file. */
static uint64_t reference_hash(const struct task *task)
{
    return hash_params(hash_params(recipe_hash(&task->step), &task->params), &task->data);
}

static enum status reference_path(const struct task *task, const char *commit, struct text *out)
{
    TRY(file_data_folder(out));
    text_add(out, "/references");
    TRY(text_done(out));
    TRY(file_make_folder(text_of(out)));
    text_printf(out, "/%016" PRIx64 "-%s.bin", reference_hash(task), commit);
    return text_done(out);
}

/* All that the hash does not know. */
struct header {
    char by[64]; /* what computed it */
    int64_t steps, values, draws;
    double rate, rounding;
};

static struct header reference_header(const struct task *task, const char *by, int32_t draws)
{
    struct header header;
    memset(&header, 0, sizeof header); /* compared by bytes */
    snprintf(header.by, sizeof header.by, "%s", by);
    header.steps = task->check_steps;
    header.values = task->value_count;
    header.draws = draws;
    header.rate = task->params.control.rate;
    header.rounding = task->rounding;
    return header;
}

/* Bytes of an outcome's values. */
static size_t outcome_bytes(const struct task *task)
{
    return (size_t)task_stages(task) * (size_t)task->value_count * sizeof(double);
}

static enum status reference_take(struct task *task, const char *bytes, struct outcome *out)
{
    TRY(outcome_make(task, &task->arena, out));
    memcpy(out->loss, bytes, sizeof out->loss);
    memcpy(out->values, bytes + sizeof out->loss, outcome_bytes(task));
    return STATUS_OK;
}

/* As many draws as the file has room for; -1: it holds something else. */
static int32_t reference_draws(const struct task *task, const char *by, const void *bytes,
                               size_t length)
{
    const size_t each = sizeof task->reference.loss + outcome_bytes(task);
    struct header found;
    if (length < sizeof found + each || (length - sizeof found) % each != 0)
        return -1;
    const size_t draws = (length - sizeof found) / each - 1;
    memcpy(&found, bytes, sizeof found);
    if (draws > TASK_DRAWS)
        return -1;
    const struct header expected = reference_header(task, by, (int32_t)draws);
    return memcmp(&found, &expected, sizeof found) == 0 ? (int32_t)draws : -1;
}

enum status reference_load(struct task *task, const char *by, const char *commit)
{
    const size_t each = sizeof task->reference.loss + outcome_bytes(task);
    struct text path = {0};
    void *bytes = NULL;
    size_t length = 0;
    enum status status = STATUS_OK;

    if (!is_clean(commit))
        return STATUS_OK;
    TRY_OR(done, reference_path(task, commit, &path));
    TRY_OR(done, file_load(text_of(&path), &bytes, &length));
    const int32_t draws = reference_draws(task, by, bytes, length);
    const char *from = (const char *)bytes + sizeof(struct header);
    if (draws < 0)
        goto done;
    TRY_OR(done, reference_take(task, from, &task->reference));
    for (int32_t i = 0; i < draws; i++)
        TRY_OR(done, reference_take(task, from + (size_t)(i + 1) * each, &task->draws[i]));
    task->draw_count = draws;
    task->has_reference = true;
done:
    mem_free(bytes);
    text_free(&path);
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

static enum status reference_add(const struct task *task, struct file_writer *writer,
                                 const struct outcome *outcome)
{
    TRY(file_append(writer, outcome->loss, sizeof outcome->loss));
    return file_append(writer, outcome->values, outcome_bytes(task));
}

static enum status reference_write(const struct task *task, const char *by, const char *path)
{
    const struct header header = reference_header(task, by, task->draw_count);
    struct file_writer writer;
    enum status status = STATUS_OK;

    TRY(file_begin(&writer, path));
    TRY_OR(done, file_append(&writer, &header, sizeof header));
    TRY_OR(done, reference_add(task, &writer, &task->reference));
    for (int32_t i = 0; i < task->draw_count; i++)
        TRY_OR(done, reference_add(task, &writer, &task->draws[i]));
    TRY_OR(done, file_commit(&writer));
done:
    file_abort(&writer);
    return status;
}

enum status reference_save(const struct task *task, const char *by, const char *commit)
{
    struct text path = {0};
    enum status status = STATUS_OK;

    if (!is_clean(commit))
        return STATUS_OK;
    status = reference_path(task, commit, &path);
    if (status == STATUS_OK)
        status = reference_write(task, by, text_of(&path));
    text_free(&path);
    return status == STATUS_MEMORY ? status : STATUS_OK;
}
