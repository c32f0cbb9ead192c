/* train_flags.c: see train_flags.h. */
#include "cli/training/train_flags.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Is it one of the settings that a training keeps from its beginning to its end? */
static bool is_kept(const char *name)
{
    static const char *const names[] = {
#define PRONY_LEARNS(type, name, low, high, otherwise, meaning, help) #name,
#define PRONY_COURSE(type, name, key, usual, low, high, otherwise, meaning, help) #name,
#define PRONY_SPOKEN(name, meaning, help) #name,
#include "prony_settings.def"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_equal(name, names[i]))
            return !text_equal(name, "epochs");
    return false;
}

/* "accuracy=0.95" or "loss=0.1" */
static enum status read_goal(struct train_flags *flags)
{
    static const char accuracy[] = "accuracy=", loss[] = "loss=";
    struct prony_course *course = &flags->course;
    const char *until = flags->until;
    bool sound = false;
    if (text_starts(until, accuracy))
        sound = text_to_real(until + strlen(accuracy), &course->until_accuracy) &&
                course->until_accuracy > 0 && course->until_accuracy <= 1;
    else if (text_starts(until, loss))
        sound = text_to_real(until + strlen(loss), &course->until_loss) && course->until_loss > 0;
    if (!sound)
        FAIL(STATUS_INPUT, "--until: found '%s', expected accuracy=A (0 to 1) or loss=L (above 0)",
             until);
    return STATUS_OK;
}

/* How several workers share the training out. */
static enum status read_sharing(struct train_flags *flags)
{
    struct sharing *sharing = &flags->sharing;
    const struct sharing_flags said = {.parallelism = flags->parallelism,
                                       .schedule = flags->pipeline,
                                       .micros = flags->micro_batches,
                                       .copies = flags->copies,
                                       .servers = flags->servers};
    TRY(sharing_read(&said, PARALLEL_DATA, sharing));
    sharing->sync_norm = flags->sync_norm;
    sharing->average = flags->average_every;
    if (sharing->average && sharing->sync_norm)
        FAIL(STATUS_INPUT,
             "--sync-norm: found --average-every, expected none: workers learn apart");
    if (sharing->parallelism == PARALLEL_DATA)
        return STATUS_OK;
    if (sharing->average)
        FAIL(STATUS_INPUT, "--average-every: found --parallelism %s, expected data",
             flags->parallelism);
    if (flags->sync_norm)
        FAIL(STATUS_INPUT, "--sync-norm: found --parallelism %s, expected data",
             flags->parallelism);
    if (text_equal(flags->options.precision, "fp16"))
        FAIL(STATUS_INPUT,
             "--precision: found fp16, expected fp32, tf32 or bf16 with "
             "--parallelism %s: no worker sees all gradients, which fp16 scales",
             flags->parallelism);
    return STATUS_OK;
}

/* A training in 8 bits is one in reals that are rounded so. */
static enum status read_int8(struct prony_options *options)
{
    const bool int8 = text_equal(options->precision, "int8");
    if (options->weight_bits && !int8)
        FAIL(STATUS_INPUT, "--weight-bits %d: expected --precision int8 with it",
             options->weight_bits);
    if (!int8)
        return STATUS_OK;
    options->precision = NULL;
    options->weight_bits = options->weight_bits ? options->weight_bits : 8;
    return STATUS_OK;
}

enum status train_flags_check(const struct cli *cli, struct train_flags *flags)
{
    struct prony_course *course = &flags->course;
    const struct arg *arg;
    for (size_t i = 0; course->resume && (arg = args_at(cli->args, i)); i++)
        if ((cli->found.given & (uint64_t)1 << i) && is_kept(arg->name))
            FAIL(STATUS_INPUT,
                 "--%s cannot be given with --resume: a resumed training goes on as it began",
                 arg->name);
    TRY(read_int8(&flags->options));
    if (args_given(cli->args, &cli->found, "label") && args_given(cli->args, &cli->found, "target"))
        FAIL(STATUS_INPUT, "found --label and --target, expected one of them: they are the same");
    if (flags->until)
        TRY(read_goal(flags));
    TRY(read_sharing(flags));
    if ((flags->until || course->patience) && course->validate == 0)
        course->validate = 0.1;
    if (course->validate + course->test >= 1)
        FAIL(STATUS_INPUT,
             "--validate %g and --test %g leave no rows to learn from, expected them together "
             "below 1",
             course->validate, course->test);
    return STATUS_OK;
}

static void add_flag(struct text *out, const char *flag, const char *value)
{
    if (!value)
        return;
    text_printf(out, " --%s ", flag);
    text_add_word(out, value);
}

/* The flags that say how data is read and where it is computed: another backend would not end with
 * the same bits. */
static void add_how(const struct train_flags *flags, struct text *out)
{
    const struct prony_data_options *data = &flags->data_options;
    const struct prony_options *options = &flags->options;
    add_flag(out, "label", data->label);
    add_flag(out, "labels", data->labels);
    add_flag(out, "drop", data->drop);
    add_flag(out, "encode", data->encode);
    add_flag(out, "fill", data->fill);
    text_add(out, flags->drop_rows ? " --drop-rows" : "");
    text_add(out, flags->numbers ? " --numbers" : "");
    text_add(out, flags->classes ? " --classes" : "");
    if (flags->memory > 0)
        text_printf(out, " --memory %g", flags->memory);
    add_flag(out, "backend", options->backend);
    if (options->threads && !flags->shared_threads)
        text_printf(out, " --threads %d", options->threads);
    if (flags->workers > 1)
        text_printf(out, " --workers %d", flags->workers);
    add_flag(out, "parallelism", flags->parallelism);
    if (flags->copies)
        text_printf(out, " --copies %d", flags->copies);
    if (flags->servers)
        text_printf(out, " --servers %d", flags->servers);
    add_flag(out, "pipeline", flags->pipeline);
    if (flags->micro_batches)
        text_printf(out, " --micro-batches %" PRId64, flags->micro_batches);
    if (flags->average_every)
        text_printf(out, " --average-every %d", flags->average_every);
    text_add(out, flags->sync_norm ? " --sync-norm" : "");
    add_flag(out, "precision", options->weight_bits ? "int8" : options->precision);
    if (options->weight_bits && options->weight_bits != 8)
        text_printf(out, " --weight-bits %d", options->weight_bits);
    text_add(out, options->recompute ? " --recompute" : "");
}

void train_flags_resume(const struct train_flags *flags, struct text *out)
{
    text_printf(out, "prony train %s %s", flags->network, flags->data);
    add_how(flags, out); /* what the data was read with must be said again */
    text_printf(out, " --resume %s --out %s", flags->out, flags->out);
}

enum status train_flags_lost(const struct train_flags *flags, enum status status)
{
    struct text command = {0};
    char why[400];
    if ((status != STATUS_DEVICE && status != STATUS_TIMEOUT) || flags->workers < 2 ||
        !flags->out || access(flags->out, R_OK) != 0)
        return status;
    snprintf(why, sizeof why, "%s", status_message());
    train_flags_resume(flags, &command);
    status_fail(status, __FILE__, __LINE__, "%s. To go on from what was saved: %s", why,
                text_of(&command));
    text_free(&command);
    return status;
}
