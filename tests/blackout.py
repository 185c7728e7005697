#!/usr/bin/env python3
"""Kills all processes of a cluster at once, under load, again and again, and checks what is there when it has started again.

Threads move money between accounts; half of them wait for disks (SET durability = 'disk'). A random moment later every node is
killed with SIGKILL, and in half of the rounds the supervisor, too, which is then started again by hand. On the way up nodes are
killed again now and then. When the cluster is whole, every transfer that was acknowledged to a session with durability = 'disk' must
be there, and every table that one has created, no refused transfer, balances must follow from the transfers, and all nodes must give the same rows: the state of one epoch.
Transfers of the other sessions may be lost if they were committed in the last moments, but only as a whole.
"""

import argparse
import contextlib
import os
import random
import signal
import sys
import threading
import time

from cluster import PATIENCE_S, Durable, connect, insist, is_temporary, rows, wait_until
from kill import Ledger, Worker, check, prepare
from minimysql import MySQLError


class DiskWorker(Worker):
    """Waits for disks with every commit."""

    def transfer(self):
        if getattr(self, "told", None) is not self.connection:
            self.connection.query("SET durability = 'disk'")
            self.told = self.connection
        super().transfer()


class Definer(threading.Thread):
    """Creates and drops tables, and waits for disks each time. What it was told is there in the end."""

    def __init__(self, number, port, stop):
        super().__init__(daemon=True)
        self.number, self.port, self.stopped = number, port, stop
        self.created, self.dropped, self.failure = [], [], None
        self.nodes_die = False

    def run(self):
        connection = None
        for at in range(100_000):
            if self.stopped.is_set():
                return
            try:
                connection = connection or self.arrive()
                name = f"made_{self.number}_{at}"
                # What is under way when a node dies may be there or not.
                connection.query(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
                self.created.append(name)
                if at % 3 == 2:
                    gone = self.created.pop(0)
                    connection.query(f"DROP TABLE {gone}")
                    self.dropped.append(gone)
            except (OSError, MySQLError) as error:
                if not self.nodes_die and not is_temporary(error):
                    self.failure = str(error)
                    return
                connection = None
                time.sleep(0.02)

    def arrive(self):
        connection = connect(self.port)
        connection.query("SET durability = 'disk'")
        return connection

    def check(self, port):
        there = {row[0] for row in rows(port, "SHOW TABLES")}
        wrong = [f"table {name} was created, and is gone" for name in self.created if name not in there]
        wrong += [f"table {name} was dropped, and is there" for name in self.dropped if name in there]
        for name in there:
            if name.startswith("made_"):
                rows(port, f"DROP TABLE IF EXISTS {name}")
        return wrong


def come_up(cluster, removed, killed):
    """Until it is whole. All of a node group may have been gone for a moment, if a node was removed besides: then the others go on
    without it until all are started again."""
    wait_until("the cluster is whole", lambda: cluster.whole() or cluster.has_lost_rows(), cluster.describe)
    if cluster.has_lost_rows():
        others = cluster.removed()[len(removed):]
        # A replica whose log had less is filled by the other one, which may be killed meanwhile.
        assert others or killed, f"a node group is lost: {cluster.describe()}"
        print(f"blackout: a node group is lost, for nodes {others} were removed, or one was killed while it filled another: all are started again", flush=True)
        cluster.stop()
        cluster.start()
    cluster.wait_whole()


def blackout(cluster, ports, ledger, number, args, chooser):
    """One round; gives what is wrong."""
    stop = threading.Event()
    base = number * args.threads
    workers = [(DiskWorker if i % 2 else Worker)(base + i + 1, ports, Ledger(), stop) for i in range(args.threads)]
    definer = Definer(number, ports[0], stop)
    for thread in workers + [definer]:
        thread.start()
    time.sleep(chooser.uniform(0.3, args.seconds))
    by_hand = chooser.random() < 0.5
    definer.nodes_die = True
    cluster.kill_all(by_hand, chooser)
    stop.set()
    killed = time.monotonic()
    for thread in workers + [definer]:
        thread.join(PATIENCE_S)
    if stuck := [w.name for w in workers + [definer] if w.is_alive()]:
        return [f"threads {stuck} hang"], {}
    removed = cluster.removed()
    if by_hand:
        starting = cluster.starting()
    # Two deaths at the wrong moment cost one of several node groups, and the others go on without it.
    again = chooser.choice([0, 0, 1, 3] if args.nodes == args.replicas else [0, 1])
    for _ in range(again):
        time.sleep(chooser.uniform(0.0, 0.4))
        nodes, _ = cluster.processes()
        if nodes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chooser.choice(nodes), signal.SIGKILL)
    if by_hand:
        _, errors = starting.communicate(timeout=PATIENCE_S)
        if starting.returncode != 0:
            return [f"the cluster does not start again: {errors}"], {}
    come_up(cluster, removed, again > 0)
    up = time.monotonic() - killed
    lost = 0
    there = {int(r[0]) for r in rows(ports[0], "SELECT id FROM transfer")}
    for worker in workers:
        own = worker.ledger
        if not isinstance(worker, DiskWorker):
            kept = [n for n in own.committed if n in there]
            lost += len(own.committed) - len(kept)
            own.unknown += [n for n in own.committed if n not in there]
            own.committed = kept
        ledger.add(own)
    wrong = check(ledger, ports) + definer.check(ports[0])
    disk = sum(len(w.ledger.committed) for w in workers if isinstance(w, DiskWorker))
    print(f"blackout {number}: {'all' if by_hand else 'all nodes'} killed, {again} killed again, whole after {up:.2f} s; {disk} commits and {len(definer.created)} tables on disk, "
          f"{lost} others lost, {len(there)} transfers", flush=True)
    failures = [w.failure for w in workers + [definer] if w.failure]
    return wrong + [f"a thread of the test failed: {f}" for f in failures], {"up": up, "lost": lost}


def sync(port):
    """What was committed before is on disk then."""
    connection = connect(port)
    connection.query("SET durability = 'disk'")
    connection.query("REPLACE INTO transfer VALUES (0, 0, 1, 0)")
    connection.query("DELETE FROM transfer WHERE id = 0")
    connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long there is load before a blackout, at most")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--sql-port", type=int, default=14306)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    print(f"blackout: seed {args.seed}, {args.rounds} rounds", flush=True)
    ports = [args.sql_port + i for i in range(args.nodes)]
    chooser, ledger, wrong = random.Random(args.seed), Ledger(), []
    with Durable(args.binary, args.sql_port, "--nodes", str(args.nodes), "--replicas", str(args.replicas)) as cluster:
        prepare(ports[0])
        insist(lambda: sync(ports[0]))
        for number in range(1, args.rounds + 1):
            found, _ = blackout(cluster, ports, ledger, number, args, chooser)
            wrong += [f"round {number}: {what}" for what in found]
            if wrong:
                break
    for what in wrong:
        print(f"blackout: WRONG: {what} (directory: {cluster.directory})")
    print(f"blackout: {len(ledger.committed)} acknowledged, {len(ledger.refused)} refused, {len(ledger.unknown)} cut off or lost; "
          f"errors {ledger.errors}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
