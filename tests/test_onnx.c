/* test_onnx.c: networks to ONNX and back. */
#include "base/file.h"
#include "base/memory.h"
#include "core/pass/fuse.h"
#include "folder.h"
#include "nn/formats/onnx.h"
#include "nn/layer.h"
#include "onnx_networks.h"
#include "rig.h"

enum { BATCH = 3 };

/* A network, what it starts from and what it predicts of random inputs. */
struct answer {
    struct params params;
    struct program *program;
    float *y;
    int64_t count;
};

/* With ops merged or not. */
static bool answer(struct rig *rig, const struct network *network, bool fused, struct answer *out)
{
    struct program *merged;
    struct ready ready = {0};
    struct compile_options options = {.batch = BATCH};
    int64_t inputs = BATCH * shape_count(&network->input);
    float *x = mem_array((size_t)inputs, sizeof *x);
    *out = (struct answer){0};
    params_init(&out->params, DTYPE_F32);
    fill_random(x, inputs, 5);
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

static void answer_free(struct answer *answer)
{
    program_free(answer->program);
    params_free(&answer->params);
    mem_free(answer->y);
}

/* Text → program → ONNX → program: does the second, its ops merged, say what the first does? */
static void check_round(struct rig *rig, const char *text, const char *path, double tolerance)
{
    struct network *network = NULL, *back = NULL;
    struct answer before = {0}, after = {0};
    bool ok = CHECK_OK(network_parse("test", text, strlen(text), &network)) &&
              answer(rig, network, false, &before);
    struct onnx_ends ends = {.loss = ok ? network->loss : LOSS_AUTO};
    ok = ok && CHECK_OK(onnx_write(path, network, &before.params, &ends)) &&
         CHECK_OK(network_open(path, &back)) && answer(rig, back, true, &after) &&
         CHECK_EQUAL_INT(after.count, before.count);
    if (ok)
        for (int64_t i = 0; i < before.count; i++) /* infinities and NaN too */
            ok &= fabs((double)after.y[i] - (double)before.y[i]) <=
                      tolerance * fmax(1, fabs((double)before.y[i])) ||
                  !(fabs((double)before.y[i]) < 1e30);
    if (!CHECK(ok))
        printf("    %s    became\n%s", text, back ? back->text : "nothing\n");
    answer_free(&before);
    answer_free(&after);
    network_free(network);
    network_free(back);
}

/* As many as slow_onnx.sh asks for, or a few. */
static uint32_t networks_wanted(void)
{
    const char *wanted = getenv("PRONY_ONNX_NETWORKS");
    int64_t count;
    return wanted && text_to_int(wanted, &count) && count > 0 ? (uint32_t)count : 60;
}

ON_BACKENDS(random_networks_come_back_the_same)
{
    const char *keep =
        getenv("PRONY_ONNX_KEEP"); /* a folder, where slow_onnxruntime.sh wants them */
    char path[4096];
    if (strcmp(rig->backend->name, "ref") && strcmp(rig->backend->name, "simd") &&
        strcmp(rig->backend->name, "cuda")) {
        check_skip("it has a part of the ops only");
        return;
    }
    for (uint32_t number = 0; number < networks_wanted(); number++) {
        struct text text = {0};
        draw_network(number, &text);
        snprintf(path, sizeof path, "%s/random%u.onnx", keep ? keep : "", number);
        check_round(rig, text_of(&text), keep ? path : at("random.onnx"), 1e-4);
        text_free(&text);
    }
}

CHECK_MAIN
