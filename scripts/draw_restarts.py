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
    figure, (axis, rates) = pyplot.subplots(1, 2, figsize=(11, 4))
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
    # How much of the log is loaded a second, with nothing changed, from the start of the process to the full replica.
    loads = sorted((one["mib"], one["log_mib"] / one["seconds"], one["disk_mib_s"])
                   for one in seen if (one["what"], one["share"]) == ("one node", shares[0]))
    sizes = [mib for mib, _, _ in loads]
    rates.plot(sizes, [disk for _, _, disk in loads], "--", marker="o", markersize=3, label="the disk reads, past the page cache")
    rates.plot(sizes, [load for _, load, _ in loads], marker="o", markersize=3, label="a node loads its log, the whole restart counted")
    rates.set_xlabel("MiB of rows")
    rates.set_ylabel("MiB of log a second")
    rates.set_ylim(bottom=0)
    rates.set_xlim(left=0)
    rates.grid(True, alpha=0.3)
    rates.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()
