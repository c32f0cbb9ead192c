/* trust.c: see trust.h. */
#include "base/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_trusted_owner(uid_t owner)
{
    struct stat program;
    return owner == 0 || owner == geteuid() ||
           (stat("/proc/self/exe", &program) == 0 && owner == program.st_uid);
}

static enum status check_one(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return STATUS_OK;
    bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX);
    bool group = (info.st_mode & S_IWGRP) && info.st_gid != 0 && info.st_gid != getegid();
    if (!is_trusted_owner(info.st_uid))
        FAIL(STATUS_INPUT,
             "%s belongs to user %u, expected root, you (%u) or whom this program belongs to: copy "
             "it, or chown it, so that nobody else decides what you run",
             path, (unsigned)info.st_uid, (unsigned)geteuid());
    if (!sticky && ((info.st_mode & S_IWOTH) || group))
        FAIL(
            STATUS_INPUT,
            "%s (of user %u, mode %04o) may be written by others: chmod %s it, so that nobody else "
            "decides what you run",
            path, (unsigned)info.st_uid, (unsigned)(info.st_mode & 07777), group ? "go-w" : "o-w");
    return STATUS_OK;
}

enum status trust_check(const char *path)
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return STATUS_OK;
    TRY(check_one(real));
    for (char *slash; (slash = strrchr(real, '/')) != real;) {
        *slash = '\0';
        TRY(check_one(real));
    }
    return check_one("/");
}
