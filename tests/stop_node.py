#!/usr/bin/env python3
"""Stops nodes of a cluster under load, one after the other, and starts them again: no transaction may fail.

Clients move money between accounts through both nodes (see kill.py). A client may be sent away between two
transactions, when its node is to stop; whatever has begun must be committed. Afterwards every node is primary of
its part again, also when one was killed.

stop_node.py [--binary target/release/latsdb] [--rounds 3] [--sql-port 14406]
"""

import argparse
import os
import sys
import threading
import time

from kill import (Cluster, Connection, Ledger, MySQLError, Worker, check, connect, longest_gap, prepare,
                  wait_until)


class Guest(Worker):
    """Goes elsewhere when it is told to, between two transactions; keeps what else went wrong."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.failures, self.moved = [], 0

    def work(self):
        while not self.stop.is_set():
            try:
                if self.connection is None:
                    self.connection = connect(self.port, 10)
                self.connection.query("BEGIN")
            except (OSError, MySQLError) as error:
                self.moved += 1
                if isinstance(error, MySQLError) and error.number != 1053:
                    self.failures.append(f"BEGIN: {error}")
                self.away()
                continue
            try:
                self.transfer()
            except (OSError, MySQLError) as error:
                self.failures.append(str(error))
                self.away()


class Scanner(Guest):
    """Reads a whole table, again and again, while rows come and primaries move."""

    def work(self):
        self.scans = 0
        while not self.stop.is_set():
            try:
                if self.connection is None:
                    self.connection = connect(self.port, 10)
                rows = self.connection.query("SELECT id, pad FROM big")
                self.scans += 1
                if len(rows) != BIG or len({row[0] for row in rows}) != BIG:
                    self.failures.append(f"a scan gave {len(rows)} rows of {BIG}")
            except (OSError, MySQLError) as error:
                self.moved += 1
                if isinstance(error, MySQLError) and error.number != 1053:
                    self.failures.append(f"scan: {error}")
                self.away()


BIG = 20_000


def fill_big(connection):
    connection.query("CREATE TABLE big (id INT PRIMARY KEY, pad CHAR(100))")
    for at in range(0, BIG, 2000):
        connection.query("INSERT INTO big VALUES " + ",".join(f"({at + i}, 'x{i}')" for i in range(2000)))


def primaries(cluster):
    return [node["primary_slots"] for node in cluster.nodes()]


def under_load(ledger, name, work):
    """Does something, and says how long nobody got a commit meanwhile."""
    began = time.monotonic()
    work()
    took = time.monotonic() - began
    time.sleep(0.3)
    with ledger.lock:
        commits = sorted(t for t, _, _ in ledger.commits if t > began - 0.5)
        slowest = max(t - begun for t, _, begun in ledger.commits if t > began)
    print(f"stop-node: {name} took {took:.2f} s; longest gap {longest_gap(commits) * 1000:.1f} ms, "
          f"slowest transaction {slowest * 1000:.1f} ms", flush=True)


def stop_again_and_again(cluster, ledger, rounds):
    balanced = lambda: primaries(cluster) == [1, 1]
    for _ in range(rounds):
        for node in ("1", "2"):
            under_load(ledger, f"restart of node {node}", lambda: cluster.run("stop-node", node, "--restart"))
            wait_until(balanced, 20, "primaries did not come back")
    under_load(ledger, "stop of node 2", lambda: cluster.run("stop-node", "2"))
    assert primaries(cluster) == [2, 0], primaries(cluster)
    time.sleep(1)
    assert [n["state"] for n in cluster.nodes()] == ["serving", "down"], "the stopped node came back by itself"
    try:
        cluster.run("stop-node", "1")
        raise AssertionError("the last replica was stopped")
    except RuntimeError as error:
        assert "only full replica" in str(error), error
    under_load(ledger, "stop of the witness", lambda: cluster.run("stop-node", "3", "--restart"))
    cluster.run("start-node", "2")
    wait_until(balanced, 20, "primaries did not come back to the node that was started again")
    # Its former process may still be on its way out.
    cluster.run("stop-node", "2")
    cluster.run("start-node", "2")
    wait_until(balanced, 20, "primaries did not come back to the node that was started at once")


def the_last_one_stays(cluster, ports):
    """The replica that was to stay dies while the other one is on its way out."""
    nodes = cluster.wait_whole()
    open_one = connect(ports[0], 20)
    open_one.query("BEGIN")
    open_one.query("INSERT INTO transfer VALUES (-1, 0, 0, 0)")
    stopping = cluster.popen("stop-node", "1")
    wait_until(lambda: cluster.nodes()[0]["state"] == "stopping", 10, "the node does not stop")
    os.kill(nodes[1]["pid"], 9)
    said = stopping.communicate(timeout=30)[1]
    assert stopping.returncode != 0 and "only full replica" in said, said
    wait_until(lambda: primaries(cluster)[0] == 2, 10, "the last replica is not primary")
    again = connect(ports[0], 10)
    again.query("INSERT INTO transfer VALUES (-2, 0, 0, 0)")
    open_one.query("COMMIT")
    assert again.query("DELETE FROM transfer WHERE id < 0") == 2
    cluster.wait_whole()
    wait_until(lambda: primaries(cluster) == [1, 1], 20, "primaries did not come back to the node that had died")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--sql-port", type=int, default=14406)
    args = parser.parse_args()
    cluster = Cluster(args.binary, args.sql_port)
    ports = [args.sql_port, args.sql_port + 1]
    stop, ledger = threading.Event(), Ledger()
    try:
        setup = Connection(ports[0], "test")
        prepare(setup)
        fill_big(setup)
        setup.close()
        workers = [Guest(i + 1, ports, ledger, stop) for i in range(args.threads)]
        scanners = [Scanner(50 + i, ports, ledger, stop) for i in range(2)]
        workers += scanners
        for worker in workers:
            worker.start()
        time.sleep(0.5)
        stop_again_and_again(cluster, ledger, args.rounds)
        victim = cluster.wait_whole()[0]
        stop.set()
        for worker in workers:
            worker.join(20)
            assert not worker.is_alive(), "a client hangs"
        failures = [text for worker in workers for text in worker.failures]
        failures += [worker.failure for worker in workers if worker.failure]
        wrong = check(ledger, ports)
        if failures:
            wrong.append(f"{len(failures)} transactions failed, e.g. {failures[0]}")
        if any(s.scans < 10 for s in scanners):
            wrong.append(f"too few scans to say anything: {[s.scans for s in scanners]}")
        if ledger.unknown or ledger.refused:
            wrong.append(f"{len(ledger.refused)} transfers refused, {len(ledger.unknown)} cut off")
        os.kill(victim["pid"], 9)
        wait_until(lambda: primaries(cluster) == [0, 2], 20, "the killed node is still primary")
        wait_until(lambda: primaries(cluster) == [1, 1], 20, "primaries did not come back after a kill")
        the_last_one_stays(cluster, ports)
    finally:
        stop.set()
        cluster.run("stop")
    print(f"stop-node: {len(ledger.committed)} committed, {sum(s.scans for s in scanners)} scans, "
          f"{sum(w.moved for w in workers)} times sent elsewhere, {len(failures)} failed")
    for what in wrong:
        print(f"stop-node: WRONG: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
