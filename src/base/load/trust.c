/* trust.c: see trust.h. */
#include "base/load/trust.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
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
        FAIL(STATUS_IO, "%s: cannot look at it: %s", path, strerror(errno));
    bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX);
    bool group = (info.st_mode & S_IWGRP) && info.st_gid != 0 && info.st_gid != getegid();
    if (!is_trusted_owner(info.st_uid))
        FAIL(STATUS_INPUT,
             "%s belongs to user %u, who decides what you run; expected root, you (%u) or the "
             "owner of prony: copy or chown it",
             path, (unsigned)info.st_uid, (unsigned)geteuid());
    if (!sticky && ((info.st_mode & S_IWOTH) || group))
        FAIL(STATUS_INPUT,
             "%s (user %u, mode %04o): others may write it and decide what you run: chmod %s it",
             path, (unsigned)info.st_uid, (unsigned)(info.st_mode & 07777), group ? "go-w" : "o-w");
    return STATUS_OK;
}

enum status trust_check(const char *path, char real[PATH_MAX])
{
    char above[PATH_MAX];
    if (!realpath(path, real))
        FAIL(errno == ENOENT ? STATUS_UNSUPPORTED : STATUS_IO,
             "%s: cannot follow the path to its file: %s", path, strerror(errno));
    TRY(check_one(real));
    snprintf(above, sizeof above, "%s", real);
    for (char *slash; (slash = strrchr(above, '/')) != above;) {
        *slash = '\0';
        TRY(check_one(above));
    }
    return check_one("/");
}

enum status trust_check_files(const char *folder)
{
    enum status status = STATUS_OK;
    struct stat info;
    DIR *entries = opendir(folder);
    if (!entries)
        FAIL(STATUS_IO, "%s: cannot look into it: %s", folder, strerror(errno));
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(entries)) != NULL;) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length > 0 && length < PATH_MAX && stat(path, &info) == 0 && S_ISREG(info.st_mode))
            status = check_one(path);
    }
    closedir(entries);
    return status;
}
