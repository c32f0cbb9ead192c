#!/usr/bin/env python3
"""Neural networks in JAX: a step is one compiled function, which may overwrite the parameters; or,
where that is quicker, all batches of the data are one compiled loop of such steps (lax.scan). It has
the layers of the reference networks; images are NCHW, as they come: XLA lays them out."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from prony_peer import Unsupported, find_packages, serve

KINDS = ("dense", "sigmoid", "relu", "tanh", "flatten", "conv", "max_pool", "lstm")
PRECISIONS = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "bfloat16"}


def pair(values):
    """An argument of one number or two (5x5): both."""
    return tuple(int(values[i % len(values)]) for i in range(2))


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
        work.refuse_learning()
        for place, layer in enumerate(work.layers):
            if layer["kind"] not in KINDS or layer["inputs"] != [place - 1] or layer.get("ceil"):
                raise Unsupported(f"this peer has no layer {layer['kind']} here")
        if work.loss == "cross_entropy" and work.layers[-1]["kind"] != "dense":
            raise Unsupported("this peer takes the cross-entropy of a linear layer")
        target = work.labels if work.loss == "cross_entropy" else work.targets
        self.inputs = self.batches(work.inputs)
        self.targets = self.batches(target) if work.training else None
        self.calls, self.answers = work.calls and work.unit == "gpu", []
        self.read = {}  # parameters as they were read last, with what they were read from
        self.input_list = self.host(work.inputs) if self.calls else list(self.inputs)
        self.target_list = list(self.targets) if work.training else None
        if work.training:  # a new function each time, or JAX would take the last work's
            self.compute = jax.jit(lambda *given: self.update(*given), donate_argnums=0)
            self.all = jax.jit(lambda *given: self.update_all(*given), donate_argnums=0)
        else:
            self.compute = jax.jit(lambda *given: self.outputs_of(*given))
            self.all = jax.jit(lambda *given: self.outputs_of_all(*given))
        self.initial = {name: self.put(value) for name, value in work.weights.items()}
        self.restart()
        loops = ["single"] if work.calls else ["single", "scan"]
        settings = work.search({"steps": loops}, self.trial, 0.25 if work.unit == "cpu" else 0.1,
                               **self.libraries()[0])
        self.loop = settings["steps"]
        self.restart()
        unit = str(self.device.device_kind)
        return {"software": {**find_packages(self.packages), "unit": unit, "steps": self.loop}}

    def libraries(self):
        """XLA computes: which one, and on what."""
        return {**find_packages(["jaxlib"]), "xla": str(getattr(self.device.client, "platform_version", ""))}, []

    def trial(self, settings):
        self.loop = settings["steps"]
        self.restart()
        return self.work.batches, lambda: self.steps(0, self.work.batches)

    def put(self, tensor):
        import numpy as np

        shape, values = tensor
        return self.jax.device_put(np.array(values).reshape(shape), self.device)

    def batches(self, tensor):
        shape, values = tensor
        return self.put(([self.work.batches, self.work.batch] + shape[1:], values))

    def host(self, tensor):
        """The batches in host memory, for calls."""
        import numpy as np

        shape, values = tensor
        return list(np.array(values).reshape([self.work.batches, self.work.batch] + shape[1:]))

    def restart(self):
        """A step of training overwrites them."""
        copy = self.jax.numpy.copy if self.work.training else lambda value: value
        self.parameters = {name: copy(value) for name, value in self.initial.items()}

    def forward(self, parameters, x):
        functions = {"sigmoid": self.jax.nn.sigmoid, "relu": self.jax.nn.relu,
                     "tanh": self.jax.numpy.tanh, "flatten": lambda x: x.reshape(len(x), -1)}
        for layer in self.work.layers:
            if layer["kind"] in functions:
                x = functions[layer["kind"]](x)
            else:
                x = getattr(self, layer["kind"])(layer, lambda part: parameters.get(
                    f"{layer['name']}.{part}", 0), x)
        return x

    def dense(self, layer, own, x):
        return x @ own("weight") + own("bias")

    def conv(self, layer, own, x):
        y = self.jax.lax.conv_general_dilated(
            x, own("weight"), pair(layer["stride"]), [(pad, pad) for pad in pair(layer["pad"])],
            rhs_dilation=pair(layer["dilation"]), feature_group_count=int(layer["groups"]))
        return y + own("bias")[:, None, None] if layer["bias"] else y

    def max_pool(self, layer, own, x):
        size, stride = pair(layer["window"]), pair(layer["stride"])
        stride = stride if any(stride) else size
        pads = ((0, 0), (0, 0)) + tuple((pad, pad) for pad in pair(layer["pad"]))
        return self.jax.lax.reduce_window(
            x, -self.jax.numpy.inf, self.jax.lax.max, (1, 1) + size, (1, 1) + stride, pads)

    def lstm(self, layer, own, x):
        """[batch, time, features]; the products of the inputs are one, those of the state a loop."""
        numpy, sigmoid = self.jax.numpy, self.jax.nn.sigmoid
        given = x @ own("input_weight") + own("input_bias") + own("state_bias")

        def cell(memory, now):
            h, c = memory
            i, f, g, o = numpy.split(now + h @ own("state_weight"), 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
            h = sigmoid(o) * numpy.tanh(c)
            return (h, c), h

        start = numpy.zeros((len(x), int(layer["units"])), x.dtype)
        (last, _), steps = self.jax.lax.scan(cell, (start, start), given.swapaxes(0, 1))
        return last if layer["output"] else steps.swapaxes(0, 1)

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
        if self.calls:
            self.result.copy_to_host_async()
            self.answers.append(self.result)

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
        for answer in self.answers:
            answer.__array__()  # in host memory
        self.answers.clear()

    def outputs(self):
        return self.result.reshape(-1)

    def loss(self):
        return float(self.result)

    def parameter(self, name, i):
        now = self.parameters[name]
        if self.read.get(name, (None,))[0] is not now:  # as a whole: an element takes JAX a millisecond
            self.read[name] = now, now.__array__().reshape(-1)
        return float(self.read[name][1][i])


serve(Peer())
