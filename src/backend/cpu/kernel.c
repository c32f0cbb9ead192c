/* kernel.c: see kernel.h. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/blocked.h"
#include "backend/cpu/rounded.h"

#include <assert.h>

void kernels_add(struct kernel_table *table, const struct kernel_list *list)
{
    assert(table->list_count < KERNEL_LISTS);
    table->lists[table->list_count++] = list;
}

/* Does the op touch weights in blocks? */
static bool is_blocked(const struct program *program, const struct op *op)
{
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int32_t index = program->operands[op->first + i];
        const struct tensor *tensor = index < 0 ? NULL : &program->tensors[index];
        if (tensor && blocked_wanted(tensor->matrix, tensor->dtype, &tensor->shape))
            return true;
    }
    return false;
}

const struct kernel *kernel_of(const struct kernel_table *table, const struct program *program,
                               const struct op *op)
{
    const struct kernel *row = kernel_in(table, program, op, table->precision);
    const struct kernel *inner =
        row && kernel_is_rounded(row) ? kernel_in(table, program, op, PRECISION_FP32) : row;
    return inner && inner->run ? row : inner; /* which may say why it does not run */
}

const struct kernel *kernel_in(const struct kernel_table *table, const struct program *program,
                               const struct op *op, enum precision precision)
{
    if (!precision_factors(op->kind))
        precision = PRECISION_FP32;
    enum kernel_form form = table->blocks && is_blocked(program, op) ? FORM_BLOCKED : FORM_PLAIN;
    for (int l = 0; l < table->list_count; l++)
        for (int r = 0; r < table->lists[l]->count; r++) {
            const struct kernel *row = &table->lists[l]->rows[r];
            if (row->op == op->kind && row->real == program->real && row->precision == precision &&
                (row->form == form || row->form == FORM_ANY) &&
                (!row->takes || row->takes(program, op)))
                return row;
        }
    return NULL;
}

const struct kernel *kernel_first(const struct kernel_table *table, enum dtype real,
                                  enum op_kind kind)
{
    for (int l = 0; l < table->list_count; l++)
        for (int r = 0; r < table->lists[l]->count; r++) {
            const struct kernel *row = &table->lists[l]->rows[r];
            if (row->op == kind && row->real == real && row->precision == PRECISION_FP32 &&
                row->form != FORM_BLOCKED)
                return row;
        }
    return NULL;
}
