/* suite_file.h: a suite: a text of which each line is the arguments of one `prony bench`.
 *
 * Blank lines and lines that begin with a '#', after blanks or not, are passed over; a line that
 * starts with "--" holds options of the suite itself. */
#ifndef PRONY_CLI_SUITE_FILE_H
#define PRONY_CLI_SUITE_FILE_H

#include "bench/sweep/request.h"
#include "cli/show/bench_output.h"

enum { SUITE_LINES = 1000, SUITE_NAMES = 64 };

struct suite {
    struct arena arena; /* owns the requests; freed by the caller */
    const char *name;   /* of one that ships, or a path */
    struct bench_request *requests[SUITE_LINES];
    int count;
    struct output_flags output;  /* of the command line */
    struct output_flags written; /* of the suite's own lines */
    double seconds;              /* instead of what the lines say; 0: as they say */
    const char *unit;            /* of the lines that say none; NULL: the usual one */
    /* Of several ranks (suite_ranks.h): what the first one's file held before, and the ranks of
     * this machine that come before and after this one; -1: none does. */
    uint64_t held;
    int before, after;
};

/* Reads and checks all lines, of one that ships or of a file. */
enum status suite_read(struct suite *suite);

/* Those that ship; their texts, "" of another. */
enum status suite_names(struct arena *arena, const char *names[SUITE_NAMES], size_t *count);
bool suite_ships(const char *name);
const char *suite_text(const char *name);

#endif
