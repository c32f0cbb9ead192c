/* commands.h: the command table. A command is a row: what it is called, what it takes and what it
 * runs. The row is in cmd/cmd_NAME.c; commands.def lists them. */
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
    const struct args *args;   /* of the command … */
    struct args_found found;   /* … and which of them were given */
    const char *typed;         /* the command as a shell takes it: "prony bench small" */
    struct arena arena;        /* of words that are made of arguments */
};

struct command {
    const char *summary; /* a line of the list of commands */
    enum status (*run)(struct cli *cli, void *options);
    bool alone;   /* one process does it: ranks of mpirun would each do all of it, and disturb */
    size_t bytes; /* of its options: the struct that args fills */
    struct args args;
};

/* "train" */
static inline const char *command_name(const struct command *command)
{
    return command->args.command + sizeof "prony";
}

#define COMMAND(name) extern const struct command cmd_##name;
#include "cli/commands.def"
enum {
#define COMMAND(name) COMMAND_##name,
#include "cli/commands.def"
    COMMANDS
};
extern const struct command *const cli_commands[COMMANDS];

/* Rows that several commands have: of the type of their options, which has such a field. Those of
 * the library are in its fields `options` (struct prony_options) and `data_options`. */
#define CLI_BACKEND(type)                                                                          \
    ARG_NAMED("backend", type, options.backend), "NAME",                                           \
        "the backend that runs it (the CPU's fastest)"
#define CLI_LABEL(type)                                                                            \
    ARG_NAMED("label", type, data_options.label), "COLUMN",                                        \
        "column to learn: name or place from 1, FIRST..LAST, or none (the last)"
#define CLI_TARGET(type)                                                                           \
    ARG_NAMED("target", type, data_options.label), "COLUMN", "the same as --label"
#define CLI_LABELS(type)                                                                           \
    ARG_NAMED("labels", type, data_options.labels), "FILE", "labels of IDX or NPY data"
#define CLI_MEMORY(type)                                                                           \
    ARG(type, memory), "MB", "data beyond it is streamed (half of all)", ARG_FROM(1e-3, 1e9)
#define CLI_PRECISION(type)                                                                        \
    ARG_NAMED("precision", type, options.precision), "NAME",                                       \
        "type of products: fp32, bf16; on a GPU tf32, fp16"
#define CLI_SHAPE(type) ARG(type, shape), "NAME=N,…", "sizes that an ONNX file leaves open"
#define CLI_STORE(type)                                                                            \
    ARG(type, store), "FILE", "the store (default: store.db in the user's data folder)"
#define CLI_THREADS(type)                                                                          \
    ARG_NAMED("threads", type, options.threads), "N", "(as many as there are cores)",              \
        ARG_FROM(1, 64)
#define CLI_UNIT(type) ARG(type, unit), "UNIT", "cpu or gpu: its first backend"

/* What --shape does: FILE.onnx becomes FILE.onnx:NAME=N wherever it stands, which is what the
 * bench, the store and the library know it by. NULL is fine. */
enum status cli_shape(struct cli *cli, const char *shape);

/* What --unit does: without a name of a backend, the first that computes on this unit is it; with
 * one, it must compute there. *backend stays NULL when neither was said. */
enum status cli_unit(const struct cli *cli, const char *unit, const char **backend);

/* Does the network bring its weights along, as an ONNX file does? */
bool cli_has_weights(const char *network);

/* Refuse to write over the file of a network, or of data, that is read (file_check_apart). What
 * prony knows by name is no file: `prony train small iris --out small` can be said twice. */
enum status cli_keep_network(const char *out, const char *network);
enum status cli_keep_data(const char *out, const char *data); /* NULL is fine */

/* Prints what the glossary says of a term, of all where it is NULL. */
enum status cli_explain_term(const char *word);

/* Says when anything printed so far was lost: a full disk, a reader that went away. */
enum status cli_flush(void);

/* What prony ends with where all goes well: what a program of the user's ended with. */
void cli_exit_as(int status);

/* Set by SIGINT and SIGTERM: long work looks at it and stops cleanly. A second signal ends the
 * process at once. */
bool cli_interrupted(void);

#endif
