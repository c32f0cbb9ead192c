/* test_onnx_train.c: a random network that went to ONNX and back is trained as it would have been:
 * what is folded for inference, and what an operator cannot say, must not show in its losses. */
#include "base/file.h"
#include "folder.h"
#include "nn/formats/onnx.h"
#include "onnx_answer.h"
#include "onnx_networks.h"

enum { STEPS = 4 };

struct training {
    struct params params;
    struct program *program;
    double rate;
    float losses[STEPS];
};

/* From its first values, on random samples and targets, ops merged. False: it is refused. */
static bool train(struct rig *rig, const struct network *network, struct training *out)
{
    const struct compile_options options = {
        .batch = BATCH, .use = USE_TRAINING, .loss = LOSS_MSE, .optimiser = "sgd"};
    struct program *program;
    struct ready ready = {0};
    params_init(&out->params, DTYPE_F32);
    if (network_compile(network, &out->params, &options, &program) != STATUS_OK)
        return false;
    bool ok = CHECK_OK(params_fill(&out->params, 7)) &&
              CHECK_OK(fuse(program, rig->backend, rig->device, &out->program));
    program_free(program);
    out->params.control.rate = out->rate;
    if (!ok || !ready_open(&ready, rig, &out->params, out->program))
        return false;
    int32_t target = program_find(out->program, ROLE_INPUT, "target");
    int64_t inputs = STEPS * BATCH * shape_count(&network->input);
    int64_t targets = STEPS * shape_count(&out->program->tensors[target].shape);
    float *x = mem_array((size_t)inputs, sizeof *x), *y = mem_array((size_t)targets, sizeof *y);
    fill_random(x, inputs, 5);
    fill_random(y, targets, 6);
    for (int64_t i = 0; network->tokens && i < inputs; i++)
        ((int32_t *)(void *)x)[i] = (int32_t)(i % network->tokens);
    ok = ready_bind(&ready, out->program, (const char *[]){"x", "target", "loss"},
                    (void *[]){x, y, out->losses}, (int64_t[]){STEPS * BATCH, STEPS * BATCH, STEPS},
                    3, NULL, 0, 0) &&
         ready_run(&ready, PARTS_ALL, 0, STEPS);
    ready_close(&ready);
    mem_free(x);
    mem_free(y);
    return ok;
}

static void training_free(struct training *training)
{
    program_free(training->program);
    params_free(&training->params);
}

/* Gives whether its losses are numbers that can be compared. Where a file works numbers out of what
 * learns, it is refused, and says so. */
static bool check_training(struct rig *rig, const char *text)
{
    struct network *network = NULL, *back = NULL;
    struct answer before = {0};
    struct training first = {.rate = 0.01}, second = {.rate = 0.01};
    const struct onnx_ends ends = {.loss = LOSS_MSE};
    bool ok = CHECK_OK(network_parse("test", text, strlen(text), &network)) &&
              answer(rig, network, false, &before) &&
              CHECK_OK(onnx_write(at("train.onnx"), network, &before.params, &ends)) &&
              CHECK_OK(network_open(at("train.onnx"), &back)) &&
              CHECK(train(rig, network, &first)) &&
              CHECK(train(rig, back, &second) != (back->untrainable != NULL));
    bool numbers = ok && !back->untrainable;
    for (int i = 0; numbers && i < STEPS; i++)
        numbers = isfinite(first.losses[i]) && first.losses[i] < 1e3f;
    for (int i = 0; ok && numbers && i < STEPS; i++)
        ok = fabsf(second.losses[i] - first.losses[i]) <= 1e-3f * fabsf(first.losses[i]);
    if (!CHECK(ok))
        printf("    losses %g … %g, expected %g … %g: %s\n%s    became\n%s",
               (double)second.losses[0], (double)second.losses[STEPS - 1], (double)first.losses[0],
               (double)first.losses[STEPS - 1], status_message(), text, back ? back->text : "");
    training_free(&first);
    training_free(&second);
    answer_free(&before);
    network_free(network);
    network_free(back);
    return numbers;
}

/* A dropout draws by the name of its layer, and names change on the way. */
ON_QUICK_BACKENDS(random_networks_are_trained_as_before)
{
    uint32_t tried = 0, finite = 0;
    for (uint32_t number = 0; number < networks_wanted(40); number++) {
        struct text text = {0};
        draw_network(number, &text);
        if (!strstr(text_of(&text), "dropout")) {
            tried++;
            finite += check_training(rig, text_of(&text));
        }
        text_free(&text);
    }
    CHECK(finite * 10 > tried * 8); /* else they are the same too easily */
}

CHECK_MAIN
