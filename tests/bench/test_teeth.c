/* test_teeth.c: the bench's check finds planted faults, in every network of the zoo and both
 * phases, and is never alarmed by rounding. Some networks here; PRONY_TEETH=all takes all of them,
 * several entries each, and 200 random networks (tests/long/teeth.sh). */
#include "check.h"

#include "backend/cpu/cpu_backends.h"
#include "base/rng.h"
#include "planted.h"

#include <math.h>
#include <unistd.h>

static const struct network_options fast = {.backend = &backend_simd,
                                            .device = {.threads = 2, .isa = ISA_AVX512},
                                            .fusion = false};
static const struct network_options fused = {.backend = &backend_simd,
                                             .device = {.threads = 1, .isa = ISA_AVX512},
                                             .fusion = true};
static const struct network_options on_blas = {.backend = &backend_blas, .device = {.threads = 1}};
static const struct network_options on_ref = {.backend = &backend_ref, .device = {.threads = 1}};

static bool takes_all(void)
{
    const char *how = getenv("PRONY_TEETH");
    return how && strcmp(how, "all") == 0;
}

/* As reference_choose, without a bench: everything is looked at. */
static bool refer(struct task *task)
{
    const double flop =
        (double)(task->work.forward.flop + task->work.backward.flop) * task->check_steps;
    const bool exact = flop <= 5e8;
    struct reference reference = {.options = exact ? on_ref : fast,
                                  .real = exact ? DTYPE_F64 : DTYPE_F32,
                                  .batch = task->batch};
    reference.options.device.isa = ISA_AVX2;
    return CHECK_OK(reference_compute(&reference, task));
}

static bool open_task(const char *model, enum phase phase, int32_t batch, uint64_t seed,
                      const char *precision, struct task **out)
{
    const struct task_options options = {
        .model = model, .phase = phase, .batch = batch, .seed = seed, .precision = precision};
    return CHECK_OK(task_open(&options, out)) && refer(*out);
}

static bool ends_with(const char *name, const char *end)
{
    return strlen(name) > strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

/* Does any op read the entry? */
static bool is_read(const struct task *task, int32_t entry)
{
    for (int32_t p = 0; p < task->step.count; p++) {
        const struct program *program = task->step.programs[p];
        for (int32_t i = 0; i < program->op_count; i++)
            for (int32_t in = 0; in < program->ops[i].inputs; in++) {
                const int32_t tensor = op_input(program, &program->ops[i], in);
                if (tensor >= 0 && program->tensors[tensor].entry == entry)
                    return true;
            }
    }
    return false;
}

/* May this fault be planted there? A bias before a batch norm has no effect on a training. */
static bool fault_fits(const struct task *task, enum fault fault, int32_t entry)
{
    const struct entry *at = &task->params.entries[entry];
    if (at->role != ROLE_PARAM || at->fixed || !is_read(task, entry))
        return false;
    const bool bias = ends_with(at->name, ".bias") || ends_with(at->name, ".shift") ||
                      ends_with(at->name, "bias_x");
    if (fault == FAULT_SKIPPED)
        return bias;
    if (fault == FAULT_SWAPPED)
        return at->shape.rank >= 2 && at->shape.dim[0] > 1 &&
               shape_count(&at->shape) > at->shape.dim[0];
    return !bias;
}

/* How far the reference moved the entry, over what rounding moves it by; outputs know of none. */
static bool moves(const struct task *task, int32_t entry)
{
    double way = 0, noise = 0;
    for (int64_t i = 0; task->places && i < task->value_count; i++)
        for (int32_t d = 0; d < task->draw_count && task->places[i].entry == entry; d++) {
            way += fabs(task->reference.values[i] - task_initial(task, i));
            noise += fabs(task->draws[d].values[i] - task->reference.values[i]);
        }
    return !task->places || way > 5 * noise;
}

/* Did the reference move the last number of the entry, and rounding did not? */
static bool tail_moves(const struct task *task, int32_t entry)
{
    double squares = 0, way = 0;
    int64_t count = 0, at = 0;
    for (int64_t i = 0; i < task->value_count; i++)
        if (task->places[i].entry == entry) {
            way = task->reference.values[i] - task_initial(task, i);
            squares += way * way;
            count++;
            at = i;
        }
    const double size = sqrt(squares / (double)(count + !count));
    for (int32_t d = 0; d < task->draw_count; d++)
        if (fabs(task->draws[d].values[at] - task->reference.values[at]) > 0.05 * size)
            return false;
    return fabs(way) > 0.1 * size;
}

static bool fault_shows(const struct task *task, enum fault fault, int32_t entry)
{
    return fault_fits(task, fault, entry) && moves(task, entry) &&
           (fault != FAULT_TAIL || tail_moves(task, entry));
}

struct tally {
    const char *precision; /* NULL: fp32 */
    int planted, found;
};

static void try_fault(struct task *task, const char *model, enum fault fault, int32_t entry,
                      double times, struct tally *tally)
{
    struct network_options by = fast;
    struct outcome found;
    double error = 0;
    by.device.precision = tally->precision;
    if (!CHECK_OK(planted_answer(task, &by, fault, entry, times, &found)))
        return;
    const enum status status = outcome_check(task, &found, &error);
    tally->planted++;
    tally->found += status == STATUS_WRONG;
    if (!CHECK(status == (fault == FAULT_NONE ? STATUS_OK : STATUS_WRONG)))
        printf("    %s, %s, batch %d: %s in %s: %s (%.2g, at most %.2g)\n", model,
               task->phase == PHASE_TRAINING ? "training" : "inference", task->batch,
               fault_names[fault], task->params.entries[entry].name,
               status == STATUS_OK ? "not found" : status_message(), error, task->tolerance);
}

/* The fault in so many of the entries that it fits, the first and the last among them. */
static void try_entries(struct task *task, const char *model, enum fault fault, double times,
                        struct tally *tally)
{
    const int wanted = takes_all() ? 3 : 2;
    int fit = 0, seen = 0, taken = 0;
    for (int32_t e = 0; e < task->params.count; e++)
        fit += fault_shows(task, fault, e);
    for (int32_t e = 0; e < task->params.count; e++) {
        if (!fault_shows(task, fault, e))
            continue;
        if (seen++ * (wanted - 1) >= taken * (fit - 1) && taken < wanted) {
            try_fault(task, model, fault, e, times, tally);
            taken++;
        }
    }
}

static void try_network(const char *model, enum phase phase, int32_t batch, struct tally *tally)
{
    const char *precision = tally->precision;
    struct task *task = NULL;
    const double times = precision ? 1.1 : 1.01;
    struct tally none = {.precision = precision};
    if (!open_task(model, phase, batch, 0, precision, &task)) {
        task_close(task);
        return;
    }
    try_fault(task, model, FAULT_NONE, 0, 1, &none);
    if (phase == PHASE_TRAINING) {
        try_fault(task, model, FAULT_NO_UPDATE, 0, 1, tally);
        try_fault(task, model, FAULT_LONG_ALL, 0, times, tally);
        if (!precision)
            try_entries(task, model, FAULT_LONG, times, tally);
        try_entries(task, model, FAULT_NOT_UPDATED, 1, tally);
        if (!precision)
            try_entries(task, model, FAULT_TAIL, 1, tally);
        try_entries(task, model, FAULT_INFINITE, 1, tally);
    } else {
        try_entries(task, model, FAULT_OLD, 1, tally);
    }
    try_entries(task, model, FAULT_SKIPPED, 1, tally);
    try_entries(task, model, FAULT_SWAPPED, 1, tally);
    task_close(task);
}

static const char *const some[] = {"small", "lenet", "ad_autoencoder", "digits_gru", NULL};
/* Layers over time are refused in bf16. */
static const char *const in_16_bits[] = {"small", "mlp:64-64-32-10:relu", "deep_mnist", NULL};
static const char *const all[] = {
    "small",      "lenet",       "ad_autoencoder", "digits_gru", "acoustic", "adding",
    "alexnet",    "alexnet_owt", "autoencoder",    "cvae",       "dbn",      "dcn",
    "deconv",     "deep_mnist",  "digits_dbn",     "digits_dcn", "fcn",      "fcn_r",
    "fcn_s",      "gan",         "googlenet",      "grey512",    "gru",      "inception3",
    "jet_tagger", "large",       "lstm",           "ptb_lstm",   "rbm",      "resnet101",
    "resnet152",  "resnet18",    "resnet34",       "resnet50",   "rnn",      "sensor_net",
    "vae",        "vgg11",       "vgg13",          "vgg16",      "vgg19",    "wide",
    NULL};

static void try_zoo(enum phase phase, const char *precision)
{
    const char *only = getenv("PRONY_TEETH_ONLY");
    struct tally tally = {.precision = precision};
    for (const char *const *name = precision     ? in_16_bits
                                   : takes_all() ? all
                                                 : some;
         *name; name++) {
        if (only && strcmp(only, *name) != 0)
            continue;
        const struct tally before = tally;
        try_network(*name, phase, 4, &tally);
        if (takes_all())
            printf("    %s: %d of %d found\n", *name, tally.found - before.found,
                   tally.planted - before.planted);
        fflush(stdout);
    }
    printf("    %d faults planted, %d found\n", tally.planted, tally.found);
}

TEST(faults_are_found_in_training)
{
    if (backend_simd.probe() != STATUS_OK)
        SKIP("%s", status_message());
    try_zoo(PHASE_TRAINING, NULL);
}

TEST(faults_are_found_in_inference)
{
    if (backend_simd.probe() != STATUS_OK)
        SKIP("%s", status_message());
    try_zoo(PHASE_INFERENCE, NULL);
}

/* Roundings to 8 significant bits hide what is off by a hundredth, not what is off by a tenth.
 * Outputs are less telling: a weight of `small` that is one update old moves them by less than
 * rounding. */
TEST(faults_are_found_in_16_bits)
{
    if (backend_simd.probe() != STATUS_OK)
        SKIP("%s", status_message());
    try_zoo(PHASE_TRAINING, "bf16");
}

/* A weight that is read as it was before its update: the step after it is off by what the update is
 * worth. In `small` that is less than what is allowed, and after full steps, too. */
TEST(stale_weights_are_found)
{
    if (backend_simd.probe() != STATUS_OK)
        SKIP("%s", status_message());
    static const char *const shows[] = {"lenet", "digits_gru"};
    for (size_t i = 0; i < sizeof shows / sizeof *shows; i++) {
        struct task *task = NULL;
        struct tally tally = {0};
        if (open_task(shows[i], PHASE_TRAINING, 4, 0, NULL, &task))
            try_entries(task, shows[i], FAULT_STALE, 1, &tally);
        CHECK_EQUAL_INT(tally.found, takes_all() ? 3 : 2);
        task_close(task);
    }
}

/* A random network: its kind, depth, widths, activations and optimiser follow from the number. */
static void write_body(FILE *file, struct rng_key key, uint32_t kind, uint32_t depth)
{
    static const char *const activations[] = {"relu", "tanh",       "sigmoid",
                                              "gelu", "leaky_relu", "elu"};
    static const char *const cells[] = {"lstm", "gru", "rnn"};
    for (uint32_t i = 0; i < depth; i++) {
        const uint32_t units = 2 + rng_below(key, i, 1, 30);
        if (kind == 2)
            fprintf(file, "%s %u\n", cells[rng_below(key, i, 2, 3)], units);
        else if (kind == 1)
            fprintf(file, "conv %u 3x3 pad=1\n", units);
        else
            fprintf(file, "dense %u\n", units);
        if (kind != 2 && rng_below(key, i, 3, 2))
            fprintf(file, "batch_norm\n");
        else if (kind == 0 && rng_below(key, i, 4, 3) == 0)
            fprintf(file, "layer_norm\n");
        if (kind != 2)
            fprintf(file, "%s\n", activations[rng_below(key, i, 5, 6)]);
        if (kind == 1 && i == 0)
            fprintf(file, rng_below(key, i, 6, 2) ? "max_pool 2\n" : "average_pool 2\n");
        if (rng_below(key, i, 7, 6) == 0)
            fprintf(file, "dropout 0.3\n");
        if (kind == 1 && rng_below(key, i, 8, 3) == 0)
            fprintf(file,
                    "kept%u = relu\nconv %u 3x3 pad=1 < kept%u\nlong%u = batch_norm\n"
                    "add < long%u, kept%u\n",
                    i, units, i, i, i, i);
    }
}

static bool write_random(const char *path, uint32_t number)
{
    static const char *const inputs[] = {"input 12", "input 3x8x8", "input 5x7"};
    static const char *const optimisers[] = {"sgd",     "momentum", "nesterov", "adam",
                                             "rmsprop", "adagrad",  "adamw"};
    const struct rng_key key = {.seed = 77, .stream = number};
    const uint32_t kind = rng_below(key, 0, 0, 3);
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL))
        return false;
    fprintf(file, "%s\n", inputs[kind]);
    write_body(file, key, kind, 1 + rng_below(key, 0, 9, kind == 2 ? 2 : 6));
    const bool classes = rng_below(key, 0, 10, 2);
    fprintf(file, "flatten\ndense %u\nloss %s\noptimiser %s\n", 2 + rng_below(key, 0, 11, 9),
            classes ? "cross_entropy" : "mse", optimisers[rng_below(key, 0, 12, 7)]);
    return CHECK_EQUAL_INT(fclose(file), 0);
}

/* Everyone who is right is found right. */
static int alarms(const char *path, uint32_t number, uint64_t seed, int *judged)
{
    const struct network_options everyone[] = {on_ref, fast, fused, on_blas};
    struct task *task = NULL;
    int out = 0;
    if (!open_task(path, PHASE_TRAINING, 1 + (int32_t)(number % 9), seed, NULL, &task))
        return 1;
    for (size_t i = 0; i < sizeof everyone / sizeof *everyone; i++) {
        struct outcome found;
        double error;
        if (everyone[i].backend->probe() != STATUS_OK)
            continue;
        if (!CHECK_OK(outcome_make(task, &task->arena, &found)) ||
            !CHECK_OK(job_network_answer(task, &everyone[i], &found)))
            continue;
        const enum status status = outcome_check(task, &found, &error);
        ++*judged;
        out += status != STATUS_OK;
        if (!CHECK(status == STATUS_OK))
            printf("    network %u, seed %d, %s%s: %s\n", number, (int)seed,
                   everyone[i].backend->name, everyone[i].fusion ? ", fused" : "",
                   status_message());
    }
    task_close(task);
    return out;
}

TEST(rounding_is_no_alarm)
{
    const uint32_t networks = takes_all() ? 200 : 8;
    const uint64_t seeds = takes_all() ? 3 : 1;
    int judged = 0, wrong = 0;
    char path[] = "/tmp/prony-random-XXXXXX.net";
    const int file = mkstemps(path, 4);
    if (!CHECK(file >= 0))
        return;
    close(file);
    for (uint32_t number = 0; number < networks; number++)
        for (uint64_t seed = 1; seed <= seeds && write_random(path, number); seed++)
            wrong += alarms(path, number, seed, &judged);
    unlink(path);
    printf("    %u networks, %d judged, %d alarms\n", networks, judged, wrong);
}

CHECK_MAIN
