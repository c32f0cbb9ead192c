/* commands.h: the command table. A command is a function in cmd_NAME.c and a row in main.c. */
#ifndef PRONY_CLI_COMMANDS_H
#define PRONY_CLI_COMMANDS_H

#include "base/arena.h"
#include "base/args.h"
#include "base/status.h"
#include "core/registry.h"

/* What every command gets. */
struct cli {
    struct registry *registry; /* all backends, plugins loaded */
    const char *folder;        /* of the executable */
    const char **positional;   /* room for every argument: what struct args asks for */
    const char *shape;         /* what --shape says, where a command has it */
    const char *unit;          /* the same of --unit */
    struct arena arena;        /* of words that are made of arguments */
};

typedef enum status command_run(struct cli *cli, int argc, const char *const *argv);

struct command {
    const char *name;
    command_run *run;
    const char *summary;
};

extern const struct command cli_commands[]; /* in alphabetical order */
extern const int cli_command_count;

command_run cmd_answer;
command_run cmd_bench;
command_run cmd_completion;
command_run cmd_compare;
command_run cmd_explain;
command_run cmd_export;
command_run cmd_generate;
command_run cmd_guide;
command_run cmd_machine;
command_run cmd_manual;
command_run cmd_peer;
command_run cmd_predict;
command_run cmd_profile;
command_run cmd_query;
command_run cmd_store;
command_run cmd_suite;
command_run cmd_train;

/* args_parse; with --help it prints and sets args->help, and the command returns at once. */
enum status cli_args(struct args *args, int argc, const char *const *argv);

/* The row of --shape, for a command's list, and what it does: FILE.onnx becomes FILE.onnx:NAME=N
 * wherever it stands, which is what the bench, the store and the library know it by. */
#define CLI_SHAPE(cli)                                                                             \
    {                                                                                              \
        "shape", ARG_TEXT, &(cli)->shape, "NAME=N,…", "sizes that an ONNX file leaves open", 0, 0, \
            false                                                                                  \
    }
enum status cli_shape(struct cli *cli, struct args *args);

/* The row of --unit, and what it does: without a name of a backend, the first that computes on this
 * unit is it; with one, it must compute there. *backend stays NULL when neither was said. */
#define CLI_UNIT(cli)                                                                              \
    {                                                                                              \
        "unit", ARG_TEXT, &(cli)->unit, "UNIT", "cpu or gpu: its first backend", 0, 0, false       \
    }
enum status cli_unit(const struct cli *cli, const char **backend);

/* Does the network bring its weights along, as an ONNX file does? */
bool cli_has_weights(const char *network);

/* Refuse to write over the file of a network, or of data, that is read (file_check_apart). What
 * prony knows by name is no file: `prony train small iris --out small` can be said twice. */
enum status cli_keep_network(const char *out, const char *network);
enum status cli_keep_data(const char *out, const char *data); /* NULL is fine */

/* Calls visit with the arguments of each command in turn, as --help would show them: what
 * completion and the manual page are made of. */
typedef void args_visit(void *context, const struct command *command, const struct args *args);
enum status cli_visit(struct cli *cli, args_visit *visit, void *context);

/* Says when anything printed so far was lost: a full disk, a reader that went away. */
enum status cli_flush(void);

/* Set by SIGINT and SIGTERM: long work looks at it and stops cleanly. A second signal ends the
 * process at once. */
bool cli_interrupted(void);

#endif
