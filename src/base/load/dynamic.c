/* dynamic.c: see dynamic.h. */
#include "base/load/dynamic.h"

#include <dlfcn.h>
#include <string.h>

static enum status load(const struct dynamic_library *library)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        FAIL(STATUS_UNSUPPORTED, "%s: %s", library->need, dlerror());
    for (size_t i = 0; i < library->count; i++) {
        void *found = dlsym(handle, library->functions[i].name);
        if (!found) {
            dlclose(handle);
            FAIL(STATUS_UNSUPPORTED, "%s: %s has no %s, expected a newer one", library->need,
                 library->file, library->functions[i].name);
        }
        memcpy(library->functions[i].pointer, &found, sizeof found); /* C has no cast for it */
    }
    return STATUS_OK;
}

enum status dynamic_load(struct dynamic_library *library)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&library->lock);
    if (!library->loaded)
        status = load(library);
    library->loaded = status == STATUS_OK;
    pthread_mutex_unlock(&library->lock);
    return status;
}
