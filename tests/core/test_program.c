/* test_program.c: drafting programs: what is refused and how it is said, what a hash stands for,
 * where tensors are placed, and that the way from a network's text to a run survives any failed
 * allocation. */
#include "base/memory.h"
#include "core/params.h"
#include "core/pass/fuse.h"
#include "core/pass/layout.h"
#include "nn/network.h"
#include "rig.h"

static const struct init zero = {.kind = INIT_ZERO};

/* A draft with x [2, 3], read from the data. */
static int32_t begin(struct draft *draft, struct params *params)
{
    params_init(params, DTYPE_F32);
    CHECK_OK(program_begin(draft, params, "test", 2, DTYPE_F32));
    int32_t rows = draft_tensor(draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(2));
    int32_t x = draft_tensor(draft, ROLE_INPUT, DTYPE_F32, "x", SHAPE(2, 3));
    draft_op(draft, OP_rows, NOTHING, OUT(rows));
    draft_op(draft, OP_load, IN(rows), OUT(x));
    draft_part(draft, PART_FORWARD);
    return x;
}

/* Finishes a draft that must be refused with this in the message. */
static void refused(struct draft *draft, struct params *params, const char *message)
{
    struct program *program = NULL;
    CHECK_STATUS(STATUS_INPUT, program_finish(draft, &program));
    CHECK_MESSAGE(message);
    CHECK(!program);
    params_free(params);
}

TEST(shapes_that_do_not_fit_are_refused)
{
    struct draft draft;
    struct params params;
    int32_t x = begin(&draft, &params);
    int32_t wide = draft_real(&draft, "wide", SHAPE(2, 4)),
            y = draft_real(&draft, "y", SHAPE(2, 3));
    draft_op(&draft, OP_fill, NOTHING, OUT(wide));
    draft_op(&draft, OP_add, IN(x, wide), OUT(y));
    refused(&draft, &params, "op add (): 'b' has the shape 2×4, expected * with *=2×3");

    x = begin(&draft, &params);
    draft.layer = "dense1";
    int32_t w = draft_real(&draft, "w", SHAPE(4, 5)), z = draft_real(&draft, "z", SHAPE(2, 5));
    draft_op(&draft, OP_fill, NOTHING, OUT(w));
    draft_op(&draft, OP_dense, IN(x, w, -1), OUT(z));
    refused(&draft, &params, "op dense (dense1): 'w' has the shape 4×5, expected i,o with n=2 i=3");

    x = begin(&draft, &params);
    draft_op(&draft, OP_activate, IN(x), OUT(draft_real(&draft, "y", SHAPE(0, 3))));
    refused(&draft, &params, "the tensor 'y' has an impossible or too large shape");

    x = begin(&draft, &params);
    draft_op(&draft, OP_activate, IN(x), OUT(draft_real(&draft, "y", SHAPE(INT64_MAX, 3))));
    refused(&draft, &params, "impossible or too large");

    x = begin(&draft, &params);
    draft_view(&draft, x, SHAPE(7));
    refused(&draft, &params, "'x' () cannot be reshaped");
}

TEST(operands_that_do_not_fit_are_refused)
{
    struct draft draft;
    struct params params;
    int32_t x = begin(&draft, &params);
    int32_t labels = draft_tensor(&draft, ROLE_ACTIVATION, DTYPE_I32, "labels", SHAPE(2, 3));
    int32_t y = draft_real(&draft, "y", SHAPE(2, 3));
    draft_op(&draft, OP_add, IN(x, labels), OUT(y));
    refused(&draft, &params, "op add (): 'b' is i32, expected f32");

    x = begin(&draft, &params);
    draft_op(&draft, OP_add, IN(x), OUT(draft_real(&draft, "y", SHAPE(2, 3))));
    refused(&draft, &params, "its operand 'b' is missing");

    x = begin(&draft, &params);
    draft_op(&draft, OP_add, IN(x, -1), OUT(draft_real(&draft, "y", SHAPE(2, 3))));
    refused(&draft, &params, "its operand 'b' is missing");

    x = begin(&draft, &params);
    draft_op(&draft, OP_activate, IN(x, x), OUT(draft_real(&draft, "y", SHAPE(2, 3))));
    refused(&draft, &params, "has 2 operands, expected 1");

    x = begin(&draft, &params);
    draft_op(&draft, OP_activate, IN(x + 100), OUT(draft_real(&draft, "y", SHAPE(2, 3))));
    refused(&draft, &params, "its operand 'x' is no tensor of the program");
}

TEST(what_nothing_wrote_is_not_read)
{
    struct draft draft;
    struct params params;
    int32_t x = begin(&draft, &params);
    int32_t a = draft_real(&draft, "a", SHAPE(2, 3)), b = draft_real(&draft, "b", SHAPE(2, 3));
    draft_op(&draft, OP_add, IN(x, a), OUT(b));
    draft_op(&draft, OP_activate, IN(x), OUT(a));
    refused(&draft, &params, "op add () reads 'a' before anything wrote it");

    /* a later part writes it, whatever the order of drafting */
    x = begin(&draft, &params);
    a = draft_real(&draft, "a", SHAPE(2, 3));
    b = draft_real(&draft, "b", SHAPE(2, 3));
    draft_part(&draft, PART_BACKWARD);
    draft_op(&draft, OP_activate, IN(x), OUT(a));
    draft_part(&draft, PART_FORWARD);
    draft_op(&draft, OP_activate, IN(a), OUT(b));
    refused(&draft, &params, "reads 'a' before anything wrote it");
}

TEST(what_is_updated_in_place_is_one_tensor)
{
    struct draft draft;
    struct params params;
    int32_t entries[2];
    begin(&draft, &params);
    for (int i = 0; i < 2; i++)
        CHECK_OK(params_declare(&params, i ? "count" : "other", ROLE_STATE, DTYPE_I32, SHAPE(1),
                                zero, &entries[i]));
    int32_t other = draft_kept(&draft, entries[0]), count = draft_kept(&draft, entries[1]);
    CHECK_EQUAL_INT(draft_kept(&draft, entries[1]), count);
    draft_op(&draft, OP_tick, IN(count), OUT(other));
    refused(&draft, &params, "op tick (): 'count' is updated in place and must be one tensor");
}

TEST(the_first_mistake_is_the_one_reported)
{
    struct draft draft;
    struct params params;
    int32_t x = begin(&draft, &params);
    draft_fail(&draft, STATUS_INPUT, "the first of %d", 2);
    draft_fail(&draft, STATUS_UNSUPPORTED, "the second");
    CHECK_EQUAL_INT(draft_real(&draft, "y", SHAPE(1)), -1);
    CHECK_EQUAL_INT(draft_view(&draft, x, SHAPE(6)), -1);
    CHECK_EQUAL_INT(draft_kept(&draft, 0), -1);
    CHECK_EQUAL_INT(draft_grad(&draft, 0), -1);
    draft_op(&draft, OP_dense, IN(x), NOTHING)->attr.dense.activation = ACTIVATION_RELU;
    refused(&draft, &params, "the first of 2");

    params_init(&params, DTYPE_F32);
    CHECK_OK(program_begin(&draft, &params, "test", 0, DTYPE_F32));
    refused(&draft, &params, "the batch is 0, expected 1 or more");
}

TEST(parts_are_put_in_order)
{
    struct draft draft;
    struct params params;
    struct program *program = NULL;
    int32_t x = begin(&draft, &params);
    int32_t a = draft_real(&draft, "a", SHAPE(2, 3)), b = draft_real(&draft, "b", SHAPE(2, 3));
    draft_part(&draft, PART_BACKWARD);
    draft_op(&draft, OP_add, IN(a, a), OUT(b));
    draft_part(&draft, PART_FORWARD);
    draft_op(&draft, OP_activate, IN(x), OUT(a));
    if (CHECK_OK(program_finish(&draft, &program))) {
        CHECK_EQUAL_INT(program->ops[2].kind, OP_activate);
        CHECK_EQUAL_INT(program->ops[3].kind, OP_add);
        CHECK_EQUAL_INT(program->ops[3].id, 2); /* its place when it was drafted */
        CHECK_EQUAL_INT(program->parts[PART_PREPARE].to, 2);
        CHECK_EQUAL_INT(program->parts[PART_FORWARD].to, 3);
        CHECK_EQUAL_INT(program->parts[PART_BACKWARD].to, 4);
        CHECK_EQUAL_INT(program->parts[PART_UPDATE].from, program->parts[PART_UPDATE].to);
        CHECK(!program->updates);
    }
    program_free(program);
    params_free(&params);
}

TEST(parameters_are_declared_once)
{
    struct params params;
    int32_t first, again;
    params_init(&params, DTYPE_F32);
    CHECK_OK(params_declare(&params, "w", ROLE_PARAM, DTYPE_F32, SHAPE(2, 3), zero, &first));
    CHECK_OK(params_declare(&params, "w", ROLE_PARAM, DTYPE_F32, SHAPE(2, 3), zero, &again));
    CHECK_EQUAL_INT(first, again);
    CHECK_STATUS(STATUS_INPUT,
                 params_declare(&params, "w", ROLE_PARAM, DTYPE_F32, SHAPE(3, 2), zero, &again));
    CHECK_MESSAGE("'w'");
    CHECK_STATUS(STATUS_INPUT,
                 params_declare(&params, "w", ROLE_STATE, DTYPE_F32, SHAPE(2, 3), zero, &again));
    CHECK_STATUS(STATUS_INPUT,
                 params_declare(&params, "w", ROLE_PARAM, DTYPE_I32, SHAPE(2, 3), zero, &again));
    CHECK_STATUS(STATUS_INPUT, params_declare(&params, "huge", ROLE_PARAM, DTYPE_F32,
                                              SHAPE(INT64_MAX), zero, &again));
    CHECK_STATUS(STATUS_INPUT,
                 params_declare(&params, "none", ROLE_PARAM, DTYPE_F32, SHAPE(0), zero, &again));
    CHECK_EQUAL_INT(params.count, 1);
    CHECK_EQUAL_INT(params_find(&params, "none"), -1);
    CHECK_EQUAL_INT(params_count(&params), 6);
    params_free(&params);
}

/* What an entry starts from depends on its name and the seed, not on what else there is; and no two
 * start alike. */
TEST(starting_values_do_not_depend_on_their_neighbours)
{
    struct init normal = {INIT_NORMAL, 0.5f};
    float values[2][6], first[5];
    for (int more = 0; more < 2; more++) {
        struct params params;
        int32_t entry;
        params_init(&params, DTYPE_F32);
        if (more)
            CHECK_OK(params_declare(&params, "a", ROLE_PARAM, DTYPE_F32, SHAPE(5), normal, &entry));
        CHECK_OK(params_declare(&params, "w", ROLE_PARAM, DTYPE_F32, SHAPE(2, 3), normal, &entry));
        params_fill(&params, 7);
        memcpy(values[more], params_data(&params, entry), sizeof values[more]);
        memcpy(first, params_data(&params, 0), sizeof first);
        params_free(&params);
    }
    CHECK(!memcmp(values[0], values[1], sizeof values[0]));
    CHECK(memcmp(first, values[1], sizeof first) != 0);
}

/* The hash of this network's program, 0 when there is none. */
static uint64_t hash_of(const char *text, int32_t batch, enum program_use use)
{
    struct network *network = NULL;
    struct params params;
    struct program *program = NULL;
    uint64_t hash = 0;
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(network_parse("test", text, strlen(text), &network)) &&
        CHECK_OK(network_compile(network, &params,
                                 &(struct compile_options){.batch = batch, .use = use}, &program)))
        hash = program->hash;
    program_free(program);
    params_free(&params);
    network_free(network);
    return hash;
}

TEST(hash_names_the_computation)
{
    static const char net[] = "input 4\ndense 3\nsigmoid\ndropout 0.5\n";
    uint64_t hash = hash_of(net, 2, USE_TRAINING);
    CHECK(hash != 0);
    CHECK(hash == hash_of(net, 2, USE_TRAINING));
    CHECK(hash == hash_of("input 4 # other names\nfirst = dense 3\nsigmoid\nx = dropout rate=0.5\n",
                          2, USE_TRAINING));
    CHECK(hash != hash_of(net, 3, USE_TRAINING));
    CHECK(hash != hash_of(net, 2, USE_INFERENCE));
    CHECK(hash != hash_of("input 4\ndense 3\ntanh\ndropout 0.5\n", 2, USE_TRAINING));
    CHECK(hash != hash_of("input 4\ndense 3\nsigmoid\ndropout 0.4\n", 2, USE_TRAINING));
    CHECK(hash != hash_of("input 4\ndense 3 bias=0\nsigmoid\ndropout 0.5\n", 2, USE_TRAINING));
    CHECK(hash != hash_of("input 5\ndense 3\nsigmoid\ndropout 0.5\n", 2, USE_TRAINING));
}

static uint32_t next_random(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* A random program: tensors of one to 200 elements, each computed from earlier ones of its size,
 * some through a view. */
static bool random_program(uint32_t seed, struct params *params, struct program **out)
{
    enum { TENSORS = 40, SIZES = 5 };
    struct draft draft;
    int32_t tensors[SIZES][TENSORS], counts[SIZES] = {0};
    begin(&draft, params);
    for (int i = 0; i < TENSORS; i++) {
        uint32_t kind = next_random(&seed, SIZES);
        int64_t size = (int64_t[SIZES]){1, 16, 17, 64, 200}[kind];
        int32_t *same = tensors[kind], have = counts[kind];
        int32_t y = draft_real(&draft, "t", SHAPE(size));
        if (have == 0) {
            draft_op(&draft, OP_fill, NOTHING, OUT(y));
        } else {
            int32_t a = same[next_random(&seed, (uint32_t)have)];
            int32_t b = same[next_random(&seed, (uint32_t)have)];
            draft_part(&draft, next_random(&seed, 20) ? draft.part : PART_BACKWARD);
            draft_op(&draft, OP_add, IN(a, b), OUT(y));
        }
        same[counts[kind]++] =
            next_random(&seed, 4)
                ? y
                : draft_view(&draft, draft_view(&draft, y, SHAPE(1, size)), SHAPE(size));
    }
    return CHECK_OK(program_finish(&draft, out));
}

struct span {
    int32_t first, last;
};

/* When a tensor, with all its views, is touched: worked out anew, from the operands alone. */
static struct span life_of(const struct program *program, int32_t tensor)
{
    struct span span = {program->op_count, -1};
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            int32_t operand = program->operands[op->first + i];
            while (operand >= 0 && operand != tensor)
                operand = program->tensors[operand].view_of;
            if (operand < 0)
                continue;
            span.first = o < span.first ? o : span.first;
            span.last = o;
        }
    }
    return span;
}

/* Is `to` what an elementwise op makes of `from`, which nobody reads afterwards? */
static bool replaces(const struct program *program, int32_t from, int32_t to)
{
    struct span before = life_of(program, from), after = life_of(program, to);
    const struct op *op = &program->ops[after.first];
    return before.last == after.first && (op->kind == OP_add || op->kind == OP_activate) &&
           program_root(program, op_output(program, op, 0)) == to &&
           program->tensors[from].offset == program->tensors[to].offset &&
           program->tensors[from].bytes == program->tensors[to].bytes &&
           program->tensors[from].lost;
}

static void check_layout(const struct program *program)
{
    for (int32_t a = 0; a < program->tensor_count; a++) {
        const struct tensor *left = &program->tensors[a];
        struct span mine = life_of(program, a);
        if (left->view_of >= 0)
            CHECK_EQUAL_INT(left->offset, program->tensors[left->view_of].offset);
        if (left->role != ROLE_ACTIVATION || left->view_of >= 0 || mine.last < 0)
            continue;
        CHECK_EQUAL_INT(left->offset % LAYOUT_ALIGN, 0);
        CHECK(left->offset + left->bytes <= program->role_bytes[ROLE_ACTIVATION]);
        for (int32_t b = 0; b < a; b++) {
            const struct tensor *right = &program->tensors[b];
            struct span other = life_of(program, b);
            if (right->role != ROLE_ACTIVATION || right->view_of >= 0 || other.last < mine.first ||
                mine.last < other.first || replaces(program, a, b) || replaces(program, b, a))
                continue;
            CHECK(left->offset + left->bytes <= right->offset ||
                  right->offset + right->bytes <= left->offset);
        }
    }
}

TEST(live_tensors_never_share_bytes)
{
    uint64_t shared = 0, unshared = 0;
    for (uint32_t seed = 1; seed <= 200 && !check_failures; seed++) {
        struct params params;
        struct program *program = NULL;
        if (random_program(seed, &params, &program)) {
            check_layout(program);
            CHECK(program->role_bytes[ROLE_ACTIVATION] <= program->activation_bytes_unshared);
            shared += program->role_bytes[ROLE_ACTIVATION];
            unshared += program->activation_bytes_unshared;
        }
        if (check_failures)
            printf("    the program of seed %u\n", (unsigned)seed);
        program_free(program);
        params_free(&params);
    }
    CHECK(shared < unshared); /* and some do, where they may */
}

/* From the text of a network to three steps of its training. */
struct story {
    struct network *network;
    struct params params;
    struct program *program, *fused;
    const struct backend *backend;
    struct device *device;
    struct instance *instance;
    struct plan *plan;
};

static enum status tell(struct story *story)
{
    static const char net[] = "input 3\na = dense 4\nbatch_norm\nb = relu\nadd < a, b\ndropout\n"
                              "dense 2\nloss mse\noptimiser sgd rate=0.5\n";
    static float x[5 * 3], target[5 * 2];
    static const uint32_t order[] = {4, 2, 0, 1, 3};
    const struct backend *backend = story->backend = &backend_ref;
    struct compile_options options = {.batch = 2, .use = USE_TRAINING};
    TRY(network_parse("story", net, strlen(net), &story->network));
    TRY(network_compile(story->network, &story->params, &options, &story->program));
    params_fill(&story->params, 1);
    TRY(backend->open(&(struct device_options){.threads = 1}, &story->device));
    TRY(fuse(story->program, backend, story->device, &story->fused));
    TRY(backend->attach(story->device, &story->params, &story->instance));
    TRY(backend->prepare(story->instance, story->fused, &(struct plan_options){.slots = 2},
                         &story->plan));
    struct view views[] = {{program_find(story->fused, ROLE_INPUT, "x"), x, 5},
                           {program_find(story->fused, ROLE_INPUT, "target"), target, 5}};
    TRY(backend->bind(
        story->plan,
        &(struct binding){.views = views, .view_count = 2, .order = order, .order_count = 5}));
    TRY(backend->run(story->plan, PARTS_ALL, 0, 3));
    TRY(backend->sync(story->plan));
    return backend->download(story->instance, &story->params);
}

static void end(struct story *story)
{
    if (story->plan)
        story->backend->release(story->plan);
    if (story->instance)
        story->backend->detach(story->instance);
    if (story->device)
        story->backend->close(story->device);
    program_free(story->fused);
    program_free(story->program);
    params_free(&story->params);
    network_free(story->network);
}

TEST(every_failed_allocation_ends_cleanly)
{
    enum status status = STATUS_MEMORY;
    long nth = 1;
    for (; nth < 10000 && status != STATUS_OK; nth++) {
        struct story story = {0};
        params_init(&story.params, DTYPE_F32);
        memory_fail_at(nth);
        status = tell(&story);
        bool failed = memory_failed();
        memory_fail_at(0);
        end(&story);
        if (failed && !CHECK(status == STATUS_MEMORY)) {
            printf("    allocation %ld: status %s, %s\n", nth, status_name(status),
                   status_message());
            return;
        }
    }
    CHECK(nth > 20);
    CHECK_OK(status);
}

CHECK_MAIN
