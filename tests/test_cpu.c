/* What is found out about the CPU must be plausible and agree with itself. */
#include "base/cpu.h"
#include "check.h"

#include <sched.h>

TEST(detects_something_plausible)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    CHECK(cpu.cores >= 1 && cpu.cores <= 4096);
    CHECK(cpu.threads_per_core >= 1 && cpu.threads_per_core <= 8);
    CHECK(cpu.sockets >= 0 && cpu.sockets <= cpu.cores);
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
    CHECK_EQUAL_INT(cpu.avx512_vnni, __builtin_cpu_supports("avx512vnni") != 0);
    CHECK(cpu.isa < ISA_AVX2 || (cpu.avx2 && cpu.fma));
    CHECK(cpu.isa < ISA_AVX512 || (cpu.avx512f && cpu.avx512bw && cpu.avx512vl));
#else
    CHECK_EQUAL_INT(cpu.isa, ISA_SCALAR);
#endif
}

TEST(names_levels)
{
    for (enum isa isa = ISA_SCALAR; isa <= ISA_AVX512; isa++) {
        enum isa again;
        CHECK(isa_parse(isa_name(isa), &again) && again == isa);
    }
    enum isa isa = ISA_AVX2;
    CHECK(!isa_parse("AVX2", &isa) && !isa_parse("", &isa) && isa == ISA_AVX2);
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

CHECK_MAIN
