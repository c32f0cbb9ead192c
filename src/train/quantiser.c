/* quantiser.c: see quantiser.h. The programs that are watched keep every activation (an exposed
 * program): a step is run and all of them are fetched. */
#include "train/quantiser.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WATCH_BATCH = 32, ROWS_USUAL = 1024 };

/* A program that is run row by row of a list, and looked into. */
struct watched {
    const struct backend *backend;
    struct instance *instance;
    struct program *program; /* exposed */
    struct plan *plan;
};

static enum status watch_open(struct watched *watched, const struct engine *engine,
                              const struct params *params, const struct program *program)
{
    watched->backend = engine->backend;
    TRY(quantise_expose(program, &watched->program));
    TRY(engine->backend->attach(engine->device, params, &watched->instance));
    return engine->backend->prepare(watched->instance, watched->program,
                                    &(struct plan_options){.slots = 1}, &watched->plan);
}

static void watch_close(struct watched *watched)
{
    if (watched->plan)
        watched->backend->release(watched->plan);
    if (watched->instance)
        watched->backend->detach(watched->instance);
    program_free(watched->program);
}

/* One step over a batch's rows of the list. */
static enum status watch_step(struct watched *watched, struct dataset *dataset,
                              const uint32_t *list)
{
    const struct program *program = watched->program;
    TRY(dataset_fetch(dataset, list, 0, program->batch));
    struct view x = {program_find(program, ROLE_INPUT, "x"), dataset->features, dataset->rows};
    const struct binding binding = {
        .views = &x, .view_count = 1, .order = list, .order_count = program->batch};
    TRY(watched->backend->bind(watched->plan, &binding));
    TRY(watched->backend->run(watched->plan, PARTS_ALL, 0, 1));
    return watched->backend->sync(watched->plan);
}

/* Everything that is needed on the way. */
struct quantiser {
    struct model *model;
    struct dataset *dataset;
    const struct quantiser_options *options;
    struct arena arena;
    struct program *program; /* in fp32 */
    struct watched real;
    struct seen *seen; /* per tensor */
    float *values;     /* room for the largest tensor */
    float *others;
    uint32_t *rows;           /* looked at, then those that are compared */
    int64_t count, compared;  /* multiples of the batch */
    struct quantised *map;    /* per tensor */
    double *signal, *noise;   /* per tensor: sums of squares */
    int64_t *beyond, *looked; /* per tensor: numbers beyond the range, of how many */
    const double **means;     /* per tensor */
};

/* Reals that are no parameters, in the shape they were made in. */
static bool is_real(const struct program *program, int32_t tensor)
{
    const struct tensor *t = &program->tensors[tensor];
    return t->dtype == DTYPE_F32 && !role_is_kept(t->role) && t->view_of < 0;
}

/* Those that an exposed program has after a step. */
static bool is_watched(const struct watched *watched, int32_t tensor)
{
    return is_real(watched->program, tensor) && !watched->program->tensors[tensor].lost;
}

static enum status choose_rows(struct quantiser *quantiser)
{
    const struct dataset *dataset = quantiser->dataset;
    int64_t wanted = quantiser->options->rows ? quantiser->options->rows : ROWS_USUAL;
    int64_t all = dataset->rows - dataset->test_rows;
    if (all < 1)
        FAIL(STATUS_INPUT, "%s: found no rows, expected some to find ranges from", dataset->name);
    int64_t batch = all < WATCH_BATCH ? all : WATCH_BATCH;
    if (batch > wanted)
        batch = wanted;
    quantiser->count = (wanted < all ? wanted : all) / batch * batch;
    /* between those, where there are others */
    quantiser->compared = quantiser->count;
    NEED(quantiser->rows =
             arena_array(&quantiser->arena, 2 * (size_t)quantiser->count, sizeof *quantiser->rows));
    for (int64_t i = 0; i < quantiser->count; i++) {
        double step = (double)all / (double)quantiser->count;
        quantiser->rows[i] = (uint32_t)((double)i * step);
        quantiser->rows[quantiser->count + i] = (uint32_t)(((double)i + 0.5) * step);
    }
    struct compile_options options =
        model_compile_options(quantiser->model, USE_INFERENCE, (int32_t)batch);
    struct recipe_step step;
    TRY(recipe_compile(quantiser->model->network, &quantiser->model->params, &options, &step));
    quantiser->program = step.programs[0];
    return STATUS_OK;
}

static enum status make_room(struct quantiser *quantiser)
{
    const struct program *program = quantiser->program;
    size_t tensors = (size_t)program->tensor_count;
    struct arena *arena = &quantiser->arena;
    uint64_t most = 0;
    NEED(quantiser->seen = arena_array(arena, tensors, sizeof *quantiser->seen));
    NEED(quantiser->map = arena_array(arena, tensors, sizeof *quantiser->map));
    NEED(quantiser->signal = arena_array(arena, tensors, 2 * sizeof(double)));
    NEED(quantiser->beyond = arena_array(arena, tensors, 2 * sizeof(int64_t)));
    NEED(quantiser->means = arena_array(arena, tensors, sizeof *quantiser->means));
    quantiser->noise = quantiser->signal + tensors;
    quantiser->looked = quantiser->beyond + tensors;
    for (int32_t t = 0; t < program->tensor_count; t++) {
        struct seen *seen = &quantiser->seen[t];
        *seen = (struct seen){.low = HUGE_VALF, .high = -HUGE_VALF};
        if (!is_real(program, t))
            continue;
        most = program->tensors[t].bytes > most ? program->tensors[t].bytes : most;
        seen->channels = program->tensors[t].shape.rank > 1 ? program->tensors[t].shape.dim[1] : 0;
        NEED(seen->sums = arena_array(arena, (size_t)seen->channels + 1, sizeof *seen->sums));
        NEED(seen->peaks = arena_array(arena, (size_t)seen->channels + 1, sizeof *seen->peaks));
    }
    NEED(quantiser->values = arena_alloc(arena, (size_t)most));
    NEED(quantiser->others = arena_alloc(arena, (size_t)most));
    return STATUS_OK;
}

/* Numbers of a channel that follow each other. */
static int64_t inner_of(const struct tensor *tensor)
{
    int64_t inner = 1;
    for (int32_t i = 2; i < tensor->shape.rank; i++)
        inner *= tensor->shape.dim[i];
    return inner;
}

/* Which layer writes the tensor, for messages. */
static const char *writer_of(const struct program *program, int32_t tensor)
{
    for (int32_t o = 0; o < program->op_count; o++)
        for (int32_t i = 0; i < program->ops[o].outputs; i++) {
            int32_t written = op_output(program, &program->ops[o], i);
            if (written >= 0 && program_root(program, written) == tensor)
                return *program->ops[o].layer ? program->ops[o].layer : "the input";
        }
    return "the input";
}

/* A look at all tensors after a step: their ends, or what lies between them. */
static enum status look(struct quantiser *quantiser, bool ends)
{
    const struct program *program = quantiser->program;
    for (int32_t t = 0; t < program->tensor_count; t++) {
        const struct tensor *tensor = &program->tensors[t];
        struct seen *seen = &quantiser->seen[t];
        if (!is_watched(&quantiser->real, t))
            continue;
        TRY(quantiser->real.backend->fetch(quantiser->real.plan, t, quantiser->values));
        int64_t count = shape_count(&tensor->shape);
        if (ends)
            seen_add(seen, quantiser->values, count, inner_of(tensor));
        else
            seen_count(seen, quantiser->values, count);
        if (seen->strange)
            FAIL(STATUS_WRONG,
                 "%s gives %lld numbers that are infinite or none, expected numbers: a range "
                 "cannot be found; look at the weights and at the data",
                 writer_of(program, t), (long long)seen->strange);
    }
    return STATUS_OK;
}

static enum status observe(struct quantiser *quantiser)
{
    bool both = quantiser->options->ranging != RANGING_MINMAX;
    for (int pass = 0; pass <= both; pass++) {
        for (int32_t t = 0; pass && t < quantiser->program->tensor_count; t++)
            NEED(quantiser->seen[t].bins =
                     arena_array(&quantiser->arena, SEEN_BINS, sizeof(int64_t)));
        for (int64_t row = 0; row < quantiser->count; row += quantiser->program->batch) {
            TRY(watch_step(&quantiser->real, quantiser->dataset, quantiser->rows + row));
            TRY(look(quantiser, pass == 0));
        }
    }
    return STATUS_OK;
}

static enum status choose_ranges(struct quantiser *quantiser, struct arena *arena,
                                 struct quantisation *how)
{
    const struct program *program = quantiser->program;
    const struct quantiser_options *options = quantiser->options;
    *how = (struct quantisation){.plain = options->plain,
                                 .weight_bits = options->weight_bits ? options->weight_bits : 8,
                                 .count = program->tensor_count,
                                 .keep_count = options->keep_count};
    NEED(how->ranges = arena_array(arena, (size_t)how->count, sizeof *how->ranges));
    NEED(how->keep = arena_array(arena, (size_t)how->keep_count + 1, sizeof *how->keep));
    for (int32_t i = 0; i < how->keep_count; i++)
        NEED(how->keep[i] = arena_text(arena, options->keep[i]));
    for (int32_t t = 0; t < program->tensor_count; t++) {
        struct seen *seen = &quantiser->seen[t];
        bool input = program->tensors[t].role == ROLE_INPUT;
        how->ranges[t] =
            seen_range(seen, input ? RANGING_MINMAX : options->ranging, options->plain);
        quantiser->means[t] = seen->channels ? seen->sums : NULL;
        for (int64_t c = 0; seen->sums && c < seen->channels; c++)
            seen->sums[c] /= seen->count > 0 ? (double)seen->count : 1;
    }
    return STATUS_OK;
}

static bool has_layer(const struct program *program, const char *name)
{
    for (int32_t o = 0; o < program->op_count; o++)
        if (!strcmp(program->ops[o].layer, name))
            return true;
    return false;
}

static enum status check_keep(const struct quantiser *quantiser)
{
    for (int32_t i = 0; i < quantiser->options->keep_count; i++)
        if (!has_layer(quantiser->program, quantiser->options->keep[i]))
            FAIL(STATUS_INPUT, "found no layer '%s' to keep in fp32, expected one of %s",
                 quantiser->options->keep[i], quantiser->model->network->name);
    return STATUS_OK;
}

/* What both forms of a tensor hold after a step. */
static enum status compare_tensor(struct quantiser *quantiser, struct watched *small, int32_t t,
                                  const struct range *range)
{
    const struct quantised *form = &quantiser->map[t];
    int64_t count = shape_count(&quantiser->program->tensors[t].shape);
    TRY(quantiser->real.backend->fetch(quantiser->real.plan, t, quantiser->values));
    TRY(small->backend->fetch(small->plan, form->tensor, quantiser->others));
    const uint8_t *levels = (const uint8_t *)quantiser->others;
    for (int64_t i = 0; i < count; i++) {
        double is = (double)quantiser->values[i];
        double becomes = form->is_u8 ? (double)form->scale.scale * (levels[i] - form->scale.zero)
                                     : (double)quantiser->others[i];
        quantiser->signal[t] += is * is;
        quantiser->noise[t] += (is - becomes) * (is - becomes);
        quantiser->beyond[t] += quantiser->values[i] < fminf(range->low, 0) ||
                                quantiser->values[i] > fmaxf(range->high, 0);
    }
    quantiser->looked[t] += count;
    return STATUS_OK;
}

static enum status compare(struct quantiser *quantiser, struct watched *small,
                           const struct quantisation *how)
{
    const struct program *program = quantiser->program;
    const uint32_t *rows = quantiser->rows + quantiser->count;
    for (int64_t row = 0; row < quantiser->compared; row += program->batch) {
        TRY(watch_step(&quantiser->real, quantiser->dataset, rows + row));
        TRY(watch_step(small, quantiser->dataset, rows + row));
        for (int32_t t = 0; t < program->tensor_count; t++)
            if (is_watched(&quantiser->real, t) && quantiser->map[t].tensor >= 0)
                TRY(compare_tensor(quantiser, small, t, &how->ranges[t]));
    }
    return STATUS_OK;
}

/* The tensor that stands for a product's result: its own, or what is made of it in one op. */
static int32_t result_of(const struct quantiser *quantiser, const struct op *op)
{
    const struct program *program = quantiser->program;
    int32_t tensor = op_output(program, op, 0);
    for (int32_t o = 0; o < program->op_count && quantiser->map[tensor].tensor < 0; o++)
        if (program->ops[o].inputs && op_input(program, &program->ops[o], 0) == tensor)
            tensor = op_output(program, &program->ops[o], 0);
    return program_root(program, tensor);
}

static bool is_small(const struct program *small, const char *layer)
{
    for (int32_t o = 0; o < small->op_count; o++)
        if (!strcmp(small->ops[o].layer, layer) &&
            (small->ops[o].kind == OP_dense_int8 || small->ops[o].kind == OP_conv_int8))
            return true;
    return false;
}

static int noisiest_first(const void *a, const void *b)
{
    const struct quantised_layer *x = a, *y = b;
    if (x->stays != y->stays)
        return x->stays ? 1 : -1;
    return (x->noise_db > y->noise_db) - (x->noise_db < y->noise_db);
}

static enum status write_report(struct quantiser *quantiser, const struct program *small,
                                struct quantiser_report *report)
{
    const struct program *program = quantiser->program;
    *report = (struct quantiser_report){.rows = quantiser->count, .checked = quantiser->compared};
    NEED(report->layers =
             arena_array(&report->arena, (size_t)program->op_count, sizeof *report->layers));
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if (op->kind != OP_dense && op->kind != OP_conv)
            continue;
        struct quantised_layer *layer = &report->layers[report->layer_count++];
        int32_t y = result_of(quantiser, op), x = program_root(program, op_input(program, op, 0));
        NEED(layer->name = arena_text(&report->arena, op->layer));
        layer->stays = !is_small(small, op->layer);
        double noise = quantiser->noise[y], signal = quantiser->signal[y];
        layer->noise_db = noise > 0 ? 10 * log10(signal / noise) : (double)INFINITY;
        if (quantiser->looked[y])
            layer->outside = (double)quantiser->beyond[y] / (double)quantiser->looked[y];
        layer->outlier = seen_outlier(&quantiser->seen[x], &layer->outlier_at);
    }
    qsort(report->layers, (size_t)report->layer_count, sizeof *report->layers, noisiest_first);
    return STATUS_OK;
}

static enum status run(struct quantiser *quantiser, struct arena *arena, struct quantisation *how,
                       struct params *params, struct watched *small, struct program **made,
                       struct quantiser_report *report)
{
    struct model *model = quantiser->model;
    TRY(model_check_data(model, quantiser->dataset));
    TRY(choose_rows(quantiser));
    TRY(check_keep(quantiser));
    TRY(make_room(quantiser));
    TRY(scaling_apply(&model->scaling, quantiser->dataset));
    TRY(params_fill_new(&model->params));
    TRY(engine_download(&model->engine, &model->params));
    TRY(watch_open(&quantiser->real, &model->engine, &model->params, quantiser->program));
    TRY(observe(quantiser));
    TRY(choose_ranges(quantiser, arena, how));
    const struct quantise_source source = {
        &model->params, quantiser->options->uncorrected ? NULL : quantiser->means};
    TRY(quantise(quantiser->program, how, &source, params, quantiser->map, made));
    TRY(watch_open(small, &model->engine, params, *made));
    TRY(compare(quantiser, small, how));
    return write_report(quantiser, *made, report);
}

enum status model_quantise(struct model *model, struct dataset *dataset,
                           const struct quantiser_options *options, struct arena *arena,
                           struct quantisation *how, struct params *params,
                           struct quantiser_report *report)
{
    struct quantiser quantiser = {.model = model, .dataset = dataset, .options = options};
    struct watched small = {0};
    struct program *made = NULL;
    enum status status = run(&quantiser, arena, how, params, &small, &made, report);
    watch_close(&small);
    watch_close(&quantiser.real);
    program_free(made);
    program_free(quantiser.program);
    arena_free(&quantiser.arena);
    return status;
}

void quantiser_report_free(struct quantiser_report *report)
{
    arena_free(&report->arena);
    *report = (struct quantiser_report){0};
}
