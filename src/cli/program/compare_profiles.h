/* compare_profiles.h: prony compare of two profiles: what gained time and what lost it, op by op.
 */
#ifndef PRONY_CLI_PROGRAM_COMPARE_PROFILES_H
#define PRONY_CLI_PROGRAM_COMPARE_PROFILES_H

#include "base/status.h"

#include <stdbool.h>

struct profiles_wish {
    const char *before, *after; /* files of traces, or numbers of profiles in the store */
    const char *store;          /* a file; NULL: the user's */
    bool json;
};

/* Is it a trace, or the number of a kept profile? Records are not. */
bool profile_is_one(const char *word);
/* Reads both and prints what changed. */
enum status compare_profiles(const struct profiles_wish *wish);

#endif
