#!/usr/bin/env python3
"""A C loop over BLAS: OpenBLAS or BLIS, as the backend says; left to itself, whichever is quicker for
the network at hand."""

import ctypes
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from c_peer import LAYOUTS, CPeer
from prony_peer import Unsupported, serve

LIBRARIES = {"openblas": ["libopenblas.so.0"], "blis": ["libblis.so.4", "libblis.so.3"]}


class Blas(CPeer):
    backends = list(LIBRARIES)

    def probe(self):
        self.found = {}
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

    def choices(self, work):
        self.probe()
        names = list(self.found)
        if work.backend in LIBRARIES:
            names = [work.backend]
            if work.backend not in self.found:
                raise Unsupported(f"it is not installed (Debian: lib{work.backend}-dev)")
        return {"library": names, **LAYOUTS}

    def use(self, settings):
        super().use(settings)
        self.library = self.found[settings["library"]]


serve(Blas(os.path.join(HERE, "blas.c")))
