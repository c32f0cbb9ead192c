/* energy.h: joules, as the machine counts them: the CPU's packages by RAPL, GPUs by NVML, which is
 * loaded when it is there. Both count for all of the machine: what else runs is in it. */
#ifndef PRONY_BENCH_ENERGY_H
#define PRONY_BENCH_ENERGY_H

#include "base/status.h"

/* The joules that all CPU packages used since some moment; `folder` is NULL for the system's own.
 * STATUS_UNSUPPORTED with the reason where they are not told. RAPL wraps around after some hours.
 */
enum status energy_read_cpu(const char *folder, double *joules);

/* One GPU, by NVML. A zeroed struct is closed. */
struct gpu_meter {
    void *library, *device;
};
enum status gpu_meter_open(struct gpu_meter *meter, unsigned index);
void gpu_meter_close(struct gpu_meter *meter);
/* NaN where this GPU does not tell: joules since the driver was loaded; per cent of the last moment
 * in which something ran; bytes in use. */
double gpu_meter_joules(const struct gpu_meter *meter);
double gpu_meter_utilisation(const struct gpu_meter *meter);
double gpu_meter_memory(const struct gpu_meter *meter);

#endif
