#!/usr/bin/env python3
"""Thousands of tables.

A session that waits for disks makes tables; another one reads a row meanwhile. Prints how long definitions took, first and last, and how
long the slowest of these reads. Then a node is killed and comes back: no other one is removed, and it knows every table. All nodes end and
start again; rows of the first and the last table are there. At last the database is dropped as a whole.
many_tables.py [--binary target/release/latsdb] [--tables 10000] [--sql-port 16706]"""

import argparse
import os
import signal
import sys
import threading
import time

from cluster import LOST, Durable, connect, insist, repeated, rows
from minimysql import MySQLError

SAMPLE = 500


class Neighbour(threading.Thread):
    """Reads one row, over and over."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.slowest_s, self.count, self.ends = port, 0.0, 0, threading.Event()
        self.wrong = None

    def run(self):
        try:
            self.read()
        except (MySQLError, *LOST) as error:
            self.wrong = error

    def read(self):
        connection = connect(self.port)
        while not self.ends.is_set():
            began = time.monotonic()
            connection.query("SELECT n FROM test.one WHERE id = 1")
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            self.count += 1
            time.sleep(0.001)


def make(port, count):
    """Gives how long each definition took."""
    connection, took = connect(port), []
    connection.query("SET durability = 'disk'")
    for number in range(count):
        began = time.monotonic()
        connection.query(f"CREATE TABLE many.t{number} (id INT PRIMARY KEY, a INT, b VARCHAR(20), KEY (a))")
        took.append(time.monotonic() - began)
    connection.query("INSERT INTO many.t0 VALUES (1, 2, 'first')")
    connection.query(f"INSERT INTO many.t{count - 1} VALUES (1, 2, 'last')")
    connection.close()
    return took


def told(took):
    in_order = sorted(took)
    return f"median {in_order[len(took) // 2] * 1_000:.1f} ms, p99 {in_order[len(took) * 99 // 100] * 1_000:.1f} ms"


def value(port, query):
    """The one value that a query gives, as text."""
    ((found,),) = rows(port, query)
    return found.decode() if isinstance(found, bytes) else str(found)


def knows_all(ports, count):
    for port in ports:
        names = rows(port, "SHOW TABLES FROM many")
        assert len(names) == count, f"{len(names)} tables of {count} at port {port}"
        assert value(port, "SELECT b FROM many.t0") == "first"
        assert value(port, f"SELECT b FROM many.t{count - 1}") == "last"


def comes_back(cluster, ports, count):
    """The second node is killed."""
    before, removed = cluster.pids()[2], cluster.removed()
    began = time.monotonic()
    os.kill(before, signal.SIGKILL)
    cluster.wait_whole((before,))
    print(f"many tables: a killed node serves again after {time.monotonic() - began:.1f} s", flush=True)
    again = cluster.removed()[len(removed):]
    assert again in ([], [2]), f"these were removed meanwhile: {again}"
    knows_all(ports, count)


def once(args):
    ports = [args.sql_port, args.sql_port + 1]
    with Durable(args.binary, args.sql_port) as cluster:
        for statement in ("CREATE DATABASE many", "CREATE TABLE test.one (id INT PRIMARY KEY, n INT)", "INSERT INTO test.one VALUES (1, 1)"):
            insist(lambda statement=statement: connect(ports[0]).query(statement))
        neighbour = Neighbour(ports[1])
        neighbour.start()
        with cluster.undisturbed():
            took = make(ports[0], args.tables)
        neighbour.ends.set()
        neighbour.join()
        if neighbour.wrong:
            raise neighbour.wrong
        assert neighbour.count > 0, "the neighbour has read nothing"
        sample = min(SAMPLE, args.tables // 2)
        print(f"many tables: {args.tables} in {sum(took):.1f} s; the first {sample}: {told(took[:sample])}; the last: "
              f"{told(took[-sample:])}; {neighbour.count} reads, the slowest {neighbour.slowest_s * 1_000:.1f} ms", flush=True)
        with cluster.undisturbed():
            comes_back(cluster, ports, args.tables)
        cluster.stop()
        began = time.monotonic()
        cluster.start()
        cluster.wait_whole()
        print(f"many tables: the cluster serves after {time.monotonic() - began:.1f} s", flush=True)
        knows_all(ports, args.tables)
        insist(lambda: connect(ports[0]).query("DROP DATABASE IF EXISTS many"))
        assert value(ports[1], "SELECT n FROM test.one") == "1"
        assert rows(ports[1], "SHOW DATABASES LIKE 'many'") == []
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--sql-port", type=int, default=16706)
    return repeated("many tables", lambda args=parser.parse_args(): once(args))


if __name__ == "__main__":
    sys.exit(main())
