"""What the other scripts share: the files of MNIST as `tools/setup mnist` leaves them, and weights as
`prony train --out` writes them."""
import json
import os
import struct

import needs

numpy = needs.module("numpy")


def folder():
    """Where the files of MNIST are."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(home, "prony", "mnist")


def mnist():
    """Pixels of the training and of the test rows, [rows, 784] each, 0 to 255."""
    parts = []
    for name in ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte"):
        with open(os.path.join(folder(), name), "rb") as file:
            header = struct.unpack(">4i", file.read(16))
            pixels = numpy.frombuffer(file.read(), dtype=numpy.uint8)
        parts.append(pixels.reshape(header[1], header[2] * header[3]).astype(numpy.float32))
    return parts


def weights(path):
    """The tensors of a safetensors file, by name."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    out = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = entry["data_offsets"]
        out[name] = numpy.frombuffer(data[start:end], dtype=numpy.float32).reshape(entry["shape"])
    return out
