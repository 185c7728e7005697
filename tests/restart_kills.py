#!/usr/bin/env python3
"""A node that restarts is killed again and again, at any point of its way back, while transfers go on and rows come and go. At the
end nothing that was acknowledged is lost, and both nodes have the same rows: in memory, and when all nodes have died and come
back from their logs.
restart_kills.py [--binary target/release/latsdb] [--kills 50] [--rows 100000] [--sql-port 16306]"""

import argparse
import contextlib
import os
import random
import signal
import sys
import threading
import time

from blackout import sync
from cluster import PATIENCE_S, Durable, connect, insist, rows, wait_until
from kill import Ledger, Worker, check, own_rows, prepare
from minimysql import MySQLError

STEP = 1_000


class Churner(threading.Thread):
    """Rows of a large table come and go."""

    def __init__(self, port, count, seed, stop):
        super().__init__(daemon=True)
        self.port, self.count, self.stop, self.random, self.failure = port, count, stop, random.Random(seed), None

    def run(self):
        connection = None
        while not self.stop.is_set():
            try:
                connection = connection or connect(self.port)
                at = self.random.randrange(self.count)
                connection.query(f"DELETE FROM filler WHERE id >= {at} AND id < {at + 20}")
                connection.query(f"UPDATE filler SET n = n + 1 WHERE id >= {at + 50} AND id < {at + 70}")
                values = ",".join(f"({i},0,'back')" for i in range(at + 5, at + 15))
                connection.query(f"INSERT INTO filler VALUES {values} ON DUPLICATE KEY UPDATE n = n + 1")
            except MySQLError:
                pass
            except OSError:
                # This node is not killed, but others may have removed it.
                connection = None
                time.sleep(0.1)
            except Exception as error:  # Whatever it is, the thread must not look as if it had done its work.
                self.failure = repr(error)
                raise


def fill(port, count):
    connection = connect(port)
    connection.query("CREATE TABLE IF NOT EXISTS filler (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(400) NOT NULL, KEY by_n (n, id))")
    for at in range(0, count, STEP):
        connection.query("REPLACE INTO filler VALUES " + ",".join(f"({i},0,'{'x' * 300}')" for i in range(at, at + STEP)))
    connection.close()


def starting_process(cluster, node, before):
    """The process of a node that is on its way back. What `status` says comes from other nodes: a process that is starting is not
    in it yet."""
    def found():
        marks = ("--node-id", str(node))
        return next((pid for pid in cluster.processes()[0] if pid != before and marks in pairs(pid)), None)
    return wait_until(f"node {node} is started again", found, cluster.describe)[0]


def pairs(pid):
    """The words of a process's command line, two by two."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf8", errors="replace") as file:
            words = file.read().split("\0")
    except OSError:
        return []
    return list(zip(words, words[1:]))


def kill_again_and_again(cluster, node, kills, chooser):
    """How often the node was killed before it was a full replica again."""
    early, before = 0, next(n["pid"] for n in cluster.wait_whole() if n["node_id"] == node)
    os.kill(before, signal.SIGKILL)
    for _ in range(kills):
        pid = starting_process(cluster, node, before)
        time.sleep(chooser.choice([chooser.uniform(0, 0.1), chooser.uniform(0, 0.6), chooser.uniform(0, 1.5)]))
        early += not all(n["in_sync"] for n in cluster.nodes())
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        before = pid
    return early


def filler(place, count):
    """All rows that the replica of a node has of the large table."""
    return own_rows(place, "filler", list(range(count + 20)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sql-port", type=int, default=16306)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"restart kills: seed {args.seed}", flush=True)
    chooser, ports = random.Random(args.seed), [args.sql_port, args.sql_port + 1]
    with Durable(args.binary, args.sql_port) as cluster:
        prepare(ports[0])
        insist(lambda: fill(ports[0], args.rows))
        stop, ledger = threading.Event(), Ledger()
        load = [Worker(i + 1, ports[:1], ledger, stop) for i in range(2)] + [Churner(ports[0], args.rows, args.seed, stop)]
        for worker in load:
            worker.start()
        early = kill_again_and_again(cluster, 2, args.kills, chooser)
        began = time.monotonic()
        cluster.wait_whole()
        print(f"restart kills: {args.kills}, {early} of them before the node was a full replica; whole {time.monotonic() - began:.2f} s "
              "after the last", flush=True)
        stop.set()
        for worker in load:
            worker.join(PATIENCE_S)
            assert not worker.is_alive() and not worker.failure, worker.failure
        cluster.wait_whole()
        for when in ("in memory", "from logs"):
            wrong = check(ledger, ports)
            assert not wrong, f"{when}: {wrong}"
            # Each node reads single rows from its own replica.
            found = [filler(port, args.rows) for port in ports]
            assert found[0] == found[1], f"{when}: the nodes have other rows of the large table"
            total = rows(ports[0], "SELECT COUNT(*), SUM(n) FROM filler")
            if when == "in memory":
                insist(lambda: sync(ports[0]))
                before = (total, found)
                cluster.kill_all(False, chooser)
                cluster.wait_whole()
        assert (total, found) == before, "rows are others after all nodes have died"
    print("restart kills: all rows are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
