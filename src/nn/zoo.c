/* zoo.c: networks by name: the files of nn/zoo/, which are embedded, and `mlp:A-B-…`. */
#include "base/embed.h"
#include "base/file.h"
#include "base/memory.h"
#include "nn/formats/onnx.h"
#include "nn/formats/saved.h"
#include "nn/layer.h"
#include "nn/optimiser.h"
#include "nn/section.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct embedded zoo_files[];

enum { FILE_MOST = 1 << 20, NAMES_MOST = 256, MLP_WORD = 32 };

static enum status unknown_activation(const char *spec, const char *function)
{
    struct text known = {0};
    for (int i = ACTIVATION_NONE + 1; i < ACTIVATION_ERF; i++)
        text_printf(&known, "%s%s", i > ACTIVATION_NONE + 1 ? ", " : "",
                    activation_name((enum activation)i));
    enum status status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                                     "%s: there is no activation '%s'; there are: %s", spec,
                                     function, text_of(&known));
    text_free(&known);
    return status;
}

/* What follows the sizes: the activation (relu), and how weights start. */
static enum status read_mlp_end(const char *spec, const char *colon, char function[MLP_WORD],
                                struct text *text)
{
    const char *at = colon ? colon + 1 : "relu", *second = strchr(at, ':');
    enum activation activation;
    enum start start;
    snprintf(function, MLP_WORD, "%.*s", (int)(second ? second - at : MLP_WORD), at);
    if (!activation_parse(function, &activation) || activation == ACTIVATION_NONE ||
        activation >= ACTIVATION_ERF)
        return unknown_activation(spec, function);
    if (!second)
        return STATUS_OK;
    if (!start_parse(second + 1, &start))
        FAIL(STATUS_INPUT,
             "%s: there is no init '%s'; there are: auto, zeros, uniform, normal, xavier, he, "
             "orthogonal",
             spec, second + 1);
    text_printf(text, "init %s\n", second + 1);
    return STATUS_OK;
}

/* "mlp:4-16-3", "mlp:4-16-3:sigmoid" or "mlp:4-16-3:relu:he": the activation between the layers,
 * the last linear. */
static enum status write_mlp(const char *spec, struct text *text)
{
    const char *sizes = spec + strlen("mlp:"), *colon = strchr(sizes, ':');
    char function[MLP_WORD];
    int count = 0;
    if (text_equal(sizes, "auto"))
        FAIL(STATUS_INPUT,
             "mlp:auto: found no data to fit, expected prony train mlp:auto DATA, which says the "
             "sizes that it chose, or sizes as in mlp:4-16-3");
    TRY(read_mlp_end(spec, colon, function, text));
    for (const char *at = sizes;; at++) {
        char *end;
        long long size = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : 0;
        if (size < 1 || size > 1000000000 || (*end && *end != '-' && end != colon))
            FAIL(STATUS_INPUT, "%s: found '%s', expected sizes as in mlp:4-16-3", spec, at);
        if (count > 1)
            text_printf(text, "%s\n", function);
        text_printf(text, "%s %lld\n", count++ ? "dense" : "input", size);
        at = end;
        if (*at != '-')
            break;
    }
    if (count < 2)
        FAIL(STATUS_INPUT, "%s: found one size, expected at least two, as in mlp:4-3", spec);
    return text_done(text);
}

const char *network_zoo(int32_t number)
{
    return zoo_files[number].name;
}

static const struct embedded *find_zoo_bytes(const char *name, size_t name_length)
{
    for (const struct embedded *file = zoo_files; file->name; file++) {
        size_t length = strlen(file->name) - strlen(".net");
        if (name_length == length && !strncmp(file->name, name, length))
            return file;
    }
    return NULL;
}

static const struct embedded *find_zoo(const char *name)
{
    return find_zoo_bytes(name, strlen(name));
}

bool network_built_in(const char *spec)
{
    const char *colon = strrchr(spec, ':');
    return find_zoo(spec) || text_starts(spec, "mlp:") ||
           (colon && !file_exists(spec) && find_zoo_bytes(spec, (size_t)(colon - spec)));
}

static enum status unknown_network(const char *spec)
{
    char names[NAMES_MOST][32];
    const char *pointers[NAMES_MOST];
    size_t count = 0;
    for (const struct embedded *file = zoo_files; file->name && count < NAMES_MOST; file++) {
        snprintf(names[count], sizeof *names, "%.*s", (int)(strlen(file->name) - strlen(".net")),
                 file->name);
        pointers[count] = names[count];
        count++;
    }
    const char *near = text_nearest(spec, pointers, count);
    enum status status =
        near
            ? status_fail(STATUS_INPUT, __FILE__, __LINE__,
                          "there is no network '%s'; did you mean '%s'? (prony networks lists all)",
                          spec, near)
            : status_fail(STATUS_INPUT, __FILE__, __LINE__,
                          "there is no network '%s'; expected one that prony networks lists, "
                          "mlp:4-16-3, or the path of a file",
                          spec);
    return status;
}

/* By the name's end, or the first byte, which no text begins with; a named pipe, which is no file,
 * is not waited for. What is said behind the file's name may have a ':', as outputs of TensorFlow.
 */
const char *network_onnx_end(const char *spec)
{
    static const char ending[] = ".onnx";
    char first[SAVED_BEGIN] = {0};
    int file = strcmp(spec, "-") ? open(spec, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    const char *more = file < 0 ? strstr(spec, ".onnx:") : NULL;
    const ssize_t count = file >= 0 ? read(file, first, sizeof first) : 0;
    bool begins = count > 0 && first[0] == '\b' && !saved_begins(first, (size_t)count);
    if (file >= 0)
        close(file);
    if (more)
        return more + strlen(ending);
    return begins || text_ends(spec, ending) ? spec + strlen(spec) : NULL;
}

/* The text of a zoo's network or of a file; *found is false when there is neither. */
static enum status read_text(const char *name, struct text *text, bool *found)
{
    const struct embedded *zoo = find_zoo(name);
    *found = zoo || file_exists(name);
    if (zoo)
        text_add_bytes(text, (const char *)zoo->bytes, zoo->length);
    else if (*found)
        TRY(file_read(name, FILE_MOST, text));
    return text_done(text);
}

/* A network that was made to learn together with others is alone one like any other, but knows
 * where it belongs: the weights of all of them hold its own. */
static enum status leave_others(struct network *network, const char *name, const struct text *whole)
{
    if (!*network->recipe.kind->networks)
        return STATUS_OK;
    network->part_of.recipe = network->recipe.kind;
    network->recipe = recipe_usual();
    NEED(network->part_of.name = arena_text(&network->arena, name));
    NEED(network->part_of.text = arena_bytes(&network->arena, text_of(whole), whole->length));
    return STATUS_OK;
}

/* FILE:NAME: one of several networks in a file. */
static enum status open_part(const char *spec, struct network **out)
{
    const char *colon = strrchr(spec, ':');
    struct text path = {0}, text = {0}, whole = {0};
    bool found = false;
    enum status status;
    text_add_bytes(&path, spec, colon ? (size_t)(colon - spec) : 0);
    TRY_OR(done, text_done(&path));
    if (colon)
        TRY_OR(done, read_text(text_of(&path), &text, &found));
    if (!found)
        TRY_OR(done, unknown_network(spec));
    text_add_bytes(&whole, text_of(&text), text.length);
    TRY_OR(done, text_done(&whole));
    TRY_OR(done, section_take(text_of(&path), colon + 1, &text));
    TRY_OR(done, network_parse(spec, text_of(&text), text.length, out));
    status = leave_others(*out, colon + 1, &whole);
    if (status != STATUS_OK) {
        network_free(*out);
        *out = NULL;
    }
done:
    text_free(&path);
    text_free(&text);
    text_free(&whole);
    return status;
}

enum status network_open(const char *spec, struct network **out)
{
    struct text text = {0};
    if (!find_zoo(spec) && !text_starts(spec, "mlp:") && network_onnx_end(spec))
        return onnx_read(spec, out);
    if (!network_built_in(spec) && saved_is(spec))
        return saved_read(spec, out);
    bool found = true;
    enum status status =
        text_starts(spec, "mlp:") ? write_mlp(spec, &text) : read_text(spec, &text, &found);
    if (status == STATUS_OK && found)
        status = network_parse(spec, text_of(&text), text.length, out);
    text_free(&text);
    return status == STATUS_OK && !found ? open_part(spec, out) : status;
}
