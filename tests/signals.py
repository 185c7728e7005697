#!/usr/bin/env python3
"""SIGTERM and SIGINT to node processes, as a person, systemd or a container host sends them (docs/protocols/close.md).

The nodes run without a supervisor (`latsdb node`), while clients insert rows through both data nodes, each acknowledged without waiting for
disks. Each case tells one or more processes to end, and looks at three things: all end within their time, with the status that is due; what
clients get meanwhile is polite (errors that drivers know, or a closed connection); and when all nodes have started again every row is
there that was acknowledged.
signals.py [--binary target/release/latsdb] [--sql-port 16406] [--only NAME]"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from cluster import PATIENCE_S, Disturbed, Durable, connect, is_temporary, is_unknown, repeated, rows, wait_until
from minimysql import MySQLError

CLIENTS = 4
# A node ends within 20 s; a busy machine has its time besides.
END_S = 60
# The others have removed it: it was late, on a busy machine.
REMOVED = 3
# A second signal counts when it comes so long after the first one.
INSIST_S = 1.5


class Client(threading.Thread):
    """Inserts rows one by one, at whichever node takes them."""

    def __init__(self, number, ports, stop):
        super().__init__(daemon=True)
        self.ports, self.at, self.stopped = ports, number * 1_000_000, stop
        self.told, self.errors, self.rude = [], {}, []

    def run(self):
        connection, turn = None, self.at
        while not self.stopped.is_set():
            try:
                if connection is None:
                    turn += 1
                    connection = connect(self.ports[turn % len(self.ports)], 30)
                self.at += 1
                connection.query(f"INSERT INTO t VALUES ({self.at})")
                self.told.append(self.at)
            except MySQLError as error:
                self.errors[error.number] = self.errors.get(error.number, 0) + 1
                # A row whose outcome was unknown may be there already.
                if not (is_temporary(error) or is_unknown(error) or error.number in (1062, 2013)):
                    self.rude.append(str(error))
                if error.number == 1053:
                    connection = None
            except OSError:
                connection = None
                time.sleep(0.01)


class Nodes:
    """The node processes of a cluster that `latsdb start` has founded; nobody starts them again."""

    def __init__(self, cluster, binary):
        self.directory, self.binary, self.cluster = cluster.directory, binary, cluster
        self.ports = [cluster.sql_port, cluster.sql_port + 1]
        self.processes = {}

    def start(self, *ids):
        for node in ids or (1, 2, 3):
            log = open(f"{self.directory}.node-{node}.log", "a", encoding="utf8")
            line = [self.binary, "node", "--data-dir", self.directory, "--node-id", str(node)]
            self.processes[node] = subprocess.Popen(line, stdout=log, stderr=log)
            log.close()
        self.cluster.wait_whole() if not ids else None

    def tell(self, what, *ids):
        for node in ids:
            self.processes[node].send_signal(what)

    def end(self, ids, expected):
        """Waits for the ends of these nodes; gives the time that it took."""
        begun = time.monotonic()
        for node in ids:
            try:
                status = self.processes.pop(node).wait(END_S)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"node {node} has not ended: {self.words(node)}") from None
            if status == REMOVED:
                raise Disturbed(f"node {node} was removed: {self.words(node)}")
            assert status in expected, f"node {node} has ended with status {status}: {self.words(node)}"
        return time.monotonic() - begun

    def words(self, node):
        with open(f"{self.directory}.node-{node}.log", encoding="utf8") as log:
            return "\n".join(log.read().splitlines()[-8:])

    def kill(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.processes.clear()


@contextlib.contextmanager
def load(nodes):
    """Clients that work all the time."""
    stop = threading.Event()
    clients = [Client(number + 1, nodes.ports, stop) for number in range(CLIENTS)]
    for client in clients:
        client.at += load.base
    load.base += CLIENTS * 1_000_000
    for client in clients:
        client.start()
    try:
        wait_until("clients are at work", lambda: all(len(c.told) > 20 for c in clients))
        yield clients
    finally:
        stop.set()
        for client in clients:
            client.join(PATIENCE_S)


load.base = 0


def check(nodes, clients, what):
    """All that was acknowledged is there."""
    errors = {}
    for client in clients:
        assert not client.rude, f"{what}: a client got {client.rude[0]}"
        for number, count in client.errors.items():
            errors[number] = errors.get(number, 0) + count
    told = {row for client in clients for row in client.told}
    for port in nodes.ports:
        there = {int(row[0]) for row in rows(port, "SELECT id FROM t")}
        lost = told - there
        assert not lost, f"{what}: {len(lost)} of {len(told)} acknowledged rows are lost: {sorted(lost)[:5]}"
    return f"0 of {len(told)} rows are lost, errors {errors}"


def one(nodes, what):
    """One of two data nodes leaves; the other one goes on."""
    with load(nodes) as clients:
        nodes.tell(what, 1)
        took = nodes.end([1], [0])
        before = sum(len(c.told) for c in clients)
        wait_until("clients go on at the other node", lambda: sum(len(c.told) for c in clients) > before + 20)
    nodes.start(1)
    nodes.cluster.wait_whole()
    print(f"signals: {what.name} to one: {took:.1f} s, {check(nodes, clients, 'one')}", flush=True)


def all_at_once(nodes, ids, name):
    """All data nodes are told, with or without the witness."""
    with load(nodes) as clients:
        nodes.tell(signal.SIGTERM, *ids)
        took = nodes.end(ids, [0])
    nodes.kill()
    nodes.start()
    print(f"signals: {name}: {took:.1f} s, {check(nodes, clients, name)}", flush=True)


def one_by_one(nodes):
    """A second after the other, as a person does it."""
    with load(nodes) as clients:
        for node in (3, 1, 2):
            nodes.tell(signal.SIGTERM, node)
            time.sleep(1)
        took = nodes.end([1, 2, 3], [0])
    nodes.start()
    print(f"signals: one by one: {took:.1f} s after the last, {check(nodes, clients, 'one by one')}", flush=True)


def while_away(nodes):
    """One data node was killed; the other one and the witness are told."""
    with load(nodes) as clients:
        nodes.tell(signal.SIGKILL, 2)
        nodes.end([2], [-signal.SIGKILL])
        time.sleep(1)
        nodes.tell(signal.SIGTERM, 1, 3)
        took = nodes.end([1, 3], [0])
    nodes.start()
    print(f"signals: while a node is away: {took:.1f} s, {check(nodes, clients, 'while away')}", flush=True)


def open_transaction(nodes):
    """A client that does not end its transaction holds nobody up for long."""
    holder = connect(nodes.ports[0])
    holder.query("BEGIN")
    holder.query("INSERT INTO t VALUES (-1)")
    with load(nodes) as clients:
        nodes.tell(signal.SIGTERM, 1, 2, 3)
        took = nodes.end([1, 2, 3], [0])
    nodes.start()
    assert rows(nodes.ports[0], "SELECT id FROM t WHERE id = -1") == [], "an open transaction was committed"
    print(f"signals: with an open transaction: {took:.1f} s, {check(nodes, clients, 'open transaction')}", flush=True)


def guest(nodes):
    """A client of the node itself does not end its transaction: it is waited for a while, and the transaction is rolled back."""
    holder = connect(nodes.ports[0])
    holder.query("BEGIN")
    holder.query("INSERT INTO t VALUES (-20)")
    with load(nodes) as clients:
        nodes.tell(signal.SIGTERM, 1)
        took = nodes.end([1], [0])
    nodes.start(1)
    nodes.cluster.wait_whole()
    assert rows(nodes.ports[1], "SELECT id FROM t WHERE id = -20") == [], "an open transaction was committed"
    print(f"signals: to one with an open transaction: {took:.1f} s, {check(nodes, clients, 'guest')}", flush=True)


def twice(nodes):
    """Who does not want to wait for a client's transaction sends a second signal."""
    holder = connect(nodes.ports[0])
    holder.query("BEGIN")
    holder.query("INSERT INTO t VALUES (-2)")
    nodes.tell(signal.SIGTERM, 1)
    time.sleep(INSIST_S)
    nodes.tell(signal.SIGTERM, 1)
    took = nodes.end([1], [9])
    print(f"signals: twice: {took:.1f} s after the second", flush=True)
    holder.close()
    nodes.start(1)
    nodes.cluster.wait_whole()


def supervised(nodes):
    """`latsdb start` does not start a node again that somebody has told to end; told itself, it ends all nodes and waits."""
    cluster = nodes.cluster
    os.kill(cluster.pids()[1], signal.SIGTERM)
    wait_until("the supervisor says that a node was told to end", lambda: "node 1 was told to end" in cluster.log(), cluster.describe)
    time.sleep(1)
    running = len(cluster.processes()[0])
    assert running == 2, f"{running} nodes run: the one that was told to end was started again"
    cluster.run("start-node", "1")
    cluster.wait_whole()
    with load(nodes) as clients:
        _, supervisor = cluster.processes()
        os.kill(supervisor, signal.SIGTERM)
        _, took = wait_until("all have ended", lambda: cluster.processes() == ([], None), cluster.describe)
    assert "the cluster is stopped\n" in cluster.log(), f"the supervisor says something else: {cluster.log()[-300:]}"
    nodes.start()
    print(f"signals: to the supervisor: {took:.1f} s, {check(nodes, clients, 'supervised')}", flush=True)


CASES = {
    "one": lambda nodes: one(nodes, signal.SIGTERM),
    "int": lambda nodes: one(nodes, signal.SIGINT),
    "all": lambda nodes: all_at_once(nodes, [1, 2, 3], "two nodes and a witness at once"),
    "data": lambda nodes: all_at_once(nodes, [1, 2], "both data nodes at once"),
    "row": one_by_one,
    "away": while_away,
    "open": open_transaction,
    "guest": guest,
    "twice": twice,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=16406)
    parser.add_argument("--only", choices=CASES, help="this case alone")
    args = parser.parse_args()
    return repeated("signals", lambda: once(args))


def once(args):
    """All cases, with a cluster of their own."""
    cluster = Durable(args.binary, args.sql_port)
    nodes = Nodes(cluster, args.binary)
    try:
        connect(args.sql_port).query("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        # From then on the nodes have no supervisor, and are ours.
        supervised(nodes)
        for name, case in CASES.items():
            if args.only in (None, name):
                case(nodes)
    except BaseException:
        for node in (1, 2, 3):
            print(f"node {node}: {nodes.words(node)}", flush=True)
        raise
    finally:
        nodes.kill()
    shutil.rmtree(os.path.dirname(cluster.directory))
    print("signals: all is right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
