/* cpu_x86_64.c: cpuid says what the CPU is and can do. */
#include "base/machine/cpu_inside.h"

#include <cpuid.h>
#include <stdio.h>
#include <string.h>

void cpu_relax(void)
{
    __builtin_ia32_pause();
}

struct registers {
    uint32_t a, b, c, d;
};

static struct registers ask(uint32_t leaf, uint32_t part)
{
    struct registers r = {0};
    if (leaf <= (uint32_t)__get_cpuid_max(leaf & 0x80000000u, NULL))
        __cpuid_count(leaf, part, r.a, r.b, r.c, r.d);
    return r;
}

static bool bit(uint32_t word, int number)
{
    return word >> number & 1;
}

/* Which register files the system saves on a context switch; 0 when it has not said (OSXSAVE). */
static uint32_t saved_registers(void)
{
    if (!bit(ask(1, 0).c, 27))
        return 0;
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static void detect_names(struct cpu *out)
{
    struct registers r = ask(0, 0);
    uint32_t vendor[4] = {r.b, r.d, r.c, 0};
    memcpy(out->vendor, vendor, sizeof vendor);

    char brand[49] = "";
    for (uint32_t i = 0; i < 3; i++) {
        r = ask(0x80000002u + i, 0);
        memcpy(brand + 16 * i, &r, 16);
    }
    const char *start = brand + strspn(brand, " ");
    size_t length = strlen(start);
    while (length > 0 && start[length - 1] == ' ')
        length--;
    snprintf(out->model, sizeof out->model, "%.*s", (int)length, start);
}

static void detect_levels(struct cpu *out)
{
    enum { YMM = 0x6, ZMM = 0xE6 }; /* xmm and ymm; and the mask and zmm registers */
    uint32_t saved = saved_registers();
    bool ymm = (saved & YMM) == YMM, zmm = (saved & ZMM) == ZMM;
    struct registers basic = ask(1, 0), more = ask(7, 0), newer = ask(7, 1);
    out->fma = ymm && bit(basic.c, 12);
    out->avx2 = ymm && bit(more.b, 5);
    out->avx512f = zmm && bit(more.b, 16);
    out->avx512bw = zmm && bit(more.b, 30);
    out->avx512vl = zmm && bit(more.b, 31);
    bool avx2 = out->avx2 && out->fma;
    bool avx512 = avx2 && out->avx512f && out->avx512bw && out->avx512vl;
    if (avx2)
        out->levels |= 1 << ISA_AVX2;
    if (avx512)
        out->levels |= 1 << ISA_AVX512;
    if (avx2 && more.a >= 1 && bit(newer.a, 4))
        out->extensions |= 1 << EXTENSION_AVX_VNNI;
    if (avx512 && bit(more.c, 11))
        out->extensions |= 1 << EXTENSION_AVX512_VNNI;
    if (avx512 && more.a >= 1 && bit(newer.a, 5))
        out->extensions |= 1 << EXTENSION_AVX512_BF16;
}

void cpu_ask(struct cpu *out)
{
    detect_names(out);
    detect_levels(out);
}
