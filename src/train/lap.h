/* lap.h: one pass over a list of rows: an epoch, a test, a prediction.
 *
 * Whole batches are one program (or a few in turn, as the recipe has it). The remaining rows are a
 * second one with a smaller batch, on the same instance. A lap is run in as few calls as its user
 * likes: all at once, or some steps at a time to look at a clock in between.
 *
 * Workers that share a lap take the same batches in the same order: each its part of every one.
 * Where the network itself is split (lap_split.h) each takes whole batches, or its copy's part of
 * them. Scores are those of all of them. */
#ifndef PRONY_TRAIN_LAP_H
#define PRONY_TRAIN_LAP_H

#include "core/comm/turns.h"
#include "data/dataset.h"
#include "nn/network.h"
#include "train/engine.h"
#include "train/recipe.h"
#include "train/workers/pipeline.h"
#include "train/workers/sharing.h"

enum { LAP_LEGS = 2 };

/* What a lap reads and writes; rows of all blocks are rows of the data set. */
struct lap_data {
    struct dataset *dataset; /* features and labels */
    float *targets;          /* [rows, …], for losses over numbers; or NULL */
    float *outputs;          /* [rows, width] for y, or NULL */
    uint64_t version;        /* of what it reads (binding.version); 0: it may change */
};

struct lap {
    const struct engine *engine;
    enum answering
        answering;          /* how its plans are prepared: steps, or calls where it has one step */
    struct sharing sharing; /* by which workers, and how */
    bool at_times; /* it is prepared for each run alone, and makes sure of its memory then */
    struct engine split_engine; /* where the network is split: this worker's part of the parameters,
                                   on the same device */
    struct comm *copy, *across; /* … to the workers of its copy of the network, and to those with
                                   the same part of other copies */
    struct params *params;      /* of its programs */
    bool alone; /* where the network is split: the values of `params` may be dropped until they are
                   gathered */
    struct comm_queue *queue; /* sums gradients beside computing; NULL: nothing does */
    struct turns turns;       /* at an asynchronous server: whose turn it is */
    struct staleness stale;   /* asynchronous: of all updates since the lap was prepared */
    int64_t apart, of;        /* samples since parameters were averaged: this worker's, and all */
    int64_t rows, steps;      /* of a whole lap, by all workers */
    int64_t step;             /* steps done of the current lap */
    struct lap_data data;     /* of the current lap, and … */
    const uint32_t *order;    /* … its rows; of several workers, this one's */
    uint32_t *own_order;      /* … which are here; NULL: it is run alone */
    int64_t own_rows;         /* of the order */
    int64_t fetched;          /* the steps before this one have their rows there … */
    int64_t fetches;          /* … unless the data set has fetched others since */
    struct leg {
        struct recipe_step step; /* of no programs: there is no such leg */
        struct plan *plans[RECIPE_TURNS];
        int64_t batch;    /* samples of a step here, and … */
        int64_t counted;  /* … so many that count: a worker that gets none computes one in vain */
        int64_t first;    /* the place of the first of them in the batch of all workers … */
        int64_t all;      /* … and the samples of that */
        int64_t from, to; /* its steps of the lap */
        int32_t micros;   /* micro-batches of a step: 1, unless the lap is a pipeline's */
        struct pipeline split; /* where the network is split: what this worker does of it */
    } legs[LAP_LEGS];          /* whole batches; the remainder */
    float *loss,
        *right;   /* [steps × micro-batches], one allocation, `loss`: what each left behind */
    double *sums; /* [steps, 2]: loss and right answers, summed over the samples */
};

/* The program of whole batches, or of a micro-batch of them; where there are several in turn, the
 * one that takes the data. Of a split network it is the whole. */
static inline const struct program *lap_program(const struct lap *lap)
{
    return lap->legs[0].step.programs[0];
}

/* The mean loss and the share of right answers over some samples. */
struct score {
    double loss_sum, right_sum; /* of single samples */
    int64_t samples;
    bool has_right; /* it is known what a right answer is */
};

static inline double score_loss(const struct score *score)
{
    return score->loss_sum / (double)score->samples;
}

static inline double score_accuracy(const struct score *score)
{
    return score->right_sum / (double)score->samples;
}

/* Compiles and fuses the programs for laps over `rows` rows; options->batch, of all workers, is
 * capped to them. What the memory cannot hold is refused. */
enum status lap_compile(struct lap *lap, const struct engine *engine, const struct network *network,
                        struct params *params, const struct compile_options *options, int64_t rows);
/* Makes the plans. Of a split network this worker's part takes its values out of `params`. */
enum status lap_prepare(struct lap *lap, const struct engine *engine, const struct params *params);
/* Do sums of gradients between these ranks go on while the unit computes? Between processes of one
 * machine they would take the CPU's own time; a GPU has that to spare. */
bool lap_sums_beside(const struct lap *lap, const struct comm *comm);
/* Begins a lap over the `rows` rows of the order (NULL: as they come), with `step` of its steps
 * already done. The order and the data must live as long as the lap. */
enum status lap_begin(struct lap *lap, const struct lap_data *data, const uint32_t *order,
                      int64_t step);
/* Runs up to `steps` more (where parameters are averaged, on to the next average), fetching the
 * rows of streamed data as they are due. Waits, and adds the results to *score (which may be NULL).
 */
enum status lap_run(struct lap *lap, int64_t steps, struct score *score);
void lap_release(struct lap *lap); /* gives the plans back; it can be prepared again */
void lap_close(struct lap *lap);   /* before its engine; zeroed is fine */

#endif
