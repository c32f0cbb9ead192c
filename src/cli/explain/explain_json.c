/* explain_json.c: programs as a record of kind "network": one line that holds all of it. Its keys
 * are described in docs/explain.md. */
#include "cli/explain/explained.h"
#include "core/pass/quantise.h"
#include "record/record.h"

#include <inttypes.h>
#include <stdio.h>

static void add_hash(struct json_writer *json, const char *key, uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    json_put_text(json, key, text);
}

/* FLOP and bytes, and their ratio. */
static void add_work(struct json_writer *json, uint64_t flop, uint64_t bytes)
{
    json_put_uint(json, "flop", flop);
    json_put_uint(json, "bytes", bytes);
    json_put_real(json, "intensity", explained_intensity(flop, bytes));
}

static void write_attribute(void *context, const char *name, const char *value)
{
    json_put_text(context, name, value);
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

static void write_tensor(struct json_writer *json, const struct tensor *tensor)
{
    json_object(json);
    json_put_text(json, "name", tensor->name);
    json_put_text(json, "role", role_name(tensor->role));
    json_put_text(json, "dtype", dtype_name(tensor->dtype));
    json_key(json, "shape");
    json_array(json);
    for (int32_t d = 0; d < tensor->shape.rank; d++)
        json_add_int(json, tensor->shape.dim[d]);
    json_end(json);
    json_put_uint(json, "bytes", tensor->bytes);
    json_put_uint(json, "offset", tensor->offset);
    json_key(json, "view_of");
    if (tensor->view_of < 0)
        json_add_null(json);
    else
        json_add_int(json, tensor->view_of);
    json_end(json);
}

static void write_op(struct json_writer *json, const struct explained *explained, int32_t o)
{
    const struct program *program = explained->program;
    const struct op *op = &program->ops[o];
    const int32_t *operands = program->operands + op->first;
    const struct kernel_use *use = explained_kernel(explained, o);
    json_object(json);
    json_put_text(json, "op", op_name(op->kind));
    json_put_text(json, "part", part_name(op->part));
    json_put_text(json, "layer", op->layer);
    write_operands(json, operands, op->inputs, "inputs");
    write_operands(json, operands + op->inputs, op->outputs, "outputs");
    add_work(json, op_flop(program, op), op_bytes(program, op));
    json_key(json, "attributes");
    json_object(json);
    op_attributes(op, write_attribute, json);
    json_end(json);
    if (*op->made_by)
        json_put_text(json, "made_by", op->made_by);
    if (explained->plan) {
        json_put_text(json, "kernel", use ? use->kernel : NULL);
        json_put_uint(json, "launches", use ? (uint64_t)use->launches : 0);
        if (use && use->why)
            json_put_text(json, "why", use->why);
    }
    json_end(json);
}

static void write_parts(struct json_writer *json, const struct explained *explained)
{
    json_key(json, "parts");
    json_object(json);
    for (int part = 0; part < PART_COUNT; part++) {
        struct part_total total = explained_total(explained, (enum part)part);
        json_key(json, part_name((enum part)part));
        json_object(json);
        json_put_uint(json, "ops", (uint64_t)total.ops);
        add_work(json, total.flop, total.bytes);
        if (explained->plan)
            json_put_uint(json, "launches", (uint64_t)total.launches);
        json_end(json);
    }
    json_end(json);
}

static void write_memory(struct json_writer *json, const struct explained *explained)
{
    const struct program *program = explained->program;
    json_key(json, "memory");
    json_object(json);
    for (int role = 0; role < ROLE_COUNT; role++)
        json_put_uint(json, role_name((enum role)role),
                      explained_bytes(explained, (enum role)role));
    json_end(json);
    json_put_uint(json, "activation_peak", program->role_bytes[ROLE_ACTIVATION]);
    json_put_uint(json, "activation_unshared", program->activation_bytes_unshared);
    if (explained->recompute) {
        json_key(json, "without_recompute");
        json_object(json);
        json_put_uint(json, "bytes", explained->without.bytes);
        json_put_uint(json, "flop", explained->without.flop);
        json_end(json);
    }
}

static void write_tensors(struct json_writer *json, const struct program *program)
{
    json_key(json, "tensors");
    json_array(json);
    for (int32_t t = 0; t < program->tensor_count; t++)
        write_tensor(json, &program->tensors[t]);
    json_end(json);
}

/* Layers of a file of 8 bits that are computed in fp32, and why. */
static void write_kept(struct json_writer *json, const struct quantisation *how)
{
    if (!how)
        return;
    json_key(json, "in_fp32");
    json_array(json);
    for (int32_t i = 0; i < how->keep_count; i++) {
        json_object(json);
        json_put_text(json, "layer", how->keep[i]);
        json_put_text(json, "why", how->why[i]);
        json_end(json);
    }
    json_end(json);
}

void explained_begin_json(const struct explained *explained, struct json_writer *json,
                          struct text *out)
{
    json_begin(json, out);
    json_object(json);
    json_put_int(json, "prony", RECORD_VERSION);
    json_put_text(json, "kind", "network");
    json_key(json, "network");
    json_object(json);
    json_put_text(json, "model", explained->network->name);
    json_put_text(json, "phase", explained->phase);
    json_put_int(json, "batch", explained->program->batch * explained->program->portions);
    json_put_text(json, "backend", explained->backend ? explained->backend->name : NULL);
    if (explained->absent[0])
        json_put_text(json, "on_paper", explained->absent);
    if (explained->network->rounded)
        json_put_text(json, "rounded", explained->network->rounded);
    write_kept(json, explained->network->rounds);
    add_hash(json, "program", recipe_hash(&explained->step));
    json_put_uint(json, "parameters", params_count(&explained->params));
    json_put_uint(json, "layers", (uint64_t)params_layers(&explained->params));
    json_key(json, "programs");
    json_array(json);
}

void explained_program_json(const struct explained *explained, struct json_writer *json)
{
    const struct program *program = explained->program;
    json_object(json);
    json_put_text(json, "name", program->name);
    add_hash(json, "program", program->hash);
    json_put_bool(json, "whole", explained->plan ? explained_together(explained) : program->whole);
    if (program->op_by_op)
        json_put_text(json, "op_by_op", program->op_by_op);
    json_put_uint(json, "portions", (uint64_t)program->portions);
    write_parts(json, explained);
    write_memory(json, explained);
    write_tensors(json, program);
    json_key(json, "ops");
    json_array(json);
    for (int32_t o = 0; o < program->op_count; o++)
        write_op(json, explained, o);
    json_end(json);
    json_end(json);
}

void explained_end_json(struct json_writer *json, struct text *out)
{
    json_end(json); /* programs, … */
    json_end(json); /* … network, … */
    json_end(json); /* … the record */
    text_add(out, "\n");
}
