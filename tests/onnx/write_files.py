"""write_files.py FOLDER: small ONNX files, written by hand, each for one thing that real ones have."""

import os
import struct
import sys

FLOAT, INT64 = 1, 7


def varint(number):
    number, out = number & (1 << 64) - 1, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytearray([number]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def info(name, code, shape):
    dims = b"".join(field(1, field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, code) + field(2, dims)))


def attribute(name, value):
    if isinstance(value, list):
        coded = b"".join(field(8, v) for v in value) + field(20, 7)
    else:
        coded = field(3, value) + field(20, 2)
    return field(1, name) + coded


def node(op, inputs, outputs, domain="", **attributes):
    coded = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs)
    coded += field(3, "the_" + op.lower()) + field(4, op) + field(7, domain)
    return coded + b"".join(field(5, attribute(*item)) for item in attributes.items())


def tensor(name, shape, scale=0.1):
    count = 1
    for size in shape:
        count *= size
    values = [scale * ((7 * i) % 11 - 5) for i in range(count)]
    return (b"".join(field(1, size) for size in shape) + field(2, FLOAT) + field(8, name)
            + field(9, struct.pack(f"<{count}f", *values)))


def whole(name, values):
    return (field(1, len(values)) + field(2, INT64) + field(8, name)
            + field(9, struct.pack(f"<{len(values)}q", *values)))


def model(nodes, inputs, outputs, tensors=()):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "test")
    graph += b"".join(field(5, t) for t in tensors) + b"".join(field(11, i) for i in inputs)
    graph += b"".join(field(12, field(1, o) + field(2, field(1, field(1, FLOAT)))) for o in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


GEMM = node("Gemm", ["x", "w"], ["h"])
FILES = {
    # computes one sample at a time
    "fixed.onnx": model([GEMM, node("Relu", ["h"], ["y"])], [info("x", FLOAT, [1, 6])], ["y"],
                        [tensor("w", [6, 4])]),
    # computes four
    "four.onnx": model([GEMM], [info("x", FLOAT, [4, 6])], ["h"], [tensor("w", [6, 4])]),
    # the number of samples is open; of two outputs the second is the wanted one
    "outputs.onnx": model([GEMM, node("Relu", ["h"], ["y"]), node("Sigmoid", ["h"], ["z"])],
                          [info("x", FLOAT, ["N", 6])], ["y", "z"], [tensor("w", [6, 4])]),
    # sequences with the samples second
    "second.onnx": model([node("RNN", ["x", "w", "r"], ["a"], hidden_size=3),
                          node("Squeeze", ["a", "one"], ["y"])],
                         [info("x", FLOAT, [5, "N", 2])], ["y"],
                         [tensor("w", [1, 3, 2]), tensor("r", [1, 3, 3]), whole("one", [1])]),
    # probabilities that are nearly 0
    "tails.onnx": model([node("Sub", ["x", "w"], ["h"]), node("Sigmoid", ["h"], ["y"])],
                        [info("x", FLOAT, ["N", 6])], ["y"], [tensor("w", [1], -4.4)]),
    # two inputs
    "inputs.onnx": model([GEMM, node("Add", ["h", "v"], ["y"])],
                         [info("x", FLOAT, ["N", 6]), info("v", FLOAT, ["N", 4])], ["y"],
                         [tensor("w", [6, 4])]),
    # tokens
    "tokens.onnx": model([node("Gather", ["w", "x"], ["y"])], [info("x", INT64, ["N", 5])], ["y"],
                         [tensor("w", [9, 4])]),
    # an open size beside that of the samples
    "open.onnx": model([node("Softmax", ["x"], ["y"], axis=-1)], [info("x", FLOAT, ["N", "width"])], ["y"]),
    # an operator that prony has not
    "foreign.onnx": model([node("Mod", ["x", "v"], ["h"], fmod=1), node("Relu", ["h"], ["y"])],
                          [info("x", FLOAT, ["N", 6]), info("v", FLOAT, ["N", 6])], ["y"]),
    # a whole-number input beside the real one, which prony has not either, and a scalar
    "whole.onnx": model([node("Gather", ["x", "at"], ["g"], axis=1), node("Mul", ["g", "by"], ["y"])],
                        [info("x", FLOAT, ["N", 6]), info("at", INT64, [3]), info("by", FLOAT, [])], ["y"]),
    # an operator that nobody has
    "unknown.onnx": model([node("Foo", ["x"], ["y"], "com.example")], [info("x", FLOAT, ["N", 6])], ["y"]),
}

for name, content in FILES.items():
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(content)
