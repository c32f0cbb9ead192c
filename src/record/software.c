/* software.c: see software.h. */
#include "record/software.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* The settings that peers searched while they still named them as software. */
static const char *const settings[] = {"weights", "images", "update",  "jit",
                                       "mkldnn",  "steps",  "capture", "library"};

/* What stands behind "name " in this part; NULL where it is another one. */
static const char *value_of(const char *part, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(part, name, length) == 0 && part[length] == ' ' ? part + length + 1 : NULL;
}

static bool is_setting(const char *part)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (value_of(part, settings[i]))
            return true;
    return false;
}

/* "1 thread", as a BLAS tells what it was given. */
static bool is_threads(const char *part, int64_t threads)
{
    char said[POINT_NUMBER + sizeof " threads"];
    snprintf(said, sizeof said, "%lld thread%s", (long long)threads, threads == 1 ? "" : "s");
    return strcmp(part, said) == 0;
}

/* Does another axis have it? The unit's name goes there where it is not known yet. */
static bool is_elsewhere(const char *part, struct point *point)
{
    const char *backend = value_of(part, "backend"), *unit = value_of(part, "gpu");
    if (!unit)
        unit = value_of(part, "unit");
    if (backend)
        return strcmp(backend, point->backend) == 0;
    if (is_threads(part, point->threads))
        return true;
    if (unit && !point->unit_name[0])
        snprintf(point->unit_name, sizeof point->unit_name, "%s", unit);
    return unit != NULL;
}

static void add_part(char field[POINT_TEXT], const char *part)
{
    const size_t used = strlen(field);
    snprintf(field + used, POINT_TEXT - used, "%s%s", used ? ", " : "", part);
}

void software_split(struct point *point)
{
    char whole[POINT_TEXT], *next = whole;
    memcpy(whole, point->software, sizeof whole);
    point->software[0] = '\0';
    while (next) {
        const char *part = next, *inner;
        next = strstr(next, ", ");
        if (next) {
            *next = '\0';
            next += 2;
        }
        while ((inner = value_of(part, "settings")) != NULL)
            part = inner;
        if (is_setting(part) || (value_of(part, "backend") && !is_elsewhere(part, point)))
            add_part(point->tuning, part);
        else if (part[0] && !is_elsewhere(part, point))
            add_part(point->software, part);
    }
}

/* "blas: OpenBLAS 0.3.21" is OpenBLAS 0.3.21: a library that has a name needs no other. */
static bool names_itself(const struct json *part)
{
    const char *version = strchr(part->string, ' ');
    return strcmp(part->key, "blas") == 0 && version && version[1] >= '0' && version[1] <= '9';
}

void software_add(char field[POINT_TEXT], const struct json *members)
{
    if (!members || members->kind != JSON_OBJECT)
        return;
    for (const struct json *part = members->first; part; part = part->next) {
        const size_t used = strlen(field);
        if (part->kind != JSON_STRING)
            continue;
        const bool alone = names_itself(part);
        snprintf(field + used, POINT_TEXT - used, "%s%s%s%s", used ? ", " : "",
                 alone ? "" : part->key, alone ? "" : " ", part->string);
    }
}
