/* lap.c: the two programs of a lap, their data, and running them in turn. */
#include "train/lap.h"

#include "base/machine/room.h"
#include "base/memory.h"
#include "core/pass/split_data.h"
#include "train/workers/average.h"
#include "train/workers/lap_split.h"

#include <string.h>

static void replace(struct program **program, struct program *by)
{
    program_free(*program);
    *program = by;
}

static enum status fuse_step(struct recipe_step *step, const struct engine *engine)
{
    for (int32_t turn = 0; turn < step->count; turn++) {
        struct program *fused;
        TRY(engine_fuse(engine, step->programs[turn], &fused));
        replace(&step->programs[turn], fused);
    }
    return STATUS_OK;
}

/* The gradients of a step become those of all workers. */
static enum status split_step(struct recipe_step *step, const struct leg *leg, bool sync_norm)
{
    const struct data_share share = {
        .samples = (int32_t)leg->counted, .of = (int32_t)leg->all, .whole_norm = sync_norm};
    for (int32_t turn = 0; turn < step->count; turn++) {
        struct program *own;
        TRY(split_data(step->programs[turn], &share, &own));
        replace(&step->programs[turn], own);
    }
    return STATUS_OK;
}

/* Do workers, or groups of them, share out the samples of a step? */
static bool shares_samples(const struct lap *lap)
{
    return sharing_samples(&lap->sharing) > 1 || sharing_serves(&lap->sharing);
}

/* This worker's part of a step of `samples`. */
static void share_out(const struct lap *lap, int64_t samples, struct leg *leg)
{
    const int sharers = sharing_samples(&lap->sharing);
    const int own =
        sharing_serves(&lap->sharing) ? lap->sharing.comm->rank : sharing_copy(&lap->sharing);
    int64_t to;
    leg->all = samples;
    leg->micros = 1;
    data_share_range(samples, own, sharers, &leg->first, &to);
    leg->counted = own < sharers ? to - leg->first : 0;
    leg->batch = leg->counted;
    if (samples && !leg->counted) { /* it computes what the last one does, in vain; or serves */
        leg->batch = 1;
        leg->first = samples - 1;
    }
}

/* Bytes of a worker's part, of `whole` bytes: about, but for a server's workers, which have all
 * parameters and nothing that the optimiser keeps. */
static double part_bytes(const struct lap *lap, const struct params *params, double whole)
{
    const struct sharing *sharing = &lap->sharing;
    if (!sharing_serves(sharing))
        return whole / sharing_parts(sharing);
    if (sharing->comm->rank >= sharing_samples(sharing))
        return whole / sharing->servers;
    return (double)(params->blocks[ROLE_PARAM].bytes + params->blocks[ROLE_STATISTIC].bytes);
}

/* The whole is on the host once; of this worker's part there is one there, too, and one on a device
 * of the host. Checked before values are made. */
static enum status check_split_memory(const struct lap *lap, const struct program *program,
                                      const struct engine *engine, const struct params *params)
{
    const double whole = (double)engine_kept_bytes(params) / 2;
    const double parts = 2 * part_bytes(lap, params, whole);
    if (strcmp(engine->backend->unit, "cpu") != 0)
        return STATUS_OK;
    return room_check(whole + parts,
                      "%s at batch %d takes %.1f MB for its parameters and %.1f MB for this "
                      "worker's part of them, twice",
                      program->name, program->batch, whole / 1e6, parts / 1e6);
}

/* The programs of a leg for this worker's own samples. */
static enum status compile_leg(struct lap *lap, struct leg *leg, const struct engine *engine,
                               const struct network *network, struct params *params,
                               const struct compile_options *options)
{
    struct compile_options each = *options;
    struct recipe_step *step = &leg->step;
    if (!leg->all)
        return STATUS_OK;
    if (sharing_splits(&lap->sharing)) {
        TRY(lap_split_compile(lap, leg, network, params, options));
        return check_split_memory(lap, step->programs[0], engine, params);
    }
    each.batch = (int32_t)leg->batch;
    TRY(recipe_compile(network, params, &each, step));
    if (shares_samples(lap) && lap->sharing.average && rbm_chains(network, params) >= 0)
        FAIL(
            STATUS_INPUT,
            "%s: found chains of samples, which have no mean, expected a recipe without: leave out "
            "--average-every",
            network->name);
    if (shares_samples(lap) && !lap->sharing.average)
        TRY(split_step(step, leg, lap->sharing.sync_norm));
    TRY(fuse_step(step, engine));
    return lap->at_times
               ? STATUS_OK
               : engine_check_memory(engine->backend, step->programs, step->count, params, 0);
}

/* Room for what every run of a program leaves behind. */
static enum status make_rings(struct lap *lap)
{
    const size_t runs = (size_t)lap->steps * (size_t)lap->legs[0].micros;
    NEED(lap->loss = mem_array(runs, 2 * sizeof *lap->loss));
    lap->right = lap->loss + runs;
    NEED(lap->sums = mem_array((size_t)lap->steps, 2 * sizeof *lap->sums));
    if (shares_samples(lap))
        NEED(lap->own_order = mem_array((size_t)lap->own_rows, sizeof *lap->own_order));
    return STATUS_OK;
}

enum status lap_compile(struct lap *lap, const struct engine *engine, const struct network *network,
                        struct params *params, const struct compile_options *options, int64_t rows)
{
    int64_t batch = options->batch < rows ? options->batch : rows;
    int64_t whole = rows / batch, rest = rows % batch;
    const int64_t batches[LAP_LEGS] = {batch, rest};
    TRY(sharing_check(&lap->sharing, sharing_workers(&lap->sharing), network->name, batch));
    lap->rows = rows;
    lap->params = params;
    lap->steps = whole + (rest > 0);
    lap->legs[0].to = lap->legs[1].from = whole;
    lap->legs[1].to = lap->steps;
    for (int i = 0; i < LAP_LEGS; i++) {
        struct leg *leg = &lap->legs[i];
        share_out(lap, batches[i], leg);
        lap->own_rows += leg->batch * (leg->to - leg->from);
        TRY(compile_leg(lap, leg, engine, network, params, options));
    }
    return make_rings(lap);
}

bool lap_sums_beside(const struct lap *lap, const struct comm *comm)
{
    return lap->steps && lap_program(lap)->updates && !lap->sharing.average &&
           (!comm->near || strcmp(lap->engine->backend->unit, "cpu") != 0);
}

enum status lap_prepare(struct lap *lap, const struct engine *engine, const struct params *params)
{
    lap->engine = engine;
    if (sharing_splits(&lap->sharing))
        return lap_split_prepare(lap, params);
    if (shares_samples(lap) && lap_sums_beside(lap, lap->sharing.comm))
        TRY(comm_queue_open(lap->sharing.comm, &lap->queue));
    const struct plan_options options = {.slots = 1,
                                         .answering = lap->answering,
                                         .comm = lap->sharing.comm,
                                         .queue = lap->queue,
                                         .traffic = lap->sharing.traffic};
    for (int i = 0; i < LAP_LEGS; i++) {
        struct leg *leg = &lap->legs[i];
        for (int32_t turn = 0; turn < leg->step.count; turn++)
            TRY(engine->backend->prepare(engine->instance, leg->step.programs[turn], &options,
                                         &leg->plans[turn]));
    }
    return STATUS_OK;
}

void lap_release(struct lap *lap)
{
    if (sharing_splits(&lap->sharing))
        lap_split_close(lap);
    for (int i = 0; i < LAP_LEGS; i++)
        for (int32_t turn = 0; turn < RECIPE_TURNS; turn++) {
            if (lap->legs[i].plans[turn])
                lap->engine->backend->release(lap->legs[i].plans[turn]);
            lap->legs[i].plans[turn] = NULL;
        }
    comm_queue_close(lap->queue);
    lap->queue = NULL;
}

void lap_close(struct lap *lap)
{
    lap_release(lap);
    for (int i = 0; i < LAP_LEGS; i++)
        recipe_free(&lap->legs[i].step);
    mem_free(lap->loss);
    mem_free(lap->sums);
    mem_free(lap->own_order);
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

/* The rows of this worker: of each batch its part. */
static void take_own(struct lap *lap, const uint32_t *order)
{
    int64_t count = 0, place = 0;
    for (int i = 0; i < LAP_LEGS; i++)
        for (int64_t step = lap->legs[i].from; step < lap->legs[i].to; step++) {
            const struct leg *leg = &lap->legs[i];
            for (int64_t k = 0; k < leg->batch; k++) {
                int64_t sample = place + leg->first + k;
                lap->own_order[count++] = order ? order[sample] : (uint32_t)sample;
            }
            place += leg->all;
        }
}

enum status lap_begin(struct lap *lap, const struct lap_data *data, const uint32_t *order,
                      int64_t step)
{
    lap->step = lap->fetched = step;
    lap->data = *data;
    lap->order = order;
    if (lap->own_order) {
        take_own(lap, order);
        lap->order = lap->own_order;
    }
    return STATUS_OK;
}

/* The rows of `steps` steps from one on: the first and how many. */
static int64_t rows_from(const struct lap *lap, int64_t step, int64_t steps, int64_t *count)
{
    int64_t first = step * lap->legs[0].batch, left = lap->own_rows - first;
    int64_t wanted = steps * lap->legs[0].batch;
    *count = wanted < left ? wanted : left;
    return first;
}

/* The program that a plan was made of. */
static const struct program *program_of(const struct leg *leg, int32_t turn)
{
    return leg->split.rank.program ? leg->split.rank.program : leg->step.programs[turn];
}

/* Where a step's losses are in the ring, and how many it leaves behind. */
static int64_t first_run(const struct lap *lap, int64_t step)
{
    return step * lap->legs[0].micros;
}

/* Binds one plan of a leg to its steps among those that are fetched. */
static enum status bind_turn(const struct lap *lap, const struct leg *leg, int32_t turn)
{
    const struct lap_data *data = &lap->data;
    const struct dataset *dataset = data->dataset;
    const struct program *program = program_of(leg, turn);
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
    const int64_t run = first_run(lap, first), runs = left * leg->micros;
    add_view(views, &count, program, ROLE_OUTPUT, "loss", lap->loss + run, runs);
    add_view(views, &count, program, ROLE_OUTPUT, "right", lap->right + run, runs);
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

/* Of steps [from, to) of a leg, as they were run here: the sums over the samples of each, loss and
 * right answers. Right answers of a sample that has several count as a share of one. */
static void sum_steps(const struct lap *lap, const struct leg *leg, int64_t from, int64_t to)
{
    const struct program *program = leg->step.programs[0];
    int32_t label = program_find(program, ROLE_INPUT, "label");
    int64_t labels =
        label < 0 ? leg->batch / leg->micros : shape_count(&program->tensors[label].shape);
    const bool tells = !leg->split.rank.program || lap_split_tells(lap, leg);
    const int64_t batch = leg->batch / leg->micros, counted = leg->counted / leg->micros;
    const double each = leg->counted ? (double)batch / (double)labels : 0;
    for (int64_t step = from; step < to; step++) {
        double *sums = lap->sums + 2 * step;
        const int64_t run = first_run(lap, step);
        sums[0] = sums[1] = 0;
        for (int64_t r = run; tells && r < run + leg->micros; r++) {
            sums[0] += (double)lap->loss[r] * (double)counted;
            sums[1] += (double)lap->right[r] * each;
        }
    }
}

/* Adds what steps [from, to) gave on all workers. */
static enum status add_scores(struct lap *lap, int64_t from, int64_t to, struct score *score)
{
    TRY(lap_split_add_stale(lap));
    if (sharing_workers(&lap->sharing) > 1)
        TRY(comm_all_reduce(lap->sharing.comm, lap->sums + 2 * from, 2 * (size_t)(to - from),
                            DTYPE_F64));
    score->has_right = program_find(lap_program(lap), ROLE_OUTPUT, "right") >= 0;
    for (int64_t step = from; step < to; step++) {
        score->loss_sum += lap->sums[2 * step];
        score->right_sum += lap->sums[2 * step + 1];
        score->samples += lap->legs[step >= lap->legs[1].from].all;
    }
    return STATUS_OK;
}

/* So many steps: all of one program at once, or of several in turn. */
static enum status run_leg(struct lap *lap, const struct leg *leg, int64_t steps)
{
    const struct backend *backend = lap->engine->backend;
    int32_t turns = leg->step.count;
    if (leg->split.rank.program)
        return lap_split_run(lap, leg, steps);
    if (turns == 1)
        TRY(backend->run(leg->plans[0], PARTS_ALL, 0, steps));
    for (int64_t step = 0; turns > 1 && step < steps; step++)
        for (int32_t turn = 0; turn < turns; turn++)
            TRY(backend->run(leg->plans[turn], PARTS_ALL, 0, 1));
    for (int32_t turn = 0; turn < turns; turn++)
        TRY(backend->sync(leg->plans[turn]));
    return STATUS_OK;
}

/* Steps after which parameters are averaged, the last of the lap among them; 0: they are not. */
static int64_t averaged_every(const struct lap *lap)
{
    return shares_samples(lap) ? lap->sharing.average : 0;
}

/* The first step from this one on before which the workers have the same parameters. */
static int64_t next_mean(const struct lap *lap, int64_t step)
{
    const int64_t every = averaged_every(lap);
    const int64_t next = every ? (step + every - 1) / every * every : step;
    return next < lap->steps ? next : lap->steps;
}

/* Steps of a leg are done; where the mean is due, it is taken. */
static enum status average(struct lap *lap, const struct leg *leg, int64_t steps)
{
    if (!averaged_every(lap))
        return STATUS_OK;
    lap->apart += steps * leg->counted;
    lap->of += steps * leg->all;
    if (next_mean(lap, lap->step) != lap->step)
        return STATUS_OK;
    const double share = (double)lap->apart / (double)lap->of;
    lap->apart = lap->of = 0;
    return average_workers(lap->sharing.comm, lap->engine, lap->params, &leg->step, share);
}

enum status lap_run(struct lap *lap, int64_t steps, struct score *score)
{
    const int64_t first = lap->step;
    const int64_t end = next_mean(lap, lap->steps - first < steps ? lap->steps : first + steps);
    while (lap->step < end) {
        const struct leg *leg = &lap->legs[lap->step >= lap->legs[1].from];
        if (lap->step >= lap->fetched || lap->fetches != lap->data.dataset->fetches)
            TRY(fetch(lap));
        const int64_t mean = averaged_every(lap) ? next_mean(lap, lap->step + 1) : end;
        int64_t to = leg->to < end ? leg->to : end;
        to = mean < to ? mean : to;
        int64_t count = (lap->fetched < to ? lap->fetched : to) - lap->step;
        TRY(run_leg(lap, leg, count));
        sum_steps(lap, leg, lap->step, lap->step + count);
        lap->step += count;
        TRY(average(lap, leg, count));
    }
    return score && end > first ? add_scores(lap, first, end, score) : STATUS_OK;
}
