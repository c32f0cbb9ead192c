#!/usr/bin/env python3
"""ONNX Runtime, for inference: the user's ONNX file as it is, or any other network as `prony export`
writes it; run by Python's package onnxruntime where that is installed, else by node's
onnxruntime-node (tools/setup peers installs it). On a GPU, by Python's with its CUDA provider, data and
outputs staying on the device."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from onnx_feeds import Feeds, samples_first
from onnx_graph import TYPES, Model
from prony_peer import Unsupported, serve
from watched import EVENTS_MOST, on_gpu, rows_of

DATA = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
MODULES = os.path.join(DATA, "prony", "onnxruntime", "node_modules")


class InPython:
    def __init__(self):
        import onnxruntime

        self.onnxruntime = onnxruntime

    def open(self, work, path, feeds, outputs, folder):
        options = self.onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = work.threads or 1, 1
        options.add_session_config_entry("session.force_spinning_stop", "1")
        gpu = work.unit == "gpu"
        provider = "CUDAExecutionProvider" if gpu else "CPUExecutionProvider"
        if provider not in self.onnxruntime.get_available_providers():
            raise Unsupported(f"this onnxruntime has no {provider}")
        self.session = self.onnxruntime.InferenceSession(path, options, providers=[provider])
        self.opened = path, options, provider
        self.where, self.calls = ("cuda", 0) if gpu else ("cpu", 0), feeds.calls
        self.fed, self.names = feeds.list, outputs
        self.bindings = self.bind()

    def bind(self):
        """What the session is fed with, and where its outputs go."""
        import numpy as np

        bindings, where = [], self.where
        for feed in self.fed:
            binding = self.session.io_binding()
            for name, (code, shape, data) in feed.items():
                if code == 16:
                    raise Unsupported(f"the input '{name:.80}' is bfloat16, which NumPy has not")
                x = np.frombuffer(bytearray(data), TYPES[code][0]).reshape(shape)
                binding.bind_ortvalue_input(name, self.onnxruntime.OrtValue.ortvalue_from_numpy(x, *where))
            for name in self.names:
                binding.bind_output(name, *where)
            bindings.append(binding)
        return bindings

    def run(self, first, count):
        run, bindings = self.session.run_with_iobinding, self.bindings
        for i in range(first * self.calls, (first + count) * self.calls):
            run(bindings[i % len(bindings)])
        self.last = (first + count - 1) * self.calls % len(bindings)

    def watch(self, folder, count):
        """The same in a session that notes what each node takes."""
        path, options, provider = self.opened
        options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, "notes")
        options.optimized_model_filepath = os.path.join(folder, "changed.onnx")
        own = self.session, self.bindings
        self.session = self.onnxruntime.InferenceSession(path, options, providers=[provider])
        self.bindings = self.bind()
        self.run(0, count)
        self.session.end_profiling()
        self.session, self.bindings = own

    def outputs(self):
        last = self.bindings[self.last : self.last + self.calls]
        found = [binding.copy_outputs_to_cpu()[0] for binding in last]
        return [(y.reshape(-1).tolist(), list(y.shape)) for y in found]


class InNode:
    def __init__(self):
        self.process = subprocess.Popen(
            ["node", os.path.join(HERE, "session.js")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={**os.environ, "NODE_PATH": MODULES})

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "node ended"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def open(self, work, path, feeds, outputs, folder):
        if work.unit != "cpu":
            raise Unsupported("on a GPU this peer needs Python's package onnxruntime")
        data, calls, at = os.path.join(folder, "data"), [], 0
        with open(data, "wb") as file:
            for feed in feeds.list:
                call = []
                for name, (code, shape, content) in feed.items():
                    if code == 16:
                        raise Unsupported(f"the input '{name:.80}' is bfloat16, which node has not")
                    file.write(content)
                    call.append({"name": name, "type": TYPES[code][0], "shape": shape, "at": at,
                                 "bytes": len(content)})
                    at += len(content)
                calls.append(call)
        self.ask(do="open", model=os.path.abspath(path), data=data, feeds=calls, calls=feeds.calls,
                 threads=work.threads, outputs=outputs)

    def run(self, first, count):
        return self.ask(do="run", first=first, count=count)["elapsed_ns"]

    def watch(self, folder, count):
        self.ask(do="watch", notes=os.path.join(folder, "notes"),
                 changed=os.path.join(folder, "changed.onnx"), count=count)

    def outputs(self):
        return [(y["values"], y["shape"]) for y in self.ask(do="outputs")["calls"]]


class Peer:
    packages = []
    units = ["cpu", "gpu"]
    precisions = ["fp32", "int8"]
    opens_onnx = exports = True

    def probe(self):
        for package in ("onnxruntime-gpu", "onnxruntime"):
            try:
                return {package: importlib.metadata.version(package)}
            except importlib.metadata.PackageNotFoundError:
                continue
        about = os.path.join(MODULES, "onnxruntime-node", "package.json")
        if not shutil.which("node") or not os.path.exists(about):
            raise Unsupported("ONNX Runtime is not installed (tools/setup peers)")
        with open(about) as file:
            return {"onnxruntime-node": json.load(file)["version"]}

    def prepare(self, work):
        if work.training:
            raise Unsupported("ONNX Runtime is for inference")
        found, own = self.probe(), bool(work.onnx)
        if work.precision == "int8" and (own or work.unit != "cpu"):
            raise Unsupported("its int8 is that of a network that prony exports, on the CPU")
        if not own:
            work.onnx = {"file": work.export, "sizes": "", "batch": [0, 0]}
        model = Model(work.onnx["file"], work.onnx["sizes"])
        outputs = model.wanted("batch" in work.onnx)
        self.folder = tempfile.TemporaryDirectory(prefix="prony-onnx-")
        path, computes = self.only(model, outputs)
        self.model, self.work = model, work
        self.feeds = Feeds(model, work)
        work.batches = len(self.feeds.list) // self.feeds.calls
        self.engine = InNode() if "onnxruntime-node" in found else InPython()
        self.engine.open(work, path, self.feeds, outputs, self.folder.name)
        if own:
            found.update(input=self.feeds.about(), outputs=computes)
        return {"software": found}

    def only(self, model, outputs):
        """The file itself, or, where prony computes one output of several, a copy that has only that:
        what only the others need would take time here and not there."""
        every = len(model.graph.outputs)
        if len(outputs) == every:
            return model.path, f"all {every}" if every > 1 else "1"
        kept = model.keep_output(outputs[0])
        if kept is None:
            return model.path, f"{outputs[0]:.40}, computed with the other {every - 1}"
        path = os.path.join(self.folder.name, "one-output.onnx")
        with open(path, "wb") as file:
            file.write(kept)
        return path, f"{outputs[0]:.40} of {every}"

    def profile(self, count):
        with tempfile.TemporaryDirectory(prefix="prony-watch-", dir=self.folder.name) as folder:
            count = max(2, min(count, EVENTS_MOST // len(self.model.graph.nodes)))
            self.engine.watch(folder, count + 1)
            if self.work.unit == "gpu":
                raise Unsupported(on_gpu(folder))
            step_ns, rows = rows_of(self.work, self.model, folder, self.feeds.calls, "CPUExecutionProvider")
        return {"rows": rows, "iterations": count, "step_ns": step_ns,
                "how": "its own profile, in whole microseconds, rounded down"}

    def restart(self):
        pass  # inference leaves the weights as they are

    def step(self, batch):
        self.engine.run(batch, 1)

    def steps(self, first, count):
        return self.engine.run(first, count)

    def outputs(self):
        return [value for values, shape in self.engine.outputs()
                for value in samples_first(values, shape, self.feeds.output_axis)]


serve(Peer())
