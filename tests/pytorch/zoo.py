"""zoo.py LIBPRONY NAME[@EDGE]…: networks of the zoo by prony and by PyTorch, from the same weights.

With an EDGE the images are that small, and with them the first dense layer where there is one.

The text of a network is read here a second time and written with PyTorch's operators, in double
precision, so that what differs is prony's. Dropout is left out: its numbers are each one's own.
Compared are the loss and all gradients of one training step (of sgd, at a rate at which every weight
moves at least as far as it is from 0: what it moved is its gradient), then the outputs, with the
batch's own mean and variance as the statistics of every batch-norm. Images come in twos, plain
features in sixteens. The loss may differ by 1e-5, an output by 1e-4 of the largest, a gradient by 1e-3
of its norm, or by ten times what PyTorch's own in single precision differs by at most, over a few
inputs that differ in their last digits: rounding turns a few relus and maxima around, here or there.
A gradient that is nothing beside the others, such as that of a bias before batch-norm, is only
compared with them.

One line per network: "ok   zoo.resnet50" or "FAIL …".
"""

import os
import sys
import tempfile

import torch
import torch.nn.functional as F

from library import Prony, open_library, write_safetensors

GRADIENT, OUTPUT, LOSS = 1e-3, 1e-4, 1e-5
NOTHING = 1e-6  # of the largest gradient's norm
DRAWINGS, LAST_DIGITS = 4, 1e-6


def words_of(line):
    """A layer's line as its name ("" where it has none), kind, arguments, settings and inputs."""
    line, _, inputs = line.partition("<")
    name, _, rest = line.rpartition(" = ")
    kind, *words = rest.split()
    settings = dict(word.split("=") for word in words if "=" in word)
    arguments = [word for word in words if "=" not in word]
    return name.strip(), kind, arguments, settings, [i.strip() for i in inputs.split(",") if i]


class Text:
    """A network's text: its layers, and what it says of its input and its loss."""

    def __init__(self, path, edge=""):
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].strip() for line in file]
        if edge:
            lines = [f"input 3x{edge}x{edge}" if l.startswith("input") else l for l in lines]
        lines = [l for l in lines if l and not l.startswith(("optimiser", "dropout"))]
        self.lines = lines
        self.layers, counts = [], {}
        for line in lines:
            name, kind, arguments, settings, inputs = words_of(line)
            if kind == "input":
                self.sample = tuple(map(int, arguments[0].split("x")))
                self.tokens = int(settings.get("tokens", 0))
            elif kind == "loss":
                self.loss = arguments[0]
            else:
                counts[kind] = counts.get(kind, 0) + 1
                name = name or f"{kind}{counts[kind]}"
                self.layers.append((name, kind, arguments, settings, inputs))
        self.classes = 0 if self.loss == "mse" else int(self.layers[-1][2][0])


    def prony(self, rate):
        return "\n".join([*self.lines, f"optimiser sgd rate={rate}", ""])


def pair(text):
    """"3" or "3x0", as PyTorch takes it."""
    sizes = tuple(map(int, text.split("x")))
    return sizes if len(sizes) == 2 else sizes * 2


class Forward:
    """The network on weights w. In training every batch-norm leaves its mean and variance in
    `statistics`; otherwise it takes them from w."""

    def __init__(self, text, w, training):
        self.text, self.w, self.training = text, w, training
        self.statistics = {}

    def __call__(self, x):
        values, last = {"input": x}, x
        for name, kind, arguments, settings, inputs in self.text.layers:
            given = [values[i] for i in inputs] or [last]
            last = values[name] = getattr(self, kind)(name, arguments, settings, *given)
        return last

    def dense(self, name, _, __, x):
        return x @ self.w[name + ".weight"] + self.w[name + ".bias"]

    def conv(self, name, arguments, settings, x):
        bias = self.w.get(name + ".bias")
        return F.conv2d(x, self.w[name + ".weight"], bias, pair(settings.get("stride", "1")),
                        pair(settings.get("pad", "0")))

    def batch_norm(self, name, _, settings, x):
        axes = [0, *range(2, x.dim())]
        if self.training:
            self.statistics[name + ".mean"] = x.detach().mean(axes)
            self.statistics[name + ".variance"] = x.detach().var(axes, unbiased=False)
        kept = (None, None) if self.training else (self.w[name + ".mean"],
                                                   self.w[name + ".variance"])
        return F.batch_norm(x, *kept, self.w[name + ".scale"], self.w[name + ".shift"],
                            self.training, 0, float(settings.get("epsilon", 1e-5)))

    def max_pool(self, _, arguments, settings, x):
        return F.max_pool2d(x, *self.window(arguments, settings), ceil_mode="ceil" in settings)

    def average_pool(self, _, arguments, settings, x):
        return F.avg_pool2d(x, *self.window(arguments, settings))

    def window(self, arguments, settings):
        size = pair(arguments[0])
        return size, pair(settings["stride"]) if "stride" in settings else size, pair(
            settings.get("pad", "0"))

    def lrn(self, _, arguments, settings, x):
        return F.local_response_norm(x, int(arguments[0]), k=float(settings.get("k", 1)))

    def lstm(self, name, _, settings, x):
        weights = [self.w[f"{name}.{part}_{kind}"] for kind in ("weight", "bias")
                   for part in ("input", "state")]
        weights = [w.t() if w.dim() == 2 else w for w in weights]
        zero = torch.zeros(1, x.shape[0], weights[1].shape[1], dtype=x.dtype)
        y = torch.lstm(x, (zero, zero), weights, True, 1, 0.0, self.training, False, True)[0]
        return y[:, -1] if settings.get("output") == "last" else y

    def embedding(self, name, _, __, x):
        return self.w[name + ".weight"][x.long()]

    def relu(self, _, __, ___, x):
        return torch.relu(x)

    def sigmoid(self, _, __, ___, x):
        return torch.sigmoid(x)

    def add(self, _, __, ___, a, b):
        return a + b

    def concat(self, _, __, ___, *parts):
        return torch.cat(parts, 1)

    def flatten(self, _, __, ___, x):
        return x.flatten(1)

    def global_average_pool(self, _, __, ___, x):
        return x.mean((2, 3))


def make_batch(text, outputs):
    generator = torch.Generator().manual_seed(1)
    rows = 16 if len(text.sample) == 1 and not text.tokens else 2
    shape = (rows, *text.sample)
    if text.tokens:
        x = torch.randint(text.tokens, shape, generator=generator).float()
    else:
        x = torch.randn(shape, generator=generator)
    if text.loss == "mse":
        return x, torch.rand(rows, outputs, generator=generator)
    places = text.sample[:1] if text.tokens else ()
    return x, torch.randint(text.classes, (rows, *places), generator=generator, dtype=torch.int32)


def step_of(text, w, x, target):
    """PyTorch's loss, gradients by name, and statistics of the batch, in the precision of w."""
    learnt = {name: w[name].requires_grad_() for name in w
              if not name.endswith((".mean", ".variance"))}
    real = next(iter(w.values())).dtype
    forward = Forward(text, w, True)
    y = forward(x.to(real))
    loss = (F.mse_loss(y, target.to(real)) if text.loss == "mse"
            else F.cross_entropy(y.flatten(0, -2), target.long().flatten()))
    gradients = torch.autograd.grad(loss, list(learnt.values()))
    for tensor in learnt.values():
        tensor.requires_grad_(False)
    return loss.item(), dict(zip(learnt, gradients)), forward.statistics


def away(found, expected):
    """How far gradients are from those expected, by name, relative to their norms."""
    least = NOTHING * max(float(g.norm()) for g in expected.values())
    return {name: float((found[name] - g).norm()) / max(float(g.norm()), least)
            for name, g in expected.items()}


def nearby(text, x):
    """The inputs, and a few that differ in their last digits."""
    generator = torch.Generator().manual_seed(2)
    yield x
    for _ in range(0 if text.tokens else DRAWINGS):
        yield x * (1 + LAST_DIGITS * torch.randn(x.shape, generator=generator))


def allowed(usual, theirs):
    return max(usual, 10 * theirs)


def luck(text, w, x, target, expected_loss, gradients, ours):
    """How far PyTorch's loss and gradients in single precision are from these at most; looks on only
    where ours are further away."""
    single, losses, furthest = {n: value.float() for n, value in w.items()}, 0, 0
    for near in nearby(text, x):
        loss, found, _ = step_of(text, single, near, target)
        losses = max(losses, abs(loss - expected_loss) / abs(expected_loss))
        furthest = max(furthest, *away(found, gradients).values())
        if ours[0] <= allowed(LOSS, losses) and ours[1] <= allowed(GRADIENT, furthest):
            break
    return losses, furthest


def compare_step(text, prony, path, w, rate, x, target, expected_loss, gradients):
    """What differs in one training step, a line each, and how much at most: ours, PyTorch's."""
    wrong, loss = [], prony.train(x, target)
    off, moved = abs(loss - expected_loss) / abs(expected_loss), prony.weights(path)
    ours = away({n: (w[n] - moved[n]) / rate for n in gradients}, gradients)
    losses, theirs = luck(text, w, x, target, expected_loss, gradients, (off, max(ours.values())))
    if not off <= allowed(LOSS, losses):
        wrong.append(f"loss: found {loss:.9g}, expected {expected_loss:.9g}")
    for name, difference in ours.items():
        if not difference <= allowed(GRADIENT, theirs):
            wrong.append(f"gradient of {name}: differs by {difference:.3g} of its norm")
    return wrong, max(ours.values()), theirs


def outputs(text, w, x):
    """What PyTorch says, in the precision of w."""
    with torch.no_grad():
        y = Forward(text, w, False)(x.to(next(iter(w.values())).dtype)).double()
    return y.softmax(-1) if text.loss == "cross_entropy" else y


def compare_outputs(text, prony, path, w, x):
    """What differs in the outputs, a line each, and how much: ours, PyTorch's."""
    write_safetensors(path, w)
    prony.load(path)
    expected, single = outputs(text, w, x), {n: value.float() for n, value in w.items()}
    found = prony.predict(x).double().reshape(expected.shape)

    def off(y):
        return float((y - expected).abs().max() / expected.abs().max())

    ours, theirs = off(found), 0
    for near in nearby(text, x):
        theirs = max(theirs, off(outputs(text, single, near)))
        if ours <= allowed(OUTPUT, theirs):
            return [], ours, theirs
    return [f"outputs: differ by {ours:.3g}"], ours, theirs


def compare(library, name, folder):
    """What differs, a line each; says how much."""
    model, _, edge = name.partition("@")
    text = Text(f"src/nn/zoo/{model}.net", edge)
    path = os.path.join(folder, "weights")
    prony = Prony(library, "simd", text.prony(1), text.classes)
    w = prony.weights(path)
    x, target = make_batch(text, prony.outputs())
    prony.close()
    loss, gradients, statistics = step_of(text, w, x, target)
    least = NOTHING * max(float(g.norm()) for g in gradients.values())
    rate = max(float(w[n].norm()) / max(float(g.norm()), least) for n, g in gradients.items())
    prony = Prony(library, "simd", text.prony(rate), text.classes)
    wrong, *step = compare_step(text, prony, path, w, rate, x, target, loss, gradients)
    del gradients
    w = {n: statistics.get(n, value) for n, value in w.items()}
    more, *output = compare_outputs(text, prony, path, w, x)
    prony.close()
    print(f"    {name}: gradients within {step[0]:.1e} (PyTorch's in single precision "
          f"{step[1]:.1e}), outputs within {output[0]:.1e} ({output[1]:.1e})")
    return wrong + more


def main():
    library = open_library(sys.argv[1])
    agree = True
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:]:
            try:
                wrong = compare(library, name, folder)
            except (RuntimeError, KeyError) as problem:
                wrong = [repr(problem)]
            for line in wrong[:10]:
                print(line)
            print(f"{'FAIL' if wrong else 'ok  '} zoo.{name}", flush=True)
            agree = agree and not wrong
    sys.exit(not agree)


if __name__ == "__main__":
    main()
