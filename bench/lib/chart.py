"""One SVG chart: the server's cost of a request, a panel per measure, a group
of bars per scenario."""
from xml.sax.saxutils import escape

PANELS = [
    ("cpu_us", "CPU, us per request"),
    ("instructions", "user-space instructions per request"),
    ("calls", "system calls per request"),
    ("p99_ms", "p99, ms"),
]
COLORS = ["#4c78a8", "#9ecae9", "#c6dbef", "#b0b0b0", "#e4572e", "#72b7b2"]
WIDTH, LEFT, BAR, GAP, HEAD = 760, 150, 11, 8, 34
ROOM = WIDTH - LEFT - 70


def panel(rows, key, title, top, colors):
    """The elements of one panel, and where it ends."""
    rows = [row for row in rows if row.get(key)]
    out = [f'<text x="10" y="{top + 20}" class="t">{escape(title)}</text>']
    y, scenario = top + HEAD, None
    largest = max(row[key] for row in rows)
    for row in rows:
        if row["scenario"] != scenario:
            scenario = row["scenario"]
            y += GAP
            out.append(f'<text x="{LEFT - 6}" y="{y + BAR - 2}" class="r">'
                       f'{escape(scenario)}</text>')
        width = max(1, ROOM * row[key] / largest)
        out.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" '
                   f'height="{BAR - 1}" fill="{colors[row["server"]]}"/>')
        out.append(f'<text x="{LEFT + width + 4:.1f}" y="{y + BAR - 2}">'
                   f'{row[key]:.4g}</text>' if row[key] < 10000 else
                   f'<text x="{LEFT + width + 4:.1f}" y="{y + BAR - 2}">'
                   f'{row[key]:.0f}</text>')
        y += BAR
    return out, y + GAP


def legend(colors):
    out, x = [], 10
    for name, color in colors.items():
        out.append(f'<rect x="{x}" y="10" width="10" height="10" '
                   f'fill="{color}"/><text x="{x + 14}" y="19">'
                   f'{escape(name)}</text>')
        x += 34 + 7 * len(name)
    return out


def write(path, rows):
    if not any(row.get(key) for row in rows for key, _ in PANELS):
        return
    names = list(dict.fromkeys(row["server"] for row in rows))
    colors = {name: COLORS[number % len(COLORS)]
              for number, name in enumerate(names)}
    body, y = legend(colors), 24
    for key, title in PANELS:
        if any(row.get(key) for row in rows):
            elements, y = panel(rows, key, title, y, colors)
            body += elements
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
        f'height="{y + 10}">\n<style>text {{ font: 10px sans-serif; }} '
        f'.t {{ font-weight: bold; font-size: 12px; }} '
        f'.r {{ text-anchor: end; }}</style>\n'
        f'<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(body) + "\n</svg>\n")
