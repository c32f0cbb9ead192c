/* answer_output.h: how `prony answer` prints findings: for a person, wrapped to the width of the
 * screen, or as JSON for a program. */
#ifndef PRONY_CLI_ANSWER_OUTPUT_H
#define PRONY_CLI_ANSWER_OUTPUT_H

#include "finding/finding.h"

/* A label in a column of its own, then the text, wrapped to `width` characters. */
enum status answer_line(const char *label, const char *text, int width);
/* The same of a command, which goes on after a backslash: it can be copied. */
enum status answer_command(const char *label, const char *command, int width);

/* What is known of one machine, numbered. */
enum status answer_overview(const struct overview *overview, const char *store_flag, int width);

/* As /api/overview and /api/answers give it. */
enum status answer_overview_json(const struct overview *overview);
enum status answer_json(const struct finding_about *about);

#endif
