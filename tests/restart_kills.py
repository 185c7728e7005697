#!/usr/bin/env python3
"""A node that restarts is killed again and again, at any point of its way back, while transfers go on and rows come and go. At the
end nothing that was acknowledged is lost, and both nodes have the same rows: in memory, and when all nodes have died and come
back from their logs.
restart_kills.py [--binary target/release/latsdb] [--kills 50] [--rows 100000] [--sql-port 16306]"""

import argparse
import os
import random
import shutil
import signal
import sys
import threading
import time

from blackout import Durable
from kill import Ledger, Worker, check, connect, prepare, rows
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
                connection = connection or connect(self.port, 20)
                at = self.random.randrange(self.count)
                connection.query(f"DELETE FROM filler WHERE id >= {at} AND id < {at + 20}")
                connection.query(f"UPDATE filler SET n = n + 1 WHERE id >= {at + 50} AND id < {at + 70}")
                values = ",".join(f"({i},0,'back')" for i in range(at + 5, at + 15))
                connection.query(f"INSERT INTO filler VALUES {values} ON DUPLICATE KEY UPDATE n = n + 1")
            except MySQLError:
                pass
            except OSError as error:
                self.failure = repr(error)
                return


def fill(connection, count):
    connection.query("CREATE TABLE filler (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(400) NOT NULL, KEY by_n (n, id))")
    for at in range(0, count, STEP):
        connection.query("INSERT INTO filler VALUES " + ",".join(f"({i},0,'{'x' * 300}')" for i in range(at, at + STEP)))


def process_of(cluster, node):
    for one in cluster.nodes():
        if one["node_id"] == node:
            return one["pid"]
    return None


def kill_again_and_again(cluster, kills, chooser):
    """How often the node was killed before it was a full replica again."""
    early, before = 0, None
    for _ in range(kills):
        end = time.monotonic() + 30
        pid = None
        while pid in (None, before):
            assert time.monotonic() < end, "the node is not started again"
            # What `status` says comes from node 1: a process that is starting is not in it yet.
            alive = cluster.processes()[0]
            other = process_of(cluster, 1)
            witness = cluster.witness
            pid = next((p for p in alive if p not in (other, witness, before)), None)
            time.sleep(0.005)
        time.sleep(chooser.choice([chooser.uniform(0, 0.1), chooser.uniform(0, 0.6), chooser.uniform(0, 1.5)]))
        early += not all(n["in_sync"] for n in cluster.nodes())
        os.kill(pid, signal.SIGKILL)
        before = pid
    return early


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sql-port", type=int, default=16306)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"restart kills: seed {args.seed}", flush=True)
    chooser, cluster = random.Random(args.seed), Durable(args.binary, args.sql_port)
    ports = [args.sql_port, args.sql_port + 1]
    try:
        nodes = {n["pid"] for n in cluster.wait_whole()}
        cluster.witness = next(iter(set(cluster.processes()[0]) - nodes))
        setup = connect(ports[0], 60)
        prepare(setup)
        fill(setup, args.rows)
        stop, ledger = threading.Event(), Ledger()
        load = [Worker(i + 1, ports[:1], ledger, stop) for i in range(2)] + [Churner(ports[0], args.rows, args.seed, stop)]
        for worker in load:
            worker.start()
        os.kill(process_of(cluster, 2), signal.SIGKILL)
        early = kill_again_and_again(cluster, args.kills, chooser)
        began = time.monotonic()
        cluster.wait_whole(60)
        print(f"restart kills: {args.kills}, {early} of them before the node was a full replica; whole {time.monotonic() - began:.2f} s "
              "after the last", flush=True)
        stop.set()
        for worker in load:
            worker.join(30)
            assert not worker.is_alive() and not worker.failure, worker.failure
        for when in ("in memory", "from logs"):
            wrong = check(ledger, ports)
            assert not wrong, f"{when}: {wrong}"
            # Each node reads single rows from its own replica.
            found = []
            for port in ports:
                own = connect(port, 60)
                keys = range(0, args.rows + 20, 500)
                found.append([sorted(own.query(f"SELECT id, n, pad FROM filler WHERE id IN ({','.join(map(str, range(at, at + 500)))})"))
                              for at in keys])
            assert found[0] == found[1], f"{when}: the nodes have other rows of the large table"
            total = rows(ports[0], "SELECT COUNT(*), SUM(n) FROM filler")
            if when == "in memory":
                setup = connect(ports[0], 60)
                setup.query("SET durability = 'disk'")
                setup.query("INSERT INTO filler VALUES (-1, 0, 'the last one')")
                before = (total, found)
                cluster.kill_all(False, chooser)
                cluster.wait_whole(60)
                rows(ports[0], "DELETE FROM filler WHERE id = -1")
        assert (total, found) == before, "rows are others after all nodes have died"
    finally:
        cluster.run("stop")
        shutil.rmtree(os.path.dirname(cluster.directory))
    print("restart kills: all rows are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
