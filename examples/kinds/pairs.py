"""pairs.py AGAIN.csv OUT.pgm: what an auto-encoder makes of MNIST's test rows (`prony predict … --out
AGAIN.csv` over their file): ten of them, one of each digit, above what it gave back."""
import os
import sys

import data
import needs

numpy = needs.module("numpy")

COUNT, SIDE = 10, 28
test = data.mnist()[1]
again = numpy.loadtxt(sys.argv[1], delimiter=",", skiprows=1, max_rows=1000)
labels = numpy.fromfile(os.path.join(data.folder(), "t10k-labels-idx1-ubyte"), dtype=numpy.uint8)[8:]
chosen = [int(numpy.argmax(labels == digit)) for digit in range(COUNT)]
rows = [numpy.hstack([values[i].reshape(SIDE, SIDE) for i in chosen]) for values in (test, again)]
pixels = numpy.vstack(rows).clip(0, 255).astype(numpy.uint8)
with open(sys.argv[2], "wb") as file:
    file.write(b"P5\n%d %d\n255\n" % (pixels.shape[1], pixels.shape[0]))
    file.write(pixels.tobytes())
off = ((again - test[: len(again)]) ** 2).mean()
print(f"{COUNT} digits and what became of them: {sys.argv[2]}; root of the mean squared error {off ** 0.5:.1f} of 255")
