#!/usr/bin/env python3
"""A C loop over BLAS: OpenBLAS or BLIS, whichever is quicker for the network at hand."""

import ctypes
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from c_peer import CPeer
from prony_peer import Unsupported, serve

LIBRARIES = {"openblas": ["libopenblas.so.0"], "blis": ["libblis.so.4", "libblis.so.3"]}
TRIAL_SECONDS = 0.2


class Blas(CPeer):
    def __init__(self):
        super().__init__(os.path.join(HERE, "blas.c"))
        self.found = {}
        self.chosen = None

    def probe(self):
        for name, files in LIBRARIES.items():
            for file in files:
                try:
                    ctypes.CDLL(file)
                    self.found[name] = file
                except OSError:
                    continue
        if not self.found:
            raise Unsupported("a BLAS is not installed (Debian: libopenblas-dev, libblis-dev)")
        return self.found

    def prepare(self, work):
        if not self.chosen:
            self.chosen = min(self.found, key=lambda name: self.trial(work, name))
        self.library = self.found[self.chosen]
        super().prepare(work)
        return {"software": {"blas": self.chosen, "library": self.library}}

    def trial(self, work, name):
        """Seconds of an iteration, the quickest of a short while."""
        self.library = self.found[name]
        super().prepare(work)
        best, start = float("inf"), time.perf_counter()
        while time.perf_counter() - start < TRIAL_SECONDS:
            before = time.perf_counter()
            self.steps(0, work.batches)
            best = min(best, time.perf_counter() - before)
        return best


serve(Blas())
