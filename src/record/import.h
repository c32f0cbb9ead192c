/* import.h: results that other tools wrote, as records: the logs of HPE's DLBS, and the JSON of
 * llama-bench, google-benchmark and hyperfine. Only what they say is taken over: an axis or a
 * figure that a format does not have stays empty. */
#ifndef PRONY_RECORD_IMPORT_H
#define PRONY_RECORD_IMPORT_H

#include "base/text.h"

#include <stdbool.h>

/* Recognises the format by its content. When it is one of these, *foreign is true and a line a
 * result is appended to *lines; otherwise *foreign is false and nothing is. `name` is for messages.
 */
enum status import_lines(const char *name, const char *text, size_t length, bool *foreign,
                         struct text *lines);

#endif
