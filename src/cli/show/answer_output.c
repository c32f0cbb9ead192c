/* answer_output.c: see answer_output.h. */
#include "cli/show/answer_output.h"
#include "cli/screen.h"
#include "record/tables/table.h"

#include <stdio.h>
#include <string.h>

enum { LABEL = 12, NUMBER = 5 };

/* The bytes of the next word; a figure and its unit stay together: "± 2 %", "1.7 ×". */
static size_t word_length(const char *text)
{
    size_t length = strcspn(text, " ");
    while (text[length] && (text_starts(text + length, " %") || text_starts(text + length, " ×") ||
                            (length >= 2 && memcmp(text + length - 2, "±", 2) == 0)))
        length += 1 + strcspn(text + length + 1, " ");
    return length;
}

/* The text from a column on; the first line has begun. `mark` ends a line that goes on. */
static void print_wrapped(const char *text, int column, int width, const char *mark)
{
    struct text word = {0};
    int at = column;
    for (const char *from = text; *from;) {
        const size_t length = word_length(from);
        text_clear(&word);
        text_add_bytes(&word, from, length);
        const int wide = (int)table_width(text_of(&word));
        if (at > column && at + 1 + wide > width - (int)strlen(mark)) {
            printf("%s\n%*s", mark, column, "");
            at = column;
        }
        at += printf("%s%s", at > column ? " " : "", text_of(&word)) - (int)length + wide;
        from += length + strspn(from + length, " ");
    }
    putchar('\n');
    text_free(&word);
}

void answer_line(const char *label, const char *text, int width)
{
    printf("%-*s", LABEL, label);
    print_wrapped(text, LABEL, width, "");
}

void answer_command(const char *label, const char *command, int width)
{
    printf("%-*s", LABEL, label);
    print_wrapped(command, LABEL, width, " \\");
}

/* "AMD EPYC, 2 cores: 60 results, the newest of 2026-11-18." */
static void print_heading(const struct overview *overview)
{
    const struct overview_machine *machine = &overview->machine;
    const bool shipped = strcmp(machine->source, "shipped") == 0;
    printf("Measured on %s%s: %lld result%s, the newest of %.10s.\n\n", machine->title,
           shipped ? " (shipped with prony)" : "", (long long)machine->results,
           machine->results == 1 ? "" : "s", *overview->newest ? overview->newest : "?");
}

void answer_overview(const struct overview *overview, const char *store_flag, int width)
{
    if (!*overview->machine.server) {
        printf("There is no result yet. To measure for a minute: prony suite demo%s\n", store_flag);
        return;
    }
    print_heading(overview);
    for (size_t i = 0; i < overview->count; i++) {
        printf("%3zu  ", i + 1);
        print_wrapped(text_of(&overview->findings[i].sentence), NUMBER, width, "");
    }
    if (overview->count == 0)
        printf("Nothing can be said of these results yet: they are too few, or nobody checked "
               "them.\n");
}

static enum status print_json(struct text *text)
{
    text_add_char(text, '\n');
    enum status status = text_done(text);
    screen_exact();
    if (status == STATUS_OK)
        fputs(text_of(text), stdout);
    text_free(text);
    return status;
}

enum status answer_overview_json(const struct overview *overview)
{
    struct text text = {0};
    struct json_writer json;
    json_begin(&json, &text);
    overview_write(overview, &json);
    return print_json(&text);
}

enum status answer_json(const struct finding_about *about)
{
    struct text text = {0};
    struct json_writer json;
    enum status status = STATUS_OK;
    json_begin(&json, &text);
    json_object(&json);
    json_key(&json, "model");
    json_add_text(&json, about->model);
    json_key(&json, "answers");
    json_array(&json);
    for (size_t i = 0; i < FINDINGS && status == STATUS_OK; i++) {
        struct finding finding;
        status = finding_ask(about, i, &finding);
        if (status != STATUS_OK)
            break;
        finding_write(&finding, &json);
        finding_free(&finding);
    }
    json_end(&json);
    json_end(&json);
    if (status == STATUS_OK)
        return print_json(&text);
    text_free(&text);
    return status;
}
