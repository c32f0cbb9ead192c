/* store_file.h: which store a command means. */
#ifndef PRONY_CLI_STORE_FILE_H
#define PRONY_CLI_STORE_FILE_H

#include "store/store.h"

/* `given` is the value of --store; NULL: the user's own. */
enum status store_file_path(const char *given, struct text *out);
enum status store_file_open(const char *given, enum store_access access, struct store **out);

#endif
