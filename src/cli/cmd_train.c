/* cmd_train.c: prony train NETWORK DATA: trains, shows how it goes, tests, saves. */
#include "base/clock.h"
#include "cli/commands.h"
#include "train/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The backend is asked for as much work as takes so long; in between, Ctrl-C and the clock. */
static const uint64_t slice_ns = 100 * 1000 * 1000;
/* A checkpoint is due after a second, or later, so that saving costs at most a fiftieth. */
static const uint64_t save_after_ns = 1000 * 1000 * 1000;
enum { SAVE_SHARE = 50 };

struct train_flags {
    const char *network, *data; /* positional */
    int64_t epochs, batch, seed, threads;
    double rate, test;
    const char *optimiser, *backend, *label, *out, *resume;
    bool numbers;
};

/* What is needed while it runs. */
struct training {
    const struct train_flags *flags;
    struct trainer *trainer;
    bool terminal;
    uint64_t began_ns, shown_ns, saved_ns, saving_ns; /* saving: what the last save took */
    int64_t samples;                                  /* since it began */
};

/* Is it one of the settings that a training keeps from its beginning to its end? */
static bool fixes_course(const char *name)
{
    static const char *const names[] = {"batch", "rate", "optimiser", "seed", "test"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_equal(name, names[i]))
            return true;
    return false;
}

static enum status read_flags(struct cli *cli, struct train_flags *flags, int argc,
                              const char *const *argv, bool *help)
{
    struct arg list[] = {
        {"epochs", ARG_INT, &flags->epochs, "N", "passes over the data (100)", 1, 1e9, false},
        {"batch", ARG_INT, &flags->batch, "N", "samples per update (8)", 1, 1e6, false},
        {"rate", ARG_REAL, &flags->rate, "R", "learning rate (the network's, or 0.1)", 1e-12, 1e6,
         false},
        {"optimiser", ARG_TEXT, &flags->optimiser, "NAME", "the network's, or sgd", 0, 0, false},
        {"seed", ARG_INT, &flags->seed, "N", "of weights, split and order (1)", 0, 1e15, false},
        {"test", ARG_REAL, &flags->test, "SHARE", "of the rows, kept for the test (0.2)", 0, 0.99,
         false},
        {"label", ARG_TEXT, &flags->label, "COLUMN", "its name or place from 1 (the last)", 0, 0,
         false},
        {"numbers", ARG_FLAG, &flags->numbers, "",
         "labels are numbers, even if they look like classes", 0, 0, false},
        {"backend", ARG_TEXT, &flags->backend, "NAME", "where it runs (ref)", 0, 0, false},
        {"threads", ARG_INT, &flags->threads, "N", "(as many as there are cores)", 1, 64, false},
        {"out", ARG_TEXT, &flags->out, "FILE", "where the trained network is saved", 0, 0, false},
        {"resume", ARG_TEXT, &flags->resume, "FILE", "goes on with a saved training", 0, 0, false},
    };
    struct args args = {
        .command = "prony train",
        .usage = "NETWORK DATA [options]",
        .summary = "Trains a network on data and tests it on rows it has not seen.",
        .examples = "prony train small iris\n"
                    "prony train mlp:4-16-16-3 iris --epochs 100 --out iris.safetensors\n"
                    "prony train net.txt data.csv --label price --rate 0.01\n",
        .list = list,
        .count = sizeof list / sizeof *list,
        .least = 2,
        .most = 2,
        .positional = cli->positional,
    };
    TRY(cli_args(&args, argc, argv));
    *help = args.help;
    if (args.help)
        return STATUS_OK;
    flags->network = cli->positional[0];
    flags->data = cli->positional[1];
    for (size_t i = 0; flags->resume && i < args.count; i++)
        if (list[i].given && fixes_course(list[i].name))
            FAIL(STATUS_INPUT,
                 "--%s cannot be given with --resume: a resumed training goes on as it began",
                 list[i].name);
    return STATUS_OK;
}

/* "epoch 12 of 200, loss 0.0123, accuracy 95.0 %" */
static void print_score(const struct trainer *trainer, int64_t epoch, const struct score *score)
{
    printf("epoch %" PRId64 " of %" PRId64 ", loss %.4g", epoch, trainer->course.epochs,
           score_loss(score));
    if (score->has_right)
        printf(", accuracy %.1f %%", 100 * score_accuracy(score));
}

/* On a terminal one line that is written over; else a line for each tenth of the epochs. */
static void show(struct training *training, bool epoch_done)
{
    struct trainer *trainer = training->trainer;
    const struct course *course = &trainer->course;
    uint64_t now = clock_ns();
    double seconds = (double)(now - training->began_ns) / 1e9;
    if (!training->terminal) {
        int64_t tenth = (course->epochs + 9) / 10;
        if (!epoch_done || (course->epoch % tenth && course->epoch != course->epochs))
            return;
        print_score(trainer, course->epoch, &trainer->epoch);
        putchar('\n');
        fflush(stdout);
        return;
    }
    if (now - training->shown_ns < slice_ns && course->epoch < course->epochs)
        return;
    training->shown_ns = now;
    const struct score *score = epoch_done ? &trainer->epoch : &course->score;
    int64_t rows = trainer->split.train_count;
    double done = (double)training->samples;
    double left = (double)((course->epochs - course->epoch) * rows - course->score.samples);
    printf("\r\033[K");
    print_score(trainer, epoch_done ? course->epoch : course->epoch + 1, score);
    printf(", %.0f samples/s, %.0f s left", done / seconds, left * seconds / done);
    if (course->epoch == course->epochs)
        putchar('\n');
    fflush(stdout);
}

static enum status save(struct training *training)
{
    uint64_t start = clock_ns();
    TRY(trainer_save(training->trainer, training->flags->out));
    training->saved_ns = clock_ns();
    training->saving_ns = training->saved_ns - start;
    return STATUS_OK;
}

static bool save_is_due(const struct training *training)
{
    uint64_t since = clock_ns() - training->saved_ns;
    return training->flags->out && since > save_after_ns &&
           since > SAVE_SHARE * training->saving_ns;
}

static enum status stop(struct training *training)
{
    const struct train_flags *flags = training->flags;
    int64_t epoch = training->trainer->course.epoch;
    if (training->terminal)
        putchar('\n');
    if (!flags->out)
        FAIL(STATUS_INTERRUPTED, "interrupted after epoch %" PRId64 "; nothing saved (--out FILE)",
             epoch);
    TRY(save(training));
    FAIL(STATUS_INTERRUPTED,
         "interrupted after epoch %" PRId64 "; saved. To go on: prony train %s %s --resume %s "
         "--out %s",
         epoch, flags->network, flags->data, flags->out, flags->out);
}

/* One slice of work; *steps becomes what the next slice should be. */
static enum status run_slice(struct training *training, int64_t *steps, bool *epoch_done)
{
    struct trainer *trainer = training->trainer;
    const struct course *course = &trainer->course;
    int64_t epoch = course->epoch, step = course->step, samples = course->score.samples;
    uint64_t start = clock_ns();
    TRY(trainer_run(trainer, *steps));
    uint64_t elapsed = clock_ns() - start;
    *epoch_done = course->epoch > epoch;
    const struct score *score = *epoch_done ? &trainer->epoch : &course->score;
    training->samples += score->samples - samples;
    if (!isfinite(score_loss(score)))
        FAIL(STATUS_WRONG,
             "the loss is no longer a number in epoch %" PRId64 "; expected it to "
             "fall: try a --rate below %g",
             epoch + 1, course->rate);
    int64_t ran = (*epoch_done ? trainer->train.steps : course->step) - step;
    double fit = (double)ran * (double)slice_ns / (double)(elapsed + 1);
    *steps = fit < 1 ? 1 : fit > 1e9 ? 1000 * 1000 * 1000 : (int64_t)fit;
    return STATUS_OK;
}

static enum status run(struct training *training)
{
    const struct course *course = &training->trainer->course;
    int64_t steps = 1;
    training->began_ns = training->saved_ns = clock_ns();
    while (course->epoch < course->epochs) {
        bool epoch_done;
        if (cli_interrupted())
            return stop(training);
        TRY(run_slice(training, &steps, &epoch_done));
        show(training, epoch_done);
        if (save_is_due(training))
            TRY(save(training));
    }
    return STATUS_OK;
}

static enum status finish(struct training *training)
{
    struct score score;
    TRY(trainer_test(training->trainer, &score));
    if (training->flags->out) {
        TRY(save(training));
        printf("saved to %s\n", training->flags->out);
    }
    if (!score.samples)
        printf("no test: --test 0\n");
    else if (score.has_right)
        printf("test accuracy %.1f %%\n", 100 * score_accuracy(&score));
    else
        printf("test loss %.6g\n", score_loss(&score));
    return STATUS_OK;
}

static void introduce(const struct training *training)
{
    const struct trainer *trainer = training->trainer;
    const struct course *course = &trainer->course;
    const struct dataset *dataset = trainer->dataset;
    printf("%s on %s: %" PRIu64 " parameters; %" PRId64 " rows to learn from, %" PRId64
           " for the test",
           trainer->model.network->name, dataset->name, params_count(&trainer->model.params),
           trainer->split.train_count, trainer->split.test_count);
    if (dataset->class_count)
        printf("; %d classes", dataset->class_count);
    printf("\nbackend %s, batch %d, rate %g, seed %" PRIu64 "\n", trainer->engine.backend->name,
           course->batch, course->rate, course->seed);
    if (course->epoch || course->step)
        printf("resumed after epoch %" PRId64 ", step %" PRId64 "\n", course->epoch, course->step);
}

static enum status train(const struct train_flags *flags, const struct backend *backend,
                         const struct network *network, struct dataset *dataset)
{
    struct trainer_options options = {
        .backend = backend,
        .device = {.threads = (int)flags->threads, .isa = ISA_AVX512},
        .resume = flags->resume,
        .course = {.rate = flags->rate,
                   .batch = (int32_t)flags->batch,
                   .epochs = flags->epochs,
                   .seed = (uint64_t)flags->seed,
                   .test_share = flags->test},
    };
    struct training training = {.flags = flags, .terminal = isatty(STDOUT_FILENO)};
    if (flags->optimiser)
        snprintf(options.course.optimiser, sizeof options.course.optimiser, "%s", flags->optimiser);
    if (!flags->resume && !flags->epochs)
        options.course.epochs = 100;
    TRY(trainer_open(network, dataset, &options, &training.trainer));
    introduce(&training);
    enum status status = run(&training);
    if (status == STATUS_OK)
        status = finish(&training);
    trainer_close(training.trainer);
    return status;
}

enum status cmd_train(struct cli *cli, int argc, const char *const *argv)
{
    struct train_flags flags = {.batch = 8, .seed = 1, .test = 0.2, .backend = "ref"};
    struct network *network = NULL;
    struct dataset *dataset = NULL;
    const struct backend *backend;
    enum status status;
    bool help = false;
    TRY(read_flags(cli, &flags, argc, argv, &help));
    if (help)
        return STATUS_OK;
    TRY_OR(done, registry_find(cli->registry, flags.backend, &backend));
    TRY_OR(done, network_open(flags.network, &network));
    TRY_OR(done,
           dataset_open(flags.data,
                        &(struct dataset_options){.label = flags.label, .numbers = flags.numbers},
                        &dataset));
    status = train(&flags, backend, network, dataset);
done:
    dataset_free(dataset);
    network_free(network);
    return status;
}
