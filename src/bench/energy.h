/* energy.h: joules, as the machine counts them: the CPU's packages by RAPL, GPUs by NVML, which is
 * loaded when it is there. Both count for all of the machine: what else runs is in it. */
#ifndef PRONY_BENCH_ENERGY_H
#define PRONY_BENCH_ENERGY_H

#include "base/status.h"

/* The joules that all CPU packages used since some moment; `folder` is NULL for the system's own.
 * STATUS_UNSUPPORTED with the reason where they are not told. RAPL wraps around after some hours.
 */
enum status energy_read_cpu(const char *folder, double *joules);

/* One GPU, by NVML, which is only asked: clocks and limits are never set. It is the one that CUDA
 * begins with, here and in processes of ours. A zeroed struct is closed. */
struct gpu_meter {
    void *library, *device;
};
enum status gpu_meter_open(struct gpu_meter *meter);
void gpu_meter_close(struct gpu_meter *meter);

enum gpu_reading {
    GPU_JOULES,       /* since the driver was loaded */
    GPU_UTILISATION,  /* per cent of the last moment in which something ran */
    GPU_MEMORY,       /* bytes in use, by anybody */
    GPU_CLOCK,        /* Hz, of the multiprocessors */
    GPU_MEMORY_CLOCK, /* Hz */
    GPU_WATTS,        /* of the last moment */
    GPU_POWER_CAPPED, /* seconds in which the clock was lower than it could be, for the power … */
    GPU_HOT,          /* … or the temperature, since the driver was loaded */
    GPU_READINGS,
};
double gpu_meter_read(const struct gpu_meter *meter, enum gpu_reading what); /* NaN: not told */

#endif
