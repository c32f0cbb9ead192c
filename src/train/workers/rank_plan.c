/* rank_plan.c: see rank_plan.h. */
#include "train/workers/rank_plan.h"

#include "core/comm.h"

#include <assert.h>

static enum status prepare(struct rank_plan *rank, const struct params *whole,
                           const struct plan_options *options)
{
    struct engine *engine = rank->engine;
    if (!engine->instance && whole->bare)
        TRY(split_rank_fill(rank->own, whole, whole->control.seed));
    else if (!engine->instance)
        split_rank_take(rank->own, whole);
    TRY(engine_fuse(engine, rank->own->program, &rank->program));
    const uint64_t besides = whole->bare ? 0 : engine_kept_bytes(whole);
    TRY(engine_check_memory(engine->backend, &rank->program, 1, &rank->own->params, besides));
    TRY(engine_attach(engine, &rank->own->params));
    return engine->backend->prepare(engine->instance, rank->program, options, &rank->plan);
}

enum status rank_plan_open(struct rank_plan *rank, struct engine *engine, struct split_ranks *split,
                           const struct params *whole, const struct plan_options *options)
{
    const struct comm *comm = options->comm;
    *rank = (struct rank_plan){
        .engine = engine, .split = *split, .own = &split->ranks[comm ? comm->rank : 0]};
    *split = (struct split_ranks){0};
    enum status status = prepare(rank, whole, options);
    if (status != STATUS_OK)
        rank_plan_close(rank);
    return status;
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
    return engine_download(rank->engine, &rank->own->params);
}

/* Rank 0 gets an entry of another rank after the other: it has the same split, without values. */
static enum status receive_rank(struct split_rank *from, int number, struct comm *comm,
                                struct params *whole)
{
    struct split_rank filled = *from;
    params_init(&filled.params, whole->real);
    enum status status = STATUS_OK;
    for (int32_t e = 0; status == STATUS_OK && e < from->params.count; e++) {
        const struct entry *entry = &from->params.entries[e];
        int32_t made;
        status = params_declare(&filled.params, entry->name, entry->role, entry->dtype,
                                entry->shape, entry->init, &made);
        if (status == STATUS_OK)
            status =
                comm_receive(comm, number, params_data(&filled.params, made), (size_t)entry->bytes);
    }
    filled.params.control = whole->control;
    if (status == STATUS_OK)
        split_rank_give(&filled, whole);
    params_free(&filled.params);
    return status;
}

enum status rank_plan_gather(struct rank_plan *rank, struct comm *comm, struct params *whole)
{
    const struct params *own = &rank->own->params;
    if (comm && comm->rank) {
        for (int32_t e = 0; e < own->count; e++)
            TRY(comm_send(comm, 0, params_data(own, e), (size_t)own->entries[e].bytes));
        return STATUS_OK;
    }
    split_rank_give(rank->own, whole);
    for (int number = 1; comm && number < comm->size; number++)
        TRY(receive_rank(&rank->split.ranks[number], number, comm, whole));
    return STATUS_OK;
}
