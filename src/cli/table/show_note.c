/* show_note.c: the notes of a table, each told once under its mark. Notes that differ in numbers
 * only are one: "it had a CPU for 74 to 83 % of the time". */
#include "cli/table/show_table.h"

#include "cli/table/wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 8, DIGITS = 24, HOLE = 1 };

struct number {
    char text[DIGITS];
    double value;
};

struct show_note {
    const char *mark;
    const char *group; /* what this and others are, under one mark; or "" */
    const char *form;  /* the note with a HOLE for each number */
    struct number low[NUMBERS], high[NUMBERS];
    int count, repeated;
    struct show_note *next;
};

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Bytes of the number that stands by itself at `at`; 0: none does, as in fp32 or 0.3.21. */
static size_t number_length(const char *note, size_t at)
{
    const char *start = note + at;
    size_t length = strspn(start, "0123456789.,");
    if (*start < '0' || *start > '9' ||
        (at && (is_word(start[-1]) || strchr(".,-:/", start[-1]) != NULL)))
        return 0;
    while (length && (start[length - 1] == '.' || start[length - 1] == ','))
        length--;
    const char *point = memchr(start, '.', length);
    bool version = point && memchr(point + 1, '.', length - (size_t)(point + 1 - start));
    return is_word(start[length]) || start[length] == '-' || version || length >= DIGITS ? 0
                                                                                         : length;
}

static struct number read_number(const char *text, size_t length)
{
    struct number out = {0};
    char plain[DIGITS] = "";
    size_t used = 0;
    memcpy(out.text, text, length);
    for (size_t i = 0; i < length; i++)
        if (text[i] != ',')
            plain[used++] = text[i];
    out.value = strtod(plain, NULL);
    return out;
}

static void read_note(const char *note, struct show_note *out, struct text *form)
{
    for (size_t at = 0; note[at];) {
        size_t length = out->count < NUMBERS ? number_length(note, at) : 0;
        if (length) {
            out->low[out->count] = out->high[out->count] = read_number(note + at, length);
            out->count++;
            text_add_char(form, HOLE);
        } else {
            text_add_char(form, note[at]);
        }
        at += length ? length : 1;
    }
}

static void widen_note(struct show_note *note, const struct show_note *by)
{
    for (int i = 0; i < note->count; i++) {
        if (by->low[i].value < note->low[i].value)
            note->low[i] = by->low[i];
        if (by->high[i].value > note->high[i].value)
            note->high[i] = by->high[i];
    }
}

static const char *mark_of(struct show_table *table, int number)
{
    static const char *const marks[] = {"*", "†", "‡", "§", "¶"};
    enum { MARKS = sizeof marks / sizeof *marks };
    if (number < MARKS)
        return marks[number];
    const char *mark = arena_format(&table->arena, "[%d]", number + 1);
    table->failed |= !mark;
    return mark ? mark : "*";
}

/* Has no note before it the same mark? */
static bool is_first(const struct show_table *table, const struct show_note *note)
{
    for (const struct show_note *other = table->notes; other != note; other = other->next)
        if (strcmp(other->mark, note->mark) == 0)
            return false;
    return true;
}

/* The note like this one, widened to it, or a new one; NULL: memory is out. */
static struct show_note *find_note(struct show_table *table, const char *group, const char *note)
{
    struct show_note found = {.group = group}, **end = &table->notes;
    const char *mark = NULL;
    struct text form = {0};
    int marks = 0;
    read_note(note, &found, &form);
    for (; *end; end = &(*end)->next) {
        const bool grouped = *group && strcmp((*end)->group, group) == 0;
        if (strcmp((*end)->form, text_of(&form)) == 0 && (*end)->count == found.count) {
            widen_note(*end, &found);
            text_free(&form);
            return *end;
        }
        mark = grouped ? (*end)->mark : mark;
        marks += is_first(table, *end);
    }
    *end = arena_alloc(&table->arena, sizeof **end);
    found.form = arena_text(&table->arena, text_of(&form));
    found.mark = mark ? mark : mark_of(table, marks);
    table->failed |= form.failed || !*end || !found.form;
    text_free(&form);
    if (*end && !found.form)
        *end = NULL;
    if (*end)
        **end = found;
    return *end;
}

const char *show_table_mark(struct show_table *table, const char *note)
{
    return show_table_mark_as(table, "", note);
}

const char *show_table_mark_as(struct show_table *table, const char *group, const char *note)
{
    const struct show_note *found = find_note(table, group, note);
    return found ? found->mark : "*";
}

void show_table_repeat(struct show_table *table, const char *note)
{
    struct show_note *found = find_note(table, "", note);
    if (found)
        found->repeated++;
}

void show_table_marks(struct show_table *table, const char *notes, struct text *out)
{
    while (notes && *notes) {
        const char *end = strstr(notes, "; ");
        size_t length = end ? (size_t)(end - notes) : strlen(notes);
        struct text note = {0};
        text_add_bytes(&note, notes, length);
        text_add(out, show_table_mark(table, text_of(&note)));
        out->failed |= note.failed;
        text_free(&note);
        notes = end ? end + 2 : NULL;
    }
}

void show_table_hang(const char *marks, struct text *figure)
{
    enum { HANGING = 3 };
    const size_t width = wrap_width(marks);
    text_add(figure, marks);
    wrap_pad(figure, width < HANGING ? HANGING - width : 0);
}

static void add_note(const struct show_note *note, struct text *line)
{
    int number = 0;
    for (const char *at = note->form; *at; at++) {
        if (*at != HOLE) {
            text_add_char(line, *at);
            continue;
        }
        const struct number *low = &note->low[number], *high = &note->high[number];
        number++;
        text_add(line, low->text);
        if (low->value < high->value)
            text_printf(line, " to %s", high->text);
    }
    if (note->repeated)
        text_printf(line, " (%d more row%s like it)", note->repeated,
                    note->repeated == 1 ? "" : "s");
}

/* The note, with those after it that have its mark. */
static void print_mark(const struct show_table *table, const struct show_note *note,
                       struct text *out)
{
    struct text line = {0}, lead = {0};
    text_printf(&lead, "%s ", note->mark);
    if (*note->group)
        text_printf(&line, "%s: ", note->group);
    add_note(note, &line);
    for (const struct show_note *other = note->next; other; other = other->next)
        if (strcmp(other->mark, note->mark) == 0) {
            text_add(&line, "; ");
            add_note(other, &line);
        }
    wrap_add(out, text_of(&lead), text_of(&line), table->width);
    out->failed |= line.failed || lead.failed;
    text_free(&line);
    text_free(&lead);
}

void show_table_end(struct show_table *table, struct text *out)
{
    if (table->notes || table->footer.length)
        text_add_char(out, '\n');
    for (const struct show_note *note = table->notes; note; note = note->next)
        if (is_first(table, note))
            print_mark(table, note, out);
    text_add(out, text_of(&table->footer));
    out->failed |= table->footer.failed;
}
