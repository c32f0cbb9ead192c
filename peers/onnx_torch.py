"""An ONNX file as a PyTorch module, a function of PyTorch for each node (onnx_ops.py).

The nodes are gone through once, with the first inputs: what depends on no input, or only on the sizes of
something, is worked out then and stays as it is; each other node becomes a step of the module. A node
that PyTorch cannot compute is refused by its name.
"""

from onnx_graph import TYPES, Broken, Graph
from onnx_ops import OPERATORS
from prony_peer import Unsupported

DEPTH_MOST = 8  # of graphs inside each other


class Known:
    """A value that stays as it is, whatever the inputs are."""

    def __init__(self, tensor):
        self.tensor = tensor


class At:
    """A node while it is made a step: what onnx_ops.py asks about it."""

    def __init__(self, builder, node, inputs):
        self.torch, self.opset, self.node, self.inputs = builder.torch, builder.opset, node, inputs
        self.builder = builder
        self.get = node.get
        self.used = [bool(name) and name in builder.needed for name in node.outputs]

    def shape(self, i):
        return list(self.tensor(i).shape)

    def has(self, i):
        return i < len(self.inputs) and self.inputs[i] is not None

    def stays(self, i):
        """Is it left out, or known?"""
        return not self.has(i) or isinstance(self.inputs[i], Known)

    def tensor(self, i):
        """The input as it is now: of what depends on the data an example."""
        if not self.has(i):
            raise Unsupported(f"it has no input {i}")
        value = self.inputs[i]
        return value.tensor if isinstance(value, Known) else value

    def known(self, i):
        """The input as a tensor that stays as it is; None: it has none."""
        if not self.has(i):
            return None
        if not isinstance(self.inputs[i], Known):
            raise Unsupported(f"its input {i} depends on the data, expected numbers that are known")
        return self.inputs[i].tensor

    def list(self, i, attribute=None):
        """Known numbers as a list, from the input or, in older files, from the attribute."""
        if self.has(i):
            return self.known(i).reshape(-1).tolist()
        return self.get(attribute) if attribute else None

    def dtype(self, code):
        return self.builder.dtype(code)

    def refuse(self, reason):
        raise Unsupported(reason)


class Builder:
    """steps: (function, places of its inputs, places of its outputs, places that are free then); keys:
    of each the value that the node gives first, and its operator."""

    def __init__(self, torch, model, feed, outputs, device, real, settings=()):
        self.torch, self.opset, self.device = torch, model.opset, device
        self.reals = {"float32": real}  # what is computed in, in the place of fp32
        self.values, self.places, self.template, self.steps, self.keys = {}, {}, [], [], []
        self.input_places = []
        for name, tensor in model.graph.initializers.items():
            self.values[name] = tensor  # read when it is used
        for name, value in feed.items():
            self.values[name] = Known(value) if name in settings else value
            self.input_places.append(self.place(name))
        self.needed, self.uses = set(outputs), {}
        self.count(outputs)
        with torch.no_grad():
            self.walk(model.graph, 0)
        for name in outputs:
            if name not in self.values:
                raise Broken(f"the output '{name:.80}' comes from no node")
        self.output_places = [self.source(name) for name in outputs]
        self.free()

    def dtype(self, code):
        if code not in TYPES or not hasattr(self.torch, TYPES[code][0]):
            raise Unsupported(f"PyTorch has no type {TYPES[code][0] if code in TYPES else code}")
        return self.reals.get(TYPES[code][0]) or getattr(self.torch, TYPES[code][0])

    def read(self, tensor):
        """A tensor of the file."""
        own = getattr(self.torch, TYPES[tensor.type][0], None) if tensor.type in TYPES else None
        data = tensor.bytes()
        if own is None:
            raise Unsupported(f"PyTorch has no type {TYPES[tensor.type][0]}")
        if not data:
            return Known(self.torch.empty(tensor.shape, dtype=own, device=self.device))
        value = self.torch.frombuffer(bytearray(data), dtype=own).reshape(tensor.shape)
        return Known(value.to(self.dtype(tensor.type)).to(self.device))

    def place(self, name):
        self.places[name] = len(self.template)
        self.template.append(None)
        return self.places[name]

    def value(self, name):
        if not name:
            return None
        if name not in self.values:
            raise Broken(f"its input '{name:.80}' comes from no node before it")
        if not isinstance(self.values[name], (Known, self.torch.Tensor)):
            self.values[name] = self.read(self.values[name])
        return self.values[name]

    def source(self, name):
        """The place of a value in the module; of known ones one is made."""
        if name not in self.places:
            place = self.place(name)
            self.template[place] = self.value(name).tensor
        return self.places[name]

    def count(self, names):
        for name in names:
            self.uses[name] = self.uses.get(name, 0) + 1

    def forget(self, node):
        """Examples that no later node takes: they may be large."""
        for name in node.inputs:
            self.uses[name] = self.uses.get(name, 0) - 1
            if self.uses[name] == 0 and isinstance(self.values.get(name), self.torch.Tensor):
                del self.values[name]

    def mark(self, graph):
        """Which nodes are needed, for what they give."""
        wanted = []
        for node in reversed(graph.nodes):
            if any(name in self.needed for name in node.outputs):
                wanted.append(node)
                inner = [name for graph in graphs_of(node) for one in graph.nodes
                         for name in one.inputs + graph.outputs]
                self.needed.update(inner, filter(None, node.inputs))
                self.count(inner + node.inputs)
        return reversed(wanted)

    def walk(self, graph, depth):
        if depth > DEPTH_MOST:
            raise Unsupported(f"graphs lie in each other more than {DEPTH_MOST} deep")
        for node in self.mark(graph):
            try:
                self.do(node, depth)
                self.forget(node)
            except (Unsupported, Broken) as reason:
                raise type(reason)(f"node '{node.name:.80}' ({node.op:.40}): {reason}") from None
            except (RuntimeError, TypeError, ValueError, IndexError, KeyError, AssertionError) as reason:
                said = str(reason).strip().split("\n")[0]
                raise Unsupported(f"node '{node.name:.80}' ({node.op:.40}): {said:.200}") from None

    def do(self, node, depth):
        if node.domain not in ("", "ai.onnx"):
            raise Unsupported(f"it is an operator of '{node.domain:.60}', expected one of ONNX itself")
        if node.op == "If":
            return self.choose(node, depth)
        if node.op not in OPERATORS:
            raise Unsupported("PyTorch has no such operator here")
        inputs = [self.value(name) for name in node.inputs]
        at = At(self, node, inputs)
        function = OPERATORS[node.op](at)
        examples = [v.tensor if isinstance(v, Known) else v for v in inputs]
        found = function(*examples)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        known = node.op in ("Shape", "Size") or all(v is None or isinstance(v, Known) for v in inputs)
        places = []
        for name, value in zip(node.outputs, found):
            if name:
                self.values[name] = Known(value) if known else value
                places.append(None if known else self.place(name))
            else:
                places.append(None)
        if not known:
            sources = [self.source(name) if name else None for name in node.inputs]
            self.steps.append((function, sources, places))
            self.keys.append((next(filter(None, node.outputs)), node.op))

    def choose(self, node, depth):
        """The branch of a known condition takes the node's place."""
        condition = At(self, node, [self.value(node.inputs[0])]).known(0)
        branch = node.get("then_branch" if bool(condition) else "else_branch")
        if not isinstance(branch, Graph):
            raise Broken("it has no such branch")
        for name, tensor in branch.initializers.items():
            self.values[name] = tensor
        self.needed.update(branch.outputs)
        self.walk(branch, depth + 1)
        for inner, outer in zip(branch.outputs, node.outputs):
            self.values[outer] = self.value(inner)
            if inner in self.places:
                self.places[outer] = self.places[inner]

    def free(self):
        """Values that no later step reads are let go, so that their memory is used again."""
        last = {}
        for number, (_, sources, places) in enumerate(self.steps):
            for place in sources + places:
                last[place] = number
        kept = set(self.output_places) | {i for i, t in enumerate(self.template) if t is not None}
        self.steps = [
            (function, [-1 if p is None else p for p in sources], places,
             [p for p in set(sources + places) if p is not None and last[p] == number and p not in kept])
            for number, (function, sources, places) in enumerate(self.steps)]
        self.template.append(None)  # place -1: an input that is left out
        self.values = None


def graphs_of(node):
    return [value for name in node.attributes if isinstance(value := node.get(name), Graph)]


def make_module(torch, builder, steps=None):
    """Steps: those of the builder, or others in their place."""
    steps, sources, outputs = steps or builder.steps, builder.input_places, builder.output_places

    class Opened(torch.nn.Module):
        template = builder.template

        def forward(self, *inputs):
            values = list(self.template)
            for place, x in zip(sources, inputs):
                values[place] = x
            for function, taken, given, done in steps:
                found = function(*[values[place] for place in taken])
                if len(given) == 1:
                    values[given[0]] = found[0] if isinstance(found, (tuple, list)) else found
                else:
                    for place, value in zip(given, found):
                        if place is not None:
                            values[place] = value
                for place in done:
                    values[place] = None
            found = tuple(values[place] for place in outputs)
            return found if len(found) > 1 else found[0]

        def order_last(self):
            """Images and their weights have the channels last."""
            self.template = [t.contiguous(memory_format=torch.channels_last)
                             if t is not None and t.dim() == 4 and t.is_floating_point() else t
                             for t in self.template]

    return Opened()
