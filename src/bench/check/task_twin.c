/* task_twin.c: the same work in another type of numbers, or from numbers that are shaken; see
 * task.h. */
#include "base/memory.h"
#include "base/rng.h"
#include "bench/job/task.h"

#include <string.h>

enum { STREAM_SHAKE = 101, STREAM_SHAKE_DATA };

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

static enum status twin_fill(struct task *twin, const struct task *like)
{
    TRY(task_compile(twin));
    TRY(params_fill(&twin->params, twin->seed));
    params_convert(&like->params, &twin->params);
    TRY(task_count_work(twin));
    for (int32_t e = 0; e < like->data.count; e++) {
        const struct entry *entry = &like->data.entries[e];
        const enum dtype dtype = entry->dtype == DTYPE_F32 ? twin->data.real : entry->dtype;
        int32_t copy;
        TRY(params_declare(&twin->data, entry->name, entry->role, dtype, entry->shape, entry->init,
                           &copy));
    }
    params_convert(&like->data, &twin->data);
    return STATUS_OK;
}

enum status task_twin(const struct task *like, enum dtype real, int32_t batch, struct task **out)
{
    struct task *twin = mem_alloc(sizeof *twin);
    NEED(twin);
    twin->network = like->network;
    twin->is_twin = true;
    twin->phase = like->phase;
    twin->batch = batch;
    twin->seed = like->seed;
    twin->optimiser = like->optimiser;
    twin->optimiser_text = like->optimiser_text;
    twin->rows = like->rows;
    twin->order = like->order;
    twin->check_steps = like->check_steps;
    twin->value_count = like->value_count;
    twin->places = like->places;
    twin->rounding = like->rounding;
    params_init(&twin->params, real);
    params_init(&twin->data, real);
    enum status status = twin_fill(twin, like);
    if (status != STATUS_OK) {
        task_close(twin);
        return status;
    }
    *out = twin;
    return STATUS_OK;
}

/* Each real number larger or smaller by that share of it. */
static void params_shake(struct params *params, struct rng_key key, double rounding)
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

void task_shake(struct task *twin, const struct task *like, double rounding, uint32_t draw)
{
    const struct rng_key weights = {.seed = like->seed + draw, .stream = STREAM_SHAKE};
    const struct rng_key data = {.seed = like->seed + draw, .stream = STREAM_SHAKE_DATA};
    params_convert(&like->params, &twin->params);
    params_convert(&like->data, &twin->data);
    params_shake(&twin->params, weights, rounding);
    params_shake(&twin->data, data, rounding);
}
