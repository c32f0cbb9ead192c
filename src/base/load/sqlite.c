/* sqlite.c: see sqlite.h. */
#include "base/load/sqlite.h"

#include "base/load/dynamic.h"

static struct sqlite calls; /* written once, before anybody reads it */
const struct sqlite *const sqlite = &calls;

enum status sqlite_load(void)
{
    static const struct dynamic_function functions[] = {
#define CALL(type, name, parameters) {"sqlite3_" #name, &calls.name},
#include "base/load/sqlite.def"
#undef CALL
    };
    static struct dynamic_library library = {
        .file = "libsqlite3.so.0",
        .need =
            "the results store and traces of Nsight Systems need SQLite (Debian: apt install libsqlite3-0)",
        .functions = functions,
        .count = sizeof functions / sizeof *functions,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    return dynamic_load(&library);
}
