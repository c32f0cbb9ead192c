/* reader.h: the words of a network's text, and the arguments that follow a name: of a layer, an
 * optimiser, a schedule. Messages name the place ("NAME:LINE:COLUMN"), what was found and what was
 * expected. */
#ifndef PRONY_NN_READER_H
#define PRONY_NN_READER_H

#include "nn/network.h"

enum { READER_WORD = 64, READER_DIRECTIVES = 6 };

struct reader {
    const char *name;        /* of what is read, for messages */
    struct network *network; /* being read; NULL when it is a flag's value */
    int32_t layer_room;
    const char *at, *end;               /* the rest of the text */
    const char *line;                   /* where the current line begins */
    int32_t number;                     /* of the line, from 1 */
    int32_t said_on[READER_DIRECTIVES]; /* the line of each directive; 0: none so far */
    char word[READER_WORD];             /* the token read last; "" at the end of the line */
    const char *word_at;
};

#define BAD(reader, where, ...)                                                                    \
    return (status_fail(STATUS_INPUT, __FILE__, __LINE__, __VA_ARGS__),                            \
            status_prefix(STATUS_INPUT, "%s:%d:%d", (reader)->name, (reader)->number,              \
                          (int)((where) - (reader)->line) + 1))

/* A token: a run of characters other than blanks, or one of `=`, `<`, `,` by itself. */
enum status reader_next(struct reader *reader);
/* Is `=` the token after the current one? */
bool reader_before_equals(const struct reader *reader);

/* Arguments as the .def tables list them (layers.def explains): "units bias=1?
 * output=sequence|last". The value of a word is its place. */
struct arguments {
    const char *what; /* "dense" */
    const char *list;
    double values[LAYER_VALUES];           /* in the order of the list */
    struct layer_list lists[LAYER_VALUES]; /* likewise, for those that are lists */
    bool given[LAYER_VALUES];
    int position; /* of the next value without a name */
};

/* All defaults, nothing given. */
void arguments_begin(struct arguments *arguments, const char *what, const char *list);
/* Reads values and name=value pairs up to the end of the line or a `<`. */
enum status reader_arguments(struct reader *reader, struct arguments *arguments);
/* Has everything been given that must be? */
enum status reader_arguments_end(struct reader *reader, const struct arguments *arguments);

/* The place of the argument `name` in a list, or -1. */
int arguments_find(const char *list, const char *name);
/* The name of the argument at `index`; false when there are not so many. */
bool arguments_name(const char *list, int index, char name[READER_WORD]);

#endif
