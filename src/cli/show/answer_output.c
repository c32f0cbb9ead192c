/* answer_output.c: see answer_output.h. */
#include "cli/show/answer_output.h"
#include "cli/screen.h"
#include "cli/table/wrap.h"

#include <stdio.h>
#include <string.h>

enum { LEAD = 64 };

/* What was made, to the screen. */
static enum status print_text(struct text *text)
{
    enum status status = text_done(text);
    if (status == STATUS_OK)
        fputs(text_of(text), stdout);
    text_free(text);
    return status;
}

enum status answer_line(const char *label, const char *line, int width)
{
    struct text text = {0};
    char lead[LEAD];
    snprintf(lead, sizeof lead, "%-12s", label);
    wrap_add(&text, lead, line, width);
    return print_text(&text);
}

enum status answer_command(const char *label, const char *command, int width)
{
    struct text text = {0};
    char lead[LEAD];
    snprintf(lead, sizeof lead, "%-12s", label);
    wrap_add_command(&text, lead, command, width);
    return print_text(&text);
}

/* "Measured on AMD EPYC, 2 cores: 60 results, the newest of 2026-11-18." */
static void add_heading(const struct overview *overview, int width, struct text *out)
{
    const struct overview_machine *machine = &overview->machine;
    const bool shipped = strcmp(machine->source, "shipped") == 0;
    struct text line = {0};
    text_printf(&line, "Measured on %s%s: %lld result%s, the newest of %.10s.", machine->title,
                shipped ? " (shipped with prony)" : "", (long long)machine->results,
                machine->results == 1 ? "" : "s", *overview->newest ? overview->newest : "?");
    wrap_add(out, "", text_of(&line), width);
    text_add_char(out, '\n');
    out->failed |= line.failed;
    text_free(&line);
}

enum status answer_overview(const struct overview *overview, const char *store_flag, int width)
{
    static const char none[] = "There is no result yet. To measure this machine:";
    struct text text = {0};
    if (!*overview->machine.server) {
        text_printf(&text, "%s\n    prony suite demo%s\n", none, store_flag);
        return print_text(&text);
    }
    add_heading(overview, width, &text);
    for (size_t i = 0; i < overview->count; i++) {
        char lead[LEAD];
        snprintf(lead, sizeof lead, "%3zu  ", i + 1);
        wrap_add(&text, lead, text_of(&overview->findings[i].sentence), width);
    }
    if (overview->count == 0) {
        wrap_add(&text, "", text_of(&overview->lacking), width);
        if (overview->command.length)
            wrap_add_command(&text, "    ", text_of(&overview->command), width);
    }
    return print_text(&text);
}

/* Byte for byte, for a program. */
static enum status print_json(struct text *text)
{
    text_add_char(text, '\n');
    screen_exact();
    return print_text(text);
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
    json_put_text(&json, "model", about->model);
    json_put_text(&json, "machine", about->machine.title);
    json_put_bool(&json, "shipped", about->machine.shipped);
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
