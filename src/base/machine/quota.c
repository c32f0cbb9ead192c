/* quota.c: see quota.h. A container without a namespace of its own for control groups reads the
 * host's path of its group, but sees that group as the root. So a path that is not there is no
 * mistake: the search goes on above it. */
#include "base/machine/quota.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MOST = 4096 };

/* The start of a file below a group, as a string. */
static bool read_file(const char *root, const char *group, const char *name, char *out, int size)
{
    char path[2 * PATH_MOST];
    snprintf(path, sizeof path, "%s%s/%s", root, group, name);
    FILE *file = fopen(path, "re");
    bool found = file && fgets(out, size, file);
    if (file)
        fclose(file);
    return found;
}

/* "150000 100000", or "max 100000" */
static double cpus_of_version_2(const char *root, const char *group)
{
    char text[64], *end;
    if (!read_file(root, group, "cpu.max", text, sizeof text))
        return 0;
    double quota = strtod(text, &end), period = strtod(end, NULL);
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* The quota is -1 where there is none. */
static double cpus_of_version_1(const char *root, const char *group)
{
    char quota[64], period[64];
    if (!read_file(root, group, "cpu.cfs_quota_us", quota, sizeof quota) ||
        !read_file(root, group, "cpu.cfs_period_us", period, sizeof period))
        return 0;
    double most = strtod(quota, NULL), of = strtod(period, NULL);
    return most > 0 && of > 0 ? most / of : 0;
}

static double lesser(double a, double b)
{
    return a > 0 && (b == 0 || a < b) ? a : b;
}

/* A number of bytes, or "max"; 0 allows nothing, which no running process has. */
static double bytes_of(const char *root, const char *group, const char *name)
{
    char text[64];
    return read_file(root, group, name, text, sizeof text) ? strtod(text, NULL) : 0;
}

/* Beyond memory.high a process is slowed down until it stands still: it is a limit, too. */
static double memory_of_version_2(const char *root, const char *group)
{
    return lesser(bytes_of(root, group, "memory.max"), bytes_of(root, group, "memory.high"));
}

/* Where there is none, a number beyond any machine's memory is read. */
static double memory_of_version_1(const char *root, const char *group)
{
    return bytes_of(root, group, "memory.limit_in_bytes");
}

/* "NAME NUMBER" of a file of such lines. */
static double number_of(const char *root, const char *group, const char *file, const char *name)
{
    char path[2 * PATH_MOST], found[64];
    double number = 0, value = 0;
    snprintf(path, sizeof path, "%s%s/%s", root, group, file);
    FILE *lines = fopen(path, "re");
    while (lines && fscanf(lines, "%63s %lf", found, &value) == 2)
        if (strcmp(found, name) == 0)
            number = value;
    if (lines)
        fclose(lines);
    return number;
}

/* Bytes below a limit; a limit that no machine has is none. */
static double left_below(double limit, double use, double cached)
{
    static const double NO_MACHINE = 0x1p60;
    const double left = limit - (use - cached);
    return limit == 0 || limit > NO_MACHINE ? 0 : left > 1 ? left : 1;
}

static double left_of_version_2(const char *root, const char *group)
{
    return left_below(memory_of_version_2(root, group), bytes_of(root, group, "memory.current"),
                      number_of(root, group, "memory.stat", "inactive_file"));
}

static double left_of_version_1(const char *root, const char *group)
{
    return left_below(memory_of_version_1(root, group),
                      bytes_of(root, group, "memory.usage_in_bytes"),
                      number_of(root, group, "memory.stat", "total_inactive_file"));
}

typedef double quota_reader(const char *root, const char *group);

/* The least from `group` up to the root. */
static double least_quota(const char *root, const char *group, quota_reader *read)
{
    char path[PATH_MOST];
    snprintf(path, sizeof path, "%s", group);
    double least = 0;
    for (char *last; (last = strrchr(path, '/')); *last = '\0')
        least = lesser(read(root, path), least);
    return lesser(read(root, ""), least);
}

/* "cpu,cpuacct" has cpu. */
static bool has_controller(const char *controllers, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = controllers; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    return false;
}

/* Version 2 lies below "unified" where both versions are there. */
static double quota_least(const char *groups, const char *root, const char *controller,
                          quota_reader *version_1, quota_reader *version_2)
{
    char line[PATH_MOST], folder[PATH_MOST];
    double least = 0;
    FILE *file = fopen(groups, "re");
    while (file && fgets(line, sizeof line, file)) { /* "4:cpu,cpuacct:/group", "0::/group" */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'),
             *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        bool first = has_controller(controllers + 1, controller);
        snprintf(folder, sizeof folder, "%s/%s", root, first ? controller : "unified");
        if (first) {
            least = lesser(least_quota(folder, group, version_1), least);
        } else if (controllers[1] == '\0') {
            least = lesser(least_quota(root, group, version_2), least);
            least = lesser(least_quota(folder, group, version_2), least);
        }
    }
    if (file)
        fclose(file);
    return least;
}

double quota_cpus(const char *groups, const char *root)
{
    return quota_least(groups, root, "cpu", cpus_of_version_1, cpus_of_version_2);
}

double quota_memory(const char *groups, const char *root)
{
    return quota_least(groups, root, "memory", memory_of_version_1, memory_of_version_2);
}

double quota_memory_left(const char *groups, const char *root)
{
    return quota_least(groups, root, "memory", left_of_version_1, left_of_version_2);
}
