/* engine.h: an opened device and, once it is attached, one copy of a network's parameters on it. */
#ifndef PRONY_TRAIN_ENGINE_H
#define PRONY_TRAIN_ENGINE_H

#include "core/backend.h"

struct engine {
    const struct backend *backend;
    struct device *device;
    struct instance *instance; /* NULL: not attached */
    bool recompute;            /* trainings keep fewer activations (core/pass/recompute.h) */
    char precision[16];        /* of products, as it was asked for; "": as usual */
};

/* Opens the device. */
enum status engine_open(struct engine *engine, const struct backend *backend,
                        const struct device_options *options);
/* Makes a new program, as this engine runs it; the old one stays. One kernel that runs a whole
 * program keeps its activations to itself: there nothing is dropped. */
enum status engine_fuse(const struct engine *engine, const struct program *program,
                        struct program **out);
/* Gives the parameters that have no values yet their first ones, and copies all to the device,
 * unless they are there. What a program declares afterwards would not be: detach first. */
enum status engine_attach(struct engine *engine, struct params *params);
/* Refuses programs (named after the first; of a count of 0 none is needed) and parameters that the
 * memory cannot hold, before either is made; so much is taken besides. What a backend has memory of
 * its own for, it refuses itself. */
enum status engine_check_memory(const struct backend *backend, struct program *const *programs,
                                int32_t count, const struct params *params, uint64_t besides);
/* Copies the parameters back and forgets them there; after the plans were released. */
enum status engine_detach(struct engine *engine, struct params *params);
/* Copies the parameters back, when they are there. */
enum status engine_download(const struct engine *engine, struct params *params);
/* What parameters take on the host, and again on a device of the host. */
uint64_t engine_kept_bytes(const struct params *params);
void engine_close(struct engine *engine); /* after its plans were released; zeroed is fine */

#endif
