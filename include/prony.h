/* prony.h: neural networks from C: open, train, predict, save.
 *
 *     struct prony *network;
 *     if (prony_open("mlp:4-16-3", &(struct prony_options){.classes = 3}, &network))
 *         fprintf(stderr, "%s\n", prony_error());
 *     prony_train_classes(network, 32, inputs, classes, &loss);
 *     prony_predict(network, 1, inputs, probabilities);
 *     prony_save(network, "iris.safetensors");
 *     prony_close(network);
 *
 * Whatever can fail returns 0 when it succeeded, and else one of the codes below; prony_error says
 * what was found and what was expected. A network is used by one thread at a time; different
 * networks may be used at once. Arrays are the caller's, dense, rows first; they are read or
 * written during the call only. See docs/library.md. */
#ifndef PRONY_H
#define PRONY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum prony_code {
    PRONY_OK = 0,
    PRONY_INPUT,       /* a name, file or number is wrong */
    PRONY_UNSUPPORTED, /* this machine or backend cannot do it */
    PRONY_MEMORY,      /* an allocation failed */
    PRONY_IO,          /* the system refused to open, read or write */
    PRONY_DEVICE,      /* an accelerator failed */
    PRONY_WRONG,       /* it ran, and the result is wrong */
};

/* A network, its parameters, and the device they are on. */
struct prony;

/* Zero, or NULL for the whole, is the usual choice in every field. */
struct prony_options {
    const char *backend;   /* "ref", "cuda" …; what `prony machine` lists */
    int32_t threads;       /* as many as there are cores */
    uint64_t seed;         /* of the starting weights and of dropout */
    int32_t classes;       /* > 0: it learns that many classes; 0: numbers */
    const char *loss;      /* the network's own; "mse", "cross_entropy" … */
    const char *optimiser; /* the network's own; "adam:beta1=0.8" … */
    double rate;           /* the learning rate: the optimiser's own */
};

/* "0.1.0" */
const char *prony_version(void);

/* Why the last call on this thread that failed did so: one line, valid until the next. */
const char *prony_error(void);

/* `network` is a name of the zoo ("small"), "mlp:4-16-3", the path of a network file, or of one of
 * several networks in a file, "gan.net:generator". */
int prony_open(const char *network, const struct prony_options *options, struct prony **out);
/* The same from the text of a network file; `name` is used in messages. */
int prony_open_text(const char *name, const char *text, const struct prony_options *options,
                    struct prony **out);
void prony_close(struct prony *network); /* NULL is fine */

/* Numbers that go into the network, and come out of it, per sample; numbers it learns. */
int64_t prony_inputs(const struct prony *network);
int64_t prony_outputs(const struct prony *network);
int64_t prony_parameters(const struct prony *network);

/* One training step over a batch of `rows` samples. inputs is [rows, prony_inputs]; tokens are
 * whole numbers, given as floats. Classes count from 0; there is one a row, or one for each place
 * of a network that says a class in several. numbers is [rows, prony_outputs]. *loss, unless NULL,
 * becomes the batch's mean loss before the step. A step with another number of rows than the ones
 * before prepares anew. */
int prony_train_classes(struct prony *network, int32_t rows, const float *inputs,
                        const int32_t *classes, float *loss);
int prony_train_numbers(struct prony *network, int32_t rows, const float *inputs,
                        const float *numbers, float *loss);

/* outputs is [rows, prony_outputs]: probabilities when the loss is cross-entropy, else what the
 * last layer gives. */
int prony_predict(struct prony *network, int32_t rows, const float *inputs, float *outputs);

/* Weights in safetensors format, written whole or not at all. A file that `prony train` wrote also
 * holds the scale of its inputs, which is then applied to whatever the network is given; one that
 * prony_save wrote can be given to `prony predict`. */
int prony_load(struct prony *network, const char *path);
int prony_save(struct prony *network, const char *path);

#ifdef __cplusplus
}
#endif

#endif
