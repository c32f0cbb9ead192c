/* target.c: see target.h. */
#include "bench/sweep/target.h"

#include "base/clock.h"
#include "base/text.h"
#include "bench/job/describe.h"
#include "data/dataset.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

enum { EPOCHS_MOST = 1000000 };
static const double HELD_OUT = 0.2;

enum status target_parse(const char *text, double *accuracy, double *loss)
{
    *accuracy = *loss = 0;
    if (text_starts(text, "accuracy=") && text_to_real(text + 9, accuracy) && *accuracy > 0 &&
        *accuracy <= 1)
        return STATUS_OK;
    if (text_starts(text, "loss=") && text_to_real(text + 5, loss) && *loss > 0)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "--until: found \"%s\", expected accuracy=0.95 or loss=0.1", text);
}

/* Whole epochs until it is done or its time is up. */
static enum status run_epochs(const struct target_options *options, struct trainer *trainer,
                              struct target_run *out)
{
    uint64_t start_ns = clock_ns();
    while (!trainer_done(trainer) && clock_ns() - start_ns < options->limit_ns) {
        if (options->stopped && options->stopped())
            FAIL(STATUS_INTERRUPTED, "stopped");
        TRY(trainer_run(trainer, trainer->train.steps));
    }
    out->ns = (double)(clock_ns() - start_ns);
    out->epochs = trainer->course.epoch;
    out->steps = out->epochs * trainer->train.steps;
    out->samples = out->epochs * trainer->train.rows; /* the last batch may be a small one */
    out->reached = trainer->course.stopped;
    const struct score *held_out = &trainer->held_out;
    out->loss = held_out->samples ? score_loss(held_out) : (double)NAN;
    out->accuracy =
        held_out->samples && held_out->has_right ? score_accuracy(held_out) : (double)NAN;
    return STATUS_OK;
}

/* The data is read anew: opening a trainer scales it in place. */
static enum status run_seed(const struct target_options *options, uint64_t seed,
                            struct target_run *out)
{
    const struct dataset_options as_usual = {0};
    const struct model_options model_options = {.optimiser = options->optimiser, .seed = seed};
    const struct trainer_options trainer_options = {.course = {.batch = options->batch,
                                                               .epochs = EPOCHS_MOST,
                                                               .validate_share = HELD_OUT,
                                                               .until_accuracy = options->accuracy,
                                                               .until_loss = options->loss}};
    struct dataset *dataset = NULL;
    struct model model = {0};
    struct trainer *trainer = NULL;
    struct device_info device;
    enum status status;

    TRY_OR(done, dataset_open(options->dataset, &as_usual, &dataset));
    TRY_OR(done, model_open(&model, options->network, options->backend, &options->device,
                            &model_options));
    options->backend->describe(model.engine.device, &device);
    TRY_OR(done, describe_check_threads(options->backend->name, &device, options->device.threads));
    TRY_OR(done, trainer_open(&model, dataset, &trainer_options, &trainer));
    if (options->batch > trainer->train.rows)
        status = status_fail(STATUS_UNSUPPORTED, __FILE__, __LINE__,
                             "a batch of %d is more than the %lld rows of %s to learn from",
                             options->batch, (long long)trainer->train.rows, options->dataset);
    else
        status = run_epochs(options, trainer, out);
done:
    trainer_close(trainer);
    model_close(&model);
    dataset_free(dataset);
    return status;
}

enum status target_run_all(const struct target_options *options, struct target_run *runs)
{
    for (int64_t i = 0; i < options->seeds; i++)
        TRY(run_seed(options, options->seed + (uint64_t)i, &runs[i]));
    return STATUS_OK;
}
