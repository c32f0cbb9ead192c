"""points.py POINTS.csv OUT.pgm: points in the plane, such as `prony generate gan`'s, as a picture of the square
from -3 to 3; the circles of four deviations around the modes of `ring` are drawn in grey."""
import sys

import needs

numpy = needs.module("numpy")

SIDE, REACH = 300, 3.0
points = numpy.loadtxt(sys.argv[1], delimiter=",")
pixels = numpy.full((SIDE, SIDE), 255, dtype=numpy.uint8)


def draw(xy, shade):
    places = numpy.rint((xy + [REACH, REACH]) / (2 * REACH) * (SIDE - 1)).astype(int)
    inside = ((places >= 0) & (places < SIDE)).all(axis=1)
    pixels[SIDE - 1 - places[inside, 1], places[inside, 0]] = shade


turn = numpy.linspace(0, 2 * numpy.pi, 500)
circle = numpy.stack([numpy.cos(turn), numpy.sin(turn)], axis=1)
for mode in range(8):
    angle = mode * numpy.pi / 4
    draw(2 * numpy.array([numpy.cos(angle), numpy.sin(angle)]) + 0.4 * circle, 170)
draw(points, 0)
with open(sys.argv[2], "wb") as file:
    file.write(b"P5\n%d %d\n255\n" % (SIDE, SIDE))
    file.write(pixels.tobytes())
