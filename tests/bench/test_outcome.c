/* What is right where rounding decides: a deep network in low precision. What was rounded is right,
 * though it is far from the reference; what is missing, of the wrong size or computed by another
 * network is wrong. */
#include "check.h"

#include "backend/cpu/cpu_backends.h"
#include "bench/check/outcome.h"
#include "bench/check/reference.h"
#include "bench/check/task_copy.h"
#include "bench/job/job_network.h"
#include "bench/peer/task_peer.h"

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
    struct task *copy;
    if (!CHECK_OK(outcome_make(task, &task->arena, found)) ||
        !CHECK_OK(task_copy(task, DTYPE_F32, task->batch, &copy)))
        return false;
    round_to_bf16(copy->params.blocks[ROLE_PARAM].data,
                  (size_t)copy->params.blocks[ROLE_PARAM].bytes / sizeof(float));
    bool done = CHECK_OK(job_network_answer(copy, &on_ref, found));
    for (int64_t i = 0; i < task_stages(task) * task->value_count; i++)
        found->values[i] +=
            task_initial(task, i % task->value_count) - task_initial(copy, i % task->value_count);
    task_close(copy);
    return done;
}

/* The outcome, in which one entry (-1: each) has moved `times` as far. */
static enum status check_scaled(struct task *task, const struct outcome *like, int32_t entry,
                                double times)
{
    struct outcome found;
    double error;
    TRY(outcome_make(task, &task->arena, &found));
    memcpy(found.loss, like->loss, sizeof found.loss);
    for (int64_t i = 0; i < task_stages(task) * task->value_count; i++) {
        const int64_t place = i % task->value_count;
        const double start = task_initial(task, place), way = like->values[i] - start;
        const bool scales = entry < 0 || task->places[place].entry == entry;
        found.values[i] = start + (scales ? times * way : way);
    }
    return outcome_check(task, &found, &error);
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
    if (backend_simd.probe() != STATUS_OK)
        SKIP("%s", status_message());
    struct task *task, *other;
    struct outcome rounded, swapped;
    double error;
    const struct reference reference = {.options = on_simd, .real = DTYPE_F32, .batch = BATCH};
    if (!open_deep(-1, &task) || !CHECK_OK(reference_compute(&reference, task)) ||
        !rounded_steps(task, &rounded))
        return;
    CHECK_OK(outcome_check(task, &rounded, &error));
    CHECK(error > 0 && error <= task->tolerance && task->tolerance < 1);

    for (int32_t e = 0; e < task->params.count; e++)
        for (int i = 0; learns(task, e) && i < 2; i++) {
            static const double times[] = {0, 4};
            if (!CHECK_STATUS(STATUS_WRONG, check_scaled(task, &rounded, e, times[i])))
                printf("    %g × %s\n", times[i], task->params.entries[e].name);
        }
    CHECK_STATUS(STATUS_WRONG, check_scaled(task, &rounded, -1, 0));
    CHECK_STATUS(STATUS_WRONG, check_scaled(task, &rounded, -1, 0.9));
    CHECK_STATUS(STATUS_WRONG, check_scaled(task, &rounded, -1, 1.1));
    for (int block = 0; block < BLOCKS; block += 12) {
        if (!open_deep(block, &other))
            break;
        if (rounded_steps(other, &swapped) &&
            !CHECK_STATUS(STATUS_WRONG, outcome_check(task, &swapped, &error)))
            printf("    layers of block %d are swapped\n", block);
        task_close(other);
    }
    task_close(task);
}

static bool open_shallow(const char *optimiser, struct task **out)
{
    char path[] = "/tmp/prony-shallow-XXXXXX.net";
    int file = mkstemps(path, 4);
    if (!CHECK(file >= 0))
        return false;
    FILE *text = fdopen(file, "w");
    fprintf(text, "input 12\ndense 12\nrelu\ndense 10\nloss cross_entropy\noptimiser %s\n",
            optimiser);
    fclose(text);
    const struct task_options options = {.model = path, .phase = PHASE_TRAINING, .batch = BATCH};
    const struct reference reference = {.options = on_ref, .real = DTYPE_F64, .batch = BATCH};
    bool opened =
        CHECK_OK(task_open(&options, out)) && CHECK_OK(reference_compute(&reference, *out));
    unlink(path);
    return opened;
}

enum tail { TAIL_STAYS, TAIL_INFINITE, TAIL_WILD, TAIL_TURNED, TAIL_KINDS };

static double tail_value(enum tail tail, double start, double right)
{
    return tail == TAIL_STAYS      ? start
           : tail == TAIL_INFINITE ? (double)INFINITY
           : tail == TAIL_WILD     ? 1e6
                                   : 2 * start - right;
}

/* The reference's outcome; only the last number of entry `only` (-1: of each) is that. */
static enum status check_tail(struct task *task, enum tail tail, int32_t only)
{
    struct outcome found;
    double error;
    TRY(outcome_make(task, &task->arena, &found));
    memcpy(found.loss, task->reference.loss, sizeof found.loss);
    for (int64_t i = 0; i < task_stages(task) * task->value_count; i++) {
        const int64_t place = i % task->value_count;
        const int32_t entry = task->places[place].entry;
        const bool ends = place + 1 == task->value_count || task->places[place + 1].entry != entry;
        const double start = task_initial(task, place), right = task->reference.values[i];
        found.values[i] =
            ends && (only < 0 || entry == only) ? tail_value(tail, start, right) : right;
    }
    return outcome_check(task, &found, &error);
}

TEST(the_last_number_of_a_parameter_counts_with_every_optimiser)
{
    static const char *const optimisers[] = {"sgd",     "momentum", "adam", "adamw",
                                             "rmsprop", "adagrad",  "rprop"};
    for (size_t o = 0; o < sizeof optimisers / sizeof *optimisers; o++) {
        struct task *task;
        if (!open_shallow(optimisers[o], &task))
            return;
        for (enum tail tail = 0; tail < TAIL_KINDS; tail++)
            if (!CHECK_STATUS(STATUS_WRONG, check_tail(task, tail, -1)))
                printf("    %s, tail %d of all\n", optimisers[o], (int)tail);
        const int32_t last = task->places[task->value_count - 1].entry;
        for (enum tail tail = 0; tail < TAIL_TURNED; tail++)
            if (!CHECK_STATUS(STATUS_WRONG, check_tail(task, tail, last)))
                printf("    %s, tail %d of the last\n", optimisers[o], (int)tail);
        task_close(task);
    }
}

/* What rounding makes infinite is not judged, and hides no fault elsewhere. */
TEST(an_infinite_draw_hides_no_fault)
{
    struct task *task;
    double error;
    if (!open_shallow("sgd", &task))
        return;
    const int64_t end = task_stages(task) * task->value_count - 1;
    const int32_t last = task->places[task->value_count - 1].entry;
    const double right = task->draws[0].values[end];
    task->draws[0].values[end] = (double)INFINITY;
    CHECK_OK(outcome_check(task, &task->draws[1], &error));
    CHECK(isfinite(error) && isfinite(task->tolerance));
    CHECK_STATUS(STATUS_WRONG, check_tail(task, TAIL_STAYS, task->places[0].entry));
    CHECK_STATUS(STATUS_WRONG, check_tail(task, TAIL_INFINITE, -1));
    CHECK_STATUS(STATUS_WRONG, check_tail(task, TAIL_INFINITE, last)); /* after the first step */
    task->draws[0].values[end] = right;

    task->draws[0].loss[0] = (double)NAN;
    CHECK_STATUS(STATUS_WRONG, check_tail(task, TAIL_STAYS, last));
    task->draws[0].loss[0] = task->reference.loss[0];

    task->reference.values[end] = (double)INFINITY;
    CHECK_STATUS(STATUS_UNSUPPORTED, outcome_check(task, &task->draws[0], &error));
    CHECK(strstr(status_message(), "the reference diverges") != NULL);
    task->reference.values[end] = right;
    task->reference.loss[1] = (double)NAN;
    CHECK_STATUS(STATUS_UNSUPPORTED, outcome_check(task, &task->draws[0], &error));
    task_close(task);
}

/* A peer that gives fewer outputs than there are is not judged on these alone. */
TEST(a_peer_gives_all_outputs)
{
    const struct task_options options = {
        .model = "mlp:4-8-3", .phase = PHASE_INFERENCE, .batch = 500};
    const struct reference reference = {.options = on_ref, .real = DTYPE_F64, .batch = 500};
    struct task *task;
    if (!CHECK_OK(task_open(&options, &task)) || !CHECK_OK(reference_compute(&reference, task)))
        return;
    for (int64_t left = 0; left <= 1; left++) {
        struct text text = {0};
        struct json *answer;
        double error;
        text_add(&text, "{\"values\":[");
        for (int64_t i = 0; i < task->value_count - left; i++)
            text_printf(&text, "%s%.9g", i ? "," : "", task->reference.values[i]);
        text_add(&text, "]}");
        if (CHECK_OK(text_done(&text)) &&
            CHECK_OK(json_parse(&task->arena, "answer", text_of(&text), strlen(text_of(&text)),
                                &answer)))
            CHECK_STATUS(left ? STATUS_DEVICE : STATUS_OK,
                         task_peer_compare(task, (const struct json *const[]){answer}, &error));
        text_free(&text);
    }
    task_close(task);
}

CHECK_MAIN
