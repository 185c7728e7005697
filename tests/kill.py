#!/usr/bin/env python3
"""Kills data nodes with SIGKILL under load, or freezes them, and checks that nothing acknowledged is lost.

Threads move money between accounts through both nodes and note what was acknowledged. A random data
node is killed at a random moment; the time until the first commit after the kill is measured; when
the node is a full replica again, the next one is killed. At the end every acknowledged transfer must
be there on both nodes, no refused one, the balances must follow from the transfers, and both nodes
must give the same rows. Other threads count up with statements that commit by themselves: each is counted once, and while a
replica lives no server says that it does not know what became of one (OUTCOME-8). Rows are compared by scans, which primaries answer, and by key, which each node
answers from its own replica. Clients may get temporary errors and no others. After each fault commits must
go on at the other node; how soon is printed.

The rows of this cluster are in memory only. If the other node is removed by the others in the moment of a kill, because it got no
processor time for a lease, they are gone: then the remaining kills hit a new cluster.
"""

import argparse
import gc
import json
import os
import random
import signal
import sys
import threading
import time

from cluster import (ATTEMPTS, PATIENCE_S, TEMPORARY, UNKNOWN, Cluster, Disturbed, connect, insist, is_alive, is_unknown, port_of,
                     rows, wait_until)
from minimysql import MySQLError

ACCOUNTS = 50
COUNTERS = 8
KEYS_PER_READ = 500
# What is measured is what happens for so long after a fault.
MEASURED_S = 1.0


class Ledger:
    """What clients were told."""

    def __init__(self):
        self.lock = threading.Lock()
        # Lists: a set that outgrows its table is built anew, and no client gets on for tens of milliseconds.
        self.committed, self.refused, self.unknown = [], [], []
        # By counter: how many answers, and how many were lost with a connection; and what servers did not know.
        self.counted, self.cut_off, self.not_told = {}, {}, []
        self.commits = []  # (time, port, time of BEGIN)
        self.errors = {}

    def note(self, outcome, number, port=0, begun=0.0):
        with self.lock:
            outcome.append(number)
            if outcome is self.committed:
                self.commits.append((time.monotonic(), port, begun))

    def error(self, what, count=1):
        with self.lock:
            self.errors[what] = self.errors.get(what, 0) + count

    def add(self, other):
        """What another one has noted."""
        self.committed += other.committed
        self.refused += other.refused
        self.unknown += other.unknown
        self.not_told += other.not_told
        for what, count in other.errors.items():
            self.error(what, count)


class Worker(threading.Thread):
    """Transfers through one node; through the other while the first is away."""

    # A process that ends closes its connections: nobody waits so long for one.
    patience_s = 60

    def __init__(self, index, ports, ledger, stop):
        super().__init__(daemon=True)
        self.index, self.ports, self.ledger, self.stop = index, ports, ledger, stop
        self.random = random.Random(index)
        self.next = index * 10_000_000
        self.port = ports[index % len(ports)]
        self.connection = None
        self.failure = None

    def run(self):
        try:
            self.work()
        except Exception as error:  # Whatever it is, the thread must not look as if it had done its work.
            self.failure = repr(error)
            raise

    def work(self):
        while not self.stop.is_set():
            try:
                if self.connection is None:
                    self.connection = connect(self.port, self.patience_s)
                self.transfer()
            except OSError:
                self.away()
            except MySQLError as error:
                self.ledger.error(error.number)
                if error.number in (1040, 1053):
                    self.away()

    def away(self):
        self.connection = None
        self.port = self.random.choice(self.ports)
        time.sleep(0.002)

    def transfer(self):
        self.next += 1
        number = self.next
        source, target = self.random.sample(range(ACCOUNTS), 2)
        amount = self.random.randint(1, 100)
        committing, begun = False, time.monotonic()
        try:
            run = self.connection.query
            run("BEGIN")
            # In the order of the ids: deadlocks are not what is measured here.
            for account, change in sorted([(source, -amount), (target, amount)]):
                run(f"UPDATE account SET balance = balance + {change} WHERE id = {account}")
            run(f"INSERT INTO transfer VALUES ({number}, {source}, {target}, {amount})")
            committing = True
            run("COMMIT")
            self.ledger.note(self.ledger.committed, number, self.port, begun)
        except OSError:
            # The node is gone: a commit that was under way may have come about.
            self.ledger.note(self.ledger.unknown if committing else self.ledger.refused, number)
            raise
        except MySQLError as error:
            unknown = committing and is_unknown(error)
            self.ledger.note(self.ledger.unknown if unknown else self.ledger.refused, number)
            try:
                self.connection.query("ROLLBACK")
            except MySQLError:
                pass
            raise


class Pinned(Worker):
    """Stays with its node, so that each node has clients whatever happened before: who talks to a node that
    does nothing notices late."""

    def away(self):
        self.connection = None
        time.sleep(0.02)


class Counter(Worker):
    """Counts up a row of its own, through one node or the other."""

    def transfer(self):
        ledger = self.ledger
        try:
            changed = self.connection.query(f"UPDATE counter SET n = n + 1 WHERE id = {self.index}")
            if changed != 1:
                ledger.not_told.append((self.index, f"told of {changed} rows"))
            ledger.counted[self.index] = ledger.counted.get(self.index, 0) + 1
        except OSError:
            ledger.cut_off[self.index] = ledger.cut_off.get(self.index, 0) + 1
            raise
        except MySQLError as error:
            if is_unknown(error) or "(LDB-29)" in str(error):
                ledger.not_told.append((self.index, str(error)))
            raise


def prepare(place):
    """The tables of the transfers, and the counters."""
    def ask():
        connection = connect(place)
        connection.query("CREATE TABLE IF NOT EXISTS account (id INT PRIMARY KEY, balance BIGINT NOT NULL)")
        connection.query("CREATE TABLE IF NOT EXISTS transfer (id BIGINT PRIMARY KEY, source INT, target INT, amount INT)")
        connection.query("CREATE TABLE IF NOT EXISTS counter (id INT PRIMARY KEY, n BIGINT NOT NULL)")
        connection.query("REPLACE INTO counter VALUES " + ",".join(f"({i}, 0)" for i in range(COUNTERS)))
        connection.query("REPLACE INTO account VALUES " + ",".join(f"({i}, 0)" for i in range(ACCOUNTS)))
        connection.close()
    insist(ask)


# A frozen node must find out by itself that it was removed: this long it does nothing.
FROZEN_SECONDS = 2.0
# Nobody gets on for so long: the frozen node may be the only one that has the rows.
ALONE_S = 20.0


def kill_one(cluster, ledger, chooser, fault, gone):
    """One fault; gives what was measured, and the process that is gone."""
    cluster.wait_whole(gone)
    time.sleep(chooser.uniform(0.2, 1.0))
    # A node may have been removed meanwhile: with the other one all rows would be gone.
    removed, nodes = cluster.removed(), cluster.wait_whole(gone)
    victim = chooser.choice(nodes)
    others_removed = lambda: [n for n in cluster.removed()[len(removed):] if n != victim["node_id"]]
    before = len(ledger.commits)
    killed = time.monotonic()
    os.kill(victim["pid"], signal.SIGKILL if fault == "kill" else signal.SIGSTOP)

    def commits():
        """Those after the fault, at the other node."""
        with ledger.lock:
            return [(t, begun) for t, port, begun in ledger.commits[before:] if t > killed and port != port_of(victim)]

    def goes_on():
        # Without the other node the rows are gone, or the frozen node has the only ones and cannot be replaced.
        over = cluster.has_ended() if fault == "kill" else time.monotonic() > killed + ALONE_S
        if over and others_removed():
            if fault == "freeze":
                os.kill(victim["pid"], signal.SIGCONT)
            raise Disturbed(f"the other node was removed in the moment of the {fault} of node {victim['node_id']}")
        return any(begun > killed for _, begun in commits())

    wait_until(f"a transaction that began after the {fault} of node {victim['node_id']} is committed", goes_on, cluster.describe)
    time.sleep(max(0, killed + MEASURED_S - time.monotonic()))
    looked, found = time.monotonic(), commits()
    if fault == "freeze":
        time.sleep(max(0, killed + FROZEN_SECONDS - time.monotonic()))
        os.kill(victim["pid"], signal.SIGCONT)
        # It ends itself, and the next life joins: a full replica that was never removed would show below.
        wait_until("a frozen node finds out that it was removed", lambda: not is_alive(victim["pid"]), cluster.describe)
    after = sorted(t for t, _ in found)
    times = [killed, *after, looked]
    return {
        "node": victim["node_id"],
        "first_ms": (after[0] - killed) * 1000,
        "begun_ms": (min(t for t, begun in found if begun > killed) - killed) * 1000,
        "gap_ms": longest_gap(times) * 1000,
        "gap_at_ms": (max(zip(times, times[1:]), key=lambda pair: pair[1] - pair[0])[0] - killed) * 1000,
        "slowest_ms": max(t - begun for t, begun in found) * 1000,
    }, victim["pid"]


def longest_gap(times):
    return max(b - a for a, b in zip(times, times[1:]))


def own_rows(place, table, keys):
    """Rows by key: a node reads them from its own replica."""
    def ask():
        connection, found = connect(place), []
        for at in range(0, len(keys), KEYS_PER_READ):
            listed = ",".join(map(str, keys[at:at + KEYS_PER_READ]))
            found += connection.query(f"SELECT * FROM {table} WHERE id IN ({listed})")
        connection.close()
        return sorted(found, key=lambda row: int(row[0]))
    return insist(ask)


def check(ledger, ports):
    """What is wrong at the end; nothing if all is well."""
    wrong = []
    transfers = [rows(p, "SELECT id, source, target, amount FROM transfer ORDER BY id") for p in ports]
    accounts = [rows(p, "SELECT id, balance FROM account ORDER BY id") for p in ports]
    if any(t != transfers[0] for t in transfers) or any(a != accounts[0] for a in accounts):
        wrong.append("the nodes give different rows")
    # Also keys that must not be there: a replica may have what its primary has not.
    committed, refused = set(ledger.committed), set(ledger.refused)
    tried = sorted(committed | refused | set(ledger.unknown))
    for port in ports:
        for table, keys, scanned in (("transfer", tried, transfers[0]), ("account", list(range(ACCOUNTS)), accounts[0])):
            own = own_rows(port, table, keys)
            if own != scanned:
                odd = {tuple(r) for r in own} ^ {tuple(r) for r in scanned}
                wrong.append(f"the replica behind port {port} has other rows in {table} than the primaries: "
                             f"{len(odd)} differ, e.g. {min(odd, key=lambda row: int(row[0]))}")
    for index, n in rows(ports[0], "SELECT id, n FROM counter"):
        told, cut_off = ledger.counted.get(int(index), 0), ledger.cut_off.get(int(index), 0)
        unsure = cut_off + sum(at == int(index) for at, _ in ledger.not_told)
        if not told <= int(n) <= told + unsure:
            wrong.append(f"counter {index} is at {n}: {told} answers, {unsure} without one")
    if others := set(ledger.errors) - TEMPORARY - UNKNOWN:
        wrong.append(f"clients got errors that are not temporary: {sorted(others)}")
    there = {int(r[0]) for r in transfers[0]}
    if lost := committed - there:
        wrong.append(f"{len(lost)} acknowledged transfers are lost, e.g. {min(lost)}")
    if ghosts := refused & there:
        wrong.append(f"{len(ghosts)} refused transfers are there, e.g. {min(ghosts)}")
    balances = dict.fromkeys(range(ACCOUNTS), 0)
    for _, source, target, amount in transfers[0]:
        balances[int(source)] -= int(amount)
        balances[int(target)] += int(amount)
    if [[str(k), str(v)] for k, v in balances.items()] != accounts[0]:
        wrong.append("the balances do not follow from the transfers")
    return wrong


def under_load(args, cluster, chooser, seen):
    """The faults that are missing yet; gives the ledger and what is wrong."""
    ports = [args.sql_port, args.sql_port + 1]
    stop, ledger, gone = threading.Event(), Ledger(), []
    prepare(ports[0])
    kind = Worker if args.fault == "kill" else Pinned
    workers = [kind(i + 1, ports, ledger, stop) for i in range(args.threads)]
    workers += [Counter(i, ports, ledger, stop) for i in range(COUNTERS)]
    try:
        for worker in workers:
            worker.start()
        while len(seen) < args.kills:
            with cluster.undisturbed():
                one, pid = kill_one(cluster, ledger, chooser, args.fault, gone)
            gone = [pid]
            seen.append(one)
            print(f"{args.fault} {len(seen)}: node {one['node']}, first commit after {one['first_ms']:.1f} ms, "
                  f"first that began after it {one['begun_ms']:.1f} ms, longest gap {one['gap_ms']:.1f} ms from {one['gap_at_ms']:.0f} ms on, "
                  f"slowest transaction {one['slowest_ms']:.1f} ms", flush=True)
        cluster.wait_whole(gone)
        dead = [w.index for w in workers if not w.is_alive()]
    finally:
        stop.set()
    for worker in workers:
        worker.join(PATIENCE_S)
    stuck = [w.index for w in workers if w.is_alive()]
    cluster.wait_whole(gone)
    wrong = check(ledger, ports)
    if args.fault == "kill" and ledger.not_told:
        wrong.append(f"{len(ledger.not_told)} statements whose outcome could be known were not told it, e.g. {ledger.not_told[0][1]}")
    if dead or stuck:
        wrong.append(f"the test's own threads: {dead} ended early, {stuck} never ended")
    return ledger, wrong


def clusters(args, chooser, seen):
    """As `under_load`, in a new cluster when the rows of one are gone."""
    options = ["--thread-config", args.thread_config] if args.thread_config else []
    for attempt in range(1, ATTEMPTS + 1):
        with Cluster(args.binary, args.sql_port, *options) as cluster:
            try:
                return under_load(args, cluster, chooser, seen)
            except Disturbed as why:
                print(f"kill: goes on in a new cluster: {why}", flush=True)
                if attempt == ATTEMPTS:
                    raise


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--fault", choices=["kill", "freeze"], default="kill",
                        help="SIGKILL; or SIGSTOP, and SIGCONT two seconds later")
    parser.add_argument("--record", help="a file for the figures, as JSON (see scripts/draw_kills.py)")
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--thread-config", help="the nodes' threads, as latsdb start takes them")
    parser.add_argument("--sql-port", type=int, default=14306)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    print(f"kill: seed {args.seed}, {args.kills} kills", flush=True)
    # A collection of hundreds of thousands of notes takes tens of milliseconds, in which no client gets on.
    gc.disable()
    seen = []
    ledger, wrong = clusters(args, random.Random(args.seed), seen)
    whole = longest_gap(sorted(t for t, _, _ in ledger.commits)) * 1000
    if args.record:
        with open(args.record, "w", encoding="utf8") as file:
            json.dump({"fault": args.fault, "seen": seen}, file, indent=1)
    first, begun, longest, slowest = (sorted(one[what] for one in seen)
                                      for what in ("first_ms", "begun_ms", "gap_ms", "slowest_ms"))
    within = sum(f <= 50 for f in first)
    print(f"kill: {len(ledger.committed)} committed, {len(ledger.refused)} refused, "
          f"{len(ledger.unknown)} cut off while committing; errors {ledger.errors}")
    print(f"kill: counted {sum(ledger.counted.values())} times, {sum(ledger.cut_off.values())} answers lost with connections, "
          f"{len(ledger.not_told)} outcomes not told")
    print(f"kill: first commit after {first[len(first) // 2]:.1f} ms median, {first[-1]:.1f} ms worst, "
          f"{within} of {len(first)} within 50 ms; first that began after the kill "
          f"{begun[len(begun) // 2]:.1f} ms median, {begun[-1]:.1f} ms worst")
    print(f"kill: slowest transaction at the other node {slowest[len(slowest) // 2]:.1f} ms median, "
          f"{slowest[len(slowest) * 99 // 100]:.1f} ms 99%, {slowest[-1]:.1f} ms worst")
    print(f"kill: longest gap {longest[len(longest) // 2]:.1f} ms median, {longest[-1]:.1f} ms worst; "
          f"longest time without any commit in the whole run {whole:.1f} ms")
    for what in wrong:
        print(f"kill: WRONG: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
