"""Reads an ONNX file for the peers that open it: its graph, its numbers, and what to feed it.

A protocol buffer is a row of fields: a number that says which field and how it is coded (0: a whole
number in groups of seven bits; 1: eight bytes; 2: a length and so many bytes; 5: four bytes), then the
value. Files may be broken or hostile: every length is held against what is left, every size of a
tensor against its bytes, and weights beside the file must lie in its folder. Standard library only.
"""

import mmap
import os
import struct
from array import array

from prony_peer import Unsupported

# code in the file: (name, bytes of an element, code of Python's array; None: it has none)
TYPES = {1: ("float32", 4, "f"), 2: ("uint8", 1, "B"), 3: ("int8", 1, "b"), 4: ("uint16", 2, "H"),
         5: ("int16", 2, "h"), 6: ("int32", 4, "i"), 7: ("int64", 8, "q"), 9: ("bool", 1, "B"),
         10: ("float16", 2, None), 11: ("float64", 8, "d"), 12: ("uint32", 4, "I"),
         13: ("uint64", 8, "Q"), 16: ("bfloat16", 2, None)}
REAL = (1, 10, 11, 16)
ELEMENTS_MOST = 1 << 33  # of a tensor, or of an input


class Broken(ValueError):
    """The file is not what ONNX says a file is."""


def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Broken("a number is cut off or too long: the file is not whole, or no ONNX file")
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value & (1 << 64) - 1, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def fields(data):
    """(number, value) of each field: a whole number, or the bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
            yield key >> 3, signed(value)
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 2:
            size, at = read_varint(data, at)
        if size is None or size > len(data) - at:
            raise Broken("a field is cut off or unknown: the file is not whole, or no ONNX file")
        yield key >> 3, data[at : at + size]
        at += size


def text(value):
    return bytes(value).decode("utf-8", "replace") if not isinstance(value, int) else ""


def numbers(value):
    """Of a repeated whole number: one, or several packed."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = read_varint(value, at)
        found.append(signed(number))
    return found


def groups(data):
    """{number of the field: [values]} of a message."""
    if isinstance(data, int):
        raise Broken("a number stands where a message should: no ONNX file")
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def reals(values, code="f"):
    out = array(code)
    for value in values:
        out.frombytes(bytes(value))
    return out


class Tensor:
    """A TensorProto: name, shape, type (a code), and bytes() in the order of the machine."""

    def __init__(self, data, folder):
        self.parts, self.folder = groups(data), folder
        self.name = text(self.parts.get(8, [b""])[-1])
        self.shape = [n for value in self.parts.get(1, []) for n in numbers(value)]
        self.type = self.parts.get(2, [0])[-1]
        self.count = 1
        for size in self.shape:
            self.count *= size
            if size < 0 or self.count > ELEMENTS_MOST:
                raise Broken(f"the tensor '{self.name:.80}' has the sizes {self.shape}")

    def bytes(self):
        if self.type not in TYPES:
            raise Unsupported(f"the tensor '{self.name:.80}' has the type {self.type}")
        size, data = TYPES[self.type][1], b""
        if self.parts.get(14, [0])[-1] == 1:
            data = self.external(self.count * size)
        elif 9 in self.parts:
            data = bytes(self.parts[9][-1])
        elif self.count:
            data = self.listed()
        if len(data) != self.count * size:
            raise Broken(f"the tensor '{self.name:.80}' has {len(data)} bytes, expected "
                         f"{self.count * size}")
        return data

    def listed(self):
        """Numbers that stand in fields of their own, by type."""
        size, code = TYPES[self.type][1:]
        if self.type == 1:
            return reals(self.parts.get(4, [])).tobytes()
        if self.type == 11:
            return reals(self.parts.get(10, []), "d").tobytes()
        place = {7: 7, 12: 11, 13: 11}.get(self.type, 5)
        found, mask = [n for value in self.parts.get(place, []) for n in numbers(value)], (1 << 8 * size) - 1
        return b"".join((n & mask).to_bytes(size, "little") for n in found)

    def external(self, expected):
        about = {}
        for entry in self.parts.get(13, []):
            parts = groups(entry)
            about[text(parts.get(1, [b""])[-1])] = text(parts.get(2, [b""])[-1])
        folder = os.path.realpath(self.folder)
        path = os.path.realpath(os.path.join(folder, about.get("location", "")))
        if not path.startswith(folder + os.sep):
            raise Broken(f"the tensor '{self.name:.80}' lies outside of the file's folder")
        try:
            with open(path, "rb") as file:
                file.seek(int(about.get("offset") or 0))
                return file.read(min(int(about.get("length") or expected), expected))
        except (OSError, ValueError, OverflowError) as reason:
            raise Broken(f"the tensor '{self.name:.80}': {reason}") from None


class Node:
    """A NodeProto: op, name, inputs, outputs; its attributes are decoded when they are asked for."""

    def __init__(self, data, folder):
        parts, self.folder = groups(data), folder
        self.inputs = [text(value) for value in parts.get(1, [])]
        self.outputs = [text(value) for value in parts.get(2, [])]
        self.op, self.domain = text(parts.get(4, [b""])[-1]), text(parts.get(7, [b""])[-1])
        own = text(parts.get(3, [b""])[-1])
        self.name = own or (self.outputs[0] if self.outputs else self.op)
        self.attributes = {}
        for value in parts.get(5, []):
            attribute = groups(value)
            self.attributes[text(attribute.get(1, [b""])[-1])] = attribute

    def get(self, name, default=None):
        parts = self.attributes.get(name)
        if parts is None:
            return default
        for field, decode in ((2, lambda v: struct.unpack("<f", v[-1])[0]), (3, lambda v: v[-1]),
                              (4, lambda v: text(v[-1])), (5, lambda v: Tensor(v[-1], self.folder)),
                              (6, lambda v: Graph(v[-1], self.folder)), (7, lambda v: reals(v).tolist()),
                              (8, lambda v: [n for value in v for n in numbers(value)])):
            if field in parts:
                return decode(parts[field])
        kind = parts.get(20, [0])[-1]  # what is 0 or empty may be left out
        return {1: 0.0, 2: 0, 3: "", 6: [], 7: []}.get(kind, default)


class Input:
    """name, type (a code) and dims of an input: numbers, or the names of what is left open."""

    def __init__(self, data):
        parts = groups(data)
        self.name, self.type, self.dims = text(parts.get(1, [b""])[-1]), 0, None
        tensor = groups(parts.get(2, [b""])[-1]).get(1)
        if tensor:
            about = groups(tensor[-1])
            self.type = about.get(1, [0])[-1]
            dims = groups(about[2][-1]).get(1, []) if 2 in about else []
            self.dims = [self.dimension(i, groups(d)) for i, d in enumerate(dims)] if 2 in about else None

    def dimension(self, place, parts):
        """As `prony --shape` calls it, where it has no name."""
        name, size = text(parts.get(2, [b""])[-1]), parts.get(1, [0])[-1]
        return name or (size if size > 0 else f"{self.name}.{place}")


class Graph:
    """nodes, initializers {name: Tensor}, inputs (without those), outputs: names."""

    def __init__(self, data, folder):
        parts = groups(data)
        self.nodes = [Node(value, folder) for value in parts.get(1, [])]
        found = [Tensor(value, folder) for value in parts.get(5, [])]
        self.initializers = {tensor.name: tensor for tensor in found}
        every = [Input(value) for value in parts.get(11, [])]
        self.inputs = [i for i in every if i.name not in self.initializers]
        self.outputs = [Input(value).name for value in parts.get(12, [])]


class Model:
    """The file: graph, opset; `sizes` is what --shape said, "height=224,output=y"."""

    def __init__(self, path, sizes=""):
        self.path, folder = path, os.path.dirname(os.path.abspath(path))
        with open(path, "rb") as file:
            try:
                self.data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            except ValueError:
                raise Broken(f"{path} is empty") from None
        parts = groups(self.data)
        if 7 not in parts:
            raise Broken(f"{path} has no graph: no ONNX file")
        self.graph, self.opset = Graph(parts[7][-1], folder), 1
        for value in parts.get(8, []):
            about = groups(value)
            if text(about.get(1, [b""])[-1]) in ("", "ai.onnx"):
                self.opset = about.get(2, [1])[-1]
        self.sizes, self.output = self.read_sizes(sizes)

    def read_sizes(self, said):
        """({name of a dimension: size}, name of the output that is wanted or None). Names may have
        = and , in them: the longest dimension that a part begins with is meant."""
        names = {d for i in self.graph.inputs for d in i.dims or [] if isinstance(d, str)}
        sizes, output = {}, None
        while said:
            name = max((n for n in names if said.startswith(n + "=")), key=len, default=None)
            value, _, rest = said[len(name or "output") + 1 :].partition(",")
            if name and value.isdigit():
                sizes[name] = int(value)
            elif said.startswith("output="):
                output, _, rest = said[len("output=") :].partition(",")
            else:
                raise Unsupported(f"'{said}' is no size of an input of the file")
            said = rest
        return sizes, output

    def wanted(self, one):
        """The outputs to compute: all, or the one that prony takes."""
        if not self.graph.outputs:
            raise Broken("the file has no output")
        return [self.output or self.graph.outputs[0]] if one else self.graph.outputs

    def keep_output(self, name):
        """The bytes of a file that has this output only; None: its weights lie beside it."""
        if any(t.parts.get(14, [0])[-1] == 1 for t in self.graph.initializers.values()):
            return None
        graph = rewrite(groups(self.data)[7][-1], lambda field, value: value if field != 12
                        or text(groups(value).get(1, [b""])[-1]) == name else None)
        return rewrite(self.data, lambda field, value: graph if field == 7 else value)


def write_varint(value):
    value, out = value & (1 << 64) - 1, bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def rewrite(data, change):
    """The message with each field's value as `change(number, value)` gives it, without those of
    which it gives None. Of fields of numbers and of bytes: Model and GraphProto have no others."""
    out = []
    for number, value in fields(data):
        value = change(number, value)
        if isinstance(value, int):
            out.append(write_varint(number << 3) + write_varint(value))
        elif value is not None:
            out += [write_varint(number << 3 | 2) + write_varint(len(value)), bytes(value)]
    return b"".join(out)
