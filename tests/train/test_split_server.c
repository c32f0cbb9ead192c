/* test_split_server.c: workers and servers learn what one worker learns, in double precision; who
 * has which parameters; asynchronous servers, and how stale gradients are. */
#include "core/comm/turns.h"
#include "core/pass/split_data.h"
#include "core/pass/split_server.h"
#include "learners.h"

#include <stdatomic.h>

enum { STEPS = 50, BATCH = 11, VIEWS = 3 };

/* One network's training, by one worker and by several. */
struct learning {
    const struct learner *learner;
    const char *optimiser;
    struct network *network;
    struct params whole, alone, ranks; /* as it starts, what one learnt, what all did together */
    struct learner_data data;
    int32_t servers, steps, batch; /* batch: of all workers */
    bool as_they_come;
    struct staleness stale;
};

static enum status compile(const struct learning *learning, int32_t batch, struct params *params,
                           struct program **out)
{
    const struct compile_options options = {.batch = batch,
                                            .use = USE_TRAINING,
                                            .classes = learning->learner->classes,
                                            .optimiser = learning->optimiser};
    return network_compile(learning->network, params, &options, out);
}

static void copy_values(struct params *to, const struct params *from)
{
    params_init(to, from->real);
    for (int32_t i = 0; i < from->count; i++) {
        int32_t entry;
        const struct entry *e = &from->entries[i];
        CHECK_OK(params_declare(to, e->name, e->role, e->dtype, e->shape, e->init, &entry));
        memcpy(params_data(to, entry), params_data(from, i), (size_t)e->bytes);
    }
    to->control = from->control;
}

/* This worker's rows of all steps. */
static uint32_t *take_rows(const struct learning *learning, int rank, int workers, int64_t *count)
{
    int64_t from, to;
    data_share_range(learning->batch, rank, workers, &from, &to);
    uint32_t *order = malloc((size_t)(learning->steps * learning->batch) * sizeof *order);
    *count = 0;
    for (int64_t step = 0; step < learning->steps; step++)
        for (int64_t k = from; k < to && rank < workers; k++)
            order[(*count)++] = learning->data.order[(step * learning->batch + k) % LEARNER_ROWS];
    return order;
}

static enum status serve(const struct backend *backend, struct plan *plan, struct turns *turns,
                         int64_t steps)
{
    bool any = true;
    for (int worker = 0; worker < turns->ranks; worker++)
        turns_expect(turns, worker, steps);
    while (any) {
        TRY(turns_take(turns, &any));
        if (any)
            TRY(backend->run(plan, PARTS_ALL, 0, 1));
        TRY(backend->sync(plan));
    }
    return STATUS_OK;
}

static enum status run(struct learning *learning, struct comm *comm, struct engine *engine,
                       struct split_ranks *split, struct turns *turns)
{
    struct rank_plan rank = {0};
    const int workers = comm->size - learning->servers;
    const struct named_view views[VIEWS] = {
        {ROLE_INPUT, "x", learning->data.x, LEARNER_ROWS},
        {ROLE_INPUT, "label", learning->data.label, LEARNER_ROWS},
        {ROLE_INPUT, "target", learning->data.target, LEARNER_ROWS}};
    const struct plan_options plan = {.slots = 1, .comm = comm, .turn = &turns->now};
    struct binding binding = {0};
    uint32_t *order = take_rows(learning, comm->rank, workers, &binding.order_count);
    enum status status;
    binding.order = order;
    TRY_OR(done, rank_plan_open(&rank, engine, split, &learning->whole, &plan));
    if (comm->rank < workers)
        TRY_OR(done, rank_plan_bind(&rank, views, VIEWS, &binding));
    if (learning->as_they_come && comm->rank >= workers)
        TRY_OR(done, serve(engine->backend, rank.plan, turns, learning->steps));
    else
        TRY_OR(done, engine->backend->run(rank.plan, PARTS_ALL, 0, learning->steps));
    TRY_OR(done, engine->backend->sync(rank.plan));
    TRY_OR(done, rank_plan_download(&rank));
    TRY_OR(done, rank_plan_gather(&rank, comm, &learning->ranks));
    if (comm->rank == workers)
        learning->stale = turns->stale;
done:
    rank_plan_close(&rank);
    free(order);
    return status;
}

static enum status learn_rank(struct comm *comm, void *context)
{
    struct learning *learning = context;
    const int workers = comm->size - learning->servers;
    const struct device_options options = {.threads = 1, .isa = ISA_AVX512};
    struct engine engine = {0};
    struct params params;
    struct program *program = NULL;
    struct split_ranks split = {0};
    struct turns turns = {0};
    const struct backend *backend;
    int64_t from = 0, to = 1;
    enum status status;
    if (comm->rank < workers)
        data_share_range(learning->batch, comm->rank, workers, &from, &to);
    const struct server_options server = {.ranks = comm->size,
                                          .servers = learning->servers,
                                          .own = comm->rank,
                                          .samples =
                                              comm->rank < workers ? (int32_t)(to - from) : 0,
                                          .of = learning->batch,
                                          .alone = learning->as_they_come};
    params_init(&params, DTYPE_F64);
    params.bare = true;
    TRY_OR(done, compile(learning, (int32_t)(to - from), &params, &program));
    TRY_OR(done, registry_find(rig_registry(), "ref", &backend));
    TRY_OR(done, engine_open(&engine, backend, &options));
    TRY_OR(done, turns_open(&turns, comm, workers));
    TRY_OR(done, split_server(program, &params, &server, &split));
    status = run(learning, comm, &engine, &split, &turns);
done:
    turns_close(&turns);
    split_ranks_free(&split);
    engine_close(&engine);
    program_free(program);
    params_free(&params);
    return status;
}

/* One worker, with the whole batch. */
static bool learn_alone(struct learning *learning, struct program *program)
{
    struct rig rig;
    struct ready ready = {0};
    struct view views[VIEWS];
    struct binding binding = {.views = views};
    const char *const names[VIEWS] = {"x", "label", "target"};
    void *const data[VIEWS] = {learning->data.x, learning->data.label, learning->data.target};
    uint32_t *order = take_rows(learning, 0, 1, &binding.order_count);
    binding.order = order;
    if (!CHECK(rig_open(&rig, "ref")) || !ready_open(&ready, &rig, &learning->alone, program))
        return false;
    for (int i = 0; i < VIEWS; i++) {
        const int32_t tensor = program_find(program, ROLE_INPUT, names[i]);
        if (tensor >= 0)
            views[binding.view_count++] = (struct view){tensor, data[i], LEARNER_ROWS};
    }
    bool ok = CHECK_OK(rig.backend->bind(ready.plan, &binding)) &&
              ready_run(&ready, PARTS_ALL, 0, learning->steps) &&
              CHECK_OK(rig.backend->download(ready.instance, &learning->alone));
    ready_close(&ready);
    rig_close(&rig);
    free(order);
    return ok;
}

static bool learning_open(struct learning *learning, const struct learner *learner,
                          const char *optimiser)
{
    struct program *program;
    *learning = (struct learning){
        .learner = learner, .optimiser = optimiser, .steps = STEPS, .batch = BATCH};
    params_init(&learning->whole, DTYPE_F64);
    if (!CHECK_OK(network_parse(learner->name, learner->text, strlen(learner->text),
                                &learning->network)) ||
        !CHECK_OK(compile(learning, BATCH, &learning->whole, &program)))
        return false;
    params_fill(&learning->whole, 11);
    CHECK_OK(network_rate(learning->network, optimiser, &learning->whole.control.rate));
    learner_data_open(&learning->data, program, learning->network, learner->classes);
    copy_values(&learning->alone, &learning->whole);
    bool ok = learn_alone(learning, program);
    program_free(program);
    return ok;
}

static void learning_close(struct learning *learning)
{
    learner_data_close(&learning->data);
    params_free(&learning->whole);
    params_free(&learning->alone);
    network_free(learning->network);
}

/* The largest difference of an element, to the largest element of its entry. */
static double largest_difference(const struct params *a, const struct params *b)
{
    double most = 0;
    for (int32_t e = 0; e < a->count; e++) {
        const double *x = params_data(a, e), *y = params_data(b, e);
        double size = 1e-3;
        if (a->entries[e].dtype != DTYPE_F64)
            continue;
        for (int64_t i = 0, n = shape_count(&a->entries[e].shape); i < n; i++)
            size = fmax(size, fabs(y[i]));
        for (int64_t i = 0, n = shape_count(&a->entries[e].shape); i < n; i++)
            most = isnan(x[i]) ? HUGE_VAL : fmax(most, fabs(x[i] - y[i]) / size);
    }
    return most;
}

/* Is what workers and servers learn within `most` of what one does? */
static void check_learning(struct learning *learning, int workers, int servers, double most)
{
    learning->servers = servers;
    copy_values(&learning->ranks, &learning->whole);
    for (int32_t e = 0; e < learning->ranks.count; e++) /* what nobody gives back shows */
        memset(params_data(&learning->ranks, e), 0xff, (size_t)learning->ranks.entries[e].bytes);
    if (on_ranks(workers + servers, learn_rank, learning)) {
        const double off = largest_difference(&learning->ranks, &learning->alone);
        if (!CHECK(off <= most))
            printf("    %s by %s, %d workers, %d servers: off by %g\n", learning->learner->name,
                   learning->optimiser, workers, servers, off);
    }
    params_free(&learning->ranks);
}

/* Batch-norm sees each worker's own samples, so that only one worker learns the same with it. */
static bool has_norm(const struct learner *learner)
{
    return strstr(learner->text, "batch_norm") != NULL;
}

TEST(servers_learn_what_one_worker_learns)
{
    static const char *const optimisers[] = {"sgd:rate=0.1", "adam:rate=0.01"};
    for (int n = 0; n < LEARNERS; n++)
        for (int o = 0; o < 2; o++) {
            struct learning learning;
            const int most = has_norm(&learners[n]) ? 1 : 4;
            if (learning_open(&learning, &learners[n], optimisers[o]))
                for (int workers = 1; workers <= most; workers++)
                    if (workers == 1 || workers == 2 + (n + o) % 3)
                        check_learning(&learning, workers, 1 + (n + o + workers) % 3, 1e-12);
            learning_close(&learning);
        }
}

/* Of one worker no gradient is stale: an update is that of its batch. */
TEST(one_worker_of_an_asynchronous_server_learns_the_same)
{
    for (int n = 0; n < LEARNERS; n++) {
        struct learning learning;
        if (learning_open(&learning, &learners[n], "adam:rate=0.01")) {
            learning.as_they_come = true;
            check_learning(&learning, 1, 1 + n % 2, 0);
            CHECK_EQUAL_INT((int)learning.stale.updates, STEPS);
            CHECK_EQUAL_INT((int)learning.stale.most, 0);
        }
        learning_close(&learning);
    }
}

/* Several workers: every gradient is applied once, and counted. */
TEST(all_workers_of_an_asynchronous_server_are_served)
{
    struct learning learning;
    if (learning_open(&learning, &learners[0], "sgd:rate=0.05")) {
        learning.as_they_come = true;
        check_learning(&learning, 4, 2, HUGE_VAL / 2);
        CHECK_EQUAL_INT((int)learning.stale.updates, 4 * STEPS);
        CHECK(learning.stale.most >= 1);
        CHECK(learning.stale.sum <= learning.stale.most * learning.stale.updates);
    }
    learning_close(&learning);
}

CHECK_MAIN
