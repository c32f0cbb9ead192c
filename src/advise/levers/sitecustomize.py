"""Changes defaults of PyTorch before a program runs, to prove advice without an edit of its source.

prony puts this folder first in PYTHONPATH and names the changes in PRONY_LEVERS. Only what a program
leaves open is changed: what it sets by itself stays, but for zero workers. Python imports this file when it starts; the one
that it would have imported comes after it."""
import importlib.util
import os
import sys

LEVERS = os.environ.get("PRONY_LEVERS", "").split(",")


def change_loader(module):
    """DataLoader: worker processes, pinned memory. A stream of samples is left as it is, since each
    worker would read all of it."""
    kind = module.DataLoader
    made = kind.__init__
    workers = max(1, min(8, len(os.sched_getaffinity(0)) - 1))

    def init(self, dataset, *more, **named):
        streams = isinstance(dataset, module.IterableDataset)
        if "workers" in LEVERS and len(more) < 5 and not named.get("num_workers") and not streams:
            named["num_workers"] = workers
        if "pin" in LEVERS and len(more) < 7:
            named.setdefault("pin_memory", True)
        made(self, dataset, *more, **named)

    kind.__init__ = init


def change_optimiser(module):
    """Adam, AdamW, SGD: one kernel for all parameters."""
    for name in "Adam", "AdamW", "SGD":
        kind = getattr(module, name, None)
        if kind is None:
            continue

        def init(self, params, *more, made=kind.__init__, **named):
            params = list(params)
            flat = [p for group in params for p in (group["params"] if isinstance(group, dict) else [group])]
            on_gpu = all(getattr(p, "is_cuda", False) for p in flat)
            if on_gpu and named.get("foreach") is None and named.get("fused") is None:
                named["fused"] = True
            made(self, params, *more, **named)

        kind.__init__ = init


CHANGES = {}
if "workers" in LEVERS or "pin" in LEVERS:
    CHANGES["torch.utils.data.dataloader"] = change_loader
if "fused" in LEVERS:
    CHANGES["torch.optim"] = change_optimiser


class Watcher:
    """Waits for a module, loads it as it would be, and then changes it."""

    busy = False

    def find_spec(self, name, path=None, target=None):
        if name not in CHANGES or self.busy:
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            CHANGES.pop(name)(module)

        spec.loader.exec_module = exec_module
        return spec


def go_on():
    """The sitecustomize that stands behind this one, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        pass


if CHANGES:
    sys.meta_path.insert(0, Watcher())
go_on()
