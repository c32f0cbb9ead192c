/* test_pipeline.c: a network in stages learns what one worker learns with the same micro-batches,
 * bit for bit. */
#include "learners.h"
#include "random_networks.h"
#include "train/workers/pipeline.h"

enum { STEPS = 50, MICROS = 4, BATCH = 12 };

/* One network's training, by one worker and by several. */
struct learning {
    const char *backend;
    struct network *network;
    struct params whole;  /* as it starts */
    struct params alone;  /* what one worker learnt … */
    struct params stages; /* … and what the stages did, together */
    struct program *program;
    struct learner_data data;
    enum pipeline_schedule schedule;
    bool recompute; /* the stages do; one worker never does */
    int64_t steps;
    float alone_loss[STEPS * MICROS];
};

static struct named_view *views_of(struct learner_data *data, struct named_view views[4])
{
    learner_views(data, views);
    views[3] = (struct named_view){ROLE_OUTPUT, "loss", data->loss, STEPS * MICROS};
    return views;
}

static struct binding order_of(const struct learner_data *data)
{
    return (struct binding){.order = data->order, .order_count = LEARNER_ROWS};
}

/* One worker: each micro-batch forward and back, then the update. */
static bool learn_alone(struct learning *learning)
{
    struct rig rig;
    struct ready ready = {0};
    struct program *fused = NULL;
    struct view views[4];
    struct named_view named[4];
    struct binding binding = order_of(&learning->data);
    const unsigned learn =
        PART_BIT(PART_PREPARE) | PART_BIT(PART_FORWARD) | PART_BIT(PART_BACKWARD);
    CHECK_OK(learner_copy(&learning->alone, &learning->whole));
    if (!CHECK(rig_open(&rig, learning->backend)) ||
        !CHECK_OK(fuse(learning->program, rig.backend, rig.device, &fused)) ||
        !ready_open(&ready, &rig, &learning->alone, fused))
        return false;
    binding.views = views;
    views_of(&learning->data, named);
    for (int i = 0; i < 4; i++) {
        int32_t tensor = program_find(fused, named[i].role, named[i].name);
        if (tensor >= 0)
            views[binding.view_count++] = (struct view){tensor, named[i].data, named[i].rows};
    }
    bool ok = CHECK_OK(rig.backend->bind(ready.plan, &binding));
    for (int64_t step = 0; ok && step < learning->steps; step++)
        ok = ready_run(&ready, learn, 0, MICROS) && ready_run(&ready, PART_BIT(PART_UPDATE), 0, 1);
    ok = ok && CHECK_OK(rig.backend->download(ready.instance, &learning->alone));
    memcpy(learning->alone_loss, learning->data.loss, sizeof learning->alone_loss);
    memset(learning->data.loss, 0, sizeof learning->data.loss);
    ready_close(&ready);
    program_free(fused);
    rig_close(&rig);
    return ok;
}

/* One of several. Each has its own device; the first gets what all have learnt. */
static enum status learn_stage(struct comm *comm, void *context)
{
    struct learning *learning = context;
    struct engine engine = {.recompute = learning->recompute};
    struct pipeline pipeline = {0};
    struct named_view views[4];
    const struct backend *backend;
    const struct device_options options = {.threads = 1, .isa = ISA_AVX512};
    const struct binding binding = order_of(&learning->data);
    const struct pipeline_setup setup = {
        .comm = comm, .micros = MICROS, .schedule = learning->schedule};
    enum status status;
    TRY_OR(done, registry_find(rig_registry(), learning->backend, &backend));
    TRY_OR(done, engine_open(&engine, backend, &options));
    TRY_OR(done, pipeline_open(&pipeline, &engine, learning->program, &learning->whole, &setup));
    TRY_OR(done, rank_plan_bind(&pipeline.rank, views_of(&learning->data, views), 4, &binding));
    TRY_OR(done, pipeline_run(&pipeline, learning->steps));
    TRY_OR(done, rank_plan_download(&pipeline.rank));
    TRY_OR(done, rank_plan_gather(&pipeline.rank, comm, &learning->stages));
done:
    pipeline_close(&pipeline);
    engine_close(&engine);
    return status;
}

static bool learning_open(struct learning *learning, const struct learner *network,
                          const char *backend, const char *optimiser, int64_t steps)
{
    const struct compile_options options = {
        .batch = BATCH, .use = USE_TRAINING, .classes = network->classes, .optimiser = optimiser};
    *learning = (struct learning){.backend = backend, .steps = steps};
    params_init(&learning->whole, DTYPE_F32);
    if (!CHECK_OK(network_parse(network->name, network->text, strlen(network->text),
                                &learning->network)) ||
        !CHECK_OK(pipeline_compile(learning->network, &learning->whole, &options, MICROS,
                                   &learning->program)))
        return false;
    params_fill(&learning->whole, 11);
    double rate;
    CHECK_OK(network_rate(learning->network, optimiser, &rate));
    learning->whole.control.rate = rate;
    learner_data_open(&learning->data, learning->program, learning->network, network->classes);
    return learn_alone(learning);
}

static void learning_close(struct learning *learning)
{
    learner_data_close(&learning->data);
    program_free(learning->program);
    params_free(&learning->whole);
    params_free(&learning->alone);
    network_free(learning->network);
}

/* Do so many stages give the same parameters, statistics, moments and losses? */
static void check_stages(struct learning *learning, int stages)
{
    CHECK_OK(learner_copy(&learning->stages, &learning->whole));
    memset(learning->data.loss, 0, sizeof learning->data.loss);
    if (on_ranks(stages, learn_stage, learning) &&
        (!CHECK(same_params(&learning->stages, &learning->alone)) ||
         !CHECK(!memcmp(learning->alone_loss, learning->data.loss, sizeof learning->alone_loss))))
        printf("    %s on %s, %d stages, %s%s: parameters differ by %g\n", learning->network->name,
               learning->backend, stages, pipeline_schedule_name(learning->schedule),
               learning->recompute ? ", recompute" : "",
               params_difference(&learning->stages, &learning->alone, ROLE_PARAM));
    params_free(&learning->stages);
}

static void check_network(const char *backend, const char *optimiser)
{
    for (int n = 0; n < LEARNERS; n++) {
        struct learning learning;
        if (learning_open(&learning, &learners[n], backend, optimiser, STEPS))
            for (int stages = 2; stages <= 4; stages++) {
                learning.schedule = stages == 3 ? PIPELINE_GPIPE : PIPELINE_1F1B;
                learning.recompute = stages != 2;
                check_stages(&learning, stages);
            }
        CHECK(params_difference(&learning.alone, &learning.whole, ROLE_PARAM) > 1e-3);
        learning_close(&learning);
    }
}

TEST(stages_learn_what_one_worker_learns_ref_sgd)
{
    check_network("ref", "sgd:rate=0.1");
}

TEST(stages_learn_what_one_worker_learns_ref_adam)
{
    check_network("ref", "adam:rate=0.01");
}

TEST(stages_learn_what_one_worker_learns_simd_sgd)
{
    check_network("simd", "sgd:rate=0.1");
}

TEST(stages_learn_what_one_worker_learns_simd_adam)
{
    check_network("simd", "adam:rate=0.01");
}

/* So many stages, or as many as there are layers for. */
static int most_stages(const struct learning *learning, int wanted)
{
    for (; wanted > 1; wanted--) {
        const struct pipeline_options options = {.stages = wanted, .micros = MICROS, .own = -1};
        struct split_ranks split;
        if (split_pipeline(learning->program, &learning->whole, &options, &split) != STATUS_OK)
            continue;
        split_ranks_free(&split);
        break;
    }
    return wanted;
}

static void check_random(unsigned number)
{
    unsigned seed;
    struct learning learning;
    struct text text = {0};
    char name[40];
    random_network(number, &seed, &text);
    snprintf(name, sizeof name, "random %u", number);
    const struct learner network = {name, text_of(&text), 0};
    if (learning_open(&learning, &network, number % 3 ? "simd" : "ref",
                      number % 2 ? "sgd:rate=0.02" : "adam:rate=0.01", 4)) {
        learning.schedule = random_below(&seed, 2) ? PIPELINE_GPIPE : PIPELINE_1F1B;
        learning.recompute = random_below(&seed, 2);
        check_stages(&learning, most_stages(&learning, 2 + (int)random_below(&seed, 4)));
    } else {
        printf("    %s:\n%s", name, text_of(&text));
    }
    learning_close(&learning);
    text_free(&text);
}

TEST(random_networks_agree)
{
    for (unsigned n = 0, count = random_count(20); n < count; n++)
        check_random(n);
}

CHECK_MAIN
