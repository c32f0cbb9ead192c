/* backend.h: what a processing unit offers. A table of 17 functions.
 *
 *   device    an opened unit: its kernel table, its thread pool or stream
 *   instance  one copy of a network's parameters, state and control block on a device
 *   plan      one program prepared against one instance: activations, gradients, code; no weights
 *
 * An elementwise op (activate and its gradient, add, batch_norm_fixed, the summand of conv_fused)
 * may get one place for an input and its result: see pass/layout.c.
 *
 * prepare does everything slow; run allocates nothing. No silent fallback: prepare refuses an op
 * the backend lacks. All functions are called from one thread per device at a time, except that
 * plans which update nothing may run at once. */
#ifndef PRONY_CORE_BACKEND_H
#define PRONY_CORE_BACKEND_H

#include "base/machine/cpu.h"
#include "base/pool.h"
#include "base/status.h"
#include "core/comm.h"
#include "core/control.h"
#include "core/device_info.h"
#include "core/observer.h"
#include "core/params.h"
#include "core/program.h"

struct device;
struct instance;
struct plan;
struct comm;
struct comm_queue;
struct traffic;

struct device_options {
    int threads; /* 0: as many as there are cores */
    enum pool_affinity affinity;
    enum isa isa;          /* at most this level … */
    bool isa_only;         /* … and nothing that some CPUs have beyond it (extension.def) */
    int index;             /* which of several GPUs */
    const char *precision; /* of products, as the axis has it; NULL or "": fp32 */
    bool small_pages;      /* a CPU's memory is on pages of 4 KB, not of 2 MB */
    bool paper; /* for dry plans alone: where the unit is not there, as the one that the backend was
                   made on would do it */
};

/* How steps are asked for. */
enum answering {
    ANSWER_STEPS,    /* many in a run, over data that was bound before and may lie on the unit */
    ANSWER_CALLS,    /* one in a run: a call, from host memory to host memory. Others may be asked
                        before it is answered */
    ANSWER_RESIDENT, /* calls, answered by what stays on the unit and waits for them. Whatever else
                        is asked of the device ends its stay, and the next call begins it anew */
    ANSWER_QUEUED,   /* calls that are all asked before any is waited for */
};

struct plan_options {
    int slots; /* micro-batches in flight: each has activations of its own; 0 means 1 */
    bool dry;  /* only answers explain: takes no memory, cannot run */
    struct observer observer;
    enum answering answering;
    /* Carry out the program's communication, and outlive the plan. NULL: it has none … */
    struct comm *comm;
    struct comm *across;      /* … or none across copies of the network … */
    struct comm_queue *queue; /* … or no sum of gradients goes on beside the computation */
    struct traffic *traffic;  /* is added to by run; or NULL */
    const int *turn;          /* the peer of messages to COMM_TURN, set between runs; or NULL */
};

/* What communication took. */
struct traffic {
    uint64_t waited_ns; /* in which nothing was computed */
    uint64_t hidden_ns; /* beside the computation */
    uint64_t bytes;     /* that this rank sent, by the least that a sum needs */
};

/* Rows of one bound tensor, in host memory, for as long as the binding lives. */
struct view {
    int32_t tensor; /* of the program: an input or an output */
    void *data;
    int64_t rows;
};

/* How the rows of inputs reach a unit that has memory of its own. A unit that computes in the
 * host's memory reads them where they lie, whatever is asked for. */
enum ingestion {
    INGEST_BEST,     /* resident where there is room, else overlapped */
    INGEST_RESIDENT, /* all are copied by bind, unless they are there (version), and stay */
    INGEST_DIRECT,   /* a step's rows are copied from where they lie, then it runs */
    INGEST_PINNED,   /* … they are gathered in page-locked memory first, which is copied faster */
    INGEST_OVERLAPPED, /* … and while a step computes, the next one's rows are on their way */
};

/* Where a plan's data comes from and goes to. Sample number k of the plan (k counts from `start`)
 * is row order[k mod order_count] of every per-sample view, or row k mod rows without an order.
 * Outputs stored per step wrap at their view's rows: a ring that is read afterwards. */
struct binding {
    const struct view *views;
    int32_t view_count;
    const uint32_t *order; /* or NULL; copied by bind */
    int64_t order_count;
    uint64_t start;
    enum ingestion ingestion;
    uint64_t version; /* of the inputs, from binding_version: of two binds with the same one, views
                         with the same address and rows hold the same bytes, which need not be
                         copied again, nor for another plan. 0: they may have changed */
};

/* What runs for an op: one entry per kernel. An op that was folded into another has none. */
struct kernel_use {
    int32_t op;
    const char *kernel; /* "dense_f32_ref"; valid while the plan lives */
    int32_t launches;   /* per step or call; 0: part of a launch that covers many of them, or ops */
    const char *why; /* this one of several, static; NULL: there is no other, or nothing to say */
};

struct explanation {
    struct kernel_use *kernels; /* in the caller's arena */
    int32_t kernel_count;
    uint64_t role_bytes[ROLE_COUNT]; /* what the plan takes (or would) beside the instance */
};

/* A plugin and the program that loads it must be of one mind about every op and struct. The first
 * number is raised by hand; the others change by themselves when an op or an attribute comes. */
enum {
    BACKEND_ABI =
        16 * 1000000 + OP_COUNT * 1000 + (int)((sizeof(struct op) + sizeof(struct tensor)) % 1000)
};

struct backend {
    int abi;          /* BACKEND_ABI */
    const char *name; /* the value of the backend axis: "ref" */
    const char *unit; /* "cpu", "gpu" */

    /* Can this machine run it? STATUS_UNSUPPORTED with the reason and what to install. */
    enum status (*probe)(void);
    enum status (*open)(const struct device_options *options, struct device **out);
    void (*close)(struct device *device);
    void (*describe)(const struct device *device, struct device_info *out);

    /* Bare params have no values: their instance takes no memory and serves dry plans only. */
    enum status (*attach)(struct device *device, const struct params *params,
                          struct instance **out);
    void (*detach)(struct instance *instance);
    /* All blocks and the control block, canonical order. */
    enum status (*upload)(struct instance *instance, const struct params *params);
    enum status (*download)(struct instance *instance, struct params *params);

    /* NULL when it can run this op, else why not (static text). Without an op: when it has one
     * kernel for the whole program, all parts and as many steps as run is told. */
    const char *(*supports)(const struct device *device, const struct program *program,
                            const struct op *op);
    /* The program must outlive the plan. */
    enum status (*prepare)(struct instance *instance, const struct program *program,
                           const struct plan_options *options, struct plan **out);
    enum status (*bind)(struct plan *plan, const struct binding *binding);
    /* n × run(…, 1), bit for bit; a step runs the ops program->portions times. May return before
     * the work is done. */
    enum status (*run)(struct plan *plan, unsigned parts, int slot, int64_t steps);
    /* Waits; errors of asynchronous work come out here; bound outputs are valid afterwards. */
    enum status (*sync)(struct plan *plan);
    /* Copies one tensor of slot 0 to the host, canonical layout: for tests, observers, recipes. One
     * whose memory was used again is refused (program_check_fetch). */
    enum status (*fetch)(struct plan *plan, int32_t tensor, void *out);
    enum status (*explain)(const struct plan *plan, struct arena *arena, struct explanation *out);
    void (*release)(struct plan *plan);

    /* What the unit does in a second at best, of one kind of work: FLOP ("fp32", "tf32" …), bytes
     * of a working set of this size ("read", "copy", "update") or launches ("launch"). It is looked
     * for during `limit_ns`. STATUS_UNSUPPORTED when it has no such kind, with why. NULL: a CPU,
     * whose ceilings estimate/ finds by itself. */
    enum status (*burst)(struct device *device, const char *kind, uint64_t set_bytes,
                         uint64_t limit_ns, double *per_s);
};

/* What a plugin exports, as the data symbol `prony_plugin`. */
struct plugin {
    int abi; /* BACKEND_ABI */
    const struct backend *backend;
    void (*share)(struct error *(*host_last)(void)); /* status_share of the plugin's copy */
    const struct backend *second;                    /* the same unit by other kernels, or NULL */
};

#endif
