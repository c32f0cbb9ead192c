/* learns.c: what a training of an imported network learns: the initializers as they stand in the
 * file. Where a program would learn otherwise than the file says, training is refused. */
#include "nn/formats/onnx/importer.h"

#include <string.h>

enum status import_learns(struct import *in, const Onnx__NodeProto *node,
                          const struct constant *numbers)
{
    for (int32_t i = 0; numbers->learnt && i < numbers->origin_count; i++) {
        struct value *value = graph_find(in, numbers->origins[i]);
        const Onnx__NodeProto *other = value->learner;
        value->learner = node;
        if (other == node)
            TRY(import_untrainable(in,
                                   "it cannot be trained: the node '%.80s' (%.40s) has the "
                                   "initializer '%.80s' more than once, expected others",
                                   node->output[0], node->op_type, value->name));
        else if (other)
            TRY(import_untrainable(in,
                                   "it cannot be trained: the nodes '%.80s' (%.40s) and '%.80s' "
                                   "(%.40s) have the initializer '%.80s' in common, expected one "
                                   "of its own for each",
                                   other->output[0], other->op_type, node->output[0], node->op_type,
                                   value->name));
    }
    return STATUS_OK;
}

enum status import_repeats(struct import *in, const struct constant *numbers, int64_t count)
{
    if (!numbers->learnt || count == numbers->count)
        return STATUS_OK;
    return import_untrainable(in,
                              "it cannot be trained: the node '%.80s' (%.40s) repeats learnt "
                              "numbers, expected each once",
                              in->node->output[0], in->node->op_type);
}

void import_traces(const struct import *in, bool moves, struct constant *to)
{
    bool any = false;
    to->held = true;
    to->learnt = moves;
    to->origin_count = 0;
    for (size_t i = 0; i < in->node->n_input; i++) {
        const struct value *value = graph_input(in, i);
        const struct constant *from = value ? value->constant : NULL;
        if (!from || !from->reals || to->wholes) /* whole numbers do not learn */
            continue;
        any = true;
        to->held = to->held && from->held;
        to->learnt = to->learnt && from->learnt;
        for (int32_t k = 0; k < from->origin_count; k++) {
            bool twice = false;
            for (int32_t known = 0; known < to->origin_count; known++)
                twice = twice || to->origins[known] == from->origins[k];
            bool room = to->origin_count < ORIGINS_MOST;
            to->learnt = to->learnt && room && !twice;
            if (room && !twice)
                to->origins[to->origin_count++] = from->origins[k];
        }
    }
    to->learnt = to->learnt && any;
}

/* Does this input become a parameter that learns, where the node has such? The mean and variance of
 * a normalisation do not, nor what says how a layer works, nor a state of 0 to begin with. What the
 * layer works on, its first input, does, but that of Where chooses. */
static bool takes_part(const struct import *in, size_t i, const struct constant *numbers)
{
    static const char *const settings[] = {"Clip", "Pow", "Where", "Resize", "Upsample"};
    static const char *const recurrent[] = {"RNN", "GRU", "LSTM"};
    const char *op = in->node->op_type;
    bool zeros = true, takes = strcmp(op, "BatchNormalization") || i < 3;
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        takes = takes && (strcmp(op, settings[s]) || (i == 0 && strcmp(op, "Where")));
    for (int64_t k = 0; zeros && i > 4 && k < numbers->count; k++)
        zeros = numbers->reals[k] == 0;
    for (size_t r = 0; r < sizeof recurrent / sizeof *recurrent; r++)
        takes = takes && (strcmp(op, recurrent[r]) || i < 5 || !zeros);
    return takes;
}

/* What is of Constant nodes stays as it is; what was worked out of initializers would learn
 * otherwise than they, or not at all. A normalisation may have become part of the layer before. */
enum status import_check_learning(struct import *in, int32_t given)
{
    bool normal = !strcmp(in->node->op_type, "BatchNormalization");
    bool any = false, held = true, learns = normal, made = normal || in->given_count > given;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < in->node->n_input; i++) {
            const struct value *value = graph_input(in, i);
            const struct constant *numbers = !value            ? NULL
                                             : value->constant ? value->constant
                                                               : value->known;
            if (!numbers || !numbers->reals || (pass && !takes_part(in, i, numbers)))
                continue;
            any = true;
            held = held && numbers->held;
            if (pass && made && !numbers->held && !numbers->learnt)
                TRY(import_untrainable(
                    in,
                    "it cannot be trained: input %zu of the node '%.80s' (%.40s) is computed from "
                    "'%.80s', expected plain initializers, each used once",
                    i + 1, in->node->output[0], in->node->op_type,
                    numbers->origin_count ? numbers->origins[0] : value->name));
            if (pass && learns)
                TRY(import_learns(in, in->node, numbers));
        }
        for (int32_t i = given; !pass && i < in->given_count; i++) {
            in->given[i].fixed = in->given[i].fixed || (any && held);
            learns = learns || !in->given[i].fixed;
        }
    }
    return STATUS_OK;
}
