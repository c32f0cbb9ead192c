/* bursts.h: the kernels that find out what a CPU can do at best, for every ISA.
 *
 * A kernel goes `times` times over its bytes and does nothing else. For a kind there are several
 * ways to do it (prefetching or not, one stream or four, forth or forth and back), because which
 * one is fastest changes with the size and the machine: the best of them is the ceiling. */
#ifndef PRONY_ESTIMATE_BURSTS_H
#define PRONY_ESTIMATE_BURSTS_H

#include "base/machine/cpu.h"

enum ceiling {
    CEILING_FP32, /* FLOP, in registers */
    CEILING_TF32, /* the matrix units' of a GPU */
    CEILING_BF16,
    CEILING_FP16,
    CEILING_FP8,
    CEILING_INT8,
    CEILING_READ,   /* bytes read */
    CEILING_COPY,   /* bytes read plus bytes written, from one half to the other */
    CEILING_UPDATE, /* bytes read plus bytes written, in place */
    CEILING_LAUNCH, /* kernels that a GPU is given one after another */
    CEILING_COUNT,
};

const char *ceiling_name(enum ceiling ceiling); /* "fp32", "read" … */
bool ceiling_parse(const char *name, enum ceiling *out);
bool ceiling_is_flop(enum ceiling ceiling);
bool ceiling_is_memory(enum ceiling ceiling);

/* `bytes` is a multiple of BURST_GRAIN; of a flop kernel it only says how long it takes. */
typedef float burst_kernel(char *data, long bytes, long times);
enum { BURST_GRAIN = 6144, BURST_WAYS = 4 };

/* The ways there are on this CPU for an ISA, NULL after the last; none when it cannot do it. */
burst_kernel *const *burst_ways(enum ceiling ceiling, enum isa isa, const struct cpu *cpu);

/* FLOP or bytes that one pass over `bytes` stands for. */
double burst_work(enum ceiling ceiling, double bytes);

#endif
