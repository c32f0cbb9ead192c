/* optimiser.c: the update part: clip, one op a parameter, tick. What an optimiser is made of stands
 * in optimisers.def, so the code here knows none of them. */
#include "nn/optimiser.h"

#include "base/text.h"
#include "core/ops.h"
#include "core/params.h"
#include "nn/reader.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parameter tensor a gradient belongs to. */
static int32_t param_of(const struct program *program, int32_t grad)
{
    for (int32_t i = 0; i < program->tensor_count; i++)
        if (program->tensors[i].role == ROLE_PARAM && program->tensors[i].view_of < 0 &&
            program->tensors[i].entry == program->tensors[grad].entry)
            return i;
    return -1;
}

static bool is_grad(const struct program *program, int32_t tensor)
{
    return program->tensors[tensor].role == ROLE_GRAD && program->tensors[tensor].view_of < 0;
}

static void emit_clip(struct draft *draft, double limit)
{
    struct program *program = draft->program;
    int32_t *grads = arena_array(&program->arena, (size_t)program->tensor_count + 1, sizeof *grads);
    if (!grads) {
        draft_fail(draft, STATUS_MEMORY, "out of memory");
        return;
    }
    int32_t count = 0;
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (is_grad(program, t))
            grads[count++] = t;
    draft_op(draft, OP_clip, grads, count, grads, count)->attr.clip.limit = (float)limit;
}

/* Something the optimiser remembers from step to step, zero at first. */
static int32_t state_tensor(struct draft *draft, const char *name, enum dtype dtype,
                            struct shape shape, bool matrix)
{
    int32_t entry;
    if (draft->status != STATUS_OK)
        return -1;
    enum status status = params_declare(draft->params, name, ROLE_STATE, dtype, shape,
                                        (struct init){.kind = INIT_ZERO}, &entry);
    if (status != STATUS_OK) {
        draft_fail(draft, status, "%s", status_message());
        return -1;
    }
    if (matrix)
        params_mark_matrix(draft->params, entry);
    return draft_kept(draft, entry);
}

static int32_t emit_schedule(struct draft *draft, int32_t count, const struct schedule *schedule,
                             double scale)
{
    int32_t rate = draft_real(draft, "rate", SHAPE(1));
    draft_part(draft, PART_PREPARE);
    struct op *op = draft_op(draft, OP_schedule, IN(count), OUT(rate));
    op->attr.schedule.kind = schedule->kind;
    op->attr.schedule.warmup = schedule->warmup;
    op->attr.schedule.period = schedule->period;
    op->attr.schedule.factor = (float)schedule->factor;
    op->attr.schedule.scale = (float)scale;
    return rate;
}

/* The settings that are the op's, and what is fixed about it. */
static void set_attributes(struct op *op, const struct optimiser *optimiser)
{
    const struct optimiser_kind *kind = optimiser->kind;
    char name[READER_WORD];
    for (int i = 0; arguments_name(kind->settings, i, name); i++)
        if (strcmp(name, "rate") && strcmp(name, "clip")) {
            bool known = ops_set_number(op, name, optimiser->values[i]);
            assert(known);
            (void)known;
        }
    struct arguments fixed;
    arguments_begin(&fixed, kind->name, kind->fixed);
    for (int i = 0; arguments_name(kind->fixed, i, name); i++)
        ops_set_number(op, name, fixed.values[i]);
}

/* The update of one parameter by its gradient. */
static void emit_param(struct draft *draft, const struct update_options *options, int32_t grad,
                       int32_t rate, int32_t count)
{
    enum { MOST = 8 };
    const struct optimiser_kind *kind = options->optimiser.kind;
    const struct program *program = draft->program;
    int32_t w = param_of(program, grad), ins = 3, outs = 2;
    int32_t in[MOST] = {w, grad, rate}, out[MOST] = {w, options->accumulate ? grad : -1};
    if (!strcmp(op_operand_name(kind->op, ins, MOST), "count"))
        in[ins++] = count;
    const struct shape shape = *draft_shape(draft, w);
    char state[READER_WORD];
    for (int i = 0; arguments_name(kind->states, i, state); i++) {
        char name[300];
        snprintf(name, sizeof name, "%s%s.%s", options->prefix, program->tensors[w].name, state);
        in[ins++] = out[outs++] =
            state_tensor(draft, name, program->real, shape, program->tensors[w].matrix);
    }
    struct op *op = draft_op(draft, kind->op, in, ins, out, outs);
    if (draft->status == STATUS_OK) /* else it is no op of that kind */
        set_attributes(op, &options->optimiser);
}

void update_emit(struct draft *draft, const struct update_options *asked)
{
    struct update_options options = *asked;
    char name[200];
    if (draft->status != STATUS_OK)
        return;
    if (!options.optimiser.kind)
        options.optimiser = optimiser_usual();
    draft->layer = "";
    snprintf(name, sizeof name, "%sstep", options.prefix);
    int32_t count = state_tensor(draft, name, DTYPE_I32, SHAPE(1), false);
    int32_t rate = emit_schedule(draft, count, &options.schedule, options.rate);
    draft_part(draft, PART_UPDATE);
    double clip = optimiser_value(&options.optimiser, "clip");
    if (clip > 0)
        emit_clip(draft, clip);
    int32_t tensors = draft->program->tensor_count;
    for (int32_t g = 0; g < tensors && draft->status == STATUS_OK; g++)
        if (is_grad(draft->program, g))
            emit_param(draft, &options, g, rate, count);
    draft_op(draft, OP_tick, IN(count), OUT(count));
}
