/* rank_plan.c: see rank_plan.h. */
#include "train/workers/rank_plan.h"

#include "base/memory.h"
#include "core/comm.h"

#include <assert.h>

static uint64_t bytes_of(const struct params *params)
{
    uint64_t bytes = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        bytes += params->blocks[role].bytes;
    return bytes;
}

uint64_t rank_plan_bytes(const struct rank_plan *rank)
{
    const struct program *program = rank->program;
    uint64_t bytes = bytes_of(&rank->own->params);
    for (int role = 0; role < ROLE_COUNT; role++)
        if (!role_is_kept((enum role)role))
            bytes += program->role_bytes[role];
    return bytes + (uint64_t)(rank->slots - 1) * program->role_bytes[ROLE_ACTIVATION];
}

/* Beside the rank's parameters and one slot there are the others, and the whole on the host. */
static enum status check_memory(struct rank_plan *rank, const struct params *whole)
{
    const uint64_t slots = (uint64_t)(rank->slots - 1) * rank->program->role_bytes[ROLE_ACTIVATION];
    return engine_check_memory(rank->engine->backend, &rank->program, 1, &rank->own->params,
                               slots + (whole->bare ? 0 : bytes_of(whole)));
}

/* While it learns, its values are on the device alone. */
static enum status prepare(struct rank_plan *rank, const struct params *whole,
                           const struct plan_options *options)
{
    struct engine *engine = rank->engine;
    if (!engine->instance && whole->bare)
        TRY(split_rank_fill(rank->own, whole, whole->control.seed));
    else if (!engine->instance)
        split_rank_take(rank->own, whole);
    if (rank->given_up)
        params_drop(rank->given_up);
    TRY(engine_fuse(engine, rank->own->program, &rank->program));
    TRY(check_memory(rank, whole));
    TRY(engine_attach(engine, &rank->own->params));
    params_drop(&rank->own->params);
    return engine->backend->prepare(engine->instance, rank->program, options, &rank->plan);
}

static enum status open_rank(struct rank_plan *rank, struct engine *engine,
                             struct split_ranks *split, const struct params *whole,
                             struct params *given_up, const struct plan_options *options)
{
    const struct comm *comm = options->comm;
    *rank = (struct rank_plan){.engine = engine,
                               .split = *split,
                               .own = &split->ranks[comm ? comm->rank : 0],
                               .slots = options->slots ? options->slots : 1,
                               .given_up = given_up};
    *split = (struct split_ranks){0};
    enum status status = prepare(rank, whole, options);
    if (status != STATUS_OK)
        rank_plan_close(rank);
    return status;
}

enum status rank_plan_open(struct rank_plan *rank, struct engine *engine, struct split_ranks *split,
                           const struct params *whole, const struct plan_options *options)
{
    return open_rank(rank, engine, split, whole, NULL, options);
}

enum status rank_plan_open_alone(struct rank_plan *rank, struct engine *engine,
                                 struct split_ranks *split, struct params *whole,
                                 const struct plan_options *options)
{
    return open_rank(rank, engine, split, whole, split_ranks_cover(split, whole) ? whole : NULL,
                     options);
}

void rank_plan_close(struct rank_plan *rank)
{
    if (rank->plan)
        rank->engine->backend->release(rank->plan);
    program_free(rank->program);
    split_ranks_free(&rank->split);
    *rank = (struct rank_plan){0};
}

enum status rank_plan_bind(struct rank_plan *rank, const struct named_view *views, int32_t count,
                           const struct binding *rest)
{
    enum { MOST = 8 };
    struct view own[MOST];
    struct binding binding = *rest;
    assert(count <= MOST && rest->order);
    binding.views = own;
    binding.view_count = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t tensor = program_find(rank->program, views[i].role, views[i].name);
        if (tensor >= 0 && views[i].data)
            own[binding.view_count++] = (struct view){tensor, views[i].data, views[i].rows};
    }
    return rank->engine->backend->bind(rank->plan, &binding);
}

enum status rank_plan_download(struct rank_plan *rank)
{
    if (rank->given_up)
        params_drop(rank->given_up);
    TRY(params_hold(&rank->own->params));
    return engine_download(rank->engine, &rank->own->params);
}

enum status rank_plan_take(struct rank_plan *rank, const struct params *whole)
{
    TRY(params_hold(&rank->own->params));
    split_rank_take(rank->own, whole);
    enum status status = rank->engine->backend->upload(rank->engine->instance, &rank->own->params);
    params_drop(&rank->own->params);
    return status;
}

/* Rank 0 gets an entry of another rank after the other, so that no more than one is there twice: it
 * has the same split, without values. */
static enum status receive_rank(const struct split_rank *from, int number, struct comm *comm,
                                struct params *whole)
{
    for (int32_t e = 0; e < from->params.count; e++) {
        const size_t bytes = (size_t)from->params.entries[e].bytes;
        void *values = mem_large(bytes);
        NEED(values);
        enum status status = comm_receive(comm, number, values, bytes);
        if (status == STATUS_OK)
            split_rank_give_entry(from, e, values, whole);
        mem_free_large(values, bytes);
        TRY(status);
    }
    return STATUS_OK;
}

enum status rank_plan_gather(struct rank_plan *rank, struct comm *comm, struct params *whole)
{
    struct params *own = &rank->own->params;
    if (comm && comm->rank && rank->own->copies) {
        params_drop(own);
        return STATUS_OK;
    }
    if (comm && comm->rank) {
        for (int32_t e = 0; e < own->count; e++)
            TRY(comm_send(comm, 0, params_data(own, e), (size_t)own->entries[e].bytes));
        params_drop(own);
        return STATUS_OK;
    }
    split_rank_give(rank->own, whole);
    params_drop(own);
    for (int number = 1; comm && number < comm->size; number++)
        if (!rank->split.ranks[number].copies)
            TRY(receive_rank(&rank->split.ranks[number], number, comm, whole));
    return STATUS_OK;
}
