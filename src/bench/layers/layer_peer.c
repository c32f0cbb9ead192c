/* layer_peer.c: see layer_peer.h. */
#include "bench/layers/layer_peer.h"

#include <math.h>
#include <string.h>

enum { ROWS_MOST = 20000, COVERS_MOST = 20000, WORD_MOST = 200 };

static bool part_parse(const char *name, enum part *out)
{
    for (int part = 0; part < PART_COUNT; part++)
        if (strcmp(name, part_name((enum part)part)) == 0) {
            *out = (enum part)part;
            return true;
        }
    return false;
}

static enum status read_covers(struct layers *layers, const struct json *names,
                               struct layer_row *row)
{
    int32_t *covers;
    if (!names || names->kind != JSON_ARRAY || names->count > COVERS_MOST)
        FAIL(STATUS_DEVICE, "a row of the peer's profile has no \"covers\", expected a list");
    NEED(covers = arena_array(&layers->arena, names->count + 1, sizeof *covers));
    for (const struct json *name = names->first; name; name = name->next) {
        if (name->kind != JSON_STRING)
            FAIL(STATUS_DEVICE,
                 "the peer's profile has other things in \"covers\", expected names");
        TRY(layers_atom(layers, name->string, &covers[row->cover_count++]));
    }
    row->covers = covers;
    return STATUS_OK;
}

static enum status read_row(struct layers *layers, struct layer_side *side, const struct json *from)
{
    const char *part = json_text(from, "part", "forward"), *note = json_text(from, "note", NULL);
    struct layer_row row = {.name = json_text(from, "name", ""),
                            .op = json_text(from, "op", ""),
                            .note = note,
                            .ns = json_real(from, "ns", (double)NAN)};
    if (!part_parse(part, &row.part))
        FAIL(STATUS_DEVICE, "a row of the peer's profile has the part \"%.40s\"", part);
    if (!(row.ns >= 0) || isinf(row.ns))
        FAIL(STATUS_DEVICE, "row \"%.60s\" of the peer's profile has no \"ns\"", row.name);
    if (strlen(row.name) > WORD_MOST || strlen(row.op) > WORD_MOST ||
        (note && strlen(note) > WORD_MOST))
        FAIL(STATUS_DEVICE, "the peer's profile has the word \"%.60s…\", expected at most %d bytes",
             row.name, WORD_MOST);
    TRY(read_covers(layers, json_get(from, "covers"), &row));
    return layers_row(layers, side, &row);
}

enum status layers_peer(struct layers *layers, struct layer_side *side, const struct json *answer)
{
    const struct json *rows = json_get(answer, "rows");
    const char *how = json_text(answer, "how", NULL);
    if (!rows || rows->kind != JSON_ARRAY || rows->count == 0 || rows->count > ROWS_MOST)
        FAIL(STATUS_DEVICE, "the peer's profile has no \"rows\", expected a list of them");
    for (const struct json *row = rows->first; row; row = row->next)
        TRY(read_row(layers, side, row));
    side->whole_ns = json_real(answer, "step_ns", (double)NAN);
    side->steps = (int32_t)json_int(answer, "iterations", 0);
    if (how)
        NEED(side->how = arena_format(&layers->arena, "%.200s", how));
    return STATUS_OK;
}
