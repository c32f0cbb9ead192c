"""What each layer takes in PyTorch: marks of the clock around modules.

A module's forward is timed by hooks before and behind it. Backward, a hook on what a layer gave is
called when the gradient of that is there, just before the layer's own backward begins. PyTorch works
through the layers in the reverse order, so a layer's backward lasts until the next mark. On a GPU a mark
is a CUDA event.
"""

import time

from prony_peer import middle

WARM_UP = 3


class Watch:
    def __init__(self, torch, device):
        self.torch, self.gpu = torch, device == "cuda"
        self.pairs, self.turns = [], []  # of this step: what was timed; the marks of backward
        self.steps = []  # {row: ns} of each

    def now(self):
        if not self.gpu:
            return time.perf_counter_ns()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, start, end):
        return start.elapsed_time(end) * 1e6 if self.gpu else end - start

    def add(self, row, start, end):
        """A row is (part, name, op, covers)."""
        self.pairs.append((row, start, end))

    def around(self, module, name, op, covers):
        begun, row = [], (name, op, covers)

        def behind(_module, _inputs, y):
            self.add(("forward", *row), begun.pop(), self.now())
            if y.requires_grad:
                y.register_hook(lambda _gradient: self.turns.append((row, self.now())))

        module.register_forward_pre_hook(lambda _module, _inputs: begun.append(self.now()))
        module.register_forward_hook(behind)

    def backward(self, start, end):
        """All that passed between these: the loss first, then each layer from its mark on."""
        turns = [(("loss", "backward of the loss", ()), start), *self.turns, (None, end)]
        for (row, begun), (_, ended) in zip(turns, turns[1:]):
            self.add(("backward", *row), begun, ended)

    def end_step(self):
        if self.gpu:
            self.torch.cuda.synchronize()
        found = {}
        for row, start, end in self.pairs:
            found[row] = found.get(row, 0) + self.between(start, end)
        self.steps.append(found)
        self.pairs, self.turns = [], []

    def run(self, step, batches, count):
        """What a step takes while it is watched, and its rows."""
        whole = []
        for i in range(WARM_UP + count):
            start = self.now()
            step(i % batches)
            end = self.now()
            self.end_step()
            whole.append(self.between(start, end))
        kept = self.steps[WARM_UP:]
        return middle(whole[WARM_UP:]), [
                {"part": part, "name": name, "op": op, "covers": list(covers),
                 "ns": middle([step.get((part, name, op, covers), 0) for step in kept])}
                for part, name, op, covers in kept[-1]]


def watched_training(watch, peer):
    """As plain_step, with marks between."""

    def step(batch):
        x, target = peer.inputs[batch], peer.targets[batch]
        peer.optimiser.zero_grad(set_to_none=True)
        y = peer.run(x)
        behind = watch.now()
        error = peer.loss_of(y, target)
        ahead = watch.now()
        watch.add(("forward", "loss", "loss", ()), behind, ahead)
        error.backward()
        back = watch.now()
        watch.backward(ahead, back)
        peer.optimiser.step()
        watch.add(("update", "update", type(peer.optimiser).__name__, ()), back, watch.now())

    return step


def watched_function(watch, function, key, op):
    """A node of a file."""

    def watched(*inputs):
        start = watch.now()
        found = function(*inputs)
        watch.add(("forward", key, op, (key,)), start, watch.now())
        return found

    return watched
