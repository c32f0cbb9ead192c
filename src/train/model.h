/* model.h: what a trained network is beside its text: parameters, names of its classes, the scale
 * of its inputs, and how its training goes. One file holds it all (nn/formats/safetensors.h). */
#ifndef PRONY_TRAIN_MODEL_H
#define PRONY_TRAIN_MODEL_H

#include "core/params.h"
#include "data/split.h"
#include "nn/formats/safetensors.h"
#include "nn/network.h"
#include "train/lap.h"

enum { MODEL_FLAG = 500 }; /* longer than what optimiser_parse takes, so that it can refuse */

/* A training: how it was set up, which a resumed run keeps, and how far it is. */
struct course {
    char optimiser[MODEL_FLAG]; /* "": the network's */
    char schedule[MODEL_FLAG];  /* "": the network's */
    double rate;                /* 0: the optimiser's */
    int32_t batch;
    int64_t epochs;
    uint64_t seed;
    double test_share, validate_share;
    double until_accuracy, until_loss; /* of the held-out rows, when it may stop; 0: not said */
    int64_t patience; /* epochs without a better held-out loss, then it stops; 0: it does not */

    uint64_t data;      /* dataset_hash of what it learns from */
    int64_t epoch;      /* whole epochs done */
    int64_t step;       /* steps done of the next one … */
    struct score score; /* … and what they gave */
    int64_t best_epoch; /* after which the held-out loss was lowest; 0: none was held out */
    double best_loss;   /* … and what it was */
    bool stopped;       /* until_… was reached, or patience is at its end */
};

struct model {
    struct arena arena;
    const struct network *network; /* not owned */
    enum loss_kind loss;           /* LOSS_AUTO: what the network's text says */
    struct params params;
    int32_t class_count; /* 0: it gives numbers */
    const char **classes;
    struct scaling scaling;
};

void model_init(struct model *model, const struct network *network);
void model_free(struct model *model);

enum status model_keep_classes(struct model *model, const char *const *classes, int32_t count);

/* The loss and the classes, for network_compile; the rest is the caller's. */
struct compile_options model_compile_options(const struct model *model, enum program_use use,
                                             int32_t batch);

/* Does the program take what a data set holds: real numbers, and at most one class a row? */
enum status model_check_program(const struct network *network, const struct program *program);

/* Is the data what the network takes? */
enum status model_check_data(const struct model *model, const struct dataset *dataset);

/* A checkpoint: the parameters, all of the above and the course. */
enum status model_save(const struct model *model, const struct course *course, const char *path);

/* The parameters, classes and scaling alone: a finished network. */
enum status model_save_weights(const struct model *model, const char *path);

/* Was the file written by prony, so that model_read can read it? */
bool model_is_described(const struct safetensors *file);

/* Takes classes and scaling from a file of this network; parameters are safetensors_load's. */
enum status model_read(struct model *model, const struct safetensors *file);
enum status model_read_course(const struct safetensors *file, struct course *course);

#endif
