/* group_result.c: see group_result.h. */
#include "bench/sweep/group_result.h"

#include "bench/job/job_network.h"
#include "bench/sweep/entry.h"
#include "bench/sweep/notes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void group_use_ceilings(struct group *group, struct entrant *entrant, struct floor *out)
{
    struct record *record = &entrant->record;
    const struct work work = work_in(&group->task->work, record->point.precision);
    floor_of(&work, &entrant->ceilings, out);
    record->floor_ns = out->ns;
    record->bound = out->bound;
}

/* What the point's unit can do; a peer's is the one that our own backend there finds. */
static enum status group_yardstick(struct group *group, const struct point *point,
                                   struct yardstick *out)
{
    *out = (struct yardstick){.calibration = &group->bench->calibration,
                              .threads = (int)point->threads,
                              .precision = point->precision};
    if (strcmp(point->unit, "cpu") == 0)
        return STATUS_OK;
    return registry_first(group->bench->registry, point->unit, &out->backend);
}

/* Sets the entrant's ceilings where they can be found. */
static enum status group_ceilings(struct group *group, struct entrant *entrant, bool again)
{
    struct yardstick yardstick;
    struct ceilings found;
    TRY(group_yardstick(group, &entrant->record.point, &yardstick));
    TRY(yardstick_read(&yardstick, group->task->work.set_bytes, again, &found));
    entrant->ceilings = found;
    return STATUS_OK;
}

/* What is bound by bytes has a probe, which those with as many threads share. A unit's queries are
 * answered by kernels that may stay on it: no burst beside them. */
static void group_probe(struct group *group, struct entrant *entrant, const struct floor *floor)
{
    const struct point *point = &entrant->record.point;
    struct yardstick yardstick;

    if (strcmp(floor->bound, "bytes") != 0 ||
        group_yardstick(group, point, &yardstick) != STATUS_OK ||
        (yardstick.backend && strcmp(point->scenario, "iterate") != 0))
        return;
    if (!yardstick.backend)
        yardstick.threads = entrant->ceilings.threads; /* as many as there are cores, at most */
    for (int i = 0; i < group->probe_count && !entrant->probe; i++)
        if (probe_fits(group->probes[i], &yardstick))
            entrant->probe = group->probes[i];
    if (entrant->probe || group->probe_count == GROUP_PROBES ||
        probe_open(&yardstick, group->task->work.set_bytes, floor, &entrant->probe) != STATUS_OK)
        return;
    group->probes[group->probe_count++] = entrant->probe;
}

void group_floor(struct group *group, struct entrant *entrant)
{
    struct record *record = &entrant->record;
    const struct work work = work_in(&group->task->work, record->point.precision);
    struct floor floor;

    if (group->task->refused)
        return;
    record->flop = (double)(work.forward.flop + work.backward.flop);
    record->bytes = (double)(work.forward.bytes + work.backward.bytes);
    record->parameters = (int64_t)params_count(&group->task->params);
    record->layers = params_layers(&group->task->params);
    if (group_ceilings(group, entrant, false) != STATUS_OK) {
        text_printf(&entrant->notes, "; no floor: %s", status_message());
        return;
    }
    group_use_ceilings(group, entrant, &floor);
    if (isnan(record->floor_ns))
        text_printf(&entrant->notes, "; no floor: far below any latency");
    else
        group_probe(group, entrant, &floor);
    if (!record->point.unit_name[0]) /* other frameworks do not say which GPU it is */
        snprintf(record->point.unit_name, sizeof record->point.unit_name, "%s",
                 group->bench->calibration.unit.name);
}

/* Something that is faster than possible shows that the ceilings were seen too low, in a bad
 * moment: they are looked for again. Where they cannot be, the record says that it is too fast. */
static void group_doubt_floor(struct group *group, struct entrant *entrant)
{
    enum { TRIES = 3 };
    struct record *record = &entrant->record;
    struct floor floor;

    for (int i = 0; i < TRIES && record->best_times_floor < 1; i++) {
        if (group_ceilings(group, entrant, true) != STATUS_OK)
            break;
        group_use_ceilings(group, entrant, &floor);
        record_compare_floor(record);
    }
}

/* The floor of the hour: with what memory gave in this run. */
static void group_hour(struct group *group, struct entrant *entrant)
{
    struct record *record = &entrant->record;
    const struct work work = work_in(&group->task->work, record->point.precision);
    struct floor floor;

    if (!entrant->probe ||
        probe_read(entrant->probe, &entrant->ceilings, &entrant->seen) != STATUS_OK)
        return;
    group_use_ceilings(group, entrant, &floor); /* a burst may have raised them */
    record_compare_floor(record);
    floor_of(&work, &entrant->seen.now, &floor);
    record_compare_hour(record, floor.ns);
}

/* What another process says of its time, and no machine can do, is not a result: a floor may be
 * seen too high, but not so much. */
static enum status group_disbelieve(struct group *group, struct entrant *entrant)
{
    static const double INCREDIBLE = 0.25;
    struct record *record = &entrant->record, nothing;
    if (!entrant->is_peer || !(record->times_floor < INCREDIBLE))
        return STATUS_OK;
    record_start(&nothing);
    record->status = RECORD_FAILED;
    NEED(record->reason = arena_format(
             &group->arena,
             "the peer says that an iteration takes %.3g ns; at best %.3g ns are possible",
             record->time_ns.median, record->floor_ns));
    record->time_ns = nothing.time_ns;
    record->throughput = record->times_floor = record->best_times_floor = (double)NAN;
    record->times_now = (double)NAN;
    record->sample_count = 0;
    return STATUS_OK;
}

/* No verdict is drawn from one that does not run as its users run it. */
static void group_refuse_verdict(struct entrant *entrant, const struct entrant *handicapped)
{
    text_printf(&entrant->notes, "; no verdict: %s is handicapped: %s",
                handicapped->record.point.framework, handicapped->record.handicap);
    entrant->record.reason = text_of(&entrant->notes) + 2;
}

enum status group_compare(struct group *group)
{
    if (!group->bench->measure.compare || group->count != 2 || !group->entrants[0].runs ||
        !group->entrants[1].runs)
        return STATUS_OK;
    struct entrant *a = &group->entrants[0], *b = &group->entrants[1];
    if (a->record.status != RECORD_OK || b->record.status != RECORD_OK)
        return STATUS_OK;
    if (a->record.handicap || b->record.handicap) {
        group_refuse_verdict(a, b->record.handicap ? b : a);
        return text_done(&a->notes);
    }
    struct record_against *against = &a->record.against;
    TRY(measure_compare(&group->bench->measure, a->contender, b->contender, &against->found));
    return bench_name(&b->record.point, &group->arena, &against->other);
}

/* Where an iteration's time goes; not worth another two where one is long. */
static enum status group_parts(const struct group *group, struct entrant *entrant)
{
    double ns[PART_COUNT], scaled;
    if (entrant->is_peer || entry_through_library(&entrant->record.point) ||
        isnan(record_work_ns(&entrant->record)) ||
        entrant->cold || /* watched, it would find warm caches */
        entrant->record.time_ns.median > (double)group->bench->measure.limit_ns / 4)
        return STATUS_OK;
    enum status status =
        job_network_parts(entrant->job, entrant->record.time_ns.median, ns, &scaled);
    if (status == STATUS_OK)
        entrant->record.parts_ns =
            (struct record_parts){ns[PART_PREPARE], ns[PART_FORWARD], ns[PART_BACKWARD],
                                  (double)NAN,      ns[PART_UPDATE],  scaled};
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

/* The way of samples that come from the host; adds rows. */
static enum status group_staging(const struct entrant *entrant, struct record_meter *rows,
                                 size_t *count)
{
    const struct record *record = &entrant->record;
    size_t more = 0;
    if (entrant->is_peer || entrant->cold || strcmp(record->point.ingestion, "resident") == 0)
        return STATUS_OK;
    enum status status = staging_look(entrant->job, record->time_ns.per, rows + *count, &more);
    *count += more;
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

/* What was used meanwhile, what a scenario gave, and what passes of their own count. */
static enum status group_meters(struct group *group, struct entrant *entrant)
{
    struct record *record = &entrant->record;
    const struct contender *contender = entrant->contender;
    struct record_meter *rows = entrant->meters;
    const bool serves = strcmp(record->point.scenario, "server") == 0; /* a query when one is due */
    const struct passes passes = {.job = entrant->job,
                                  .family = &contender->family,
                                  .gpu = strcmp(record->point.unit, "gpu") == 0,
                                  .cold = entrant->cold != NULL,
                                  .iteration_ns =
                                      serves ? 1e9 / entrant->rate : record->time_ns.median,
                                  .patience_ns = (double)group->bench->patience_ns,
                                  .batch = record->point.batch};
    size_t count = METERS_COUNT, more = 0;

    meters_report(&contender->meters, &contender->family, rows);
    count += watch_report(&group->watch, rows + METERS_COUNT);
    if (entrant->rate > 0)
        rows[count++] = (struct record_meter){"rate", entrant->rate, NULL};
    if (serves)
        rows[count++] = (struct record_meter){"latency_bound", group->bench->bound.ns, NULL};
    if (entrant->seen.best > 0) {
        rows[count++] = (struct record_meter){"memory_rate", entrant->seen.per_s, NULL};
        rows[count++] = (struct record_meter){"memory_best", entrant->seen.best, NULL};
    }
    if (strcmp(record->point.ingestion, "resident") != 0)
        rows[count++] =
            (struct record_meter){"copy_bytes", (double)task_input_bytes(group->task), NULL};
    if (entrant->is_peer)
        job_peer_run_exactly(entrant->job);
    if (!group->bench->unread)
        TRY(group_staging(entrant, rows, &count));
    if (!group->bench->unread)
        TRY(passes_run(&passes, &group->arena, rows + count, &more));
    record->meters = rows;
    record->meter_count = count + more;
    return STATUS_OK;
}

enum status group_result(struct group *group, struct entrant *entrant)
{
    struct record *record = &entrant->record;
    const struct contender *contender = entrant->contender;

    if (contender->stop == MEASURE_FAILED) {
        record->status = RECORD_FAILED;
        NEED(record->reason = arena_text(&group->arena, contender->message));
        return STATUS_OK;
    }
    TRY(record_measure(record, &group->arena, contender->samples_ns, contender->count,
                       contender->per));
    if (strcmp(record->point.scenario, "server") == 0) /* its times are those of a queue */
        record->throughput = entrant->rate * (double)record->point.batch;
    group_doubt_floor(group, entrant);
    group_hour(group, entrant);
    TRY(group_disbelieve(group, entrant));
    if (record->status == RECORD_FAILED)
        return STATUS_OK;
    TRY(group_parts(group, entrant));
    TRY(group_meters(group, entrant));
    if (text_equal(record->point.framework, "prony") && group->task->network->rounded)
        text_printf(&entrant->notes, "; %s", group->task->network->rounded);
    notes_add(&entrant->record, contender, entrant->rate, &group->bench->measure, &entrant->notes);
    watch_note(&group->watch, &entrant->notes);
    TRY(text_done(&entrant->notes));
    if (entrant->notes.length)
        record->reason = text_of(&entrant->notes) + 2; /* without the first "; " */
    return STATUS_OK;
}
