/* reader.c: see reader.h. */
#include "nn/reader.h"

#include "base/text.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = READER_WORD };

/* What is smaller a float can hold, rounded: half a step above the largest. */
#define FLOAT_END 0x1.ffffffp127

static bool is_blank(char c)
{
    return c && strchr(" \t\r\v\f", c);
}

enum status reader_next(struct reader *reader)
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
        while (reader->at < reader->end && !is_blank(*reader->at) && !strchr("\n=<,#", *reader->at))
            reader->at++;
    size_t length = *reader->word_at == '#' ? 0 : (size_t)(reader->at - from);
    if (length >= WORD)
        BAD(reader, from, "found a word of %zu characters, expected at most %d", length, WORD - 1);
    memcpy(reader->word, from, length);
    reader->word[length] = 0;
    return STATUS_OK;
}

bool reader_before_equals(const struct reader *reader)
{
    const char *after = reader->at;
    while (after < reader->end && is_blank(*after))
        after++;
    return after < reader->end && *after == '=';
}

/* One argument of a list. */
struct argument {
    char name[WORD], words[WORD]; /* words: "" for numbers */
    char separator;               /* 'x' or ',': whole numbers with this in between; else 0 */
    bool required, flag;          /* flag: 0 or 1 */
    double value;                 /* the default */
    struct layer_list list;       /* the default, when there is a separator */
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

/* Reads one argument of a row: `name`, `name=default`, `name=1?`, `name=word|word`, `name:x`,
 * `name:,=1,0`. */
static void read_argument_row(char *text, struct argument *out)
{
    char *equals = strchr(text, '='), *colon = strchr(text, ':');
    *out = (struct argument){.required = !equals};
    if (colon) {
        out->separator = colon[1];
        *colon = 0;
    }
    if (equals) {
        char *question = strchr(equals, '?');
        out->flag = question;
        if (question)
            *question = 0;
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

/* False when there is no argument of that number. */
static bool argument_at(const char *list, int index, struct argument *out)
{
    const char *at = list;
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
        TRY(reader_next(reader));
        TRY(reader_next(reader));
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
    if (!text_to_real(reader->word, value) || fabs(*value) >= FLOAT_END)
        BAD(reader, reader->word_at, "%s is '%s', expected a number", argument->name, reader->word);
    if (fabs(*value) > (double)FLT_MAX)
        *value = copysign((double)FLT_MAX, *value);
    if (argument->flag && *value != 0 && *value != 1)
        BAD(reader, reader->word_at, "%s is '%s', expected 0 or 1", argument->name, reader->word);
    if (argument->required && (*value < 1 || *value > 1e9 || *value != (double)(int64_t)*value))
        BAD(reader, reader->word_at, "%s is '%s', expected a whole number from 1 to 1000000000",
            argument->name, reader->word);
    return STATUS_OK;
}

int arguments_find(const char *list, const char *name)
{
    struct argument argument;
    for (int i = 0; argument_at(list, i, &argument); i++)
        if (!strcmp(argument.name, name))
            return i;
    return -1;
}

bool arguments_name(const char *list, int index, char name[READER_WORD])
{
    struct argument argument;
    if (!argument_at(list, index, &argument))
        return false;
    memcpy(name, argument.name, WORD);
    return true;
}

void arguments_begin(struct arguments *arguments, const char *what, const char *list)
{
    struct argument argument;
    *arguments = (struct arguments){.what = what, .list = list};
    for (int i = 0; argument_at(list, i, &argument); i++) {
        arguments->values[i] = argument.value;
        arguments->lists[i] = argument.list;
    }
}

enum status reader_arguments(struct reader *reader, struct arguments *arguments)
{
    struct argument argument;
    while (*reader->word && strcmp(reader->word, "<")) {
        int index = arguments_find(arguments->list, reader->word);
        const char *where = reader->word_at;
        if (reader_before_equals(reader)) {
            if (index < 0)
                BAD(reader, where, "%s has no argument '%s'; it has: %s", arguments->what,
                    reader->word, *arguments->list ? arguments->list : "none");
            TRY(reader_next(reader));
            TRY(reader_next(reader));
        } else {
            index = arguments->position++;
        }
        if (!argument_at(arguments->list, index, &argument))
            BAD(reader, where, "found '%s', but %s takes %d arguments", reader->word,
                arguments->what, index);
        if (arguments->given[index])
            BAD(reader, where, "%s is given twice", argument.name);
        arguments->given[index] = true;
        TRY(argument.separator ? read_list(reader, &argument, &arguments->lists[index])
                               : read_value(reader, &argument, &arguments->values[index]));
        TRY(reader_next(reader));
    }
    return STATUS_OK;
}

enum status reader_arguments_end(struct reader *reader, const struct arguments *arguments)
{
    struct argument argument;
    for (int i = 0; argument_at(arguments->list, i, &argument); i++)
        if (argument.required && !arguments->given[i])
            BAD(reader, reader->word_at, "%s needs %s", arguments->what, argument.name);
    return STATUS_OK;
}
