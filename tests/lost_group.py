#!/usr/bin/env python3
"""Kills both nodes of one of two node groups: their rows are refused clearly, all others are served, also when
the two nodes are back, without rows. How soon is printed.

Clients count up rows one by one, read them, and change pairs of rows, through the nodes of the group that lives.
Afterwards each row of that group must hold what was acknowledged. Statements that need the whole table are refused,
definitions can only be dropped, and `latsdb status` says what has happened. If another node is removed besides, because it got no
processor time for a lease, all begins once more.

lost_group.py [--binary target/release/latsdb] [--sql-port 14606]
"""

import argparse
import os
import random
import signal
import sys
import threading
import time

from cluster import PATIENCE_S, TEMPORARY, UNKNOWN, Cluster, Disturbed, connect, port_of, repeated, wait_until
from minimysql import MySQLError

ROWS = 200
LOST = 1296  # Got error from the cluster: ... (LDB-13)
# So many statements are done, and refused, when the loss is known.
SOME = 200


def is_lost(error):
    return error.number == LOST and "LDB-13" in str(error)


class Client(threading.Thread):
    """Counts rows up, and notes what was acknowledged and how long each answer took."""

    def __init__(self, index, port, stop):
        super().__init__(daemon=True)
        self.stop, self.random = stop, random.Random(index)
        self.connection = connect(port)
        self.own = range(index, ROWS, 4)
        self.acknowledged = {row: 0 for row in self.own}
        self.answers = []  # (asked at, answered at, error number or 0)
        self.failures = []

    def ask(self, text):
        asked = time.monotonic()
        try:
            self.connection.query(text)
            self.answers.append((asked, time.monotonic(), 0))
            return True
        except MySQLError as error:
            self.answers.append((asked, time.monotonic(), error.number))
            if not is_lost(error) and error.number not in TEMPORARY | UNKNOWN:
                self.failures.append(f"{text}: {error}")
            return False

    def count(self, row):
        if self.ask(f"UPDATE t SET n = n + 1 WHERE id = {row}"):
            self.acknowledged[row] += 1

    def count_two(self, first, second):
        self.ask("BEGIN")
        done = all(self.ask(f"UPDATE t SET n = n + 1 WHERE id = {row}") for row in (first, second))
        if done and self.ask("COMMIT"):
            self.acknowledged[first] += 1
            self.acknowledged[second] += 1
        else:
            self.ask("ROLLBACK")

    def run(self):
        try:
            while not self.stop.is_set():
                row = self.random.choice(self.own)
                kind = self.random.random()
                if kind < 0.4:
                    self.count(row)
                elif kind < 0.7:
                    self.ask(f"SELECT n FROM t WHERE id = {row}")
                elif kind < 0.9:
                    self.count_two(*self.random.sample(self.own, 2))
                else:
                    self.ask("SELECT SUM(n) FROM t")
        except Exception as error:  # A thread that dies must not look as if it had done its work.
            self.failures.append(repr(error))


def check(good, what):
    if not good:
        raise SystemExit(f"lost-group: FAILED: {what}")
    print(f"lost-group: ok   {what}", flush=True)


def refused(connection, text, wanted, what):
    asked = time.monotonic()
    try:
        connection.query(text)
        error = None
    except MySQLError as got:
        error = got
    took = time.monotonic() - asked
    check(error is not None and wanted(error), f"{what}: {error} ({took * 1000:.0f} ms)")


def lose(cluster, clients, lost):
    """Kills the nodes of a group, and gives when that was, and since when the loss was known."""
    for node in lost:
        os.kill(node["pid"], signal.SIGKILL)
    killed = time.monotonic()
    wait_until("the group is called lost", lambda: cluster.status()["lost_node_groups"] == [1], cluster.describe)
    # Clients are told by those whom they are connected to.
    for client in clients:
        at = len(client.answers)
        wait_until("each client is told", lambda c=client, at=at: any(a[2] == LOST for a in c.answers[at:]) or not c.is_alive(), cluster.describe)
    return killed, time.monotonic()


def counted(clients, since):
    """Statements that were asked later, and done, refused, or none of these."""
    late = [number for client in clients for asked, _, number in list(client.answers) if asked > since]
    return late.count(0), late.count(LOST), len(late)


def under_load(cluster, clients, stop, lost):
    removed = cluster.removed()
    for client in clients:
        client.start()
    try:
        wait_until("all clients get on", lambda: all(len(c.answers) > 50 or not c.is_alive() for c in clients), cluster.describe)
        killed, known = lose(cluster, clients, lost)

        def is_settled():
            served, told, _ = counted(clients, known)
            states = [n["state"] for n in cluster.nodes() if n["node_group"] == 1]
            return served > SOME and told > SOME and states == ["syncing", "syncing"] and told_in_log(cluster) > 0

        wait_until(f"{SOME} statements are done and {SOME} refused, the nodes are back, and the log says that their rows are gone",
                   lambda: is_settled() or not all(c.is_alive() for c in clients), cluster.describe)
    finally:
        stop.set()
    for client in clients:
        client.join(PATIENCE_S)
    failures = [f for client in clients for f in client.failures]
    served, told, count = counted(clients, known)
    if (failures or served + told < count) and cluster.removed() != removed:
        raise Disturbed(f"nodes {cluster.removed()[len(removed):]} were removed besides")
    check(not failures and not any(client.is_alive() for client in clients), f"other errors: {failures[:3]}")
    check(served + told == count, f"then {served} statements were done, {told} refused; temporary errors: {count - served - told}")
    answers = [a for client in clients for a in client.answers]
    longest = max(answered - asked for asked, answered, _ in answers)
    first = min(answered for asked, answered, number in answers if number == LOST)
    print(f"lost-group: the first refusal came {1000 * (first - killed):.0f} ms after the kill, all knew {1000 * (known - killed):.0f} ms after; "
          f"the longest answer took {1000 * longest:.0f} ms")


def told_in_log(cluster):
    return cluster.log().count("all nodes of a node group have died (3, 4)")


def lose_a_group(cluster):
    nodes = cluster.nodes()
    lost = [n for n in nodes if n["node_group"] == 1]
    ports = [port_of(n) for n in nodes if n["node_group"] == 0]
    session = connect(ports[0])
    session.query("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)")
    session.query("CREATE TABLE other (id INT PRIMARY KEY)")
    session.query("INSERT INTO t VALUES " + ",".join(f"({row}, 0)" for row in range(ROWS + 20)))
    opened = connect(ports[1])
    opened.query("BEGIN")
    opened.query(f"SELECT * FROM t WHERE id >= {ROWS} FOR SHARE")
    stop = threading.Event()
    clients = [Client(index, ports[index % 2], stop) for index in range(4)]
    under_load(cluster, clients, stop, lost)

    refused(opened, "COMMIT", lambda e: e.number == 1213, "a transaction with locks there is rolled back")
    refused(session, "SELECT COUNT(*) FROM t", is_lost, "a scan")
    refused(session, "CREATE TABLE more (id INT PRIMARY KEY)", lambda e: e.number == LOST, "CREATE TABLE")
    refused(session, "CREATE UNIQUE INDEX by_n ON t (n)", lambda e: e.number == LOST, "CREATE INDEX")
    session.query("DROP TABLE other")
    kept = 0
    for row in range(ROWS):
        try:
            found = session.query(f"SELECT n FROM t WHERE id = {row}")
        except MySQLError as error:
            if not is_lost(error):
                raise
            continue
        kept += 1
        wanted = clients[row % 4].acknowledged[row]
        if [int(n) for (n,) in found] != [wanted]:
            raise SystemExit(f"lost-group: FAILED: row {row}: {found} instead of {wanted}")
    check(ROWS / 4 < kept < ROWS * 3 / 4, f"{kept} of {ROWS} rows are there, as they were acknowledged")
    check(cluster.status()["lost_node_groups"] == [1], "status --json names the group")
    check("node group 1 IS LOST" in cluster.run("status"), "so does the table")
    states = [n["state"] for n in cluster.nodes() if n["node_group"] == 1]
    check(states == ["syncing", "syncing"], f"its nodes are back, and never whole: {states}")
    check(told_in_log(cluster) == 1, "the log says so, once")


def once(args):
    with Cluster(args.binary, args.sql_port, "--nodes", "4") as cluster, cluster.undisturbed():
        lose_a_group(cluster)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=14606)
    args = parser.parse_args()
    return repeated("lost-group", lambda: once(args))


if __name__ == "__main__":
    sys.exit(main())
