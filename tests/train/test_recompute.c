/* test_recompute.c: a training that computes activations again learns the same, bit for bit, in
 * less memory; which cut is taken, and what is left as it was. */
#include "base/memory.h"
#include "core/pass/recompute.h"
#include "learners.h"
#include "parallel.h"
#include "random_networks.h"

/* Learns twice, the second time with activations computed again; how much less memory that took. */
static void learn_both(const struct lesson *lesson, const char *backend, const char *name,
                       double *share)
{
    struct pupil plain = {.lesson = lesson, .backend = backend, .real = DTYPE_F32}, again = plain;
    again.recompute = true;
    pupil_learn(&plain);
    pupil_learn(&again);
    *share = plain.bytes ? (double)again.bytes / (double)plain.bytes : 1;
    if (!CHECK_EQUAL_INT(plain.status, STATUS_OK) || !CHECK_EQUAL_INT(again.status, STATUS_OK))
        printf("    %s on %s: %s%s\n", name, backend, plain.message, again.message);
    else if (!CHECK(pupils_are_same(&plain, &again)) || !CHECK(*share <= 1))
        printf("    %s on %s: parameters differ by %g, memory × %.2f\n", name, backend,
               params_difference(&again.params, &plain.params, ROLE_PARAM), *share);
    params_free(&plain.params);
    params_free(&again.params);
}

static void check_learners(const char *backend, const char *optimiser)
{
    for (int n = 0; n < LEARNERS; n++) {
        const struct lesson lesson = {.network = learners[n].text,
                                      .optimiser = optimiser,
                                      .batch = 12,
                                      .steps = 5,
                                      .classes = learners[n].classes};
        double share;
        learn_both(&lesson, backend, learners[n].name, &share);
        CHECK(share < 0.9 || !strcmp(learners[n].name, "lenet") ||
              !strcmp(learners[n].name, "lstm"));
    }
}

TEST(learners_learn_the_same_ref)
{
    check_learners("ref", "sgd:rate=0.1");
    check_learners("ref", "adam:rate=0.01,decay=0.01");
}

TEST(learners_learn_the_same_simd)
{
    check_learners("simd", "sgd:rate=0.1");
    check_learners("simd", "adam:rate=0.01,clip=1");
}

/* The zoo's networks that a test can run, whatever their recipe. */
TEST(zoo_learns_the_same)
{
    static const struct {
        const char *name;
        int32_t classes;
    } zoo[] = {{"lenet", 10},      {"deep_mnist", 10}, {"digits_gru", 10}, {"lstm", 0}, {"gru", 0},
               {"autoencoder", 0}, {"vae", 0},         {"cvae", 10},       {"gan", 0},  {"rbm", 0},
               {"dcn", 10},        {"deconv", 0},      {"sensor_net", 0}};
    for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++) {
        const struct lesson lesson = {.network = zoo[i].name,
                                      .optimiser = "",
                                      .batch = 3,
                                      .steps = 2,
                                      .classes = zoo[i].classes};
        double share;
        learn_both(&lesson, "simd", zoo[i].name, &share);
    }
}

/* PRONY_RANDOM_NETWORKS=2000 looks at more of them. */
TEST(random_networks_learn_the_same)
{
    int smaller = 0, count = (int)random_count(60);
    for (int n = 0; n < count; n++) {
        unsigned seed;
        struct text text = {0};
        char name[40];
        double share;
        random_network((unsigned)n, &seed, &text);
        const struct lesson lesson = {.network = text_of(&text),
                                      .optimiser = n % 2 ? "sgd:rate=0.02" : "momentum",
                                      .batch = 1 + (int32_t)random_below(&seed, 9),
                                      .steps = 3};
        snprintf(name, sizeof name, "random %d", n);
        learn_both(&lesson, random_below(&seed, 2) ? "simd" : "ref", name, &share);
        smaller += share < 1;
        text_free(&text);
    }
    CHECK(smaller > count / 3);
}

/* A network's training, of parameters that have no values. */
struct drawn {
    struct network *network;
    struct params params;
    struct program *program;
};

static bool drawn_open(struct drawn *drawn, const char *network, int32_t batch,
                       enum program_use use)
{
    const struct compile_options options = {.batch = batch, .use = use};
    const struct lesson lesson = {.network = network};
    *drawn = (struct drawn){0};
    params_init(&drawn->params, DTYPE_F32);
    drawn->params.bare = true;
    return CHECK_OK(lesson_open(&lesson, &drawn->network)) &&
           CHECK_OK(network_compile(drawn->network, &drawn->params, &options, &drawn->program));
}

static void drawn_close(struct drawn *drawn)
{
    program_free(drawn->program);
    params_free(&drawn->params);
    network_free(drawn->network);
}

static uint64_t flop_of(const struct program *program, enum part part)
{
    uint64_t flop = 0;
    for (int32_t o = program->parts[part].from; o < program->parts[part].to; o++)
        flop += op_flop(program, &program->ops[o]);
    return flop;
}

/* Activations of the program, and how much smaller they get. */
static void check_memory(const char *network, double most)
{
    struct drawn drawn;
    struct program *again = NULL;
    if (drawn_open(&drawn, network, 4, USE_TRAINING) &&
        CHECK_OK(recompute(drawn.program, 0, &again))) {
        const double before = (double)drawn.program->role_bytes[ROLE_ACTIVATION],
                     after = (double)again->role_bytes[ROLE_ACTIVATION];
        if (!CHECK(after <= most * before))
            printf("    %s: %.1f of %.1f MB\n", network, after / 1e6, before / 1e6);
        CHECK_EQUAL_INT((int64_t)flop_of(again, PART_FORWARD),
                        (int64_t)flop_of(drawn.program, PART_FORWARD));
        CHECK(flop_of(again, PART_BACKWARD) - flop_of(drawn.program, PART_BACKWARD) <=
              flop_of(drawn.program, PART_FORWARD));
    }
    program_free(again);
    drawn_close(&drawn);
}

TEST(deep_networks_take_less)
{
    check_memory("resnet50", 0.35);
    check_memory("resnet152", 0.22);
    check_memory("vgg16", 0.7);
    check_memory("inception3", 0.35);
}

/* n equal layers keep about 2·√n of them, and compute nearly all of them twice. */
TEST(a_chain_keeps_the_root)
{
    struct text text = {0};
    struct drawn drawn;
    struct program *again = NULL;
    text_add(&text, "input 64\n");
    for (int i = 0; i < 100; i++)
        text_add(&text, "dense 64\ntanh\n");
    text_add(&text, "loss mse\n");
    if (drawn_open(&drawn, text_of(&text), 16, USE_TRAINING) &&
        CHECK_OK(recompute(drawn.program, 0, &again))) {
        const uint64_t layer = 16 * 64 * 4;
        CHECK(drawn.program->role_bytes[ROLE_ACTIVATION] >= 100 * layer);
        CHECK(again->role_bytes[ROLE_ACTIVATION] <= 25 * layer);
    }
    program_free(again);
    drawn_close(&drawn);
    text_free(&text);
}

/* Of several cuts that fit, the one that computes least again; more than there is room for is not
 * dropped. */
TEST(a_limit_saves_time)
{
    struct drawn drawn;
    uint64_t last_flop = UINT64_MAX;
    if (drawn_open(&drawn, "resnet18", 4, USE_TRAINING))
        for (int tenths = 6; tenths <= 10; tenths += 2) {
            const uint64_t before = drawn.program->role_bytes[ROLE_ACTIVATION];
            const uint64_t most = before / 10 * (uint64_t)tenths + (tenths == 10 ? 10 : 0);
            struct program *again = NULL;
            if (!CHECK_OK(recompute(drawn.program, most, &again)))
                break;
            const uint64_t flop = flop_of(again, PART_BACKWARD);
            CHECK(again->role_bytes[ROLE_ACTIVATION] <= most);
            CHECK(flop <= last_flop);
            last_flop = flop;
            if (tenths == 10)
                CHECK(again->hash == drawn.program->hash);
            program_free(again);
        }
    drawn_close(&drawn);
}

TEST(what_keeps_nothing_stays_as_it_is)
{
    static const char *const networks[] = {"resnet18", "input 3\ndense 2\nloss mse\n"};
    for (int i = 0; i < 2; i++) {
        struct drawn drawn;
        struct program *again = NULL;
        if (drawn_open(&drawn, networks[i], 2, i ? USE_TRAINING : USE_INFERENCE) &&
            CHECK_OK(recompute(drawn.program, 0, &again)))
            CHECK(again->hash == drawn.program->hash);
        program_free(again);
        drawn_close(&drawn);
    }
}

TEST(every_allocation_may_fail)
{
    struct drawn drawn;
    bool done = !drawn_open(&drawn, "lenet", 2, USE_TRAINING);
    for (long nth = 1; !done; nth += nth / 20 + 1) {
        struct program *again = NULL;
        memory_fail_at(nth);
        const enum status status = recompute(drawn.program, 0, &again);
        memory_fail_at(0);
        done = status == STATUS_OK;
        if (!done && (!CHECK_EQUAL_INT(status, STATUS_MEMORY) || !CHECK(!again)))
            break;
        program_free(again);
    }
    drawn_close(&drawn);
}

CHECK_MAIN
