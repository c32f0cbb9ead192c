/* recipe.h: ways of learning. A recipe says which programs a network, or several of one file,
 * become, and no more. A step is one program or several that are run in turn on one instance; a
 * training has one or several stages. Laps, trainers and the bench's jobs run whatever it is.
 *
 * What recipes there are and what can be set stands in nn/recipes.def; each is a file in
 * train/recipes/ with an emitter that writes the programs. */
#ifndef PRONY_TRAIN_RECIPE_H
#define PRONY_TRAIN_RECIPE_H

#include "nn/network.h"

enum { RECIPE_TURNS = 16, RECIPE_CLASSES = 10, RECIPE_NAMES = 2 };
enum { RECIPE_SWEEPS = 10 }; /* of Gibbs sampling in one run of a program that generates */

/* Programs that are run in turn and together are one step. Their tensors have the names of
 * network_compile's; at most one of them has a "loss". Where there are several, or several stages,
 * a program's name says which it is: "gan: generator", "dbn: stage 2 of 7". */
struct recipe_step {
    int32_t count;
    struct program *programs[RECIPE_TURNS];
};

/* The programs of one step of that use and stage. */
enum status recipe_compile(const struct network *network, struct params *params,
                           const struct compile_options *options, struct recipe_step *out);
/* A step of each stage, one after the other: what explain shows and the bench times. A recipe that
 * is told classes has RECIPE_CLASSES of them, if the options do not say how many. */
enum status recipe_compile_stages(const struct network *network, struct params *params,
                                  const struct compile_options *options, struct recipe_step *out);
void recipe_free(struct recipe_step *step); /* zeroed is fine */
/* Names the computation: the hash of its program, or of all of their hashes. */
uint64_t recipe_hash(const struct recipe_step *step);

/* What holds of a recipe: the network's, or the flag's. */
struct recipe_traits {
    enum loss_kind loss; /* what is learnt, or for a recipe without targets how far off it is */
    int32_t stages;
    int32_t stage_epochs; /* of each stage but the last, which has the rest */
    bool targets;         /* it learns labels or numbers, in its last stage */
    bool classes;         /* it is told the classes of rows */
    bool returns;         /* its outputs are in the place of its inputs: they have their scale */
    bool unit;            /* inputs lie between 0 and 1: they are chances */
    bool generates;
    bool rivals; /* its loss says which side is ahead, not how good it is: no epoch is the best */
    bool inner;  /* its inputs are a code or noise: they have no scale */
};
enum status recipe_traits(const struct network *network, const struct compile_options *options,
                          struct recipe_traits *out);
/* The same of one of several networks that have learnt together, and that now works alone. */
void recipe_part_traits(const struct network *part, const struct compile_options *options,
                        struct recipe_traits *out);

/* What an emitter is given. */
struct recipe_emit {
    struct draft *draft;
    const struct network *network;
    const struct compile_options *options;
    struct recipe recipe;
    struct recipe_traits traits;
    int32_t turn;                 /* which program of the step */
    const struct network *failed; /* the part in which the draft failed, for messages; or NULL */
};

/* Appends the forward ops of a part, its parameters named "PART.…"; of the network itself without a
 * name. */
int32_t recipe_network(struct recipe_emit *emit, const char *part, int32_t rows, int32_t x);
/* Standard normal, of the shape of the part's input. */
int32_t recipe_noise(struct recipe_emit *emit, const char *part, int32_t rows);
/* A tensor in the shape that the part takes; it has as many numbers. */
int32_t recipe_fit(struct recipe_emit *emit, int32_t x, const char *part);
/* The input in the shape of the output, to be compared with it; likewise. */
int32_t recipe_target(struct recipe_emit *emit, int32_t x, int32_t y);

/* How one kind is done. */
struct recipe_way {
    void (*emit)(struct recipe_emit *emit);
    /* Sets what is not usual: one stage, nothing of the rest. out->loss is known. */
    void (*tell)(const struct network *network, const struct recipe *recipe,
                 struct recipe_traits *out);
    int32_t turns;                   /* programs of a training step … */
    const char *names[RECIPE_NAMES]; /* … and what they are called, where there are several */
    /* Refuses what contradicts the recipe, with its line; NULL: nothing does. */
    enum status (*check)(const struct network *network, const struct compile_options *options);
    /* As tell, of one of its networks; NULL: it is made of one. */
    void (*tell_part)(const struct network *part, struct recipe_traits *out);
};

/* For checks. The loss has a sigmoid in itself: one as the last layer before it would be a second.
 */
enum status recipe_check_end(const struct network *network, enum loss_kind loss);
/* The network gives so many numbers a sample; `why` ends the message. */
enum status recipe_check_outputs(const struct network *network, int64_t expected, const char *why);
/* The recipe's loss is that one: the text and the flag say it or nothing. */
enum status recipe_check_loss(const struct network *network, const struct compile_options *options,
                              const char *recipe, enum loss_kind loss);

/* The recipe's loss is one between numbers. */
enum status recipe_check_measure(const struct network *network,
                                 const struct compile_options *options, const char *recipe);

#define RECIPE(kind, networks, settings, help) extern const struct recipe_way recipe_##kind;
#include "nn/recipes.def"
#undef RECIPE

/* Dense layers followed by a sigmoid, from the first layer on: what can be learnt as a stack of
 * restricted Boltzmann machines. */
int32_t rbm_layers(const struct network *network);
/* Is this layer a dense one, whatever it reads, with a sigmoid behind it? */
bool rbm_at(const struct network *network, int32_t layer);
/* They take numbers in a row, and have biases. */
enum status rbm_check_machines(const struct network *network, const char *recipe);
/* One of them learns, by contrastive divergence, what those before it make of the data. */
void rbm_emit(struct recipe_emit *emit, int32_t which);
/* The entry of the chains that a machine learnt by; -1: it has none. */
int32_t rbm_chains(const struct network *network, const struct params *params);
/* Visible units that Gibbs sampling begins with: where the chains ended or, without them, each on
 * or off by a coin of the control block's seed. All begin apart. From one place they would all fall
 * into the same few kinds of data, since a machine seldom goes over from one kind to another. */
void rbm_begin(const struct network *network, const struct params *params, int64_t rows,
               float *out);

#endif
