#!/usr/bin/env python3
"""Neural networks in pure Python: lists of floats and nothing else."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from prony_peer import serve
from pure_python import PurePython

serve(PurePython(list))
