/* cmd_networks.c: prony networks: the networks that are known by name: what each is, its
 * parameters, and the FLOP of one sample's prediction. */
#include "bench/job/task.h"
#include "cli/commands.h"
#include "cli/remark.h"
#include "cli/screen.h"
#include "nn/network.h"

#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH = 14, PARAMETERS_WIDTH = 11, FLOP_WIDTH = 9 };

static void add_right(struct text *line, const struct text *cell, int width)
{
    const int room = width - text_width(text_of(cell));
    text_printf(line, "%*s%s", room > 1 ? room : 1, "", text_of(cell));
}

static void print_row(const char *name, const struct text *parameters, const struct text *flop,
                      const char *remark)
{
    const int indent = NAME_WIDTH + PARAMETERS_WIDTH + FLOP_WIDTH + 2;
    struct text line = {0};
    text_printf(&line, "%-*s", NAME_WIDTH, name);
    add_right(&line, parameters, PARAMETERS_WIDTH);
    add_right(&line, flop, FLOP_WIDTH);
    text_add(&line, "  ");
    text_add_wrapped(&line, remark, indent, indent, screen_width(stdout));
    puts(text_of(&line));
    text_free(&line);
}

/* One sample through the network. */
static enum status print_network(const char *name)
{
    struct task_options options = {.model = name, .phase = PHASE_INFERENCE, .batch = 1};
    struct text parameters = {0}, flop = {0}, remark = {0};
    struct task *task;
    TRY(task_begin(&options, &task));
    if (task->refused && !task->network) {
        enum status status = status_fail(task->refusal, __FILE__, __LINE__, "%s", task->refused);
        task_close(task);
        return status;
    }
    if (task->refused) {
        text_add(&parameters, "-");
        text_add(&flop, "-");
    } else {
        text_add_count(&parameters, (double)params_count(&task->params));
        text_add_count(&flop, (double)task->work.forward.flop);
    }
    if (task->network)
        remark_first(task->network->text, &remark);
    print_row(name, &parameters, &flop, text_of(&remark));
    task_close(task);
    text_free(&parameters);
    text_free(&flop);
    text_free(&remark);
    return STATUS_OK;
}

static enum status print_zoo(struct arena *arena)
{
    const char *file, *name;
    for (int32_t i = 0; (file = network_zoo(i)); i++) {
        if (cli_interrupted())
            FAIL(STATUS_INTERRUPTED, "stopped");
        NEED(name = arena_bytes(arena, file, strlen(file) - strlen(".net")));
        TRY(print_network(name));
        TRY(cli_flush());
    }
    struct text note = {0};
    text_add_wrapped(&note,
                     "mlp:4-16-3 is any fully connected network: its sizes, relu between them. "
                     "mlp:4-16-3:sigmoid has another function there. A path is a .net or .onnx "
                     "file.",
                     0, 0, screen_width(stdout));
    printf("\n%s\n", text_of(&note));
    text_free(&note);
    return STATUS_OK;
}

static enum status run_networks(struct cli *cli, void *options)
{
    struct text parameters = {0}, flop = {0};
    (void)options;
    text_add(&parameters, "parameters");
    text_add(&flop, "FLOP");
    print_row("network", &parameters, &flop, "description (FLOP: to predict one sample)");
    text_free(&parameters);
    text_free(&flop);
    for (int i = 0; i < cli->found.count; i++)
        TRY(print_network(cli->found.positional[i]));
    return cli->found.count ? STATUS_OK : print_zoo(&cli->arena);
}

const struct command cmd_networks = {
    .summary = "list the networks that are known by name",
    .run = run_networks,
    .args = {.command = "prony networks",
             .usage = "[NETWORK…]",
             .summary =
                 "Lists the networks that prony knows by name, or just those you name. Each has a "
                 "description, its number of parameters, and the FLOP to predict one sample.",
             .examples = "  prony networks\n"
                         "  prony networks resnet50 mlp:784-100-10\n",
             .most = -1},
};
