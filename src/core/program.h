/* program.h: the one idea. A network compiled into an immutable, flat, topologically sorted list of
 * ops over tensors with static shapes. Everything else consumes it: explain prints it, a backend
 * prepares it, passes turn it into another one, estimate counts its FLOP and bytes.
 *
 * A program is written as a draft: tensors and ops are appended; the first mistake is remembered
 * and program_finish reports it, so that code which emits ops needs no checks. program_finish
 * checks every op against its row in ops.def, lays out memory (pass/layout.c) and hashes.
 *
 * Parameters live outside (params.h): a program's kept tensors name an entry there, so training at
 * batch 32, inference at batch 1 and a GAN's two sides are programs over one set of parameters. */
#ifndef PRONY_CORE_PROGRAM_H
#define PRONY_CORE_PROGRAM_H

#include "base/arena.h"
#include "base/status.h"
#include "core/operands.h" /* made from ops.def by cmake/operands.cmake */
#include "core/tensor.h"

#include <stdbool.h>
#include <stdint.h>

struct params;

enum op_kind {
#define OP(kind, inputs, outputs, flop, attributes) OP_##kind,
#include "core/ops.def"
#undef OP
    OP_COUNT
};

/* attr.dense.activation and so on, from ops.def. All bytes not set are 0, also padding: the hash
 * covers them. */
union attributes {
#define INT(name) int32_t name;
#define REAL(name) float name;
#define OP(kind, inputs, outputs, flop, attributes)                                                \
    struct {                                                                                       \
        int32_t none;                                                                              \
        attributes                                                                                 \
    } kind;
#include "core/ops.def"
#undef OP
#undef INT
#undef REAL
};

enum activation {
    ACTIVATION_NONE,
    ACTIVATION_SIGMOID,
    ACTIVATION_TANH,
    ACTIVATION_RELU,
    ACTIVATION_GELU, /* x·Φ(x), exact */
    ACTIVATION_SOFTPLUS,
    ACTIVATION_LEAKY_RELU,
    ACTIVATION_ELU,
    ACTIVATION_ERF, /* from here on: what others' networks are made of, between no layers of an mlp
                     */
    ACTIVATION_SQRT,
    ACTIVATION_RECIPROCAL,
    ACTIVATION_EXP,
    ACTIVATION_LOG,
    ACTIVATION_COUNT
};

const char *activation_name(enum activation activation);
bool activation_parse(const char *name, enum activation *out);
/* leaky_relu and elu */
bool activation_has_alpha(enum activation activation);
/* These, erf and those behind it: only `activate` computes them, no fused op. */
bool activation_is_alone(enum activation activation);
/* Is the derivative computed from the input? All others compute it from the output. */
bool activation_saves_input(enum activation activation);

enum reduction { REDUCTION_SUM, REDUCTION_MEAN, REDUCTION_MAX };

enum distribution { DISTRIBUTION_UNIFORM, DISTRIBUTION_NORMAL };

enum part { PART_PREPARE, PART_FORWARD, PART_BACKWARD, PART_UPDATE, PART_COUNT };

#define PART_BIT(part) (1u << (part))
#define PARTS_ALL ((1u << PART_COUNT) - 1)

const char *part_name(enum part part);

struct tensor {
    const char *name;
    enum dtype dtype;
    enum role role;
    struct shape shape;
    int32_t entry;   /* kept and grad tensors: their place in params; else -1 */
    bool matrix;     /* as its entry in params says; a gradient as its parameter */
    int32_t view_of; /* shares the bytes of this tensor (another shape); else -1 */
    uint64_t bytes;
    uint64_t offset; /* in its role's block; of kept tensors, in the instance's block */
    bool lost;       /* at the end of a step its bytes are another's, or it never had any */
};

struct op {
    enum op_kind kind;
    enum part part;
    int32_t id;          /* its place in the draft it was first written in; survives passes */
    int32_t inputs;      /* how many operands are read … */
    int32_t outputs;     /* … and how many, after those, are written */
    int32_t first;       /* operands are program->operands[first …]; -1 = absent */
    const char *layer;   /* the layer it came from, or "" */
    const char *made_by; /* the fusion that made it, or "" */
    union attributes attr;
};

struct dense_stack;

struct program {
    struct arena arena; /* owns everything below */
    const char *name;
    int32_t batch;
    int32_t portions; /* a step runs the ops so often, each time for the next `batch` samples */
    enum dtype real;
    int32_t tensor_count, op_count, operand_count;
    struct tensor *tensors;
    struct op *ops;
    int32_t *operands;
    struct {
        int32_t from, to;
    } parts[PART_COUNT];                /* op index ranges; an empty part has from == to */
    uint64_t role_bytes[ROLE_COUNT];    /* what a plan allocates (kept roles: what it refers to) */
    uint64_t activation_bytes_unshared; /* without reuse: what liveness saves */
    int32_t entries;                    /* params entries it was built against */
    bool updates;                       /* some op writes a kept tensor */
    const struct dense_stack
        *stack;           /* set by fuse: the dense layers, where it is a stack of them and
                       nothing else (pass/stack_find.h); NULL: it is not, or was not fused */
    bool whole;           /* set by fuse: one kernel runs all of it, many steps */
    const char *op_by_op; /* or why none does, static; NULL: nobody was asked */
    uint64_t hash;        /* names the computation: ops, shapes, attributes */
};

/* The tensor index of an operand of an op, -1 when absent. `output` counts from 0. */
static inline int32_t op_input(const struct program *program, const struct op *op, int32_t input)
{
    return program->operands[op->first + input];
}

/* Either, by its place in ops.def: op_operand(program, op, AT_dense_w). */
static inline int32_t op_operand(const struct program *program, const struct op *op, int32_t place)
{
    return program->operands[op->first + place];
}

static inline int32_t op_output(const struct program *program, const struct op *op, int32_t output)
{
    return program->operands[op->first + op->inputs + output];
}

/* The tensor whose bytes a view shares; a tensor that is no view is its own root. */
static inline int32_t program_root(const struct program *program, int32_t tensor)
{
    while (program->tensors[tensor].view_of >= 0)
        tensor = program->tensors[tensor].view_of;
    return tensor;
}

/* A program being written. Zero it, then program_begin. */
struct draft {
    struct program *program;
    struct params *params;
    int32_t tensor_room, op_room, operand_room;
    enum part part;
    const char *layer;
    int32_t next_id;
    struct op scrap;    /* what draft_op hands out once the draft has failed */
    enum status status; /* the first failure; its message is in `message` */
    char message[1000];
    char failed_in[160]; /* the layer whose op or emitter it was, or "" */
};

/* `params` gets entries for what the draft declares; it must outlive the draft, not the program. */
enum status program_begin(struct draft *draft, struct params *params, const char *name,
                          int32_t batch, enum dtype real);

/* Tensors. Each returns an index, or -1 once the draft has failed. */
int32_t draft_tensor(struct draft *draft, enum role role, enum dtype dtype, const char *name,
                     struct shape shape);
int32_t draft_real(struct draft *draft, const char *name, struct shape shape); /* activation */
int32_t draft_view(struct draft *draft, int32_t tensor, struct shape shape);
int32_t draft_kept(struct draft *draft, int32_t entry); /* a params entry; one tensor per entry */
int32_t draft_grad(struct draft *draft, int32_t kept);  /* the gradient of a param tensor */
const struct shape *draft_shape(const struct draft *draft, int32_t tensor); /* never NULL */

/* Ops are appended to the current part (prepare at first); program_finish puts the parts in order.
 * Returns the new op so that attributes
 * can be set (valid until the next append; a dummy once the draft has failed).
 *   draft_op(d, OP_dense, IN(x, w, b), OUT(y))->attr.dense.activation = ACTIVATION_RELU; */
#define OPERANDS(...)                                                                              \
    (const int32_t[]){__VA_ARGS__}, (int32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
#define IN(...) OPERANDS(__VA_ARGS__)
#define OUT(...) OPERANDS(__VA_ARGS__)
#define NOTHING NULL, 0
struct op *draft_op(struct draft *draft, enum op_kind kind, const int32_t *inputs,
                    int32_t input_count, const int32_t *outputs, int32_t output_count);
void draft_part(struct draft *draft, enum part part);
void draft_fail(struct draft *draft, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Checks, lays out, hashes. The draft is spent; on failure everything but its message and
 * failed_in is freed. */
enum status program_finish(struct draft *draft, struct program **out);
void draft_drop(struct draft *draft); /* gives up; fine after finish */
void program_free(struct program *program);

/* For passes: a draft with the tensors of `from` (same indices) and no ops; and an op of `from`
 * appended as it was, its id kept. Tensors that no op uses any more take no memory. */
enum status program_recast(const struct program *from, struct draft *draft);
struct op *draft_copy(struct draft *draft, const struct program *from, const struct op *op);

/* What an op does in a step. Bytes: each operand read or written once. */
uint64_t op_flop(const struct program *program, const struct op *op);
uint64_t op_bytes(const struct program *program, const struct op *op);
const char *op_name(enum op_kind kind);

/* An operand's name as ops.def has it ("dw"), for messages and explain. `operand` counts over
 * inputs and outputs. */
const char *op_operand_name(enum op_kind kind, int32_t operand, int32_t inputs);

/* Calls visit(name, text) for each attribute of the op, its value as text. */
void op_attributes(const struct op *op, void (*visit)(void *, const char *, const char *),
                   void *context);

/* May a backend hand out this tensor after a step? Not one whose memory was reused, nor what a
 * kernel for the whole program keeps to itself. */
enum status program_check_fetch(const struct program *program, int32_t tensor);

/* The tensor with this role and name, or -1. */
int32_t program_find(const struct program *program, enum role role, const char *name);

#endif
