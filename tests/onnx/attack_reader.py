"""attack_reader.py FILE.onnx…: the peers' reader of ONNX, given files that are cut or altered anywhere,
ends with a message of its own, in no time and without much memory."""

import os
import random
import resource
import sys
import tempfile
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "peers"))
from onnx_feeds import Feeds
from onnx_graph import Broken, Model, Tensor
from prony_peer import Unsupported

ALTERED = 300  # of each file
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def read(path):
    """All that peers do with a file before they compute."""
    model = Model(path, "")
    for tensor in model.graph.initializers.values():
        tensor.bytes()
    for node in model.graph.nodes:
        for name in node.attributes:
            found = node.get(name)
            if isinstance(found, Tensor):
                found.bytes()
    model.keep_output(model.wanted(True)[0])
    Feeds(model, types.SimpleNamespace(onnx={}, batch=2, inputs=None))


def alter(content, source):
    altered = bytearray(content)
    for _ in range(source.randrange(1, 4)):
        altered[source.randrange(len(altered))] = source.choice((0, 1, 127, 128, 255, source.randrange(256)))
    return bytes(altered)


def attack(path, source):
    with open(path, "rb") as file:
        content = file.read()
    hostile = [content[:length] for length in range(0, len(content), max(1, len(content) // ALTERED))]
    hostile += [alter(content, source) for _ in range(ALTERED)]
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        for bytes_ in hostile:
            file.seek(0)
            file.truncate()
            file.write(bytes_)
            file.flush()
            try:
                read(file.name)
            except (Broken, Unsupported):
                pass
    return len(hostile)


source = random.Random(1)
print(sum(attack(path, source) for path in sys.argv[1:]), "files")
