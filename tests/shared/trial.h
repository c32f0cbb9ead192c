/* trial.h: a network's program on a backend and on the reference, as steps or as calls, for tests
 * of kernels that run a program whole. */
#ifndef PRONY_TESTS_TRIAL_H
#define PRONY_TESTS_TRIAL_H

#include "base/memory.h"
#include "core/pass/fuse.h"
#include "nn/network.h"
#include "rig.h"

enum { ROWS = 61, RING = 64, NAME = 64, KERNELS_MOST = 64 };

struct row {
    const char *network; /* its name, or its text */
    int32_t batch;
    enum loss_kind loss;
    int32_t classes;      /* 0: numbers */
    const char *schedule; /* or NULL */
};

static const struct row usual[] = {
    {"small", 1, LOSS_MSE, 0, NULL},
    {"small", 10, LOSS_MSE, 0, NULL},
    {"mlp:8-8-1:relu", 1, LOSS_MSE, 0, "step:period=7,factor=0.5"},
    {"mlp:2-5-6-3:sigmoid", 1, LOSS_CROSS_ENTROPY, 3, NULL},
    {"mlp:7-4-2:tanh", 12, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
    {"mlp:4-8-1:relu", 1, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
    {"mlp:4-8-1:relu", 10, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
    {"mlp:4-8-1:relu", 20, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
    {"mlp:3-8-5-8-8:relu", 2, LOSS_CROSS_ENTROPY, 8, "cosine:period=40,least=0.1"},
    {"mlp:3-7-8-2:tanh", 33, LOSS_MSE, 0, NULL},
    {"mlp:3-7-8-2:tanh", 4, LOSS_MSE, 0, NULL},
    {"mlp:5-16-11-4:relu", 7, LOSS_CROSS_ENTROPY, 4, "step:period=7,factor=0.5"},
    {"mlp:5-17-11-4:relu", 2, LOSS_CROSS_ENTROPY, 4, NULL},
    {"mlp:9-32-31-3:sigmoid", 13, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
    {"mlp:8-8-8-8-8:tanh", 11, LOSS_MSE, 0, "step:period=7,factor=0.5"},
    {"mlp:4-32-32-2:sigmoid", 1, LOSS_MSE, 0, NULL},
    {"mlp:4-3-3-3-3-2:relu", 3, LOSS_CROSS_ENTROPY, 2, NULL},
    {"mlp:1-1", 1, LOSS_MSE, 0, NULL},
    {"mlp:4-160-259-7-1:sigmoid", 1, LOSS_MSE, 0, NULL},
    {"mlp:4-160-259-160-1:sigmoid", 3, LOSS_MSE, 0, NULL},
    {"mlp:7-33-129-40-10:relu", 2, LOSS_CROSS_ENTROPY, 10, "cosine:period=40,least=0.1"},
    {"mlp:4-160-260-160-1:sigmoid", 1, LOSS_MSE, 0, NULL},
    {"mlp:8-300-344-20:relu", 12, LOSS_CROSS_ENTROPY, 20, NULL},
    {"mlp:5-136-36-520-7:tanh", 10, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
    {"mlp:50-520-530-9:tanh", 10, LOSS_CROSS_ENTROPY, 9, NULL},
    {"mlp:6-45-47-29:sigmoid", 5, LOSS_MSE, 0, NULL},
    {"mlp:6-300-300-20:sigmoid", 16, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
    {"mlp:700-64-650-32:relu", 8, LOSS_MSE, 0, NULL},
    {"mlp:90-5", 12, LOSS_CROSS_ENTROPY, 5, NULL},
    {"mlp:40-9-300-3-200-2:tanh", 6, LOSS_MSE, 0, NULL},
    /* Layers so narrow that many blocks of a grid have no part in them. */
    {"mlp:8-512-32-4:tanh", 1, LOSS_MSE, 0, NULL},
    {"mlp:8-512-32-4:tanh", 5, LOSS_CROSS_ENTROPY, 4, NULL},
    {"mlp:500-40-4:relu", 1, LOSS_CROSS_ENTROPY, 4, NULL},
    {"mlp:500-16-4:sigmoid", 1, LOSS_MSE, 0, NULL},
    {"mlp:500-16-4:sigmoid", 3, LOSS_MSE, 0, NULL},
};

/* A network's program and its data. */
struct trial {
    struct network *network;
    struct params params;
    struct program *program;
    float *x, *target;
    int32_t *label;
    uint32_t order[ROWS];
    float loss[RING], right[RING];
    float *y;
    char kernel[NAME]; /* by which it ran */
};

/* Those that have run something, each once. */
static char kernels[KERNELS_MOST][NAME];

static const char *optimiser; /* by which networks are trained; NULL: by their own */

static inline bool has_run(const char *part)
{
    bool found = false;
    for (int i = 0; i < KERNELS_MOST && kernels[i][0]; i++)
        found = found || strstr(kernels[i], part);
    return found;
}

/* The program alone; `bare`: of parameters that have no values. */
static inline bool trial_compile(struct trial *trial, const struct row *row, enum program_use use,
                                 bool bare)
{
    const struct compile_options options = {.batch = row->batch,
                                            .use = use,
                                            .loss = row->loss,
                                            .classes = row->classes,
                                            .optimiser = optimiser,
                                            .schedule = use == USE_TRAINING ? row->schedule : NULL};
    *trial = (struct trial){0};
    params_init(&trial->params, DTYPE_F32);
    trial->params.bare = bare;
    const bool is_text = strncmp(row->network, "input", 5) == 0;
    return CHECK_OK(
               is_text ? network_parse("stack", row->network, strlen(row->network), &trial->network)
                       : network_open(row->network, &trial->network)) &&
           CHECK_OK(network_compile(trial->network, &trial->params, &options, &trial->program));
}

static inline bool trial_open(struct trial *trial, const struct row *row, enum program_use use)
{
    if (!trial_compile(trial, row, use, false) || !CHECK_OK(params_fill(&trial->params, 3)))
        return false;
    const int32_t x = program_find(trial->program, ROLE_INPUT, "x");
    const int64_t in = shape_count(&trial->program->tensors[x].shape) / row->batch;
    const int64_t widest = 1024;
    trial->x = mem_array((size_t)(ROWS * in), sizeof(float));
    trial->target = mem_array((size_t)(ROWS * widest), sizeof(float));
    trial->y = mem_array((size_t)(ROWS * widest), sizeof(float));
    trial->label = mem_array(ROWS, sizeof(int32_t));
    if (!CHECK(trial->x && trial->target && trial->y && trial->label))
        return false;
    fill_random(trial->x, ROWS * in, 5);
    fill_random(trial->target, ROWS * widest, 6);
    for (uint32_t i = 0; i < ROWS; i++) {
        trial->label[i] = (int32_t)(i * 7 % 13) % (row->classes ? row->classes : 1);
        trial->order[i] = i * 17 % ROWS;
    }
    for (int64_t i = 0; i < ROWS * widest; i++)
        trial->target[i] = trial->target[i] / 2 + 0.5f;
    return true;
}

static inline void trial_close(struct trial *trial)
{
    program_free(trial->program);
    params_free(&trial->params);
    network_free(trial->network);
    mem_free(trial->x);
    mem_free(trial->target);
    mem_free(trial->y);
    mem_free(trial->label);
}

static inline bool trial_bind(struct trial *trial, struct ready *ready,
                              const struct program *program)
{
    static const char *const names[] = {"x", "target", "label", "loss", "right", "y"};
    void *const data[] = {trial->x,    trial->target, trial->label,
                          trial->loss, trial->right,  trial->y};
    const int64_t counts[] = {ROWS, ROWS, ROWS, RING, RING, ROWS};
    struct view views[6];
    struct binding binding = {
        .views = views, .order = trial->order, .order_count = ROWS, .start = ROWS - 2};
    for (int i = 0; i < 6; i++) {
        int32_t tensor = program_find(program, i < 3 ? ROLE_INPUT : ROLE_OUTPUT, names[i]);
        if (tensor >= 0)
            views[binding.view_count++] = (struct view){tensor, data[i], counts[i]};
    }
    return CHECK_OK(ready->backend->bind(ready->plan, &binding));
}

/* What the plan runs its first op by: all of them, where one kernel has them all. */
static inline void plan_kernel(const struct backend *backend, const struct plan *plan,
                               char name[NAME])
{
    struct arena arena = {0};
    struct explanation explanation;
    if (CHECK_OK(backend->explain(plan, &arena, &explanation)) &&
        CHECK(explanation.kernel_count > 0))
        snprintf(name, NAME, "%s", explanation.kernels[0].kernel);
    arena_free(&arena);
}

/* The same of a dry plan, as `prony explain` asks it. "": it is refused. */
static inline void expect_kernel(struct rig *rig, const struct row *row, enum program_use use,
                                 enum answering answering, char name[NAME])
{
    const struct plan_options options = {.dry = true, .answering = answering};
    struct ready ready = {.backend = rig->backend, .owns_instance = true};
    struct trial trial;
    struct program *fused = NULL;
    name[0] = 0;
    if (trial_compile(&trial, row, use, true) &&
        CHECK_OK(fuse(trial.program, rig->backend, rig->device, &fused)) &&
        CHECK_OK(rig->backend->attach(rig->device, &trial.params, &ready.instance)) &&
        rig->backend->prepare(ready.instance, fused, &options, &ready.plan) == STATUS_OK)
        plan_kernel(rig->backend, ready.plan, name);
    ready_close(&ready);
    program_free(fused);
    trial_close(&trial);
}

/* It ran by what was said. */
static inline void check_kernel(const struct trial *trial, const char *said)
{
    int i = 0;
    CHECK_EQUAL_TEXT(trial->kernel, said);
    while (i < KERNELS_MOST && kernels[i][0] && strcmp(kernels[i], trial->kernel) != 0)
        i++;
    if (CHECK(i < KERNELS_MOST))
        snprintf(kernels[i], NAME, "%s", trial->kernel);
}

/* Fewer where each is watched by a tool; on a GPU always more than there is room for. */
static int64_t most_calls = 150;

/* As many calls as answer every row, where there is no room to be filled. */
static inline int64_t calls_of(const struct rig *rig, const struct row *row)
{
    const int64_t every = ROWS / row->batch + 1;
    return strcmp(rig->backend->unit, "gpu") == 0 || most_calls < every ? most_calls : every;
}

/* The program as calls: so many one by one, more than there is room for at once, and after the unit
 * was used for something else. False: the backend cannot. */
static inline bool trial_call(struct trial *trial, struct rig *rig, const struct row *row,
                              const struct program *program, enum answering answering)
{
    const int64_t calls[] = {1, 1, 3, calls_of(rig, row)};
    const struct plan_options options = {.answering = answering};
    struct ready ready = {.backend = rig->backend, .owns_instance = true};
    if (!CHECK_OK(rig->backend->attach(rig->device, &trial->params, &ready.instance)))
        return false;
    enum status status = rig->backend->prepare(ready.instance, program, &options, &ready.plan);
    bool ok = status == STATUS_OK && trial_bind(trial, &ready, program);
    if (answering != ANSWER_RESIDENT)
        CHECK_OK(status);
    if (ok)
        plan_kernel(rig->backend, ready.plan, trial->kernel);
    for (size_t i = 0; ok && i < sizeof calls / sizeof *calls; i++) {
        ok = ready_run(&ready, PARTS_ALL, 0, calls[i]);
        if (i % 2)
            ok = ok && CHECK_OK(rig->backend->download(ready.instance, &trial->params));
    }
    ready_close(&ready);
    return ok;
}

static inline bool near(const char *what, const struct row *row, double rate, double found,
                        double most)
{
    if (CHECK(found <= most))
        return true;
    printf("    %s of %s, batch %d, rate %g%s%s differ by %g\n", what, row->network, row->batch,
           rate, optimiser ? ", by " : "", optimiser ? optimiser : "", found);
    return false;
}

#endif
