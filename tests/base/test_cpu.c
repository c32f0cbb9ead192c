/* What is found out about the CPU must be plausible and agree with itself. */
#include "base/machine/cpu.h"
#include "base/machine/quota.h"
#include "check.h"
#include "folder.h"

#include <sched.h>
#include <sys/stat.h>

TEST(detects_something_plausible)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    CHECK(cpu.cores >= 1 && cpu.cores <= 4096);
    CHECK(cpu.threads_per_core >= 1 && cpu.threads_per_core <= 8);
    CHECK(cpu.sockets >= 0 && (cpu.quota > 0 || cpu.sockets <= cpu.cores));
    CHECK(cpu.ghz >= 0 && cpu.ghz < 10);
    CHECK(cpu.memory_bytes > 1 << 20);
    CHECK(cpu.l1_bytes <= 1 << 20 && (cpu.l2_bytes == 0 || cpu.l2_bytes >= cpu.l1_bytes));
    CHECK(strlen(cpu.model) < sizeof cpu.model);
#ifdef __x86_64__
    CHECK(cpu.vendor[0] && cpu.model[0] && cpu.model[0] != ' ');
    CHECK_EQUAL_INT(cpu.avx2, __builtin_cpu_supports("avx2") != 0);
    CHECK_EQUAL_INT(cpu.fma, __builtin_cpu_supports("fma") != 0);
    CHECK_EQUAL_INT(cpu.avx512f, __builtin_cpu_supports("avx512f") != 0);
    CHECK_EQUAL_INT(cpu.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
    CHECK_EQUAL_INT(cpu.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
    CHECK_EQUAL_INT(cpu_extends(&cpu, EXTENSION_AVX512_VNNI),
                    __builtin_cpu_supports("avx512vnni") != 0);
    CHECK(cpu.isa < ISA_AVX2 || (cpu.avx2 && cpu.fma));
    CHECK(cpu.isa < ISA_AVX512 || (cpu.avx512f && cpu.avx512bw && cpu.avx512vl));
#elif defined __aarch64__
    CHECK(cpu.model[0] && cpu_has(&cpu, ISA_NEON));
    CHECK_EQUAL_INT(cpu.isa, ISA_NEON);
#else
    CHECK_EQUAL_INT(cpu.isa, ISA_SCALAR);
#endif
    CHECK(cpu_has(&cpu, ISA_SCALAR) && cpu_has(&cpu, cpu.isa));
}

/* A level of another architecture between two of its own is passed over. */
TEST(takes_the_best_level_up_to_one)
{
    const struct cpu x86 = {.levels = 1 << ISA_SCALAR | 1 << ISA_AVX2},
                     arm = {.levels = 1 << ISA_SCALAR | 1 << ISA_NEON};
    CHECK_EQUAL_INT(cpu_isa(&x86, ISA_BEST), ISA_AVX2);
    CHECK_EQUAL_INT(cpu_isa(&x86, ISA_NEON), ISA_SCALAR);
    CHECK_EQUAL_INT(cpu_isa(&arm, ISA_BEST), ISA_NEON);
    CHECK_EQUAL_INT(cpu_isa(&arm, ISA_SCALAR), ISA_SCALAR);
}

TEST(names_levels)
{
    for (enum isa isa = ISA_SCALAR; isa <= ISA_AVX512; isa++) {
        enum isa again;
        CHECK(isa_parse(isa_name(isa), &again, NULL) && again == isa);
    }
    enum isa isa = ISA_AVX2;
    CHECK(!isa_parse("AVX2", &isa, NULL) && !isa_parse("", &isa, NULL) && isa == ISA_AVX2);
    bool only = false;
    CHECK(isa_parse("avx512-only", &isa, &only) && isa == ISA_AVX512 && only);
    CHECK(isa_parse(isa_name_only(ISA_AVX2), &isa, &only) && isa == ISA_AVX2 && only);
    CHECK(isa_parse("avx512", &isa, &only) && isa == ISA_AVX512 && !only);
    CHECK(!isa_parse("avx512-only", &isa, NULL) && !isa_parse("neon-only", &isa, &only));
    CHECK_EQUAL_TEXT(isa_name_only(ISA_NEON), "neon");
}

TEST(lists_each_usable_cpu_once)
{
    cpu_set_t allowed;
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    for (int spread = 0; spread < 2; spread++) {
        int list[CPU_SETSIZE];
        int count = cpu_list(spread, list, CPU_SETSIZE);
        CHECK_EQUAL_INT(count, CPU_COUNT(&allowed));
        cpu_set_t seen;
        CPU_ZERO(&seen);
        for (int i = 0; i < count; i++)
            CPU_SET((size_t)list[i], &seen);
        CHECK(CPU_EQUAL(&seen, &allowed));
        CHECK_EQUAL_INT(cpu_list(spread, list, 1), 1);
    }
}

/* A tree of control groups; what has no text is a folder. */
static const struct entry {
    const char *name, *text;
} groups[] = {
    {"v2", NULL},
    {"v2/cpu.max", "max 100000\n"},
    {"v2/half", NULL},
    {"v2/half/cpu.max", "250000 100000\n"},
    {"v2/half/free", NULL},
    {"v2/half/free/cpu.max", "max 100000\n"},
    {"v2/half/tight", NULL},
    {"v2/half/tight/cpu.max", "50000 100000\n"},
    {"v2/odd", NULL},
    {"v2/odd/cpu.max", "what\n"},
    {"v2/memory.max", "max\n"},
    {"v2/memory.high", "max\n"},
    {"v2/half/memory.max", "3000000\n"},
    {"v2/half/memory.current", "2500000\n"},
    {"v2/half/memory.stat", "anon 1500000\nfile 1000000\ninactive_file 900000\nkernel 7\n"},
    {"v2/half/memory.high", "max\n"},
    {"v2/half/tight/memory.max", "max\n"},
    {"v2/half/tight/memory.high", "1000000\n"},
    {"v2/odd/memory.max", "what\n"},
    {"v1", NULL},
    {"v1/memory", NULL},
    {"v1/memory/memory.limit_in_bytes", "9223372036854771712\n"},
    {"v1/memory/half", NULL},
    {"v1/memory/half/memory.limit_in_bytes", "5000000\n"},
    {"v1/memory/half/memory.usage_in_bytes", "6000000\n"},
    {"v1/memory/half/free", NULL},
    {"v1/memory/half/free/memory.limit_in_bytes", "9223372036854771712\n"},
    {"v1/unified", NULL},
    {"v1/unified/part", NULL},
    {"v1/unified/part/memory.max", "2000000\n"},
    {"v1/cpu", NULL},
    {"v1/cpu/cpu.cfs_quota_us", "300000\n"},
    {"v1/cpu/cpu.cfs_period_us", "200000\n"},
    {"v1/cpu/free", NULL},
    {"v1/cpu/free/cpu.cfs_quota_us", "-1\n"},
    {"v1/cpu/free/cpu.cfs_period_us", "200000\n"},
};

enum { GROUPS = sizeof groups / sizeof *groups };

static bool write_text(const char *name, const char *text)
{
    FILE *file = fopen(at(name), "w");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

static void check_quota(const char *line, const char *root, double expected)
{
    if (CHECK(write_text("self", line)))
        CHECK_NEAR(quota_cpus(at("self"), at(root)), expected, 1e-12);
}

static void check_memory(const char *line, const char *root, double expected)
{
    if (CHECK(write_text("self", line)))
        CHECK_NEAR(quota_memory(at("self"), at(root)), expected, 1e-12);
}

static void check_left(const char *line, const char *root, double expected)
{
    if (CHECK(write_text("self", line)))
        CHECK_NEAR(quota_memory_left(at("self"), at(root)), expected, 1e-12);
}

/* Cached files that are not in use count as free; a group beyond its limit has a byte. */
static void check_memory_left(void)
{
    check_left("0::/\n", "v2", 0);
    check_left("0::/odd\n", "v2", 0);
    check_left("0::/half\n", "v2", 1400000);
    check_left("0::/half/free\n", "v2", 1400000);
    check_left("0::/half/tight\n", "v2", 1000000);
    check_left("4:memory:/half/free\n", "v1", 1);
    check_left("4:memory:/\n0::/part\n", "v1", 2000000);
}

static void check_memory_of_groups(void)
{
    check_memory_left();
    check_memory("0::/\n", "v2", 0);
    check_memory("0::/half\n", "v2", 3e6);
    check_memory("0::/half/free\n", "v2", 3e6);
    check_memory("0::/half/tight\n", "v2", 1e6);
    check_memory("0::/odd\n", "v2", 0);
    check_memory("0::/of/the/host\n", "v2", 0);
    check_memory("4:memory:/half/free\n0::/\n", "v1", 5e6);
    check_memory("4:cpu,memory:/half\n", "v1", 5e6);
    check_memory("4:memory:/half\n0::/part\n", "v1", 2e6); /* both versions */
    check_memory("5:cpu:/half\n", "v1", 0);
    CHECK(quota_memory(at("not there"), at("v2")) == 0);
}

TEST(reads_the_quota_of_control_groups)
{
    for (int i = 0; i < GROUPS; i++)
        CHECK(groups[i].text ? write_text(groups[i].name, groups[i].text)
                             : mkdir(at(groups[i].name), 0700) == 0);
    check_quota("0::/\n", "v2", 0);
    check_quota("0::/half\n", "v2", 2.5);
    check_quota("0::/half/free\n", "v2", 2.5); /* what is above holds for what is below */
    check_quota("0::/half/tight\n", "v2", 0.5);
    check_quota("0::/half/not/there\n", "v2", 2.5);
    check_quota("0::/odd\n", "v2", 0);
    check_quota("no group\n", "v2", 0);
    check_quota("5:cpuset:/\n3:cpu,cpuacct:/free\n0::/\n", "v1", 1.5);
    check_quota("3:cpuacct,cpu:/of/the/host\n", "v1", 1.5);
    check_quota("5:cpuset:/\n3:cpuacct:/\n", "v1", 0);
    CHECK(quota_cpus(at("not there"), at("v2")) == 0);
    check_memory_of_groups();
    for (int i = GROUPS - 1; i >= 0; i--)
        CHECK(remove(at(groups[i].name)) == 0);
}

TEST(has_no_more_cores_than_its_quota_rounded_up)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    CHECK(cpu.quota >= 0);
    if (cpu.quota > 0)
        CHECK(cpu.cores < cpu.quota + 1);
}

CHECK_MAIN
