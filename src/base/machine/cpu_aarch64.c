/* cpu_aarch64.c: the main ID register says what the CPU is. Every aarch64 CPU has NEON. */
#include "base/machine/cpu_inside.h"

#include <asm/hwcap.h>
#include <stdio.h>
#include <sys/auxv.h>

/* Implementers and parts as Arm and the makers number them. */
static const struct vendor {
    unsigned implementer;
    const char *name;
} vendors[] = {
    {0x41, "Arm"},       {0x42, "Broadcom"}, {0x43, "Cavium"},    {0x46, "Fujitsu"},
    {0x48, "HiSilicon"}, {0x4e, "NVIDIA"},   {0x50, "APM"},       {0x51, "Qualcomm"},
    {0x53, "Samsung"},   {0x61, "Apple"},    {0x6d, "Microsoft"}, {0xc0, "Ampere"},
};

static const struct part {
    unsigned implementer, part;
    const char *name;
} parts[] = {
    {0x41, 0xd03, "Cortex-A53"},   {0x41, 0xd04, "Cortex-A35"},  {0x41, 0xd05, "Cortex-A55"},
    {0x41, 0xd07, "Cortex-A57"},   {0x41, 0xd08, "Cortex-A72"},  {0x41, 0xd09, "Cortex-A73"},
    {0x41, 0xd0a, "Cortex-A75"},   {0x41, 0xd0b, "Cortex-A76"},  {0x41, 0xd0c, "Neoverse-N1"},
    {0x41, 0xd0d, "Cortex-A77"},   {0x41, 0xd40, "Neoverse-V1"}, {0x41, 0xd41, "Cortex-A78"},
    {0x41, 0xd42, "Cortex-A78AE"}, {0x41, 0xd44, "Cortex-X1"},   {0x41, 0xd46, "Cortex-A510"},
    {0x41, 0xd47, "Cortex-A710"},  {0x41, 0xd48, "Cortex-X2"},   {0x41, 0xd49, "Neoverse-N2"},
    {0x41, 0xd4a, "Neoverse-E1"},  {0x41, 0xd4d, "Cortex-A715"}, {0x41, 0xd4e, "Cortex-X3"},
    {0x41, 0xd4f, "Neoverse-V2"},  {0x41, 0xd80, "Cortex-A520"}, {0x41, 0xd81, "Cortex-A720"},
    {0x41, 0xd82, "Cortex-X4"},    {0x41, 0xd84, "Neoverse-V3"}, {0x41, 0xd8e, "Neoverse-N3"},
    {0x43, 0x0af, "ThunderX2"},    {0x46, 0x001, "A64FX"},       {0x48, 0xd01, "Kunpeng 920"},
    {0x4e, 0x004, "Carmel"},       {0x51, 0x001, "Oryon"},       {0xc0, 0xac3, "Ampere-1"},
    {0xc0, 0xac4, "Ampere-1A"},
};

void cpu_relax(void)
{
    __asm__ volatile("yield");
}

/* The register of the core that asks: where cores differ, that is one of them. */
static uint64_t main_id(void)
{
    uint64_t id;
    __asm__("mrs %0, midr_el1" : "=r"(id)); /* the system answers it for us */
    return id;
}

static void detect_names(struct cpu *out)
{
    uint64_t id = main_id();
    unsigned implementer = id >> 24 & 0xff, part = id >> 4 & 0xfff;
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++)
        if (vendors[i].implementer == implementer)
            snprintf(out->vendor, sizeof out->vendor, "%s", vendors[i].name);
    snprintf(out->model, sizeof out->model, "%s CPU, implementer 0x%02x, part 0x%03x",
             implementer ? "aarch64" : "emulated aarch64", implementer, part);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].implementer == implementer && parts[i].part == part)
            snprintf(out->model, sizeof out->model, "%s %s", out->vendor, parts[i].name);
}

void cpu_ask(struct cpu *out)
{
    unsigned long features = getauxval(AT_HWCAP);
    if (features & HWCAP_CPUID)
        detect_names(out);
    if (features & HWCAP_ASIMD)
        out->levels |= 1 << ISA_NEON;
}
