/* sweep.c: see sweep.h. */
#include "bench/sweep.h"

#include "base/memory.h"
#include "bench/peers.h"
#include "nn/network.h"

#include <string.h>

static const enum axis_index interleaved[] = {AXIS_framework, AXIS_backend, AXIS_threads,
                                              AXIS_affinity,  AXIS_isa,     AXIS_fusion};

static bool sweep_interleaves(int axis)
{
    for (size_t i = 0; i < sizeof interleaved / sizeof *interleaved; i++)
        if ((int)interleaved[i] == axis)
            return true;
    return false;
}

enum status sweep_split(const struct axis *axis, const char *text, struct arena *arena,
                        struct sweep_list *out)
{
    size_t most = 1;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    const char **values = arena_array(arena, most, sizeof *values);
    NEED(values);
    out->values = values;
    out->count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (!length)
            FAIL(STATUS_INPUT, "--%s: found \"%s\", expected values with a comma between them",
                 axis->key, text);
        NEED(values[out->count] = arena_bytes(arena, at, length));
        TRY(axis_check(axis, values[out->count++]));
        at += length;
        if (!*at)
            return STATUS_OK;
    }
}

static bool sweep_has_prony(const struct sweep *sweep)
{
    const struct sweep_list *frameworks = &sweep->lists[AXIS_framework];
    for (int i = 0; i < frameworks->count; i++)
        if (strcmp(frameworks->values[i], "prony") == 0)
            return true;
    return frameworks->count == 0;
}

enum status sweep_check(const struct sweep *sweep, const struct bench *bench)
{
    const struct sweep_list *models = &sweep->lists[AXIS_model];
    const struct sweep_list *frameworks = &sweep->lists[AXIS_framework];
    const struct sweep_list *backends = &sweep->lists[AXIS_backend];

    for (int i = 0; i < models->count; i++) {
        struct network *network;
        TRY(network_open(models->values[i], &network));
        network_free(network);
    }
    for (int i = 0; i < frameworks->count; i++) {
        struct arena scratch = {0};
        const char *path;
        enum status status = strcmp(frameworks->values[i], "prony") == 0
                                 ? STATUS_OK
                                 : peers_find(bench->peers, frameworks->values[i], &scratch, &path);
        arena_free(&scratch);
        TRY(status);
    }
    for (int i = 0; i < backends->count && sweep_has_prony(sweep); i++) {
        const struct backend *backend;
        enum status status = registry_find(bench->registry, backends->values[i], &backend);
        if (status != STATUS_OK && status != STATUS_UNSUPPORTED) /* the latter becomes a skip */
            return status;
    }
    return STATUS_OK;
}

/* The work that is being gone through. */
struct walk {
    const struct sweep *sweep;
    struct bench *bench;
    struct point *group; /* the points of the group being gathered */
    int group_count;
    int done, total; /* groups */
};

/* A peer has no backends of ours, and what runs on a GPU has no threads: such points come out equal
 * and are taken once. */
static enum status walk_gather(struct walk *walk, const struct point *asked)
{
    struct point point = *asked;
    const struct backend *backend;

    if (strcmp(point.framework, "prony") != 0) {
        TRY(point_set(&point, &axes[AXIS_backend], "default"));
    } else {
        if (!point.backend[0])
            TRY(point_set(&point, &axes[AXIS_backend], walk->bench->registry->list[0].name));
        if (registry_find(walk->bench->registry, point.backend, &backend) == STATUS_OK)
            TRY(point_set(&point, &axes[AXIS_unit], backend->unit));
    }
    point_settle(&point);
    for (int i = 0; i < walk->group_count; i++)
        if (point_compare(&walk->group[i], &point) == 0)
            return STATUS_OK;
    walk->group[walk->group_count++] = point;
    return STATUS_OK;
}

/* Goes through the values of the axes from `axis` on: first those that make groups apart, then,
 * within a group, those that take turns. */
static enum status walk_axes(struct walk *walk, struct point *point, int axis, bool within)
{
    while (axis < AXIS_COUNT &&
           (sweep_interleaves(axis) != within || walk->sweep->lists[axis].count == 0))
        axis++;
    if (axis < AXIS_COUNT) {
        const struct sweep_list *list = &walk->sweep->lists[axis];
        for (int i = 0; i < list->count; i++) {
            TRY(point_set(point, &axes[axis], list->values[i]));
            TRY(walk_axes(walk, point, axis + 1, within));
        }
        return STATUS_OK;
    }
    if (within)
        return walk_gather(walk, point);
    walk->group_count = 0;
    struct point inner = *point;
    TRY(walk_axes(walk, &inner, 0, true));
    if (walk->sweep->progress)
        walk->sweep->progress(walk->sweep->context, point, walk->done, walk->total);
    walk->done++;
    return group_run(walk->bench, walk->group, walk->group_count);
}

enum status sweep_run(const struct sweep *sweep, struct bench *bench)
{
    struct walk walk = {.sweep = sweep, .bench = bench, .total = 1};
    size_t group_most = 1;
    struct point point;

    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        int count = sweep->lists[axis].count;
        if (count && sweep_interleaves(axis))
            group_most *= (size_t)count;
        else if (count)
            walk.total *= count;
    }
    NEED(walk.group = mem_array(group_most, sizeof *walk.group));
    point_start(&point);
    enum status status = walk_axes(&walk, &point, 0, false);
    mem_free(walk.group);
    return status;
}
