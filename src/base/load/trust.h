/* trust.h: whose code is run. A plugin, a peer or a suite that anybody could have put there is not
 * run. ssh and sudo have this rule, for the file and for every folder above it.
 *
 * * Trusted are root, the user, and the owner of this program: who could have changed that needs no
 * plugin. Files that others may write are refused. So are those that a group may write, unless it
 * is the user's own or root's (a umask of 002 makes such). In a folder with the sticky bit, as
 * /tmp, no user replaces another's file. */
#ifndef PRONY_BASE_LOAD_TRUST_H
#define PRONY_BASE_LOAD_TRUST_H

#include "base/status.h"

#include <limits.h>

/* STATUS_INPUT: the message names the file or folder, its owner, and the remedy. Links are
 * followed: `real` becomes the path without any, which is the one to open. A link can be another's,
 * who could turn it elsewhere after the check. STATUS_UNSUPPORTED: there is no such file. */
enum status trust_check(const char *path, char real[PATH_MAX]);

/* The files in a folder, as the modules that a peer loads from there: who may write them. */
enum status trust_check_files(const char *folder);

#endif
