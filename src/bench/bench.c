/* bench.c: see bench.h. */
#include "bench/bench.h"

#include "base/clock.h"
#include "bench/meter/energy.h"

#include <inttypes.h>
#include <string.h>

enum status bench_write(struct bench *bench, const struct record *record)
{
    enum done_state before = DONE_NOT;
    struct text line = {0};

    if (bench->done && record->status == RECORD_SKIPPED)
        TRY(done_find(bench->done, record, "", &before));
    if (before == DONE_SKIPPED)
        return STATUS_OK;
    record_write(record, &line);
    enum status status = text_done(&line);
    if (status == STATUS_OK)
        status = bench->sink.write(bench->sink.context, text_of(&line), record);
    text_free(&line);
    if (status == STATUS_OK)
        *(record->status == RECORD_OK        ? &bench->ok
          : record->status == RECORD_SKIPPED ? &bench->skipped
                                             : &bench->failed) += 1;
    return status;
}

/* What the scenario of this point is to reach; NULL where nothing is. */
static enum status bench_goal(const struct bench *bench, const struct point *point,
                              struct arena *arena, const char **out)
{
    const bool right = bench->until.accuracy > 0;
    if (point_is(point, CHOICE_scenario_server) && bench->bound.quantile > 0)
        NEED(*out = arena_format(arena, "p%g=%gns", 100 * bench->bound.quantile, bench->bound.ns));
    if (point_is(point, CHOICE_scenario_target))
        NEED(*out = arena_format(
                 arena, "%s=%g on %s, seeds %" PRIu64 "-%" PRIu64, right ? "accuracy" : "loss",
                 right ? bench->until.accuracy : bench->until.loss, bench->until.dataset,
                 bench->seed, bench->seed + (uint64_t)bench->until.seeds - 1));
    return STATUS_OK;
}

/* Have the facts the GPU's? They are looked for when they are first asked for. */
static bool bench_find_gpu(struct bench *bench)
{
    struct gpu_meter meter;
    if (!bench->facts.gpu.name[0] && gpu_meter_open(&meter) == STATUS_OK) {
        gpu_meter_facts(&meter, &bench->facts.gpu);
        gpu_meter_close(&meter);
    }
    return bench->facts.gpu.name[0] != '\0';
}

enum status bench_start_record(struct bench *bench, const struct point *point, struct arena *arena,
                               struct record *record)
{
    const struct json *software;
    char *at = arena_alloc(arena, CLOCK_STAMP);
    NEED(at);
    clock_stamp(at);
    record_start(record);
    record->point = *point;
    const bool gpu = strcmp(point->unit, "gpu") == 0 && bench_find_gpu(bench);
    facts_set_point(&bench->facts, &record->point);
    record->machine = bench->machine;
    record->software = bench->software;
    record->at = at;
    if (gpu)
        TRY(facts_trees(&bench->facts, arena, &record->machine, &software));
    return bench_goal(bench, point, arena, &record->goal);
}

enum status bench_name(const struct point *point, struct arena *arena, const char **out)
{
    if (strcmp(point->framework, "prony") == 0)
        NEED(*out = arena_format(arena, "prony/%s%s", point->backend,
                                 point->through[0] ? " through the library" : ""));
    else
        NEED(*out = arena_text(arena, point->framework));
    return STATUS_OK;
}
