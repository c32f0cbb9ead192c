/* layout.c: liveness and placement.
 *
 * A tensor lives from the first op that touches it to the last, in list order; a view lives in the
 * tensor it views. Activations are placed largest first, each at the lowest offset where it meets
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

static void place_activations(struct program *program, struct life *lives)
{
    int32_t count = 0;
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (program->tensors[t].role == ROLE_ACTIVATION && program->tensors[t].view_of < 0 &&
            lives[t].last >= 0)
            lives[count++] = lives[t];
    qsort(lives, (size_t)count, sizeof *lives, larger_first);
    uint64_t peak = 0;
    for (int32_t i = 0; i < count; i++) {
        lives[i].offset = lowest_gap(&lives[i], lives, i);
        program->tensors[lives[i].tensor].offset = lives[i].offset;
        program->activation_bytes_unshared += lives[i].bytes;
        if (lives[i].offset + lives[i].bytes > peak)
            peak = lives[i].offset + lives[i].bytes;
    }
    program->role_bytes[ROLE_ACTIVATION] = peak;
    mark_lost(program, lives, count);
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
    struct life *lives = mem_array((size_t)program->tensor_count + 1, sizeof *lives);
    NEED(lives);
    find_lives(program, lives);
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
    place_activations(program, lives);
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (program->tensors[t].view_of >= 0)
            program->tensors[t].offset = program->tensors[program_root(program, t)].offset;
    mem_free(lives);
    return STATUS_OK;
}
