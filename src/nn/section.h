/* section.h: several networks in one file, each after a line `network NAME`:
 *
 *     optimiser adam            before the first: said of all of them
 *     network generator
 *     input 16
 *     …
 *     network discriminator
 *     …
 *
 * A network is named FILE:NAME, "gan.net:generator". */
#ifndef PRONY_NN_SECTION_H
#define PRONY_NN_SECTION_H

#include "base/status.h"
#include "base/text.h"

/* Leaves the network `wanted` in the text of `file` (used in messages) and empties the lines of the
 * others, so that lines keep their numbers. A file without sections has one network, which has no
 * name: wanted is NULL. */
enum status section_take(const char *file, const char *wanted, struct text *text);

#endif
