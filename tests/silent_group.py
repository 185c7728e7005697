#!/usr/bin/env python3
"""Both nodes of one of two node groups fall silent, one after the other, and nothing proves that they have died.

Each node is in a network namespace of its own (see partition.py, whose cluster this is). First both are cut off and come
back: what needs their rows is refused meanwhile, soon and with a temporary error, and nothing is lost. Then their power
is cut: the same, until a person declares the last one dead; then its rows are lost, and the others' are there.

Clients count up rows one by one, and change pairs of rows, through the nodes of the group that stays. Needs root, `ip`
and `nft`; says so and ends with 77 if it may not make namespaces here.

silent_group.py [--binary target/release/latsdb]
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from minimysql import Connection, MySQLError
from partition import SKIPPED, Cluster, Net, address, apart

NODES, LEFT, SILENT = (1, 2, 3, 4), (1, 2), (4, 3)
ROWS = 200
LOST, TEMPORARY = 1296, {1205, 1213, 1297}
# Two leases until a node is called silent, and one for each that is removed before; and a busy machine.
NOTICED_S = 3.0
# A read asks the silent node itself before it is refused.
REFUSED_S = 1.0
# Until it is noticed, and a client is told that the outcome of its commit is not known.
ANSWERED_S = 5.0
# What takes longer is shown.
SLOW_S = 1.5


def is_silent(error):
    return error.number == 1297 and "LDB-14" in str(error)


class Client(threading.Thread):
    """Counts rows up, and notes what became of it and how long each answer took."""

    def __init__(self, index, stop):
        super().__init__(daemon=True)
        self.stop, self.random = stop, random.Random(index)
        self.connection = connect(LEFT[index % 2])
        self.own = range(index, ROWS, 4)
        self.counts = {row: 0 for row in self.own}
        # Rows with a change of which nobody knows whether it was made.
        self.unsure = set()
        self.answers = []  # (asked at, answered at, error or none)
        self.failures = []

    def ask(self, text, rows=()):
        asked, error = time.monotonic(), None
        try:
            self.connection.query(text)
        except MySQLError as got:
            error = got
            if got.number != LOST and got.number not in TEMPORARY:
                self.failures.append(f"{text}: {got}")
            if "outcome" in str(got):
                self.unsure.update(rows)
        self.answers.append((asked, time.monotonic(), error))
        if time.monotonic() - asked > SLOW_S:
            print(f"silent-group: {text}: {error} ({time.monotonic() - asked:.2f} s)", flush=True)
        return error is None

    def work(self):
        row, other = self.random.sample(self.own, 2)
        kind = self.random.random()
        if kind < 0.4:
            if self.ask(f"UPDATE t SET n = n + 1 WHERE id = {row}", [row]):
                self.counts[row] += 1
        elif kind < 0.7:
            self.ask(f"SELECT n FROM t WHERE id = {row}")
        else:
            self.ask("BEGIN")
            done = all(self.ask(f"UPDATE t SET n = n + 1 WHERE id = {r}") for r in (row, other))
            if done and self.ask("COMMIT", [row, other]):
                self.counts[row] += 1
                self.counts[other] += 1
            else:
                self.ask("ROLLBACK")

    def run(self):
        try:
            while not self.stop.is_set():
                self.work()
        except Exception as error:  # A thread that dies must not look as if it had done its work.
            self.failures.append(repr(error))


def connect(node):
    return Connection(4306, "test", host=address(node), timeout=40)


def check(good, what):
    if not good:
        raise SystemExit(f"silent-group: FAILED: {what}")
    print(f"silent-group: ok   {what}", flush=True)


def states(cluster):
    return {n["node_id"]: n["state"] for n in cluster.status(LEFT[0])["nodes"]}


def wait_until(what, holds, seconds):
    begun = time.monotonic()
    while not holds():
        if time.monotonic() > begun + seconds:
            raise SystemExit(f"silent-group: FAILED: {what} not within {seconds} s")
        time.sleep(0.02)
    print(f"silent-group: {what} after {1000 * (time.monotonic() - begun):.0f} ms", flush=True)


def silence(cluster, net, off):
    """The nodes of one group, one after the other. `off`: they have no power any more."""
    for node in SILENT:
        apart(net, [node], [n for n in NODES if n != node])
        net.nft(node, f"add rule inet fault in ip saddr {address(100)} drop")
        if off:
            # Not before it is cut off: a process that ends says so.
            process = cluster.processes.pop(node)
            process.send_signal(signal.SIGKILL)
            process.wait()
        if node != SILENT[-1]:
            wait_until(f"node {node} is removed", lambda n=node: states(cluster)[n] == "down", NOTICED_S)
    wait_until(f"node {SILENT[-1]} is called silent", lambda: states(cluster)[SILENT[-1]] == "silent", NOTICED_S)


def refused(session, text, took_s):
    asked, error = time.monotonic(), None
    try:
        session.query(text)
    except MySQLError as got:
        error = got
    took = time.monotonic() - asked
    good = error is not None and error.number == 1297 and took < took_s
    check(good, f"{text[:40]}: {error} ({1000 * took:.0f} ms)")


def while_silent(clients, session):
    since = time.monotonic() + NOTICED_S
    time.sleep(NOTICED_S + 4)
    failures = [f for client in clients for f in client.failures]
    check(not failures, f"no failures: {failures[:2]}")
    refused(session, "SELECT SUM(n) FROM t", REFUSED_S)
    refused(session, "CREATE TABLE more (id INT PRIMARY KEY)", REFUSED_S)
    refused(session, "CREATE UNIQUE INDEX by_n ON t (n)", REFUSED_S)
    answers = [a for client in clients for a in list(client.answers) if a[0] > since]
    served = sum(error is None for _, _, error in answers)
    told = [a for a in answers if a[2] is not None and is_silent(a[2])]
    others = [str(e) for _, _, e in answers if e is not None and not is_silent(e)]
    check(served > 100 and len(told) > 20, f"{served} statements were done meanwhile, {len(told)} refused")
    longest = max(answered - asked for asked, answered, _ in answers)
    check(longest < REFUSED_S, f"the longest answer took {1000 * longest:.0f} ms")
    check(not others, f"no other errors: {others[:2]}")


def check_rows(clients, session, all_of_them):
    kept = 0
    for row in range(ROWS):
        client = clients[row % 4]
        try:
            found = int(session.query(f"SELECT n FROM t WHERE id = {row}")[0][0])
        except MySQLError as error:
            if all_of_them or error.number != LOST:
                raise
            continue
        kept += 1
        if found < client.counts[row] or (found > client.counts[row] and row not in client.unsure):
            raise SystemExit(f"silent-group: FAILED: row {row} holds {found} instead of {client.counts[row]}")
    check(kept == ROWS if all_of_them else ROWS / 4 < kept < ROWS * 3 / 4, f"{kept} rows are as they were acknowledged")


def declare_dead(binary, *more):
    command = [binary, "declare-dead", str(SILENT[-1]), "--address", f"{address(LEFT[0])}:4406", *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def rounds(binary, cluster, net):
    session = Connection(4306, "", host=address(1), timeout=40)
    session.query("CREATE DATABASE IF NOT EXISTS test")
    session.query("USE test")
    session.query("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)")
    session.query("INSERT INTO t VALUES " + ",".join(f"({row}, 0)" for row in range(ROWS)))
    before, stop = cluster.restarts, threading.Event()
    clients = [Client(index, stop) for index in range(4)]
    [client.start() for client in clients]
    time.sleep(1)

    silence(cluster, net, off=False)
    while_silent(clients, session)
    asks = declare_dead(binary)
    check(asks.returncode != 0 and "--give-up-rows" in asks.stderr, f"declare-dead asks: {asks.stderr.strip()}")
    net.heal()
    cluster.wait_whole(60)
    time.sleep(1)
    late = [a for client in clients for a in list(client.answers)[-20:]]
    wrong = [str(e) for _, _, e in late if e]
    again = cluster.restarts - before
    # One was removed when it fell silent. Another one may have to go for a link that comes back late.
    check(not wrong and again in (1, 2), f"all is served when the cables are mended, {again} node(s) started again; "
          f"errors: {wrong[:2]}")

    silence(cluster, net, off=True)
    while_silent(clients, session)
    done = declare_dead(binary, "--give-up-rows")
    check(done.returncode == 0 and "is removed" in done.stdout, f"declare-dead: {done.stdout.strip()}{done.stderr}")
    check(cluster.status(1)["lost_node_groups"] == [1], "the group is lost")
    since = time.monotonic() + 1
    time.sleep(3)
    stop.set()
    [client.join(40) for client in clients]
    answers = [a for client in clients for a in client.answers]
    late = [a[2] for a in answers if a[0] > since]
    served, lost = sum(e is None for e in late), sum(e is not None and e.number == LOST for e in late)
    check(served > 100 and lost > 100 and served + lost == len(late), f"then {served} were done, {lost} refused")
    failures = [f for client in clients for f in client.failures]
    check(not failures and not any(client.is_alive() for client in clients), f"other failures: {failures[:3]}")
    longest = max(answered - asked for asked, answered, _ in answers)
    check(longest < ANSWERED_S, f"the longest answer of all took {longest:.2f} s")
    unsure = sum(len(client.unsure) for client in clients)
    print(f"silent-group: {len(answers)} statements, {unsure} rows with a commit whose outcome nobody told", flush=True)
    check_rows(clients, session, all_of_them=False)
    net.heal()
    for node in SILENT:
        cluster.processes[node] = cluster.start(node)
    wait_until("both are members again", lambda: all(states(cluster)[n] == "syncing" for n in SILENT), 20)


def inside(args):
    net = Net(args.net, NODES)
    directory = tempfile.mkdtemp(prefix="latsdb-silent-")
    cluster = Cluster(args.binary, net, directory, NODES, 2)
    try:
        cluster.wait_whole()
        rounds(args.binary, cluster, net)
    except BaseException:
        print(f"silent-group: log: {directory}/log")
        raise
    finally:
        cluster.stop()


def outside(args):
    net = Net(f"lats{os.getpid()}", NODES)
    try:
        try:
            net.build()
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            print(f"silent-group: skipped, namespaces cannot be made here: {error}")
            return SKIPPED
        line = ["ip", "netns", "exec", net.of("hub"), sys.executable, os.path.abspath(__file__), "--net", net.name,
                "--binary", os.path.abspath(args.binary)]
        return subprocess.run(line, check=False, timeout=240).returncode
    finally:
        net.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--net", help=argparse.SUPPRESS)
    args = parser.parse_args()
    return inside(args) if args.net else outside(args)


if __name__ == "__main__":
    sys.exit(main())
