/* test_kinds_known.c: what networks have learnt by their recipes, against what is known otherwise:
 * an auto-encoder against principal components, the loss of a vae against its formula and its codes
 * against noise, a Boltzmann machine's samples against the classes of the data. */
#include "base/rng.h"
#include "folder.h"
#include "kind.h"

enum { DIGIT = 64, CODE = 8 }; /* the small digits, and codes of them */

static const float *row_at(const struct kind *kind, uint32_t row)
{
    return kind->dataset->features + (size_t)row * DIGIT;
}

static double product(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < DIGIT; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The directions in which the training rows differ most, by orthogonal iteration. */
static void find_components(const struct kind *kind, double (*components)[DIGIT])
{
    enum { ROUNDS = 300 };
    static double spread[DIGIT][DIGIT];
    const struct split *split = &kind->trainer->split;
    memset(spread, 0, sizeof spread);
    for (int64_t row = 0; row < split->train_count; row++) {
        const float *x = row_at(kind, split->rows[row]);
        for (int i = 0; i < DIGIT; i++)
            for (int j = 0; j < DIGIT; j++)
                spread[i][j] += (double)x[i] * (double)x[j];
    }
    for (uint32_t c = 0; c < CODE; c++)
        for (uint32_t i = 0; i < DIGIT; i++)
            components[c][i] = (double)rng_normal((struct rng_key){.seed = 7}, c, i);
    for (int round = 0; round < ROUNDS; round++)
        for (int c = 0; c < CODE; c++) {
            double next[DIGIT];
            for (int i = 0; i < DIGIT; i++)
                next[i] = product(spread[i], components[c]);
            for (int before = 0; before < c; before++) {
                double along = product(next, components[before]);
                for (int i = 0; i < DIGIT; i++)
                    next[i] -= along * components[before][i];
            }
            double length = sqrt(product(next, next));
            for (int i = 0; i < DIGIT; i++)
                components[c][i] = next[i] / length;
        }
}

/* The mean squared error with which as many numbers as a code has can give the test rows back, when
 * they are linear in them: principal component analysis. */
static double linear_error(const struct kind *kind)
{
    static double components[CODE][DIGIT];
    const struct split *split = &kind->trainer->split;
    double left = 0;
    find_components(kind, components);
    for (int64_t row = 0; row < split->test_count; row++) {
        double x[DIGIT];
        for (int i = 0; i < DIGIT; i++)
            x[i] = (double)row_at(kind, split_test(split)[row])[i];
        left += product(x, x);
        for (int c = 0; c < CODE; c++)
            left -= product(x, components[c]) * product(x, components[c]);
    }
    return left / (double)(split->test_count * DIGIT);
}

/* On the same rows: without its relus it could not be better than that. */
ON_QUICK_BACKENDS(an_autoencoder_is_better_than_principal_components)
{
    struct kind kind;
    double learnt = learn(&kind, rig,
                          "input 64\nrecipe autoencoder\ndense 64\nrelu\ndense 8\ndense 64\nrelu\n"
                          "dense 64\nloss mse\noptimiser adam rate=0.003\n",
                          NULL, "digits", 32, 20);
    double linear = linear_error(&kind);
    CHECK(linear > 0.4 && linear < 0.5); /* of all rows eight components leave out 0.4485 */
    below(learnt, 0.8 * linear);
    close_kind(&kind);
}

static float *values_of(const struct params *params, const char *name)
{
    int32_t entry = params_find(params, name);
    CHECK(entry >= 0);
    return params_data(params, entry);
}

/* What a dense layer gives, from its weights [in][out]. */
static void dense(const struct params *params, const char *layer, const double *x, int in,
                  double *out, int units)
{
    char name[100];
    snprintf(name, sizeof name, "%s.weight", layer);
    const float *weight = values_of(params, name);
    snprintf(name, sizeof name, "%s.bias", layer);
    const float *bias = values_of(params, name);
    for (int j = 0; j < units; j++) {
        out[j] = (double)bias[j];
        for (int i = 0; i < in; i++)
            out[j] += x[i] * (double)weight[i * units + j];
    }
}

/* Two layers with a relu between them: the encoder, or the decoder, of VAE. */
static void two_layers(const struct params *params, const char *part, const double *x, int in,
                       double *out, int units)
{
    char first[50], second[50];
    double between[DIGIT];
    snprintf(first, sizeof first, "%s.dense1", part);
    snprintf(second, sizeof second, "%s.dense2", part);
    dense(params, first, x, in, between, DIGIT);
    for (int i = 0; i < DIGIT; i++)
        between[i] = fmax(between[i], 0);
    dense(params, second, between, DIGIT, out, units);
}

/* What the encoder gives for a row of the test: means, then logarithms of variances. */
static void encode(const struct kind *kind, int64_t row, double *x, double *moments)
{
    for (int i = 0; i < DIGIT; i++)
        x[i] = (double)row_at(kind, split_test(&kind->trainer->split)[row])[i];
    two_layers(&kind->model.params, "encoder", x, DIGIT, moments, 2 * CODE);
}

/* -ln p(x | code) + beta · KL(code | standard normal), where the code is at its mean. */
static double negative_elbo(const struct kind *kind, double beta)
{
    int64_t rows = kind->trainer->split.test_count;
    double sum = 0;
    for (int64_t row = 0; row < rows; row++) {
        double x[DIGIT], moments[2 * CODE], odds[DIGIT];
        encode(kind, row, x, moments);
        two_layers(&kind->model.params, "decoder", moments, CODE, odds, DIGIT);
        for (int i = 0; i < DIGIT; i++) {
            double chance = 1 / (1 + exp(-odds[i]));
            sum -= x[i] * log(chance) + (1 - x[i]) * log1p(-chance);
        }
        for (int i = 0; i < CODE; i++) {
            double mean = moments[i], log_variance = moments[CODE + i];
            sum += beta * (mean * mean + exp(log_variance) - log_variance - 1) / 2;
        }
    }
    return sum / (double)rows;
}

static void check_elbo(struct kind *kind, double beta, const char *where)
{
    struct score score = {0};
    CHECK_OK(kind->model.engine.backend->upload(kind->model.engine.instance, &kind->model.params));
    CHECK_OK(trainer_test(kind->trainer, &score));
    double expected = negative_elbo(kind, beta);
    if (!CHECK(fabs(score_loss(&score) - expected) < 1e-3 * expected))
        printf("    %s: found %g, by the formula %g\n", where, score_loss(&score), expected);
}

/* At two places where it does not matter what is drawn: a decoder that does not listen to the code,
 * and codes that hardly vary. */
ON_QUICK_BACKENDS(the_loss_of_a_vae_is_its_formula)
{
    struct kind kind;
    learn(&kind, rig, VAE("recipe vae beta=0.7"), NULL, "digits", 32, 3);
    struct params *params = &kind.model.params;
    CHECK_OK(engine_download(&kind.model.engine, params));
    float kept[CODE * DIGIT], *heard = values_of(params, "decoder.dense1.weight");
    memcpy(kept, heard, sizeof kept);
    memset(heard, 0, sizeof kept);
    check_elbo(&kind, 0.7, "a deaf decoder");
    memcpy(heard, kept, sizeof kept);
    float *weight = values_of(params, "encoder.dense2.weight");
    float *bias = values_of(params, "encoder.dense2.bias");
    for (int i = 0; i < DIGIT; i++)
        for (int code = 0; code < CODE; code++)
            weight[i * 2 * CODE + CODE + code] = 0;
    for (int code = 0; code < CODE; code++)
        bias[CODE + code] = -30;
    check_elbo(&kind, 0.7, "codes without variance");
    close_kind(&kind);
}

/* The mean square of a code's numbers over the test rows and what may be drawn: 1 of noise. */
static double code_square(struct kind *kind)
{
    int64_t rows = kind->trainer->split.test_count;
    double sum = 0;
    CHECK_OK(engine_download(&kind->model.engine, &kind->model.params));
    for (int64_t row = 0; row < rows; row++) {
        double x[DIGIT], moments[2 * CODE];
        encode(kind, row, x, moments);
        for (int i = 0; i < CODE; i++)
            sum += moments[i] * moments[i] + exp(moments[CODE + i]);
    }
    return sum / (double)(rows * CODE);
}

/* Codes of data must be like the noise that samples are made of; without their divergence they
 * would be anywhere. */
ON_QUICK_BACKENDS(a_vae_learns_codes_like_noise)
{
    struct kind kind;
    below(learn(&kind, rig, VAE("recipe vae"), NULL, "digits", 32, 10), 29);
    double square = code_square(&kind);
    close_kind(&kind);
    learn(&kind, rig, VAE("recipe vae beta=0"), NULL, "digits", 32, 10);
    double astray = code_square(&kind);
    close_kind(&kind);
    if (!CHECK(square > 0.7 && square < 1.4 && astray > 2))
        printf("    mean square %g; without the divergence %g\n", square, astray);
}

/* -a·v - Σ ln(1 + e^(b + v·W)): low where the machine expects visible units to be. */
static double free_energy(const struct params *params, const float *visible)
{
    const float *w = params_data(params, params_find(params, "dense1.weight"));
    const float *b = params_data(params, params_find(params, "dense1.bias"));
    const float *a = params_data(params, params_find(params, "dense1.visible"));
    int64_t in = params->entries[params_find(params, "dense1.weight")].shape.dim[0];
    int64_t out = params->entries[params_find(params, "dense1.weight")].shape.dim[1];
    double energy = 0;
    for (int64_t i = 0; i < in; i++)
        energy -= (double)(a[i] * visible[i]);
    for (int64_t j = 0; j < out; j++) {
        double sum = (double)b[j];
        for (int64_t i = 0; i < in; i++)
            sum += (double)(visible[i] * w[i * out + j]);
        energy -= log1p(exp(-fabs(sum))) + fmax(sum, 0);
    }
    return energy;
}

/* The share of rows of data that have less free energy than the same values at other places. */
static double told_apart(struct kind *kind)
{
    enum { ROWS_SEEN = 200 };
    const struct rng_key key = {.seed = 5};
    int apart = 0;
    CHECK_OK(engine_download(&kind->model.engine, &kind->model.params));
    for (uint32_t row = 0; row < ROWS_SEEN; row++) {
        const float *data = kind->dataset->features + (size_t)row * DIGIT;
        float noise[DIGIT];
        memcpy(noise, data, sizeof noise);
        for (uint32_t i = DIGIT; i > 1; i--) {
            uint32_t j = rng_below(key, row, i, i);
            float kept = noise[j];
            noise[j] = noise[i - 1];
            noise[i - 1] = kept;
        }
        apart += free_energy(&kind->model.params, data) < free_energy(&kind->model.params, noise);
    }
    return (double)apart / ROWS_SEEN;
}

/* Samples are digits of many classes: no farther from the mean of the nearest class than a noisy
 * digit is, and nearest to most of the ten. */
static void check_classes(struct kind *kind, const char *recipe)
{
    enum { SAMPLES = 100 };
    static float means[10 * DIGIT];
    struct dataset *data;
    int counts[10] = {0}, found = 0;
    double off, of_samples = 0, of_data = 0;
    memset(means, 0, sizeof means);
    class_means("digits", means);
    if (!CHECK_OK(dataset_open("digits", &(struct dataset_options){0}, &data)))
        return;
    for (int64_t row = 0; row < data->rows; row++) {
        nearest_class(means, data->features + row * DIGIT, DIGIT, &off);
        of_data += off / (double)data->rows;
    }
    dataset_free(data);
    float *samples = generate(kind, SAMPLES, -1);
    for (int i = 0; i < SAMPLES; i++) {
        counts[nearest_class(means, samples + (ptrdiff_t)i * DIGIT, DIGIT, &off)]++;
        of_samples += off / SAMPLES;
    }
    mem_free(samples);
    for (int c = 0; c < 10; c++)
        found += counts[c] > 0;
    if (!CHECK(found >= 8 && of_samples < 1.5 * of_data))
        printf("    %s: %d classes, %g from the nearest, where data is %g\n", recipe, found,
               of_samples, of_data);
}

ON_QUICK_BACKENDS(an_rbm_tells_data_from_noise_and_makes_digits)
{
    static const char net[] = "input 64\ndense 48\nsigmoid\noptimiser sgd rate=0.1\n";
    static const char *const recipes[] = {"rbm", "rbm:steps=3", "rbm:chains=40"};
    for (int i = 0; i < 3; i++) {
        struct kind kind;
        below(learn(&kind, rig, net, recipes[i], "digits", 32, 6), 0.12);
        double apart = told_apart(&kind);
        if (!CHECK(apart > 0.95))
            printf("    %s: %g of the rows\n", recipes[i], apart);
        check_classes(&kind, recipes[i]);
        close_kind(&kind);
    }
}

/* A machine that never leaves the half of its visible units that is on: in each half a hidden unit
 * that keeps it on and the other off. With all units off it stays dark. */
enum { HALF = 4, UNITS = 2 * HALF };

static void make_halves(struct params *params)
{
    CHECK_OK(params_fill_new(params)); /* or it would be done later, over these */
    float *weight = values_of(params, "dense1.weight"), *hidden = values_of(params, "dense1.bias");
    float *visible = values_of(params, "dense1.visible");
    for (int i = 0; i < UNITS; i++) {
        for (int h = 0; h < 2; h++)
            weight[2 * i + h] = i / HALF == h ? 20 : -20;
        visible[i] = -10;
    }
    hidden[0] = hidden[1] = -40;
}

/* How many of the samples have the first half on, and the second; a sample is of one. */
static void count_halves(struct model *model, int *first, int *second)
{
    enum { SAMPLES = 201 };
    static float samples[SAMPLES * UNITS];
    const struct generate_options options = {.rows = SAMPLES, .class_index = -1, .sweeps = 50};
    *first = *second = 0;
    if (!CHECK_OK(generate_rows(model, &options, samples)))
        return;
    for (int i = 0; i < SAMPLES; i++) {
        *first += samples[i * UNITS] > 0.5f;
        *second += samples[i * UNITS + HALF] > 0.5f;
    }
}

/* Samples go on from where the chains of the training ended, also out of its file; of a file of
 * weights alone they begin anywhere. From one place they would all end in the same half. */
ON_QUICK_BACKENDS(an_rbm_samples_from_its_chains)
{
    static const char net[] = "input 8\nrecipe rbm chains=2\ndense 2\nsigmoid\n";
    const struct course course = {.batch = 1, .epochs = 1};
    struct kind learnt, loaded;
    int first, second;
    if (!CHECK_OK(open_kind(&learnt, rig, net, NULL, "iris")) ||
        !CHECK_OK(open_kind(&loaded, rig, net, NULL, "iris")))
        return;
    make_halves(&learnt.model.params);
    float *chains = values_of(&learnt.model.params, "dense1.chains");
    for (int i = 0; i < HALF; i++)
        chains[i] = chains[UNITS + HALF + i] = 1;
    count_halves(&learnt.model, &first, &second);
    CHECK_EQUAL_INT(first, 101); /* in turn */
    CHECK_EQUAL_INT(second, 100);
    CHECK_OK(model_save(&learnt.model, &course, at("chains.safetensors")));
    CHECK_OK(model_load(&loaded.model, at("chains.safetensors")));
    count_halves(&loaded.model, &first, &second);
    CHECK_EQUAL_INT(first, 101);
    CHECK_EQUAL_INT(second, 100);
    CHECK_OK(model_save(&learnt.model, NULL, at("weights.safetensors")));
    CHECK_OK(model_load(&loaded.model, at("weights.safetensors")));
    count_halves(&loaded.model, &first, &second);
    CHECK(first > 5 && first < 60 && second > 5 && second < 60);
    close_kind(&learnt);
    close_kind(&loaded);
}

CHECK_MAIN
