#!/usr/bin/env python3
"""Histories: clients append to lists and read them, through SQL and through the native client at the same time,
while nodes die, freeze or are told to stop. `lats-history` then looks for anomalies: transactions that lock must be
strictly serializable, single lists that are read without locks linearizable.

history.py [--binary latsdb] [--checker lats-history] [--nodes 2] [--replicas 2] [--faults kill,freeze,stop]
           [--rounds 6] [--sql-port 14506] [--seed N]
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

from kill import Cluster, connect
from minimysql import Connection, MySQLError

PLACES, PER_PLACE, LENGTH_MAX = 6, 200, 40
ELEMENTS_PER_CLIENT = 10_000_000
# Lock wait timeout, deadlock, temporary error; too many connections, shutdown.
TEMPORARY = {1205, 1213, 1297, 1040, 1053}


class ListClient(threading.Thread):
    """Works with lists through one node, or through another one while that is away; keeps the history."""

    def __init__(self, number, places, seed, stop):
        super().__init__(daemon=True)
        self.number, self.places, self.stop = number, places, stop
        self.random = random.Random(seed)
        self.element = number * ELEMENTS_PER_CLIENT
        self.current = [place * 1000 for place in range(PLACES)]
        self.place = places[number % len(places)]
        self.connection, self.history, self.failure = None, [], None

    def run(self):
        try:
            while not self.stop.is_set():
                try:
                    if self.connection is None:
                        self.connection = connect(self.place, 5)
                    self.random.choice((self.look, self.change, self.change))()
                except OSError:
                    self.away()
                except MySQLError as error:
                    if error.number not in TEMPORARY:
                        raise
                    if error.number in (1040, 1053):
                        self.away()
        except Exception as error:  # a thread of a test: whatever ends it is told at the end
            self.failure = error

    def away(self):
        self.connection = None
        self.place = self.random.choice(self.places)
        time.sleep(0.005)

    def list(self):
        return self.random.choice(self.current)

    def note(self, begun, outcome, locks, actions):
        self.history.append({"client": self.number, "begun_ns": begun, "ended_ns": time.monotonic_ns(),
                             "outcome": outcome, "locks": locks, "actions": actions})

    def seen(self, number, rows):
        elements = [int(part) for part in rows[0][0].split(",") if part]
        if len(elements) >= LENGTH_MAX and self.current[number // 1000] == number:
            assert number % 1000 + 1 < PER_PLACE, "the lists are full; prepare more"
            self.current[number // 1000] = number + 1
        return {"read": {"list": number, "elements": elements}}

    def look(self):
        """One list, without locks, at the replica of the node."""
        begun, number = time.monotonic_ns(), self.list()
        rows = self.connection.query(f"SELECT elements FROM lists WHERE id = {number}")
        self.note(begun, "committed", False, [self.seen(number, rows)])

    def change(self):
        begun, actions, committing = time.monotonic_ns(), [], False
        outcome = "rolled_back"
        run = self.connection.query
        try:
            alone = self.random.random() < 0.2
            if not alone:
                run("BEGIN")
            for _ in range(1 if alone else self.random.randint(1, 4)):
                number = self.list()
                kind = "append" if alone else self.random.choice(("append", "append", "share", "update"))
                if kind == "append":
                    self.element += 1
                    actions.append({"append": {"list": number, "element": self.element}})
                    committing = alone
                    run(f"UPDATE lists SET elements = CONCAT(elements, '{self.element},') WHERE id = {number}")
                else:
                    rows = run(f"SELECT elements FROM lists WHERE id = {number} FOR {kind.upper()}")
                    actions.append(self.seen(number, rows))
            if not alone and self.random.random() < 0.1:
                run("ROLLBACK")
                return
            committing = True
            if not alone:
                run("COMMIT")
            outcome = "committed"
        except OSError:
            outcome = "unknown" if committing else "rolled_back"
            raise
        except MySQLError as error:
            outcome = "unknown" if committing and "LDB-29" in str(error) else "rolled_back"
            try:
                run("ROLLBACK")
            except MySQLError:
                pass
            raise
        finally:
            self.note(begun, outcome, True, actions)


def prepare(connection):
    connection.query("CREATE TABLE lists (id BIGINT PRIMARY KEY, elements VARBINARY(2000) NOT NULL)")
    for place in range(PLACES):
        rows = ",".join(f"({place * 1000 + number}, '')" for number in range(PER_PLACE))
        connection.query(f"INSERT INTO lists VALUES {rows}")


def final_reads(connection, clients):
    """All lists that were used, as one more transaction sees them."""
    begun, actions = time.monotonic_ns(), []
    connection.query("BEGIN")
    for place in range(PLACES):
        last = max(client.current[place] for client in clients)
        for number in range(place * 1000, min(last + 20, place * 1000 + PER_PLACE)):
            rows = connection.query(f"SELECT elements FROM lists WHERE id = {number} FOR SHARE")
            elements = [int(part) for part in rows[0][0].split(",") if part]
            actions.append({"read": {"list": number, "elements": elements}})
    connection.query("COMMIT")
    return {"client": 0, "begun_ns": begun, "ended_ns": time.monotonic_ns(), "outcome": "committed", "locks": True,
            "actions": actions}


def write(name, history):
    with open(name, "w", encoding="utf8") as file:
        for transaction in history:
            file.write(json.dumps(transaction) + "\n")


def check(checker, files):
    """True if there is no anomaly; prints what there is."""
    line = [checker, "check", "--at-least", "200", *files]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout[:4000].strip() or done.stderr[:1000], flush=True)
    return done.returncode == 0


class Fleet(Cluster):
    """A cluster of any shape."""

    def __init__(self, binary, sql_port, nodes, replicas):
        self.binary, self.sql_port = binary, sql_port
        self.directory = os.path.join(tempfile.mkdtemp(prefix="latsdb-history-"), "data")
        self.run("start", "--sql-port", str(sql_port), "--nodes", str(nodes), "--replicas", str(replicas),
                 "--ephemeral", "--detach", "--restart-delay-ms", "300", "--memory-mib", "512")

    def all_nodes(self):
        """The witness too."""
        return json.loads(self.run("status", "--json"))["nodes"]

    def cluster_id(self):
        with open(os.path.join(self.directory, "cluster.json"), encoding="utf8") as file:
            return json.load(file)["cluster_id"]


def disturb(cluster, chooser, kinds):
    cluster.wait_whole()
    time.sleep(chooser.uniform(0.3, 1.2))
    victim, kind = chooser.choice(cluster.all_nodes()), chooser.choice(kinds)
    print(f"history: {kind} node {victim['node_id']}", flush=True)
    if kind == "kill":
        os.kill(victim["pid"], signal.SIGKILL)
    elif kind == "stop":
        cluster.run("stop-node", str(victim["node_id"]), "--restart")
    else:
        os.kill(victim["pid"], signal.SIGSTOP)
        time.sleep(chooser.uniform(0.1, 1.5))
        os.kill(victim["pid"], signal.SIGCONT)
    time.sleep(0.5)


def native_load(checker, cluster, directory, seconds):
    """The same lists through the native client, at the same time."""
    out = os.path.join(directory, "native.json")
    addresses = [part for node in cluster.nodes() for part in ("--address", node["native_address"])]
    command = [checker, "native", "--cluster-id", str(cluster.cluster_id()), "--seconds", str(seconds), "--out", out,
               "--places", str(PLACES), "--per-place", str(PER_PLACE), *addresses]
    return out, subprocess.Popen(command)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--checker", default=os.environ.get("LATS_HISTORY", "target/release/lats-history"))
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--faults", default="kill,freeze,stop")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--sql-port", type=int, default=14506)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    print(f"history: seed {args.seed}, {args.nodes} data nodes, {args.replicas} replicas, {args.rounds} faults", flush=True)
    chooser, stop = random.Random(args.seed), threading.Event()
    directory = tempfile.mkdtemp(prefix="latsdb-history-")
    cluster = Fleet(args.binary, args.sql_port, args.nodes, args.replicas)
    native = None
    try:
        places = [("127.0.0.1", args.sql_port + at) for at in range(args.nodes)]
        setup = Connection(args.sql_port, "test")
        prepare(setup)
        setup.close()
        clients = [ListClient(at + 1, places, args.seed + at, stop) for at in range(args.threads)]
        for client in clients:
            client.start()
        out, native = native_load(args.checker, cluster, directory, args.rounds * 4)
        for _ in range(args.rounds):
            disturb(cluster, chooser, args.faults.split(","))
        cluster.wait_whole()
        native_status = native.wait(120)
        stop.set()
        for client in clients:
            client.join(30)
        failures = [f"client {c.number}: {c.failure}" for c in clients if c.failure or c.is_alive()]
        last = final_reads(connect(places[0], 30), clients)
    finally:
        stop.set()
        if native and native.poll() is None:
            native.kill()
        cluster.run("stop")
    own = os.path.join(directory, "sql.json")
    write(own, [t for client in clients for t in client.history] + [last])
    good = check(args.checker, [own, out])
    for failure in failures:
        print(f"history: WRONG: {failure}")
    if native_status != 0:
        print("history: WRONG: the native client's load has failed")
    if good and not failures and native_status == 0:
        return 0
    print(f"history: the files are in {directory}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
