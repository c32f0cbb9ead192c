/* layout.c: liveness and placement.
 *
 * A tensor lives from the first op that touches it to the last, in list order; a view lives in the
 * tensor it views. What an elementwise op reads for the last time lies where its result does: the
 * two are one tensor here, which lives from the beginning of the first to the end of the last.
 * Activations are placed largest first, each at the lowest offset where it meets
 * no placed tensor that lives at the same time: simple, and within a few per cent of the largest
 * sum of live bytes on the networks we have. Plans run parts in list order within a slot, so that
 * order is the one that counts. */
#include "core/pass/layout.h"

#include "base/memory.h"

#include <stdlib.h>

struct life {
    int32_t tensor;
    int32_t first, last; /* op indices; last < 0: never used */
    uint64_t bytes, offset;
    int32_t head;  /* the tensor in whose bytes it lies; itself */
    bool replaced; /* another lies there after it */
};

static uint64_t padded(uint64_t bytes)
{
    return (bytes + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
}

static void find_lives(const struct program *program, struct life *lives)
{
    for (int32_t t = 0; t < program->tensor_count; t++)
        lives[t] = (struct life){.tensor = t,
                                 .first = program->op_count,
                                 .last = -1,
                                 .head = t,
                                 .bytes = padded(program->tensors[t].bytes)};
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            int32_t tensor = program->operands[op->first + i];
            if (tensor < 0)
                continue;
            struct life *life = &lives[program_root(program, tensor)];
            if (o < life->first)
                life->first = o;
            life->last = o;
        }
    }
}

/* May the op's result lie where this input does? Every element of it must be computed from the same
 * element there, and from no other. */
static bool may_replace(const struct op *op, int32_t input)
{
    switch (op->kind) {
    case OP_activate:
    case OP_bound:
    case OP_batch_norm_fixed: return input == 0;
    case OP_activate_grad:
    case OP_bound_grad:
    case OP_add: return input <= 1;
    case OP_conv_fused: return input == 7; /* add */
    default: return false;
    }
}

static int32_t times_read(const struct program *program, const struct op *op, int32_t root)
{
    int32_t times = 0;
    for (int32_t i = 0; i < op->inputs; i++) {
        int32_t tensor = op_input(program, op, i);
        times += tensor >= 0 && program_root(program, tensor) == root;
    }
    return times;
}

/* Puts the result of the op `o` into the bytes of an input that nobody needs any more. */
static void replace_input(const struct program *program, int32_t o, struct life *lives)
{
    const struct op *op = &program->ops[o];
    for (int32_t i = 0; i < op->inputs; i++) {
        if (!may_replace(op, i) || op_input(program, op, i) < 0)
            continue;
        int32_t from = program_root(program, op_input(program, op, i));
        int32_t to = program_root(program, op_output(program, op, 0));
        if (program->tensors[from].role != ROLE_ACTIVATION ||
            program->tensors[to].role != ROLE_ACTIVATION || lives[from].last != o ||
            lives[to].first != o || lives[from].bytes != lives[to].bytes ||
            times_read(program, op, from) != 1)
            continue;
        lives[from].replaced = true;
        lives[to].head = lives[from].head;
        lives[lives[to].head].last = lives[to].last;
        return;
    }
}

static int larger_first(const void *a, const void *b)
{
    const struct life *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->tensor < y->tensor ? -1 : 1;
}

/* The lowest offset for `life` among `placed`, all of which have offsets. */
static uint64_t lowest_gap(const struct life *life, const struct life *placed, int32_t count)
{
    uint64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t i = 0; i < count; i++) {
            const struct life *other = &placed[i];
            bool at_once = other->first <= life->last && life->first <= other->last;
            bool meets =
                offset < other->offset + other->bytes && other->offset < offset + life->bytes;
            if (at_once && meets) {
                offset = other->offset + other->bytes;
                moved = true;
            }
        }
    }
    return offset;
}

/* What was put where it lay, after it was used for the last time, is what is found there. */
static void mark_lost(struct program *program, const struct life *placed, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        for (int32_t k = 0; k < count; k++) {
            bool meets = placed[i].offset < placed[k].offset + placed[k].bytes &&
                         placed[k].offset < placed[i].offset + placed[i].bytes;
            if (meets && placed[k].first > placed[i].last)
                program->tensors[placed[i].tensor].lost = true;
        }
}

static bool is_placed(const struct program *program, const struct life *life)
{
    const struct tensor *tensor = &program->tensors[life->tensor];
    return tensor->role == ROLE_ACTIVATION && tensor->view_of < 0 && life->last >= 0;
}

static void place_activations(struct program *program, const struct life *lives,
                              struct life *placed)
{
    int32_t count = 0;
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (is_placed(program, &lives[t])) {
            program->activation_bytes_unshared += lives[t].bytes;
            if (lives[t].head == t)
                placed[count++] = lives[t];
        }
    qsort(placed, (size_t)count, sizeof *placed, larger_first);
    uint64_t peak = 0;
    for (int32_t i = 0; i < count; i++) {
        placed[i].offset = lowest_gap(&placed[i], placed, i);
        program->tensors[placed[i].tensor].offset = placed[i].offset;
        if (placed[i].offset + placed[i].bytes > peak)
            peak = placed[i].offset + placed[i].bytes;
    }
    program->role_bytes[ROLE_ACTIVATION] = peak;
    mark_lost(program, placed, count);
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (is_placed(program, &lives[t]) && lives[t].head != t) {
            program->tensors[t].offset = program->tensors[lives[t].head].offset;
            program->tensors[t].lost = program->tensors[lives[t].head].lost;
        }
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (lives[t].replaced)
            program->tensors[t].lost = true;
}

/* Gradients in the order of their entries: one range of the block is one range of the params. */
static void place_grads(struct program *program, const struct life *lives)
{
    int32_t entries = 0;
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (program->tensors[t].entry >= entries)
            entries = program->tensors[t].entry + 1;
    for (int32_t entry = 0; entry < entries; entry++)
        for (int32_t t = 0; t < program->tensor_count; t++) {
            struct tensor *tensor = &program->tensors[t];
            if (tensor->role != ROLE_GRAD || tensor->entry != entry || lives[t].last < 0)
                continue;
            tensor->offset = program->role_bytes[ROLE_GRAD];
            program->role_bytes[ROLE_GRAD] += lives[t].bytes;
        }
}

enum status layout_memory(struct program *program)
{
    size_t tensors = (size_t)program->tensor_count + 1;
    struct life *lives = mem_array(2 * tensors, sizeof *lives);
    NEED(lives);
    find_lives(program, lives);
    for (int32_t o = 0; o < program->op_count; o++)
        replace_input(program, o, lives);
    for (int role = 0; role < ROLE_COUNT; role++)
        program->role_bytes[role] = 0;
    program->activation_bytes_unshared = 0;
    for (int32_t t = 0; t < program->tensor_count; t++) {
        struct tensor *tensor = &program->tensors[t];
        enum role role = tensor->role;
        tensor->lost = tensor->view_of < 0 && lives[t].last < 0;
        if (tensor->view_of >= 0 || lives[t].last < 0)
            continue;
        if (role_is_kept(role)) {
            program->role_bytes[role] += lives[t].bytes;
        } else if (role == ROLE_INPUT || role == ROLE_OUTPUT || role == ROLE_SCRATCH) {
            tensor->offset = program->role_bytes[role];
            program->role_bytes[role] += lives[t].bytes;
        }
    }
    place_grads(program, lives);
    place_activations(program, lives, lives + tensors);
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (program->tensors[t].view_of >= 0)
            program->tensors[t].offset = program->tensors[program_root(program, t)].offset;
    mem_free(lives);
    return STATUS_OK;
}

enum status layout_grads(const struct program *program, const uint64_t *bytes, uint64_t *offsets,
                         uint64_t *block_bytes)
{
    size_t tensors = (size_t)program->tensor_count + 1;
    struct life *lives = mem_array(3 * tensors, sizeof *lives);
    int32_t count = 0, grad_count = 0;
    NEED(lives);
    struct life *placed = lives + tensors, *grads = placed + tensors;
    find_lives(program, lives);
    for (int32_t t = 0; t < program->tensor_count; t++) {
        const struct tensor *tensor = &program->tensors[t];
        lives[t].offset = tensor->offset;
        if (is_placed(program, &lives[t]))
            placed[count++] = lives[t];
        if (tensor->role != ROLE_GRAD || tensor->view_of >= 0 || lives[t].last < 0)
            continue;
        grads[grad_count] = lives[t];
        grads[grad_count].bytes = padded(bytes[tensor->entry]);
        if (bytes[tensor->entry] > tensor->bytes)
            grads[grad_count].first = 0;
        grads[grad_count++].last = program->op_count;
    }
    qsort(grads, (size_t)grad_count, sizeof *grads, larger_first);
    *block_bytes = program->role_bytes[ROLE_ACTIVATION];
    for (int32_t i = 0; i < grad_count; i++) {
        uint64_t offset = lowest_gap(&grads[i], placed, count);
        grads[i].offset = offsets[program->tensors[grads[i].tensor].entry] = offset;
        placed[count++] = grads[i];
        if (offset + grads[i].bytes > *block_bytes)
            *block_bytes = offset + grads[i].bytes;
    }
    mem_free(lives);
    return STATUS_OK;
}
