/* job_kernel.c: see job_kernel.h. */
#include "bench/job/job_kernel.h"

#include "base/clock.h"
#include "base/memory.h"
#include "bench/job/describe.h"

#include <math.h>

enum { CASE_SEED = 7 };

/* A case that is ready to run on a device of its own. */
struct trial {
    const struct backend *backend;
    struct params params; /* the case's values, before anything ran */
    struct program *program;
    struct device *device;
    struct instance *instance;
    struct plan *plan;
};

struct job_kernel {
    struct job job;
    struct kernel_options options;
    struct trial trial;
    bool changing;
};

/* Closed by its owner, also when it fails. */
static enum status trial_open(struct trial *trial, const struct backend *backend,
                              const struct device_options *device, const struct op_case *op_case,
                              enum dtype real)
{
    const struct plan_options plain = {0};
    *trial = (struct trial){.backend = backend};
    params_init(&trial->params, real);
    TRY(case_program(op_case, CASE_SEED, &trial->params, &trial->program));
    TRY(backend->probe());
    TRY(backend->open(device, &trial->device));
    TRY(backend->attach(trial->device, &trial->params, &trial->instance));
    return backend->prepare(trial->instance, trial->program, &plain, &trial->plan);
}

static void trial_close(struct trial *trial)
{
    if (trial->plan)
        trial->backend->release(trial->plan);
    if (trial->instance)
        trial->backend->detach(trial->instance);
    if (trial->device)
        trial->backend->close(trial->device);
    program_free(trial->program);
    params_free(&trial->params);
}

static enum status trial_run(struct trial *trial, int64_t runs)
{
    TRY(trial->backend->run(trial->plan, PARTS_ALL, 0, runs));
    return trial->backend->sync(trial->plan);
}

/* Does a run change what the next one reads? */
static bool is_changing(const struct program *program)
{
    const struct op *op = &program->ops[0];
    for (int32_t o = 0; o < op->outputs; o++)
        for (int32_t i = 0; i < op->inputs; i++)
            if (op_output(program, op, o) >= 0 &&
                op_output(program, op, o) == op_input(program, op, i))
                return true;
    return false;
}

static enum status kernel_prepare(struct job *job)
{
    struct job_kernel *kernel = (struct job_kernel *)job;
    const struct kernel_options *options = &kernel->options;
    TRY(trial_open(&kernel->trial, options->backend, &options->device, &options->op_case,
                   DTYPE_F32));
    kernel->changing = is_changing(kernel->trial.program);
    return STATUS_OK;
}

static enum status kernel_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct job_kernel *kernel = (struct job_kernel *)job;
    const struct backend *backend = kernel->options.backend;

    *elapsed_ns = 0;
    while (iterations > 0) {
        int64_t runs = iterations;
        if (kernel->changing) {
            runs = runs < KERNEL_RUNS ? runs : KERNEL_RUNS;
            TRY(backend->upload(kernel->trial.instance, &kernel->trial.params));
        }
        uint64_t start_ns = clock_ns();
        TRY(trial_run(&kernel->trial, runs));
        *elapsed_ns += clock_ns() - start_ns;
        iterations -= runs;
    }
    return STATUS_OK;
}

/* Numbers that take another time than those of a network in use. */
static enum status refuse_odd_numbers(const struct params *params)
{
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        const float *data = params_data(params, e);
        for (int64_t i = 0, n = shape_count(&entry->shape); entry->dtype == DTYPE_F32 && i < n; i++)
            if (isinf(data[i]) || fpclassify(data[i]) == FP_SUBNORMAL)
                FAIL(STATUS_WRONG,
                     "the timed runs left %g in '%s': kernels take other times for such numbers",
                     (double)data[i], entry->name);
    }
    return STATUS_OK;
}

/* What one run makes of the case's values, by the plan that was timed. */
static enum status kernel_results(struct job_kernel *kernel, struct params *found)
{
    const struct backend *backend = kernel->options.backend;
    TRY(backend->download(kernel->trial.instance, found));
    TRY(refuse_odd_numbers(found));
    TRY(backend->upload(kernel->trial.instance, &kernel->trial.params));
    TRY(trial_run(&kernel->trial, 1));
    return backend->download(kernel->trial.instance, found);
}

static enum status kernel_check(struct job *job, double *error)
{
    struct job_kernel *kernel = (struct job_kernel *)job;
    const struct op_case *op_case = &kernel->options.op_case;
    const struct device_options one = {.threads = 1, .isa = ISA_BEST};
    struct trial reference = {0};
    struct params found;
    struct program *same = NULL;
    enum status status = STATUS_OK;

    params_init(&found, DTYPE_F32);
    TRY_OR(done, case_program(op_case, CASE_SEED, &found, &same));
    TRY_OR(done, kernel_results(kernel, &found));
    TRY_OR(done, trial_open(&reference, kernel->options.reference, &one, op_case,
                            case_oracle(op_case->kind)));
    TRY_OR(done, trial_run(&reference, 1));
    TRY_OR(done, reference.backend->download(reference.instance, &reference.params));
    status = case_compare(op_case, &found, &reference.params,
                          case_tolerance(kernel->options.device.precision), error);
done:
    trial_close(&reference);
    program_free(same);
    params_free(&found);
    return status;
}

static enum status kernel_describe(struct job *job, struct arena *arena, struct job_info *out)
{
    struct job_kernel *kernel = (struct job_kernel *)job;
    return describe_plans(kernel->options.backend, kernel->trial.device, &kernel->trial.plan, 1,
                          arena, out);
}

static void kernel_close(struct job *job)
{
    struct job_kernel *kernel = (struct job_kernel *)job;
    trial_close(&kernel->trial);
    mem_free(kernel);
}

static const struct job_kind kernel_kind = {.name = "kernel",
                                            .prepare = kernel_prepare,
                                            .run = kernel_run,
                                            .check = kernel_check,
                                            .describe = kernel_describe,
                                            .close = kernel_close};

enum status job_kernel_open(const struct kernel_options *options, struct job **out)
{
    struct job_kernel *kernel = mem_alloc(sizeof *kernel);
    NEED(kernel);
    kernel->job.kind = &kernel_kind;
    kernel->options = *options;
    params_init(&kernel->trial.params, DTYPE_F32);
    *out = &kernel->job;
    return STATUS_OK;
}

const struct program *job_kernel_program(const struct job *job)
{
    return ((const struct job_kernel *)job)->trial.program;
}
