/* parallel.h: a network trained for some steps by one worker or by several that are threads of this
 * process, for tests that compare the two. */
#ifndef PRONY_TESTS_PARALLEL_H
#define PRONY_TESTS_PARALLEL_H

#include "base/memory.h"
#include "base/rng.h"
#include "core/comm.h"
#include "core/pass/split_data.h"
#include "rig.h"
#include "train/engine.h"
#include "train/recipe.h"

#include <math.h>

enum { LESSON_ROWS = 41, LESSON_WORKERS = 8 };

/* What is learnt. */
struct lesson {
    const char *network, *optimiser; /* its name or text; "": its own */
    int32_t batch, steps, classes;
};

/* One worker's work: what it is given and how it ends. */
struct pupil {
    const struct lesson *lesson;
    const char *backend;
    enum dtype real;
    struct comm *comm; /* NULL: alone */
    bool queued;       /* it communicates beside the computation */
    bool split;        /* its programs are a rank's, also where it is the only one */
    bool recompute;    /* its programs drop activations and compute them again */
    uint64_t bytes;    /* of activations of its programs */
    struct params params;
    enum status status;
    char message[500];
};

static inline enum status lesson_open(const struct lesson *lesson, struct network **out)
{
    const char *text = lesson->network;
    return strchr(text, '\n') ? network_parse("lesson", text, strlen(text), out)
                              : network_open(text, out);
}

/* Numbers between 0 and 1, the same in both types. */
static inline void lesson_reals(void *data, enum dtype dtype, int64_t count, uint32_t stream)
{
    const struct rng_key key = {.seed = 7, .stream = stream};
    for (int64_t i = 0; i < count; i++) {
        const float number = rng_uniform(key, 0, (uint32_t)i);
        if (dtype == DTYPE_F64)
            ((double *)data)[i] = (double)number;
        else
            ((float *)data)[i] = number;
    }
}

/* The rows of an input of the program: numbers, or classes or tokens from 0 on. */
static inline void *lesson_data(const struct program *program, int32_t tensor, int32_t classes,
                                struct arena *arena)
{
    const struct tensor *of = &program->tensors[tensor];
    const int64_t each = shape_count(&of->shape) / program->batch, count = LESSON_ROWS * each;
    void *data = arena_array(arena, (size_t)count, dtype_bytes(of->dtype));
    if (data && of->dtype == DTYPE_I32)
        for (int64_t i = 0; i < count; i++)
            ((int32_t *)data)[i] = (int32_t)((i * 7 + i / 5) % (classes ? classes : 8));
    else if (data)
        lesson_reals(data, of->dtype, count, (uint32_t)(of->name[0]));
    return data;
}

/* The rows of all steps, as this worker takes them. */
static inline uint32_t *lesson_order(const struct lesson *lesson, int rank, int ranks,
                                     int64_t *count, struct arena *arena)
{
    int64_t from, to;
    data_share_range(lesson->batch, rank, ranks, &from, &to);
    uint32_t *order = arena_array(arena, (size_t)(lesson->steps * (to - from)), sizeof *order);
    *count = 0;
    for (int64_t step = 0; order && step < lesson->steps; step++)
        for (int64_t k = from; k < to; k++)
            order[(*count)++] = (uint32_t)((step * lesson->batch + k) * 17 % LESSON_ROWS);
    return order;
}

static inline enum status pupil_bind(const struct pupil *pupil, const struct backend *backend,
                                     const struct program *program, struct plan *plan,
                                     const uint32_t *order, int64_t count, struct arena *arena)
{
    static const char *const names[] = {"x", "label", "target"};
    struct view views[3];
    struct binding binding = {.views = views, .order = order, .order_count = count};
    for (int i = 0; i < 3; i++) {
        int32_t tensor = program_find(program, ROLE_INPUT, names[i]);
        if (tensor < 0)
            continue;
        void *data = lesson_data(program, tensor, pupil->lesson->classes, arena);
        NEED(data);
        views[binding.view_count++] = (struct view){tensor, data, LESSON_ROWS};
    }
    return backend->bind(plan, &binding);
}

/* The programs of this worker, as a training makes them. */
static inline enum status pupil_compile(struct pupil *pupil, const struct network *network,
                                        const struct backend *backend, struct device *device,
                                        struct recipe_step *step)
{
    const struct lesson *lesson = pupil->lesson;
    const int rank = pupil->comm ? pupil->comm->rank : 0;
    const int ranks = pupil->comm ? pupil->comm->size : 1;
    int64_t from, to;
    data_share_range(lesson->batch, rank, ranks, &from, &to);
    const struct compile_options options = {.batch = (int32_t)(to - from),
                                            .use = USE_TRAINING,
                                            .classes = lesson->classes,
                                            .optimiser = lesson->optimiser};
    const struct engine engine = {
        .backend = backend, .device = device, .recompute = pupil->recompute};
    const struct data_share share = {.samples = (int32_t)(to - from),
                                     .of = lesson->batch,
                                     .bucket_bytes = 3000,
                                     .whole_norm = true};
    TRY(recipe_compile(network, &pupil->params, &options, step));
    for (int32_t p = 0; p < step->count; p++) {
        struct program *made;
        if (ranks > 1 || pupil->split) {
            TRY(split_data(step->programs[p], &share, &made));
            program_free(step->programs[p]);
            step->programs[p] = made;
        }
        TRY(engine_fuse(&engine, step->programs[p], &made));
        program_free(step->programs[p]);
        step->programs[p] = made;
        pupil->bytes += made->role_bytes[ROLE_ACTIVATION];
    }
    return network_rate(network, lesson->optimiser, &pupil->params.control.rate);
}

/* All start from the same numbers, those of fp32. */
static inline enum status pupil_fill(struct pupil *pupil)
{
    struct params *params = &pupil->params, narrow;
    const double rate = params->control.rate;
    TRY(params_fill(params, 3));
    params->control.rate = rate;
    if (params->real == DTYPE_F32)
        return STATUS_OK;
    params_init(&narrow, DTYPE_F32);
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        int32_t same;
        TRY(params_declare(&narrow, entry->name, entry->role,
                           entry->dtype == DTYPE_F64 ? DTYPE_F32 : entry->dtype, entry->shape,
                           entry->init, &same));
    }
    TRY(params_fill(&narrow, 3));
    for (int32_t e = 0; e < params->count; e++)
        for (int64_t i = 0;
             params->entries[e].dtype == DTYPE_F64 && i < shape_count(&params->entries[e].shape);
             i++)
            ((double *)params_data(params, e))[i] = (double)((float *)params_data(&narrow, e))[i];
    params_free(&narrow);
    return STATUS_OK;
}

static inline enum status pupil_run(struct pupil *pupil, const struct backend *backend,
                                    struct instance *instance, const struct recipe_step *step,
                                    struct plan **plans, struct comm_queue *queue,
                                    struct arena *arena)
{
    const struct plan_options options = {.comm = pupil->comm, .queue = queue};
    int64_t count;
    const uint32_t *order = lesson_order(pupil->lesson, pupil->comm ? pupil->comm->rank : 0,
                                         pupil->comm ? pupil->comm->size : 1, &count, arena);
    NEED(order);
    for (int32_t p = 0; p < step->count; p++) {
        TRY(backend->prepare(instance, step->programs[p], &options, &plans[p]));
        TRY(pupil_bind(pupil, backend, step->programs[p], plans[p], order, count, arena));
    }
    for (int32_t i = 0; i < pupil->lesson->steps; i++)
        for (int32_t p = 0; p < step->count; p++)
            TRY(backend->run(plans[p], PARTS_ALL, 0, 1));
    return backend->download(instance, &pupil->params);
}

/* Learns; pupil->params are what came of it, pupil->status how it went. */
static inline void pupil_learn(struct pupil *pupil)
{
    const struct device_options options = {.threads = 1, .isa = ISA_AVX512};
    struct network *network = NULL;
    const struct backend *backend = NULL;
    struct device *device = NULL;
    struct instance *instance = NULL;
    struct recipe_step step = {0};
    struct plan *plans[RECIPE_TURNS] = {0};
    struct comm_queue *queue = NULL;
    struct arena arena = {0};
    enum status status;
    params_init(&pupil->params, pupil->real);
    TRY_OR(done, registry_find(rig_registry(), pupil->backend, &backend));
    TRY_OR(done, backend->probe());
    TRY_OR(done, backend->open(&options, &device));
    TRY_OR(done, lesson_open(pupil->lesson, &network));
    TRY_OR(done, pupil_compile(pupil, network, backend, device, &step));
    TRY_OR(done, pupil_fill(pupil));
    TRY_OR(done, backend->attach(device, &pupil->params, &instance));
    if (pupil->queued)
        TRY_OR(done, comm_queue_open(pupil->comm, &queue));
    status = pupil_run(pupil, backend, instance, &step, plans, queue, &arena);
done:
    pupil->status = status;
    if (status != STATUS_OK)
        snprintf(pupil->message, sizeof pupil->message, "%s", status_message());
    for (int32_t p = 0; p < step.count; p++)
        if (plans[p])
            backend->release(plans[p]);
    comm_queue_close(queue);
    if (instance)
        backend->detach(instance);
    recipe_free(&step);
    if (device)
        backend->close(device);
    network_free(network);
    arena_free(&arena);
}

/* All real numbers that it ends with, in a row; how many. `out` may be NULL. */
static inline size_t pupil_numbers(const struct pupil *pupil, double *out)
{
    size_t count = 0;
    for (int32_t e = 0; e < pupil->params.count; e++) {
        const struct entry *entry = &pupil->params.entries[e];
        const void *data = params_data(&pupil->params, e);
        for (int64_t i = 0; entry->dtype != DTYPE_I32 && i < shape_count(&entry->shape); i++) {
            if (out)
                out[count] = entry->dtype == DTYPE_F64 ? ((const double *)data)[i]
                                                       : (double)((const float *)data)[i];
            count++;
        }
    }
    return count;
}

static inline bool pupils_are_same(const struct pupil *a, const struct pupil *b)
{
    for (int32_t e = 0; e < a->params.count; e++)
        if (memcmp(params_data(&a->params, e), params_data(&b->params, e),
                   (size_t)a->params.entries[e].bytes) != 0)
            return false;
    return true;
}

static inline double largest_number(const double *a, size_t count)
{
    double size = 1e-300;
    for (size_t i = 0; i < count; i++)
        size = fmax(size, fabs(a[i]));
    return size;
}

/* Beside the largest number of b; infinite where one is none. */
static inline double largest_difference(const double *a, const double *b, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = isnan(a[i] - b[i]) ? HUGE_VAL : fmax(most, fabs(a[i] - b[i]));
    return most / largest_number(b, count);
}

/* … and the root of the mean square. */
static inline double mean_difference(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum / (double)count) / largest_number(b, count);
}

#endif
