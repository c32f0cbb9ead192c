/* explain_server.c: a parameter server: which samples a worker takes, which parameters a server
 * has, and what goes back and forth. */
#include "cli/explain/explain_split.h"

#include "cli/table/show_figure.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "core/pass/split_data.h"
#include "core/pass/split_server.h"
#include "train/recipe.h"

struct server_view {
    const struct explained *explained;
    const struct split_flags *flags;
    struct split_ranks split;
    bool alone;
    int32_t servers, workers, batch, most, least; /* workers that compute; their samples */
};

static double flop_of(const struct program *program)
{
    double flop = 0;
    for (int32_t o = 0; o < program->op_count; o++)
        flop += (double)op_flop(program, &program->ops[o]);
    return flop;
}

/* The programs of the worker with most samples, and of the servers. */
static enum status make_view(struct server_view *view, struct explained *explained)
{
    struct compile_options options = explained->options;
    struct recipe_step step;
    int64_t from, to;
    data_share_range(view->batch, 0, view->workers, &from, &to);
    view->most = options.batch = (int32_t)(to - from);
    view->least = view->batch / view->workers;
    const struct server_options server = {.ranks = view->workers + view->servers,
                                          .servers = view->servers,
                                          .own = -1,
                                          .samples = view->most,
                                          .of = view->batch,
                                          .alone = view->alone};
    TRY(recipe_compile(explained->network, &explained->params, &options, &step));
    enum status status = split_server(step.programs[0], &explained->params, &server, &view->split);
    recipe_free(&step);
    for (int32_t r = 0; r < view->split.count && status == STATUS_OK; r++)
        status = explained_smaller(explained, &view->split.ranks[r].program);
    return status;
}

/* What a step of all workers makes the rank send. */
static uint64_t sent_bytes(const struct server_view *view, int32_t rank)
{
    const bool answers = view->alone && rank >= view->workers; /* each worker apart */
    return split_rank_sends(&view->split.ranks[rank], PARTS_ALL) *
           (uint64_t)(answers ? view->workers : 1);
}

static void print_line(struct text *out, struct text *line)
{
    wrap_add(out, "", text_of(line), wrap_screen());
    out->failed |= line->failed;
    text_free(line);
}

/* "dense1.weight, dense1.bias … conv1.weight (62)" */
static void add_names(struct text *out, const struct params *params)
{
    enum { SHOWN = 2 };
    const char *last = "";
    int32_t count = 0;
    for (int32_t e = 0; e < params->count; e++) {
        if (params->entries[e].role != ROLE_PARAM)
            continue;
        last = params->entries[e].name;
        if (count < SHOWN)
            text_printf(out, "%s%s", count ? ", " : "", last);
        count++;
    }
    if (count > SHOWN + 1)
        text_printf(out, " … %s (%d)", last, count);
    else if (count > SHOWN)
        text_printf(out, ", %s", last);
}

static void add_row(struct show_table *table, const struct server_view *view, int32_t server)
{
    enum { CELLS = 5 };
    const struct split_rank *rank = &view->split.ranks[view->workers + server];
    struct text cells[CELLS] = {{0}};
    text_printf(&cells[0], "%d", server + 1);
    add_names(&cells[1], &rank->params);
    text_add_grouped(&cells[2], params_count(&rank->params));
    text_add_size(&cells[3], (double)(rank->params.blocks[ROLE_PARAM].bytes +
                                      rank->params.blocks[ROLE_STATISTIC].bytes +
                                      rank->params.blocks[ROLE_STATE].bytes));
    text_add_size(&cells[4], (double)sent_bytes(view, view->workers + server));
    show_table_texts(table, cells, CELLS);
}

static void print_table(const struct server_view *view, struct text *out)
{
    struct show_table table = {.width = wrap_screen()};
    show_table_column(&table, "server", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_flex(&table, show_table_column(&table, "has", SHOW_LEFT, SHOW_ALWAYS, 0), 16);
    show_table_column(&table, "parameters", SHOW_RIGHT, 80, 0);
    show_table_column(&table, "keeps", SHOW_RIGHT, 60, 0);
    show_table_column(&table, "sends", SHOW_RIGHT, 70, 0);
    for (int32_t s = 0; s < view->servers; s++)
        add_row(&table, view, s);
    show_table_print(&table, out);
    out->failed |= table.failed;
    show_table_free(&table);
}

static void print_text(const struct server_view *view, struct text *out)
{
    struct text line = {0};
    const struct split_rank *worker = &view->split.ranks[0];
    text_printf(&line, "%s, training, batch %d, %s parameter server: %d %s and %d %s, ",
                view->explained->network->name, view->batch,
                view->alone ? "asynchronous" : "synchronous", view->workers,
                view->workers == 1 ? "worker" : "workers", view->servers,
                view->servers == 1 ? "server" : "servers");
    text_add_grouped(&line, params_count(&view->explained->params));
    text_add(&line, " parameters");
    print_line(out, &line);
    text_add_char(out, '\n');
    print_table(view, out);
    text_add_char(out, '\n');
    if (view->least < view->most)
        text_printf(&line, "a worker takes %d or %d samples of a step", view->least, view->most);
    else
        text_printf(&line, "a worker takes %d samples of a step", view->most);
    text_add(&line, ", computes ");
    show_scaled(&line, flop_of(worker->program), "FLOP");
    text_add(&line, " and sends ");
    text_add_size(&line, (double)sent_bytes(view, 0));
    text_printf(&line, "; %s",
                view->alone ? "each worker's gradient is an update of its own, as it comes"
                            : "an update is by the gradients of all of them");
    print_line(out, &line);
}

static void print_json(const struct server_view *view, struct text *out)
{
    struct json_writer json;
    explain_split_begin(view->explained, view->flags, &json, out);
    json_put_uint(&json, "servers", (uint64_t)view->servers);
    json_put_uint(&json, "samples", (uint64_t)view->most);
    json_key(&json, "ranks");
    json_array(&json);
    for (int32_t r = 0; r < view->split.count; r++) {
        const struct split_rank *rank = &view->split.ranks[r];
        json_object(&json);
        json_put_text(&json, "does", r < view->workers ? "compute" : "serve");
        json_put_uint(&json, "flop", (uint64_t)flop_of(rank->program));
        json_put_uint(&json, "parameters", params_count(&rank->params));
        json_put_uint(&json, "sent_bytes", sent_bytes(view, r));
        json_put_uint(&json, "activation_bytes", rank->program->role_bytes[ROLE_ACTIVATION]);
        json_end(&json);
    }
    json_end(&json);
    explain_split_end(&json, out);
}

enum status explain_server(struct explained *explained, const struct split_flags *flags,
                           bool as_json, struct text *out)
{
    const struct sharing *sharing = &flags->sharing;
    struct server_view view = {.explained = explained,
                               .flags = flags,
                               .alone = sharing->parallelism == PARALLEL_ASYNC_SERVER,
                               .servers = sharing->servers,
                               .workers = (int32_t)flags->workers - sharing->servers,
                               .batch = explained->options.batch};
    TRY(sharing_check_servers(sharing, (int)flags->workers));
    if (view.workers > view.batch)
        FAIL(STATUS_INPUT,
             "--workers: found %d that compute, expected at most one for each of the %d samples of "
             "a batch: --batch %d",
             view.workers, view.batch, view.workers);
    if (explained->step.count > 1)
        FAIL(STATUS_INPUT,
             "%s: found a recipe of %d programs, expected one program: --parallelism data shares "
             "out the others",
             explained->network->name, explained->step.count);
    enum status status = make_view(&view, explained);
    if (status == STATUS_OK && as_json)
        print_json(&view, out);
    else if (status == STATUS_OK)
        print_text(&view, out);
    split_ranks_free(&view.split);
    return status == STATUS_OK ? text_done(out) : status;
}
