/* What is right where rounding decides: a deep network in low precision. What was rounded is right,
 * though it is far from the reference; what is missing, of the wrong size or computed by another
 * network is wrong. */
#include "check.h"

#include "backend/cpu/cpu_backends.h"
#include "bench/job_network.h"
#include "bench/judge.h"
#include "bench/referee.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 24, BATCH = 4, BF16_BITS = 8 };

static const struct network_options on_ref = {.backend = &backend_ref, .device = {.threads = 1}};
static const struct network_options on_simd = {.backend = &backend_simd,
                                               .device = {.threads = 1, .isa = ISA_AVX2}};

/* A stack of convolutions, norms and relus; in block `swapped` the last two change places. */
static bool write_deep(const char *path, int swapped)
{
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL))
        return false;
    fprintf(file, "input 3x4x4\n");
    for (int i = 0; i < BLOCKS; i++)
        fprintf(file, "conv 20 3x3 pad=1\n%s\n",
                i == swapped ? "relu\nbatch_norm" : "batch_norm\nrelu");
    fprintf(file, "global_average_pool\ndense 10\nloss cross_entropy\noptimiser sgd\n");
    return CHECK_EQUAL_INT(fclose(file), 0);
}

static bool open_deep(int swapped, struct task **out)
{
    char path[] = "/tmp/prony-deep-XXXXXX.net";
    int file = mkstemps(path, 4);
    if (!CHECK(file >= 0))
        return false;
    close(file);
    const struct task_options options = {
        .model = path, .phase = PHASE_TRAINING, .batch = BATCH, .precision = "bf16"};
    bool opened = write_deep(path, swapped) && CHECK_OK(task_open(&options, out));
    unlink(path);
    return opened;
}

static void round_to_bf16(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int exponent;
        float part = frexpf(values[i], &exponent);
        values[i] = ldexpf(rintf(ldexpf(part, BF16_BITS)), exponent - BF16_BITS);
    }
}

/* Steps whose weights were rounded on their way into the first one, as low precision does; the
 * updates go to the weights as they were. */
static bool rounded_steps(struct task *task, struct outcome *found)
{
    struct task *twin;
    if (!CHECK_OK(task_outcome(task, &task->arena, found)) ||
        !CHECK_OK(task_twin(task, DTYPE_F32, task->batch, &twin)))
        return false;
    round_to_bf16(twin->params.blocks[ROLE_PARAM].data,
                  (size_t)twin->params.blocks[ROLE_PARAM].bytes / sizeof(float));
    bool done = CHECK_OK(job_network_answer(twin, &on_ref, found));
    for (int64_t i = 0; i < task_stages(task) * task->value_count; i++)
        found->values[i] +=
            task_initial(task, i % task->value_count) - task_initial(twin, i % task->value_count);
    task_close(twin);
    return done;
}

/* The outcome, in which one entry (-1: each) has moved `times` as far. */
static enum status judge_scaled(struct task *task, const struct outcome *like, int32_t entry,
                                double times)
{
    struct outcome found;
    double error;
    TRY(task_outcome(task, &task->arena, &found));
    memcpy(found.loss, like->loss, sizeof found.loss);
    for (int64_t i = 0; i < task_stages(task) * task->value_count; i++) {
        const int64_t place = i % task->value_count;
        const double start = task_initial(task, place), way = like->values[i] - start;
        const bool scales = entry < 0 || task->places[place].entry == entry;
        found.values[i] = start + (scales ? times * way : way);
    }
    return judge_outcome(task, &found, &error);
}

/* A bias before a batch norm changes nothing, and what rounding moves it by is nobody's mistake. */
static bool learns(const struct task *task, int32_t entry)
{
    const char *name = task->params.entries[entry].name;
    return task->params.entries[entry].role == ROLE_PARAM &&
           !(strncmp(name, "conv", 4) == 0 && strstr(name, ".bias"));
}

TEST(in_low_precision_rounding_is_right_and_mistakes_are_wrong)
{
    struct task *task, *other;
    struct outcome rounded, swapped;
    double error;
    const struct referee referee = {.options = on_simd, .real = DTYPE_F32, .batch = BATCH};
    if (!open_deep(-1, &task) || !CHECK_OK(referee_refer(&referee, task)) ||
        !rounded_steps(task, &rounded))
        return;
    CHECK_OK(judge_outcome(task, &rounded, &error));
    CHECK(error > 0 && error <= task->tolerance && task->tolerance < 1);

    for (int32_t e = 0; e < task->params.count; e++)
        for (int i = 0; learns(task, e) && i < 2; i++) {
            static const double times[] = {0, 4};
            if (!CHECK_STATUS(STATUS_WRONG, judge_scaled(task, &rounded, e, times[i])))
                printf("    %g × %s\n", times[i], task->params.entries[e].name);
        }
    CHECK_STATUS(STATUS_WRONG, judge_scaled(task, &rounded, -1, 0));
    CHECK_STATUS(STATUS_WRONG, judge_scaled(task, &rounded, -1, 0.9));
    CHECK_STATUS(STATUS_WRONG, judge_scaled(task, &rounded, -1, 1.1));
    for (int block = 0; block < BLOCKS; block += 12) {
        if (!open_deep(block, &other))
            break;
        if (rounded_steps(other, &swapped) &&
            !CHECK_STATUS(STATUS_WRONG, judge_outcome(task, &swapped, &error)))
            printf("    layers of block %d are swapped\n", block);
        task_close(other);
    }
    task_close(task);
}

CHECK_MAIN
