/* energy.h: joules, as the machine counts them: the CPU's packages by RAPL, GPUs by NVML, which is
 * loaded when it is there. Both count for all of the machine: what else runs is in it. And what
 * else NVML tells of a GPU: clocks, power, who is on it. */
#ifndef PRONY_BENCH_METER_ENERGY_H
#define PRONY_BENCH_METER_ENERGY_H

#include "base/status.h"
#include "bench/meter/family.h"
#include "record/facts.h"

#include <stdint.h>

/* The joules that all CPU packages used since some moment; `folder` is NULL for the system's own.
 * STATUS_UNSUPPORTED with the reason where they are not told. RAPL wraps around after some hours.
 */
enum status energy_read_cpu(const char *folder, double *joules);

/* One GPU, by NVML, which is only asked: clocks and limits are never set. It is the one that CUDA
 * begins with, here and in processes of ours. A zeroed struct is closed. */
struct gpu_meter {
    void *library, *device;
    int multiprocessors; /* as CUDA counts them; 0: not told */
};
enum status gpu_meter_open(struct gpu_meter *meter);
void gpu_meter_close(struct gpu_meter *meter);

enum gpu_reading {
    GPU_JOULES,       /* since the driver was loaded */
    GPU_UTILISATION,  /* per cent of the last moment in which something ran */
    GPU_CLOCK,        /* Hz, of the multiprocessors */
    GPU_MEMORY_CLOCK, /* Hz */
    GPU_WATTS,        /* of the last moment */
    GPU_POWER_CAPPED, /* seconds in which the clock was lower than it could be, for the power … */
    GPU_HOT,          /* … or the temperature, since the driver was loaded */
    GPU_READINGS,
};
double gpu_meter_read(const struct gpu_meter *meter, enum gpu_reading what); /* NaN: not told */

/* What it is. */
void gpu_meter_facts(const struct gpu_meter *meter, struct facts_gpu *out);

/* Who is on the GPU. Ours are this process and all that it started. */
struct gpu_company {
    double bytes; /* that the family has there; NaN: not told */
    int others;   /* processes that are none of ours; -1: not known, since NVML lists none of ours
                     either: a container may number them differently */
    double busy;  /* per cent: how much one of them computed at most; NaN: not told */
};
/* `from_us`: how busy since then, in µs since 1970. */
void gpu_meter_company(const struct gpu_meter *meter, const struct family *family, uint64_t from_us,
                       struct gpu_company *out);

#endif
