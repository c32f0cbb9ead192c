/* meters.c: see meters.h. */
#include "bench/meters.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* The first 4 KB of /proc/PROCESS/NAME as text; false when it cannot be read. */
static bool meters_proc(pid_t process, const char *name, char text[4096])
{
    char path[64];
    if (process)
        snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    else
        snprintf(path, sizeof path, "/proc/self/%s", name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, 4095, file);
    text[length] = '\0';
    fclose(file);
    return length > 0;
}

/* Another process: its CPU clock, and /proc/PID/stat, where after the name in brackets the 8th and
 * 10th fields are the faults without and with reading from disk. */
static bool meters_read_other(pid_t process, struct meters_reading *out)
{
    char text[4096];
    clockid_t clock;
    struct timespec time;
    unsigned long minor, major;

    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0 ||
        !meters_proc(process, "stat", text))
        return false;
    const char *fields = strrchr(text, ')');
    if (!fields || sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %lu %*u %lu", &minor, &major) != 2)
        return false;
    out->cpu_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    out->page_faults = minor + major;
    out->context_switches = 0;
    return true;
}

static bool meters_read(pid_t process, struct meters_reading *out)
{
    struct rusage usage;

    out->wall_ns = clock_ns();
    if (process)
        return meters_read_other(process, out);
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return false;
    out->cpu_ns = clock_cpu_ns();
    out->page_faults = (uint64_t)(usage.ru_minflt + usage.ru_majflt);
    out->context_switches = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
    return true;
}

void meters_begin(struct meters *meters, pid_t process)
{
    if (!meters_read(process, &meters->start))
        meters->lost = true;
}

void meters_end(struct meters *meters, pid_t process)
{
    struct meters_reading now;
    if (!meters_read(process, &now)) {
        meters->lost = true;
        return;
    }
    meters->wall_ns += now.wall_ns - meters->start.wall_ns;
    meters->cpu_ns += now.cpu_ns - meters->start.cpu_ns;
    meters->page_faults += now.page_faults - meters->start.page_faults;
    meters->context_switches += now.context_switches - meters->start.context_switches;
}

/* The most memory the process ever held; of this process, whatever else it did before. */
static double meters_peak_memory(pid_t process)
{
    char text[4096];
    unsigned long kilobytes;
    const char *line = meters_proc(process, "status", text) ? strstr(text, "VmHWM:") : NULL;
    if (!line || sscanf(line, "VmHWM: %lu kB", &kilobytes) != 1)
        return (double)NAN;
    return (double)kilobytes * 1024;
}

void meters_report(const struct meters *meters, pid_t process,
                   struct record_meter rows[METERS_COUNT])
{
    const char *lost = meters->lost           ? "the system did not tell"
                       : meters->wall_ns == 0 ? "nothing was timed"
                                              : NULL;
    double wall = lost ? 1 : (double)meters->wall_ns;
    double memory = meters_peak_memory(process);

    rows[0] = (struct record_meter){"cpu_utilisation", 100 * (double)meters->cpu_ns / wall, lost};
    rows[1] =
        (struct record_meter){"peak_memory", memory, isnan(memory) ? "/proc does not tell" : NULL};
    rows[2] = (struct record_meter){"page_faults", 1e9 * (double)meters->page_faults / wall, lost};
    rows[3] =
        (struct record_meter){"context_switches", 1e9 * (double)meters->context_switches / wall,
                              process ? "not counted in another process" : lost};
}
