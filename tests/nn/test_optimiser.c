/* test_optimiser.c: every optimiser against a loop in double precision written down here from its
 * definition, over 20 updates; schedules; gradients that accumulate; how settings are read. */
#include "core/schedule.h"
#include "nn/optimiser.h"
#include "rig.h"

#include <stdio.h>

enum { IN = 3, ROWS = 4, STEPS = 20 };

static const char net[] = "input 3\ndense 1 bias=0\nloss mse\n";

struct lesson {
    struct network *network;
    struct params params;
    struct program *program;
    struct ready ready;
    double x[ROWS * IN], target[ROWS];
};

static bool lesson_open(struct lesson *lesson, struct rig *rig, const char *optimiser,
                        const char *schedule, int32_t accumulate)
{
    *lesson = (struct lesson){0};
    float x[ROWS * IN], target[ROWS];
    fill_random(x, ROWS * IN, 1);
    fill_random(target, ROWS, 2);
    for (int i = 0; i < ROWS * IN; i++)
        lesson->x[i] = (double)x[i];
    for (int i = 0; i < ROWS; i++)
        lesson->target[i] = (double)target[i];
    params_init(&lesson->params, DTYPE_F64);
    struct compile_options options = {.batch = ROWS,
                                      .use = USE_TRAINING,
                                      .optimiser = optimiser,
                                      .schedule = schedule,
                                      .accumulate = accumulate};
    if (!CHECK_OK(network_parse("test", net, strlen(net), &lesson->network)) ||
        !CHECK_OK(network_compile(lesson->network, &lesson->params, &options, &lesson->program)))
        return false;
    params_fill(&lesson->params, 7);
    return CHECK_OK(network_rate(lesson->network, optimiser, &lesson->params.control.rate)) &&
           ready_open(&lesson->ready, rig, &lesson->params, lesson->program) &&
           ready_bind(&lesson->ready, lesson->program, (const char *[]){"x", "target"},
                      (void *[]){lesson->x, lesson->target}, (int64_t[]){ROWS, ROWS}, 2, NULL, 0,
                      0);
}

static void lesson_close(struct lesson *lesson)
{
    ready_close(&lesson->ready);
    program_free(lesson->program);
    params_free(&lesson->params);
    network_free(lesson->network);
}

static double *lesson_weights(struct lesson *lesson)
{
    return params_data(&lesson->params, params_find(&lesson->params, "dense1.weight"));
}

/* The gradient of the mean of (x·w - target)². */
static void slope_at(const struct lesson *lesson, const double *w, double *g)
{
    for (int i = 0; i < IN; i++)
        g[i] = 0;
    for (int row = 0; row < ROWS; row++) {
        const double *x = lesson->x + row * IN;
        double error = -lesson->target[row];
        for (int i = 0; i < IN; i++)
            error += x[i] * w[i];
        for (int i = 0; i < IN; i++)
            g[i] += 2 * error * x[i] / ROWS;
    }
}

/* Settings are floats in a program; the loops use what a float makes of them. */
#define SET(value) ((double)(value##f))

/* One element of a parameter: its weight, two numbers of state, the update's number from 1. */
typedef void rule(double *w, double g, double *a, double *b, int step);

static void sgd(double *w, double g, double *a, double *b, int step)
{
    (void)a, (void)b, (void)step;
    *w -= 0.05 * (g + SET(0.1) * *w);
}

static void momentum(double *w, double g, double *a, double *b, int step)
{
    (void)b, (void)step;
    *a = SET(0.8) * *a + g + SET(0.1) * *w;
    *w -= 0.05 * *a;
}

static void nesterov(double *w, double g, double *a, double *b, int step)
{
    (void)b, (void)step;
    *a = SET(0.9) * *a + g;
    *w -= 0.01 * (g + SET(0.9) * *a);
}

static void adagrad(double *w, double g, double *a, double *b, int step)
{
    (void)b, (void)step;
    g += SET(0.01) * *w;
    *a += g * g;
    *w -= 0.1 * g / (sqrt(*a) + SET(1e-10));
}

static void rmsprop(double *w, double g, double *a, double *b, int step)
{
    (void)b, (void)step;
    *a = SET(0.99) * *a + (1 - SET(0.99)) * g * g;
    *w -= 0.01 * g / (sqrt(*a) + SET(1e-8));
}

static void adam(double *w, double g, double *a, double *b, int step)
{
    g += SET(0.1) * *w;
    *a = SET(0.9) * *a + (1 - SET(0.9)) * g;
    *b = SET(0.999) * *b + (1 - SET(0.999)) * g * g;
    double mean = *a / (1 - pow(SET(0.9), step)), square = *b / (1 - pow(SET(0.999), step));
    *w -= 0.02 * mean / (sqrt(square) + SET(1e-8));
}

static void adamw(double *w, double g, double *a, double *b, int step)
{
    *w *= 1 - 0.001 * SET(0.01);
    *a = SET(0.8) * *a + (1 - SET(0.8)) * g;
    *b = SET(0.999) * *b + (1 - SET(0.999)) * g * g;
    double mean = *a / (1 - pow(SET(0.8), step)), square = *b / (1 - pow(SET(0.999), step));
    *w -= 0.001 * mean / (sqrt(square) + SET(1e-8));
}

/* Steps so large that signs turn. */
static void rprop(double *w, double g, double *a, double *b, int step)
{
    double factor = g * *a > 0 ? SET(1.2) : g * *a < 0 ? 0.5 : 1;
    *b = fmin(fmax((step == 1 ? 0.3 : *b) * factor, SET(1e-6)), 50);
    if (g * *a < 0)
        g = 0;
    *w -= g > 0 ? *b : g < 0 ? -*b : 0;
    *a = g;
}

static const struct {
    const char *flag;
    rule *rule;
} optimisers[] = {
    {"sgd:rate=0.05,decay=0.1", sgd},
    {"momentum:rate=0.05,momentum=0.8,decay=0.1", momentum},
    {"nesterov", nesterov},
    {"adagrad:rate=0.1,decay=0.01", adagrad},
    {"rmsprop", rmsprop},
    {"adam:rate=0.02,decay=0.1", adam},
    {"adamw:beta1=0.8", adamw},
    {"rprop:rate=0.3", rprop},
};

enum { OPTIMISERS = sizeof optimisers / sizeof *optimisers };

TEST(every_optimiser_follows_its_definition)
{
    struct rig rig;
    CHECK(rig_open(&rig, "ref"));
    for (int o = 0; o < OPTIMISERS; o++) {
        struct lesson lesson;
        double w[IN], g[IN], a[IN] = {0}, b[IN] = {0};
        if (lesson_open(&lesson, &rig, optimisers[o].flag, NULL, 0)) {
            memcpy(w, lesson_weights(&lesson), sizeof w);
            for (int step = 1; step <= STEPS; step++) {
                slope_at(&lesson, w, g);
                for (int i = 0; i < IN; i++)
                    optimisers[o].rule(&w[i], g[i], &a[i], &b[i], step);
            }
            ready_run(&lesson.ready, PARTS_ALL, 0, STEPS);
            CHECK_OK(rig.backend->download(lesson.ready.instance, &lesson.params));
            for (int i = 0; i < IN; i++)
                if (!CHECK_NEAR(lesson_weights(&lesson)[i], w[i], 1e-10))
                    printf("    %s, element %d\n", optimisers[o].flag, i);
        }
        lesson_close(&lesson);
    }
    rig_close(&rig);
}

TEST(every_optimiser_is_tested)
{
    int32_t count;
    const struct optimiser_kind *kinds = optimiser_kinds(&count);
    for (int32_t k = 0; k < count; k++) {
        bool found = false;
        for (int o = 0; o < OPTIMISERS; o++) {
            size_t length = strcspn(optimisers[o].flag, ":");
            found |= strlen(kinds[k].name) == length &&
                     !strncmp(optimisers[o].flag, kinds[k].name, length);
        }
        if (!CHECK(found))
            printf("    %s has no loop\n", kinds[k].name);
    }
}

/* The same batch twice, each with half the weight, is that batch; afterwards gradients are 0. */
TEST(accumulated_gradients_are_used_once)
{
    struct rig rig;
    CHECK(rig_open(&rig, "ref"));
    for (int o = 0; o < OPTIMISERS; o++) {
        struct lesson plain, twice;
        double left[IN] = {1};
        bool ok = lesson_open(&plain, &rig, optimisers[o].flag, NULL, 0);
        ok &= lesson_open(&twice, &rig, optimisers[o].flag, NULL, 2);
        for (int step = 0; ok && step < 5; step++) {
            ready_run(&plain.ready, PARTS_ALL, 0, 1);
            ready_run(&twice.ready, PARTS_ALL & ~PART_BIT(PART_UPDATE), 0, 2);
            ready_run(&twice.ready, PART_BIT(PART_UPDATE), 0, 1);
        }
        if (ok && CHECK_OK(rig.backend->download(plain.ready.instance, &plain.params)) &&
            CHECK_OK(rig.backend->download(twice.ready.instance, &twice.params)) &&
            CHECK_OK(rig.backend->fetch(twice.ready.plan,
                                        program_find(twice.program, ROLE_GRAD, "d(dense1.weight)"),
                                        left)))
            for (int i = 0; i < IN; i++) {
                CHECK_NEAR(lesson_weights(&twice)[i], lesson_weights(&plain)[i], 1e-12);
                CHECK(left[i] == 0);
            }
        lesson_close(&plain);
        lesson_close(&twice);
    }
    rig_close(&rig);
}

/* On every backend, in f32, with clipping: as the reference. */
ON_BACKENDS(optimisers_agree_with_the_reference)
{
    static const char deep[] = "input 3\ndense 5\ntanh\ndense 2\nloss mse\n";
    struct rig reference, *rigs[2] = {rig, &reference};
    float x[ROWS * IN], target[ROWS * 2];
    fill_random(x, ROWS * IN, 1);
    fill_random(target, ROWS * 2, 2);
    CHECK(rig_open(&reference, "ref"));
    for (int o = 0; o < OPTIMISERS; o++) {
        struct params params[2];
        for (int side = 0; side < 2; side++) {
            struct network *network = NULL;
            struct program *program = NULL;
            struct ready ready = {0};
            char flag[100];
            snprintf(flag, sizeof flag, "%s%cclip=0.5", optimisers[o].flag,
                     strchr(optimisers[o].flag, ':') ? ',' : ':');
            struct compile_options options = {
                .batch = ROWS, .use = USE_TRAINING, .optimiser = flag};
            params_init(&params[side], DTYPE_F32);
            if (CHECK_OK(network_parse("test", deep, strlen(deep), &network)) &&
                CHECK_OK(network_compile(network, &params[side], &options, &program))) {
                params_fill(&params[side], 3);
                CHECK_OK(network_rate(network, flag, &params[side].control.rate));
                if (ready_open(&ready, rigs[side], &params[side], program) &&
                    ready_bind(&ready, program, (const char *[]){"x", "target"},
                               (void *[]){x, target}, (int64_t[]){ROWS, ROWS}, 2, NULL, 0, 0)) {
                    ready_run(&ready, PARTS_ALL, 0, 10);
                    CHECK_OK(rigs[side]->backend->download(ready.instance, &params[side]));
                }
            }
            ready_close(&ready);
            program_free(program);
            network_free(network);
        }
        if (!CHECK(params_difference(&params[0], &params[1], ROLE_PARAM) < 1e-4))
            printf("    %s\n", optimisers[o].flag);
        params_free(&params[0]);
        params_free(&params[1]);
    }
    rig_close(&reference);
}

/* A parameter that is nothing but what the rates made of it: sgd with the gradient's sum. */
TEST(schedules_change_the_rate)
{
    struct rig rig;
    struct lesson lesson;
    double w[IN], g[IN];
    CHECK(rig_open(&rig, "ref"));
    if (lesson_open(&lesson, &rig, "sgd:rate=0.2", "cosine:period=10,least=0.25,warmup=3", 0)) {
        memcpy(w, lesson_weights(&lesson), sizeof w);
        for (int count = 0; count < STEPS; count++) {
            double part = count < 10 ? count / 10.0 : 1;
            double rate = 0.2 * (0.25 + 0.75 * 0.5 * (1 + cos(3.14159265358979323846 * part)));
            if (count < 3)
                rate *= (count + 1) / 3.0;
            slope_at(&lesson, w, g);
            for (int i = 0; i < IN; i++)
                w[i] -= rate * g[i];
        }
        ready_run(&lesson.ready, PARTS_ALL, 0, STEPS);
        CHECK_OK(rig.backend->download(lesson.ready.instance, &lesson.params));
        for (int i = 0; i < IN; i++)
            CHECK_NEAR(lesson_weights(&lesson)[i], w[i], 1e-12);
    }
    lesson_close(&lesson);
    rig_close(&rig);
}

TEST(schedule_factors)
{
    CHECK(schedule_factor(SCHEDULE_CONSTANT, 0, 0, 0, 1000) == 1);
    CHECK_NEAR(schedule_factor(SCHEDULE_CONSTANT, 4, 0, 0, 0), 0.25, 1e-15);
    CHECK(schedule_factor(SCHEDULE_CONSTANT, 4, 0, 0, 3) == 1);
    CHECK(schedule_factor(SCHEDULE_STEP, 0, 10, 0.5, 9) == 1);
    CHECK(schedule_factor(SCHEDULE_STEP, 0, 10, 0.5, 10) == 0.5);
    CHECK(schedule_factor(SCHEDULE_STEP, 0, 10, 0.5, 39) == 0.125);
    CHECK(schedule_factor(SCHEDULE_COSINE, 0, 10, 0.1, 0) == 1);
    CHECK_NEAR(schedule_factor(SCHEDULE_COSINE, 0, 10, 0.1, 5), 0.55, 1e-15);
    CHECK_NEAR(schedule_factor(SCHEDULE_COSINE, 0, 10, 0.1, 10), 0.1, 1e-15);
    CHECK_NEAR(schedule_factor(SCHEDULE_COSINE, 0, 10, 0.1, 11), 0.1, 1e-15);
}

/* Settings in a network's text, and flags that go before them. */
TEST(flags_go_before_the_text)
{
    static const char text[] = "input 3\ndense 1\n"
                               "optimiser adam rate=0.5 beta1=0.8 clip=1\n"
                               "schedule step period=100 factor=0.5\n";
    struct network *network = NULL;
    double rate = 0;
    if (!CHECK_OK(network_parse("test", text, sizeof text - 1, &network)))
        return;
    CHECK(optimiser_value(&network->optimiser, "beta1") == 0.8);
    CHECK(optimiser_value(&network->optimiser, "beta2") == 0.999);
    CHECK(optimiser_value(&network->optimiser, "clip") == 1);
    CHECK(network->schedule.kind == SCHEDULE_STEP && network->schedule.period == 100 &&
          network->schedule.factor == 0.5);
    CHECK_OK(network_rate(network, NULL, &rate));
    CHECK(rate == 0.5);
    CHECK_OK(network_rate(network, "adamw", &rate));
    CHECK(rate == 0.001);
    CHECK_OK(network_rate(network, "momentum:momentum=0.5,rate=2", &rate));
    CHECK(rate == 2);
    network_free(network);
}

TEST(wrong_settings_are_named)
{
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"optimiser adm", "test:3:11: there is no optimiser 'adm'; there are: sgd, momentum, "
                          "nesterov, adagrad, rmsprop, adam, adamw, rprop"},
        {"optimiser adam bta=1", "test:3:16: adam has no argument 'bta'; it has: rate=0.001 "
                                 "beta1=0.9 beta2=0.999 epsilon=1e-8 decay=0 clip=0"},
        {"optimiser sgd rate=0", "test:3:11: rate is 0, expected a number above 0"},
        {"optimiser sgd rate=fast", "test:3:20: rate is 'fast', expected a number"},
        {"optimiser adam beta2=1", "test:3:11: beta2 is 1, expected a number below 1"},
        {"optimiser adam epsilon=0",
         "test:3:11: epsilon is 0, expected a number above 0 that a float can hold"},
        {"optimiser rmsprop epsilon=1e-60",
         "test:3:11: epsilon is 1e-60, expected a number above 0 that a float can hold"},
        {"optimiser sgd decay=-1", "test:3:11: decay is -1, expected 0 or more"},
        {"schedule", "test:3:9: there is no schedule ''; there are: constant, step, cosine"},
        {"schedule cosine", "test:3:16: cosine needs period"},
        {"schedule step period=0.5",
         "test:3:22: period is '0.5', expected a whole number from 1 to 1000000000"},
        {"schedule constant warmup=1.5",
         "test:3:10: warmup is 1.5, expected a whole number of updates"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct network *network = NULL;
        char text[200];
        snprintf(text, sizeof text, "input 3\ndense 1\n%s\n", wrong[i].text);
        CHECK(network_parse("test", text, strlen(text), &network) == STATUS_INPUT);
        CHECK_EQUAL_TEXT(status_message(), wrong[i].message);
    }
    struct optimiser optimiser;
    struct schedule schedule;
    CHECK_STATUS(STATUS_INPUT, optimiser_parse("adam:beta1=0.9,,", &optimiser));
    CHECK_MESSAGE("optimiser:1:15: found nothing behind ',', expected setting=value");
    CHECK(optimiser_parse("sgd:rate", &optimiser) == STATUS_INPUT);
    CHECK_EQUAL_TEXT(status_message(), "optimiser:1:5: rate is 'rate', expected a number");
    CHECK(schedule_parse("cosine:period=10<", &schedule) == STATUS_INPUT);
    CHECK_EQUAL_TEXT(status_message(), "schedule:1:17: found '<', expected NAME:setting=value,…");
}

CHECK_MAIN
