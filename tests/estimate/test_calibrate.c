/* Ceilings: measured for a moment, kept between runs, never lowered. */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "estimate/calibrate.h"
#include "estimate/calibration_kept.h"
#include "estimate/probe.h"
#include "record/record.h"

#include <math.h>

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static const char *path(const char *name)
{
    static char folder[] = "/tmp/test_calibrate-XXXXXX", text[100];
    static bool made;
    if (!made && !mkdtemp(folder))
        abort();
    made = true;
    snprintf(text, sizeof text, "%s/%s", folder, name);
    return text;
}

static double best(const struct calibration *calibration, enum ceiling ceiling)
{
    double per_s = 0;
    for (size_t i = 0; i < calibration->count; i++)
        if (calibration->rows[i].ceiling == ceiling && calibration->rows[i].per_s > per_s)
            per_s = calibration->rows[i].per_s;
    return per_s;
}

TEST(it_is_quick_and_remembered)
{
    struct calibration calibration = {0};
    struct ceilings first, again;
    uint64_t start_ns = clock_ns();
    enum status status = calibrate(&calibration, 1, NULL, 49348804, false, &first);
    if (status == STATUS_UNSUPPORTED)
        SKIP("%s", status_message());
    if (CHECK_OK(status)) {
        CHECK(clock_ns() - start_ns < 5000000000); /* a fraction of a second on a quiet machine */
        CHECK(first.set_bytes <= 49348804 && first.set_bytes > 49348804 / 8 * 7);
        CHECK(first.flop_per_s > 1e8 && first.flop_per_s < 1e13);
        CHECK(first.read_per_s > 1e8 && first.read_per_s < 1e13);
        CHECK(first.update_per_s > 1e8 && first.update_per_s < 1e13);
        CHECK_OK(calibrate(&calibration, 1, "fp32", 49348804, false, &again));
        CHECK(again.flop_per_s >= first.flop_per_s && again.read_per_s >= first.read_per_s);
        CHECK_EQUAL_INT(calibration.count, 3);
        CHECK_OK(calibrate(&calibration, 1, NULL, 49348804, true, &again));
        CHECK(again.update_per_s >= first.update_per_s);
        CHECK_OK(calibrate(&calibration, 1000, NULL, 16384, false,
                           &again)); /* as many threads as cores */
        CHECK(again.threads >= 1 && again.threads < 1000);
    }
    calibration_free(&calibration);
}

/* A precision has its own peak, or where the CPU has none that of fp32. */
TEST(precisions_have_their_peaks)
{
    struct calibration calibration = {0};
    struct ceilings fp32, bf16, tf32;
    struct cpu cpu;
    cpu_detect(&cpu);
    enum status status = calibrate(&calibration, 1, "fp32", 16384, false, &fp32);
    if (status == STATUS_UNSUPPORTED)
        SKIP("%s", status_message());
    if (CHECK_OK(status) && CHECK_OK(calibrate(&calibration, 1, "bf16", 16384, false, &bf16)) &&
        CHECK_OK(calibrate(&calibration, 1, "tf32", 16384, false, &tf32))) {
        int own = burst_ways(CEILING_BF16, cpu.isa, &cpu)[0] != NULL;
        CHECK_EQUAL_INT(calibration.count, 3 + own);
        CHECK((best(&calibration, CEILING_BF16) == bf16.flop_per_s) == own);
    }
    calibration_free(&calibration);
}

/* Every way to run a burst does what it says, whatever ISA this CPU has. */
TEST(every_kernel_runs)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    for (int isa = 0; isa <= (int)cpu.isa; isa++)
        for (int ceiling = 0; cpu_has(&cpu, (enum isa)isa) && ceiling < CEILING_COUNT; ceiling++) {
            static _Alignas(64) char data[8 * BURST_GRAIN];
            burst_kernel *const *ways = burst_ways((enum ceiling)ceiling, (enum isa)isa, &cpu);
            for (int way = 0; ways[way]; way++) {
                memset(data, 0, sizeof data);
                ways[way](data + BURST_GRAIN, 6 * BURST_GRAIN, 2);
                float inside, before, after;
                memcpy(&inside, data + 7 * BURST_GRAIN - 4, 4);
                memcpy(&before, data + BURST_GRAIN - 4, 4);
                memcpy(&after, data + 7 * BURST_GRAIN, 4);
                CHECK_NEAR(inside, ceiling == CEILING_UPDATE ? 2 : 0, 0);
                CHECK_NEAR(before, 0, 0);
                CHECK_NEAR(after, 0, 0);
            }
            CHECK(ways[0] ||
                  (ceiling != CEILING_FP32 && !ceiling_is_memory((enum ceiling)ceiling)));
        }
}

static struct ceiling_row row(enum ceiling ceiling, double per_s)
{
    return (struct ceiling_row){ceiling, ISA_AVX2, 2, PAGES_2M, 1 << 20, per_s, 5e8, ""};
}

TEST(the_best_seen_is_kept)
{
    struct calibration calibration = {0}, other = {0};
    struct ceiling_row read = row(CEILING_READ, 50e9), lower = row(CEILING_READ, 40e9);
    struct ceiling_row copy = row(CEILING_COPY, 30e9);
    CHECK_OK(calibration_merge(&calibration, &read));
    calibration.changed = true;
    CHECK_OK(calibration_keep(&calibration, path("kept.json")));
    CHECK(!calibration.changed);

    /* someone else saw less of one and something of another meanwhile */
    CHECK_OK(calibration_merge(&other, &lower));
    CHECK_OK(calibration_merge(&other, &copy));
    other.changed = true;
    CHECK_OK(calibration_keep(&other, path("kept.json")));
    calibration_free(&calibration);
    CHECK_OK(calibration_read(&calibration, path("kept.json")));
    CHECK_EQUAL_INT(calibration.count, 2);
    CHECK_NEAR(best(&calibration, CEILING_READ), 50e9, 1);
    CHECK_NEAR(best(&calibration, CEILING_COPY), 30e9, 1);
    CHECK_EQUAL_INT(calibration.rows[0].set_bytes, 1 << 20);
    CHECK_EQUAL_INT(calibration.rows[0].pages, PAGES_2M);
    calibration_free(&calibration);
    calibration_free(&other);
}

/* A unit that is no CPU: what it is asked for, and how often. */
static int bursts;

static enum status unit_probe(void)
{
    return STATUS_OK;
}

static enum status unit_open(const struct device_options *options, struct device **out)
{
    (void)options;
    *out = (struct device *)(void *)&bursts;
    return STATUS_OK;
}

static void unit_close(struct device *device)
{
    (void)device;
}

static void unit_describe(const struct device *device, struct device_info *out)
{
    (void)device;
    *out = (struct device_info){.name = "a GPU"};
}

/* Twice as fast when it is looked at for longer; it does not know int8. */
static enum status unit_burst(struct device *device, const char *kind, uint64_t set_bytes,
                              uint64_t limit_ns, double *per_s)
{
    (void)device;
    bursts++;
    if (strcmp(kind, "int8") == 0)
        FAIL(STATUS_UNSUPPORTED, "no int8 here");
    *per_s = strcmp(kind, "tf32") == 0 ? 4e14 : strcmp(kind, "launch") == 0 ? 5e5 : 5e13;
    if (set_bytes)
        *per_s = set_bytes < 32 << 20 ? 8e12 : 4e12;
    *per_s *= limit_ns > 100000000 ? 2 : 1;
    return STATUS_OK;
}

static const struct backend unit_backend = {.abi = BACKEND_ABI,
                                            .name = "unit",
                                            .unit = "gpu",
                                            .probe = unit_probe,
                                            .open = unit_open,
                                            .close = unit_close,
                                            .describe = unit_describe,
                                            .burst = unit_burst};

/* What a unit's memory gives now, of what it gives at best; times of a task whose memory is all
 * that counts. */
static double given = 1;

static enum status hour_burst(struct device *device, const char *kind, uint64_t set_bytes,
                              uint64_t limit_ns, double *per_s)
{
    (void)device, (void)set_bytes, (void)limit_ns;
    if (given == 0)
        FAIL(STATUS_DEVICE, "it broke");
    *per_s = strcmp(kind, "launch") == 0 ? 1e9 : strcmp(kind, "update") == 0 ? 2e12 : 1e12;
    *per_s *= strcmp(kind, "fp32") == 0 ? 100 : given;
    return STATUS_OK;
}

static const struct work bytes_alone = {.forward = {1, 40000000}, .backward = {1, 80000000}};

/* The floor of the hour, in ns, after three bursts at `share` of the best. */
static double hour_of(struct calibration *calibration, const struct backend *backend, double share)
{
    const struct yardstick unit = {calibration, 0, backend, "fp32"};
    struct ceilings best;
    struct floor floor;
    struct probe_seen seen;
    struct job *probe;
    uint64_t elapsed_ns;
    double found = (double)NAN;

    if (!CHECK_OK(yardstick_read(&unit, 40000000, false, &best)))
        return found;
    floor_of(&bytes_alone, &best, &floor);
    CHECK(floor.reads && floor.updates);
    if (!CHECK_OK(probe_open(&unit, 40000000, &floor, &probe)))
        return found;
    CHECK_STATUS(STATUS_UNSUPPORTED, probe_read(probe, &best, &seen)); /* no burst yet */
    given = share;
    probe->kind->run(probe, 3, &elapsed_ns);
    if (probe_read(probe, &best, &seen) == STATUS_OK) {
        floor_of(&bytes_alone, &seen.now, &floor);
        found = floor.ns;
        CHECK_NEAR(seen.per_s / seen.best, share < 1 ? share : 1, 1e-9);
        CHECK_NEAR(best.read_per_s, share > 1 ? share * 1e12 : 1e12, 1); /* raised, never lowered */
    }
    probe->kind->close(probe);
    given = 1;
    return found;
}

/* The same program takes 1.1 of what memory gives, whatever that is: the hour's floor follows
 * memory, the floor does not. */
TEST(the_floor_of_the_hour_follows_memory)
{
    struct backend backend = unit_backend;
    backend.burst = hour_burst;
    for (double share = 1; share > 0.3; share -= 0.2) {
        struct calibration calibration = {0};
        struct record record;
        record_start(&record);
        record.floor_ns = 80000;
        record.time_ns.median = record.time_ns.min = 1.1 * 80000 / share;
        record_compare_floor(&record);
        CHECK_NEAR(record.times_floor, 1.1 / share, 1e-9);
        record_compare_hour(&record, hour_of(&calibration, &backend, share));
        CHECK_NEAR(record.times_now, 1.1, 1e-9);
        CHECK_EQUAL_INT(record_slow_hour(&record), share < 0.95);
        calibration_free(&calibration);
    }
}

TEST(a_probe_raises_the_best_or_says_nothing)
{
    struct calibration calibration = {0};
    struct backend backend = unit_backend;
    backend.burst = hour_burst;
    CHECK_NEAR(hour_of(&calibration, &backend, 1.25), 64000, 1e-6);
    CHECK_NEAR(best(&calibration, CEILING_READ), 1.25e12, 1);
    calibration_free(&calibration);
    CHECK(isnan(hour_of(&calibration, &backend, 0))); /* bursts fail */
    calibration_free(&calibration);
}

/* On this CPU: memory gives something, and at most its best. */
TEST(a_cpus_memory_is_probed)
{
    struct calibration calibration = {0};
    const struct yardstick cpu = {&calibration, 1, NULL, NULL};
    struct ceilings ceilings;
    struct floor floor;
    struct probe_seen seen;
    struct job *probe;
    uint64_t elapsed_ns;
    bool seen_burst = false;
    enum status status = yardstick_read(&cpu, 1 << 20, false, &ceilings);
    if (status == STATUS_UNSUPPORTED)
        SKIP("%s", status_message());
    floor_of(&bytes_alone, &ceilings, &floor);
    if (CHECK_OK(probe_open(&cpu, 1 << 20, &floor, &probe))) {
        for (int i = 0; i < 1000 && !seen_burst; i++) { /* others may take the CPU from a burst */
            CHECK_OK(probe->kind->run(probe, 5, &elapsed_ns));
            CHECK(elapsed_ns > 0);
            seen_burst = probe_read(probe, &ceilings, &seen) == STATUS_OK;
        }
        CHECK(seen_burst);
        CHECK(seen.per_s > 1e8 && seen.per_s <= seen.best);
        CHECK(seen.now.read_per_s <= ceilings.read_per_s);
        CHECK(seen.now.update_per_s <= ceilings.update_per_s);
        CHECK_NEAR(seen.now.flop_per_s, ceilings.flop_per_s, 0);
        CHECK(probe_fits(probe, &cpu));
        probe->kind->close(probe);
    }
    floor.reads = floor.updates = false;
    CHECK_STATUS(STATUS_UNSUPPORTED, probe_open(&cpu, 1 << 20, &floor, &probe));
    calibration_free(&calibration);
}

TEST(another_unit_has_ceilings_of_its_own)
{
    struct calibration calibration = {0};
    struct yardstick unit = {&calibration, 0, &unit_backend, "tf32"};
    struct ceilings found;
    bursts = 0;
    CHECK_OK(yardstick_read(&unit, 49348804, false, &found));
    CHECK_EQUAL_INT(bursts, 4); /* products, reading, updating, launching */
    CHECK_NEAR(found.flop_per_s, 4e14, 1);
    CHECK_NEAR(found.read_per_s, 4e12, 1);
    CHECK_NEAR(found.launch_ns, 2000, 1e-6);
    CHECK_OK(yardstick_read(&unit, 49348804, false, &found));
    CHECK_EQUAL_INT(bursts, 4); /* it is known */
    CHECK_OK(yardstick_read(&unit, 5000, false, &found));
    CHECK_EQUAL_INT(bursts, 6); /* of memory, another size */
    CHECK_NEAR(found.update_per_s, 8e12, 1);
    unit.precision = "fp32";
    CHECK_OK(yardstick_read(&unit, 49348804, true, &found)); /* in doubt, longer */
    CHECK_NEAR(found.flop_per_s, 1e14, 1);
    CHECK_NEAR(found.update_per_s, 8e12, 1);
    unit.precision = "int8";
    CHECK_STATUS(STATUS_UNSUPPORTED, yardstick_read(&unit, 49348804, false, &found));
    unit.precision = "fp7";
    CHECK_STATUS(STATUS_UNSUPPORTED, yardstick_read(&unit, 49348804, false, &found));
    CHECK_MESSAGE("has no ceiling in fp7");

    /* they are kept beside the CPU's, and never taken for it */
    struct ceiling_row cpu = row(CEILING_FP32, 7e10), read = row(CEILING_READ, 5e10);
    cpu.set_bytes = 0;
    cpu.pages = PAGES_4K;
    CHECK_OK(calibration_merge(&calibration, &cpu));
    CHECK_OK(calibration_merge(&calibration, &read));
    size_t count = calibration.count;
    CHECK_NEAR(calibration_best(&calibration, &cpu), 7e10, 1);
    CHECK_OK(calibration_keep(&calibration, path("units.json")));
    calibration_free(&calibration);
    CHECK_OK(calibration_read(&calibration, path("units.json")));
    CHECK_EQUAL_INT(calibration.count, count);
    CHECK_NEAR(calibration_best(&calibration, &cpu), 7e10, 1);
    calibration_free(&calibration);
}

TEST(a_whole_calibration_of_a_unit)
{
    struct calibration calibration = {0};
    CHECK_OK(calibrate_unit_all(&calibration, &unit_backend, NULL));
    size_t sets = 0, flops = 0;
    for (size_t i = 0; i < calibration.count; i++) {
        CHECK(calibration.rows[i].per_s > 0);
        CHECK_EQUAL_TEXT(calibration.rows[i].unit, "a GPU");
        sets += calibration.rows[i].ceiling == CEILING_READ;
        flops += ceiling_is_flop(calibration.rows[i].ceiling);
    }
    CHECK(sets >= 8);
    CHECK_EQUAL_INT(flops, 5); /* int8 is left out */
    calibration_free(&calibration);
}

TEST(more_can_do_what_less_can)
{
    struct calibration calibration = {0};
    struct ceiling_row read = row(CEILING_READ, 50e9), asked = read;
    CHECK_OK(calibration_merge(&calibration, &read));
    asked.isa = ISA_AVX512;
    asked.threads = 4;
    asked.set_bytes = 16384;
    CHECK_NEAR(calibration_best(&calibration, &asked), 50e9, 1);
    asked.threads = 1;
    CHECK_NEAR(calibration_best(&calibration, &asked), 0, 0);
    asked = read;
    asked.set_bytes = read.set_bytes + 1;
    CHECK_NEAR(calibration_best(&calibration, &asked), 0, 0);
    asked = read;
    asked.pages = PAGES_4K;
    CHECK_NEAR(calibration_best(&calibration, &asked), 0, 0);
    asked = read;
    asked.ceiling = CEILING_UPDATE;
    CHECK_NEAR(calibration_best(&calibration, &asked), 0, 0);
    calibration_free(&calibration);
}

/* Of a file that was edited: what cannot be is measured again, the rest stays. */
TEST(what_is_not_possible_is_not_believed)
{
    struct calibration calibration = {0};
    struct ceiling_row read = row(CEILING_READ, 50e9), wild = row(CEILING_COPY, 1e300);
    CHECK_OK(calibration_merge(&calibration, &read));
    CHECK_OK(calibration_merge(&calibration, &wild));
    calibration.changed = true;
    CHECK_OK(calibration_keep(&calibration, path("wild.json")));
    calibration_free(&calibration);
    CHECK_OK(calibration_read(&calibration, path("wild.json")));
    CHECK_EQUAL_INT(calibration.count, 1);
    CHECK_NEAR(best(&calibration, CEILING_READ), 50e9, 1);
    calibration_free(&calibration);
}

/* How many CPUs a process may use is its own: its ceilings are kept beside those of others. */
TEST(ceilings_outlive_a_mask)
{
    struct calibration calibration = {0}, masked = {0};
    struct ceiling_row read = row(CEILING_READ, 50e9), flop = row(CEILING_FP32, 10e9);
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        SKIP("there is one CPU only");
    CHECK_OK(calibration_merge(&calibration, &read));
    calibration.changed = true;
    CHECK_OK(calibration_keep(&calibration, path("mask.json")));
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK_OK(calibration_merge(&masked, &flop));
    masked.changed = true;
    CHECK_OK(calibration_keep(&masked, path("mask.json")));
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    calibration_free(&masked);
    CHECK_OK(calibration_read(&masked, path("mask.json")));
    CHECK_EQUAL_INT(masked.count, 2);
    calibration_free(&masked);
    calibration_free(&calibration);
}

TEST(what_is_not_ours_is_not_there)
{
    struct calibration calibration = {0};
    static const char *const texts[] = {
        "", "nonsense", "[]", "{\"format\":1,\"cpu\":\"another\",\"ceilings\":[]}",
        "{\"format\":1,\"ceilings\":[{\"ceiling\":\"read\",\"per_s\":1}]}"};
    CHECK_OK(calibration_read(&calibration, path("absent.json")));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_OK(file_write(path("other.json"), texts[i], strlen(texts[i])));
        CHECK_OK(calibration_read(&calibration, path("other.json")));
    }
    CHECK_EQUAL_INT(calibration.count, 0);
    struct ceiling_row read = row(CEILING_READ, 50e9);
    CHECK_OK(calibration_merge(&calibration, &read));
    calibration.changed = true;
    CHECK_STATUS(STATUS_IO, calibration_keep(&calibration, path("nowhere/kept.json")));
    CHECK(calibration.changed);
    calibration_free(&calibration);
}

/* What nobody has measured yet is shown as that, not as 0 GB/s. */
TEST(what_is_not_known_has_no_rate)
{
    struct calibration calibration = {0};
    struct text out = {0};
    struct ceiling_row row = {.ceiling = CEILING_READ, .set_bytes = 1 << 24, .per_s = 28556e9};
    snprintf(row.unit, sizeof row.unit, "Example GPU");
    CHECK_OK(calibration_merge(&calibration, &row));
    row.unit[0] = '\0';
    row.threads = 1;
    row.pages = PAGES_2M;
    row.per_s = 30e9;
    CHECK_OK(calibration_merge(&calibration, &row));
    calibration_text(&calibration, &out);
    CHECK(strstr(text_of(&out), "      28556          –          –\n") != NULL);
    CHECK(strstr(text_of(&out), "       30.0") != NULL);
    CHECK(strstr(text_of(&out), " 0.0") == NULL && strstr(text_of(&out), " 0\n") == NULL);
    text_free(&out);
    calibration_free(&calibration);
}

TEST(no_memory_is_said)
{
    struct calibration calibration = {0};
    struct ceiling_row read = row(CEILING_READ, 50e9);
    memory_fail_at(1);
    CHECK_STATUS(STATUS_MEMORY, calibration_merge(&calibration, &read));
    memory_fail_at(0);
    CHECK_EQUAL_INT(calibration.count, 0);
    unlink(path("kept.json"));
    unlink(path("units.json"));
    unlink(path("wild.json"));
    unlink(path("mask.json"));
    unlink(path("other.json"));
    CHECK(rmdir(path("")) == 0); /* the last test: nothing was left behind */
}

CHECK_MAIN
