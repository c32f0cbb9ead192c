/* room.c: see room.h. */
#include "base/machine/room.h"

#include "base/machine/quota.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes that programs may still get, and swap; 0 where the system does not say. */
static double machine_left(void)
{
    char line[128];
    double available = 0, swap = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "MemAvailable:", 13) == 0)
            available = 1024 * strtod(line + 13, NULL);
        if (strncmp(line, "SwapFree:", 9) == 0)
            swap = 1024 * strtod(line + 9, NULL);
    }
    if (file)
        fclose(file);
    return available > 0 ? available + swap : 0;
}

/* Bytes of its own that this process holds. */
static double held_bytes(void)
{
    double resident = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*f %lf %lf", &resident, &shared) != 2)
        resident = shared = 0;
    if (file)
        fclose(file);
    return (resident - shared) * (double)sysconf(_SC_PAGESIZE);
}

double room_bytes(void)
{
    const double machine = machine_left(), held = held_bytes();
    const double group = quota_memory_left("/proc/self/cgroup", "/sys/fs/cgroup");
    double room = (double)mem_total();
    if (machine > 0 && machine + held < room)
        room = machine + held;
    return group > 0 && group + held < room ? group + held : room;
}

enum status room_check(double bytes, const char *format, ...)
{
    static const double LITTLE = 16e6; /* is not worth the files that are read */
    char what[512];
    va_list arguments;
    if (bytes <= LITTLE)
        return STATUS_OK;
    const double total = (double)mem_total(), room = room_bytes();
    if (bytes <= room)
        return STATUS_OK;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (bytes > total)
        FAIL(STATUS_MEMORY, "out of memory: %s; this machine allows %.1f MB", what, total / 1e6);
    FAIL(STATUS_MEMORY,
         "out of memory: %s; this machine allows %.1f MB, of which other programs hold %.1f MB now",
         what, total / 1e6, (total - room) / 1e6);
}
