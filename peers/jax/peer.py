#!/usr/bin/env python3
"""Neural networks in JAX: a step is one compiled function, which may overwrite the parameters; or,
where that is quicker, all batches of the data are one compiled loop of such steps (lax.scan)."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from prony_peer import Unsupported, find_packages, search, serve

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
        self.input_list = list(self.inputs)
        self.target_list = list(self.targets) if work.training else None
        if work.training:  # a new function each time, or JAX would take the last work's
            self.compute = jax.jit(lambda *given: self.update(*given), donate_argnums=0)
            self.all = jax.jit(lambda *given: self.update_all(*given), donate_argnums=0)
        else:
            self.compute = jax.jit(lambda *given: self.outputs_of(*given))
            self.all = jax.jit(lambda *given: self.outputs_of_all(*given))
        self.restart()
        loops = ["single"] if getattr(work, "calls", False) else ["single", "scan"]
        settings = search({"steps": loops}, self.trial)
        self.loop = settings["steps"]
        self.restart()
        unit = str(self.device.device_kind)
        return {"software": {**find_packages(self.packages), "unit": unit, "steps": self.loop}}

    def trial(self, settings):
        self.loop = settings["steps"]
        self.restart()
        return lambda: self.steps(0, self.work.batches)

    def put(self, tensor):
        import numpy as np

        shape, values = tensor
        return self.jax.device_put(np.array(values).reshape(shape), self.device)

    def batches(self, tensor):
        shape, values = tensor
        return self.put(([self.work.batches, self.work.batch] + shape[1:], values))

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

    def update_all(self, parameters, inputs, targets):
        return self.jax.lax.scan(lambda p, batch: self.update(p, *batch), parameters, (inputs, targets))

    def outputs_of_all(self, parameters, inputs):
        return self.jax.lax.map(lambda x: self.outputs_of(parameters, x), inputs)

    def step(self, batch):
        if self.work.training:
            self.parameters, self.result = self.compute(
                self.parameters, self.input_list[batch], self.target_list[batch])
        else:
            self.result = self.compute(self.parameters, self.input_list[batch])

    def whole_round(self):
        if self.work.training:
            self.parameters, losses = self.all(self.parameters, self.inputs, self.targets)
            self.result = losses
        else:
            self.result = self.all(self.parameters, self.inputs)

    def steps(self, first, count):
        batches, i, end = self.work.batches, first, first + count
        while i < end:
            if self.loop == "scan" and i % batches == 0 and end - i >= batches:
                self.whole_round()
                i += batches
            else:
                self.step(i % batches)
                i += 1
        self.result.block_until_ready()

    def outputs(self, batch):
        self.step(batch)
        return self.result.reshape(-1).tolist()

    def loss(self):
        return float(self.result)

    def parameter(self, name, i):
        return float(self.parameters[name].reshape(-1)[i])


serve(Peer())
