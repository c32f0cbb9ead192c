/* layers.c: see layers.h. */
#include "bench/layers/layers.h"

#include "nn/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An array of the arena with room for one more; what is left behind is freed with it. */
static void *grow(struct arena *arena, void *old, int32_t count, int32_t *room, size_t bytes)
{
    if (count < *room)
        return old;
    *room = *room ? 2 * *room : 32;
    void *grown = arena_array(arena, (size_t)*room, bytes);
    if (grown && count)
        memcpy(grown, old, (size_t)count * bytes);
    return grown;
}

static enum status add_atom(struct layers *layers, const char *key, const char *name,
                            const char *op)
{
    NEED(layers->atoms = grow(&layers->arena, layers->atoms, layers->atom_count, &layers->atom_room,
                              sizeof *layers->atoms));
    struct layer_atom *atom = &layers->atoms[layers->atom_count++];
    NEED(atom->key = arena_text(&layers->arena, key));
    NEED(atom->name = arena_text(&layers->arena, *name ? name : key));
    NEED(atom->op = arena_text(&layers->arena, op));
    return STATUS_OK;
}

static int32_t find_atom(const struct layers *layers, const char *key)
{
    for (int32_t i = 0; i < layers->atom_count; i++)
        if (strcmp(layers->atoms[i].key, key) == 0)
            return i;
    return -1;
}

enum status layers_atom(struct layers *layers, const char *key, int32_t *out)
{
    *out = find_atom(layers, key);
    if (*out >= 0)
        return STATUS_OK;
    TRY(add_atom(layers, key, key, ""));
    *out = layers->atom_count - 1;
    return STATUS_OK;
}

static int order_of_origins(const void *a, const void *b)
{
    const struct network_origin *const *x = a, *const *y = b;
    return ((*x)->place > (*y)->place) - ((*x)->place < (*y)->place);
}

/* The nodes in the order of the file; one that became several layers once. */
static enum status name_nodes(struct layers *layers, const struct network *network)
{
    const struct network_origin **list =
        arena_array(&layers->arena, (size_t)network->origin_count, sizeof *list);
    NEED(list);
    for (int32_t i = 0; i < network->origin_count; i++)
        list[i] = &network->origins[i];
    qsort(list, (size_t)network->origin_count, sizeof *list, order_of_origins);
    for (int32_t i = 0; i < network->origin_count; i++)
        if (i == 0 || list[i]->place != list[i - 1]->place)
            TRY(add_atom(layers, list[i]->value, list[i]->node, list[i]->op));
    return STATUS_OK;
}

enum status layers_name(struct layers *layers, const struct network *network)
{
    if (!network)
        return STATUS_OK;
    if (network->origin_count)
        return name_nodes(layers, network);
    for (int32_t i = 0; i < network->layer_count; i++)
        TRY(add_atom(layers, network->layers[i].name, "", network->layers[i].kind->name));
    return STATUS_OK;
}

enum status layers_side(struct layers *layers, const char *name, struct layer_side **out)
{
    if (layers->side_count == LAYER_SIDES)
        FAIL(STATUS_INPUT, "found more than %d frameworks, expected fewer", LAYER_SIDES);
    *out = &layers->sides[layers->side_count++];
    **out = (struct layer_side){
        .step_ns = (double)NAN, .interval_ns = (double)NAN, .whole_ns = (double)NAN};
    NEED((*out)->name = arena_text(&layers->arena, name));
    return STATUS_OK;
}

enum status layers_row(struct layers *layers, struct layer_side *side, const struct layer_row *row)
{
    struct arena *arena = &layers->arena;
    NEED(side->rows =
             grow(arena, side->rows, side->row_count, &side->row_room, sizeof *side->rows));
    struct layer_row *kept = &side->rows[side->row_count++];
    int32_t *covers = arena_array(arena, (size_t)row->cover_count + 1, sizeof *covers);
    NEED(covers);
    if (row->cover_count)
        memcpy(covers, row->covers, (size_t)row->cover_count * sizeof *covers);
    *kept = *row;
    kept->covers = covers;
    NEED(kept->name = arena_text(arena, row->name));
    NEED(kept->op = arena_text(arena, row->op));
    if (row->note)
        NEED(kept->note = arena_text(arena, row->note));
    side->watched_ns += row->ns;
    return STATUS_OK;
}

void layers_free(struct layers *layers)
{
    arena_free(&layers->arena);
    *layers = (struct layers){0};
}

double layers_outside(const struct layer_side *side)
{
    return side->absent ? (double)NAN : side->step_ns - side->watched_ns;
}

/* The difference between two sides, of which either may have nothing there. */
static double difference(double base_ns, double side_ns)
{
    return (isnan(side_ns) ? 0 : side_ns) - (isnan(base_ns) ? 0 : base_ns);
}

static int order_of_gaps(const void *a, const void *b)
{
    const struct layer_gap *x = a, *y = b;
    return (fabs(x->ns) < fabs(y->ns)) - (fabs(x->ns) > fabs(y->ns));
}

enum status layers_gaps(struct layers *layers, int32_t base, int32_t side, struct layer_gap **out)
{
    const struct layer_side *a = &layers->sides[base], *b = &layers->sides[side];
    const size_t count = (size_t)layers->group_count + 1;
    struct layer_gap *gaps = arena_array(&layers->arena, count, sizeof *gaps);
    NEED(gaps);
    for (int32_t g = 0; g < layers->group_count; g++)
        gaps[g] = (struct layer_gap){
            &layers->groups[g], difference(layers->groups[g].ns[base], layers->groups[g].ns[side])};
    gaps[count - 1].ns = layers_outside(b) - layers_outside(a);
    qsort(gaps, count, sizeof *gaps, order_of_gaps);
    *out = gaps;
    return STATUS_OK;
}
