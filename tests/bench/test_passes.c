/* Meters in passes of their own, against work whose counts are known. */
#include "check.h"

#include "base/file.h"
#include "bench/meter/counters.h"
#include "bench/meter/energy.h"
#include "bench/meter/passes.h"
#include "bench/meter/syscalls.h"
#include "bench/meter/watch.h"
#include "bench/peer/job_peer.h"

#include <math.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PARENTS = 3, IDS = 2 };
static const struct family ours;

/* Each iteration asks three times for its parent and twice for itself. */
static enum status known_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    (void)job;
    for (int64_t i = 0; i < iterations; i++) {
        for (int j = 0; j < PARENTS; j++)
            syscall(SYS_getppid);
        for (int j = 0; j < IDS; j++)
            syscall(SYS_gettid);
    }
    *elapsed_ns = 1;
    return STATUS_OK;
}

static const struct job_kind known_kind = {.name = "known", .run = known_run};

TEST(counts_every_system_call)
{
    struct job job = {&known_kind};
    struct syscalls calls;
    enum status status = syscalls_count(&job, &ours, 100, &calls);
    if (status == STATUS_UNSUPPORTED)
        SKIP("%s", status_message());
    if (!CHECK_OK(status))
        return;
    CHECK_EQUAL_INT(calls.counts[SYS_getppid], PARENTS * 100);
    CHECK_EQUAL_INT(calls.counts[SYS_gettid], IDS * 100);
    CHECK_EQUAL_INT(calls.counts[SYS_write], 0);
    CHECK_EQUAL_INT(syscalls_total(&calls), (PARENTS + IDS) * 100);
    CHECK_EQUAL_TEXT(syscall_name(SYS_getppid), "getppid");
    CHECK(syscall_name(SYSCALLS_NUMBERS - 1) == NULL);
}

static enum status quiet_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    (void)job;
    static volatile int64_t sum;
    for (int64_t i = 0; i < iterations; i++)
        sum = sum + i;
    *elapsed_ns = 1;
    return STATUS_OK;
}

static const struct job_kind quiet_kind = {.name = "quiet", .run = quiet_run};

TEST(what_makes_no_call_has_none)
{
    struct job job = {&quiet_kind};
    struct syscalls calls;
    enum status status = syscalls_count(&job, &ours, 1000, &calls);
    if (status == STATUS_UNSUPPORTED)
        SKIP("%s", status_message());
    CHECK_OK(status);
    CHECK_EQUAL_INT(syscalls_total(&calls), 0);
}

/* The process goes on as before when nobody traces it any more, and can be traced again. */
TEST(tracing_leaves_no_trace)
{
    struct job job = {&known_kind};
    struct syscalls calls;
    for (int i = 0; i < 3; i++) {
        enum status status = syscalls_count(&job, &ours, 1, &calls);
        if (status == STATUS_UNSUPPORTED)
            SKIP("%s", status_message());
        CHECK_OK(status);
        CHECK_EQUAL_INT(syscalls_total(&calls), PARENTS + IDS);
    }
}

static enum status broken_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    (void)job;
    (void)iterations;
    *elapsed_ns = 0;
    FAIL(STATUS_DEVICE, "it broke");
}

static const struct job_kind broken_kind = {.name = "broken", .run = broken_run};

TEST(work_that_breaks_is_an_error)
{
    struct job job = {&broken_kind};
    struct syscalls calls;
    enum status status = syscalls_count(&job, &ours, 1, &calls);
    if (status == STATUS_UNSUPPORTED)
        SKIP("%s", status_message());
    CHECK_EQUAL_INT(status, STATUS_DEVICE);
    CHECK_MESSAGE("it broke");
}

TEST(a_process_that_is_not_there_cannot_be_traced)
{
    struct job job = {&known_kind};
    struct syscalls calls;
    const struct family nobody = {{2147483600}, 1};
    CHECK_STATUS(STATUS_UNSUPPORTED, syscalls_count(&job, &nobody, 1, &calls));
}

/* A long iteration is run once more, so that its calls are known; a longer one is not. */
TEST(patience_decides_whether_a_long_iteration_is_run_again)
{
    struct job job = {&known_kind};
    struct passes passes = {
        .job = &job, .family = &ours, .iteration_ns = 1e10, .patience_ns = 2e10, .batch = 1};
    struct record_meter rows[PASSES_ROWS];
    struct arena arena = {0};
    size_t count;
    if (CHECK_OK(passes_run(&passes, &arena, rows, &count))) {
        if (!rows[0].unavailable)
            CHECK_NEAR(rows[0].value, (PARENTS + IDS) * 0.1, 1e-9);
        CHECK_EQUAL_TEXT(rows[count - 1].name, "energy");
        CHECK(rows[count - 1].unavailable && strstr(rows[count - 1].unavailable, "too long"));
    }
    passes.patience_ns = 5e9;
    if (CHECK_OK(passes_run(&passes, &arena, rows, &count)))
        CHECK(rows[0].unavailable && strstr(rows[0].unavailable, "too long"));
    arena_free(&arena);
}

TEST(rates_follow_from_the_time_of_an_iteration)
{
    struct job job = {&known_kind};
    const struct passes passes = {
        .job = &job, .family = &ours, .iteration_ns = 1e7, .patience_ns = 1e9, .batch = 4};
    struct record_meter rows[PASSES_ROWS];
    struct arena arena = {0};
    size_t count;
    if (CHECK_OK(passes_run(&passes, &arena, rows, &count))) {
        CHECK_EQUAL_TEXT(rows[0].name, "system_calls");
        if (rows[0].unavailable)
            check_skip("%s", rows[0].unavailable);
        else {
            CHECK_NEAR(rows[0].value, (PARENTS + IDS) * 100, 1e-6); /* 100 iterations a second */
            CHECK_EQUAL_TEXT(rows[1].name, "system_calls.getppid");
            CHECK_NEAR(rows[1].value, PARENTS * 100, 1e-6);
            CHECK_EQUAL_TEXT(rows[2].name, "system_calls.gettid");
        }
        for (size_t i = 0; i < count; i++) /* a value, or why there is none */
            CHECK(rows[i].unavailable ? rows[i].unavailable[0] != '\0' : !isnan(rows[i].value));
    }
    arena_free(&arena);
}

static int64_t runs;

static enum status dying_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    runs++;
    return broken_run(job, iterations, elapsed_ns);
}

static const struct job_kind dying_kind = {.name = "dying", .run = dying_run};

/* The kernel's folders of what uses energy, or none. */
static const char *const rapl[] = {"intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1",
                                   "intel-rapl-mmio:0", "intel-rapl:2"};
static const char *const rapl_names[] = {"package-0\n", "core\n", "psys\n", "package-0\n",
                                         "package-1\n"};
enum { DOMAINS = sizeof rapl / sizeof *rapl };

static bool domains_make(char folder[], int count)
{
    char path[240];
    bool made = CHECK(mkdtemp(folder) != NULL);
    for (int i = 0; i < count && made; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, rapl[i]);
        made = CHECK_OK(file_make_folder(path));
        snprintf(path, sizeof path, "%s/%s/name", folder, rapl[i]);
        made = made && CHECK_OK(file_write(path, rapl_names[i], strlen(rapl_names[i])));
        snprintf(path, sizeof path, "%s/%s/energy_uj", folder, rapl[i]);
        made = made && CHECK_OK(file_write(path, "1000000", 7));
    }
    return made;
}

static void domains_remove(const char *folder, int count)
{
    char path[240];
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s/name", folder, rapl[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s/energy_uj", folder, rapl[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s", folder, rapl[i]);
        rmdir(path);
    }
    rmdir(folder);
}

/* Whichever meters a machine has: what breaks in the first pass is not run in another one, the
 * meters say why, and it is no error. */
TEST(work_that_breaks_in_a_pass_has_no_meters)
{
    char folder[] = "/tmp/test_passes-XXXXXX";
    struct job job = {&dying_kind};
    struct record_meter rows[PASSES_ROWS];
    struct arena arena = {0};
    size_t count = 0;
    if (!domains_make(folder, 1))
        return;
    const struct passes passes = {.job = &job,
                                  .family = &ours,
                                  .iteration_ns = 1e7,
                                  .patience_ns = 1e9,
                                  .batch = 4,
                                  .powercap = folder};
    runs = 0;
    CHECK_OK(passes_run(&passes, &arena, rows, &count));
    CHECK_EQUAL_INT(runs, 1);
    CHECK_EQUAL_INT((long long)count, 1 + COUNTERS + 1);
    for (size_t i = 0; i < count; i++)
        CHECK(rows[i].unavailable != NULL);
    if (count)
        CHECK_EQUAL_TEXT(rows[count - 1].unavailable, "it broke");
    arena_free(&arena);
    domains_remove(folder, 1);
}

TEST(counters_count_or_say_why_not)
{
    struct job job = {&quiet_kind};
    struct counters counters;
    enum status status = counters_count(&job, &ours, 1000000, &counters);
    if (status == STATUS_UNSUPPORTED)
        SKIP("%s", status_message());
    CHECK_OK(status);
    if (!isnan(counters.per_iteration[1])) /* a load, an add, a store, a branch */
        CHECK(counters.per_iteration[1] >= 3 && counters.per_iteration[1] < 30);
}

/* Each iteration uses three joules. */
static const char *counter_path;
static long joules_used;

static enum status burning_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    char text[40];
    (void)job;
    joules_used += 3 * (long)iterations;
    snprintf(text, sizeof text, "%ld", 1000000 * joules_used);
    *elapsed_ns = 1;
    return file_write(counter_path, text, strlen(text));
}

static const struct job_kind burning_kind = {.name = "burning", .run = burning_run};

TEST(energy_is_that_of_a_sample)
{
    char folder[] = "/tmp/test_passes-XXXXXX", path[200];
    struct job job = {&burning_kind};
    struct record_meter rows[PASSES_ROWS];
    struct arena arena = {0};
    size_t count = 0;
    uint64_t elapsed_ns;
    if (!domains_make(folder, 1))
        return;
    snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", folder);
    counter_path = path;
    CHECK_OK(burning_run(&job, 1, &elapsed_ns));
    const struct passes passes = {.job = &job,
                                  .family = &ours,
                                  .iteration_ns = 1e7,
                                  .patience_ns = 1e9,
                                  .batch = 4,
                                  .powercap = folder};
    double energy = 0;
    if (CHECK_OK(passes_run(&passes, &arena, rows, &count)))
        for (size_t i = 0; i < count; i++)
            if (strcmp(rows[i].name, "energy") == 0)
                energy = rows[i].value;
    CHECK_NEAR(energy, 3.0 / 4, 1e-9);
    arena_free(&arena);
    domains_remove(folder, 1);
}

/* Two seconds of two CPUs: the host took 0.1 s, we used 1 s of 3. */
TEST(steal_and_load_have_their_units)
{
    struct watch watch = {
        .start = {.wall_ns = 5000000000, .steal_ns = 1e9, .busy_ns = 2e9, .ours_ns = 7e9},
        .end = {.wall_ns = 7000000000, .steal_ns = 1.1e9, .busy_ns = 5e9, .ours_ns = 8e9}};
    struct record_meter rows[WATCH_ROWS];
    struct text notes = {0};
    watch.start.ghz = 3;
    watch.end.ghz = 2;
    CHECK_EQUAL_INT((int)watch_report(&watch, rows), 2);
    CHECK_EQUAL_TEXT(rows[0].name, "steal");
    CHECK_NEAR(rows[0].value, 5, 1e-9);
    CHECK_EQUAL_TEXT(rows[1].name, "other_load");
    CHECK_NEAR(rows[1].value, 1, 1e-9);
    watch_note(&watch, &notes);
    CHECK_EQUAL_TEXT(text_of(&notes), "; the host took 5 % of a CPU away; others kept 1.0 cores "
                                      "busy; the clock went from 3.0 to 2.0 GHz");
    text_clear(&notes);
    watch.end = watch.start;
    watch.end.wall_ns += 2000000000;
    watch_note(&watch, &notes);
    CHECK_EQUAL_TEXT(text_of(&notes), "");
    text_free(&notes);
}

/* Each CPU by itself adds up to all of them, so that what happens on others' CPUs is left out. */
TEST(only_cpus_that_may_be_used_are_watched)
{
    struct watch all = {0}, open = {0};
    watch_begin(&all);
    double busy_ns = 0, most_ns = 0;
    for (size_t cpu = 0; cpu < (size_t)sysconf(_SC_NPROCESSORS_CONF); cpu++) {
        struct watch one = {0};
        CPU_SET(cpu, &one.cpus);
        watch_begin(&one);
        busy_ns += one.start.busy_ns;
        most_ns = fmax(most_ns, one.start.busy_ns);
    }
    if (isnan(busy_ns))
        SKIP("the system has no /proc/stat");
    CHECK_NEAR(busy_ns / all.start.busy_ns, 1, 0.05);
    CHECK(most_ns > 0 && most_ns <= busy_ns);
    watch_open(&open);
    CHECK(CPU_COUNT(&open.cpus) >= 1);
}

/* What the records say of n other processes on the GPU that are so busy. */
static void check_company(int others, double busy, double row, const char *note)
{
    struct watch watch = {
        .gpu = true,
        .start = {.company = {.others = others}},
        .end = {.wall_ns = 2000000000, .company = {.others = others, .busy = busy}}};
    struct record_meter rows[WATCH_ROWS];
    struct text notes = {0};
    CHECK_EQUAL_INT((int)watch_report(&watch, rows), 4);
    CHECK_EQUAL_TEXT(rows[2].name, "gpu_others");
    CHECK_NEAR(rows[2].value, row, 1e-9);
    CHECK_EQUAL_INT(rows[2].unavailable != NULL, others < 0);
    CHECK_EQUAL_TEXT(rows[3].name, "gpu_others_busy");
    CHECK_EQUAL_INT(rows[3].unavailable != NULL, isnan(busy) && others);
    if (!rows[3].unavailable)
        CHECK_NEAR(rows[3].value, others ? busy : 0, 1e-9);
    watch_note(&watch, &notes);
    CHECK_EQUAL_TEXT(text_of(&notes), note);
    text_free(&notes);
}

TEST(others_on_the_gpu_are_told)
{
    check_company(0, (double)NAN, 0, "");
    check_company(1, 0, 1, ""); /* it is there, and does nothing */
    check_company(1, 45, 1, "; 1 other process is on the GPU, busy for up to 45 % of the time");
    check_company(2, (double)NAN, 2, "; 2 other processes are on the GPU");
    check_company(-1, (double)NAN, -1, "");
}

TEST(energy_is_that_of_the_packages)
{
    char folder[] = "/tmp/test_passes-XXXXXX";
    double joules;
    if (domains_make(folder, DOMAINS) && CHECK_OK(energy_read_cpu(folder, &joules)))
        CHECK_NEAR(joules, 2, 1e-9); /* not a part, the whole machine, or the same one again */
    domains_remove(folder, DOMAINS);
    CHECK_STATUS(STATUS_UNSUPPORTED, energy_read_cpu(folder, &joules));
    CHECK_MESSAGE("no RAPL");
    snprintf(folder, sizeof folder, "/tmp/test_passes-XXXXXX");
    if (domains_make(folder, 0)) {
        CHECK_STATUS(STATUS_UNSUPPORTED, energy_read_cpu(folder, &joules));
        CHECK_MESSAGE("no package");
    }
    domains_remove(folder, 0);
}

TEST(a_gpu_meter_is_there_or_says_why)
{
    struct gpu_meter meter;
    enum status status = gpu_meter_open(&meter);
    if (status == STATUS_UNSUPPORTED)
        SKIP("%s", status_message());
    if (!CHECK_OK(status))
        return;
    CHECK(!(gpu_meter_read(&meter, GPU_CLOCK) <= 0));
    CHECK(isnan(gpu_meter_read(&meter, GPU_READINGS)));
    gpu_meter_close(&meter);
}

CHECK_MAIN
