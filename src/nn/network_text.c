/* network_text.c: reading a network from text: a layer a line. See network.h for the format.
 *
 * Messages name the place ("NAME:LINE:COLUMN"), what was found and what was expected. */
#include "base/memory.h"
#include "base/text.h"
#include "nn/layer.h"
#include "nn/optimiser.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 64, LAYERS_MOST = 10000 };

struct reader {
    struct network *network;
    const char *at, *end; /* the rest of the text */
    const char *line;     /* where the current line begins */
    int32_t number;       /* of the line, from 1 */
    int32_t room;
    char word[WORD]; /* the token read last; "" at the end of the line */
    const char *word_at;
};

#define BAD(reader, where, ...)                                                                    \
    return (status_fail(STATUS_INPUT, __FILE__, __LINE__, __VA_ARGS__),                            \
            status_prefix(STATUS_INPUT, "%s:%d:%d", (reader)->network->name, (reader)->number,     \
                          (int)((where) - (reader)->line) + 1))

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* A token: a run of characters other than blanks, or one of `=`, `<`, `,` by itself. */
static enum status next_word(struct reader *reader)
{
    while (reader->at < reader->end && is_blank(*reader->at))
        reader->at++;
    const char *from = reader->word_at = reader->at;
    if (from < reader->end && *from == '#')
        while (reader->at < reader->end && *reader->at != '\n')
            reader->at++;
    else if (from < reader->end && strchr("=<,", *from) && *from)
        reader->at++;
    else
        while (reader->at < reader->end && !isspace((unsigned char)*reader->at) &&
               !strchr("=<,#", *reader->at))
            reader->at++;
    size_t length = *reader->word_at == '#' ? 0 : (size_t)(reader->at - from);
    if (length >= WORD)
        BAD(reader, from, "found a word of %zu characters, expected at most %d", length, WORD - 1);
    memcpy(reader->word, from, length);
    reader->word[length] = 0;
    return STATUS_OK;
}

/* One argument of a kind's row. */
struct argument {
    char name[WORD], words[WORD]; /* words: "" for numbers */
    char separator;               /* 'x' or ',': whole numbers with this in between; else 0 */
    bool required;
    double value;           /* the default */
    struct layer_list list; /* the default, when there is a separator */
};

/* "5x5", "1,0": whole numbers, one to as many as fit, with `separator` in between. */
static bool parse_list(const char *text, char separator, struct layer_list *out)
{
    *out = (struct layer_list){0};
    for (char *end;; text = end + 1) {
        const char *digits = *text == '-' ? text + 1 : text;
        if (!isdigit((unsigned char)*digits) || out->count == SHAPE_MOST)
            return false;
        out->items[out->count++] = strtoll(text, &end, 10);
        if (!*end)
            return true;
        if (*end != separator)
            return false;
    }
}

/* Reads one argument of a row: `name`, `name=default`, `name=word|word`, `name:x`, `name:,=1,0`. */
static void read_argument_row(char *text, struct argument *out)
{
    char *equals = strchr(text, '='), *colon = strchr(text, ':');
    *out = (struct argument){.required = !equals};
    if (colon) {
        out->separator = colon[1];
        *colon = 0;
    }
    if (equals) {
        *equals = 0;
        if (out->separator)
            parse_list(equals + 1, out->separator, &out->list);
        else if (strchr(equals + 1, '|'))
            snprintf(out->words, sizeof out->words, "%s", equals + 1);
        else
            text_to_real(equals + 1, &out->value);
    }
    snprintf(out->name, sizeof out->name, "%s", text);
}

/* False when the kind has no argument of that number. */
static bool argument_at(const struct layer_kind *kind, int index, struct argument *out)
{
    const char *at = kind->arguments;
    for (int i = 0; *at; i++) {
        size_t length = strcspn(at, " ");
        if (i == index) {
            char text[WORD];
            snprintf(text, sizeof text, "%.*s", (int)length, at);
            read_argument_row(text, out);
            return true;
        }
        at += length;
        at += strspn(at, " ");
    }
    return false;
}

/* The place of `word` in "first|second|…", or -1. */
static int word_index(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (int i = 0; *words; i++) {
        size_t span = strcspn(words, "|");
        if (span == length && !strncmp(words, word, length))
            return i;
        words += span + (words[span] == '|');
    }
    return -1;
}

/* A list with commas is several tokens: they become one word. */
static enum status join_list(struct reader *reader)
{
    char joined[WORD];
    const char *where = reader->word_at;
    snprintf(joined, sizeof joined, "%s", reader->word);
    while (reader->at < reader->end && *reader->at == ',') {
        TRY(next_word(reader));
        TRY(next_word(reader));
        size_t length = strlen(joined);
        if (length + 1 + strlen(reader->word) >= WORD)
            BAD(reader, where, "found a list of %zu characters or more, expected at most %d",
                length, WORD - 1);
        snprintf(joined + length, sizeof joined - length, ",%s", reader->word);
    }
    memcpy(reader->word, joined, sizeof joined);
    reader->word_at = where;
    return STATUS_OK;
}

static enum status read_list(struct reader *reader, const struct argument *argument,
                             struct layer_list *list)
{
    bool sizes = argument->separator == 'x';
    if (!sizes)
        TRY(join_list(reader));
    bool sound = parse_list(reader->word, argument->separator, list);
    for (int32_t i = 0; sound && i < list->count; i++)
        sound = list->items[i] >= (sizes ? 0 : -SHAPE_MOST) && list->items[i] <= 1000000000;
    if (!sound)
        BAD(reader, reader->word_at, "%s is '%s', expected one to %d whole numbers, as in %s",
            argument->name, reader->word, SHAPE_MOST, sizes ? "5 or 5x3" : "2,1");
    return STATUS_OK;
}

static enum status read_value(struct reader *reader, const struct argument *argument, double *value)
{
    if (*argument->words) {
        int index = word_index(argument->words, reader->word);
        if (index < 0)
            BAD(reader, reader->word_at, "%s is '%s', expected one of %s", argument->name,
                reader->word, argument->words);
        *value = index;
        return STATUS_OK;
    }
    if (!text_to_real(reader->word, value))
        BAD(reader, reader->word_at, "%s is '%s', expected a number", argument->name, reader->word);
    if (argument->required && (*value < 1 || *value > 1e9 || *value != (double)(int64_t)*value))
        BAD(reader, reader->word_at, "%s is '%s', expected a whole number from 1 to 1000000000",
            argument->name, reader->word);
    return STATUS_OK;
}

static int argument_named(const struct layer_kind *kind, const char *name)
{
    struct argument argument;
    for (int i = 0; argument_at(kind, i, &argument); i++)
        if (!strcmp(argument.name, name))
            return i;
    return -1;
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
        TRY(next_word(reader));
        int32_t from = strcmp(reader->word, "input") ? find_layer(network, reader->word) : -1;
        if (from == -2)
            BAD(reader, reader->word_at, "there is no layer '%s' above this line", reader->word);
        if (layer->input_count == LAYER_INPUTS)
            BAD(reader, reader->word_at, "found more than %d inputs", LAYER_INPUTS);
        layer->inputs[layer->input_count++] = from;
        TRY(next_word(reader));
    } while (!strcmp(reader->word, ","));
    return STATUS_OK;
}

/* Values, name=value pairs and inputs, up to the end of the line. */
static enum status read_arguments(struct reader *reader, struct layer *layer)
{
    struct argument argument;
    bool given[LAYER_VALUES] = {false};
    for (int i = 0; argument_at(layer->kind, i, &argument); i++) {
        layer->values[i] = argument.value;
        layer->lists[i] = argument.list;
    }
    for (int position = 0; *reader->word;) {
        if (!strcmp(reader->word, "<")) {
            TRY(read_inputs(reader, layer));
            continue;
        }
        int index = argument_named(layer->kind, reader->word);
        const char *where = reader->word_at;
        const char *after = reader->at;
        while (after < reader->end && is_blank(*after))
            after++;
        if (after < reader->end && *after == '=') {
            if (index < 0)
                BAD(reader, where, "%s has no argument '%s'; it has: %s", layer->kind->name,
                    reader->word, *layer->kind->arguments ? layer->kind->arguments : "none");
            TRY(next_word(reader));
            TRY(next_word(reader));
        } else {
            index = position++;
        }
        if (!argument_at(layer->kind, index, &argument))
            BAD(reader, where, "found '%s', but %s takes %d arguments", reader->word,
                layer->kind->name, index);
        if (given[index])
            BAD(reader, where, "%s is given twice", argument.name);
        given[index] = true;
        TRY(argument.separator ? read_list(reader, &argument, &layer->lists[index])
                               : read_value(reader, &argument, &layer->values[index]));
        TRY(next_word(reader));
    }
    for (int i = 0; argument_at(layer->kind, i, &argument); i++)
        if (argument.required && !given[i])
            BAD(reader, reader->word_at, "%s needs %s", layer->kind->name, argument.name);
    return STATUS_OK;
}

static enum status unknown_layer(struct reader *reader)
{
    const char *names[64] = {"input", "loss", "optimiser"};
    int32_t count, used = 3;
    const struct layer_kind *kinds = layer_kinds(&count);
    for (int32_t i = 0; i < count && used < 64; i++)
        names[used++] = kinds[i].name;
    const char *near = text_nearest(reader->word, names, (size_t)used);
    if (near)
        BAD(reader, reader->word_at, "there is no layer '%s'; did you mean '%s'?", reader->word,
            near);
    BAD(reader, reader->word_at, "there is no layer '%s'; docs/networks.md lists them",
        reader->word);
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

static enum status grow_layers(struct reader *reader)
{
    struct network *network = reader->network;
    if (network->layer_count == LAYERS_MOST)
        BAD(reader, reader->line, "found more than %d layers", LAYERS_MOST);
    if (network->layer_count < reader->room)
        return STATUS_OK;
    int32_t room = reader->room ? reader->room * 2 : 16;
    struct layer *layers = arena_array(&network->arena, (size_t)room, sizeof *layers);
    NEED(layers);
    if (network->layer_count)
        memcpy(layers, network->layers, (size_t)network->layer_count * sizeof *layers);
    network->layers = layers;
    reader->room = room;
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
        if (find_layer(network, name) != -2 || !strcmp(name, "input"))
            BAD(reader, reader->line, "the name '%s' is taken", name);
        NEED(layer.name = arena_text(&network->arena, name));
    } else {
        TRY(name_layer(reader, &layer));
    }
    const char *where = reader->word_at;
    layer.column = (int32_t)(where - reader->line) + 1;
    TRY(next_word(reader));
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
    TRY(next_word(reader));
    if (strcmp(reader->word, "="))
        BAD(reader, reader->word_at, "found '%s', expected tokens=NUMBER", reader->word);
    TRY(next_word(reader));
    int64_t tokens;
    if (!text_to_int(reader->word, &tokens) || tokens < 1 || tokens > 1000000000)
        BAD(reader, reader->word_at, "tokens is '%s', expected a whole number from 1 to 1000000000",
            reader->word);
    network->tokens = (int32_t)tokens;
    return next_word(reader);
}

/* "4", "1x28x28" or "16 tokens=1000" */
static enum status read_input(struct reader *reader)
{
    struct network *network = reader->network;
    TRY(next_word(reader));
    if (network->input.rank)
        BAD(reader, reader->word_at, "the input is given twice");
    const char *at = reader->word;
    do {
        char *end;
        long long dim = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : 0;
        if (dim < 1 || dim > 1000000000 || network->input.rank == SHAPE_MOST - 1 ||
            (*end && *end != 'x'))
            BAD(reader, reader->word_at,
                "the input is '%s', expected one to %d sizes, as in 784 or 1x28x28", reader->word,
                SHAPE_MOST - 1);
        network->input.dim[network->input.rank++] = dim;
        at = *end ? end + 1 : end;
    } while (*at || at[-1] == 'x');
    TRY(next_word(reader));
    return strcmp(reader->word, "tokens") ? STATUS_OK : read_tokens(reader);
}

static enum status read_loss(struct reader *reader)
{
    TRY(next_word(reader));
    if (!loss_parse(reader->word, &reader->network->loss))
        BAD(reader, reader->word_at,
            "there is no loss '%s'; there are: mse, cross_entropy, binary_cross_entropy, auto",
            reader->word);
    return next_word(reader);
}

static enum status read_optimiser(struct reader *reader)
{
    struct network *network = reader->network;
    TRY(next_word(reader));
    const char *const *names = optimiser_names();
    while (*names && strcmp(*names, reader->word))
        names++;
    if (!*names)
        BAD(reader, reader->word_at, "there is no optimiser '%s'; there is: %s", reader->word,
            *optimiser_names());
    network->optimiser = *names;
    TRY(next_word(reader));
    if (strcmp(reader->word, "rate"))
        return STATUS_OK;
    TRY(next_word(reader));
    if (strcmp(reader->word, "="))
        BAD(reader, reader->word_at, "found '%s', expected rate=NUMBER", reader->word);
    TRY(next_word(reader));
    if (!text_to_real(reader->word, &network->rate) || !(network->rate > 0))
        BAD(reader, reader->word_at, "rate is '%s', expected a number above 0", reader->word);
    return next_word(reader);
}

static enum status read_line(struct reader *reader)
{
    char name[WORD] = "";
    TRY(next_word(reader));
    if (!*reader->word)
        return STATUS_OK;
    if (!strcmp(reader->word, "input"))
        return read_input(reader);
    if (!strcmp(reader->word, "loss"))
        return read_loss(reader);
    if (!strcmp(reader->word, "optimiser"))
        return read_optimiser(reader);
    const char *after = reader->at;
    while (after < reader->end && is_blank(*after))
        after++;
    if (after < reader->end && *after == '=') {
        memcpy(name, reader->word, sizeof name);
        TRY(next_word(reader));
        TRY(next_word(reader));
        if (!*reader->word)
            BAD(reader, reader->word_at, "found nothing after '%s =', expected a layer", name);
    }
    return read_layer(reader, name);
}

static enum status read_lines(struct reader *reader)
{
    while (reader->at < reader->end) {
        reader->line = reader->at;
        reader->number++;
        TRY(read_line(reader));
        if (*reader->word)
            BAD(reader, reader->word_at, "found '%s', expected the end of the line", reader->word);
        while (reader->at < reader->end && *reader->at != '\n')
            reader->at++;
        reader->at += reader->at < reader->end;
    }
    if (!reader->network->layer_count)
        FAIL(STATUS_INPUT, "%s: there is no layer in it; docs/networks.md shows the format",
             reader->network->name);
    return STATUS_OK;
}

enum status network_parse(const char *name, const char *text, size_t length, struct network **out)
{
    const char *nul = memchr(text, 0, length);
    if (nul)
        FAIL(STATUS_INPUT, "%s: found a NUL byte at byte %zu, expected text", name,
             (size_t)(nul - text));
    struct network *network = mem_alloc(sizeof *network);
    NEED(network);
    enum status status;
    NEED_OR(fail, network->name = arena_text(&network->arena, name));
    NEED_OR(fail, network->text = arena_bytes(&network->arena, text, length));
    struct reader reader = {.network = network, .at = network->text, .end = network->text + length};
    TRY_OR(fail, read_lines(&reader));
    *out = network;
    return STATUS_OK;
fail:
    network_free(network);
    return status;
}

void network_free(struct network *network)
{
    if (!network)
        return;
    arena_free(&network->arena);
    mem_free(network);
}
