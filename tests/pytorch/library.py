"""libprony by ctypes, for the comparisons with PyTorch in this folder."""

import ctypes
import json

import torch


class Options(ctypes.Structure):
    """struct prony_options"""
    _fields_ = [("backend", ctypes.c_char_p), ("threads", ctypes.c_int32),
                ("classes", ctypes.c_int32), ("weight_bits", ctypes.c_int32),
                ("recompute", ctypes.c_int), ("precision", ctypes.c_char_p),
                # the rows PRONY_LEARNS of prony_settings.def, in their order
                ("rate", ctypes.c_double), ("optimiser", ctypes.c_char_p),
                ("schedule", ctypes.c_char_p), ("recipe", ctypes.c_char_p),
                ("loss", ctypes.c_char_p), ("seed", ctypes.c_uint64)]


class Prony:
    """A network of the library; every failure is raised with its message."""

    def __init__(self, library, backend, text, classes, file=None, optimiser="", rate=0.0):
        self.library = library
        self.network = ctypes.c_void_p()
        options = Options(backend=backend.encode(), seed=7, classes=classes,
                          optimiser=optimiser.encode(), rate=rate)
        said = (b"prony_open", file.encode()) if file else (b"prony_open_text", b"compared", text.encode())
        self.call(said[0].decode(), *said[1:], ctypes.byref(options), ctypes.byref(self.network))

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments) != 0:
            raise RuntimeError(self.library.prony_error().decode())

    def train(self, x, target):
        """One step; target is i32 classes or f32 numbers."""
        loss = ctypes.c_float()
        name = "prony_train_numbers" if target.is_floating_point() else "prony_train_classes"
        self.call(name, self.network, x.shape[0], ctypes.c_void_p(x.data_ptr()),
                  ctypes.c_void_p(target.data_ptr()), ctypes.byref(loss))
        return loss.value

    def predict(self, x):
        y = torch.empty(x.shape[0], self.outputs())
        self.call("prony_predict", self.network, x.shape[0], ctypes.c_void_p(x.data_ptr()),
                  ctypes.c_void_p(y.data_ptr()))
        return y

    def load(self, path):
        self.call("prony_load", self.network, path.encode())

    def outputs(self):
        return self.library.prony_outputs(self.network)

    def weights(self, path):
        self.call("prony_save", self.network, path.encode())
        return read_safetensors(path)

    def close(self):
        self.library.prony_close(self.network)


def relative(found, expected):
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-30))


def open_library(path):
    library = ctypes.CDLL(path)
    library.prony_error.restype = ctypes.c_char_p
    library.prony_close.argtypes = [ctypes.c_void_p]
    library.prony_outputs.restype = ctypes.c_int64
    return library


def read_safetensors(path):
    """The published layout, read without the library of that name: name → f64 tensor."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = (torch.frombuffer(data[begin:end], dtype=torch.float32)
                             .reshape(entry["shape"]).double())
    return tensors


def write_safetensors(path, tensors):
    """The same, from tensors of any precision."""
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(tensor.float().contiguous().numpy().tobytes())
