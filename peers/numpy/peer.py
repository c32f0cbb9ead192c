#!/usr/bin/env python3
"""Neural networks in NumPy: 32-bit floats, whole batches, updates in place."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from prony_peer import find_packages, search, serve


class Layer:
    def __init__(self, np, weights, turned, weight_name, bias_name, activation):
        self.np = np
        shape, values = weights[weight_name]
        self.weight = np.array(values).reshape(shape)  # [inputs, outputs]
        if turned:  # in memory [outputs, inputs]
            self.weight = np.asfortranarray(self.weight)
        self.bias = np.array(weights[bias_name][1])
        self.activation = activation

    def forward(self, x):
        np, y = self.np, x @ self.weight
        y += self.bias
        if self.activation == "sigmoid":
            np.negative(y, out=y)
            np.exp(y, out=y)
            y += np.float32(1)
            np.reciprocal(y, out=y)
        elif self.activation == "relu":
            np.maximum(y, 0, out=y)
        return y

    def slopes(self, y, dy):
        if self.activation == "sigmoid":
            return dy * (y * (self.np.float32(1) - y))
        if self.activation == "relu":
            return dy * (y > 0)
        return dy

    def update(self, rate, x, dz):
        self.weight -= x.T @ (rate * dz)
        self.bias -= rate * dz.sum(axis=0)


class Peer:
    packages = ["numpy"]

    def prepare(self, work):
        import numpy as np  # only now: the number of threads is known

        np.seterr(over="ignore")  # exp(-y) of a very negative y is infinite, and its sigmoid 0
        self.np, self.work = np, work
        self.softmax = work.loss == "cross_entropy"
        self.inputs = self.batches(work.inputs)
        self.rate = np.float32(work.rate)
        self.step = self.train if work.training else self.forward
        if work.training and self.softmax:
            width = work.weights[work.dense_stack()[-1][1]][0][0]
            one_of = np.eye(width, dtype=np.float32)[np.array(work.labels[1])]
            self.targets = one_of.reshape(work.batches, work.batch, width)
        elif work.training:
            self.targets = self.batches(work.targets)
        self.settings = search({"weights": ["[in][out]", "[out][in]"]}, self.trial)
        self.restart()
        return {"software": {**find_packages(self.packages), **self.settings}}

    def batches(self, tensor):
        shape, values = tensor
        return self.np.array(values).reshape(self.work.batches, self.work.batch, -1)

    def trial(self, settings):
        self.settings = settings
        self.restart()
        return lambda: self.step(0)

    def restart(self):
        turned, stack = self.settings["weights"] == "[out][in]", self.work.dense_stack()
        self.layers = [Layer(self.np, self.work.weights, turned, *names) for names in stack]
        self.names = {}
        for layer, (weight, bias, _) in zip(self.layers, stack):
            self.names[weight], self.names[bias] = layer.weight.flat, layer.bias.flat

    def forward(self, batch):
        x = self.inputs[batch]
        for layer in self.layers:
            x = layer.forward(x)
        return self.probabilities(x) if self.softmax else x

    def probabilities(self, y):
        y = self.np.exp(y - y.max(axis=1, keepdims=True))
        y /= y.sum(axis=1, keepdims=True)
        return y

    def slopes(self, y, target):
        """Sets the loss; gives its slopes for what the last layer gave."""
        np = self.np
        if self.softmax:
            y = self.probabilities(y)
            self.error = -np.log((y * target).sum(axis=1)).mean()
            return (y - target) * np.float32(1.0 / len(y))
        difference = y - target
        flat = difference.reshape(-1)
        self.error = (flat @ flat) / flat.size
        return difference * np.float32(2.0 / flat.size)

    def train(self, batch):
        values = [self.inputs[batch]]
        for layer in self.layers:
            values.append(layer.forward(values[-1]))
        dy = self.slopes(values[-1], self.targets[batch])
        for n in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[n]
            dz = layer.slopes(values[n + 1], dy)
            if n:
                dy = dz @ layer.weight.T
            layer.update(self.rate, values[n], dz)

    def outputs(self, batch):
        return self.forward(batch).reshape(-1).tolist()

    def loss(self):
        return float(self.error)

    def parameter(self, name, i):
        return float(self.names[name][i])


serve(Peer())
