/* cpu.c: what every Linux says about its CPU in sysfs and /proc. The CPU's name and its ISA levels
 * come from the file of its architecture (cpu_inside.h).
 *
 * Whatever cannot be found out stays 0 or empty. */
#include "base/machine/cpu.h"

#include "base/machine/cpu_inside.h"
#include "base/machine/quota.h"
#include "base/memory.h"
#include "base/text.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const isa_names[] = {
    [ISA_SCALAR] = "scalar",
#define ISA_ROW(NAME, name, machine, flags) [ISA_##NAME] = #name,
#include "base/machine/isa.def"
#undef ISA_ROW
};

/* A level that has extensions, without them; other levels have their own name alone. */
static const char *const only_names[ISA_COUNT] = {
    [ISA_AVX2] = "avx2-only",
    [ISA_AVX512] = "avx512-only",
};

const char *isa_name(enum isa isa)
{
    return isa_names[isa];
}

const char *isa_name_only(enum isa isa)
{
    return only_names[isa] ? only_names[isa] : isa_names[isa];
}

bool isa_parse(const char *name, enum isa *out, bool *only)
{
    for (int i = 0; i < ISA_COUNT; i++) {
        bool is_only = only && only_names[i] && text_equal(name, only_names[i]);
        if (is_only || text_equal(name, isa_names[i])) {
            *out = (enum isa)i;
            if (only)
                *only = is_only;
            return true;
        }
    }
    return false;
}

/* The start of a small system file, as a string without the final newline. */
static bool read_small(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return false;
    out[got] = '\0';
    if (out[got - 1] == '\n')
        out[got - 1] = '\0';
    return true;
}

/* A file below /sys/devices/system/cpu/cpuN/ */
static bool read_cpu_file(int cpu, const char *name, char *out, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
    return read_small(path, out, size);
}

static int64_t read_cpu_int(int cpu, const char *name, int64_t otherwise)
{
    char text[32];
    int64_t value;
    bool found = read_cpu_file(cpu, name, text, sizeof text) && text_to_int(text, &value);
    return found ? value : otherwise;
}

struct place {
    int cpu, package, core; /* as the system numbers them */
    int sibling, rank;      /* which thread of its core; which core of its package */
};

static int compare_compact(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->package != b->package)
        return a->package < b->package ? -1 : 1;
    if (a->core != b->core)
        return a->core < b->core ? -1 : 1;
    return a->cpu < b->cpu ? -1 : 1;
}

static int compare_spread(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->sibling != b->sibling)
        return a->sibling < b->sibling ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return compare_compact(left, right);
}

/* The CPUs of the affinity mask, in compact order; at most CPU_SETSIZE. */
static int find_places(struct place *places)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 0;
    int count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((size_t)cpu, &allowed))
            continue;
        places[count++] = (struct place){
            .cpu = cpu,
            .package = (int)read_cpu_int(cpu, "topology/physical_package_id", -1),
            .core = (int)read_cpu_int(cpu, "topology/core_id", cpu),
        };
    }
    qsort(places, (size_t)count, sizeof *places, compare_compact);
    for (int i = 1; i < count; i++) {
        const struct place *before = &places[i - 1];
        if (places[i].package != before->package)
            continue;
        bool same_core = places[i].core == before->core;
        places[i].sibling = same_core ? before->sibling + 1 : 0;
        places[i].rank = before->rank + !same_core;
    }
    return count;
}

int cpu_list(bool spread, int *out, int most)
{
    struct place places[CPU_SETSIZE];
    int count = find_places(places);
    if (spread)
        qsort(places, (size_t)count, sizeof *places, compare_spread);
    if (count > most)
        count = most;
    for (int i = 0; i < count; i++)
        out[i] = places[i].cpu;
    return count;
}

static void detect_topology(struct cpu *out, int *first_cpu)
{
    struct place places[CPU_SETSIZE];
    int count = find_places(places);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    out->cores = count > 0 ? count : online > 0 ? (int)online : 1;
    out->threads_per_core = 1;
    *first_cpu = count > 0 ? places[0].cpu : 0;
    for (int i = 0; i < count; i++) {
        if (places[i].sibling + 1 > out->threads_per_core)
            out->threads_per_core = places[i].sibling + 1;
        if (places[i].package >= 0 && (i == 0 || places[i].package != places[i - 1].package))
            out->sockets++;
    }
}

/* "48K" or "1024K" or "260M" */
static uint64_t parse_cache_size(const char *text)
{
    char *end;
    uint64_t size = strtoull(text, &end, 10);
    return *end == 'K' ? size << 10 : *end == 'M' ? size << 20 : size;
}

static void detect_caches(struct cpu *out, int cpu)
{
    enum { MOST_CACHES = 8 };
    for (int i = 0; i < MOST_CACHES; i++) {
        char name[32], type[32], size[32];
        snprintf(name, sizeof name, "cache/index%d/level", i);
        int64_t level = read_cpu_int(cpu, name, 0);
        snprintf(name, sizeof name, "cache/index%d/type", i);
        bool known = level >= 1 && level <= 3 && read_cpu_file(cpu, name, type, sizeof type);
        snprintf(name, sizeof name, "cache/index%d/size", i);
        if (!known || text_equal(type, "Instruction") ||
            !read_cpu_file(cpu, name, size, sizeof size))
            continue;
        uint64_t *levels[] = {&out->l1_bytes, &out->l2_bytes, &out->l3_bytes};
        *levels[level - 1] = parse_cache_size(size);
    }
}

int cpu_l3(int cpu)
{
    return (int)read_cpu_int(cpu, "cache/index3/id", -1);
}

/* The base frequency where the system knows it, else the highest, else the current one. */
static double detect_ghz(int cpu)
{
    int64_t khz = read_cpu_int(cpu, "cpufreq/base_frequency", 0);
    if (khz == 0)
        khz = read_cpu_int(cpu, "cpufreq/cpuinfo_max_freq", 0);
    if (khz > 0)
        return (double)khz / 1e6;
    char text[4096];
    const char *line = read_small("/proc/cpuinfo", text, sizeof text) ? strstr(text, "cpu MHz") : 0;
    const char *colon = line ? strchr(line, ':') : NULL;
    return colon ? strtod(colon + 1, NULL) / 1e3 : 0;
}

/* "always [madvise] never": the word in brackets. */
static void detect_huge_pages(char *out, size_t size)
{
    char text[64];
    if (!read_small("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text))
        return;
    const char *open = strchr(text, '[');
    if (open)
        snprintf(out, size, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
}

bool cpu_has(const struct cpu *cpu, enum isa isa)
{
    return cpu->levels >> isa & 1;
}

bool cpu_extends(const struct cpu *cpu, enum extension extension)
{
    return cpu->extensions >> extension & 1;
}

const char *extension_words(enum extension extension)
{
    static const char *const words_of[] = {
#define EXTENSION_ROW(NAME, name, kind, level, machine, flags, words) [EXTENSION_##NAME] = words,
#include "base/machine/extension.def"
#undef EXTENSION_ROW
    };
    return words_of[extension];
}

enum isa cpu_isa(const struct cpu *cpu, enum isa most)
{
    int isa = (int)most;
    while (isa > ISA_SCALAR && !cpu_has(cpu, (enum isa)isa))
        isa--;
    return (enum isa)isa;
}

void cpu_detect(struct cpu *out)
{
    *out = (struct cpu){0};
    int first_cpu;
    out->levels = 1 << ISA_SCALAR;
    cpu_ask(out);
    out->isa = cpu_isa(out, ISA_BEST);
    detect_topology(out, &first_cpu);
    out->quota = quota_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
    if (out->quota > 0 && out->quota < out->cores)
        out->cores = (int)ceil(out->quota);
    detect_caches(out, first_cpu);
    out->ghz = detect_ghz(first_cpu);
    out->memory_bytes = mem_total();
    detect_huge_pages(out->huge_pages, sizeof out->huge_pages);
}
