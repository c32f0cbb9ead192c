"""memory.py PRONY NETWORK BATCH: the most memory that tensors take at once, prony's and PyTorch's.

prony's is what `prony explain` says of its plan (parameters, statistics, gradients, inputs, outputs,
activations and the kernels' workspace). PyTorch's is counted by its profiler, over every allocation
and release of an iteration, on top of the weights and the batch; written as its users do who care:
relu in place, no value kept that nobody reads any more, gradients let go before each step.

Fails where training takes more than PyTorch's, or inference more than half of it.
"""

import json
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

from zoo import Forward, Text

INFERENCE = 0.5  # of PyTorch's


class Lean(Forward):
    """Keeps a layer's value until its last reader has it."""

    def __call__(self, x):
        readers, last = {}, "input"
        for name, _, _, _, inputs in self.text.layers:
            for read in inputs or [last]:
                readers[read] = name
            last = name
        values, last = {"input": x}, "input"
        del x
        for name, kind, arguments, settings, inputs in self.text.layers:
            given = [values[read] for read in inputs or [last]]
            for read in [read for read in values if readers.get(read) == name]:
                del values[read]
            values[name] = getattr(self, kind)(name, arguments, settings, *given)
            del given
            last = name
        return values[last]

    def batch_norm(self, name, _, settings, x):
        return F.batch_norm(x, self.w[name + ".mean"], self.w[name + ".variance"],
                            self.w[name + ".scale"], self.w[name + ".shift"], self.training, 0.1,
                            float(settings.get("epsilon", 1e-5)))

    def relu(self, _, __, ___, x):
        return torch.relu_(x)


def explain(prony, network, batch, phase):
    """What prony says of a plan, in bytes."""
    words = [prony, "explain", network, "--phase", phase, "--batch", str(batch), "--backend", "simd",
             "--json"]
    said = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    return json.loads(said)["network"]["programs"][0]


def weights(explained):
    """Random ones, of the shapes that prony's parameters have."""
    kept = [t for t in explained["tensors"] if t["role"] in ("param", "statistic")]
    w = {t["name"]: torch.rand(t["shape"]) for t in kept}
    for tensor in kept:
        if tensor["role"] == "param":
            w[tensor["name"]].mul_(0.02).requires_grad_()
    return w


def most_taken(iterate):
    """Bytes at the worst moment, beyond those that were there before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        iterate()
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda e: e.start_us()):
        now += event.nbytes()
        most = max(most, now)
    return most


def measure(text, w, batch, phase):
    x = torch.randn(batch, *text.sample)
    label = torch.randint(text.classes, (batch,))
    learnt = [value for value in w.values() if value.requires_grad]
    update = torch.optim.SGD(learnt, 0.01)
    forward = Lean(text, w, phase == "training")

    def infer():
        with torch.no_grad():
            forward(x)

    def train():
        F.cross_entropy(forward(x), label).backward()
        update.step()

    there = sum(t.numel() * t.element_size() for t in [*w.values(), x, label])
    (infer if phase == "inference" else train)()  # the first time allocates what stays
    update.zero_grad(set_to_none=True)
    return there + most_taken(infer if phase == "inference" else train)


def main():
    prony, network, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    text = Text(f"src/nn/zoo/{network}.net")
    fine = True
    for phase, share in (("inference", INFERENCE), ("training", 1)):
        explained = explain(prony, network, batch, phase)
        ours = sum(explained["memory"].values())
        theirs = measure(text, weights(explained), batch, phase)
        good = ours <= share * theirs
        parts = ", ".join(f"{role} {bytes / 1e6:.0f}" for role, bytes in explained["memory"].items()
                          if bytes >= 5e5)
        print(f"    {network}, batch {batch}, {phase}: {ours / 1e6:.0f} MB ({parts}); "
              f"PyTorch {theirs / 1e6:.0f} MB; {ours / theirs:.2f} of it, expected {share} at most")
        print(f"{'ok  ' if good else 'FAIL'} memory.{network}_{phase}", flush=True)
        fine = fine and good
    sys.exit(not fine)


main()
