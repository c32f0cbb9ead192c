/* model.h: a network at work: its text, how it learns, its parameters on a device, the names of its
 * classes and the scale of its inputs. With how its training goes, all of it but the device is
 * saved in one file (nn/formats/safetensors.h). */
#ifndef PRONY_TRAIN_MODEL_H
#define PRONY_TRAIN_MODEL_H

#include "core/params.h"
#include "data/columns.h"
#include "data/split.h"
#include "nn/formats/safetensors.h"
#include "nn/network.h"
#include "train/course.h"

struct model {
    struct arena arena;
    const struct network *network; /* not owned */
    enum loss_kind loss;           /* LOSS_AUTO: what the network's text says */
    const char *optimiser;         /* "": what the network's text says; likewise … */
    const char *schedule;          /* … the schedule and … */
    const char *recipe;            /* … the recipe */
    struct params params;
    struct engine engine; /* where the parameters are, once it is attached */
    int32_t class_count;  /* 0: it gives numbers */
    const char **classes;
    struct scaling scaling;
    const struct columns *columns; /* of the table it learnt from; NULL: it was none */
    struct scaling targets; /* of the numbers it learns; of no columns: they are as they are */
    float *target_means;    /* [targets.columns], of the rows it learns from; NULL: not known */
    int32_t weight_bits;    /* it gets used to weights of so many bits; 0: it does not */
    int32_t used_to_bits;   /* it was trained so; 0: it was not, or that is not known */
    const char *data;       /* the built-in set that it learnt from; NULL: another, or not known */
    double accuracy;        /* in 8 bits: the share of right answers in fp32 on it; 0: not known */
    bool part;              /* it has the weights of one of several networks that learnt together */
    struct scaling returns; /* … of the data, where the part gives such and takes none */
    /* While the weights are those that came with the network, its settled form predicts. */
    bool changed; /* they are others: it was trained, or has loaded some */
    struct params settled;
    struct engine settled_engine; /* the same device */
};

/* What of a model predicts. */
struct model_form {
    const struct network *network;
    struct params *params;
    struct engine *engine;
};

/* Zero, or NULL, is the network's own choice. */
struct model_options {
    enum loss_kind loss;
    const char *optimiser, *schedule, *recipe; /* copied */
    double rate;
    uint64_t seed;
    int32_t class_count; /* > 0: it learns classes, whose names are 0, 1, 2 … */
    int32_t weight_bits; /* as struct model has it */
    bool recompute;      /* its trainings keep fewer activations, and compute the others again */
};

/* Opens the device, declares what predicting needs and fills it by the seed. A zeroed *model is
 * filled; the network outlives it. */
enum status model_open(struct model *model, const struct network *network,
                       const struct backend *backend, const struct device_options *device,
                       const struct model_options *options);
void model_close(struct model *model); /* after its plans were released; fine after a failed open */

/* Declares what programs of that use, in all stages, need and gives it its starting values, so that
 * one of any batch size finds it there. The device is left behind: the model's plans are released
 * before. */
enum status model_declare(struct model *model, enum program_use use);

/* The form that predicts now; it changes when the model is trained or loads weights, for which its
 * plans are released. */
struct model_form model_form(struct model *model);
/* The weights are others from now on. */
void model_change(struct model *model);

/* Declares all that a file of weights holds: what predicting needs, and what a recipe learns beside
 * it. */
enum status model_declare_learnt(struct model *model);

enum status model_keep_classes(struct model *model, const char *const *classes, int32_t count);

/* How the model compiles its network for that use. */
struct compile_options model_compile_options(const struct model *model, enum program_use use,
                                             int32_t batch);

enum status model_traits(const struct model *model, struct recipe_traits *out);
/* The scale of what the model gives in the place of data or of the numbers it learnt; NULL: it
 * gives something else, or they have none. */
const struct scaling *model_returns(const struct model *model, const struct recipe_traits *traits);

/* Is the data what the network takes? */
enum status model_check_data(const struct model *model, const struct dataset *dataset);
/* Is it what the program, which trains, learns? Losses over numbers have classes as levels. */
enum status model_check_targets(const struct model *model, const struct program *program,
                                const struct dataset *dataset);

/* model_table.c. Keeps how the data set's columns became features. */
enum status model_keep_columns(struct model *model, const struct dataset *dataset);
/* The scale on which the numbers of a table are learnt, by these rows; of other data there is none.
 */
enum status model_scale_targets(struct model *model, const struct dataset *dataset,
                                const uint32_t *rows, int64_t count);
/* Are there levels: are classes learnt as numbers, or numbers on another scale? */
bool model_has_levels(const struct model *model, const struct dataset *dataset);
/* The numbers that losses over numbers learn: class c of C is c ÷ (C − 1), numbers are scaled.
 * Grows *levels, which is the caller's, to one for each label or number; leaves it alone where they
 * are learnt as they are, or there are none. */
enum status model_make_levels(const struct model *model, const struct dataset *dataset,
                              float **levels);

/* A checkpoint: the parameters, all of the above and the course; or with NULL for a course the
 * parameters, classes and scaling alone: a finished network. */
enum status model_save(struct model *model, const struct course *course, const char *path);

/* Writes what it predicts from data as it comes, to an ONNX file. */
enum status model_export(struct model *model, const char *path);

/* Takes weights from a file. One that prony wrote also says which loss, classes and scaling belong
 * to them. Of a file of several networks that learnt together, one that was opened alone takes its
 * own. The model's plans are released before, its device is left behind. */
enum status model_load(struct model *model, const char *path);

/* A training that went astray leaves weights that are no numbers, or infinite: what they say would
 * be none. (Those of an ONNX file may be masks, of minus infinity.) The path is for the message. */
enum status model_check_numbers(const struct model *model, const char *path);

/* The training that is in the file, which is of the model's network; the model takes its loss,
 * optimiser and schedule, and the control block its seed and rate. */
enum status model_read_course(struct model *model, const struct safetensors *file,
                              struct course *course);

#endif
