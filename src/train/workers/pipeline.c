/* pipeline.c: see pipeline.h. */
#include "train/workers/pipeline.h"

#include "core/comm.h"
#include "nn/optimiser.h"
#include "train/recipe.h"

#include <assert.h>

enum { MICROS_A_STAGE = 4 };

int32_t pipeline_usual_micros(int32_t stages, int64_t batch)
{
    int64_t most = (int64_t)MICROS_A_STAGE * stages;
    for (most = most < batch ? most : batch; batch % most;)
        most--;
    return (int32_t)most;
}

/* The least number from this one on that divides the batch; it does so itself. */
static int32_t next_divisor(int32_t micros, int32_t batch)
{
    while (micros < batch && batch % micros)
        micros++;
    return micros < batch ? micros : batch;
}

enum status pipeline_compile(const struct network *network, struct params *params,
                             const struct compile_options *options, int32_t micros,
                             struct program **out)
{
    struct compile_options each = *options;
    struct recipe recipe = network->recipe;
    struct recipe_step step;
    TRY(recipe_parse(options->recipe, &recipe));
    if (recipe.kind->id != RECIPE_feed_forward)
        FAIL(STATUS_INPUT,
             "%s: found the recipe %s, expected feed_forward: a pipeline has one loss at its end; "
             "--parallelism data shares out the others",
             network->name, recipe.kind->name);
    assert(micros >= 1);
    if (options->batch % micros)
        FAIL(STATUS_INPUT,
             "--micro-batches: found %d, expected a number that divides the batch of %d: %d, or "
             "--batch %d",
             micros, options->batch, next_divisor(micros, options->batch),
             (options->batch / micros + 1) * micros);
    each.batch = options->batch / micros;
    each.accumulate = micros;
    TRY(recipe_compile(network, params, &each, &step));
    *out = step.programs[0];
    return STATUS_OK;
}

enum status pipeline_open(struct pipeline *pipeline, struct engine *engine,
                          const struct program *program, const struct params *whole,
                          const struct pipeline_setup *setup)
{
    const int32_t stages = setup->comm ? setup->comm->size : 1;
    const int32_t stage = setup->comm ? setup->comm->rank : 0, micros = setup->micros;
    const int32_t alive = pipeline_alive(setup->schedule, stages, stage, micros);
    const struct pipeline_options options = {
        .stages = stages, .micros = micros, .own = engine->instance ? -1 : stage, .as = setup->as};
    struct split_ranks split;
    *pipeline = (struct pipeline){.micros = micros};
    TRY(split_pipeline(program, whole, &options, &split));
    const struct plan_options plan = {
        .slots = alive, .comm = setup->comm, .across = setup->across, .traffic = setup->traffic};
    enum status status =
        setup->across ? split_rank_share(&split.ranks[stage], setup->share) : STATUS_OK;
    if (status == STATUS_OK)
        status = setup->given_up
                     ? rank_plan_open_alone(&pipeline->rank, engine, &split, setup->given_up, &plan)
                     : rank_plan_open(&pipeline->rank, engine, &split, whole, &plan);
    split_ranks_free(&split);
    TRY(status);
    pipeline->turns =
        arena_array(&pipeline->rank.split.arena, 2 * (size_t)micros, sizeof *pipeline->turns);
    if (!pipeline->turns) {
        pipeline_close(pipeline);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    pipeline_table(setup->schedule, stages, stage, micros, pipeline->turns);
    return STATUS_OK;
}

enum status pipeline_run(struct pipeline *pipeline, int64_t steps)
{
    const struct backend *backend = pipeline->rank.engine->backend;
    struct plan *plan = pipeline->rank.plan;
    const int32_t turns = 2 * pipeline->micros;
    for (int64_t step = 0; step < steps; step++) {
        for (int32_t i = 0; i < turns; i++) {
            const struct pipeline_turn *turn = &pipeline->turns[i];
            const unsigned parts = turn->backward ? PART_BIT(PART_BACKWARD)
                                                  : PART_BIT(PART_PREPARE) | PART_BIT(PART_FORWARD);
            TRY(backend->run(plan, parts, turn->slot, 1));
        }
        TRY(backend->sync(plan)); /* what others wait for goes before the update */
        TRY(backend->run(plan, PART_BIT(PART_UPDATE), pipeline->turns[turns - 1].slot, 1));
    }
    return backend->sync(plan);
}

void pipeline_close(struct pipeline *pipeline)
{
    rank_plan_close(&pipeline->rank);
    *pipeline = (struct pipeline){0};
}
