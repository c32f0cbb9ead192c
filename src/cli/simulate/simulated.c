/* simulated.c: see simulated.h. */
#include "cli/simulate/simulated.h"

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/simulate/platform_here.h"
#include "cli/table/show_figure.h"
#include "cli/table/wrap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a step: what is lost against `workers` times one worker, and to what. */
struct loss {
    double efficiency;
    const char *binds;
};

#define MATTERS 0.05 /* of a step */

enum status simulated_platform(struct simulated *simulated, const char *name)
{
    return strcmp(name, "here") == 0 ? platform_here(&simulated->platform)
                                     : platform_open(name, &simulated->platform);
}

static bool is_pipeline(const struct simulated *simulated, int32_t workers)
{
    return workers > 1 && simulated->sharing.parallelism == PARALLEL_PIPELINE;
}

/* The largest of what a step loses: samples that come late, messages, a pipeline that fills, what
 * does not get less with more workers. */
static const char *what_binds(const struct simulated *simulated, int32_t workers,
                              const struct simulate_result *result)
{
    const double step = result->step_s;
    const double serial = result->compute_s - result->one_s / workers;
    const double bubble =
        is_pipeline(simulated, workers) ? step * (workers - 1) / (result->micros + workers - 1) : 0;
    const double link = fmax(result->exposed_s - bubble, 0);
    const struct {
        const char *name;
        double seconds;
    } rows[] = {{"link", link},
                {"bubble", fmin(bubble, result->exposed_s)},
                {"input", result->input_s},
                {"serial part", serial}};
    const char *binds = "computing";
    double most = MATTERS * step;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].seconds > most) {
            most = rows[i].seconds;
            binds = rows[i].name;
        }
    return binds;
}

void simulated_begin(struct simulated *simulated)
{
    struct show_table *table = &simulated->table;
    *table = (struct show_table){.width = wrap_screen()};
    simulated->points = 0;
    simulated->curve++;
    simulated->first_rate = 0;
    text_clear(&simulated->first_problem);
    text_printf(&table->title, "%s, training, simulated: %s, %s parallelism, %s scaling, batch %d",
                simulated->model, simulated->platform.title, sharing_name(&simulated->sharing),
                simulated->weak ? "weak" : "strong", simulated->batch);
    show_table_column(table, "workers", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(table, "batch each", SHOW_RIGHT, 30, 0);
    show_table_column(table, "time per step", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(table, "samples/s", SHOW_RIGHT, 80, 0);
    show_table_column(table, "speed-up", SHOW_RIGHT, 70, 0);
    show_table_column(table, "efficiency", SHOW_RIGHT, 75, 0);
    show_table_column(table, "waiting", SHOW_RIGHT, 60, 0);
    show_table_column(table, "limited by", SHOW_LEFT, 65, 0);
}

static void add_row(struct simulated *simulated, int32_t workers, int32_t batch,
                    const struct simulate_result *result)
{
    enum { CELLS = 8 };
    struct text cells[CELLS] = {{0}};
    const double rate = batch / result->step_s, speedup = rate / simulated->first_rate;
    text_add_grouped(&cells[0], (uint64_t)workers);
    text_printf(&cells[1], "%.4g", (double)batch / workers);
    show_time(&cells[2], result->step_s * 1e9);
    show_rate(&cells[3], rate);
    text_printf(&cells[4], speedup < 99.5 ? "%.3g ×" : "%.0f ×", speedup);
    show_share(&cells[5], 100 * speedup / workers);
    show_share(&cells[6], 100 * result->exposed_s / result->step_s);
    text_add(&cells[7], what_binds(simulated, workers, result));
    show_table_texts(&simulated->table, cells, CELLS);
}

static void add_reason(struct simulated *simulated, int32_t workers)
{
    char text[POINT_NUMBER], marked[POINT_NUMBER + 8];
    snprintf(text, sizeof text, "%d", workers);
    snprintf(marked, sizeof marked, "–%s", show_table_mark(&simulated->table, status_message()));
    show_table_row(&simulated->table, (const char *const[]){text, "", marked, "", "", "", "", ""});
    if (!simulated->first_problem.length)
        text_add(&simulated->first_problem, status_message());
}

static void remember(struct simulated *simulated, const struct verdict_point *point)
{
    if (simulated->known_count < SIMULATED_POINTS)
        simulated->known[simulated->known_count++] = *point;
}

/* A curve begins with one worker, whether that was asked for or not. */
static void remember_step(struct simulated *simulated, int32_t workers, int32_t batch,
                          const struct simulate_result *result)
{
    struct verdict_point point = {.way = sharing_name(&simulated->sharing),
                                  .curve = simulated->curve,
                                  .workers = 1,
                                  .rate = simulated->first_rate,
                                  .binds = "computing"};
    if (simulated->points == 1 && workers > 1)
        remember(simulated, &point);
    point.workers = workers;
    point.rate = batch / result->step_s;
    point.binds = what_binds(simulated, workers, result);
    remember(simulated, &point);
}

/* ---- records ---- */

static void set_point(const struct simulated *simulated, int32_t workers, int32_t batch,
                      struct point *point)
{
    const bool several = workers > 1;
    *point = simulated->source.record.point;
    snprintf(point->model, sizeof point->model, "%s", simulated->model);
    snprintf(point->phase, sizeof point->phase, "%s", choice_name(CHOICE_phase_training));
    point->batch = batch / workers;
    point->workers = workers;
    point->nodes = *simulated->platform.file ? 0 : platform_servers(&simulated->platform, workers);
    snprintf(point->parallelism, sizeof point->parallelism, "%s",
             several ? sharing_name(&simulated->sharing) : "");
    snprintf(point->scaling, sizeof point->scaling, "%s",
             !several          ? ""
             : simulated->weak ? choice_name(CHOICE_scaling_weak)
                               : choice_name(CHOICE_scaling_strong));
    snprintf(point->interconnect, sizeof point->interconnect, "%s",
             several ? simulated->platform.name : "");
    point_choose(point, CHOICE_origin_simulated);
    if (simulated->optimiser)
        snprintf(point->optimiser, sizeof point->optimiser, "%s", simulated->optimiser);
}

static enum status write_record(struct simulated *simulated, int32_t workers, int32_t batch,
                                const struct simulate_result *result)
{
    const struct step_source *source = &simulated->source;
    const double speedup = batch / result->step_s / simulated->first_rate;
    const struct record_meter meters[] = {{"communicate_exposed", result->exposed_s * 1e9, NULL},
                                          {"communicate_hidden", result->hidden_s * 1e9, NULL},
                                          {"worker_compute", result->compute_s * 1e9, NULL},
                                          {"sent_bytes", result->sent_bytes, NULL},
                                          {"input_wait", result->input_s * 1e9, NULL},
                                          {"worker_speedup", speedup, NULL},
                                          {"worker_efficiency", 100 * speedup / workers, NULL}};
    const double sample = result->step_s * 1e9;
    struct arena arena = {0};
    struct record record;
    struct text line = {0}, about = {0};
    char at[CLOCK_STAMP];
    record_start(&record);
    set_point(simulated, workers, batch, &record.point);
    clock_stamp(at);
    record.at = at;
    record.machine = source->record.machine;
    record.software = source->record.software;
    record.parameters = source->record.parameters;
    record.layers = source->record.layers;
    record.parts_ns.communicate = result->exposed_s * 1e9;
    record.check.reason = "it was simulated";
    step_source_tell(source, &about);
    record.reason = text_of(&about);
    record.meters = meters;
    record.meter_count = sizeof meters / sizeof *meters;
    enum status status = record_measure(&record, &arena, &sample, 1, 1);
    record_write(&record, &line);
    if (status == STATUS_OK)
        status = text_done(&line);
    const struct sink sink = bench_output_sink(simulated->output);
    if (status == STATUS_OK)
        status = sink.write(sink.context, text_of(&line), &record);
    text_free(&line);
    text_free(&about);
    arena_free(&arena);
    return status;
}

/* ---- points ---- */

/* One worker on its own batch: what speed-ups are against. */
static double rate_of_one(const struct simulated *simulated)
{
    const double seconds = step_seconds(&simulated->source, simulated->batch);
    return seconds > 0 ? simulated->batch / seconds : 0;
}

enum status simulated_point(struct simulated *simulated, int32_t workers)
{
    const int64_t batch = simulated->weak ? (int64_t)simulated->batch * workers : simulated->batch;
    const struct simulate_request request = {
        .platform = &simulated->platform,
        .network = simulated->network,
        .folder = simulated->folder,
        .optimiser = simulated->optimiser,
        .parallelism = simulated->sharing.parallelism,
        .schedule = simulated->sharing.schedule,
        .workers = workers,
        .batch = (int32_t)batch,
        .micros = workers > 1 ? simulated->sharing.micros : 0,
        .on_gpus = strcmp(simulated->source.wish.unit, "gpu") == 0,
        .bucket_bytes = simulated->bucket_bytes,
        .seconds = step_seconds,
        .context = &simulated->source,
        .shares = {simulated->source.shares[0], simulated->source.shares[1],
                   simulated->source.shares[2], simulated->source.shares[3]}};
    struct simulate_result result = {0};
    enum status status = batch > INT32_MAX
                             ? status_fail(STATUS_INPUT, __FILE__, __LINE__,
                                           "found a batch of %lld samples, expected fewer than "
                                           "2,147,483,648",
                                           (long long)batch)
                             : simulate(&request, &result);
    if (status != STATUS_OK && cli_interrupted()) /* SimGrid ends at Ctrl-C, without a word */
        FAIL(STATUS_INTERRUPTED, "stopped");
    if (status == STATUS_INPUT && !*simulated->platform.file) {
        add_reason(simulated, workers);
        return STATUS_OK;
    }
    TRY(status);
    simulated->points++;
    simulated->first_rate = rate_of_one(simulated);
    add_row(simulated, workers, (int32_t)batch, &result);
    remember_step(simulated, workers, (int32_t)batch, &result);
    return write_record(simulated, workers, (int32_t)batch, &result);
}

enum status simulated_end(struct simulated *simulated)
{
    struct text out = {0}, about = {0};
    enum status status = STATUS_OK;
    if (simulated->points == 0)
        status =
            status_fail(STATUS_INPUT, __FILE__, __LINE__, "%s", text_of(&simulated->first_problem));
    step_source_tell(&simulated->source, &about);
    show_table_foot(&simulated->table, text_of(&about));
    show_table_foot(&simulated->table, "waiting: the share of a step in which a worker "
                                       "waits for others; nothing here was measured with several "
                                       "workers");
    show_table_print(&simulated->table, &out);
    text_add_char(&out, '\n');
    if (status == STATUS_OK)
        status = show_table_done(&simulated->table);
    if (status == STATUS_OK && simulated->tables)
        fputs(text_of(&out), stdout);
    show_table_free(&simulated->table);
    text_free(&simulated->first_problem);
    text_free(&out);
    text_free(&about);
    return status;
}

enum status simulated_tell(struct simulated *simulated)
{
    struct text out = {0};
    verdict_tell(simulated->known, simulated->known_count, &out);
    simulated->known_count = 0;
    if (out.length)
        text_add_char(&out, '\n');
    enum status status = text_done(&out);
    if (status == STATUS_OK && simulated->tables)
        fputs(text_of(&out), stdout);
    text_free(&out);
    return status;
}
