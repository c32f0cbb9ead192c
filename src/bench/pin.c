/* pin.c: see pin.h. */
#include "bench/pin.h"

#include "base/cpu.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

void pins_find(struct pins *pins)
{
    pins->count = cpu_list(true, pins->cpus, PIN_CPUS);
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

void pins_set(const struct pins *pins, pid_t process, long index)
{
    cpu_set_t set;
    if (pins->count < 2)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)pins->cpus[index % pins->count], &set);
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
