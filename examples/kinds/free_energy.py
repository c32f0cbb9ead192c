"""free_energy.py WEIGHTS: does a restricted Boltzmann machine tell MNIST's test rows from noise? Its free
energy of each row, -a·v - Σ ln(1 + e^(b + v·W)), against that of the same pixels at other places."""
import sys

import data
import needs

numpy = needs.module("numpy")

tensors = data.weights(sys.argv[1])
weight, bias, visible = (tensors[f"dense1.{name}"] for name in ("weight", "bias", "visible"))


def free_energy(rows):
    return -rows @ visible - numpy.logaddexp(0, rows @ weight + bias).sum(axis=1)


test = data.mnist()[1] / 255
noise = numpy.random.default_rng(1).permuted(test, axis=1)
of_data, of_noise = free_energy(test), free_energy(noise)
print(f"free energy of the test rows {of_data.mean():.1f} ± {of_data.std():.1f}")
print(f"of the same pixels at other places {of_noise.mean():.1f} ± {of_noise.std():.1f}")
ranks = numpy.searchsorted(numpy.sort(of_noise), of_data)
print(f"pairs in which the test row has less: {100 * (1 - ranks.mean() / len(of_noise)):.2f} %")
