"""What each node of a session takes, and which nodes of the file it stands for.

ONNX Runtime changes the graph before it runs: it fuses nodes, puts conversions between them and gives
values other names. It can write the changed graph as a file. A node of that graph stands for the nodes of
the user's file between its inputs and its output: values keep their names, except where the layout of
images changes. There the node has the old one's name with an ending, or is found by what it reads.
"""

import glob
import json
import os

from onnx_graph import Model
from prony_peer import middle

EVENTS_MOST = 200_000  # ONNX Runtime keeps a million
CONVERSIONS = {"ReorderInput", "ReorderOutput", "MemcpyToHost", "MemcpyFromHost", "Cast", "Transpose",
               "QuantizeLinear", "DequantizeLinear"}
SHAPES = {"Shape", "Size"}


class File:
    """The nodes of the file that depend on its input: who gives a value, who reads it."""

    def __init__(self, graph):
        self.inputs = {i.name for i in graph.inputs}
        depends, self.gives, self.readers, self.names = set(self.inputs), {}, {}, {}
        self.nodes = []
        for node in graph.nodes:
            if node.op in SHAPES or not depends.intersection(node.inputs):
                continue  # known before the first run
            depends.update(filter(None, node.outputs))
            self.nodes.append(node)
            self.names.setdefault(node.name, node)
            for name in filter(None, node.outputs):
                self.gives[name] = node
            for name in node.inputs:
                self.readers.setdefault(name, []).append(node)

    def between(self, value, there):
        """The nodes that give this value from those that are there already."""
        found, ahead = [], [value]
        while ahead:
            node = self.gives.get(ahead.pop())
            if node is None or node in found:
                continue
            found.append(node)
            ahead += [name for name in node.inputs if name not in there]
        return found

    def follow(self, node, op):
        """The only reader of what the node gives, where it is such an operator; else the node."""
        readers = self.readers.get(node.outputs[0], [])
        return readers[0] if len(readers) == 1 and readers[0].op.lower() == op.lower() else node


class Match:
    """Which nodes of the file each node of the changed graph stands for."""

    def __init__(self, file, changed):
        self.file, self.same = file, {}  # {value there: value of the file}
        self.same.update((name, name) for name in file.gives)
        self.same.update((name, name) for name in file.inputs)
        for node in changed.nodes:
            self.name(node)
        back = {}  # a conversion gives its value to what it was made from
        for node in reversed(changed.nodes):
            if node.op in CONVERSIONS and node.outputs[0] in self.same:
                back.setdefault(node.inputs[0], self.same[node.outputs[0]])
        for value, name in back.items():
            self.same.setdefault(value, name)
        there = {self.same[name] for node in changed.nodes for name in node.outputs if name in self.same}
        there |= file.inputs
        self.covers = {}
        for place, node in enumerate(changed.nodes):
            own = [self.same[name] for name in node.outputs if name in self.same]
            taken = {self.same.get(name) for name in node.inputs}
            own = [name for name in own if name not in taken]  # else it converts
            self.covers[place] = [n for name in own for n in file.between(name, there - {name})]

    def name(self, node):
        if not node.outputs or node.outputs[0] in self.same:
            return
        source = next((self.same[name] for name in node.inputs if name in self.same), None)
        if node.op in CONVERSIONS and source:
            self.same[node.outputs[0]] = source
            return
        old = self.file.names.get(node.name.rpartition("_nchwc")[0])
        if not old:  # by what it reads
            readers = [n for n in self.file.readers.get(source, []) if n.op == node.op]
            old = self.file.follow(readers[0], "BatchNormalization") if len(readers) == 1 else None
        if old:
            self.same[node.outputs[0]] = self.with_fused(node, old).outputs[0]

    def with_fused(self, node, old):
        """A convolution adds another value, then applies an activation."""
        activation = node.get("activation") or ""
        if node.op == "Conv" and len(node.inputs) > 3 and old.op != activation:
            old = self.file.follow(old, "Add")
        return old if old.op == activation else self.file.follow(old, activation)


def layers_of(work, graph):
    """{value: layer of prony's network}: a layer's last value is called as the layer is."""
    names, found, pending = {l["name"] for l in work.layers}, {}, []
    for node in graph.nodes:
        pending += node.outputs
        last = next((name for name in node.outputs if name in names), None)
        if last:
            found.update(dict.fromkeys(pending, last))
            pending = []
    return found


def read_events(path, nodes):
    """{name: [ns of each run]}, {name: provider}, and [ns of each run] of all."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)
    times, providers, runs = {name: [] for name in nodes}, {}, []
    for event in events:
        name = event.get("name", "")
        if name == "model_run":
            runs.append(event["dur"] * 1000)
        if event.get("cat") == "Node" and name.endswith("_kernel_time") and name[:-12] in times:
            times[name[:-12]].append(event["dur"] * 1000)
            providers[name[:-12]] = event["args"].get("provider", "")
    return times, providers, runs


def steps_of(times, calls):
    """Of each step, which is so many calls; without the first."""
    return [sum(times[i : i + calls]) for i in range(calls, len(times), calls)]


def rows_of(work, original, folder, calls, wanted):
    """What a watched step takes, and the answer's rows, of what the session left in the folder."""
    changed = Model(os.path.join(folder, "changed.onnx")).graph
    file = File(original.graph)
    match = Match(file, changed)
    layers = layers_of(work, original.graph) if work.export else None
    times, providers, runs = read_events(glob.glob(os.path.join(folder, "notes*"))[0], [n.name for n in changed.nodes])
    rows = []
    for place, node in enumerate(changed.nodes):
        each = steps_of(times[node.name], calls)
        if not each:
            continue
        keys = [n.outputs[0] for n in match.covers[place]]
        if layers is not None:
            keys = list(dict.fromkeys(layers[key] for key in keys if key in layers))
        name = node.name if keys else node.op if node.op in CONVERSIONS else node.op.lower()
        row = {"name": name, "op": node.op, "part": "forward", "covers": keys,
               "ns": middle(each)}
        if not keys and node.op in CONVERSIONS:
            row["note"] = "converts"
        if providers[node.name] != wanted:
            row["note"] = "fell back to " + providers[node.name].replace("ExecutionProvider", "")
        rows.append(row)
    return middle(steps_of(runs, calls)), rows


def on_gpu(folder):
    """What can be told where launches are noted and no times: what runs on the CPU, and copies."""
    changed = Model(os.path.join(folder, "changed.onnx")).graph
    providers = read_events(glob.glob(os.path.join(folder, "notes*"))[0], [n.name for n in changed.nodes])[1]
    back = sorted({n.op for n in changed.nodes if providers.get(n.name, "").startswith("CPU")})
    count = sum(provider.startswith("CPU") for provider in providers.values())
    copies = sum(n.op.startswith("Memcpy") for n in changed.nodes)
    said = f"on a GPU ONNX Runtime notes launches, not times; {count} of {len(changed.nodes)} nodes fell back to the CPU"
    return f"{said}{' (' + ', '.join(back)[:100] + ')' if back else ''}, with {copies} copies between the two"
