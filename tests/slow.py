#!/usr/bin/env python3
"""Nobody is removed for being slow: other programs take the processors, statements and definitions are a lot of work, and no node goes.

slow.py --sql-port PORT: starts a cluster of two replicas and a witness while busy loops run on all processors, changes all rows of an indexed
table again and again, loads rows, and makes many tables at once. Then a data node is killed, and the others must notice it by its closed
links, not by its silence. With --seconds 3600 --rows 1000000 --definitions 400 it is the long run of `docs/testing.md`.
"""

import argparse
import datetime
import os
import re
import signal
import subprocess
import sys
import threading
import time

from cluster import LEASE_S, PATIENCE_S, Durable, connect, is_alive, is_temporary, port_of, wait_until
from minimysql import MySQLError

# Of a statement: the load that is wanted, and what a session may send at once.
ROWS_AT_ONCE = 2_000
DEFINERS = 16
LOOP = "import sys, time\nend = time.time() + float(sys.argv[1])\nwhile time.time() < end:\n    sum(range(10_000))"


class Loops:
    """Busy loops that end with this test, or after the time that they were given."""

    def __init__(self, per_processor, seconds):
        count = per_processor * len(os.sched_getaffinity(0))
        self.loops = [subprocess.Popen([sys.executable, "-c", LOOP, str(seconds)]) for _ in range(count)]
        print(f"slow: {count} busy loops run beside {os.getloadavg()[0]:.1f} other threads", flush=True)

    def end(self):
        for loop in self.loops:
            loop.kill()
            loop.wait()


class Worker(threading.Thread):
    """Does one kind of work again and again until it is over; temporary errors do not end it, and are counted."""

    def __init__(self, name, port, over, work):
        super().__init__(daemon=True, name=name)
        self.port, self.over, self.work = port, over, work
        self.done, self.temporary, self.longest_s, self.error = 0, 0, 0.0, None

    def run(self):
        connection = None
        while not self.over.is_set():
            begun = time.monotonic()
            try:
                connection = connection or connect(self.port)
                self.work(connection, self.done)
                self.done += 1
            except (MySQLError, OSError) as error:
                if not is_temporary(error):
                    self.error = error
                    return
                self.temporary += 1
                if not isinstance(error, MySQLError):
                    connection = None
                time.sleep(0.1)
            self.longest_s = max(self.longest_s, time.monotonic() - begun)


class Watch(threading.Thread):
    """Looks at the cluster's state all the time."""

    def __init__(self, cluster, over):
        super().__init__(daemon=True)
        self.cluster, self.over = cluster, over
        self.largest = {"heard_ms": 0, "late_ms": 0, "longest_turn_us": 0}

    def run(self):
        while not self.over.wait(0.5):
            for node in self.cluster.all_nodes():
                for name in self.largest:
                    self.largest[name] = max(self.largest[name], node.get(name) or 0)


def fill(port, rows):
    desk = connect(port)
    desk.query("CREATE TABLE slow (id INT PRIMARY KEY, v INT, w INT, KEY by_v (v), KEY by_w (w))")
    for first in range(0, rows, ROWS_AT_ONCE):
        load(desk, "slow", first, min(rows, first + ROWS_AT_ONCE))
    desk.close()


def load(connection, table, first, end):
    values = ", ".join(f"({i}, {i}, {i % 1000})" for i in range(first, end))
    for _ in range(100):
        try:
            return connection.query(f"INSERT IGNORE INTO {table} VALUES {values}")
        except MySQLError as error:
            if not is_temporary(error):
                raise
            time.sleep(0.1)
    raise RuntimeError(f"{table} cannot be loaded")


def definitions(connection, turn, own, count):
    """Makes its share of the tables, all definers at once, and drops them."""
    for number in range(own, count, DEFINERS):
        connection.query(f"CREATE TABLE IF NOT EXISTS defined_{number} (id INT PRIMARY KEY, v INT, w VARCHAR(20), KEY by_v (v))")
    for number in range(own, count, DEFINERS):
        connection.query(f"DROP TABLE IF EXISTS defined_{number}")


def bulk(connection, turn, rows):
    if turn == 0:
        connection.query("CREATE TABLE IF NOT EXISTS loaded (id INT PRIMARY KEY, v INT, w INT, KEY by_v (v))")
    if turn % 50 == 49:
        connection.query("TRUNCATE TABLE loaded")
    first = turn % 50 * ROWS_AT_ONCE
    load(connection, "loaded", first, first + min(rows, ROWS_AT_ONCE))


def workers(cluster, args, over):
    ports = [port_of(node) for node in cluster.nodes()]
    step = max(1, args.rows // args.statements)

    def update(connection, turn):
        first = turn % args.statements * step
        connection.query(f"UPDATE slow SET v = v + 1, w = w + 1 WHERE id >= {first} AND id < {first + step}")

    def point(connection, turn):
        connection.query(f"SELECT v FROM slow WHERE id = {turn % args.rows}")
        time.sleep(0.02)

    works = [("UPDATE", ports[0], update), ("point read", ports[0], point), ("point read", ports[1], point),
             ("load", ports[1], lambda c, turn: bulk(c, turn, args.rows))]
    works += [("definitions", ports[own % 2], lambda c, turn, own=own: definitions(c, turn, own, args.definitions)) for own in range(DEFINERS)]
    return [Worker(name, port, over, work) for name, port, work in works]


def works_on(cluster, args):
    """All kinds of work at once, for the time that is wanted."""
    over = threading.Event()
    watch, working = Watch(cluster, over), workers(cluster, args, over)
    for thread in [watch, *working]:
        thread.start()
    end = time.monotonic() + args.seconds
    while time.monotonic() < end and not cluster.removed():
        time.sleep(0.5)
    over.set()
    for thread in working:
        thread.join(PATIENCE_S)
    for name in ("UPDATE", "point read", "load", "definitions"):
        of = [w for w in working if w.name == name]
        longest = max(w.longest_s for w in of)
        print(f"slow: {name}: {sum(w.done for w in of)} times, {sum(w.temporary for w in of)} temporary errors, longest {longest:.2f} s", flush=True)
    print(f"slow: {watch.largest}", flush=True)
    errors = [f"{w.name}: {w.error}" for w in working if w.error]
    assert not errors, errors
    assert all(w.done or w.name == "definitions" for w in working), "some work has not come on at all"


def killed(cluster):
    """The others notice the end of a process by its closed links."""
    victim = cluster.nodes()[1]
    known, begun = len(cluster.log()), time.time()
    os.kill(victim["pid"], signal.SIGKILL)
    while is_alive(victim["pid"]):
        time.sleep(0.0002)
    gone = time.time()
    seen = r"^(\S+Z) .*the process of node %d, its life \d+, has ended for certain" % victim["node_id"]
    found, _ = wait_until("somebody notices the end of a node", lambda: re.findall(seen, cluster.log()[known:], re.MULTILINE), cluster.describe)
    at = min(datetime.datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp() for when in found)
    ended_ms, noticed_ms = (1000 * (when - begun) for when in (gone, at))
    print(f"slow: the kernel had ended a killed node after {ended_ms:.1f} ms; the others knew after {noticed_ms:.1f} ms", flush=True)
    assert at - gone < LEASE_S, "they have waited for the end of its lease"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=15306)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--loops", type=int, default=4, help="busy loops for each processor")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--statements", type=int, default=4, help="so many UPDATEs change all rows once")
    parser.add_argument("--definitions", type=int, default=64)
    parser.add_argument("--thread-config", help="the nodes' threads: with main+recv+tc+ldm={count=1} heartbeats wait for statements")
    args = parser.parse_args()
    loops = Loops(args.loops, args.seconds + PATIENCE_S + args.rows / 1000)
    try:
        options = ["--thread-config", args.thread_config] if args.thread_config else []
        with Durable(args.binary, args.sql_port, *options) as cluster:
            fill(port_of(cluster.nodes()[0]), args.rows)
            works_on(cluster, args)
            assert not cluster.removed(), f"nodes were removed, and nothing was wrong with them: {cluster.removed()}"
            killed(cluster)
            cluster.wait_whole()
    finally:
        loops.end()


if __name__ == "__main__":
    main()
