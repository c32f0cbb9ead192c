/* version.h: which prony this is. The commit is compiled into version.c alone, so that a new commit
 * rebuilds one file. */
#ifndef PRONY_RECORD_VERSION_H
#define PRONY_RECORD_VERSION_H

extern const char version_number[]; /* "0.1.0" */
extern const char version_commit[]; /* "a1b2c3d", "a1b2c3d+" with changes on top, "" when unknown */

#endif
