"""misread.py SAID.csv OUT.pgm: the first of MNIST's test rows that a network takes for another digit (`prony predict …
--out SAID.csv` over their file), side by side, and how many there are."""
import csv
import os
import sys

import data
import needs

numpy = needs.module("numpy")

SIDE, ACROSS, DOWN = 28, 10, 4
test = data.mnist()[1]
labels = numpy.fromfile(os.path.join(data.folder(), "t10k-labels-idx1-ubyte"), dtype=numpy.uint8)[8:]
with open(sys.argv[1]) as file:
    said = numpy.array([int(row["class"]) for row in csv.DictReader(file)])
wrong = numpy.flatnonzero(said != labels)
sheet = numpy.zeros((DOWN * SIDE, ACROSS * SIDE), dtype=numpy.uint8)
for place, row in enumerate(wrong[: ACROSS * DOWN]):
    y, x = place // ACROSS * SIDE, place % ACROSS * SIDE
    sheet[y : y + SIDE, x : x + SIDE] = test[row].reshape(SIDE, SIDE)
with open(sys.argv[2], "wb") as file:
    file.write(b"P5\n%d %d\n255\n" % (sheet.shape[1], sheet.shape[0]))
    file.write(sheet.tobytes())
print(f"{len(wrong)} of {len(labels)} are taken for another digit; the first {ACROSS * DOWN} are in {sys.argv[2]}")
