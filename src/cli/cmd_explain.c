/* cmd_explain.c: `prony explain`: the program a network becomes. */
#include "base/memory.h"
#include "cli/commands.h"
#include "core/pass/fuse.h"
#include "nn/network.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct explain {
    struct arena arena;
    struct network *network;
    struct params params;
    struct program *program;
    const struct backend *backend; /* or NULL */
    struct device *device;
    struct instance *instance;
    struct plan *plan;
    struct explanation explanation;
};

static void explain_close(struct explain *explain)
{
    if (explain->plan)
        explain->backend->release(explain->plan);
    if (explain->instance)
        explain->backend->detach(explain->instance);
    if (explain->device)
        explain->backend->close(explain->device);
    program_free(explain->program);
    params_free(&explain->params);
    network_free(explain->network);
    arena_free(&explain->arena);
}

/* Prepares the program, dry, so that the backend says what it would run. */
static enum status ask_backend(struct explain *explain, bool fusion)
{
    const struct backend *backend = explain->backend;
    TRY(backend->probe());
    TRY(backend->open(&(struct device_options){.isa = ISA_AVX512}, &explain->device));
    if (fusion) {
        struct program *fused;
        TRY(fuse(explain->program, backend, explain->device, &fused));
        program_free(explain->program);
        explain->program = fused;
    }
    TRY(backend->attach(explain->device, &explain->params, &explain->instance));
    TRY(backend->prepare(explain->instance, explain->program, &(struct plan_options){.dry = true},
                         &explain->plan));
    return backend->explain(explain->plan, &explain->arena, &explain->explanation);
}

static const char *kernel_of(const struct explain *explain, int32_t op)
{
    for (int32_t i = 0; i < explain->explanation.kernel_count; i++)
        if (explain->explanation.kernels[i].op == op)
            return explain->explanation.kernels[i].kernel;
    return "";
}

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

/* Columns of UTF-8 text: `×` is one. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xC0) != 0x80;
    return width;
}

static void print_ops(const struct explain *explain, struct text *out)
{
    const struct program *program = explain->program;
    text_printf(out, "\n  %-9s %-20s %12s %12s %7s  %-24s %s\n", "part", "shape", "FLOP", "bytes",
                "F/B", explain->plan ? "kernel" : "", "op");
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        struct text shape = {0}, call = {0};
        print_shape(program, op, &shape);
        print_call(program, op, &call);
        uint64_t flop = op_flop(program, op), bytes = op_bytes(program, op);
        text_printf(out, "  %-9s %s%*s %12" PRIu64 " %12" PRIu64 " %7.2f  %-24s %s%s%s%s\n",
                    part_name(op->part), text_of(&shape), 20 - width_of(text_of(&shape)), "", flop,
                    bytes, bytes ? (double)flop / (double)bytes : 0, kernel_of(explain, o),
                    text_of(&call), *op->made_by ? "   [" : "", op->made_by,
                    *op->made_by ? "]" : "");
        text_free(&shape);
        text_free(&call);
    }
}

static void print_text(const struct explain *explain, struct text *out)
{
    const struct program *program = explain->program;
    uint64_t flop = 0, bytes = 0;
    for (int32_t o = 0; o < program->op_count; o++) {
        flop += op_flop(program, &program->ops[o]);
        bytes += op_bytes(program, &program->ops[o]);
    }
    text_printf(out, "%s, batch %d: ", explain->network->name, program->batch);
    text_add_grouped(out, params_count(&explain->params));
    text_printf(out, " parameters, %d ops, ", program->op_count);
    text_add_count(out, (double)flop);
    text_add(out, " FLOP, ");
    text_add_size(out, (double)bytes);
    text_printf(out, " moved by ops; program %016" PRIx64 "\n", program->hash);
    print_ops(explain, out);
    text_add(out, "\n  memory  ");
    for (int role = 0; role < ROLE_COUNT; role++)
        if (program->role_bytes[role]) {
            text_printf(out, "%s ", role_name((enum role)role));
            text_add_size(out, (double)program->role_bytes[role]);
            text_add(out, "   ");
        }
    if (program->activation_bytes_unshared > program->role_bytes[ROLE_ACTIVATION]) {
        text_add(out, "(activations without reuse: ");
        text_add_size(out, (double)program->activation_bytes_unshared);
        text_add(out, ")");
    }
    text_add(out, "\n");
}

static void write_attribute(void *context, const char *name, const char *value)
{
    json_key(context, name);
    json_add_text(context, value);
}

static void write_operands(struct json_writer *json, const int32_t *operands, int32_t count,
                           const char *key)
{
    json_key(json, key);
    json_array(json);
    for (int32_t i = 0; i < count; i++) {
        if (operands[i] < 0)
            json_add_null(json);
        else
            json_add_int(json, operands[i]);
    }
    json_end(json);
}

static void write_tensors(struct json_writer *json, const struct program *program)
{
    json_key(json, "tensors");
    json_array(json);
    for (int32_t t = 0; t < program->tensor_count; t++) {
        const struct tensor *tensor = &program->tensors[t];
        json_object(json);
        json_key(json, "name");
        json_add_text(json, tensor->name);
        json_key(json, "role");
        json_add_text(json, role_name(tensor->role));
        json_key(json, "dtype");
        json_add_text(json, dtype_name(tensor->dtype));
        json_key(json, "shape");
        json_array(json);
        for (int32_t d = 0; d < tensor->shape.rank; d++)
            json_add_int(json, tensor->shape.dim[d]);
        json_end(json);
        json_end(json);
    }
    json_end(json);
}

static void write_op(struct json_writer *json, const struct explain *explain, int32_t o)
{
    const struct program *program = explain->program;
    const struct op *op = &program->ops[o];
    const int32_t *operands = program->operands + op->first;
    json_object(json);
    json_key(json, "op");
    json_add_text(json, op_name(op->kind));
    json_key(json, "part");
    json_add_text(json, part_name(op->part));
    json_key(json, "layer");
    json_add_text(json, op->layer);
    write_operands(json, operands, op->inputs, "inputs");
    write_operands(json, operands + op->inputs, op->outputs, "outputs");
    json_key(json, "flop");
    json_add_uint(json, op_flop(program, op));
    json_key(json, "bytes");
    json_add_uint(json, op_bytes(program, op));
    json_key(json, "attributes");
    json_object(json);
    op_attributes(op, write_attribute, json);
    json_end(json);
    if (*op->made_by) {
        json_key(json, "made_by");
        json_add_text(json, op->made_by);
    }
    if (explain->plan) {
        json_key(json, "kernel");
        json_add_text(json, kernel_of(explain, o));
    }
    json_end(json);
}

/* One line of kind "network", as records have it. */
static void print_json(const struct explain *explain, const char *phase, struct text *out)
{
    const struct program *program = explain->program;
    struct json_writer json;
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, program->hash);
    json_begin(&json, out);
    json_object(&json);
    json_key(&json, "prony");
    json_add_int(&json, 1);
    json_key(&json, "kind");
    json_add_text(&json, "network");
    json_key(&json, "model");
    json_add_text(&json, explain->network->name);
    json_key(&json, "batch");
    json_add_int(&json, program->batch);
    json_key(&json, "phase");
    json_add_text(&json, phase);
    json_key(&json, "program");
    json_add_text(&json, hash);
    json_key(&json, "parameters");
    json_add_uint(&json, params_count(&explain->params));
    json_key(&json, "memory");
    json_object(&json);
    for (int role = 0; role < ROLE_COUNT; role++) {
        json_key(&json, role_name((enum role)role));
        json_add_uint(&json, program->role_bytes[role]);
    }
    json_end(&json);
    write_tensors(&json, program);
    json_key(&json, "ops");
    json_array(&json);
    for (int32_t o = 0; o < program->op_count; o++)
        write_op(&json, explain, o);
    json_end(&json);
    json_end(&json);
    text_add(out, "\n");
}

enum status cmd_explain(struct cli *cli, int argc, const char *const *argv)
{
    int64_t batch = 1, classes = 0;
    const char *phase = "inference", *backend = NULL;
    bool json = false, no_fusion = false;
    struct arg list[] = {
        {"batch", ARG_INT, &batch, "N", "samples per step (1)", 1, 1e9, false},
        {"phase", ARG_TEXT, &phase, "PHASE", "training or inference (inference)", 0, 0, false},
        {"classes", ARG_INT, &classes, "N", "the targets are labels of N classes", 2, 1e6, false},
        {"backend", ARG_TEXT, &backend, "NAME", "also the kernels this backend runs", 0, 0, false},
        {"no-fusion", ARG_FLAG, &no_fusion, NULL, "the program before ops are merged", 0, 0, false},
        {"json", ARG_FLAG, &json, NULL, "one line of JSON", 0, 0, false},
    };
    struct args args = {
        .command = "prony explain",
        .usage = "NETWORK [options]",
        .summary = "Shows the program a network becomes: its ops, shapes, FLOP, bytes and memory.",
        .examples = "  prony explain small\n"
                    "  prony explain large --batch 3 --phase training --backend ref\n"
                    "  prony explain mlp:784-100-10 --json\n",
        .list = list,
        .count = sizeof list / sizeof *list,
        .least = 1,
        .most = 1,
        .positional = cli->positional,
    };
    TRY(cli_args(&args, argc, argv));
    if (args.help)
        return STATUS_OK;
    bool training = !strcmp(phase, "training");
    if (!training && strcmp(phase, "inference"))
        FAIL(STATUS_INPUT, "--phase is '%s', expected training or inference", phase);

    struct explain explain = {0};
    struct text out = {0};
    enum status status;
    params_init(&explain.params, DTYPE_F32);
    TRY_OR(done, network_open(cli->positional[0], &explain.network));
    TRY_OR(done, network_compile(explain.network, &explain.params,
                                 &(struct compile_options){
                                     .batch = (int32_t)batch,
                                     .use = training ? USE_TRAINING : USE_INFERENCE,
                                     .classes = (int32_t)classes,
                                 },
                                 &explain.program));
    if (backend) {
        TRY_OR(done, registry_find(cli->registry, backend, &explain.backend));
        TRY_OR(done, ask_backend(&explain, !no_fusion));
    }
    if (json)
        print_json(&explain, phase, &out);
    else
        print_text(&explain, &out);
    TRY_OR(done, text_done(&out));
    fputs(text_of(&out), stdout);
done:
    text_free(&out);
    explain_close(&explain);
    return status;
}
