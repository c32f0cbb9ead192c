"""graphs.py LIBRARY FIRST COUNT: random networks of PyTorch, written as ONNX, predicted and trained by prony
and by PyTorch. Drawn are what importers and fusions get wrong: values that several nodes read before one of
them could be folded, concatenations of one input, views of views, batch-norms behind all of these.

A network is made of its number alone. Its file is written with batch-norms as they are (the exporter folds
them otherwise). prony trains the file for a few steps; losses, then predictions, are those of PyTorch in
double: batch-norms learn, and their statistics follow the data. Weights that were saved predict the same. A line for each network that differs, and
their number."""
import io
import os
import random
import sys
import tempfile
import warnings

import torch
from torch import nn
from torch.nn import functional

from library import Prony, open_library, relative

ROWS, STEPS, RATE, TOLERANCE = 6, 4, 0.02, 1e-4
BACKENDS = ("simd", "ref", "blas")


class Graph(nn.Module):
    """Steps in order; each says which values it reads and gives one more."""

    def __init__(self, number):
        super().__init__()
        self.draw = random.Random(number)
        torch.manual_seed(number)
        self.sample = self.draw.choice([(6,), (3, 4), (2, 5, 6), (4, 4, 4)])
        self.steps, self.layers = [], nn.ModuleList()
        self.numbers = nn.ParameterList()
        self.values = [torch.randn(2, *self.sample)]
        for _ in range(self.draw.randint(3, 12)):
            self.add_step()
        with torch.no_grad():
            width = sum(self.values[v][0].numel() for v in self.leaves())
        self.last = nn.Linear(width, 3)
        for layer in self.layers:  # statistics and scales that are not those of a new layer
            if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
                for tensor, low in ((layer.weight, 0.5), (layer.running_var, 0.5), (layer.bias, -0.5),
                                    (layer.running_mean, -0.5)):
                    tensor.data.uniform_(low, low + 1)

    def leaves(self):
        read = {v for inputs, _ in self.steps for v in inputs}
        return [v for v in range(1, len(self.values)) if v not in read] or [0]

    def add_step(self):
        ways = [self.draw_weights, self.draw_norm, self.draw_function, self.draw_views, self.draw_pair,
                self.draw_alone, self.draw_factor, self.draw_mean, self.draw_folded]
        least = max(0, len(self.values) - 4)
        self.draw.choice(ways)(self.draw.randint(least, len(self.values) - 1))

    def step(self, inputs, function):
        with torch.no_grad():
            value = function(*(self.values[v] for v in inputs))
        if value.dim() > 4 or value[0].numel() > 600:
            return len(self.values) - 1
        self.steps.append((inputs, function))
        self.values.append(value)
        return len(self.values) - 1

    def keep(self, layer):
        self.layers.append(layer)
        return layer

    def parameter(self, *shape):
        self.numbers.append(nn.Parameter(torch.rand(*shape) + 0.5))
        place = len(self.numbers) - 1
        return lambda: self.numbers[place]

    def draw_weights(self, v):
        shape, bias = self.values[v].shape, self.draw.random() < 0.5
        units = self.draw.randint(2, 5)
        if len(shape) == 4:
            kind = nn.ConvTranspose2d if self.draw.random() < 0.3 else nn.Conv2d
            window = self.draw.choice([1, 3])
            return self.step([v], self.keep(kind(shape[1], units, window, padding=window // 2, bias=bias)))
        if bias:
            return self.step([v], self.keep(nn.Linear(shape[-1], units)))
        weight = self.parameter(shape[-1], units)
        return self.step([v], lambda x: x @ weight() / shape[-1])

    def draw_norm(self, v):
        shape = self.values[v].shape
        return self.step([v], self.keep((nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(shape[1])))

    def draw_function(self, v):
        return self.step([v], self.draw.choice([torch.relu, torch.tanh, torch.sigmoid]))

    def draw_views(self, v):
        """Of a view one more, and perhaps one of that; each may be read by others, too."""
        for _ in range(self.draw.randint(1, 3)):
            sizes = list(self.values[v].shape[1:])
            count = self.values[v][0].numel()
            way = self.draw.randint(0, 3)
            if way == 0 or len(sizes) == 3:
                sizes = [count]
            elif way == 1:
                sizes = [1, *sizes]
            else:
                rows = self.draw.choice([n for n in range(1, count + 1) if count % n == 0])
                sizes = [rows, count // rows]
            v = self.step([v], lambda x, sizes=tuple(sizes): x.reshape(x.size(0), *sizes))
            if self.draw.random() < 0.3:
                self.draw_function(v)
            if self.draw.random() < 0.3:
                self.draw_mean(v)
        return v

    def draw_pair(self, v):
        like = [u for u in range(len(self.values)) if self.values[u].shape == self.values[v].shape]
        u = self.draw.choice(like)
        if self.draw.random() < 0.3:
            return self.step([v, u], lambda a, b: torch.cat([a, b], 1))
        return self.step([v, u], self.draw.choice([torch.add, torch.mul]))

    def draw_alone(self, v):
        return self.step([v], lambda x: torch.cat([x], 1))

    def draw_factor(self, v):
        """Of a product of two values: a number of the file, or one that learns."""
        if self.values[v].dim() != 3:
            return v
        width = self.values[v].shape[2]
        v = self.step([v], lambda x: x @ (torch.tanh(x) / width).transpose(1, 2))
        learnt = self.parameter(1)
        factor = self.draw.choice([lambda x: x * 0.25, lambda x: x / 4, lambda x: x * learnt()])
        return self.step([v], factor)

    def draw_mean(self, v):
        if self.values[v].dim() < 3:
            return v
        axis = self.draw.randint(2, self.values[v].dim() - 1)
        return self.step([v], lambda x: x.mean(axis))

    def draw_folded(self, v):
        """Weights, then what could go into them; between them aliases, and others that read each."""
        v = self.draw_weights(v)
        for _ in range(self.draw.randint(0, 2)):
            if self.draw.random() < 0.5:
                self.draw.choice([self.draw_function, self.draw_mean, self.draw_norm])(v)
            v = self.draw_alone(v) if self.draw.random() < 0.7 else self.draw_views(v)
        shape = self.values[v].shape
        if self.draw.random() < 0.5:
            return self.draw_norm(v)
        number = self.parameter(shape[-1] if len(shape) < 4 else 1)
        return self.step([v], lambda x: x + number())

    def forward(self, x):
        values = [x]
        for inputs, function in self.steps:
            values.append(function(*(values[v] for v in inputs)))
        return self.last(torch.cat([torch.tanh(values[v]).flatten(1) for v in self.leaves()], 1))


def write(model, path):
    model.eval()
    file = io.BytesIO()
    torch.onnx.export(model, (torch.randn(ROWS, *model.sample),), file, opset_version=13,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                      input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    with open(path, "wb") as out:
        out.write(file.getvalue())


def batches(model, number):
    generator = torch.Generator().manual_seed(number)
    for _ in range(STEPS):
        yield (torch.randn(ROWS, *model.sample, generator=generator),
               torch.rand(ROWS, 3, generator=generator))


class Theirs:
    """The network as PyTorch computes it, in one precision."""

    def __init__(self, model, dtype):
        self.model, self.dtype = model.to(dtype), dtype
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=RATE)

    def predict(self, x):
        self.model.eval()
        with torch.no_grad():
            return self.model(x.to(self.dtype)).double()

    def train(self, x, target):
        self.model.train()
        self.optimiser.zero_grad()
        loss = functional.mse_loss(self.model(x.to(self.dtype)), target.to(self.dtype))
        loss.backward()
        self.optimiser.step()
        return loss.item()


def follow(model, number, network):
    """What it predicts, the losses of its training, and what it predicts then."""
    x = torch.randn(ROWS, *model.sample, generator=torch.Generator().manual_seed(5))
    first = network.predict(x)
    losses = [network.train(*batch) for batch in batches(model, number)]
    return {"predicts": first.double(), "loses": torch.tensor(losses, dtype=torch.float64),
            "then predicts": network.predict(x).double()}


def compare(library, number, path):
    """What differs, a line each. PyTorch in float says how far off rounding alone may be."""
    write(Graph(number), path)
    exact = follow(Graph(number), number, Theirs(Graph(number), torch.float64))
    rounded = follow(Graph(number), number, Theirs(Graph(number), torch.float32))
    backend = BACKENDS[number % len(BACKENDS)]
    prony = Prony(library, backend, None, 0, file=path, optimiser="sgd", rate=RATE)
    again = Prony(library, backend, None, 0, file=path, optimiser="sgd", rate=RATE)
    wrong = []
    try:
        ours = follow(Graph(number), number, prony)
        x = torch.randn(ROWS, *Graph(number).sample, generator=torch.Generator().manual_seed(5))
        again.predict(x)
        prony.call("prony_save", prony.network, (path + ".weights").encode())
        again.load(path + ".weights")
        if relative(again.predict(x).double(), ours["then predicts"]) > TOLERANCE:
            wrong.append(f"{backend}: with the weights of a file it predicts something else")
    finally:
        prony.close()
        again.close()
    for what, expected in exact.items():
        off, allowed = relative(ours[what], expected), 10 * relative(rounded[what], expected) + TOLERANCE
        if not off <= allowed <= 0.01:
            wrong.append(f"{backend}: what it {what} is off by {off:.3g}, expected at most {allowed:.3g}")
    return wrong


def main(path, first, count):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    library = open_library(path)
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            try:
                wrong = compare(library, number, os.path.join(folder, "graph.onnx"))
            except RuntimeError as problem:
                wrong = [str(problem).splitlines()[0]]
            for line in wrong[:2]:
                print(f"graph {number}: {line}", flush=True)
            differ += bool(wrong)
    print(f"{differ} of {count} graphs differ")
    sys.exit(differ != 0)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
