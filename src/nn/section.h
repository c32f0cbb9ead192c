/* section.h: several networks in one file, each after a line `network NAME`:
 *
 *     optimiser adam            before the first: said of all of them
 *     network generator
 *     input 16
 *     …
 *     network discriminator
 *     …
 *
 * A network is named FILE:NAME, "gan.net:generator"; with a recipe that is made of all of them,
 * FILE is a network too. */
#ifndef PRONY_NN_SECTION_H
#define PRONY_NN_SECTION_H

#include "base/status.h"
#include "base/text.h"

enum { SECTIONS_MOST = 64, SECTION_NAME = 64 };

/* The names of the networks in a file, in their order. */
struct sections {
    const char *file; /* used in messages */
    char names[SECTIONS_MOST][SECTION_NAME];
    int lines[SECTIONS_MOST]; /* where each begins: that of its line `network` */
    int count;
};

/* Which networks are in the text of `file`? None when it is one network without a name. */
enum status section_list(const char *file, const struct text *text, struct sections *out);

/* Leaves the network `wanted` in the text of `file` (used in messages) and empties the lines of the
 * others, so that lines keep their numbers. A file without sections has one network, which has no
 * name: wanted is NULL. */
enum status section_take(const char *file, const char *wanted, struct text *text);

#endif
