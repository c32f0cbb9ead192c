/* args.h: command-line arguments from a table.
 *
 * A command is one struct args: its options are rows that say where in a struct their value goes.
 * Parsing, checks, "did you mean", --help, the manual page and completion come from these rows.
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
    ARG_INT,   /* int32_t, int64_t or uint64_t, within [low, high] when low < high */
    ARG_REAL,  /* double, within [low, high] when low < high */
    ARG_SHARE, /* double, as ARG_REAL: 0.05 or 5%; not negative, more than 1 only in % */
    ARG_TEXT,  /* const char *, pointing into argv */
};

struct arg {
    const char *name; /* without the dashes; NULL: the row is no option */
    enum arg_kind kind;
    size_t offset, bytes;  /* its value's place in the struct that the list fills */
    const char *meaning;   /* "N", "FILE", "NAME,…"; unused for flags */
    const char *help;      /* one line, with the default; NULL: the list ends */
    double low, high;      /* high may be INFINITY: "at least low" */
    const char *otherwise; /* the value where it is not given, as text; NULL: zero */
    bool empty;            /* "" is a value too */
};

/* The start of a row: the option of a field has its name, and the kind that its type asks for. */
#define ARG(type, field) ARG_NAMED(#field, type, field)
#define ARG_NAMED(word, type, field)                                                               \
    .name = word,                                                                                  \
    .kind = _Generic(((type *)0)->field,                                                           \
        bool: ARG_FLAG,                                                                            \
        int32_t: ARG_INT,                                                                          \
        int64_t: ARG_INT,                                                                          \
        uint64_t: ARG_INT,                                                                         \
        double: ARG_REAL,                                                                          \
        const char *: ARG_TEXT),                                                                   \
    ARG_PLACE(type, field)
#define ARG_PLACE(type, field) .offset = offsetof(type, field), .bytes = sizeof((type *)0)->field
/* The end of a row, where it has one. */
#define ARG_FROM(least, most) .low = least, .high = most

/* After the last row of a list. */
#define ARG_END                                                                                    \
    {                                                                                              \
        .help = NULL                                                                               \
    }

enum { ARGS_LISTS = 3, ARGS_MOST = 64 };

struct args {
    const char *command;                /* "prony train" */
    const char *usage;                  /* "NETWORK DATA [options]" */
    const char *summary;                /* a sentence or two … */
    void (*add_summary)(struct text *); /* … and what is only known when it runs; or NULL */
    const char *examples;               /* lines of commands, or NULL */
    const char *often; /* options that people use most: "batch phase …"; or NULL */
    struct {
        const struct arg *rows; /* NULL: there are no more */
        size_t offset;          /* where in the command's struct is the one that they fill */
    } lists[ARGS_LISTS];
    int least, most; /* positional arguments; most < 0: any number */
    bool program;    /* instead of these may stand `-- COMMAND …`: a program of the user's */
};

struct args_found {
    const char **positional;    /* room for argc pointers, given by the caller */
    int count;                  /* of those there are */
    uint64_t given;             /* bit i: the i-th option was there */
    const char *const *program; /* the words after `--` and a NULL; NULL: there are none */
    bool help;                  /* --help or -h was there: print args_help and stop … */
    bool help_all;              /* … with every option: --help all */
};

/* The i-th option; NULL: there are no more. */
const struct arg *args_at(const struct args *args, size_t i);
bool args_given(const struct args *args, const struct args_found *found, const char *name);

/* Fills `values`, the command's struct, beginning with the defaults. argv[0] is skipped; reading
 * stops at --help. Messages name the option, what was found, what was expected. */
void args_defaults(const struct args *args, void *values); /* alone */
enum status args_parse(const struct args *args, int argc, const char *const *argv, void *values,
                       struct args_found *found);

/* Help, in lines of at most `width` characters: `title`, examples, the usage, and the options that
 * people use most, or all. */
enum { ARGS_FEW = 14 }; /* options that are shown unless all are asked for */
void args_help(const struct args *args, const char *title, bool all, int width, struct text *out);
void args_summary(const struct args *args, struct text *out);

#endif
