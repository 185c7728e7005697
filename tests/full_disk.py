#!/usr/bin/env python3
"""The disk of one node fills up, with real processes: the file system of its directory is small. Changes are refused as
temporary then, reads go on, and no node ends; with more room all goes on by itself. Then everything is killed: whatever was
acknowledged as being on disk is there.
full_disk.py [--binary target/release/latsdb] [--mib 100] [--sql-port 16106]"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from blackout import Durable
from kill import TEMPORARY, connect, wait_until
from minimysql import MySQLError

ROWS = 200
PAD = "x" * 1_000


class Small(Durable):
    """Node 2 has a small disk."""

    def __init__(self, binary, sql_port, mib):
        super().__init__(binary, sql_port)
        self.wait_whole()
        self.run("stop")
        self.disk = os.path.join(self.directory, "node-2")
        shutil.copytree(self.disk, self.disk + ".kept")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "latsdb-test", self.disk],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            print(f"full disk: no file system can be mounted here: {mounted.stderr.strip()}")
            shutil.rmtree(os.path.dirname(self.directory))
            sys.exit(77)
        shutil.copytree(self.disk + ".kept", self.disk, dirs_exist_ok=True)
        shutil.rmtree(self.disk + ".kept")

    def grow(self, mib):
        subprocess.run(["mount", "-o", f"remount,size={mib}m", self.disk], check=True)

    def free_mib(self):
        return shutil.disk_usage(self.disk).free >> 20

    def end(self):
        subprocess.run([self.binary, "stop", "--data-dir", self.directory], capture_output=True, timeout=60, check=False)
        subprocess.run(["umount", self.disk], check=False)
        shutil.rmtree(os.path.dirname(self.directory))


def insert(connection, first):
    values = ",".join(f"({i},'{PAD}')" for i in range(first, first + ROWS))
    connection.query("INSERT INTO t VALUES " + values)


def fill(cluster, connection):
    """Until the disk is full, and changes are refused; gives the number of rows."""
    at, refused, end = 0, 0, time.monotonic() + 200
    while refused < 5:
        assert time.monotonic() < end, f"{at} rows, {cluster.free_mib()} MiB are free, {refused} changes were refused"
        try:
            insert(connection, at)
            at += ROWS
        except MySQLError as error:
            assert error.number in TEMPORARY, error
            refused += 1
            time.sleep(0.1)
    return at


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--mib", type=int, default=100)
    parser.add_argument("--sql-port", type=int, default=16106)
    args = parser.parse_args()
    cluster = Small(args.binary, args.sql_port, args.mib)
    try:
        cluster.start()
        processes = sorted(cluster.processes()[0])
        connection = connect(args.sql_port, 60)
        connection.query("CREATE TABLE t (id INT PRIMARY KEY, pad VARCHAR(2000) NOT NULL)")
        rows = fill(cluster, connection)
        assert cluster.free_mib() < 8, "changes are refused although there is room"
        print(f"full disk: {rows} rows, then changes are refused; {cluster.free_mib()} MiB are free", flush=True)
        for port in (args.sql_port, args.sql_port + 1):
            reader = connect(port, 10)
            assert reader.query("SELECT COUNT(*) FROM t") == [[str(rows)]], "reads do not go on"
            assert reader.query(f"SELECT id FROM t WHERE id = {rows - 1}") == [[str(rows - 1)]]
        assert sorted(cluster.processes()[0]) == processes, "a node has ended"
        cluster.grow(4 * args.mib)
        connection.query("SET durability = 'disk'")

        def goes_on():
            try:
                insert(connection, rows)
                return True
            except MySQLError as error:
                # An earlier try whose outcome was unknown may have come about.
                assert error.number in TEMPORARY | {1062}, error
                return error.number == 1062

        began = time.monotonic()
        wait_until(goes_on, 20, "changes are refused although there is room")
        print(f"full disk: changes go on {time.monotonic() - began:.2f} s after there was room", flush=True)
        rows += ROWS
        assert sorted(cluster.processes()[0]) == processes, "a node has ended"
        cluster.kill_all(False, random.Random(1))
        cluster.wait_whole(60)
        for port in (args.sql_port, args.sql_port + 1):
            found = connect(port, 30).query("SELECT COUNT(*), MAX(id) FROM t")
            assert found == [[str(rows), str(rows - 1)]], f"{found} instead of {rows} rows"
    finally:
        cluster.end()
    print("full disk: all is right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
