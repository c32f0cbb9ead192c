/* explain_model.c: model parallelism: which weights are shared out and how, what a rank has and
 * does, and what is added up over all of them. */
#include "cli/explain/explain_split.h"

#include "cli/table/show_figure.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "core/pass/split_model.h"
#include "train/recipe.h"

#include <string.h>

struct model_view {
    const struct explained *explained;
    const struct split_flags *flags;
    uint64_t across; /* bytes that a rank sums across copies of the network, at most */
    struct split_ranks split;
    int32_t workers;
    double flop;                            /* of one worker alone, a step */
    double least_flop, most_flop;           /* of a rank */
    uint64_t least_params, most_params;     /* numbers that a rank has */
    int32_t reductions;                     /* all-reduces of a step … */
    uint64_t forward_bytes, backward_bytes; /* … and what they add up */
};

static double flop_of(const struct program *program)
{
    double flop = 0;
    for (int32_t o = 0; o < program->op_count; o++)
        flop += (double)op_flop(program, &program->ops[o]);
    return flop;
}

static void count_reductions(struct model_view *view)
{
    const struct program *program = view->split.ranks[0].program;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if (op->kind != OP_all_reduce || op->attr.all_reduce.across)
            continue;
        const uint64_t bytes = program->tensors[op_input(program, op, 0)].bytes;
        view->reductions++;
        *(op->part == PART_FORWARD ? &view->forward_bytes : &view->backward_bytes) += bytes;
    }
}

static void count_ranks(struct model_view *view)
{
    for (int32_t r = 0; r < view->workers; r++) {
        const struct split_rank *rank = &view->split.ranks[r];
        const double flop = flop_of(rank->program);
        const uint64_t params = params_count(&rank->params);
        view->least_flop = !r || flop < view->least_flop ? flop : view->least_flop;
        view->most_flop = flop > view->most_flop ? flop : view->most_flop;
        view->least_params = !r || params < view->least_params ? params : view->least_params;
        view->most_params = params > view->most_params ? params : view->most_params;
    }
    count_reductions(view);
}

/* What an axis of a weight is: dense [in][out], convolutions [out][in][h][w], the rest features. */
static const char *name_axis(const struct entry *entry, int32_t axis)
{
    static const char *const dense[] = {"rows", "columns"};
    static const char *const conv[] = {"output channels", "input channels"};
    if (axis < 0)
        return "all of it on each";
    if (entry->shape.rank == 2)
        return dense[axis];
    if (entry->shape.rank == 4 && axis < 2)
        return conv[axis];
    return "features";
}

/* The rank's entry for one of the network's. */
static int32_t find_entry(const struct split_rank *rank, int32_t entry)
{
    for (int32_t e = 0; e < rank->params.count; e++)
        if (rank->slices[e].entry == entry)
            return e;
    return -1;
}

static void add_row(struct show_table *table, const struct model_view *view, int32_t index)
{
    enum { CELLS = 4 };
    const struct entry *whole = &view->explained->params.entries[index];
    const struct split_rank *first = &view->split.ranks[0];
    const int32_t own = find_entry(first, index);
    const int32_t axis = own < 0 ? -1 : first->slices[own].axis;
    struct text cells[CELLS] = {{0}};
    text_add(&cells[0], whole->name);
    text_add(&cells[1], name_axis(whole, axis));
    text_add_grouped(&cells[2], (uint64_t)shape_count(&whole->shape));
    for (int32_t r = 0; axis >= 0 && r < view->workers; r++) {
        const struct split_rank *rank = &view->split.ranks[r];
        const struct entry *slice = &rank->params.entries[find_entry(rank, index)];
        text_printf(&cells[3], "%s%lld", r ? " + " : "", (long long)slice->shape.dim[axis]);
        if (r == 7 && view->workers > 8) {
            text_add(&cells[3], " + …");
            break;
        }
    }
    show_table_texts(table, cells, CELLS);
}

static void print_table(const struct model_view *view, struct text *out)
{
    struct show_table table = {.width = wrap_screen()};
    const struct params *params = &view->explained->params;
    show_table_column(&table, "parameter", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "shared out by", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "numbers", SHOW_RIGHT, 80, 0);
    show_table_flex(&table, show_table_column(&table, "of each worker", SHOW_LEFT, 70, 0), 14);
    for (int32_t e = 0; e < params->count; e++)
        if (params->entries[e].role == ROLE_PARAM && params->entries[e].shape.rank > 1)
            add_row(&table, view, e);
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

static void add_range(struct text *line, double least, double most)
{
    show_share(line, 100 * least);
    if (most > least * 1.005) {
        text_add(line, " to ");
        show_share(line, 100 * most);
    }
}

/* What a rank sends of what is added up, by a ring. */
static double sent_bytes(const struct model_view *view)
{
    return 2.0 * (view->workers - 1) / view->workers *
           (double)(view->forward_bytes + view->backward_bytes);
}

static void print_text(const struct model_view *view, struct text *out)
{
    struct text line = {0};
    const double params = (double)params_count(&view->explained->params);
    text_printf(&line, "%s, training, batch %d, shared out by model among %d workers, ",
                view->explained->network->name, view->explained->options.batch, view->workers);
    text_add_grouped(&line, params_count(&view->explained->params));
    text_add(&line, " parameters");
    print_line(out, &line);
    text_add_char(out, '\n');
    print_table(view, out);
    text_add_char(out, '\n');
    text_add(&line, "a worker has ");
    add_range(&line, (double)view->least_params / params, (double)view->most_params / params);
    text_add(&line, " of the parameters, and computes ");
    add_range(&line, view->least_flop / view->flop, view->most_flop / view->flop);
    text_add(&line, " of the FLOP");
    print_line(out, &line);
    if (!view->reductions) {
        text_add(&line, "nothing can be shared out: there is no pair of layers with only "
                        "computation by feature in between; --parallelism pipeline or data");
        print_line(out, &line);
        return;
    }
    text_printf(&line, "all-reduces: %d a step, ", view->reductions);
    text_add_size(&line, (double)view->forward_bytes);
    text_add(&line, " forward and ");
    text_add_size(&line, (double)view->backward_bytes);
    text_add(&line, " backward; a worker sends ");
    text_add_size(&line, sent_bytes(view));
    print_line(out, &line);
    explain_split_copies(view->flags, view->explained->options.batch, view->across, out);
}

/* Where the rank's slices lie in the network's parameters. */
static void write_rank(struct json_writer *json, const struct split_rank *rank)
{
    json_object(json);
    json_put_uint(json, "flop", (uint64_t)flop_of(rank->program));
    json_put_uint(json, "parameters", params_count(&rank->params));
    json_put_uint(json, "activation_bytes", rank->program->role_bytes[ROLE_ACTIVATION]);
    json_key(json, "slices");
    json_array(json);
    for (int32_t e = 0; e < rank->params.count; e++) {
        const struct rank_slice *slice = &rank->slices[e];
        if (slice->axis < 0 || rank->params.entries[e].role != ROLE_PARAM)
            continue;
        json_object(json);
        json_put_text(json, "name", rank->params.entries[e].name);
        json_put_uint(json, "axis", (uint64_t)slice->axis);
        json_put_uint(json, "from", (uint64_t)slice->from);
        json_put_uint(json, "count", (uint64_t)rank->params.entries[e].shape.dim[slice->axis]);
        json_end(json);
    }
    json_end(json);
    json_end(json);
}

static void print_json(const struct model_view *view, struct text *out)
{
    struct json_writer json;
    explain_split_begin(view->explained, view->flags, &json, out);
    if (view->flags->copies > 1)
        json_put_uint(&json, "across_bytes", view->across);
    json_put_uint(&json, "all_reduces", (uint64_t)view->reductions);
    json_put_uint(&json, "forward_bytes", view->forward_bytes);
    json_put_uint(&json, "backward_bytes", view->backward_bytes);
    json_put_uint(&json, "sent_bytes", (uint64_t)sent_bytes(view));
    json_key(&json, "ranks");
    json_array(&json);
    for (int32_t r = 0; r < view->workers; r++)
        write_rank(&json, &view->split.ranks[r]);
    json_end(&json);
    explain_split_end(&json, out);
}

enum status explain_model(struct explained *explained, const struct split_flags *flags,
                          bool as_json, struct text *out)
{
    struct model_view view = {
        .explained = explained, .flags = flags, .workers = (int32_t)flags->workers};
    const struct model_options options = {.ranks = view.workers, .own = -1};
    if (explained->step.count > 1)
        FAIL(STATUS_INPUT,
             "%s: found a recipe of %d programs, expected one program: --parallelism data shares "
             "out the others",
             explained->network->name, explained->step.count);
    view.flop = flop_of(explained->program);
    TRY(split_model(explained->program, &explained->params, &options, &view.split));
    enum status status =
        explain_split_across(flags, explained->options.batch, &view.split, &view.across);
    for (int32_t r = 0; r < view.workers && status == STATUS_OK; r++)
        status = explained_smaller(explained, &view.split.ranks[r].program);
    if (status == STATUS_OK) {
        count_ranks(&view);
        if (as_json)
            print_json(&view, out);
        else
            print_text(&view, out);
    }
    split_ranks_free(&view.split);
    return status == STATUS_OK ? text_done(out) : status;
}
