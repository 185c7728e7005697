#!/usr/bin/env python3
"""Stops nodes of a cluster under load, one after the other, and starts them again: no transaction may fail.

Clients move money between accounts through both nodes (see kill.py). A client may be sent away between two
transactions, when its node is to stop; whatever has begun must be committed. Afterwards every node is primary of
its part again, also when one was killed.

If a node gets no processor time for a lease, it is removed, or serves nothing for a moment, and transactions fail that have nothing to
do with stopping: then what was done to the node is done once more.

stop_node.py [--binary target/release/latsdb] [--rounds 3] [--sql-port 14406]
"""

import argparse
import contextlib
import os
import signal
import sys
import threading
import time

from cluster import (ATTEMPTS, PATIENCE_S, Cluster, CommandFailed, Disturbed, Waits, connect, insist, is_temporary, repeated, rows,
                     wait_until)
from kill import Ledger, Worker, check, longest_gap, prepare
from minimysql import MySQLError

BIG = 20_000
SCANS = 10
# A transfer may have to wait for others; when nobody gets on it fails in the end.
LOCK_WAIT_S = 60


class Guest(Worker):
    """Goes elsewhere when it is told to, between two transactions; keeps what else went wrong."""

    patience_s = PATIENCE_S

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.failures, self.moved = [], 0

    def arrive(self):
        if self.connection is None:
            self.connection = connect(self.port, self.patience_s)
            self.connection.query(f"SET innodb_lock_wait_timeout = {LOCK_WAIT_S}")

    def work(self):
        while not self.stop.is_set():
            try:
                self.arrive()
                self.connection.query("BEGIN")
            except (OSError, MySQLError) as error:
                self.moved += 1
                if isinstance(error, MySQLError) and error.number != 1053:
                    self.failures.append(f"BEGIN: {error}")
                self.away()
                continue
            begun, port = time.monotonic(), self.port
            try:
                self.transfer()
            except (OSError, MySQLError) as error:
                took, now = 1000 * (time.monotonic() - begun), time.strftime("%H:%M:%S", time.gmtime())
                self.failures.append(f"a transfer through port {port}, at {now}, after {took:.1f} ms: {error}")
                self.away()


class Scanner(Guest):
    """Reads a whole table, again and again, while rows come and primaries move."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.scans, self.wrong = 0, []

    def work(self):
        while not self.stop.is_set():
            try:
                self.arrive()
                rows = self.connection.query("SELECT id, pad FROM big")
                self.scans += 1
                if len(rows) != BIG or len({row[0] for row in rows}) != BIG:
                    self.wrong.append(f"a scan gave {len(rows)} rows of {BIG}")
            except (OSError, MySQLError) as error:
                self.moved += 1
                if isinstance(error, MySQLError) and error.number != 1053:
                    self.failures.append(f"scan: {error}")
                self.away()


class Alone(Guest):
    """Inserts rows that commit by themselves, without pause, so that a statement is often on its way when its node is to stop. What
    it is told of each must be true: after 1053 the row is not there, and no outcome is unknown."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.made, self.refused, self.unknown = set(), set(), []

    def work(self):
        while not self.stop.is_set():
            self.next += 1
            try:
                self.arrive()
            except (OSError, MySQLError):
                self.away()
                continue
            try:
                self.connection.query(f"INSERT INTO alone VALUES ({self.next})")
                self.made.add(self.next)
            except MySQLError as error:
                if error.number == 1053 and "was not run" in str(error):
                    self.moved += 1
                    self.refused.add(self.next)
                elif error.number == 1053:
                    self.unknown.append(f"an INSERT through port {self.port}: {error}")
                else:
                    self.failures.append(f"an INSERT through port {self.port}: {error}")
                self.away()
            except OSError as error:
                self.unknown.append(f"an INSERT through port {self.port}: {error}")
                self.away()


def check_alone(port, workers):
    """Who was told that nothing was done, and who was not told anything."""
    there = {int(row[0]) for row in rows(port, "SELECT n FROM alone")}
    wrong = []
    for worker in workers:
        wrong += [f"{text}: its outcome is unknown" for text in worker.unknown]
        if done := worker.refused & there:
            wrong.append(f"rows are there although their INSERTs were answered with 1053: {sorted(done)}")
        if lost := worker.made - there:
            wrong.append(f"rows are not there although they were committed: {sorted(lost)[:9]}")
    return wrong


def fill_big(connection):
    connection.query("CREATE TABLE IF NOT EXISTS alone (n INT PRIMARY KEY)")
    connection.query("CREATE TABLE IF NOT EXISTS big (id INT PRIMARY KEY, pad CHAR(100))")
    for at in range(0, BIG, 2000):
        connection.query("REPLACE INTO big VALUES " + ",".join(f"({at + i}, 'x{i}')" for i in range(2000)))


def balanced(cluster):
    """Until all nodes are there, and each is primary of its part; gives the data nodes."""
    def holds():
        nodes = cluster.whole()
        return nodes if nodes and [n["primary_slots"] for n in nodes] == [1, 1] else None
    return wait_until("each node is primary of its part", holds, cluster.describe)[0]


class Watch:
    """Says whether clients have failed."""

    def __init__(self, cluster, workers):
        self.cluster, self.workers, self.waits = cluster, workers, Waits(cluster)
        self.waits.start()
        self.settled = self.now()

    def now(self):
        """What has happened by now: when it is, who was removed, how often each client has failed."""
        return time.monotonic(), self.cluster.removed(), [len(worker.failures) for worker in self.workers]

    def check_calm(self, why):
        """Something has failed: is the machine to blame?"""
        since, removed, _ = self.settled
        if self.cluster.was_disturbed(removed):
            raise Disturbed(f"{why} (removed: {self.cluster.removed()[len(removed):]})")
        starved = self.waits.since(since)
        if starved and "(LDB-10)" in str(why):
            raise Disturbed(f"{why} (processes that waited for a processor: {starved})")

    @contextlib.contextmanager
    def nobody_fails(self, name):
        """Whoever fails in here, or between here and the last time, shows a mistake. If a node was removed that had not been told to
        stop, or has got no processor, what was done is to be done once more."""
        try:
            # One that was removed a moment ago is not there yet.
            balanced(self.cluster)
            yield
        except Exception as error:
            if is_temporary(error):
                self.check_calm(error)
            raise
        now = self.now()
        parts = zip(self.workers, self.settled[2], now[2])
        if failures := [text for worker, before, after in parts for text in worker.failures[before:after]]:
            # The one that says least of the machine.
            self.check_calm(min(failures, key=lambda text: "(LDB-10)" in text))
        assert not failures, f"{name}: {len(failures)} transactions failed: {failures}"
        self.settled = now

    def begin_again(self):
        """What has failed by now says nothing."""
        for node in self.cluster.nodes():
            if node["state"] == "down":
                with contextlib.suppress(CommandFailed):
                    self.cluster.run("start-node", str(node["node_id"]))
        balanced(self.cluster)
        self.settled = self.now()


def under_load(cluster, ledger, name, work):
    """Does something, and says how long nobody got a commit meanwhile."""
    began = time.monotonic()
    work()
    done = time.monotonic()

    def goes_on():
        with ledger.lock:
            return any(begun > done for _, _, begun in ledger.commits[-100:])

    wait_until(f"a transaction is committed that began after the {name}", goes_on, cluster.describe)
    with ledger.lock:
        commits = sorted(t for t, _, _ in ledger.commits if t > began - 0.5)
        slowest = max(t - begun for t, _, begun in ledger.commits if t > began)
    print(f"stop-node: {name} took {done - began:.2f} s; longest gap {longest_gap(commits) * 1000:.1f} ms, "
          f"slowest transaction {slowest * 1000:.1f} ms", flush=True)


def restart(cluster, ledger, watch, node):
    with watch.nobody_fails(f"restart of node {node}"):
        under_load(cluster, ledger, f"restart of node {node}", lambda: cluster.run("stop-node", node, "--restart"))
        balanced(cluster)


def one_is_down(cluster, ledger, watch):
    """While one node is down the other one is needed."""
    with watch.nobody_fails("stop of node 2"):
        under_load(cluster, ledger, "stop of node 2", lambda: cluster.run("stop-node", "2"))
        time.sleep(1)
        states = [(n["state"], n["primary_slots"]) for n in cluster.nodes()]
        assert states == [("serving", 2), ("down", 0)], f"the stopped node came back by itself: {states}"
        try:
            cluster.run("stop-node", "1")
            raise AssertionError("the last replica was stopped")
        except CommandFailed as error:
            assert "only full replica" in str(error), error
        under_load(cluster, ledger, "stop of the witness", lambda: cluster.run("stop-node", "3", "--restart"))
        cluster.run("start-node", "2")
        balanced(cluster)
        # Its former process may still be on its way out.
        cluster.run("stop-node", "2")
        cluster.run("start-node", "2")
        balanced(cluster)


def everybody_scans(cluster, watch):
    scanners = [w for w in watch.workers if isinstance(w, Scanner)]
    with watch.nobody_fails("the end"):
        wait_until(f"{SCANS} scans of each scanner", lambda: all(s.scans >= SCANS for s in scanners), cluster.describe)


def stop_again_and_again(cluster, ledger, watch, rounds):
    steps = [lambda node=node: restart(cluster, ledger, watch, node) for _ in range(rounds) for node in ("1", "2")]
    for step in steps + [lambda: one_is_down(cluster, ledger, watch), lambda: everybody_scans(cluster, watch)]:
        for attempt in range(ATTEMPTS):
            try:
                step()
                break
            except Disturbed as why:
                if attempt + 1 == ATTEMPTS:
                    raise
                print(f"stop-node: once more: {why}", flush=True)
                watch.begin_again()


def a_node_is_killed(cluster):
    victim = balanced(cluster)[0]["pid"]
    os.kill(victim, signal.SIGKILL)
    cluster.wait_whole([victim])
    balanced(cluster)


@contextlib.contextmanager
def nobody_starts_again(cluster):
    """The supervisor stands still meanwhile."""
    supervisor = cluster.processes()[1]
    os.kill(supervisor, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(supervisor, signal.SIGCONT)


def the_last_one_stays(cluster, ports):
    """The replica that was to stay dies while the other one is on its way out."""
    balanced(cluster)
    rows(ports[0], "DELETE FROM transfer WHERE id < 0")
    open_one = connect(ports[0])
    open_one.query("BEGIN")
    open_one.query("INSERT INTO transfer VALUES (-1, 0, 0, 0)")
    stopping = cluster.popen("stop-node", "1")
    wait_until("node 1 is on its way out", lambda: cluster.nodes()[0]["state"] == "stopping", cluster.describe)
    victim = cluster.nodes()[1]["pid"]
    # Until it is known that node 1 is the last one.
    with nobody_starts_again(cluster):
        os.kill(victim, signal.SIGKILL)
        said = stopping.communicate(timeout=PATIENCE_S)[1]
    assert stopping.returncode != 0 and "only full replica" in said, said
    rows(ports[0], "REPLACE INTO transfer VALUES (-2, 0, 0, 0)")
    open_one.query("COMMIT")
    assert connect(ports[0]).query("DELETE FROM transfer WHERE id < 0") == 2
    cluster.wait_whole([victim])
    balanced(cluster)


def once(args):
    stop, ledger = threading.Event(), Ledger()
    ports = [args.sql_port, args.sql_port + 1]
    workers = [Guest(i + 1, ports, ledger, stop) for i in range(args.threads)]
    scanners = [Scanner(50 + i, ports, ledger, stop) for i in range(2)]
    singles = [Alone(70 + i, ports, ledger, stop) for i in range(2)]
    workers += scanners + singles
    with Cluster(args.binary, args.sql_port) as cluster:
        prepare(ports[0])
        insist(lambda: fill_big(connect(ports[0])))
        watch = Watch(cluster, workers)
        try:
            for worker in workers:
                worker.start()
            wait_until("all clients get on", lambda: len(ledger.commits) > args.threads and all(s.scans for s in scanners),
                       cluster.describe)
            stop_again_and_again(cluster, ledger, watch, args.rounds)
        finally:
            stop.set()
            watch.waits.over.set()
        for worker in workers:
            worker.join(PATIENCE_S)
            assert not worker.is_alive(), "a client hangs"
        wrong = [f"a client has ended: {worker.failure}" for worker in workers if worker.failure]
        wrong += [text for scanner in scanners for text in scanner.wrong] + check(ledger, ports)
        wrong += check_alone(ports[0], singles)
        with cluster.undisturbed():
            cluster.at_last("stop-node", lambda: a_node_is_killed(cluster))
            cluster.at_last("stop-node", lambda: the_last_one_stays(cluster, ports))
    print(f"stop-node: {len(ledger.committed)} committed, {sum(s.scans for s in scanners)} scans, "
          f"{sum(w.moved for w in workers)} times sent elsewhere ({sum(len(w.refused) for w in singles)} statements on their way, none done), {len(ledger.refused)} refused, {len(ledger.unknown)} cut off; "
          f"{len(watch.waits.starved)} times a node waited long for a processor")
    for what in wrong:
        print(f"stop-node: WRONG: {what}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--sql-port", type=int, default=14406)
    args = parser.parse_args()
    return repeated("stop-node", lambda: once(args))


if __name__ == "__main__":
    sys.exit(main())
