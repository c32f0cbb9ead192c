/* target_group.c: see target_group.h. */
#include "bench/sweep/target_group.h"

#include "bench/job/task.h"
#include "bench/sweep/entry.h"
#include "bench/sweep/target.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 5 };

/* The median of what is a number; NaN of nothing. Sorts. */
static double median_of(double *values, size_t count)
{
    double median, low, high;
    if (count == 0)
        return (double)NAN;
    stats_median(values, count, 0.95, &median, &low, &high);
    return median;
}

/* `scratch` has room for all runs. */
static void target_meters(const struct target_run *runs, size_t count, double *scratch,
                          struct record_meter rows[ROWS])
{
    static const char none[] = "no seed got there";
    size_t reached = 0;
    for (size_t i = 0; i < count; i++)
        if (runs[i].reached)
            scratch[reached++] = runs[i].ns * 1e-9;
    rows[0] =
        (struct record_meter){"target_time", median_of(scratch, reached), reached ? NULL : none};
    reached = 0;
    for (size_t i = 0; i < count; i++)
        if (runs[i].reached)
            scratch[reached++] = (double)runs[i].epochs;
    rows[1] =
        (struct record_meter){"target_epochs", median_of(scratch, reached), reached ? NULL : none};
    rows[2] = (struct record_meter){"reached", (double)reached / (double)count, NULL};
    for (size_t i = 0; i < count; i++)
        scratch[i] = runs[i].loss;
    rows[3] = (struct record_meter){"loss", median_of(scratch, count), NULL};
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(runs[i].accuracy))
            scratch[known++] = runs[i].accuracy;
    rows[4] = (struct record_meter){"accuracy", median_of(scratch, known),
                                    known ? NULL : "the loss knows no right answers"};
}

static enum status target_fill(const struct bench *bench, struct record *record,
                               const struct target_run *runs, struct arena *arena)
{
    size_t count = (size_t)bench->until.seeds;
    double *scratch = arena_array(arena, count, sizeof *scratch);
    struct record_meter *rows = arena_array(arena, ROWS, sizeof *rows);

    NEED(scratch);
    NEED(rows);
    double samples = 0, steps = 0;
    for (size_t i = 0; i < count; i++) {
        scratch[i] = runs[i].ns / (double)(runs[i].steps ? runs[i].steps : 1);
        samples += (double)runs[i].samples;
        steps += (double)runs[i].steps;
    }
    TRY(record_measure(record, arena, scratch, count, runs[0].steps ? runs[0].steps : 1));
    record->throughput =
        samples / steps / record->time_ns.median * 1e9; /* batches may be smaller */
    target_meters(runs, count, scratch, rows);
    record->meters = rows;
    record->meter_count = ROWS;
    record->check.reason = "held-out rows say what it learnt";
    const char *reason =
        arena_format(arena, "%s to %s %g on held-out rows of %s: %.0f of %zu seeds",
                     record->point.model, bench->until.accuracy > 0 ? "accuracy" : "loss",
                     bench->until.accuracy > 0 ? bench->until.accuracy : bench->until.loss,
                     bench->until.dataset, rows[2].value * (double)count, count);
    NEED(reason);
    if (rows[2].value > 0)
        NEED(reason = arena_format(arena, "%s, %.3g s and %g epochs", reason, rows[0].value,
                                   rows[1].value));
    record->reason = reason;
    return STATUS_OK;
}

static enum status target_train(const struct bench *bench, const struct task *task,
                                struct record *record, struct arena *arena)
{
    const struct point *point = &record->point;
    struct target_options options = {
        .network = task->network,
        .optimiser = task->optimiser_text,
        .dataset = bench->until.dataset,
        .batch = (int32_t)point->batch,
        .accuracy = bench->until.accuracy,
        .loss = bench->until.loss,
        .seed = bench->seed,
        .seeds = bench->until.seeds,
        .limit_ns = bench->patience_ns,
        .stopped = bench->measure.stopped,
    };

    record->program = task->program[0] ? task->program : NULL;
    TRY(entry_check(bench, point));
    TRY(entry_device(bench, point, &options.backend, &options.device));
    if (task->refused)
        FAIL(task->refusal, "%s", task->refused);
    struct target_run *runs = arena_array(arena, (size_t)options.seeds, sizeof *runs);
    NEED(runs);
    TRY(target_run_all(&options, runs));
    return target_fill(bench, record, runs, arena);
}

enum status target_group(struct bench *bench, const struct task *task, const struct point *points,
                         int count)
{
    for (int i = 0; i < count; i++) {
        struct arena arena = {0};
        struct record record;
        enum status status = bench_start_record(bench, &points[i], &arena, &record);
        if (status == STATUS_OK)
            status = target_train(bench, task, &record, &arena);
        if (status != STATUS_OK && status != STATUS_INTERRUPTED) {
            record.status = status == STATUS_UNSUPPORTED ? RECORD_SKIPPED : RECORD_FAILED;
            record.reason = status_message();
            status = STATUS_OK;
        }
        if (status == STATUS_OK)
            status = bench_write(bench, &record);
        arena_free(&arena);
        TRY(status);
    }
    return STATUS_OK;
}
