/* folder.h: a folder of its own for a test's files: made when the first path is asked for, removed
 * with its files when the test ends. */
#ifndef PRONY_TESTS_FOLDER_H
#define PRONY_TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder_path[64]; /* "" until it is made */

static inline void folder_remove(void)
{
    DIR *entries = opendir(folder_path);
    if (!entries)
        return;
    for (struct dirent *entry; (entry = readdir(entries));)
        unlinkat(dirfd(entries), entry->d_name, 0); /* . and .. stay */
    closedir(entries);
    rmdir(folder_path);
}

/* The path of that name in the folder; valid until the fourth after it is asked for. */
static inline const char *at(const char *name)
{
    static char paths[4][sizeof folder_path + 64];
    static int next;
    if (!*folder_path) {
        snprintf(folder_path, sizeof folder_path, "/tmp/prony-test-XXXXXX");
        if (!mkdtemp(folder_path))
            abort();
        atexit(folder_remove);
    }
    char *path = paths[next++ % 4];
    snprintf(path, sizeof *paths, "%s/%s", folder_path, name);
    return path;
}

#endif
