#!/usr/bin/env python3
"""A machine is suspended for some seconds while the others go on: when it wakes, its node answers nothing from old rows (LEASE-8).

suspend.py [--binary target/release/latsdb] [--plant]

No machine is suspended for it. The processes run in network namespaces (see partition.py), with a library that can hold back clocks
(meddle.py), whoever reads them. A process is stopped with SIGSTOP, and what the other nodes send it is lost; its `CLOCK_MONOTONIC`,
which stands still in a suspend, is set back by as long, and it goes on. `CLOCK_BOOTTIME` and `CLOCK_REALTIME` are as after a suspend.
Clients that have asked meanwhile, when the others had acknowledged new rows, must not be shown the old ones.

Timers of the kernel go on in SIGSTOP, and stand still in a suspend: timeouts are over early here.

`--plant` holds back `CLOCK_BOOTTIME`, too, as if the node read a clock that does not count suspends: then there must be stale reads,
and the status must be 1. Ends with 77 where no namespaces can be made, there is no compiler, or clocks cannot be held back.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time

from cluster import PATIENCE_S, connect, insist
from meddle import BOOT_HELD_NS, BOOT_IS_READ, MONOTONIC_HELD_NS, Orders, build
from minimysql import MySQLError
from partition import SKIPPED, Cluster, Net, address, apart, in_namespaces
from preload import need_compiler

SUSPENDED_S = 1.5
# What the others have sent comes so much later: TCP waits longer each time before it sends again.
DEAF_S = 0.4
READERS = 16
ROWS = 16
ROUNDS = 2
NODES = (1, 2, 3)
VICTIM = 2


class Nodes(Cluster):
    """Each node has clocks of its own."""

    def __init__(self, binary, net, directory, tools):
        self.library = build(tools)
        self.orders = {node: Orders(os.path.join(tools, f"orders-{node}")) for node in NODES}
        super().__init__(binary, net, directory, NODES[:2], 2)

    def environment(self, node):
        return self.orders[node].environment(self.library)


class Reader(threading.Thread):
    """Reads rows at the node that is suspended; its first request is there when the node goes on."""

    def __init__(self, place, row):
        super().__init__(daemon=True)
        self.connection, self.row = connect(place), row
        # Plans and rows are known.
        self.read()
        self.stale, self.reads, self.refusal = [], 0, None

    def read(self):
        self.row = (self.row + 1) % ROWS
        return self.connection.query(f"SELECT v FROM suspended WHERE id = {self.row}")[0][0]

    def run(self):
        end = time.monotonic() + SUSPENDED_S + DEAF_S
        try:
            while time.monotonic() < end:
                value = self.read()
                self.reads += 1
                if value != "new":
                    self.stale.append(f"row {self.row} was {value}")
        except (MySQLError, OSError) as error:
            # The node has noticed that it serves nothing, or has ended.
            self.refusal = str(error)


def suspend(cluster, clocks, places):
    """One suspend of a node, in which these clocks stand still; the stale reads, and all reads."""
    cluster.wait_whole()
    insist(lambda: connect(places[0]).query("UPDATE suspended SET v = 'old'"))
    victim, readers = cluster.processes[VICTIM].pid, [Reader(places[1], number) for number in range(READERS)]
    os.kill(victim, signal.SIGSTOP)
    stopped = time.monotonic()
    apart(cluster.net, [VICTIM], [node for node in NODES if node != VICTIM])
    # The node is removed before this is answered.
    insist(lambda: connect(places[0]).query("UPDATE suspended SET v = 'new'"))
    for reader in readers:
        reader.start()
    time.sleep(max(0.1, stopped + SUSPENDED_S - time.monotonic()))
    held_ns = int((time.monotonic() - stopped) * 1e9)
    for clock in clocks:
        cluster.orders[VICTIM].change(clock, lambda before: before + held_ns)
    os.kill(victim, signal.SIGCONT)
    time.sleep(DEAF_S)
    cluster.net.heal()
    for reader in readers:
        reader.join(PATIENCE_S)
    # What was asked while the machine was suspended was answered somehow: with a row, or a refusal.
    unanswered = [reader.row for reader in readers if not (reader.reads or reader.refusal)]
    assert not unanswered, f"readers of rows {unanswered} were not answered at all"
    print(f"suspend: {sum(reader.refusal is not None for reader in readers)} of {READERS} readers were refused, one of them with: "
          f"{next((reader.refusal for reader in readers if reader.refusal), 'nothing')}", flush=True)
    return [text for reader in readers for text in reader.stale], sum(reader.reads for reader in readers)


def rounds(cluster, args, places):
    """The stale reads, and all reads; none if clocks cannot be held back."""
    cluster.settle()
    if not all(orders.get(BOOT_IS_READ) for orders in cluster.orders.values()):
        return None
    first = connect(places[0])
    first.query("CREATE DATABASE IF NOT EXISTS test")
    first.query("CREATE TABLE suspended (id INT PRIMARY KEY, v CHAR(3))")
    first.query("INSERT INTO suspended VALUES " + ",".join(f"({row}, 'old')" for row in range(ROWS)))
    clocks = (MONOTONIC_HELD_NS, BOOT_HELD_NS) if args.plant else (MONOTONIC_HELD_NS,)
    results = [suspend(cluster, clocks, places) for _ in range(ROUNDS)]
    return [text for found, _ in results for text in found], sum(reads for _, reads in results)


def inside(args):
    places = [(address(node), 4306) for node in NODES[:2]]
    with tempfile.TemporaryDirectory(prefix="latsdb-suspend-") as directory:
        os.mkdir(os.path.join(directory, "data"))
        cluster = Nodes(args.binary, Net(args.net, NODES), os.path.join(directory, "data"), directory)
        try:
            found = rounds(cluster, args, places)
        finally:
            cluster.net.heal()
            cluster.stop()
    if found is None:
        print("suspend: skipped, the kernel does not let the library stand between processes and their clocks")
        return SKIPPED
    stale, reads = found
    print(f"suspend: {ROUNDS} suspends of {SUSPENDED_S} s: {len(stale)} stale reads of {reads}")
    for text in stale[:5]:
        print(f"suspend: WRONG: {text}")
    return 1 if stale else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--plant", action="store_true", help="hold back the clock that nodes read: the status must be 1 then")
    parser.add_argument("--net", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.net:
        return inside(args)
    need_compiler("suspend")
    return in_namespaces(NODES, args.binary, *(["--plant"] if args.plant else []))


if __name__ == "__main__":
    sys.exit(main())
