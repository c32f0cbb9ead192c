/* entry.c: see entry.h. */
#include "bench/sweep/entry.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status check_affinity(const struct point *point)
{
    const bool prony = strcmp(point->framework, "prony") == 0;
    if (!prony && point->affinity[0] && !point_is(point, CHOICE_affinity_none))
        FAIL(STATUS_UNSUPPORTED, "other frameworks are not tied to cores: take --affinity none");
    return STATUS_OK;
}

enum status entry_samples(const struct point *point, struct network_options *options)
{
    static const struct {
        const char *data;
        enum samples_place place;
        bool on_unit;
    } places[] = {{"synthetic", SAMPLES_MEMORY, true},   {"real/gpu", SAMPLES_MEMORY, true},
                  {"real/dram", SAMPLES_MEMORY, false},  {"real/cache", SAMPLES_CACHE, false},
                  {"real/disk", SAMPLES_DISK, false},    {"real/nvme", SAMPLES_DISK, false},
                  {"real/ssd", SAMPLES_DISK, false},     {"real/hdd", SAMPLES_DISK, false},
                  {"real/network", SAMPLES_DISK, false}, {"real/memory", SAMPLES_DISK, false}};
    static const char *const ways[] = {[INGEST_RESIDENT] = "resident",
                                       [INGEST_DIRECT] = "direct",
                                       [INGEST_PINNED] = "pinned",
                                       [INGEST_OVERLAPPED] = "overlapped"};
    const bool cpu = strcmp(point->unit, "cpu") == 0;
    const bool resident = strcmp(point->ingestion, ways[INGEST_RESIDENT]) == 0;
    bool on_unit = true;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(places[i].data, point->data) == 0) {
            options->place = places[i].place;
            on_unit = places[i].on_unit;
        }
    for (int way = INGEST_RESIDENT; way <= INGEST_OVERLAPPED; way++)
        if (strcmp(ways[way], point->ingestion) == 0)
            options->ingestion = (enum ingestion)way;
    if (cpu && (!resident || point_is(point, CHOICE_data_real_gpu)))
        FAIL(STATUS_UNSUPPORTED, "a CPU needs --ingestion resident, and --data synthetic, "
                                 "real/dram, real/cache or real/disk");
    if (!cpu && resident && !on_unit)
        FAIL(STATUS_UNSUPPORTED,
             "--ingestion resident needs --data synthetic or real/gpu; --data %s needs --ingestion "
             "direct, pinned or overlapped",
             point->data);
    if (!cpu && !resident && on_unit)
        FAIL(STATUS_UNSUPPORTED,
             "--data %s is on the unit already: take --ingestion resident, or --data real/dram, "
             "real/cache or real/disk",
             point->data);
    return STATUS_OK;
}

bool entry_on_disk(const struct point *point)
{
    static const enum choice disks[] = {CHOICE_data_real_disk,    CHOICE_data_real_nvme,
                                        CHOICE_data_real_ssd,     CHOICE_data_real_hdd,
                                        CHOICE_data_real_network, CHOICE_data_real_memory};
    for (size_t i = 0; i < sizeof disks / sizeof *disks; i++)
        if (point_is(point, disks[i]))
            return true;
    return false;
}

enum status entry_name_storage(struct point *point, const char *kind)
{
    if (!kind || (point_is(point, CHOICE_data_real_disk) && !kind[0]))
        return STATUS_OK;
    if (point_is(point, CHOICE_data_real_disk))
        snprintf(point->data, sizeof point->data, "real/%s", kind);
    else if (!text_starts(point->data, "real/") || strcmp(point->data + 5, kind) != 0)
        FAIL(STATUS_UNSUPPORTED,
             "temporary files lie on %s here, not on %s: let TMPDIR name a folder there, or --data "
             "real/disk",
             kind[0] ? kind : "a disk of unknown kind", point->data + 5);
    return STATUS_OK;
}

/* Of samples, of other frameworks: what they are given is their own. */
static enum status check_samples(const struct point *point)
{
    struct network_options options = {0};
    if (point_is(point, CHOICE_scenario_target)) { /* on a data set, as `prony train` reads it */
        if (!point_is(point, CHOICE_ingestion_resident))
            FAIL(STATUS_UNSUPPORTED, "--until needs --ingestion resident");
        return STATUS_OK;
    }
    if (strcmp(point->framework, "prony") == 0)
        return entry_samples(point, &options);
    if (!point_is(point, CHOICE_data_synthetic) || !point_is(point, CHOICE_ingestion_resident))
        FAIL(STATUS_UNSUPPORTED, "other frameworks are measured on data they hold: take --data "
                                 "synthetic --ingestion resident");
    return STATUS_OK;
}

/* Is what the scenario needs there? */
static enum status check_scenario(const struct bench *bench, const struct point *point)
{
    enum scenario scenario;
    if (!scenario_parse(point->scenario, &scenario))
        return STATUS_OK;
    if (!point_is(point, CHOICE_phase_inference))
        FAIL(STATUS_UNSUPPORTED, "--scenario %s needs --phase inference", point->scenario);
    if (bench->measure.compare && !scenario_streams(scenario))
        FAIL(STATUS_UNSUPPORTED, "--against compares iterations and streams of queries, not %s",
             point->scenario);
    if (scenario == SCENARIO_SINGLE_STREAM && point->batch != 1)
        FAIL(STATUS_UNSUPPORTED,
             "--scenario single-stream has one sample per query: take --batch 1");
    if (scenario == SCENARIO_MULTI_STREAM && point->batch < 2)
        FAIL(STATUS_UNSUPPORTED,
             "--scenario multi-stream has several samples per query: take --batch 8 or so");
    if (scenario == SCENARIO_RESIDENT && strcmp(point->framework, "prony") != 0)
        FAIL(STATUS_UNSUPPORTED, "--scenario resident needs --framework prony: other frameworks "
                                 "keep no program on the unit between calls");
    if (scenario == SCENARIO_CHAINED && strcmp(point->framework, "prony") != 0)
        FAIL(STATUS_UNSUPPORTED, "--scenario chained needs --framework prony");
    if (scenario == SCENARIO_CHAINED && !point_is(point, CHOICE_data_synthetic))
        FAIL(STATUS_UNSUPPORTED,
             "--scenario chained needs --data synthetic: each call reads the output of the last");
    if (scenario == SCENARIO_SERVER && bench->bound.ns <= 0)
        FAIL(STATUS_UNSUPPORTED,
             "--scenario server needs a bound for its latencies: --bound p99=10ms");
    return STATUS_OK;
}

/* Training to a target runs as `prony train` does: what that has not cannot be asked for. */
static enum status check_target(const struct point *point)
{
    if (!point_is(point, CHOICE_scenario_target))
        return STATUS_OK;
    if (strcmp(point->framework, "prony") != 0)
        FAIL(STATUS_UNSUPPORTED, "--until needs --framework prony");
    if (!point_is(point, CHOICE_phase_training))
        FAIL(STATUS_UNSUPPORTED, "--until needs --phase training");
    if (point_is(point, CHOICE_fusion_off) || point_is(point, CHOICE_caches_cold))
        FAIL(STATUS_UNSUPPORTED, "--until needs --fusion on and --caches warm");
    if (point_is(point, CHOICE_recompute_on))
        FAIL(STATUS_UNSUPPORTED, "--until needs --recompute off");
    return STATUS_OK;
}

bool entry_through_library(const struct point *point)
{
    return point_is(point, CHOICE_through_library);
}

/* What the library does, and what its user can choose. */
static enum status check_library(const struct point *point)
{
    if (!entry_through_library(point))
        return STATUS_OK;
    if (strcmp(point->framework, "prony") != 0)
        FAIL(STATUS_UNSUPPORTED, "--through library needs --framework prony");
    if (!point_is(point, CHOICE_phase_inference))
        FAIL(STATUS_UNSUPPORTED, "--through library needs --phase inference");
    if (point_is(point, CHOICE_scenario_offline) || point_is(point, CHOICE_scenario_chained))
        FAIL(STATUS_UNSUPPORTED,
             "--through library has no scenario %s; expected single-stream, multi-stream, server, "
             "queued or resident",
             point->scenario);
    if (!point_is(point, CHOICE_data_synthetic))
        FAIL(STATUS_UNSUPPORTED, "--through library needs --data synthetic");
    if (point->isa[0] || !point_is(point, CHOICE_fusion_on) ||
        (point->pages[0] && !point_is(point, CHOICE_pages_2m)) ||
        (point->affinity[0] && !point_is(point, CHOICE_affinity_none)))
        FAIL(STATUS_UNSUPPORTED,
             "the library chooses by itself: leave out --isa, --fusion, --pages and --affinity");
    return STATUS_OK;
}

/* What somebody set to look for an error makes a loop wait for each of its launches, or leaves
 * kernels out (plan/kernel_list.def): times say nothing then. */
static enum status check_environment(const struct point *point)
{
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING"), *without = getenv("PRONY_CUDA_WITHOUT");
    if (strcmp(point->unit, "gpu") != 0)
        return STATUS_OK;
    if (blocking && blocking[0] && strcmp(blocking, "0") != 0)
        FAIL(STATUS_UNSUPPORTED, "CUDA_LAUNCH_BLOCKING is set, so every launch waits: unset it");
    if (without && without[0])
        FAIL(STATUS_UNSUPPORTED, "PRONY_CUDA_WITHOUT is set, so %s is left out: unset it", without);
    return STATUS_OK;
}

enum status entry_check(const struct bench *bench, const struct point *point)
{
    TRY(check_environment(point));
    TRY(check_target(point));
    TRY(check_affinity(point));
    TRY(check_samples(point));
    TRY(check_library(point));
    return check_scenario(bench, point);
}

enum status entry_device(const struct bench *bench, const struct point *point,
                         const struct backend **backend, struct device_options *device)
{
    *device = (struct device_options){
        .threads = (int)point->threads,
        .isa = ISA_BEST,
        .precision = point->precision,
        .small_pages = point_is(point, CHOICE_pages_4k),
    };
    TRY(point->backend[0] ? registry_find(bench->registry, point->backend, backend)
                          : registry_first(bench->registry, point->unit, backend));
    if (strcmp(point->unit, (*backend)->unit) != 0)
        FAIL(STATUS_UNSUPPORTED, "the backend %s computes on %s, not on %s", point->backend,
             (*backend)->unit, point->unit);
    if (point->isa[0])
        isa_parse(point->isa, &device->isa, &device->isa_only);
    if (point_is(point, CHOICE_affinity_compact))
        device->affinity = POOL_COMPACT;
    else if (point_is(point, CHOICE_affinity_spread))
        device->affinity = POOL_SPREAD;
    return STATUS_OK;
}

enum status entry_probe(const struct bench *bench, const struct point *point)
{
    const struct backend *backend;
    struct device_options device;
    TRY(entry_device(bench, point, &backend, &device));
    return backend->probe();
}
