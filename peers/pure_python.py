"""Neural networks in pure Python, over lists or over the standard library's arrays.

Each output unit holds its own row of weights, so that the forward pass is a dot product and the
update a comprehension: the quickest that plain Python allows. Numbers are Python's floats (64 bit);
the weights start from the same 32-bit values as everyone else's.
"""

from math import exp
from operator import mul


def sigmoid(v):
    return 1.0 / (1.0 + exp(-v)) if v >= 0.0 else 1.0 - 1.0 / (1.0 + exp(v))


def relu(v):
    return v if v > 0.0 else 0.0


FUNCTIONS = {"sigmoid": sigmoid, "relu": relu, None: None}


class Layer:
    def __init__(self, make, weights, weight_name, bias_name, activation):
        (self.inputs, self.outputs), values = weights[weight_name]
        values = values.tolist()  # [inputs][outputs], row by row
        self.make = make
        self.rows = [make(values[j :: self.outputs]) for j in range(self.outputs)]
        self.bias = make(weights[bias_name][1].tolist())
        self.activation = activation
        self.function = FUNCTIONS[activation]

    def forward(self, x):
        y = [sum(map(mul, row, x), b) for row, b in zip(self.rows, self.bias)]
        return self.make(map(self.function, y) if self.function else y)

    def slopes(self, y, dy):
        """From d(loss)/d(output) to d(loss)/d(before the activation)."""
        if self.activation == "sigmoid":
            return [d * v * (1.0 - v) for d, v in zip(dy, y)]
        if self.activation == "relu":
            return [d if v > 0.0 else 0.0 for d, v in zip(dy, y)]
        return dy

    def inputs_slopes(self, dz):
        dx = [0.0] * self.inputs
        for d, row in zip(dz, self.rows):
            dx = [a + d * w for a, w in zip(dx, row)]
        return dx

    def update(self, rate, samples):
        """samples: (x, dz) of every sample of the batch."""
        for x, dz in samples:
            for j, d in enumerate(dz):
                g = rate * d
                self.rows[j] = self.make([w - g * v for w, v in zip(self.rows[j], x)])
                self.bias[j] -= g


class PurePython:
    """`make` turns a row of numbers into what holds them: list, or an array."""

    packages = []

    def __init__(self, make):
        self.make = make

    def prepare(self, work):
        self.names = {}
        self.layers = []
        for weight, bias, activation in work.dense_stack():
            layer = Layer(self.make, work.weights, weight, bias, activation)
            self.layers.append(layer)
            self.names[weight] = lambda i, l=layer: l.rows[i % l.outputs][i // l.outputs]
            self.names[bias] = lambda i, l=layer: l.bias[i]
        self.inputs = [[self.make(x) for x in batch] for batch in work.rows(work.inputs)]
        self.rate = work.rate
        if work.training:
            self.targets = work.rows(work.targets)
            self.step = self.train
        else:
            self.step = self.outputs

    def train(self, batch):
        targets = self.targets[batch]
        scale = 2.0 / (len(targets) * len(targets[0]))
        self.error = 0.0
        pairs = [[] for _ in self.layers]  # per layer (x, dz) of every sample
        for x, target in zip(self.inputs[batch], targets):
            values = [x]
            for layer in self.layers:
                values.append(layer.forward(values[-1]))
            differences = [v - t for v, t in zip(values[-1], target)]
            self.error += sum(map(mul, differences, differences))
            dy = [scale * d for d in differences]
            for n in range(len(self.layers) - 1, -1, -1):
                dz = self.layers[n].slopes(values[n + 1], dy)
                pairs[n].append((values[n], dz))
                if n:
                    dy = self.layers[n].inputs_slopes(dz)
        self.error *= 0.5 * scale
        for layer, samples in zip(self.layers, pairs):
            layer.update(self.rate, samples)

    def outputs(self, batch):
        flat = []
        for x in self.inputs[batch]:
            for layer in self.layers:
                x = layer.forward(x)
            flat.extend(x)
        return flat

    def loss(self):
        return self.error

    def parameter(self, name, i):
        return self.names[name](i)
