/* average.c: see average.h. It goes through host memory, which every backend can. */
#include "train/workers/average.h"

#include "base/memory.h"

static void scale_by(void *data, size_t count, enum dtype dtype, double share)
{
    for (size_t i = 0; i < count; i++)
        if (dtype == DTYPE_F64)
            ((double *)data)[i] *= share;
        else
            ((float *)data)[i] *= (float)share;
}

/* Which entries the programs touch. */
static void find_touched(const struct params *params, const struct recipe_step *step, bool *touched)
{
    for (int32_t p = 0; p < step->count; p++)
        for (int32_t t = 0; t < step->programs[p]->tensor_count; t++) {
            const struct tensor *tensor = &step->programs[p]->tensors[t];
            if (tensor->entry >= 0 && role_is_kept(tensor->role) && tensor->dtype == params->real)
                touched[tensor->entry] = true;
        }
}

enum status average_workers(struct comm *comm, const struct engine *engine, struct params *params,
                            const struct recipe_step *step, double share)
{
    bool *touched = mem_array((size_t)params->count + 1, sizeof *touched);
    enum status status;
    NEED(touched);
    find_touched(params, step, touched);
    TRY_OR(done, engine->backend->download(engine->instance, params));
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        const size_t count = (size_t)shape_count(&entry->shape);
        if (!touched[e] || entry->fixed)
            continue;
        scale_by(params_data(params, e), count, entry->dtype, share);
        TRY_OR(done, comm_all_reduce(comm, params_data(params, e), count, entry->dtype));
    }
    TRY_OR(done, engine->backend->upload(engine->instance, params));
done:
    mem_free(touched);
    return status;
}
