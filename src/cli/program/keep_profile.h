/* keep_profile.h: a profile becomes a record in a store, where the guide's page Profiles and prony
 * compare find it. It has budget, figures, findings, one tree of all stacks, and an excerpt of the
 * trace. */
#ifndef PRONY_CLI_PROGRAM_KEEP_PROFILE_H
#define PRONY_CLI_PROGRAM_KEEP_PROFILE_H

#include "trace/trace.h"

struct keep_wish {
    const char *store;   /* a file; NULL: the user's */
    const char *title;   /* what was profiled */
    const char *command; /* that was run; NULL: not known */
    const char *advise; /* the command that looks for what would be faster; NULL: the findings do */
    bool here;          /* it ran on this machine, now */
};

/* Appends the record, without a newline. A trace of any size gives at most 3 MB. */
enum status profile_line_write(const struct trace *trace, const struct keep_wish *wish,
                               struct text *out);
/* Files it, and says so on standard error. */
enum status profile_keep(const struct trace *trace, const struct keep_wish *wish);

#endif
