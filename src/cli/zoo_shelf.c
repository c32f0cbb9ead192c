/* zoo_shelf.c: see zoo_shelf.h. */
#ifdef PRONY_HAVE_STORE
#include "cli/zoo_shelf.h"

#include "cli/explained.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>

enum { ZOO_MOST = 200 };

/* Which networks of the zoo the store has. */
struct shelf {
    bool there[ZOO_MOST];
};

static enum status note_network(void *context, int64_t id, const char *line, size_t length)
{
    struct shelf *shelf = context;
    struct arena arena = {0};
    struct record record;
    (void)id;
    enum status status = record_read(&arena, "store", 0, line, length, &record);
    if (status == STATUS_OK) {
        const char *model = json_text(record.network, "model", ""), *name;
        for (int32_t i = 0; i < ZOO_MOST && (name = network_zoo(i)); i++)
            shelf->there[i] |= text_starts(name, model) && !strcmp(name + strlen(model), ".net");
    }
    arena_free(&arena);
    return status;
}

static enum status add_network(struct store *store, const char *file)
{
    struct text line = {0};
    struct arena arena = {0};
    struct record record;
    struct point point;
    point_start(&point);
    snprintf(point.model, sizeof point.model, "%.*s", (int)(strlen(file) - strlen(".net")), file);
    snprintf(point.phase, sizeof point.phase, "inference");
    point.batch = 1;
    enum status status = explained_line(&point, &line);
    if (status == STATUS_OK)
        status = record_read(&arena, "zoo", 0, text_of(&line), line.length - 1, &record);
    if (status == STATUS_OK)
        status = store_add(store, text_of(&line), line.length - 1, &record, NULL, NULL);
    text_free(&line);
    arena_free(&arena);
    return status;
}

enum status zoo_shelf_fill(struct store *store)
{
    struct shelf shelf = {0};
    const char *name;
    int64_t results;
    TRY(store_count(store, (struct store_where){0}, &results));
    if (!results)
        return STATUS_OK;
    TRY(store_export(store, "network", note_network, &shelf));
    TRY(store_begin(store));
    for (int32_t i = 0; i < ZOO_MOST && (name = network_zoo(i)); i++) {
        enum status status = shelf.there[i] ? STATUS_OK : add_network(store, name);
        if (status != STATUS_OK) {
            store_rollback(store);
            return status;
        }
    }
    return store_commit(store);
}

#else
typedef int zoo_shelf_is_left_out; /* an empty file is no C */
#endif
