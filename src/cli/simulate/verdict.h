/* verdict.h: what simulated curves say: up to how many workers more of them pay, what limits them
 * then, and which way is the fastest for how many. */
#ifndef PRONY_CLI_VERDICT_H
#define PRONY_CLI_VERDICT_H

#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

struct verdict_point {
    const char *way; /* "data" … */
    int curve;       /* points of one follow each other, by workers */
    int32_t workers;
    double rate;       /* samples per second */
    const char *binds; /* the largest loss: "link" … */
};

/* Sentences, a line each; nothing where nothing can be said. */
void verdict_tell(const struct verdict_point *points, size_t count, struct text *out);

#endif
