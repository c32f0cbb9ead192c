/* zoo_shelf.c: see zoo_shelf.h. */
#include "cli/zoo_shelf.h"

#include "cli/explain/explained.h"
#include "nn/optimiser.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>

enum { ZOO_MOST = 200 };

/* Which networks of the zoo the store has, and which of them as they are trained. */
struct shelf {
    bool there[ZOO_MOST], trained[ZOO_MOST];
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
        bool trained = !strcmp(json_text(record.network, "phase", ""), "training");
        for (int32_t i = 0; i < ZOO_MOST && (name = network_zoo(i)); i++)
            if (text_starts(name, model) && !strcmp(name + strlen(model), ".net")) {
                shelf->there[i] = true;
                shelf->trained[i] |= trained;
            }
    }
    arena_free(&arena);
    return status;
}

static enum status add_phase(struct store *store, const char *name, enum choice phase)
{
    struct text line = {0};
    const struct record record = {.kind = RECORD_NETWORK};
    struct point point;
    point_start(&point);
    snprintf(point.model, sizeof point.model, "%s", name);
    point_choose(&point, phase);
    point.batch = 1;
    enum status status = explained_line(&point, &line);
    if (status == STATUS_OK)
        status = store_add(store, text_of(&line), line.length - 1, &record, NULL, NULL);
    text_free(&line);
    return status;
}

/* Of a network that learns otherwise than by targets, its training shows what kind it is. */
static enum status add_network(struct store *store, const char *file, bool there, bool trained)
{
    struct network *network;
    char name[100];
    snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - strlen(".net")), file);
    if (!there)
        TRY(add_phase(store, name, CHOICE_phase_inference));
    TRY(network_open(name, &network));
    bool usual = network->recipe.kind == recipe_usual().kind;
    network_free(network);
    return usual || trained ? STATUS_OK : add_phase(store, name, CHOICE_phase_training);
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
        enum status status = add_network(store, name, shelf.there[i], shelf.trained[i]);
        if (status != STATUS_OK) {
            store_rollback(store);
            return status;
        }
    }
    return store_commit(store);
}
