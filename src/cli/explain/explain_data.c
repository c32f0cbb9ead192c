/* explain_data.c: data parallelism: how many samples a worker takes, and what is added up over all
 * of them. */
#include "cli/explain/explain_split.h"

#include "cli/table/show_figure.h"
#include "cli/table/wrap.h"
#include "core/pass/split_data.h"
#include "record/record.h"
#include "train/recipe.h"

struct data_view {
    const struct explained *explained;
    const struct split_flags *flags;
    int32_t workers, batch, most, least; /* samples: of all, of a worker */
    int32_t programs, reductions;
    uint64_t bytes, activations; /* added up in a step; of the worker with most samples */
    double flop;                 /* of that worker */
};

static void count_program(struct data_view *view, const struct program *program)
{
    view->programs++;
    if (program->role_bytes[ROLE_ACTIVATION] > view->activations)
        view->activations = program->role_bytes[ROLE_ACTIVATION];
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        view->flop += (double)op_flop(program, op);
        view->reductions += op->kind == OP_all_reduce;
        for (int32_t i = 0; op->kind == OP_all_reduce && i < op->inputs; i++)
            view->bytes += program->tensors[op_input(program, op, i)].bytes;
    }
}

/* The programs of the worker with most samples. */
static enum status make_view(struct data_view *view, struct explained *explained)
{
    struct compile_options options = explained->options;
    struct recipe_step step;
    int64_t from, to;
    data_share_range(view->batch, 0, view->workers, &from, &to);
    view->most = (int32_t)(to - from);
    view->least = view->batch / view->workers;
    const struct data_share share = {.samples = view->most, .of = view->batch};
    options.batch = view->most;
    TRY(recipe_compile_stages(explained->network, &explained->params, &options, &step));
    enum status status = STATUS_OK;
    for (int32_t i = 0; i < step.count && status == STATUS_OK; i++) {
        struct program *own = NULL;
        status = split_data(step.programs[i], &share, &own);
        if (status == STATUS_OK)
            status = explained_smaller(explained, &own);
        if (status == STATUS_OK)
            count_program(view, own);
        program_free(own);
    }
    recipe_free(&step);
    return status;
}

/* By a ring. */
static double sent_bytes(const struct data_view *view)
{
    return 2.0 * (view->workers - 1) / view->workers * (double)view->bytes;
}

static void print_line(struct text *out, struct text *line)
{
    wrap_add(out, "", text_of(line), wrap_screen());
    out->failed |= line->failed;
    text_free(line);
}

static void print_text(const struct data_view *view, struct text *out)
{
    struct text line = {0};
    text_printf(&line, "%s, training, batch %d, shared out by data among %d workers, ",
                view->explained->network->name, view->batch, view->workers);
    text_add_grouped(&line, params_count(&view->explained->params));
    text_add(&line, " parameters");
    print_line(out, &line);
    text_add_char(out, '\n');
    if (view->least < view->most)
        text_printf(&line, "a worker takes %d or %d samples of a step", view->least, view->most);
    else
        text_printf(&line, "a worker takes %d samples of a step", view->most);
    text_add(&line, ", has all parameters, and computes ");
    show_scaled(&line, view->flop, "FLOP");
    text_add(&line, "; its activations take ");
    text_add_size(&line, (double)view->activations);
    print_line(out, &line);
    text_printf(&line, "all-reduces: %d a step, ", view->reductions);
    text_add_size(&line, (double)view->bytes);
    text_add(&line, " of gradients and running statistics; a worker sends ");
    text_add_size(&line, sent_bytes(view));
    print_line(out, &line);
}

static void print_json(const struct data_view *view, struct text *out)
{
    struct json_writer json;
    explain_split_begin(view->explained, view->flags, &json, out);
    json_put_uint(&json, "samples", (uint64_t)view->most);
    json_put_uint(&json, "flop", (uint64_t)view->flop);
    json_put_uint(&json, "activation_bytes", view->activations);
    json_put_uint(&json, "all_reduces", (uint64_t)view->reductions);
    json_put_uint(&json, "reduced_bytes", view->bytes);
    json_put_uint(&json, "sent_bytes", (uint64_t)sent_bytes(view));
    explain_split_end(&json, out);
}

enum status explain_data(struct explained *explained, const struct split_flags *flags, bool as_json,
                         struct text *out)
{
    struct data_view view = {.explained = explained,
                             .flags = flags,
                             .workers = (int32_t)flags->workers,
                             .batch = explained->options.batch};
    if (view.workers > view.batch)
        FAIL(STATUS_INPUT,
             "--workers: found %d, expected at most a worker for each of the %d samples "
             "of a batch: --batch %d",
             view.workers, view.batch, view.workers);
    TRY(make_view(&view, explained));
    if (as_json)
        print_json(&view, out);
    else
        print_text(&view, out);
    return text_done(out);
}
