"""Dense stacks in int8, by PyTorch's quantised engine: operators on quantised tensors, with the scales
that prony found. Sums that become reals are products of reals, for the engine has none such."""

import math

from prony_peer import Unsupported
from prony_torch import TorchPeer

ENGINES = ["x86", "fbgemm", "onednn", "qnnpack"]  # the first that this build has


class Integers(TorchPeer):
    def __init__(self):
        super().__init__(None, None)

    def prepare(self, work):
        if work.training or work.unit != "cpu" or work.backend not in ("eager", "default"):
            raise Unsupported("PyTorch's int8 is for inference on the CPU, in eager mode")
        stack = work.dense_stack()
        self.begin(work)
        engines = self.torch.backends.quantized
        found = [name for name in ENGINES if name in engines.supported_engines]
        if not found:
            raise Unsupported("this PyTorch is built without a quantised engine")
        engines.engine = found[0]
        products = [next((p for p in work.products if p["layer"] == w.rsplit(".", 1)[0]), None) for w, _, _ in stack]
        if None in products:
            raise Unsupported("some layers stay in fp32, which this peer does not mix with int8")
        self.layers = [self.layer(*one, product, *(products[n + 1 : n + 2] or [None]))
                       for n, (one, product) in enumerate(zip(stack, products))]
        self.first = products[0]
        self.step = self.forward
        return {"software": {**self.about(), "engine": found[0]}}

    def take_data(self):
        self.inputs = self.batches(self.work.inputs)

    def layer(self, weight, bias, activation, product, after):
        """A function of a quantised tensor; of the last layer to reals."""
        torch, weights = self.torch, self.work.weights
        name, ops = product["layer"], torch.ops.quantized
        (inputs, outputs), values = weights[weight]
        levels = torch.frombuffer(values, dtype=torch.int8).reshape(inputs, outputs).t().contiguous()
        units = self.units(name, product)
        whole = torch.tensor(list(weights[bias][1]), dtype=torch.float64)
        whole += product["x_zero"] * levels.double().sum(1)  # prony's has the zero point in it
        real = (whole * units).float()
        scales, zeros = units / product["x_scale"], torch.zeros(outputs, dtype=torch.long)
        w = torch._make_per_channel_quantized_tensor(levels, scales, zeros, 0)
        if not product["y_scale"]:
            return self.reals(w.dequantize(), real, activation)
        packed, scale, zero = ops.linear_prepack(w, real), product["y_scale"], product["y_zero"]
        if activation == "relu":
            call = lambda x: ops.linear_relu(x, packed, scale, zero)
        else:
            call = lambda x: ops.linear(x, packed, scale, zero)
        if activation != "sigmoid":
            return call if after else lambda x: call(x).dequantize()
        if after:
            return lambda x: ops.sigmoid(call(x), after["x_scale"], after["x_zero"])
        return lambda x: torch.sigmoid(call(x).dequantize())

    def units(self, name, product):
        """What a sum of each output stands for."""
        weights = self.work.weights
        if f"{name}.scale" in weights:
            found = list(weights[f"{name}.scale"][1])
        else:
            pairs = zip(weights[f"{name}.multiplier"][1], weights[f"{name}.shift"][1])
            found = [math.ldexp(by, -shift) * product["y_scale"] for by, shift in pairs]
        return self.torch.tensor(found, dtype=self.torch.float64)

    def reals(self, w, bias, activation):
        linear = self.torch.nn.functional.linear
        then = {"sigmoid": self.torch.sigmoid, "relu": self.torch.relu}.get(activation, lambda y: y)
        return lambda x: then(linear(x.dequantize(), w, bias))

    def forward(self, batch):
        torch, first = self.torch, self.first
        with torch.inference_mode():
            x = torch.quantize_per_tensor(self.inputs[batch], first["x_scale"], first["x_zero"], torch.quint8)
            for layer in self.layers:
                x = layer(x)
            self.y = torch.softmax(x, -1) if self.work.loss == "cross_entropy" else x
        return self.y

    def restart(self):
        pass  # inference leaves the weights as they are
