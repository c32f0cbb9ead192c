#!/usr/bin/env python3
"""A C loop over oneDNN, the library of primitives inside PyTorch and others."""

import ctypes
import ctypes.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from c_peer import LAYOUTS, CPeer, has_header
from prony_libraries import report_onednn
from prony_peer import Unsupported, serve

TAGS = {"[in][out]": "ab", "[out][in]": "ba", "oneDNN's": "any"}


class OneDnn(CPeer):
    libraries_to_link = ["-ldnnl"]
    precisions = ["fp32", "bf16", "int8"]

    def probe(self):
        library = ctypes.util.find_library("dnnl")
        if not library or not has_header("dnnl.h"):
            raise Unsupported("oneDNN is not installed (Debian: libdnnl-dev)")
        return {"onednn": library}

    def libraries(self):
        return report_onednn(("libdnnl",)), []

    def choices(self, work):
        if work.precision != "fp32" and work.training:
            raise Unsupported("this peer trains in fp32: oneDNN's bf16 and int8 are for its inference")
        layouts = LAYOUTS["weights"]
        return {"weights": layouts if work.training else ["oneDNN's"] + layouts}

    def use(self, settings):
        super().use(settings)
        precision = self.work.precision
        self.library = TAGS[settings["weights"]] + ("" if precision == "fp32" else " " + precision)


serve(OneDnn(os.path.join(HERE, "onednn.c")))
