/* done.c: see done.h. */
#include "bench/sweep/done.h"

#include "base/memory.h"
#include "bench/sweep/entry.h"
#include "bench/sweep/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct done_row {
    struct point point;
    const char *key; /* all beside the point that must be the same */
    const char *at;  /* when */
    enum done_state state;
};

static enum status done_key(const struct record *record, struct text *out)
{
    const struct json *machine = record->machine;
    text_printf(out, "%s\n%s\n%s\n%s\n%s\n%s\n%" PRId64 "\n%s",
                record->program ? record->program : "", record->goal ? record->goal : "",
                record->against.other ? record->against.other : "",
                json_text(record->software, "commit", ""), json_text(machine, "server", ""),
                json_text(machine, "cpu", ""), json_int(machine, "cores", 0),
                json_text(json_get(machine, "gpu"), "name", ""));
    return text_done(out);
}

enum status done_add(struct done *done, const struct record *record)
{
    struct text key = {0};

    if (record->kind != RECORD_RESULT || record->status == RECORD_FAILED)
        return STATUS_OK;
    if (done->count == done->room) {
        size_t room = done->room ? 2 * done->room : 64;
        struct done_row *grown = mem_grow(done->rows, room, sizeof *grown);
        NEED(grown);
        done->rows = grown;
        done->room = room;
    }
    struct done_row *row = &done->rows[done->count];
    enum status status = done_key(record, &key);
    row->point = record->point;
    row->state = record->status == RECORD_SKIPPED ? DONE_SKIPPED : DONE_MEASURED;
    row->key = status == STATUS_OK ? arena_text(&done->arena, text_of(&key)) : NULL;
    row->at = arena_text(&done->arena, record->at ? record->at : "");
    text_free(&key);
    NEED(row->key);
    NEED(row->at);
    done->count++;
    return STATUS_OK;
}

/* Who asks for any disk has it in a record that names its kind. */
static bool same_data(const struct point *found, const struct point *asked)
{
    return point_is(asked, CHOICE_data_real_disk) && entry_on_disk(found);
}

static bool same_point(const struct point *found, const struct point *asked)
{
    for (int i = 0; i < AXIS_COUNT; i++) {
        char here[POINT_NUMBER], there[POINT_NUMBER];
        const char *value = point_get(asked, &axes[i], here);
        if (i == AXIS_data && same_data(found, asked))
            continue;
        if (!(axes[i].where & AXIS_FOUND) && value[0] &&
            strcmp(value, point_get(found, &axes[i], there)) != 0)
            return false;
    }
    return true;
}

enum status done_find(const struct done *done, const struct record *record, const char *since,
                      enum done_state *out)
{
    struct text key = {0};
    enum status status = done_key(record, &key);

    *out = DONE_NOT;
    for (size_t i = 0; i < done->count && status == STATUS_OK; i++) {
        const struct done_row *row = &done->rows[i];
        if (row->state > *out && strcmp(row->at, since) >= 0 &&
            strcmp(row->key, text_of(&key)) == 0 && same_point(&row->point, &record->point))
            *out = row->state;
    }
    text_free(&key);
    return status;
}

void done_free(struct done *done)
{
    mem_free(done->rows);
    arena_free(&done->arena);
    *done = (struct done){0};
}

enum status done_program(const struct point *point, char program[DONE_PROGRAM])
{
    struct workload workload;
    TRY(workload_open(point, &workload));
    snprintf(program, DONE_PROGRAM, "%s", workload.task->program);
    workload_close(&workload);
    return STATUS_OK;
}
