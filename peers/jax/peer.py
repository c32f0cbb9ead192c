#!/usr/bin/env python3
"""Neural networks in JAX: a step is one compiled function, which may overwrite the parameters."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from prony_peer import Unsupported, find_packages, serve

PRECISIONS = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "bfloat16"}


class Peer:
    packages = ["jax"]
    units = ["cpu", "gpu"]
    precisions = list(PRECISIONS)  # of the products; everything else is fp32

    def prepare(self, work):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax

        self.jax, self.work = jax, work
        jax.config.update("jax_default_matmul_precision", PRECISIONS[work.precision])
        try:
            self.device = jax.devices(work.unit)[0]
        except RuntimeError:
            raise Unsupported(f"JAX finds no {work.unit} here") from None
        if work.unit == "cpu" and work.threads != (os.cpu_count() or 1):
            raise Unsupported(f"JAX makes a thread for each of {os.cpu_count()} cores")
        self.stack = work.dense_stack()
        target = work.labels if work.loss == "cross_entropy" else work.targets
        self.inputs = self.batches(work.inputs)
        self.targets = self.batches(target) if work.training else None
        self.compute = jax.jit(self.update, donate_argnums=0) if work.training else jax.jit(self.outputs_of)
        self.restart()
        return {"software": {**find_packages(self.packages), "unit": str(self.device.device_kind)}}

    def put(self, tensor):
        import numpy as np

        shape, values = tensor
        return self.jax.device_put(np.array(values).reshape(shape), self.device)

    def batches(self, tensor):
        shape, values = tensor
        rows = self.put(([self.work.batches, self.work.batch] + shape[1:], values))
        return list(rows)

    def restart(self):
        names = [name for row in self.stack for name in row[:2]]
        self.parameters = {name: self.put(self.work.weights[name]) for name in names}

    def forward(self, parameters, x):
        functions = {"sigmoid": self.jax.nn.sigmoid, "relu": self.jax.nn.relu, None: lambda y: y}
        for weight, bias, activation in self.stack:
            x = functions[activation](x @ parameters[weight] + parameters[bias])
        return x

    def outputs_of(self, parameters, x):
        y = self.forward(parameters, x)
        return self.jax.nn.softmax(y) if self.work.loss == "cross_entropy" else y

    def loss_of(self, parameters, x, target):
        numpy, y = self.jax.numpy, self.forward(parameters, x)
        if self.work.loss == "cross_entropy":
            chances = self.jax.nn.log_softmax(y)
            return -numpy.take_along_axis(chances, target[:, None], 1).mean()
        return ((y - target) ** 2).mean()

    def update(self, parameters, x, target):
        loss, slopes = self.jax.value_and_grad(self.loss_of)(parameters, x, target)
        return {n: parameters[n] - self.work.rate * slopes[n] for n in parameters}, loss

    def step(self, batch):
        if self.work.training:
            self.parameters, self.result = self.compute(
                self.parameters, self.inputs[batch], self.targets[batch])
        else:
            self.result = self.compute(self.parameters, self.inputs[batch])

    def steps(self, first, count):
        for i in range(first, first + count):
            self.step(i % self.work.batches)
        self.result.block_until_ready()

    def outputs(self, batch):
        self.step(batch)
        return self.result.reshape(-1).tolist()

    def loss(self):
        return float(self.result)

    def parameter(self, name, i):
        return float(self.parameters[name].reshape(-1)[i])


serve(Peer())
