/* reference.c: see reference.h. A file is one JSON object: steps, rate, loss, values, and of the
 * shaken one, where there is one, rounding and shaken. */
#include "bench/reference.h"

#include "base/file.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FILE_MOST = 1 << 20 };

/* What the fast backend does at least, in a second. */
static const double FAST_FLOP_PER_S = 2e10, FAST_BYTES_PER_S = 1e10;

double reference_flop(const struct task *task)
{
    return (double)(task->work.forward.flop + task->work.backward.flop) * task->check_steps;
}

bool reference_is_dear(const struct task *task)
{
    static const double DEAR_FLOP = 1e9;
    return reference_flop(task) >= DEAR_FLOP;
}

double reference_seconds(const struct task *task)
{
    double bytes = 0;
    for (int32_t p = 0; p < task->step.count; p++)
        for (int32_t i = 0; i < task->step.programs[p]->op_count; i++)
            bytes += (double)op_bytes(task->step.programs[p], &task->step.programs[p]->ops[i]);
    return reference_flop(task) / FAST_FLOP_PER_S + bytes * task->check_steps / FAST_BYTES_PER_S;
}

double reference_bytes(const struct task *task)
{
    double most = 0, host = 0; /* what the task holds itself */
    for (int role = 0; role < ROLE_COUNT; role++)
        host += (double)(task->params.blocks[role].bytes + task->data.blocks[role].bytes);
    for (int32_t p = 0; p < task->step.count; p++) {
        double bytes = 0;
        for (int role = 0; role < ROLE_COUNT; role++)
            bytes += (double)task->step.programs[p]->role_bytes[role];
        most = fmax(most, bytes);
    }
    return most + host;
}

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
    text_printf(out, "/%016" PRIx64 "-%s.json", reference_hash(task), commit);
    return text_done(out);
}

/* Is it a list of as many numbers as an outcome has? */
static bool reference_is_outcome(const struct task *task, const struct json *values)
{
    if (!values || values->kind != JSON_ARRAY || (int64_t)values->count != task->value_count)
        return false;
    for (const struct json *value = values->first; value; value = value->next)
        if (value->kind != JSON_NUMBER)
            return false;
    return true;
}

/* Does the tree hold an outcome of this very task? */
static bool reference_fits(const struct task *task, const struct json *tree)
{
    const double rate = json_real(tree, "rate", -1);
    return reference_is_outcome(task, json_get(tree, "values")) &&
           json_int(tree, "steps", 0) == task->check_steps && rate >= task->params.control.rate &&
           rate <= task->params.control.rate;
}

static enum status reference_take(struct task *task, const struct json *tree, const char *key,
                                  struct outcome *out)
{
    int64_t i = 0;
    TRY(task_outcome(task, &task->arena, out));
    out->loss = json_real(tree, "loss", 0);
    for (const struct json *value = json_get(tree, key)->first; value; value = value->next)
        out->values[i++] = (float)value->number;
    return STATUS_OK;
}

enum status reference_load(struct task *task, const char *commit)
{
    struct text path = {0}, text = {0};
    struct arena scratch = {0};
    struct json *tree;
    enum status status = STATUS_OK;

    if (!is_clean(commit))
        return STATUS_OK;
    TRY_OR(done, reference_path(task, commit, &path));
    TRY_OR(done, file_read(text_of(&path), FILE_MOST, &text));
    TRY_OR(done, json_parse(&scratch, "reference", text_of(&text), text.length, &tree));
    if (!reference_fits(task, tree))
        goto done;
    TRY_OR(done, reference_take(task, tree, "values", &task->reference));
    task->referred = true;
    const double rounding = json_real(tree, "rounding", -1);
    if (rounding >= task->rounding && rounding <= task->rounding &&
        reference_is_outcome(task, json_get(tree, "shaken")))
        TRY_OR(done, reference_take(task, tree, "shaken", &task->shaken));
done:
    arena_free(&scratch);
    text_free(&path);
    text_free(&text);
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

static void reference_add(const struct task *task, struct json_writer *writer, const char *key,
                          const struct outcome *outcome)
{
    json_key(writer, key);
    json_array(writer);
    for (int64_t i = 0; i < task->value_count; i++)
        json_add_float(writer, outcome->values[i]);
    json_end(writer);
}

enum status reference_save(const struct task *task, const char *commit)
{
    struct text path = {0}, text = {0};
    struct json_writer writer;
    enum status status = STATUS_OK;

    if (!is_clean(commit))
        return STATUS_OK;
    TRY_OR(done, reference_path(task, commit, &path));
    json_begin(&writer, &text);
    json_object(&writer);
    json_key(&writer, "steps");
    json_add_int(&writer, task->check_steps);
    json_key(&writer, "rate");
    json_add_real(&writer, task->params.control.rate);
    json_key(&writer, "loss");
    json_add_real(&writer, task->reference.loss);
    reference_add(task, &writer, "values", &task->reference);
    if (task->shaken.values) {
        json_key(&writer, "rounding");
        json_add_real(&writer, task->rounding);
        reference_add(task, &writer, "shaken", &task->shaken);
    }
    json_end(&writer);
    TRY_OR(done, text_done(&text));
    TRY_OR(done, file_write(text_of(&path), text_of(&text), text.length));
done:
    text_free(&path);
    text_free(&text);
    return status == STATUS_MEMORY ? status : STATUS_OK;
}
