"""pca.py WIDTH: how far MNIST's test rows are from what their WIDTH principal components say, on the
scale that prony trains on (mean 0 and variance 1 over all training pixels): the least mean squared
error that any linear auto-encoder of that width can reach on the training rows."""
import sys

import data
import needs

numpy = needs.module("numpy")

width = int(sys.argv[1]) if len(sys.argv) > 1 else 32
train, test = data.mnist()
mean, deviation = train.mean(dtype=numpy.float64), train.std(dtype=numpy.float64)
train, test = (train - mean) / deviation, (test - mean) / deviation
centre = train.mean(axis=0)
values, vectors = numpy.linalg.eigh(numpy.cov((train - centre).T))
basis = vectors[:, -width:]
for name, rows in (("training", train), ("test", test)):
    again = (rows - centre) @ basis @ basis.T + centre
    print(f"{width} principal components, {name} rows: mean squared error {((rows - again) ** 2).mean():.4f}")
