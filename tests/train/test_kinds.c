/* test_kinds.c: each recipe learns, at a small scale, what it is for; and a training that is
 * resumed in the middle of any of them ends with the same bits. What some of them have
 * learnt is compared with what is known otherwise in test_kinds_known.c. */
#include "base/file.h"
#include "folder.h"
#include "kind.h"

ON_QUICK_BACKENDS(a_deconvolutional_decoder_gives_its_input_back)
{
    struct kind kind;
    below(learn(&kind, rig,
                "input 1x8x8\nrecipe autoencoder\nconv 8 3 pad=1\nrelu\npool = max_pool 2\n"
                "conv 8 3 pad=1\nup = relu\nback = max_unpool < up, pool\n"
                "conv_transpose 1 3 pad=1\nloss mse\noptimiser adam rate=0.01\n",
                NULL, "digits", 32, 4),
          0.5);
    close_kind(&kind);
}

/* On a condition the samples are of the class that was asked for. */
ON_QUICK_BACKENDS(a_vae_generates_on_a_condition)
{
    enum { SAMPLES = 200, COLUMNS = 64 };
    static float means[10 * COLUMNS];
    struct kind kind;
    memset(means, 0, sizeof means);
    below(learn(&kind, rig, VAE("recipe vae condition=1"), NULL, "digits", 32, 15), 25);
    class_means("digits", means);
    float *samples = generate(&kind, SAMPLES, -1);
    int right = 0;
    double off;
    for (int i = 0; i < SAMPLES; i++)
        right += nearest_class(means, samples + (ptrdiff_t)i * COLUMNS, COLUMNS, &off) == i % 10;
    if (!CHECK(right > SAMPLES / 2))
        printf("    %d of %d samples are of their class\n", right, SAMPLES);
    mem_free(samples);
    samples = generate(&kind, 10, 7);
    right = 0;
    for (int i = 0; i < 10; i++)
        right += nearest_class(means, samples + (ptrdiff_t)i * COLUMNS, COLUMNS, &off) == 7;
    CHECK(right >= 5);
    mem_free(samples);
    close_kind(&kind);
}

/* Five layers of sigmoids hardly learn from a random start. */
ON_QUICK_BACKENDS(a_dbn_beats_a_random_start)
{
#define DEEP(recipe)                                                                               \
    "input 64\n" recipe                                                                            \
    "dense 64\nsigmoid\ndense 64\nsigmoid\ndense 64\nsigmoid\ndense 64\nsigmoid\ndense 10\n"       \
    "loss cross_entropy\noptimiser sgd rate=0.2\n"
    struct kind deep, plain;
    double pretrained =
        learn(&deep, rig, DEEP("recipe dbn pretrain=2 gentle=0.5\n"), NULL, "digits", 16, 14);
    double random = learn(&plain, rig, DEEP(""), NULL, "digits", 16, 14);
    if (!CHECK(pretrained > random + 0.1))
        printf("    %g after pre-training, %g from a random start\n", pretrained, random);
    CHECK_EQUAL_INT(deep.trainer->stage, 4);
    close_kind(&deep);
    close_kind(&plain);
}

/* A hundred labelled digits among 1,438: the machines learn from all of them what digits are. The
 * random start has the rate that is best for it (docs/boltzmann.md has the table). */
ON_QUICK_BACKENDS(a_dbn_learns_more_from_few_labels)
{
#define SIGMOIDS                                                                                   \
    "input 64\ndense 64\nsigmoid\ndense 64\nsigmoid\ndense 64\nsigmoid\ndense 10\n"                \
    "loss cross_entropy\n"
    static const char *const starts[] = {SIGMOIDS "optimiser sgd rate=3\n",
                                         SIGMOIDS "optimiser adam rate=0.01\n"};
    struct kind deep, plain;
    labelled = 100;
    double pretrained = learn(&deep, rig, "digits_dbn", NULL, "digits", 10, 60);
    CHECK_EQUAL_INT(deep.trainer->train.rows, 100);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        double random = learn(&plain, rig, starts[i], NULL, "digits", 10, 60);
        if (!CHECK(pretrained > random + 0.02))
            printf("    %g after pre-training, %g from a random start\n", pretrained, random);
        close_kind(&plain);
    }
    labelled = 0;
    close_kind(&deep);
}

/* Where the noise is taken to: the modes of the ring, all of them. */
ON_QUICK_BACKENDS(a_gan_finds_the_ring)
{
    enum { SAMPLES = 500, MODES = 8 };
    struct kind kind;
    int near = 0, found = 0;
    int64_t counts[MODES] = {0};
    learn(&kind, rig,
          "recipe gan\noptimiser adam rate=0.002 beta1=0.5\nnetwork generator\ninput 8\ndense 48\n"
          "relu\ndense 48\nrelu\ndense 2\nnetwork discriminator\ninput 2\ndense 64\n"
          "leaky_relu 0.2\ndense 64\nleaky_relu 0.2\ndense 1\nloss binary_cross_entropy\n",
          NULL, "ring:4000", 128, 40);
    float *samples = generate(&kind, SAMPLES, -1);
    for (int i = 0; i < SAMPLES; i++) {
        double x = (double)samples[2 * i], y = (double)samples[2 * i + 1];
        int mode = (int)lround(atan2(y, x) / (2 * acos(-1) / MODES) + MODES) % MODES;
        double angle = mode * 2 * acos(-1) / MODES;
        if (hypot(x - 2 * cos(angle), y - 2 * sin(angle)) < 0.6) {
            near++;
            counts[mode]++;
        }
    }
    for (int m = 0; m < MODES; m++)
        found += counts[m] > SAMPLES / 100;
    if (!CHECK(found == MODES && near > SAMPLES / 2))
        printf("    %d modes, %d of %d samples near one\n", found, near, SAMPLES);
    mem_free(samples);
    close_kind(&kind);
}

/* Of twelve numbers two are marked: their sum. Guessing the mean gives 0.167. */
ON_QUICK_BACKENDS(an_lstm_adds)
{
    struct kind kind;
    below(learn(&kind, rig,
                "input 12x2\nlstm 16 output=last\ndense 1\nloss mse\noptimiser adam rate=0.02 "
                "clip=1\n",
                NULL, "adding:1000x12", 25, 12),
          0.03);
    close_kind(&kind);
}

ON_QUICK_BACKENDS(a_convolutional_network_reads_digits)
{
    struct kind kind;
    double accuracy = learn(&kind, rig, "digits_dcn", NULL, "digits", 16, 6);
    if (!CHECK(accuracy > 0.95))
        printf("    accuracy %g\n", accuracy);
    close_kind(&kind);
}

/* A sequence to a sequence: at each step, was there a 1 an odd number of times? */
ON_QUICK_BACKENDS(recurrent_networks_learn_a_sequence)
{
    enum { LENGTH = 6, ROWS = 1 << LENGTH };
    struct text text = {0};
    struct kind kind;
    for (int row = 0; row < 4 * ROWS; row++) {
        for (int t = 0; t < LENGTH; t++)
            text_printf(&text, "%d,", row >> t & 1);
        for (int t = 0, odd = 0; t < LENGTH; t++) {
            odd ^= row >> t & 1;
            text_printf(&text, "%d%c", odd, t + 1 < LENGTH ? ',' : '\n');
        }
    }
    const char *path = at("parity.csv");
    CHECK_OK(file_write(path, text_of(&text), text.length));
    struct dataset_options options = {.label = "7..12"};
    const struct model_options model = {.seed = 1};
    static const char *const cells[] = {"rnn", "lstm", "gru"};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        char net[100];
        struct score score = {.samples = 1};
        if (!check_wants(cells[i]))
            continue;
        snprintf(net, sizeof net,
                 "input 6x1\n%s 16\ndense 2\nloss cross_entropy\noptimiser adam rate=0.02\n",
                 cells[i]);
        kind = (struct kind){0};
        if (CHECK_OK(network_parse("parity", net, strlen(net), &kind.network)) &&
            CHECK_OK(dataset_open(path, &options, &kind.dataset)) &&
            CHECK_OK(model_open(&kind.model, kind.network, rig->backend, &one_thread, &model)) &&
            CHECK_OK(begin(&kind, 16, 40, NULL)) && CHECK_OK(run_all(&kind)) &&
            CHECK_OK(trainer_test(kind.trainer, &score)) && !CHECK(score_accuracy(&score) > 0.95))
            printf("    %s: accuracy %g\n", cells[i], score_accuracy(&score));
        close_kind(&kind);
    }
    text_free(&text);
}

/* Stopped in the middle of an epoch, saved, resumed by another model: the same bits. */
ON_QUICK_BACKENDS(resumed_trainings_end_with_the_same_bits)
{
    static const struct {
        const char *net, *data;
        int64_t epochs;
    } rows[] = {
        {VAE("recipe vae condition=1"), "digits", 2},
        {"input 64\nrecipe rbm chains=10\ndense 16\nsigmoid\n", "digits", 2},
        {"input 64\nrecipe dbn pretrain=1\ndense 16\nsigmoid\ndense 12\nsigmoid\ndense 10\n"
         "optimiser adam\n",
         "digits", 4},
        {"gan", "ring:500", 2},
    };
    const char *path = at("half.safetensors");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kind whole, half, rest;
        if (!check_wants(rows[i].data))
            continue;
        bool ok = CHECK_OK(open_kind(&whole, rig, rows[i].net, NULL, rows[i].data)) &&
                  CHECK_OK(begin(&whole, 48, rows[i].epochs, NULL)) && CHECK_OK(run_all(&whole));
        ok &= CHECK_OK(open_kind(&half, rig, rows[i].net, NULL, rows[i].data)) &&
              CHECK_OK(begin(&half, 48, rows[i].epochs, NULL)) &&
              CHECK_OK(trainer_run(half.trainer, 1000000)) && /* an epoch and three steps */
              CHECK_OK(trainer_run(half.trainer, 3)) &&
              CHECK_OK(model_save(&half.model, &half.trainer->course, path));
        ok &= CHECK_OK(open_kind(&rest, rig, rows[i].net, NULL, rows[i].data)) &&
              CHECK_OK(begin(&rest, 48, 0, path)) && CHECK_OK(run_all(&rest));
        if (ok) {
            CHECK_OK(engine_download(&whole.model.engine, &whole.model.params));
            CHECK_OK(engine_download(&rest.model.engine, &rest.model.params));
            const struct params *a = &whole.model.params, *b = &rest.model.params;
            CHECK_EQUAL_INT(a->count, b->count);
            for (int32_t e = 0; e < a->count; e++)
                if (!CHECK(
                        !memcmp(params_data(a, e), params_data(b, e), (size_t)a->entries[e].bytes)))
                    printf("    row %zu: %s differs\n", i, a->entries[e].name);
        }
        close_kind(&whole);
        close_kind(&half);
        close_kind(&rest);
    }
}

static void check_refused(const struct rig *rig, const char *text, const char *recipe,
                          const char *message)
{
    struct kind kind;
    CHECK_EQUAL_INT(open_kind(&kind, rig, text, recipe, "digits"), STATUS_INPUT);
    if (!CHECK(strstr(status_message(), message) != NULL))
        printf("    found: %s\n", status_message());
    close_kind(&kind);
}

ON_QUICK_BACKENDS(says_what_a_recipe_needs)
{
    check_refused(rig, "input 4\ndense 4\n", "vae",
                  "expected a file with the networks encoder decoder");
    check_refused(rig, "input 4\ndense 4\n", "rmb",
                  "there is no recipe 'rmb'; there are: feed_forward");
    check_refused(rig, "input 4\ndense 4\n", "rbm", "expected those of an rbm");
    check_refused(rig, "input 4\nrecipe rbm steps=0\ndense 4\nsigmoid\n", NULL,
                  "kind.net:2:8: steps is 0, expected a whole number from 1 to 1000");
    check_refused(rig, "input 4\nrecipe autoencoder\ndense 3\n", NULL,
                  "kind.net:3:1: found 3 outputs, expected 4: as many as inputs");
    check_refused(rig, "recipe vae\nnetwork encoder\ninput 4\ndense 4\n", NULL,
                  "found no network 'decoder'");
    check_refused(rig,
                  "recipe vae\nnetwork encoder\ninput 4\ndense 5\nnetwork decoder\ninput 2\n"
                  "dense 4\n",
                  NULL, "kind.net:4:1: found 5 outputs, expected 4: two for each of the decoder's");
    check_refused(rig,
                  "recipe vae\nnetwork encoder\ninput 4\ndense 4\nnetwork decoder\ninput 2\n"
                  "dense 4\nrelu\ndense 3\n",
                  NULL, "kind.net:9:1: found 3 outputs, expected 4: as many as the encoder's");
    check_refused(rig,
                  "recipe gan\nnetwork generator\ninput 4\ndense 5\nnetwork discriminator\n"
                  "input 2\ndense 1\n",
                  NULL,
                  "kind.net:4:1: found 5 outputs, expected 2: as many as the discriminator's");
    check_refused(rig, "input 4\nrecipe rbm\ndense 4 bias=0\nsigmoid\n", NULL,
                  "kind.net:3:1: found bias=0, expected a machine whose units have biases");
    check_refused(rig, "network a\ninput 4\ndense 5\nnetwork b\ninput 2\ndense 4\n", NULL,
                  "kind.net holds several networks: a, b; expected one of them");
}

#define GAN(before, behind)                                                                        \
    before "network generator\ninput 4\ndense 2\nnetwork discriminator\ninput 2\n" behind

/* A network that could not do what it says is refused, with the line that is too much. */
ON_QUICK_BACKENDS(refuses_what_contradicts_a_recipe)
{
    check_refused(rig, GAN("recipe gan\n", "dense 3\n"), NULL,
                  "kind.net:7:1: found 3 outputs, expected 1: the discriminator's");
    check_refused(rig, GAN("recipe gan\n", "dense 1\nsigmoid\n"), NULL,
                  "kind.net:8:1: found a sigmoid before the loss binary_cross_entropy");
    check_refused(rig, GAN("recipe gan\n", "dense 1\nloss mse\n"), NULL,
                  "kind.net:8:1: found the loss mse, expected none");
    check_refused(
        rig, GAN("recipe gan\n", "dense 1\nnetwork third\ninput 2\ndense 1\n"), NULL,
        "kind.net:8:1: found the network 'third', expected only the networks of the recipe gan");
    check_refused(rig, GAN("", "recipe gan\ndense 1\n"), NULL,
                  "kind.net:6:1: found the recipe gan behind a line 'network', expected it before");
    check_refused(rig, "input 4\ndense 1\nsigmoid\nloss binary_cross_entropy\n", NULL,
                  "kind.net:3:1: found a sigmoid before the loss");
    check_refused(rig,
                  "input 4\nrecipe autoencoder\ndense 4\nsigmoid\n"
                  "loss binary_cross_entropy\n",
                  NULL, "kind.net:4:1: found a sigmoid before the loss");
    check_refused(rig, "input 4\nrecipe rbm\ndense 4\nsigmoid\nloss cross_entropy\n", NULL,
                  "kind.net:5:1: found the loss cross_entropy, expected none");
    check_refused(rig,
                  "recipe vae\nnetwork encoder\ninput 4\ndense 4\nnetwork decoder\ninput 2\n"
                  "dense 4\noptimiser adam\n",
                  NULL, "kind.net:8:1: found the optimiser of one network, expected it before");
    check_refused(rig,
                  "recipe vae\nnetwork encoder\ninput 4\ndense 4\nloss mse\nnetwork decoder\n"
                  "input 2\ndense 4\n",
                  NULL, "kind.net:5:1: found the loss of one network, expected it before");
    check_refused(rig,
                  "recipe vae\nloss binary_cross_entropy\nnetwork encoder\ninput 4\ndense 4\n"
                  "network decoder\ninput 2\ndense 4\nsigmoid\n",
                  NULL, "kind.net:9:1: found a sigmoid before the loss");
    check_refused(rig,
                  "input 4\nrecipe dbn\ndense 4\nsigmoid\ndropout 0.1\ndense 4\nsigmoid\n"
                  "dense 2\n",
                  NULL, "kind.net:5:1: found dropout in a dbn");
    check_refused(rig,
                  "input 4\nrecipe dbn\ndense 4\nsigmoid\nbatch_norm\ndense 4\nsigmoid\n"
                  "dense 2\n",
                  NULL, "kind.net:5:1: found batch_norm in a dbn");
    check_refused(rig, "input 4\nrecipe dbn\na = dense 4\nsigmoid\ndense 4 < a\nsigmoid\ndense 2\n",
                  NULL, "kind.net:5:1: found a layer with '<' in a dbn");
}

/* Behind the last machine there may be anything, also a sigmoid for the outputs. */
ON_QUICK_BACKENDS(a_dbn_ends_as_it_likes)
{
    struct kind kind;
    CHECK_OK(open_kind(&kind, rig,
                       "input 4\nrecipe dbn\ndense 4\nsigmoid\ndropout 0.1\ndense 1\nsigmoid\n"
                       "loss mse\n",
                       NULL, "digits"));
    close_kind(&kind);
}

CHECK_MAIN
