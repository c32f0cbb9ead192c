/* cuda_device.h: what the host side of the backend shares: device, instance, plan, and how CUDA's
 * errors become statuses. */
#ifndef PRONY_BACKEND_CUDA_CUDA_DEVICE_H
#define PRONY_BACKEND_CUDA_CUDA_DEVICE_H

#include "backend/cuda/device/launch.h"
#include "backend/cuda/host/cuda_exchange.h"
#include "backend/cuda/ops/mixed_precision.h"
#include "backend/cuda/plan/double_buffer.h"
#include "backend/cuda/plan/side_stream.h"
#include "backend/cuda/product/activation_grad.h"

/* One stream for all plans: work is done in the order in which it was asked for, so plans that
 * share an instance (a GAN's two sides) need no waiting between them. */
struct device {
    int index;
    bool paper; /* there is no GPU: only dry plans are made, and nothing is asked of CUDA */
    cudaDeviceProp properties;
    bool warpgroups; /* it multiplies from shared memory (wgmma): Hopper, with code made for it
                        alone */
    cudaStream_t stream;
    enum precision precision; /* of products */
    bool fp8;                 /* large dense layers by fp8.h, all else in bf16 */
    struct blas *blas;        /* or NULL: not installed */
    struct cudnn *cudnn;      /* the backend 'cudnn'; else NULL */
    struct plan *answering;   /* who may have calls outside the stream's order, or NULL */
    struct shared *shared;    /* bound data that several plans may read, a list */
    struct nccl *nccl;        /* or NULL: nobody has asked for it */
};

/* Inputs of one version (binding.version): here once, for as long as a plan is bound to them. */
struct shared {
    struct shared *next;
    const void *host;
    uint64_t bytes, version;
    uint32_t *data; /* device */
    int users;      /* mirrors */
};

struct instance {
    struct device *device;
    int32_t entries;
    struct {
        char *data; /* device */
        uint64_t bytes;
    } blocks[ROLE_COUNT];          /* the kept roles */
    struct control *control;       /* device */
    char *copy;                    /* device: the parameters in 16 bits, or NULL */
    struct loss_scale *loss_scale; /* device; fp16 only, else NULL */
    uint64_t version;              /* counts what may have changed parameters */
    struct fp8_copy *fp8;          /* [entries]: their copies in fp8; NULL: none has one */
    char *fp8_memory;              /* device */
};

/* A view in host memory and its copy on the device. */
struct mirror {
    void *host;            /* NULL: not bound */
    char *pinned;          /* staged inputs: page-locked, as large as `data`; else NULL */
    struct shared *shared; /* whose data these are, or NULL: the mirror's own */
    uint32_t *data;        /* device; kept when the plan is bound again and it is large enough */
    bool mapped; /* … or, small outputs, in host memory that kernels write to: nothing to copy */
    uint64_t room; /* bytes at `data` that are the mirror's own */
    uint64_t rows, row_bytes;
    uint8_t *written; /* device [rows], behind the data: stored since the last sync? outputs only */
    uint8_t *flags;   /* host [rows]: where sync reads `written`; outputs only, else NULL */
};

enum { INTAKE_PARTS = 2 };

/* How a plan's inputs get here, step by step: intake.cu. */
struct intake {
    enum ingestion how;    /* up to INGEST_RESIDENT nothing of this is used: they are here */
    const uint32_t *order; /* host, the plan's, or NULL: rows as they come */
    uint64_t samples;      /* of the order or of the data */
    uint64_t place;        /* the sample that the next step begins with */
    uint32_t parts;        /* steps whose rows are here at once: 1, overlapped 2 */
    uint64_t steps;        /* taken in so far */
    struct pool *pool;     /* gathers rows; NULL: they are copied from where they lie */
    cudaStream_t stream;   /* of copies beside the computing */
    cudaEvent_t copied[INTAKE_PARTS], used[INTAKE_PARTS]; /* the rows of each part */
};

enum { CAPTURE_SIZES = 5 };

/* Steps of some parts in one slot, captured. */
struct capture {
    cudaGraphExec_t steps[CAPTURE_SIZES]; /* [i]: 2^i steps; NULL: not captured yet */
};

struct stack;
struct answer;
struct span;
struct step;
struct stages;
struct stage;

struct plan {
    struct arena arena; /* the tables below */
    struct instance *instance;
    const struct program *program;
    struct observer observer;
    bool dry;
    int slots;
    int copies; /* of a slot's memory: `slots`, or two of the only one (double_buffer.h) */

    char *memory; /* device: copies × slot_bytes: inputs, outputs, activations, scratch */
    uint64_t slot_bytes;
    uint64_t role_start[ROLE_COUNT]; /* within a slot */
    char *grads;                     /* device; all slots add to the same */
    char *workspace;                 /* device; the most any op asks for */
    uint64_t workspace_bytes;
    struct mixed *mixed;                /* NULL: everything is in fp32 */
    struct activation_grad **act_grads; /* [op], or NULL */
    char *act_grad_memory;              /* device */
    uint64_t act_grad_bytes;

    struct stack *stack;   /* runs all parts together; NULL: step by step */
    struct answer *answer; /* answers them through a mailbox; or NULL */
    struct place *places;  /* [tensor] */
    struct step *steps;    /* what runs, in its order (steps.h) */
    int32_t step_count;
    int32_t *step_of;   /* [op] */
    struct call *calls; /* [copy][step] */

    struct feed *feed;       /* device, and behind it … */
    struct feed_view *views; /* … device [tensor] */
    struct feed *told;       /* host: what bind last wrote to both; untouched while it is copied */
    uint32_t *order;         /* device [order_room], or NULL */
    uint32_t *order_told;    /* host: as `told` */
    uint64_t order_room;
    struct mirror *mirrors; /* [tensor] */
    struct intake intake;
    bool pending; /* something ran or was told since the last sync */

    cudaStream_t capture_stream; /* nothing runs in it */
    struct side_stream side;
    struct cuda_exchange exchange; /* with other ranks */
    struct double_buffer double_buffer;
    struct capture *captures; /* [slot][parts] */
    cudaEvent_t *marks;       /* observed plans: before, between and after what is timed */
    int32_t mark_count;
    struct span
        *spans; /* [op]: instead, where CUPTI times a plan whose ops are observed; or NULL */
    struct stages *stages; /* when staged steps did what; NULL: nobody asks */
};

/* Records the failure of a CUDA call; `doing` is the call's text. */
enum status cuda_fail(const char *file, int line, cudaError_t error, const char *doing);

#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t cuda_error_ = (call);                                                          \
        if (cuda_error_ != cudaSuccess)                                                            \
            return cuda_fail(__FILE__, __LINE__, cuda_error_, #call);                              \
    } while (0)

/* cuda_device.cu. cuda_use makes the device the calling thread's, and ends a kernel that waits
 * there for calls; every hook begins with it. */
enum status cuda_probe(void);
enum status cuda_open(const struct device_options *options, struct device **out);
/* … as the backend 'cudnn' */
enum status cuda_probe_cudnn(void);
enum status cuda_open_cudnn(const struct device_options *options, struct device **out);
void cuda_close(struct device *device);
void cuda_describe(const struct device *device, struct device_info *out);
const char *cuda_supports(const struct device *device, const struct program *program,
                          const struct op *op);
enum status cuda_use(struct device *device);
/* Zeroed device memory; `what` is named when there is not enough. 0 bytes: *out is NULL. */
enum status cuda_alloc(const struct device *device, uint64_t bytes, const char *what, void **out);

/* cuda_instance.cu */
enum status cuda_attach(struct device *device, const struct params *params, struct instance **out);
void cuda_detach(struct instance *instance);
enum status cuda_upload(struct instance *instance, const struct params *params);
enum status cuda_download(struct instance *instance, struct params *params);

/* cuda_plan.cu */
enum status cuda_prepare(struct instance *instance, const struct program *program,
                         const struct plan_options *options, struct plan **out);
enum status cuda_fetch(struct plan *plan, int32_t tensor, void *out);
enum status cuda_explain(const struct plan *plan, struct arena *arena, struct explanation *out);
void cuda_release(struct plan *plan);

/* Where a copy of a tensor (a slot's) lies on the device; NULL for none, and in a dry plan. */
void *cuda_locate(const struct plan *plan, int32_t tensor, int copy);

/* stack_plan.cu: programs that one kernel runs. NULL, or why there is none for it. */
const char *stack_supports(const struct device *device, const struct program *program);
enum status stack_prepare(struct plan *plan, enum answering answering); /* chooses; takes nothing */
enum status stack_begin(struct plan *plan);
enum status stack_run(struct plan *plan, int64_t steps);
void stack_release(struct plan *plan);

/* answer_calls.cu: lets the kernel leave that waits for calls, if there is one. */
enum status answer_stop(struct device *device);

/* cuda_bind.cu */
enum status cuda_bind(struct plan *plan, const struct binding *binding);
void cuda_forget_mirror(struct device *device, struct mirror *mirror);
/* What is bound is here already, for whichever plan; NULL: it is not, or may have changed. */
struct shared *cuda_find_shared(const struct device *device, const void *host, uint64_t bytes,
                                uint64_t version);
enum status cuda_sync(struct plan *plan);

/* intake.cu: data that stay in the host's memory. Begin is told of every bind, after the views; a
 * step's rows are taken in before it is launched, and it is told when it was. A stage that is not
 * NULL gets the times of gathering and copying. */
enum status intake_choose(struct plan *plan, const struct binding *binding);
enum status intake_begin(struct plan *plan, const struct binding *binding, uint64_t samples);
enum status intake_take(struct plan *plan, struct stage *stage);
enum status intake_launched(struct plan *plan);
void intake_end(struct plan *plan);

/* burst.cu */
enum status cuda_burst(struct device *device, const char *kind, uint64_t set_bytes,
                       uint64_t limit_ns, double *per_s);

/* cuda_run.cu */
enum status cuda_run(struct plan *plan, unsigned parts, int slot, int64_t steps);
/* What run would do when it first meets these parts for one step and for many. */
enum status cuda_capture(struct plan *plan, unsigned parts, int slot);

#endif
