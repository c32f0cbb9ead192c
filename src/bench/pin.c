/* pin.c: see pin.h. */
#include "bench/pin.h"

#include "base/cpu.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

void pins_find(struct pins *pins)
{
    pins->count = cpu_list(true, pins->cpus, PIN_CPUS);
}

/* A share beyond the least that is somebody else's work, and what is left of it with every round
 * that goes elsewhere: half of the time is forgotten after 15. */
static const double OTHERS = 0.1, FORGETS = 0.9;

int pins_choose(struct pins *pins, int64_t round)
{
    if (pins->count == 0)
        return 0;
    double least = INFINITY;
    for (int i = 0; i < pins->count; i++) {
        pins->waits[i] *= FORGETS;
        least = fmin(least, pins->waits[i]);
    }
    int index = (int)(round % pins->count);
    while (pins->waits[index] > least + OTHERS)
        index = (index + 1) % pins->count;
    return index;
}

void pins_note(struct pins *pins, int index, uint64_t cpu_ns, uint64_t wall_ns)
{
    if (wall_ns > 0)
        pins->waits[index] = 1 - fmin(1, (double)cpu_ns / (double)wall_ns);
}

static void apply(pid_t process, const cpu_set_t *set)
{
    char path[40];
    if (!process) {
        sched_setaffinity(0, sizeof *set, set);
        return;
    }
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *tasks = opendir(path);
    if (!tasks)
        return;
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        if (thread > 0)
            sched_setaffinity(thread, sizeof *set, set);
    }
    closedir(tasks);
}

void pins_set(const struct pins *pins, pid_t process, int index)
{
    cpu_set_t set;
    if (pins->count < 2)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)pins->cpus[index], &set);
    apply(process, &set);
}

void pins_release(const struct pins *pins, pid_t process)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < pins->count; i++)
        CPU_SET((size_t)pins->cpus[i], &set);
    if (pins->count >= 2)
        apply(process, &set);
}
