/* split_model.c: tries for each weight, in order, whether a group can begin with its result; places
 * (split_place.h) say whether it ends well. Two inputs of one op belong to one group: where the
 * second is still whole, what wrote it is tried as a further beginning, as query, key and value
 * are. */
#include "core/pass/split_model.h"

#include "core/pass/split_place.h"

#include <stdio.h>

enum { TRIES = 12 }; /* for one group: it gets another beginning, or other units */

/* The op that could begin with what `root` was made of, or -1. */
static int32_t find_beginning(const struct placing *placing, int32_t root)
{
    const struct program *program = placing->program;
    for (int32_t o = program->op_count - 1; o >= 0; o--) {
        const struct op *op = &program->ops[o];
        const int32_t y = op->outputs ? op_output(program, op, 0) : -1;
        if (op->part != PART_FORWARD || y < 0 || program_root(program, y) != root)
            continue;
        if (place_begin(placing, o)) /* of a gather the result is whole */
            return placing->begins[o] || op->kind == OP_gather ? -1 : o;
        const int32_t x = op->inputs ? op_input(program, op, 0) : -1;
        root = x < 0 ? -1 : program_root(program, x);
    }
    return -1;
}

static void begin(struct placing *placing, int32_t group, int32_t o)
{
    struct place_group *own = &placing->groups[group];
    const int64_t units = place_units(placing, o);
    int64_t a = own->units, b = units;
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    own->units = own->units ? a : units;
    placing->begins[o] = group + 1;
}

/* Does a group that begins with the op's result end well? */
static bool try_group(struct placing *placing, int32_t o)
{
    const int32_t group = placing->group_count++;
    placing->groups[group].units = 0;
    begin(placing, group, o);
    for (int tries = 0; tries < TRIES; tries++) {
        if (placing_run(placing))
            return true;
        const int32_t more = placing->wanted < 0 ? -1 : find_beginning(placing, placing->wanted);
        if (placing->wanted_units)
            placing->groups[group].units = placing->wanted_units;
        else if (more >= 0)
            begin(placing, group, more);
        else
            break;
    }
    placing->group_count--;
    for (int32_t i = 0; i < placing->program->op_count; i++)
        if (placing->begins[i] == group + 1)
            placing->begins[i] = 0;
    return false;
}

static enum status place_all(struct placing *placing)
{
    const struct program *program = placing->program;
    for (int32_t o = 0; o < program->op_count; o++)
        if (program->ops[o].kind == OP_clip)
            FAIL(STATUS_UNSUPPORTED,
                 "%s: found clipping by the norm of all gradients, which no rank has in model "
                 "parallelism: leave clip out, or take --parallelism data",
                 program->name);
    for (int32_t o = 0; o < program->op_count; o++)
        if (place_begin(placing, o) && !placing->begins[o])
            try_group(placing, o);
    if (!placing_run(placing))
        FAIL(STATUS_UNSUPPORTED, "%s: cannot be shared out", program->name);
    return STATUS_OK;
}

/* ---- a rank's program ---- */

struct model_writer {
    struct rank_writer rank;
    const struct placing *placing;
    int32_t number;
};

static bool slice(const void *context, int32_t tensor, struct tensor_slice *out)
{
    const struct model_writer *writer = context;
    const struct shape *shape = &writer->placing->program->tensors[tensor].shape;
    const struct place *place = place_of(writer->placing, tensor, &out->axis);
    if (out->axis < 0)
        return false;
    place_range(writer->placing, place, shape, out->axis, writer->number, &out->from, &out->count);
    return true;
}

/* Adds up what the op reads and ranks have parts of. */
static void write_reductions(struct model_writer *writer, int32_t o)
{
    const struct program *program = writer->placing->program;
    const struct op *op = &program->ops[o];
    struct draft *draft = &writer->rank.draft;
    for (int32_t i = 0; i < op->inputs; i++) {
        const int32_t input = op_input(program, op, i);
        const int32_t root = input < 0 ? -1 : program_root(program, input);
        bool again = root < 0 || writer->placing->reduced[root] != o + 1;
        for (int32_t k = 0; k < i && !again; k++)
            again = op_input(program, op, k) >= 0 &&
                    program_root(program, op_input(program, op, k)) == root;
        if (again)
            continue;
        const int32_t x = rank_tensor(&writer->rank, root);
        draft_part(draft, op->part);
        draft->layer = op->layer;
        struct op *reduce = draft_op(draft, OP_all_reduce, IN(x), OUT(x));
        reduce->made_by = "model parallelism";
        reduce->attr.all_reduce.samples = reduce->attr.all_reduce.of = 1;
        draft_op(draft, OP_wait, IN(x), OUT(x))->made_by = "model parallelism";
    }
}

/* Of a table of which the rank has some rows: which. */
static void name_rows(const struct model_writer *writer, const struct op *from, struct op *op)
{
    const struct program *program = writer->placing->program;
    const int32_t table =
        op_operand(program, from, from->kind == OP_gather ? AT_gather_table : AT_scatter_dtable);
    struct tensor_slice rows;
    if (!slice(writer, table, &rows) || rows.axis != 1) /* [n, rows, features] */
        return;
    if (op->kind == OP_scatter) {
        op->attr.scatter.from = (int32_t)rows.from;
        return;
    }
    op->attr.gather.from = (int32_t)rows.from;
    op->attr.gather.rows = (int32_t)program->tensors[table].shape.dim[1];
}

static enum status write_rank(const struct placing *placing, const struct params *params,
                              int32_t number, struct split_ranks *out)
{
    const struct program *program = placing->program;
    struct model_writer writer = {.placing = placing, .number = number};
    char name[300];
    snprintf(name, sizeof name, "%s: rank %d of %d", program->name, number + 1, placing->ranks);
    TRY(rank_writer_begin(&writer.rank, out, number, program, params, name));
    writer.rank.slice = slice;
    writer.rank.context = &writer;
    for (int32_t o = 0; o < program->op_count; o++) {
        write_reductions(&writer, o);
        struct op *op = rank_op(&writer.rank, &program->ops[o]);
        if (op->kind == OP_gather || op->kind == OP_scatter)
            name_rows(&writer, &program->ops[o], op);
        /* A bias is added once. */
        for (int32_t i = 2; placing->summed[o] && number && i < op->inputs; i++)
            if (writer.rank.draft.status == STATUS_OK)
                writer.rank.draft.program->operands[op->first + i] = -1;
    }
    return rank_writer_finish(&writer.rank);
}

static enum status write_ranks(struct placing *placing, const struct params *params,
                               const struct model_options *options, struct split_ranks *out)
{
    TRY(place_all(placing));
    TRY(split_ranks_begin(out, options->ranks, params, options->own));
    for (int32_t rank = 0; rank < options->ranks; rank++)
        TRY(write_rank(placing, params, rank, out));
    return STATUS_OK;
}

enum status split_model(const struct program *program, const struct params *params,
                        const struct model_options *options, struct split_ranks *out)
{
    struct placing placing;
    *out = (struct split_ranks){0};
    enum status status = placing_begin(&placing, program, params->count, options->ranks);
    if (status == STATUS_OK)
        status = write_ranks(&placing, params, options, out);
    if (status != STATUS_OK)
        split_ranks_free(out);
    placing_free(&placing);
    return status;
}
