/* unit_advice.c: see unit_advice.h. */
#include "cli/unit_advice.h"

#include "bench/sweep/done.h"
#include "cli/store_file.h"
#include "finding/finding.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The program's hash says which network, batch and optimiser it is, whatever a file is called. */
static enum status find_program(const char *network, int64_t batch, const char *optimiser,
                                char program[DONE_PROGRAM])
{
    struct point point;
    char number[POINT_NUMBER];
    snprintf(number, sizeof number, "%" PRId64, batch);
    point_start(&point);
    TRY(point_set(&point, &axes[AXIS_model], network));
    point_choose(&point, CHOICE_phase_training);
    TRY(point_set(&point, &axes[AXIS_batch], number));
    if (optimiser)
        TRY(point_set(&point, &axes[AXIS_optimiser], optimiser));
    return done_program(&point, program);
}

/* The best samples a second of each whole unit, all else alike. */
static enum status compare_units(struct store *store, const char *program, double *ratio)
{
    char server[POINT_TEXT] = "";
    struct store_chart chart;
    double cpu = 0, gpu = 0;
    gethostname(server, sizeof server - 1);
    const struct store_filter filters[] = {{"program", program},   {"server", server},
                                           {"source", "own"},      {"precision", "fp32"},
                                           {"framework", "prony"}, {"check", "right"}};
    const struct store_query query = {.x = "unit",
                                      .y = "throughput",
                                      .aggregate = STORE_BEST,
                                      .fair = true,
                                      .where = {filters, sizeof filters / sizeof *filters}};
    TRY(store_chart(store, &query, &chart));
    enum status status = STATUS_OK;
    for (size_t i = 0; i < chart.count && status == STATUS_OK; i++) {
        const char *unit = store_mark_x(&chart.marks[i], &query);
        bool whole;
        status = finding_whole_unit(store, unit, &chart.marks[i], &whole);
        if (status == STATUS_OK && whole)
            *(strcmp(unit, "gpu") == 0 ? &gpu : &cpu) = chart.marks[i].y;
    }
    *ratio = cpu > 0 ? gpu / cpu : 0;
    store_chart_free(&chart);
    return status;
}

/* Without asking its driver. */
static bool has_plugin(const struct registry *registry)
{
    for (int i = 0; i < registry->count; i++)
        if (registry->list[i].backend && strcmp(registry->list[i].backend->unit, "gpu") == 0)
            return true;
    return false;
}

double unit_advice(const struct cli *cli, const char *network, int64_t batch, const char *optimiser)
{
    char program[DONE_PROGRAM];
    const struct backend *gpu;
    struct store *store;
    double ratio = 0;
    if (!has_plugin(cli->registry) || store_file_open(NULL, STORE_READ, &store) != STATUS_OK)
        return 0;
    enum status status = find_program(network, batch, optimiser, program);
    if (status == STATUS_OK && *program)
        status = compare_units(store, program, &ratio);
    store_close(store);
    /* asked last: the driver takes its time */
    return status == STATUS_OK && ratio > 0 &&
                   registry_first(cli->registry, "gpu", &gpu) == STATUS_OK
               ? ratio
               : 0;
}
