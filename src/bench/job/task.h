/* task.h: what all contenders of one comparison compute: one network, phase and batch, from the
 * same initial parameters, over the same synthetic data; and what should come of it.
 *
 * Of a network with a recipe an iteration is a step as it is trained: both programs of a gan, and
 * of a training in stages a step of each.
 *
 * The data is eight different batches, visited in a shuffled order. What is compared is an outcome:
 * the outputs (inference), or the loss and how far parameters moved (training), after a few steps.
 * reference.h finds out what should come of it, outcome.h whether something else is as right. */
#ifndef PRONY_BENCH_JOB_TASK_H
#define PRONY_BENCH_JOB_TASK_H

#include "bench/check/outcome.h"
#include "estimate/floor.h"
#include "train/recipe.h"

#include <stdbool.h>

struct quantisation;

enum { TASK_BATCHES = 8, TASK_DRAWS = 6, TASK_PROGRAM = 17 };
enum { TASK_PLACES = 512, TASK_OUTPUTS = 1 << 16 };  /* of a parameter, of outputs: looked at */
enum { TASK_BATCH_MOST = INT32_MAX / TASK_BATCHES }; /* rows are counted in 32 bits */

/* A place among the parameters. */
struct task_place {
    int32_t entry;
    int64_t element;
};

struct task_options {
    const char *model;
    enum phase phase;
    int32_t batch;
    const char *optimiser; /* "adam", "adam:rate=0.1"; NULL, "" or its bare name: the network's */
    const char *precision; /* what is computed in, as the axis has it; NULL or "": fp32 */
    uint64_t seed;         /* of weights and data; 0: the usual one */
};

struct task {
    struct arena arena; /* owns the arrays below */
    struct network *network;
    enum phase phase;
    int32_t batch;
    uint64_t seed;
    struct optimiser optimiser;
    const char *optimiser_text;    /* as it was asked for; NULL: the network's own */
    bool is_copy;                  /* network, order and places are another's */
    struct params params;          /* initial; the control block has the rate */
    struct quantisation *quantise; /* what its reals are to become, once they are there; NULL:
                                      they stay, or the network came in 8 bits */
    struct recipe_step step;       /* the programs of an iteration, run in turn: mostly one */
    struct work work;              /* what the mathematics of all of them needs */

    struct params data; /* entries "x" and, for training, "target" or "label": [rows, …] */
    int64_t rows;       /* TASK_BATCHES × batch */
    uint32_t *order;    /* a shuffle of the rows */

    int32_t check_steps;
    int64_t value_count; /* of a stage of an outcome */
    struct task_place *places;
    double rounding; /* how much of a number the precision rounds away */

    bool has_reference; /* the outcomes below are there */
    struct outcome reference;
    struct outcome draws[TASK_DRAWS]; /* what rounding makes of it (reference.h) */
    int32_t draw_count;
    double tolerance; /* what the last check allowed */

    /* files for peers; NULL until task_write_files */
    char *folder, *weights_path, *data_path, *onnx_path;
    int folder_lock; /* held for as long as the folder is in use; 0: none */

    const char *model;          /* as it was asked for */
    char program[TASK_PROGRAM]; /* the hash of its programs as text; "": it has none */
    const char *refused;        /* why prony cannot compute it; NULL: it can */
    enum status refusal;        /* … as a status */
    bool for_peers;             /* … but peers may open the file themselves */
};

/* The network and its programs; nothing large is made. STATUS_OK also where prony cannot compute
 * it: then task->refused says why. An ONNX file that prony cannot import is a task for peers: it
 * has no network, no programs and no data, so that nothing is checked and there is no floor. */
enum status task_begin(const struct task_options *options, struct task **out);
/* Its numbers, once; the refusal of a task that is refused. `host`: whoever runs it takes this
 * machine's memory, and no other. */
enum status task_fill(struct task *task, bool host);
/* Both; fails where it is refused. */
enum status task_open(const struct task_options *options, struct task **out);
/* Where the name of an ONNX file ends, as network_onnx_end has it; NULL: it is another network. */
const char *task_onnx_end(const char *model);
void task_close(struct task *task); /* NULL is fine; removes the files */

/* What to compile with: NULL, that is the network's own with its settings, where the bare name of
 * that is asked for, or nothing. */
const char *task_optimiser(const struct network *network, const char *optimiser);

/* The program that has a tensor of that role and name, and the tensor; NULL: none has it. */
const struct program *task_find(const struct task *task, enum role role, const char *name,
                                int32_t *tensor);

/* Of the samples of one iteration, with what is to be learnt from them. */
uint64_t task_input_bytes(const struct task *task);

/* Adam and its kin make a full step of a gradient however small it is: where that is rounding, a
 * number may go anywhere. */
bool task_steps_are_full(const struct task *task);

/* Has an iteration so many functions with a kink (relu, max pooling …) that rounding sends one to
 * its other side? That moves a few numbers by that place's part of the gradient. */
bool task_has_kinks(const struct task *task);

/* Stages of an outcome, and steps up to the end of one. */
int32_t task_stages(const struct task *task);
int32_t task_steps(const struct task *task, int32_t stage);

/* An element of an entry of reals. */
double task_real(const struct params *params, int32_t entry, int64_t element);
/* What the parameter at that place starts from. */
double task_initial(const struct task *task, int64_t place);

/* The programs of an iteration, and the parameters that they declare; and what all of them need,
 * the working set being the largest of theirs. */
enum status task_compile(struct task *task);
enum status task_count_work(struct task *task);
/* The weights, the data and the check of a compiled task. */
enum status task_make_numbers(struct task *task, bool host);

#endif
