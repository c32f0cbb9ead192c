/* recompute.c: finds the cuts by dynamic programming: of all ways in which no segment drops more
 * than so many bytes, the one that keeps least between segments. It does so for segments of several
 * sizes, writes each program, and compares what the layout made of them: for a chain of n equal
 * layers about √n segments win. The last segment drops nothing: its backward ops follow at once.
 *
 * An op can run again when all that it writes are activations nobody else writes, and all that it
 * reads is still the same. Random numbers count by the step and the row, so dropout is such an op.
 * Batch-norm is one too, where its running statistics are replaced by others that nobody reads. */
#include "core/pass/recompute.h"

#include "base/memory.h"

static const char made_by[] = "recompute";

/* About into how many pieces the bytes that could be dropped are cut. */
static const int32_t pieces[] = {2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 90, 128};
enum { PIECES = sizeof pieces / sizeof *pieces };

struct recomputing {
    const struct program *program;
    struct arena arena;
    int32_t from, to; /* the forward ops */
    /* Per tensor that is no view. */
    int32_t *writer;  /* the last op before the update that writes it, -1: none */
    int32_t *writers; /* operands that do */
    int32_t *reader;  /* the last forward op that reads it, -1: none */
    bool *wanted;     /* by a backward op or an update */
    bool *may_drop;   /* it can be computed again */
    /* Per forward op, counted from `from`. */
    bool *may_repeat;
    uint64_t *inside;   /* bytes that the ops before it write and the backward pass wants */
    uint64_t *crossing; /* bytes that ops before it write and others from it on read */
    uint64_t *cost;     /* the least bytes that are kept where a segment begins here … */
    int32_t *before;    /* … and where the segment before it then begins */
    int32_t *segment;   /* in the cut that is tried */
};

/* A program that is written by one cut. */
struct writing {
    struct arena arena;
    const struct recomputing *found;
    struct draft draft;
    bool *dropped; /* per tensor */
    bool *again;   /* per forward op: it runs twice */
    int32_t *copy; /* per tensor, views too: what the second run writes; -1: it is the first's */
    bool *done;    /* per segment: its ops were written again */
};

static bool speaks(enum op_kind kind)
{
    switch (kind) {
    case OP_rows:
    case OP_load:
    case OP_store:
    case OP_send:
    case OP_receive:
    case OP_receive_add:
    case OP_all_reduce:
    case OP_wait: return true;
    default: return false;
    }
}

/* Batch-norm moves its running statistics, which nothing else of its results depends on. */
static bool is_moved(const struct op *op, int32_t operand)
{
    return op->kind == OP_batch_norm &&
           (operand == AT_batch_norm_mean || operand == AT_batch_norm_variance ||
            operand == AT_batch_norm_mean_out || operand == AT_batch_norm_variance_out);
}

static int32_t root_at(const struct program *program, const struct op *op, int32_t operand)
{
    const int32_t tensor = program->operands[op->first + operand];
    return tensor < 0 ? -1 : program_root(program, tensor);
}

static bool may_repeat(const struct recomputing *found, int32_t o)
{
    const struct program *program = found->program;
    const struct op *op = &program->ops[o];
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        const int32_t root = root_at(program, op, i);
        if (root < 0 || is_moved(op, i))
            continue;
        if (i < op->inputs && found->writer[root] >= o)
            return false;
        if (i >= op->inputs &&
            (program->tensors[root].role != ROLE_ACTIVATION || found->writers[root] != 1))
            return false;
    }
    return op->outputs > 0 && !speaks(op->kind);
}

static void note_uses(struct recomputing *found)
{
    const struct program *program = found->program;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            const int32_t root = root_at(program, op, i);
            if (root < 0)
                continue;
            if (i >= op->inputs) {
                found->writers[root]++;
                if (op->part != PART_UPDATE)
                    found->writer[root] = o;
            } else if (o >= found->to) {
                found->wanted[root] = true;
            } else if (o >= found->from) {
                found->reader[root] = o;
            }
        }
    }
}

/* Sums of bytes at each place where a segment can begin. */
static void note_bytes(struct recomputing *found)
{
    const struct program *program = found->program;
    for (int32_t o = found->from; o < found->to; o++) {
        const struct op *op = &program->ops[o];
        found->may_repeat[o - found->from] = may_repeat(found, o);
        found->inside[o + 1 - found->from] = found->inside[o - found->from];
        for (int32_t i = op->inputs; i < op->inputs + op->outputs; i++) {
            const int32_t root = root_at(program, op, i);
            if (root < 0 || program->tensors[root].role != ROLE_ACTIVATION)
                continue;
            const uint64_t bytes = program->tensors[root].bytes;
            found->may_drop[root] = found->may_repeat[o - found->from];
            if (found->may_drop[root] && found->wanted[root])
                found->inside[o + 1 - found->from] += bytes;
            for (int32_t k = o + 1; found->writer[root] == o && k <= found->reader[root]; k++)
                found->crossing[k - found->from] += bytes;
        }
    }
}

static enum status survey(struct recomputing *found)
{
    const struct program *program = found->program;
    struct arena *arena = &found->arena;
    const size_t tensors = (size_t)program->tensor_count + 1;
    found->from = program->parts[PART_FORWARD].from;
    found->to = program->parts[PART_FORWARD].to;
    const size_t ops = (size_t)(found->to - found->from) + 2;
    NEED(found->writer = arena_array(arena, tensors, sizeof *found->writer));
    NEED(found->writers = arena_array(arena, tensors, sizeof *found->writers));
    NEED(found->reader = arena_array(arena, tensors, sizeof *found->reader));
    NEED(found->wanted = arena_array(arena, tensors, sizeof *found->wanted));
    NEED(found->may_drop = arena_array(arena, tensors, sizeof *found->may_drop));
    NEED(found->may_repeat = arena_array(arena, ops, sizeof *found->may_repeat));
    NEED(found->inside = arena_array(arena, ops, sizeof *found->inside));
    NEED(found->crossing = arena_array(arena, ops, sizeof *found->crossing));
    NEED(found->cost = arena_array(arena, ops, sizeof *found->cost));
    NEED(found->before = arena_array(arena, ops, sizeof *found->before));
    NEED(found->segment = arena_array(arena, ops, sizeof *found->segment));
    for (int32_t t = 0; t < program->tensor_count; t++)
        found->writer[t] = found->reader[t] = -1;
    note_uses(found);
    note_bytes(found);
    return STATUS_OK;
}

/* Cuts the forward ops so that no segment of more than one op drops more than `most` bytes, and
 * numbers the segments; how many there are. */
static int32_t cut(struct recomputing *found, uint64_t most)
{
    const int32_t ops = found->to - found->from;
    for (int32_t at = 1; at <= ops; at++) {
        found->cost[at] = UINT64_MAX;
        for (int32_t begin = at - 1; begin >= 0; begin--) {
            if (begin < at - 1 && found->inside[at] - found->inside[begin] > most)
                break;
            if (found->cost[begin] <= found->cost[at]) {
                found->cost[at] = found->cost[begin];
                found->before[at] = begin;
            }
        }
        found->cost[at] += at < ops ? found->crossing[at] : 0;
    }
    int32_t segments = 0;
    for (int32_t at = ops; at > 0; at = found->before[at], segments++)
        for (int32_t o = found->before[at]; o < at; o++)
            found->segment[o] = -segments;
    for (int32_t o = 0; o < ops; o++)
        found->segment[o] += segments - 1;
    return segments;
}

/* Of what one op writes either all is dropped or nothing: what another segment reads is kept. */
static bool keeps(const struct writing *writing, const struct op *op, int32_t o, bool *wanted)
{
    const struct recomputing *found = writing->found;
    const int32_t segment = found->segment[o - found->from];
    bool kept = !found->may_repeat[o - found->from] ||
                segment == found->segment[found->to - 1 - found->from];
    *wanted = false;
    for (int32_t i = op->inputs; i < op->inputs + op->outputs; i++) {
        const int32_t root = root_at(found->program, op, i);
        if (root < 0 || is_moved(op, i))
            continue;
        const int32_t reader = found->reader[root];
        kept |= reader >= 0 && found->segment[reader - found->from] != segment;
        *wanted |= writing->dropped[root];
    }
    return kept;
}

/* Says what is dropped and which ops run again: from the last to the first, as each wants what it
 * reads. An input that is not dropped itself was kept, and is there. */
static void choose(struct writing *writing)
{
    const struct recomputing *found = writing->found;
    const struct program *program = found->program;
    for (int32_t t = 0; t < program->tensor_count; t++)
        writing->dropped[t] = found->may_drop[t] && found->wanted[t];
    for (int32_t o = found->to - 1; o >= found->from; o--) {
        const struct op *op = &program->ops[o];
        bool wanted;
        const bool kept = keeps(writing, op, o, &wanted);
        writing->again[o - found->from] = wanted && !kept;
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            const int32_t root = root_at(program, op, i);
            if (root < 0 || is_moved(op, i))
                continue;
            if (i >= op->inputs)
                writing->dropped[root] = wanted && !kept;
            else if (wanted && !kept)
                writing->dropped[root] = found->may_drop[root];
        }
    }
}

/* The same tensor again, or a view of what its root became. */
static int32_t copy_of(struct writing *writing, int32_t tensor)
{
    const struct program *program = writing->found->program;
    if (tensor < 0 || !writing->dropped[program_root(program, tensor)])
        return tensor;
    if (writing->copy[tensor] >= 0)
        return writing->copy[tensor];
    const struct tensor *of = &program->tensors[tensor];
    writing->copy[tensor] =
        of->view_of < 0 ? draft_tensor(&writing->draft, of->role, of->dtype, of->name, of->shape)
                        : draft_view(&writing->draft, copy_of(writing, of->view_of), of->shape);
    return writing->copy[tensor];
}

/* A place for statistics that nobody reads. */
static int32_t write_unread(struct writing *writing, int32_t statistic)
{
    struct draft *draft = &writing->draft;
    const int32_t unread = draft_real(draft, "unread", *draft_shape(draft, statistic));
    draft_op(draft, OP_fill, NOTHING, OUT(unread))->made_by = made_by;
    return unread;
}

/* The op once more, in the part that is being written. */
static void write_again(struct writing *writing, const struct op *op, enum part part)
{
    const struct program *program = writing->found->program;
    struct draft *draft = &writing->draft;
    int32_t unread[2] = {-1, -1};
    draft->layer = op->layer;
    draft_part(draft, part);
    if (op->kind == OP_batch_norm) {
        unread[0] = write_unread(writing, op_operand(program, op, AT_batch_norm_mean));
        unread[1] = write_unread(writing, op_operand(program, op, AT_batch_norm_variance));
    }
    struct op *copy = draft_copy(draft, program, op);
    for (int32_t i = 0; draft->status == STATUS_OK && i < op->inputs + op->outputs; i++) {
        const bool variance = i == AT_batch_norm_variance || i == AT_batch_norm_variance_out;
        draft->program->operands[copy->first + i] =
            is_moved(op, i) ? unread[variance] : copy_of(writing, op_operand(program, op, i));
    }
    copy->part = part;
    copy->made_by = made_by;
}

/* The ops that run again of the segment in which the tensor was written, unless they have. */
static void write_segment(struct writing *writing, int32_t root, enum part part)
{
    const struct recomputing *found = writing->found;
    const int32_t segment = found->segment[found->writer[root] - found->from];
    if (writing->done[segment])
        return;
    writing->done[segment] = true;
    for (int32_t o = found->from; o < found->to; o++)
        if (writing->again[o - found->from] && found->segment[o - found->from] == segment)
            write_again(writing, &found->program->ops[o], part);
}

/* A backward op, or one of the update, which reads what was computed again. */
static void write_reader(struct writing *writing, const struct op *op)
{
    const struct program *program = writing->found->program;
    struct draft *draft = &writing->draft;
    for (int32_t i = 0; i < op->inputs; i++) {
        const int32_t root = root_at(program, op, i);
        if (root >= 0 && writing->dropped[root])
            write_segment(writing, root, op->part);
    }
    struct op *copy = draft_copy(draft, program, op);
    for (int32_t i = 0; draft->status == STATUS_OK && i < op->inputs; i++)
        draft->program->operands[copy->first + i] = copy_of(writing, op_operand(program, op, i));
}

static enum status start_writing(struct writing *writing, int32_t segments)
{
    const struct recomputing *found = writing->found;
    const struct program *program = found->program;
    const size_t tensors = (size_t)program->tensor_count + 1;
    const size_t ops = (size_t)(found->to - found->from) + 1;
    struct arena *arena = &writing->arena;
    NEED(writing->dropped = arena_array(arena, tensors, sizeof *writing->dropped));
    NEED(writing->copy = arena_array(arena, tensors, sizeof *writing->copy));
    NEED(writing->again = arena_array(arena, ops, sizeof *writing->again));
    NEED(writing->done = arena_array(arena, (size_t)segments + 1, sizeof *writing->done));
    for (int32_t t = 0; t < program->tensor_count; t++)
        writing->copy[t] = -1;
    choose(writing);
    return program_recast(program, &writing->draft);
}

/* The program by the cut that was made last, of so many segments. */
static enum status write_cut(const struct recomputing *found, int32_t segments,
                             struct program **out)
{
    const struct program *program = found->program;
    struct writing writing = {.found = found};
    enum status status;
    TRY_OR(done, start_writing(&writing, segments));
    for (int32_t o = 0; o < found->to; o++)
        draft_copy(&writing.draft, program, &program->ops[o]);
    for (int32_t o = found->to; o < program->op_count; o++)
        write_reader(&writing, &program->ops[o]);
    TRY_OR(done, program_finish(&writing.draft, out));
done:
    draft_drop(&writing.draft);
    arena_free(&writing.arena);
    return status;
}

static uint64_t flop_of(const struct program *program)
{
    uint64_t flop = 0;
    for (int32_t o = 0; o < program->op_count; o++)
        flop += op_flop(program, &program->ops[o]);
    return flop;
}

static bool is_better(const struct program *one, const struct program *other, uint64_t bytes)
{
    const uint64_t a = one->role_bytes[ROLE_ACTIVATION], b = other->role_bytes[ROLE_ACTIVATION];
    const bool fits = a <= bytes, other_fits = b <= bytes;
    if (fits != other_fits)
        return fits;
    const bool by_flop = fits || a == b;
    return by_flop ? flop_of(one) < flop_of(other) : a < b;
}

/* Tries the cuts; *best is the program as it was. */
static enum status try_cuts(struct recomputing *found, uint64_t bytes, struct program **best)
{
    const uint64_t all = found->inside[found->to - found->from];
    int32_t segments = 1;
    for (int i = 0; all && i < PIECES && (*best)->role_bytes[ROLE_ACTIVATION] > bytes; i++) {
        const int32_t last = segments;
        struct program *written;
        segments = cut(found, all / (uint64_t)pieces[i]);
        if (segments == last)
            continue;
        TRY(write_cut(found, segments, &written));
        const bool better = is_better(written, *best, bytes);
        program_free(better ? *best : written);
        *best = better ? written : *best;
    }
    return STATUS_OK;
}

enum status recompute(const struct program *program, uint64_t bytes, struct program **out)
{
    struct recomputing found = {.program = program};
    struct program *best = NULL;
    enum status status;
    TRY_OR(done, survey(&found));
    TRY_OR(done, write_cut(&found, cut(&found, UINT64_MAX), &best));
    TRY_OR(done, try_cuts(&found, bytes, &best));
    *out = best;
    best = NULL;
done:
    program_free(best);
    arena_free(&found.arena);
    return status;
}
