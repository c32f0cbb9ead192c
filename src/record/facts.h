/* facts.h: the machine and the software a result came from, as recorded with each result.
 *
 * Read from base/machine/cpu.h, /proc and /sys; what cannot be known is empty, 0 or NaN, and left
 * out of the JSON. */
#ifndef PRONY_RECORD_FACTS_H
#define PRONY_RECORD_FACTS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/machine/cpu.h"
#include "base/status.h"
#include "record/point.h"

#include <stdbool.h>

enum { FACTS_TEXT = 128 };

/* The GPU that CUDA begins with, where there is one. */
struct facts_gpu {
    char name[FACTS_TEXT];   /* "NVIDIA H200"; "": there is none, or nobody asked */
    char driver[FACTS_TEXT]; /* "580.65.06" */
    uint64_t memory_bytes;
    int multiprocessors;
    double power_limit; /* W */
};

struct facts {
    char server[FACTS_TEXT]; /* the host's name */
    struct cpu cpu;
    char system[FACTS_TEXT];    /* "Debian GNU/Linux 12 (bookworm)" */
    char kernel[FACTS_TEXT];    /* "Linux 6.1.0-18-amd64" */
    char governor[FACTS_TEXT];  /* of the CPU's frequency: "performance" */
    char runtime[FACTS_TEXT];   /* "bare metal", "virtual machine", "container" */
    char name[FACTS_TEXT];      /* that the user gave it: title.h; "": none */
    char model[FACTS_TEXT];     /* of the server: "Dell PowerEdge R740" */
    int gpus;                   /* in the server, as far as this process may see */
    char gpu_model[FACTS_TEXT]; /* the first one's name, where the driver tells without NVML */
    char gpu_nodes[FACTS_TEXT]; /* the NUMA node of each: "0,0,1,1"; "?": not told */
    double load;                /* processes that wanted to run, over the last minute */
    double steal;               /* share of CPU time the host took, since it started: 0 … 1 */
    double memory_free_bytes;   /* available without swapping */
    struct facts_gpu gpu;       /* not found by facts_find: bench/meter/energy.h */
    const char *version;        /* of prony; static strings */
    const char *commit;         /* "" when built outside git */
    const char *compiler;       /* "gcc 12.2.0" */
    const char *build;          /* "release", "debug", "sanitized" */
};

void facts_find(struct facts *out);
/* Of these: model, runtime, gpus and what follows. `sys` is what /sys is, `proc` what /proc is. */
void facts_find_server(const char *sys, const char *proc, struct facts *out);
void facts_write_machine(const struct facts *facts, struct json_writer *writer);
void facts_write_software(const struct facts *facts, struct json_writer *writer);

/* The same two objects as trees, for record.machine and record.software of a whole run. */
enum status facts_trees(const struct facts *facts, struct arena *arena, const struct json **machine,
                        const struct json **software);

/* Sets the axes that are found, not asked for: server, software, and the name of the CPU or GPU. */
void facts_set_point(const struct facts *facts, struct point *point);

#endif
