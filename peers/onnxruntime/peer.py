#!/usr/bin/env python3
"""ONNX Runtime, for inference: the network as an ONNX file, run by Python's package onnxruntime where
that is installed, else by node's onnxruntime-node (tools/setup peers installs it). On a GPU, by
Python's with its CUDA provider, data and outputs staying on the device."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from onnx_file import Model
from prony_peer import Unsupported, search, serve

DATA = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
MODULES = os.path.join(DATA, "prony", "onnxruntime", "node_modules")


class InPython:
    def __init__(self):
        import onnxruntime

        self.onnxruntime = onnxruntime

    def open(self, work, model, folder):
        import numpy as np

        options = self.onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = work.threads or 1, 1
        options.add_session_config_entry("session.force_spinning_stop", "1")
        gpu = work.unit == "gpu"
        provider = "CUDAExecutionProvider" if gpu else "CPUExecutionProvider"
        if provider not in self.onnxruntime.get_available_providers():
            raise Unsupported(f"this onnxruntime has no {provider}")
        self.session = self.onnxruntime.InferenceSession(model.bytes, options, providers=[provider])
        values = np.array(work.inputs[1]).reshape([work.batches, work.batch] + work.inputs[0][1:])
        where, self.bindings = ("cuda", 0) if gpu else ("cpu", 0), []
        for x in values:
            binding = self.session.io_binding()
            x = self.onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(x), *where)
            binding.bind_ortvalue_input("x", x)
            binding.bind_output(model.output, *where)
            self.bindings.append(binding)

    def run(self, first, count):
        run, bindings = self.session.run_with_iobinding, self.bindings
        for i in range(first, first + count):
            run(bindings[i % len(bindings)])
        self.last = bindings[(first + count - 1) % len(bindings)]

    def outputs(self):
        return self.last.copy_outputs_to_cpu()[0].reshape(-1).tolist()


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

    def open(self, work, model, folder):
        if work.unit != "cpu":
            raise Unsupported("on a GPU this peer needs Python's package onnxruntime")
        files = [os.path.join(folder, name) for name in ("model.onnx", "x")]
        for path, content in zip(files, (model.bytes, work.inputs[1].tobytes())):
            with open(path, "wb") as file:
                file.write(content)
        self.ask(do="open", model=files[0], data=files[1], shape=[work.batch] + work.inputs[0][1:],
                 batches=work.batches, threads=work.threads, output=model.output)

    def run(self, first, count):
        return self.ask(do="run", first=first, count=count)["elapsed_ns"]

    def outputs(self):
        return self.ask(do="outputs")["values"]


class Peer:
    packages = []
    units = ["cpu", "gpu"]

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
        found = self.probe()
        self.work = work
        self.engine = InNode() if "onnxruntime-node" in found else InPython()
        self.folder = tempfile.TemporaryDirectory(prefix="prony-onnx-")
        choices = {"weights": ["[out][in]", "[in][out]"]}
        has_dense = any(layer["kind"] == "dense" for layer in work.layers)
        settings = search(choices if has_dense else {}, self.trial)
        self.open(settings)
        return {"software": {**found, **settings}}

    def trial(self, settings):
        self.open(settings)
        return lambda: self.engine.run(0, 1)

    def open(self, settings):
        model = Model(self.work, settings.get("weights") == "[out][in]")
        self.engine.open(self.work, model, self.folder.name)

    def restart(self):
        pass  # inference leaves the weights as they are

    def step(self, batch):
        self.engine.run(batch, 1)

    def steps(self, first, count):
        return self.engine.run(first, count)

    def outputs(self):
        return self.engine.outputs()


serve(Peer())
