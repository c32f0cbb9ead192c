/* cpu.h: what this CPU is and can do, read once at run time. */
#ifndef PRONY_BASE_MACHINE_CPU_H
#define PRONY_BASE_MACHINE_CPU_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The levels --isa can name: plain C, then the rows of isa.def. */
enum isa {
    ISA_SCALAR,
#define ISA_ROW(NAME, name, machine, flags) ISA_##NAME,
#include "base/machine/isa.def"
#undef ISA_ROW
    ISA_COUNT,
    ISA_BEST = ISA_COUNT - 1
};

/* Instructions that a CPU may have beyond a level: the rows of extension.def. */
enum extension {
#define EXTENSION_ROW(NAME, name, kind, level, machine, flags, words) EXTENSION_##NAME,
#include "base/machine/extension.def"
#undef EXTENSION_ROW
    EXTENSION_COUNT
};

/* ISA_ON_machine(…): the text in the brackets, where the program is compiled for that machine. */
#if defined(__x86_64__)
#define ISA_ON_x86_64(...) __VA_ARGS__
#else
#define ISA_ON_x86_64(...)
#endif
#if defined(__aarch64__)
#define ISA_ON_aarch64(...) __VA_ARGS__
#else
#define ISA_ON_aarch64(...)
#endif

struct cpu {
    char model[128]; /* "AMD EPYC" */
    char vendor[32];
    int cores;    /* usable by this process: its affinity mask, at most its quota rounded up */
    double quota; /* CPUs' worth of time that its control group allows (quota.h); 0: no limit */
    int sockets;  /* 0: unknown */
    int threads_per_core;
    double ghz;                                  /* nominal or current, 0: unknown */
    uint64_t l1_bytes, l2_bytes, l3_bytes;       /* one instance each; 0: unknown */
    uint64_t memory_bytes;                       /* that this process may have: mem_total() */
    bool avx2, fma, avx512f, avx512bw, avx512vl; /* CPU and system */
    unsigned extensions; /* a bit for each that it has, with its level; for cpu_extends */
    unsigned levels;     /* a bit for each level that it has; for cpu_has */
    enum isa isa;        /* the best level */
    char huge_pages[16]; /* "always", "madvise", "never", "" unknown */
};

void cpu_detect(struct cpu *out);
bool cpu_has(const struct cpu *cpu, enum isa isa);
bool cpu_extends(const struct cpu *cpu, enum extension extension);

/* The best level of this CPU up to `most`. */
enum isa cpu_isa(const struct cpu *cpu, enum isa most);

/* The CPUs the calling thread may run on, in the order in which threads are pinned: core after
 * core, with all hardware threads of each. When spread, one thread of every core comes first,
 * sockets in turn. Writes at most `most`; returns how many, 0 when the system does not say. */
int cpu_list(bool spread, int *out, int most);

/* The number of the L3 cache that this CPU shares with others; -1: the system does not say. */
int cpu_l3(int cpu);

const char *extension_words(enum extension extension); /* "AVX-512 VNNI" */
const char *isa_name(enum isa isa);
const char *isa_name_only(enum isa isa); /* "avx512-only" */
/* A level by its name. "LEVEL-only" is the level without what some CPUs have beyond it
 * (extension.def): `only`, where that may be asked for; else NULL. */
bool isa_parse(const char *name, enum isa *out, bool *only);

#endif
