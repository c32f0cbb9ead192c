/* args.h: command-line arguments from a table.
 *
 * A command lists its options once; parsing, checks, "did you mean" and --help come from that list.
 * `--name value`, `--name=value`, `--flag`, `--` ends options; positional arguments may stand
 * anywhere. An option given twice is refused. */
#ifndef PRONY_BASE_ARGS_H
#define PRONY_BASE_ARGS_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum arg_kind {
    ARG_FLAG,  /* bool */
    ARG_INT,   /* int64_t, within [low, high] when low < high */
    ARG_REAL,  /* double, within [low, high] when low < high */
    ARG_SHARE, /* double, as ARG_REAL: 0.05 or 5%; not negative, more than 1 only in % */
    ARG_TEXT,  /* const char *, pointing into argv */
};

struct arg {
    const char *name; /* without the dashes */
    enum arg_kind kind;
    void *value;         /* where the value goes; holds the default before */
    const char *meaning; /* "N", "FILE", "NAME,…"; unused for flags */
    const char *help;    /* one line; the default is said here */
    double low, high;    /* high may be INFINITY: "at least low" */
    bool given;          /* set by args_parse */
};

struct args {
    const char *command;  /* "prony train" */
    const char *usage;    /* "NETWORK DATA [options]" */
    const char *summary;  /* one sentence */
    const char *examples; /* lines for the end of --help, or NULL */
    struct arg *list;
    size_t count;
    int least, most;         /* positional arguments; most < 0: any number */
    const char **positional; /* room for argc pointers, given by the caller */
    int positional_count;    /* set by args_parse */
    bool help;               /* set when --help or -h was there: print args_help and stop */
};

/* argv[0] is skipped; reading stops at --help. Messages name the option, what was found, what was
 * expected. */
enum status args_parse(struct args *args, int argc, const char *const *argv);
void args_help(const struct args *args, struct text *out);

#endif
