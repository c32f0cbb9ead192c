#!/usr/bin/env python3
"""A C loop over BLAS: OpenBLAS or BLIS, as the backend says; left to itself, whichever is quicker for
the network at hand."""

import ctypes.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from c_peer import LAYOUTS, CPeer
from prony_libraries import report_blas
from prony_peer import Unsupported, serve

LIBRARIES = ["openblas", "blis"]


class Blas(CPeer):
    backends = LIBRARIES

    def probe(self):
        """Finds them without loading: OpenBLAS makes its threads then, before it is known how many."""
        found = {name: ctypes.util.find_library(name) for name in LIBRARIES}
        self.found = {name: file for name, file in found.items() if file}
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

    def libraries(self):
        return report_blas((f"lib{self.settings['library']}",))

    def use(self, settings):
        super().use(settings)
        self.library = self.found[settings["library"]]


serve(Blas(os.path.join(HERE, "blas.c")))
