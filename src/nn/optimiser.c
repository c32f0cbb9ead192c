/* optimiser.c: see optimiser.h. */
#include "nn/optimiser.h"

#include "base/text.h"
#include "core/params.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {"sgd", NULL};

const char *const *optimiser_names(void)
{
    return names;
}

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

/* The optimiser's own count of updates. */
static int32_t count_tensor(struct draft *draft, const char *prefix)
{
    char name[200];
    int32_t entry;
    snprintf(name, sizeof name, "%sstep", prefix);
    enum status status = params_declare(draft->params, name, ROLE_STATE, DTYPE_I32, SHAPE(1),
                                        (struct init){.kind = INIT_ZERO}, &entry);
    if (status != STATUS_OK) {
        draft_fail(draft, status, "%s", status_message());
        return -1;
    }
    return draft_kept(draft, entry);
}

static int32_t emit_schedule(struct draft *draft, int32_t count, double scale)
{
    int32_t rate = draft_real(draft, "rate", SHAPE(1));
    draft_part(draft, PART_PREPARE);
    draft_op(draft, OP_schedule, IN(count), OUT(rate))->attr.schedule.scale = (float)scale;
    return rate;
}

void update_emit(struct draft *draft, const struct update_options *options)
{
    const char *optimiser = options->optimiser ? options->optimiser : "sgd";
    if (strcmp(optimiser, "sgd"))
        draft_fail(draft, STATUS_INPUT, "there is no optimiser '%s'; there is: sgd", optimiser);
    if (draft->status != STATUS_OK)
        return;
    draft->layer = "";
    int32_t count = count_tensor(draft, options->prefix);
    int32_t rate = emit_schedule(draft, count, options->rate);
    draft_part(draft, PART_UPDATE);
    if (options->clip > 0)
        emit_clip(draft, options->clip);
    struct program *program = draft->program;
    int32_t tensors = program->tensor_count;
    for (int32_t g = 0; g < tensors && draft->status == STATUS_OK; g++) {
        if (!is_grad(program, g))
            continue;
        int32_t w = param_of(program, g);
        draft_op(draft, OP_sgd, IN(w, g, rate), OUT(w, options->accumulate ? g : -1));
    }
    draft_op(draft, OP_tick, IN(count), OUT(count));
}
