#!/usr/bin/env python3
"""Neural networks in PyTorch, at its best: from the settings that its users know, those that are
quickest for the network at hand are found by trying. The backends are eager, graph (the whole step
as a CUDA graph, one for each batch), graph-fused (the same with the optimiser's fused kernel),
graph-streams (queued calls in several streams) and compile (torch.compile); left to itself it takes a graph on a GPU."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from layers import Builder
from prony_peer import Unsupported, serve
from prony_torch import TorchPeer, plain_step
from watched import Watch, watched_training

SLIDING = ("conv", "conv_transpose", "max_pool", "average_pool")
RECURRENT = ("rnn", "gru", "lstm")
WARM_UP = 3  # iterations before a graph is captured
STREAMS = 4  # that queued calls may go to in turn


class Shipped(TorchPeer):
    backends = ["eager", "graph", "graph-fused", "graph-streams", "compile"]
    watch = None  # what layers are watched by, while they are

    def __init__(self):
        super().__init__(None, plain_step)

    def prepare(self, work):
        self.begin(work)
        self.backend = work.backend
        if work.backend in ("", "default"):
            self.backend = "graph" if self.device == "cuda" and not work.apart else "eager"
        self.captures = self.backend.startswith("graph")
        if self.captures and self.device == "cpu":
            raise Unsupported("graphs are for GPUs: --unit gpu")
        if self.backend == "graph-fused" and not work.training:
            raise Unsupported("inference updates nothing that could be fused: --backend graph")
        if self.backend == "graph-streams" and not work.queued:
            raise Unsupported("several streams are for calls that are queued: --backend graph")
        if self.backend == "compile" and not hasattr(self.torch, "compile"):
            raise Unsupported("torch.compile needs PyTorch 2")
        self.torch.backends.cudnn.benchmark = True
        self.built = None
        self.settings = work.search(self.choices(), self.trial, 0.25 if self.device == "cpu" else 0.1,
                                    **self.libraries()[0], **self.about())
        if self.built != self.settings:  # another one was tried last
            self.build(self.settings)
        chosen = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return {"software": {**self.about(), "backend": self.backend, "settings": chosen}}

    def choices(self):
        """What is tried, the usual value first."""
        kinds, choices = {l["kind"] for l in self.work.layers}, {}
        compiled = self.backend == "compile"
        sliding = kinds.intersection(SLIDING)
        if sliding:
            choices["images"] = ["NCHW", "channels_last"]
        if "dense" in kinds and not compiled and not (sliding and self.device == "cuda"):
            choices["weights"] = ["[out][in]", "[in][out]"]  # beside convolutions not worth a trial
        if self.device == "cpu" and kinds.intersection(SLIDING + RECURRENT):
            choices["mkldnn"] = ["on", "off"]
        if compiled and self.device == "cuda":  # compiling may take all of the search's time: the quicker one first
            choices["capture"] = ["on", "off"]
        if self.work.training:  # on a GPU foreach is the usual one
            updates = ["usual", "fused"] if self.device == "cuda" else ["usual", "foreach", "fused"]
            choices["update"] = {"graph": ["usual"], "graph-fused": ["fused"]}.get(self.work.backend, updates)
        if self.backend == "eager" and self.device == "cpu" and not self.work.apart:
            choices["jit"] = ["off", "trace"] if self.work.training else ["off", "freeze", "optimise"]
        return choices

    def trial(self, settings):
        try:
            self.build(settings)
        except (RuntimeError, TypeError, ValueError, AttributeError) as reason:
            raise Unsupported(f"PyTorch refuses {settings}: {reason}") from None
        together = 1 if self.device == "cpu" else self.work.batches
        return together, lambda: self.steps(0, together)

    def build(self, settings):
        torch, training, self.graphs = self.torch, self.work.training, []
        torch.backends.mkldnn.set_flags(settings.get("mkldnn", "on") == "on")
        builder = Builder(torch, self.work, settings.get("weights") != "[in][out]")
        self.places = builder.places
        self.take(builder.module)
        self.watch_layers(builder.layers)
        self.fill()
        if "images" in settings:  # also back, from what was tried before
            last = settings["images"] == "channels_last"
            layout = torch.channels_last if last else torch.contiguous_format
            self.module.to(memory_format=layout)
            self.inputs = [x.contiguous(memory_format=layout) for x in self.inputs]
        self.module = self.quicker(self.module, settings)
        capture = self.captures or settings.get("capture") == "on"
        update = settings.get("update", "usual")
        more = {} if update == "usual" else {update: True}
        if capture and training and self.work.optimiser not in ("sgd", "momentum", "nesterov"):
            more["capturable"] = True
        self.ready(**more)
        if capture:
            self.capture(self.backend == "graph-streams")
        self.built = settings

    def watch_layers(self, modules):
        if not self.watch:
            return
        for layer, module in zip(self.work.layers, modules):
            self.watch.around(module, layer["name"], type(module).__name__, (layer["name"],))
        if not self.work.training and self.work.loss == "cross_entropy":
            self.watch.around(self.module[-1], "softmax", "Softmax", ())

    def profile(self, count):
        """Once more with a mark between layers: without what makes one thing of several."""
        together = ("jit", "capture")
        timed = [f"{name} {self.settings[name]}" for name in together if self.settings.get(name, "off") != "off"]
        timed += [] if self.backend == "eager" else [self.backend]
        own = self.backend, self.captures
        self.watch, self.backend, self.captures = Watch(self.torch, self.device), "eager", False
        try:
            self.build({name: value for name, value in self.settings.items() if name not in together})
            step = watched_training(self.watch, self) if self.work.training else self.step
            step_ns, rows = self.watch.run(step, self.work.batches, count)
        finally:
            self.watch, (self.backend, self.captures) = None, own
            self.build(self.settings)
            self.restart()
        how = "CUDA events around its modules" if self.device == "cuda" else "the clock is read around its modules"
        if timed:
            how += f"; they ran one by one, the step that was timed has {', '.join(timed)}"
        return {"rows": rows, "iterations": count, "step_ns": step_ns, "how": how}

    def quicker(self, module, settings):
        """The module as the compilers leave it; frozen ones hold the weights as constants."""
        torch, jit, x = self.torch, settings.get("jit", "off"), self.example()
        if self.backend == "compile":
            torch._dynamo.reset()  # what it knows of another module with the same code
            return torch.compile(module)
        if jit == "off":
            return module
        with torch.set_grad_enabled(self.work.training):
            module = torch.jit.trace(module, x, check_trace=False)
            if jit == "freeze":
                module = torch.jit.freeze(module.eval())
            elif jit == "optimise":
                module = torch.jit.optimize_for_inference(torch.jit.freeze(module.eval()))
        return module

    def example(self):
        return self.inputs[0]

    def capture(self, at_once):
        """A graph of the step for each batch; replaying one leaves its error or outputs in the place
        it had when it was captured. At once: graphs that share no memory, in streams of their own."""
        torch, self.results = self.torch, []
        step, side = self.step, torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                step(0)
        torch.cuda.current_stream().wait_stream(side)
        pool = None if at_once else torch.cuda.graph_pool_handle()
        for batch in range(self.work.batches):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                result = step(batch)
            self.graphs.append(graph)
            self.results.append(self.error if self.work.training else result)
        self.streams = [torch.cuda.Stream() for _ in range(STREAMS)]
        self.step = self.replay_aside if at_once else self.replay
        self.restart()

    def replay(self, batch):
        self.graphs[batch].replay()
        self.error = self.results[batch]

    def replay_aside(self, batch):
        with self.torch.cuda.stream(self.streams[batch % STREAMS]):
            self.replay(batch)

    def restart(self):
        """The initial weights, and an optimiser that remembers nothing: zeros in all of them, but
        for rprop, whose steps begin at the rate."""
        self.fill()
        if not self.work.training:
            return
        for state in self.optimiser.state.values():
            for name, value in state.items():
                if self.torch.is_tensor(value):
                    value.fill_(self.work.rate if name == "step_size" else 0)
                elif value is not None:
                    state[name] = 0

    def outputs(self):
        if self.graphs:
            self.y = self.error  # where the graph left them
        return super().outputs()


class Either:
    """An ONNX file is opened as it is for inference; else the network is built from prony's layers."""

    packages, units, precisions = Shipped.packages, Shipped.units, Shipped.precisions + ["int8"]
    backends, opens_onnx, chosen = Shipped.backends, True, None

    def prepare(self, work):
        from integers import Integers
        from opened import Opened  # these need this file
        from shared import Shared, asked

        if asked(work.request) > 1:
            self.chosen = Shared()
        elif work.precision == "int8":
            self.chosen = Integers()
        else:
            self.chosen = Opened() if work.onnx and not work.training else Shipped()
        return self.chosen.prepare(work)

    def __getattr__(self, name):
        return getattr(self.chosen, name)


if __name__ == "__main__":
    sys.modules["peer"] = sys.modules["__main__"]  # who imports it means this one
    from shared import Several

    serve(Either(), Several)
