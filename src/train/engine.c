/* engine.c: open and attach; detach and close. */
#include "train/engine.h"

enum status engine_open(struct engine *engine, const struct backend *backend,
                        const struct device_options *options, const struct params *params)
{
    engine->backend = backend;
    TRY(backend->probe());
    TRY(backend->open(options, &engine->device));
    return backend->attach(engine->device, params, &engine->instance);
}

void engine_close(struct engine *engine)
{
    if (engine->instance)
        engine->backend->detach(engine->instance);
    if (engine->device)
        engine->backend->close(engine->device);
    *engine = (struct engine){0};
}
