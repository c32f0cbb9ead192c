"""Writes a network as an ONNX file: the few messages of onnx.proto that inference needs, by hand.

A protocol buffer is a row of fields: a number that says which field and how it is coded (0: a whole
number in groups of seven bits; 2: a length and so many bytes; 5: four bytes), then the value.
"""

import struct
from array import array

from prony_peer import Unsupported

IR_VERSION, OPSET, FLOAT, INT64 = 8, 17, 1, 7


def varint(number):
    number &= (1 << 64) - 1  # negative ones as two's complement
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def real(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def attribute(name, value):
    """AttributeProto: the field and the code of the type follow from the value."""
    if isinstance(value, float):
        coded = real(2, value) + number(20, 1)
    elif isinstance(value, int):
        coded = number(3, value) + number(20, 2)
    elif isinstance(value, str):
        coded = chunk(4, value) + number(20, 3)
    else:
        coded = b"".join(number(8, v) for v in value) + number(20, 7)
    return chunk(1, name) + coded


def tensor(name, shape, code, data):
    dims = b"".join(number(1, size) for size in shape)
    return dims + number(2, code) + chunk(8, name) + chunk(9, data)


def value_info(name, shape=None):
    """ValueInfoProto of floats; without a shape it is left open."""
    kind = number(1, FLOAT)
    if shape:
        kind += chunk(2, b"".join(chunk(1, number(1, size)) for size in shape))
    return chunk(1, name) + chunk(2, chunk(1, kind))


def pair(values):
    values = [int(v) for v in values]
    return values if len(values) == 2 else values * 2


def pads(layer):
    return pair(layer["pad"]) * 2


def reordered(values, gates, order, rows):
    """A matrix [rows, gates·units] as [gates·units, rows], its gates in another order."""
    width = len(values) // rows
    units, out = width // gates, array("f")
    for gate in order:
        for unit in range(units):
            out.extend(values[gate * units + unit :: width])
    return out


HELPERS = {"node", "constant", "weight", "pool", "plain"}  # of Model, which are no layers


class Model:
    def __init__(self, work, turned):
        self.weights, self.turned = work.weights, turned
        self.nodes, self.tensors = b"", b""
        names = {-1: "x"}
        for place, layer in enumerate(work.layers):
            if layer["kind"] in HELPERS or not hasattr(self, layer["kind"]):
                raise Unsupported(f"this peer has no layer {layer['kind']}")
            inputs = [names[i] for i in layer["inputs"]]
            names[place] = getattr(self, layer["kind"])(layer, *inputs)
        y = names[len(work.layers) - 1]
        if work.loss == "cross_entropy":
            y = self.node("Softmax", [y], "probabilities", axis=-1)
        graph = self.nodes + chunk(2, "prony") + self.tensors
        graph += chunk(11, value_info("x", [work.batch] + work.inputs[0][1:]))
        graph += chunk(12, value_info(y))
        opset = chunk(1, "") + number(2, OPSET)
        self.bytes = number(1, IR_VERSION) + chunk(7, graph) + chunk(8, opset)
        self.output = y

    def node(self, kind, inputs, output, outputs=None, **attributes):
        coded = b"".join(chunk(1, name) for name in inputs)
        coded += b"".join(chunk(2, name) for name in outputs or [output])
        coded += chunk(3, output) + chunk(4, kind)
        coded += b"".join(chunk(5, attribute(*item)) for item in attributes.items())
        self.nodes += chunk(1, coded)
        return output

    def constant(self, name, shape, values):
        code = FLOAT if values.typecode == "f" else INT64
        self.tensors += chunk(5, tensor(name, shape, code, values.tobytes()))
        return name

    def weight(self, layer, part):
        name = f"{layer['name']}.{part}"
        return self.constant(name, *self.weights[name])

    def dense(self, layer, x):
        name = layer["name"]
        shape, values = self.weights[name + ".weight"]
        if self.turned:
            values, shape = reordered(values, 1, [0], shape[0]), shape[::-1]
        inputs = [x, self.constant(name + ".weight", shape, values)]
        if layer["bias"]:
            inputs.append(self.weight(layer, "bias"))
        return self.node("Gemm", inputs, name, transB=int(self.turned))

    def conv(self, layer, x):
        inputs = [x, self.weight(layer, "weight")]
        if layer["bias"]:
            inputs.append(self.weight(layer, "bias"))
        return self.node("Conv", inputs, layer["name"], kernel_shape=pair(layer["kernel"]),
                         strides=pair(layer["stride"]), pads=pads(layer),
                         dilations=pair(layer["dilation"]), group=int(layer["groups"]))

    def pool(self, kind, layer, x, **more):
        window, stride = pair(layer["window"]), pair(layer["stride"])
        return self.node(kind, [x], layer["name"], kernel_shape=window, pads=pads(layer),
                         strides=stride if any(stride) else window, **more)

    def max_pool(self, layer, x):
        return self.pool("MaxPool", layer, x)

    def average_pool(self, layer, x):
        return self.pool("AveragePool", layer, x, count_include_pad=int(layer["count_pad"]))

    def global_average_pool(self, layer, x):
        mean = self.node("GlobalAveragePool", [x], layer["name"] + ".image")
        return self.node("Flatten", [mean], layer["name"])

    def lstm(self, layer, x):
        """ONNX has time before batch, and the gates i, o, f, c where we have i, f, g, o."""
        name, units, order = layer["name"], int(layer["units"]), [0, 3, 1, 2]
        inputs = self.weights[name + ".input_weight"][0][0]
        parts = {part: self.weights[f"{name}.{part}"][1] for part in
                 ("input_weight", "state_weight", "input_bias", "state_bias")}
        w = reordered(parts["input_weight"], 4, order, inputs)
        r = reordered(parts["state_weight"], 4, order, units)
        b = reordered(parts["input_bias"], 4, order, 1) + reordered(parts["state_bias"], 4, order, 1)
        turned = self.node("Transpose", [x], name + ".turned", perm=[1, 0, 2])
        inputs = [turned, self.constant(name + ".w", [1, 4 * units, inputs], w),
                  self.constant(name + ".r", [1, 4 * units, units], r),
                  self.constant(name + ".b", [1, 8 * units], b)]
        y, last = name + ".all", name + ".last"
        self.node("LSTM", inputs, y, outputs=[y, last], hidden_size=units)
        axis = self.constant(name + ".axis", [1], array("q", [0 if layer["output"] else 1]))
        if layer["output"]:
            return self.node("Squeeze", [last, axis], name)
        y = self.node("Squeeze", [y, axis], name + ".steps")
        return self.node("Transpose", [y], name, perm=[1, 0, 2])

    def batch_norm(self, layer, x):
        inputs = [self.weight(layer, part) for part in ("scale", "shift", "mean", "variance")]
        return self.node("BatchNormalization", [x] + inputs, layer["name"],
                         epsilon=float(layer["epsilon"]))

    def lrn(self, layer, x):
        return self.node("LRN", [x], layer["name"], size=int(layer["size"]),
                         alpha=float(layer["alpha"]), beta=float(layer["beta"]), bias=float(layer["k"]))

    def dropout(self, layer, x):
        return x  # in training only

    def clip(self, layer, x):
        inputs = [x]
        for end in ("low", "high"):  # what is no bound has no name
            name = f"{layer['name']}.{end}" if abs(layer[end]) < 3.4e38 else ""
            inputs.append(name and self.constant(name, [], array("f", [layer[end]])))
        return self.node("Clip", inputs, layer["name"])

    def plain(kind, **attributes):
        def write(self, layer, *inputs):
            return self.node(kind, inputs, layer["name"], **attributes)

        return write

    sigmoid, tanh, relu = plain("Sigmoid"), plain("Tanh"), plain("Relu")
    softplus, flatten, add, multiply = plain("Softplus"), plain("Flatten"), plain("Add"), plain("Mul")
    divide = plain("Div")

    def concat(self, layer, *inputs):
        return self.node("Concat", inputs, layer["name"], axis=int(layer["axis"]))
