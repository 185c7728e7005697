#!/usr/bin/env python3
"""What clients notice of redo logs and checkpoints: sysbench changes rows second after second, with nothing on disk and with logs.
checkpoints.py [--binary target/release/latsdb] [--seconds 60] [--rows 50000] [--threads 16] [--svg FILE]

Prints the figures; with --svg, draws them (needs matplotlib). Needs sysbench."""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))

from minimysql import Connection

LINE = re.compile(r"\[ (\d+)s \].* tps: ([\d.]+) .*lat \(ms,99%\): ([\d.]+)")


def sysbench(port, rows, *more):
    return ["sysbench", "oltp_update_non_index", "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=root",
            "--mysql-db=bench", "--tables=1", f"--table-size={rows}", *more]


def oldest_segment(directory):
    there = os.listdir(directory) if os.path.isdir(directory) else []
    names = [name for name in there if name.startswith("redo-0-")]
    return min(names, default="")


def watch(directory, begun, stop, seen):
    """When node 1's log begins later: a checkpoint has ended."""
    oldest = oldest_segment(directory)
    while not stop.wait(0.05):
        now = oldest_segment(directory)
        if now > oldest and oldest:
            seen.append(time.monotonic() - begun)
        oldest = now


def measure(args, directory, *options):
    data = os.path.join(directory, "data")
    subprocess.run([args.binary, "start", "--data-dir", data, "--sql-port", str(args.sql_port), "--memory-mib", "2048", "--detach", *options],
                   check=True, stdout=subprocess.DEVNULL)
    try:
        Connection(args.sql_port).query("CREATE DATABASE bench")
        subprocess.run(sysbench(args.sql_port, args.rows, "prepare"), check=True, stdout=subprocess.DEVNULL)
        more = [f"--threads={args.threads}", f"--time={args.seconds}", "--report-interval=1", "--percentile=99", "run"]
        ended, stop, begun = [], threading.Event(), time.monotonic()
        watcher = threading.Thread(target=watch, args=(os.path.join(data, "node-1"), begun, stop, ended))
        watcher.start()
        run = subprocess.run(sysbench(args.sql_port, args.rows, *more), capture_output=True, text=True, timeout=args.seconds + 60, check=True)
        stop.set()
        watcher.join()
        lines = [LINE.search(line) for line in run.stdout.splitlines()]
        return [(int(m[1]), float(m[2]), float(m[3])) for m in lines if m], ended
    finally:
        subprocess.run([args.binary, "stop", "--data-dir", data], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(data, ignore_errors=True)


def draw(out, figures, ended):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 1, sharex=True, figsize=(7, 5))
    for label, points in figures.items():
        seconds = [second for second, _, _ in points]
        axes[0].plot(seconds, [tps for _, tps, _ in points], label=label)
        axes[1].plot(seconds, [late for _, _, late in points], label=label)
    for axis in axes:
        for at, when in enumerate(ended):
            axis.axvline(when, color="grey", linestyle=":", linewidth=1, label="" if at else "a checkpoint has ended")
        axis.set_ylim(bottom=0)
        axis.grid(True, alpha=0.3)
    axes[0].set_ylabel("transactions /s")
    axes[1].set_ylabel("99 % within, ms")
    axes[1].set_xlabel("s")
    axes[0].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--sql-port", type=int, default=18906)
    parser.add_argument("--svg")
    args = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="latsdb-checkpoints-")
    try:
        figures = {"nothing on disk": measure(args, directory, "--ephemeral")[0]}
        figures["redo logs and checkpoints"], ended = measure(args, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for label, points in figures.items():
        tps, late = [p[1] for p in points], [p[2] for p in points]
        print(f"{label}: {statistics.mean(tps):.0f} /s (least in a second: {min(tps):.0f}), 99 % within {statistics.median(late):.2f} ms (at worst {max(late):.2f})")
    near = [p for p in figures["redo logs and checkpoints"] if any(when - 2 <= p[0] <= when for when in ended)]
    print(f"{len(ended)} checkpoints have ended; in the two seconds before that: {statistics.mean([p[1] for p in near] or [0]):.0f} /s")
    if args.svg:
        draw(args.svg, figures, ended)


if __name__ == "__main__":
    main()
