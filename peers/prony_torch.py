"""Any PyTorch network as a peer of prony (docs/peers.md), in ten lines:

    #!/usr/bin/env python3
    import sys
    sys.path.insert(0, "peers")
    from prony_torch import serve_network

    def network(torch, work):
        linear, sigmoid = torch.nn.Linear, torch.nn.Sigmoid
        return torch.nn.Sequential(linear(4, 3), sigmoid(), linear(3, 4), sigmoid(),
                                   linear(4, 5), sigmoid(), linear(5, 1), sigmoid())

    serve_network(network)

The parameters, in the order in which the module has them, are filled from prony's in the order of
the file; a matrix that is the other way round (PyTorch has [out, in]) is turned. A training step is
forward, loss, backward and the optimiser's update; whoever has a step of their own gives `step(torch,
module, loss, optimiser, x, target)` as the second argument. `--unit gpu` runs it on a CUDA device.
"""

import contextlib
import time

from prony_libraries import report_torch
from prony_peer import Unsupported, find_packages, serve


def plain_step(torch, module, loss, optimiser, x, target):
    optimiser.zero_grad(set_to_none=True)
    error = loss(module(x), target)
    error.backward()
    optimiser.step()
    return error


def loss_of(torch, name):
    functions = torch.nn.functional

    def cross_entropy(y, label):
        return functions.cross_entropy(y.flatten(0, -2), label.flatten())

    return {
        "mse": functions.mse_loss,
        "cross_entropy": cross_entropy,
        "binary_cross_entropy": functions.binary_cross_entropy_with_logits,
    }[name]


def optimiser_of(torch, work, parameters, **more):
    """PyTorch's optimiser of that name and those settings; `more` are arguments of PyTorch's own."""
    s, kinds = work.settings, torch.optim
    more["lr"] = s["rate"]
    if work.optimiser == "rprop":
        etas, sizes = (s["shrink"], s["grow"]), (s["least"], s["most"])
        return kinds.Rprop(parameters, etas=etas, step_sizes=sizes, **more)
    more["weight_decay"] = s["decay"]
    if work.optimiser in ("adam", "adamw"):
        kind = kinds.Adam if work.optimiser == "adam" else kinds.AdamW
        return kind(parameters, betas=(s["beta1"], s["beta2"]), eps=s["epsilon"], **more)
    if work.optimiser == "adagrad":
        return kinds.Adagrad(parameters, eps=s["epsilon"], **more)
    if work.optimiser == "rmsprop":
        return kinds.RMSprop(parameters, alpha=s["smoothing"], eps=s["epsilon"], **more)
    nesterov = work.optimiser == "nesterov"
    return kinds.SGD(parameters, momentum=s.get("momentum", 0), nesterov=nesterov, **more)


class TorchPeer:
    packages = ["torch"]
    units = ["cpu", "gpu"]
    precisions = ["fp32", "tf32", "bf16"]

    def __init__(self, network, step):
        self.network, self.own_step = network, step

    def prepare(self, work):
        self.begin(work)
        self.take(self.network(self.torch, work))
        self.places = self.find_places()
        self.ready()
        return {"software": self.about()}

    def begin(self, work):
        """PyTorch itself, and the data."""
        import torch  # only now: the number of threads is known

        self.torch, self.work = torch, work
        self.device = "cuda" if work.unit == "gpu" else "cpu"
        if work.unit == "cpu":
            torch.set_num_threads(work.threads)
            if work.precision == "tf32":
                raise Unsupported("tf32 is a precision of GPUs")
        elif not torch.cuda.is_available():
            raise Unsupported("PyTorch finds no CUDA device here")
        torch.backends.cuda.matmul.allow_tf32 = work.precision == "tf32"
        torch.backends.cudnn.allow_tf32 = work.precision == "tf32"
        self.take_data()

    def take_data(self):
        torch, work = self.torch, self.work
        self.inputs = self.batches(work.inputs)
        if work.training:
            self.targets = self.batches(work.targets or work.labels)
        self.initial = {  # once there, they are there for every setting that is tried
            name: torch.frombuffer(values, dtype=torch.float32).reshape(shape).to(self.device)
            for name, (shape, values) in work.weights.items()
        }

    def about(self):
        found = find_packages(self.packages)
        if self.device == "cuda":
            found.update(cuda=self.torch.version.cuda, gpu=self.torch.cuda.get_device_name())
        return found

    def libraries(self):
        return report_torch(self.torch)

    def take(self, module):
        """The module that is run, where it is run, in the precision it is run in."""
        self.module = module.to(self.device)
        self.module.train(self.work.training)
        if not self.work.training:
            if self.work.loss == "cross_entropy":  # its network answers with probabilities
                self.module = self.torch.nn.Sequential(module, self.torch.nn.Softmax(dim=-1))
            self.module.requires_grad_(False)
            if self.work.precision == "bf16":
                self.module.bfloat16()

    def ready(self, **more):
        """The step, from the initial weights; `more` goes to the optimiser."""
        self.fill()
        if not self.work.training:
            self.step = self.forward
            if self.work.calls and self.device == "cuda":
                self.prepare_calls()
            return
        if self.work.settings["clip"]:
            raise Unsupported("this peer does not clip gradients")
        self.loss_of = loss_of(self.torch, self.work.loss)
        parameters = list(self.module.parameters())
        self.optimiser = optimiser_of(self.torch, self.work, parameters, **more)
        self.step = self.train
        self.run = self.in_bf16 if self.work.precision == "bf16" else self.module

    def find_places(self):
        """{name: (tensor, turned)}: which of the module's tensors holds what."""
        statistics = [layer["name"] for layer in self.work.layers if layer["kind"] == "batch_norm"]
        tables = [l["name"] for l in self.work.layers if l["kind"] in ("embedding", "position")]
        parameters = list(self.module.parameters())
        buffers = [b for b in self.module.buffers() if b.is_floating_point()]
        places = {}
        for name, (shape, _) in self.work.weights.items():
            layer, _, part = name.rpartition(".")
            kept = layer in statistics and part in ("mean", "variance")
            found = buffers if kept else parameters
            turned = len(shape) == 2 and layer not in tables
            wanted = shape[::-1] if turned else shape
            there = list(found[0].shape) if found else "none left"
            if there != wanted:  # a mistake of whoever wrote the module, not something it lacks
                raise ValueError(f"{name} takes a parameter of {wanted}, the module has {there} here")
            places[name] = (found.pop(0), turned)
        if parameters:
            raise ValueError(f"the module has {len(parameters)} parameters more than the network")
        return places

    def fill(self):
        with self.torch.no_grad():
            for name, (tensor, turned) in self.places.items():
                value = self.initial[name]
                tensor.copy_(value.t() if turned else value)

    def batches(self, tensor):
        shape, values = tensor
        torch = self.torch
        if values.typecode == "f":
            rows = torch.frombuffer(values, dtype=torch.float32)
            if self.work.precision == "bf16" and not self.work.training:
                rows = rows.bfloat16()
        else:
            rows = torch.frombuffer(values, dtype=torch.int32).long()
        return [r.clone().to(self.device) for r in rows.reshape(shape).split(self.work.batch)]

    def forward(self, batch):
        with self.torch.inference_mode():
            self.y = self.module(self.inputs[batch])
        return self.y

    def prepare_calls(self):
        y = self.forward(0)
        self.asked = [x.cpu().pin_memory() for x in self.inputs]
        self.answers = [self.torch.empty_like(y, device="cpu", pin_memory=True) for _ in self.inputs]
        self.step = self.call

    def call(self, batch):
        """From host memory to host memory; pinned, so that nothing waits."""
        self.inputs[batch].copy_(self.asked[batch], non_blocking=True)
        y = self.forward(batch)
        self.answers[batch].copy_(y, non_blocking=True)
        self.y = self.answers[batch]
        return self.y

    def train(self, batch):
        x, target = self.inputs[batch], self.targets[batch]
        self.error = self.own_step(self.torch, self.run, self.loss_of, self.optimiser, x, target)

    def in_bf16(self, x):
        with self.torch.autocast(self.device, self.torch.bfloat16):
            return self.module(x).float()

    def steps(self, first, count):
        """The loop that is timed: what the device was given, it must have done."""
        step, batches = self.step, self.work.batches
        wait = self.torch.cuda.synchronize if self.device == "cuda" else contextlib.nullcontext
        wait()
        start = time.perf_counter_ns()
        for i in range(first, first + count):
            step(i % batches)
        wait()
        return time.perf_counter_ns() - start

    def outputs(self):
        return self.y.float().reshape(-1)

    def loss(self):
        if self.work.training and any(l["kind"] == "dropout" for l in self.work.layers):
            raise Unsupported("PyTorch's dropout draws other random numbers")
        return float(self.error)

    def parameter(self, name, i):
        tensor, turned = self.places[name]
        return float(tensor[i % len(tensor), i // len(tensor)] if turned else tensor.reshape(-1)[i])


def serve_network(network, step=plain_step):
    serve(TorchPeer(network, step))
