/* layer_own.c: see layer_own.h. */
#include "bench/layers/layer_own.h"

#include "bench/job/task.h"
#include "profile/profile.h"

#include <math.h>
#include <string.h>

static const uint64_t WATCH_NS = 1000000000;

/* One program: as it was compiled, and as it ran. */
struct own {
    struct layers *layers;
    struct layer_side *side;
    const struct network *network;
    const struct program *compiled, *fused;
    int32_t *writer; /* of each tensor's root: the op of `compiled` that writes it; -1: none */
    bool *there;     /* … it is an operand of `fused`: nothing before it is the op's own */
    int32_t *ahead;  /* room for a walk over all operands */
    bool *seen;      /* … and its marks */
    int32_t *covers; /* of the op that is looked at … */
    int32_t cover_count;
};

static enum status own_open(struct own *own, struct arena *arena)
{
    const size_t tensors = (size_t)own->compiled->tensor_count + 1;
    const size_t operands = (size_t)own->compiled->operand_count + 1;
    const size_t atoms = (size_t)own->layers->atom_count + operands;
    NEED(own->writer = arena_array(arena, tensors, sizeof *own->writer));
    NEED(own->there = arena_array(arena, tensors, sizeof *own->there));
    NEED(own->ahead = arena_array(arena, operands, sizeof *own->ahead));
    NEED(own->seen = arena_array(arena, (size_t)own->compiled->op_count + 1, sizeof *own->seen));
    NEED(own->covers = arena_array(arena, atoms, sizeof *own->covers));
    for (int32_t t = 0; t < own->compiled->tensor_count; t++)
        own->writer[t] = -1;
    for (int32_t o = 0; o < own->compiled->op_count; o++) {
        const struct op *op = &own->compiled->ops[o];
        for (int32_t i = 0; op->part == PART_FORWARD && i < op->outputs; i++)
            if (op_output(own->compiled, op, i) >= 0)
                own->writer[program_root(own->compiled, op_output(own->compiled, op, i))] = o;
    }
    /* passes keep the tensors, and may add some */
    for (int32_t i = 0; i < own->fused->operand_count; i++) {
        const int32_t tensor = own->fused->operands[i];
        if (tensor >= 0 && tensor < own->compiled->tensor_count)
            own->there[program_root(own->compiled, tensor)] = true;
    }
    return STATUS_OK;
}

static enum status cover_atom(struct own *own, const char *key)
{
    int32_t atom;
    TRY(layers_atom(own->layers, key, &atom));
    for (int32_t i = 0; i < own->cover_count; i++)
        if (own->covers[i] == atom)
            return STATUS_OK;
    own->covers[own->cover_count++] = atom;
    return STATUS_OK;
}

/* The layer, or the nodes of the file that it was made of. */
static enum status cover_layer(struct own *own, const char *layer, bool softmax)
{
    const struct network *network = own->network;
    if (!network->origin_count)
        return *layer ? cover_atom(own, layer) : STATUS_OK;
    for (int32_t i = 0; i < network->origin_count; i++) {
        const int32_t place = network->origins[i].layer;
        const bool is_it =
            place < 0 ? softmax && !*layer : strcmp(network->layers[place].name, layer) == 0;
        if (is_it)
            TRY(cover_atom(own, network->origins[i].value));
    }
    return STATUS_OK;
}

/* Goes back from what the op gives to what it reads: the ops on the way are what it stands for. */
static enum status cover_fused(struct own *own, const struct op *op)
{
    int32_t ahead = 0;
    memset(own->seen, 0, (size_t)own->compiled->op_count * sizeof *own->seen);
    for (int32_t i = 0; i < op->outputs; i++) {
        const int32_t tensor = op_output(own->fused, op, i);
        if (tensor >= 0 && tensor < own->compiled->tensor_count)
            own->ahead[ahead++] = program_root(own->compiled, tensor);
    }
    while (ahead > 0) {
        const int32_t writer = own->writer[own->ahead[--ahead]];
        if (writer < 0 || own->seen[writer])
            continue;
        own->seen[writer] = true;
        const struct op *from = &own->compiled->ops[writer];
        TRY(cover_layer(own, from->layer, from->kind == OP_softmax));
        for (int32_t i = 0; i < from->inputs; i++) {
            const int32_t tensor = op_input(own->compiled, from, i);
            if (tensor >= 0 && !own->there[program_root(own->compiled, tensor)])
                own->ahead[ahead++] = program_root(own->compiled, tensor);
        }
    }
    return STATUS_OK;
}

/* What an op that belongs to no layer is part of. */
static const char *name_outside(const struct op *op)
{
    static const char *const losses[] = {"mse", "cross_entropy", "binary_cross_entropy", "right_",
                                         "divergence"};
    if (op->part == PART_PREPARE)
        return "samples";
    if (op->part == PART_UPDATE)
        return "update";
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (text_starts(op_name(op->kind), losses[i]))
            return "loss";
    return op->kind == OP_store ? "results" : op_name(op->kind);
}

static enum status own_row(struct own *own, const struct op *op, const struct profile_op *timed)
{
    own->cover_count = 0;
    TRY(cover_layer(own, op->layer, op->kind == OP_softmax));
    if (op->part == PART_FORWARD && *op->layer)
        TRY(cover_fused(own, op));
    const bool updates = op->kind == OP_dense_sgd || op->kind == OP_dense_update;
    const struct layer_row row = {.name = own->cover_count ? timed->kernel : name_outside(op),
                                  .op = op_name(op->kind),
                                  .note = updates ? "with its update" : NULL,
                                  .part = op->part,
                                  .ns = timed->ns,
                                  .covers = own->covers,
                                  .cover_count = own->cover_count};
    return layers_row(own->layers, own->side, &row);
}

static enum status own_rows(struct own *own, const struct profile *profile)
{
    struct arena arena = {0};
    enum status status = own_open(own, &arena);
    for (int32_t o = 0; o < own->fused->op_count && status == STATUS_OK; o++)
        if (!isnan(profile->ops[o].ns))
            status = own_row(own, &own->fused->ops[o], &profile->ops[o]);
    arena_free(&arena);
    own->side->steps = profile->steps;
    return status;
}

/* A step that is one kernel is watched inside it, or its ops are run one by one in its place. */
static const char *how_watched(const struct own *own, const struct profile *profile)
{
    const char *kernel = NULL;
    if (!own->fused->whole)
        return "the clock is read between ops";
    for (int32_t o = 0; o < own->fused->op_count; o++) {
        const char *ran = profile->ops[o].kernel;
        if (*ran && kernel && strcmp(ran, kernel) != 0)
            return "op by op; the step that was timed is one kernel";
        kernel = *ran ? ran : kernel;
    }
    return "the clock is read inside its one kernel";
}

static void after_step(void *context, int step)
{
    profile_step(context, step > 0);
}

enum status layers_own(struct layers *layers, struct layer_side *side, const struct task *task,
                       struct job *job)
{
    const struct recipe_step *step = job_network_step(job);
    struct own own = {.layers = layers,
                      .side = side,
                      .network = task->network,
                      .compiled = task->step.programs[0],
                      .fused = step->programs[0]};
    struct profile profile;
    if (step->count != 1)
        FAIL(STATUS_UNSUPPORTED, "a step of %s runs %d programs, expected one", task->network->name,
             step->count);
    TRY(profile_open(&profile, own.fused));
    const struct observer observer = profile_observer(&profile);
    const struct watching watching = {.observers = &observer,
                                      .after = after_step,
                                      .context = &profile,
                                      .steps = PROFILE_STEPS,
                                      .limit_ns = WATCH_NS};
    enum status status = job_network_watch(job, &watching);
    if (status == STATUS_OK) {
        profile_finish(&profile);
        side->how = how_watched(&own, &profile);
        status = own_rows(&own, &profile);
    }
    job_network_unwatch(job);
    profile_free(&profile);
    return status;
}
