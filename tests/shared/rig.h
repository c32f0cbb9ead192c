/* rig.h: what tests of the engine share: every test runs on every backend.
 *
 * ON_BACKENDS(name) defines a test for each backend there is, built in or a plugin of this build:
 * name_ref, name_cuda … The body gets an opened rig. Where the backend cannot run here, or lacks an
 * op that the test needs, the test is skipped with the reason it gives. ON_QUICK_BACKENDS(name),
 * for tests that learn for a while, takes of the CPU's backends only the one that is used by
 * default. */
#ifndef PRONY_TESTS_RIG_H
#define PRONY_TESTS_RIG_H

#include "backend/cpu/cpu_backends.h"
#include "check.h"
#include "core/registry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct rig {
    const struct backend *backend;
    struct device *device;
};

/* The folder above the one the test executable is in: where plugins are built. */
static inline void rig_folder(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    folder[length > 0 ? length : 0] = 0;
    for (int i = 0; i < 2 && strrchr(folder, '/'); i++)
        *strrchr(folder, '/') = 0;
}

/* Every backend there is, loaded once: the tests are named after them. */
static inline const struct registry *rig_registry(void)
{
    static struct registry registry;
    char folder[4096];
    if (!registry.count) {
        rig_folder(folder, sizeof folder);
        cpu_register(&registry);
        if (registry_load(&registry, folder) != STATUS_OK)
            fprintf(stderr, "plugins: %s\n", status_message());
    }
    return &registry;
}

/* False: skip, with the reason in the last message. */
static inline bool rig_open(struct rig *rig, const char *name)
{
    *rig = (struct rig){0};
    struct device_options options = {.threads = 2, .isa = ISA_AVX512};
    return registry_find(rig_registry(), name, &rig->backend) == STATUS_OK &&
           rig->backend->probe() == STATUS_OK &&
           rig->backend->open(&options, &rig->device) == STATUS_OK;
}

static inline void rig_close(struct rig *rig)
{
    if (rig->device)
        rig->backend->close(rig->device);
}

/* Must this backend run every op? Another may run a few and refuse the rest. */
static inline bool rig_is_complete(const struct rig *rig)
{
    return !strcmp(rig->backend->name, "ref") || !strcmp(rig->backend->name, "cuda");
}

static inline void rig_test(void (*body)(struct rig *))
{
    struct rig rig;
    if (rig_open(&rig, check_subject))
        body(&rig);
    else
        check_skip("%s", status_message());
    rig_close(&rig);
}

enum { RIG_NAME = 100 };

static inline bool rig_is_quick(const struct backend *backend)
{
    const struct backend *usual;
    return !backend || strcmp(backend->unit, "cpu") ||
           (registry_first(rig_registry(), "cpu", &usual) == STATUS_OK && usual == backend);
}

static inline void rig_register(const char *name, void (*run)(void), bool quick,
                                struct check_test *tests, char (*names)[RIG_NAME])
{
    const struct registry *registry = rig_registry();
    for (int i = 0; i < registry->count; i++) {
        if (quick && !rig_is_quick(registry->list[i].backend))
            continue;
        snprintf(names[i], sizeof *names, "%s_%s", name, registry->list[i].name);
        tests[i] = (struct check_test){names[i], run, registry->list[i].name, NULL};
        check_add(&tests[i]);
    }
}

#define ON_BACKENDS(name) RIG_TEST(name, false)
#define ON_QUICK_BACKENDS(name) RIG_TEST(name, true)

#define RIG_TEST(name, quick)                                                                      \
    static void run_##name(struct rig *rig);                                                       \
    static void test_##name(void)                                                                  \
    {                                                                                              \
        rig_test(run_##name);                                                                      \
    }                                                                                              \
    __attribute__((constructor)) static void rig_register_##name(void)                             \
    {                                                                                              \
        static struct check_test tests[REGISTRY_MOST];                                             \
        static char names[REGISTRY_MOST][RIG_NAME];                                                \
        rig_register(#name, test_##name, quick, tests, names);                                     \
    }                                                                                              \
    static void run_##name(struct rig *rig)

/* A program ready to run, on an instance of its own or a shared one. */
struct ready {
    const struct backend *backend;
    struct instance *instance;
    struct plan *plan;
    bool owns_instance;
};

static inline bool ready_on(struct ready *ready, struct rig *rig, struct instance *instance,
                            const struct program *program, const struct plan_options *options)
{
    static const struct plan_options usual = {0};
    *ready = (struct ready){.backend = rig->backend, .instance = instance};
    enum status status =
        rig->backend->prepare(instance, program, options ? options : &usual, &ready->plan);
    if (status == STATUS_UNSUPPORTED && !rig_is_complete(rig))
        check_skip("%s", status_message());
    return CHECK_OK(status);
}

static inline bool ready_open(struct ready *ready, struct rig *rig, const struct params *params,
                              const struct program *program)
{
    struct instance *instance;
    *ready = (struct ready){0};
    if (!CHECK_OK(rig->backend->attach(rig->device, params, &instance)))
        return false;
    bool ok = ready_on(ready, rig, instance, program, NULL);
    ready->owns_instance = true;
    return ok;
}

static inline void ready_close(struct ready *ready)
{
    if (ready->plan)
        ready->backend->release(ready->plan);
    if (ready->owns_instance)
        ready->backend->detach(ready->instance);
    *ready = (struct ready){0};
}

static inline bool ready_run(struct ready *ready, unsigned parts, int slot, int64_t steps)
{
    return CHECK_OK(ready->backend->run(ready->plan, parts, slot, steps)) &&
           CHECK_OK(ready->backend->sync(ready->plan));
}

/* Binds views to input and output tensors by name; data[i] NULL passes over a name. */
static inline bool ready_bind(struct ready *ready, const struct program *program,
                              const char *const *names, void *const *data, const int64_t *rows,
                              int count, const uint32_t *order, int64_t order_count, uint64_t start)
{
    struct view views[8];
    struct binding binding = {
        .views = views, .order = order, .order_count = order_count, .start = start};
    for (int i = 0; i < count; i++) {
        int32_t tensor = program_find(program, ROLE_INPUT, names[i]);
        if (tensor < 0)
            tensor = program_find(program, ROLE_OUTPUT, names[i]);
        if (!CHECK(tensor >= 0))
            return false;
        views[binding.view_count++] =
            (struct view){.tensor = tensor, .data = data[i], .rows = rows[i]};
    }
    return CHECK_OK(ready->backend->bind(ready->plan, &binding));
}

/* Largest |a - b| relative to the largest |b|; infinite when a NaN is in a. */
static inline double difference(const float *a, const float *b, int64_t count)
{
    double most = 0, size = 1e-30;
    for (int64_t i = 0; i < count; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (isnan(d))
            return HUGE_VAL;
        most = fmax(most, d);
        size = fmax(size, fabs((double)b[i]));
    }
    return most / size;
}

static inline void fill_random(float *data, int64_t count, unsigned seed)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
}

/* Are the kept blocks the same, bit for bit? */
static inline bool same_params(const struct params *a, const struct params *b)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (a->blocks[role].bytes != b->blocks[role].bytes ||
            (a->blocks[role].bytes &&
             memcmp(a->blocks[role].data, b->blocks[role].data, (size_t)a->blocks[role].bytes)))
            return false;
    return a->control.step == b->control.step;
}

static inline double params_difference(const struct params *a, const struct params *b,
                                       enum role role)
{
    double most = 0;
    for (int32_t i = 0; i < a->count; i++)
        if (a->entries[i].role == role && a->entries[i].dtype == DTYPE_F32)
            most = fmax(most, difference(params_data(a, i), params_data(b, i),
                                         shape_count(&a->entries[i].shape)));
    return most;
}

#endif
