/* version.c: see version.h. The build writes commit.h and defines PRONY_VERSION for this file. */
#include "record/version.h"
#include <commit.h>

const char version_number[] = PRONY_VERSION;
const char version_commit[] = PRONY_COMMIT;
