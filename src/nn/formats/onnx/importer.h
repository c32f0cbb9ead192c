/* importer.h: what the files of the import share.
 *
 * Nodes are taken in the file's order, those the output needs. A node whose inputs are all known
 * numbers is worked out at once (fold.c); any other is a row of nodes.def, whose function writes
 * lines: layers of the network's text. Lines stay open to change until all nodes were seen, so that
 * a bias can go into the layer before it. A batch-norm or a learnt factor does so only where the
 * network will not be trained (`settles`): training would learn something else.
 *
 * ONNX has no batch; one dimension of a value counts samples, which layers do not see: mostly the
 * first, after a transpose another. A value knows which. It may count parts of samples as well, as
 * heads of attention: [samples · heads, …], or times and samples: [times · samples, …]. What mixes
 * samples is refused. */
#ifndef PRONY_NN_FORMATS_ONNX_IMPORTER_H
#define PRONY_NN_FORMATS_ONNX_IMPORTER_H

#include "nn/formats/onnx/messages.h"

#include "base/arena.h"
#include "nn/network.h"

#include <stdbool.h>

/* Of a sample, anywhere in the network. */
#define ELEMENTS_MOST ((int64_t)1 << 36)

/* How many places are taken one by one; how many tokens the text of a network may have; of how many
 * initializers numbers that learn are put together. */
enum { PICKS_MOST = 4096, TOKENS_MOST = 1000000000, ORIGINS_MOST = 8 };

/* Among whole numbers: so many times the number of samples, which the file leaves open; numbers
 * that nobody has otherwise. */
#define SAMPLES_NONE (-0x53504c0000000000)
#define SAMPLES_MOST ((int64_t)1 << 36)

static inline int64_t samples_times(int64_t times)
{
    return SAMPLES_NONE + times;
}

/* How many times; 0: it is a number like any other. */
static inline int64_t samples_in(int64_t number)
{
    return number > SAMPLES_NONE && number <= SAMPLES_NONE + SAMPLES_MOST ? number - SAMPLES_NONE
                                                                          : 0;
}

enum element {
    ELEMENT_FLOAT = 1,
    ELEMENT_UINT8 = 2,
    ELEMENT_INT8 = 3,
    ELEMENT_UINT16 = 4,
    ELEMENT_INT16 = 5,
    ELEMENT_INT32 = 6,
    ELEMENT_INT64 = 7,
    ELEMENT_BOOL = 9,
    ELEMENT_HALF = 10,
    ELEMENT_DOUBLE = 11,
    ELEMENT_UINT32 = 12,
    ELEMENT_UINT64 = 13,
    ELEMENT_BFLOAT16 = 16
};

/* Real numbers, which all become float; the other types are whole numbers. */
static inline bool element_is_real(int64_t type)
{
    return type == ELEMENT_FLOAT || type == ELEMENT_DOUBLE || type == ELEMENT_HALF ||
           type == ELEMENT_BFLOAT16;
}

/* Known numbers: a tensor of the file, or worked out of such. Its dimensions may be 0, its rank
 * too. */
struct constant {
    struct shape shape;
    int32_t batch; /* the dimension that has as many places as there are samples, or a multiple of
                      it; these are alike, and the shape has those of one; -1: none */
    int64_t count;
    bool learnt; /* numbers of initializers as they stand in the file, each once */
    const char *origins[ORIGINS_MOST]; /* what these are called */
    int32_t origin_count;
    bool held; /* it comes from Constant nodes alone */
    float *reals;
    int64_t *wholes;    /* or these */
    int64_t type;       /* enum element, as it stands in the file; 0: it was worked out */
    const char *layer;  /* that gives them, to all that read them so; NULL: none yet */
    struct shape gives; /* what that gives */
};

/* A layer of the text to be. */
struct line {
    const char *name, *kind;
    const char *arguments;
    const char *inputs;    /* "a, b" */
    bool has_bias, bias;   /* can it have one, has it one? */
    float *weight, *shift; /* [weights], [channels] where it has a bias */
    int64_t weights, channels;
    int64_t run;     /* weight[i] belongs to channel i / run % channels */
    double scale;    /* of matmul; 0: the line has none */
    int32_t readers; /* lines that read it, each as often as it does */
    int32_t pending; /* of all values that it gives */
    bool read;       /* the output needs it */
};

struct value {
    const char *name;
    bool ready;                     /* the node that gives it was done */
    struct constant *constant;      /* or NULL: a layer gives it … */
    struct constant *known;         /* … these numbers, to the node that is being done; or NULL */
    struct shape shape;             /* as ONNX has it; 1, or a sample's parts, where the batch is */
    int32_t batch;                  /* that dimension; -1: none */
    int64_t ahead;                  /* of parts: as many times all samples stand there one by one */
    const char *layer;              /* "input", or a line's name */
    struct line *line;              /* the line, NULL for the input */
    struct shape gives;             /* what that layer gives, of a sample: the same elements */
    int32_t uses;                   /* by nodes and as the output */
    int32_t pending;                /* of these, by nodes that were not done, and as the output */
    int32_t readers[2];             /* the first nodes that use it; -1: no more */
    const Onnx__NodeProto *learner; /* of an initializer: the node whose parameter it became */
    int64_t pad[3][2]; /* zeros to be put before and behind its planes, rows, columns */
    bool padded;
    bool tokens; /* whole numbers, the network's input */
    /* Levels of a QuantizeLinear: of what layer, on which scale, and what stands for 0. */
    const char *quantised;
    double scale, zero;
    const char *pool;    /* places in a max_pool of this name, … */
    struct shape pooled; /* … which took this */
};

/* A node of the file and a line that it became, or is a part of. */
struct origin {
    int32_t node;
    const char *line;
};

struct import {
    const char *path;
    const Onnx__GraphProto *graph;
    int64_t opset;
    const char *shapes;
    struct arena arena;   /* of this struct */
    struct arena weights; /* of what the network is given */
    int32_t value_count, value_room;
    struct value **values; /* a hash table */
    int32_t line_count, line_room;
    struct line **lines;
    int32_t given_count, given_room;
    struct given *given;
    int32_t origin_count, origin_room;
    struct origin *origins;
    int32_t batch;   /* of the input, as it is tried; -1: none */
    bool open;       /* another of its dimensions is not known */
    bool misplaced;  /* it is refused because samples are counted there */
    int64_t samples; /* what the file says of it; 0: nothing */
    struct value **inputs;
    int32_t input_count;
    struct shape sample;     /* of the network's input: all of these */
    const char *reading;     /* the input whose line is being written; NULL: none */
    int64_t tokens;          /* below which those of the input are; 0: it is real, or not known */
    const char *untrainable; /* network.h says it; of the arena of weights */
    bool doubles;            /* the file computes in double */
    bool softmax_last;       /* it ended with a softmax, which goes to the loss */
    bool settles;            /* it is for inference alone: what would learn may be folded */
    bool foldable;           /* something was, or would have been */
    const Onnx__NodeProto *node; /* being done; NULL: none */
    int64_t numbers, made;       /* that stand in the file; that were worked out of them */
    size_t memory;               /* of this machine, in bytes: mem_total */
    size_t taken;                /* bytes of weights of its lines */
    size_t beside;               /* bytes of memory for those that lie beside the file */
    int32_t done;                /* nodes */
    bool *needed; /* per node: the output comes from it, and it is still to be done */
};

/* Refuses the file, because of the node that is being done. */
#define REFUSE(in, code, ...)                                                                      \
    return (status_fail((code), __FILE__, __LINE__, __VA_ARGS__), import_blame(in, code))
enum status import_blame(const struct import *in, enum status code);

/* What the file says can be worked out, but would not be trained as it says; because of the node
 * that is being done. */
enum status import_untrainable(struct import *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* learns.c: what a training of the file learns. Numbers of initializers became a parameter of the
 * node; of a second one they would be another, as layers share none. */
enum status import_learns(struct import *in, const Onnx__NodeProto *node,
                          const struct constant *numbers);
/* Of so many numbers made of these, which learn, each would learn for itself. */
enum status import_repeats(struct import *in, const struct constant *numbers, int64_t count);
/* What was worked out of the node's inputs: does it learn, and what is it made of? `moves`: each of
 * its numbers is one of theirs, once. */
void import_traces(const struct import *in, bool moves, struct constant *to);
/* The node was done, whose parameters are those given from `given` on. */
enum status import_check_learning(struct import *in, int32_t given);

/* origins.c: the node was done, and wrote the lines from `lines` on; those of a pattern became this
 * line. Then the network is told of which nodes its layers are. */
enum status origins_of_node(struct import *in, int32_t node, int32_t lines);
enum status origins_of_trail(struct import *in, const int32_t *nodes, int32_t count,
                             const char *line);
enum status origins_keep(const struct import *in, struct network *network);

/* lines_text.c: the text of the network that gives this value. */
enum status import_write(struct import *in, struct value *output, struct text *out);

/* graph.c: values by name, and what a node says of itself. */
struct value *graph_find(const struct import *in, const char *name);
enum status graph_add(struct import *in, const char *name, struct value **out);
/* Input and output `i` of the node; NULL where there is none. */
struct value *graph_input(const struct import *in, size_t i);
struct value *graph_output(const struct import *in, size_t i);
/* Of the two first nodes that read this value the first that is such an operator; NULL for one:
 * any. -1: none. */
int32_t graph_reader(const struct import *in, const struct value *value, const char *op);
const Onnx__AttributeProto *graph_attribute(const struct import *in, const char *name);
int64_t graph_int(const struct import *in, const char *name, int64_t usual);
double graph_real(const struct import *in, const char *name, double usual);
bool graph_text_is(const struct import *in, const char *name, const char *usual, const char *word);
/* Which of the words the attribute is; 0 where there is none. Refuses any other. */
enum status graph_choice(struct import *in, const char *name, const char *const *words, int count,
                         int *out);
/* A list of whole numbers: an attribute. *count is -1 where there is none. */
const int64_t *graph_ints(const struct import *in, const char *name, int64_t *count);
/* The same as input `i`, or where there is none as the attribute. Refuses what is not known. */
enum status graph_numbers(struct import *in, size_t i, const char *name, const int64_t **out,
                          int64_t *count);
/* The places that a slice takes of `size`: counted from behind where they are negative, and no more
 * than there are. */
struct range {
    int64_t from, by, count;
};
enum status graph_range(struct import *in, int64_t size, int64_t from, int64_t to, int64_t by,
                        struct range *out);
/* What a Slice says of its axes, of which there are `rank`: inputs from opset 10 on, before that
 * attributes. Refuses an axis that is there twice. */
struct slices {
    int64_t count;
    int32_t axis[SHAPE_MOST];
    int64_t from[SHAPE_MOST], to[SHAPE_MOST], by[SHAPE_MOST];
};
enum status graph_slices(struct import *in, int32_t rank, struct slices *out);
/* Does number `i` of these take all samples, of each of which the axis has so many places? */
bool slices_take_samples(const struct slices *slices, int64_t i, int64_t parts);
/* One number that is known: input `i`; `usual` where there is none. */
enum status graph_number(struct import *in, size_t i, double usual, double *out);
/* An axis of `rank` dimensions, counted from behind where it is negative. */
enum status graph_axis(struct import *in, int64_t given, int32_t rank, int32_t *out);
/* That of the attribute, likewise. */
enum status graph_axis_of(struct import *in, const char *name, int64_t usual, int32_t rank,
                          int32_t *out);

/* The product of the sizes before dimension `to`; -1: it is too large. */
int64_t graph_count(const struct shape *shape, int32_t to);

/* One of `size` places, counted from behind where it is negative. */
enum status graph_place(struct import *in, int64_t given, int64_t size, int64_t *out);

/* sizes.c: what --shape says. Is each name in it a dimension's of an input, and there once? */
enum status sizes_check(const struct import *in);
/* The name of an input's dimension that is open: its own, or where it has none the input's and
 * which one it is, x.1. "": it is not open. */
enum { SIZES_NAME = 84 };
const char *sizes_name(const Onnx__ValueInfoProto *info, size_t d, char name[SIZES_NAME]);
/* The size of the dimension of that name; 0: none is said. NULL: refuses what is no size. */
enum status sizes_find(const struct import *in, const char *name, int64_t *out);
/* The name of the output that is wanted, and how long it is; NULL: none is named. */
const char *sizes_output(const struct import *in, size_t *length);
/* Says all dimensions that are open at once, as a user would write them behind --shape. */
enum status sizes_refuse_open(struct import *in);

/* names.c: has no text of the message a byte 0 in it? */
bool names_are_whole(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t length);
/* Makes ? of control characters and of what is not UTF-8. */
void names_clean(char *text);

/* constant.c: numbers of the file. */
enum status constant_new(struct import *in, struct shape shape, bool whole, struct constant **out);
/* The same elements in another shape; refuses one that has not as many. */
enum status constant_view(struct import *in, const struct constant *from, struct shape shape,
                          struct constant **out);
enum status constant_read(struct import *in, const Onnx__TensorProto *tensor,
                          struct constant **out);
double constant_at(const struct constant *constant, int64_t i);
/* The nearest number of 16 bits. */
float constant_rounded(int64_t type, float number);
/* Is it one number? */
bool constant_is_one(const struct constant *constant);

/* fold.c: works the node out when all it needs is known; *done says whether it was. */
enum status fold_node(struct import *in, bool *done);

/* nodes_quantised.c: known numbers to levels and back. */
enum status fold_quantise(struct import *in, struct constant **out);
enum status fold_dequantise(struct import *in, struct constant **out);

/* apart_quantised.c: the graph with what computes in 8 bits taken apart into QuantizeLinear,
 * DequantizeLinear and operators of reals, which give the same: products of 8 bits are exact in
 * fp32. Its nodes are the arena's; without such operators it is the graph itself. */
enum status apart_quantised(const Onnx__GraphProto *graph, struct arena *arena,
                            Onnx__GraphProto *room, const Onnx__GraphProto **out);

/* fusion.c: writes one line for several nodes that begin with this one; *done says whether. */
enum status fusion_write(struct import *in, bool *done);

/* lines.c: layers as text. */
struct shape value_sample(const struct value *value); /* what a sample of it is */
/* Does this dimension count the samples, and nothing else? */
bool value_counts(const struct value *value, int32_t axis);
/* The dimension of a value as a layer counts it, 1 being the first of a sample; of the batch: that
 * of its parts. */
int32_t value_place(const struct value *value, int32_t axis);
/* … Refuses the batch. */
enum status value_axis(struct import *in, const struct value *value, int32_t axis, int32_t *out);
/* A line of that kind, called after the node. */
enum status line_add(struct import *in, const char *kind, const char *inputs, struct line **out,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The layer that gives a value, or its constant, in that shape of a sample. */
enum status line_of(struct import *in, const struct value *value, struct shape sample,
                    const char **out);
/* … in its own shape. */
enum status line_of_value(struct import *in, const struct value *value, const char **out);
/* Known numbers as a layer. */
enum status line_constant(struct import *in, const float *values, int64_t count, bool learnt,
                          struct shape sample, const char **out);
/* A value that is known numbers, the same for every sample, becomes a layer that gives them;
 * `batch`, where it is not -1, is the dimension of 1 that counts samples. */
enum status line_known(struct import *in, struct value *value, int32_t batch);
/* To the nodes behind this one it is known numbers again: their weights, or another layer. */
void line_known_again(struct value *value);
/* scale·x + shift of a layer whose sample has that rank. */
enum status line_affine(struct import *in, const char *x, int32_t rank, double scale, double shift,
                        const char **out);
enum status line_slice(struct import *in, const char *x, int32_t axis, int64_t from, int64_t size,
                       const char **out);
/* Places of an axis in any order, also more than once: slices, one behind the other. */
enum status line_pick(struct import *in, const char *x, int32_t axis, const int64_t *places,
                      int64_t count, const char **out);
/* Layers one behind the other. */
enum status line_join(struct import *in, const char *const *layers, int64_t count, int32_t axis,
                      const char **out);
/* Known numbers put before and behind along an axis of a layer that gives `sample`; both change. */
enum status line_pad(struct import *in, int32_t axis, int64_t before, int64_t behind, float number,
                     struct shape *sample, const char **layer);
/* The same elements in that shape. */
enum status line_shape(struct import *in, const char *x, struct shape sample, const char **out);
/* A layer of two others, without arguments. */
enum status line_pair(struct import *in, const char *kind, const char *a, const char *b,
                      const char **out);
/* The parameter starts from these, which are the import's (weights). */
enum status line_give(struct import *in, const struct line *line, const char *parameter,
                      const float *values, int64_t count);
/* The parameter given last learns, or stays as it is in training. */
void line_learns(struct import *in, bool learnt);
enum status line_weights(struct import *in, int64_t count, float **out);
/* "4x8" into an arena; "1" for none */
enum status line_sizes(struct import *in, const struct shape *shape, const char **out);
/* Says what output `i` of the node is: that layer, which gives `gives`. */
enum status line_gives(struct import *in, size_t i, const char *layer, struct shape gives,
                       struct shape shape, int32_t batch);
/* … what `like` is, elementwise. */
enum status line_gives_like(struct import *in, const char *layer, const struct value *like);
/* … that it is the layer of `from`, seen in another shape. */
enum status line_gives_same(struct import *in, const struct value *from, struct shape shape,
                            int32_t batch);
struct line *line_find(const struct import *in, const char *name);
/* … of a list "a, b": its first name; *list goes on to the next. NULL for "input". */
struct line *line_next(const struct import *in, const char **list);
/* That line gives the value; NULL: none does. */
void line_gives_value(struct line *line, struct value *value);
/* The line that gives the value, where the node that is being done is the only one to read it,
 * under any name and in any shape: it may take the node's work along. Else NULL. */
struct line *line_alone(const struct value *value);

/* A row of nodes.def: writes the lines of in->node, whose first inputs are there. */
typedef enum status node_writer(struct import *in);

/* The node's input `i`, which a layer gives and is real. */
enum status node_data(struct import *in, size_t i, struct value **out);
/* … which is known, of that rank; -1: of any. */
enum status node_known(struct import *in, size_t i, int32_t rank, const struct constant **out);
/* A layer of that kind, add or multiply, of two values is a third, of the shape they have together.
 */
enum status node_combine(struct import *in, const char *kind, const struct value *a,
                         const struct value *b, struct value *out);

#endif
