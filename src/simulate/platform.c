/* platform.c: reads the text of a platform, a row of `keys` a line. */
#include "simulate/platform.h"

#include "base/embed.h"
#include "base/file.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

extern const struct embedded platform_files[];

enum { FILE_BYTES = 1 << 16, LINE = 512, UNITS_MOST = 64, CLUSTERS_MOST = 16 };
static const char suffix[] = ".platform";

enum kind { KIND_TITLE, KIND_COUNT, KIND_LINK, KIND_RATE };

static const struct {
    const char *key;
    enum kind kind;
    size_t offset;
    int most;
} keys[] = {
    {"title", KIND_TITLE, offsetof(struct platform, title), 0},
    {"units", KIND_COUNT, offsetof(struct platform, units), UNITS_MOST},
    {"clusters", KIND_COUNT, offsetof(struct platform, clusters), CLUSTERS_MOST},
    {"inside", KIND_LINK, offsetof(struct platform, inside), 0},
    {"outside", KIND_LINK, offsetof(struct platform, outside), 0},
    {"between", KIND_LINK, offsetof(struct platform, between), 0},
    {"feed", KIND_RATE, offsetof(struct platform, feed), 0},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* The next word of a line; false at its end. */
static bool next_word(const char **at, char word[LINE])
{
    *at += strspn(*at, " \t");
    const size_t length = strcspn(*at, " \t");
    memcpy(word, *at, length);
    word[length] = '\0';
    *at += length;
    return length > 0;
}

struct scale {
    const char *name;
    double factor;
};
static const struct scale rates[] = {{"kB/s", 1e3},       {"MB/s", 1e6},       {"GB/s", 1e9},
                                     {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {NULL, 0}};
static const struct scale times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {NULL, 0}};

/* "117.7 MB/s" */
static enum status read_figure(const char **at, const struct scale *scales, const char *expected,
                               double *out)
{
    char number[LINE], unit[LINE] = "";
    if (next_word(at, number) && next_word(at, unit) && text_to_real(number, out) && *out >= 0)
        for (; scales->name; scales++)
            if (strcmp(scales->name, unit) == 0) {
                *out *= scales->factor;
                return STATUS_OK;
            }
    FAIL(STATUS_INPUT, "found '%.40s%s%.20s', expected %s", number, *unit ? " " : "", unit,
         expected);
}

static enum status read_link(const char **at, struct platform_link *link)
{
    TRY(read_figure(at, rates, "a rate such as 117 MB/s or 25 Gbit/s", &link->bytes_per_s));
    TRY(read_figure(at, times, "a latency such as 30 us behind the rate", &link->latency_s));
    if (!(link->bytes_per_s > 0))
        FAIL(STATUS_INPUT, "found a rate of 0, expected more");
    return STATUS_OK;
}

static enum status read_value(int key, const char *at, struct platform *out)
{
    void *field = (char *)out + keys[key].offset;
    char word[LINE];
    int64_t count;
    switch (keys[key].kind) {
    case KIND_TITLE: snprintf(field, PLATFORM_TEXT, "%s", at + strspn(at, " \t")); return STATUS_OK;
    case KIND_COUNT:
        if (!next_word(&at, word) || !text_to_int(word, &count) || count < 1 ||
            count > keys[key].most)
            FAIL(STATUS_INPUT, "found '%.40s', expected 1 to %d", word, keys[key].most);
        *(int *)field = (int)count;
        break;
    case KIND_LINK:
        TRY(read_link(&at, field));
        if (field == &out->outside && strcmp(at + strspn(at, " \t"), "each") == 0) {
            out->outside_each = true;
            return STATUS_OK;
        }
        break;
    case KIND_RATE: TRY(read_figure(&at, rates, "a rate such as 10 GB/s", field)); break;
    }
    if (next_word(&at, word))
        FAIL(STATUS_INPUT, "found '%.40s' behind it, expected the end of the line", word);
    return STATUS_OK;
}

static enum status read_line(char line[LINE], struct platform *out)
{
    const char *at = line, *names[KEYS];
    char word[LINE];
    line[strcspn(line, "#\r")] = '\0';
    for (size_t end = strlen(line); end && (line[end - 1] == ' ' || line[end - 1] == '\t'); end--)
        line[end - 1] = '\0';
    if (!next_word(&at, word))
        return STATUS_OK;
    for (int i = 0; i < KEYS; i++) {
        names[i] = keys[i].key;
        if (strcmp(word, keys[i].key) != 0)
            continue;
        const enum status status = read_value(i, at, out);
        return status == STATUS_OK ? status : status_prefix(status, "%s", word);
    }
    const char *near = text_nearest(word, names, KEYS);
    FAIL(STATUS_INPUT, "found '%.40s', expected %s%s", word, near ? "" : "one of ",
         near ? near : "title, units, clusters, inside, outside, between, feed");
}

/* Is there a link wherever two workers may have to talk? */
static enum status check_whole(const char *name, const struct platform *platform)
{
    if (platform->units > 1 && !(platform->inside.bytes_per_s > 0))
        FAIL(STATUS_INPUT,
             "%s: found %d units and no link inside a server, expected a line "
             "such as: inside 20 GB/s 2 us",
             name, platform->units);
    if (platform->clusters > 1 && !(platform->between.bytes_per_s > 0))
        FAIL(STATUS_INPUT,
             "%s: found %d clusters and no line between them, expected one such "
             "as: between 125 MB/s 5 ms",
             name, platform->clusters);
    if (!(platform->outside.bytes_per_s > 0))
        FAIL(STATUS_INPUT,
             "%s: found no link between servers, expected a line such as: outside 117 MB/s 30 us",
             name);
    return STATUS_OK;
}

enum status platform_read(const char *name, const char *text, struct platform *out)
{
    *out = (struct platform){.units = 1, .clusters = 1};
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->title, sizeof out->title, "%s", name);
    for (int number = 1; *text; number++) {
        char line[LINE];
        const size_t length = strcspn(text, "\n");
        if (length >= sizeof line)
            FAIL(STATUS_INPUT, "%s:%d: found a line of %zu bytes, expected fewer than %d", name,
                 number, length, LINE);
        memcpy(line, text, length);
        line[length] = '\0';
        const enum status status = read_line(line, out);
        if (status != STATUS_OK)
            return status_prefix(status, "%s:%d", name, number);
        text += length + (text[length] == '\n');
    }
    return check_whole(name, out);
}

const char *platform_shipped(int index)
{
    return platform_files[index].name;
}

static enum status read_file(const char *path, struct platform *out)
{
    struct text text = {0};
    enum status status = file_read(path, FILE_BYTES, &text);
    if (status == STATUS_OK && strlen(text_of(&text)) != text.length)
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "%s: found a byte that is 0, expected text", path);
    if (status == STATUS_OK)
        status = platform_read(path, text_of(&text), out);
    text_free(&text);
    return status;
}

static enum status fail_unknown(const char *name)
{
    struct text names = {0};
    for (int i = 0; platform_files[i].name; i++)
        text_printf(&names, "%s%.*s", i ? ", " : "",
                    (int)(strlen(platform_files[i].name) - strlen(suffix)), platform_files[i].name);
    enum status status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                                     "--platform: found '%.100s', expected here, %s, or a file "
                                     "that ends in .platform or .xml",
                                     name, text_of(&names));
    text_free(&names);
    return status;
}

enum status platform_open(const char *name, struct platform *out)
{
    for (int i = 0; platform_files[i].name; i++) {
        const size_t length = strlen(platform_files[i].name) - strlen(suffix);
        if (strlen(name) == length && strncmp(name, platform_files[i].name, length) == 0)
            return platform_read(name, (const char *)platform_files[i].bytes, out);
    }
    if (text_ends(name, suffix))
        return read_file(name, out);
    if (!text_ends(name, ".xml"))
        return fail_unknown(name);
    if (strlen(name) >= sizeof out->file)
        FAIL(STATUS_INPUT, "--platform: found a path of %zu bytes, expected fewer than %zu",
             strlen(name), sizeof out->file);
    *out = (struct platform){.units = 1, .clusters = 1};
    snprintf(out->file, sizeof out->file, "%s", name);
    const char *slash = strrchr(name, '/');
    snprintf(out->name, sizeof out->name, "%s", slash ? slash + 1 : name);
    snprintf(out->title, sizeof out->title, "%s", out->name);
    struct text text = {0}; /* SimGrid says worse what is not there */
    enum status status = file_read(name, (size_t)1 << 30, &text);
    text_free(&text);
    return status;
}
