/* base/load/sqlite.h beside SQLite's own header: a constant that differs is a warning, which is an
 * error, and a function of another type fails here. */
#include "check.h"

#include <sqlite3.h>

#include "base/load/sqlite.h"

#define CALL(type, name, parameters)                                                               \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&sqlite3_##name),                       \
                                                __typeof__(((struct sqlite *)0)->name)),           \
                   "sqlite3_" #name " has another type");
#include "base/load/sqlite.def"
#undef CALL

TEST(finds_every_function)
{
    CHECK_OK(sqlite_load());
#define CALL(type, name, parameters) CHECK(sqlite->name == sqlite3_##name);
#include "base/load/sqlite.def"
#undef CALL
    CHECK_OK(sqlite_load()); /* again is fine */
}

CHECK_MAIN
