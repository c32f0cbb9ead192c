/* engine.h: an opened device with one copy of a network's parameters on it. */
#ifndef PRONY_TRAIN_ENGINE_H
#define PRONY_TRAIN_ENGINE_H

#include "core/backend.h"

struct engine {
    const struct backend *backend;
    struct device *device;
    struct instance *instance;
};

/* Every program that will run must have been compiled before: params is complete. */
enum status engine_open(struct engine *engine, const struct backend *backend,
                        const struct device_options *options, const struct params *params);
void engine_close(struct engine *engine); /* after its plans were released; zeroed is fine */

#endif
