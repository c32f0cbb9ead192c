/* cmd_generate.c: prony generate NETWORK WEIGHTS: samples like the data that a network has learnt,
 * through the library (prony.h). */
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/show/sample_file.h"
#include "prony.h"

#include <inttypes.h>
#include <stdio.h>

enum { SIZES_MOST = 8, ROWS_SHOWN = 10, VALUES_SHOWN = 8 };

struct generate_flags {
    const char *network, *weights; /* positional */
    struct prony_options options;
    int64_t count, seed, sweeps;
    const char *class_name, *shape, *out, *unit;
};

/* How high and wide a sample is: as the flag says, or the last two of several sizes, or a square.
 */
static enum status find_picture(const struct generate_flags *flags, const struct prony *network,
                                struct samples *samples)
{
    int64_t sizes[SIZES_MOST], side = 1;
    int32_t rank = prony_input_sizes(network, sizes, SIZES_MOST);
    int end = 0;
    if (flags->shape) {
        long long high, wide;
        if (sscanf(flags->shape, "%9lldx%9lld%n", &high, &wide, &end) < 2 || flags->shape[end] ||
            high < 1 || wide < 1 || high * wide != samples->width)
            FAIL(STATUS_INPUT, "--shape: found '%s', expected HxW with H·W = %" PRId64,
                 flags->shape, samples->width);
        samples->high = high;
        samples->wide = wide;
        return STATUS_OK;
    }
    while (side * side < samples->width)
        side++;
    bool flat = rank < 2 || sizes[rank - 2] * sizes[rank - 1] != samples->width;
    samples->high = flat ? side : sizes[rank - 2];
    samples->wide = flat ? side : sizes[rank - 1];
    return STATUS_OK;
}

static void print_rows(const struct samples *samples)
{
    int64_t rows = samples->rows < ROWS_SHOWN ? samples->rows : ROWS_SHOWN;
    int64_t values = samples->width < VALUES_SHOWN ? samples->width : VALUES_SHOWN;
    for (int64_t row = 0; row < rows; row++) {
        printf("%6" PRId64, row + 1);
        for (int64_t i = 0; i < values; i++)
            printf(" %10.4g", (double)samples->values[row * samples->width + i]);
        printf("\n");
    }
    if (rows < samples->rows || values < samples->width)
        printf("     … --out FILE writes all rows and values\n");
}

static int stop(void *context)
{
    (void)context;
    return cli_interrupted();
}

static enum status generate(const struct generate_flags *flags, struct prony *network,
                            float **values)
{
    struct samples samples = {.rows = flags->count, .width = prony_inputs(network)};
    const struct prony_samples asked = {.rows = (int32_t)flags->count,
                                        .class_name = flags->class_name,
                                        .sweeps = flags->sweeps,
                                        .seed = (uint64_t)flags->seed,
                                        .stop = stop};
    TRY(find_picture(flags, network, &samples));
    if (flags->out)
        TRY(sample_file_check(flags->out, &samples));
    NEED(*values = mem_array((size_t)samples.rows, (size_t)samples.width * sizeof **values));
    TRY((enum status)prony_generate(network, &asked, *values));
    samples.values = *values;
    if (!flags->out) {
        print_rows(&samples);
        return STATUS_OK;
    }
    TRY(sample_file_write(flags->out, &samples));
    printf("%" PRId64 " samples written to %s\n", samples.rows, flags->out);
    return STATUS_OK;
}

static enum status run_generate(struct cli *cli, void *given)
{
    struct generate_flags *flags = given;
    struct prony *network = NULL;
    float *values = NULL;
    enum status status;
    flags->network = cli->found.positional[0];
    flags->weights = cli->found.positional[1];
    TRY(cli_keep_network(flags->out, flags->network));
    TRY(file_check_apart(flags->out, flags->weights));
    TRY(cli_unit(cli, flags->unit, &flags->options.backend));
    TRY_OR(done, (enum status)prony_open(flags->network, &flags->options, &network));
    TRY_OR(done, (enum status)prony_load(network, flags->weights));
    status = generate(flags, network, &values);
done:
    mem_free(values);
    prony_close(network);
    return status;
}

#define AT(field) ARG(struct generate_flags, field)
static const struct arg rows[] = {
    {AT(count), "N", "samples (10)", ARG_FROM(1, 100000), "10"},
    {AT(out), "FILE", "a .csv, .npy or .pgm: pictures (the first are shown)"},
    {ARG_NAMED("class", struct generate_flags, class_name), "NAME",
     "the class to generate, where the network learnt classes (all in turn)"},
    {AT(sweeps), "N", "sweeps of Gibbs sampling, a multiple of 10; for an rbm (1000)",
     ARG_FROM(1, 1e9)},
    {AT(seed), "N", "(1)", ARG_FROM(0, 1e15), "1"},
    {AT(shape), "HxW", "height and width of a picture (the network's input, or a square)"},
    {CLI_BACKEND(struct generate_flags)},
    {CLI_UNIT(struct generate_flags)},
    {CLI_THREADS(struct generate_flags)},
    ARG_END,
};

const struct command cmd_generate = {
    .summary = "make samples like the data that a network has learnt",
    .run = run_generate,
    .alone = true,
    .bytes = sizeof(struct generate_flags),
    .args = {.command = "prony generate",
             .usage = "NETWORK WEIGHTS [options]",
             .summary =
                 "Makes samples like the data that a network has learnt: a vae, a gan or an rbm.",
             .examples =
                 "prony generate vae vae.safetensors --count 100 --out digits.pgm\n"
                 "prony generate cvae cvae.safetensors --class 7 --count 16 --out sevens.pgm\n"
                 "prony generate gan gan.safetensors --count 1000 --out points.csv\n",
             .lists = {{rows, 0}},
             .least = 2,
             .most = 2},
};
