/* explain_split.c: see explain_split.h. The programs of all ranks are made, of parameters without
 * values, and counted. */
#include "cli/explain/explain_split.h"

#include "cli/table/show_figure.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "record/record.h"
#include "train/workers/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MICROS_OF_A_WORKER = 4 }; /* each of one sample, where no batch was asked for */

/* What one rank does in a step. */
struct rank_sum {
    const char *first, *last; /* layers */
    int32_t layers, alive;
    double forward, backward; /* of a micro-batch, in seconds or what ops count */
    uint64_t flop, parameters, sends, activations;
};

struct split_view {
    const struct explained *explained;
    const struct split_flags *flags;
    uint64_t across; /* bytes that a rank sums across copies of the network, at most */
    struct split_ranks split;
    enum pipeline_schedule schedule;
    int32_t workers, micros, batch;
    struct rank_sum *sums;      /* per rank */
    double flop, cost, largest; /* of all ranks; of the slowest */
    double step, bubble, even_bubble;
};

/* What is shown: the least time on one core where its ceilings are known; else FLOP and bytes. */
static double op_cost(const struct explained *explained, const struct program *program,
                      const struct op *op)
{
    if (!(explained->flop_per_s > 0 && explained->read_per_s > 0))
        return split_cost(program, op);
    const double flop_s = (double)op_flop(program, op) / explained->flop_per_s;
    const double bytes_s = (double)op_bytes(program, op) / explained->read_per_s;
    return flop_s > bytes_s ? flop_s : bytes_s;
}

static void count_op(const struct split_view *view, const struct program *program,
                     const struct op *op, struct rank_sum *sum)
{
    const double cost = op_cost(view->explained, program, op);
    const bool passes = op->kind == OP_send || op->kind == OP_receive;
    const uint64_t runs = op->part == PART_UPDATE ? 1 : (uint64_t)view->micros;
    if (passes)
        return;
    sum->flop += runs * op_flop(program, op);
    if (op->part == PART_FORWARD)
        sum->forward += cost;
    if (op->part == PART_BACKWARD)
        sum->backward += cost;
    if (op->part != PART_FORWARD || !*op->layer)
        return;
    sum->layers += !sum->last || strcmp(sum->last, op->layer) != 0;
    sum->last = op->layer;
    if (!sum->first)
        sum->first = op->layer;
}

static void count_rank(const struct split_view *view, int32_t rank, struct rank_sum *sum)
{
    const struct split_rank *own = &view->split.ranks[rank];
    const struct program *program = own->program;
    const unsigned both = PART_BIT(PART_FORWARD) | PART_BIT(PART_BACKWARD);
    for (int32_t o = 0; o < program->op_count; o++)
        count_op(view, program, &program->ops[o], sum);
    sum->alive = pipeline_alive(view->schedule, view->workers, rank, view->micros);
    sum->parameters = params_count(&own->params);
    sum->sends = (uint64_t)view->micros * split_rank_sends(own, both);
    sum->activations = (uint64_t)sum->alive * program->role_bytes[ROLE_ACTIVATION];
}

static enum status count_ranks(struct split_view *view, struct arena *arena)
{
    const size_t workers = (size_t)view->workers;
    double *forward, *backward;
    NEED(view->sums = arena_array(arena, workers, sizeof *view->sums));
    NEED(forward = arena_array(arena, workers, sizeof *forward));
    NEED(backward = arena_array(arena, workers, sizeof *backward));
    for (int32_t r = 0; r < view->workers; r++) {
        struct rank_sum *sum = &view->sums[r];
        count_rank(view, r, sum);
        forward[r] = sum->forward;
        backward[r] = sum->backward;
        const double cost = sum->forward + sum->backward;
        view->flop += (double)sum->flop;
        view->cost += cost;
        view->largest = cost > view->largest ? cost : view->largest;
    }
    view->even_bubble = (double)(view->workers - 1) / (double)(view->micros + view->workers - 1);
    return pipeline_play(view->schedule, view->workers, view->micros, forward, backward,
                         &view->step, &view->bubble);
}

static enum status make_view(struct split_view *view, struct explained *explained,
                             const struct split_flags *flags)
{
    const struct compile_options *options = &explained->options;
    struct pipeline_options pipeline = {.stages = view->workers, .own = -1};
    struct program *program;
    view->batch = options->batch;
    view->micros = flags->sharing.micros ? flags->sharing.micros
                                         : pipeline_usual_micros(view->workers, options->batch);
    pipeline.micros = view->micros;
    TRY(pipeline_compile(explained->network, &explained->params, options, view->micros, &program));
    enum status status = split_pipeline(program, &explained->params, &pipeline, &view->split);
    program_free(program);
    TRY(status);
    TRY(explain_split_across(flags, view->batch, &view->split, &view->across));
    for (int32_t r = 0; r < view->workers; r++)
        TRY(explained_smaller(explained, &view->split.ranks[r].program));
    return count_ranks(view, &view->split.arena);
}

static void add_row(struct show_table *table, const struct split_view *view, int32_t rank)
{
    enum { CELLS = 7 };
    const struct rank_sum *sum = &view->sums[rank];
    struct text cells[CELLS] = {{0}};
    text_printf(&cells[0], "%d", rank + 1);
    text_printf(&cells[1], "%s%s%s", sum->first, sum->layers > 2 ? " … " : " ",
                sum->layers > 1 ? sum->last : "");
    show_share(&cells[2], 100 * (sum->forward + sum->backward) / view->cost);
    show_share(&cells[3], 100 * (double)sum->flop / view->flop);
    text_add_grouped(&cells[4], sum->parameters);
    text_add_size(&cells[5], (double)sum->sends);
    text_add_size(&cells[6], (double)sum->activations);
    show_table_texts(table, cells, CELLS);
}

static void print_table(const struct split_view *view, struct text *out)
{
    struct show_table table = {.width = wrap_screen()};
    show_table_column(&table, "stage", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_flex(&table, show_table_column(&table, "layers", SHOW_LEFT, SHOW_ALWAYS, 0), 16);
    show_table_column(&table, "time", SHOW_RIGHT, 90, 0);
    show_table_column(&table, "FLOP", SHOW_RIGHT, 50, 0);
    show_table_column(&table, "parameters", SHOW_RIGHT, 80, 0);
    show_table_column(&table, "sends", SHOW_RIGHT, 70, 0);
    show_table_column(&table, "activations", SHOW_RIGHT, 60, 0);
    for (int32_t r = 0; r < view->workers; r++)
        add_row(&table, view, r);
    show_table_print(&table, out);
    out->failed |= table.failed;
    show_table_free(&table);
}

static void print_line(struct text *out, struct text *line)
{
    wrap_add(out, "", text_of(line), wrap_screen());
    out->failed |= line->failed;
    text_free(line);
}

static void print_sums(const struct split_view *view, struct text *out)
{
    struct text line = {0};
    text_add(&line, "bubble: stages wait for ");
    show_share(&line, 100 * view->bubble);
    text_add(&line, " of a step; for ");
    show_share(&line, 100 * view->even_bubble);
    text_printf(&line,
                " if all took as long: (p-1)/(m+p-1) with p = %d stages and m = %d "
                "micro-batches",
                view->workers, view->micros);
    print_line(out, &line);
    text_printf(&line, "balance: the slowest stage takes %.2f × the mean",
                view->largest * view->workers / view->cost);
    print_line(out, &line);
    text_printf(&line,
                "time: share of the least time of a micro-batch%s; FLOP and sends: of a step; "
                "activations: of the ",
                view->explained->flop_per_s > 0 ? " on this machine"
                                                : ", by FLOP and bytes (prony machine --calibrate "
                                                  "finds it for this machine)");
    const int32_t fewest = view->sums[view->workers - 1].alive, most = view->sums[0].alive;
    if (fewest < most)
        text_printf(&line, "%d to ", fewest);
    text_printf(&line, "%d micro-batches that a stage keeps at once", most);
    print_line(out, &line);
}

static void print_text(const struct split_view *view, struct text *out)
{
    struct text title = {0};
    text_printf(&title, "%s, training, batch %d in %d micro-batches, pipeline of %d stages, %s, ",
                view->explained->network->name, view->batch, view->micros, view->workers,
                pipeline_schedule_name(view->schedule));
    text_add_grouped(&title, params_count(&view->explained->params));
    text_add(&title, " parameters");
    print_line(out, &title);
    text_add_char(out, '\n');
    print_table(view, out);
    text_add_char(out, '\n');
    print_sums(view, out);
    explain_split_copies(view->flags, view->batch, view->across, out);
}

static void write_layers(struct json_writer *json, const struct program *program)
{
    const char *last = "";
    json_key(json, "layers");
    json_array(json);
    for (int32_t o = program->parts[PART_FORWARD].from; o < program->parts[PART_FORWARD].to; o++) {
        const struct op *op = &program->ops[o];
        if (op->kind == OP_receive || !*op->layer || strcmp(op->layer, last) == 0)
            continue;
        last = op->layer;
        json_add_text(json, last);
    }
    json_end(json);
}

static void write_rank(struct json_writer *json, const struct split_view *view, int32_t rank)
{
    const struct rank_sum *sum = &view->sums[rank];
    const struct program *program = view->split.ranks[rank].program;
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, program->hash);
    json_object(json);
    json_put_uint(json, "stage", (uint64_t)rank + 1);
    json_put_text(json, "program", hash);
    write_layers(json, program);
    json_put_real(json, "time_share", (sum->forward + sum->backward) / view->cost);
    json_put_uint(json, "flop", sum->flop);
    json_put_uint(json, "parameters", sum->parameters);
    json_put_uint(json, "sent_bytes", sum->sends);
    json_put_uint(json, "alive", (uint64_t)sum->alive);
    json_put_uint(json, "activation_bytes", sum->activations);
    json_end(json);
}

enum status explain_split_settle(struct split_flags *flags, int64_t *batch)
{
    struct sharing *sharing = &flags->sharing;
    const int workers = (int)flags->workers;
    TRY(sharing_read(&flags->said, PARALLEL_PIPELINE, sharing));
    TRY(sharing_check(sharing, workers, "--workers", *batch));
    flags->copies = sharing->copied ? sharing_copies_of(sharing, workers) : 1;
    flags->workers /= flags->copies;
    *batch = *batch ? *batch / flags->copies
                    : (sharing->micros ? sharing->micros : MICROS_OF_A_WORKER * flags->workers);
    return STATUS_OK;
}

enum status explain_split_across(const struct split_flags *flags, int32_t batch,
                                 struct split_ranks *split, uint64_t *bytes)
{
    const struct data_share share = {.samples = batch,
                                     .of = batch * flags->copies,
                                     .across = true,
                                     .accumulated =
                                         flags->sharing.parallelism == PARALLEL_PIPELINE};
    *bytes = 0;
    for (int32_t r = 0; flags->copies > 1 && r < split->count; r++) {
        uint64_t own = 0;
        TRY(split_rank_share(&split->ranks[r], &share));
        const struct program *program = split->ranks[r].program;
        for (int32_t o = 0; o < program->op_count; o++) {
            const struct op *op = &program->ops[o];
            const bool across = op->kind == OP_all_reduce && op->attr.all_reduce.across;
            for (int32_t i = 0; across && i < op->inputs; i++)
                own += program->tensors[op_input(program, op, i)].bytes;
        }
        *bytes = own > *bytes ? own : *bytes;
    }
    return STATUS_OK;
}

void explain_split_copies(const struct split_flags *flags, int32_t batch, uint64_t bytes,
                          struct text *out)
{
    struct text line = {0};
    if (flags->copies < 2)
        return;
    text_printf(&line,
                "copies: this is one of %d, each takes %d samples of a step; a worker sums "
                "at most ",
                flags->copies, batch);
    text_add_size(&line, (double)bytes);
    text_add(&line, " of gradients and running statistics with those that have the same part, and "
                    "sends ");
    text_add_size(&line, 2.0 * (flags->copies - 1) / flags->copies * (double)bytes);
    print_line(out, &line);
}

void explain_split_begin(const struct explained *explained, const struct split_flags *flags,
                         struct json_writer *json, struct text *out)
{
    json_begin(json, out);
    json_object(json);
    json_put_int(json, "prony", RECORD_VERSION);
    json_put_text(json, "kind", "split");
    json_key(json, "split");
    json_object(json);
    json_put_text(json, "model", explained->network->name);
    json_put_text(json, "phase", "training");
    json_put_text(json, "parallelism", sharing_name(&flags->sharing));
    json_put_uint(json, "workers", (uint64_t)(flags->workers * flags->copies));
    if (flags->copies > 1)
        json_put_uint(json, "copies", (uint64_t)flags->copies);
    json_put_uint(json, "batch", (uint64_t)explained->options.batch * (uint64_t)flags->copies);
    json_put_uint(json, "parameters", params_count(&explained->params));
}

void explain_split_end(struct json_writer *json, struct text *out)
{
    json_end(json);
    json_end(json);
    text_add(out, "\n");
}

static void print_json(const struct split_view *view, struct text *out)
{
    struct json_writer json;
    explain_split_begin(view->explained, view->flags, &json, out);
    if (view->flags->copies > 1)
        json_put_uint(&json, "across_bytes", view->across);
    json_put_text(&json, "schedule", pipeline_schedule_name(view->schedule));
    json_put_uint(&json, "micro_batches", (uint64_t)view->micros);
    json_put_real(&json, "bubble", view->bubble);
    json_put_real(&json, "even_bubble", view->even_bubble);
    json_put_real(&json, "slowest_to_mean", view->largest * view->workers / view->cost);
    json_key(&json, "ranks");
    json_array(&json);
    for (int32_t r = 0; r < view->workers; r++)
        write_rank(&json, view, r);
    json_end(&json);
    explain_split_end(&json, out);
}

static enum status explain_pipeline(struct explained *explained, const struct split_flags *flags,
                                    bool as_json, struct text *out)
{
    struct split_view view = {.explained = explained,
                              .flags = flags,
                              .workers = (int32_t)flags->workers,
                              .schedule = flags->sharing.schedule};
    enum status status = make_view(&view, explained, flags);
    if (status == STATUS_OK && as_json)
        print_json(&view, out);
    else if (status == STATUS_OK)
        print_text(&view, out);
    split_ranks_free(&view.split);
    return status == STATUS_OK ? text_done(out) : status;
}

enum status explain_split(struct explained *explained, const struct split_flags *flags,
                          bool as_json, struct text *out)
{
    switch (flags->sharing.parallelism) {
    case PARALLEL_MODEL: return explain_model(explained, flags, as_json, out);
    case PARALLEL_DATA: return explain_data(explained, flags, as_json, out);
    case PARALLEL_SERVER:
    case PARALLEL_ASYNC_SERVER: return explain_server(explained, flags, as_json, out);
    default: return explain_pipeline(explained, flags, as_json, out);
    }
}
