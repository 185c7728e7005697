#!/usr/bin/env python3
"""Draws the table that `scripts/durability.sh` prints: draw_durability.py OUT.svg FILE

Needs matplotlib (`pip install matplotlib`).
"""

import re
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

LABELS = ["LatsDB, 1 copy", "MariaDB, 1 copy", "LatsDB, 2 replicas", "MariaDB, semi-synchronous replica"]
STYLES = [("C0", "--"), ("C1", "--"), ("C0", "-"), ("C1", "-")]
CELL = re.compile(r"([0-9]+) /s \(mean ([0-9.]+) ms, 99%: ([0-9.]+) ms\)")


def read(name):
    """By test: clients, and for each peer commits per second and the 99th percentile in ms."""
    tests = {}
    with open(name, encoding="utf8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            found = [CELL.match(cell) for cell in cells[2:6]]
            if len(found) == 4 and all(found):
                values = [(float(match[1]), float(match[3])) for match in found]
                tests.setdefault(cells[0], []).append((int(cells[1]), values))
    return tests


def main():
    out, name = sys.argv[1:]
    tests = read(name)
    figure, axes = pyplot.subplots(2, len(tests), figsize=(5.2 * len(tests), 6), squeeze=False)
    for column, (test, rows) in enumerate(tests.items()):
        clients = [count for count, _ in rows]
        for peer, label in enumerate(LABELS):
            color, line = STYLES[peer]
            style = {"marker": "o", "markersize": 4, "label": label, "color": color, "linestyle": line}
            axes[0][column].plot(clients, [values[peer][0] for _, values in rows], **style)
            axes[1][column].plot(clients, [values[peer][1] for _, values in rows], **style)
        axes[0][column].set_title(test, fontsize=10)
        axes[0][column].set_ylabel("commits a second")
        axes[1][column].set_ylabel("ms, 99 of 100 within")
        axes[1][column].set_yscale("log")
        axes[1][column].set_xlabel("clients")
        for axis in (axes[0][column], axes[1][column]):
            axis.set_xscale("log")
            axis.set_xticks(clients, [str(count) for count in clients])
            axis.minorticks_off()
            axis.grid(True, alpha=0.3)
        axes[0][column].set_ylim(bottom=0)
        axes[0][column].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()
