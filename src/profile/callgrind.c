/* callgrind.c: the ops of a step as a call graph, in Callgrind's profile format, version 1. The
 * "source file" is the program; the line of an op is its place in it, from 1. */
#include "profile/profile.h"

#include <math.h>

static unsigned long long cost_of(double ns)
{
    return isnan(ns) ? 0 : (unsigned long long)llround(ns);
}

static void add_op_name(const struct profile *profile, int32_t o, struct text *out)
{
    const struct op *op = &profile->program->ops[o];
    text_printf(out, "%s%s%s [%s]", op->layer, *op->layer ? " " : "", op_name(op->kind),
                *profile->ops[o].kernel ? profile->ops[o].kernel : "part of another op");
}

static void add_op(const struct profile *profile, int32_t o, struct text *out)
{
    text_add(out, "fn=");
    add_op_name(profile, o, out);
    text_printf(out, "\n%d %llu\n\n", o + 1, cost_of(profile->ops[o].ns));
}

/* A part costs nothing itself. Its cost is the sum of the rounded costs of its ops, so that
 * inclusive costs add up to the last nanosecond. */
static unsigned long long add_part(const struct profile *profile, enum part part, struct text *out)
{
    const struct program *program = profile->program;
    unsigned long long sum = 0;
    text_printf(out, "fn=%s\n", part_name(part));
    for (int32_t o = program->parts[part].from; o < program->parts[part].to; o++) {
        unsigned long long cost = cost_of(profile->ops[o].ns);
        text_add(out, "cfn=");
        add_op_name(profile, o, out);
        text_printf(out, "\ncalls=1 %d\n%d %llu\n", o + 1, o + 1, cost);
        sum += cost;
    }
    text_add(out, "\n");
    return sum;
}

static unsigned long long add_program(const struct profile *profile, struct text *out)
{
    const struct program *program = profile->program;
    unsigned long long parts[PART_COUNT], sum = 0;

    text_printf(out, "\nfl=%s\n", program->name);
    for (int32_t o = 0; o < program->op_count; o++)
        add_op(profile, o, out);
    for (int part = 0; part < PART_COUNT; part++)
        if (program->parts[part].from < program->parts[part].to)
            parts[part] = add_part(profile, (enum part)part, out);
    text_add(out, "fn=step\n");
    for (int part = 0; part < PART_COUNT; part++) {
        int32_t line = program->parts[part].from + 1;
        if (program->parts[part].from == program->parts[part].to)
            continue;
        text_printf(out, "cfn=%s\ncalls=1 %d\n%d %llu\n", part_name((enum part)part), line, line,
                    parts[part]);
        sum += parts[part];
    }
    return sum;
}

void profile_callgrind(const struct profile *profiles, int32_t count, const char *creator,
                       struct text *out)
{
    struct text all = {0};
    text_printf(out, "# callgrind format\nversion: 1\ncreator: %s\npositions: line\n", creator);
    text_add(out, "events: ns\n");
    for (int32_t p = 0; p < count; p++) {
        unsigned long long cost = add_program(&profiles[p], out);
        text_printf(&all, "cfi=%s\ncfn=step\ncalls=1 1\n1 %llu\n", profiles[p].program->name, cost);
    }
    if (count > 1)
        text_printf(out, "\nfl=all programs\nfn=step\n%s", text_of(&all));
    text_free(&all);
}
