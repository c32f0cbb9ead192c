/* learners.h: what tests of splits share: networks of every kind, and data for each of them. */
#ifndef PRONY_TESTS_LEARNERS_H
#define PRONY_TESTS_LEARNERS_H

#include "core/pass/fuse.h"
#include "nn/network.h"
#include "ranks.h"
#include "rig.h"
#include "train/workers/rank_plan.h"

enum { LEARNER_ROWS = 24 };

/* Small enough for fifty steps of the reference. The key has no bias: softmax does not see it, so
 * that its gradient is rounding alone, which adam makes as large as any other. */
static const struct learner {
    const char *name, *text;
    int32_t classes;
} learners[] = {
    {"mlp",
     "input 7\ndense 12\ntanh\ndropout 0.3\ndense 10\nrelu\ndense 9\ndropout 0.5\nsigmoid\n"
     "dense 3\nloss mse\n",
     0},
    {"lenet",
     "input 1x12x12\nconv 4 3x3 pad=1\nrelu\nmax_pool 2\nconv 6 3x3\nrelu\nmax_pool 2\nflatten\n"
     "dense 12\nrelu\ndense 8\nrelu\ndense 5\nloss cross_entropy\n",
     5},
    {"lstm", "input 5x4\nlstm 6\nlstm 5 output=last\ndense 6\nrelu\ndense 3\nloss cross_entropy\n",
     3},
    {"transformer",
     "input 6 tokens=8\nembedding 16\nx = position\nnorm = layer_norm\ndense 16 < norm\n"
     "reshape 6x2x8\nquery = transpose 2,1,3\ndense 16 bias=0 < norm\nreshape 6x2x8\n"
     "key = transpose 2,1,3\ndense 16 < norm\nreshape 6x2x8\nvalue = transpose 2,1,3\n"
     "matmul transpose=second scale=0.354 < query, key\nweights = softmax causal=1\n"
     "matmul < weights, value\ntranspose 2,1,3\nreshape 6x16\nmixed = dense 16\n"
     "middle = add < mixed, x\nlayer_norm\ndense 32\ngelu\nforward = dense 16\n"
     "add < forward, middle\nlayer_norm\ndense 8\nloss cross_entropy\n",
     8},
    {"resnet",
     "input 3x8x8\nconv 4 3x3 pad=1 bias=0\nbatch_norm\nrelu\npooled = max_pool 3 stride=2 pad=1\n"
     "conv 4 3x3 pad=1 bias=0 < pooled\nbatch_norm\nrelu\nconv 4 3x3 pad=1 bias=0\n"
     "long1 = batch_norm\nadd < long1, pooled\nblock1 = relu\n"
     "conv 6 1x1 stride=2 bias=0 < block1\nshort2 = batch_norm\n"
     "conv 6 3x3 stride=2 pad=1 bias=0 < block1\nbatch_norm\nrelu\nconv 6 3x3 pad=1 bias=0\n"
     "long2 = batch_norm\nadd < long2, short2\nrelu\nglobal_average_pool\nflatten\ndense 4\n"
     "loss cross_entropy\n",
     4},
    {"googlenet",
     "input 2x8x8\nstem = conv 6 3x3 pad=1\nconv 4 1x1 < stem\na = relu\nconv 3 1x1 < stem\nrelu\n"
     "conv 5 3x3 pad=1\nb = relu\nmax_pool 3 stride=1 pad=1 < stem\nconv 2 1x1\nc = relu\n"
     "mix = concat < a, b, c\nmax_pool 2\nlrn 5\nconv 6 3x3\nrelu\nflatten\n"
     "d = dense 7\nshort = reshape 7 < d\ndense 7\nrelu\ndense 7\nadd < short, dense3\ndense 4\n"
     "loss cross_entropy\n",
     4},
};

enum { LEARNERS = sizeof learners / sizeof *learners };

/* Data for any of them: LEARNER_ROWS rows. */
struct learner_data {
    void *x; /* numbers, or tokens */
    int32_t *label;
    void *target;
    uint32_t order[LEARNER_ROWS];
    float loss[4096];
};

static inline void learner_data_close(struct learner_data *data)
{
    free(data->x);
    free(data->label);
    free(data->target);
    *data = (struct learner_data){0};
}

/* Numbers of the program's type, or whole ones below `below`. */
static inline void *learner_numbers(const struct tensor *tensor, int32_t below, unsigned seed)
{
    const int64_t count = shape_count(&tensor->shape) / tensor->shape.dim[0] * LEARNER_ROWS;
    float *random = malloc((size_t)count * sizeof *random);
    void *out = calloc((size_t)count, sizeof(double));
    fill_random(random, count, seed);
    for (int64_t i = 0; i < count; i++) {
        if (tensor->dtype == DTYPE_I32)
            ((int32_t *)out)[i] = (int32_t)((random[i] + 1) / 2 * (float)below) % below;
        else if (tensor->dtype == DTYPE_F64)
            ((double *)out)[i] = (double)random[i];
        else
            ((float *)out)[i] = random[i];
    }
    free(random);
    return out;
}

static inline void learner_data_open(struct learner_data *data, const struct program *program,
                                     const struct network *network, int32_t classes)
{
    int32_t x = program_find(program, ROLE_INPUT, "x");
    int32_t label = program_find(program, ROLE_INPUT, "label");
    int32_t target = program_find(program, ROLE_INPUT, "target");
    *data = (struct learner_data){0};
    data->x = learner_numbers(&program->tensors[x], network->tokens ? network->tokens : 1, 5);
    if (label >= 0)
        data->label = learner_numbers(&program->tensors[label], classes, 6);
    if (target >= 0)
        data->target = learner_numbers(&program->tensors[target], 1, 7);
    for (uint32_t i = 0; i < LEARNER_ROWS; i++)
        data->order[i] = i * 5 % LEARNER_ROWS;
}

enum { LEARNER_VIEWS = 3 };
static inline void learner_views(const struct learner_data *data,
                                 struct named_view views[LEARNER_VIEWS])
{
    views[0] = (struct named_view){ROLE_INPUT, "x", data->x, LEARNER_ROWS};
    views[1] = (struct named_view){ROLE_INPUT, "label", data->label, LEARNER_ROWS};
    views[2] = (struct named_view){ROLE_INPUT, "target", data->target, LEARNER_ROWS};
}

/* The same entries with the same values. */
static inline enum status learner_copy(struct params *to, const struct params *from)
{
    params_init(to, from->real);
    for (int32_t i = 0; i < from->count; i++) {
        int32_t entry;
        const struct entry *e = &from->entries[i];
        TRY(params_declare(to, e->name, e->role, e->dtype, e->shape, e->init, &entry));
        if (e->matrix)
            params_mark_matrix(to, entry);
        memcpy(params_data(to, entry), params_data(from, i), (size_t)e->bytes);
    }
    to->control = from->control;
    return STATUS_OK;
}

/* Runs the body as that many ranks at once, each a thread. */
static inline bool on_ranks(int size, enum status (*body)(struct comm *comm, void *context),
                            void *context)
{
    struct ranks_one ones[RANKS_MOST];
    bool ok = ranks_threads(size, body, context, ones);
    for (int r = 0; ok && r < size; r++)
        if (!CHECK_EQUAL_INT(ones[r].status, STATUS_OK)) {
            printf("    rank %d: %s\n", r, ones[r].message);
            ok = false;
        }
    return ok;
}

#endif
