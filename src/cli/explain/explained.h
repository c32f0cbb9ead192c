/* explained.h: what `prony explain` shows: a program and, when one was asked, what a backend would
 * run for it; of a recipe one program after the other. cmd_explain.c fills it; explain_text.c and
 * explain_json.c write it. */
#ifndef PRONY_CLI_EXPLAINED_H
#define PRONY_CLI_EXPLAINED_H

#include "base/json.h"
#include "core/backend.h"
#include "estimate/calibrate.h"
#include "record/point.h"
#include "train/recipe.h"

/* What a step of a program takes beside the parameters, and computes. */
struct need {
    uint64_t bytes, flop;
};

struct explained {
    struct arena arena;
    struct network *network;
    struct params params; /* bare */
    struct recipe_step step;
    const struct program *program; /* the one that is shown: of the step, or … */
    struct program *made;          /* … made of it by passes; or NULL */
    const char *phase;
    struct compile_options options;
    enum answering answering;      /* how the backend is asked */
    const struct backend *backend; /* or NULL: nobody was asked, and what is below is empty */
    struct device *device;
    char unit_name[CEILING_UNIT];
    char absent[300]; /* why its unit is not here, and this is on paper; "": it is */
    struct instance *instance;
    struct plan *plan; /* dry */
    struct explanation explanation;
    double flop_per_s, read_per_s; /* this machine's ceilings; 0: they were not measured */
    bool recompute;                /* trainings keep fewer activations … */
    struct need without;           /* … and what this one would need if it kept all */
};

/* Sums over the ops of one part. */
struct part_total {
    int32_t ops, launches;
    uint64_t flop, bytes;
};

struct part_total explained_total(const struct explained *explained, enum part part);

/* FLOP per byte moved. */
static inline double explained_intensity(uint64_t flop, uint64_t bytes)
{
    return bytes ? (double)flop / (double)bytes : 0;
}

/* What runs for an op, or NULL when nothing does or nobody was asked. */
const struct kernel_use *explained_kernel(const struct explained *explained, int32_t op);

/* Is it one kernel's name that all ops have? */
bool explained_together(const struct explained *explained);

/* Bytes of one role: as the backend says, or as the program has it. */
uint64_t explained_bytes(const struct explained *explained, enum role role);

struct need explained_need(const struct explained *explained);
/* The same rank's program with fewer activations kept, in its place, where that is asked for. */
enum status explained_smaller(const struct explained *explained, struct program **program);

void explained_text(const struct explained *explained, struct text *out);
/* One line of JSON: begin, each program of the step, end. */
void explained_begin_json(const struct explained *explained, struct json_writer *json,
                          struct text *out);
void explained_program_json(const struct explained *explained, struct json_writer *json);
void explained_end_json(struct json_writer *json, struct text *out);

/* The line of kind "network" for what a point runs, with its newline. */
enum status explained_line(const struct point *point, struct text *out);

#endif
