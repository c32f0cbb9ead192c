/* lap.c: the two programs of a lap, their data, and running them in turn. */
#include "train/lap.h"

#include "base/memory.h"
#include "core/pass/fuse.h"

static enum status fuse_step(struct recipe_step *step, const struct engine *engine)
{
    for (int32_t turn = 0; turn < step->count; turn++) {
        struct program *fused;
        TRY(fuse(step->programs[turn], engine->backend, engine->device, &fused));
        program_free(step->programs[turn]);
        step->programs[turn] = fused;
    }
    return STATUS_OK;
}

enum status lap_compile(struct lap *lap, const struct engine *engine, const struct network *network,
                        struct params *params, const struct compile_options *options, int64_t rows)
{
    struct compile_options each = *options;
    int64_t batch = options->batch < rows ? options->batch : rows;
    int64_t whole = rows / batch, rest = rows % batch;
    const int64_t batches[LAP_LEGS] = {batch, rest};
    lap->rows = rows;
    lap->steps = whole + (rest > 0);
    lap->legs[0].to = lap->legs[1].from = whole;
    lap->legs[1].to = lap->steps;
    for (int i = 0; i < LAP_LEGS; i++) {
        lap->legs[i].batch = batches[i];
        each.batch = (int32_t)batches[i];
        if (!batches[i])
            continue;
        struct recipe_step *step = &lap->legs[i].step;
        TRY(recipe_compile(network, params, &each, step));
        TRY(fuse_step(step, engine));
        TRY(engine_check_memory(engine->backend, step->programs, step->count, params, 0));
    }
    NEED(lap->loss = mem_array((size_t)lap->steps, 2 * sizeof *lap->loss));
    lap->right = lap->loss + lap->steps;
    return STATUS_OK;
}

enum status lap_prepare(struct lap *lap, const struct engine *engine)
{
    const struct plan_options options = {.slots = 1, .answering = lap->answering};
    lap->engine = engine;
    for (int i = 0; i < LAP_LEGS; i++) {
        struct leg *leg = &lap->legs[i];
        for (int32_t turn = 0; turn < leg->step.count; turn++)
            TRY(engine->backend->prepare(engine->instance, leg->step.programs[turn], &options,
                                         &leg->plans[turn]));
    }
    return STATUS_OK;
}

void lap_close(struct lap *lap)
{
    for (int i = 0; i < LAP_LEGS; i++) {
        for (int32_t turn = 0; turn < RECIPE_TURNS; turn++)
            if (lap->legs[i].plans[turn])
                lap->engine->backend->release(lap->legs[i].plans[turn]);
        recipe_free(&lap->legs[i].step);
    }
    mem_free(lap->loss);
    *lap = (struct lap){0};
}

/* Adds a view when the program has the tensor and there is something to bind. */
static void add_view(struct view *views, int32_t *count, const struct program *program,
                     enum role role, const char *name, void *data, int64_t rows)
{
    int32_t tensor = program_find(program, role, name);
    if (tensor >= 0 && data)
        views[(*count)++] = (struct view){tensor, data, rows};
}

enum status lap_begin(struct lap *lap, const struct lap_data *data, const uint32_t *order,
                      int64_t step)
{
    lap->step = lap->fetched = step;
    lap->data = *data;
    lap->order = order;
    return STATUS_OK;
}

/* The rows of `steps` steps from one on: the first and how many. */
static int64_t rows_from(const struct lap *lap, int64_t step, int64_t steps, int64_t *count)
{
    int64_t first = step * lap->legs[0].batch, left = lap->rows - first;
    int64_t wanted = steps * lap->legs[0].batch;
    *count = wanted < left ? wanted : left;
    return first;
}

/* Binds one plan of a leg to its steps among those that are fetched. */
static enum status bind_turn(const struct lap *lap, const struct leg *leg, int32_t turn)
{
    const struct lap_data *data = &lap->data;
    const struct dataset *dataset = data->dataset;
    const struct program *program = leg->step.programs[turn];
    struct view views[6];
    int32_t count = 0;
    int64_t first = lap->step > leg->from ? lap->step : leg->from;
    int64_t left = (lap->fetched < leg->to ? lap->fetched : leg->to) - first;
    if (left <= 0)
        return STATUS_OK;
    add_view(views, &count, program, ROLE_INPUT, "x", dataset->features, dataset->rows);
    add_view(views, &count, program, ROLE_INPUT, "label", dataset->labels, dataset->rows);
    add_view(views, &count, program, ROLE_INPUT, "target", data->targets, dataset->rows);
    add_view(views, &count, program, ROLE_OUTPUT, "y", data->outputs, dataset->rows);
    add_view(views, &count, program, ROLE_OUTPUT, "loss", lap->loss + first, left);
    add_view(views, &count, program, ROLE_OUTPUT, "right", lap->right + first, left);
    int64_t fetched, from = rows_from(lap, lap->step, lap->fetched - lap->step, &fetched);
    int64_t start = rows_from(lap, first, left, &left); /* steps before it are whole batches */
    struct binding binding = {
        .views = views, .view_count = count, .start = (uint64_t)start, .version = data->version};
    if (lap->answering != ANSWER_STEPS)
        binding.ingestion = INGEST_PINNED; /* calls come from the host */
    if (dataset->stream) {                 /* rows that are not fetched are not to be copied */
        binding.ingestion = INGEST_OVERLAPPED;
        binding.version = 0;
    }
    if (lap->order) { /* only what is fetched: backends copy it */
        binding.order = lap->order + from;
        binding.order_count = fetched;
        binding.start = (uint64_t)(start - from);
    }
    return lap->engine->backend->bind(leg->plans[turn], &binding);
}

/* Gets the rows of the next steps, as many as may be there at a time, and says which come after. */
static enum status fetch(struct lap *lap)
{
    struct dataset *dataset = lap->data.dataset;
    int64_t window = dataset_window(dataset) / lap->legs[0].batch, count;
    int64_t steps = window < 1 ? 1 : window;
    int64_t first = rows_from(lap, lap->step, steps, &count);
    TRY(dataset_fetch(dataset, lap->order, first, count));
    lap->fetches = dataset->fetches;
    lap->fetched = lap->steps - lap->step < steps ? lap->steps : lap->step + steps;
    if (lap->fetched < lap->steps) {
        first = rows_from(lap, lap->fetched, steps, &count);
        TRY(dataset_expect(dataset, lap->order, first, count));
    }
    for (int i = 0; i < LAP_LEGS; i++)
        for (int32_t turn = 0; turn < lap->legs[i].step.count; turn++)
            TRY(bind_turn(lap, &lap->legs[i], turn));
    return STATUS_OK;
}

/* Right answers of a sample that has several count as a share of one. */
static void add_scores(const struct lap *lap, const struct leg *leg, int64_t first, int64_t count,
                       struct score *score)
{
    const struct program *program = leg->step.programs[0];
    int32_t label = program_find(program, ROLE_INPUT, "label");
    int64_t labels = label < 0 ? leg->batch : shape_count(&program->tensors[label].shape);
    double each = (double)leg->batch / (double)labels;
    score->has_right = program_find(program, ROLE_OUTPUT, "right") >= 0;
    for (int64_t step = first; step < first + count; step++) {
        score->loss_sum += (double)lap->loss[step] * (double)leg->batch;
        score->right_sum += (double)lap->right[step] * each;
        score->samples += leg->batch;
    }
}

/* So many steps: all of one program at once, or of several in turn. */
static enum status run_leg(const struct backend *backend, const struct leg *leg, int64_t steps)
{
    int32_t turns = leg->step.count;
    if (turns == 1)
        TRY(backend->run(leg->plans[0], PARTS_ALL, 0, steps));
    for (int64_t step = 0; turns > 1 && step < steps; step++)
        for (int32_t turn = 0; turn < turns; turn++)
            TRY(backend->run(leg->plans[turn], PARTS_ALL, 0, 1));
    for (int32_t turn = 0; turn < turns; turn++)
        TRY(backend->sync(leg->plans[turn]));
    return STATUS_OK;
}

enum status lap_run(struct lap *lap, int64_t steps, struct score *score)
{
    const struct backend *backend = lap->engine->backend;
    int64_t end = lap->steps - lap->step < steps ? lap->steps : lap->step + steps;
    while (lap->step < end) {
        const struct leg *leg = &lap->legs[lap->step >= lap->legs[1].from];
        if (lap->step >= lap->fetched || lap->fetches != lap->data.dataset->fetches)
            TRY(fetch(lap));
        int64_t to = leg->to < end ? leg->to : end;
        int64_t count = (lap->fetched < to ? lap->fetched : to) - lap->step;
        TRY(run_leg(backend, leg, count));
        if (score)
            add_scores(lap, leg, lap->step, count, score);
        lap->step += count;
    }
    return STATUS_OK;
}
