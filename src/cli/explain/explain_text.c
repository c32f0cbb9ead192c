/* explain_text.c: a program as a table that fits its reader: an op a row, then sums, memory, and
 * the three largest costs. */
#include "cli/explain/explained.h"
#include "cli/show/top_costs.h"
#include "cli/table/show_figure.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"
#include "core/pass/quantise.h"

#include <inttypes.h>
#include <string.h>

static void add_attribute(void *context, const char *name, const char *value)
{
    if (strcmp(value, "0") && strcmp(value, "none"))
        text_printf(context, " %s=%s", name, value);
}

static void add_operands(const struct program *program, const int32_t *operands, int32_t count,
                         struct text *out)
{
    for (int32_t i = 0, printed = 0; i < count; i++)
        if (operands[i] >= 0)
            text_printf(out, "%s%s", printed++ ? ", " : "", program->tensors[operands[i]].name);
}

/* The op as a line of code: "y = dense(x, w, b) activation=relu". */
static void print_call(const struct program *program, const struct op *op, struct text *out)
{
    const int32_t *operands = program->operands + op->first;
    if (op->outputs) {
        add_operands(program, operands + op->inputs, op->outputs, out);
        text_add(out, " = ");
    }
    text_printf(out, "%s(", op_name(op->kind));
    add_operands(program, operands, op->inputs, out);
    text_add(out, ")");
    op_attributes(op, add_attribute, out);
}

/* The shape of the first thing the op writes, or reads when it writes nothing. */
static void print_shape(const struct program *program, const struct op *op, struct text *out)
{
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int32_t operand =
            program->operands[op->first + (i + op->inputs) % (op->inputs + op->outputs)];
        if (operand >= 0) {
            shape_print(&program->tensors[operand].shape, out);
            return;
        }
    }
}

/* The kernel and, when it is several launches a step, how many: "gemm_f32_cuda ×2". */
static void print_kernel(const struct explained *explained, int32_t o, struct text *out)
{
    const struct kernel_use *use = explained_kernel(explained, o);
    if (!explained->plan)
        return;
    text_add(out, use ? use->kernel : "(with another op)");
    if (use && use->launches > 1)
        text_printf(out, " ×%d", use->launches);
}

static void add_op(struct show_table *table, const struct explained *explained, int32_t o)
{
    enum { CELLS = 6 };
    const struct program *program = explained->program;
    const struct op *op = &program->ops[o];
    const uint64_t flop = op_flop(program, op), bytes = op_bytes(program, op);
    struct text cells[CELLS] = {{0}};
    show_rate(&cells[0], (double)flop);
    show_rate(&cells[1], (double)bytes);
    text_printf(&cells[2], "%.2f", explained_intensity(flop, bytes));
    print_shape(program, op, &cells[3]);
    print_kernel(explained, o, &cells[4]);
    print_call(program, op, &cells[5]);
    show_table_row(table,
                   (const char *const[]){part_name(op->part), text_of(&cells[3]),
                                         text_of(&cells[0]), text_of(&cells[1]), text_of(&cells[2]),
                                         text_of(&cells[4]), text_of(&cells[5]), op->made_by});
    show_table_spend(table, cells, CELLS);
}

static void print_ops(const struct explained *explained, struct text *out)
{
    enum { CALL_LEAST = 30 };
    struct show_table table = {.width = wrap_screen()};
    show_table_column(&table, "part", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(&table, "shape", SHOW_LEFT, 60, 0);
    show_table_column(&table, "FLOP", SHOW_RIGHT, 90, 0);
    show_table_column(&table, "bytes", SHOW_RIGHT, 80, 0);
    show_table_column(&table, "FLOP/byte", SHOW_RIGHT, 20, 0);
    show_table_column(&table, "kernel", SHOW_LEFT, 85, 0);
    int call = show_table_column(&table, "op", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_flex(&table, call, CALL_LEAST);
    show_table_column(&table, "made of", SHOW_LEFT, 10, 0);
    for (int32_t o = 0; o < explained->program->op_count; o++)
        add_op(&table, explained, o);
    show_table_print(&table, out);
    out->failed |= table.failed;
    show_table_free(&table);
}

static void add_total(struct show_table *table, const struct explained *explained, const char *name,
                      const struct part_total *total)
{
    enum { CELLS = 6 };
    struct text cells[CELLS] = {{0}};
    text_printf(&cells[0], "%d", total->ops);
    show_rate(&cells[1], (double)total->flop);
    show_rate(&cells[2], (double)total->flop / 2);
    show_rate(&cells[3], (double)total->bytes);
    text_printf(&cells[4], "%.2f", explained_intensity(total->flop, total->bytes));
    if (explained->plan)
        text_printf(&cells[5], "%d", total->launches);
    show_table_row(table, (const char *const[]){name, text_of(&cells[0]), text_of(&cells[1]),
                                                text_of(&cells[2]), text_of(&cells[3]),
                                                text_of(&cells[4]), text_of(&cells[5])});
    show_table_spend(table, cells, CELLS);
}

/* How one kernel, or a few, run all ops. */
static void print_way(const struct explained *explained, int32_t launches, struct text *out)
{
    static const char *const ways[] = {
        [ANSWER_STEPS] = "one kernel runs all of these ops together, many steps in one launch",
        [ANSWER_CALLS] = "all of these ops run together, a call at a time",
        [ANSWER_RESIDENT] = "one kernel stays and answers all calls",
        [ANSWER_QUEUED] = "all of these ops run together, calls following each other"};
    const bool gpu = explained->plan && strcmp(explained->backend->unit, "gpu") == 0;
    const bool stays = explained->answering == ANSWER_QUEUED && gpu && !launches;
    if (explained_together(explained))
        text_printf(out, "%s\n",
                    stays ? "one launch answers all calls that follow each other"
                          : ways[explained->answering]);
    else if (explained->plan && explained->program->whole)
        text_add(out, "op by op: the kernel for whole steps answers no calls\n");
}

static void print_totals(const struct explained *explained, struct text *out)
{
    static const char *const headings[] = {"ops",   "FLOP",      "multiply-adds",
                                           "bytes", "FLOP/byte", "launches"};
    struct show_table table = {.width = wrap_screen()};
    struct part_total all = {0};
    show_table_column(&table, "part", SHOW_LEFT, SHOW_ALWAYS, 0);
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        show_table_column(&table, headings[i], SHOW_RIGHT, 50, 0);
    for (int part = 0; part < PART_COUNT; part++) {
        struct part_total total = explained_total(explained, (enum part)part);
        if (total.ops)
            add_total(&table, explained, part_name((enum part)part), &total);
        all.ops += total.ops;
        all.launches += total.launches;
        all.flop += total.flop;
        all.bytes += total.bytes;
    }
    add_total(&table, explained, "all", &all);
    text_add(out, "\n");
    show_table_print(&table, out);
    out->failed |= table.failed;
    show_table_free(&table);
    text_add(out, "\n");
    print_way(explained, all.launches, out);
}

static void print_sentence(struct text *out, const char *lead, const char *sentence)
{
    struct text line = {0};
    text_printf(&line, "%s%s", lead, sentence);
    wrap_add(out, "", text_of(&line), wrap_screen());
    out->failed |= line.failed;
    text_free(&line);
}

/* Why a kernel and no other, once for each. */
static void print_reasons(const struct explained *explained, struct text *out)
{
    for (int32_t o = 0; o < explained->program->op_count; o++) {
        const struct kernel_use *use = explained_kernel(explained, o);
        bool told = !use || !use->why;
        for (int32_t i = 0; i < o && !told; i++) {
            const struct kernel_use *other = explained_kernel(explained, i);
            told = other && other->why && strcmp(other->kernel, use->kernel) == 0 &&
                   strcmp(other->why, use->why) == 0;
        }
        struct text lead = {0};
        text_printf(&lead, "%s: ", told ? "" : use->kernel);
        if (!told)
            print_sentence(out, text_of(&lead), use->why);
        text_free(&lead);
    }
}

static void print_memory(const struct explained *explained, struct text *out)
{
    const struct program *program = explained->program;
    struct text line = {0};
    uint64_t all = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        all += explained_bytes(explained, (enum role)role);
    text_add_size(&line, (double)all);
    for (int role = 0; role < ROLE_COUNT; role++) {
        uint64_t bytes = explained_bytes(explained, (enum role)role);
        if (bytes) {
            text_printf(&line, ", %s ", role_name((enum role)role));
            text_add_size(&line, (double)bytes);
        }
    }
    if (program->activation_bytes_unshared > program->role_bytes[ROLE_ACTIVATION]) {
        text_add(&line, "; at most ");
        text_add_size(&line, (double)program->role_bytes[ROLE_ACTIVATION]);
        text_add(&line, " of ");
        text_add_size(&line, (double)program->activation_bytes_unshared);
        text_add(&line, " activations are alive at once");
    }
    wrap_add(out, "memory: ", text_of(&line), wrap_screen());
    out->failed |= line.failed;
    text_free(&line);
}

/* What it takes beside the parameters, and computes, instead of what it would. */
static void print_recompute(const struct explained *explained, struct text *out)
{
    const struct need without = explained->without, now = explained_need(explained);
    struct text line = {0};
    if (!explained->recompute)
        return;
    if (now.bytes >= without.bytes) {
        text_add(&line, "nothing to win: what is kept takes no less");
    } else {
        text_add_size(&line, (double)now.bytes);
        text_add(&line, " instead of ");
        text_add_size(&line, (double)without.bytes);
        text_add(&line, " beside the parameters, for ");
        show_flop(&line, (double)(now.flop - without.flop));
        text_add(&line, " more (");
        show_share(&line, 100 * (double)(now.flop - without.flop) / (double)without.flop);
        text_add(&line, ")");
    }
    print_sentence(out, "recompute: ", text_of(&line));
    out->failed |= line.failed;
    text_free(&line);
}

/* What this machine's ceilings make of an op, or its FLOP where they are not known. */
static struct top_cost cost_of(const struct explained *explained, int32_t o)
{
    const struct program *program = explained->program;
    const struct op *op = &program->ops[o];
    struct top_cost cost = {.program = program, .op = op, .size = (double)op_flop(program, op)};
    if (explained->flop_per_s > 0 && explained->read_per_s > 0) {
        double flop_ns = cost.size / explained->flop_per_s * 1e9;
        double bytes_ns = (double)op_bytes(program, op) / explained->read_per_s * 1e9;
        cost.bound = flop_ns > bytes_ns ? "flop" : "bytes";
        cost.size = flop_ns > bytes_ns ? flop_ns : bytes_ns;
    }
    return cost;
}

static void add_cost(const struct top_costs *costs, int i, struct text *line)
{
    const struct top_cost *cost = &costs->list[i];
    const double flop = (double)op_flop(cost->program, cost->op);
    top_cost_name(cost, line);
    text_add(line, ": ");
    show_share(line, 100 * cost->size / costs->all);
    if (cost->bound) {
        text_add(line, " of the least time, set by ");
        top_cost_bound(cost, line);
    } else {
        text_add(line, " of the FLOP (");
        show_flop(line, flop);
        text_printf(line, "), %.2g FLOP a byte",
                    explained_intensity((uint64_t)flop, op_bytes(cost->program, cost->op)));
    }
}

/* The three largest, and what bounds them. */
static void print_costs(const struct explained *explained, struct text *out)
{
    struct top_costs costs = {0};
    for (int32_t o = 0; o < explained->program->op_count; o++) {
        const struct top_cost cost = cost_of(explained, o);
        top_costs_add(&costs, &cost);
    }
    top_costs_print(&costs, add_cost, out);
    if (costs.count && !costs.list[0].bound)
        wrap_add(out, "", "prony machine --calibrate finds what bounds them on this machine",
                 wrap_screen());
}

/* Of a file of 8 bits: which of its products are in integers, and why others are not. */
static void print_integers(const struct explained *explained, struct text *out)
{
    const struct quantisation *how = explained->network->rounds;
    const struct program *program = explained->program;
    int32_t count = 0;
    struct text line = {0};
    if (!how)
        return;
    for (int32_t o = 0; o < program->op_count; o++)
        count += program->ops[o].kind == OP_dense_int8 || program->ops[o].kind == OP_conv_int8;
    text_printf(&line, "in integers, on the file's own scales: %d of %d layers of products", count,
                count + how->keep_count);
    print_sentence(out, "", text_of(&line));
    text_free(&line);
    for (int32_t i = 0; i < how->keep_count; i++) {
        text_printf(&line, "%s: ", how->keep[i]);
        print_sentence(out, text_of(&line), how->why[i]);
        text_free(&line);
    }
}

void explained_text(const struct explained *explained, struct text *out)
{
    const struct program *program = explained->program;
    struct text title = {0};
    text_printf(&title, "%s, %s, batch %d, ", program->name, explained->phase,
                program->batch * program->portions);
    text_add_grouped(&title, params_count(&explained->params));
    text_printf(&title, " parameters, program %016" PRIx64, program->hash);
    wrap_add(out, "", text_of(&title), wrap_screen());
    out->failed |= title.failed;
    text_free(&title);
    if (explained->network->rounded)
        print_sentence(out, "", explained->network->rounded);
    print_integers(explained, out);
    text_add_char(out, '\n');
    print_ops(explained, out);
    print_totals(explained, out);
    if (program->op_by_op)
        print_sentence(out, "op by op: ", program->op_by_op);
    if (program->portions > 1)
        text_printf(out, "runs in %d portions of %d samples, one after the other\n",
                    program->portions, program->batch);
    print_reasons(explained, out);
    print_memory(explained, out);
    print_recompute(explained, out);
    print_costs(explained, out);
}
