"""torch_nodes.py [-v] FOLDER…: ONNX's own tests (FOLDER/*/model.onnx with inputs and outputs), in PyTorch:
the graph that the pytorch peer builds gives what ONNX says, or its node is refused by name."""

import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "peers"))
import torch
from onnx_graph import Broken, Model, Tensor
from onnx_torch import Builder, make_module
from prony_peer import Unsupported

LEFT = ("bernoulli", "training_dropout", "dropout_default_mask", "randomnormal")  # drawn at random


def read(path, builder):
    with open(path, "rb") as file:
        return Builder.read(builder, Tensor(memoryview(file.read()), "")).tensor


class Reader:  # what Builder.read needs
    torch, device = torch, "cpu"

    def dtype(self, code):
        return Builder.dtype(self, code)

    reals = {}


def run(folder):
    model, reader = Model(os.path.join(folder, "model.onnx")), Reader()
    data = os.path.join(folder, "test_data_set_0")
    inputs = [read(path, reader) for path in ordered(data, "input")]
    expected = [read(path, reader) for path in ordered(data, "output")]
    # all but the first are known, as weights and sizes are in real files
    graph = model.graph
    feed = {graph.inputs[0].name: inputs[0]} if inputs else {}
    builder = Builder.__new__(Known)
    builder.more = {one.name: x for one, x in zip(graph.inputs[1:], inputs[1:])}
    builder.__init__(torch, model, feed, graph.outputs, "cpu", torch.float32)
    with torch.no_grad():
        found = make_module(torch, builder)(*feed.values())
    found = found if isinstance(found, tuple) else (found,)
    return all(close(a, b) for a, b in zip(found, expected))


class Known(Builder):
    """A builder to which more values are known."""

    def walk(self, graph, depth):
        from onnx_torch import Known as Value

        self.values.update({name: Value(x) for name, x in self.more.items()})
        self.more = {}
        super().walk(graph, depth)


def ordered(folder, kind):
    count = len(glob.glob(os.path.join(folder, kind + "_*.pb")))
    return [os.path.join(folder, f"{kind}_{i}.pb") for i in range(count)]


def close(found, expected):
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    return torch.allclose(found.double(), expected.double(), 1e-3, 1e-5, equal_nan=True)


right, refused, wrong = 0, [], []
folders = [path for path in sys.argv[1:] if path != "-v"]
for folder in sorted(found for path in folders for found in glob.glob(os.path.join(path, "*", ""))):
    name = os.path.basename(folder[:-1])
    if any(word in name for word in LEFT):
        continue
    try:
        if run(folder):
            right += 1
        else:
            wrong.append(name)
    except (Unsupported, Broken) as reason:
        refused.append(f"{name}: {reason}")
if "-v" in sys.argv:
    print("\n".join(refused))
print(f"{right} right, {len(refused)} refused; wrong: {' '.join(wrong) or 'none'}")
sys.exit(bool(wrong))
