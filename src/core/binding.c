/* binding.c: checks a binding against a program. */
#include "core/binding.h"

#include <stdatomic.h>

const struct op *binding_port(const struct program *program, int32_t tensor)
{
    for (int32_t o = 0; o < program->op_count && tensor >= 0; o++) {
        const struct op *op = &program->ops[o];
        if ((op->kind == OP_load && op_output(program, op, 0) == tensor) ||
            (op->kind == OP_store && op_input(program, op, 0) == tensor))
            return op;
    }
    return NULL;
}

bool binding_per_sample(const struct program *program, const struct op *port)
{
    return port->kind == OP_load || op_input(program, port, 1) >= 0;
}

uint64_t binding_row_bytes(const struct program *program, int32_t tensor)
{
    const struct tensor *bound = &program->tensors[tensor];
    bool per_sample = binding_per_sample(program, binding_port(program, tensor));
    return per_sample ? bound->bytes / (uint64_t)bound->shape.dim[0] : bound->bytes;
}

/* How many rows every per-sample view needs to have. */
static enum status check_order(const struct binding *binding, uint64_t *needed)
{
    *needed = 0;
    if (!binding->order)
        return STATUS_OK;
    if (binding->order_count < 1)
        FAIL(STATUS_INPUT, "the order of the data is empty");
    for (int64_t i = 0; i < binding->order_count; i++)
        if (binding->order[i] >= *needed)
            *needed = (uint64_t)binding->order[i] + 1;
    return STATUS_OK;
}

static enum status check_view(const struct program *program, const struct view *view,
                              uint64_t needed, uint64_t *rows)
{
    const struct op *port = binding_port(program, view->tensor);
    if (!port)
        FAIL(STATUS_INPUT, "tensor %d of the program '%s' is neither loaded nor stored",
             view->tensor, program->name);
    const char *name = program->tensors[view->tensor].name;
    if (!view->data || view->rows < 1)
        FAIL(STATUS_INPUT, "the data bound to '%s' is empty", name);
    const uint64_t have = (uint64_t)view->rows;
    if (have > (uint64_t)INT64_MAX / binding_row_bytes(program, view->tensor))
        FAIL(STATUS_INPUT, "the data bound to '%s' has %llu rows: more than can be addressed", name,
             (unsigned long long)have);
    if (!binding_per_sample(program, port))
        return STATUS_OK;
    if (have > INT32_MAX)
        FAIL(STATUS_INPUT, "the data bound to '%s' has %llu rows, at most %d can be numbered", name,
             (unsigned long long)have, INT32_MAX);
    if (have < needed)
        FAIL(STATUS_INPUT, "the order names row %llu but the data bound to '%s' has %llu rows",
             (unsigned long long)needed - 1, name, (unsigned long long)have);
    if (!needed && *rows && have != *rows)
        FAIL(STATUS_INPUT, "the data bound to '%s' has %llu rows, expected %llu as the others",
             name, (unsigned long long)have, (unsigned long long)*rows);
    *rows = have;
    return STATUS_OK;
}

enum status binding_check(const struct program *program, const struct binding *binding,
                          uint64_t *samples)
{
    uint64_t needed, rows = 0;
    TRY(check_order(binding, &needed));
    for (int32_t i = 0; i < binding->view_count; i++) {
        TRY(check_view(program, &binding->views[i], needed, &rows));
        for (int32_t k = 0; k < i; k++)
            if (binding->views[k].tensor == binding->views[i].tensor)
                FAIL(STATUS_INPUT, "'%s' is bound twice",
                     program->tensors[binding->views[i].tensor].name);
    }
    *samples = binding->order ? (uint64_t)binding->order_count : rows;
    return STATUS_OK;
}

uint64_t binding_version(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}
