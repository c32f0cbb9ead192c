/* gpu_link.c: see gpu_link.h. */
#include "watch/gpu_link.h"

#include "base/clock.h"
#include "base/load/dynamic.h"
#include "bench/meter/energy.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BYTES = 64 << 20, TIMES = 4 };

/* name, parameters: of CUDA's driver; each returns 0 where it went well. */
#define DRIVER_FUNCTIONS(DO)                                                                       \
    DO(init, "cuInit", (unsigned flags))                                                           \
    DO(device_get, "cuDeviceGet", (int *device, int number))                                       \
    DO(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                   \
    DO(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                              \
    DO(context_use, "cuCtxSetCurrent", (void *context))                                            \
    DO(host_allocate, "cuMemHostAlloc", (void **host, size_t bytes, unsigned flags))               \
    DO(host_free, "cuMemFreeHost", (void *host))                                                   \
    DO(allocate, "cuMemAlloc_v2", (uint64_t * memory, size_t bytes))                               \
    DO(release, "cuMemFree_v2", (uint64_t memory))                                                 \
    DO(copy_up, "cuMemcpyHtoD_v2", (uint64_t to, const void *from, size_t bytes))                  \
    DO(copy_down, "cuMemcpyDtoH_v2", (void *to, uint64_t from, size_t bytes))

static struct driver {
#define DO(name, symbol, parameters) int(*name) parameters;
    DRIVER_FUNCTIONS(DO)
#undef DO
} driver; /* written once, before anybody reads it */

static enum status driver_load(void)
{
    static const struct dynamic_function functions[] = {
#define DO(name, symbol, parameters) {symbol, &driver.name},
        DRIVER_FUNCTIONS(DO)
#undef DO
    };
    static struct dynamic_library library = {
        .file = "libcuda.so.1",
        .need = "the link to a GPU is measured with NVIDIA's driver",
        .functions = functions,
        .count = sizeof functions / sizeof *functions,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    return dynamic_load(&library);
}

static double rate_of(uint64_t ns)
{
    return ns ? 1e9 * BYTES / (double)ns : 0;
}

/* The best of some, in one direction. */
static bool measure(void *host, uint64_t memory, bool up, double *rate)
{
    *rate = 0;
    for (int i = 0; i < TIMES; i++) {
        const uint64_t start_ns = clock_ns();
        if (up ? driver.copy_up(memory, host, BYTES) : driver.copy_down(host, memory, BYTES))
            return false;
        const double found = rate_of(clock_ns() - start_ns);
        *rate = found > *rate ? found : *rate;
    }
    return *rate > 0;
}

static bool measure_both(double *up, double *down)
{
    void *host = NULL;
    uint64_t memory = 0;
    bool done = driver.host_allocate(&host, BYTES, 0) == 0 &&
                driver.allocate(&memory, BYTES) == 0 && measure(host, memory, true, up) &&
                measure(host, memory, false, down);
    if (memory)
        driver.release(memory);
    if (host)
        driver.host_free(host);
    return done;
}

/* While we are on the GPU ourselves: else NVML may number processes differently. */
static double find_others(uint64_t since_us)
{
    const struct family none = {.count = 0};
    struct gpu_meter meter;
    struct gpu_company company;
    if (gpu_meter_open(&meter) != STATUS_OK)
        return (double)NAN;
    gpu_meter_company(&meter, &none, since_us, &company);
    gpu_meter_close(&meter);
    return company.others > 0 ? company.busy : company.others == 0 ? 0 : (double)NAN;
}

enum status gpu_link_measure(int gpu, uint64_t since_us, struct gpu_link *link)
{
    void *context = NULL;
    int device = 0;
    TRY(driver_load());
    if (driver.init(0) != 0 || driver.device_get(&device, gpu) != 0 ||
        driver.context_retain(&context, device) != 0)
        FAIL(STATUS_UNSUPPORTED, "CUDA's driver gives no access to GPU %d", gpu);
    const bool done = driver.context_use(context) == 0 && measure_both(&link->up, &link->down);
    link->others_busy = find_others(since_us);
    driver.context_use(NULL);
    driver.context_release(device);
    if (!done)
        FAIL(STATUS_UNSUPPORTED, "GPU %d has no room to measure its link", gpu);
    return STATUS_OK;
}
