/* loss.c: see loss.h. */
#include "nn/loss.h"

#include <string.h>

static const char *const names[LOSS_COUNT] = {
    [LOSS_AUTO] = "auto",
    [LOSS_MSE] = "mse",
    [LOSS_CROSS_ENTROPY] = "cross_entropy",
    [LOSS_BINARY_CROSS_ENTROPY] = "binary_cross_entropy",
};

const char *loss_name(enum loss_kind loss)
{
    return names[loss];
}

bool loss_parse(const char *name, enum loss_kind *out)
{
    for (int i = 0; i < LOSS_COUNT; i++)
        if (!strcmp(name, names[i])) {
            *out = (enum loss_kind)i;
            return true;
        }
    return false;
}

enum status loss_read(const char *flag, enum loss_kind *out)
{
    const char *near = text_nearest(flag, names, LOSS_COUNT);
    if (loss_parse(flag, out))
        return STATUS_OK;
    if (near)
        FAIL(STATUS_INPUT, "there is no loss '%s'; did you mean '%s'?", flag, near);
    FAIL(STATUS_INPUT, "there is no loss '%s'; there are: mse, cross_entropy, binary_cross_entropy",
         flag);
}

static int32_t in_shape(struct draft *draft, int32_t tensor, struct shape shape)
{
    if (shape_equal(draft_shape(draft, tensor), &shape))
        return tensor;
    return draft_view(draft, tensor, shape);
}

int32_t loss_rows(struct draft *draft, int32_t y)
{
    const struct shape *shape = draft_shape(draft, y);
    int64_t width = shape->dim[shape->rank - 1];
    return in_shape(draft, y, SHAPE(shape_count(shape) / width, width));
}

/* One label a row. */
static int32_t label_rows(struct draft *draft, int32_t label)
{
    return in_shape(draft, label, SHAPE(shape_count(draft_shape(draft, label))));
}

static int32_t emit_right(struct draft *draft, enum loss_kind loss, int32_t y, int32_t target,
                          int32_t classes)
{
    const struct shape *shape = draft_shape(draft, y);
    bool single = shape->rank == 2 && shape->dim[1] == 1;
    bool levels = loss == LOSS_MSE && classes > 1 && single;
    bool binary = loss == LOSS_BINARY_CROSS_ENTROPY && single;
    if (loss != LOSS_CROSS_ENTROPY && !levels && !binary)
        return -1;
    if (binary) { /* the probability is nearer to 1 than to 0 */
        int32_t probability = draft_real(draft, "probability", *shape);
        draft_op(draft, OP_activate, IN(y), OUT(probability))->attr.activate.function =
            (int32_t)ACTIVATION_SIGMOID;
        y = probability;
        classes = 2;
    }
    int32_t right = draft_tensor(draft, ROLE_OUTPUT, draft->program->real, "right", SHAPE(1));
    if (loss == LOSS_CROSS_ENTROPY)
        draft_op(draft, OP_right_class, IN(loss_rows(draft, y), label_rows(draft, target)),
                 OUT(right));
    else
        draft_op(draft, OP_right_level, IN(y, target), OUT(right))->attr.right_level.classes =
            classes;
    draft_op(draft, OP_store, IN(right, -1), NOTHING);
    return right;
}

struct loss_tensors loss_emit(struct draft *draft, enum loss_kind loss, int32_t y, int32_t target,
                              int32_t classes)
{
    struct loss_tensors tensors = {.probability = -1, .right = -1};
    tensors.loss = draft_tensor(draft, ROLE_OUTPUT, draft->program->real, "loss", SHAPE(1));
    switch (loss) {
    case LOSS_CROSS_ENTROPY:
        tensors.probability = draft_real(draft, "probability", *draft_shape(draft, y));
        draft_op(draft, OP_cross_entropy, IN(loss_rows(draft, y), label_rows(draft, target)),
                 OUT(tensors.loss, loss_rows(draft, tensors.probability)));
        break;
    case LOSS_BINARY_CROSS_ENTROPY:
        draft_op(draft, OP_binary_cross_entropy, IN(y, target), OUT(tensors.loss));
        break;
    default: draft_op(draft, OP_mse, IN(y, target), OUT(tensors.loss)); break;
    }
    draft_op(draft, OP_store, IN(tensors.loss, -1), NOTHING);
    tensors.right = emit_right(draft, loss, y, target, classes);
    return tensors;
}

struct grad_seed loss_emit_seed(struct draft *draft, enum loss_kind loss, int32_t y, int32_t target,
                                const struct loss_tensors *tensors, double scale)
{
    draft_part(draft, PART_BACKWARD);
    int32_t dy = draft_real(draft, "d(y)", *draft_shape(draft, y));
    switch (loss) {
    case LOSS_CROSS_ENTROPY:
        draft_op(draft, OP_cross_entropy_grad,
                 IN(loss_rows(draft, tensors->probability), label_rows(draft, target)),
                 OUT(loss_rows(draft, dy)))
            ->attr.cross_entropy_grad.scale = (float)scale;
        break;
    case LOSS_BINARY_CROSS_ENTROPY:
        draft_op(draft, OP_binary_cross_entropy_grad, IN(y, target), OUT(dy))
            ->attr.binary_cross_entropy_grad.scale = (float)scale;
        break;
    default:
        draft_op(draft, OP_mse_grad, IN(y, target), OUT(dy))->attr.mse_grad.scale = (float)scale;
        break;
    }
    return (struct grad_seed){.tensor = y, .grad = dy};
}
