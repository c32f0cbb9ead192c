/* cpu_device.h: what the files of the CPU framework share: device, instance, plan. */
#ifndef PRONY_BACKEND_CPU_CPU_DEVICE_H
#define PRONY_BACKEND_CPU_CPU_DEVICE_H

#include "backend/cpu/kernel.h"
#include "base/machine/cpu.h"
#include "base/pool.h"

struct device {
    const struct backend *backend;
    struct cpu cpu;
    enum isa isa;
    bool isa_only;
    struct pool *pool;
    bool small_pages; /* all its memory is on those of 4 KB */
    struct kernel_table kernels;
};

/* One entry of the parameters on this device. */
struct place {
    char *data;
    uint64_t bytes;
    bool blocked; /* see blocked.h */
    struct shape shape;
    enum dtype dtype;
    void *packed[NARROW_FORMS]; /* copies (narrow.h) that plans want; NULL: none does */
};

struct instance {
    struct device *device;
    enum dtype real;
    int32_t entries;
    struct place *places; /* per entry */
    char *memory;         /* all of them; NULL for bare parameters */
    uint64_t bytes;       /* of it */
    struct control control;
    uint64_t changes; /* of the parameters: uploads, and runs of plans that update */
};

/* cpu_device.c */
enum status cpu_open(const struct backend *backend, const struct device_options *options,
                     struct device **out);
void cpu_close(struct device *device);
void cpu_describe(const struct device *device, struct device_info *out);
const char *cpu_supports(const struct device *device, const struct program *program,
                         const struct op *op);

/* A large block as the device keeps its memory; mem_free_large frees. */
void *cpu_memory(const struct device *device, uint64_t bytes);

/* cpu_instance.c */
enum status cpu_attach(struct device *device, const struct params *params, struct instance **out);
void cpu_detach(struct instance *instance);
enum status cpu_upload(struct instance *instance, const struct params *params);
enum status cpu_download(struct instance *instance, struct params *params);
/* Sees to it that there is a packed copy of an entry. */
enum status cpu_pack(struct instance *instance, int32_t entry, enum narrow_form form);
/* The entry has changed: so do its copies. */
void cpu_repack(struct instance *instance, int32_t entry);

/* cpu_plan.c */
enum status cpu_prepare(struct instance *instance, const struct program *program,
                        const struct plan_options *options, struct plan **out);
enum status cpu_bind(struct plan *plan, const struct binding *binding);
enum status cpu_run(struct plan *plan, unsigned parts, int slot, int64_t steps);
enum status cpu_sync(struct plan *plan);
enum status cpu_fetch(struct plan *plan, int32_t tensor, void *out);
enum status cpu_explain(const struct plan *plan, struct arena *arena, struct explanation *out);
void cpu_release(struct plan *plan);

/* What all backends of the CPU share; probe and open are their own. */
#define CPU_HOOKS                                                                                  \
    .close = cpu_close, .describe = cpu_describe, .attach = cpu_attach, .detach = cpu_detach,      \
    .upload = cpu_upload, .download = cpu_download, .supports = cpu_supports,                      \
    .prepare = cpu_prepare, .bind = cpu_bind, .run = cpu_run, .sync = cpu_sync,                    \
    .fetch = cpu_fetch, .explain = cpu_explain, .release = cpu_release

#endif
