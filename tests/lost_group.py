#!/usr/bin/env python3
"""Kills both nodes of one of two node groups: their rows are refused soon and clearly, all others are served, also when
the two nodes are back, without rows.

Clients count up rows one by one, read them, and change pairs of rows, through the nodes of the group that lives.
Afterwards each row of that group must hold what was acknowledged. Statements that need the whole table are refused,
definitions can only be dropped, and `latsdb status` says what has happened.

lost_group.py [--binary target/release/latsdb] [--sql-port 14606]
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from minimysql import Connection, MySQLError

ROWS = 200
LOST = 1296  # Got error from the cluster: ... (LDB-13)
TEMPORARY = {1205, 1213, 1297}
# Detection of two deaths, two views, and a machine that is busy with other things.
ANSWER_S = 1.5


def is_lost(error):
    return error.number == LOST and "LDB-13" in str(error)


class Client(threading.Thread):
    """Counts rows up, and notes what was acknowledged and how long each answer took."""

    def __init__(self, index, port, stop):
        super().__init__(daemon=True)
        self.stop, self.random = stop, random.Random(index)
        self.connection = Connection(port, "test", timeout=30)
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
            if not is_lost(error) and error.number not in TEMPORARY:
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
    check(error is not None and wanted(error) and took < ANSWER_S, f"{what}: {error} ({took * 1000:.0f} ms)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/release/latsdb")
    parser.add_argument("--sql-port", type=int, default=14606)
    arguments = parser.parse_args()
    binary = os.path.abspath(arguments.binary)
    directory = os.path.join(tempfile.mkdtemp(), "data")
    start = [binary, "start", "--data-dir", directory, "--sql-port", str(arguments.sql_port), "--nodes", "4",
             "--ephemeral", "--detach"]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, timeout=60)
    try:
        lose_a_group(binary, directory)
    finally:
        subprocess.run([binary, "stop", "--data-dir", directory], check=False, stdout=subprocess.DEVNULL, timeout=60)


def status(binary, directory, *more):
    command = [binary, "status", "--data-dir", directory, *more]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def lose_a_group(binary, directory):
    nodes = json.loads(status(binary, directory, "--json"))["nodes"]
    lost = [n for n in nodes if n["node_group"] == 1]
    ports = [int(n["sql_address"].rsplit(":", 1)[1]) for n in nodes if n["node_group"] == 0]
    session = Connection(ports[0], "", timeout=30)
    session.query("CREATE DATABASE IF NOT EXISTS test")
    session.query("USE test")
    session.query("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)")
    session.query("CREATE TABLE other (id INT PRIMARY KEY)")
    session.query("INSERT INTO t VALUES " + ",".join(f"({row}, 0)" for row in range(ROWS + 20)))
    opened = Connection(ports[1], "test", timeout=30)
    opened.query("BEGIN")
    opened.query(f"SELECT * FROM t WHERE id >= {ROWS} FOR SHARE")
    stop = threading.Event()
    clients = [Client(index, ports[index % 2], stop) for index in range(4)]
    [client.start() for client in clients]
    time.sleep(1)
    for node in lost:
        os.kill(node["pid"], signal.SIGKILL)
    killed = time.monotonic()
    # Longer than the supervisor waits before it says that rows are gone.
    time.sleep(8)
    stop.set()
    [client.join(30) for client in clients]

    answers = [a for client in clients for a in client.answers]
    longest = max(answered - asked for asked, answered, _ in answers)
    failures = [f for client in clients for f in client.failures]
    check(not failures and not any(client.is_alive() for client in clients), f"other errors: {failures[:3]}")
    check(longest < ANSWER_S, f"the longest answer took {longest * 1000:.0f} ms")
    late = [number for asked, _, number in answers if asked > killed + ANSWER_S]
    served, told = late.count(0), late.count(LOST)
    check(served > 100 and told > 100, f"then {served} statements were done, {told} refused")
    check(served + told == len(late), f"no temporary errors then: {len(late) - served - told}")
    first = min(answered for asked, answered, number in answers if number == LOST)
    print(f"lost-group: the first refusal came {1000 * (first - killed):.0f} ms after the kill")

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
    check(json.loads(status(binary, directory, "--json"))["lost_node_groups"] == [1], "status --json names the group")
    check("node group 1 IS LOST" in status(binary, directory), "so does the table")
    nodes = json.loads(status(binary, directory, "--json"))["nodes"]
    states = [n["state"] for n in nodes if n["node_group"] == 1]
    check(states == ["syncing", "syncing"], f"its nodes are back, and never whole: {states}")
    with open(directory + ".log", encoding="utf8") as log:
        check(log.read().count("all nodes of a node group have died (3, 4)") == 1, "the log says so, once")


if __name__ == "__main__":
    sys.exit(main())
