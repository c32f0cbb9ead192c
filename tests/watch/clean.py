"""Programs of Python without a fault, for tools/clean-check: KIND SECONDS."""
import sys
import time


def numpy_products(end):
    import numpy
    a, b = numpy.ones((256, 256), "f"), numpy.ones((256, 256), "f")
    out = numpy.empty_like(a)
    while time.monotonic() < end():
        numpy.matmul(a, b, out=out)


def numpy_arrays(end):
    import numpy
    a = numpy.linspace(0, 1, 1 << 20)
    out = numpy.empty_like(a)
    while time.monotonic() < end():
        numpy.sqrt(a, out=out)
        numpy.add(a, out, out=out)


def torch_training(end):
    import torch
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(256, 512), torch.randint(0, 10, (256,))
    while time.monotonic() < end():
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def torch_inference(end):
    import torch
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    x = torch.randn(32, 512)  # a convolution maps 97 pages again in each call here: R12, and it is right
    with torch.inference_mode():
        while time.monotonic() < end():
            net(x)


def hashes(end):
    import hashlib
    block = bytes(1 << 20)
    while time.monotonic() < end():
        hashlib.sha256(block).digest()


def packing(end):
    import zlib
    block = bytes(range(256)) * 4096
    while time.monotonic() < end():
        zlib.compress(block, 6)


def waiting(end):
    while time.monotonic() < end():
        time.sleep(0.01)


def children(end):
    import subprocess
    while time.monotonic() < end():
        subprocess.run(["sleep", "0.5"], check=True)


def main():
    kinds = {f.__name__: f for f in (numpy_products, numpy_arrays, torch_training, torch_inference, hashes,
                                     packing, waiting, children)}
    kind, seconds = sys.argv[1], float(sys.argv[2])
    start = None

    def end():
        nonlocal start  # what is imported first takes no part of it
        start = start or time.monotonic()
        return start + seconds
    kinds[kind](end)


main()
