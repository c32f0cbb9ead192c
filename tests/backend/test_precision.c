/* test_precision.c: backends that compute products in less than fp32 (tf32, bf16, fp16): every such
 * op against the reference in double precision, networks over some steps against the reference in
 * fp32, both with what the arithmetic allows; and that what cannot be computed so is refused. */
#include "compiled.h"
#include "core/cases.h"
#include "core/pass/fuse.h"
#include "levels.h"

static const char *const precisions[] = {"tf32", "bf16", "fp16"};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static bool is_cpu(const struct rig *rig)
{
    return strcmp(rig->backend->unit, "cpu") == 0;
}

/* False: the test is skipped with the reason, or a CPU is passed over, which has bf16 alone. */
static bool open_in(struct rig *rig, const struct rig *plain, const char *precision)
{
    struct device_options options = {.threads = 2, .isa = ISA_BEST, .precision = precision};
    *rig = (struct rig){.backend = plain->backend};
    if (is_cpu(rig) && strcmp(precision, "bf16") != 0)
        return false;
    if (rig->backend->open(&options, &rig->device) == STATUS_OK)
        return true;
    check_skip("%s", status_message());
    return false;
}

/* Attaches, prepares, runs one step. STATUS_UNSUPPORTED: not in this precision. */
static enum status run_case(struct rig *rig, const struct program *program, struct params *params)
{
    const struct plan_options usual = {0};
    struct instance *instance = NULL;
    struct plan *plan = NULL;
    enum status status;
    TRY(rig->backend->attach(rig->device, params, &instance));
    TRY_OR(done, rig->backend->prepare(instance, program, &usual, &plan));
    TRY_OR(done, rig->backend->run(plan, PARTS_ALL, 0, 1));
    TRY_OR(done, rig->backend->sync(plan));
    TRY_OR(done, rig->backend->download(instance, params));
done:
    if (plan)
        rig->backend->release(plan);
    rig->backend->detach(instance);
    return status;
}

/* Was the case computed in this precision? Checked when it was. */
static bool check_case(struct rig *rig, struct rig *oracle, const struct op_case *op_case,
                       const char *precision)
{
    struct params found, expected;
    struct program *program = NULL, *wide = NULL;
    double error = 0;
    params_init(&found, DTYPE_F32);
    params_init(&expected, case_oracle(op_case->kind));
    enum status status = case_program(op_case, 7, &found, &program);
    if (status == STATUS_OK)
        status = run_case(rig, program, &found);
    bool ran = status == STATUS_OK;
    if (!CHECK(ran || status == STATUS_UNSUPPORTED))
        printf("    %s %s in %s: %s\n", op_name(op_case->kind), op_case->sizes, precision,
               status_message());
    if (ran && CHECK_OK(case_program(op_case, 7, &expected, &wide)) &&
        CHECK_OK(run_case(oracle, wide, &expected)) &&
        !CHECK_OK(case_compare(op_case, &found, &expected, case_tolerance(precision), &error)))
        printf("    %s %s in %s\n", op_name(op_case->kind), op_case->sizes, precision);
    program_free(program);
    program_free(wide);
    params_free(&found);
    params_free(&expected);
    return ran;
}

ON_BACKENDS(every_case_agrees_with_f64)
{
    struct rig oracle, low;
    struct op_case op_case;
    CHECK(rig_open(&oracle, "ref"));
    for (int p = 0; p < PRECISIONS; p++) {
        int ran = 0;
        if (!open_in(&low, rig, precisions[p]))
            continue;
        for (int32_t i = 0; case_at(i, &op_case); i++)
            ran += check_wants(op_name(op_case.kind)) &&
                   check_case(&low, &oracle, &op_case, precisions[p]);
        rig_close(&low);
        CHECK(ran > 0 || !check_wants_all());
        printf("    '%s' ran %d cases in %s\n", rig->backend->name, ran, precisions[p]);
    }
    rig_close(&oracle);
}

static struct params known_of(struct rig *reference, const struct op_case *op_case)
{
    struct params params;
    struct program *program = NULL;
    params_init(&params, DTYPE_F32);
    CHECK_OK(case_program(op_case, 7, &params, &program));
    if (run_case(reference, program, &params) != STATUS_OK) {
        params_free(&params);
        params = (struct params){0};
    }
    program_free(program);
    return params;
}

/* bf16 on a CPU is defined, not only bounded: whatever the instructions are, results differ from
 * the reference's in bf16 by no more than sums of fp32 do. */
static void check_definition(struct rig *low, struct rig *reference)
{
    struct op_case op_case;
    int ran = 0;
    for (int32_t i = 0; case_at(i, &op_case); i++) {
        struct params found = known_of(low, &op_case);
        struct params expected = found.count ? known_of(reference, &op_case) : found;
        double error;
        if (found.count && expected.count &&
            !CHECK_OK(case_compare(&op_case, &found, &expected, 2 * case_tolerance(NULL), &error)))
            printf("    %s %s\n", op_name(op_case.kind), op_case.sizes);
        ran += found.count > 0;
        params_free(&found);
        if (expected.count)
            params_free(&expected);
    }
    CHECK(ran > 100);
}

TEST(bf16_of_every_level_is_the_references)
{
    const struct device_options options = {.threads = 3, .precision = "bf16"};
    struct rig levels[LEVELS_MOST], reference = {.backend = &backend_ref};
    const int count = levels_open(levels, options);
    if (CHECK_OK(reference.backend->open(&options, &reference.device)))
        for (int level = 0; level < count; level++)
            check_definition(&levels[level], &reference);
    levels_close(levels, count);
    rig_close(&reference);
}

/* Networks whose layers are kept in 16 bits from end to end, and ones that change to and fro;
 * widths that fill no vector. */
static const struct lesson {
    const char *text;
    int64_t in, out; /* numbers of a sample */
    int32_t batch;
    const char *optimiser;
} lessons[] = {
    {"input 13\ndense 129\nrelu\ndense 67\nrelu\ndense 5\nloss mse\n", 13, 5, 37, "sgd"},
    {"input 64\ndense 200\nsigmoid\ndense 100\nsigmoid\ndense 3\nloss mse\n", 64, 3, 64, "sgd"},
    {"input 16\ndense 96\ntanh\ndense 96\nrelu\ndense 8\nloss mse\n", 16, 8, 7,
     "momentum:clip=0.5"},
    {"input 33\ndense 65\nlayer_norm\nrelu\ndense 64\ndropout 0.2\ndense 33\nloss mse\n", 33, 33,
     32, "adam"},
    {"input 1x12x12\nconv 8 3x3\nrelu\nmax_pool 2\nflatten\ndense 64\nrelu\ndense 24\nloss mse\n",
     144, 24, 16, "sgd:decay=0.001"},
    {"input 1x12x12\nconv 32 3x3\nrelu\nconv 40 3x3\nrelu\nmax_pool 2\nflatten\ndense 24\n"
     "loss mse\n",
     144, 24, 16, "sgd"},
    {"input 132\ndense 260\nsigmoid\ndense 140\nrelu\ndense 132\ntanh\ndense 5\nloss mse\n", 132, 5,
     150, "sgd"},
    {"input 24\ndense 132\nsigmoid\ndense 136\nrelu\ndense 132\nsigmoid\ndense 3\nloss mse\n", 24,
     3, 517, "sgd"},
    {"input 4\ndense 260\nsigmoid\ndense 140\nsigmoid\ndense 132\nsigmoid\ndense 1\nloss mse\n", 4,
     1, 150, "sgd"},
    {"input 132\ndense 260\nrelu\ndense 136\nrelu\ndense 10\nloss mse\n", 132, 10, 61, "sgd"},
    {"input 8\ndense 136\nsigmoid\ndense 132\nrelu\ndense 136\nsigmoid\ndense 10\nloss mse\n", 8,
     10, 5, "sgd"},
    {"input 8\ndense 136\nsigmoid\ndense 132\nrelu\ndense 136\nsigmoid\ndense 10\nloss mse\n", 8,
     10, 12, "sgd"},
    {"input 8\ndense 136\nsigmoid\ndense 132\nrelu\ndense 136\nsigmoid\ndense 10\nloss mse\n", 8,
     10, 20, "sgd"},
};

/* Where a step is enough: layers wide enough for all kernels, images that lie channels last
 * through norms and pooling. */
static const struct lesson short_lessons[] = {
    {"input 24\ndense 516\nsigmoid\ndense 516\nrelu\ndense 3\nloss mse\n", 24, 3, 512, "sgd"},
    {"input 24\ndense 300\nsigmoid\ndense 300\nrelu\ndense 300\ntanh\ndense 5\nloss mse\n", 24, 5,
     64, "sgd"},
    {"input 24\ndense 1064\nsigmoid\ndense 3\nloss mse\n", 24, 3, 2048, "sgd"},
    {"input 24\ndense 1064\nsigmoid\ndense 1\nloss mse\n", 24, 1, 3, "sgd"},
    {"input 132\ndense 1024\nsigmoid\ndense 1\nloss mse\n", 132, 1, 61, "sgd"},
    {"input 4\ndense 260\nsigmoid\ndense 180\nrelu\ndense 5\nloss mse\n", 4, 5, 100, "sgd"},
    {"input 4x8x8\nconv 32 3x3 pad=1\nbatch_norm\nrelu\nmax_pool 2\na = conv 32 3x3 pad=1\n"
     "batch_norm\nrelu\nb = conv 32 3x3 pad=1\nbatch_norm\nadd < a, b\nrelu\naverage_pool 2\n"
     "conv 32 1x1\nflatten\ndense 24\nloss mse\n",
     256, 24, 16, "sgd"},
};

/* What a lesson is asked for by. */
static const char *row_of(const struct lesson *lesson)
{
    return strstr(lesson->text, "conv") ? "conv" : "dense";
}

enum { STEPS = 20, WIDEST = 264 };

struct course {
    struct compiled model;
    struct program *fused;
    struct params before;
    float x[ROWS * WIDEST], target[ROWS * WIDEST], loss[STEPS];
};

static bool course_open(struct course *course, struct rig *rig, const struct lesson *lesson,
                        double rate, float size)
{
    *course = (struct course){0};
    if (!compiled_open(&course->model, lesson->text,
                       (struct compile_options){.batch = lesson->batch,
                                                .use = USE_TRAINING,
                                                .optimiser = lesson->optimiser}))
        return false;
    course->model.params.control.rate = rate;
    copy_params(&course->before, &course->model.params);
    fill_random(course->x, ROWS * lesson->in, 5);
    fill_random(course->target, ROWS * lesson->out, 6);
    for (int64_t i = 0; i < ROWS * lesson->out; i++)
        course->target[i] *= size;
    return CHECK_OK(fuse(course->model.program, rig->backend, rig->device, &course->fused));
}

static void course_close(struct course *course)
{
    program_free(course->fused);
    params_free(&course->before);
    compiled_close(&course->model);
    *course = (struct course){0};
}

/* Runs the steps, `at_once` of them in a call. */
static bool course_run(struct course *course, struct rig *rig, int64_t steps, int64_t at_once)
{
    struct ready ready;
    bool ok = ready_open(&ready, rig, &course->model.params, course->fused) &&
              ready_bind(&ready, course->fused, (const char *[]){"x", "target", "loss"},
                         (void *[]){course->x, course->target, course->loss},
                         (int64_t[]){ROWS, ROWS, STEPS}, 3, NULL, 0, 0);
    for (int64_t done = 0; ok && done < steps; done += at_once)
        ok = ready_run(&ready, PARTS_ALL, 0, at_once);
    ok = ok && CHECK_OK(rig->backend->download(ready.instance, &course->model.params));
    ready_close(&ready);
    return ok;
}

/* How far the parameters of two courses are apart, as a share of how far they went. */
static double apart(const struct course *found, const struct course *expected)
{
    double squares = 0, moved = 0;
    for (int32_t e = 0; e < found->before.count; e++) {
        const struct entry *entry = &found->before.entries[e];
        const float *a = params_data(&found->model.params, e);
        const float *b = params_data(&expected->model.params, e);
        const float *from = params_data(&found->before, e);
        for (int64_t i = 0; entry->role == ROLE_PARAM && i < shape_count(&entry->shape); i++) {
            squares += pow((double)a[i] - (double)b[i], 2);
            moved += pow((double)b[i] - (double)from[i], 2);
        }
    }
    return sqrt(squares / moved);
}

static int64_t lesson_steps = STEPS; /* fewer where each is watched by a tool */

/* The same steps as on the reference; and again one at a time, which gives the same bits. */
static void check_course(struct rig *low, const struct course *expected,
                         const struct lesson *lesson, const char *precision, double rate,
                         double most)
{
    static struct course found, single;
    if (course_open(&found, low, lesson, rate, 1) && course_open(&single, low, lesson, rate, 1) &&
        course_run(&found, low, lesson_steps, lesson_steps) &&
        course_run(&single, low, lesson_steps, 1)) {
        double off = apart(&found, expected);
        if (!CHECK(off <= most) || !CHECK(same_params(&found.model.params, &single.model.params)))
            printf("    %s with %s at %g in %s: off by %g\n", lesson->text, lesson->optimiser, rate,
                   precision, off);
        CHECK(difference(found.loss, expected->loss, STEPS) <= most);
    }
    course_close(&found);
    course_close(&single);
}

/* In the first so many precisions; the reference computes in fp32, and slowly, so once for all.
 * Behind a batch norm over few pixels relu and max_pool decide otherwise after the slightest
 * rounding: at rate 0.05 the reference itself ends half of its way elsewhere when its weights are
 * shaken by what tf32 rounds off, at 0.01 a twentieth. */
static void check_lesson(struct rig low[PRECISIONS], int count, struct rig *reference,
                         const struct lesson *lesson, double rate, bool shaky)
{
    static const double most[PRECISIONS] = {0.02, 0.1, 0.02};
    static struct course expected;
    if (check_wants(row_of(lesson)) && course_open(&expected, reference, lesson, rate, 1) &&
        course_run(&expected, reference, lesson_steps, lesson_steps))
        for (int p = 0; p < count; p++)
            if (low[p].device)
                check_course(&low[p], &expected, lesson, precisions[p], rate,
                             shaky ? 5 * most[p] : most[p]);
    course_close(&expected);
}

static void check_lessons(struct rig *rig, const struct lesson *list, size_t count)
{
    struct rig reference, low[PRECISIONS];
    bool opened = false;
    CHECK(rig_open(&reference, "ref"));
    for (int p = 0; p < PRECISIONS; p++)
        opened = open_in(&low[p], rig, precisions[p]) || opened;
    for (size_t i = 0; opened && i < count; i++) {
        const struct lesson *lesson = &list[i];
        const bool shaky = strstr(lesson->text, "batch_norm");
        const double rate = lesson->optimiser[0] == 'a' ? 1e-3 : shaky ? 0.01 : 0.05;
        check_lesson(low, PRECISIONS, &reference, lesson, rate, shaky);
        if (lesson_steps < STEPS && lesson->batch > 32 && lesson->batch <= 150)
            check_lesson(low, 1, &reference, lesson, 1e-3, false); /* at a small rate, too */
    }
    for (int p = 0; p < PRECISIONS; p++)
        if (low[p].device)
            rig_close(&low[p]);
    rig_close(&reference);
}

ON_BACKENDS(networks_learn_as_in_fp32)
{
    check_lessons(rig, lessons, sizeof lessons / sizeof *lessons);
}

/* For compute-sanitizer's racecheck, which is a thousand times slower (tools/sanitize-gpu). */
ON_BACKENDS(few_steps_are_as_in_fp32)
{
    lesson_steps = 2;
    check_lessons(rig, lessons, sizeof lessons / sizeof *lessons);
    lesson_steps = 1;
    check_lessons(rig, short_lessons, sizeof short_lessons / sizeof *short_lessons);
    lesson_steps = STEPS;
}

/* Layers that are read through in one kernel, and ones that are not. */
static const struct lesson questions[] = {
    {"input 264\ndense 520\nrelu\ndense 136\nsigmoid\ndense 1032\nrelu\ndense 24\n", 264, 24, 64,
     ""},
    {"input 72\ndense 264\ntanh\ndense 264\nrelu\ndense 8\n", 72, 8, 37, ""},
    {"input 64\ndense 132\nrelu\ndense 130\nrelu\ndense 65\n", 64, 65, 13, ""},
    /* few samples and outputs: one kernel */
    {"input 9\ndense 264\nsigmoid\ndense 1032\nrelu\ndense 520\nsigmoid\ndense 3\n", 9, 3, 5, ""},
    {"input 130\ndense 1032\nrelu\ndense 67\ntanh\ndense 30\n", 130, 30, 16, ""},
    {"input 264\ndense 1500\nrelu\ndense 2600\nrelu\ndense 1600\nsigmoid\ndense 10\n", 264, 10, 10,
     ""},
    {"input 4x8x8\nconv 32 3x3 pad=1\nrelu\nmax_pool 2\nbatch_norm\nconv 32 3x3 pad=1\n"
     "average_pool 2\nflatten\ndense 24\n",
     256, 24, 16, ""},
    /* two convolutions in a row, so few pixels that cuDNN's kernels can be watched, too */
    {"input 4x3x3\nconv 32 1x1\nrelu\nconv 32 1x1\nflatten\ndense 8\n", 36, 8, 4, ""},
};

/* The answers to ROWS questions. */
static bool ask(struct rig *rig, const struct lesson *lesson, float *answers)
{
    static float x[ROWS * WIDEST];
    struct compiled model;
    struct program *fused = NULL;
    struct ready ready;
    bool ok = compiled_open(&model, lesson->text,
                            (struct compile_options){.batch = lesson->batch, .use = USE_INFERENCE});
    fill_random(x, ROWS * lesson->in, 5);
    if (ok && CHECK_OK(fuse(model.program, rig->backend, rig->device, &fused))) {
        ok = ready_open(&ready, rig, &model.params, fused) &&
             ready_bind(&ready, fused, (const char *[]){"x", "y"}, (void *[]){x, answers},
                        (int64_t[]){ROWS, ROWS}, 2, NULL, 0, 0) &&
             ready_run(&ready, PARTS_ALL, 0, 3);
        ready_close(&ready);
    }
    program_free(fused);
    compiled_close(&model);
    return ok;
}

/* The answers to a question differ from the reference's by no more than a share of them. */
static void check_answers(struct rig *low, struct rig *reference, const struct lesson *lesson,
                          const char *precision, double most)
{
    static float found[ROWS * WIDEST], expected[ROWS * WIDEST];
    const int64_t count = ROWS * lesson->out;
    double squares = 0, all = 0;
    memset(found, 0xff, sizeof found);
    if (!check_wants(row_of(lesson)) || !ask(low, lesson, found) ||
        !ask(reference, lesson, expected))
        return;
    for (int64_t k = 0; k < count; k++) {
        squares += pow((double)found[k] - (double)expected[k], 2);
        all += pow((double)expected[k], 2);
    }
    if (!CHECK(sqrt(squares / all) <= most))
        printf("    %s in %s: off by %g\n", lesson->text, precision, sqrt(squares / all));
}

ON_BACKENDS(stacks_answer_as_in_fp32)
{
    static const double most[PRECISIONS] = {2e-3, 2e-2, 2e-3};
    struct rig reference, low;
    CHECK(rig_open(&reference, "ref"));
    for (int p = 0; p < PRECISIONS; p++) {
        if (!open_in(&low, rig, precisions[p]))
            continue;
        for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
            check_answers(&low, &reference, &questions[i], precisions[p], most[p]);
        rig_close(&low);
    }
    rig_close(&reference);
}

/* Four significant bits a factor: each product is off by some 4 %. */
ON_BACKENDS(stacks_answer_in_fp8)
{
    static const struct lesson wide[] = {
        {"input 264\ndense 520\nrelu\ndense 136\nsigmoid\ndense 1032\nrelu\ndense 24\n", 264, 24,
         64, ""},
        {"input 72\ndense 1000\nrelu\ndense 264\n", 72, 264, 37, ""},
    };
    struct rig reference, low;
    if (!open_in(&low, rig, "fp8"))
        return;
    CHECK(rig_open(&reference, "ref"));
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        check_answers(&low, &reference, &wide[i], "fp8", 0.12);
    rig_close(&reference);
    rig_close(&low);
}

/* Gradients beyond the range of fp16: updates are left out until the scale fits. */
ON_BACKENDS(the_scale_of_the_loss_finds_its_place)
{
    static struct course course;
    struct rig low;
    if (is_cpu(rig))
        SKIP("a CPU has no fp16");
    if (!open_in(&low, rig, "fp16"))
        return;
    if (course_open(&course, &low, &lessons[0], 1e-9, 1e5f) && course_run(&course, &low, 1, 1))
        CHECK(!memcmp(course.before.blocks[ROLE_PARAM].data,
                      course.model.params.blocks[ROLE_PARAM].data,
                      (size_t)course.before.blocks[ROLE_PARAM].bytes));
    if (course_run(&course, &low, STEPS, STEPS)) {
        double moved = params_difference(&course.model.params, &course.before, ROLE_PARAM);
        CHECK(moved > 0 && moved < HUGE_VAL); /* nothing is NaN; biases began at 0 */
    }
    course_close(&course);
    rig_close(&low);
}

/* … and where none fits, that is told. */
ON_BACKENDS(updates_that_are_left_out_for_good_are_counted)
{
    static struct course course;
    struct rig low;
    if (is_cpu(rig))
        SKIP("a CPU has no fp16");
    if (!open_in(&low, rig, "fp16"))
        return;
    if (course_open(&course, &low, &lessons[0], 1e-9, 1) && course_run(&course, &low, STEPS, STEPS))
        CHECK_EQUAL_INT((int64_t)course.model.params.control.left_out, 0);
    course_close(&course);
    if (course_open(&course, &low, &lessons[0], 1e-9, 1e30f) &&
        course_run(&course, &low, STEPS, STEPS)) {
        const uint64_t left_out = course.model.params.control.left_out;
        CHECK(left_out > 0 && left_out < STEPS); /* the scale fell first */
        CHECK(!memcmp(course.before.blocks[ROLE_PARAM].data,
                      course.model.params.blocks[ROLE_PARAM].data,
                      (size_t)course.before.blocks[ROLE_PARAM].bytes));
    }
    course_close(&course);
    rig_close(&low);
}

/* What is no number stays so in its own sample: through a relu that a product ends with, and
 * through convolutions, whose factors are rounded. It is the one that a GPU's arithmetic makes. */
ON_BACKENDS(what_is_no_number_stays_so)
{
    static const struct op_case cases[] = {
        {OP_dense, "n=137 i=264 o=128", "activation=relu", ""},
        {OP_conv, "n=3 c=12 h=7 w=7 o=32 i=12 kh=1 kw=1 p=7 q=7",
         "stride_h=1 stride_w=1 dilation_h=1 dilation_w=1", ""},
        {OP_conv, "n=3 c=3 h=7 w=7 o=32 i=3 kh=1 kw=1 p=7 q=7",
         "stride_h=1 stride_w=1 dilation_h=1 dilation_w=1", ""},
    };
    static const uint32_t not_a_number = 0x7fffffff;
    static const int of_first[] = {128, 32, 32}; /* results that the first number is a factor of */
    struct rig low;
    for (int p = 0; p < PRECISIONS; p++) {
        if (!open_in(&low, rig, precisions[p]))
            continue;
        for (int c = 0; c < (int)(sizeof cases / sizeof *cases); c++) {
            struct params params;
            struct program *program = NULL;
            int64_t none = 0;
            params_init(&params, DTYPE_F32);
            if (CHECK_OK(case_program(&cases[c], 7, &params, &program))) {
                memcpy(params_data(&params, params_find(&params, "x")), &not_a_number, 4);
                const enum status status = run_case(&low, program, &params);
                const int y = params_find(&params, "y");
                const float *values = params_data(&params, y);
                for (int64_t i = 0; i < shape_count(&params.entries[y].shape); i++)
                    none += isnan(values[i]);
                if (status != STATUS_UNSUPPORTED &&
                    !(CHECK_OK(status) && CHECK_EQUAL_INT(none, of_first[c])))
                    printf("    %s %s in %s\n", op_name(cases[c].kind), cases[c].sizes,
                           precisions[p]);
            }
            program_free(program);
            params_free(&params);
        }
        rig_close(&low);
    }
}

ON_BACKENDS(what_has_no_large_product_is_refused)
{
    static const struct lesson tiny = {"input 4\ndense 3\nloss mse\n", 4, 3, 8, "sgd"};
    static struct course course;
    struct rig low;
    struct instance *instance = NULL;
    struct plan *plan = NULL;
    if (is_cpu(rig))
        SKIP("a CPU rounds the factors of small products, too");
    if (!open_in(&low, rig, "bf16"))
        return;
    if (course_open(&course, &low, &tiny, 0.1, 1) &&
        CHECK_OK(low.backend->attach(low.device, &course.model.params, &instance))) {
        CHECK_STATUS(STATUS_UNSUPPORTED, low.backend->prepare(instance, course.fused,
                                                              &(struct plan_options){0}, &plan));
        CHECK_MESSAGE("would be computed in 16 bits");
        low.backend->detach(instance);
    }
    course_close(&course);
    rig_close(&low);
}

CHECK_MAIN
