"""What scripts share that draw a chart: its frame, and the file."""
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 560, 266, 60, 16, 46


def level(y, right, text):
    """A line across at that height, and what it means."""
    return [f'<path d="M{LEFT} {y:.1f}H{WIDTH - right}" stroke="#ccc"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>']


def below(places, right, name):
    """What stands below: a text at each place, and the name of all of them."""
    marks = [f'<text x="{x:.1f}" y="{HEIGHT - 24}" text-anchor="middle">{text}</text>' for x, text in places]
    return marks + [f'<text x="{(LEFT + WIDTH - right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{name}</text>']


def line(points, shade):
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{path}" fill="none" stroke="{shade}" stroke-width="2"/>'


def write(path, parts):
    with open(path, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" ')
        file.write(f'height="{HEIGHT}" font-family="sans-serif" font-size="12" fill="#333">\n')
        file.write('<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")
