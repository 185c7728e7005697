#!/usr/bin/env python3
"""Draws what `tests/kill.py --record FILE` has measured: draw_kills.py OUT.svg FILE [FILE ...]

Needs matplotlib (`pip install matplotlib`).
"""

import json
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

LINES = (("first_ms", "first commit at the other node"), ("slowest_ms", "slowest transaction there"),
         ("gap_ms", "longest time without any commit"))


def main():
    out, files = sys.argv[1], sys.argv[2:]
    figure, axes = pyplot.subplots(1, len(files), figsize=(5.5 * len(files), 3.6), squeeze=False)
    for axis, name in zip(axes[0], files):
        with open(name, encoding="utf8") as file:
            record = json.load(file)
        seen = record["seen"]
        for what, label in LINES:
            times = sorted(max(one[what], 0.1) for one in seen)
            axis.step(times, [100 * (at + 1) / len(times) for at in range(len(times))], where="post", label=label)
        axis.set_xscale("log")
        axis.set_xlabel("ms after the fault")
        axis.set_ylabel(f"% of {len(seen)} faults")
        axis.set_title({"kill": "SIGKILL of a data node", "freeze": "SIGSTOP of a data node"}[record["fault"]])
        axis.grid(True, which="both", alpha=0.3)
        axis.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()
