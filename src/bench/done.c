/* done.c: see done.h. */
#include "bench/done.h"

#include "base/memory.h"
#include "bench/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct done_row {
    struct point point;
    char program[DONE_PROGRAM];
    char commit[FACTS_TEXT];
};

enum status done_add(struct done *done, const struct record *record)
{
    if (record->kind != RECORD_RESULT || record->status == RECORD_FAILED)
        return STATUS_OK;
    if (done->count == done->room) {
        size_t room = done->room ? 2 * done->room : 64;
        struct done_row *grown = mem_grow(done->rows, room, sizeof *grown);
        NEED(grown);
        done->rows = grown;
        done->room = room;
    }
    struct done_row *row = &done->rows[done->count++];
    row->point = record->point;
    snprintf(row->program, sizeof row->program, "%s", record->program ? record->program : "");
    snprintf(row->commit, sizeof row->commit, "%s", json_text(record->software, "commit", ""));
    return STATUS_OK;
}

static bool same_point(const struct point *found, const struct point *asked)
{
    for (int i = 0; i < AXIS_COUNT; i++) {
        char here[POINT_NUMBER], there[POINT_NUMBER];
        const char *value = point_get(asked, &axes[i], here);
        if (!(axes[i].where & AXIS_FOUND) && value[0] &&
            strcmp(value, point_get(found, &axes[i], there)) != 0)
            return false;
    }
    return true;
}

bool done_has(const struct done *done, const struct facts *facts, const struct point *point,
              const char *program)
{
    for (size_t i = 0; i < done->count; i++) {
        const struct done_row *row = &done->rows[i];
        if (strcmp(row->program, program) == 0 && strcmp(row->commit, facts->commit) == 0 &&
            strcmp(row->point.server, facts->server) == 0 && same_point(&row->point, point))
            return true;
    }
    return false;
}

void done_free(struct done *done)
{
    mem_free(done->rows);
    *done = (struct done){0};
}

enum status done_program(const struct point *point, char program[DONE_PROGRAM])
{
    struct compile_options options = {.batch = (int32_t)point->batch,
                                      .use = strcmp(point->phase, "training") == 0 ? USE_TRAINING
                                                                                   : USE_INFERENCE};
    struct network *network = NULL;
    struct recipe_step step = {0};
    struct params params;

    program[0] = '\0';
    params_init(&params, DTYPE_F32);
    enum status status = network_open(point->model, &network);
    if (status == STATUS_OK) {
        options.optimiser = task_optimiser(network, point->optimiser);
        status = recipe_compile_stages(network, &params, &options, &step);
    }
    if (status == STATUS_OK)
        snprintf(program, DONE_PROGRAM, "%016" PRIx64, recipe_hash(&step));
    recipe_free(&step);
    params_free(&params);
    network_free(network);
    return status == STATUS_MEMORY ? status : STATUS_OK;
}
