/* A task's references: the outcome of a step against them, how they are kept, and the task's files.
 */
#include "check.h"

#include "backend/cpu/cpu_backends.h"
#include "base/file.h"
#include "bench/check/outcome.h"
#include "bench/check/reference.h"
#include "bench/check/reference_file.h"
#include "bench/job/task_files.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static enum status open_small(int32_t batch, struct task **out)
{
    const struct task_options options = {.model = "small", .phase = PHASE_TRAINING, .batch = batch};
    return task_open(&options, out);
}

static enum status refer(struct task *task)
{
    const struct reference exact = {
        .options = {.backend = &backend_ref, .device = {.threads = 1}},
        .real = DTYPE_F64,
        .batch = task->batch,
    };
    return reference_compute(&exact, task);
}

static int asked, stop_after;
static bool asks(void)
{
    return ++asked > stop_after;
}

/* Whoever waits sees the bar move and may stop a long check, not only between its steps. */
TEST(a_check_asks_while_it_runs)
{
    struct task *task;
    struct outcome found;
    struct network_options options = {
        .backend = &backend_ref, .device = {.threads = 1}, .stopped = asks};
    if (!CHECK_OK(open_small(3, &task)) || !CHECK_OK(outcome_make(task, &task->arena, &found)))
        return;
    asked = 0;
    stop_after = INT_MAX;
    CHECK_OK(job_network_answer(task, &options, &found));
    CHECK_EQUAL_INT(asked, task->check_steps);
    const double loss = found.loss[0];
    asked = 0;
    options.long_steps = true;
    CHECK_OK(job_network_answer(task, &options, &found));
    CHECK(asked > 10 * task->check_steps);
    CHECK(found.loss[0] == loss); /* being asked changes nothing */
    stop_after = asked / 2;
    asked = 0;
    CHECK_STATUS(STATUS_INTERRUPTED, job_network_answer(task, &options, &found));
    struct bench bench = {.measure = {.stopped = asks}};
    struct reference reference = {.options = options, .real = DTYPE_F64, .batch = task->batch};
    stop_after = asked = 0;
    CHECK_STATUS(STATUS_INTERRUPTED, reference_begin(&reference, &bench, task));
    task_close(task);
}

/* The reference's outcome, in which each parameter (or the one of that entry) moved so many times
 * as far. */
static enum status check_moved(struct task *task, int32_t entry, double times, double *error)
{
    struct outcome found;
    TRY(outcome_make(task, &task->arena, &found));
    memcpy(found.loss, task->reference.loss, sizeof found.loss);
    for (int64_t i = 0; i < task_stages(task) * task->value_count; i++) {
        const int64_t place = i % task->value_count;
        const double start = task_initial(task, place), way = task->reference.values[i] - start;
        const bool moves = entry < 0 || task->places[place].entry == entry;
        found.values[i] = (double)(float)(start + (moves ? times * way : way));
    }
    return outcome_check(task, &found, error);
}

/* A step that was not done, or done twice, moves parameters by a whole step: far off. A parameter
 * that is off by its rounding is right. */
TEST(the_check_finds_a_wrong_update)
{
    struct task *task;
    struct outcome found;
    double error;
    if (!CHECK_OK(open_small(3, &task)) || !CHECK_OK(refer(task)))
        return;
    CHECK_OK(check_moved(task, -1, 1, &error));
    CHECK(error < task->tolerance);
    CHECK_STATUS(STATUS_WRONG, check_moved(task, -1, 1.01, &error));
    /* Whichever entry does not learn, however little it would have moved, or learns too much. */
    for (int32_t e = 0; e < task->params.count; e++)
        if (task->params.entries[e].role == ROLE_PARAM) {
            CHECK_STATUS(STATUS_WRONG, check_moved(task, e, 0, &error));
            CHECK_STATUS(STATUS_WRONG, check_moved(task, e, 1.01, &error));
        }
    CHECK_OK(outcome_make(task, &task->arena, &found));
    memcpy(found.loss, task->reference.loss, sizeof found.loss);
    memcpy(found.values, task->reference.values,
           (size_t)(task_stages(task) * task->value_count) * sizeof(double));
    CHECK_OK(outcome_check(task, &found, &error));
    CHECK_NEAR(error, 0, 0);
    found.values[5] = (double)NAN;
    CHECK_STATUS(STATUS_WRONG, outcome_check(task, &found, &error));
    found.values[5] = task->reference.values[5];
    found.loss[1] *= 1.02;
    CHECK_STATUS(STATUS_WRONG, outcome_check(task, &found, &error));
    CHECK_MESSAGE("the loss after 3 steps");
    task_close(task);
}

/* What the reference computed is found again, by the same commit and for the same work only. */
TEST(dear_references_are_kept)
{
    char folder[] = "/tmp/prony-test-XXXXXX", command[80];
    struct task *task, *again;
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    setenv("XDG_DATA_HOME", folder, 1);
    if (!CHECK_OK(open_small(3, &task)))
        return;
    CHECK_OK(refer(task));
    CHECK_OK(reference_save(task, "ref f64", "abc"));
    CHECK_OK(reference_save(task, "ref f64", "dirty+"));
    CHECK_OK(open_small(3, &again));
    static const char *const others[] = {"", "abd", "dirty+"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_OK(reference_load(again, "ref f64", others[i]));
        CHECK(!again->has_reference);
    }
    again->check_steps++;
    CHECK_OK(reference_load(again, "ref f64", "abc"));
    CHECK(!again->has_reference);
    again->check_steps--;
    CHECK_OK(reference_load(again, "simd", "abc"));
    CHECK(!again->has_reference);
    /* The same program, from other weights and over other data. */
    float *numbers[] = {params_data(&again->params, 0), params_data(&again->data, 0)};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const float kept = numbers[i][0];
        numbers[i][0] += 1;
        CHECK_OK(reference_load(again, "ref f64", "abc"));
        CHECK(!again->has_reference);
        numbers[i][0] = kept;
    }
    CHECK_OK(reference_load(again, "ref f64", "abc"));
    if (CHECK(again->has_reference)) {
        const size_t bytes = (size_t)(task_stages(task) * task->value_count) * sizeof(double);
        CHECK(memcmp(again->reference.values, task->reference.values, bytes) == 0);
        CHECK_NEAR(again->reference.loss[1], task->reference.loss[1], 0);
        CHECK_EQUAL_INT(again->draw_count, task->draw_count);
        CHECK(memcmp(again->draws[1].values, task->draws[1].values, bytes) == 0);
    }
    task_close(again);
    CHECK_OK(open_small(4, &again));
    CHECK_OK(reference_load(again, "ref f64", "abc"));
    CHECK(!again->has_reference);
    task_close(again);
    task_close(task);
    unsetenv("XDG_DATA_HOME");
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_EQUAL_INT(system(command), 0);
}

static bool is_there(const char *folder, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return file_exists(path);
}

/* Of those that were killed; not what somebody still uses, was just made, or is not ours. */
TEST(folders_that_nobody_uses_are_removed)
{
    static const char *const names[] = {"prony-gone12", "prony-used12", "prony-young1",
                                        "prony-mixed1", "strange-abc123"};
    char folder[] = "/tmp/prony-test-XXXXXX", command[300], path[200];
    struct task *task;
    if (!CHECK(mkdtemp(folder) != NULL) || !CHECK_OK(open_small(3, &task)))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(command, sizeof command,
                 "mkdir %s/%s && touch %s/%s/weights.safetensors && touch -d @%d %s/%s", folder,
                 names[i], folder, names[i], i == 2 ? INT_MAX : 1000000, folder, names[i]);
        CHECK_EQUAL_INT(system(command), 0);
    }
    snprintf(command, sizeof command,
             "touch %s/prony-mixed1/yours; touch -d @1000000 %s/prony-mixed1", folder, folder);
    CHECK_EQUAL_INT(system(command), 0);
    snprintf(path, sizeof path, "%s/prony-used12", folder);
    int lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL_INT(flock(lock, LOCK_EX), 0);
    setenv("TMPDIR", folder, 1);
    CHECK_OK(task_write_files(task));
    unsetenv("TMPDIR");
    CHECK(!is_there(folder, "prony-gone12"));
    CHECK(is_there(folder, "prony-used12/weights.safetensors"));
    CHECK(is_there(folder, "prony-young1/weights.safetensors"));
    CHECK(is_there(folder, "prony-mixed1/yours"));
    CHECK(is_there(folder, "strange-abc123/weights.safetensors"));
    CHECK(file_exists(task->weights_path));
    close(lock);
    snprintf(path, sizeof path, "%s", task->folder);
    task_close(task);
    CHECK(!file_exists(path));
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_EQUAL_INT(system(command), 0);
}

CHECK_MAIN
