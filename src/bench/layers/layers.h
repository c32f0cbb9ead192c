/* layers.h: what the layers of a network take in several frameworks, side by side.
 *
 * Each framework (a side) tells what it timed as rows: a kernel, a node, a module. A row covers the
 * layers that it computes, in the network's own names: of an ONNX file its nodes, each known by the
 * value that it gives. Frameworks fuse different layers, so layers that any side has in one row
 * make one group. A row that covers none (a loss, a conversion) is a group by its name.
 *
 * The time of a step is that of the unwatched run. What the rows leave of it is time outside of
 * layers; where watched rows take longer than the step, it is negative. So the differences of the
 * groups and of the rest sum to the difference of the steps. */
#ifndef PRONY_BENCH_LAYERS_LAYERS_H
#define PRONY_BENCH_LAYERS_LAYERS_H

#include "base/arena.h"
#include "core/program.h"
#include "nn/network.h"

#include <stddef.h>

enum { LAYER_SIDES = 8 };

/* What one framework timed as one piece. */
struct layer_row {
    const char *name, *op; /* "relu1_nchwc", "Conv" */
    const char *note;      /* "converts", "fell back to CPU"; or NULL */
    enum part part;        /* forward, backward or update */
    double ns;             /* of a step */
    const int32_t *covers; /* atoms */
    int32_t cover_count;
};

struct layer_side {
    const char *name; /* "prony", "onnxruntime" */
    double step_ns;   /* unwatched: the median, and half its interval */
    double interval_ns;
    const char *how;    /* how it was watched; or NULL */
    const char *absent; /* why it tells nothing of its layers; or NULL */
    int32_t steps;      /* watched */
    double watched_ns;  /* all rows */
    double whole_ns;    /* a watched step; NaN: not known */
    struct layer_row *rows;
    int32_t row_count, row_room;
};

/* A layer, or a node of an ONNX file. */
struct layer_atom {
    const char *key, *name, *op;
};

/* Layers that some side computes in one row, in one part of the step. */
struct layer_group {
    const char *name; /* "conv1 + relu1" */
    enum part part;
    bool outside;           /* it covers no layer: conversions, the loss */
    int32_t atoms;          /* layers in it */
    double ns[LAYER_SIDES]; /* NaN: the side has none of it */
    const char *ops[LAYER_SIDES], *notes[LAYER_SIDES]; /* of its rows, or "" */
};

/* A zeroed struct is empty. */
struct layers {
    struct arena arena;
    struct layer_atom *atoms;
    int32_t atom_count, atom_room;
    struct layer_side sides[LAYER_SIDES];
    int32_t side_count;
    struct layer_group *groups; /* in the order of the network, those outside last */
    int32_t group_count;
};

/* The layers of a network, of an ONNX file its nodes. NULL: nobody knows it but the peers. */
enum status layers_name(struct layers *layers, const struct network *network);
/* The atom of that key, which is made where there is none. */
enum status layers_atom(struct layers *layers, const char *key, int32_t *out);
/* Another side; its name is copied. STATUS_INPUT: there are LAYER_SIDES. */
enum status layers_side(struct layers *layers, const char *name, struct layer_side **out);
/* A row of it; everything is copied. */
enum status layers_row(struct layers *layers, struct layer_side *side, const struct layer_row *row);
/* The groups, once all sides are there. */
enum status layers_group(struct layers *layers);
void layers_free(struct layers *layers);

/* What a step takes beside all rows; negative: watched, these take longer. NaN: it told nothing. */
double layers_outside(const struct layer_side *side);

/* A part of the difference between two sides: of a group, or of the time outside (group NULL). */
struct layer_gap {
    const struct layer_group *group;
    double ns;
};
/* The largest first, whether the side loses or gains there: group_count + 1 of them, which sum to
 * side's step − base's. In the arena. */
enum status layers_gaps(struct layers *layers, int32_t base, int32_t side, struct layer_gap **out);

#endif
