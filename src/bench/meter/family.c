/* family.c: see family.h. Not every kernel lists a process's children, so that all processes are
 * asked for their parent: milliseconds, which is why a family is found once and kept. */
#include "bench/meter/family.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In /proc/PID/stat, after the name in brackets: its state, its parent. 0: it is gone, or has ended
 * and nobody asked how. */
static pid_t parent_of(pid_t process)
{
    char path[40], text[512], state;
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *fields = strrchr(text, ')');
    if (!fields || sscanf(fields, ") %c %d", &state, &parent) != 2 || state == 'Z')
        return 0;
    return parent;
}

static bool has(const struct family *family, pid_t process)
{
    for (int i = 0; i < family->count; i++)
        if (family->processes[i] == process)
            return true;
    return false;
}

/* Once through all processes: adds those whose parent is in the family, or is `parent`. */
static void add_children(struct family *family, pid_t parent)
{
    DIR *all = opendir("/proc");
    if (!all)
        return;
    for (struct dirent *entry; (entry = readdir(all)) != NULL && family->count < FAMILY_MOST;) {
        pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);
        if (process <= 0 || has(family, process))
            continue;
        pid_t of = parent_of(process);
        if (of > 0 && (parent ? of == parent : has(family, of)))
            family->processes[family->count++] = process;
    }
    closedir(all);
}

void family_find(pid_t process, struct family *out)
{
    int before = 0;
    *out = (struct family){.processes = {process}, .count = process != 0};
    while (out->count > before && out->count < FAMILY_MOST) {
        before = out->count;
        add_children(out, 0);
    }
}

int family_children(pid_t parent, pid_t children[FAMILY_MOST])
{
    struct family found = {.count = 0};
    add_children(&found, parent);
    memcpy(children, found.processes, (size_t)found.count * sizeof *children);
    return found.count;
}

static int add_threads(pid_t process, pid_t threads[FAMILY_THREADS], int count)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *tasks = opendir(path);
    if (!tasks)
        return count;
    for (struct dirent *task; count < FAMILY_THREADS && (task = readdir(tasks)) != NULL;) {
        pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        if (thread > 0)
            threads[count++] = thread;
    }
    closedir(tasks);
    return count;
}

int family_threads(const struct family *family, pid_t threads[FAMILY_THREADS])
{
    int count = add_threads(family->count ? family->processes[0] : getpid(), threads, 0);
    if (!count) {
        errno = ESRCH;
        return -1;
    }
    for (int i = 1; i < family->count; i++)
        count = add_threads(family->processes[i], threads, count);
    return count;
}
