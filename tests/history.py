#!/usr/bin/env python3
"""Histories: clients append to lists and read them, through SQL and through the native client at the same time,
while nodes die, freeze or are told to stop. `lats-history` then looks for anomalies: transactions that lock must be
strictly serializable, single lists that are read without locks linearizable.

The rows are in memory only. If nodes are removed by the others in the moment of a fault, because they got no processor time for a
lease, all replicas of a row may be gone: then all begins once more.

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

from cluster import PATIENCE_S, TEMPORARY, UNKNOWN, Cluster, CommandFailed, Disturbed, connect, insist, is_unknown, repeated, wait_until
from minimysql import MySQLError

PLACES, PER_PLACE, LENGTH_MAX = 6, 900, 40
ELEMENTS_PER_CLIENT = 10_000_000
# Fewer committed transactions say nothing.
AT_LEAST = 200


class ListClient(threading.Thread):
    """Works with lists through one node, or through another one while that is away; keeps the history."""

    # A process that ends closes its connections, a network that is cut does not.
    patience_s = 5

    def __init__(self, number, places, seed, stop):
        super().__init__(daemon=True)
        self.number, self.places, self.stop = number, places, stop
        self.random = random.Random(seed)
        self.element = number * ELEMENTS_PER_CLIENT
        self.current = [place * 1000 for place in range(PLACES)]
        # Places whose last list is long: nobody appends there any more.
        self.full = set()
        self.place = places[number % len(places)]
        self.connection, self.history, self.failure = None, [], None

    def run(self):
        try:
            while not self.stop.is_set():
                try:
                    if self.connection is None:
                        self.connection = connect(self.place, self.patience_s)
                    self.random.choice((self.look, self.change, self.change))()
                except OSError:
                    self.away()
                except MySQLError as error:
                    if error.number not in TEMPORARY | UNKNOWN:
                        raise
                    if error.number in (1040, 1053):
                        self.away()
        except Exception as error:  # a thread of a test: whatever ends it is told at the end
            self.failure = error
        finally:
            # Its locks go with it.
            if self.connection:
                self.connection.close()

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
        place = number // 1000
        if len(elements) >= LENGTH_MAX and self.current[place] == number:
            if number % 1000 + 1 < PER_PLACE:
                self.current[place] = number + 1
            else:
                self.full.add(place)
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
                if number // 1000 in self.full:
                    kind = "share"
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
            outcome = "unknown" if committing and is_unknown(error) else "rolled_back"
            try:
                run("ROLLBACK")
            except MySQLError:
                pass
            raise
        finally:
            self.note(begun, outcome, True, actions)


def prepare(place):
    def ask():
        connection = connect(place)
        connection.query("CREATE TABLE IF NOT EXISTS lists (id BIGINT PRIMARY KEY, elements VARBINARY(2000) NOT NULL)")
        for list_place in range(PLACES):
            rows = ",".join(f"({list_place * 1000 + number}, '')" for number in range(PER_PLACE))
            connection.query(f"REPLACE INTO lists VALUES {rows}")
        connection.close()
    insist(ask)


def committed(clients):
    return sum(t["outcome"] == "committed" for client in clients for t in list(client.history))


def final_reads(place, clients):
    """All lists that were used, as one more transaction sees them."""
    def ask():
        connection, begun, actions = connect(place), time.monotonic_ns(), []
        connection.query("BEGIN")
        for list_place in range(PLACES):
            last = max(client.current[list_place] for client in clients)
            for number in range(list_place * 1000, min(last + 20, list_place * 1000 + PER_PLACE)):
                rows = connection.query(f"SELECT elements FROM lists WHERE id = {number} FOR SHARE")
                elements = [int(part) for part in rows[0][0].split(",") if part]
                actions.append({"read": {"list": number, "elements": elements}})
        connection.query("COMMIT")
        return {"client": 0, "begun_ns": begun, "ended_ns": time.monotonic_ns(), "outcome": "committed", "locks": True,
                "actions": actions}
    return insist(ask)


def write(name, history):
    with open(name, "w", encoding="utf8") as file:
        for transaction in history:
            file.write(json.dumps(transaction) + "\n")


def check(checker, files):
    """True if there is no anomaly; prints what there is."""
    line = [checker, "check", "--at-least", str(AT_LEAST), *files]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout[:4000].strip() or done.stderr[:1000], flush=True)
    return done.returncode == 0


def cluster_id(cluster):
    with open(os.path.join(cluster.directory, "cluster.json"), encoding="utf8") as file:
        return json.load(file)["cluster_id"]


def disturb(cluster, chooser, kinds, name="history"):
    cluster.wait_whole()
    time.sleep(chooser.uniform(0.3, 1.2))
    # A node may have been removed meanwhile: with another one all replicas of some rows would be gone.
    removed, _ = cluster.removed(), cluster.wait_whole()
    victim, kind = chooser.choice(cluster.all_nodes()), chooser.choice(kinds)
    print(f"{name}: {kind} node {victim['node_id']}", flush=True)
    if kind == "kill":
        os.kill(victim["pid"], signal.SIGKILL)
    elif kind == "stop":
        try:
            cluster.run("stop-node", str(victim["node_id"]), "--restart")
        except CommandFailed as error:
            assert cluster.was_disturbed(removed), error
            print(f"{name}: it was not stopped, for nodes {cluster.removed()[len(removed):]} were removed: {error}", flush=True)
    else:
        os.kill(victim["pid"], signal.SIGSTOP)
        time.sleep(chooser.uniform(0.1, 1.5))
        os.kill(victim["pid"], signal.SIGCONT)
    gone = [victim["pid"]] if kind == "kill" else []
    wait_until(f"the cluster is whole after the {kind} of node {victim['node_id']}",
               lambda: cluster.whole(gone) or cluster.has_lost_rows(), cluster.describe)
    if cluster.has_lost_rows():
        others = [n for n in cluster.removed()[len(removed):] if n != victim["node_id"]]
        assert others, f"rows are lost: {cluster.describe()}"
        raise Disturbed(f"nodes {others} were removed in the moment of the {kind} of node {victim['node_id']}")


def native_load(checker, cluster, directory, seconds):
    """The same lists through the native client, at the same time."""
    out = os.path.join(directory, "native.json")
    addresses = [part for node in cluster.nodes() for part in ("--address", node["native_address"])]
    command = [checker, "native", "--cluster-id", str(cluster_id(cluster)), "--seconds", str(seconds), "--out", out,
               "--secret-file", os.path.join(cluster.directory, "secret"), "--places", str(PLACES), "--per-place", str(PER_PLACE), *addresses]
    return out, subprocess.Popen(command)


def once(args, directory):
    chooser, stop = random.Random(args.seed), threading.Event()
    native = None
    with Cluster(args.binary, args.sql_port, "--nodes", str(args.nodes), "--replicas", str(args.replicas), memory_mib=512) as cluster:
        places = [("127.0.0.1", args.sql_port + at) for at in range(args.nodes)]
        prepare(places[0])
        clients = [ListClient(at + 1, places, args.seed + at, stop) for at in range(args.threads)]
        try:
            for client in clients:
                client.start()
            out, native = native_load(args.checker, cluster, directory, args.rounds * 4)
            for _ in range(args.rounds):
                with cluster.undisturbed():
                    disturb(cluster, chooser, args.faults.split(","))
            cluster.wait_whole()
            native_status = native.wait(PATIENCE_S)
            wait_until(f"{AT_LEAST} transactions are committed, or a client has failed",
                       lambda: committed(clients) >= AT_LEAST or any(c.failure for c in clients), cluster.describe)
        finally:
            stop.set()
            if native and native.poll() is None:
                native.kill()
                native.wait()
        for client in clients:
            client.join(PATIENCE_S)
        failures = [f"client {c.number}: {c.failure}" for c in clients if c.failure or c.is_alive()]
        last = final_reads(places[0], clients)
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
    directory = tempfile.mkdtemp(prefix="latsdb-history-")
    return repeated("history", lambda: once(args, directory))


if __name__ == "__main__":
    sys.exit(main())
