/* onnx_answer.h: what a network that came from ONNX, or goes there, predicts. */
#ifndef PRONY_TESTS_ONNX_ANSWER_H
#define PRONY_TESTS_ONNX_ANSWER_H

#include "base/memory.h"
#include "core/pass/fuse.h"
#include "nn/network.h"
#include "rig.h"

enum { BATCH = 3 };

/* A network, what it starts from and what it predicts of random inputs. */
struct answer {
    struct params params;
    struct program *program;
    float *y;
    int64_t count;
};

/* With ops merged or not; of these samples or, where they are NULL, of random ones. */
static inline bool answer_of(struct rig *rig, const struct network *network, bool fused,
                             const float *given, struct answer *out)
{
    struct program *merged;
    struct ready ready = {0};
    struct compile_options options = {.batch = BATCH};
    int64_t inputs = BATCH * shape_count(&network->input);
    float *x = mem_array((size_t)inputs, sizeof *x);
    *out = (struct answer){0};
    params_init(&out->params, DTYPE_F32);
    fill_random(x, inputs, 5);
    if (given)
        memcpy(x, given, (size_t)inputs * sizeof *x);
    for (int64_t i = 0; network->tokens && i < inputs; i++)
        ((int32_t *)(void *)x)[i] = (int32_t)(i % network->tokens);
    bool ok = CHECK_OK(network_compile(network, &out->params, &options, &out->program)) &&
              CHECK_OK(params_fill(&out->params, 7));
    if (ok && fused && CHECK_OK(fuse(out->program, rig->backend, rig->device, &merged))) {
        program_free(out->program);
        out->program = merged;
    }
    ok = ok && ready_open(&ready, rig, &out->params, out->program);
    if (ok) {
        int32_t y = program_find(out->program, ROLE_OUTPUT, "y");
        out->count = shape_count(&out->program->tensors[y].shape);
        out->y = mem_array((size_t)out->count, sizeof *out->y);
        ok = ready_bind(&ready, out->program, (const char *[]){"x", "y"}, (void *[]){x, out->y},
                        (int64_t[]){BATCH, BATCH}, 2, NULL, 0, 0) &&
             ready_run(&ready, PARTS_ALL, 0, 1);
    }
    ready_close(&ready);
    mem_free(x);
    return ok;
}

static inline bool answer(struct rig *rig, const struct network *network, bool fused,
                          struct answer *out)
{
    return answer_of(rig, network, fused, NULL, out);
}

static inline void answer_free(struct answer *answer)
{
    program_free(answer->program);
    params_free(&answer->params);
    mem_free(answer->y);
}

#endif
