#!/usr/bin/env python3
"""Neural networks in CuPy: the NumPy peer's code on a GPU."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from array_network import ArrayNetwork
from prony_peer import Unsupported, find_packages, serve


class Peer(ArrayNetwork):
    packages = []
    units = ["gpu"]
    precisions = ["fp32", "tf32"]

    def probe(self):
        try:
            import cupy
            from cupy import __version__  # what is found without CuPy is this folder
        except ImportError:
            raise Unsupported("CuPy is not installed, and it needs a CUDA device") from None
        self.cupy = cupy
        return {"cupy": __version__}

    def prepare(self, work):
        found = self.probe()
        if not self.cupy.cuda.is_available():
            raise Unsupported("CuPy finds no CUDA device here")
        if work.calls:
            raise Unsupported("this peer has its data on the GPU: it answers no calls from the host's memory")
        os.environ["CUPY_TF32"] = str(int(work.precision == "tf32"))
        self.begin(self.cupy, work)
        self.restart()
        return {"software": {**find_packages([]), **found}}

    def libraries(self):
        return {"cuda": str(self.cupy.cuda.runtime.runtimeGetVersion())}, []

    def steps(self, first, count):
        for i in range(first, first + count):
            self.step(i % self.work.batches)
        self.cupy.cuda.Device().synchronize()

    def outputs(self):
        return self.cupy.asnumpy(self.y).reshape(-1).tolist()


serve(Peer())
