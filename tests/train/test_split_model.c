/* test_split_model.c: ranks that share out weights learn what one worker learns, in double
 * precision; which weights they share out, and that the slices make up the whole again. */
#include "core/pass/split_model.h"
#include "learners.h"
#include "random_networks.h"

enum { STEPS = 50, BATCH = 12 };

/* One network's training, by one worker and by several. */
struct learning {
    struct network *network;
    struct params whole; /* as it starts */
    struct params alone; /* what one worker learnt … */
    struct params ranks; /* … and what all ranks did, together */
    struct program *program;
    struct learner_data data;
    int64_t steps;
};

/* As any rank of several, or as the only one. */
static enum status learn(struct learning *learning, struct comm *comm, struct split_ranks *split,
                         struct params *out)
{
    struct engine engine = {0};
    struct rank_plan rank = {0};
    struct named_view views[LEARNER_VIEWS];
    const struct backend *backend;
    const struct device_options options = {.threads = 1, .isa = ISA_AVX512};
    const struct binding binding = {.order = learning->data.order, .order_count = LEARNER_ROWS};
    enum status status;
    learner_views(&learning->data, views);
    TRY_OR(done, registry_find(rig_registry(), "ref", &backend));
    TRY_OR(done, engine_open(&engine, backend, &options));
    const struct plan_options plan = {.slots = 1, .comm = comm};
    TRY_OR(done, rank_plan_open(&rank, &engine, split, &learning->whole, &plan));
    TRY_OR(done, rank_plan_bind(&rank, views, LEARNER_VIEWS, &binding));
    TRY_OR(done, backend->run(rank.plan, PARTS_ALL, 0, learning->steps));
    TRY_OR(done, backend->sync(rank.plan));
    TRY_OR(done, rank_plan_download(&rank));
    TRY_OR(done, rank_plan_gather(&rank, comm, out));
done:
    rank_plan_close(&rank);
    engine_close(&engine);
    split_ranks_free(split);
    return status;
}

static enum status learn_rank(struct comm *comm, void *context)
{
    struct learning *learning = context;
    struct split_ranks split;
    const struct model_options options = {.ranks = comm->size, .own = comm->rank};
    TRY(split_model(learning->program, &learning->whole, &options, &split));
    return learn(learning, comm, &split, &learning->ranks);
}

static bool learning_open(struct learning *learning, const char *name, const char *text,
                          int32_t classes, const char *optimiser, int64_t steps)
{
    const struct compile_options options = {
        .batch = BATCH, .use = USE_TRAINING, .classes = classes, .optimiser = optimiser};
    *learning = (struct learning){.steps = steps};
    params_init(&learning->whole, DTYPE_F64);
    if (!CHECK_OK(network_parse(name, text, strlen(text), &learning->network)) ||
        !CHECK_OK(
            network_compile(learning->network, &learning->whole, &options, &learning->program))) {
        printf("%s", text);
        return false;
    }
    params_fill(&learning->whole, 11);
    CHECK_OK(network_rate(learning->network, optimiser, &learning->whole.control.rate));
    learner_data_open(&learning->data, learning->program, learning->network, classes);
    CHECK_OK(learner_copy(&learning->alone, &learning->whole));
    return true;
}

static void learning_close(struct learning *learning)
{
    learner_data_close(&learning->data);
    program_free(learning->program);
    params_free(&learning->whole);
    params_free(&learning->alone);
    network_free(learning->network);
}

/* One worker: the program as it is. */
static bool learn_alone(struct learning *learning)
{
    struct rig rig;
    struct ready ready = {0};
    struct view views[LEARNER_VIEWS];
    struct named_view named[LEARNER_VIEWS];
    struct binding binding = {
        .views = views, .order = learning->data.order, .order_count = LEARNER_ROWS};
    learner_views(&learning->data, named);
    if (!CHECK(rig_open(&rig, "ref")) ||
        !ready_open(&ready, &rig, &learning->alone, learning->program))
        return false;
    for (int i = 0; i < LEARNER_VIEWS; i++) {
        const int32_t tensor = program_find(learning->program, named[i].role, named[i].name);
        if (tensor >= 0)
            views[binding.view_count++] = (struct view){tensor, named[i].data, named[i].rows};
    }
    bool ok = CHECK_OK(rig.backend->bind(ready.plan, &binding)) &&
              ready_run(&ready, PARTS_ALL, 0, learning->steps) &&
              CHECK_OK(rig.backend->download(ready.instance, &learning->alone));
    ready_close(&ready);
    rig_close(&rig);
    return ok;
}

/* The largest difference of an element, to the largest element of its entry. */
static double largest_difference(const struct params *a, const struct params *b)
{
    double most = 0;
    for (int32_t e = 0; e < a->count; e++) {
        const double *x = params_data(a, e), *y = params_data(b, e);
        double size = 1e-3;
        for (int64_t i = 0, n = shape_count(&a->entries[e].shape); i < n; i++)
            if (a->entries[e].dtype == DTYPE_F64)
                size = fmax(size, fabs(y[i]));
        for (int64_t i = 0, n = shape_count(&a->entries[e].shape); i < n; i++)
            if (a->entries[e].dtype == DTYPE_F64)
                most = isnan(x[i]) ? HUGE_VAL : fmax(most, fabs(x[i] - y[i]) / size);
    }
    return most;
}

/* Is what so many ranks learn within `most` of what one does? */
static void check_ranks(struct learning *learning, int ranks, double most)
{
    CHECK_OK(learner_copy(&learning->ranks, &learning->whole));
    for (int32_t e = 0; e < learning->ranks.count; e++) /* what nobody gives back shows */
        memset(params_data(&learning->ranks, e), 0xff, (size_t)learning->ranks.entries[e].bytes);
    if (on_ranks(ranks, learn_rank, learning)) {
        const double off = largest_difference(&learning->ranks, &learning->alone);
        if (!CHECK(off <= most) ||
            !CHECK_EQUAL_INT(learning->ranks.control.step, learning->alone.control.step))
            printf("    %s, %d ranks: off by %g\n", learning->network->name, ranks, off);
    }
    params_free(&learning->ranks);
}

static void check_learners(const char *optimiser)
{
    for (int n = 0; n < LEARNERS; n++) {
        struct learning learning;
        const struct learner *learner = &learners[n];
        if (learning_open(&learning, learner->name, learner->text, learner->classes, optimiser,
                          STEPS) &&
            learn_alone(&learning))
            for (int ranks = 2; ranks <= 4; ranks++)
                check_ranks(&learning, ranks, 1e-12);
        learning_close(&learning);
    }
}

TEST(ranks_learn_what_one_worker_learns_sgd)
{
    check_learners("sgd:rate=0.1");
}

TEST(ranks_learn_what_one_worker_learns_adam)
{
    check_learners("adam:rate=0.01");
}

/* Which weights are shared out: both of a pair, of attention all four. */
static void check_axes(const char *text, int ranks, const char *expected)
{
    struct learning learning;
    struct split_ranks split = {0};
    struct text found = {0};
    const struct model_options options = {.ranks = ranks, .own = -1};
    if (learning_open(&learning, "test", text, 0, "sgd", 1) &&
        CHECK_OK(split_model(learning.program, &learning.whole, &options, &split)))
        for (int32_t e = 0; e < split.ranks[0].params.count; e++) {
            const struct entry *entry = &split.ranks[0].params.entries[e];
            const int32_t axis = split.ranks[0].slices[e].axis;
            if (entry->role == ROLE_PARAM && axis >= 0)
                text_printf(&found, "%s/%d:%lld ", entry->name, axis,
                            (long long)entry->shape.dim[axis]);
        }
    CHECK_EQUAL_TEXT(text_of(&found), expected);
    text_free(&found);
    split_ranks_free(&split);
    learning_close(&learning);
}

TEST(pairs_of_weights_are_shared_out)
{
    check_axes("input 5\ndense 8\nrelu\ndense 4\ntanh\ndense 6\ndense 2\nloss mse\n", 2,
               "dense1.weight/1:4 dense1.bias/0:4 dense2.weight/0:4 dense3.weight/1:3 "
               "dense3.bias/0:3 dense4.weight/0:3 ");
    /* Seven channels among three ranks; a norm of channels and a view in between. */
    check_axes("input 2x4x4\nconv 7 3x3 pad=1\nbatch_norm\nrelu\nmax_pool 2\nflatten\ndense 3\n"
               "loss mse\n",
               3,
               "conv1.weight/0:2 conv1.bias/0:2 batch_norm1.scale/0:2 batch_norm1.shift/0:2 "
               "dense1.weight/0:8 ");
    /* Rows of a table, of which ranks give 0 where they have none. */
    check_axes("input 6 tokens=9\nembedding 4\nflatten\ndense 3\nloss mse\n", 2,
               "embedding1.weight/0:4 ");
    /* Dropout draws by the place, softmax is over all features, one weight has no partner. */
    check_axes("input 5\ndense 8\ndropout 0.5\ndense 4\nsoftmax\ndense 2\nloss mse\n", 2, "");
    /* Fewer features than ranks. */
    check_axes("input 5\ndense 3\nrelu\ndense 4\nloss mse\n", 4, "");
}

/* ---- random networks ---- */

static void check_random(unsigned number)
{
    unsigned seed;
    struct learning learning;
    struct text text = {0};
    random_network(number, &seed, &text);
    char name[40];
    snprintf(name, sizeof name, "random %u", number);
    if (learning_open(&learning, name, text_of(&text), 0, number % 2 ? "sgd:rate=0.02" : "momentum",
                      4) &&
        learn_alone(&learning))
        check_ranks(&learning, 2 + (int)random_below(&seed, 4), 1e-11);
    learning_close(&learning);
    text_free(&text);
}

/* A norm over two or three features divides by small deviations, and makes rounding ten times as
 * large. */
TEST(random_networks_agree)
{
    for (unsigned n = 0, count = random_count(20); n < count; n++)
        check_random(n);
}

CHECK_MAIN
