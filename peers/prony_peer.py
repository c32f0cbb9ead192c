"""What every peer written in Python shares: the line protocol of docs/peers.md.

A peer is an object with

    packages = ["numpy"]           what it imports, by the names pip knows (may be empty)
    prepare(work)                  build the network; `work` is a Work
    step(batch)                    one iteration on batch number `batch` of work.batches
    loss(), parameter(name, i)     training: the last step's loss; element i of a parameter
    outputs()                      inference: the flat outputs of the last step, a list or an array

and, where it has reason to,

    units, precisions, backends    values of these axes that it has; without: cpu, fp32, none
    probe()                        {name: version} of what it found, beside `packages`
    steps(first, count)            so many iterations in a loop of its own; may give the nanoseconds
                                   that they took, by a clock of its own
    opens_onnx = True              it opens the user's ONNX file: work.onnx; without it a file that
                                   prony cannot import is refused
    exports = True                 it reads any network as the ONNX file work.export
    restart()                      back to the initial weights, cheaper than by prepare(work)
    profile(count)                 {"rows": what each layer takes, …} of so many watched iterations, as
                                   docs/peers.md has it
    libraries()                    ({name: version} of the libraries that it computes with, [handicaps]:
                                   why it does not run as its users run it), once it is prepared

and `serve(peer)` does the rest. `work.search` finds the best of several settings. Standard library
only.
"""

import ctypes
import hashlib
import json
import os
import platform
import sys
import time
from array import array

from prony_libraries import report_python
from prony_search import Search, processor


class Unsupported(Exception):
    """This peer cannot do what was asked; the text says why and, where it helps, what to install."""


class Work:
    """What is to be computed: the fields of the request `prepare`, with files read."""

    def __init__(self, request, software):
        self.training = request["phase"] == "training"
        self.batch = request["batch"]
        self.threads = request["threads"]
        self.backend, self.unit = request["backend"], request["unit"]
        self.precision = request["precision"]
        # each iteration is a call, from host memory to host memory; queued: many are waited for at once
        scenario = request.get("scenario", "iterate")
        self.calls, self.queued = scenario not in ("iterate", "offline"), scenario == "queued"
        self.apart = request.get("apart", False)  # its layers will be watched one by one
        self.onnx = request.get("onnx")  # the user's file: {"file": …, "sizes": …, "batch": …}
        self.export = request.get("export")
        self.inputs = None
        if "layers" in request:
            self.read_network(request)
        self.request, self.software = request, software
        self.searched, self.tuned = None, {}

    def read_network(self, request):
        """What prony knows of it; of a file that it cannot import nothing."""
        self.layers = request["layers"]  # [{"kind": "dense", "name": "dense1", …}, …]
        self.loss = request["loss"]
        self.optimiser = request["optimiser"]
        self.settings = request["settings"]  # of the optimiser: rate, momentum, …
        self.rate = self.settings["rate"]
        self.products = request.get("products", [])  # int8: {"layer", "x_scale", "x_zero", "y_scale", "y_zero"}
        self.weights = read_safetensors(request["weights"])
        data = read_safetensors(request["data"])
        self.inputs, self.targets, self.labels = data["x"], data.get("target"), data.get("label")
        self.batches = self.inputs[0][0] // self.batch

    def search(self, settings, trial, seconds=0.25, **libraries):
        """The best choice of settings, {name: [usual value, other value, …]}: from the usual one on,
        each setting in turn takes the value with which it is quickest. `trial(choice)` makes ready and
        gives a number of iterations and a function that does so many, or raises Unsupported. `libraries`: more that the times
        depend on. They are kept (prony_search.py); PRONY_PEER_SEARCH=off leaves the usual ones."""
        if not self.searched:
            most = self.request.get("search_s", 60)
            self.searched = Search(self.key(libraries), most, Unsupported)
        chosen = self.searched.run(settings, trial, seconds)
        self.tuned.update(chosen)
        return chosen

    def key(self, libraries):
        """What the times of settings depend on: the peer, the machine, the work."""
        matters = ("apart", "phase", "batch", "threads", "backend", "unit", "precision", "scenario", "axes",
                   "layers", "loss", "optimiser", "settings", "onnx")
        asked = {name: self.request[name] for name in matters if name in self.request}
        tensors = {} if self.inputs is None else {n: shape for n, (shape, _) in self.weights.items()}
        if self.onnx:
            file = os.stat(self.onnx["file"])
            tensors["file"] = [file.st_size, file.st_mtime_ns]
        about = json.dumps([asked, tensors, self.inputs[0] if self.inputs else []], sort_keys=True)
        try:
            with open(sys.argv[0], "rb") as file:
                own = hashlib.sha256(file.read()).hexdigest()[:16]
        except OSError:  # it came by standard input
            own = ""
        place = os.path.abspath(sys.argv[0]).split(os.sep)
        return {"peer": "/".join(place[-2:]), "code": own, "software": self.software,
                "libraries": libraries, "cpu": processor(), "unit": self.unit,
                "work": hashlib.sha256(about.encode()).hexdigest()}

    def refuse(self, peer):
        """Unsupported, when it asks for a value of an axis that the peer has not, or for a file that
        only the peer could open."""
        if not self.inputs and not getattr(peer, "opens_onnx", False):
            raise Unsupported("prony cannot import the file, and this peer opens none itself")
        for axis, usual in (("unit", ["cpu"]), ("precision", ["fp32"]), ("backend", [])):
            value, known = getattr(self, axis), getattr(peer, axis + "s", usual)
            if value not in known and not (axis == "backend" and value in ("", "default")):
                has = f"it has {', '.join(known)}" if known else "it has one only"
                raise Unsupported(f"this peer has no {axis} {value}: {has}")

    def rows(self, tensor):
        """A tensor of the data as one list per batch of one list of numbers per sample."""
        shape, values = tensor
        width = len(values) // shape[0]
        samples = [values[i * width : (i + 1) * width].tolist() for i in range(shape[0])]
        return [samples[i * self.batch : (i + 1) * self.batch] for i in range(self.batches)]

    def refuse_learning(self, losses=("mse", "cross_entropy")):
        """Unsupported, unless it learns one of these losses, by plain sgd."""
        if self.loss not in losses:
            raise Unsupported(f"this peer knows {' and '.join(losses)}, not {self.loss}")
        if self.training and (
            self.optimiser != "sgd" or self.settings["decay"] or self.settings["clip"]
        ):
            raise Unsupported("this peer trains by sgd without decay and clip only")

    def dense_stack(self, losses=("mse", "cross_entropy")):
        """The network as [(weight name, bias name, activation)], if it is nothing but dense layers,
        each followed by a sigmoid, a relu or nothing, trained by sgd on one of these losses."""
        self.refuse_learning(losses)
        stack = []
        for place, layer in enumerate(self.layers):
            if layer["inputs"] != [place - 1] or layer.get("bias") == 0:
                raise Unsupported("this peer knows plain stacks of layers with a bias")
            if layer["kind"] == "dense":
                stack.append((layer["name"] + ".weight", layer["name"] + ".bias", None))
            elif layer["kind"] in ("sigmoid", "relu") and stack and stack[-1][2] is None:
                stack[-1] = stack[-1][:2] + (layer["kind"],)
            else:
                raise Unsupported(f"this peer has no layer {layer['kind']} here")
        if self.loss == "cross_entropy" and stack[-1][2]:
            raise Unsupported("this peer takes the cross-entropy of a linear layer")
        return stack


def read_safetensors(path):
    """{name: (shape, array of 32-bit floats or integers)}, in the order of the file. A header of
    JSON, then the numbers."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        start = file.tell()
        tensors = {}
        header.pop("__metadata__", None)
        for name, about in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            first, end = about["data_offsets"]
            file.seek(start + first)
            values = array({"F32": "f", "I32": "i", "I8": "b", "U8": "B"}[about["dtype"]])
            values.frombytes(file.read(end - first))
            tensors[name] = (about["shape"], values)
        return tensors


def find_packages(packages):
    """{package: version} of all; Unsupported when one is missing. Debian installs packages for
    /usr/bin/python3, whichever python3 comes first in PATH: if need be, go on with that one."""
    found = {"python": platform.python_version()}
    if packages:
        from importlib import metadata  # a third of what a short peer takes to start
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            system, first = "/usr/bin/python3", os.environ.get("PRONY_PEER_PYTHON")
            if not first and os.path.exists(system):
                os.environ["PRONY_PEER_PYTHON"] = sys.executable
                os.execv(system, [system] + sys.argv)
            where = f"{first} or {sys.executable}" if first else sys.executable
            hint = f"pip install {package}"
            if package in ("numpy", "torch"):
                hint = f"Debian: apt-get install python3-{package}; elsewhere: {hint}"
            raise Unsupported(
                f"{package} is not installed: {where} has no such module ({hint})"
            ) from None
    return found


def limit_threads(count):
    """Must come before the import of a library that makes threads."""
    for library in ("OMP", "OPENBLAS", "BLIS", "MKL"):
        os.environ[library + "_NUM_THREADS"] = str(count or 1)  # on a GPU none is asked for
    os.environ["OMP_WAIT_POLICY"] = "passive"  # whoever is not being timed must not spin


def middle(values):
    """The mean of the middle half: as deaf to outliers as the median, and finer."""
    values = sorted(values)
    quarter = len(values) // 4
    kept = values[quarter : len(values) - quarter]
    return sum(kept) / len(kept)


WARM_NS = 20_000_000


def keep_memory():
    """glibc gives freed memory back to the system and fetches it again page by page, in some processes
    and not in others (seen: 90,000 page faults a second, a fifth of PyTorch's time on lenet). PyTorch's
    tuning guide has its users change that; here it is changed for all."""
    trim_threshold, mmap_threshold = -1, -3  # as malloc.h numbers them
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return
    mallopt(mmap_threshold, 32 << 20)
    mallopt(trim_threshold, (1 << 31) - 1)


class Server:
    def __init__(self, peer):
        self.peer = peer
        self.work = None
        self.place = 0  # the batch that comes next
        self.iteration_ns = None  # how long one took, in the last run

    def probe(self, request):
        software = find_packages(self.peer.packages)
        if hasattr(self.peer, "probe"):
            software.update(self.peer.probe())
        return {"software": software, "exports": getattr(self.peer, "exports", False)}

    def prepare(self, request):
        limit_threads(request["threads"])
        keep_memory()
        work = Work(request, self.probe({})["software"])
        self.work, self.place, self.iteration_ns = work, 0, None  # also of a second work
        work.refuse(self.peer)
        answer = self.peer.prepare(work) or {}
        if hasattr(self.peer, "restart"):  # what compiles in the first iteration does it here
            self.iterate(1)
            self.restart()
        return {**answer, **self.describe(answer.get("software", work.software))}

    def describe(self, software):
        """What it computes with, what was tried, and why it does not run as its users run it."""
        found, handicaps = getattr(self.peer, "libraries", lambda: ({}, []))()
        searched = self.work.searched
        handicaps = report_python() + handicaps + (searched.handicaps() if searched else [])
        about = {"software": {**software, **found, **(searched.about() if searched else {})}, "tuning": self.work.tuned}
        for name in ("settings", *self.work.tuned):  # not what ran, but how
            about["software"].pop(name, None)
        unit = about["software"].pop("gpu", None) or about["software"].pop("unit", None)
        if unit:
            about["unit_name"] = unit
        return {**about, "handicap": "; ".join(handicaps)} if handicaps else about

    def iterate(self, count):
        step, batches, place = self.peer.step, self.work.batches, self.place
        steps = getattr(self.peer, "steps", None)
        start = time.perf_counter_ns()
        own = None
        if steps:
            own = steps(place, count)
        else:
            for i in range(place, place + count):
                step(i % batches)
        elapsed = own or time.perf_counter_ns() - start
        self.place = (place + count) % batches
        return max(elapsed, 1)

    def run(self, request):
        """Whoever has just been woken, perhaps on another core, finds cold caches: a short iteration
        is run once before it is timed, as torch.utils.benchmark does; not where each is a call that
        somebody waits for, or is counted."""
        if request.get("warm", True) and self.iteration_ns and self.iteration_ns < WARM_NS:
            self.iterate(1)
        elapsed_ns = self.iterate(request["iterations"])
        self.iteration_ns = elapsed_ns / request["iterations"]
        return {"elapsed_ns": elapsed_ns}

    def check(self, request):
        """From the initial weights and the first batch again, whatever ran before, by what is timed."""
        self.restart()
        values = []
        for _ in range(request["steps"]):
            self.iterate(1)
            if not self.work.training:
                found = self.peer.outputs()[: request["most"] - len(values)]
                values.extend(found.tolist() if hasattr(found, "tolist") else found)
        if not self.work.training:
            return {"values": values}
        loss = self.peer.loss()
        values = [self.peer.parameter(name, i) for name, i in request["samples"]]
        self.restart()  # what was read back may lie in another order than it is trained in
        return {"loss": loss, "values": values}

    def profile(self, request):
        """Once more, watched: what each layer takes."""
        if not hasattr(self.peer, "profile"):
            raise Unsupported("this peer does not tell what its layers take")
        return self.peer.profile(request["iterations"])

    def restart(self):
        self.place = 0
        if hasattr(self.peer, "restart"):
            self.peer.restart()
        else:
            self.peer.prepare(self.work)

    def answer(self, line):
        try:
            request = json.loads(line)
            return {"status": "ok", **getattr(self, request["do"])(request)}
        except Unsupported as reason:
            return {"status": "unsupported", "reason": str(reason)}
        except Exception as reason:
            return {"status": "failed", "reason": f"{type(reason).__name__}: {reason}"}


def serve(peer, server=Server):
    try:
        find_packages(peer.packages)  # now, because it may start again under another python
    except Unsupported:
        pass  # probe says it
    # Answers go to the real standard output; what anything else prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    server = server(peer)
    for line in sys.stdin:
        answers.write(json.dumps(server.answer(line)) + "\n")
        answers.flush()
