/* remark.h: what a file says of itself: the '#' lines at its start. */
#ifndef PRONY_CLI_REMARK_H
#define PRONY_CLI_REMARK_H

#include "base/text.h"

/* Adds the first sentence of the lines that begin with a '#', without its full stop, and without a
 * number of parameters at its end. */
void remark_first(const char *file, struct text *out);

#endif
