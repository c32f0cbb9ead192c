/* test_job_kernel.c: a kernel case as a job; kernels that are wrong in a known way are found. */
#include "bench/job/job_kernel.h"
#include "rig.h"

static const struct op_case dense = {OP_dense, "n=3 i=7 o=5", "activation=relu", ""};
static const struct op_case momentum = {OP_momentum, "*=13x7", "momentum=0.9 decay=0.1", ""};
static const struct op_case schedule = {OP_schedule, "", "kind=1 period=7 factor=0.5 scale=1", ""};

/* Times `runs` of the case and tells what the check says. */
static enum status time_and_check(const struct backend *backend, const struct op_case *op_case,
                                  int64_t runs)
{
    const struct kernel_options options = {.backend = backend,
                                           .device = {.threads = 1, .isa = ISA_AVX512},
                                           .reference = &backend_ref,
                                           .op_case = *op_case};
    struct job *job = NULL;
    uint64_t elapsed_ns = 0;
    double error = HUGE_VAL;
    if (!CHECK_OK(job_kernel_open(&options, &job)))
        return STATUS_MEMORY;
    enum status status = job->kind->prepare(job);
    if (status == STATUS_OK)
        status = job->kind->run(job, runs, &elapsed_ns);
    if (status == STATUS_OK) {
        CHECK(elapsed_ns > 0);
        status = job->kind->check(job, &error);
    }
    if (status == STATUS_OK)
        CHECK(error < 1e-5);
    job->kind->close(job);
    return status;
}

ON_BACKENDS(cases_are_right)
{
    static const struct op_case *const list[] = {&dense, &momentum, &schedule};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        CHECK_OK(time_and_check(rig->backend, list[i], 5000));
}

TEST(names_its_kernel)
{
    const struct kernel_options options = {.backend = &backend_ref,
                                           .device = {.threads = 1},
                                           .reference = &backend_ref,
                                           .op_case = dense};
    struct job *job;
    struct arena arena = {0};
    struct job_info info;
    if (!CHECK_OK(job_kernel_open(&options, &job)))
        return;
    if (CHECK_OK(job->kind->prepare(job)) && CHECK_OK(job->kind->describe(job, &arena, &info))) {
        CHECK_EQUAL_INT(info.kernel_count, 1);
        CHECK_EQUAL_TEXT(info.kernels[0], "dense_f32_ref");
        CHECK_EQUAL_INT(job_kernel_program(job)->op_count, 1);
    }
    arena_free(&arena);
    job->kind->close(job);
}

static enum status run_nothing(struct plan *plan, unsigned parts, int slot, int64_t steps)
{
    (void)plan, (void)parts, (void)slot, (void)steps;
    return STATUS_OK;
}

TEST(a_kernel_that_does_nothing_is_wrong)
{
    struct backend idle = backend_ref;
    idle.run = run_nothing;
    CHECK_EQUAL_INT(time_and_check(&idle, &dense, 1), STATUS_WRONG);
    CHECK(strstr(status_message(), "'y' differs"));
}

/* As if the kernel had written one element beyond its output. */
static enum status download_spoilt(struct instance *instance, struct params *params)
{
    TRY(backend_ref.download(instance, params));
    ((float *)params_data(params, params_find(params, "guard y")))[0] = 1;
    return STATUS_OK;
}

TEST(a_kernel_that_writes_too_much_is_wrong)
{
    struct backend spoilt = backend_ref;
    spoilt.download = download_spoilt;
    CHECK_EQUAL_INT(time_and_check(&spoilt, &dense, 1), STATUS_WRONG);
    CHECK(strstr(status_message(), "writes beyond the end of 'y'"));
}

static enum status upload_nothing(struct instance *instance, const struct params *params)
{
    (void)instance, (void)params;
    return STATUS_OK;
}

/* Without starting from the case's values again the velocity decays to almost nothing. */
TEST(subnormal_numbers_are_not_timed)
{
    struct backend stubborn = backend_ref;
    stubborn.upload = upload_nothing;
    CHECK_EQUAL_INT(time_and_check(&stubborn, &momentum, 1000), STATUS_WRONG);
    CHECK(strstr(status_message(), "the timed runs left"));
}

CHECK_MAIN
