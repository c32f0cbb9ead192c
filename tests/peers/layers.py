"""layers.py FOUND.json EXPRESSION: does it hold of what prony profile --framework --json printed? And do
the parts of each gap sum to it, and the rows and the time outside of them to each step?"""

import json
import sys

found = json.load(open(sys.argv[1]))
names = [side["framework"] for side in found["frameworks"]]


def group(name, part="forward"):
    """{framework: ns} of the group."""
    found_ones = [g for g in found["layers"] if g["name"] == name and g["part"] == part]
    assert len(found_ones) == 1, f"{len(found_ones)} groups {name}, {part}"
    return {f["framework"]: f["ns"] for f in found_ones[0]["frameworks"] if f["ns"] is not None}


def near(a, b, size):
    return abs(a - b) <= 1e-6 * size


for place, side in enumerate(found["frameworks"]):
    if side["absent"]:
        continue
    rows = sum(g["frameworks"][place]["ns"] or 0 for g in found["layers"])
    assert near(rows, side["watched_ns"], side["step_ns"]), (side, rows)
    assert near(rows + side["outside_ns"], side["step_ns"], side["step_ns"]), (side, rows)
for gap in found["gaps"]:
    parts = [part["ns"] for part in gap["parts"]]
    assert near(sum(parts), gap["ns"], max(map(abs, parts))), gap
    assert sorted(map(abs, parts), reverse=True) == list(map(abs, parts)), gap
assert eval("(" + sys.argv[2] + ")"), f"not so: {sys.argv[2]}"
