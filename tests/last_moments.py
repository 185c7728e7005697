#!/usr/bin/env python3
"""What is lost when all nodes die at once, of commits that wait for no disk (EPOCH-8).

Clients insert rows through both nodes, one row for each commit, and note when each was acknowledged. Then all node processes are killed
with SIGKILL, stopped first so that none goes on without the others, and the cluster starts again. What is lost is printed: rows, and how
long before the kill the first of them was acknowledged. Nothing is decided by how long that is on a busy machine: what is lost
must be the end of what each client has done, in every round not older than two epochs and two syncs of the slowest kind, and in the best
round not older than two usual ones.
last_moments.py [--binary target/release/latsdb] [--rounds 5] [--sql-port 16306]"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import threading
import time

from cluster import Durable, connect, is_temporary, repeated, rows
from minimysql import MySQLError

# An epoch lasts 10 ms at most while epochs are used; one that ends late on a busy machine is as long as its threads wait.
EPOCH_S = 0.010
# A node that gets no processor for longer than this is removed: nothing can be said of such a run.
WAIT_S = 0.3
CLIENTS = 4


class Client(threading.Thread):
    """Inserts one row after the other."""

    def __init__(self, number, port, stop):
        super().__init__(daemon=True)
        self.number, self.port, self.stopped = number, port, stop
        self.told = []  # (id, when)

    def run(self):
        connection, at = connect(self.port), self.number * 10_000_000
        while not self.stopped.is_set():
            at += 1
            try:
                connection.query(f"INSERT INTO t VALUES ({at}, {self.number})")
                self.told.append((at, time.monotonic()))
            except MySQLError as error:
                if not is_temporary(error):
                    raise
            except OSError:
                return


def syncs_s(directory, stop):
    """How long syncs of small writes beside the nodes' files take."""
    took = [0.0]
    with tempfile.TemporaryFile(dir=directory) as file:
        while not stop.is_set():
            file.write(b"x" * 4096)
            file.flush()
            begun = time.monotonic()
            os.fdatasync(file.fileno())
            took.append(time.monotonic() - begun)
            time.sleep(0.01)
    return took


class Syncs(threading.Thread):
    """Measures syncs while clients work."""

    def __init__(self, directory, stop):
        super().__init__(daemon=True)
        self.directory, self.stopped, self.took_s = directory, stop, []

    def run(self):
        self.took_s = syncs_s(self.directory, self.stopped)


def one_round(cluster, ports, number, seconds):
    stop = threading.Event()
    clients = [Client(number * 100 + i, ports[i % len(ports)], stop) for i in range(CLIENTS)]
    syncs = Syncs(cluster.directory, stop)
    for thread in [syncs, *clients]:
        thread.start()
    time.sleep(seconds)
    cluster.kill_all(False, at_once=True)
    stop.set()
    for thread in [syncs, *clients]:
        thread.join()
    cluster.wait_whole()
    there = {int(row[0]) for row in rows(ports[0], "SELECT id FROM t")}
    end = max(client.told[-1][1] for client in clients)
    lost = []
    for client in clients:
        gone = [at for at, (row, _) in enumerate(client.told) if row not in there]
        assert gone == list(range(len(client.told) - len(gone), len(client.told))), f"rows are lost before others that are there: {gone}"
        lost += [client.told[at][1] for at in gone]
    span_s = max((end - when for when in lost), default=0.0)
    acknowledged = sum(len(client.told) for client in clients)
    print(f"last moments: {len(lost)} of {acknowledged} rows are lost, the last {span_s * 1_000:.1f} ms; the longest sync took "
          f"{max(syncs.took_s) * 1_000:.1f} ms", flush=True)
    bound_s = 2 * (EPOCH_S + WAIT_S + max(syncs.took_s))
    assert span_s <= bound_s, f"{span_s:.3f} s are lost; two epochs and two syncs are {bound_s:.3f} s here"
    return span_s, 2 * (EPOCH_S / 2 + statistics.median(syncs.took_s))


def once(args):
    ports = [args.sql_port, args.sql_port + 1]
    with Durable(args.binary, args.sql_port) as cluster:
        with cluster.undisturbed():
            connect(ports[0]).query("CREATE TABLE t (id BIGINT PRIMARY KEY, client INT NOT NULL)")
        chooser = random.Random(args.seed)
        spans = []
        for number in range(1, args.rounds + 1):
            with cluster.undisturbed():
                spans.append(one_round(cluster, ports, number, chooser.uniform(1.0, 1.5)))
        print(f"last moments: {max(spans)[0] * 1_000:.1f} ms at most in {args.rounds} rounds", flush=True)
        # A busy machine makes a round worse than it need be, and never better.
        assert any(span_s <= usual_s for span_s, usual_s in spans), f"two epochs and two syncs are lost in no round: {spans}"
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sql-port", type=int, default=16306)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    return repeated("last moments", lambda: once(args))


if __name__ == "__main__":
    sys.exit(main())
