/* compiled.h: what tests of programs share: a network compiled once, with its parameters. */
#ifndef PRONY_TESTS_COMPILED_H
#define PRONY_TESTS_COMPILED_H

#include "nn/network.h"
#include "rig.h"

/* A network with its parameters, compiled once. */
struct compiled {
    struct network *network;
    struct params params;
    struct program *program;
};

static inline bool compiled_open(struct compiled *model, const char *text,
                                 struct compile_options options)
{
    *model = (struct compiled){0};
    params_init(&model->params, DTYPE_F32);
    bool ok = CHECK_OK(network_parse("test", text, strlen(text), &model->network)) &&
              CHECK_OK(network_compile(model->network, &model->params, &options, &model->program));
    params_fill(&model->params, 11);
    return ok;
}

static inline void compiled_close(struct compiled *model)
{
    program_free(model->program);
    params_free(&model->params);
    network_free(model->network);
}

/* Gives `to` the entries and values of `from`. */
static inline void copy_params(struct params *to, const struct params *from)
{
    params_init(to, from->real);
    for (int32_t i = 0; i < from->count; i++) {
        int32_t entry;
        const struct entry *e = &from->entries[i];
        CHECK_OK(params_declare(to, e->name, e->role, e->dtype, e->shape, e->init, &entry));
        if (e->matrix)
            params_mark_matrix(to, entry);
        memcpy(params_data(to, entry), params_data(from, i), (size_t)e->bytes);
    }
    to->control = from->control;
}

static inline bool bind_xt(struct ready *ready, const struct program *program, float *x,
                           float *target, int64_t rows, const uint32_t *order, int64_t order_count,
                           uint64_t start)
{
    return ready_bind(ready, program, (const char *[]){"x", "target"}, (void *[]){x, target},
                      (int64_t[]){rows, rows}, 2, order, order_count, start);
}

#define DROPOUT_NET                                                                                \
    "input 3\ndense 16\ntanh\ndropout 0.3\ndense 8\ndropout 0.5\nsigmoid\ndense 2\nloss mse\n"

enum { ROWS = 10 }; /* of the data of these tests */

#endif
