"""Peers whose step is in C (c_peer.h): compiled once with the system's compiler, kept in the user's
cache, loaded with ctypes. The loop over iterations is in C as well."""

import ctypes
import glob
import hashlib
import math
import os
import shutil
import subprocess
import tempfile
import time
from array import array

from prony_peer import Unsupported

HERE = os.path.dirname(os.path.abspath(__file__))
FLOATS = ctypes.POINTER(ctypes.c_float)
LABELS = ctypes.POINTER(ctypes.c_int32)
LINE = 64  # bytes of a cache line
ACTIVATIONS = {None: 0, "sigmoid": 1, "relu": 2}


class Layer(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("inputs", "outputs", "activation")] + [
        (name, FLOATS) for name in ("weight", "bias", "y", "dz", "dx", "units")
    ] + [("x_scale", ctypes.c_float), ("x_zero", ctypes.c_int32)]


class Network(ctypes.Structure):
    _fields_ = (
        [(n, ctypes.c_int32) for n in ("layer_count", "batch", "batches", "training", "threads")]
        + [("turned", ctypes.c_int32), ("rate", ctypes.c_float), ("x", FLOATS), ("target", FLOATS)]
        + [("label", LABELS), ("softmax", ctypes.c_int32)]
        + [("loss", ctypes.c_double), ("layers", ctypes.POINTER(Layer)), ("own", ctypes.c_void_p)]
    )


def instructions():
    """What this CPU has, for the name of what was compiled for it."""
    with open("/proc/cpuinfo") as file:
        return next((line for line in file if line.startswith(("flags", "Features"))), "")


def find_compiler():
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise Unsupported("there is no C compiler (Debian: gcc)")
    return compiler


def has_header(name):
    """Does the compiler find it? A library may be there without: another package needs it."""
    command = [find_compiler(), "-E", "-x", "c", "-"]
    return subprocess.run(command, input=f"#include <{name}>\n", capture_output=True, text=True).returncode == 0


def library_file(name):
    """The file behind a library's name, which has its version: libopenblasp-r0.3.21.so."""
    found = [path for folder in ("/usr/lib", "/usr/lib/*", "/usr/local/lib", "/lib", "/lib/*")
             for path in glob.glob(os.path.join(folder, glob.escape(name)))]
    return os.path.basename(os.path.realpath(found[0])) if found else name


def build(source, libraries):
    """The shared library made of a C file; built when the file, or how, has changed."""
    compiler = find_compiler()
    # -fopenmp: the C library then has an expf for several numbers at once
    flags = ["-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-shared", "-fPIC"]
    command = [compiler, *flags, "-I", HERE, source, *libraries, "-lm", "-ldl"]
    with open(source, "rb") as file, open(os.path.join(HERE, "c_peer.h"), "rb") as header:
        about = file.read() + header.read() + repr(command).encode() + instructions().encode()
    name = hashlib.sha256(about).hexdigest()[:16]
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(folder, "prony")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"peer-c-{name}.so")
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = os.path.join(scratch, "peer.so")
            result = subprocess.run(command + ["-o", made], capture_output=True, text=True)
            if result.returncode:
                raise Unsupported(f"{os.path.basename(source)}: {result.stderr.strip()[-300:]}")
            os.replace(made, path)
    return path


LAYOUTS = {"weights": ["[in][out]", "[out][in]"]}


class CPeer:
    packages = []
    library = ""  # what network_open is given
    libraries_to_link = []
    losses = ("mse", "cross_entropy")

    def __init__(self, source):
        self.source = source

    def choices(self, work):
        """The settings to be searched."""
        return {}

    def use(self, settings):
        self.settings = settings

    def prepare(self, work):
        self.work = work
        settings = work.search(self.choices(work), self.trial, compiled=self.built(),
                               **CPeer.libraries(self)[0])
        self.use(settings)
        self.restart()
        return {"software": {**self.probe(), **settings}}

    def libraries(self):
        """({what it computes with: the file, which has its version}, [handicaps])"""
        return {name: library_file(file) for name, file in self.probe().items()}, []

    def built(self):
        return os.path.basename(build(self.source, self.libraries_to_link))

    def trial(self, settings):
        self.use(settings)
        self.restart()
        start = time.perf_counter()
        self.step(0)
        together = 1 if time.perf_counter() - start > 0.001 else 64  # a call from Python takes 1 µs
        return together, lambda: self.steps(0, together)

    def restart(self):
        work = self.work
        stack = work.dense_stack(self.losses)
        self.code = ctypes.CDLL(build(self.source, self.libraries_to_link))
        self.code.network_open.restype = ctypes.c_char_p
        self.network, self.arrays = Network(), []
        layers = (Layer * len(stack))()
        for layer, (weight, bias, activation) in zip(layers, stack):
            (layer.inputs, layer.outputs), values = work.weights[weight]
            layer.activation = ACTIVATIONS[activation]
            if work.precision == "int8":
                values = array("f", values)
                self.take_scales(layer, weight)
            layer.weight = self.floats(values)
            layer.bias = self.floats(work.weights[bias][1])
            layer.y = self.room(work.batch * layer.outputs)
            layer.dz = self.room(work.batch * layer.outputs)
            layer.dx = self.room(work.batch * layer.inputs)
        self.layers, network = layers, self.network
        self.names = {name: n for n, names in enumerate(stack) for name in names[:2]}
        network.layer_count, network.layers = len(stack), layers
        network.batch, network.batches = work.batch, work.batches
        network.training, network.threads = work.training, work.threads
        network.turned = self.settings.get("weights") == "[out][in]"
        network.rate = work.rate
        network.softmax = work.loss == "cross_entropy"
        network.x = self.floats(work.inputs[1])
        if work.training and network.softmax:
            network.label = ctypes.cast(self.floats(work.labels[1]), LABELS)
        elif work.training:
            network.target = self.floats(work.targets[1])
        refusal = self.code.network_open(ctypes.byref(network), self.library.encode())
        if refusal:
            raise Unsupported(refusal.decode())

    def take_scales(self, layer, weight):
        """In 8 bits: what a sum of each output stands for, and how the inputs are rounded."""
        name, weights = weight.rsplit(".", 1)[0], self.work.weights
        product = next((one for one in self.work.products if one["layer"] == name), None)
        if product is None:
            raise Unsupported(f"{name} stays in fp32, which this peer does not mix with int8")
        if f"{name}.scale" in weights:
            units = weights[f"{name}.scale"][1]
        else:
            pairs = zip(weights[f"{name}.multiplier"][1], weights[f"{name}.shift"][1])
            units = array("f", [math.ldexp(by, -shift) * product["y_scale"] for by, shift in pairs])
        layer.units = self.floats(units)
        layer.x_scale, layer.x_zero = product["x_scale"], product["x_zero"]

    def room(self, count):
        """So many zeros of four bytes, at the start of a cache line."""
        array = ctypes.create_string_buffer(4 * count + LINE)
        self.arrays.append(array)
        address = ctypes.addressof(array)
        return ctypes.cast(address + -address % LINE, FLOATS)

    def floats(self, values):
        room = self.room(len(values))
        ctypes.memmove(room, values.buffer_info()[0], 4 * len(values))
        return room

    def steps(self, first, count):
        self.code.network_run(ctypes.byref(self.network), ctypes.c_int64(first), ctypes.c_int64(count))

    def step(self, batch):
        self.code.network_step(ctypes.byref(self.network), batch)

    def outputs(self):
        last = self.layers[len(self.layers) - 1]
        return last.y[: self.network.batch * last.outputs]

    def loss(self):
        self.code.network_read_back(ctypes.byref(self.network))
        return self.network.loss

    def parameter(self, name, i):
        layer = self.layers[self.names[name]]
        return (layer.weight if name.endswith(".weight") else layer.bias)[i]
