/* network_text.c: reading a network from text: a layer a line. See network.h for the format,
 * reader.h for words and arguments. */
#include "base/memory.h"
#include "base/text.h"
#include "nn/layer.h"
#include "nn/optimiser.h"
#include "nn/reader.h"
#include "nn/section.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MOST = 10000 };

static enum status read_input(struct reader *reader);
static enum status read_loss(struct reader *reader);
static enum status read_optimiser(struct reader *reader);
static enum status read_schedule(struct reader *reader);
static enum status read_init(struct reader *reader);
static enum status read_recipe(struct reader *reader);

/* What a line may begin with other than a layer or its name; each once. */
static const struct {
    const char *name;
    enum status (*read)(struct reader *reader); /* the rest of the line */
} directives[READER_DIRECTIVES] = {
    {"input", read_input},       {"loss", read_loss}, {"optimiser", read_optimiser},
    {"schedule", read_schedule}, {"init", read_init}, {"recipe", read_recipe},
};

/* READER_DIRECTIVES when it is none. */
static int find_directive(const char *word)
{
    int i = 0;
    while (i < READER_DIRECTIVES && strcmp(word, directives[i].name))
        i++;
    return i;
}

static bool is_directive(const char *word)
{
    return find_directive(word) < READER_DIRECTIVES;
}

static int32_t find_layer(const struct network *network, const char *name)
{
    for (int32_t i = 0; i < network->layer_count; i++)
        if (!strcmp(network->layers[i].name, name))
            return i;
    return -2;
}

static enum status read_inputs(struct reader *reader, struct layer *layer)
{
    struct network *network = reader->network;
    NEED(layer->inputs = arena_array(&network->arena, LAYER_INPUTS, sizeof *layer->inputs));
    do {
        TRY(reader_next(reader));
        if (!*reader->word)
            BAD(reader, reader->word_at, "found nothing, expected the name of a layer above");
        int32_t from = strcmp(reader->word, "input") ? find_layer(network, reader->word) : -1;
        if (from == -2)
            BAD(reader, reader->word_at, "there is no layer '%s' above this line", reader->word);
        if (layer->input_count == LAYER_INPUTS)
            BAD(reader, reader->word_at, "found more than %d inputs", LAYER_INPUTS);
        layer->inputs[layer->input_count++] = from;
        TRY(reader_next(reader));
    } while (!strcmp(reader->word, ","));
    return STATUS_OK;
}

/* Values, name=value pairs and inputs, up to the end of the line. */
static enum status read_arguments(struct reader *reader, struct layer *layer)
{
    struct arguments arguments;
    arguments_begin(&arguments, layer->kind->name, layer->kind->arguments);
    TRY(reader_arguments(reader, &arguments));
    while (!strcmp(reader->word, "<")) {
        TRY(read_inputs(reader, layer));
        TRY(reader_arguments(reader, &arguments));
    }
    TRY(reader_arguments_end(reader, &arguments));
    memcpy(layer->values, arguments.values, sizeof layer->values);
    memcpy(layer->lists, arguments.lists, sizeof layer->lists);
    return STATUS_OK;
}

static enum status unknown_layer(struct reader *reader)
{
    if (is_directive(reader->word))
        BAD(reader, reader->word_at, "found a name before '%s', expected one only before a layer",
            reader->word);
    const char *names[64];
    int32_t count, used = 0;
    for (; used < READER_DIRECTIVES; used++)
        names[used] = directives[used].name;
    const struct layer_kind *kinds = layer_kinds(&count);
    for (int32_t i = 0; i < count && used < 64; i++)
        names[used++] = kinds[i].name;
    const char *near = text_nearest(reader->word, names, (size_t)used);
    if (near)
        BAD(reader, reader->word_at, "there is no layer '%s'; did you mean '%s'?", reader->word,
            near);
    BAD(reader, reader->word_at, "there is no layer '%s'; docs/layers.md lists them", reader->word);
}

/* A name for a layer that was given none: its kind and its number among those. */
static enum status name_layer(struct reader *reader, struct layer *layer)
{
    struct network *network = reader->network;
    int number = 1;
    for (int32_t i = 0; i < network->layer_count; i++)
        number += network->layers[i].kind == layer->kind;
    NEED(layer->name = arena_format(&network->arena, "%s%d", layer->kind->name, number));
    if (find_layer(network, layer->name) != -2)
        BAD(reader, reader->line, "the name '%s' is taken; give this layer one", layer->name);
    return STATUS_OK;
}

/* Is the name one that a layer can be given? "state." begins what a file of weights keeps of a
 * training. */
static enum status check_name(struct reader *reader, const char *name)
{
    if (is_directive(name) || text_starts(name, "state."))
        BAD(reader, reader->line, "the name '%s' has a meaning of its own, expected another", name);
    if (find_layer(reader->network, name) != -2)
        BAD(reader, reader->line, "the name '%s' is taken", name);
    return STATUS_OK;
}

static enum status grow_layers(struct reader *reader)
{
    struct network *network = reader->network;
    if (network->layer_count == LAYERS_MOST)
        BAD(reader, reader->line, "found more than %d layers", LAYERS_MOST);
    if (network->layer_count < reader->layer_room)
        return STATUS_OK;
    int32_t room = reader->layer_room ? reader->layer_room * 2 : 16;
    struct layer *layers = arena_array(&network->arena, (size_t)room, sizeof *layers);
    NEED(layers);
    if (network->layer_count)
        memcpy(layers, network->layers, (size_t)network->layer_count * sizeof *layers);
    network->layers = layers;
    reader->layer_room = room;
    return STATUS_OK;
}

static enum status read_layer(struct reader *reader, const char *name)
{
    struct network *network = reader->network;
    struct layer layer = {.kind = layer_find(reader->word), .line = reader->number};
    if (!layer.kind)
        return unknown_layer(reader);
    if (!network->input.rank)
        BAD(reader, reader->word_at, "found '%s', expected the line 'input SIZE' first",
            reader->word);
    TRY(grow_layers(reader));
    if (*name) {
        TRY(check_name(reader, name));
        NEED(layer.name = arena_text(&network->arena, name));
    } else {
        TRY(name_layer(reader, &layer));
    }
    const char *where = reader->word_at;
    layer.column = (int32_t)(where - reader->line) + 1;
    TRY(reader_next(reader));
    TRY(read_arguments(reader, &layer));
    if (!layer.inputs && layer.kind->inputs == 1) {
        NEED(layer.inputs = arena_array(&network->arena, 1, sizeof *layer.inputs));
        layer.inputs[layer.input_count++] = network->layer_count - 1;
    }
    bool several = layer.kind->inputs == SEVERAL;
    if (several ? layer.input_count < 2 : layer.input_count != layer.kind->inputs)
        BAD(reader, where, "%s has %d inputs, expected %d%s (as in: %s < a, b)", layer.kind->name,
            layer.input_count, several ? 2 : layer.kind->inputs, several ? " or more" : "",
            layer.kind->name);
    network->layers[network->layer_count++] = layer;
    return STATUS_OK;
}

/* tokens=1000: the input is whole numbers below that. */
static enum status read_tokens(struct reader *reader)
{
    struct network *network = reader->network;
    TRY(reader_next(reader));
    if (strcmp(reader->word, "="))
        BAD(reader, reader->word_at, "found '%s', expected tokens=NUMBER", reader->word);
    TRY(reader_next(reader));
    int64_t tokens;
    if (!text_to_int(reader->word, &tokens) || tokens < 1 || tokens > 1000000000)
        BAD(reader, reader->word_at, "tokens is '%s', expected a whole number from 1 to 1000000000",
            reader->word);
    network->tokens = (int32_t)tokens;
    return reader_next(reader);
}

/* "4", "1x28x28" or "16 tokens=1000" */
static enum status read_input(struct reader *reader)
{
    struct network *network = reader->network;
    TRY(reader_next(reader));
    const char *at = reader->word;
    do {
        char *end;
        long long dim = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : 0;
        if (dim > 1000000000)
            BAD(reader, reader->word_at, "the input is '%s', expected sizes of at most 1000000000",
                reader->word);
        if (dim < 1 || network->input.rank == SHAPE_MOST - 1 || (*end && *end != 'x'))
            BAD(reader, reader->word_at,
                "the input is '%s', expected one to %d sizes, as in 784 or 1x28x28", reader->word,
                SHAPE_MOST - 1);
        network->input.dim[network->input.rank++] = dim;
        at = *end ? end + 1 : end;
    } while (*at || at[-1] == 'x');
    TRY(reader_next(reader));
    return strcmp(reader->word, "tokens") ? STATUS_OK : read_tokens(reader);
}

static enum status read_loss(struct reader *reader)
{
    TRY(reader_next(reader));
    if (!loss_parse(reader->word, &reader->network->loss))
        BAD(reader, reader->word_at,
            "there is no loss '%s'; there are: mse, cross_entropy, binary_cross_entropy, auto",
            reader->word);
    return reader_next(reader);
}

static enum status read_init(struct reader *reader)
{
    TRY(reader_next(reader));
    if (!start_parse(reader->word, &reader->network->start))
        BAD(reader, reader->word_at,
            "there is no init '%s'; there are: auto, zeros, uniform, normal, xavier, he, "
            "orthogonal",
            reader->word);
    return reader_next(reader);
}

static enum status read_optimiser(struct reader *reader)
{
    return optimiser_read(reader, &reader->network->optimiser);
}

static enum status read_schedule(struct reader *reader)
{
    return schedule_read(reader, &reader->network->schedule);
}

static enum status read_recipe(struct reader *reader)
{
    return recipe_read(reader, &reader->network->recipe);
}

static enum status read_directive(struct reader *reader, int which)
{
    if (reader->said_on[which])
        BAD(reader, reader->word_at, "the %s is given twice; it is on line %d already",
            directives[which].name, reader->said_on[which]);
    reader->said_on[which] = reader->number;
    return directives[which].read(reader);
}

static enum status read_line(struct reader *reader)
{
    char name[READER_WORD] = "";
    TRY(reader_next(reader));
    if (!*reader->word)
        return STATUS_OK;
    if (reader_before_equals(reader)) {
        memcpy(name, reader->word, sizeof name);
        TRY(reader_next(reader));
        TRY(reader_next(reader));
        if (!*reader->word)
            BAD(reader, reader->word_at, "found nothing after '%s =', expected a layer", name);
        return read_layer(reader, name);
    }
    int which = find_directive(reader->word);
    return which < READER_DIRECTIVES ? read_directive(reader, which) : read_layer(reader, name);
}

/* Names and texts end up in files of weights, which are UTF-8. */
static enum status check_line(const struct reader *reader)
{
    size_t size = 1;
    for (const char *at = reader->at; at < reader->end && *at != '\n'; at += size) {
        size = text_utf8(at, (size_t)(reader->end - at));
        if (!size)
            BAD(reader, at, "found the byte 0x%02X, expected UTF-8", (unsigned char)*at);
    }
    return STATUS_OK;
}

static enum status read_lines(struct reader *reader)
{
    while (reader->at < reader->end) {
        reader->line = reader->at;
        reader->number++;
        TRY(check_line(reader));
        TRY(read_line(reader));
        if (*reader->word)
            BAD(reader, reader->word_at, "found '%s', expected the end of the line", reader->word);
        while (reader->at < reader->end && *reader->at != '\n')
            reader->at++;
        reader->at += reader->at < reader->end;
    }
    return STATUS_OK;
}

/* A network without parts, and maybe without layers. */
static enum status parse_one(const char *name, const char *text, size_t length,
                             struct network **out)
{
    struct network *network = mem_alloc(sizeof *network);
    NEED(network);
    enum status status;
    NEED_OR(fail, network->name = arena_text(&network->arena, name));
    network->optimiser = optimiser_usual();
    network->recipe = recipe_usual();
    NEED_OR(fail, network->text = arena_bytes(&network->arena, text, length));
    struct reader reader = {.name = network->name,
                            .network = network,
                            .at = network->text,
                            .end = network->text + length};
    TRY_OR(fail, read_lines(&reader));
    network->said_on.input = reader.said_on[find_directive("input")];
    network->said_on.loss = reader.said_on[find_directive("loss")];
    network->said_on.optimiser = reader.said_on[find_directive("optimiser")];
    network->said_on.schedule = reader.said_on[find_directive("schedule")];
    network->said_on.recipe = reader.said_on[find_directive("recipe")];
    *out = network;
    return STATUS_OK;
fail:
    network_free(network);
    return status;
}

/* One of several networks in the text. */
static enum status parse_part(const char *name, const struct text *whole, const char *part,
                              struct network **out)
{
    struct text text = {0};
    text_add_bytes(&text, text_of(whole), whole->length);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = section_take(name, part, &text);
    if (status == STATUS_OK)
        status = parse_one(name, text_of(&text), text.length, out);
    text_free(&text);
    return status;
}

/* The recipe's names of networks, one after the other; false behind the last. */
static bool next_name(const char **at, char name[SECTION_NAME])
{
    size_t length = strcspn(*at, " ");
    snprintf(name, SECTION_NAME, "%.*s", (int)length, *at);
    *at += length + ((*at)[length] == ' ');
    return length > 0;
}

/* Is the recipe made of a network of that name? */
static bool is_named(const struct recipe_kind *recipe, const char *wanted)
{
    char name[SECTION_NAME];
    for (const char *at = recipe->networks; next_name(&at, name);)
        if (!strcmp(name, wanted))
            return true;
    return false;
}

/* Are all parts there that the recipe is made of, and no others? The first of them takes the data.
 */
static enum status take_first_part(struct network *network, const struct sections *sections)
{
    const struct recipe_kind *recipe = network->recipe.kind;
    char name[SECTION_NAME];
    for (const char *at = recipe->networks; next_name(&at, name);)
        if (!network_part(network, name))
            FAIL(STATUS_INPUT, "%s: found no network '%s', expected the recipe's %s: %s",
                 network->name, name, recipe->name, recipe->networks);
    for (int i = 0; i < sections->count; i++)
        if (!is_named(recipe, sections->names[i]))
            FAIL(STATUS_INPUT,
                 "%s:%d:1: found the network '%s', expected only the networks of the recipe %s: "
                 "%s; others go into a file of their own",
                 network->name, sections->lines[i], sections->names[i], recipe->name,
                 recipe->networks);
    const char *at = recipe->networks;
    next_name(&at, name);
    const struct network *first = network_part(network, name);
    network->input = first->input;
    network->tokens = first->tokens;
    network->optimiser = first->optimiser;
    network->schedule = first->schedule;
    return STATUS_OK;
}

/* They have nothing to do with each other: which of them is meant? */
static enum status refuse_several(const struct network *network, const struct text *text)
{
    struct text refused = {0};
    text_add_bytes(&refused, text_of(text), text->length);
    enum status status = section_take(network->name, NULL, &refused);
    text_free(&refused);
    return status;
}

/* A recipe of several networks is said before the first of them. */
static enum status check_recipe_line(const struct network *part, const struct sections *sections)
{
    if (*part->recipe.kind->networks && part->said_on.recipe > sections->lines[0])
        FAIL(STATUS_INPUT,
             "%s:%d:1: found the recipe %s behind a line 'network', expected it before the first: "
             "it is made of several networks",
             part->name, part->said_on.recipe, part->recipe.kind->name);
    return STATUS_OK;
}

/* All networks of the text as one, where they name a recipe that is made of several. */
static enum status parse_parts(const struct text *text, const struct sections *sections,
                               struct network *network)
{
    size_t count = (size_t)sections->count;
    NEED(network->name = arena_text(&network->arena, sections->file));
    NEED(network->text = arena_bytes(&network->arena, text_of(text), text->length));
    NEED(network->parts = arena_array(&network->arena, count, sizeof *network->parts));
    for (int i = 0; i < sections->count; i++) {
        struct part_network *part = &network->parts[i];
        NEED(part->name = arena_text(&network->arena, sections->names[i]));
        TRY(parse_part(network->name, text, part->name, &part->network));
        network->part_count++;
        if (!part->network->layer_count)
            FAIL(STATUS_INPUT, "%s:%d:1: there is no layer in the network '%s', expected one",
                 network->name, sections->lines[i], part->name);
        TRY(check_recipe_line(part->network, sections));
        network->recipe = part->network->recipe;
        part->network->recipe = recipe_usual(); /* alone it is a network like any other */
        if (network->loss == LOSS_AUTO)
            network->loss = part->network->loss;
    }
    if (!*network->recipe.kind->networks)
        return refuse_several(network, text);
    return take_first_part(network, sections);
}

static enum status parse_alone(const char *name, struct text *text, struct network **out)
{
    TRY(section_take(name, NULL, text));
    TRY(parse_one(name, text_of(text), text->length, out));
    if ((*out)->layer_count)
        return STATUS_OK;
    network_free(*out);
    *out = NULL;
    FAIL(STATUS_INPUT, "%s: there is no layer in it; docs/networks.md shows the format", name);
}

static enum status parse(const char *name, struct text *text, struct network **out)
{
    struct sections sections;
    TRY(section_list(name, text, &sections));
    if (!sections.count)
        return parse_alone(name, text, out);
    struct network *network = mem_alloc(sizeof *network);
    NEED(network);
    enum status status = parse_parts(text, &sections, network);
    if (status == STATUS_OK)
        *out = network;
    else
        network_free(network);
    return status;
}

enum status network_parse(const char *name, const char *text, size_t length, struct network **out)
{
    const char *nul = memchr(text, 0, length);
    if (nul)
        FAIL(STATUS_INPUT, "%s: found a NUL byte at byte %zu, expected text", name,
             (size_t)(nul - text));
    struct text copy = {0};
    text_add_bytes(&copy, text, length);
    enum status status = text_done(&copy);
    if (status == STATUS_OK)
        status = parse(name, &copy, out);
    text_free(&copy);
    return status;
}

const struct network *network_part(const struct network *network, const char *name)
{
    for (int32_t i = 0; i < network->part_count; i++)
        if (!strcmp(network->parts[i].name, name))
            return network->parts[i].network;
    return NULL;
}

void network_free(struct network *network)
{
    if (!network)
        return;
    for (int32_t i = 0; i < network->part_count; i++)
        network_free(network->parts[i].network);
    network_free(network->settled);
    arena_free(&network->arena);
    arena_free(&network->weights);
    mem_free(network);
}

const struct quantisation *network_integers(const struct network *network)
{
    const struct network *settled = network->settled ? network->settled : network;
    return network->quantised ? network->quantised : settled->quantised;
}

void network_settle(struct network **network)
{
    struct network *settled = (*network)->settled;
    if (!settled)
        return;
    (*network)->settled = NULL;
    network_free(*network);
    *network = settled;
}
