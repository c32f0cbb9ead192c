"""A training by several processes with PyTorch's DistributedDataParallel: each has a part of every
batch, gradients are averaged by gloo, or by NCCL where there is a GPU for each.

The first process is the peer. It starts the others, as this same program, and passes every request
on to them before it does the same."""

import json
import os
import subprocess
import sys
import tempfile
from datetime import timedelta

from peer import Shipped
from prony_peer import WARM_NS, Server, Unsupported

RANK, MEET = "PRONY_PEER_RANK", "PRONY_PEER_MEET"  # of a process that was started so
JOIN_S = 60


def asked(request):
    """How many workers the request is for."""
    return int(request.get("axes", {}).get("workers", 1))


class Shared(Shipped):
    """Its settings are PyTorch's own: processes that try others would have to try the same."""

    backends = ["eager"]

    def prepare(self, work):
        axes = work.request["axes"]
        self.size, self.rank = asked(work.request), int(os.environ.get(RANK, 0))
        if axes.get("parallelism", "data") != "data":
            raise Unsupported("DistributedDataParallel shares data: --parallelism data")
        if not work.training or work.batch % self.size:
            raise Unsupported(f"it takes trainings with batches that {self.size} workers divide")
        self.begin(work)
        self.backend, self.captures, self.settings = "eager", False, {}
        self.join()
        self.build(self.settings)
        return {"software": {**self.about(), "backend": "eager", "ddp": self.group.get_backend()},
                "axes": {"workers": str(self.size), "parallelism": "data"}}

    def join(self):
        import torch.distributed as group

        self.group = group
        each = self.device == "cuda" and self.torch.cuda.device_count() >= self.size
        if each:
            self.torch.cuda.set_device(self.rank)
        group.init_process_group("nccl" if each else "gloo", init_method="file://" + os.environ[MEET],
                                 rank=self.rank, world_size=self.size,
                                 timeout=timedelta(seconds=JOIN_S))

    def batches(self, tensor):
        own = self.work.batch // self.size
        return [rows[self.rank * own : (self.rank + 1) * own] for rows in super().batches(tensor)]

    def quicker(self, module, settings):
        return self.torch.nn.parallel.DistributedDataParallel(module)

    def steps(self, first, count):
        """From where all of them begin to where all have ended."""
        self.group.barrier()
        elapsed = super().steps(first, count)
        self.group.barrier()
        return elapsed

    def loss(self):
        error = self.torch.tensor(super().loss())
        self.group.all_reduce(error)
        return float(error) / self.size


class Several(Server):
    """Passes requests on to the other processes; there are none until a request asks for some."""

    others = ()

    def pass_on(self, request):
        for other in self.others:
            other.stdin.write(json.dumps(request) + "\n")
            other.stdin.flush()

    def start(self, count):
        self.folder = tempfile.TemporaryDirectory(prefix="prony-ddp-")
        os.environ[MEET] = os.path.join(self.folder.name, "meet")
        self.others = [
            subprocess.Popen([sys.executable, *sys.argv], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             env={**os.environ, RANK: str(rank)}, text=True)
            for rank in range(1, count)
        ]

    def prepare(self, request):
        if RANK not in os.environ and asked(request) > 1:
            self.start(asked(request))
        self.pass_on(request)
        return super().prepare(request)

    def run(self, request):
        """All of them warm up where the first one finds that they should."""
        warm = request.get("warm", True) and self.iteration_ns and self.iteration_ns < WARM_NS
        if not self.others:
            return super().run(request)
        if warm:
            self.both({"do": "run", "iterations": 1, "warm": False})
        return self.both({**request, "warm": False})

    def both(self, request):
        self.pass_on(request)
        return super().run(request)

    def check(self, request):
        self.pass_on(request)
        return super().check(request)
