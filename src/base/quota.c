/* quota.c: see quota.h. A container without a namespace of its own for control groups reads the
 * host's path of its group, but sees that group as the root: so a path that is not there is no
 * mistake, and the search goes on above it. */
#include "base/quota.h"

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
static double quota_of_version_2(const char *root, const char *group)
{
    char text[64], *end;
    if (!read_file(root, group, "cpu.max", text, sizeof text))
        return 0;
    double quota = strtod(text, &end), period = strtod(end, NULL);
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* The quota is -1 where there is none. */
static double quota_of_version_1(const char *root, const char *group)
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

/* The least from `group` up, which is cut on the way. */
static double least_quota(const char *root, char *group,
                          double (*quota)(const char *, const char *))
{
    double least = 0;
    for (char *last; (last = strrchr(group, '/')); *last = '\0')
        least = lesser(quota(root, group), least);
    return lesser(quota(root, ""), least);
}

/* "cpu,cpuacct" has cpu. */
static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == 3 && strncmp(at, "cpu", 3) == 0)
            return true;
    return false;
}

double quota_cpus(const char *groups, const char *root)
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
        if (has_cpu(controllers + 1)) {
            snprintf(folder, sizeof folder, "%s/cpu", root);
            least = lesser(least_quota(folder, group, quota_of_version_1), least);
        } else if (controllers[1] == '\0') {
            least = lesser(least_quota(root, group, quota_of_version_2), least);
        }
    }
    if (file)
        fclose(file);
    return least;
}
