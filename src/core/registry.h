/* registry.h: the backends that exist: the built-in ones and those in plugins (prony_*.so). */
#ifndef PRONY_CORE_REGISTRY_H
#define PRONY_CORE_REGISTRY_H

#include "base/arena.h"
#include "core/backend.h"

enum { REGISTRY_MOST = 16 };

struct registry {
    struct arena arena;
    int count;
    struct {
        const struct backend *backend; /* NULL when a plugin could not be loaded */
        const char *name;
        const char *problem; /* why it could not be loaded and what to do, or NULL */
        void *library;       /* dlopen's handle, or NULL */
    } list[REGISTRY_MOST];
};

void registry_add(struct registry *registry, const struct backend *backend);
/* Loads every prony_*.so in `folder`, which is the executable's, and in folder/../lib/prony, where
 * an installed prony has them. A plugin that fails to load, or is of another version, stays in the
 * list with its problem; it is no error. */
enum status registry_load(struct registry *registry, const char *folder);
void registry_close(struct registry *registry);

/* The backend of this name; unknown names are refused with what there is; a plugin that could not
 * be loaded is STATUS_UNSUPPORTED with its problem. */
enum status registry_find(const struct registry *registry, const char *name,
                          const struct backend **out);

/* What runs when no backend is named: the first that computes on this unit (NULL: on any) and runs
 * on this machine. STATUS_UNSUPPORTED when there is none. */
enum status registry_first(const struct registry *registry, const char *unit,
                           const struct backend **out);

#endif
