/* portion.c: where nothing but the weights joins one sample of a batch with another, a step may run
 * all its ops for a few samples, then for the next few. Activations then take the memory of a
 * portion, and are found in the caches by the op that reads them; weights are fetched once a
 * portion instead of once a step. So a portion is the smallest that has as many bytes of
 * activations as there are weights: they are then at most half of what comes from memory. It has a
 * sample for each core, for kernels that share out samples. */
#include "core/pass/portion.h"

#include "base/machine/cpu.h"

static const uint64_t LEAST_BYTES = 4 << 20; /* of activations: less is in the caches anyway */

/* Tensors whose first dimension, alone or with others folded into it, counts samples. */
static bool has_samples(const struct tensor *tensor)
{
    return !role_is_kept(tensor->role) && tensor->role != ROLE_GRAD;
}

/* Is every sample computed by itself? Ops that bring samples together (losses, batch-norm in
 * training, numbers of the network itself that are repeated for each) have an operand that is not
 * as long as the batch, or write what is kept. */
static bool is_apart(const struct program *program)
{
    if (program->updates || program->whole || program->portions > 1)
        return false;
    for (int part = PART_BACKWARD; part < PART_COUNT; part++)
        if (program->parts[part].from != program->parts[part].to)
            return false;
    for (int32_t i = 0; i < program->operand_count; i++) {
        int32_t index = program->operands[i];
        if (index >= 0 && has_samples(&program->tensors[index]) &&
            program->tensors[index].shape.dim[0] % program->batch)
            return false;
    }
    return true;
}

int32_t portion_samples(const struct program *program)
{
    struct cpu cpu;
    if (program->role_bytes[ROLE_ACTIVATION] < LEAST_BYTES || !is_apart(program))
        return program->batch;
    cpu_detect(&cpu);
    uint64_t each = program->activation_bytes_unshared / (uint64_t)program->batch;
    int32_t samples = 1;
    while (samples < program->batch && (program->batch % samples || samples < cpu.cores ||
                                        (uint64_t)samples * each < program->role_bytes[ROLE_PARAM]))
        samples++;
    return samples;
}

enum status portion(const struct program *program, int32_t samples, struct program **out)
{
    struct draft draft;
    TRY(program_recast(program, &draft));
    for (int32_t t = 0; draft.status == STATUS_OK && t < program->tensor_count; t++) {
        struct tensor *tensor = &draft.program->tensors[t];
        if (!has_samples(tensor) || tensor->shape.dim[0] % program->batch)
            continue;
        tensor->shape.dim[0] = tensor->shape.dim[0] / program->batch * samples;
        tensor->bytes = (uint64_t)shape_count(&tensor->shape) * dtype_bytes(tensor->dtype);
    }
    for (int32_t o = 0; o < program->op_count; o++)
        draft_copy(&draft, program, &program->ops[o]);
    draft.program->portions = program->batch / samples;
    draft.program->batch = samples;
    return program_finish(&draft, out);
}
