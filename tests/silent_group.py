#!/usr/bin/env python3
"""Both nodes of one of two node groups fall silent, one after the other, and nothing proves that they have died.

Each node is in a network namespace of its own (see partition.py, whose cluster this is). First both are cut off and come
back: what needs their rows is refused meanwhile, with a temporary error, and nothing is lost. Then their power
is cut: the same, until a person declares the last one dead; then its rows are lost, and the others' are there. How soon is printed.

Clients count up rows one by one, and change pairs of rows, through the nodes of the group that stays. Needs root, `ip`
and `nft`; says so and ends with 77 if it may not make namespaces here. If a node of the group that stays is removed, because it
got no processor time for a lease, all begins once more.

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

import cluster as clusters
from cluster import LOST as LOST_CONNECTION, PATIENCE_S, Disturbed, repeated
from minimysql import MySQLError
from partition import Cluster, Net, address, apart, in_namespaces

NODES, LEFT, SILENT = (1, 2, 3, 4), (1, 2), (4, 3)
ROWS = 200
LOST, TEMPORARY, UNKNOWN = 1296, {1205, 1213, 1297}, {50029, 50038}
# So many statements are done, and so many are refused, while a group is silent, or lost.
SERVED, TOLD = 100, 20
# Each client has begun anew since it was told: what was under way is over.
ANEW = 10
# What takes longer is shown.
SLOW_S = 1.5


class Wrong(Exception):
    """Nothing excuses this."""


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
            if got.number != LOST and got.number not in TEMPORARY | UNKNOWN:
                self.failures.append(f"{text}: {got}")
            if got.number in UNKNOWN:
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
    return clusters.connect((address(node), 4306))


def check(good, what):
    assert good, what
    print(f"silent-group: ok   {what}", flush=True)


def states(cluster):
    return {n["node_id"]: n["state"] for n in cluster.status(LEFT[0])["nodes"]}


class Groups(Cluster):
    """Both groups."""

    before = 0

    def begin(self):
        """All nodes are there."""
        self.before = len(self.removed())

    def missing(self):
        """The nodes of the group that stays that have ended since, be it that they were removed or have gone for a link that has lost
        signals. While the other group is silent they take the majority with them, and nothing comes about any more."""
        return [n for n in self.removed()[self.before:] if n in LEFT]


def wait_until(cluster, what, holds):
    def look():
        if missing := cluster.missing():
            raise Disturbed(f"not yet: {what} (removed: {missing})")
        return holds()

    took = clusters.wait_until(what, look, cluster.states)[1]
    print(f"silent-group: {what} after {1000 * took:.0f} ms", flush=True)


def is_removed(cluster, node):
    now = states(cluster)
    if now[node] == "silent" and now[SILENT[-1]] == "down":
        raise Disturbed(f"node {SILENT[-1]} was removed first")
    return now[node] == "down"


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
            wait_until(cluster, f"node {node} is removed", lambda n=node: is_removed(cluster, n))
    wait_until(cluster, f"node {SILENT[-1]} is called silent", lambda: states(cluster)[SILENT[-1]] == "silent")


def refused(session, text):
    asked, error = time.monotonic(), None
    try:
        session.query(text)
    except MySQLError as got:
        error = got
    took = time.monotonic() - asked
    check(error is not None and error.number == 1297, f"{text[:40]}: {error} ({1000 * took:.0f} ms)")


def all_are_told(cluster, clients, is_told):
    """Until each client has been told, and has begun anew since; gives that moment."""
    for client in clients:
        at = len(client.answers)
        told = lambda c=client, at=at: next((n for n, a in enumerate(c.answers[at:], at) if a[2] is not None and is_told(a[2])), None)
        wait_until(cluster, "a client is told", lambda told=told, c=client: told() is not None or not c.is_alive())
        begun = told() or 0
        wait_until(cluster, "and goes on", lambda c=client, n=begun + ANEW: len(c.answers) > n or not c.is_alive())
    return time.monotonic()


def answers_since(clients, moment):
    return [a for client in clients for a in list(client.answers) if a[0] > moment]


def longest_of(answers):
    return max(answered - asked for asked, answered, _ in answers)


def while_silent(cluster, clients, session):
    since = all_are_told(cluster, clients, is_silent)
    count = lambda kind: sum(kind(error) for _, _, error in answers_since(clients, since))
    served = lambda: count(lambda error: error is None)
    told = lambda: count(lambda error: error is not None and is_silent(error))
    wait_until(cluster, f"{SERVED} statements are done meanwhile, and {TOLD} refused",
               lambda: (served() > SERVED and told() > TOLD) or not all(c.is_alive() for c in clients))
    refused(session, "SELECT SUM(n) FROM t")
    refused(session, "CREATE TABLE more (id INT PRIMARY KEY)")
    refused(session, "CREATE UNIQUE INDEX by_n ON t (n)")
    failures = [f for client in clients for f in client.failures]
    check(not failures, f"no failures: {failures[:2]}")
    answers = answers_since(clients, since)
    others = [str(e) for _, _, e in answers if e is not None and not is_silent(e)]
    check(not others, f"no other errors: {others[:2]}")
    print(f"silent-group: the longest answer took {1000 * longest_of(answers):.0f} ms", flush=True)


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
            raise Wrong(f"row {row} holds {found} instead of {client.counts[row]}")
    check(kept == ROWS if all_of_them else ROWS / 4 < kept < ROWS * 3 / 4, f"{kept} rows are as they were acknowledged")


def declare_dead(binary, cluster, *more):
    command = [binary, "declare-dead", str(SILENT[-1]), "--address", f"{address(LEFT[0])}:4406",
               "--secret-file", os.path.join(cluster.directory, "secret"), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def rounds(binary, cluster, net):
    session = connect(1)
    session.query("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)")
    session.query("INSERT INTO t VALUES " + ",".join(f"({row}, 0)" for row in range(ROWS)))
    before, stop = cluster.restarts, threading.Event()
    clients = [Client(index, stop) for index in range(4)]
    try:
        for client in clients:
            client.start()
        both_ways(binary, cluster, net, session, clients, before)
    finally:
        stop.set()
    for client in clients:
        client.join(PATIENCE_S)
    failures = [f for client in clients for f in client.failures]
    check(not failures and not any(client.is_alive() for client in clients), f"other failures: {failures[:3]}")
    answers = [a for client in clients for a in client.answers]
    unsure = sum(len(client.unsure) for client in clients)
    print(f"silent-group: {len(answers)} statements, the longest answer took {longest_of(answers):.2f} s; "
          f"{unsure} rows with a commit whose outcome nobody told", flush=True)
    check_rows(clients, session, all_of_them=False)
    net.heal()
    for node in SILENT:
        cluster.processes[node] = cluster.start(node)
    wait_until(cluster, "both are members again", lambda: all(states(cluster)[n] == "syncing" for n in SILENT))


def both_ways(binary, cluster, net, session, clients, before):
    """The group is cut off; then it has no power."""
    all_get_on = lambda: all(len(c.answers) > 2 * ANEW and not any(a[2] for a in c.answers[-2 * ANEW:]) for c in clients)
    wait_until(cluster, "all clients get on", all_get_on)
    silence(cluster, net, off=False)
    while_silent(cluster, clients, session)
    asks = declare_dead(binary, cluster)
    check(asks.returncode != 0 and "--give-up-rows" in asks.stderr, f"declare-dead asks: {asks.stderr.strip()}")
    net.heal()
    cluster.wait_whole()
    # What was lost is sent again late: a link may be given up after all was whole.
    time.sleep(1)
    cluster.wait_whole()
    cluster.begin()
    wait_until(cluster, "all is served when the cables are mended", lambda: all_get_on() or not all(c.is_alive() for c in clients))
    # One was removed when it fell silent. Another one may have to go for a link that comes back late.
    again = cluster.restarts - before
    check(again > 0, f"{again} node(s) started again")

    silence(cluster, net, off=True)
    while_silent(cluster, clients, session)
    done = declare_dead(binary, cluster, "--give-up-rows")
    check(done.returncode == 0 and "is removed" in done.stdout, f"declare-dead: {done.stdout.strip()}{done.stderr}")
    check(cluster.status(1)["lost_node_groups"] == [1], "the group is lost")
    since = all_are_told(cluster, clients, lambda error: error.number == LOST)
    served = lambda: sum(e is None for _, _, e in answers_since(clients, since))
    lost = lambda: sum(e is not None and e.number == LOST for _, _, e in answers_since(clients, since))
    wait_until(cluster, f"{SERVED} statements are done then, and {SERVED} refused",
               lambda: (served() > SERVED and lost() > SERVED) or not all(c.is_alive() for c in clients))
    others = [str(e) for _, _, e in answers_since(clients, since) if e is not None and e.number != LOST]
    check(not others, f"no other errors: {others[:2]}")


def once(args, net):
    net.heal()
    directory = tempfile.mkdtemp(prefix="latsdb-silent-")
    cluster = Groups(args.binary, net, directory, NODES, 2)
    try:
        cluster.settle()
        cluster.begin()
        try:
            rounds(args.binary, cluster, net)
        except (AssertionError, RuntimeError, MySQLError, *LOST_CONNECTION) as error:
            if missing := cluster.missing():
                raise Disturbed(f"{error} (removed: {missing})") from error
            raise
    except BaseException:
        print(f"silent-group: log: {directory}/log")
        raise
    finally:
        cluster.stop()
    return 0


def inside(args):
    net = Net(args.net, NODES)
    return repeated("silent-group", lambda: once(args, net))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--net", help=argparse.SUPPRESS)
    args = parser.parse_args()
    return inside(args) if args.net else in_namespaces(NODES, args.binary)


if __name__ == "__main__":
    sys.exit(main())
