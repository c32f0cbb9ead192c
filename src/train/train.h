/* train.h: training a network on a data set: the loop over plans.
 *
 * A trainer runs epochs over the training rows, in a new order each, by as few calls of the backend
 * as its user allows. Loss and right answers of every step are read from a ring afterwards. It can
 * be saved between any two steps, and a trainer resumed from that file goes on bit for bit as the
 * saved one would have.
 *
 * With rows held out, each epoch ends with a look at them. The weights after the best epoch are
 * kept in the state "best.…", so that they are saved too, and the training may stop early.
 *
 * Several workers may train together (sharing.h). In data parallelism each takes its part of every
 * batch, and gradients are averaged. So all have the same weights after every step: one worker's,
 * but for rounding. Where the network is split, each has a part of the weights, and trainer_gather
 * brings them together. Whatever is called of one of them is called of all: open, run, gather,
 * test. */
#ifndef PRONY_TRAIN_TRAIN_H
#define PRONY_TRAIN_TRAIN_H

#include "train/lap.h"
#include "train/model.h"

struct trainer_options {
    struct course course;   /* how to train; its progress is ignored */
    const char *resume;     /* a file of model_save: its training is gone on with, but for epochs
                               when course.epochs is not 0; or NULL */
    struct sharing sharing; /* by which workers, each of which opens such a trainer, and how */
};

struct trainer {
    struct model *model;     /* not owned, and … */
    struct dataset *dataset; /* … neither is this … */
    struct sharing sharing;  /* … nor its comm */
    struct course course;    /* with its progress; course.score is of the epoch's steps so far */
    struct score epoch;      /* of the last whole epoch; samples is 0 before */
    struct score held_out;   /* after it */
    struct recipe_traits traits;
    int32_t stage; /* of the recipe, from 0, that `train` is for */
    struct split split;
    uint32_t *order;  /* of the training rows in this epoch */
    float *levels;    /* [rows, label columns]: model_make_levels; or NULL */
    uint64_t version; /* of the data set as it is now: it stays so (binding.version) */
    struct lap train, validate, test;
    bool untested; /* no unit holds the whole network for the test */
};

/* Takes the classes of the data and, unless the model has one, its scale; scales the data set in
 * place. The model's plans were released before; model and data set outlive the trainer. */
enum status trainer_open(struct model *model, struct dataset *dataset,
                         const struct trainer_options *options, struct trainer **out);
void trainer_close(struct trainer *trainer); /* NULL is fine */

/* Runs up to `steps` steps, by an asynchronous server at least 32; not beyond the end of the epoch.
 */
enum status trainer_run(struct trainer *trainer, int64_t steps);
/* Brings what all workers have learnt into the model of worker 0, as it is to be saved; for all of
 * them also what predicts into everyone's. Only a split network needs it. */
enum status trainer_gather(struct trainer *trainer, bool for_all);
/* Have all epochs been run, or what is held out said that it is enough? */
bool trainer_done(const struct trainer *trainer);
/* Warns (log.h) where updates were left out for numbers that fp16 does not have. */
enum status trainer_tell_left_out(const struct trainer *trainer);
/* Goes back to the best weights, when rows were held out. */
enum status trainer_take_best(struct trainer *trainer);
/* Over the rows kept for the test; score->samples is 0 when there are none. */
enum status trainer_test(struct trainer *trainer, struct score *score);

#endif
