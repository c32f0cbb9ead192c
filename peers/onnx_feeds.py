"""What an ONNX file is fed with: prony's data, cut into the file's inputs; or, of a file that prony
cannot import, numbers of our own.

An iteration computes `batch` samples. Where the file counts fewer at a time (a first dimension of 1,
or none that counts samples), it is called as often as that takes.
"""

import random
import struct
from array import array

from onnx_graph import ELEMENTS_MOST, REAL, TYPES, Broken, Unsupported

BATCHES = 8
BLOCK = 1 << 16  # numbers that are drawn; they are repeated


class Feeds:
    """calls: how often the file is called in an iteration; list: of each call, batch after batch,
    {input's name: (type, shape, bytes)}; output_axis: which dimension of the output counts samples."""

    def __init__(self, model, work):
        axes = work.onnx.get("batch")
        self.inputs = model.graph.inputs
        if not self.inputs:
            raise Unsupported("the file has no input")
        for i in self.inputs:
            if i.type not in TYPES:
                raise Unsupported(f"the input '{i.name:.80}' is of type {i.type}, which holds no numbers")
            if i.dims is None:
                raise Unsupported(f"the input '{i.name:.80}' has no shape")
        self.axis, self.output_axis = axes if axes else (0, 0)
        self.count_samples(model, work.batch, bool(axes))
        self.shapes = [self.shape(model, i) for i in self.inputs]
        # a single whole number is a setting (a sampling rate, a switch), the same in every call
        self.settings = [] if work.inputs else [i.name for i in self.inputs if not i.dims and i.type not in REAL]
        self.list = []
        draw = self.take(work) if work.inputs else self.make()
        for _ in range(BATCHES * self.calls):
            self.list.append(next(draw))

    def count_samples(self, model, batch, imported):
        """How many samples a call has, and how many calls an iteration."""
        first = self.inputs[0].dims[self.axis] if -1 < self.axis < len(self.inputs[0].dims) else 1
        if isinstance(first, str):
            self.samples = model.sizes.get(first, batch)
            self.open = first
        else:
            self.samples, self.open = (first if self.axis >= 0 else 1), None
        if batch % self.samples == 0:
            self.calls = batch // self.samples
        elif imported:
            raise Unsupported(f"the file computes {self.samples} samples at a time: --batch "
                              f"{self.samples} or a multiple of it")
        else:  # nobody knows what its first dimension counts: the whole is one sample
            self.calls = batch

    def shape(self, model, one):
        shape = []
        for place, size in enumerate(one.dims):
            if isinstance(size, str):
                counts = size == self.open or (self.open and place == self.axis)
                size = model.sizes.get(size) or (self.samples if counts else size)
            if isinstance(size, str):
                raise Unsupported(f"the size of '{size:.80}' is left open: --shape '{size:.80}=N'")
            shape.append(size)
        if count(shape) > ELEMENTS_MOST:
            raise Broken(f"the input '{one.name:.80}' has the sizes {shape}")
        return shape

    def take(self, work):
        """prony's rows, one behind the other in the order of the inputs, samples first."""
        (rows, *_), values = work.inputs
        width, row = len(values) // rows, 0
        while True:
            feed, at = {}, 0
            for one, shape in zip(self.inputs, self.shapes):
                size = count(shape) // self.samples
                if size == width:
                    cut = values[row * width : (row + self.samples) * width]
                else:
                    cut = array(values.typecode)
                    for r in range(row, row + self.samples):
                        cut += values[r * width + at : r * width + at + size]
                at += size
                if self.axis > 0:
                    cut = move_first(cut, [self.samples] + without(shape, self.axis), self.axis)
                feed[one.name] = (one.type, shape, encode(one.type, cut))
            yield feed
            row = (row + self.samples) % rows

    def make(self):
        """Reals from 0 to 1; whole numbers 0 or 1, so that they are tokens of every table; settings and
        masks 1."""
        source = random.Random(1)
        while True:
            feed = {}
            for one, shape in zip(self.inputs, self.shapes):
                total = count(shape)
                if one.type in REAL:
                    block = array("f", [source.random() for _ in range(min(total, BLOCK))])
                elif "mask" in one.name.lower() or one.type == 9 or one.name in self.settings:
                    block = array("i", [1])
                else:
                    block = array("i", [source.randrange(2) for _ in range(min(total, BLOCK))])
                data = encode(one.type, block)
                size = total * TYPES[one.type][1]
                feed[one.name] = (one.type, shape, (data * (size // max(len(data), 1) + 1))[:size])
            yield feed

    def about(self):
        """ "x float32 1x3x224x224", for the record."""
        return ", ".join(f"{one.name:.40} {TYPES[one.type][0]} {'x'.join(map(str, shape)) or 'scalar'}"
                         for one, shape in zip(self.inputs[:4], self.shapes))


def count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def without(shape, axis):
    return shape[:axis] + shape[axis + 1 :]


def move_first(values, shape, axis):
    """The first dimension becomes number `axis`."""
    samples, inner = shape[0], count(shape[axis + 1 :])
    outer, out = count(shape[1 : axis + 1]), values[:0]
    for o in range(outer):
        for s in range(samples):
            at = (s * outer + o) * inner
            out += values[at : at + inner]
    return out


def samples_first(values, shape, axis):
    """Dimension number `axis` becomes the first; of a list."""
    if axis <= 0:
        return values
    samples, inner, outer = shape[axis], count(shape[axis + 1 :]), count(shape[:axis])
    return [v for s in range(samples) for o in range(outer)
            for v in values[(o * samples + s) * inner : (o * samples + s + 1) * inner]]


def encode(code, values):
    """Numbers (an array) as the bytes of that type."""
    if TYPES[code][2]:
        return (values if values.typecode == TYPES[code][2] else array(TYPES[code][2], values.tolist())).tobytes()
    if code == 10:
        return struct.pack(f"<{len(values)}e", *values)
    bits = array("I", array("f", values).tobytes())
    return array("H", [b + 0x7FFF + (b >> 16 & 1) >> 16 for b in bits]).tobytes()
