/* meters.c: see meters.h. */
#include "bench/meter/meters.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The first 4 KB of /proc/PROCESS/NAME as text; false when it cannot be read. */
static bool meters_proc(pid_t process, const char *name, char text[4096])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, 4095, file);
    text[length] = '\0';
    fclose(file);
    return length > 0;
}

/* Adds another process: its CPU clock, and /proc/PID/stat, where after the name in brackets the 8th
 * and 10th fields are the faults without and with reading from disk. */
static bool meters_add_process(pid_t process, struct meters_reading *out)
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
    out->cpu_ns += (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    out->page_faults += minor + major;
    return true;
}

/* A thread has a folder in /proc too, and its own count. */
static void meters_add_switches(pid_t thread, struct meters_reading *out)
{
    char text[4096];
    unsigned long willing, unwilling;
    const char *line =
        meters_proc(thread, "status", text) ? strstr(text, "\nvoluntary_ctxt_switches:") : NULL;
    if (line && sscanf(line, " voluntary_ctxt_switches: %lu nonvoluntary_ctxt_switches: %lu",
                       &willing, &unwilling) == 2)
        out->context_switches += willing + unwilling;
}

/* All but the time; of those that have ended nothing is known. */
static bool meters_read(const struct family *family, struct meters_reading *out)
{
    pid_t threads[FAMILY_THREADS];
    struct rusage usage;

    if (family->count) {
        if (!meters_add_process(family->processes[0], out))
            return false;
        for (int i = 1; i < family->count; i++)
            meters_add_process(family->processes[i], out);
        for (int i = family_threads(family, threads) - 1; i >= 0; i--)
            meters_add_switches(threads[i], out);
        return true;
    }
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return false;
    out->cpu_ns = clock_cpu_ns();
    out->page_faults = (uint64_t)(usage.ru_minflt + usage.ru_majflt);
    out->context_switches = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
    return true;
}

void meters_begin(struct meters *meters, const struct family *family)
{
    meters->start = (struct meters_reading){0};
    meters->running = true;
    if (!meters_read(family, &meters->start))
        meters->lost = true;
    meters->start.wall_ns = clock_ns(); /* what reading takes is not their time */
}

/* What a thread or process that ended meanwhile had counted before is not to be taken away. */
static void meters_add(uint64_t *sum, uint64_t before, uint64_t now)
{
    *sum += now > before ? now - before : 0;
}

void meters_end(struct meters *meters, const struct family *family)
{
    const struct meters_reading *start = &meters->start;
    struct meters_reading now = {.wall_ns = clock_ns()};
    meters->running = false;
    if (!meters_read(family, &now)) {
        meters->lost = true;
        return;
    }
    meters_add(&meters->wall_ns, start->wall_ns, now.wall_ns);
    meters_add(&meters->cpu_ns, start->cpu_ns, now.cpu_ns);
    meters_add(&meters->page_faults, start->page_faults, now.page_faults);
    meters_add(&meters->context_switches, start->context_switches, now.context_switches);
}

/* The most memory that each process ever held, in all; of this one, whatever else it did before. */
static double meters_peak_memory(const struct family *family)
{
    double bytes = 0;
    for (int i = 0; i < (family->count ? family->count : 1); i++) {
        char text[4096];
        unsigned long kilobytes;
        pid_t process = family->count ? family->processes[i] : getpid();
        const char *line = meters_proc(process, "status", text) ? strstr(text, "VmHWM:") : NULL;
        if (line && sscanf(line, "VmHWM: %lu kB", &kilobytes) == 1)
            bytes += (double)kilobytes * 1024;
        else if (i == 0)
            return (double)NAN;
    }
    return bytes;
}

void meters_report(const struct meters *meters, const struct family *family,
                   struct record_meter rows[METERS_COUNT])
{
    const char *lost = meters->lost           ? "the system did not tell"
                       : meters->wall_ns == 0 ? "nothing was timed"
                                              : NULL;
    double wall = lost ? 1 : (double)meters->wall_ns;
    double memory = meters_peak_memory(family);

    rows[0] = (struct record_meter){"cpu_utilisation", 100 * (double)meters->cpu_ns / wall, lost};
    rows[1] =
        (struct record_meter){"peak_memory", memory, isnan(memory) ? "/proc does not tell" : NULL};
    rows[2] = (struct record_meter){"page_faults", 1e9 * (double)meters->page_faults / wall, lost};
    rows[3] = (struct record_meter){"context_switches",
                                    1e9 * (double)meters->context_switches / wall, lost};
}
