/* test_cuda_plugin.c: the CUDA plugin as the registry loads it: what it says where there is no
 * driver, what it supports (known without a device), and, on a GPU, that it is a device that can be
 * opened, filled and asked. What it computes is checked by the conformance tests. */
#include "rig.h"

#include "core/params.h"

/* The plugin of this build, or NULL with the reason in status_message(). */
static const struct backend *load(struct registry *registry)
{
    const struct backend *backend;
    char folder[4096];
    rig_folder(folder, sizeof folder);
    if (registry_load(registry, folder) != STATUS_OK ||
        registry_find(registry, "cuda", &backend) != STATUS_OK)
        return NULL;
    return backend;
}

TEST(loads_and_probes)
{
    struct registry registry = {0};
    const struct backend *cuda = load(&registry);
    if (!cuda) {
        check_skip("no CUDA plugin in this build: %s", status_message());
    } else {
        CHECK_EQUAL_TEXT(cuda->unit, "gpu");
        enum status status = cuda->probe();
        if (status != STATUS_OK) {
            CHECK_EQUAL_INT(status, STATUS_UNSUPPORTED);
            CHECK(strstr(status_message(), "install or update the driver") ||
                  strstr(status_message(), "check nvidia-smi") ||
                  strstr(status_message(), "compute capability"));
            check_skip("%s", status_message());
        }
    }
    registry_close(&registry);
}

/* A program with one fill op over so many elements of this type. */
static enum status make_fill(struct params *params, enum dtype real, int64_t count,
                             struct program **out)
{
    struct draft draft;
    params_init(params, real);
    TRY(program_begin(&draft, params, "fill", 1, real));
    draft_part(&draft, PART_FORWARD);
    draft_op(&draft, OP_fill, NOTHING, OUT(draft_real(&draft, "y", SHAPE(1, count))));
    return program_finish(&draft, out);
}

TEST(supports_f32_only)
{
    struct registry registry = {0};
    const struct backend *cuda = load(&registry);
    for (int wide = 0; cuda && wide < 2; wide++) {
        struct params params;
        struct program *program = NULL;
        if (CHECK_OK(make_fill(&params, wide ? DTYPE_F64 : DTYPE_F32, 7, &program))) {
            const char *why = cuda->supports(NULL, program, &program->ops[0]);
            CHECK_EQUAL_TEXT(why, wide ? "the CUDA backend computes in f32, not f64" : NULL);
            program->ops[0].kind = OP_COUNT; /* as an op would be that came after the plugin */
            CHECK(cuda->supports(NULL, program, &program->ops[0]) != NULL);
        }
        program_free(program);
        params_free(&params);
    }
    if (!cuda)
        check_skip("no CUDA plugin in this build");
    registry_close(&registry);
}

TEST(a_missing_device_is_refused)
{
    struct registry registry = {0};
    const struct backend *cuda = load(&registry);
    if (!cuda) {
        check_skip("no CUDA plugin in this build");
    } else {
        struct device *device = NULL;
        bool there = cuda->probe() == STATUS_OK;
        CHECK_STATUS(there ? STATUS_INPUT : STATUS_UNSUPPORTED,
                     cuda->open(&(struct device_options){.index = 1000}, &device));
        CHECK(!device);
    }
    registry_close(&registry);
}

/* On an opened device: a dry plan answers, a real one runs. */
static void check_fill(const struct backend *cuda, struct device *device)
{
    struct params params;
    struct program *program = NULL;
    struct instance *instance = NULL;
    if (CHECK_OK(make_fill(&params, DTYPE_F32, 7, &program)) &&
        CHECK_OK(cuda->attach(device, &params, &instance))) {
        program->ops[0].attr.fill.value = 2.5f;
        for (int dry = 1; dry >= 0; dry--) {
            struct plan *plan = NULL;
            struct arena arena = {0};
            struct explanation explanation;
            float y[7] = {0};
            if (!CHECK_OK(
                    cuda->prepare(instance, program, &(struct plan_options){.dry = dry}, &plan)))
                continue;
            CHECK_OK(cuda->explain(plan, &arena, &explanation));
            CHECK_EQUAL_INT(explanation.kernel_count, 1);
            CHECK_EQUAL_TEXT(explanation.kernels[0].kernel, "fill_f32_cuda");
            CHECK_EQUAL_INT(explanation.kernels[0].launches, 1);
            CHECK(explanation.role_bytes[ROLE_ACTIVATION] >= sizeof y);
            CHECK_STATUS(dry ? STATUS_INPUT : STATUS_OK, cuda->run(plan, PARTS_ALL, 0, 20));
            CHECK_OK(cuda->sync(plan));
            if (!dry && CHECK_OK(cuda->fetch(plan, 0, y)))
                CHECK_NEAR(y[6], 2.5, 0);
            arena_free(&arena);
            cuda->release(plan);
        }
    }
    cuda->detach(instance);
    program_free(program);
    params_free(&params);
}

/* More than any GPU has: known before it is taken, refused, and nothing is lost by it. */
static void check_too_large(const struct backend *cuda, struct device *device)
{
    const int64_t count = INT64_C(1) << 44;
    struct params params;
    struct program *program = NULL;
    struct instance *instance = NULL;
    struct plan *plan = NULL;
    struct arena arena = {0};
    struct explanation explanation;
    if (CHECK_OK(make_fill(&params, DTYPE_F32, count, &program)) &&
        CHECK_OK(cuda->attach(device, &params, &instance))) {
        if (CHECK_OK(
                cuda->prepare(instance, program, &(struct plan_options){.dry = true}, &plan)) &&
            CHECK_OK(cuda->explain(plan, &arena, &explanation)))
            CHECK(explanation.role_bytes[ROLE_ACTIVATION] >= 4 * (uint64_t)count);
        cuda->release(plan);
        CHECK_STATUS(STATUS_MEMORY,
                     cuda->prepare(instance, program, &(struct plan_options){0}, &plan));
        CHECK_MESSAGE("out of GPU memory");
        CHECK_MESSAGE(" MB for the plan's activations, and ");
        CHECK_MESSAGE("are free");
    }
    arena_free(&arena);
    cuda->detach(instance);
    program_free(program);
    params_free(&params);
}

/* What calibration asks for, a moment each. */
static void check_bursts(const struct backend *cuda, struct device *device)
{
    static const char *const kinds[] = {"fp32", "tf32", "bf16",   "fp16",
                                        "read", "copy", "update", "launch"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double per_s = 0;
        if (!check_wants(kinds[i]))
            continue;
        const enum status status = cuda->burst(device, kinds[i], 4 << 20, 1000000, &per_s);
        CHECK(status == STATUS_UNSUPPORTED || (status == STATUS_OK && per_s > 0));
    }
}

TEST(runs_on_a_device)
{
    struct registry registry = {0};
    const struct backend *cuda = load(&registry);
    struct device *device = NULL;
    if (!cuda)
        check_skip("no CUDA plugin in this build");
    else if (cuda->probe() != STATUS_OK)
        check_skip("%s", status_message());
    else if (CHECK_OK(cuda->open(&(struct device_options){0}, &device))) {
        check_too_large(cuda, device);
        check_fill(cuda, device);
        check_bursts(cuda, device);
    }
    if (device)
        cuda->close(device);
    registry_close(&registry);
}

CHECK_MAIN
