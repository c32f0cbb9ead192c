/* registry.c: built-in backends, and plugins found beside the executable. */
#include "core/registry.h"

#include "base/load/trust.h"
#include "base/text.h"

#include <assert.h>
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

void registry_add(struct registry *registry, const struct backend *backend)
{
    assert(registry->count < REGISTRY_MOST);
    registry->list[registry->count].backend = backend;
    registry->list[registry->count++].name = backend->name;
}

/* Whether a library ends before what would be mapped of it does: who touches such a page is killed.
 */
static bool cut_short(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false; /* dlopen says why */
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    bool cut = false;
    if (fread(&header, sizeof header, 1, file) == 1 &&
        memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_phentsize == sizeof segment &&
        fseek(file, 0, SEEK_END) == 0) {
        uint64_t size = (uint64_t)ftell(file);
        cut = fseek(file, (long)header.e_phoff, SEEK_SET) != 0;
        for (int i = 0; i < header.e_phnum && !cut; i++)
            cut = fread(&segment, sizeof segment, 1, file) != 1 || segment.p_offset > size ||
                  segment.p_filesz > size - segment.p_offset;
    }
    fclose(file);
    return cut;
}

/* Opens one plugin; on failure *problem says why, in the registry's arena. */
static const struct plugin *open_plugin(struct registry *registry, const char *path, void **library,
                                        const char **problem)
{
    char real[PATH_MAX];
    if (trust_check(path, real) != STATUS_OK) {
        *problem = arena_text(&registry->arena, status_message());
        return NULL;
    }
    if (cut_short(real)) {
        *problem = arena_format(&registry->arena, "%s is cut short: build or copy it again", path);
        return NULL;
    }
    *library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    if (!*library) {
        *problem = arena_format(&registry->arena, "cannot be loaded: %s: build or copy it again",
                                dlerror());
        return NULL;
    }
    const struct plugin *plugin = dlsym(*library, "prony_plugin");
    if (!plugin)
        *problem = arena_format(&registry->arena,
                                "%s is not a plugin of prony: build or copy it again", path);
    else if (plugin->abi != BACKEND_ABI || plugin->backend->abi != BACKEND_ABI)
        *problem = arena_format(&registry->arena,
                                "%s is of another version (%d, expected %d): build both together",
                                path, plugin->abi, BACKEND_ABI);
    else {
        plugin->share(status_last);
        return plugin;
    }
    dlclose(*library);
    *library = NULL;
    return NULL;
}

/* "prony_cuda.so" → "cuda". */
static char *plugin_name(struct registry *registry, const char *file)
{
    size_t length = strlen(file);
    return arena_bytes(&registry->arena, file + 6, length - 6 - 3);
}

static enum status load_folder(struct registry *registry, const char *folder)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return STATUS_OK; /* no folder, no plugins */
    enum status status = STATUS_OK;
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(entries));) {
        if (!text_starts(entry->d_name, "prony_") || !text_ends(entry->d_name, ".so") ||
            registry->count == REGISTRY_MOST)
            continue;
        const char *path = arena_format(&registry->arena, "%s/%s", folder, entry->d_name);
        const char *name = plugin_name(registry, entry->d_name);
        if (!path || !name) {
            status = status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory");
            break;
        }
        int i = registry->count++;
        registry->list[i].name = name;
        const struct plugin *plugin =
            open_plugin(registry, path, &registry->list[i].library, &registry->list[i].problem);
        if (plugin) {
            registry->list[i].backend = plugin->backend;
            registry->list[i].name = plugin->backend->name;
            if (plugin->second && registry->count < REGISTRY_MOST)
                registry_add(registry, plugin->second);
        } else if (!registry->list[i].problem)
            registry->list[i].problem = "out of memory";
    }
    closedir(entries);
    return status;
}

/* A backend of ours whose plugin is not there is named too, with what it takes: asked for, it is
 * refused, and its name is nobody else's. */
static void name_absent(struct registry *registry, const char *name, const char *problem)
{
    for (int i = 0; i < registry->count; i++)
        if (strcmp(registry->list[i].name, name) == 0)
            return;
    if (registry->count == REGISTRY_MOST)
        return;
    registry->list[registry->count].problem = problem;
    registry->list[registry->count++].name = name;
}

enum status registry_load(struct registry *registry, const char *folder)
{
    char *installed, *missing;
    TRY(load_folder(registry, folder));
    NEED(installed = arena_format(&registry->arena, "%s/../lib/prony", folder));
    TRY(load_folder(registry, installed));
    NEED(missing = arena_format(&registry->arena,
                                "found no prony_cuda.so in %s: copy it there, or build it "
                                "(make cuda; it needs nvcc of NVIDIA's CUDA toolkit)",
                                folder));
    name_absent(registry, "cuda", missing);
    for (int i = 0; i < registry->count; i++) /* the same plugin brings it */
        if (strcmp(registry->list[i].name, "cuda") == 0 && registry->list[i].problem)
            name_absent(registry, "cudnn", registry->list[i].problem);
    return STATUS_OK;
}

void registry_close(struct registry *registry)
{
    for (int i = 0; i < registry->count; i++)
        if (registry->list[i].library)
            dlclose(registry->list[i].library);
    arena_free(&registry->arena);
    *registry = (struct registry){0};
}

enum status registry_find(const struct registry *registry, const char *name,
                          const struct backend **out)
{
    const char *names[REGISTRY_MOST];
    struct text known = {0};
    for (int i = 0; i < registry->count; i++) {
        names[i] = registry->list[i].name;
        text_printf(&known, "%s%s", i ? ", " : "", names[i]);
        if (strcmp(names[i], name))
            continue;
        text_free(&known);
        *out = registry->list[i].backend;
        if (!*out)
            FAIL(STATUS_UNSUPPORTED, "the backend '%s': %s", name, registry->list[i].problem);
        return STATUS_OK;
    }
    const char *near = text_nearest(name, names, (size_t)registry->count);
    enum status status =
        near ? status_fail(STATUS_INPUT, __FILE__, __LINE__,
                           "there is no backend '%s'; did you mean '%s'?", name, near)
             : status_fail(STATUS_INPUT, __FILE__, __LINE__,
                           "there is no backend '%s'; this build has: %s", name, text_of(&known));
    text_free(&known);
    return status;
}

enum status registry_first(const struct registry *registry, const char *unit,
                           const struct backend **out)
{
    char reason[400] = ""; /* the first there is */
    for (int i = 0; i < registry->count; i++) {
        const struct backend *backend = registry->list[i].backend;
        if (!backend && !reason[0] && unit && strcmp(unit, "gpu") == 0) /* plugins are for GPUs */
            snprintf(reason, sizeof reason, "%s: %s", registry->list[i].name,
                     registry->list[i].problem);
        if (!backend || (unit && strcmp(backend->unit, unit) != 0))
            continue;
        if (backend->probe() == STATUS_OK) {
            *out = backend;
            return STATUS_OK;
        }
        if (!reason[0])
            snprintf(reason, sizeof reason, "%s: %s", backend->name, status_message());
    }
    FAIL(STATUS_UNSUPPORTED, "no backend computes on %s here: %s", unit ? unit : "anything",
         reason[0] ? reason : "prony machine lists them");
}
