/* engine.h: an opened device and, once it is attached, one copy of a network's parameters on it. */
#ifndef PRONY_TRAIN_ENGINE_H
#define PRONY_TRAIN_ENGINE_H

#include "core/backend.h"

struct engine {
    const struct backend *backend;
    struct device *device;
    struct instance *instance; /* NULL: not attached */
};

/* Opens the device. */
enum status engine_open(struct engine *engine, const struct backend *backend,
                        const struct device_options *options);
/* Copies the parameters to the device, unless they are there. What a program declares afterwards
 * would not be: detach first. */
enum status engine_attach(struct engine *engine, const struct params *params);
/* Copies the parameters back and forgets them there; after the plans were released. */
enum status engine_detach(struct engine *engine, struct params *params);
/* Copies the parameters back, when they are there. */
enum status engine_download(const struct engine *engine, struct params *params);
void engine_close(struct engine *engine); /* after its plans were released; zeroed is fine */

#endif
