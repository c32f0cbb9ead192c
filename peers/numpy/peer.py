#!/usr/bin/env python3
"""Neural networks in NumPy."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from array_network import ArrayNetwork
from prony_libraries import report_blas
from prony_peer import find_packages, serve


class Peer(ArrayNetwork):
    packages = ["numpy"]

    def prepare(self, work):
        import numpy as np  # only now: the number of threads is known

        np.seterr(over="ignore")  # exp(-y) of a very negative y is infinite, and its sigmoid 0
        self.begin(np, work)
        choices = {"weights": ["[in][out]", "[out][in]"]}
        settings = work.search(choices, self.trial, **self.libraries()[0])
        self.trial(settings)
        return {"software": {**find_packages(self.packages), **settings}}

    def libraries(self):
        return report_blas(("_multiarray_umath",))

    def trial(self, settings):
        self.turned = settings["weights"] == "[out][in]"
        self.restart()
        return 1, lambda: self.step(0)


serve(Peer())
