/* trust.h: whose code is run. A plugin, a peer or a suite that anybody could have put there is not:
 * the rule of ssh and sudo, for the file and for every folder above it.
 *
 * Trusted are root, the user, and the owner of this program: who could have changed that needs no
 * plugin. Files that others may write are refused; so are those that a group may, unless it is the
 * user's own or root's (a umask of 002 makes such). In a folder with the sticky bit, as /tmp,
 * nobody replaces a file of another. */
#ifndef PRONY_BASE_TRUST_H
#define PRONY_BASE_TRUST_H

#include "base/status.h"

/* STATUS_INPUT: the message names the file or folder, its owner, and the remedy. Links are
 * followed. A file that is not there is no matter here: whoever opens it says so. */
enum status trust_check(const char *path);

#endif
