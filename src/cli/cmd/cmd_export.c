/* cmd_export.c: prony export NETWORK [WEIGHTS] --out FILE.onnx: a network for other programs,
 * through the library (prony.h). */
#include "base/file.h"
#include "cli/commands.h"
#include "nn/formats/saved.h"
#include "prony.h"

#include <signal.h>
#include <stdio.h>

struct export_flags {
    const char *out, *shape;
};

static enum status write_file(struct prony *network, const char *out)
{
    if (cli_interrupted())
        FAIL(STATUS_INTERRUPTED, "interrupted; nothing written");
    signal(SIGINT, SIG_DFL); /* a file that is being written has no name before it is whole */
    TRY((enum status)prony_export(network, out));
    printf("written to %s\n", out);
    return STATUS_OK;
}

static enum status run_export(struct cli *cli, void *options)
{
    const struct export_flags *flags = options;
    const char **words = cli->found.positional;
    const bool has_weights = cli->found.count == 2;
    struct prony *network = NULL;
    if (!flags->out)
        FAIL(STATUS_INPUT, "found no --out, expected the file to write: %s %s", cli->args->command,
             cli->args->usage);
    TRY(cli_shape(cli, flags->shape));
    TRY(cli_keep_network(flags->out, words[0]));
    if (has_weights)
        TRY(file_check_apart(flags->out, words[1]));
    const bool saved = !has_weights && !network_built_in(words[0]) && saved_is(words[0]);
    enum status status = (enum status)(saved ? prony_open_saved(words[0], NULL, &network)
                                             : prony_open(words[0], NULL, &network));
    if (status == STATUS_OK && has_weights)
        status = (enum status)prony_load(network, words[1]);
    if (status == STATUS_OK)
        status = write_file(network, flags->out);
    prony_close(network);
    return status;
}

static const struct arg rows[] = {
    {ARG(struct export_flags, out), "FILE.onnx", "where it goes"},
    {CLI_SHAPE(struct export_flags)},
    ARG_END,
};

const struct command cmd_export = {
    .summary = "write a network as ONNX, for other programs",
    .run = run_export,
    .alone = true,
    .bytes = sizeof(struct export_flags),
    .args = {.command = "prony export",
             .usage = "NETWORK [WEIGHTS] --out FILE.onnx, or FILE --out FILE.onnx",
             .summary = "Writes the inference of a network as ONNX (opset 17), for other programs. "
                        "WEIGHTS is a file of\nprony train; without it the parameters have their "
                        "starting values. Networks that learnt together\nare called FILE:NAME.",
             .examples = "prony export iris-int8.safetensors --out iris-int8.onnx\n"
                         "prony export small iris.safetensors --out iris.onnx\n"
                         "prony export resnet50 --out resnet50.onnx\n"
                         "prony export vae:decoder vae.safetensors --out decoder.onnx\n",
             .lists = {{rows, 0}},
             .least = 1,
             .most = 2},
};
