/* kernel.h: what a CPU kernel is given, and the lists of kernels that a device chooses from. */
#ifndef PRONY_BACKEND_CPU_KERNEL_H
#define PRONY_BACKEND_CPU_KERNEL_H

#include "backend/cpu/cpu_precision.h"
#include "core/backend.h"
#include "core/observer.h"

struct kernel;

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
    struct bound *bound;     /* load, store */
    struct message *message; /* send, receive */
    struct pool *pool;
    struct exchange *exchange; /* all_reduce, wait */
    void *workspace;    /* as much as the kernel's row asks for; shared by all ops of the plan */
    const void *packed; /* the weights as the kernel's row wants them packed (narrow.h) */
    const struct kernel *inner; /* of a row of rounded.h: what multiplies */
};

typedef void kernel_run(const struct call *call);

/* How a kernel finds the weights that its op touches. */
enum kernel_form {
    FORM_PLAIN,   /* as matrices, or the op has none */
    FORM_BLOCKED, /* in blocks (blocked.h) */
    FORM_ANY,     /* either: it treats all elements alike */
};

/* How the instance keeps a copy of some weights packed (narrow.h); the kernel reads call->packed.
 */
enum narrow_form {
    NARROW_NONE,
    NARROW_FORWARD,  /* sums run along the inputs */
    NARROW_BACKWARD, /* … along the outputs */
    NARROW_FORMS,
};

/* A row of a list of kernels. The lists of a device are searched in order. The first row that takes
 * an op runs it, and explain and records have its name. */
struct kernel {
    enum op_kind op;
    enum dtype real; /* of the program */
    enum kernel_form form;
    enum precision precision; /* of its products; the device's, where the op has some */
    enum narrow_form packs;   /* the copy that it wants … */
    int32_t packed;           /* … of this operand */
    const char *name;         /* "dense_f32_ref" */
    const char *why; /* it is taken before the rows behind it; NULL: there is nothing to say */
    /* Does it suit this op? NULL: it suits every op of its kind. */
    bool (*takes)(const struct program *program, const struct op *op);
    /* Bytes of workspace; NULL: none. */
    uint64_t (*workspace)(const struct program *program, const struct op *op, int threads);
    kernel_run *run; /* NULL: the device has no kernel for such an op, and `why` says why */
};

struct kernel_list {
    const struct kernel *rows;
    int count;
};
#define KERNEL_LIST(rows)                                                                          \
    {                                                                                              \
        rows, sizeof(rows) / sizeof *(rows)                                                        \
    }

/* One kernel for a whole program: all its parts, for as many steps as it is told. It keeps what it
 * makes of the program (`state`, `bytes` of it) and its own copy of the parameters there. */
struct whole {
    const char *name, *why;
    const char *(*supports)(const struct program *program); /* NULL, or why not */
    uint64_t (*bytes)(const struct program *program);
    /* `calls` and `kernels` have one row per op of the program. */
    void (*prepare)(void *state, const struct program *program, const struct call *calls,
                    const struct kernel *const *kernels);
    /* `fresh`: another plan, or an upload, changed the parameters since its last run. Where the
     * observer wants ops, step by step with the clock read between its parts: an event for each op
     * whose work it can tell apart. */
    void (*run)(void *state, int64_t steps, bool fresh, const struct observer *observer);
};

enum { KERNEL_LISTS = 24 };

/* The kernels of a device. */
struct kernel_table {
    const struct kernel_list *lists[KERNEL_LISTS]; /* in the order in which they are searched */
    int list_count;
    enum precision precision;
    bool blocks;               /* matrices (params.h) of f32 programs are kept in blocks */
    const struct whole *whole; /* or NULL */
};

void kernels_add(struct kernel_table *table, const struct kernel_list *list);

extern const struct kernel_list ref_kernels;
/* Communication, which takes numbers in any form. */
extern const struct kernel_list exchange_kernels;

/* The row that runs an op; NULL, or one without `run`: there is no kernel for it. */
const struct kernel *kernel_of(const struct kernel_table *table, const struct program *program,
                               const struct op *op);

/* The row that would run it if the device computed in that precision. */
const struct kernel *kernel_in(const struct kernel_table *table, const struct program *program,
                               const struct op *op, enum precision precision);

/* The first row for ops of a kind on plain weights, whatever it takes; NULL: there is none. */
const struct kernel *kernel_first(const struct kernel_table *table, enum dtype real,
                                  enum op_kind kind);

#endif
