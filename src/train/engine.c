/* engine.c: see engine.h. */
#include "train/engine.h"

enum status engine_open(struct engine *engine, const struct backend *backend,
                        const struct device_options *options)
{
    engine->backend = backend;
    TRY(backend->probe());
    return backend->open(options, &engine->device);
}

enum status engine_attach(struct engine *engine, const struct params *params)
{
    if (engine->instance)
        return STATUS_OK;
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
