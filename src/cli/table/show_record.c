/* show_record.c: see show_record.h. */
#include "cli/table/show_record.h"

#include "cli/table/show_figure.h"

#include <math.h>
#include <string.h>

const char *show_record_machine(const struct record *record, char title[TITLE_TEXT])
{
    if (*machine_title(record->machine, title))
        return title;
    return record->point.unit_name[0] ? record->point.unit_name : record->point.server;
}

static void add_word(struct text *out, const char *word)
{
    if (*word)
        text_printf(out, "%s%s", out->length ? ", " : "", word);
}

/* "batch 64", "2 threads", "precision bf16". */
static void add_axis(struct text *out, const struct point *point, int axis)
{
    char number[POINT_NUMBER];
    const char *value = point_get(point, &axes[axis], number);
    if (!*value)
        return;
    if (axis == AXIS_model || axis == AXIS_phase || axis == AXIS_framework || axis == AXIS_backend)
        add_word(out, value);
    else if (axis == AXIS_threads)
        text_printf(out, "%s%s thread%s", out->length ? ", " : "", value,
                    point->threads == 1 ? "" : "s");
    else
        text_printf(out, "%s%s %s", out->length ? ", " : "", axes[axis].key, value);
}

void show_record_values(const struct point *point, const bool varies[AXIS_COUNT], struct text *out)
{
    for (int i = 0; i < AXIS_COUNT; i++) {
        if (!varies[i])
            continue;
        if (axes[i].kind == AXIS_TEXT) {
            char number[POINT_NUMBER];
            add_word(out, point_get(point, &axes[i], number));
        } else {
            add_axis(out, point, i);
        }
    }
}

void show_record_title(const struct record *record, const bool told[AXIS_COUNT], struct text *out)
{
    static const enum axis_index known[] = {AXIS_model,     AXIS_phase,   AXIS_batch,
                                            AXIS_framework, AXIS_backend, AXIS_threads};
    bool done[AXIS_COUNT] = {false};
    char number[POINT_NUMBER], title[TITLE_TEXT];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (told[known[i]] && known[i] == AXIS_backend && told[AXIS_framework] &&
            record->point.backend[0])
            text_printf(out, "/%s", record->point.backend); /* prony/simd */
        else if (told[known[i]])
            add_axis(out, &record->point, (int)known[i]);
        done[known[i]] = true;
    }
    for (int i = 0; i < AXIS_COUNT; i++) {
        const char *usual = axes[i].otherwise;
        if (!done[i] && told[i] && usual[0] &&
            strcmp(point_get(&record->point, &axes[i], number), usual) != 0)
            add_axis(out, &record->point, i);
    }
    if (told[AXIS_server])
        add_word(out, show_record_machine(record, title));
}

/* Notes of one kind share a mark. `group` NULL: the table says it in its own way. */
static const struct {
    const char *begins, *group;
} kinds[] = {{"(", NULL},
             {"it had a CPU for", "noisy"},
             {"others kept", "noisy"},
             {"the host took", "noisy"},
             {"the clock went", "noisy"},
             {"the CPU was throttled", "noisy"},
             {"the GPU's clock", "noisy"},
             {"not steady", "noisy"},
             {"time was up", "measured briefly"},
             {"its ", "measured briefly"},
             {"measured once", "measured briefly"},
             {"p90 ", "slow queries"},
             {"p99 ", "slow queries"}};

static const char *group_of(const char *note)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_starts(note, kinds[i].begins))
            return kinds[i].group;
    return "";
}

static void add_mark(struct text *out, const char *mark)
{
    if (!strstr(text_of(out), mark))
        text_add(out, mark);
}

void show_record_marks(struct show_table *table, const struct record *record, struct text *out)
{
    struct text notes = {0};
    const double now = record_meter(record, "memory_rate"),
                 best = record_meter(record, "memory_best");
    for (const char *at = record->reason; at && *at;) {
        const char *end = strstr(at, "; ");
        const char *group = group_of(at);
        text_add_bytes(&notes, at, end ? (size_t)(end - at) : strlen(at));
        if (group)
            add_mark(out, show_table_mark_as(table, group, text_of(&notes)));
        text_clear(&notes);
        at = end ? end + 2 : NULL;
    }
    if (record_slow_hour(record)) {
        text_printf(&notes,
                    "memory gave %.0f %% less than at its best, %.3g of %.3g GB/s; the limit uses "
                    "the lower rate",
                    100 * (1 - now / best), now * 1e-9, best * 1e-9);
        text_add(out, show_table_mark(table, text_of(&notes)));
        text_clear(&notes);
    }
    if (record->handicap) {
        text_printf(&notes,
                    "handicapped: %s; its users would run it faster, so no finding rests on it",
                    record->handicap);
        text_add(out, show_table_mark(table, text_of(&notes)));
    }
    out->failed |= notes.failed;
    text_free(&notes);
}

static void add_reason(const struct record *record, struct text *out)
{
    if (record->status != RECORD_OK)
        text_printf(out, "%s: %s", record_status_name(record->status),
                    record->reason ? record->reason : "no reason is known");
    else if (record->check.verdict != RECORD_RIGHT && record->check.reason)
        text_printf(out, "%s: %s", show_result(record), record->check.reason);
}

void show_record_result(struct show_table *table, const struct record *record, struct text *out)
{
    struct text reason = {0};
    text_add(out, show_result(record));
    add_reason(record, &reason);
    if (reason.length)
        text_add(out, show_table_mark(table, text_of(&reason)));
    out->failed |= reason.failed;
    text_free(&reason);
}

void show_record_repeat(struct show_table *table, const struct record *record)
{
    struct text reason = {0};
    add_reason(record, &reason);
    show_table_repeat(table, text_of(&reason));
    table->failed |= reason.failed;
    text_free(&reason);
}

/* "numpy 1.24.2" of "numpy 1.24.2 a0f3": a name, and a version that begins with a digit or names a
 * library's file. 0: it is neither. */
static size_t version_length(const char *item, size_t length)
{
    size_t name = strcspn(item, " ,");
    if (name >= length || item[name] != ' ')
        return 0;
    const char *version = item + name + 1;
    if (!(*version >= '0' && *version <= '9') && !text_starts(version, "lib"))
        return 0;
    return name + 1 + strcspn(version, " ,");
}

void show_record_software(const struct record *record, struct text *out)
{
    for (const char *at = record->point.software; *at;) {
        size_t length = strcspn(at, ",");
        size_t version = version_length(at, length);
        struct text item = {0};
        text_add_bytes(&item, at, version);
        if (version && !strstr(text_of(out), text_of(&item)))
            add_word(out, text_of(&item));
        out->failed |= item.failed;
        text_free(&item);
        at += length;
        at += strspn(at, ", ");
    }
}
