"""few_labels.py PRONY OUT.svg: three layers of sigmoids on the shipped digits, of which a few have a label: what they
learn when the layers were pre-trained as Boltzmann machines, and from a random start. Both have the same optimiser,
rates to choose from, batch, seeds and number of epochs; shown is the mean test accuracy over the seeds at the rate that
is best for each."""
import concurrent.futures
import math
import os
import re
import subprocess
import sys
import tempfile

import drawing
from drawing import BOTTOM, HEIGHT, LEFT, TOP, WIDTH

LABELS = [20, 50, 100, 200, 500, 1438]
SEEDS = [1, 2, 3, 4, 5]
RATES = {"sgd": [0.1, 0.3, 1, 3], "adam": [0.001, 0.003, 0.01, 0.03]}
MACHINES = {"sgd": 0.5, "adam": 0.01}  # the rate of pre-training
EPOCHS, PRETRAIN = 60, 5  # of all; of each of three machines
NETWORK = "input 64\n" + "dense 64\nsigmoid\n" * 3 + "dense 10\nloss cross_entropy\n"
RIGHT = 150
SHADES = {"pre-trained, sgd": "#1f6fb2", "pre-trained, adam": "#2e8b57", "random, sgd": "#c0392b",
          "random, adam": "#8e5ea2"}
prony, out = sys.argv[1:]
network = os.path.join(tempfile.mkdtemp(), "sigmoids.net")
with open(network, "w") as file:
    file.write(NETWORK)


def train(start, optimiser, rate, labels, seed):
    flags = ["--optimiser", f"{optimiser}:rate={rate}"]
    if start == "pre-trained":
        machines = MACHINES[optimiser]
        flags = ["--optimiser", f"{optimiser}:rate={machines}"]
        flags += ["--recipe", f"dbn:pretrain={PRETRAIN},gentle={rate / machines}"]
    words = [prony, "train", network, "digits", "--labelled", labels, "--epochs", EPOCHS, "--batch", 10, "--seed", seed]
    said = subprocess.run([str(word) for word in words + ["--threads", 1] + flags], capture_output=True, text=True)
    return float(re.search(r"test accuracy ([\d.]+)", said.stdout).group(1))


cases = [(start, optimiser, rate, labels, seed) for start in ("pre-trained", "random") for optimiser in RATES
         for rate in RATES[optimiser] for labels in LABELS for seed in SEEDS]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    found = dict(zip(cases, pool.map(lambda case: train(*case), cases)))
lines = {}
for start in ("pre-trained", "random"):
    for optimiser in RATES:
        line = lines[f"{start}, {optimiser}"] = []
        for labels in LABELS:
            means = {rate: sum(found[start, optimiser, rate, labels, seed] for seed in SEEDS) / len(SEEDS)
                     for rate in RATES[optimiser]}
            best = max(means, key=means.get)
            line.append(means[best])
            each = " ".join(f"{found[start, optimiser, best, labels, seed]:.1f}" for seed in SEEDS)
            others = ", ".join(f"{rate:g}: {mean:.1f}" for rate, mean in means.items())
            print(f"{start:11} {optimiser:4} {labels:4} labels: {means[best]:.1f} % at rate {best:g} ({each}); {others}")


def place(labels, accuracy):
    x = LEFT + (WIDTH - LEFT - RIGHT) * math.log(labels / LABELS[0]) / math.log(LABELS[-1] / LABELS[0])
    return x, TOP + (HEIGHT - TOP - BOTTOM) * (100 - accuracy) / 60


parts = []
for accuracy in range(40, 101, 10):
    parts += drawing.level(place(LABELS[0], accuracy)[1], RIGHT, f"{accuracy} %")
for number, (name, line) in enumerate(lines.items()):
    parts.append(drawing.line([place(*point) for point in zip(LABELS, line)], SHADES[name]))
    parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 14 + 18 * number}" fill="{SHADES[name]}">{name}</text>')
parts += drawing.below([(place(labels, 0)[0], labels) for labels in LABELS], RIGHT, "labelled digits")
drawing.write(out, parts)
