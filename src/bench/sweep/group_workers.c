/* group_workers.c: see group_workers.h. */
#include "bench/sweep/group_workers.h"

#include "base/memory.h"
#include "bench/peer/job_peer.h"

#include <stdio.h>
#include <string.h>

enum status group_workers_check(const struct point *point)
{
    if (point_workers(point) == 1)
        return STATUS_OK;
    if (!point_is(point, CHOICE_phase_training) || !point_is(point, CHOICE_scenario_iterate))
        FAIL(STATUS_UNSUPPORTED, "--workers needs --phase training, and no scenario");
    if (!point_is(point, CHOICE_data_synthetic) || !point_is(point, CHOICE_ingestion_resident))
        FAIL(STATUS_UNSUPPORTED, "--workers needs --data synthetic --ingestion resident");
    if (point_is(point, CHOICE_caches_cold) || point_is(point, CHOICE_through_library))
        FAIL(STATUS_UNSUPPORTED, "--workers needs --caches warm and --through engine");
    if (strcmp(point->framework, "prony") == 0 && point_is(point, CHOICE_fusion_off))
        FAIL(STATUS_UNSUPPORTED, "--workers needs --fusion on");
    if (strcmp(point->framework, "prony") == 0 && point->affinity[0] &&
        !point_is(point, CHOICE_affinity_none))
        FAIL(STATUS_UNSUPPORTED, "--workers needs --affinity none");
    return STATUS_OK;
}

static int64_t effective_batch(const struct point *point)
{
    return point->batch * point_workers(point);
}

/* One that is there with so many samples, or a new one. */
static enum status find_workload(struct group *group, const struct point *point,
                                 struct workload **out)
{
    struct point whole = *point;
    *out = group->workload;
    if (!group->workload->task || group->workload->task->batch == effective_batch(point))
        return STATUS_OK;
    for (int i = 0; i < group->other_count; i++) {
        *out = &group->others[i];
        if ((*out)->task->batch == effective_batch(point))
            return STATUS_OK;
    }
    *out = &group->others[group->other_count];
    whole.batch = effective_batch(point);
    TRY(workload_open(&whole, *out));
    group->other_count++;
    return STATUS_OK;
}

enum status group_workers_open(struct group *group)
{
    NEED(group->others = mem_array((size_t)group->count, sizeof *group->others));
    for (int i = 0; i < group->count; i++) {
        struct contender *contender = &group->contenders[i];
        struct point *point = &contender->record.point;
        const bool prony = strcmp(point->framework, "prony") == 0;
        TRY(find_workload(group, point, &contender->workload));
        const char *program = contender->workload->task->program;
        contender->record.program = program[0] ? program : NULL;
        if (point_workers(point) > 1) /* processes share memory; others talk through sockets */
            TRY(point_set(point, &axes[AXIS_interconnect], prony ? "shm" : "loopback"));
    }
    return STATUS_OK;
}

enum status group_workers_fill(struct group *group)
{
    bool host = true;
    for (int i = 0; i < group->count; i++)
        host = host && strcmp(group->contenders[i].record.point.unit, "gpu") != 0;
    for (int i = 0; i < group->count; i++) {
        struct contender *contender = &group->contenders[i];
        const bool prony = strcmp(contender->record.point.framework, "prony") == 0;
        if (contender->record.status != RECORD_OK)
            continue;
        enum status status = workload_fill(contender->workload, group->bench, host);
        if (status != STATUS_OK && (prony || !contender->workload->task->for_peers))
            TRY(group_refuse(group, contender, status));
    }
    return STATUS_OK;
}

void group_workers_close(struct group *group)
{
    while (group->other_count)
        workload_close(&group->others[--group->other_count]);
    mem_free(group->others);
}

const char *group_workers_differ(const struct contender *contender)
{
    const struct point *point = &contender->record.point;
    const struct recipe_step *step = &contender->workload->task->step;
    if (point_workers(point) == 1 || point_is(point, CHOICE_parallelism_model))
        return NULL;
    if (point_is(point, CHOICE_parallelism_async_server))
        return "gradients are applied as they come, so one worker computes something else";
    for (int32_t p = 0; p < step->count; p++)
        for (int32_t o = 0; o < step->programs[p]->op_count; o++)
            if (step->programs[p]->ops[o].kind == OP_batch_norm)
                return "batch_norm sees each worker's own samples, so one worker computes "
                       "something else";
    return NULL;
}

size_t group_workers_meters(struct contender *contender, struct record_meter *rows)
{
    struct record *record = &contender->record;
    struct peer_traffic traffic;
    size_t count = 0;
    if (!contender->is_peer || point_workers(&record->point) == 1 ||
        !job_peer_traffic(contender->job, &traffic))
        return 0;
    record->parts_ns.communicate = traffic.exposed_ns + traffic.hidden_ns;
    rows[count++] = (struct record_meter){"communicate_exposed", traffic.exposed_ns, NULL};
    rows[count++] = (struct record_meter){"communicate_hidden", traffic.hidden_ns, NULL};
    rows[count++] = (struct record_meter){"sent_bytes", traffic.sent_bytes, NULL};
    if (traffic.staleness >= 0) {
        rows[count++] = (struct record_meter){"staleness", traffic.staleness, NULL};
        rows[count++] = (struct record_meter){"staleness_most", traffic.staleness_most, NULL};
    }
    if (record->time_ns.mean > traffic.exposed_ns) /* both are means of what was run */
        rows[count++] = (struct record_meter){"worker_compute",
                                              record->time_ns.mean - traffic.exposed_ns, NULL};
    return count;
}

/* Does one worker do there what these do together? */
static bool is_baseline(const struct point *one, const struct point *several)
{
    struct point alike = *several;
    alike.workers = one->workers;
    if (point_is(several, CHOICE_scaling_strong))
        alike.batch = effective_batch(several);
    point_settle(&alike);
    for (int i = 0; i < AXIS_COUNT; i++) {
        char here[POINT_NUMBER], there[POINT_NUMBER];
        if (!(axes[i].where & AXIS_FOUND) &&
            strcmp(point_get(&alike, &axes[i], here), point_get(one, &axes[i], there)) != 0)
            return false;
    }
    return point_workers(one) == 1;
}

static void compare_with(struct contender *several, const struct record *one)
{
    struct record *record = &several->record;
    const double bring = record->throughput / one->throughput;
    record->meters = several->meters;
    several->meters[record->meter_count++] = (struct record_meter){"worker_speedup", bring, NULL};
    several->meters[record->meter_count++] = (struct record_meter){
        "worker_efficiency", 100 * bring / (double)point_workers(&record->point), NULL};
}

void group_workers_compare(struct group *group)
{
    for (int i = 0; i < group->count; i++) {
        struct contender *several = &group->contenders[i];
        if (point_workers(&several->record.point) == 1 || several->record.status != RECORD_OK)
            continue;
        for (int k = 0; k < group->count; k++) {
            const struct record *one = &group->contenders[k].record;
            if (one->status == RECORD_OK && one->throughput > 0 &&
                is_baseline(&one->point, &several->record.point)) {
                compare_with(several, one);
                break;
            }
        }
    }
}
