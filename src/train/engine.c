/* engine.c: see engine.h. */
#include "train/engine.h"

#include "base/machine/room.h"
#include "core/pass/fuse.h"
#include "core/pass/recompute.h"

#include <stdio.h>
#include <string.h>

enum status engine_open(struct engine *engine, const struct backend *backend,
                        const struct device_options *options)
{
    engine->backend = backend;
    snprintf(engine->precision, sizeof engine->precision, "%s",
             options->precision ? options->precision : "");
    TRY(backend->probe());
    return backend->open(options, &engine->device);
}

/* The same from a program that keeps fewer activations. */
static enum status fuse_smaller(const struct engine *engine, const struct program *program,
                                struct program **out)
{
    struct program *smaller;
    TRY(recompute(program, 0, &smaller));
    enum status status = fuse(smaller, engine->backend, engine->device, out);
    program_free(smaller);
    return status;
}

enum status engine_fuse(const struct engine *engine, const struct program *program,
                        struct program **out)
{
    struct program *fused;
    TRY(fuse(program, engine->backend, engine->device, &fused));
    enum status status = STATUS_OK;
    if (engine->recompute && !fused->whole) {
        program_free(fused);
        status = fuse_smaller(engine, program, &fused);
    }
    if (status == STATUS_OK)
        *out = fused;
    return status;
}

uint64_t engine_kept_bytes(const struct params *params)
{
    uint64_t bytes = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        bytes += 2 * params->blocks[role].bytes;
    return bytes;
}

enum status engine_check_memory(const struct backend *backend, struct program *const *programs,
                                int32_t count, const struct params *params, uint64_t besides)
{
    const double kept = (double)engine_kept_bytes(params);
    double most = 0;
    if (strcmp(backend->unit, "cpu") != 0)
        return STATUS_OK;
    for (int32_t p = 0; p < count; p++) {
        double beside = 0;
        for (int role = 0; role < ROLE_COUNT; role++)
            if (!role_is_kept((enum role)role))
                beside += (double)programs[p]->role_bytes[role];
        most = beside > most ? beside : most;
    }
    return room_check(kept + most + (double)besides,
                      "%s at batch %d takes twice %.1f MB for its parameters and %.1f MB for the "
                      "rest",
                      programs[0]->name, programs[0]->batch, kept / 2e6,
                      (most + (double)besides) / 1e6);
}

enum status engine_attach(struct engine *engine, struct params *params)
{
    if (engine->instance)
        return STATUS_OK;
    TRY(params_fill_new(params));
    return engine->backend->attach(engine->device, params, &engine->instance);
}

enum status engine_download(const struct engine *engine, struct params *params)
{
    return engine->instance ? engine->backend->download(engine->instance, params) : STATUS_OK;
}

enum status engine_detach(struct engine *engine, struct params *params)
{
    TRY(engine_download(engine, params));
    if (engine->instance)
        engine->backend->detach(engine->instance);
    engine->instance = NULL;
    return STATUS_OK;
}

void engine_close(struct engine *engine)
{
    if (engine->instance)
        engine->backend->detach(engine->instance);
    if (engine->device)
        engine->backend->close(engine->device);
    *engine = (struct engine){0};
}
