/* sqlite.h: the part of SQLite that the store and the reader of Nsight's traces use, loaded when
 * the first file is opened. So prony is built and measures where SQLite is not installed.
 *
 * Names and values are those of sqlite3.h, which need not be there; a test compares them. */
#ifndef PRONY_BASE_SQLITE_H
#define PRONY_BASE_SQLITE_H

#include "base/status.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef void (*sqlite3_destructor_type)(void *);

#define SQLITE_OK 0
#define SQLITE_BUSY 5
#define SQLITE_NOMEM 7
#define SQLITE_READONLY 8
#define SQLITE_CORRUPT 11
#define SQLITE_CANTOPEN 14
#define SQLITE_TOOBIG 18
#define SQLITE_NOTADB 26
#define SQLITE_ROW 100
#define SQLITE_DONE 101
#define SQLITE_OPEN_READONLY 0x00000001
#define SQLITE_OPEN_READWRITE 0x00000002
#define SQLITE_OPEN_CREATE 0x00000004
#define SQLITE_OPEN_URI 0x00000040
#define SQLITE_DBCONFIG_DEFENSIVE 1010
#define SQLITE_DBCONFIG_TRUSTED_SCHEMA 1017
#define SQLITE_LIMIT_LENGTH 0
#define SQLITE_NULL 5
#define SQLITE_UTF8 1
#define SQLITE_STATIC ((sqlite3_destructor_type)0)
#define SQLITE_TRANSIENT ((sqlite3_destructor_type)-1)

struct sqlite {
#define CALL(type, name, parameters) type(*name) parameters;
#include "base/load/sqlite.def"
#undef CALL
};
/* sqlite->step(…) is sqlite3_step(…). Valid after sqlite_load. */
extern const struct sqlite *const sqlite;

/* STATUS_UNSUPPORTED, with the package to install, where SQLite is missing. Any thread may call
 * it, any number of times. */
enum status sqlite_load(void);

#endif
