/* layer_groups.c: layers that some side computes in one row become one group, so that every time of
 * every side has its place in one of them. See layers.h. */
#include "bench/layers/layers.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

enum { NAMES_MOST = 3 }; /* layers that a group is named by */

/* Which layers belong together, in each part of a step: a forest whose roots are their first. */
struct forest {
    int32_t *parent[PART_COUNT];
    int32_t *group[PART_COUNT]; /* of a root; or one of these: */
};

static int32_t root_of(const int32_t *parent, int32_t atom)
{
    while (parent[atom] != atom)
        atom = parent[atom];
    return atom;
}

enum { GROUP_NONE = -2, GROUP_NEEDED = -1 }; /* no row covers its layers; some does */

/* The earlier one leads. */
static void join(int32_t *parent, int32_t a, int32_t b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    parent[a > b ? a : b] = a > b ? b : a;
}

static enum status plant(struct layers *layers, struct forest *forest)
{
    for (int part = 0; part < PART_COUNT; part++) {
        const size_t count = (size_t)layers->atom_count + 1;
        NEED(forest->parent[part] = arena_array(&layers->arena, count, sizeof(int32_t)));
        NEED(forest->group[part] = arena_array(&layers->arena, count, sizeof(int32_t)));
        for (int32_t i = 0; i < layers->atom_count; i++) {
            forest->parent[part][i] = i;
            forest->group[part][i] = GROUP_NONE;
        }
    }
    for (int32_t s = 0; s < layers->side_count; s++)
        for (int32_t r = 0; r < layers->sides[s].row_count; r++) {
            const struct layer_row *row = &layers->sides[s].rows[r];
            for (int32_t c = 1; c < row->cover_count; c++)
                join(forest->parent[row->part], row->covers[0], row->covers[c]);
        }
    for (int32_t s = 0; s < layers->side_count; s++)
        for (int32_t r = 0; r < layers->sides[s].row_count; r++) {
            const struct layer_row *row = &layers->sides[s].rows[r];
            if (row->cover_count)
                forest->group[row->part][root_of(forest->parent[row->part], row->covers[0])] =
                    GROUP_NEEDED;
        }
    return STATUS_OK;
}

/* "conv1 + relu1"; "a + b + c + 4 more". */
static enum status name_group(struct layers *layers, const int32_t *parent, int32_t root,
                              struct layer_group *group)
{
    struct text name = {0};
    for (int32_t i = root; i < layers->atom_count; i++) {
        const struct layer_atom *atom = &layers->atoms[i];
        if (root_of(parent, i) != root)
            continue;
        if (group->atoms < NAMES_MOST)
            text_printf(&name, "%s%s", group->atoms ? " + " : "", atom->name);
        group->atoms++;
    }
    if (group->atoms > NAMES_MOST)
        text_printf(&name, " + %d more", group->atoms - NAMES_MOST);
    group->name = arena_text(&layers->arena, text_of(&name));
    text_free(&name);
    NEED(group->name);
    return STATUS_OK;
}

static struct layer_group *new_group(struct layers *layers, enum part part)
{
    struct layer_group *group = &layers->groups[layers->group_count++];
    *group = (struct layer_group){.part = part};
    for (int s = 0; s < LAYER_SIDES; s++) {
        group->ns[s] = (double)NAN;
        group->ops[s] = group->notes[s] = "";
    }
    return group;
}

static enum status group_atoms(struct layers *layers, struct forest *forest)
{
    for (int part = 0; part < PART_COUNT; part++)
        for (int32_t i = 0; i < layers->atom_count; i++) {
            const int32_t *parent = forest->parent[part];
            if (parent[i] != i || forest->group[part][i] == GROUP_NONE)
                continue;
            forest->group[part][i] = layers->group_count;
            TRY(name_group(layers, parent, i, new_group(layers, (enum part)part)));
        }
    return STATUS_OK;
}

/* The group of rows without a layer that are called so. */
static enum status outside_group(struct layers *layers, const struct layer_row *row,
                                 struct layer_group **out)
{
    for (int32_t g = 0; g < layers->group_count; g++) {
        *out = &layers->groups[g];
        if ((*out)->outside && (*out)->part == row->part && !strcmp((*out)->name, row->name))
            return STATUS_OK;
    }
    *out = new_group(layers, row->part);
    (*out)->outside = true;
    (*out)->name = row->name;
    return STATUS_OK;
}

/* Is the word in a list "a, b"? */
static bool lists(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at++)
        if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

static enum status add_word(struct layers *layers, const char **list, const char *word)
{
    if (!word || !*word || lists(*list, word))
        return STATUS_OK;
    NEED(*list = **list ? arena_format(&layers->arena, "%s, %s", *list, word) : word);
    return STATUS_OK;
}

static enum status add_time(struct layers *layers, struct layer_group *group, int32_t side,
                            const struct layer_row *row)
{
    group->ns[side] = (isnan(group->ns[side]) ? 0 : group->ns[side]) + row->ns;
    TRY(add_word(layers, &group->ops[side], row->op));
    return add_word(layers, &group->notes[side], row->note);
}

enum status layers_group(struct layers *layers)
{
    struct forest forest;
    size_t rows = 0;
    for (int32_t s = 0; s < layers->side_count; s++)
        rows += (size_t)layers->sides[s].row_count;
    NEED(layers->groups = arena_array(&layers->arena, rows + 1, sizeof *layers->groups));
    layers->group_count = 0;
    TRY(plant(layers, &forest));
    TRY(group_atoms(layers, &forest));
    for (int32_t s = 0; s < layers->side_count; s++)
        for (int32_t r = 0; r < layers->sides[s].row_count; r++) {
            const struct layer_row *row = &layers->sides[s].rows[r];
            struct layer_group *group;
            if (row->cover_count)
                group = &layers->groups[forest.group[row->part][root_of(forest.parent[row->part],
                                                                        row->covers[0])]];
            else
                TRY(outside_group(layers, row, &group));
            TRY(add_time(layers, group, s, row));
        }
    return STATUS_OK;
}
