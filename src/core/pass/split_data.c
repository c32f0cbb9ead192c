/* split_data.c: walks the program in order; behind the op that completes a bucket of gradients it
 * writes an all_reduce, before the first op that reads one of them a wait. */
#include "core/pass/split_data.h"

#include "base/memory.h"

static const char made_by[] = "data parallelism";

/* A bucket: operands [from, to) of `ready`. */
struct bucket {
    int32_t from, to;
    bool waited;
};

struct splitting {
    const struct program *program;
    struct draft *draft;
    struct data_share share;
    int32_t *last_writer; /* per tensor that is reduced, its root: the last op before the update
                             that writes it; -1: it is not reduced */
    int32_t *ready;       /* tensors in the order in which they are complete */
    int32_t *bucket_of;   /* per tensor: its place in `buckets`, -1: none yet */
    struct bucket *buckets;
    int32_t ready_count, bucket_count;
    bool folded; /* losses are scaled by the share, so that gradients are */
};

/* Is it to be the same on all ranks, though each has computed its own? */
static bool is_reduced(const struct program *program, int32_t tensor)
{
    enum role role = program->tensors[tensor].role;
    return (role == ROLE_GRAD || role == ROLE_STATISTIC) &&
           program->tensors[tensor].dtype == program->real;
}

/* Is it batch-norm over the batch of all ranks? What comes of it is the same on all of them. */
static bool is_whole(const struct splitting *split, const struct op *op)
{
    return split->share.whole_norm && (op->kind == OP_batch_norm || op->kind == OP_batch_norm_grad);
}

static enum status survey(struct splitting *split, struct arena *arena)
{
    const struct program *program = split->program;
    const size_t tensors = (size_t)program->tensor_count + 1;
    NEED(split->last_writer = arena_array(arena, tensors, sizeof *split->last_writer));
    NEED(split->ready = arena_array(arena, tensors, sizeof *split->ready));
    NEED(split->bucket_of = arena_array(arena, tensors, sizeof *split->bucket_of));
    NEED(split->buckets = arena_array(arena, tensors, sizeof *split->buckets));
    for (int32_t t = 0; t < program->tensor_count; t++)
        split->last_writer[t] = split->bucket_of[t] = -1;
    for (int32_t o = 0; o < program->parts[PART_UPDATE].from; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->outputs; i++) {
            int32_t tensor = op_output(program, op, i);
            int32_t root = tensor < 0 ? -1 : program_root(program, tensor);
            if (root >= 0 && is_reduced(program, root) && !is_whole(split, op))
                split->last_writer[root] = o;
        }
    }
    return STATUS_OK;
}

/* Where an op takes the gradient of a loss from, it has a scale; elsewhere NULL. */
static float *loss_scale(struct op *op)
{
    switch (op->kind) {
    case OP_mse_grad: return &op->attr.mse_grad.scale;
    case OP_cross_entropy_grad: return &op->attr.cross_entropy_grad.scale;
    case OP_binary_cross_entropy_grad: return &op->attr.binary_cross_entropy_grad.scale;
    case OP_divergence_grad: return &op->attr.divergence_grad.scale;
    default: return NULL;
    }
}

/* Gradients are linear in those of the losses. Where the share is a power of two, scaling these
 * changes no bit of the result, and saves a pass over all gradients. Gradients that come from no
 * loss (contrastive divergence) have a scale of their own. */
static bool may_fold(const struct program *program, const struct data_share *share)
{
    const int32_t parts = share->samples ? share->of / share->samples : 0;
    if (share->across) /* the losses may be another rank's */
        return false;
    if (!parts || share->of % share->samples || (parts & (parts - 1)))
        return false;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if ((op->kind == OP_outer && op->attr.outer.scale != 1) ||
            (op->kind == OP_sum_rows && op->attr.sum_rows.scale != 1))
            return false;
    }
    return true;
}

static void write_reduce(const struct splitting *split, const int32_t *tensors, int32_t count,
                         bool weighed)
{
    struct op *op = draft_op(split->draft, OP_all_reduce, tensors, count, tensors, count);
    op->made_by = made_by;
    op->attr.all_reduce.samples = weighed ? 1 : split->share.samples;
    op->attr.all_reduce.of = weighed ? 1 : split->share.of;
    op->attr.all_reduce.across = split->share.across;
}

static void reduce_now(const struct splitting *split, const int32_t *tensors, int32_t count,
                       bool weighed)
{
    write_reduce(split, tensors, count, weighed);
    draft_op(split->draft, OP_wait, tensors, count, tensors, count)->made_by = made_by;
}

/* batch_norm with the mean and variance of the batch of all ranks. */
static void write_norm(struct splitting *split, const struct op *op)
{
    const struct program *program = split->program;
    struct draft *draft = split->draft;
    const int32_t x = op_operand(program, op, AT_batch_norm_x),
                  mean = op_operand(program, op, AT_batch_norm_saved_mean),
                  moved_mean = op_operand(program, op, AT_batch_norm_mean_out),
                  moved_variance = op_operand(program, op, AT_batch_norm_variance_out);
    const int32_t variance = draft_real(draft, "batch variance", *draft_shape(draft, mean));
    draft_part(draft, op->part);
    draft->layer = op->layer;
    draft_op(draft, OP_channel_mean, IN(x), OUT(mean));
    reduce_now(split, &mean, 1, false);
    draft_op(draft, OP_channel_variance, IN(x, mean), OUT(variance));
    reduce_now(split, &variance, 1, false);
    struct op *given = draft_op(
        draft, OP_batch_norm_given,
        IN(x, op_operand(program, op, AT_batch_norm_gamma),
           op_operand(program, op, AT_batch_norm_beta), moved_mean, moved_variance, mean, variance),
        OUT(op_operand(program, op, AT_batch_norm_y),
            op_operand(program, op, AT_batch_norm_saved_scale), moved_mean, moved_variance));
    given->made_by = made_by;
    given->attr.batch_norm_given.epsilon = op->attr.batch_norm.epsilon;
    given->attr.batch_norm_given.momentum = op->attr.batch_norm.momentum;
    given->attr.batch_norm_given.of = split->share.of;
}

/* What it gives is the gradient of all ranks: it goes to its place, or is added there. */
static void give(struct splitting *split, int32_t sum, int32_t grad, bool accumulate)
{
    if (accumulate)
        draft_op(split->draft, OP_add, IN(grad, sum), OUT(grad));
    else
        draft_op(split->draft, OP_activate, IN(sum), OUT(grad));
}

static void write_norm_grad(struct splitting *split, const struct op *op)
{
    const struct program *program = split->program;
    struct draft *draft = split->draft;
    const int32_t x = op_operand(program, op, AT_batch_norm_grad_x),
                  mean = op_operand(program, op, AT_batch_norm_grad_saved_mean),
                  scale = op_operand(program, op, AT_batch_norm_grad_saved_scale),
                  dy = op_operand(program, op, AT_batch_norm_grad_dy),
                  dx = op_operand(program, op, AT_batch_norm_grad_dx);
    const bool accumulate = op->attr.batch_norm_grad.accumulate;
    const int32_t sums[] = {draft_real(draft, "sum of dgamma", *draft_shape(draft, mean)),
                            draft_real(draft, "sum of dbeta", *draft_shape(draft, mean))};
    const int32_t samples = split->folded ? split->share.of : split->share.samples;
    draft_part(draft, op->part);
    draft->layer = op->layer;
    draft_op(draft, OP_batch_norm_sums, IN(x, mean, scale, dy), OUT(sums[0], sums[1]));
    reduce_now(split, sums, 2, split->folded);
    if (dx >= 0)
        draft_op(draft, OP_batch_norm_given_grad,
                 IN(x, op_operand(program, op, AT_batch_norm_grad_gamma), mean, scale, dy, sums[0],
                    sums[1]),
                 OUT(dx))
            ->attr.batch_norm_given_grad.samples = samples ? samples : 1;
    give(split, sums[0], op_operand(program, op, AT_batch_norm_grad_dgamma), accumulate);
    give(split, sums[1], op_operand(program, op, AT_batch_norm_grad_dbeta), accumulate);
}

static void copy_op(struct splitting *split, int32_t o)
{
    const struct op *from = &split->program->ops[o];
    if (is_whole(split, from)) {
        if (from->kind == OP_batch_norm)
            write_norm(split, from);
        else
            write_norm_grad(split, from);
        return;
    }
    struct op *op = draft_copy(split->draft, split->program, &split->program->ops[o]);
    float *scale = split->folded ? loss_scale(op) : NULL;
    if (scale)
        *scale *= (float)split->share.samples / (float)split->share.of;
}

/* Writes the all_reduce of what is ready and in no bucket. */
static void close_bucket(struct splitting *split, bool weighed)
{
    int32_t from = split->bucket_count ? split->buckets[split->bucket_count - 1].to : 0;
    int32_t count = split->ready_count - from;
    if (!count)
        return;
    const int32_t *tensors = split->ready + from;
    for (int32_t i = 0; i < count; i++)
        split->bucket_of[tensors[i]] = split->bucket_count;
    split->buckets[split->bucket_count++] = (struct bucket){from, split->ready_count, false};
    draft_part(split->draft, split->share.accumulated ? PART_UPDATE : PART_BACKWARD);
    split->draft->layer = "";
    write_reduce(split, tensors, count, weighed);
}

/* Adds the tensors of one role that the op completes; a bucket that is full goes on its way. */
static void collect(struct splitting *split, int32_t o, enum role role, uint64_t *bytes)
{
    const struct program *program = split->program;
    const struct op *op = &program->ops[o];
    for (int32_t i = 0; i < op->outputs; i++) {
        int32_t tensor = op_output(program, op, i);
        int32_t root = tensor < 0 ? -1 : program_root(program, tensor);
        if (root < 0 || split->last_writer[root] != o || program->tensors[root].role != role)
            continue;
        split->last_writer[root] = -1;
        split->ready[split->ready_count++] = root;
        *bytes += program->tensors[root].bytes;
    }
    if (*bytes < (uint64_t)split->share.bucket_bytes)
        return;
    close_bucket(split, role == ROLE_GRAD && split->folded);
    *bytes = 0;
}

static void write_wait(struct splitting *split, struct bucket *bucket)
{
    const int32_t *tensors = split->ready + bucket->from;
    int32_t count = bucket->to - bucket->from;
    if (bucket->waited)
        return;
    bucket->waited = true;
    draft_part(split->draft, PART_UPDATE);
    split->draft->layer = "";
    draft_op(split->draft, OP_wait, tensors, count, tensors, count)->made_by = made_by;
}

/* Writes the waits for what the op touches and what is still on its way. */
static void wait_for(struct splitting *split, const struct op *op)
{
    const struct program *program = split->program;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int32_t tensor = program->operands[op->first + i];
        int32_t index = tensor < 0 ? -1 : split->bucket_of[program_root(program, tensor)];
        if (index >= 0)
            write_wait(split, &split->buckets[index]);
    }
}

static void write(struct splitting *split)
{
    const struct program *program = split->program;
    const int32_t update = program->parts[PART_UPDATE].from;
    uint64_t bytes = 0;
    for (int32_t o = 0; o < update; o++) {
        copy_op(split, o);
        if (!split->share.accumulated)
            collect(split, o, ROLE_GRAD, &bytes);
    }
    for (int32_t o = 0; split->share.accumulated && o < update; o++)
        collect(split, o, ROLE_GRAD, &bytes);
    close_bucket(split, split->folded);
    for (int32_t o = 0; o < update; o++)
        collect(split, o, ROLE_STATISTIC, &(uint64_t){0});
    close_bucket(split, false);
    for (int32_t o = update; o < program->op_count; o++) {
        wait_for(split, &program->ops[o]);
        copy_op(split, o);
    }
    for (int32_t b = 0; b < split->bucket_count;
         b++) /* statistics: nothing of the step reads them */
        write_wait(split, &split->buckets[b]);
}

enum status split_data(const struct program *program, const struct data_share *share,
                       struct program **out)
{
    struct arena arena = {0};
    struct draft draft = {0};
    struct splitting split = {.program = program, .draft = &draft, .share = *share};
    enum status status;
    if (!split.share.bucket_bytes)
        split.share.bucket_bytes = SPLIT_BUCKET_BYTES;
    split.folded = may_fold(program, share);
    TRY_OR(done, survey(&split, &arena));
    TRY_OR(done, program_recast(program, &draft));
    write(&split);
    TRY_OR(done, program_finish(&draft, out));
done:
    draft_drop(&draft);
    arena_free(&arena);
    return status;
}

enum status split_rank_share(struct split_rank *rank, const struct data_share *share)
{
    struct program *shared;
    TRY(split_data(rank->program, share, &shared));
    program_free(rank->program);
    rank->program = shared;
    return STATUS_OK;
}
