/* cupti_find.c: see cupti_find.h. The program's own comes first: PyTorch brings one, and two in one
 * process are one too many. Then one beside the CUDA libraries that are loaded (packages of Python
 * have it there), then one by its name, then where CUDA's toolkit is installed. */
#include "agent/cupti_find.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

enum { NEWEST = 14, OLDEST = 11 }; /* CUDA, whose number the library has */

static bool open_it(struct cupti *cupti, const char *path, int flags)
{
    cupti->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    return cupti->library != NULL;
}

static bool open_by_name(struct cupti *cupti, const char *folder, int flags)
{
    char path[PATH_MAX];
    for (int major = NEWEST; major >= OLDEST; major--) {
        snprintf(path, sizeof path, "%slibcupti.so.%d", folder, major);
        if (open_it(cupti, path, flags))
            return true;
    }
    return false;
}

static bool open_in_toolkit(struct cupti *cupti)
{
    static const char *const folders[] = {"/usr/local/cuda/lib64/",
                                          "/usr/local/cuda/extras/CUPTI/lib64/",
                                          "/usr/local/cuda/lib/", "/opt/cuda/extras/CUPTI/lib64/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (open_by_name(cupti, folders[i], 0))
            return true;
    return false;
}

/* The folders of a Python installation's packages: …/site-packages/nvidia/NAME/lib. */
struct packages {
    char roots[4][PATH_MAX]; /* up to "/nvidia/" */
    size_t count;
};

static int note_package(struct dl_phdr_info *object, size_t bytes, void *context)
{
    struct packages *packages = context;
    const char *end = object->dlpi_name ? strstr(object->dlpi_name, "/nvidia/") : NULL;
    (void)bytes;
    if (!end || packages->count == sizeof packages->roots / sizeof *packages->roots)
        return 0;
    const int length = (int)(end - object->dlpi_name) + (int)sizeof "/nvidia";
    char root[PATH_MAX];
    snprintf(root, sizeof root, "%.*s", length, object->dlpi_name);
    for (size_t i = 0; i < packages->count; i++)
        if (strcmp(packages->roots[i], root) == 0)
            return 0;
    memcpy(packages->roots[packages->count++], root, sizeof root);
    return 0;
}

static bool open_in_packages(struct cupti *cupti)
{
    static const char *const inside[] = {"cuda_cupti/lib/", "cu13/lib/", "cu12/lib/"};
    static struct packages packages;
    char folder[PATH_MAX + 32];
    packages.count = 0;
    dl_iterate_phdr(note_package, &packages);
    for (size_t i = 0; i < packages.count; i++)
        for (size_t j = 0; j < sizeof inside / sizeof *inside; j++) {
            snprintf(folder, sizeof folder, "%s%s", packages.roots[i], inside[j]);
            if (open_by_name(cupti, folder, 0))
                return true;
        }
    return false;
}

bool cupti_find(struct cupti *cupti, char *reason, size_t room)
{
    *cupti = (struct cupti){0};
    if (!open_by_name(cupti, "", RTLD_NOLOAD) && !open_in_packages(cupti) &&
        !open_by_name(cupti, "", 0) && !open_in_toolkit(cupti)) {
        snprintf(reason, room, "CUPTI (libcupti.so) was not found: it comes with CUDA's toolkit");
        return false;
    }
    const char *missing = NULL;
#define DO(name, parameters)                                                                       \
    *(void **)(void *)&cupti->name = dlsym(cupti->library, "cupti" #name);                         \
    if (!cupti->name)                                                                              \
        missing = #name;
    CUPTI_FUNCTIONS(DO)
#undef DO
    if (missing)
        snprintf(reason, room, "CUPTI is too old: it has no cupti%s; CUDA 11.6 and newer have it",
                 missing);
    return !missing;
}

bool cupti_look(char *path, size_t room)
{
    struct cupti cupti = {0};
    struct link_map *map = NULL;
    if (!open_by_name(&cupti, "", 0) && !open_in_toolkit(&cupti))
        return false;
    const bool known = dlinfo(cupti.library, RTLD_DI_LINKMAP, &map) == 0 && map;
    snprintf(path, room, "%s", known ? map->l_name : "libcupti.so");
    dlclose(cupti.library);
    return true;
}
