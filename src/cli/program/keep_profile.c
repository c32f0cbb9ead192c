/* keep_profile.c: see keep_profile.h. */
#include "cli/program/keep_profile.h"

#include "advise/advise.h"
#include "base/clock.h"
#include "base/memory.h"
#include "cli/program/prove_program.h"
#include "cli/program/trace_output.h"
#include "cli/screen.h"
#include "cli/store_file.h"
#include "cli/table/wrap.h"
#include "record/facts.h"
#include "trace/flame.h"

#include <string.h>

enum { SPANS_MOST = 20000, NODES_MOST = 3000, TRACE_BYTES = 3 << 19 };

/* ---- stacks ---------------------------------------------------------------------------------- */

/* The texts that the tree names, each once: number[text] is its place + 1. */
static void put_name(struct json_writer *json, const struct trace *trace, uint32_t text,
                     uint32_t *number, uint32_t *count)
{
    struct text name = {0}, cut = {0};
    if (number[text])
        return;
    number[text] = ++*count;
    trace_add_name(trace_word(trace, text), &name);
    wrap_add_cut(&cut, text_of(&name), 160);
    json_add_text(json, text_of(&cut));
    json->text->failed |= name.failed || cut.failed;
    text_free(&name);
    text_free(&cut);
}

static void put_nodes(struct json_writer *json, const struct flame *flame, const uint32_t *number)
{
    json_key(json, "nodes");
    json_array(json);
    for (size_t i = 0; i < flame->count; i++) {
        const struct flame_node *node = &flame->nodes[i];
        json_array(json);
        json_add_int(json, node->parent);
        json_add_int(json, number[node->function] - 1);
        json_add_int(json, number[node->file] - 1);
        json_add_int(json, node->self_ns > 0 ? node->self_ns : 0);
        json_end(json);
    }
    json_end(json);
}

static enum status put_flame(struct json_writer *json, const struct trace *trace)
{
    struct flame flame;
    uint32_t *number, count = 0;
    TRY(flame_make(trace, NODES_MOST, &flame));
    if (!(number = mem_array(trace->text_count + 1, sizeof *number))) {
        flame_free(&flame);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    json_key(json, "flame");
    json_object(json);
    json_put_text(json, "of", own_of_name(flame.of));
    json_key(json, "names");
    json_array(json);
    for (size_t i = 0; i < flame.count; i++) {
        put_name(json, trace, flame.nodes[i].function, number, &count);
        put_name(json, trace, flame.nodes[i].file, number, &count);
    }
    json_end(json);
    put_nodes(json, &flame, number);
    json_end(json);
    mem_free(number);
    flame_free(&flame);
    return STATUS_OK;
}

/* ---- excerpt --------------------------------------------------------------------------------- */

/* The last steps, as many as there is room for; without steps, all. Spans stand by their start, so
 * the numbers of two tell how many are between them. */
static void choose_stretch(const struct trace *trace, const struct steps *steps, int64_t *from_ns,
                           int64_t *to_ns)
{
    *from_ns = steps->start_ns;
    *to_ns = steps->end_ns;
    if (!steps->count)
        return;
    size_t first = steps->count - 1;
    while (first && steps->first[steps->count] - steps->first[first - 1] <= SPANS_MOST)
        first--;
    *from_ns = trace->spans[steps->first[first]].start_ns;
}

static enum status put_excerpt(struct json_writer *json, const struct trace *trace,
                               const struct steps *steps)
{
    struct trace part = {0};
    struct text text = {0};
    int64_t from_ns, to_ns;
    enum status status = STATUS_OK;
    choose_stretch(trace, steps, &from_ns, &to_ns);
    for (size_t most = SPANS_MOST; status == STATUS_OK; most /= 2) {
        trace_free(&part);
        text_clear(&text);
        status = trace_excerpt(trace, from_ns, to_ns, most, &part);
        if (status == STATUS_OK)
            trace_write_text(&part, &text);
        if (text.length <= TRACE_BYTES || !most)
            break;
    }
    if (status == STATUS_OK)
        status = text_done(&text);
    if (status == STATUS_OK) {
        json_key(json, "kept");
        json_object(json);
        json_put_int(json, "spans", (int64_t)part.span_count);
        json_put_int(json, "of_spans", (int64_t)trace->span_count);
        json_end(json);
        json_put_text(json, "trace", text_of(&text));
    }
    trace_free(&part);
    text_free(&text);
    return status;
}

/* ---- the record ------------------------------------------------------------------------------ */

static enum status put_profile(struct json_writer *json, const struct trace *trace,
                               const struct keep_wish *wish)
{
    struct advice advice;
    TRY(prove_advise(trace, wish->store, &advice));
    json_key(json, "profile");
    json_object(json);
    json_put_text(json, "command", wish->command);
    if (wish->advise)
        json_put_text(json, "advise", wish->advise);
    enum status status = traced_json_members(json, trace, &advice, wish->title);
    if (status == STATUS_OK)
        status = put_flame(json, trace);
    if (status == STATUS_OK)
        status = put_excerpt(json, trace, &advice.steps);
    json_end(json);
    advice_free(&advice);
    return status;
}

static enum status put_machine(struct json_writer *json)
{
    struct facts facts;
    struct arena arena = {0};
    const struct json *machine, *software;
    facts_find(&facts);
    enum status status = facts_trees(&facts, &arena, &machine, &software);
    if (status == STATUS_OK)
        json_put_tree(json, "machine", machine);
    if (status == STATUS_OK)
        json_put_tree(json, "software", software);
    arena_free(&arena);
    return status;
}

enum status profile_line_write(const struct trace *trace, const struct keep_wish *wish,
                               struct text *out)
{
    char at[CLOCK_STAMP];
    struct json_writer json;
    clock_stamp(at);
    json_begin(&json, out);
    json_object(&json);
    json_put_int(&json, "prony", RECORD_VERSION);
    json_put_text(&json, "kind", "profile");
    TRY(put_profile(&json, trace, wish));
    if (wish->here)
        TRY(put_machine(&json));
    json_put_text(&json, "at", at);
    json_end(&json);
    return text_done(out);
}

/* ---- the store ------------------------------------------------------------------------------- */

struct newest {
    const struct text *line;
    int64_t id; /* 0: it waits for the store, which another program has locked */
};

static enum status look_at_newest(void *context, int64_t id, const char *line, size_t length)
{
    struct newest *newest = context;
    if (length == newest->line->length && !memcmp(line, text_of(newest->line), length))
        newest->id = id;
    return STATUS_OK;
}

static void tell_kept(const struct store *store, const struct newest *newest)
{
    struct text line = {0}, out = {0};
    if (newest->id)
        text_printf(&line, "kept as profile %lld: prony guide%s shows it", (long long)newest->id,
                    store_flag(store));
    else
        text_printf(&line, "it will be kept when the store is free: prony guide%s shows it",
                    store_flag(store));
    wrap_add(&out, "", text_of(&line), screen_width(stderr));
    fputs(text_of(&out), stderr);
    text_free(&line);
    text_free(&out);
}

static enum status file_line(const char *path, const struct text *line)
{
    struct store *store;
    struct arena arena = {0};
    struct record record;
    struct newest newest = {line, 0};
    TRY(store_file_open(path, STORE_WRITE, &store));
    enum status status =
        record_read(&arena, "the profile", 1, text_of(line), line->length, &record);
    if (status == STATUS_OK)
        status = store_keep(store, text_of(line), &record);
    if (status == STATUS_OK)
        status = store_recent(store, "profile", 1, look_at_newest, &newest);
    if (status == STATUS_OK)
        tell_kept(store, &newest);
    store_close(store);
    arena_free(&arena);
    return status;
}

enum status profile_keep(const struct trace *trace, const struct keep_wish *wish)
{
    struct text line = {0};
    enum status status = profile_line_write(trace, wish, &line);
    if (status == STATUS_OK)
        status = file_line(wish->store, &line);
    text_free(&line);
    return status;
}
