/* network.h: a network as text, and how it becomes a program.
 *
 * A network file has one layer a line (docs/networks.md):
 *
 *     input 4
 *     dense 3
 *     sigmoid
 *     hidden = dense 4      a name, to be referred to
 *     add < hidden, other   several inputs; without `<` the line above is the input
 *     loss mse
 *     optimiser adam rate=0.01
 *     schedule cosine period=1000
 *     recipe autoencoder    how it learns, where that is not by targets
 *
 * A file may hold several networks (section.h). With a recipe that is made of several it is one
 * network too, whose parts they are.
 *
 * network_compile makes the usual programs. A recipe that needs something else (two networks in one
 * program, its own gradients) calls the emitters over a draft of its own: network_emit here,
 * emit.h, loss_emit in loss.h, grad_emit in grad.h, update_emit in optimiser.h. */
#ifndef PRONY_NN_NETWORK_H
#define PRONY_NN_NETWORK_H

#include "base/arena.h"
#include "base/status.h"
#include "core/params.h"
#include "core/program.h"

struct layer_kind;
struct optimiser_kind;
struct recipe_kind;
struct part_network;
struct quantisation;

enum { LAYER_VALUES = 10, LAYER_INPUTS = 16 };

/* An argument of several whole numbers: 5x5, 1,0. */
struct layer_list {
    int32_t count;
    int64_t items[SHAPE_MOST];
};

/* One line of the text, checked against its layer kind's row in layers.def. */
struct layer {
    const struct layer_kind *kind;
    const char *name;     /* given, or kind and number: "dense2"; prefixes its parameters */
    int32_t line, column; /* in the text, for messages */
    int32_t input_count;
    int32_t *inputs;             /* layer indices; -1 is the network's input */
    double values[LAYER_VALUES]; /* in the order of the row's arguments; absent: the default */
    struct layer_list lists[LAYER_VALUES]; /* likewise, for the arguments that are lists */
};

enum loss_kind { LOSS_AUTO, LOSS_MSE, LOSS_CROSS_ENTROPY, LOSS_BINARY_CROSS_ENTROPY, LOSS_COUNT };

/* The words of `init`, in the order of that argument in layers.def. */
enum start {
    START_AUTO, /* what is usual for the layer */
    START_ZEROS,
    START_UNIFORM,
    START_NORMAL,
    START_XAVIER,
    START_HE,
    START_ORTHOGONAL,
    START_COUNT
};

/* optimiser.h has the table of kinds and how these are read. */
struct optimiser {
    const struct optimiser_kind *kind;
    double values[LAYER_VALUES]; /* in the order of the kind's settings */
};

/* optimiser.h has the table of recipes, train/recipe.h what they do. */
enum recipe_id {
#define RECIPE(kind, networks, settings, help) RECIPE_##kind,
#include "nn/recipes.def"
#undef RECIPE
    RECIPE_COUNT
};

struct recipe {
    const struct recipe_kind *kind;
    double values[LAYER_VALUES]; /* in the order of the kind's settings */
};

/* core/schedule.h says what it does. */
struct schedule {
    int32_t kind, warmup, period;
    double factor;
};

/* What a parameter starts from, where a file said it with the network (ONNX). */
struct given {
    const char *name; /* "dense1.weight" */
    int64_t count;
    const float *values; /* NULL: no reals, but … */
    bool fixed;          /* it stays as it is */
    enum dtype dtype;    /* … such bytes */
    const void *raw;
};

/* Which dimension of an ONNX file's input and of its output counts the samples. -1: none does, the
 * whole is one sample. */
struct onnx_batch {
    int32_t input, output;
};

/* A node of an ONNX file, and a layer that it became or is a part of. */
struct network_origin {
    const char *value;     /* what its first output is called, which no other node has */
    const char *node, *op; /* its name, or "", and its operator */
    int32_t layer;         /* -1: the softmax that went to the loss */
    int32_t place;         /* among the nodes of the file */
};

struct network {
    struct arena arena; /* owns everything below */
    const char *name;   /* "small"; a file's path */
    const char *text;   /* what it was read from; goes into weight files */
    struct shape
        input;      /* of one sample; of a network with parts, of the part that takes the data */
    int32_t tokens; /* > 0: the input is i32, each from 0 to below this; 0: real */
    int32_t layer_count;
    struct layer *layers;
    enum loss_kind loss;        /* LOSS_AUTO: labels → cross-entropy, numbers → mse */
    struct optimiser optimiser; /* sgd when the text names none */
    struct schedule schedule;
    enum start start; /* of weights, where a layer does not say it */
    int32_t given_count;
    struct given *given;          /* weights that came with it; its params are freed before it */
    struct arena weights;         /* owns these */
    struct onnx_batch onnx_batch; /* of one that was read from an ONNX file */
    int32_t origin_count;
    struct network_origin *origins; /* of one that was read from an ONNX file */
    const char *untrainable;        /* NULL, or why training it would be that of another network */
    bool ends_in_softmax;    /* in no layer: cross-entropy has it inside, other losses do not */
    const char *rounded;     /* NULL, or what of the file is computed less exactly than it says */
    struct network *settled; /* the same for inference alone with the weights that came with it:
                                fewer layers, as normalisations are folded; NULL: nothing is */
    struct recipe recipe;    /* feed_forward when the text names none */
    struct quantisation *quantised;    /* it predicts in 8 bits, as this says; NULL: in reals; of an
                                          ONNX file of 8 bits its settled form does */
    const struct quantisation *rounds; /* of such a settled form: which layers stay in fp32 */
    struct {
        int32_t input, loss, optimiser, schedule, recipe;
    } said_on;          /* the line of each in the text; 0: it does not say it */
    int32_t part_count; /* > 0: it is made of these, and has no layers of its own */
    struct part_network *parts;
    struct {
        const char *text; /* NULL: it is none */
        const char *name; /* "generator" */
        const struct recipe_kind *recipe;
    } part_of; /* the file of several networks that are made to learn together, where it is one of
                  them and was opened alone */
};

struct part_network {
    const char *name; /* "generator" */
    struct network *network;
};

/* The part of that name; NULL: none. */
const struct network *network_part(const struct network *network, const char *name);

/* `spec` is a zoo name, `mlp:4-16-3[:ACTIVATION[:INIT]]`, the path of a file, FILE:NAME, one of
 * several networks in a file (section.h), or FILE.onnx[:NAME=N,…] (formats/onnx.h). Unknown names
 * are refused with the nearest one. */
enum status network_open(const char *spec, struct network **out);
/* Is it one that needs no file, as "lenet", "vae:decoder" or "mlp:4-16-3", even where a file has
 * that name? */
bool network_built_in(const char *spec);
/* Where the name of an ONNX file ends: at the ':' of "FILE.onnx:N=4,output=y", else at the end.
 * NULL: it is no ONNX file. */
const char *network_onnx_end(const char *spec);
/* The zoo's files, one after the other: "lenet.net"; NULL behind the last. */
const char *network_zoo(int32_t number);
/* `name` is used in messages: "NAME:LINE:COLUMN: …". */
enum status network_parse(const char *name, const char *text, size_t length, struct network **out);
void network_free(struct network *network);
/* For inference alone with the weights that came with it: its settled form where it has one, which
 * takes its place. */
void network_settle(struct network **network);
/* How it, or its settled form, predicts in 8 bits; NULL: it does not. */
const struct quantisation *network_integers(const struct network *network);

enum phase { PHASE_INFERENCE, PHASE_TRAINING };

/* The shape of what each layer gives, layer_count of them, for a batch of 1. */
enum status network_shapes(const struct network *network, struct shape *out);
/* How many numbers its last layer gives of one sample. */
enum status network_outputs(const struct network *network, int64_t *out);

/* Appends the network's forward ops. `prefix` goes before parameter names ("" or "generator.");
 * `rows` is the rows tensor (dropout needs it); x is [batch, …]; `lengths` is -1 or an i32 [batch]
 * tensor that masks sequences. Returns the output tensor, -1 once the draft has failed. */
int32_t network_emit(const struct network *network, struct draft *draft, const char *prefix,
                     enum phase phase, int32_t rows, int32_t x, int32_t lengths);

/* The programs everyone needs, with tensors of fixed names:
 *   inputs   x [batch, …] (i32 when the network takes tokens); target [batch, …] or label:i32
 *            [batch, …] without the last dimension of y; lengths:i32 [batch] when asked
 *   outputs  y [batch, …] (inference; probabilities when the loss is cross-entropy, else what the
 *            last layer gives); loss [1] and, when it is known what a right answer is, right [1]
 *            (a count), both once a step */
enum program_use {
    USE_INFERENCE,  /* x → y */
    USE_EVALUATION, /* x, target → y, loss, right */
    USE_TRAINING,   /* x, target → loss, right; backward; update */
    USE_GENERATION, /* noise → y; only recipes have it */
};

struct compile_options {
    int32_t batch;
    enum program_use use;
    enum loss_kind loss;   /* LOSS_AUTO: the network's; if that is AUTO too, by `classes` */
    int32_t classes;       /* > 0: labels of that many classes; 0: numbers */
    const char *optimiser; /* "adam:beta1=0.8"; NULL or "": the network's */
    const char *schedule;  /* "cosine:period=1000"; NULL or "": the network's */
    int32_t accumulate;    /* > 1: gradients add up over that many batches before an update; this
                              is feed_forward's alone */
    bool lengths;          /* sequences come with lengths */
    int32_t weight_bits;   /* 8, 4 or 2: dense and conv layers round what they read, so that it gets
                              used to it; 0: they do not. feed_forward's alone, too */
    const char *recipe; /* "rbm:steps=5"; NULL or "": the network's. Only recipes look at it … */
    int32_t stage;      /* … and at this: of the training, from 0 (train/recipe.h) */
};

/* As feed_forward does it, whatever the recipe; the network has no parts. */
enum status network_compile(const struct network *network, struct params *params,
                            const struct compile_options *options, struct program **out);

/* The learning rate, before any schedule: what the flag, or without one the network's text says, or
 * the optimiser's default. */
enum status network_rate(const struct network *network, const char *optimiser, double *out);

/* The loss that would be used, and the shape of one target under it. */
enum loss_kind network_loss(const struct network *network, const struct compile_options *options);
const char *loss_name(enum loss_kind loss);
bool loss_parse(const char *name, enum loss_kind *out);
enum status loss_read(const char *flag, enum loss_kind *out); /* says what is wrong */

#endif
