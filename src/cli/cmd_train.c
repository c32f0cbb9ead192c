/* cmd_train.c: prony train NETWORK DATA: trains, shows how it goes, tests, saves. */
#include "base/clock.h"
#include "base/file.h"
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
    double rate, test, validate, memory;
    int64_t patience;
    const char *loss, *optimiser, *schedule, *backend, *label, *labels, *out, *resume, *until;
    bool numbers;
    double until_accuracy, until_loss; /* what `until` says */
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
    static const char *const names[] = {"batch", "rate", "loss",     "optimiser", "schedule",
                                        "seed",  "test", "validate", "until",     "patience"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_equal(name, names[i]))
            return true;
    return false;
}

/* "accuracy=0.95" or "loss=0.1" */
static enum status read_goal(struct train_flags *flags)
{
    static const char accuracy[] = "accuracy=", loss[] = "loss=";
    const char *until = flags->until;
    bool sound = false;
    if (text_starts(until, accuracy))
        sound = text_to_real(until + strlen(accuracy), &flags->until_accuracy) &&
                flags->until_accuracy > 0 && flags->until_accuracy <= 1;
    else if (text_starts(until, loss))
        sound = text_to_real(until + strlen(loss), &flags->until_loss) && flags->until_loss > 0;
    if (!sound)
        FAIL(STATUS_INPUT, "--until: found '%s', expected accuracy=A (0 to 1) or loss=L (above 0)",
             until);
    return STATUS_OK;
}

static enum status check_flags(struct train_flags *flags, const struct args *args)
{
    for (size_t i = 0; flags->resume && i < args->count; i++)
        if (args->list[i].given && fixes_course(args->list[i].name))
            FAIL(STATUS_INPUT,
                 "--%s cannot be given with --resume: a resumed training goes on as it began",
                 args->list[i].name);
    if (flags->until)
        TRY(read_goal(flags));
    if ((flags->until || flags->patience) && flags->validate == 0)
        flags->validate = 0.1;
    if (flags->validate + flags->test >= 1)
        FAIL(STATUS_INPUT,
             "--validate %g and --test %g leave no rows to learn from, expected them together "
             "below 1",
             flags->validate, flags->test);
    return STATUS_OK;
}

static enum status read_flags(struct cli *cli, struct train_flags *flags, int argc,
                              const char *const *argv, bool *help)
{
    struct arg list[] = {
        {"epochs", ARG_INT, &flags->epochs, "N", "passes over the data (100)", 1, 1e9, false},
        {"batch", ARG_INT, &flags->batch, "N", "samples per update (8)", 1, 1e6, false},
        {"rate", ARG_REAL, &flags->rate, "R", "learning rate (the optimiser's)", 1e-12, 1e6, false},
        {"optimiser", ARG_TEXT, &flags->optimiser, "NAME[:…]",
         "as adam or adam:beta1=0.8,decay=0.01 (the network's, or sgd)", 0, 0, false},
        {"schedule", ARG_TEXT, &flags->schedule, "NAME[:…]",
         "of the rate, as cosine:period=1000 (the network's, or constant)", 0, 0, false},
        {"loss", ARG_TEXT, &flags->loss, "NAME", "mse, cross_entropy … (the network's)", 0, 0,
         false},
        {"seed", ARG_INT, &flags->seed, "N", "of weights, split and order (1)", 0, 1e15, false},
        {"test", ARG_REAL, &flags->test, "SHARE", "of the rows, kept for the test (0.2)", 0, 0.99,
         false},
        {"validate", ARG_REAL, &flags->validate, "SHARE",
         "of the rows, held out to find the best epoch (0, or 0.1 to stop early)", 0, 0.99, false},
        {"until", ARG_TEXT, &flags->until, "GOAL",
         "accuracy=A or loss=L of the rows held out, then it stops", 0, 0, false},
        {"patience", ARG_INT, &flags->patience, "N",
         "epochs without a better held-out loss, then it stops", 1, 1e9, false},
        {"label", ARG_TEXT, &flags->label, "COLUMN", "its name or place from 1 (the last)", 0, 0,
         false},
        {"labels", ARG_TEXT, &flags->labels, "FILE", "of IDX or NPY data", 0, 0, false},
        {"memory", ARG_REAL, &flags->memory, "MB", "data beyond it is streamed (half of all)", 1e-3,
         1e9, false},
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
                    "prony train net.txt data.csv --label price --rate 0.01\n"
                    "prony train lenet mnist --until accuracy=0.985 --out lenet.safetensors\n",
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
    return check_flags(flags, &args);
}

static void print_score(const struct score *score)
{
    printf("loss %.4g", score_loss(score));
    if (score->has_right)
        printf(", accuracy %.1f %%", 100 * score_accuracy(score));
}

/* "epoch 12 of 200, loss 0.0123, accuracy 95.0 %, 1234 samples/s, 3 s left" */
static void print_progress(const struct training *training, bool epoch_done)
{
    const struct trainer *trainer = training->trainer;
    const struct course *course = &trainer->course;
    double seconds = (double)(clock_ns() - training->began_ns) / 1e9;
    double done = (double)training->samples;
    double left = (double)((course->epochs - course->epoch) * trainer->split.train_count -
                           course->score.samples);
    printf("epoch %" PRId64 " of %" PRId64 ", ", epoch_done ? course->epoch : course->epoch + 1,
           course->epochs);
    print_score(epoch_done ? &trainer->epoch : &course->score);
    if (epoch_done && trainer->held_out.samples) {
        printf(", held out: ");
        print_score(&trainer->held_out);
    }
    printf(", %.0f samples/s", done / seconds);
    if (!trainer_done(trainer))
        printf(", %.0f s left", left * seconds / done);
}

/* On a terminal one line that is written over; else a line for each tenth of the epochs. */
static void show(struct training *training, bool epoch_done)
{
    const struct course *course = &training->trainer->course;
    bool last = trainer_done(training->trainer);
    if (!training->terminal) {
        int64_t tenth = (course->epochs + 9) / 10;
        if (!epoch_done || (course->epoch % tenth && !last))
            return;
    } else {
        uint64_t now = clock_ns();
        if (now - training->shown_ns < slice_ns && !last)
            return;
        training->shown_ns = now;
        printf("\r\033[K");
    }
    print_progress(training, epoch_done);
    if (!training->terminal || last)
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
    struct text how = {0}; /* what the data was read with must be said again */
    if (flags->label)
        text_printf(&how, " --label %s", flags->label);
    if (flags->labels)
        text_printf(&how, " --labels %s", flags->labels);
    if (flags->numbers)
        text_add(&how, " --numbers");
    enum status status = status_fail(
        STATUS_INTERRUPTED, __FILE__, __LINE__,
        "interrupted after epoch %" PRId64 "; saved. To go on: prony train %s %s%s --resume %s "
        "--out %s",
        epoch, flags->network, flags->data, text_of(&how), flags->out, flags->out);
    text_free(&how);
    return status;
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
    int64_t steps = 1;
    training->began_ns = training->saved_ns = clock_ns();
    while (!trainer_done(training->trainer)) {
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
    const struct course *course = &training->trainer->course;
    struct score score;
    TRY(trainer_take_best(training->trainer));
    if (course->best_epoch)
        printf("best after epoch %" PRId64 ": held-out loss %.4g\n", course->best_epoch,
               course->best_loss);
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
    printf("%s on %s: %" PRIu64 " parameters; %" PRId64 " rows to learn from, ",
           trainer->model.network->name, dataset->name, params_count(&trainer->model.params),
           trainer->split.train_count);
    if (trainer->split.validate_count)
        printf("%" PRId64 " held out, ", trainer->split.validate_count);
    printf("%" PRId64 " for the test", trainer->split.test_count);
    if (dataset->class_count)
        printf("; %d classes", dataset->class_count);
    if (dataset->stream)
        printf("; streamed, %" PRId64 " rows at a time", dataset_window(dataset));
    printf("\nbackend %s, batch %d, rate %g, seed %" PRIu64 "\n", trainer->engine.backend->name,
           course->batch, course->rate, course->seed);
    if (course->epoch || course->step)
        printf("resumed after epoch %" PRId64 ", step %" PRId64 "\n", course->epoch, course->step);
}

/* Can it be saved there? Better asked before an hour's training than after. */
static enum status check_out(const char *path)
{
    struct file_writer writer;
    TRY(file_begin(&writer, path));
    file_abort(&writer);
    return STATUS_OK;
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
                   .test_share = flags->test,
                   .validate_share = flags->validate,
                   .until_accuracy = flags->until_accuracy,
                   .until_loss = flags->until_loss,
                   .patience = flags->patience},
    };
    struct training training = {.flags = flags, .terminal = isatty(STDOUT_FILENO)};
    if (flags->loss)
        TRY(loss_read(flags->loss, &options.loss));
    if (flags->optimiser)
        snprintf(options.course.optimiser, sizeof options.course.optimiser, "%s", flags->optimiser);
    if (flags->schedule)
        snprintf(options.course.schedule, sizeof options.course.schedule, "%s", flags->schedule);
    if (!flags->resume && !flags->epochs)
        options.course.epochs = 100;
    if (flags->out)
        TRY(check_out(flags->out));
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
                        &(struct dataset_options){.label = flags.label,
                                                  .labels = flags.labels,
                                                  .numbers = flags.numbers,
                                                  .memory_bytes = (uint64_t)(flags.memory * 1e6)},
                        &dataset));
    status = train(&flags, backend, network, dataset);
done:
    dataset_free(dataset);
    network_free(network);
    return status;
}
