/* ref_optimiser.c: the optimisers, one parameter at a time, as PyTorch defines them.
 *
 * Operands: w, g, rate, (count,) states … → w, g when it accumulates, states … Everything is
 * updated in place, so inputs alone are named here. */
#include "backend/cpu/real.h"

enum { W, G, RATE };

/* An accumulated gradient (the second output) starts anew. */
static void clear_gradient(const struct call *call)
{
    real *cleared = reals(call, call->op->inputs + 1);
    for (int64_t i = 0, n = count(call, W); cleared && i < n; i++)
        cleared[i] = 0;
}

/* w -= rate·g */
KERNEL(sgd)
{
    real *w = reals(call, W), rate = *reals(call, RATE), decay = (real)call->op->attr.sgd.decay;
    const real *g = reals(call, G);
    for (int64_t i = 0, n = count(call, W); i < n; i++)
        w[i] -= rate * (g[i] + decay * w[i]);
    clear_gradient(call);
}

/* v = momentum·v + g; w -= rate·v, or for Nesterov's rate·(g + momentum·v) */
KERNEL(momentum)
{
    real *w = reals(call, W), *velocity = reals(call, AT_momentum_velocity),
         rate = *reals(call, RATE);
    const real *g = reals(call, G);
    real momentum = (real)call->op->attr.momentum.momentum;
    real decay = (real)call->op->attr.momentum.decay;
    for (int64_t i = 0, n = count(call, W); i < n; i++) {
        real gradient = g[i] + decay * w[i];
        velocity[i] = momentum * velocity[i] + gradient;
        w[i] -= rate * (call->op->attr.momentum.nesterov ? gradient + momentum * velocity[i]
                                                         : velocity[i]);
    }
    clear_gradient(call);
}

/* s += g²; w -= rate·g / (√s + ε) */
KERNEL(adagrad)
{
    real *w = reals(call, W), *squares = reals(call, AT_adagrad_squares), rate = *reals(call, RATE);
    const real *g = reals(call, G);
    real epsilon = (real)call->op->attr.adagrad.epsilon;
    real decay = (real)call->op->attr.adagrad.decay;
    for (int64_t i = 0, n = count(call, W); i < n; i++) {
        real gradient = g[i] + decay * w[i];
        squares[i] += gradient * gradient;
        w[i] -= rate * gradient / (real_sqrt(squares[i]) + epsilon);
    }
    clear_gradient(call);
}

/* s = a·s + (1 - a)·g²; w -= rate·g / (√s + ε) */
KERNEL(rmsprop)
{
    real *w = reals(call, W), *squares = reals(call, AT_rmsprop_squares), rate = *reals(call, RATE);
    const real *g = reals(call, G);
    real smoothing = (real)call->op->attr.rmsprop.smoothing;
    real epsilon = (real)call->op->attr.rmsprop.epsilon;
    real decay = (real)call->op->attr.rmsprop.decay;
    for (int64_t i = 0, n = count(call, W); i < n; i++) {
        real gradient = g[i] + decay * w[i];
        squares[i] = smoothing * squares[i] + (1 - smoothing) * gradient * gradient;
        w[i] -= rate * gradient / (real_sqrt(squares[i]) + epsilon);
    }
    clear_gradient(call);
}

/* m = β1·m + (1 - β1)·g; s = β2·s + (1 - β2)·g²; both are divided by 1 - β^step, the weight of what
 * they have seen; w -= rate·m / (√s + ε). Kingma and Ba 2015; decoupled: Loshchilov and Hutter
 * 2019.
 */
KERNEL(adam)
{
    real *w = reals(call, W), *mean = reals(call, AT_adam_mean),
         *squares = reals(call, AT_adam_squares);
    const real *g = reals(call, G);
    real rate = *reals(call, RATE), decay = (real)call->op->attr.adam.decay;
    real beta1 = (real)call->op->attr.adam.beta1, beta2 = (real)call->op->attr.adam.beta2;
    real epsilon = (real)call->op->attr.adam.epsilon;
    double step = *integers(call, AT_adam_count) + 1;
    real seen1 = (real)(1 - pow((double)beta1, step));
    real seen2 = real_sqrt((real)(1 - pow((double)beta2, step)));
    bool decoupled = call->op->attr.adam.decoupled;
    for (int64_t i = 0, n = count(call, W); i < n; i++) {
        real gradient = decoupled ? g[i] : g[i] + decay * w[i];
        if (decoupled)
            w[i] -= rate * decay * w[i];
        mean[i] = beta1 * mean[i] + (1 - beta1) * gradient;
        squares[i] = beta2 * squares[i] + (1 - beta2) * gradient * gradient;
        w[i] -= rate / seen1 * mean[i] / (real_sqrt(squares[i]) / seen2 + epsilon);
    }
    clear_gradient(call);
}

/* The step grows where the gradient keeps its sign and shrinks where it turns; after a turn the
 * weight rests for one update. The first step is the rate. Riedmiller and Braun 1993. */
KERNEL(rprop)
{
    real *w = reals(call, W), *before = reals(call, AT_rprop_before),
         *steps = reals(call, AT_rprop_step);
    const real *g = reals(call, G);
    real shrink = (real)call->op->attr.rprop.shrink, grow = (real)call->op->attr.rprop.grow;
    real least = (real)call->op->attr.rprop.least, most = (real)call->op->attr.rprop.most;
    bool first = *integers(call, AT_rprop_count) == 0;
    for (int64_t i = 0, n = count(call, W); i < n; i++) {
        real agree = g[i] * before[i], gradient = agree < 0 ? 0 : g[i];
        real step = first ? *reals(call, RATE) : steps[i];
        step *= agree > 0 ? grow : agree < 0 ? shrink : 1;
        steps[i] = step < least ? least : step > most ? most : step;
        w[i] -= gradient > 0 ? steps[i] : gradient < 0 ? -steps[i] : 0;
        before[i] = gradient;
    }
    clear_gradient(call);
}
