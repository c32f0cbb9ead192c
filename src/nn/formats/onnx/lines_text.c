/* lines_text.c: the lines that the output needs become the text of a network. */
#include "nn/formats/onnx/importer.h"

#include <string.h>

/* The line whose name is that long; NULL for "input". */
static struct line *line_called(const struct import *in, const char *name, size_t length)
{
    for (int32_t i = in->line_count - 1; i >= 0; i--)
        if (!strncmp(in->lines[i]->name, name, length) && !in->lines[i]->name[length])
            return in->lines[i];
    return NULL;
}

/* Marks the lines of a list "a, b" as read. */
static void mark_read(const struct import *in, const char *list)
{
    while (*list) {
        struct line *line = line_next(in, &list);
        if (line)
            line->read = true;
    }
}

/* What only a Shape asked for is no part of the network. */
static void drop_unread(struct import *in, const char *output)
{
    int32_t lines = 0, given = 0;
    mark_read(in, output);
    for (int32_t i = in->line_count - 1; i >= 0; i--)
        if (in->lines[i]->read)
            mark_read(in, in->lines[i]->inputs);
    for (int32_t i = 0; i < in->given_count; i++) {
        const char *name = in->given[i].name;
        if (line_called(in, name, strcspn(name, "."))->read)
            in->given[given++] = in->given[i];
    }
    in->given_count = given;
    for (int32_t i = 0; i < in->line_count; i++)
        if (in->lines[i]->read)
            in->lines[lines++] = in->lines[i];
    in->line_count = lines;
}

/* A softmax at the end is what a network with this loss predicts with, and the loss has it inside.
 * The line before it is what it reads, as all that nothing reads is gone. */
static void take_softmax(struct import *in, const struct value *output)
{
    const struct line *last = in->lines[in->line_count - 1];
    in->softmax_last = in->line_count > 1 && !strcmp(last->kind, "softmax") &&
                       output->line == last && !*last->arguments;
    in->line_count -= in->softmax_last;
}

static void write_line(const struct line *line, struct text *out)
{
    text_printf(out, "%s = %s", line->name, line->kind);
    if (*line->arguments)
        text_printf(out, " %s", line->arguments);
    if (line->has_bias && !line->bias)
        text_add(out, " bias=0");
    if (line->scale != 0)
        text_printf(out, " scale=%.9g", line->scale);
    if (*line->inputs)
        text_printf(out, " < %s", line->inputs);
    text_add_char(out, '\n');
}

/* Does the output, or a line, take the input as it is? */
static bool reads_input(const struct import *in, const struct value *output)
{
    bool reads = !strcmp(output->layer, "input");
    for (int32_t i = 0; i < in->line_count; i++)
        reads = reads || !strcmp(in->lines[i]->inputs, "input");
    return reads;
}

enum status import_write(struct import *in, struct value *output, struct text *out)
{
    const char *sizes;
    const struct constant *known = output->constant;
    if (known && known->reals && !known->held && !known->learnt)
        TRY(import_untrainable(in,
                               "it cannot be trained: its output '%.80s' is computed from '%.80s', "
                               "expected plain initializers, each used once",
                               output->name, known->origin_count ? known->origins[0] : ""));
    TRY(line_known(in, output, in->batch));
    if (output->padded || output->pool)
        REFUSE(in, STATUS_UNSUPPORTED,
               "its output '%.80s' does not depend on its input as a "
               "network's does",
               output->name);
    drop_unread(in, output->layer);
    if (in->inputs[0]->tokens && !in->tokens && reads_input(in, output))
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input is whole numbers, expected them to be taken by "
               "Gather from a table");
    if (in->inputs[0]->tokens && !in->tokens)
        in->tokens = TOKENS_MOST; /* no table says how many there are, and none is needed */
    const struct line *last = in->line_count ? in->lines[in->line_count - 1] : NULL;
    if (!last || strcmp(last->name, output->layer)) /* a network gives what its last line does */
        TRY(line_shape(in, output->layer, output->gives, &output->layer));
    take_softmax(in, output);
    TRY(line_sizes(in, &in->sample, &sizes));
    text_printf(out, "input %s", sizes);
    if (in->tokens)
        text_printf(out, " tokens=%lld", (long long)in->tokens);
    text_add_char(out, '\n');
    for (int32_t i = 0; i < in->line_count; i++)
        write_line(in->lines[i], out);
    if (in->softmax_last)
        text_add(out, "loss cross_entropy\n");
    return text_done(out);
}
