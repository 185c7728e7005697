#!/usr/bin/env python3
"""Routers answer in the name of living nodes: between two halves of a cluster every packet gets an RST, also on connections that exist.

Processes in network namespaces (see partition.py): two nodes with and without a witness, and the halves of two node groups. A closed or
refused connection proves no death, so never two sides may acknowledge: transfers, counters that clients of all nodes count up,
registers and lists are looked at (see kill.py, registers.py and history.py), also after the cables are mended. Then all nodes must be
members again, and no row may stay locked. Which side went on is printed: it may be none. Ends with 77 where no namespaces can be made.

reset.py [--binary target/release/latsdb] [--checker target/release/lats-history] [--shape TEXT] [--rounds 3] [--plant NAME]

`--shape "the last replicas"`: of each of two node groups one node lives, and these two cannot talk.
`--plant NAME` changes what clients were told (see plant.py): then the status must be 1.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

import history
from cluster import PATIENCE_S, connect, wait_until
from kill import ACCOUNTS, COUNTERS, Ledger, check, longest_gap, prepare
from minimysql import MySQLError
from partition import SKIPPED, Client, Cluster, ListClient, Net, address, in_namespaces
from plant import PLANTS
from registers import Registers, RegisterClient, add_counts, counters

FAULT_S = 1.6
# A lease is over by then, and a removal has come about.
NOTICED_S = 1.0
# Nobody holds a row for so long when all clients have gone.
LOCKED_S = 20.0

# By name: data nodes, all nodes, and which sides cannot talk.
SHAPES = {
    "two nodes and a witness": ((1, 2), (1, 2, 3), [((1,), (2,)), ((1,), (2, 3)), ((2,), (1, 3))]),
    "two nodes without a witness": ((1, 2), (1, 2), [((1,), (2,))]),
    "halves of two node groups": ((1, 2, 3, 4), (1, 2, 3, 4), [((1, 3), (2, 4)), ((1, 2), (3, 4)), ((1, 4), (2, 3))]),
    "the last replicas": ((1, 2, 3, 4), (1, 2, 3, 4), [((1,), (3,))]),
}
# Each of them is the last one of its group.
LAST = "the last replicas"


def refuse(net, some, others):
    """All that one side sends to the other is answered with RST."""
    for one in some:
        for other in others:
            net.reset(one, other)
            net.reset(other, one)


def states(cluster):
    """What each node says of all, in a few words."""
    def short(said):
        if isinstance(said, str):
            return said
        nodes = ", ".join(f"{n['node_id']} {n['state']}" for n in said["nodes"])
        return f"leader {said['leader']}, view {said['view']}, epoch {said['epoch']['current']}, complete {said['epoch']['complete']}: {nodes}"

    return "\n".join(f"node {node}: {short(said)}" for node, said in cluster.states().items())


class Load:
    """All clients of a cluster, and what they were told. `first` is the number of the first client; those at `elsewhere` only count and
    read."""

    def __init__(self, places, seed, first=1, elsewhere=()):
        self.places, self.stop, self.ledger = places, threading.Event(), Ledger()
        self.registers = Registers(len(places))
        prepare(places[0])
        history.prepare(places[0])
        self.registers.prepare(places[0])
        self.workers = [Client(first + i, places, self.ledger, self.stop) for i in range(len(places))]
        self.counters = counters([*places, *elsewhere], self.stop)
        self.lists = [ListClient(i + 1, places, seed + i, self.stop) for i in range(len(places))]
        self.readers = [RegisterClient(self.registers, place, self.stop, number)
                        for at, place in enumerate(places) for number in (at, None)]
        self.readers += [RegisterClient(self.registers, place, self.stop) for place in elsewhere]
        self.threads = self.workers + self.counters + self.lists + self.readers
        for thread in self.threads:
            thread.start()

    def commits_since(self, moment):
        """By place: transfers that began since."""
        with self.ledger.lock:
            found = [(place, ended) for ended, place, begun in self.ledger.commits if begun > moment]
        return {place: sum(at == place for at, _ in found) for place in self.places}, sorted(ended for _, ended in found)

    def end(self):
        """What the clients themselves have found."""
        self.stop.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
        wrong = [f"{type(t).__name__} hangs" for t in self.threads if t.is_alive()]
        wrong += [f"{type(t).__name__}: {t.failure}" for t in self.threads if t.failure]
        add_counts(self.ledger, self.counters)
        return wrong

    def check(self, checker, directory):
        """What is wrong when the cluster is whole and nobody writes."""
        wrong = check(self.ledger, self.places) + self.registers.check(self.places)[:5]
        own = [t for client in self.lists for t in client.history]
        history.write(f"{directory}/lists.json", own + [history.final_reads(self.places[0], self.lists)])
        if not history.check(checker, [f"{directory}/lists.json"]):
            wrong.append("the history has anomalies")
        return wrong


def held_rows(place, registers):
    """Rows that are still locked when all clients have gone: nobody can change them."""
    connection = connect(place)
    connection.query("SET innodb_lock_wait_timeout = 1")

    def is_held(table, number):
        try:
            connection.query(f"SELECT * FROM {table} WHERE id = {number} FOR UPDATE")
            return False
        except MySQLError as error:
            if error.number != 1205:
                raise
            return True

    left = [(table, row) for table, count in (("account", ACCOUNTS), ("counter", COUNTERS), ("register", registers)) for row in range(count)]
    end = time.monotonic() + LOCKED_S
    while left and time.monotonic() < end:
        left = [one for one in left if is_held(*one)]
    connection.close()
    return left


def one_reset(cluster, load, sides, chooser, stays_partial=False):
    """Refuses all between two sides for some time, and prints who got on meanwhile."""
    time.sleep(chooser.uniform(0.2, 0.6))
    before, begun = cluster.restarts, time.monotonic()
    refuse(cluster.net, *sides)
    time.sleep(FAULT_S)
    with_commits, _ = load.commits_since(begun + NOTICED_S)
    cluster.net.heal()
    healed = time.monotonic()
    if stays_partial:
        goes_on(cluster, load, healed)
    else:
        wait_until("all nodes are members again", cluster.whole, lambda: states(cluster))
    whole, (_, ended) = time.monotonic() - healed, load.commits_since(begun)
    counts = [sum(with_commits.get((address(node), 4306), 0) for node in side) for side in sides]
    gap = longest_gap([begun, *ended, time.monotonic()]) * 1000
    print(f"reset: {list(sides[0])} and {list(sides[1])}: commits on each side after {NOTICED_S} s: {counts}; longest time without one {gap:.0f} ms; "
          f"whole {whole:.1f} s after, {cluster.restarts - before} node(s) removed", flush=True)


def goes_on(cluster, load, healed):
    """Until there are commits at each node again."""
    def all_commit():
        by_place, _ = load.commits_since(healed)
        return all(count > 0 for place, count in by_place.items() if place[0] in (address(1), address(3)))
    wait_until("transfers are committed again at both nodes", all_commit, lambda: states(cluster))


def leave_the_last(cluster, load):
    """Of each group one node lives."""
    gone = {node: cluster.processes.pop(node) for node in (2, 4)}
    for process in gone.values():
        process.send_signal(signal.SIGKILL)
        process.wait()
        goes_on(cluster, load, time.monotonic())
    return gone


def one_shape(args, data, nodes, cuts):
    directory = tempfile.mkdtemp(prefix="latsdb-reset-")
    chooser, is_last = random.Random(args.seed), args.shape == LAST
    places, wrong, load, cluster = [(address(n), 4306) for n in data], [], None, None
    try:
        cluster = Cluster(args.binary, Net(args.net, nodes), directory, data, 2)
        cluster.settle()
        load = Load(places, args.seed)
        gone = leave_the_last(cluster, load) if is_last else {}
        for number in range(args.rounds if len(cuts) > 1 else 2):
            one_reset(cluster, load, cuts[number % len(cuts)], chooser, is_last)
        if is_last and cluster.restarts:
            # A connection that ends is no reason for anybody to go (LINK-1).
            wrong.append(f"{cluster.restarts} last replicas have ended")
        for node in gone:
            cluster.processes[node] = cluster.start(node)
        wrong += load.end()
        cluster.settle()
        wrong += [f"row {row} of {table} stays locked" for table, row in held_rows(places[0], load.registers.count)]
        if not load.ledger.committed:
            wrong.append("no transfer was committed")
        elif args.plant:
            PLANTS[args.plant][0](load)
        wrong += load.check(args.checker, directory)
    except Exception as error:  # Whatever it is, this has not shown what it should.
        traceback.print_exc()
        wrong.append(f"{type(error).__name__}: {error}")
    finally:
        if load:
            load.stop.set()
        if cluster:
            try:
                cluster.net.heal()
            finally:
                cluster.stop()
    if load:
        ledger = load.ledger
        print(f"reset: {args.shape}: {len(ledger.committed)} transfers, {sum(ledger.counted.values())} counted, "
              f"{load.registers.reads} reads of all registers; errors {ledger.errors}", flush=True)
    for what in wrong:
        print(f"reset: WRONG: {args.shape}, seed {args.seed}: {what} (log: {directory}/log)", flush=True)
    if not wrong:
        shutil.rmtree(directory)
    return 1 if wrong else 0


def outside(args, names):
    """Each shape in namespaces of its own."""
    statuses, more = [], ["--plant", args.plant] if args.plant else []
    for name in names:
        done = in_namespaces(SHAPES[name][1], args.binary, "--shape", name, "--rounds", str(args.rounds), "--seed", str(args.seed),
                             "--checker", os.path.abspath(args.checker), *more)
        statuses.append(done)
        if done == SKIPPED:
            break
    return max(statuses, key=lambda status: (status != 0, status != SKIPPED))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--checker", default=os.environ.get("LATS_HISTORY", "target/release/lats-history"))
    parser.add_argument("--shape", default="", help="only shapes whose names have this in it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--plant", choices=PLANTS, help="change what clients were told: the status must be 1 then")
    parser.add_argument("--net", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.net:
        return one_shape(args, *SHAPES[args.shape])
    names = [name for name in SHAPES if args.shape in name]
    if not names:
        parser.error(f"no shape has {args.shape!r} in its name; there are: {'; '.join(SHAPES)}")
    print(f"reset: seed {args.seed}", flush=True)
    return outside(args, names)


if __name__ == "__main__":
    sys.exit(main())
