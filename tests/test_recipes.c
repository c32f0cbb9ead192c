/* test_recipes.c: programs that no network text describes, on every backend: two programs on one
 * instance, gradients that no autodiff made. */
#include "compiled.h"
#include "nn/grad.h"
#include "nn/loss.h"
#include "nn/optimiser.h"

/* A GAN: the discriminator's step and the generator's step are two programs over one instance; each
 * updates its own side and only reads the other. */
struct gan {
    struct network *generator, *discriminator;
    struct params params;
    struct program *learn[2]; /* 0: discriminator, 1: generator */
};

static bool is_side(void *context, int32_t entry)
{
    void **pair = context; /* params, prefix */
    const struct params *params = pair[0];
    return text_starts(params->entries[entry].name, pair[1]);
}

static int32_t emit_judged(struct draft *draft, const struct gan *gan, int32_t x, int32_t rows,
                           float truth, enum loss_kind loss, struct grad_seed *seed)
{
    int32_t batch = draft->program->batch;
    int32_t y =
        network_emit(gan->discriminator, draft, "discriminator.", PHASE_TRAINING, rows, x, -1);
    int32_t target = draft_real(draft, "truth", SHAPE(batch, 1));
    draft_op(draft, OP_fill, NOTHING, OUT(target))->attr.fill.value = truth;
    struct loss_tensors tensors = loss_emit(draft, loss, y, target, 0);
    draft_part(draft, PART_BACKWARD);
    *seed = loss_emit_seed(draft, loss, y, target, &tensors, 1);
    draft_part(draft, PART_FORWARD);
    return tensors.loss;
}

static bool gan_program(struct gan *gan, bool generator, struct program **out)
{
    enum { BATCH = 4, NOISE = 3 };
    struct draft draft;
    struct grad_seed seeds[2];
    int32_t seed_count = 0;
    if (!CHECK_OK(program_begin(&draft, &gan->params, "gan", BATCH, DTYPE_F32)))
        return false;
    int32_t rows = draft_tensor(&draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(BATCH));
    draft_op(&draft, OP_rows, NOTHING, OUT(rows));
    int32_t real = draft_tensor(&draft, ROLE_INPUT, DTYPE_F32, "x", SHAPE(BATCH, 2));
    if (!generator)
        draft_op(&draft, OP_load, IN(rows), OUT(real));
    draft_part(&draft, PART_FORWARD);
    int32_t noise = draft_real(&draft, "noise", SHAPE(BATCH, NOISE));
    struct op *random = draft_op(&draft, OP_random, IN(rows), OUT(noise));
    random->attr.random.distribution = DISTRIBUTION_NORMAL;
    random->attr.random.stream = random->id;
    int32_t fake =
        network_emit(gan->generator, &draft, "generator.", PHASE_TRAINING, rows, noise, -1);
    emit_judged(&draft, gan, fake, rows, generator ? 1 : 0, LOSS_BINARY_CROSS_ENTROPY,
                &seeds[seed_count++]);
    if (!generator)
        emit_judged(&draft, gan, real, rows, 1, LOSS_BINARY_CROSS_ENTROPY, &seeds[seed_count++]);
    char *prefix = generator ? "generator." : "discriminator.";
    void *pair[] = {&gan->params, prefix};
    grad_emit(&draft,
              &(struct grad_options){
                  .seeds = seeds, .seed_count = seed_count, .wanted = is_side, .context = pair});
    update_emit(&draft, &(struct update_options){.prefix = prefix, .rate = 1});
    return CHECK_OK(program_finish(&draft, out));
}

static bool gan_open(struct gan *gan)
{
    static const char g[] = "input 3\ndense 8\ntanh\ndense 2\n";
    static const char d[] = "input 2\ndense 8\nbatch_norm\ntanh\ndense 1\n";
    *gan = (struct gan){0};
    params_init(&gan->params, DTYPE_F32);
    bool ok = CHECK_OK(network_parse("generator", g, sizeof g - 1, &gan->generator)) &&
              CHECK_OK(network_parse("discriminator", d, sizeof d - 1, &gan->discriminator)) &&
              gan_program(gan, false, &gan->learn[0]) && gan_program(gan, true, &gan->learn[1]);
    params_fill(&gan->params, 5);
    return ok;
}

/* How far the parameters with this prefix are from where they began. */
static double moved(const struct params *now, const struct params *then, const char *prefix)
{
    double most = 0;
    for (int32_t i = 0; i < now->count; i++)
        if (text_starts(now->entries[i].name, prefix) && now->entries[i].role == ROLE_PARAM)
            most = fmax(most, difference(params_data(now, i), params_data(then, i),
                                         shape_count(&now->entries[i].shape)));
    return most;
}

ON_BACKENDS(gan_has_two_programs_on_one_instance)
{
    struct gan gan;
    struct ready sides[2] = {{0}};
    struct params start = {0};
    float x[ROWS * 2];
    fill_random(x, ROWS * 2, 3);
    if (gan_open(&gan) && ready_open(&sides[0], rig, &gan.params, gan.learn[0]) &&
        ready_on(&sides[1], rig, sides[0].instance, gan.learn[1], NULL)) {
        copy_params(&start, &gan.params);
        ready_bind(&sides[0], gan.learn[0], (const char *[]){"x"}, (void *[]){x}, (int64_t[]){ROWS},
                   1, NULL, 0, 0);
        ready_bind(&sides[1], gan.learn[1], NULL, NULL, NULL, 0, NULL, 0, 0);
        ready_run(&sides[0], PARTS_ALL, 0, 1);
        CHECK_OK(rig->backend->download(sides[0].instance, &gan.params));
        CHECK(moved(&gan.params, &start, "discriminator.") > 1e-5);
        CHECK(moved(&gan.params, &start, "generator.") == 0);
        struct params before;
        copy_params(&before, &gan.params);
        ready_run(&sides[1], PARTS_ALL, 0, 1);
        CHECK_OK(rig->backend->download(sides[0].instance, &gan.params));
        CHECK(moved(&gan.params, &before, "discriminator.") == 0);
        CHECK(moved(&gan.params, &before, "generator.") > 1e-6);
        CHECK_EQUAL_INT(gan.params.control.step, 2);
        params_free(&before);
    }
    ready_close(&sides[1]);
    ready_close(&sides[0]);
    params_free(&start);
    program_free(gan.learn[0]);
    program_free(gan.learn[1]);
    params_free(&gan.params);
    network_free(gan.generator);
    network_free(gan.discriminator);
}

/* A restricted Boltzmann machine by contrastive divergence: the gradient is two outer products that
 * no autodiff made. */
static bool rbm_program(struct params *params, int32_t batch, struct program **out)
{
    enum { VISIBLE = 6, HIDDEN = 4 };
    struct draft draft;
    int32_t entries[3];
    struct init init = {INIT_NORMAL, 0.1f}, zero = {.kind = INIT_ZERO};
    CHECK_OK(params_declare(params, "weight", ROLE_PARAM, DTYPE_F32, SHAPE(VISIBLE, HIDDEN), init,
                            &entries[0]));
    CHECK_OK(
        params_declare(params, "hidden", ROLE_PARAM, DTYPE_F32, SHAPE(HIDDEN), zero, &entries[1]));
    CHECK_OK(params_declare(params, "visible", ROLE_PARAM, DTYPE_F32, SHAPE(VISIBLE), zero,
                            &entries[2]));
    if (!CHECK_OK(program_begin(&draft, params, "rbm", batch, DTYPE_F32)))
        return false;
    int32_t w = draft_kept(&draft, entries[0]), hidden = draft_kept(&draft, entries[1]);
    int32_t visible = draft_kept(&draft, entries[2]);
    int32_t rows = draft_tensor(&draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(batch));
    int32_t v0 = draft_tensor(&draft, ROLE_INPUT, DTYPE_F32, "x", SHAPE(batch, VISIBLE));
    draft_op(&draft, OP_rows, NOTHING, OUT(rows));
    draft_op(&draft, OP_load, IN(rows), OUT(v0));
    draft_part(&draft, PART_FORWARD);
    int32_t p0 = draft_real(&draft, "p0", SHAPE(batch, HIDDEN));
    int32_t h0 = draft_real(&draft, "h0", SHAPE(batch, HIDDEN));
    int32_t v1 = draft_real(&draft, "v1", SHAPE(batch, VISIBLE));
    int32_t p1 = draft_real(&draft, "p1", SHAPE(batch, HIDDEN));
    int32_t loss = draft_tensor(&draft, ROLE_OUTPUT, DTYPE_F32, "loss", SHAPE(1));
    draft_op(&draft, OP_dense, IN(v0, w, hidden), OUT(p0))->attr.dense.activation =
        ACTIVATION_SIGMOID;
    struct op *draw = draft_op(&draft, OP_bernoulli, IN(p0, rows), OUT(h0));
    draw->attr.bernoulli.stream = draw->id;
    draft_op(&draft, OP_dense_t, IN(h0, w, visible), OUT(v1))->attr.dense_t.activation =
        ACTIVATION_SIGMOID;
    draft_op(&draft, OP_dense, IN(v1, w, hidden), OUT(p1))->attr.dense.activation =
        ACTIVATION_SIGMOID;
    draft_op(&draft, OP_mse, IN(v1, v0), OUT(loss));
    draft_op(&draft, OP_store, IN(loss, -1), NOTHING);
    draft_part(&draft, PART_BACKWARD);
    const struct {
        int32_t v, p;
        float sign;
        int32_t accumulate;
    } phases[] = {{v0, p0, -1, 0}, {v1, p1, 1, 1}};
    for (int i = 0; i < 2; i++) {
        float scale = phases[i].sign / (float)batch;
        struct op *op =
            draft_op(&draft, OP_outer, IN(phases[i].v, phases[i].p), OUT(draft_grad(&draft, w)));
        op->attr.outer.scale = scale;
        op->attr.outer.accumulate = phases[i].accumulate;
        op = draft_op(&draft, OP_sum_rows, IN(phases[i].p), OUT(draft_grad(&draft, hidden)));
        op->attr.sum_rows.scale = scale;
        op->attr.sum_rows.accumulate = phases[i].accumulate;
        op = draft_op(&draft, OP_sum_rows, IN(phases[i].v), OUT(draft_grad(&draft, visible)));
        op->attr.sum_rows.scale = scale;
        op->attr.sum_rows.accumulate = phases[i].accumulate;
    }
    update_emit(&draft, &(struct update_options){.prefix = "", .rate = 1});
    return CHECK_OK(program_finish(&draft, out));
}

ON_BACKENDS(rbm_learns_by_contrastive_divergence)
{
    enum { VISIBLE = 6, SAMPLES = 8, STEPS = 2000 };
    struct params params;
    struct program *program = NULL;
    struct ready ready = {0};
    static float losses[STEPS];
    float x[SAMPLES * VISIBLE]; /* the first half on, or the second half on */
    for (int i = 0; i < SAMPLES * VISIBLE; i++)
        x[i] = (i % VISIBLE < VISIBLE / 2) == (i / VISIBLE % 2 == 0) ? 1 : 0;
    params_init(&params, DTYPE_F32);
    if (rbm_program(&params, SAMPLES, &program)) {
        params_fill(&params, 3);
        params.control.rate = 0.5;
        if (ready_open(&ready, rig, &params, program) &&
            ready_bind(&ready, program, (const char *[]){"x", "loss"}, (void *[]){x, losses},
                       (int64_t[]){SAMPLES, STEPS}, 2, NULL, 0, 0)) {
            ready_run(&ready, PARTS_ALL, 0, STEPS);
            CHECK(losses[0] > 0.2f);
            CHECK(losses[STEPS - 1] < 0.02f);
        }
    }
    ready_close(&ready);
    program_free(program);
    params_free(&params);
}

CHECK_MAIN
