/* energy.c: see energy.h. */
#include "bench/meter/energy.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "intel-rapl:0" is a package, if its name says so: there is also "psys", which has the packages in
 * it. "intel-rapl:0:1" is a part of one, and "intel-rapl-mmio:0" the same one again. */
static bool is_package(const char *folder, const char *domain)
{
    char path[512], name[16] = "";
    if (strncmp(domain, "intel-rapl:", 11) != 0 || strchr(domain + 11, ':'))
        return false;
    snprintf(path, sizeof path, "%s/%s/name", folder, domain);
    FILE *file = fopen(path, "re");
    bool known = file && fgets(name, sizeof name, file);
    if (file)
        fclose(file);
    return known && strncmp(name, "package", 7) == 0;
}

enum status energy_read_cpu(const char *folder, double *joules)
{
    char path[512];
    int packages = 0;
    DIR *domains;

    folder = folder ? folder : "/sys/class/powercap";
    if (!(domains = opendir(folder)))
        FAIL(STATUS_UNSUPPORTED, "there is no %s: no RAPL, or a virtual machine", folder);
    *joules = 0;
    for (struct dirent *domain; (domain = readdir(domains)) != NULL;) {
        double microjoules;
        if (!is_package(folder, domain->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%s/energy_uj", folder, domain->d_name);
        FILE *file = fopen(path, "re");
        if (file && fscanf(file, "%lf", &microjoules) == 1) {
            *joules += microjoules * 1e-6;
            packages++;
        }
        if (file)
            fclose(file);
    }
    closedir(domains);
    if (!packages)
        FAIL(STATUS_UNSUPPORTED, "no package in %s can be read; root can", folder);
    return STATUS_OK;
}

/* NVML's functions, as its manual has them; they return 0 when all is well. */
typedef int nvml_init(void);
typedef int nvml_get_device(const char *address, void **device);
typedef int nvml_get_energy(void *device, unsigned long long *millijoules);
struct nvml_utilisation {
    unsigned gpu, memory;
};
typedef int nvml_get_utilisation(void *device, struct nvml_utilisation *out);
struct nvml_process {
    unsigned process;
    unsigned long long bytes; /* all bits set: not told */
    unsigned instance[2];
};
typedef int nvml_get_processes(void *device, unsigned *count, struct nvml_process *out);
struct nvml_activity {
    unsigned process;
    unsigned long long at_us;
    unsigned sm, memory, encoder, decoder; /* per cent */
};
typedef int nvml_get_activity(void *device, struct nvml_activity *out, unsigned *count,
                              unsigned long long from_us);
typedef int nvml_get_clock(void *device, int which, unsigned *mhz);
typedef int nvml_get_power(void *device, unsigned *milliwatts);
typedef int nvml_get_name(void *device, char *name, unsigned size);
typedef int nvml_get_version(char *version, unsigned size);
struct nvml_memory {
    unsigned long long total, left, used;
};
typedef int nvml_get_memory(void *device, struct nvml_memory *out);
struct nvml_violation {
    unsigned long long reference_us, violation_ns;
};
typedef int nvml_get_violation(void *device, int policy, struct nvml_violation *out);
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_POLICY_POWER = 0, NVML_POLICY_THERMAL = 1 };
enum { NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6 };

/* … and those of CUDA's driver */
typedef int cuda_init(unsigned flags);
typedef int cuda_get_device(int *device, int number);
typedef int cuda_get_address(char *address, int size, int device);
typedef int cuda_get_attribute(int *value, int attribute, int device);
enum { CUDA_MULTIPROCESSORS = 16 };

/* POSIX lets a data pointer from dlsym be one to a function; ISO C has no cast for it. */
#define FUNCTION(type, name, library, function)                                                    \
    type *name;                                                                                    \
    do {                                                                                           \
        void *symbol_ = (library) ? dlsym(library, function) : NULL;                               \
        memcpy(&name, &symbol_, sizeof name);                                                      \
    } while (0)
#define NVML(type, name, function) FUNCTION(type, name, meter->library, function)

/* Where on the bus CUDA's first GPU is, "0000:1B:00.0", and its size; false: there is none. NVML
 * numbers all GPUs, in the order of the bus; CUDA those that CUDA_VISIBLE_DEVICES names, in its
 * order, or the fastest first. What the driver has begun stays loaded. */
static bool find_address(char *address, int size, int *multiprocessors)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    int device;
    FUNCTION(cuda_init, init, driver, "cuInit");
    FUNCTION(cuda_get_device, get_device, driver, "cuDeviceGet");
    FUNCTION(cuda_get_address, get_address, driver, "cuDeviceGetPCIBusId");
    FUNCTION(cuda_get_attribute, get_attribute, driver, "cuDeviceGetAttribute");
    const bool found = init && get_device && get_address && init(0) == 0 &&
                       get_device(&device, 0) == 0 && get_address(address, size, device) == 0;
    if (!found || !get_attribute ||
        get_attribute(multiprocessors, CUDA_MULTIPROCESSORS, device) != 0)
        *multiprocessors = 0;
    if (driver)
        dlclose(driver);
    return found;
}

enum status gpu_meter_open(struct gpu_meter *meter)
{
    char address[32];
    *meter = (struct gpu_meter){.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!meter->library)
        FAIL(STATUS_UNSUPPORTED, "NVML is not installed: it comes with NVIDIA's driver");
    if (!find_address(address, sizeof address, &meter->multiprocessors)) {
        gpu_meter_close(meter);
        FAIL(STATUS_UNSUPPORTED, "CUDA's driver sees no GPU: check nvidia-smi and "
                                 "CUDA_VISIBLE_DEVICES");
    }
    NVML(nvml_init, init, "nvmlInit_v2");
    NVML(nvml_get_device, get_device, "nvmlDeviceGetHandleByPciBusId_v2");
    if (!init || !get_device || init() != 0 || get_device(address, &meter->device) != 0) {
        gpu_meter_close(meter);
        FAIL(STATUS_UNSUPPORTED, "NVML knows no GPU at %s", address);
    }
    return STATUS_OK;
}

void gpu_meter_close(struct gpu_meter *meter)
{
    NVML(nvml_init, shut_down, "nvmlShutdown");
    if (shut_down && meter->device)
        shut_down();
    if (meter->library)
        dlclose(meter->library);
    *meter = (struct gpu_meter){0};
}

static double read_joules(const struct gpu_meter *meter)
{
    unsigned long long millijoules;
    NVML(nvml_get_energy, get, "nvmlDeviceGetTotalEnergyConsumption");
    return get && get(meter->device, &millijoules) == 0 ? 1e-3 * (double)millijoules : (double)NAN;
}

static double read_utilisation(const struct gpu_meter *meter)
{
    struct nvml_utilisation found;
    NVML(nvml_get_utilisation, get, "nvmlDeviceGetUtilizationRates");
    return get && get(meter->device, &found) == 0 ? (double)found.gpu : (double)NAN;
}

static double read_clock(const struct gpu_meter *meter, int which)
{
    unsigned mhz;
    NVML(nvml_get_clock, get, "nvmlDeviceGetClockInfo");
    return get && get(meter->device, which, &mhz) == 0 ? 1e6 * (double)mhz : (double)NAN;
}

static double read_watts(const struct gpu_meter *meter)
{
    unsigned milliwatts;
    NVML(nvml_get_power, get, "nvmlDeviceGetPowerUsage");
    return get && get(meter->device, &milliwatts) == 0 ? 1e-3 * (double)milliwatts : (double)NAN;
}

static double read_violation(const struct gpu_meter *meter, int policy)
{
    struct nvml_violation found;
    NVML(nvml_get_violation, get, "nvmlDeviceGetViolationStatus");
    return get && get(meter->device, policy, &found) == 0 ? 1e-9 * (double)found.violation_ns
                                                          : (double)NAN;
}

double gpu_meter_read(const struct gpu_meter *meter, enum gpu_reading what)
{
    switch (what) {
    case GPU_JOULES: return read_joules(meter);
    case GPU_UTILISATION: return read_utilisation(meter);
    case GPU_CLOCK: return read_clock(meter, NVML_CLOCK_SM);
    case GPU_MEMORY_CLOCK: return read_clock(meter, NVML_CLOCK_MEMORY);
    case GPU_WATTS: return read_watts(meter);
    case GPU_POWER_CAPPED: return read_violation(meter, NVML_POLICY_POWER);
    case GPU_HOT: return read_violation(meter, NVML_POLICY_THERMAL);
    case GPU_READINGS: break;
    }
    return (double)NAN;
}

void gpu_meter_facts(const struct gpu_meter *meter, struct facts_gpu *out)
{
    struct nvml_memory memory;
    unsigned milliwatts;
    NVML(nvml_get_name, get_name, "nvmlDeviceGetName");
    NVML(nvml_get_version, get_driver, "nvmlSystemGetDriverVersion");
    NVML(nvml_get_memory, get_memory, "nvmlDeviceGetMemoryInfo");
    NVML(nvml_get_power, get_limit, "nvmlDeviceGetEnforcedPowerLimit");
    *out = (struct facts_gpu){.multiprocessors = meter->multiprocessors};
    if (!get_name || get_name(meter->device, out->name, sizeof out->name) != 0)
        out->name[0] = '\0';
    if (!get_driver || get_driver(out->driver, sizeof out->driver) != 0)
        out->driver[0] = '\0';
    if (get_memory && get_memory(meter->device, &memory) == 0)
        out->memory_bytes = memory.total;
    if (get_limit && get_limit(meter->device, &milliwatts) == 0)
        out->power_limit = 1e-3 * milliwatts;
}

enum { LISTED_MOST = 256 };

static bool family_has(const struct family *family, unsigned process)
{
    if (!family->count)
        return (pid_t)process == getpid();
    for (int i = 0; i < family->count; i++)
        if (family->processes[i] == (pid_t)process)
            return true;
    return false;
}

/* How many processes NVML lists; none where it does not tell. */
static unsigned read_processes(const struct gpu_meter *meter, struct nvml_process list[LISTED_MOST])
{
    unsigned count = LISTED_MOST;
    NVML(nvml_get_processes, get, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!get || get(meter->device, &count, list) != 0)
        return 0;
    return count < LISTED_MOST ? count : LISTED_MOST;
}

static bool is_listed(const struct nvml_process *list, unsigned count, unsigned process)
{
    for (unsigned i = 0; i < count; i++)
        if (list[i].process == process)
            return true;
    return false;
}

/* The busiest moment of one of the others that are `there`: who has ended may have been ours. */
static double read_busy(const struct gpu_meter *meter, const struct family *ours,
                        const struct nvml_process *there, unsigned there_count, uint64_t from_us)
{
    struct nvml_activity list[LISTED_MOST];
    unsigned count = LISTED_MOST;
    double busy = 0;
    NVML(nvml_get_activity, get, "nvmlDeviceGetProcessUtilization");
    const int error = get ? get(meter->device, list, &count, from_us) : NVML_NOT_SUPPORTED;
    if (error == NVML_NOT_FOUND)
        return 0; /* nobody did anything */
    if (error != 0)
        return (double)NAN;
    for (unsigned i = 0; i < count && i < LISTED_MOST; i++)
        if (!family_has(ours, list[i].process) && list[i].sm <= 100 &&
            is_listed(there, there_count, list[i].process))
            busy = fmax(busy, (double)list[i].sm);
    return busy;
}

void gpu_meter_company(const struct gpu_meter *meter, const struct family *family, uint64_t from_us,
                       struct gpu_company *out)
{
    struct nvml_process list[LISTED_MOST];
    struct family ours;
    const unsigned count = read_processes(meter, list);
    int known = 0, computing = 0;
    double bytes = 0;
    family_find(getpid(), &ours);
    *out = (struct gpu_company){.bytes = (double)NAN, .busy = (double)NAN};
    for (unsigned i = 0; i < count; i++) {
        if (family_has(family, list[i].process)) {
            bytes += ~list[i].bytes ? (double)list[i].bytes : (double)NAN;
            computing++;
        }
        known += family_has(&ours, list[i].process);
    }
    if (computing)
        out->bytes = bytes;
    out->others = known ? (int)count - known : -1;
    if (out->others > 0)
        out->busy = read_busy(meter, &ours, list, count, from_us);
}
