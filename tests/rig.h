/* rig.h: what tests of the engine share: every test runs on every backend.
 *
 * ON_BACKENDS(name) defines the tests name_ref and name_cuda; the body gets an opened rig. Where
 * the backend cannot run here the test is skipped with the reason it gives. */
#ifndef PRONY_TESTS_RIG_H
#define PRONY_TESTS_RIG_H

#include "backend/cpu/cpu_backends.h"
#include "check.h"
#include "core/registry.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct rig {
    struct registry registry;
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

/* False: skip, with the reason in the last message. */
static inline bool rig_open(struct rig *rig, const char *name)
{
    char folder[4096];
    rig_folder(folder, sizeof folder);
    *rig = (struct rig){0};
    registry_add(&rig->registry, &backend_ref);
    if (registry_load(&rig->registry, folder) != STATUS_OK)
        return false;
    if (registry_find(&rig->registry, name, &rig->backend) != STATUS_OK)
        return false;
    if (rig->backend->probe() != STATUS_OK)
        return false;
    struct device_options options = {.threads = 2, .isa = ISA_AVX512};
    return rig->backend->open(&options, &rig->device) == STATUS_OK;
}

static inline void rig_close(struct rig *rig)
{
    if (rig->device)
        rig->backend->close(rig->device);
    registry_close(&rig->registry);
}

#define ON_BACKEND(name, backend)                                                                  \
    TEST(name##_##backend)                                                                         \
    {                                                                                              \
        struct rig rig;                                                                            \
        if (!rig_open(&rig, #backend)) {                                                           \
            rig_close(&rig);                                                                       \
            SKIP("%s", status_message());                                                          \
        }                                                                                          \
        run_##name(&rig);                                                                          \
        rig_close(&rig);                                                                           \
    }

#define ON_BACKENDS(name)                                                                          \
    static void run_##name(struct rig *rig);                                                       \
    ON_BACKEND(name, ref)                                                                          \
    ON_BACKEND(name, cuda)                                                                         \
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
    return CHECK_OK(
        rig->backend->prepare(instance, program, options ? options : &usual, &ready->plan));
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
