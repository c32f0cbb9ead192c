"""modes.py POINTS.csv: which of the eight modes of `ring` do points lie in? A point is in a mode when it
is within four deviations (0.4) of its middle."""
import sys

import needs

numpy = needs.module("numpy")

points = numpy.loadtxt(sys.argv[1], delimiter=",")
angles = numpy.arange(8) * numpy.pi / 4
middles = 2 * numpy.stack([numpy.cos(angles), numpy.sin(angles)], axis=1)
distance = numpy.linalg.norm(points[:, None] - middles, axis=2)
near = distance.min(axis=1) < 0.4
counts = numpy.bincount(distance.argmin(axis=1)[near], minlength=8)
print("points in each mode:", *counts)
print(f"modes with a fiftieth of the points or more: {(counts >= len(points) / 50).sum()} of 8")
print(f"points in a mode: {100 * near.mean():.1f} %")
