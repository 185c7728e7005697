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
import time

from cluster import PATIENCE_S, TEMPORARY, Disturbed, Durable, connect, repeated, rows as rows_of, wait_until
from minimysql import MySQLError

ROWS = 200
PAD = "x" * 1_000


class Small(Durable):
    """Node 2 has a small disk."""

    def __init__(self, binary, sql_port, mib):
        super().__init__(binary, sql_port)
        self.stop()
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

    def used_mib(self):
        return shutil.disk_usage(self.disk).used >> 20

    def __exit__(self, *what):
        try:
            super().__exit__(*what)
        finally:
            subprocess.run(["umount", self.disk], check=False)


def insert(connection, first):
    values = ",".join(f"({i},'{PAD}')" for i in range(first, first + ROWS))
    connection.query("INSERT INTO t VALUES " + values)


def fill(cluster, connection):
    """Until the disk is full, and changes are refused; gives the number of rows."""
    at, refused, end = 0, 0, time.monotonic() + 3 * PATIENCE_S
    # Who was refused is told why.
    numbers = set()
    while refused < 5:
        assert time.monotonic() < end, f"{at} rows, {cluster.free_mib()} MiB are free, {refused} changes were refused"
        try:
            insert(connection, at)
            at += ROWS
        except MySQLError as error:
            assert error.number in TEMPORARY, error
            refused += 1
            numbers.add(error.number)
            assert error.number != 1021 or "`latsdb status` names the disk" in str(error), error
            time.sleep(0.1)
    assert 1021 in numbers, f"changes were refused with {numbers}, and none of these says that a disk is full"
    return at


def is_shown(cluster):
    """`status` names the disk, its bytes, and what to do; the others' are good."""
    nodes = {n["node_id"]: n for n in cluster.nodes()}
    disk, other = nodes[2]["disk"], nodes[1]["disk"]
    assert disk["state"] == "full" and disk["path"] == cluster.disk, disk
    assert 0 <= disk["free_bytes"] < 8 << 20 < disk["total_bytes"] and disk["wanted_bytes"] > 0 and disk["waiting_bytes"] > 0, disk
    assert other["state"] != "full", other
    text = cluster.run("status")
    line = next(line for line in text.splitlines() if "THE DISK IS FULL" in line)
    assert cluster.disk in line and "MiB are free" in line and "make room" in line, line
    print(f"full disk: status says: {line}", flush=True)
    told = [line for line in cluster.log().splitlines() if f"the disk of {cluster.disk}" in line and "is full" in line]
    assert told and "bytes are free" in told[0] and "make room" in told[0], told
    assert len(told) < 30, f"the log says {len(told)} times that the disk is full"


def once(args):
    with Small(args.binary, args.sql_port, args.mib) as cluster:
        cluster.start()
        cluster.wait_whole()
        removed, processes = cluster.removed(), cluster.pids()

        def nobody_has_ended():
            if cluster.pids() != processes:
                if cluster.was_disturbed(removed):
                    raise Disturbed(f"nodes {cluster.removed()[len(removed):]} were removed")
                raise AssertionError("a node has ended")

        with cluster.undisturbed():
            connection = connect(args.sql_port)
            connection.query("CREATE TABLE t (id INT PRIMARY KEY, pad VARCHAR(2000) NOT NULL)")
            rows = fill(cluster, connection)
            nobody_has_ended()
            assert cluster.free_mib() < 8, "changes are refused although there is room"
            print(f"full disk: {rows} rows, then changes are refused; {cluster.free_mib()} MiB are free", flush=True)
            is_shown(cluster)
            for port in (args.sql_port, args.sql_port + 1):
                reader = connect(port)
                assert reader.query("SELECT COUNT(*) FROM t") == [[str(rows)]], "reads do not go on"
                assert reader.query(f"SELECT id FROM t WHERE id = {rows - 1}") == [[str(rows - 1)]]
            nobody_has_ended()
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

            _, took = wait_until("changes go on when there is room", goes_on, cluster.describe)
            print(f"full disk: changes go on {took:.2f} s after there was room", flush=True)
            wait_until("status says that the disk is good",
                       lambda: all(n["disk"]["state"] in ("good", "slow") for n in cluster.nodes()), cluster.describe)
            rows += ROWS
            nobody_has_ended()
        cluster.kill_all(False, random.Random(1))
        cluster.wait_whole()
        for port in (args.sql_port, args.sql_port + 1):
            found = rows_of(port, "SELECT COUNT(*), MAX(id) FROM t")
            assert found == [[str(rows), str(rows - 1)]], f"{found} instead of {rows} rows"
    print("full disk: all is right")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--mib", type=int, default=100)
    parser.add_argument("--sql-port", type=int, default=16106)
    args = parser.parse_args()
    return repeated("full disk", lambda: once(args))


if __name__ == "__main__":
    sys.exit(main())
