/* choice.h: what a row of the list of kernels (kernel_row.h) is asked about: an op, or the first of
 * several, of a program on a device. Whole programs: the device (NULL: the one that the kernels
 * were made on), the program and its answering alone are told. */
#ifndef PRONY_BACKEND_CUDA_CHOICE_H
#define PRONY_BACKEND_CUDA_CHOICE_H

#include "backend/cuda/device/launch.h"

struct device;
struct kernel;

struct choice {
    const struct device *device;
    const struct program *program;
    const struct op *op;        /* the first op that the row would cover */
    const struct place *places; /* [tensor]: type and layout, as far as they are chosen */
    /* [op]: the row that takes each op by itself; NULL while these are chosen */
    const struct kernel *const *alone;
    const struct kernel *before; /* the row of the step before; NULL: none yet */
    bool dry;
    enum answering answering; /* how the whole program is asked for, by kernel_find_steps, _calls */
};

/* Is an operand of the op in 16 bits? */
static inline bool choice_has_16bit(const struct choice *choice, const struct op *op)
{
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        const int32_t tensor = choice->program->operands[op->first + i];
        if (tensor >= 0 && precision_is_16bit(choice->places[tensor].type))
            return true;
    }
    return false;
}

/* The row that takes an op by itself, of those that multiply by weights: its operands may be in 16
 * bits. */
bool choice_is_product(const struct choice *choice, const struct op *op);

typedef void launch_function(const struct call *call, struct queue *queue);
typedef uint64_t workspace_function(const struct program *program, const struct op *op);
typedef bool takes_function(const struct choice *choice);

/* Fusion: does this op's result go to the next op, and to nobody else? */
bool fusion_passes(const struct program *program, const struct op *op);

/* Do the bytes of these tensors meet? */
bool fusion_meets(const struct program *program, int32_t a, int32_t b);

/* Another op of the same plan and slot, as a call. */
static inline struct call fusion_call(const struct call *call, const struct op *op)
{
    struct call other = *call;
    other.op = op;
    other.operands = call->operands + (op->first - call->op->first);
    return other;
}

#endif
