/* Layers of several frameworks: groups, times, and gaps that sum to the whole. */
#include "check.h"

#include "bench/layers/layers.h"

#include <math.h>
#include <string.h>

static bool add(struct layers *layers, struct layer_side *side, const char *name, enum part part,
                double ns, const char *const *covers)
{
    int32_t atoms[4], count = 0;
    for (; covers && covers[count]; count++)
        if (!CHECK_OK(layers_atom(layers, covers[count], &atoms[count])))
            return false;
    const struct layer_row row = {
        .name = name, .op = name, .part = part, .ns = ns, .covers = atoms, .cover_count = count};
    return CHECK_OK(layers_row(layers, side, &row));
}

#define COVERS(...)                                                                                \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* One fuses a with b, the other b with c: all three are one group. d is in one of them only. */
static bool open_two(struct layers *layers)
{
    struct layer_side *first, *second;
    if (!CHECK_OK(layers_side(layers, "first", &first)))
        return false;
    first->step_ns = 100;
    if (!add(layers, first, "ab", PART_FORWARD, 30, COVERS("a", "b")) ||
        !add(layers, first, "c", PART_FORWARD, 20, COVERS("c")) ||
        !add(layers, first, "loss", PART_FORWARD, 5, NULL) ||
        !CHECK_OK(layers_side(layers, "second", &second)))
        return false;
    second->step_ns = 160;
    return add(layers, second, "a", PART_FORWARD, 40, COVERS("a")) &&
           add(layers, second, "bc", PART_FORWARD, 50, COVERS("b", "c")) &&
           add(layers, second, "d", PART_FORWARD, 7, COVERS("d")) &&
           add(layers, second, "a back", PART_BACKWARD, 8, COVERS("a")) &&
           add(layers, second, "loss", PART_FORWARD, 2, NULL) && CHECK_OK(layers_group(layers));
}

TEST(groups_what_anybody_fuses)
{
    struct layers layers = {0};
    if (!open_two(&layers))
        return;
    CHECK(layers.group_count == 4);
    CHECK(strcmp(layers.groups[0].name, "a + b + c") == 0);
    CHECK(layers.groups[0].atoms == 3 && layers.groups[0].part == PART_FORWARD);
    CHECK(layers.groups[0].ns[0] == 50 && layers.groups[0].ns[1] == 90);
    CHECK(strcmp(layers.groups[0].ops[1], "a, bc") == 0);
    CHECK(strcmp(layers.groups[1].name, "d") == 0 && isnan(layers.groups[1].ns[0]));
    CHECK(strcmp(layers.groups[2].name, "a") == 0 && layers.groups[2].part == PART_BACKWARD);
    CHECK(layers.groups[3].outside && layers.groups[3].ns[0] == 5 && layers.groups[3].ns[1] == 2);
    layers_free(&layers);
}

TEST(gaps_sum_to_the_whole)
{
    struct layers layers = {0};
    struct layer_gap *gaps;
    double sum = 0;
    if (!open_two(&layers) || !CHECK_OK(layers_gaps(&layers, 0, 1, &gaps)))
        return;
    for (int32_t g = 0; g <= layers.group_count; g++) {
        sum += gaps[g].ns;
        CHECK(g == 0 || fabs(gaps[g].ns) <= fabs(gaps[g - 1].ns));
    }
    CHECK(sum == 60 && gaps[0].ns == 40 && gaps[0].group == &layers.groups[0]);
    CHECK(layers_outside(&layers.sides[0]) == 45 && layers_outside(&layers.sides[1]) == 53);
    layers_free(&layers);
}

TEST(names_long_groups_shortly)
{
    struct layers layers = {0};
    struct layer_side *side;
    if (!CHECK_OK(layers_side(&layers, "first", &side)) ||
        !add(&layers, side, "x", PART_FORWARD, 1, COVERS("a", "b", "c")) ||
        !add(&layers, side, "y", PART_FORWARD, 1, COVERS("c", "d")) ||
        !CHECK_OK(layers_group(&layers)))
        return;
    CHECK(layers.group_count == 1 && strcmp(layers.groups[0].name, "a + b + c + 1 more") == 0);
    layers_free(&layers);
}

TEST(takes_so_many_sides)
{
    struct layers layers = {0};
    struct layer_side *side;
    for (int s = 0; s < LAYER_SIDES; s++)
        CHECK_OK(layers_side(&layers, "one", &side));
    CHECK(layers_side(&layers, "more", &side) == STATUS_INPUT);
    layers_free(&layers);
}

CHECK_MAIN
