/* test_recipes.c: programs of recipes as every backend runs them, step by step: two programs on one
 * instance, gradients that no autodiff made. What the recipes learn is in test_kinds.c. */
#include "compiled.h"
#include "train/recipe.h"

/* The programs of one training step, and their parameters. */
struct learnt {
    struct network *network;
    struct params params;
    struct recipe_step step;
};

static bool learnt_open(struct learnt *learnt, const char *text, int32_t batch)
{
    const struct compile_options options = {.batch = batch, .use = USE_TRAINING};
    *learnt = (struct learnt){0};
    params_init(&learnt->params, DTYPE_F32);
    return CHECK_OK(network_parse("test", text, strlen(text), &learnt->network)) &&
           CHECK_OK(recipe_compile(learnt->network, &learnt->params, &options, &learnt->step)) &&
           CHECK_OK(params_fill(&learnt->params, 5));
}

static void learnt_close(struct learnt *learnt)
{
    recipe_free(&learnt->step);
    params_free(&learnt->params);
    network_free(learnt->network);
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

/* The steps of the discriminator and of the generator are two programs over one instance; each
 * updates its own side and only reads the other. */
ON_BACKENDS(gan_has_two_programs_on_one_instance)
{
    struct learnt gan;
    struct ready sides[2] = {{0}};
    struct params start = {0};
    float x[ROWS * 2], loss;
    fill_random(x, ROWS * 2, 3);
    if (learnt_open(&gan,
                    "recipe gan\nnetwork generator\ninput 3\ndense 8\ntanh\ndense 2\n"
                    "network discriminator\ninput 2\ndense 8\nbatch_norm\ntanh\ndense 1\n",
                    4) &&
        CHECK_EQUAL_INT(gan.step.count, 2) &&
        ready_open(&sides[0], rig, &gan.params, gan.step.programs[0]) &&
        ready_on(&sides[1], rig, sides[0].instance, gan.step.programs[1], NULL)) {
        copy_params(&start, &gan.params);
        ready_bind(&sides[0], gan.step.programs[0], (const char *[]){"x", "loss"},
                   (void *[]){x, &loss}, (int64_t[]){ROWS, 1}, 2, NULL, 0, 0);
        ready_bind(&sides[1], gan.step.programs[1], NULL, NULL, NULL, 0, NULL, 0, 0);
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
    learnt_close(&gan);
}

/* A restricted Boltzmann machine: the gradient is two outer products that no autodiff made. */
ON_BACKENDS(rbm_learns_by_contrastive_divergence)
{
    enum { VISIBLE = 6, SAMPLES = 8, STEPS = 2000 };
    struct learnt rbm;
    struct ready ready = {0};
    static float losses[STEPS];
    float x[SAMPLES * VISIBLE]; /* the first half on, or the second half on */
    for (int i = 0; i < SAMPLES * VISIBLE; i++)
        x[i] = (i % VISIBLE < VISIBLE / 2) == (i / VISIBLE % 2 == 0) ? 1 : 0;
    if (learnt_open(&rbm, "input 6\nrecipe rbm\ndense 4\nsigmoid\n", SAMPLES)) {
        rbm.params.control.rate = 0.5;
        if (ready_open(&ready, rig, &rbm.params, rbm.step.programs[0]) &&
            ready_bind(&ready, rbm.step.programs[0], (const char *[]){"x", "loss"},
                       (void *[]){x, losses}, (int64_t[]){SAMPLES, STEPS}, 2, NULL, 0, 0)) {
            ready_run(&ready, PARTS_ALL, 0, STEPS);
            CHECK(losses[0] > 0.2f);
            CHECK(losses[STEPS - 1] < 0.02f);
        }
    }
    ready_close(&ready);
    learnt_close(&rbm);
}

CHECK_MAIN
