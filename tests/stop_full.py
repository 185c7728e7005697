#!/usr/bin/env python3
"""`latsdb stop` while the disk of a node is full (issue 29, H7).

The cluster must not say "stopped" while rows that it has acknowledged are on no disk: the command names the node and what would be lost,
ends with a status other than 0, and the cluster goes on. With room it stops, and every acknowledged row is there afterwards. With
--force it stops in any case, and says that something may be lost.
stop_full.py [--binary target/release/latsdb] [--mib 100] [--sql-port 16506]"""

import argparse
import os
import re
import sys
import time

from cluster import PATIENCE_S, TEMPORARY, Disturbed, connect, is_alive, repeated, rows, wait_until
from full_disk import ROWS, Small, insert
from minimysql import MySQLError

WAIT_S = 3


def fill(cluster, connection, first):
    """Until the disk is full; gives the number of rows that were acknowledged."""
    at, refused, end = first, 0, time.monotonic() + 3 * PATIENCE_S
    while refused < 3:
        assert time.monotonic() < end, f"{at} rows, {cluster.free_mib()} MiB are free, {refused} changes were refused"
        try:
            insert(connection, at)
            at += ROWS
        except MySQLError as error:
            assert error.number in TEMPORARY, error
            refused += 1
            time.sleep(0.1)
    return at


def stop(cluster, *options):
    """The command; gives its status and all that it has said."""
    command = cluster.popen("stop", "--wait-s", str(WAIT_S), *options)
    said = "".join(command.communicate(timeout=PATIENCE_S))
    return command.returncode, said


def is_refused(cluster):
    pids = cluster.pids()
    status, said = stop(cluster)
    assert status != 0, f"stop says that all is well: {said}"
    assert re.search(r"not stopped.*last [0-9.]+ s.*node 2 has only.*disk is full", said, re.DOTALL), said
    assert cluster.processes()[1] is not None, "the supervisor has ended"
    assert cluster.pids() == pids, "a node has ended"
    print(f"stop with a full disk: {said.strip()}", flush=True)


def once(args):
    with Small(args.binary, args.sql_port, args.mib) as cluster:
        cluster.start()
        cluster.wait_whole()
        removed = cluster.removed()
        try:
            with cluster.undisturbed():
                connection = connect(args.sql_port)
                connection.query("CREATE TABLE t (id INT PRIMARY KEY, pad VARCHAR(2000) NOT NULL)")
                count = fill(cluster, connection, 0)
                is_refused(cluster)
                found = connect(args.sql_port + 1).query("SELECT COUNT(*) FROM t")
                assert found == [[str(count)]], f"after the refusal there are {found} rows of {count}"
        except AssertionError:
            if cluster.was_disturbed(removed):
                raise Disturbed(f"nodes {cluster.removed()[len(removed):]} were removed") from None
            raise
        cluster.grow(4 * args.mib)
        wait_until("it stops when there is room", lambda: stop(cluster)[0] == 0, cluster.describe)
        cluster.start()
        cluster.wait_whole()
        found = rows(args.sql_port, "SELECT COUNT(*) FROM t")
        assert found == [[str(count)]], f"{found} rows instead of {count}"
        print(f"stop with a full disk: with room it stops, and all {count} rows are there", flush=True)
        with cluster.undisturbed():
            cluster.grow(cluster.used_mib() + 2)
            fill(cluster, connect(args.sql_port), count)
            nodes, supervisor = cluster.processes()
            status, said = stop(cluster, "--force")
            assert status == 0 and "may be lost" in said, f"stop --force: status {status}, {said}"
            for pid in [*nodes, supervisor]:
                wait_until("it has ended", lambda pid=pid: not is_alive(pid))
        print(f"stop with a full disk: {said.strip()}", flush=True)
        cluster.grow(8 * args.mib)
        cluster.start()
        cluster.wait_whole()
    print("stop with a full disk: all is right")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--mib", type=int, default=100)
    parser.add_argument("--sql-port", type=int, default=16506)
    args = parser.parse_args()
    return repeated("stop with a full disk", lambda: once(args))


if __name__ == "__main__":
    sys.exit(main())
