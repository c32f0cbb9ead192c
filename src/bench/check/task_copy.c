/* task_copy.c: see task_copy.h. */
#include "bench/check/task_copy.h"

#include "base/memory.h"
#include "base/rng.h"

#include <string.h>

enum { STREAM_PERTURB = 101, STREAM_PERTURB_DATA };

/* Copies entries of the same name and shape, into another type of reals if need be. */
static void params_convert(const struct params *from, struct params *to)
{
    for (int32_t e = 0; e < to->count; e++) {
        const int32_t source = params_find(from, to->entries[e].name);
        const int64_t count = shape_count(&to->entries[e].shape);
        if (source < 0 || count != shape_count(&from->entries[source].shape))
            continue; /* a state that has a row for each sample */
        if (to->entries[e].dtype == from->entries[source].dtype)
            memcpy(params_data(to, e), params_data(from, source), (size_t)to->entries[e].bytes);
        else
            for (int64_t i = 0; i < count; i++)
                ((double *)params_data(to, e))[i] = task_real(from, source, i);
    }
    to->control = from->control;
}

static enum status copy_fill(struct task *copy, const struct task *like)
{
    TRY(task_compile(copy));
    TRY(params_fill(&copy->params, copy->seed));
    params_convert(&like->params, &copy->params);
    TRY(task_count_work(copy));
    for (int32_t e = 0; e < like->data.count; e++) {
        const struct entry *entry = &like->data.entries[e];
        const enum dtype dtype = entry->dtype == DTYPE_F32 ? copy->data.real : entry->dtype;
        int32_t same;
        TRY(params_declare(&copy->data, entry->name, entry->role, dtype, entry->shape, entry->init,
                           &same));
    }
    params_convert(&like->data, &copy->data);
    return STATUS_OK;
}

enum status task_copy(const struct task *like, enum dtype real, int32_t batch, struct task **out)
{
    struct task *copy = mem_alloc(sizeof *copy);
    NEED(copy);
    copy->network = like->network;
    copy->is_copy = true;
    copy->phase = like->phase;
    copy->batch = batch;
    copy->seed = like->seed;
    copy->optimiser = like->optimiser;
    copy->optimiser_text = like->optimiser_text;
    copy->rows = like->rows;
    copy->order = like->order;
    copy->check_steps = like->check_steps;
    copy->value_count = like->value_count;
    copy->places = like->places;
    copy->rounding = like->rounding;
    params_init(&copy->params, real);
    params_init(&copy->data, real);
    enum status status = copy_fill(copy, like);
    if (status != STATUS_OK) {
        task_close(copy);
        return status;
    }
    *out = copy;
    return STATUS_OK;
}

/* Each real number larger or smaller by that share of it. */
static void params_perturb(struct params *params, struct rng_key key, double rounding)
{
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        if (entry->role != ROLE_PARAM || entry->dtype == DTYPE_I32)
            continue;
        void *data = params_data(params, e);
        const int64_t count = shape_count(&entry->shape);
        uint32_t bits = 0;
        for (int64_t i = 0; i < count; i++, bits >>= 1) {
            if (i % 32 == 0)
                bits = rng_word(key, (uint32_t)e, (uint32_t)(i / 32));
            const double value = task_real(params, e, i) * (bits & 1 ? 1 + rounding : 1 - rounding);
            if (entry->dtype == DTYPE_F64)
                ((double *)data)[i] = value;
            else
                ((float *)data)[i] = (float)value;
        }
    }
}

void task_perturb(struct task *copy, const struct task *like, double rounding, uint32_t draw)
{
    const struct rng_key weights = {.seed = like->seed + draw, .stream = STREAM_PERTURB};
    const struct rng_key data = {.seed = like->seed + draw, .stream = STREAM_PERTURB_DATA};
    params_convert(&like->params, &copy->params);
    params_convert(&like->data, &copy->data);
    params_perturb(&copy->params, weights, rounding);
    params_perturb(&copy->data, data, rounding);
}
