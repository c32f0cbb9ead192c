/* floor.c: see floor.h. */
#include "estimate/floor.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

/* Nothing that depends on something else is there sooner: lanes of a GPU exchange a number in about
 * a hundredth of a launch. */
static const double HOPS_PER_LAUNCH = 100;

/* Which halves of the step touch a kept tensor. */
enum { READ_FORWARD = 1, WRITTEN_FORWARD = 2, READ_BACKWARD = 4, WRITTEN_BACKWARD = 8 };

static void work_touch(const struct program *program, const struct op *op, unsigned char *touched)
{
    bool forward = op->part == PART_FORWARD;
    if (op->part == PART_PREPARE) /* data is counted apart; the rest is bookkeeping */
        return;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int32_t tensor = program->operands[op->first + i];
        if (tensor < 0)
            continue;
        int flag = i < op->inputs ? (forward ? READ_FORWARD : READ_BACKWARD)
                                  : (forward ? WRITTEN_FORWARD : WRITTEN_BACKWARD);
        touched[program_root(program, tensor)] |= (unsigned char)flag;
    }
}

/* What comes from and goes to the bound data. */
static uint64_t work_data_bytes(const struct program *program, const struct op *op)
{
    if (op->kind == OP_load)
        return program->tensors[op_output(program, op, 0)].bytes;
    if (op->kind == OP_store)
        return program->tensors[op_input(program, op, 0)].bytes;
    return 0;
}

enum status work_count(const struct program *program, struct work *out)
{
    unsigned char *touched = mem_array((size_t)program->tensor_count, 1);
    NEED(touched);
    *out = (struct work){0};
    for (int32_t i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        uint64_t data_bytes = work_data_bytes(program, op);
        if (op->part == PART_FORWARD)
            out->forward.flop += op_flop(program, op);
        else if (op->part == PART_BACKWARD)
            out->backward.flop += op_flop(program, op);
        out->forward.bytes += data_bytes;
        out->set_bytes += data_bytes;
        work_touch(program, op, touched);
    }
    for (int32_t i = 0; i < program->tensor_count; i++) {
        const struct tensor *tensor = &program->tensors[i];
        unsigned char how = touched[i];
        if (!role_is_kept(tensor->role) || !how)
            continue;
        out->forward.bytes += how & READ_FORWARD ? tensor->bytes : 0;
        out->forward.bytes += how & WRITTEN_FORWARD ? tensor->bytes : 0;
        out->backward.bytes += how & READ_BACKWARD ? tensor->bytes : 0;
        out->backward.bytes += how & WRITTEN_BACKWARD ? tensor->bytes : 0;
        out->set_bytes += tensor->bytes;
    }
    mem_free(touched);
    return STATUS_OK;
}

struct work work_in(const struct work *work, const char *precision)
{
    const bool is_16bit = strcmp(precision, "bf16") == 0 || strcmp(precision, "fp16") == 0;
    const uint64_t parts = strcmp(precision, "fp8") == 0 ? 4 : is_16bit ? 2 : 1;
    struct work out = *work;
    out.forward.bytes /= parts;
    if (!work->backward.bytes)
        out.set_bytes /= parts;
    return out;
}

void floor_of(const struct work *work, const struct ceilings *ceilings, struct floor *out)
{
    const double flop_ns[2] = {(double)work->forward.flop / ceilings->flop_per_s * 1e9,
                               (double)work->backward.flop / ceilings->flop_per_s * 1e9};
    const double bytes_ns[2] = {(double)work->forward.bytes / ceilings->read_per_s * 1e9,
                                (double)work->backward.bytes / ceilings->update_per_s * 1e9};
    double of_flop = 0, of_bytes = 0;

    out->reads = bytes_ns[0] > 0 && bytes_ns[0] >= flop_ns[0];
    out->updates = bytes_ns[1] > 0 && bytes_ns[1] >= flop_ns[1];
    for (int i = 0; i < 2; i++) {
        if (flop_ns[i] > bytes_ns[i])
            of_flop += flop_ns[i];
        else
            of_bytes += bytes_ns[i];
    }
    out->ns = of_flop + of_bytes;
    out->bound = out->ns < ceilings->launch_ns ? "latency" : of_flop > of_bytes ? "flop" : "bytes";
    if (out->ns < ceilings->launch_ns / HOPS_PER_LAUNCH)
        out->ns = (double)NAN;
}

static uint64_t kept_bytes(const struct program *program, const struct op *op, int32_t from,
                           int32_t to)
{
    uint64_t bytes = 0;
    for (int32_t i = from; i < to; i++) {
        int32_t tensor = program->operands[op->first + i];
        if (tensor >= 0 && role_is_kept(program->tensors[tensor].role))
            bytes += program->tensors[tensor].bytes;
    }
    return bytes;
}

enum status floor_of_op(const struct program *program, const struct op *op,
                        const struct yardstick *yardstick, const struct ceilings *whole,
                        double *out)
{
    uint64_t flop = op_flop(program, op), bytes = op_bytes(program, op);
    uint64_t kept_read = kept_bytes(program, op, 0, op->inputs);
    uint64_t kept_written = kept_bytes(program, op, op->inputs, op->inputs + op->outputs);
    struct ceilings own;

    *out = (double)NAN;
    if (flop + bytes == 0)
        return STATUS_OK;
    TRY(yardstick_read(yardstick, bytes, false, &own));
    double kept_ns = (double)(kept_read + kept_written) /
                     (kept_written ? whole->update_per_s : whole->read_per_s);
    double own_ns = (double)bytes / fmax(own.update_per_s, own.read_per_s);
    *out = 1e9 * fmax((double)flop / whole->flop_per_s, fmax(kept_ns, own_ns));
    if (*out < whole->launch_ns / HOPS_PER_LAUNCH)
        *out = (double)NAN;
    return STATUS_OK;
}
