#!/usr/bin/env python3
"""Neural networks in NumPy: 32-bit floats, whole batches, updates in place."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from prony_peer import serve


class Layer:
    def __init__(self, np, weights, weight_name, bias_name, activation):
        self.np = np
        self.weight = self.array(weights[weight_name])  # [inputs, outputs]
        self.bias = self.array(weights[bias_name])
        self.activation = activation

    def array(self, tensor):
        shape, values = tensor
        return self.np.array(values, dtype=self.np.float32).reshape(shape)

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
        self.np = np
        stack = work.dense_stack()
        self.layers = [Layer(np, work.weights, *names) for names in stack]
        self.names = {}
        for layer, (weight, bias, _) in zip(self.layers, stack):
            self.names[weight] = layer.weight.reshape(-1)
            self.names[bias] = layer.bias
        self.inputs = [np.array(rows, dtype=np.float32) for rows in work.rows(work.inputs)]
        self.rate = np.float32(work.rate)
        if work.training:
            self.targets = [np.array(rows, dtype=np.float32) for rows in work.rows(work.targets)]
            self.step = self.train
        else:
            self.step = self.forward

    def forward(self, batch):
        x = self.inputs[batch]
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def train(self, batch):
        values = [self.inputs[batch]]
        for layer in self.layers:
            values.append(layer.forward(values[-1]))
        difference = values[-1] - self.targets[batch]
        flat = difference.reshape(-1)
        self.error = (flat @ flat) / flat.size
        dy = difference * self.np.float32(2.0 / flat.size)
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
