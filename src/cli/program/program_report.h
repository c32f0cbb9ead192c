/* program_report.h: what `prony profile -- COMMAND` says of a program: a report for people, or one
 * JSON object. */
#ifndef PRONY_CLI_PROGRAM_PROGRAM_REPORT_H
#define PRONY_CLI_PROGRAM_PROGRAM_REPORT_H

#include "advise/advise.h"
#include "watch/watching.h"

struct program_report {
    const char *command;                 /* as it is typed */
    const struct running_end *unwatched; /* NULL: it was run once only, watched */
    const struct watched *watched;
    const struct trace *trace;
    const struct advice *advice; /* its budget and steps */
    int width;                   /* of a line */
};

/* "The program ended with status 1: …"; nothing where it went well. */
void program_report_end(const struct running_end *end, int width, struct text *out);
enum status program_report_text(const struct program_report *report, struct text *out);
enum status program_report_json(const struct program_report *report, struct text *out);

#endif
