/* test_products.c: copies of a network, each shared out among some ranks, learn together what one
 * worker learns, in double precision: data × pipeline and data × model. */
#include "comm/shm.h"
#include "core/pass/split_model.h"
#include "learners.h"
#include "train/workers/pipeline.h"

#include <sys/mman.h>

enum { STEPS = 50, BATCH = 8, MICROS = 2 };

/* One network's training, by one worker and by several. */
struct learning {
    const struct learner *learner;
    bool pipeline; /* else by model */
    int copies, parts;
    struct network *network;
    struct params whole, alone; /* as it starts; what one worker learnt */
    struct program *program;    /* of one worker … */
    struct program *own;        /* … and of one copy */
    struct learner_data data;
    double *found; /* what all learnt together, in memory that processes share */
    size_t count;
};

/* All that is learnt, and what the optimiser keeps. Running means of batch-norm are not the same:
 * each copy moves its own. */
static size_t numbers_of(const struct params *params, double *out)
{
    size_t count = 0;
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        const double *values = params_data(params, e);
        for (int64_t i = 0; i < shape_count(&entry->shape); i++) {
            if (entry->dtype != DTYPE_F64 || entry->role == ROLE_STATISTIC)
                break;
            if (out)
                out[count] = values[i];
            count++;
        }
    }
    return count;
}

static enum status compile(struct learning *learning, const char *optimiser, int copies,
                           struct program **out)
{
    const struct compile_options options = {.batch = BATCH / copies,
                                            .use = USE_TRAINING,
                                            .classes = learning->learner->classes,
                                            .optimiser = optimiser};
    const int micros = MICROS * learning->copies / copies;
    return learning->pipeline
               ? pipeline_compile(learning->network, &learning->whole, &options, micros, out)
               : network_compile(learning->network, &learning->whole, &options, out);
}

static bool learning_open(struct learning *learning, const char *optimiser)
{
    const struct learner *learner = learning->learner;
    params_init(&learning->whole, DTYPE_F64);
    if (!CHECK_OK(network_parse(learner->name, learner->text, strlen(learner->text),
                                &learning->network)) ||
        !CHECK_OK(compile(learning, optimiser, 1, &learning->program)) ||
        !CHECK_OK(compile(learning, optimiser, learning->copies, &learning->own)))
        return false;
    params_fill(&learning->whole, 11);
    CHECK_OK(network_rate(learning->network, optimiser, &learning->whole.control.rate));
    learner_data_open(&learning->data, learning->program, learning->network, learner->classes);
    CHECK_OK(learner_copy(&learning->alone, &learning->whole));
    learning->count = numbers_of(&learning->whole, NULL);
    learning->found = mmap(NULL, learning->count * sizeof(double), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return CHECK(learning->found != MAP_FAILED);
}

static void learning_close(struct learning *learning)
{
    if (learning->found)
        munmap(learning->found, learning->count * sizeof(double));
    learner_data_close(&learning->data);
    program_free(learning->program);
    program_free(learning->own);
    params_free(&learning->whole);
    params_free(&learning->alone);
    network_free(learning->network);
}

static bool learn_alone(struct learning *learning)
{
    struct rig rig;
    struct ready ready = {0};
    struct view views[LEARNER_VIEWS];
    struct named_view named[LEARNER_VIEWS];
    struct binding binding = {
        .views = views, .order = learning->data.order, .order_count = LEARNER_ROWS};
    const unsigned update = PART_BIT(PART_UPDATE);
    const int micros = learning->pipeline ? MICROS * learning->copies : 1;
    learner_views(&learning->data, named);
    if (!CHECK(rig_open(&rig, "ref")) ||
        !ready_open(&ready, &rig, &learning->alone, learning->program))
        return false;
    for (int i = 0; i < LEARNER_VIEWS; i++) {
        const int32_t tensor = program_find(learning->program, named[i].role, named[i].name);
        if (tensor >= 0)
            views[binding.view_count++] = (struct view){tensor, named[i].data, named[i].rows};
    }
    bool ok = CHECK_OK(rig.backend->bind(ready.plan, &binding));
    for (int step = 0; ok && step < STEPS; step++)
        ok = ready_run(&ready, PARTS_ALL & ~update, 0, micros) && ready_run(&ready, update, 0, 1);
    ok = ok && CHECK_OK(rig.backend->download(ready.instance, &learning->alone));
    ready_close(&ready);
    rig_close(&rig);
    return ok;
}

/* ---- a rank ---- */

struct groups {
    struct comm *copy, *across;
};

static enum status open_groups(const struct learning *learning, struct comm *comm,
                               struct groups *out)
{
    int ranks[RANKS_MOST];
    const int parts = learning->parts, copy = comm->rank / parts, part = comm->rank % parts;
    for (int i = 0; i < parts; i++)
        ranks[i] = copy * parts + i;
    TRY(comm_group(comm, ranks, parts, &out->copy));
    for (int i = 0; i < learning->copies; i++)
        ranks[i] = i * parts + part;
    return comm_group(comm, ranks, learning->copies, &out->across);
}

/* The rows of this copy: of each batch its part. */
static struct binding order_of(const struct learning *learning, int copy, uint32_t *order)
{
    const int each = BATCH / learning->copies;
    int64_t count = 0;
    for (int row = 0; row < LEARNER_ROWS; row++)
        if (row % BATCH / each == copy)
            order[count++] = learning->data.order[row];
    return (struct binding){.order = order, .order_count = count};
}

static enum status run_pipeline(const struct learning *learning, const struct groups *groups,
                                const struct data_share *share, struct engine *engine,
                                struct binding binding, struct params *out)
{
    struct named_view views[LEARNER_VIEWS];
    struct pipeline pipeline = {0};
    const struct pipeline_setup setup = {
        .comm = groups->copy, .across = groups->across, .share = share, .micros = MICROS};
    enum status status;
    learner_views(&learning->data, views);
    TRY_OR(done, pipeline_open(&pipeline, engine, learning->own, &learning->whole, &setup));
    TRY_OR(done, rank_plan_bind(&pipeline.rank, views, LEARNER_VIEWS, &binding));
    TRY_OR(done, pipeline_run(&pipeline, STEPS));
    TRY_OR(done, rank_plan_download(&pipeline.rank));
    TRY_OR(done, rank_plan_gather(&pipeline.rank, groups->copy, out));
done:
    pipeline_close(&pipeline);
    return status;
}

static enum status run_model(const struct learning *learning, const struct groups *groups,
                             const struct data_share *share, struct engine *engine,
                             struct binding binding, struct params *out)
{
    struct split_ranks split = {0};
    struct rank_plan rank = {0};
    struct named_view views[LEARNER_VIEWS];
    const struct comm *copy = groups->copy;
    const struct model_options options = {.ranks = copy->size, .own = copy->rank};
    const struct plan_options plan = {.comm = groups->copy, .across = groups->across};
    enum status status;
    learner_views(&learning->data, views);
    TRY_OR(done, split_model(learning->own, &learning->whole, &options, &split));
    TRY_OR(done, split_rank_share(&split.ranks[copy->rank], share));
    TRY_OR(done, rank_plan_open(&rank, engine, &split, &learning->whole, &plan));
    TRY_OR(done, rank_plan_bind(&rank, views, LEARNER_VIEWS, &binding));
    TRY_OR(done, engine->backend->run(rank.plan, PARTS_ALL, 0, STEPS));
    TRY_OR(done, engine->backend->sync(rank.plan));
    TRY_OR(done, rank_plan_download(&rank));
    TRY_OR(done, rank_plan_gather(&rank, groups->copy, out));
done:
    rank_plan_close(&rank);
    split_ranks_free(&split);
    return status;
}

/* Rank 0 leaves behind what came of it: its copy's, which is that of all of them. */
static enum status learn_rank(struct comm *comm, void *context)
{
    struct learning *learning = context;
    struct engine engine = {.recompute = comm->rank % 2};
    struct groups groups = {0};
    struct params out;
    uint32_t order[LEARNER_ROWS];
    const struct backend *backend;
    const struct device_options options = {.threads = 1, .isa = ISA_AVX512};
    const struct data_share share = {.samples = BATCH / learning->copies,
                                     .of = BATCH,
                                     .bucket_bytes = 3000,
                                     .across = true,
                                     .accumulated = learning->pipeline};
    enum status status;
    TRY_OR(done, learner_copy(&out, &learning->whole));
    for (int32_t e = 0; e < out.count; e++) /* what nobody gives back shows */
        memset(params_data(&out, e), 0xff, (size_t)out.entries[e].bytes);
    TRY_OR(done, open_groups(learning, comm, &groups));
    TRY_OR(done, registry_find(rig_registry(), "ref", &backend));
    TRY_OR(done, engine_open(&engine, backend, &options));
    const struct binding binding = order_of(learning, comm->rank / learning->parts, order);
    status = (learning->pipeline ? run_pipeline : run_model)(learning, &groups, &share, &engine,
                                                             binding, &out);
    if (status == STATUS_OK && comm->rank == 0)
        numbers_of(&out, learning->found);
done:
    engine_close(&engine);
    comm_close(groups.across);
    comm_close(groups.copy);
    params_free(&out);
    return status;
}

static double largest_difference(const double *a, const double *b, size_t count)
{
    double size = 1e-3, most = 0;
    for (size_t i = 0; i < count; i++)
        size = fmax(size, fabs(b[i]));
    for (size_t i = 0; i < count; i++)
        most = isnan(a[i] - b[i]) ? HUGE_VAL : fmax(most, fabs(a[i] - b[i]));
    return most / size;
}

static void check_learner(const struct learner *learner, const char *optimiser, bool pipeline,
                          int copies, bool processes)
{
    struct learning learning = {
        .learner = learner, .pipeline = pipeline, .copies = copies, .parts = 2};
    const int ranks = copies * learning.parts;
    if (learning_open(&learning, optimiser) && learn_alone(&learning) &&
        (processes ? CHECK_OK(shm_run(ranks, learn_rank, &learning))
                   : on_ranks(ranks, learn_rank, &learning))) {
        double *alone = mem_array(learning.count, sizeof *alone);
        numbers_of(&learning.alone, alone);
        const double off = largest_difference(learning.found, alone, learning.count);
        if (!CHECK(off <= 1e-12))
            printf("    %s by %s, %d copies of a %s: off by %g\n", learner->name, optimiser, copies,
                   pipeline ? "pipeline" : "model", off);
        mem_free(alone);
    }
    learning_close(&learning);
}

/* Every network in one way of several; batch-norm sees other samples where a batch is shared out
 * and not cut into the same micro-batches. */
static void check_learners(bool pipeline)
{
    for (int n = 0; n < LEARNERS; n++)
        if (pipeline || !strstr(learners[n].text, "batch_norm"))
            check_learner(&learners[n], n % 2 ? "adam:rate=0.01" : "sgd:rate=0.1", pipeline,
                          n ? 2 : 4, n % 2);
}

TEST(copies_of_a_pipeline_learn_what_one_worker_learns)
{
    check_learners(true);
}

TEST(copies_of_a_shared_model_learn_what_one_worker_learns)
{
    check_learners(false);
}

CHECK_MAIN
