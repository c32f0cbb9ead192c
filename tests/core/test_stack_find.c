/* test_stack_find.c: which programs are a plain stack of dense layers, and what is found in them.
 */
#include "core/pass/fuse.h"
#include "core/pass/stack_find.h"
#include "nn/network.h"
#include "rig.h"

struct found {
    struct dense_stack dense;
    const char *why;
    int32_t ops;
};

/* Compiles `text`, fuses it for the backend and looks. */
static bool look_on(const char *backend, const char *text, const struct compile_options *options,
                    enum dtype real, struct found *found)
{
    struct network *network = NULL;
    struct program *program = NULL, *fused = NULL;
    struct params params;
    struct rig rig;
    params_init(&params, real);
    bool ok = CHECK(rig_open(&rig, backend)) &&
              CHECK_OK(network_parse("test", text, strlen(text), &network)) &&
              CHECK_OK(network_compile(network, &params, options, &program)) &&
              CHECK_OK(fuse(program, rig.backend, rig.device, &fused));
    if (ok) {
        found->why = stack_find(fused, &found->dense);
        found->ops = fused->op_count;
    }
    rig_close(&rig);
    program_free(fused);
    program_free(program);
    params_free(&params);
    network_free(network);
    return ok;
}

static bool look(const char *text, const struct compile_options *options, enum dtype real,
                 struct found *found)
{
    return look_on("ref", text, options, real, found);
}

static const char *const plain = "input 4\ndense 3\nsigmoid\ndense 5\ntanh\ndense 2\n";

TEST(a_trained_stack_is_found)
{
    struct found found;
    struct compile_options options = {.batch = 7, .use = USE_TRAINING, .loss = LOSS_MSE};
    if (!look(plain, &options, DTYPE_F32, &found) || !CHECK(!found.why))
        return;
    const struct dense_stack *dense = &found.dense;
    CHECK_EQUAL_INT(dense->layers, 3);
    CHECK_EQUAL_INT(dense->layer[1].in, 3);
    CHECK_EQUAL_INT(dense->layer[1].out, 5);
    CHECK_EQUAL_INT(dense->layer[1].activation, ACTIVATION_TANH);
    CHECK_EQUAL_INT(dense->layer[2].activation, ACTIVATION_NONE);
    for (int i = 0; i < 3; i++)
        CHECK(dense->layer[i].update >= 0 && dense->layer[i].b >= 0);
    CHECK(dense->loss >= 0 && dense->loss_grad > dense->loss && dense->store_loss >= 0);
    CHECK_EQUAL_INT(dense->tick, found.ops - 1);
    CHECK_EQUAL_INT(dense->optimiser, -1);
    CHECK_EQUAL_INT(dense->states, 0);
}

/* Their ops are those of the parameters, which differ in nothing but their operands; a backend that
 * runs such a stack whole leaves them so. */
TEST(other_optimisers_are_found)
{
    if (backend_simd.probe() != STATUS_OK)
        SKIP("%s", status_message());
    static const char *const names[] = {"momentum", "nesterov", "adagrad",       "rmsprop", "adam",
                                        "adamw",    "rprop",    "sgd:decay=0.1", NULL};
    static const int32_t states[] = {1, 1, 1, 1, 2, 2, 2, 0};
    for (int i = 0; names[i]; i++) {
        struct found found;
        struct compile_options options = {
            .batch = 2, .use = USE_TRAINING, .loss = LOSS_MSE, .optimiser = names[i]};
        if (!look_on("simd", "input 4\ndense 3\ntanh\ndense 5 bias=0\ndense 2\n", &options,
                     DTYPE_F32, &found) ||
            !CHECK(!found.why))
            continue;
        const struct dense_stack *dense = &found.dense;
        CHECK_EQUAL_INT(dense->layers, 3);
        CHECK_EQUAL_INT(dense->states, states[i]);
        for (int l = 0; l < 3; l++) {
            CHECK(dense->layer[l].update >= dense->optimiser && dense->optimiser >= 0);
            CHECK((dense->layer[l].update_b >= 0) == (l != 1));
        }
    }
}

TEST(an_inference_is_found)
{
    struct found found;
    struct compile_options options = {.batch = 1, .use = USE_INFERENCE};
    if (!look(plain, &options, DTYPE_F32, &found) || !CHECK(!found.why))
        return;
    CHECK(found.dense.store_y >= 0 && found.dense.loss < 0 && found.dense.tick < 0);
    CHECK_EQUAL_INT(found.dense.layer[0].update, -1);
}

/* What is stored of a classifier are probabilities. */
TEST(cross_entropy_is_found)
{
    static const enum program_use uses[] = {USE_TRAINING, USE_EVALUATION, USE_INFERENCE};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        struct found found;
        struct compile_options options = {
            .batch = 2, .use = uses[i], .loss = LOSS_CROSS_ENTROPY, .classes = 2};
        if (!look(plain, &options, DTYPE_F32, &found) || !CHECK(!found.why))
            continue;
        CHECK((found.dense.right >= 0) == (uses[i] != USE_INFERENCE));
        CHECK((found.dense.store_y >= 0) == (uses[i] != USE_TRAINING));
        CHECK(found.dense.probabilities == (uses[i] != USE_TRAINING));
    }
}

/* Its right answers are counted on the sigmoid of its output, which is stored as it is. */
TEST(a_binary_classifier_is_found)
{
    static const enum program_use uses[] = {USE_TRAINING, USE_EVALUATION, USE_INFERENCE};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        struct found found;
        struct compile_options options = {
            .batch = 2, .use = uses[i], .loss = LOSS_BINARY_CROSS_ENTROPY};
        if (!look("input 4\ndense 8\nrelu\ndense 1\n", &options, DTYPE_F32, &found) ||
            !CHECK(!found.why))
            continue;
        CHECK((found.dense.right >= 0) == (uses[i] != USE_INFERENCE));
        CHECK(found.dense.counts_sigmoid == (uses[i] != USE_INFERENCE));
        CHECK(!found.dense.probabilities);
    }
}

/* Each of these has something that a trained stack has not. */
TEST(what_is_more_than_a_stack_is_not_one)
{
    static const struct {
        const char *text, *optimiser;
        int32_t accumulate;
        enum dtype real;
    } rows[] = {
        {"input 4\ndense 3\ndropout 0.5\ndense 2\n", NULL, 1, DTYPE_F32},
        {"input 4\na = dense 4\nb = dense 4\nadd < a, b\ndense 2\n", NULL, 1, DTYPE_F32},
        {"input 4\ndense 3\ngelu\ndense 2\n", NULL, 1, DTYPE_F32},
        {"input 4\ndense 3\nsoftmax\ndense 2\n", NULL, 1, DTYPE_F32},
        {plain, "sgd:clip=1", 1, DTYPE_F32},
        {plain, "adam:clip=1", 1, DTYPE_F32},
        {plain, "adam", 2, DTYPE_F32},
        {plain, NULL, 2, DTYPE_F32},
        {plain, NULL, 1, DTYPE_F64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct found found;
        struct compile_options options = {.batch = 2,
                                          .use = USE_TRAINING,
                                          .loss = LOSS_MSE,
                                          .optimiser = rows[i].optimiser,
                                          .accumulate = rows[i].accumulate};
        if (look(rows[i].text, &options, rows[i].real, &found) && !CHECK(found.why != NULL))
            fprintf(stderr, "row %zu\n", i);
    }
}

CHECK_MAIN
