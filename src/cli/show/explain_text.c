/* explain_text.c: a program as a table that fits its reader: an op a line, then sums and memory. */
#include "cli/show/explained.h"
#include "record/tables/table.h"

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

static void print_op(const struct explained *explained, int32_t o, struct text *out)
{
    const struct program *program = explained->program;
    const struct op *op = &program->ops[o];
    struct text shape = {0}, kernel = {0}, call = {0};
    print_shape(program, op, &shape);
    print_kernel(explained, o, &kernel);
    print_call(program, op, &call);
    uint64_t flop = op_flop(program, op), bytes = op_bytes(program, op);
    text_printf(out, "  %-9s %s%*s %12" PRIu64 " %12" PRIu64 " %7.2f  %s%*s %s%s%s%s\n",
                part_name(op->part), text_of(&shape), 20 - (int)table_width(text_of(&shape)), "",
                flop, bytes, explained_intensity(flop, bytes), text_of(&kernel),
                explained->plan ? 24 - (int)table_width(text_of(&kernel)) : 0, "", text_of(&call),
                *op->made_by ? "   [" : "", op->made_by, *op->made_by ? "]" : "");
    text_free(&shape);
    text_free(&kernel);
    text_free(&call);
}

static void print_total(const struct explained *explained, const char *name,
                        const struct part_total *total, struct text *out)
{
    text_printf(out, "  %-9s %4d ops%12s %12" PRIu64 " %12" PRIu64 " %7.2f", name, total->ops, "",
                total->flop, total->bytes, explained_intensity(total->flop, total->bytes));
    if (explained->plan)
        text_printf(out, "  %d launches", total->launches);
    text_add(out, "\n");
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
        text_printf(out, "  %s\n",
                    stays ? "one launch answers all calls that follow each other"
                          : ways[explained->answering]);
    else if (explained->plan && explained->program->whole)
        text_add(out, "  op by op: what runs its steps whole answers no calls\n");
}

static void print_totals(const struct explained *explained, struct text *out)
{
    struct part_total all = {0};
    text_add(out, "\n");
    for (int part = 0; part < PART_COUNT; part++) {
        struct part_total total = explained_total(explained, (enum part)part);
        if (total.ops)
            print_total(explained, part_name((enum part)part), &total, out);
        all.ops += total.ops;
        all.launches += total.launches;
        all.flop += total.flop;
        all.bytes += total.bytes;
    }
    print_total(explained, "all", &all, out);
    print_way(explained, all.launches, out);
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
        if (!told)
            text_printf(out, "  %s: %s\n", use->kernel, use->why);
    }
}

static void print_memory(const struct explained *explained, struct text *out)
{
    const struct program *program = explained->program;
    uint64_t all = 0;
    text_add(out, "\n  memory  ");
    for (int role = 0; role < ROLE_COUNT; role++) {
        uint64_t bytes = explained_bytes(explained, (enum role)role);
        all += bytes;
        if (bytes) {
            text_printf(out, "%s ", role_name((enum role)role));
            text_add_size(out, (double)bytes);
            text_add(out, "   ");
        }
    }
    text_add(out, "together ");
    text_add_size(out, (double)all);
    text_add(out, "\n");
    if (program->activation_bytes_unshared > program->role_bytes[ROLE_ACTIVATION]) {
        text_add(out, "          at most ");
        text_add_size(out, (double)program->role_bytes[ROLE_ACTIVATION]);
        text_add(out, " of activations are alive at once; all of them are ");
        text_add_size(out, (double)program->activation_bytes_unshared);
        text_add(out, "\n");
    }
}

void explained_text(const struct explained *explained, struct text *out)
{
    const struct program *program = explained->program;
    text_printf(out, "%s, batch %d, %s: ", program->name, program->batch * program->portions,
                explained->phase);
    text_add_grouped(out, params_count(&explained->params));
    text_printf(out, " parameters; program %016" PRIx64 "\n", program->hash);
    if (explained->network->rounded)
        text_printf(out, "  %s\n", explained->network->rounded);
    text_printf(out, "\n  %-9s %-20s %12s %12s %7s  %-*s %s\n", "part", "shape", "FLOP", "bytes",
                "F/B", explained->plan ? 24 : 0, explained->plan ? "kernel" : "", "op");
    for (int32_t o = 0; o < program->op_count; o++)
        print_op(explained, o, out);
    print_totals(explained, out);
    if (program->op_by_op)
        text_printf(out, "  op by op: %s\n", program->op_by_op);
    if (program->portions > 1)
        text_printf(out, "  runs in %d portions of %d samples, one after the other\n",
                    program->portions, program->batch);
    print_reasons(explained, out);
    print_memory(explained, out);
}
