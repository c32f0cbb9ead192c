/* store_inside.h: what store.c and store_query.c share. */
#ifndef PRONY_STORE_STORE_INSIDE_H
#define PRONY_STORE_STORE_INSIDE_H

#include "store/store.h"

#include <sqlite3.h>

struct store {
    sqlite3 *db;
    char *path;                                   /* for messages */
    sqlite3_stmt *find_line, *add_line, *add_row; /* prepared on first use */
};

/* The status for what SQLite just refused; the message names the file, the attempt, the reason. */
enum status store_fail(const struct store *store, const char *attempt);

enum status store_prepare(const struct store *store, const char *sql, sqlite3_stmt **out);

/* Steps to the next row; *row says whether there is one. */
enum status store_step(const struct store *store, sqlite3_stmt *statement, bool *row);

/* The text of a column; "" for NULL. Valid until the next step. */
const char *store_text(sqlite3_stmt *statement, int column);

#endif
