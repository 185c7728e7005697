#!/usr/bin/env python3
"""Draws what `scripts/restart_time.py --record FILE` has measured: draw_restarts.py OUT.svg FILE

Needs matplotlib (`pip install matplotlib`).
"""

import json
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot


def main():
    out, name = sys.argv[1:]
    with open(name, encoding="utf8") as file:
        seen = [json.loads(line) for line in file]
    shares = sorted({one["share"] for one in seen if one["what"] == "one node"})
    lines = [(f"one node, {share:g} % changed", "one node", share) for share in shares]
    lines += [("one node, its disk is empty", "empty disk", 0), ("all nodes killed", "all nodes killed", 0)]
    figure, axis = pyplot.subplots(figsize=(6.5, 4))
    for label, what, share in lines:
        points = sorted((one["mib"], one["seconds"]) for one in seen if (one["what"], one["share"]) == (what, share))
        style = "--" if what != "one node" else "-"
        axis.plot([mib for mib, _ in points], [seconds for _, seconds in points], style, marker="o", markersize=3, label=label)
    axis.set_xlabel("MiB of rows")
    axis.set_ylabel("s until all are full replicas")
    axis.set_ylim(bottom=0)
    axis.set_xlim(left=0)
    axis.grid(True, alpha=0.3)
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()
