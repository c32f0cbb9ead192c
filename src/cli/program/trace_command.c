/* trace_command.c: see trace_command.h. */
#include "cli/program/trace_command.h"

#include "base/file.h"
#include "cli/program/keep_profile.h"
#include "cli/program/prove_program.h"
#include "cli/program/trace_output.h"
#include "cli/screen.h"
#include "record/version.h"
#include "trace/export.h"

#include <stdio.h>

static enum status write_file(const char *path, struct text *text)
{
    enum status status = text_done(text);
    if (status == STATUS_OK)
        status = file_write(path, text_of(text), text->length);
    text_clear(text);
    return status;
}

enum status trace_write_files(const struct trace *trace, const struct trace_wish *wish)
{
    struct text text = {0};
    enum status status = STATUS_OK;
    if (wish->chrome) {
        trace_export_chrome(trace, &text);
        TRY_OR(done, write_file(wish->chrome, &text));
    }
    if (wish->callgrind) {
        char creator[64];
        snprintf(creator, sizeof creator, "prony %s", version_number);
        TRY_OR(done, trace_export_callgrind(trace, creator, &text));
        TRY_OR(done, write_file(wish->callgrind, &text));
    }
    if (wish->folded) {
        TRY_OR(done, trace_export_folded(trace, &text));
        TRY_OR(done, write_file(wish->folded, &text));
    }
done:
    text_free(&text);
    return status;
}

static enum status add_proof(const struct advice *before, const char *path, int width,
                             struct text *out)
{
    struct trace trace;
    struct advice after;
    TRY(trace_read(path, &trace));
    enum status status = advise_budget(&trace, &after);
    if (status == STATUS_OK) {
        advised_proof(before, &after, width, out);
        advice_free(&after);
    }
    trace_free(&trace);
    return status;
}

static enum status print(const struct trace *trace, const struct trace_wish *wish,
                         const struct advice *advice)
{
    const char *title = traced_title(trace, wish->path ? wish->path : "trace");
    const int width = screen_width(stdout);
    struct text out = {0};
    enum status status = wish->json     ? traced_json(trace, advice, title, &out)
                         : wish->advice ? advised_text(trace, advice, title, width, &out)
                                        : traced_text(trace, advice, title, width, &out);
    if (status == STATUS_OK && wish->against)
        status = add_proof(advice, wish->against, width, &out);
    if (status == STATUS_OK)
        status = text_done(&out);
    if (status == STATUS_OK)
        fputs(text_of(&out), stdout);
    text_free(&out);
    return status;
}

enum status trace_show(const struct trace *trace, const struct trace_wish *wish)
{
    struct advice advice;
    TRY(wish->advice || wish->json ? prove_advise(trace, wish->store, &advice)
                                   : advise_budget(trace, &advice));
    enum status status = trace_write_files(trace, wish);
    if (status == STATUS_OK)
        status = print(trace, wish, &advice);
    if (status == STATUS_OK && wish->keep)
        status = profile_keep(trace, &(struct keep_wish){.store = wish->store,
                                                         .title = traced_title(trace, wish->path),
                                                         .command = trace_fact(trace, "command")});
    advice_free(&advice);
    return status;
}

enum status trace_show_file(const struct trace_wish *wish)
{
    struct trace trace;
    TRY(file_check_apart(wish->chrome, wish->path));
    TRY(file_check_apart(wish->callgrind, wish->path));
    TRY(file_check_apart(wish->folded, wish->path));
    TRY(trace_read(wish->path, &trace));
    enum status status = trace_show(&trace, wish);
    trace_free(&trace);
    return status;
}
