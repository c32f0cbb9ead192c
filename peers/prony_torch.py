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
forward, loss, backward and SGD's update; whoever has a step of their own gives `step(torch, module,
loss, optimiser, x, target)` as the second argument.
"""

from prony_peer import Unsupported, serve


def plain_step(torch, module, loss, optimiser, x, target):
    optimiser.zero_grad(set_to_none=True)
    error = loss(module(x), target)
    error.backward()
    optimiser.step()
    return error


class TorchPeer:
    packages = ["torch"]

    def __init__(self, network, step):
        self.network, self.own_step = network, step

    def prepare(self, work):
        import torch  # only now: the number of threads is known

        torch.set_num_threads(work.threads)
        self.torch = torch
        self.module = self.network(torch, work)
        self.fill(work)
        self.inputs = self.batches(work, work.inputs)
        if work.training:
            if work.optimiser != "sgd" or work.loss not in ("mse", "cross_entropy"):
                raise Unsupported(f"this peer has no {work.loss} with {work.optimiser}")
            functions = torch.nn.functional
            self.loss_of = functions.mse_loss if work.loss == "mse" else functions.cross_entropy
            self.targets = self.batches(work, work.targets or work.labels)
            self.optimiser = torch.optim.SGD(self.module.parameters(), lr=work.rate)
            self.step = self.train
        else:
            if work.loss == "cross_entropy":  # its network answers with probabilities
                self.module = torch.nn.Sequential(self.module, torch.nn.Softmax(dim=-1))
            self.module.requires_grad_(False)
            self.step = self.forward

    def fill(self, work):
        """Parameter by parameter; remembers which holds what, and whether it is turned."""
        torch, self.places = self.torch, {}
        parameters = list(self.module.parameters())
        if len(parameters) != len(work.weights):
            raise Unsupported(
                f"the module has {len(parameters)} parameters, the network {len(work.weights)}"
            )
        for parameter, (name, (shape, values)) in zip(parameters, work.weights.items()):
            value = torch.tensor(values, dtype=torch.float32).reshape(shape)
            turned = value.dim() == 2
            value = value.t() if turned else value
            if value.shape != parameter.shape:
                raise Unsupported(f"{name} is {shape}, the module has {list(parameter.shape)}")
            with torch.no_grad():
                parameter.copy_(value)
            self.places[name] = (parameter, turned)

    def batches(self, work, tensor):
        shape, values = tensor
        kind = self.torch.float32 if values.typecode == "f" else self.torch.int64
        all_rows = self.torch.tensor(values, dtype=kind).reshape(shape)
        return list(all_rows.split(work.batch))

    def forward(self, batch):
        with self.torch.inference_mode():
            return self.module(self.inputs[batch])

    def train(self, batch):
        self.error = self.own_step(self.torch, self.module, self.loss_of, self.optimiser,
                                   self.inputs[batch], self.targets[batch])

    def outputs(self, batch):
        return self.forward(batch).reshape(-1).tolist()

    def loss(self):
        return float(self.error)

    def parameter(self, name, i):
        tensor, turned = self.places[name]
        return float((tensor.t() if turned else tensor).reshape(-1)[i])


def serve_network(network, step=plain_step):
    serve(TorchPeer(network, step))
