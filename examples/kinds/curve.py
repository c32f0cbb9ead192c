"""curve.py OUT.svg LOG…: the loss of each epoch that `prony train … >LOG` has told, as a picture; the axis of
the loss is logarithmic."""
import math
import re
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 260, 60, 110, 16, 40
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


lines = []
for power in range(low, high + 1):
    y = place(0, 10.0**power)[1]
    lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ccc"/>')
    lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
for number, (name, curve) in enumerate(curves.items()):
    shade = SHADES[number % len(SHADES)]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (place(*point) for point in curve))
    lines.append(f'<path d="M{path}" fill="none" stroke="{shade}" stroke-width="2"/>')
    x, y = place(*curve[-1])
    lines.append(f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" fill="{shade}">{name}</text>')
for epoch in sorted({1, last // 2, last}):
    lines.append(f'<text x="{place(epoch, 1)[0]:.1f}" y="{HEIGHT - 18}" text-anchor="middle">{epoch}</text>')
lines.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 2}" text-anchor="middle">epoch</text>')
with open(out, "w") as file:
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" ')
    file.write(f'height="{HEIGHT}" font-family="sans-serif" font-size="12" fill="#333">\n')
    file.write('<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(lines) + "\n</svg>\n")
