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

/* Entries of one block that follow each other in memory, and are averaged at once. */
struct run {
    void *data;
    size_t count; /* with the padding between them, which is zero */
    enum dtype dtype;
};

static enum status average_run(struct comm *comm, struct run *run, double share)
{
    const struct run now = *run;
    run->count = 0;
    if (!now.count)
        return STATUS_OK;
    scale_by(now.data, now.count, now.dtype, share);
    return comm_all_reduce(comm, now.data, now.count, now.dtype);
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

/* The entries of a role, as they lie in its block: one sum for all that follow each other. */
static enum status average_role(struct comm *comm, struct params *params, enum role role,
                                const bool *touched, double share)
{
    struct run run = {0};
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        if (entry->role != role)
            continue;
        char *data = params_data(params, e);
        if (!touched[e] || entry->fixed) {
            TRY(average_run(comm, &run, share));
            continue;
        }
        if (!run.count)
            run = (struct run){.data = data, .dtype = entry->dtype};
        run.count = (size_t)(data - (char *)run.data) / dtype_bytes(entry->dtype) +
                    (size_t)shape_count(&entry->shape);
    }
    return average_run(comm, &run, share);
}

enum status average_workers(struct comm *comm, const struct engine *engine, struct params *params,
                            const struct recipe_step *step, double share)
{
    bool *touched = mem_array((size_t)params->count + 1, sizeof *touched);
    enum status status;
    NEED(touched);
    find_touched(params, step, touched);
    TRY_OR(done, engine->backend->download(engine->instance, params));
    for (int role = 0; role < ROLE_COUNT; role++)
        TRY_OR(done, average_role(comm, params, (enum role)role, touched, share));
    TRY_OR(done, engine->backend->upload(engine->instance, params));
done:
    mem_free(touched);
    return status;
}
