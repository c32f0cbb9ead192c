/* modules.c: see modules.h. */
#include "watch/modules.h"

#include "base/clock.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum status modules_number(struct modules *modules, const char *path, size_t *out)
{
    for (*out = 0; *out < modules->count; ++*out)
        if (strcmp(modules->paths[*out], path) == 0)
            return STATUS_OK;
    if (modules->count == MODULES_MOST) {
        *out = 0;
        return STATUS_OK;
    }
    if (modules->count == modules->room) {
        size_t room = modules->room ? 2 * modules->room : 64;
        const char **grown = mem_grow(modules->paths, room, sizeof *grown);
        NEED(grown);
        modules->paths = grown;
        modules->room = room;
    }
    NEED(modules->paths[modules->count] = arena_text(&modules->arena, path));
    modules->count++;
    return STATUS_OK;
}

void modules_free(struct modules *modules)
{
    mem_free(modules->paths);
    arena_free(&modules->arena);
    *modules = (struct modules){0};
}

/* A line of /proc/PID/maps; false: it is of no interest. */
static bool parse_range(char *line, struct map_range *range, const char **path)
{
    enum { RIGHTS = 5, EXECUTE = 2 };
    char rights[RIGHTS];
    int name = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &range->start,
               &range->end, rights, &range->offset, &name) < 4 ||
        !name || rights[EXECUTE] != 'x')
        return false;
    *path = line + name;
    char *deleted = strstr(line + name, " (deleted)");
    if (deleted)
        *deleted = '\0';
    return true;
}

static enum status add_range(struct maps *maps, const struct map_range *range)
{
    if (maps->count == maps->room) {
        size_t room = maps->room ? 2 * maps->room : 128;
        struct map_range *grown = mem_grow(maps->ranges, room, sizeof *grown);
        NEED(grown);
        maps->ranges = grown;
        maps->room = room;
    }
    maps->ranges[maps->count++] = *range;
    return STATUS_OK;
}

enum status maps_read(struct maps *maps, pid_t process, struct modules *modules)
{
    enum { LINE = 4400 };
    char path[40], line[LINE];
    struct map_range range;
    const char *name;
    size_t unnamed;
    enum status status = STATUS_OK;
    maps->read_ns = clock_ns();
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return STATUS_OK;
    TRY_OR(done, modules_number(modules, "", &unnamed));
    for (bool first = true; fgets(line, sizeof line, file); first = false) {
        if (first)
            maps->count = 0;
        if (!parse_range(line, &range, &name))
            continue;
        TRY_OR(done,
               modules_number(modules, *name == '/' || *name == '[' ? name : "", &range.module));
        TRY_OR(done, add_range(maps, &range));
    }
done:
    fclose(file);
    return status;
}

void maps_free(struct maps *maps)
{
    mem_free(maps->ranges);
    *maps = (struct maps){0};
}

uint64_t maps_place(const struct maps *maps, uint64_t address)
{
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (address < maps->ranges[middle].start)
            high = middle;
        else
            low = middle + 1;
    }
    const struct map_range *range = low ? &maps->ranges[low - 1] : NULL;
    if (!range || address >= range->end)
        return 0;
    uint64_t offset = address - range->start + range->offset;
    return (uint64_t)range->module << PLACE_BITS | (offset & (((uint64_t)1 << PLACE_BITS) - 1));
}
