"""The user's ONNX file in PyTorch: the graph of its nodes (onnx_torch.py), with the settings that are tried
for every other network. For inference."""

from onnx_feeds import BATCHES, Feeds
from onnx_graph import TYPES, Model
from onnx_torch import Builder, make_module
from peer import Shipped
from prony_peer import Unsupported
from watched import watched_function

SLIDING = {"Conv", "ConvTranspose", "MaxPool", "AveragePool"}
RECURRENT = {"RNN", "GRU", "LSTM"}


class Opened(Shipped):
    def take_data(self):
        """The graph, once for all settings, and what it is fed with: of each batch its calls."""
        torch, work = self.torch, self.work
        if work.calls and self.device == "cuda":
            raise Unsupported("calls of ONNX files from host memory are not timed on a GPU")
        model = Model(work.onnx["file"], work.onnx["sizes"])
        outputs = model.wanted("batch" in work.onnx)
        self.feeds, work.batches = Feeds(model, work), BATCHES
        real = torch.bfloat16 if work.precision == "bf16" else torch.float32
        calls = [self.tensors(feed, real) for feed in self.feeds.list]
        self.inputs = [calls[i : i + self.feeds.calls] for i in range(0, len(calls), self.feeds.calls)]
        feed = dict(zip(self.feeds.list[0], calls[0]))
        self.builder = Builder(torch, model, feed, outputs, self.device, real, self.feeds.settings)
        self.kinds = {node.op for node in model.graph.nodes}
        self.computes = f"{len(outputs)} of {len(model.graph.outputs)}"

    def tensors(self, feed, real):
        torch, found = self.torch, []
        for name, (code, shape, data) in feed.items():
            kind = getattr(torch, TYPES[code][0], None)
            if kind is None:
                raise Unsupported(f"the input '{name:.80}' is {TYPES[code][0]}, which PyTorch has not")
            x = torch.frombuffer(bytearray(data), dtype=kind).reshape(shape) if data else torch.empty(shape, dtype=kind)
            found.append((x.to(real) if code == 1 else x).to(self.device))
        return tuple(found)

    def about(self):
        return {**super().about(), "input": self.feeds.about(), "outputs": self.computes}

    def choices(self):
        """What is tried, the usual value first."""
        compiled, choices = self.backend == "compile", {}
        if self.kinds & SLIDING and not compiled:
            choices["images"] = ["NCHW", "channels_last"]
        if self.device == "cpu" and self.kinds & (SLIDING | RECURRENT):
            choices["mkldnn"] = ["on", "off"]
        if compiled and self.device == "cuda":
            choices["capture"] = ["on", "off"]
        if self.backend == "eager" and self.device == "cpu" and not self.work.apart:
            choices["jit"] = ["off", "freeze", "optimise"]
        return choices

    def build(self, settings):
        torch, self.graphs = self.torch, []
        torch.backends.mkldnn.set_flags(settings.get("mkldnn", "on") == "on")
        module, self.fed = make_module(torch, self.builder, self.watched_steps()).eval(), self.inputs
        if settings.get("images") == "channels_last":
            module.order_last()
            self.fed = [[tuple(map(self.order_last, call)) for call in batch] for batch in self.inputs]
        self.module = self.quicker(module, settings)
        self.step = self.forward
        if self.captures or settings.get("capture") == "on":
            self.capture(self.backend == "graph-streams")
        self.built = settings

    def watched_steps(self):
        steps, watch = self.builder.steps, self.watch
        return steps if not watch else [(watched_function(watch, function, *key), *rest)
                                        for (function, *rest), key in zip(steps, self.builder.keys)]

    def order_last(self, x):
        image = x.dim() == 4 and x.is_floating_point()
        return x.contiguous(memory_format=self.torch.channels_last) if image else x

    def example(self):
        return self.fed[0][0]

    def forward(self, batch):
        with self.torch.inference_mode():
            self.found = [self.module(*call) for call in self.fed[batch]]
        return self.found

    def restart(self):
        pass  # inference leaves the weights as they are

    def outputs(self):
        found, axis = self.error if self.graphs else self.found, max(self.feeds.output_axis, 0)
        firsts = [y[0] if isinstance(y, (tuple, list)) else y for y in found]
        return self.torch.cat([y.float().movedim(axis, 0).reshape(-1) if y.dim() else y.float().reshape(-1)
                               for y in firsts])
