#!/usr/bin/env python3
"""How long a node takes to be a full replica again, by how much has changed meanwhile, and with an empty disk; and how long the
cluster takes when all nodes were killed.
restart_time.py [--binary target/release/latsdb] [--mib 256] [--row-bytes 400] [--record FILE]"""

import argparse
import json
import mmap
import os
import random
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))

from blackout import Durable
from minimysql import Connection

BATCH = 500


def fill(connection, rows, pad):
    connection.query("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(4000) NOT NULL)")
    for at in range(0, rows, BATCH):
        values = ",".join(f"({i},0,'{pad}')" for i in range(at, min(at + BATCH, rows)))
        connection.query("INSERT INTO t VALUES " + values)


def change(connection, ids):
    for at in range(0, len(ids), BATCH):
        some = ",".join(str(i) for i in ids[at:at + BATCH])
        connection.query(f"UPDATE t SET n = n + 1 WHERE id IN ({some})")


def wait_whole(cluster, seconds):
    """Until all are full replicas."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if all(n["in_sync"] and n["pid"] for n in cluster.nodes()):
                return
        except RuntimeError:
            pass
        # Each question is a process of its own: more of them would slow down what is measured.
        time.sleep(0.1)
    raise RuntimeError(f"not whole after {seconds} s")


def directory_of(cluster, node):
    return os.path.join(cluster.directory, f"node-{node}")


def log_bytes(cluster, node):
    folder = directory_of(cluster, node)
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.startswith("redo"))


def disk_mib_s(cluster):
    """How fast the disk reads the log of node 2, past the page cache, a MiB at a time."""
    folder, size, room = directory_of(cluster, 2), 0, mmap.mmap(-1, 1 << 20)
    began = time.monotonic()
    for name in sorted(os.listdir(folder)):
        if name.startswith("redo"):
            file = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_DIRECT)
            at = 0
            while got := os.preadv(file, [room], at):
                at += got
            size += at
            os.close(file)
    return size / (1 << 20) / (time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--mib", type=int, default=256, help="MiB of rows")
    parser.add_argument("--row-bytes", type=int, default=400)
    parser.add_argument("--shares", default="0,1,10,50", help="per cent of the rows that change meanwhile")
    parser.add_argument("--sql-port", type=int, default=15706)
    parser.add_argument("--record", help="adds what was measured to this file, a line of JSON each")
    args = parser.parse_args()
    rows = args.mib * (1 << 20) // args.row_bytes
    cluster = Durable(args.binary, args.sql_port, memory_mib=2048 + 4 * args.mib)
    seen, disk = [], 0.0

    def note(what, share, seconds):
        mib = log_bytes(cluster, 2) / (1 << 20)
        seen.append({"mib": args.mib, "row_bytes": args.row_bytes, "what": what, "share": share, "seconds": seconds,
                     "log_mib": mib, "disk_mib_s": disk})
        print(f"{args.mib} MiB in {rows} rows, {what}, {share} % changed: {seconds:.2f} s; the log has {mib:.0f} MiB, "
              f"of which the disk reads {disk:.0f} a second", flush=True)

    try:
        connection = Connection(args.sql_port, "test", timeout=120)
        began = time.monotonic()
        fill(connection, rows, "x" * (args.row_bytes - 12))
        print(f"filled in {time.monotonic() - began:.1f} s", flush=True)
        time.sleep(1)
        for share in [float(s) for s in args.shares.split(",")] + [None]:
            cluster.run("stop-node", "2")
            disk = disk_mib_s(cluster)
            if share is None:
                shutil.rmtree(directory_of(cluster, 2))
            else:
                change(connection, random.Random(share).sample(range(rows), int(rows * share / 100)))
            began = time.monotonic()
            cluster.run("start-node", "2")
            wait_whole(cluster, 600)
            note("empty disk" if share is None else "one node", share or 0, time.monotonic() - began)
            time.sleep(1)
        cluster.kill_all(False, random.Random(1))
        began = time.monotonic()
        wait_whole(cluster, 600)
        note("all nodes killed", 0, time.monotonic() - began)
    finally:
        cluster.run("stop")
        shutil.rmtree(cluster.directory)
    if args.record:
        with open(args.record, "a", encoding="utf8") as file:
            file.writelines(json.dumps(one) + "\n" for one in seen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
