/* passes.c: see passes.h. */
#include "bench/meter/passes.h"

#include "base/clock.h"
#include "bench/meter/counters.h"
#include "bench/meter/energy.h"
#include "bench/meter/syscalls.h"

#include <math.h>
#include <unistd.h>

static const double PASS_NS = 5e7, ENERGY_NS = 2e8; /* how long a pass should take … */
static const double GPU_NS = 5e8;                   /* NVML counts in tenths of a second */
static const double LONG_NS = 5e8; /* … and an iteration that is too long for more than one */

/* The rows that are being written. */
struct sheet {
    struct arena *arena;
    struct record_meter *rows;
    size_t count;
    const char *broken; /* why there are no more passes, or NULL */
};

static void add(struct sheet *sheet, const char *name, double value, const char *unavailable)
{
    sheet->rows[sheet->count++] = (struct record_meter){name, value, unavailable};
}

static int64_t iterations_for(const struct passes *passes, double pass_ns)
{
    double count = pass_ns / passes->iteration_ns;
    return count < 1 ? 1 : count > 1e6 ? 1000000 : (int64_t)count;
}

/* The most frequent call that is below `most` and has not been told. */
static int next_call(const struct syscalls *calls, const bool told[SYSCALLS_NUMBERS])
{
    int best = -1;
    for (int i = 0; i < SYSCALLS_NUMBERS; i++)
        if (calls->counts[i] && !told[i] && (best < 0 || calls->counts[i] > calls->counts[best]))
            best = i;
    return best;
}

static enum status add_syscalls(const struct passes *passes, struct sheet *sheet)
{
    struct syscalls calls;
    bool told[SYSCALLS_NUMBERS] = {false};
    TRY(syscalls_count(passes->job, passes->family, iterations_for(passes, PASS_NS), &calls));
    double per_s = 1e9 / passes->iteration_ns / (double)calls.iterations;
    add(sheet, "system_calls", (double)syscalls_total(&calls) * per_s, NULL);
    for (int i = 0, call; i < PASSES_CALLS && (call = next_call(&calls, told)) >= 0; i++) {
        const char *known = syscall_name(call);
        const char *name = known ? arena_format(sheet->arena, "system_calls.%s", known)
                                 : arena_format(sheet->arena, "system_calls.%d", call);
        NEED(name);
        add(sheet, name, (double)calls.counts[call] * per_s, NULL);
        told[call] = true;
    }
    return STATUS_OK;
}

static enum status add_counters(const struct passes *passes, struct sheet *sheet)
{
    struct counters counters;
    TRY(counters_count(passes->job, passes->family, iterations_for(passes, PASS_NS), &counters));
    for (int i = 0; i < COUNTERS; i++)
        add(sheet, counter_names[i], counters.per_iteration[i],
            isnan(counters.per_iteration[i]) ? "this CPU does not count them" : NULL);
    return STATUS_OK;
}

/* Joules of all samples of a pass, by whoever counts them. */
static enum status add_cpu_energy(const struct passes *passes, struct sheet *sheet)
{
    int64_t iterations = iterations_for(passes, ENERGY_NS);
    double before, after;
    uint64_t elapsed_ns;
    TRY(energy_read_cpu(passes->powercap, &before));
    TRY(passes->job->kind->run(passes->job, iterations, &elapsed_ns));
    TRY(energy_read_cpu(passes->powercap, &after));
    double joules = (after - before) / (double)(iterations * passes->batch);
    add(sheet, "energy", joules, joules < 0 ? "the counter wrapped around" : NULL);
    return STATUS_OK;
}

static void add_read(struct sheet *sheet, const char *name, double value)
{
    add(sheet, name, value, isnan(value) ? "this GPU does not tell" : NULL);
}

static const char *const gpu_names[] = {"energy",    "gpu_power",        "gpu_utilisation",
                                        "gpu_clock", "gpu_memory_clock", "gpu_memory"};

/* All by NVML. What it tells of one moment is read at the end of the pass, when the GPU has just
 * been busy; power is what the counter of energy makes of the pass where there is one. */
static enum status add_gpu(const struct passes *passes, struct sheet *sheet)
{
    int64_t iterations = iterations_for(passes, GPU_NS);
    struct gpu_meter meter;
    struct gpu_company company;
    uint64_t elapsed_ns;
    TRY(gpu_meter_open(&meter));
    double before = gpu_meter_read(&meter, GPU_JOULES), now[GPU_READINGS];
    uint64_t start_ns = clock_ns();
    enum status status = passes->job->kind->run(passes->job, iterations, &elapsed_ns);
    for (int what = 0; what < GPU_READINGS; what++)
        now[what] = gpu_meter_read(&meter, (enum gpu_reading)what);
    double seconds = 1e-9 * (double)(clock_ns() - start_ns), joules = now[GPU_JOULES] - before;
    gpu_meter_company(&meter, passes->family, 0, &company);
    gpu_meter_close(&meter);
    TRY(status);
    add_read(sheet, gpu_names[0], joules / (double)(iterations * passes->batch));
    add_read(sheet, gpu_names[1], joules > 0 ? joules / seconds : now[GPU_WATTS]);
    add_read(sheet, gpu_names[2], now[GPU_UTILISATION]);
    add_read(sheet, gpu_names[3], now[GPU_CLOCK]);
    add_read(sheet, gpu_names[4], now[GPU_MEMORY_CLOCK]);
    add(sheet, gpu_names[5], company.bytes,
        isnan(company.bytes) ? "NVML does not list the process: a container may number it "
                               "differently"
                             : NULL);
    return STATUS_OK;
}

/* One pass, and what it finds out. */
struct pass {
    enum status (*run)(const struct passes *passes, struct sheet *sheet);
    const char *const *names;
    size_t count;
};

static const char *const syscalls_names[] = {"system_calls"}, *const energy_names[] = {"energy"};
static const struct pass syscalls_pass = {add_syscalls, syscalls_names, 1},
                         counters_pass = {add_counters, counter_names, COUNTERS},
                         energy_pass = {add_cpu_energy, energy_names, 1},
                         gpu_pass = {add_gpu, gpu_names, sizeof gpu_names / sizeof *gpu_names};

/* What it cannot find out says why. Work that broke (a peer may die of being traced) is not asked
 * again: the passes after it have the same reason, and what was timed before stays as good as it
 * was. Fails only when memory is out. */
static enum status pass_run(const struct pass *pass, const struct passes *passes,
                            struct sheet *sheet)
{
    const char *reason = sheet->broken;
    size_t before = sheet->count;
    if (!reason) {
        enum status status = pass->run(passes, sheet);
        if (status == STATUS_OK || status == STATUS_MEMORY)
            return status;
        NEED(reason = arena_text(sheet->arena, status_message()));
        if (status != STATUS_UNSUPPORTED)
            sheet->broken = reason;
    }
    sheet->count = before;
    for (size_t i = 0; i < pass->count; i++)
        add(sheet, pass->names[i], (double)NAN, reason);
    return STATUS_OK;
}

enum status passes_run(const struct passes *passes, struct arena *arena,
                       struct record_meter rows[PASSES_ROWS], size_t *count)
{
    struct sheet sheet = {.arena = arena, .rows = rows};
    static const char too_long[] = "an iteration is too long for a pass of its own";

    if (passes->iteration_ns > passes->patience_ns)
        sheet.broken = too_long;
    TRY(pass_run(&syscalls_pass, passes, &sheet));
    if (passes->iteration_ns > LONG_NS && !sheet.broken)
        sheet.broken = too_long;
    if (passes->cold && !sheet.broken)
        sheet.broken = "the counters would include the code that empties the caches";
    TRY(pass_run(&counters_pass, passes, &sheet));
    TRY(pass_run(passes->gpu ? &gpu_pass : &energy_pass, passes, &sheet));
    *count = sheet.count;
    return STATUS_OK;
}

static enum status idle_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    (void)job;
    for (int64_t i = 0; i < iterations; i++)
        getppid(); /* a call that does nothing, so that there is one to be counted */
    *elapsed_ns = 1;
    return STATUS_OK;
}

enum status passes_try(struct arena *arena, struct record_meter rows[PASSES_ROWS], size_t *count)
{
    static const struct job_kind idle = {.name = "idle", .run = idle_run};
    struct job job = {&idle};
    const struct family ours = {.count = 0};
    const struct passes passes = {
        .job = &job, .family = &ours, .iteration_ns = LONG_NS, .patience_ns = LONG_NS, .batch = 1};
    TRY(passes_run(&passes, arena, rows, count));
    struct sheet sheet = {.arena = arena, .rows = rows + *count};
    TRY(pass_run(&gpu_pass, &passes, &sheet));
    for (size_t i = 1; i < sheet.count; i++) /* its energy is the CPU's meter on another unit */
        sheet.rows[i - 1] = sheet.rows[i];
    *count += sheet.count - 1;
    return STATUS_OK;
}
