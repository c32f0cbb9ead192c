/* exporter.h: what the files of the export share. A layer becomes a node or a few (opset 17), a row
 * of exports.def each; what it gives is called as the layer is, its parameters as in files of
 * weights, unless a layer is called so. All values are [samples, …], as ours are, and how many
 * samples there are is left open.
 */
#ifndef PRONY_NN_FORMATS_ONNX_EXPORTER_H
#define PRONY_NN_FORMATS_ONNX_EXPORTER_H

#include "nn/formats/onnx/messages.h"

#include "core/params.h"
#include "nn/formats/onnx.h"
#include "nn/layer.h"

struct export
{
    const char *path;
    const struct network *network;
    const struct params *params;
    struct shape *shapes; /* of what each layer gives */
    const char **names;   /* of the layers, sorted: no other value may be called so */
    struct arena arena;
    Onnx__GraphProto graph;
    size_t node_room, tensor_room;
    const struct layer *layer;        /* being written */
    const char *output;               /* what it gives */
    const char *input;                /* what the network's input is called */
    const struct onnx_levels *levels; /* of a network in 8 bits; or NULL */
    int32_t parts;                    /* values on the way to it */
    bool failed;                      /* out of memory: said at the end */
};

/* A node that gives `output`; it is also returned. Inputs that are NULL are absent. Attributes are
 * those of the node that was added last. */
#define EXPORT_INPUTS(...)                                                                         \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
const char *export_node(struct export *ex, const char *op, const char *output,
                        const char *const *inputs, size_t count);
void export_int(struct export *ex, const char *name, int64_t value);
void export_ints(struct export *ex, const char *name, const int64_t *values, size_t count);
void export_words(struct export *ex, const char *name, const char *word); /* a list of one */
/* The node whose first output is `first`, the last such, gives `second` besides. */
void export_second(struct export *ex, const char *first, const char *second);
void export_real(struct export *ex, const char *name, float value);

/* The name, made longer until no layer has it; NULL: out of memory. */
const char *export_name(struct export *ex, const char *name);
/* A name for a value on the way to the layer's output. */
const char *export_part(struct export *ex);
/* What input `i` of the layer is called, and its shape. */
const char *export_input(const struct export *ex, int32_t i);
struct shape export_shape(const struct export *ex, int32_t i);
struct shape export_gives(const struct export *ex);

/* Numbers that stand in the file: a parameter of the layer in the shape it has or in `shape`; other
 * reals; whole ones. Each gives its name. A Constant is not learnt by who reads it. */
const char *export_param(struct export *ex, const char *name, const struct shape *shape);
const float *export_values(const struct export *ex, const char *name);
const char *export_reals(struct export *ex, const char *name, const float *values,
                         struct shape shape);
const char *export_constant(struct export *ex, const float *values, struct shape shape);
const char *export_wholes(struct export *ex, const int64_t *values, int64_t count);
/* Whole numbers of 8 or 32 bits (enum element), which the export keeps. */
const char *export_integers(struct export *ex, const char *name, int32_t type, const void *bytes,
                            struct shape shape);

/* exports_quantised.c. The weight or the bias of 8 bits as the reals it stands for: integers and a
 * DequantizeLinear. */
const char *export_quantised(struct export *ex, const char *name, const struct shape *shape);
/* Rounds `x` to levels and takes it back, where the network rounds behind that layer; "": the
 * input. Else *output is x. */
const char *export_rounded(struct export *ex, const char *layer, const char *x, const char *output);
bool export_rounds(const struct export *ex, const char *layer);

/* `x` in the shape that the layer gives, or in that one. */
const char *export_reshape(struct export *ex, const char *x, struct shape to, const char *output);

/* Arguments of the layer. */
double export_value(const struct export *ex, const char *argument);
const struct layer_list *export_list(const struct export *ex, const char *argument);

/* Writes the layer's nodes. STATUS_UNSUPPORTED: ONNX has nothing like it. */
typedef enum status export_writer(struct export *ex);

#endif
