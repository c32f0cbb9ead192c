/* test_gpu_meter.c: the GPU that NVML is asked about is the one that CUDA computes on. NVIDIA's
 * libraries are stood in for: of two GPUs, CUDA begins with the second of the bus. */
#include "check.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const addresses[] = {"0000:1B:00.0", "0000:C1:00.0"};
static int visible = 1; /* GPUs that CUDA sees */

static int begin_cuda(unsigned flags)
{
    return (int)flags;
}

static int begin(void)
{
    return 0;
}

static int cuda_device(int *device, int number)
{
    *device = 1 - number;
    return number < visible ? 0 : 101;
}

static int cuda_address(char *address, int size, int device)
{
    snprintf(address, (size_t)size, "%s", addresses[device]);
    return 0;
}

static int nvml_at(const char *address, void **device)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(addresses[i], address) == 0)
            *device = (void *)&addresses[i];
    return *device ? 0 : 6;
}

static int nvml_energy(void *device, unsigned long long *millijoules)
{
    *millijoules = device == (void *)&addresses[1] ? 5000 : 3000;
    return 0;
}

/* This process, one that it started, one of which it is not told what it has, and a stranger. */
static unsigned listed[4];
static unsigned works; /* per cent, of the stranger */

static int nvml_processes(void *device, unsigned *count, void *out)
{
    const struct {
        unsigned process;
        unsigned long long bytes;
        unsigned instance[2];
    } rows[] = {{listed[0], 600, {0}},
                {listed[1], 50, {0}},
                {listed[2], ~0ull, {0}},
                {listed[3], 7000, {0}}};
    if (device != (void *)&addresses[1] || *count < 4)
        return 7;
    *count = 4;
    memcpy(out, rows, sizeof rows);
    return 0;
}

static int nvml_activity(void *device, void *out, unsigned *count, unsigned long long from_us)
{
    const struct {
        unsigned process;
        unsigned long long at_us;
        unsigned sm, memory, encoder, decoder;
    } rows[] = {{listed[0], from_us, 100, 0, 0, 0},
                {listed[3], from_us, works, 0, 0, 0},
                {4000000, from_us, 99, 0, 0, 0}}; /* has ended: one of ours, perhaps */
    (void)device;
    if (!works)
        return 6;
    *count = 3;
    memcpy(out, rows, sizeof rows);
    return 0;
}

static int nvml_name(void *device, char *name, unsigned size)
{
    snprintf(name, size, "GPU %d", device == (void *)&addresses[1]);
    return 0;
}

static int nvml_driver(char *version, unsigned size)
{
    snprintf(version, size, "580.65");
    return 0;
}

static int nvml_limit(void *device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 700000;
    return 0;
}

static int cuda_attribute(int *value, int attribute, int device)
{
    *value = attribute == 16 && device == 1 ? 132 : 1;
    return 0;
}

#define STANDS_IN(name, function)                                                                  \
    {                                                                                              \
        name, (void (*)(void))(function)                                                           \
    }
static const struct {
    const char *name;
    void (*function)(void);
} functions[] = {STANDS_IN("cuInit", begin_cuda),
                 STANDS_IN("cuDeviceGet", cuda_device),
                 STANDS_IN("cuDeviceGetPCIBusId", cuda_address),
                 STANDS_IN("cuDeviceGetAttribute", cuda_attribute),
                 STANDS_IN("nvmlDeviceGetName", nvml_name),
                 STANDS_IN("nvmlSystemGetDriverVersion", nvml_driver),
                 STANDS_IN("nvmlDeviceGetEnforcedPowerLimit", nvml_limit),
                 STANDS_IN("nvmlInit_v2", begin),
                 STANDS_IN("nvmlShutdown", begin),
                 STANDS_IN("nvmlDeviceGetHandleByPciBusId_v2", nvml_at),
                 STANDS_IN("nvmlDeviceGetTotalEnergyConsumption", nvml_energy),
                 STANDS_IN("nvmlDeviceGetComputeRunningProcesses_v3", nvml_processes),
                 STANDS_IN("nvmlDeviceGetProcessUtilization", nvml_activity)};

static void *stand_in_open(const char *file, int mode)
{
    (void)mode;
    return (void *)(strcmp(file, "libcuda.so.1") == 0 ? &addresses[0] : &addresses[1]);
}

static int stand_in_close(void *library)
{
    (void)library;
    return 0;
}

static void *stand_in_find(void *library, const char *name)
{
    void *symbol = NULL;
    (void)library;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0)
            memcpy(&symbol, &functions[i].function, sizeof symbol);
    return symbol;
}

/* The meter itself, with these for libc's, which sanitizers need as they are. */
#define dlopen stand_in_open
#define dlclose stand_in_close
#define dlsym stand_in_find
#include "bench/meter/energy.c"

TEST(the_gpu_that_cuda_computes_on_is_read)
{
    struct gpu_meter meter;
    if (CHECK_OK(gpu_meter_open(&meter)))
        CHECK_NEAR(gpu_meter_read(&meter, GPU_JOULES), 5, 1e-12);
    gpu_meter_close(&meter);
}

TEST(where_cuda_sees_none_nothing_is_read)
{
    struct gpu_meter meter;
    visible = 0;
    CHECK_STATUS(STATUS_UNSUPPORTED, gpu_meter_open(&meter));
    CHECK_MESSAGE("CUDA_VISIBLE_DEVICES");
    visible = 1;
}

/* What is not told (here: the memory) is left out of a record. */
TEST(a_gpu_has_its_facts)
{
    struct facts facts = {0};
    struct gpu_meter meter;
    struct arena arena = {0};
    const struct json *machine, *software;
    if (CHECK_OK(gpu_meter_open(&meter)))
        gpu_meter_facts(&meter, &facts.gpu);
    gpu_meter_close(&meter);
    facts.version = facts.commit = facts.compiler = facts.build = "";
    if (CHECK_OK(facts_trees(&facts, &arena, &machine, &software))) {
        const struct json *gpu = json_get(machine, "gpu");
        CHECK_EQUAL_TEXT(json_text(gpu, "name", ""), "GPU 1");
        CHECK_EQUAL_TEXT(json_text(gpu, "driver", ""), "580.65");
        CHECK_EQUAL_INT(json_int(gpu, "multiprocessors", 0), 132);
        CHECK_NEAR(json_real(gpu, "power_limit", 0), 700, 1e-9);
        CHECK(json_get(gpu, "memory_bytes") == NULL);
    }
    facts.gpu.name[0] = '\0';
    if (CHECK_OK(facts_trees(&facts, &arena, &machine, &software)))
        CHECK(json_get(machine, "gpu") == NULL);
    arena_free(&arena);
}

static void look(const struct family *family, struct gpu_company *out)
{
    struct gpu_meter meter;
    if (CHECK_OK(gpu_meter_open(&meter)))
        gpu_meter_company(&meter, family, 1000, out);
    gpu_meter_close(&meter);
}

/* Memory is that of the process that computes; those that we started are no strangers. */
TEST(who_is_on_the_gpu_is_told)
{
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    if (!CHECK(child > 0))
        return;
    const struct family own = {.count = 0}, peer = {.processes = {child}, .count = 1};
    struct gpu_company company;
    listed[0] = (unsigned)getpid();
    listed[1] = (unsigned)child;
    listed[2] = listed[3] = 1; /* whoever started everything was not started by us */
    look(&own, &company);
    CHECK_NEAR(company.bytes, 600, 0);
    CHECK_EQUAL_INT(company.others, 2);
    CHECK_NEAR(company.busy, 0, 0);
    works = 45;
    look(&peer, &company);
    CHECK_NEAR(company.bytes, 50, 0);
    CHECK_NEAR(company.busy, 45, 0);
    listed[2] = listed[0]; /* an amount that is not told is none */
    look(&own, &company);
    CHECK(isnan(company.bytes));
    CHECK_EQUAL_INT(company.others, 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* In a container: processes have other numbers there. */
TEST(where_ours_are_not_listed_nothing_is_known)
{
    const struct family own = {.count = 0};
    struct gpu_company company;
    for (int i = 0; i < 4; i++)
        listed[i] = 1;
    look(&own, &company);
    CHECK(isnan(company.bytes));
    CHECK_EQUAL_INT(company.others, -1);
    CHECK(isnan(company.busy));
}

CHECK_MAIN
