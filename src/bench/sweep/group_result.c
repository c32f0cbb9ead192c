/* group_result.c: see group_result.h. */
#include "bench/sweep/group_result.h"

#include "base/machine/cpu.h"
#include "bench/job/job_network.h"
#include "bench/sweep/entry.h"
#include "bench/sweep/group_workers.h"
#include "bench/sweep/notes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum status group_refuse(struct group *group, struct contender *contender, enum status status)
{
    struct record *record = &contender->record;
    if (status == STATUS_INTERRUPTED)
        return status;
    record->status = status == STATUS_UNSUPPORTED ? RECORD_SKIPPED : RECORD_FAILED;
    NEED(record->reason = arena_text(&group->arena, status_message()));
    if (status == STATUS_WRONG) {
        record->check.verdict = RECORD_WRONG;
        record->check.reason = record->reason;
    }
    return STATUS_OK;
}

static void use_ceilings(struct contender *contender, struct floor *out)
{
    struct record *record = &contender->record;
    const struct work work = work_in(&contender->workload->task->work, record->point.precision);
    floor_of(&work, &contender->ceilings, out);
    record->floor_ns = out->ns;
    record->bound = out->bound;
}

/* What the point's unit can do; a peer's is the one that our own backend there finds. */
static enum status group_yardstick(struct group *group, const struct point *point,
                                   struct yardstick *out)
{
    *out = (struct yardstick){.calibration = &group->bench->calibration,
                              .threads = (int)(point->threads * point_workers(point)),
                              .precision = point->precision};
    if (strcmp(point->unit, "cpu") == 0)
        return STATUS_OK;
    return registry_first(group->bench->registry, point->unit, &out->backend);
}

/* Sets the contender's ceilings where they can be found. */
static enum status group_ceilings(struct group *group, struct contender *contender, bool again)
{
    const struct work work =
        work_in(&contender->workload->task->work, contender->record.point.precision);
    struct yardstick yardstick;
    struct ceilings found;
    TRY(group_yardstick(group, &contender->record.point, &yardstick));
    TRY(yardstick_read(&yardstick, work.set_bytes, again, &found));
    contender->ceilings = found;
    return STATUS_OK;
}

/* What is bound by bytes has a probe, which those with as many threads share. A unit's queries are
 * answered by kernels that may stay on it: no burst beside them. */
static void group_probe(struct group *group, struct contender *contender, const struct floor *floor)
{
    const struct point *point = &contender->record.point;
    const struct work work = work_in(&contender->workload->task->work, point->precision);
    struct yardstick yardstick;

    if (strcmp(floor->bound, "bytes") != 0 ||
        group_yardstick(group, point, &yardstick) != STATUS_OK ||
        (yardstick.backend && !point_is(point, CHOICE_scenario_iterate)))
        return;
    if (!yardstick.backend)
        yardstick.threads = contender->ceilings.threads; /* as many as there are cores, at most */
    for (int i = 0; i < group->probe_count && !contender->probe; i++)
        if (probe_fits(group->probes[i], &yardstick))
            contender->probe = group->probes[i];
    if (contender->probe || group->probe_count == GROUP_PROBES ||
        probe_open(&yardstick, work.set_bytes, floor, &contender->probe) != STATUS_OK)
        return;
    group->probes[group->probe_count++] = contender->probe;
}

void group_floor(struct group *group, struct contender *contender)
{
    struct record *record = &contender->record;
    const struct work work = work_in(&contender->workload->task->work, record->point.precision);
    struct floor floor;

    if (contender->workload->task->refused)
        return;
    record->flop = (double)(work.forward.flop + work.backward.flop);
    record->bytes = (double)(work.forward.bytes + work.backward.bytes);
    record->parameters = (int64_t)params_count(&contender->workload->task->params);
    record->layers = params_layers(&contender->workload->task->params);
    if (group_ceilings(group, contender, false) != STATUS_OK) {
        text_printf(&contender->notes, "; no floor: %s", status_message());
        return;
    }
    use_ceilings(contender, &floor);
    if (isnan(record->floor_ns))
        text_printf(&contender->notes, "; no floor: far below any latency");
    else
        group_probe(group, contender, &floor);
    if (!record->point.unit_name[0]) /* other frameworks do not say which GPU it is */
        snprintf(record->point.unit_name, sizeof record->point.unit_name, "%s",
                 group->bench->calibration.unit.name);
}

/* Something that is faster than possible shows that the ceilings were seen too low, in a bad
 * moment: they are looked for again. Where they cannot be, the record says that it is too fast. */
static void group_doubt_floor(struct group *group, struct contender *contender)
{
    enum { TRIES = 3 };
    struct record *record = &contender->record;
    struct floor floor;

    for (int i = 0; i < TRIES && record->best_times_floor < 1; i++) {
        if (group_ceilings(group, contender, true) != STATUS_OK)
            break;
        use_ceilings(contender, &floor);
        record_compare_floor(record);
    }
}

/* The floor of the hour: with what memory gave in this run. */
static void group_hour(struct contender *contender)
{
    struct record *record = &contender->record;
    const struct work work = work_in(&contender->workload->task->work, record->point.precision);
    struct floor floor;

    if (!contender->probe ||
        probe_read(contender->probe, &contender->ceilings, &contender->seen) != STATUS_OK)
        return;
    use_ceilings(contender, &floor); /* a burst may have raised them */
    record_compare_floor(record);
    floor_of(&work, &contender->seen.now, &floor);
    record_compare_hour(record, floor.ns);
}

/* What another process says of its time, and no machine can do, is not a result: a floor may be
 * seen too high, but not so much. */
static enum status group_disbelieve(struct group *group, struct contender *contender)
{
    static const double INCREDIBLE = 0.25;
    struct record *record = &contender->record, nothing;
    if (!contender->is_peer || !(record->times_floor < INCREDIBLE))
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
static void group_refuse_verdict(struct contender *contender, const struct contender *handicapped)
{
    text_printf(&contender->notes, "; no verdict: %s is handicapped: %s",
                handicapped->record.point.framework, handicapped->record.handicap);
    contender->record.reason = text_of(&contender->notes) + 2;
}

/* Others hit both alike, unless one of both had to wait for a core. */
static void group_withhold_verdict(const struct group *group, struct record_against *against)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    for (int i = 0; i < group->count && !against->disturbed; i++) {
        const char *by = record_crowded(&group->contenders[i].record, cpu.cores);
        against->disturbed = *by ? by : NULL;
    }
    if (against->disturbed)
        against->found.verdict = VERDICT_UNKNOWN;
}

enum status group_compare(struct group *group)
{
    if (!group->bench->measure.compare || group->count != 2 || !group->contenders[0].runs ||
        !group->contenders[1].runs)
        return STATUS_OK;
    struct contender *a = &group->contenders[0], *b = &group->contenders[1];
    if (a->record.status != RECORD_OK || b->record.status != RECORD_OK)
        return STATUS_OK;
    if (a->record.handicap || b->record.handicap) {
        group_refuse_verdict(a, b->record.handicap ? b : a);
        return text_done(&a->notes);
    }
    struct record_against *against = &a->record.against;
    TRY(measure_compare(&group->bench->measure, a->timing, b->timing, &against->found));
    group_withhold_verdict(group, against);
    return bench_name(&b->record.point, &group->arena, &against->other);
}

/* Where an iteration's time goes; not worth another two where one is long. */
static enum status group_parts(const struct group *group, struct contender *contender)
{
    double ns[PART_COUNT], scaled;
    if (contender->is_peer || entry_through_library(&contender->record.point) ||
        isnan(record_work_ns(&contender->record)) ||
        contender->cold || /* watched, it would find warm caches */
        contender->record.time_ns.median > (double)group->bench->measure.limit_ns / 4)
        return STATUS_OK;
    enum status status =
        job_network_parts(contender->job, contender->record.time_ns.median, ns, &scaled);
    if (status == STATUS_OK)
        contender->record.parts_ns =
            (struct record_parts){ns[PART_PREPARE], ns[PART_FORWARD], ns[PART_BACKWARD],
                                  (double)NAN,      ns[PART_UPDATE],  scaled};
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

/* The way of samples that come from the host; adds rows. */
static enum status group_staging(const struct contender *contender, struct record_meter *rows,
                                 size_t *count)
{
    const struct record *record = &contender->record;
    size_t more = 0;
    if (contender->is_peer || contender->cold ||
        point_is(&record->point, CHOICE_ingestion_resident))
        return STATUS_OK;
    enum status status = staging_look(contender->job, record->time_ns.per, rows + *count, &more);
    *count += more;
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

static void add_known(struct record_meter *rows, size_t *count, const char *name, double value)
{
    if (!isnan(value))
        rows[(*count)++] = (struct record_meter){name, value, NULL};
}

/* What the precision costs a trained network, or any whose precisions are compared; adds rows. */
static enum status group_accuracy(struct group *group, struct contender *contender,
                                  struct record_meter *rows, size_t *count)
{
    struct bench *bench = group->bench;
    const struct point *point = &contender->record.point;
    const struct accuracy_options options = {
        .data = bench->accuracy,
        .outputs = bench->sheet,
        .flop = contender->record.flop / (double)point->batch,
    };
    struct accuracy found;
    double share = (double)NAN;
    if (contender->is_peer || point_is(point, CHOICE_phase_training) ||
        !(bench->sheet || accuracy_is_trained(point->model)))
        return STATUS_OK;
    TRY(accuracy_find(&bench->accuracies, point, &options, &found));
    if (found.why && bench->accuracy)
        text_printf(&contender->notes, "; accuracy not known: %s", found.why);
    add_known(rows, count, "accuracy", found.share);
    add_known(rows, count, "accuracy_lost", found.lost);
    add_known(rows, count, "output_error", found.error);
    if (!entry_through_library(point) && point_is(point, CHOICE_precision_int8))
        TRY(job_network_conversions(contender->job, &share));
    add_known(rows, count, "conversions", 100 * share);
    return STATUS_OK;
}

/* What was used meanwhile, what a scenario gave, and what passes of their own count. */
static enum status group_meters(struct group *group, struct contender *contender)
{
    struct record *record = &contender->record;
    const struct timing *timing = contender->timing;
    struct record_meter *rows = contender->meters;
    const bool serves =
        point_is(&record->point, CHOICE_scenario_server); /* a query when one is due */
    const struct passes passes = {.job = contender->job,
                                  .family = &timing->family,
                                  .gpu = strcmp(record->point.unit, "gpu") == 0,
                                  .cold = contender->cold != NULL,
                                  .iteration_ns =
                                      serves ? 1e9 / contender->rate : record->time_ns.median,
                                  .patience_ns = (double)group->bench->patience_ns,
                                  .batch = record_effective_batch(record)};
    size_t count = METERS_COUNT, more = 0;

    meters_report(&timing->meters, &timing->family, rows);
    count += watch_report(&group->watch, rows + METERS_COUNT);
    count += group_workers_meters(contender, rows + count);
    if (contender->rate > 0)
        rows[count++] = (struct record_meter){"rate", contender->rate, NULL};
    if (serves)
        rows[count++] = (struct record_meter){"latency_bound", group->bench->bound.ns, NULL};
    if (contender->seen.best > 0) {
        rows[count++] = (struct record_meter){"memory_rate", contender->seen.per_s, NULL};
        rows[count++] = (struct record_meter){"memory_best", contender->seen.best, NULL};
    }
    if (!point_is(&record->point, CHOICE_ingestion_resident))
        rows[count++] = (struct record_meter){
            "copy_bytes", (double)task_input_bytes(contender->workload->task), NULL};
    if (contender->is_peer)
        job_peer_run_exactly(contender->job);
    if (!group->bench->unread)
        TRY(group_staging(contender, rows, &count));
    if (!group->bench->unread)
        TRY(passes_run(&passes, &group->arena, rows + count, &more));
    count += more;
    more = 0;
    if (!group->bench->unread || group->bench->sheet)
        TRY(group_accuracy(group, contender, rows, &count));
    record->meters = rows;
    record->meter_count = count + more;
    return STATUS_OK;
}

enum status group_result(struct group *group, struct contender *contender)
{
    struct record *record = &contender->record;
    const struct timing *timing = contender->timing;

    if (timing->stop == MEASURE_FAILED) {
        record->status = RECORD_FAILED;
        NEED(record->reason = arena_text(&group->arena, timing->message));
        return STATUS_OK;
    }
    TRY(record_measure(record, &group->arena, timing->samples_ns, timing->count, timing->per));
    if (point_is(&record->point, CHOICE_scenario_server)) /* its times are those of a queue */
        record->throughput = contender->rate * (double)record->point.batch;
    group_doubt_floor(group, contender);
    group_hour(contender);
    TRY(group_disbelieve(group, contender));
    if (record->status == RECORD_FAILED)
        return STATUS_OK;
    TRY(group_parts(group, contender));
    TRY(group_meters(group, contender));
    if (text_equal(record->point.framework, "prony") && contender->workload->task->network->rounded)
        text_printf(&contender->notes, "; %s", contender->workload->task->network->rounded);
    notes_add(&contender->record, timing, contender->rate, &group->bench->measure,
              &contender->notes);
    watch_note(&group->watch, &contender->notes);
    TRY(text_done(&contender->notes));
    if (contender->notes.length)
        record->reason = text_of(&contender->notes) + 2; /* without the first "; " */
    return STATUS_OK;
}
