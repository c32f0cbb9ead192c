/* lap_split.c: see lap_split.h. Both legs are split alike, so that one copy of the worker's
 * parameters serves both. */
#include "train/workers/lap_split.h"

#include "base/memory.h"
#include "core/pass/split_data.h"
#include "core/pass/split_model.h"
#include "core/pass/split_server.h"

#include <string.h>

/* The last, smaller batch may not be divided by as many. */
static int32_t micros_of(const struct lap *lap, const struct leg *leg)
{
    const bool first = leg == &lap->legs[0];
    int32_t micros = first ? lap->sharing.micros : lap->legs[0].micros;
    if (!micros)
        return pipeline_usual_micros(sharing_parts(&lap->sharing), leg->batch);
    while (leg->batch % micros)
        micros--;
    return micros;
}

enum status lap_split_compile(struct lap *lap, struct leg *leg, const struct network *network,
                              struct params *params, const struct compile_options *options)
{
    struct compile_options each = *options, whole = *options;
    struct recipe_traits traits;
    TRY(recipe_traits(network, options, &traits));
    each.batch = (int32_t)leg->batch;
    whole.batch = options->batch / sharing_copies(&lap->sharing);
    if (lap->sharing.parallelism == PARALLEL_PIPELINE) {
        const int32_t asked = lap->sharing.micros;
        const bool refused = asked && whole.batch % asked;
        leg->micros = micros_of(lap, leg);
        TRY(pipeline_compile(network, params, refused ? &whole : &each,
                             refused ? asked : leg->micros, &leg->step.programs[0]));
        leg->step.count = 1;
        return STATUS_OK;
    }
    TRY(recipe_compile(network, params, &each, &leg->step));
    if (leg->step.count > 1 || traits.stages > 1)
        FAIL(STATUS_INPUT,
             "%s: found a recipe of several programs, expected one program: --parallelism data "
             "shares out the others",
             network->name);
    if (sharing_serves(&lap->sharing) && rbm_chains(network, params) >= 0)
        FAIL(STATUS_INPUT,
             "%s: found chains of samples, which no server has, expected a recipe without: "
             "--parallelism data",
             network->name);
    return STATUS_OK;
}

/* What both legs work on has to be the same. */
static enum status check_alike(const struct lap *lap, const struct leg *leg)
{
    const struct split_rank *first = lap->legs[0].split.rank.own, *own = leg->split.rank.own;
    bool alike = own->params.count == first->params.count;
    for (int32_t e = 0; alike && e < own->params.count; e++) {
        const struct entry *a = &own->params.entries[e], *b = &first->params.entries[e];
        alike = !strcmp(a->name, b->name) && shape_equal(&a->shape, &b->shape) &&
                own->slices[e].from == first->slices[e].from;
    }
    if (!alike)
        FAIL(STATUS_UNSUPPORTED,
             "%s: is split otherwise at batch %lld than at batch %lld, expected one way for both: "
             "another --batch, or --parallelism data",
             leg->step.programs[0]->name, (long long)leg->all, (long long)lap->legs[0].all);
    return STATUS_OK;
}

static bool is_async(const struct lap *lap)
{
    return lap->sharing.parallelism == PARALLEL_ASYNC_SERVER && lap->sharing.comm;
}

/* A part of the weights each, or a parameter server. */
static enum status split_program(const struct lap *lap, const struct leg *leg,
                                 const struct params *params, struct split_ranks *split)
{
    const struct program *program = leg->step.programs[0];
    const int32_t own = leg == &lap->legs[0] ? lap->copy->rank : -1;
    const struct model_options options = {.ranks = lap->copy->size, .own = own};
    const struct server_options serving = {.ranks = lap->copy->size,
                                           .servers = lap->sharing.servers,
                                           .own = own,
                                           .samples = (int32_t)leg->counted,
                                           .of = (int32_t)leg->all,
                                           .alone = is_async(lap)};
    return sharing_serves(&lap->sharing) ? split_server(program, params, &serving, split)
                                         : split_model(program, params, &options, split);
}

static enum status prepare_model(struct lap *lap, struct leg *leg, const struct params *params,
                                 const struct data_share *share)
{
    const bool first = leg == &lap->legs[0];
    struct split_ranks split;
    const struct plan_options plan = {.slots = 1,
                                      .comm = lap->copy,
                                      .across = lap->across,
                                      .queue = lap->queue,
                                      .traffic = lap->sharing.traffic,
                                      .turn = &lap->turns.now};
    TRY(split_program(lap, leg, params, &split));
    enum status status =
        lap->across ? split_rank_share(&split.ranks[lap->copy->rank], share) : STATUS_OK;
    if (status == STATUS_OK)
        status = first && lap->alone
                     ? rank_plan_open_alone(&leg->split.rank, &lap->split_engine, &split,
                                            lap->params, &plan)
                     : rank_plan_open(&leg->split.rank, &lap->split_engine, &split, params, &plan);
    split_ranks_free(&split);
    return status;
}

static enum status prepare_leg(struct lap *lap, struct leg *leg, const struct params *params)
{
    const bool pipeline = lap->sharing.parallelism == PARALLEL_PIPELINE;
    const bool first = leg == &lap->legs[0];
    const struct data_share share = {.samples = (int32_t)leg->counted,
                                     .of = (int32_t)leg->all,
                                     .across = true,
                                     .accumulated = pipeline};
    const struct pipeline_setup setup = {.comm = lap->copy,
                                         .across = lap->across,
                                         .share = &share,
                                         .micros = leg->micros,
                                         .schedule = lap->sharing.schedule,
                                         .traffic = lap->sharing.traffic,
                                         .as = first ? NULL : &lap->legs[0].split.rank.split,
                                         .given_up = first && lap->alone ? lap->params : NULL};
    return pipeline ? pipeline_open(&leg->split, &lap->split_engine, leg->step.programs[0], params,
                                    &setup)
                    : prepare_model(lap, leg, params, &share);
}

/* Workers of a copy follow each other. */
static enum status open_groups(struct lap *lap)
{
    const struct sharing *sharing = &lap->sharing;
    const int copies = sharing_copies(sharing), parts = sharing_parts(sharing);
    int *ranks;
    lap->copy = sharing->comm;
    if (copies == 1)
        return STATUS_OK;
    if (strcmp(lap->engine->backend->unit, "cpu") != 0)
        FAIL(STATUS_UNSUPPORTED,
             "--parallelism %s: found the unit %s, expected cpu: no GPU has tried it yet",
             sharing_name(sharing), lap->engine->backend->unit);
    const int copy = sharing_copy(sharing), part = sharing->comm->rank % parts;
    NEED(ranks = mem_array((size_t)(copies + parts), sizeof *ranks));
    for (int i = 0; i < parts; i++)
        ranks[i] = copy * parts + i;
    for (int i = 0; i < copies; i++)
        ranks[parts + i] = i * parts + part;
    lap->copy = NULL;
    enum status status = comm_group(sharing->comm, ranks, parts, &lap->copy);
    if (status == STATUS_OK)
        status = comm_group(sharing->comm, ranks + parts, copies, &lap->across);
    mem_free(ranks);
    TRY(status);
    return sharing->parallelism == PARALLEL_MODEL && lap_sums_beside(lap, lap->across)
               ? comm_queue_open(lap->across, &lap->queue)
               : STATUS_OK;
}

enum status lap_split_prepare(struct lap *lap, const struct params *params)
{
    lap->split_engine = (struct engine){.backend = lap->engine->backend,
                                        .device = lap->engine->device,
                                        .recompute = lap->engine->recompute};
    TRY(open_groups(lap));
    if (is_async(lap))
        TRY(turns_open(&lap->turns, lap->sharing.comm, sharing_samples(&lap->sharing)));
    for (int i = 0; i < LAP_LEGS; i++) {
        struct leg *leg = &lap->legs[i];
        if (!leg->step.count)
            continue;
        TRY(prepare_leg(lap, leg, params));
        TRY(check_alike(lap, leg));
        leg->plans[0] = leg->split.rank.plan;
    }
    return STATUS_OK;
}

void lap_split_close(struct lap *lap)
{
    for (int i = 0; i < LAP_LEGS; i++) {
        lap->legs[i].plans[0] = NULL; /* the split's */
        pipeline_close(&lap->legs[i].split);
    }
    if (lap->split_engine.instance)
        lap->split_engine.backend->detach(lap->split_engine.instance);
    lap->split_engine = (struct engine){0};
    comm_queue_close(lap->queue);
    comm_close(lap->across);
    if (lap->copy != lap->sharing.comm)
        comm_close(lap->copy);
    lap->queue = NULL;
    lap->copy = lap->across = NULL;
    turns_close(&lap->turns);
}

/* Serves workers as they come, each as often as it has steps with samples. */
static enum status serve(struct lap *lap, const struct leg *leg, int64_t steps)
{
    const struct backend *backend = lap->split_engine.backend;
    const int workers = sharing_samples(&lap->sharing);
    bool any = true;
    for (int worker = 0; worker < workers; worker++) {
        int64_t from, to;
        data_share_range(leg->all, worker, workers, &from, &to);
        turns_expect(&lap->turns, worker, to > from ? steps : 0);
    }
    while (any) {
        TRY(turns_take(&lap->turns, &any));
        if (!any)
            break;
        TRY(backend->run(leg->split.rank.plan, PARTS_ALL, 0, 1));
        TRY(backend->sync(leg->split.rank.plan));
    }
    return STATUS_OK;
}

enum status lap_split_add_stale(struct lap *lap)
{
    struct comm *comm = lap->sharing.comm;
    const struct staleness *own = &lap->turns.stale;
    if (!is_async(lap))
        return STATUS_OK;
    double sums[] = {own->updates, own->sum};
    TRY(comm_all_reduce(comm, sums, 2, DTYPE_F64));
    lap->stale.updates = sums[0];
    lap->stale.sum = sums[1];
    for (int server = 1; server <= lap->sharing.servers; server++) {
        double there = own->most;
        TRY(comm_broadcast(comm, comm->size - server, &there, sizeof there));
        lap->stale.most = there > lap->stale.most ? there : lap->stale.most;
    }
    return STATUS_OK;
}

enum status lap_split_run(struct lap *lap, const struct leg *leg, int64_t steps)
{
    const struct rank_plan *rank = &leg->split.rank;
    const struct backend *backend = rank->engine->backend;
    struct pipeline *pipeline = (struct pipeline *)(uintptr_t)&leg->split;
    if (leg->split.turns)
        return pipeline_run(pipeline, steps);
    if (is_async(lap) && lap->sharing.comm->rank >= sharing_samples(&lap->sharing))
        return serve(lap, leg, steps);
    if (is_async(lap) && !leg->counted)
        return STATUS_OK;
    TRY(backend->run(rank->plan, PARTS_ALL, 0, steps));
    return backend->sync(rank->plan);
}

bool lap_split_tells(const struct lap *lap, const struct leg *leg)
{
    return program_find(leg->split.rank.program, ROLE_OUTPUT, "loss") >= 0 &&
           (lap->sharing.parallelism != PARALLEL_MODEL || lap->copy->rank == 0);
}

void lap_split_give_up(struct lap *lap)
{
    if (lap->legs[0].split.rank.given_up)
        params_drop(lap->params);
}

uint64_t lap_split_bytes(const struct lap *lap)
{
    uint64_t most = 0;
    for (int i = 0; i < LAP_LEGS; i++) {
        const struct rank_plan *rank = &lap->legs[i].split.rank;
        const uint64_t bytes = rank->program ? rank_plan_bytes(rank) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

enum status lap_split_take(struct lap *lap, const struct params *params)
{
    return rank_plan_take(&lap->legs[0].split.rank, params);
}

enum status lap_split_gather(struct lap *lap, struct params *params, bool for_all)
{
    struct rank_plan *rank = &lap->legs[0].split.rank;
    struct comm *comm = lap->sharing.comm;
    TRY(rank_plan_download(rank));
    if (for_all || !comm || comm->rank == 0)
        TRY(params_hold(params));
    if (sharing_copy(&lap->sharing) == 0) /* the others have the same */
        TRY(rank_plan_gather(rank, lap->copy, params));
    else
        params_drop(&rank->own->params);
    params->control = rank->own->params.control;
    if (sharing_serves(&lap->sharing)) /* a server has done all updates */
        TRY(comm_broadcast(comm, comm->size - 1, &params->control, sizeof params->control));
    for (int32_t e = 0; for_all && comm && e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        if (entry->role == ROLE_PARAM || entry->role == ROLE_STATISTIC)
            TRY(comm_broadcast(comm, 0, params_data(params, e), (size_t)entry->bytes));
    }
    return STATUS_OK;
}
