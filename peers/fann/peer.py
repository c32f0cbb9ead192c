#!/usr/bin/env python3
"""FANN, the Fast Artificial Neural Network library, from C."""

import ctypes.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from c_peer import CPeer, has_header
from prony_peer import Unsupported, serve


class Fann(CPeer):
    libraries_to_link = ["-lfloatfann"]
    losses = ("mse",)

    def probe(self):
        library = ctypes.util.find_library("floatfann")
        if not library or not has_header("fann.h"):
            raise Unsupported("FANN is not installed (Debian: libfann-dev)")
        return {"fann": library}


serve(Fann(os.path.join(HERE, "fann.c")))
