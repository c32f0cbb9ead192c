/* kernel.h: what a CPU kernel is given, and the table it sits in. */
#ifndef PRONY_BACKEND_CPU_KERNEL_H
#define PRONY_BACKEND_CPU_KERNEL_H

#include "core/backend.h"

/* Where the plan is in its data. */
struct cursor {
    uint64_t place; /* samples taken since bind */
    uint64_t start;
    const uint32_t *order; /* or NULL */
    uint64_t count;        /* of the order, or of the data; 0: no data, samples are just numbered */
};

/* The bound view of a load or store op. */
struct bound {
    char *data; /* NULL: not bound */
    int64_t rows;
    uint64_t stored; /* rows stored so far by an output that is stored once a step */
};

/* One op, ready to run. Operands: inputs, then outputs, as in ops.def; NULL data = absent. */
struct call {
    const struct op *op;
    const struct tensor *const *tensors; /* per operand */
    void *const *data;                   /* per operand, in the slot that runs */
    const int64_t *counts;               /* per operand: elements as stored, padding included */
    struct control *control;
    struct cursor *cursor;
    struct bound *bound; /* load, store */
    struct pool *pool;
    void *workspace; /* as much as the kernel's row asks for; shared by all ops of the plan */
};

typedef void kernel_run(const struct call *call);

struct kernel {
    const char *name; /* "dense_f32_ref"; NULL: there is none */
    kernel_run *run;
    /* Bytes of workspace; NULL: none. */
    uint64_t (*workspace)(const struct program *program, const struct op *op, int threads);
};

/* One kernel for a whole program: all its parts, for as many steps as it is told. It keeps what it
 * makes of the program (`state`, `bytes` of it) and its own copy of the parameters there. */
struct whole {
    const char *name;
    const char *(*supports)(const struct program *program); /* NULL, or why not */
    uint64_t (*bytes)(const struct program *program);
    /* `calls` and `kernels` have one row per op of the program. */
    void (*prepare)(void *state, const struct program *program, const struct call *calls,
                    const struct kernel *const *kernels);
    /* `fresh`: the parameters were changed by somebody else since its last run. */
    void (*run)(void *state, int64_t steps, bool fresh);
};

/* Per element type of the program and op kind. Filled with reference kernels first, then
 * overwritten row by row with what the CPU supports. */
struct kernel_table {
    struct kernel rows[DTYPE_COUNT][OP_COUNT];
    bool blocks; /* matrices (params.h) of f32 programs are kept in blocks (simd/blocked.h) … */
    struct kernel blocked[OP_COUNT]; /* … and ops that touch one use these rows */
    struct whole whole;              /* supports is NULL: there is none */
};

void ref_fill(struct kernel_table *table);
void simd_fill(struct kernel_table *table, enum isa isa);

/* The row an op uses; its run is NULL when there is no kernel for it. */
const struct kernel *kernel_of(const struct kernel_table *table, const struct program *program,
                               const struct op *op);

#endif
