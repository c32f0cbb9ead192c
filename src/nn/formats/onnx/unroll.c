/* unroll.c: a recurrent node step by step, for what no recurrent layer does. The product with the
 * input is one dense layer over all steps; that with the state is a matmul with one parameter,
 * which all steps share. Values of a step are [1, units]; gates are in ONNX's order. */
#include "nn/formats/onnx/unroll.h"

#include <ctype.h>
#include <string.h>

/* A direction on its way. */
struct unrolled {
    struct import *in;
    const struct recurrent *r;
    const char *sums;           /* [time, gates · units]: of the inputs, with their bias */
    const char *weight, *bias;  /* [units, gates · units], [1, gates · units]; of the state */
    const char *peephole[3];    /* of i, o, f; NULL: none */
    const char *state, *cells;  /* [1, units]; NULL: 0 */
    const char *part, *product; /* of this step: x's and the state's part of the sums */
};

/* So many numbers of a known tensor, from there on. */
static enum status known_row(struct unrolled *u, const struct constant *from, int64_t offset,
                             struct shape shape, const char **out)
{
    return line_constant(u->in, from->reals + offset, shape_count(&shape), from->learnt, shape,
                         out);
}

/* rows [n, in] turned into a parameter [in, n] */
static enum status turned(struct unrolled *u, const struct constant *from, const char **out)
{
    int64_t rows = from->shape.dim[1], inputs = from->shape.dim[2];
    const float *at = from->reals + u->r->direction * rows * inputs;
    float *to = arena_array(&u->in->arena, (size_t)(rows * inputs), sizeof *to);
    NEED(to);
    for (int64_t i = 0; i < rows * inputs; i++)
        to[i % inputs * rows + i / inputs] = at[i];
    return line_constant(u->in, to, rows * inputs, from->learnt, SHAPE(inputs, rows), out);
}

/* The state to begin with: input `i` of the node, [directions, samples, units]. */
static enum status first_state(struct unrolled *u, size_t i, const char **out)
{
    struct import *in = u->in;
    const struct recurrent *r = u->r;
    struct value *value = graph_input(in, i);
    int32_t batch = r->first ? 0 : 1;
    int64_t directions = r->w->shape.dim[0];
    const char *layer;
    *out = NULL;
    if (!value)
        return STATUS_OK;
    if (value->shape.rank != 3 || value->tokens || value->shape.dim[2] != r->units ||
        value->shape.dim[!batch] != directions ||
        (value->constant ? value->constant->count < 1 : !value_counts(value, batch)))
        REFUSE(in, STATUS_UNSUPPORTED, "its state to begin with has another shape than its own");
    if (value->constant) { /* the same for every sample: known_row takes the first */
        const struct constant *c = value->constant;
        int64_t samples = c->shape.dim[batch];
        for (int64_t k = 0; k < c->count; k++) {
            int64_t d = r->first ? k / r->units % directions : k / r->units / samples;
            int64_t own = (r->first ? d : d * samples) * r->units + k % r->units;
            if (!c->reals || c->reals[k] != c->reals[own])
                REFUSE(in, STATUS_UNSUPPORTED,
                       "its state to begin with differs from sample to sample");
        }
        int64_t place = r->direction * (r->first ? 1 : samples) * r->units;
        return known_row(u, c, place, SHAPE(1, r->units), out);
    }
    TRY(line_of(in, value, SHAPE(directions, r->units), &layer));
    return line_slice(in, layer, 1, r->direction, 1, out);
}

static enum status begin(struct unrolled *u, const char *x)
{
    const struct recurrent *r = u->r;
    int64_t width = r->kind->gates * r->units;
    const char *weight, *bias;
    TRY(turned(u, r->w, &weight));
    TRY(turned(u, r->r, &u->weight));
    TRY(line_pair(u->in, "matmul", x, weight, &u->sums));
    if (r->b) {
        int64_t at = 2 * r->direction * width;
        TRY(known_row(u, r->b, at, SHAPE(1, width), &bias));
        TRY(line_pair(u->in, "add", u->sums, bias, &u->sums));
        TRY(known_row(u, r->b, at + width, SHAPE(1, width), &u->bias));
    }
    TRY(first_state(u, 5, &u->state));
    if (r->kind->gates != 4)
        return STATUS_OK;
    TRY(first_state(u, 6, &u->cells));
    const struct constant *p;
    if (!graph_input(u->in, 7))
        return STATUS_OK;
    TRY(node_known(u->in, 7, 2, &p));
    if (p->count != r->w->shape.dim[0] * 3 * r->units)
        REFUSE(u->in, STATUS_INPUT, "its peepholes have %lld numbers", (long long)p->count);
    for (int i = 0; i < 3; i++)
        TRY(known_row(u, p, (3 * r->direction + i) * r->units, SHAPE(1, r->units),
                      &u->peephole[i]));
    return STATUS_OK;
}

static enum status apply(struct unrolled *u, int function, const char *x, const char **out)
{
    char kind[16] = {0};
    const char *name = u->r->functions[function];
    struct line *line;
    for (size_t i = 0; name[i] && i + 1 < sizeof kind; i++)
        kind[i] = (char)tolower((unsigned char)name[i]);
    const char *kept = arena_text(&u->in->arena, kind);
    NEED(kept);
    TRY(line_add(u->in, kept, x, &line, "%s", ""));
    *out = line->name;
    return STATUS_OK;
}

/* a·b where both are there; NULL is 0. */
static enum status times(struct unrolled *u, const char *a, const char *b, const char **out)
{
    *out = NULL;
    return a && b ? line_pair(u->in, "multiply", a, b, out) : STATUS_OK;
}

/* a + b, either of which may be NULL: 0. */
static enum status plus(struct unrolled *u, const char *a, const char *b, const char **out)
{
    *out = a ? a : b;
    return a && b ? line_pair(u->in, "add", a, b, out) : STATUS_OK;
}

/* `gate` of what has all of them; NULL stays. */
static enum status gate_of(struct unrolled *u, const char *all, int64_t gate, const char **out)
{
    *out = NULL;
    return all ? line_slice(u->in, all, 2, gate * u->r->units, u->r->units, out) : STATUS_OK;
}

/* The sum of a gate: x's part, the state's, and what a peephole sees of the cells. */
static enum status gate_sum(struct unrolled *u, int64_t gate, const char *peephole,
                            const char *cells, const char **out)
{
    const char *sum, *more;
    TRY(gate_of(u, u->part, gate, &sum));
    TRY(gate_of(u, u->product, gate, &more));
    TRY(plus(u, sum, more, &sum));
    TRY(times(u, peephole, cells, &more));
    return plus(u, sum, more, out);
}

static enum status step_rnn(struct unrolled *u)
{
    const char *sum;
    TRY(gate_sum(u, 0, NULL, NULL, &sum));
    return apply(u, 0, sum, &u->state);
}

/* i, o, f, c */
static enum status step_lstm(struct unrolled *u)
{
    const char *i, *o, *f, *c;
    TRY(gate_sum(u, 0, u->peephole[0], u->cells, &i));
    TRY(apply(u, 0, i, &i));
    TRY(gate_sum(u, 2, u->peephole[2], u->cells, &f));
    TRY(apply(u, 0, f, &f));
    TRY(gate_sum(u, 3, NULL, NULL, &c));
    TRY(apply(u, 1, c, &c));
    TRY(times(u, i, c, &c));
    TRY(times(u, f, u->cells, &f));
    TRY(plus(u, c, f, &u->cells));
    TRY(gate_sum(u, 1, u->peephole[1], u->cells, &o));
    TRY(apply(u, 0, o, &o));
    TRY(apply(u, 2, u->cells, &c));
    return times(u, o, c, &u->state);
}

/* z, r, h: h' = n + z·(h - n), n of r·h where the reset is before the product, else of r times it.
 */
static enum status step_gru(struct unrolled *u)
{
    const char *z, *r, *n, *own, *minus;
    int64_t units = u->r->units;
    bool after = graph_int(u->in, "linear_before_reset", 0) != 0;
    TRY(gate_sum(u, 0, NULL, NULL, &z));
    TRY(apply(u, 0, z, &z));
    TRY(gate_sum(u, 1, NULL, NULL, &r));
    TRY(apply(u, 0, r, &r));
    if (after) {
        TRY(gate_of(u, u->product, 2, &own));
        TRY(times(u, r, own, &own));
    } else {
        const char *kept, *weight, *bias;
        TRY(times(u, r, u->state, &kept));
        TRY(line_slice(u->in, u->weight, 2, 2 * units, units, &weight));
        TRY(gate_of(u, u->bias, 2, &bias));
        own = NULL;
        if (kept)
            TRY(line_pair(u->in, "matmul", kept, weight, &own));
        TRY(plus(u, own, bias, &own));
    }
    TRY(gate_of(u, u->part, 2, &n));
    TRY(plus(u, n, own, &n));
    TRY(apply(u, 1, n, &n));
    TRY(line_affine(u->in, n, 2, -1, 0, &minus));
    TRY(plus(u, u->state, minus, &minus));
    TRY(times(u, z, minus, &minus));
    return plus(u, n, minus, &u->state);
}

enum status unroll(struct import *in, const struct recurrent *recurrent, const char *x,
                   struct recurrent_layers *out)
{
    struct unrolled u = {.in = in, .r = recurrent};
    const char **steps;
    if (recurrent->time > PICKS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "it has %lld steps, expected at most %d",
               (long long)recurrent->time, PICKS_MOST);
    NEED(steps = arena_array(&in->arena, (size_t)recurrent->time, sizeof *steps));
    TRY(begin(&u, x));
    for (int64_t t = 0; t < recurrent->time; t++) {
        TRY(line_slice(in, u.sums, 1, t, 1, &u.part));
        u.product = u.bias;
        if (u.state) {
            TRY(line_pair(in, "matmul", u.state, u.weight, &u.product));
            TRY(plus(&u, u.product, u.bias, &u.product));
        }
        TRY(recurrent->kind->gates == 1   ? step_rnn(&u)
            : recurrent->kind->gates == 3 ? step_gru(&u)
                                          : step_lstm(&u));
        steps[t] = u.state;
    }
    out->every = NULL;
    if (recurrent->every)
        TRY(line_join(in, steps, recurrent->time, 1, &out->every));
    out->last = recurrent->state ? u.state : NULL;
    out->cells = recurrent->cells ? u.cells : NULL;
    return STATUS_OK;
}
