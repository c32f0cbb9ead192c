/* cmd_export.c: prony export NETWORK [WEIGHTS] --out FILE.onnx: a network for other programs,
 * through the library (prony.h). */
#include "base/file.h"
#include "cli/commands.h"
#include "prony.h"

#include <signal.h>
#include <stdio.h>

enum status cmd_export(struct cli *cli, int argc, const char *const *argv)
{
    const char *out = NULL;
    struct prony *network = NULL;
    struct arg list[] = {
        {"out", ARG_TEXT, &out, "FILE.onnx", "where it goes", 0, 0, false},
        CLI_SHAPE(cli),
    };
    struct args args = {
        .command = "prony export",
        .usage = "NETWORK [WEIGHTS] --out FILE.onnx",
        .summary =
            "Writes what a network predicts as ONNX (opset 17), for other programs. Without "
            "WEIGHTS, a file\nof prony train, its parameters are what they start from. Of networks "
            "that learnt together FILE:NAME is one.",
        .examples = "prony export small iris.safetensors --out iris.onnx\n"
                    "prony export resnet50 --out resnet50.onnx\n"
                    "prony export vae:decoder vae.safetensors --out decoder.onnx\n",
        .list = list,
        .count = sizeof list / sizeof *list,
        .least = 1,
        .most = 2,
        .positional = cli->positional,
    };
    TRY(cli_args(&args, argc, argv));
    if (args.help)
        return STATUS_OK;
    if (!out)
        FAIL(STATUS_INPUT, "found no --out, expected the file to write: %s %s", args.command,
             args.usage);
    TRY(cli_shape(cli, &args));
    TRY(cli_keep_network(out, cli->positional[0]));
    if (args.positional_count == 2)
        TRY(file_check_apart(out, cli->positional[1]));
    enum status status = prony_open(cli->positional[0], NULL, &network);
    if (status == STATUS_OK && args.positional_count == 2)
        status = prony_load(network, cli->positional[1]);
    if (status == STATUS_OK && cli_interrupted())
        status =
            status_fail(STATUS_INTERRUPTED, __FILE__, __LINE__, "interrupted; nothing written");
    if (status == STATUS_OK) {
        signal(SIGINT, SIG_DFL); /* a file that is being written has no name before it is whole */
        status = prony_export(network, out);
    }
    if (status == STATUS_OK)
        printf("written to %s\n", out);
    prony_close(network);
    return status;
}
