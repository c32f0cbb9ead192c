"""Neural networks in pure Python, over lists or over the standard library's arrays.

Each output unit holds its own row of weights, so that the forward pass is a dot product and the
update a comprehension: the quickest that plain Python allows. Numbers are Python's floats (64 bit);
the weights start from the same 32-bit values as everyone else's.
"""

from math import exp, log
from operator import mul, sub


def sigmoid(v):
    return 1.0 / (1.0 + exp(-v)) if v >= 0.0 else 1.0 - 1.0 / (1.0 + exp(v))


def relu(v):
    return v if v > 0.0 else 0.0


def softmax(row):
    most = max(row)
    powers = [exp(v - most) for v in row]
    scale = 1.0 / sum(powers)
    return [scale * v for v in powers]


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
        self.softmax = work.loss == "cross_entropy"
        if not work.training:
            self.step = self.infer
            return
        self.step = self.train
        if self.softmax:
            width, labels = self.layers[-1].outputs, work.labels[1]
            rows = [[float(i == label) for i in range(width)] for label in labels]
            self.targets = [rows[i : i + work.batch] for i in range(0, len(rows), work.batch)]
        else:
            self.targets = work.rows(work.targets)

    def compare(self, y, target, samples):
        """From a sample's outputs to its part of the loss, and the slopes."""
        if self.softmax:
            y = softmax(y)
            self.error -= log(sum(map(mul, y, target))) / samples
            return [(v - t) / samples for v, t in zip(y, target)]
        differences, scale = list(map(sub, y, target)), 2.0 / (samples * len(y))
        self.error += 0.5 * scale * sum(map(mul, differences, differences))
        return [scale * d for d in differences]

    def train(self, batch):
        targets = self.targets[batch]
        self.error = 0.0
        pairs = [[] for _ in self.layers]  # per layer (x, dz) of every sample
        for x, target in zip(self.inputs[batch], targets):
            values = [x]
            for layer in self.layers:
                values.append(layer.forward(values[-1]))
            dy = self.compare(values[-1], target, len(targets))
            for n in range(len(self.layers) - 1, -1, -1):
                dz = self.layers[n].slopes(values[n + 1], dy)
                pairs[n].append((values[n], dz))
                if n:
                    dy = self.layers[n].inputs_slopes(dz)
        for layer, samples in zip(self.layers, pairs):
            layer.update(self.rate, samples)

    def infer(self, batch):
        flat = []
        for x in self.inputs[batch]:
            for layer in self.layers:
                x = layer.forward(x)
            flat.extend(softmax(x) if self.softmax else x)
        self.flat = flat

    def outputs(self):
        return list(self.flat)

    def loss(self):
        return self.error

    def parameter(self, name, i):
        return self.names[name](i)
