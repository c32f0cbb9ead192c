/* split_ranks.c: see split_ranks.h. Tensors come into a rank's program when an op there first names
 * them, so that a rank knows nothing of what it does not touch. */
#include "core/pass/split_ranks.h"

#include "base/memory.h"

#include <string.h>

void split_ranks_free(struct split_ranks *split)
{
    for (int32_t r = 0; r < split->count; r++) {
        program_free(split->ranks[r].program);
        params_free(&split->ranks[r].params);
    }
    arena_free(&split->arena);
    *split = (struct split_ranks){0};
}

enum status split_ranks_begin(struct split_ranks *split, int32_t count, const struct params *whole,
                              int32_t own)
{
    *split = (struct split_ranks){0};
    struct split_rank *ranks = arena_array(&split->arena, (size_t)count, sizeof *ranks);
    NEED(ranks);
    split->ranks = ranks;
    for (; split->count < count; split->count++) {
        struct split_rank *rank = &ranks[split->count];
        params_init(&rank->params, whole->real);
        rank->params.bare = split->count != own;
        rank->params.control = whole->control;
        rank->slices = arena_array(&split->arena, (size_t)whole->count + 1, sizeof *rank->slices);
        NEED(rank->slices);
    }
    return STATUS_OK;
}

enum status rank_writer_begin(struct rank_writer *writer, struct split_ranks *split, int32_t rank,
                              const struct program *from, const struct params *whole,
                              const char *name)
{
    *writer = (struct rank_writer){.from = from, .whole = whole, .rank = &split->ranks[rank]};
    TRY(program_begin(&writer->draft, &writer->rank->params, name, from->batch, from->real));
    for (int32_t o = 0; o < from->op_count; o++) /* ops that are not of `from` have ids behind it */
        if (from->ops[o].id >= writer->draft.next_id)
            writer->draft.next_id = from->ops[o].id + 1;
    writer->tensors = arena_array(&writer->draft.program->arena, (size_t)from->tensor_count + 1,
                                  sizeof *writer->tensors);
    if (!writer->tensors)
        draft_fail(&writer->draft, STATUS_MEMORY, "out of memory");
    return STATUS_OK;
}

/* The rank's entry for the network's, in this shape. */
static int32_t declare(struct rank_writer *writer, int32_t index, const struct shape *shape,
                       const struct tensor_slice *slice)
{
    const struct entry *entry = &writer->whole->entries[index];
    struct params *params = &writer->rank->params;
    int32_t before = params->count, made;
    enum status status =
        params_declare(params, entry->name, entry->role, entry->dtype, *shape, entry->init, &made);
    if (status != STATUS_OK) {
        draft_fail(&writer->draft, status, "%s", status_message());
        return -1;
    }
    if (made == before) {
        params->entries[made].fixed = entry->fixed;
        params->entries[made].given = entry->given;
        if (entry->matrix)
            params_mark_matrix(params, made);
        writer->rank->slices[made] = (struct rank_slice){index, slice->axis, slice->from};
    }
    return made;
}

static int32_t make_tensor(struct rank_writer *writer, int32_t index)
{
    struct draft *draft = &writer->draft;
    const struct tensor *tensor = &writer->from->tensors[index];
    struct shape shape = tensor->shape;
    struct tensor_slice slice = {.axis = -1};
    if (writer->slice && writer->slice(writer->context, index, &slice))
        shape.dim[slice.axis] = slice.count;
    if (tensor->view_of >= 0) {
        int32_t root = rank_tensor(writer, tensor->view_of);
        int32_t view = draft_view(draft, root, shape);
        if (view >= 0)
            draft->program->tensors[view].name = arena_text(&draft->program->arena, tensor->name);
        return view;
    }
    if (tensor->entry < 0)
        return draft_tensor(draft, tensor->role, tensor->dtype, tensor->name, shape);
    int32_t entry = declare(writer, tensor->entry, &shape, &slice);
    int32_t kept = entry < 0 ? -1 : draft_kept(draft, entry);
    return tensor->role == ROLE_GRAD ? draft_grad(draft, kept) : kept;
}

int32_t rank_tensor(struct rank_writer *writer, int32_t tensor)
{
    if (tensor < 0 || writer->draft.status != STATUS_OK)
        return -1;
    if (!writer->tensors[tensor])
        writer->tensors[tensor] = make_tensor(writer, tensor) + 1;
    return writer->tensors[tensor] - 1;
}

struct op *rank_op(struct rank_writer *writer, const struct op *op)
{
    struct draft *draft = &writer->draft;
    int32_t next_id = draft->next_id;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++)
        rank_tensor(writer, writer->from->operands[op->first + i]);
    struct op *copy = draft_copy(draft, writer->from, op);
    if (draft->status != STATUS_OK)
        return copy;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++)
        draft->program->operands[copy->first + i] =
            rank_tensor(writer, writer->from->operands[op->first + i]);
    draft->next_id = next_id;
    return copy;
}

enum status rank_writer_finish(struct rank_writer *writer)
{
    return program_finish(&writer->draft, &writer->rank->program);
}

/* Copies a slice between an entry of the rank and the network's: for each place before the axis,
 * the bytes from the slice's first place on. */
static void copy_slice(const struct rank_slice *slice, const struct entry *part, char *part_data,
                       const struct entry *whole, char *whole_data, bool back)
{
    uint64_t run = part->bytes, stride = whole->bytes, skip = 0;
    if (slice->axis >= 0) {
        uint64_t inner = dtype_bytes(part->dtype);
        for (int32_t d = slice->axis + 1; d < part->shape.rank; d++)
            inner *= (uint64_t)part->shape.dim[d];
        run = inner * (uint64_t)part->shape.dim[slice->axis];
        stride = inner * (uint64_t)whole->shape.dim[slice->axis];
        skip = inner * (uint64_t)slice->from;
    }
    for (uint64_t at = 0, from = skip; at < part->bytes; at += run, from += stride)
        memcpy(back ? whole_data + from : part_data + at, back ? part_data + at : whole_data + from,
               (size_t)run);
}

void split_rank_take(struct split_rank *rank, const struct params *whole)
{
    for (int32_t e = 0; e < rank->params.count; e++) {
        const struct rank_slice *slice = &rank->slices[e];
        copy_slice(slice, &rank->params.entries[e], params_data(&rank->params, e),
                   &whole->entries[slice->entry], params_data(whole, slice->entry), false);
    }
    rank->params.filled = rank->params.count;
    rank->params.control = whole->control;
}

void split_rank_give_entry(const struct split_rank *rank, int32_t entry, void *values,
                           struct params *whole)
{
    const struct rank_slice *slice = &rank->slices[entry];
    copy_slice(slice, &rank->params.entries[entry], values, &whole->entries[slice->entry],
               params_data(whole, slice->entry), true);
}

void split_rank_give(const struct split_rank *rank, struct params *whole)
{
    for (int32_t e = 0; e < rank->params.count; e++)
        split_rank_give_entry(rank, e, params_data(&rank->params, e), whole);
    whole->control = rank->params.control;
}

/* One entry as the network would have it, then the slice of it. */
static enum status fill_entry(struct split_rank *rank, int32_t index, const struct params *whole,
                              uint64_t seed)
{
    struct params alone;
    int32_t made;
    const struct rank_slice *slice = &rank->slices[index];
    const struct entry *entry = &whole->entries[slice->entry];
    params_init(&alone, whole->real);
    enum status status = params_declare(&alone, entry->name, entry->role, entry->dtype,
                                        entry->shape, entry->init, &made);
    if (status == STATUS_OK) {
        alone.entries[made].given = entry->given;
        status = params_fill(&alone, seed);
    }
    if (status == STATUS_OK)
        copy_slice(slice, &rank->params.entries[index], params_data(&rank->params, index), entry,
                   params_data(&alone, made), false);
    params_free(&alone);
    return status;
}

enum status split_rank_fill(struct split_rank *rank, const struct params *whole, uint64_t seed)
{
    for (int32_t e = 0; e < rank->params.count; e++)
        TRY(fill_entry(rank, e, whole, seed));
    rank->params.filled = rank->params.count;
    rank->params.control = whole->control;
    rank->params.control.step = 0;
    rank->params.control.seed = seed;
    return STATUS_OK;
}

static bool has_entry(const struct split_rank *rank, int32_t entry)
{
    for (int32_t e = 0; e < rank->params.count; e++)
        if (rank->slices[e].entry == entry)
            return true;
    return false;
}

bool split_ranks_cover(const struct split_ranks *split, const struct params *whole)
{
    for (int32_t e = 0; e < whole->count; e++) {
        bool found = false;
        for (int32_t r = 0; r < split->count && !found; r++)
            found = has_entry(&split->ranks[r], e);
        if (!found)
            return false;
    }
    return true;
}

uint64_t split_rank_sends(const struct split_rank *rank, unsigned parts)
{
    const struct program *program = rank->program;
    uint64_t bytes = 0;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if (op->kind == OP_send && (parts & PART_BIT(op->part)))
            bytes += program->tensors[op_operand(program, op, AT_send_x)].bytes;
    }
    return bytes;
}
