/* prony.h: neural networks from C: open, train, predict, save. `prony train` and `prony predict`
 * are written with it.
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
    PRONY_STOPPED,     /* the caller asked to stop */
};

/* A network, its parameters, and the device they are on. */
struct prony;

/* How a network is opened. Zero, or NULL for the whole, is the usual choice in every field, here
 * and in the other structs of options. */
struct prony_options {
    const char *backend; /* the CPU's fastest; "ref", "cuda" …: what `prony machine` lists */
    int32_t threads;     /* as many as there are cores */
    int32_t classes;     /* > 0: it learns that many classes; 0: numbers */
    int32_t weight_bits; /* a training gets it used to weights of 8, 4 or 2 bits and activations of
                            8, as prony_quantise makes them; 0: it does not */
    int recompute; /* not 0: a training keeps fewer activations and computes the others again: the
                      same results in less memory, and up to a forward pass more of time */
    const char *precision; /* "fp32", in which it multiplies; on a GPU "tf32", "bf16", "fp16" */
    /* How it learns, the rows PRONY_LEARNS of prony_settings.def: rate, optimiser, schedule,
     * recipe, loss, seed. The seed sets weights, dropout, and the split and order of data. */
#define PRONY_LEARNS(type, name, low, high, otherwise, meaning, help) type name;
#include "prony_settings.def"
};

/* "0.1.0" */
const char *prony_version(void);

/* Why the last call on this thread that failed did so: one line, valid until the next. */
const char *prony_error(void);

/* `network` is a name of the zoo ("small"), "mlp:4-16-3", or the path of a network file or of an
 * ONNX file, "model.onnx". "gan:generator" is one of several networks in a file. */
int prony_open(const char *network, const struct prony_options *options, struct prony **out);
/* The same from the text of a network file; `name` is used in messages. */
int prony_open_text(const char *name, const char *text, const struct prony_options *options,
                    struct prony **out);
/* The network in a file that prony_save wrote, with its weights. */
int prony_open_saved(const char *path, const struct prony_options *options, struct prony **out);
void prony_close(struct prony *network); /* NULL is fine */

/* Where it runs: "simd" … */
const char *prony_backend(const struct prony *network);
/* Numbers that go into the network, and come out of it, per sample; numbers it learns. */
int64_t prony_inputs(const struct prony *network);
int64_t prony_outputs(const struct prony *network);
int64_t prony_parameters(const struct prony *network);
/* NULL, or what of its file is computed less exactly than the file says: its doubles, in fp32. */
const char *prony_rounded(const struct prony *network);
/* The classes it tells apart, 0 when it gives numbers; and the name of one. */
int32_t prony_classes(const struct prony *network);
const char *prony_class(const struct prony *network, int32_t class_index);

/* One training step over a batch of `rows` samples. inputs is [rows, prony_inputs]; tokens are
 * whole numbers, given as floats. Classes count from 0; there is one a row, or one for each place
 * of a network that says a class in several. numbers is [rows, prony_outputs]; where the recipe
 * learns from the inputs alone (autoencoder, vae, gan, rbm), it is not looked at and may be NULL. A
 * vae on a condition is trained with classes. An rbm, a dbn and a binary cross-entropy of inputs
 * expect inputs between 0 and 1. A recipe with stages (dbn) does a step of its last, the
 * fine-tuning: prony_run pre-trains. *loss, unless NULL, becomes the batch's mean loss before the
 * step. A step with another number of rows than the ones before prepares anew. */
int prony_train_classes(struct prony *network, int32_t rows, const float *inputs,
                        const int32_t *classes, float *loss);
int prony_train_numbers(struct prony *network, int32_t rows, const float *inputs,
                        const float *numbers, float *loss);

/* outputs is [rows, prony_outputs]: probabilities when the loss is cross-entropy, else the last
 * layer's results. Numbers that were learnt from CSV are in their unit. A vae on a condition needs
 * classes too: prony_predict_data has them. The first call with a number of rows prepares for it;
 * those that follow allocate nothing. */
int prony_predict(struct prony *network, int32_t rows, const float *inputs, float *outputs);

/* A stream of requests: on a GPU the next one is asked before the last is answered. A CPU computes
 * within prony_stream_submit, as fast as prony_predict. A stream is used by the thread that uses
 * its network. */
struct prony_stream;

struct prony_stream_options {
    int32_t rows;  /* of each request: 1 */
    int32_t depth; /* requests in flight, at most: 16; up to 65536 */
    int resident;  /* not 0: something stays on the unit and waits for requests, which then need no
                      launch; PRONY_UNSUPPORTED where nothing can. It leaves when the network is used
                      otherwise, and comes back with the next request */
};

/* prony_load, prony_begin, prony_generate and the first training step end the streams of a network.
 * Requests in flight are lost, and the stream refuses everything but being closed. Later training
 * steps do not: a request is answered with the weights at its submission. */
int prony_stream_open(struct prony *network, const struct prony_stream_options *options,
                      struct prony_stream **out);
/* inputs is read before it returns; outputs is the stream's until the request was waited for.
 * *ticket, unless NULL, becomes the request's number: they count from 1. With `depth` requests in
 * flight it is refused. */
int prony_stream_submit(struct prony_stream *stream, const float *inputs, float *outputs,
                        uint64_t *ticket);
/* Waits until the outputs of that request are there; those of requests before it are, too. One that
 * was waited for is there at once. */
int prony_stream_wait(struct prony_stream *stream, uint64_t ticket);
/* Requests in flight are dropped: their outputs are not written. Before or after its network is
 * closed; NULL is fine. */
void prony_stream_close(struct prony_stream *stream);

/* Weights in safetensors format, written whole or not at all. A file of prony also says which
 * classes there are and how inputs are scaled; that is then done with whatever the network is
 * given. While a training on data is going on, what is saved is a checkpoint that can be resumed.
 */
int prony_load(struct prony *network, const char *path);
int prony_save(struct prony *network, const char *path);
/* As an ONNX file, for other programs: what is predicted of inputs as they come. The path of such a
 * file, which has its weights, is a network to prony_open; FILE.onnx:height=224,width=224 says the
 * sizes that it leaves open. */
int prony_export(struct prony *network, const char *path);

/* Data: a name ("iris", "digits", "mnist", "synthetic:1000x4:3"), or the path of a CSV, IDX or NPY
 * file. A folder with the files of MNIST will do, and "-" is CSV on standard input. docs/data.md
 * has the rest. */
struct prony_data;

struct prony_data_options {
    const char *label;  /* CSV: the label's column, by name or place; the last; "none" */
    const char *labels; /* IDX and NPY: the file with the labels */
    int numbers;        /* not 0: labels are numbers, even if they look like classes */
    int classes;        /* not 0: labels are classes, even if they look like numbers */
    /* CSV, columns by their names or places from 1: */
    const char *drop;      /* COLUMN[,COLUMN]: left out */
    const char *encode;    /* COLUMN[=onehot|code][,…]: texts, even if they look like numbers */
    const char *fill;      /* mean, median, zero or a number: what a missing number is */
    int drop_rows;         /* not 0: rows with missing values are left out */
    uint64_t memory_bytes; /* for features; more of them are streamed */
    struct prony *network; /* one that was loaded: labels are its classes, or missing, or
                              passed over where it does not ask for any; one that gives
                              classes and has no names for them takes the data's. CSV is read
                              as it was when the network learnt: columns by their names, texts,
                              what fills them */
};

int prony_data_open(const char *name, const struct prony_data_options *options,
                    struct prony_data **out);
void prony_data_close(struct prony_data *data); /* NULL is fine */
int64_t prony_data_rows(const struct prony_data *data);
/* The steps that reading it took, a line each, for a person; "" when there is nothing to tell.
 * prony_begin adds a line where it filled gaps with figures of the rows that are learnt from. */
const char *prony_data_notes(const struct prony_data *data);
/* A network for the data that is a sensible start, as "mlp:13-32-16-1"; lives as long as the data.
 */
int prony_data_network(struct prony_data *data, const char **out);
/* The name of a target, from the header; NULL when it has none. */
const char *prony_target(const struct prony *network, int32_t target);
/* The mean of the rows that it was learnt from; NaN where that is not known. */
double prony_target_mean(const struct prony *network, int32_t target);
/* The targets from that row on, and their number in a row: classes or numbers; NULL when the data
 * has none. */
int32_t prony_data_targets(const struct prony_data *data);
const int32_t *prony_data_classes(const struct prony_data *data, int64_t row);
const float *prony_data_numbers(const struct prony_data *data, int64_t row);

/* A training on data, from its beginning to its end. */
struct prony_course {
    /* The rows PRONY_COURSE and PRONY_PART of prony_settings.def: epochs (100), batch (8),
     * until_accuracy, until_loss, patience, labelled. Two are the shares of the rows for the test
     * and to validate. */
#define PRONY_COURSE(type, name, key, usual, low, high, otherwise, meaning, help) type name;
#include "prony_settings.def"
    const char *resume; /* a file that was saved on the way: all but epochs is as it was then, loss,
                           optimiser, schedule, rate and seed included */
};

/* Mean loss and share of right answers over `samples` samples; accuracy is negative where it is not
 * known what a right answer is. */
struct prony_score {
    int64_t samples;
    double loss, accuracy;
};

/* How it goes. */
struct prony_progress {
    int64_t epoch, epochs;       /* whole epochs done, of how many */
    int64_t step, steps;         /* steps done of the next one, of how many */
    int finished;                /* not 0: there is nothing left to run */
    int32_t stage, stages;       /* from 1; most recipes have one */
    struct prony_score so_far;   /* over the steps of this epoch */
    struct prony_score last;     /* over the last whole epoch */
    struct prony_score held_out; /* after it */
    int64_t best_epoch;          /* with the lowest held-out loss; 0: none was held out */
    double best_loss;
    int64_t train_rows; /* in an epoch of this stage */
    int64_t labelled_rows, held_out_rows, test_rows;
    int64_t window; /* rows that are in memory at a time; 0: all of them */
    int32_t batch;
    double rate;
    uint64_t seed;
};

/* Begins a training. The network's scale is applied to the data. The data belongs to the training
 * until another one begins or the network is closed, so close it after the network. */
int prony_begin(struct prony *network, struct prony_data *data, const struct prony_course *course);
/* Runs up to `steps` steps, not beyond the end of an epoch; 0 only says how it goes. A loss that is
 * no number is PRONY_WRONG. */
int prony_run(struct prony *network, int64_t steps, struct prony_progress *progress);
/* Ends it: takes the weights of the best epoch, where rows were held out, and tests them. */
int prony_end(struct prony *network, struct prony_score *test);

/* A network's answers to some rows of data that follow each other. */
struct prony_prediction {
    int64_t first, rows;
    const uint32_t *list;   /* which rows of the data they are; NULL: first, first + 1 … */
    int32_t width;          /* numbers a row */
    int32_t places;         /* classes a row */
    const float *outputs;   /* [rows, width], as prony_predict's, but with a binary loss
                               probabilities of the second class; numbers in their unit */
    const int32_t *classes; /* [rows, places], or NULL when the network gives numbers */
};

/* Is given all rows in turn, some at a time; what it returns, if not 0, ends it and is returned. */
typedef int prony_visit(void *context, const struct prony_prediction *prediction);
int prony_predict_data(struct prony *network, struct prony_data *data, prony_visit *visit,
                       void *context);

/* The same of the rows that came as a test set of their own, as MNIST's do; of all where none did.
 */
int prony_predict_test(struct prony *network, struct prony_data *data, prony_visit *visit,
                       void *context);

/* The same of the rows that were kept for the test of the training on data; none where nothing is
 * learnt but the data itself. */
int prony_test(struct prony *network, prony_visit *visit, void *context);

/* How a network becomes one of 8 bits: docs/quantisation.md. */
struct prony_quantising {
    const char *ranges;      /* "mse": the least mean square error; "minmax", "percentile" */
    int plain;               /* not 0: powers of two as scales, activations of 7 bits */
    int32_t weight_bits;     /* 8; 4 or 2 */
    int64_t rows;            /* from which ranges are found: 1024 */
    const char *const *keep; /* layers that stay in fp32 … */
    int32_t keep_count;      /* … and how many */
    int uncorrected;         /* not 0: biases do not make up for what rounding the weights moves */
};

/* How a layer that multiplies fares. */
struct prony_layer {
    const char *name;
    int stays;          /* not 0: in fp32 */
    double noise_db;    /* signal to noise of its results: 20 is a tenth, 40 a hundredth off */
    double outside;     /* share of these that lie beyond the range that was found */
    double outlier;     /* the largest channel of its inputs against the middle one … */
    int64_t outlier_at; /* … and which it is */
};
/* Is given the layers, the noisiest first. */
typedef void prony_layer_visit(void *context, const struct prony_layer *layer);

/* Makes a second network, to be predicted with, saved and closed like any other. The data is what
 * the ranges come from, but for its test set. `how` may be NULL, `visit` too. */
int prony_quantise(struct prony *network, struct prony_data *data,
                   const struct prony_quantising *how, prony_layer_visit *visit, void *context,
                   struct prony **out);

/* Samples like the data it learnt from, by a network whose recipe can: vae, gan, rbm. */
struct prony_samples {
    int32_t rows;           /* 1 to 100000 */
    const char *class_name; /* where it learnt on a condition; all classes in turn */
    int64_t sweeps;         /* Gibbs sampling of an rbm (1000); a multiple of 10 */
    uint64_t seed;
    int (*stop)(void *context); /* asked now and then: not 0 ends it with PRONY_STOPPED */
    void *context;
};

/* samples is [rows, prony_inputs], on the scale of the data. */
int prony_generate(struct prony *network, const struct prony_samples *asked, float *samples);
/* The sizes of one sample, the network's input, as in 1, 28, 28: how many there are, and up to
 * `most` of them. */
int32_t prony_input_sizes(const struct prony *network, int64_t *sizes, int32_t most);

#ifdef __cplusplus
}
#endif

#endif
