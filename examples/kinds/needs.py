"""needs.py: modules that Python does not come with, or one line that says how to get them."""
import importlib
import sys


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        sys.exit(f"found no {name} in {sys.executable}, expected it: on Debian apt install python3-{name}, "
                 "and /usr/bin/python3 in the place of python3; elsewhere pip install " + name)
