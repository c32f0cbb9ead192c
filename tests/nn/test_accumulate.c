/* test_accumulate.c: gradients that add up, over several uses of one parameter and over several
 * batches before one update. In double precision on the reference. */
#include "nn/grad.h"
#include "nn/network.h"
#include "rig.h"

enum { BATCH = 5, IN_WIDTH = 3, HIDDEN = 4, MOST = 200 };

/* The numbers of a parameter, a gradient, or data. */
struct numbers {
    double at[MOST];
};

static void fill_numbers(struct numbers *numbers, unsigned seed)
{
    float random[MOST];
    fill_random(random, MOST, seed);
    for (int i = 0; i < MOST; i++)
        numbers->at[i] = (double)random[i];
}

static const unsigned learn =
    PART_BIT(PART_PREPARE) | PART_BIT(PART_FORWARD) | PART_BIT(PART_BACKWARD);

/* An autoencoder whose decoder is the encoder's weights transposed: one parameter, two gradients.
 */
static bool draft_tied(struct params *params, struct program **out)
{
    const struct init normal = {INIT_NORMAL, 0.5f};
    struct draft draft;
    int32_t entry;
    if (!CHECK_OK(params_declare(params, "w", ROLE_PARAM, DTYPE_F64, SHAPE(IN_WIDTH, HIDDEN),
                                 normal, &entry)) ||
        !CHECK_OK(program_begin(&draft, params, "tied", BATCH, DTYPE_F64)))
        return false;
    int32_t rows = draft_tensor(&draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(BATCH));
    int32_t x = draft_tensor(&draft, ROLE_INPUT, DTYPE_F64, "x", SHAPE(BATCH, IN_WIDTH));
    int32_t w = draft_kept(&draft, entry), h = draft_real(&draft, "h", SHAPE(BATCH, HIDDEN));
    int32_t a = draft_real(&draft, "a", SHAPE(BATCH, HIDDEN));
    int32_t y = draft_real(&draft, "y", SHAPE(BATCH, IN_WIDTH));
    int32_t loss = draft_tensor(&draft, ROLE_OUTPUT, DTYPE_F64, "loss", SHAPE(1));
    int32_t dy = draft_real(&draft, "dy", SHAPE(BATCH, IN_WIDTH));
    draft_op(&draft, OP_rows, NOTHING, OUT(rows));
    draft_op(&draft, OP_load, IN(rows), OUT(x));
    draft_part(&draft, PART_FORWARD);
    draft_op(&draft, OP_dense, IN(x, w, -1), OUT(h));
    draft_op(&draft, OP_activate, IN(h), OUT(a))->attr.activate.function = ACTIVATION_TANH;
    draft_op(&draft, OP_dense_t, IN(a, w, -1), OUT(y));
    draft_op(&draft, OP_mse, IN(y, x), OUT(loss));
    draft_op(&draft, OP_store, IN(loss, -1), NOTHING);
    draft_part(&draft, PART_BACKWARD);
    draft_op(&draft, OP_mse_grad, IN(y, x), OUT(dy))->attr.mse_grad.scale = 1;
    grad_emit(&draft, &(struct grad_options){.seeds = &(struct grad_seed){y, dy}, .seed_count = 1});
    return CHECK_OK(program_finish(&draft, out));
}

static double tied_loss(struct ready *ready, const struct params *params,
                        const struct program *program)
{
    double loss = NAN;
    CHECK_OK(ready->backend->upload(ready->instance, params));
    ready_run(ready, learn, 0, 1);
    CHECK_OK(ready->backend->fetch(ready->plan, program_find(program, ROLE_OUTPUT, "loss"), &loss));
    return loss;
}

TEST(gradients_of_a_shared_parameter_add_up)
{
    struct rig rig;
    struct params params;
    struct program *program = NULL;
    struct ready ready = {0};
    struct numbers x, gradient;
    const double step = 1e-6;
    fill_numbers(&x, 1);
    params_init(&params, DTYPE_F64);
    if (CHECK(rig_open(&rig, "ref")) && draft_tied(&params, &program)) {
        params_fill(&params, 3);
        double *w = params_data(&params, 0);
        if (ready_open(&ready, &rig, &params, program) &&
            ready_bind(&ready, program, (const char *[]){"x"}, (void *[]){x.at}, (int64_t[]){BATCH},
                       1, NULL, 0, 0)) {
            tied_loss(&ready, &params, program);
            for (int32_t t = 0; t < program->tensor_count; t++)
                if (program->tensors[t].role == ROLE_GRAD)
                    CHECK_OK(rig.backend->fetch(ready.plan, t, gradient.at));
            for (int i = 0; i < IN_WIDTH * HIDDEN; i++) {
                double kept = w[i];
                w[i] = kept + step;
                double up = tied_loss(&ready, &params, program);
                w[i] = kept - step;
                double down = tied_loss(&ready, &params, program);
                w[i] = kept;
                CHECK_NEAR(gradient.at[i], (up - down) / (2 * step), 1e-7);
            }
        }
    }
    ready_close(&ready);
    program_free(program);
    params_free(&params);
    rig_close(&rig);
}

/* The same batch once, and twice without an update between. */
static void check_accumulation(struct rig *rig, const char *text)
{
    struct network *network = NULL;
    struct params params;
    struct program *program = NULL;
    struct numbers x, target, gradients[2];
    fill_numbers(&x, 1);
    fill_numbers(&target, 2);
    params_init(&params, DTYPE_F64);
    bool ok = CHECK_OK(network_parse("test", text, strlen(text), &network)) &&
              CHECK_OK(network_compile(
                  network, &params,
                  &(struct compile_options){.batch = BATCH, .use = USE_TRAINING, .accumulate = 2},
                  &program));
    params_fill(&params, 3);
    for (int32_t t = 0; ok && t < program->tensor_count; t++) {
        const struct tensor *tensor = &program->tensors[t];
        if (tensor->role != ROLE_GRAD || !CHECK(tensor->bytes <= sizeof gradients[0]))
            continue;
        for (int runs = 1; runs <= 2; runs++) {
            struct ready ready;
            if (ready_open(&ready, rig, &params, program) &&
                ready_bind(&ready, program, (const char *[]){"x", "target"},
                           (void *[]){x.at, target.at}, (int64_t[]){BATCH, BATCH}, 2, NULL, 0, 0) &&
                ready_run(&ready, learn, 0, runs))
                CHECK_OK(rig->backend->fetch(ready.plan, t, gradients[runs - 1].at));
            ready_close(&ready);
        }
        for (int64_t i = 0; i < shape_count(&tensor->shape); i++)
            CHECK_NEAR(gradients[1].at[i], 2 * gradients[0].at[i], 1e-12);
    }
    program_free(program);
    params_free(&params);
    network_free(network);
}

TEST(two_batches_leave_the_sum_of_their_gradients)
{
    struct rig rig;
    if (CHECK(rig_open(&rig, "ref"))) {
        check_accumulation(&rig, "input 3\ndense 4\ntanh\ndense 2\nloss mse\n");
        check_accumulation(&rig, "input 3\ndense 4\nbatch_norm\ndense 2\nloss mse\n");
        check_accumulation(&rig, "input 3x2\nlstm 3 output=last\ndense 2\nloss mse\n");
    }
    rig_close(&rig);
}

CHECK_MAIN
