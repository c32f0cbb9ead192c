/* cmd_train.c: prony train NETWORK DATA: trains through the library (prony.h), shows how it goes,
 * tests, saves. */
#include "base/clock.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/screen.h"
#include "cli/show/curve_svg.h"
#include "cli/show/data_notes.h"
#include "cli/show/quality.h"
#include "cli/table/prose.h"
#include "cli/table/show_figure.h"
#include "cli/training/train_flags.h"
#include "cli/training/train_live.h"
#include "cli/training/train_orders.h"
#include "cli/training/workers.h"
#include "cli/unit_advice.h"
#include "library/prony_workers.h"
#include "prony.h"

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

/* What is needed while it runs. */
struct training {
    const struct train_flags *flags;
    const struct worker *worker;
    struct prony *network;
    const struct prony_data *data;
    struct prony_progress progress;
    int32_t stage; /* of the steps that were run last */
    struct progress bar;
    struct train_live live;                 /* of --store */
    struct curve curve;                     /* of --curve, and for the guide */
    uint64_t drawn_ns;                      /* when it was written last */
    uint64_t began_ns, saved_ns, saving_ns; /* saving: what the last save took */
    int64_t samples;                        /* since it began */
    bool tested;                            /* it is at its end */
};

static void add_score(struct text *out, const struct prony_score *score)
{
    text_printf(out, "loss %.4g", score->loss);
    if (score->accuracy >= 0)
        text_printf(out, ", accuracy %.1f %%", 100 * score->accuracy);
}

/* "stage 1 of 2, epoch 12 of 200" */
static void add_epoch(struct text *out, const struct training *training, bool epoch_done)
{
    const struct prony_progress *progress = &training->progress;
    if (progress->stages > 1)
        text_printf(out, "stage %d of %d, ", training->stage, progress->stages);
    text_printf(out, "epoch %" PRId64 " of %" PRId64, progress->epoch + !epoch_done,
                progress->epochs);
}

/* "loss 0.0123, accuracy 95.0 %" */
static void add_scores(struct text *out, const struct training *training, bool epoch_done)
{
    const struct prony_progress *progress = &training->progress;
    add_score(out, epoch_done ? &progress->last : &progress->so_far);
    if (epoch_done && progress->held_out.samples) {
        text_add(out, ", held out: ");
        add_score(out, &progress->held_out);
    }
}

/* ", 21.9 M samples/s" */
static void add_rate(struct text *out, const struct training *training)
{
    const double seconds = (double)(clock_ns() - training->began_ns) / 1e9;
    text_add(out, ", ");
    show_rate(out, (double)training->samples / seconds);
    text_add(out, " samples/s");
}

/* "small on iris: loss 0.1, …", where the guide shows what is under way. */
static void tell_guide(struct training *training, const char *scores, double left_s)
{
    const struct prony_progress *progress = &training->progress;
    struct text what = {0};
    text_printf(&what, "%s on %s: %s", training->flags->network, training->flags->data, scores);
    train_live_tell(&training->live, text_of(&what), progress->epoch, progress->epochs, left_s,
                    &training->curve);
    text_free(&what);
}

/* A line for each tenth of the epochs; how fast it is only where there is room. */
static void print_epoch(const struct training *training, const char *epoch, const char *scores,
                        double left_s)
{
    struct text line = {0};
    for (int rated = 1; rated >= 0; rated--) {
        text_clear(&line);
        text_printf(&line, "%s, %s", epoch, scores);
        if (rated)
            add_rate(&line, training);
        if (!training->progress.finished && left_s >= 1) {
            text_add(&line, ", ");
            progress_add_time(&line, left_s, true);
            text_add(&line, " left");
        }
        if (text_width(text_of(&line)) <= screen_width(stdout))
            break;
    }
    prose_print(text_of(&line), 2);
    text_free(&line);
}

/* The bar on a terminal; a line for each tenth of the epochs unless that is all a person sees. */
static void show(struct training *training, bool epoch_done)
{
    const struct prony_progress *progress = &training->progress;
    const bool drawn = screen_is_terminal(stderr);
    const bool lines = !drawn || !screen_is_terminal(stdout);
    const bool due = epoch_done && progress->epoch % ((progress->epochs + 9) / 10) == 0;
    const double rows = (double)progress->train_rows, all = (double)progress->epochs * rows;
    const double left =
        (double)(progress->epochs - progress->epoch) * rows - (double)progress->so_far.samples;
    const double each =
        (double)(clock_ns() - training->began_ns) * 1e-9 / fmax((double)training->samples, 1);
    struct text epoch = {0}, scores = {0};
    add_epoch(&epoch, training, epoch_done);
    add_scores(&scores, training, epoch_done);
    if (progress->finished)
        progress_end(&training->bar);
    if (progress->finished || (lines && due))
        print_epoch(training, text_of(&epoch), text_of(&scores), left * each);
    add_rate(&scores, training);
    if (!progress->finished && drawn && progress_due(&training->bar))
        progress_show(&training->bar, all > 0 ? 1 - left / all : 0, left * each, text_of(&epoch),
                      text_of(&scores));
    if (train_live_due(&training->live))
        tell_guide(training, text_of(&scores), left * each);
    text_free(&epoch);
    text_free(&scores);
}

static enum status save(struct training *training)
{
    uint64_t start = clock_ns();
    if (!training->tested) { /* else the weights are those that were tested */
        TRY(orders_give(training->worker->comm, ORDER_GATHER, 0));
        TRY(prony_gather(training->network));
    }
    TRY(prony_save(training->network, training->flags->out));
    training->saved_ns = clock_ns();
    training->saving_ns = training->saved_ns - start;
    return STATUS_OK;
}

static enum status draw(struct training *training)
{
    const struct train_flags *flags = training->flags;
    struct text title = {0};
    if (!flags->curve)
        return STATUS_OK;
    training->drawn_ns = clock_ns();
    text_printf(&title, "%s on %s", flags->network, flags->data);
    enum status status = text_done(&title);
    if (status == STATUS_OK)
        status = curve_write(&training->curve, flags->curve, text_of(&title),
                             training->progress.best_epoch);
    text_free(&title);
    return status;
}

/* The curve grows by an epoch; its file is written on the way, too. */
static enum status note_epoch(struct training *training)
{
    const struct prony_progress *progress = &training->progress;
    const struct prony_score *held_out = &progress->held_out;
    const struct curve_point point = {progress->epoch, progress->last.loss,
                                      held_out->samples ? held_out->loss : (double)NAN};
    if (!training->flags->curve && !training->live.store)
        return STATUS_OK;
    TRY(curve_add(&training->curve, point));
    return training->flags->curve && clock_ns() - training->drawn_ns > save_after_ns
               ? draw(training)
               : STATUS_OK;
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
    int64_t epoch = training->progress.epoch;
    progress_end(&training->bar);
    TRY(draw(training));
    if (flags->out)
        TRY(save(training));
    TRY(orders_give(training->worker->comm, ORDER_STOP, 0));
    if (!flags->out)
        FAIL(STATUS_INTERRUPTED, "interrupted after epoch %" PRId64 "; nothing saved (--out FILE)",
             epoch);
    struct text command = {0};
    train_flags_resume(flags, &command);
    enum status status = status_fail(STATUS_INTERRUPTED, __FILE__, __LINE__,
                                     "interrupted after epoch %" PRId64 "; saved. To go on: %s",
                                     epoch, text_of(&command));
    text_free(&command);
    return status;
}

/* One slice of work; *steps becomes what the next slice should be. */
static enum status run_slice(struct training *training, int64_t *steps, bool *epoch_done)
{
    struct prony_progress *progress = &training->progress;
    const struct prony_progress before = *progress;
    uint64_t start = clock_ns();
    training->stage = before.stage; /* progress->stage may already be the next one */
    TRY(orders_give(training->worker->comm, ORDER_RUN, *steps));
    TRY(prony_run(training->network, *steps, progress));
    uint64_t elapsed = clock_ns() - start;
    *epoch_done = progress->epoch > before.epoch;
    training->samples +=
        (*epoch_done ? progress->last : progress->so_far).samples - before.so_far.samples;
    int64_t ran = (*epoch_done ? progress->steps : progress->step) - before.step;
    double fit = (double)ran * (double)slice_ns / (double)(elapsed + 1);
    *steps = fit < 1 ? 1 : fit > 1e9 ? 1000 * 1000 * 1000 : (int64_t)fit;
    return STATUS_OK;
}

static enum status run(struct training *training)
{
    int64_t steps = 1;
    training->began_ns = training->saved_ns = clock_ns();
    progress_begin(&training->bar);
    while (!training->progress.finished) {
        bool epoch_done;
        if (worker_stopped(training->worker))
            return stop(training);
        if (screen_reader_left() && !training->flags->out) { /* nobody will know what it learnt */
            TRY(orders_give(training->worker->comm, ORDER_STOP, 0));
            return cli_flush();
        }
        TRY(run_slice(training, &steps, &epoch_done));
        show(training, epoch_done);
        if (epoch_done)
            TRY(note_epoch(training));
        if (save_is_due(training))
            TRY(save(training));
    }
    return STATUS_OK;
}

static enum status finish(struct training *training)
{
    const struct prony_progress *progress = &training->progress;
    struct prony_score test;
    double stale, stalest;
    if (prony_staleness(training->network, &stale, &stalest))
        printf("gradients were %.3g updates stale on average, at most %.0f\n", stale, stalest);
    if (progress->best_epoch)
        printf("best after epoch %" PRId64 ": held-out loss %.4g\n", progress->best_epoch,
               progress->best_loss);
    TRY(orders_give(training->worker->comm, ORDER_TEST, 0));
    TRY(prony_end(training->network, &test));
    training->tested = true;
    if (training->flags->out) {
        TRY(save(training));
        printf("saved to %s\n", training->flags->out);
    }
    if (training->flags->curve) {
        TRY(draw(training));
        printf("learning curve in %s\n", training->flags->curve);
    }
    if (test.samples)
        return quality_test(training->network, training->data, &test);
    printf(training->progress.test_rows ? "no test: no unit has room for the whole network\n"
                                        : "no test: no row was kept for it\n");
    return STATUS_OK;
}

/* "2 workers, 1 thread each, pipeline of 8 micro-batches, 1f1b" */
static void introduce_workers(const struct training *training)
{
    const struct train_flags *flags = training->flags;
    const int size = training->worker->size, micros = prony_micros(training->network);
    struct text line = {0};
    if (size == 1 && micros == 1)
        return;
    if (size > 1)
        text_printf(&line, "%d workers, %d %s each, ", size, flags->options.threads,
                    flags->options.threads == 1 ? "thread" : "threads");
    sharing_tell(&flags->sharing, micros, &line);
    prose_print(text_of(&line), 2);
    text_free(&line);
}

static void introduce(const struct training *training)
{
    const struct prony_progress *progress = &training->progress;
    const struct train_flags *flags = training->flags;
    struct text rows = {0};
    prose_printf(2, "%s on %s: %" PRId64 " parameters", flags->network, flags->data,
                 prony_parameters(training->network));
    text_printf(&rows, "%" PRId64 " rows to learn from, ", progress->train_rows);
    if (progress->labelled_rows && progress->labelled_rows < progress->train_rows)
        text_printf(&rows, "%" PRId64 " of them labelled, ", progress->labelled_rows);
    if (progress->held_out_rows)
        text_printf(&rows, "%" PRId64 " held out, ", progress->held_out_rows);
    text_printf(&rows, "%" PRId64 " for the test", progress->test_rows);
    if (prony_classes(training->network))
        text_printf(&rows, "; %d classes", prony_classes(training->network));
    if (progress->window)
        text_printf(&rows, "; streamed, %" PRId64 " rows at a time", progress->window);
    prose_print(text_of(&rows), 2);
    text_free(&rows);
    printf("backend %s, batch %d, rate %g, seed %" PRIu64 "\n", prony_backend(training->network),
           progress->batch, progress->rate, progress->seed);
    introduce_workers(training);
    if (progress->epoch || progress->step)
        printf("resumed after epoch %" PRId64 ", step %" PRId64 "\n", progress->epoch,
               progress->step);
}

/* Who did not choose where it runs may not know that there is better. */
static void advise(const struct cli *cli, const struct training *training)
{
    static const double WORTH = 1.1; /* times as fast */
    const struct prony_options *options = &training->flags->options;
    if (options->backend || options->recipe || options->loss || options->precision ||
        training->flags->course.resume)
        return;
    const double times =
        unit_advice(cli, training->flags->network, training->progress.batch, options->optimiser);
    if (times > WORTH)
        printf(
            "the GPU learns from %.3g × as many samples a second, as measured here: --unit gpu\n",
            times);
}

/* Can it be written there? Better asked before an hour's training than after. What is resumed may
 * be written over: it is the same training. */
static enum status check_out(const struct train_flags *flags, const char *out)
{
    struct file_writer writer;
    if (!out)
        return STATUS_OK;
    TRY(cli_keep_network(out, flags->network));
    TRY(cli_keep_data(out, flags->data));
    TRY(file_check_apart(out, flags->data_options.labels));
    TRY(file_begin(&writer, out));
    file_abort(&writer);
    return STATUS_OK;
}

static enum status check_outs(const struct train_flags *flags)
{
    TRY(check_out(flags, flags->out));
    TRY(check_out(flags, flags->curve));
    if (flags->curve && flags->out && text_equal(flags->curve, flags->out))
        FAIL(STATUS_INPUT, "--curve: found '%s', the file of --out, expected another",
             flags->curve);
    return flags->curve ? file_check_apart(flags->curve, flags->course.resume) : STATUS_OK;
}

static enum status train(const struct cli *cli, const struct train_flags *flags,
                         const struct worker *worker, struct prony *network,
                         struct prony_data *data)
{
    struct training training = {.flags = flags, .worker = worker, .network = network, .data = data};
    enum status status;
    if (worker->rank == 0)
        TRY(check_outs(flags));
    TRY(prony_begin(network, data, &flags->course));
    if (worker->rank > 0)
        return orders_follow(worker->comm, network);
    data_notes_print_more(data, flags->noted);
    TRY(prony_run(network, 0, &training.progress));
    introduce(&training);
    advise(cli, &training);
    TRY_OR(done, train_live_open(&training.live, flags->store));
    TRY_OR(done, run(&training));
    if (training.progress.finished)
        status = finish(&training);
done:
    train_live_close(&training.live);
    curve_free(&training.curve);
    return status;
}

/* What mlp:auto means for the data; what was not said is chosen with it. A tenth of the rows is
 * held out, which says when it is enough. */
static enum status choose_network(const struct cli *cli, struct train_flags *flags,
                                  struct prony_data *data)
{
    enum { EPOCHS = 1000, PATIENCE = 40, BATCHES = 32, BATCH_LEAST = 8, BATCH_MOST = 128 };
    struct prony_course *course = &flags->course;
    const int64_t rows = prony_data_rows(data);
    TRY(prony_data_network(data, &flags->network));
    if (course->resume)
        return STATUS_OK;
    if (!flags->options.optimiser)
        flags->options.optimiser = "adam";
    if (!args_given(cli->args, &cli->found, "batch")) {
        course->batch = BATCH_LEAST;
        while (course->batch < BATCH_MOST && course->batch < rows / BATCHES)
            course->batch *= 2;
    }
    if (!args_given(cli->args, &cli->found, "epochs"))
        course->epochs = EPOCHS;
    if (!args_given(cli->args, &cli->found, "patience"))
        course->patience = PATIENCE;
    if (course->validate == 0)
        course->validate = 0.1;
    prose_printf(2, "mlp:auto is %s, %s, %s", flags->network,
                 prony_data_classes(data, 0) ? "cross-entropy" : "mean squared error",
                 flags->options.optimiser);
    prose_printf(2,
                 "%.3g %% of the rows are held out; it stops after %" PRId64
                 " epochs without a lower loss",
                 100 * course->validate, course->patience);
    return STATUS_OK;
}

/* What a worker is given. */
struct work {
    struct cli *cli;
    struct train_flags *flags;
};

/* What one worker does, or the only one. */
static enum status run_worker(const struct worker *worker, void *context)
{
    const struct work *work = context;
    const struct cli *cli = work->cli;
    struct train_flags *flags = work->flags;
    struct prony *network = NULL;
    struct prony_data *data = NULL;
    enum status status = STATUS_OK;
    const bool automatic = text_equal(flags->network, "mlp:auto");
    TRY(sharing_check_servers(&flags->sharing, worker->size));
    TRY(cli_unit(cli, flags->unit, &flags->options.backend)); /* CUDA does not outlive a fork */
    if (worker->size > 1 && !flags->options.threads)
        flags->options.threads = worker_threads(worker->local);
    flags->shared_threads = worker->size > 1 && !args_given(cli->args, &cli->found, "threads");
    if (!automatic)
        TRY_OR(done, prony_open(flags->network, &flags->options, &network));
    TRY_OR(done, prony_data_open(flags->data, &flags->data_options, &data));
    flags->noted = data_notes_print(flags->data, data);
    if (automatic) {
        TRY_OR(done, choose_network(cli, flags, data));
        TRY_OR(done, prony_open(flags->network, &flags->options, &network));
    }
    flags->sharing.comm = worker->comm;
    prony_share(network, &flags->sharing);
    status = train(cli, flags, worker, network, data);
done:
    prony_close(network);
    prony_data_close(data);
    return status;
}

static enum status run_train(struct cli *cli, void *given)
{
    struct train_flags *flags = given;
    struct work work = {cli, flags};
    TRY(cli_shape(cli, flags->shape));
    flags->network = cli->found.positional[0];
    flags->data = cli->found.positional[1];
    flags->options.recompute = flags->recompute;
    flags->data_options.numbers = flags->numbers;
    flags->data_options.classes = flags->classes;
    flags->data_options.drop_rows = flags->drop_rows;
    flags->data_options.memory_bytes = (uint64_t)(flags->memory * 1e6);
    TRY(train_flags_check(cli, flags));
    return train_flags_lost(
        flags, workers_run(cli->folder, flags->workers, flags->worker_patience, run_worker, &work));
}

#define AT(field) ARG(struct train_flags, field)
static const struct arg rows[] = {
#define SETTING(name, field, low, high, otherwise, meaning, help)                                  \
    {ARG_NAMED(name, struct train_flags, field), meaning, help, low, high, otherwise},
#define PRONY_LEARNS(type, name, low, high, otherwise, meaning, help)                              \
    SETTING(#name, options.name, low, high, otherwise, meaning, help)
#define PRONY_COURSE(type, name, key, usual, low, high, otherwise, meaning, help)                  \
    SETTING(#name, course.name, low, high, otherwise, meaning, help)
#define PRONY_PART(type, name, key, low, high, help)
#define PRONY_SPOKEN(name, meaning, help) {AT(name), meaning, help},
#include "prony_settings.def"
    {ARG_NAMED("weight-bits", struct train_flags, options.weight_bits), "N",
     "with --precision int8: it gets used to weights of 8, 4 or 2 bits (8)", ARG_FROM(2, 8)},
    {CLI_LABEL(struct train_flags)},
    {CLI_TARGET(struct train_flags)},
    {CLI_LABELS(struct train_flags)},
    {CLI_MEMORY(struct train_flags)},
    {AT(numbers), NULL, "labels are numbers, even if they look like classes"},
    {AT(classes), NULL, "labels are classes, even if they look like numbers"},
    {ARG_NAMED("drop", struct train_flags, data_options.drop), "COLUMN,…",
     "columns of CSV to leave out"},
    {ARG_NAMED("encode", struct train_flags, data_options.encode), "COLUMN,…",
     "text columns of CSV; COLUMN=onehot or COLUMN=code says how (by the number of texts)"},
    {ARG_NAMED("fill", struct train_flags, data_options.fill), "VALUE",
     "fill gaps of CSV: mean, median, zero or a number"},
    {ARG_NAMED("drop-rows", struct train_flags, drop_rows), NULL,
     "leave out rows of CSV that have gaps"},
    {CLI_BACKEND(struct train_flags)},
    {CLI_UNIT(struct train_flags)},
    {CLI_THREADS(struct train_flags)},
    {CLI_PRECISION(struct train_flags)},
    {AT(recompute), NULL,
     "keep fewer activations and compute the others again: less memory, the same results"},
    {AT(workers), "N", "train by N processes here (1; under mpirun its ranks)", ARG_FROM(1, 256)},
    {AT(parallelism), "NAME",
     "how workers share the training: data, model, pipeline, data-model, data-pipeline, server, "
     "async-server (data)"},
    {AT(copies), "N",
     "with data-model, data-pipeline: copies of the network, each for as many workers (as many as "
     "may be)",
     ARG_FROM(2, 128)},
    {AT(servers), "N",
     "how many workers keep and update the parameters, in the place of learning (1)",
     ARG_FROM(1, 255)},
    {ARG_NAMED("micro-batches", struct train_flags, micro_batches), "N",
     "into which a pipeline cuts every batch (up to four for each worker)", ARG_FROM(1, 1e6)},
    {ARG_NAMED("pipeline", struct train_flags, pipeline), "NAME",
     "order of a pipeline's turns: 1f1b (the usual one), or gpipe: all forwards first"},
    {ARG_NAMED("average-every", struct train_flags, average_every), "N",
     "average the parameters of all workers every N steps, not their gradients in each",
     ARG_FROM(1, 1e6)},
    {ARG_NAMED("sync-norm", struct train_flags, sync_norm), NULL,
     "let batch_norm see the batch of all workers, not each its own"},
    {ARG_NAMED("worker-patience", struct train_flags, worker_patience), "SECONDS",
     "end all when a worker does not answer for so long (60)", ARG_FROM(0.1, 1e6)},
    {AT(out), "FILE", "save the trained network to this file"},
    {AT(curve), "FILE.svg", "draw the loss of every epoch into this SVG"},
    {AT(store), "FILE", "show the training live in the guide of this store"},
    {ARG_NAMED("resume", struct train_flags, course.resume), "FILE", "go on with a saved training"},
    {CLI_SHAPE(struct train_flags)},
    ARG_END,
};

const struct command cmd_train = {
    .summary = "train a network on data",
    .run = run_train,
    .bytes = sizeof(struct train_flags),
    .args = {.command = "prony train",
             .usage = "NETWORK DATA [options]",
             .summary = "Trains a network on data and tests it on rows it has not seen.",
             .examples =
                 "prony train small iris\n"
                 "prony train mlp:4-16-16-3 iris --epochs 100 --out iris.safetensors\n"
                 "prony train mlp:auto house.csv --drop id --fill median --out house.model\n"
                 "prony train net.txt data.csv --target price --rate 0.01\n"
                 "prony train words.net tokens.csv --label 9..16\n"
                 "prony train mlp:64-16-64 digits --recipe autoencoder\n"
                 "prony train vae.net rows.csv --label none\n"
                 "prony train lenet mnist --until accuracy=0.985 --out lenet.safetensors\n"
                 "prony train lenet mnist --batch 64 --workers 2 --out lenet.safetensors\n"
                 "prony train lenet mnist --batch 64 --workers 2 --parallelism pipeline\n",
             .often =
                 "epochs batch rate optimiser target fill drop until threads workers out resume",
             .lists = {{rows, 0}},
             .least = 2,
             .most = 2},
};
