#!/usr/bin/env python3
"""Neural networks in pure Python: the standard library's arrays of doubles in the place of lists."""

import os
import sys
from array import array
from functools import partial

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from prony_peer import serve
from pure_python import PurePython

serve(PurePython(partial(array, "d")))
