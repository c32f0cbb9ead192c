/* watch.c: see watch.h. */
#include "bench/meter/watch.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* /proc/stat counts in hundredths of a second: shorter than this it says nothing. */
static const uint64_t TELLING_NS = 200000000;
static const double CLOCK_MATTERS = 0.05;
static const double HELD_MATTERS = 1; /* per cent of the time */

/* NVML looks at processes a few times a second: of a shorter time, what they did just before
 * counts. */
static const uint64_t COMPANY_US = 1000000;

/* The number in a file that holds one, or NaN. */
static double read_number(const char *path)
{
    double number = (double)NAN;
    FILE *file = fopen(path, "re");
    if (!file)
        return number;
    if (fscanf(file, "%lf", &number) != 1)
        number = (double)NAN;
    fclose(file);
    return number;
}

/* The first CPU's clock: as the governor sees it, or as /proc/cpuinfo says. */
static double read_ghz(void)
{
    double khz = read_number("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"), mhz;
    char line[256];
    if (!isnan(khz))
        return khz * 1e-6;
    FILE *file = fopen("/proc/cpuinfo", "re");
    double ghz = (double)NAN;
    while (file && isnan(ghz) && fgets(line, sizeof line, file))
        if (sscanf(line, "cpu MHz : %lf", &mhz) == 1)
            ghz = mhz * 1e-3;
    if (file)
        fclose(file);
    return ghz;
}

/* A line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks. Without a list of
 * CPUs the first line has the sum; with one, those that are in it are added up. */
static void read_stat(const cpu_set_t *cpus, struct watch_reading *out)
{
    double user, nice, system, irq, soft, steal, tick_ns = 1e9 / (double)sysconf(_SC_CLK_TCK);
    char line[512];
    unsigned cpu;
    const bool all = CPU_COUNT(cpus) == 0;
    FILE *file = fopen("/proc/stat", "re");
    out->busy_ns = out->steal_ns = file ? 0 : (double)NAN;
    while (file && fgets(line, sizeof line, file) && strncmp(line, "cpu", 3) == 0) {
        const bool sum = line[3] == ' ';
        if (sum != all || (!sum && (sscanf(line, "cpu%u", &cpu) != 1 || cpu >= CPU_SETSIZE ||
                                    !CPU_ISSET(cpu, cpus))))
            continue;
        if (sscanf(line, "%*s %lf %lf %lf %*f %*f %lf %lf %lf", &user, &nice, &system, &irq, &soft,
                   &steal) != 6)
            continue;
        out->busy_ns += (user + nice + system + irq + soft) * tick_ns;
        out->steal_ns += steal * tick_ns;
    }
    if (file)
        fclose(file);
}

static uint64_t watch_ns(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

static double process_ns(pid_t process)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (double)watch_ns(&time);
}

/* CPU time of children that ended. */
static double ended_ns(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) != 0)
        return 0;
    return 1e9 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e3 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Outside of what is timed: opening NVML takes a moment. */
static void read_gpu(struct watch_reading *out, uint64_t from_us)
{
    static const struct family own;
    struct gpu_meter meter;
    out->capped_s = out->hot_s = (double)NAN;
    out->company = (struct gpu_company){.others = -1, .bytes = (double)NAN, .busy = (double)NAN};
    if (gpu_meter_open(&meter) != STATUS_OK)
        return; /* the meters say why */
    out->capped_s = gpu_meter_read(&meter, GPU_POWER_CAPPED);
    out->hot_s = gpu_meter_read(&meter, GPU_HOT);
    gpu_meter_company(&meter, &own, from_us, &out->company);
    gpu_meter_close(&meter);
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static void read_all(const struct watch *watch, struct watch_reading *out)
{
    out->wall_ns = clock_ns();
    out->ours_ns = (double)clock_cpu_ns() + ended_ns();
    for (int i = 0; i < watch->process_count; i++)
        out->ours_ns += process_ns(watch->processes[i]);
    read_stat(&watch->cpus, out);
    out->ghz = read_ghz();
    out->throttled = read_number("/sys/devices/system/cpu/cpu0/thermal_throttle/"
                                 "package_throttle_count");
}

static void note_held(struct text *notes, double seconds, double wall_ns, const char *why)
{
    double share = 100 * 1e9 * seconds / wall_ns;
    if (share > HELD_MATTERS)
        text_printf(notes, "; the GPU's clock was held down by its %s for %.0f %% of the time", why,
                    fmin(share, 100));
}

void watch_family(struct watch *watch, const struct family *family)
{
    for (int i = 0; i < family->count && watch->process_count < WATCH_PROCESSES; i++)
        watch->processes[watch->process_count++] = family->processes[i];
}

void watch_open(struct watch *watch)
{
    if (sched_getaffinity(0, sizeof watch->cpus, &watch->cpus) != 0)
        CPU_ZERO(&watch->cpus);
}

void watch_begin(struct watch *watch)
{
    watch->start.at_us = now_us();
    if (watch->gpu)
        read_gpu(&watch->start, watch->start.at_us);
    read_all(watch, &watch->start);
}

void watch_end(struct watch *watch)
{
    read_all(watch, &watch->end);
    if (watch->gpu)
        read_gpu(&watch->end, watch->start.at_us - COMPANY_US);
}

static double watch_wall(const struct watch *watch)
{
    uint64_t wall_ns = watch->end.wall_ns - watch->start.wall_ns;
    return wall_ns < TELLING_NS ? (double)NAN : (double)wall_ns;
}

static double watch_steal(const struct watch *watch)
{
    return 100 * (watch->end.steal_ns - watch->start.steal_ns) / watch_wall(watch);
}

/* What the CPUs did beyond what we did; rounding may make that a little less than nothing. */
static double watch_others(const struct watch *watch)
{
    double busy = watch->end.busy_ns - watch->start.busy_ns;
    double ours = watch->end.ours_ns - watch->start.ours_ns;
    double others = (busy - ours) / watch_wall(watch);
    return others < 0 ? 0 : others;
}

/* At one of both ends; -1: not known. */
static int watch_company(const struct watch *watch)
{
    const int before = watch->start.company.others, after = watch->end.company.others;
    return before > after ? before : after;
}

static void note_company(const struct watch *watch, struct text *notes)
{
    const int others = watch_company(watch);
    const double busy = watch->end.company.busy; /* NaN: not told, or they have gone */
    if (others <= 0 || busy < RECORD_GPU_OTHERS_MATTER)
        return;
    text_printf(notes, "; %d other process%s on the GPU", others, others == 1 ? " is" : "es are");
    if (!isnan(busy))
        text_printf(notes, ", busy for up to %.0f %% of the time", busy);
}

size_t watch_report(const struct watch *watch, struct record_meter rows[WATCH_ROWS])
{
    static const char unknown[] = "NVML does not list the processes of this system";
    static const char untold[] = "NVML does not say how busy they were";
    const int company = watch_company(watch);
    const char *reason = isnan(watch_wall(watch)) ? "it was too short" : "/proc does not tell";
    double steal = watch_steal(watch), others = watch_others(watch);
    rows[0] = (struct record_meter){"steal", steal, isnan(steal) ? reason : NULL};
    rows[1] = (struct record_meter){"other_load", others, isnan(others) ? reason : NULL};
    rows[2] = (struct record_meter){"gpu_others", company, company < 0 ? unknown : NULL};
    const double busy = company == 0 ? 0 : watch->end.company.busy;
    rows[3] = (struct record_meter){"gpu_others_busy", busy, isnan(busy) ? untold : NULL};
    return watch->gpu ? 4 : 2;
}

void watch_note(const struct watch *watch, struct text *notes)
{
    const struct watch_reading *start = &watch->start, *end = &watch->end;
    if (watch_steal(watch) > RECORD_STEAL_MATTERS)
        text_printf(notes, "; the host took %.0f %% of a CPU away", watch_steal(watch));
    if (watch_others(watch) > RECORD_OTHERS_MATTER)
        text_printf(notes, "; others kept %.1f cores busy", watch_others(watch));
    if (fabs(end->ghz / start->ghz - 1) > CLOCK_MATTERS)
        text_printf(notes, "; the clock went from %.1f to %.1f GHz", start->ghz, end->ghz);
    if (end->throttled > start->throttled)
        text_add(notes, "; the CPU was throttled");
    if (!watch->gpu)
        return;
    note_held(notes, end->capped_s - start->capped_s, watch_wall(watch), "power");
    note_held(notes, end->hot_s - start->hot_s, watch_wall(watch), "temperature");
    note_company(watch, notes);
}

/* "procs_running N" counts this process too; NaN: the system does not tell. */
static double read_running(void)
{
    char line[256];
    double running = (double)NAN;
    FILE *file = fopen("/proc/stat", "re");
    while (file && isnan(running) && fgets(line, sizeof line, file))
        if (sscanf(line, "procs_running %lf", &running) != 1)
            running = (double)NAN;
    if (file)
        fclose(file);
    return running;
}

/* By spinning for 20 ms of CPU time, which takes as long where a CPU is free. */
double watch_crowd(int cores)
{
    static const uint64_t ENOUGH_NS = 20 * 1000 * 1000, PATIENCE_NS = 200 * 1000 * 1000;
    struct timespec used = {0};
    if (!(read_running() > cores))
        return 1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    const uint64_t start_ns = clock_ns(), before_ns = watch_ns(&used);
    uint64_t wall_ns, cpu_ns;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        cpu_ns = watch_ns(&used) - before_ns;
        wall_ns = clock_ns() - start_ns;
    } while (cpu_ns < ENOUGH_NS && wall_ns < PATIENCE_NS);
    return fmax((double)wall_ns / fmax((double)cpu_ns, 1), 1);
}
