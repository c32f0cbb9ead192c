"""curve.py OUT.svg LOG…: the loss of each epoch that `prony train … >LOG` has told, as a picture; the axis of
the loss is logarithmic."""
import math
import re
import sys

import drawing
from drawing import BOTTOM, HEIGHT, LEFT, TOP, WIDTH

RIGHT = 110
SHADES = ["#1f6fb2", "#c0392b", "#2e8b57", "#8e5ea2"]
out, logs = sys.argv[1], sys.argv[2:]
curves = {}
for log in logs:
    with open(log) as file:
        found = re.findall(r"epoch (\d+) of \d+, loss ([-+.e\d]+)", file.read())
    curves[log.rsplit("/", 1)[-1].rsplit(".", 1)[0]] = [(int(epoch), float(loss)) for epoch, loss in found]
points = [point for curve in curves.values() for point in curve]
last = max(epoch for epoch, _ in points)
low = math.floor(math.log10(min(loss for _, loss in points)))
high = math.ceil(math.log10(max(loss for _, loss in points)))


def place(epoch, loss):
    x = LEFT + (WIDTH - LEFT - RIGHT) * epoch / last
    y = TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(loss)) / (high - low)
    return x, y


parts = []
for power in range(low, high + 1):
    parts += drawing.level(place(0, 10.0**power)[1], RIGHT, f"{10.0**power:g}")
for number, (name, curve) in enumerate(curves.items()):
    shade = SHADES[number % len(SHADES)]
    parts.append(drawing.line([place(*point) for point in curve], shade))
    x, y = place(*curve[-1])
    parts.append(f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" fill="{shade}">{name}</text>')
parts += drawing.below([(place(epoch, 1)[0], epoch) for epoch in sorted({1, last // 2, last})], RIGHT, "epoch")
drawing.write(out, parts)
