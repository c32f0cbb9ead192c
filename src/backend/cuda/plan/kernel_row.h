/* kernel_row.h: a kernel is a row of one ordered list (kernel_list.def): a name, the op or few ops
 * that it covers, whether it takes them, its workspace and its launch. The first row that takes
 * wins; rows that take everything come last. A row may cover a whole program, in many steps of one
 * launch or in calls. Names and reasons in `explain` are the row's. */
#ifndef PRONY_BACKEND_CUDA_KERNEL_ROW_H
#define PRONY_BACKEND_CUDA_KERNEL_ROW_H

#include "backend/cuda/plan/choice.h"

struct stack_kernel;
struct answer_kernel;

enum { KERNEL_OPS = 3 }; /* that a row covers at most */

enum : unsigned {
    IN_FP32 = 1u << PRECISION_FP32,
    IN_TF32 = 1u << PRECISION_TF32,
    IN_BF16 = 1u << PRECISION_BF16,
    IN_FP16 = 1u << PRECISION_FP16,
    IN_16BIT = IN_BF16 | IN_FP16,
    IN_ALL = IN_FP32 | IN_TF32 | IN_16BIT,
};

enum : unsigned {
    KERNEL_PRODUCT = 1u << 0, /* a product by weights, whose operands may be in 16 bits */
    KERNEL_16BIT = 1u << 1,   /* it multiplies in 16 bits, whatever its operands are kept in */
    KERNEL_NHWC = 1u << 2,    /* a convolution that takes its images in either layout */
    KERNEL_ROUNDS = 1u << 3,  /* it writes the 16-bit copies of the parameters it writes */
    KERNEL_SUMS = 1u << 4,    /* it leaves what the next op's update needs (activation_grad.h) */
    KERNEL_FP8 = 1u << 5,     /* it multiplies in fp8 */
    KERNEL_FINDS = 1u << 6,   /* of a whole program, which need not be program->stack */
};

struct kernel {
    const char *name;
    const char *why;              /* it is taken, for `explain`; NULL: the op has no other kernel */
    unsigned precisions;          /* of the device: IN_… */
    unsigned traits;              /* KERNEL_… */
    int32_t op_count;             /* 0: it covers the whole program */
    enum op_kind ops[KERNEL_OPS]; /* in the order of the program */
    int32_t home;                 /* which of them it is called with, and reported by */
    int32_t group; /* so many ops that it takes, of a kind, are one step; 0: each is its own */
    takes_function *takes; /* NULL: always */
    launch_function *launch;
    workspace_function *workspace;  /* bytes, or NULL: none; of the first op */
    workspace_function *side_bytes; /* of what it does on the side stream, or NULL */
    uint32_t side_operands; /* bit i: what it does there reads or writes the home op's operand i */
    const struct stack_kernel *steps = NULL;  /* the program's steps: stack/stack_run.h */
    const struct answer_kernel *calls = NULL; /* its calls: stack/answer_calls.h */
};

/* The first row that takes what begins with choice->op. `fuses`: rows over several ops are asked,
 * too. NULL: there is none. */
const struct kernel *kernel_find(const struct choice *choice, bool fuses);

/* The first row that takes the whole program: its steps, or its calls. NULL: there is none. */
const struct kernel *kernel_find_steps(const struct choice *choice);
const struct kernel *kernel_find_calls(const struct choice *choice);

/* Is there a row for every op of this kind? */
bool kernel_has(enum op_kind kind);

#endif
