/* kind.h: a network of any recipe that learns, for tests of what it has learnt. */
#ifndef PRONY_TESTS_KIND_H
#define PRONY_TESTS_KIND_H

#include "base/memory.h"
#include "rig.h"
#include "train/generate.h"
#include "train/train.h"

static const struct device_options one_thread = {.threads = 1, .isa = ISA_AVX512};

/* A network, data and a trainer over both. */
struct kind {
    struct network *network;
    struct dataset *dataset;
    struct model model;
    struct trainer *trainer;
};

static inline enum status open_kind(struct kind *kind, const struct rig *rig, const char *text,
                                    const char *recipe, const char *data)
{
    const struct model_options options = {.seed = 1, .recipe = recipe};
    *kind = (struct kind){0};
    if (strchr(text, '\n'))
        TRY(network_parse("kind.net", text, strlen(text), &kind->network));
    else
        TRY(network_open(text, &kind->network));
    TRY(dataset_open(data, &(struct dataset_options){0}, &kind->dataset));
    return model_open(&kind->model, kind->network, rig->backend, &one_thread, &options);
}

static int64_t labelled; /* rows of the next training; 0: all */

static inline enum status begin(struct kind *kind, int32_t batch, int64_t epochs,
                                const char *resume)
{
    const struct trainer_options options = {
        .course = {.batch = batch, .epochs = epochs, .test_share = 0.2, .labelled = labelled},
        .resume = resume};
    return trainer_open(&kind->model, kind->dataset, &options, &kind->trainer);
}

static inline enum status run_all(struct kind *kind)
{
    while (!trainer_done(kind->trainer))
        TRY(trainer_run(kind->trainer, 1000000));
    return STATUS_OK;
}

/* Opens and trains; the test's loss or, where there is one, accuracy. */
static inline double learn(struct kind *kind, const struct rig *rig, const char *text,
                           const char *recipe, const char *data, int32_t batch, int64_t epochs)
{
    struct score score = {0};
    if (!CHECK_OK(open_kind(kind, rig, text, recipe, data)) ||
        !CHECK_OK(begin(kind, batch, epochs, NULL)) || !CHECK_OK(run_all(kind)) ||
        !CHECK_OK(trainer_test(kind->trainer, &score)))
        return (double)NAN;
    return score.has_right ? score_accuracy(&score) : score_loss(&score);
}

static inline void close_kind(struct kind *kind)
{
    trainer_close(kind->trainer);
    model_close(&kind->model);
    dataset_free(kind->dataset);
    network_free(kind->network);
}

/* The trainer gives its data back; what is learnt stays with the model. */
static inline float *generate(struct kind *kind, int32_t rows, int32_t class_index)
{
    const struct generate_options options = {.rows = rows,
                                             .class_index = class_index,
                                             .sweeps =
                                                 kind->network->part_count ? 0 : 200, /* an rbm's */
                                             .seed = 3};
    float *out = mem_array((size_t)rows * (size_t)kind->dataset->columns, sizeof *out);
    trainer_close(kind->trainer);
    kind->trainer = NULL;
    CHECK(out != NULL);
    CHECK_OK(generate_rows(&kind->model, &options, out));
    return out;
}

static inline bool below(double found, double limit)
{
    if (CHECK(found < limit))
        return true;
    printf("    found %g, expected less than %g\n", found, limit);
    return false;
}

#define VAE(recipe)                                                                                \
    recipe "\noptimiser adam rate=0.005\nloss binary_cross_entropy\nnetwork encoder\ninput 64\n"   \
           "dense 64\nrelu\ndense 16\nnetwork decoder\ninput 8\ndense 64\nrelu\ndense 64\n"

/* The class of the data whose mean is nearest to the sample, and how far it is (its square). */
static inline int32_t nearest_class(const float *means, const float *sample, int32_t columns,
                                    double *distance_out)
{
    int32_t best = 0;
    double least = (double)INFINITY;
    for (int32_t c = 0; c < 10; c++) {
        double distance = 0;
        for (int32_t i = 0; i < columns; i++) {
            double off = (double)(sample[i] - means[c * columns + i]);
            distance += off * off;
        }
        if (distance < least) {
            least = distance;
            best = c;
        }
    }
    *distance_out = least;
    return best;
}

/* Means of the classes, on the scale that the data was opened with. */
static inline void class_means(const char *data, float *means)
{
    struct dataset *dataset;
    int64_t counts[10] = {0};
    if (!CHECK_OK(dataset_open(data, &(struct dataset_options){0}, &dataset)))
        return;
    for (int64_t row = 0; row < dataset->rows; row++)
        counts[dataset->labels[row]]++;
    for (int64_t row = 0; row < dataset->rows; row++)
        for (int32_t i = 0; i < dataset->columns; i++)
            means[dataset->labels[row] * dataset->columns + i] +=
                dataset->features[row * dataset->columns + i] / (float)counts[dataset->labels[row]];
    dataset_free(dataset);
}

#endif
