/* Predictions over the caller's arrays, one by one and in streams (include/prony.h): the bits of a
 * lap over a data set, whatever happened to the network in between. */
#include "base/memory.h"
#include "base/rng.h"
#include "check.h"
#include "folder.h"
#include "library/prony_inside.h"

#include <pthread.h>

enum { ROWS_MOST = 12, NUMBERS = 3072 * ROWS_MOST };

static const struct kind {
    const char *name, *text; /* text NULL: a name of the zoo */
    int32_t classes;
    bool scaled; /* a scale of its inputs, as a loaded file brings it */
} kinds[] = {
    {"small", NULL, 0, false},
    {"classes", "input 4\ndense 16\nrelu\ndense 3\n", 3, false},
    {"scaled", "input 4\ndense 9\ntanh\ndense 2\n", 0, true},
    {"wide", "input 40\ndense 300\nrelu\ndense 70\nrelu\ndense 5\n", 0, false},
    {"image", "input 3x12x12\nconv 5 3x3\nrelu\nmax_pool 2\nflatten\ndense 4\n", 4, false},
    {"tokens", "input 6 tokens=8\nembedding 5\nflatten\ndense 8\n", 0, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *const backends[] = {"ref", "simd", "blas"};
enum { BACKENDS = sizeof backends / sizeof *backends };

/* NULL: the backend is not here, or something failed. */
static struct prony *open_kind(const struct kind *kind, const char *backend)
{
    const struct prony_options options = {
        .backend = backend, .threads = 2, .seed = 5, .classes = kind->classes, .rate = 0.1};
    struct prony *network = NULL;
    int code = kind->text ? prony_open_text(kind->name, kind->text, &options, &network)
                          : prony_open(kind->name, &options, &network);
    if (code == PRONY_UNSUPPORTED || (code && strcmp(backend, "blas") == 0) ||
        !CHECK_EQUAL_INT(code, PRONY_OK))
        return NULL;
    if (kind->scaled && CHECK_OK(scaling_alloc(4, &network->model.scaling)))
        for (int i = 0; i < 4; i++) {
            network->model.scaling.mean[i] = 0.25f * (float)i;
            network->model.scaling.scale[i] = 2;
        }
    return network;
}

/* Different numbers for each `draw`; whole ones where tokens are asked for. */
static void fill(const struct prony *network, float *inputs, int32_t rows, uint32_t draw)
{
    const struct rng_key key = {.seed = draw};
    const int32_t tokens = network->network->tokens;
    for (uint32_t i = 0; i < (uint32_t)(rows * prony_inputs(network)); i++)
        inputs[i] = tokens ? (float)rng_below(key, i, 0, (uint32_t)tokens) : rng_uniform(key, i, 0);
}

/* The same by a lap of one step, as predictions of data are made. */
static bool predict_by_lap(struct prony *network, int32_t rows, const float *inputs, float *outputs)
{
    struct model *model = &network->model;
    struct compile_options options = model_compile_options(model, USE_INFERENCE, rows);
    struct lap lap = {0};
    const size_t count = (size_t)(rows * prony_inputs(network));
    struct dataset data = {.name = "copy",
                           .rows = rows,
                           .columns = (int32_t)prony_inputs(network),
                           .features = mem_array(count, sizeof(float))};
    const struct lap_data bound = {.dataset = &data, .outputs = outputs};
    memcpy(data.features, inputs, count * sizeof(float));
    bool done = CHECK_OK(scaling_apply(&model->scaling, &data)) &&
                CHECK_OK(lap_compile(&lap, &model->engine, network->network, &model->params,
                                     &options, rows)) &&
                CHECK_OK(engine_attach(&model->engine, &model->params)) &&
                CHECK_OK(lap_prepare(&lap, &model->engine, &model->params)) &&
                CHECK_OK(lap_begin(&lap, &bound, NULL, 0)) && CHECK_OK(lap_run(&lap, 1, NULL));
    lap_close(&lap);
    mem_free(data.features);
    return done;
}

struct arrays {
    float inputs[NUMBERS], expected[NUMBERS], found[NUMBERS];
};

/* Is one prediction what a lap gives? */
static bool check_same(struct prony *network, int32_t rows, uint32_t draw, struct arrays *arrays)
{
    const size_t bytes = (size_t)(rows * prony_outputs(network)) * sizeof(float);
    fill(network, arrays->inputs, rows, draw);
    memset(arrays->found, 0xAB, bytes);
    return predict_by_lap(network, rows, arrays->inputs, arrays->expected) &&
           CHECK_EQUAL_INT(prony_predict(network, rows, arrays->inputs, arrays->found), PRONY_OK) &&
           CHECK(memcmp(arrays->found, arrays->expected, bytes) == 0);
}

/* With more numbers of rows than are kept, from arrays that change and that stay. */
TEST(predictions_have_the_bits_of_a_lap)
{
    static struct arrays arrays[2];
    int compared = 0;
    for (int k = 0; k < KINDS; k++)
        for (int b = 0; b < BACKENDS; b++) {
            struct prony *network = open_kind(&kinds[k], backends[b]);
            for (uint32_t i = 0; network && i < 2 * ROWS_MOST; i++)
                compared += check_same(network, 1 + (int32_t)i % ROWS_MOST, i, &arrays[i % 3 > 0]);
            prony_close(network);
        }
    CHECK(compared >= KINDS * 2 * ROWS_MOST);
}

static int train_step(struct prony *network, const struct kind *kind, float *inputs)
{
    static const int32_t classes[ROWS_MOST] = {1, 0, 2, 1};
    static const float numbers[NUMBERS] = {1, 0.5f, 0.25f};
    return kind->classes ? prony_train_classes(network, 4, inputs, classes, NULL)
                         : prony_train_numbers(network, 4, inputs, numbers, NULL);
}

/* The next prediction has the weights of the last step, by every plan that is kept. */
TEST(predictions_see_every_step)
{
    static struct arrays arrays;
    float before[64];
    for (int k = 0; k < KINDS; k++)
        for (int b = 0; b < BACKENDS; b++) {
            struct prony *network = open_kind(&kinds[k], backends[b]);
            const size_t bytes = network ? (size_t)prony_outputs(network) * sizeof(float) : 0;
            for (uint32_t step = 0; network && step < 4; step++) {
                for (int32_t rows = 1; rows < 4; rows += 2)
                    check_same(network, rows, 7, &arrays);
                if (step)
                    CHECK(memcmp(before, arrays.found, bytes) != 0);
                memcpy(before, arrays.found, bytes);
                fill(network, arrays.inputs, 4, step);
                CHECK_EQUAL_INT(train_step(network, &kinds[k], arrays.inputs), PRONY_OK);
            }
            prony_close(network);
        }
}

TEST(predictions_see_weights_that_were_loaded)
{
    static struct arrays arrays;
    const char *path = at("weights");
    struct prony *trained = open_kind(&kinds[1], "ref"), *other;
    if (!trained || !CHECK_EQUAL_INT(train_step(trained, &kinds[1], arrays.inputs), PRONY_OK))
        return;
    CHECK_EQUAL_INT(prony_save(trained, path), PRONY_OK);
    check_same(trained, 3, 1, &arrays);
    if ((other = open_kind(&kinds[1], "ref"))) {
        float expected[9];
        memcpy(expected, arrays.found, sizeof expected);
        check_same(other, 3, 1, &arrays);
        CHECK(memcmp(arrays.found, expected, sizeof expected) != 0);
        CHECK_EQUAL_INT(prony_load(other, path), PRONY_OK);
        CHECK_EQUAL_INT(prony_predict(other, 3, arrays.inputs, arrays.found), PRONY_OK);
        CHECK(memcmp(arrays.found, expected, sizeof expected) == 0);
        prony_close(other);
    }
    prony_close(trained);
}

/* Ops of that kind in what answered last. */
static int count_ops(const struct prony *network, enum op_kind kind)
{
    const struct program *program = network->quick->step.programs[0];
    int count = 0;
    for (int32_t i = 0; i < program->op_count; i++)
        count += program->ops[i].kind == kind;
    return count;
}

/* Of a file's network the settled form predicts, as long as the weights are the file's. */
TEST(predictions_of_a_file_are_settled_until_it_learns)
{
    static struct arrays arrays;
    static const struct kind norms = {"norms", "input 4\ndense 9\nbatch_norm\nrelu\ndense 3\n", 0,
                                      false};
    const char *path = at("norms.onnx");
    struct prony *made = open_kind(&norms, "ref"), *read = NULL;
    struct prony_stream *stream = NULL;
    float expected[9];
    if (!made || !CHECK_EQUAL_INT(train_step(made, &norms, arrays.inputs), PRONY_OK))
        return;
    check_same(made, 3, 1, &arrays);
    memcpy(expected, arrays.found, sizeof expected);
    int code = prony_export(made, path);
    if (code == PRONY_UNSUPPORTED)
        check_skip("%s", prony_error());
    else if (CHECK_EQUAL_INT(code, PRONY_OK) &&
             CHECK_EQUAL_INT(prony_open(path, &(struct prony_options){.backend = "ref"}, &read),
                             PRONY_OK)) {
        CHECK_EQUAL_INT(prony_predict(read, 3, arrays.inputs, arrays.found), PRONY_OK);
        CHECK_EQUAL_INT(count_ops(read, OP_batch_norm_fixed), 0);
        for (int i = 0; i < 9; i++)
            CHECK_NEAR(arrays.found[i], expected[i], 1e-5);
        CHECK_EQUAL_INT(prony_stream_open(read, NULL, &stream), PRONY_OK);
        CHECK_EQUAL_INT(train_step(read, &norms, arrays.inputs), PRONY_OK);
        check_same(read, 3, 2, &arrays); /* what learnt */
        CHECK_EQUAL_INT(count_ops(read, OP_batch_norm_fixed), 1);
        prony_stream_close(stream);
    }
    prony_close(read);
    prony_close(made);
}

static void check_refused(int code, int expected, const char *message)
{
    if (CHECK_EQUAL_INT(code, expected))
        CHECK_MESSAGE(message);
}

TEST(predictions_refuse_what_is_no_request)
{
    static struct arrays arrays;
    struct prony *network = open_kind(&kinds[0], "ref"), *tokens = open_kind(&kinds[5], "ref");
    if (!network || !tokens)
        return;
    for (int again = 0; again < 2; again++) { /* before anything was prepared, and after */
        check_refused(prony_predict(network, 0, arrays.inputs, arrays.found), PRONY_INPUT,
                      "found 0 rows");
        check_refused(prony_predict(network, INT32_MIN, arrays.inputs, arrays.found), PRONY_INPUT,
                      "rows, expected at least 1");
        check_refused(prony_predict(network, 1, NULL, NULL), PRONY_INPUT, "NULL for its inputs");
        check_refused(prony_predict(network, 1, NULL, arrays.found), PRONY_INPUT,
                      "NULL for its inputs");
        check_refused(prony_predict(network, 1, arrays.inputs, NULL), PRONY_INPUT,
                      "NULL for its outputs");
        check_same(network, 1, 3, &arrays);
    }
    check_same(tokens, 2, 3, &arrays);
    arrays.inputs[7] = 8;
    check_refused(prony_predict(tokens, 2, arrays.inputs, arrays.found), PRONY_INPUT, "8");
    check_same(tokens, 2, 4, &arrays);
    prony_close(network);
    prony_close(tokens);
}

enum { DEPTH = 5 };

/* Requests of a stream, some in flight at a time, from one array that is used again at once. */
static void check_stream(struct prony *network, int32_t rows, struct arrays *arrays)
{
    const struct prony_stream_options options = {.rows = rows, .depth = DEPTH};
    const int64_t each = rows * prony_outputs(network);
    struct prony_stream *stream;
    uint64_t tickets[2 * DEPTH];
    if (!CHECK_EQUAL_INT(prony_stream_open(network, &options, &stream), PRONY_OK))
        return;
    for (uint32_t i = 0; i < 2 * DEPTH; i++) {
        fill(network, arrays->inputs, rows, i);
        CHECK_EQUAL_INT(prony_predict(network, rows, arrays->inputs, arrays->expected + i * each),
                        PRONY_OK);
        CHECK_EQUAL_INT(
            prony_stream_submit(stream, arrays->inputs, arrays->found + i * each, &tickets[i]),
            PRONY_OK);
        CHECK_EQUAL_INT(tickets[i], i + 1);
        memset(arrays->inputs, 0xAB, sizeof arrays->inputs);
        if (i % DEPTH == DEPTH - 1)
            for (uint32_t n = 0; n < DEPTH; n++) /* in another order than submitted */
                CHECK_EQUAL_INT(prony_stream_wait(stream, tickets[i - (n + 2) % DEPTH]), PRONY_OK);
    }
    CHECK(memcmp(arrays->found, arrays->expected, (size_t)(2 * DEPTH * each) * sizeof(float)) == 0);
    prony_stream_close(stream);
}

TEST(streams_answer_as_predictions)
{
    static struct arrays arrays;
    for (int k = 0; k < KINDS; k++)
        for (int b = 0; b < BACKENDS; b++) {
            struct prony *network = open_kind(&kinds[k], backends[b]);
            for (int32_t rows = 1; network && rows < 5; rows += 3)
                check_stream(network, rows, &arrays);
            prony_close(network);
        }
}

TEST(streams_refuse_what_cannot_be)
{
    struct prony *network = open_kind(&kinds[0], "ref");
    struct prony_stream *stream;
    const float inputs[16] = {0};
    float outputs[16], kept;
    uint64_t ticket = 99;
    if (!network)
        return;
    check_refused(prony_stream_open(network, &(struct prony_stream_options){.rows = -1}, &stream),
                  PRONY_INPUT, "found -1 rows");
    CHECK(stream == NULL);
    check_refused(
        prony_stream_open(network, &(struct prony_stream_options){.depth = 1 << 17}, &stream),
        PRONY_INPUT, "expected 1 to 65536");
    check_refused(
        prony_stream_open(
            network, &(struct prony_stream_options){.rows = 1 << 16, .depth = 1 << 16}, &stream),
        PRONY_INPUT, "expected together at most 2147483647");
    check_refused(
        prony_stream_open(network, &(struct prony_stream_options){.resident = 1}, &stream),
        PRONY_UNSUPPORTED, "computes where it is called");
    if (!CHECK_EQUAL_INT(
            prony_stream_open(network, &(struct prony_stream_options){.depth = 2}, &stream),
            PRONY_OK))
        return;
    check_refused(prony_stream_wait(stream, 0), PRONY_INPUT, "found the ticket 0");
    check_refused(prony_stream_wait(stream, 1), PRONY_INPUT, "expected one of the 0");
    check_refused(prony_stream_submit(stream, NULL, outputs, &ticket), PRONY_INPUT, "NULL");
    check_refused(prony_stream_submit(stream, inputs, NULL, &ticket), PRONY_INPUT, "NULL");
    CHECK_EQUAL_INT(ticket, 99);
    outputs[0] = kept = 77;
    CHECK_EQUAL_INT(prony_stream_submit(stream, inputs, outputs, &ticket), PRONY_OK);
    CHECK_EQUAL_INT(prony_stream_submit(stream, inputs, outputs, NULL), PRONY_OK);
    check_refused(prony_stream_submit(stream, inputs, outputs, &ticket), PRONY_INPUT,
                  "found 2 requests in flight");
    CHECK(memcmp(outputs, &kept, sizeof kept) == 0); /* not before it was waited for */
    CHECK_EQUAL_INT(prony_stream_wait(stream, ticket), PRONY_OK);
    CHECK(memcmp(outputs, &kept, sizeof kept) != 0);
    CHECK_EQUAL_INT(prony_stream_wait(stream, ticket), PRONY_OK);
    check_refused(prony_stream_wait(stream, UINT64_MAX), PRONY_INPUT, "expected one of the 2");
    outputs[0] = kept;
    CHECK_EQUAL_INT(prony_stream_submit(stream, inputs, outputs, &ticket), PRONY_OK);
    prony_stream_close(stream); /* what is in flight is dropped */
    CHECK(memcmp(outputs, &kept, sizeof kept) == 0);
    prony_stream_close(NULL);
    prony_close(network);
}

/* A step of an open stream's network is seen by the next request; what takes the parameters off the
 * device ends the stream. */
TEST(streams_see_steps_and_end_with_their_plans)
{
    static struct arrays arrays;
    struct prony *network = open_kind(&kinds[0], "simd");
    struct prony_stream *stream = NULL, *other = NULL;
    float before[16], after[16];
    uint64_t ticket;
    if (!network)
        return;
    CHECK_EQUAL_INT(prony_stream_open(network, NULL, &stream), PRONY_OK);
    CHECK_EQUAL_INT(train_step(network, &kinds[0], arrays.inputs), PRONY_OK);
    check_refused(prony_stream_submit(stream, arrays.inputs, before, &ticket), PRONY_INPUT,
                  "the stream has ended: its network learns since");
    check_refused(prony_stream_wait(stream, 1), PRONY_INPUT, "the stream has ended");
    prony_stream_close(stream);
    CHECK_EQUAL_INT(prony_stream_open(network, NULL, &stream), PRONY_OK);
    CHECK_EQUAL_INT(prony_stream_open(network, NULL, &other), PRONY_OK);
    CHECK_EQUAL_INT(prony_stream_submit(stream, arrays.inputs, before, NULL), PRONY_OK);
    CHECK_EQUAL_INT(train_step(network, &kinds[0], arrays.inputs), PRONY_OK);
    CHECK_EQUAL_INT(prony_stream_submit(stream, arrays.inputs, after, &ticket), PRONY_OK);
    CHECK_EQUAL_INT(prony_stream_wait(stream, ticket), PRONY_OK);
    CHECK(memcmp(before, after, (size_t)prony_outputs(network) * sizeof(float)) != 0);
    CHECK_EQUAL_INT(prony_predict(network, 1, arrays.inputs, arrays.found), PRONY_OK);
    CHECK(memcmp(arrays.found, after, (size_t)prony_outputs(network) * sizeof(float)) == 0);
    prony_stream_close(stream);
    prony_close(network); /* before its other stream */
    check_refused(prony_stream_submit(other, arrays.inputs, after, NULL), PRONY_INPUT,
                  "its network was closed");
    prony_stream_close(other);
}

/* A network of its own, on a thread of its own. */
struct user {
    pthread_t thread;
    const struct kind *kind;
    float found[16];
    bool failed;
};

static void *use(void *argument)
{
    struct user *user = argument;
    const struct prony_options options = {.threads = 1, .seed = 5, .classes = user->kind->classes};
    struct prony *network = NULL;
    struct prony_stream *stream = NULL;
    float inputs[64] = {0.5f, 0.25f}, outputs[16];
    uint64_t ticket = 0;
    user->failed = user->kind->text
                       ? prony_open_text(user->kind->name, user->kind->text, &options, &network)
                       : prony_open(user->kind->name, &options, &network);
    user->failed = user->failed || prony_stream_open(network, NULL, &stream);
    for (int i = 0; i < 100 && !user->failed; i++)
        user->failed =
            prony_predict(network, 1, inputs, outputs) ||
            prony_stream_submit(stream, inputs, user->found, &ticket) ||
            prony_stream_wait(stream, ticket) ||
            memcmp(outputs, user->found, (size_t)prony_outputs(network) * sizeof(float)) != 0;
    prony_stream_close(stream);
    prony_close(network);
    return NULL;
}

TEST(networks_are_used_at_once)
{
    struct user users[6];
    for (int i = 0; i < 6; i++) {
        users[i] = (struct user){.kind = &kinds[i / 2 % 2]};
        CHECK_EQUAL_INT(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < 6; i++)
        pthread_join(users[i].thread, NULL);
    for (int i = 0; i < 6; i++) {
        CHECK(!users[i].failed);
        CHECK(memcmp(users[i].found, users[i % 4 / 2 * 2].found, sizeof users[i].found) == 0);
    }
}

/* A short life, for the allocations in it. */
static int live(void)
{
    struct prony *network;
    struct prony_stream *stream = NULL;
    const float inputs[8] = {1, 2};
    float outputs[8];
    uint64_t ticket;
    int code = prony_open("mlp:2-4-2", &(struct prony_options){.threads = 1}, &network);
    if (!code)
        code = prony_stream_open(network, &(struct prony_stream_options){.rows = 2}, &stream);
    if (!code)
        code = prony_predict(network, 1, inputs, outputs);
    if (!code)
        code = prony_predict(network, 2, inputs, outputs);
    if (!code)
        code = prony_stream_submit(stream, inputs, outputs, &ticket);
    if (!code)
        code = prony_stream_wait(stream, ticket);
    prony_stream_close(stream);
    prony_close(network);
    return code;
}

TEST(goes_on_when_memory_is_out)
{
    int code = PRONY_MEMORY;
    long nth = 1;
    for (; nth < 10000 && code != PRONY_OK; nth++) {
        memory_fail_at(nth);
        code = live();
        memory_fail_at(0);
        if (code != PRONY_OK && !CHECK_EQUAL_INT(code, PRONY_MEMORY))
            return;
    }
    CHECK(nth > 20);
}

static int broken_runs;

static enum status run_broken(struct plan *plan, unsigned parts, int slot, int64_t steps)
{
    (void)plan, (void)parts, (void)slot, (void)steps;
    broken_runs++;
    FAIL(STATUS_DEVICE, "the device is gone");
}

/* A request that failed is not asked again, and its plan is closed: the next one has a new plan. */
TEST(a_request_that_fails_is_asked_once)
{
    static struct arrays arrays;
    for (int k = 0; k < KINDS; k++) {
        struct prony *network = open_kind(&kinds[k], "simd");
        if (!network || !check_same(network, 2, 1, &arrays))
            continue;
        const struct backend *whole = network->model.engine.backend;
        struct backend broken = *whole;
        broken.run = run_broken;
        broken_runs = 0;
        network->model.engine.backend = &broken;
        CHECK_EQUAL_INT(prony_predict(network, 2, arrays.inputs, arrays.found), PRONY_DEVICE);
        CHECK_EQUAL_INT(broken_runs, 1);
        CHECK(network->quick == NULL);
        for (int i = 0; i < BATCHES_MOST; i++)
            CHECK(network->predictors[i].rows != 2);
        network->model.engine.backend = whole;
        check_same(network, 2, 2, &arrays);
        prony_close(network);
    }
}

/* What follows the first call with a number of rows takes no memory. */
TEST(a_request_allocates_nothing)
{
    static struct arrays arrays;
    for (int k = 0; k < KINDS; k++) {
        struct prony *network = open_kind(&kinds[k], "simd");
        struct prony_stream *stream = NULL;
        if (!network || !check_same(network, 2, 1, &arrays) ||
            !CHECK_EQUAL_INT(prony_stream_open(network, NULL, &stream), PRONY_OK))
            continue;
        memory_fail_at(1);
        int code = prony_predict(network, 2, arrays.inputs, arrays.expected);
        int submitted = prony_stream_submit(stream, arrays.inputs, arrays.found, NULL);
        int waited = prony_stream_wait(stream, 1);
        bool allocated = memory_failed();
        memory_fail_at(0);
        CHECK_EQUAL_INT(code, PRONY_OK);
        CHECK_EQUAL_INT(submitted, PRONY_OK);
        CHECK_EQUAL_INT(waited, PRONY_OK);
        CHECK(!allocated);
        prony_stream_close(stream);
        prony_close(network);
    }
}

CHECK_MAIN
