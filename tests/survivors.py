#!/usr/bin/env python3
"""So many nodes are killed at once that no majority is left, while one full replica lives: of two nodes and a witness one node and the
witness, and of three nodes two. The replica that lives waits with its memory, serves again when the others are back with their disks, and
every row that was acknowledged is there. Also: the data directory of a node that lives is copied, and a second process of the node is
started there; it is not taken in, and the first one goes on.

survivors.py [--binary target/release/latsdb] [--rounds 2] [--sql-port 16906]"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from cluster import PATIENCE_S, Durable, connect, insist, rows, wait_until
from minimysql import MySQLError

# Both are dead within this time.
TOGETHER_S = 0.003


class Writer(threading.Thread):
    """Inserts rows one by one through the node that will live, and remembers those that were acknowledged."""

    def __init__(self, port, first, stop):
        super().__init__(daemon=True)
        self.port, self.next, self.stop = port, first, stop
        self.acknowledged, self.gaps, self.last = [], 0.0, None

    def run(self):
        connection = None
        while not self.stop.is_set():
            number, self.next = self.next, self.next + 1
            try:
                connection = connection or connect(self.port)
                connection.query(f"INSERT INTO kept VALUES ({number})")
            except (MySQLError, OSError):
                # Whether it is there does not matter: nobody was told so.
                if connection and not self.stop.is_set():
                    with contextlib.suppress(OSError):
                        connection.close()
                    connection = None
                time.sleep(0.02)
                continue
            now = time.monotonic()
            self.gaps = max(self.gaps, now - (self.last or now))
            self.last = now
            self.acknowledged.append(number)


def pids(cluster):
    return {n["node_id"]: n["pid"] for n in cluster.all_nodes()}


def round_of(cluster, port, number, victims, survivor, chooser):
    """Kills these, and gives how long nobody was served."""
    before = pids(cluster)
    stop = threading.Event()
    writers = [Writer(port, number * 10_000_000 + index * 1_000_000, stop) for index in range(2)]
    for writer in writers:
        writer.start()
    time.sleep(chooser.uniform(0.3, 0.8))
    for node in victims:
        os.kill(before[node], signal.SIGKILL)
        time.sleep(chooser.uniform(0, TOGETHER_S))
    killed = time.monotonic()
    wait_until("rows are acknowledged again", lambda: all(w.last and w.last > killed + 0.5 for w in writers), cluster.describe)
    time.sleep(0.3)
    stop.set()
    for writer in writers:
        writer.join(PATIENCE_S)
    cluster.wait_whole()
    now = pids(cluster)
    assert now[survivor] == before[survivor], f"node {survivor} was the last full replica, and has ended: {cluster.describe()}"
    assert all(now[v] != before[v] for v in victims)
    found = {row[0] for row in insist(lambda: connect(port).query("SELECT id FROM kept"))}
    found = {int(value) for value in found}
    lost = [n for writer in writers for n in writer.acknowledged if n not in found]
    count = sum(len(w.acknowledged) for w in writers)
    assert not lost, f"{len(lost)} of {count} acknowledged rows are gone, the first of them {lost[0]}"
    return count, max(w.gaps for w in writers)


def survive(args, nodes, replicas, victims, survivor, chooser):
    options = ("--nodes", str(nodes), "--replicas", str(replicas))
    with Durable(args.binary, args.sql_port, *options) as cluster:
        port = args.sql_port + survivor - 1
        insist(lambda: connect(port).query("CREATE TABLE kept (id INT PRIMARY KEY)"))
        for number in range(args.rounds):
            count, gap = round_of(cluster, port, number + 1, victims, survivor, chooser)
            print(f"survivors: {nodes} nodes, {victims} killed: {count} rows acknowledged, all are there; nobody was served for {gap:.2f} s",
                  flush=True)
        if nodes == 2:
            copied(args, cluster, port)


def copied(args, cluster, port):
    """A second process of a node, from a copy of its directory: nobody is displaced, and it is told why."""
    before = pids(cluster)
    place = cluster.directory + "-copy"
    shutil.copytree(cluster.directory, place)
    with open(place + ".log", "w", encoding="utf8") as log:
        second = subprocess.Popen([args.binary, "node", "--data-dir", place, "--node-id", "2", "--listen", f"127.0.0.1:{args.sql_port + 300}",
                                   "--sql-listen", f"127.0.0.1:{args.sql_port + 301}"], stdout=log, stderr=log)
        try:
            end = time.monotonic() + 4
            while time.monotonic() < end:
                assert pids(cluster) == before, "a living node was displaced by a copy of its directory"
                insist(lambda: rows(port, "SELECT COUNT(*) FROM kept"))
                time.sleep(0.2)
        finally:
            second.kill()
            second.wait(PATIENCE_S)
    shutil.rmtree(place)
    print("survivors: a copy of a living node's directory displaces nobody", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sql-port", type=int, default=16906)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"survivors: seed {args.seed}", flush=True)
    chooser = random.Random(args.seed)
    survive(args, 2, 2, [1, 3], 2, chooser)
    survive(args, 3, 3, [1, 3], 2, chooser)
    print("survivors: nothing acknowledged is lost while one full replica lives")
    return 0


if __name__ == "__main__":
    sys.exit(main())
