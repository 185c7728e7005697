#!/usr/bin/env python3
"""Open transactions over a rejoin: a node comes back while a transaction that is older than it stays open.
The node must become a full replica nevertheless, and hear how the transaction ends: it is committed after a
part of it was taken back, rolled back, or lost with its coordinator, right after the node has become the only
one that holds its rows. If a node is removed meanwhile, because it got no processor time for a lease, the transaction may be
refused: then all begins once more.
rejoin.py [--binary target/release/latsdb] [--rows 20000] [--sql-port 14506]"""

import argparse
import os
import signal
import sys
import time

from cluster import PATIENCE_S, Cluster, connect, insist, repeated, wait_until
from kill import own_rows

STEP = 2_000


def fill(connection, rows):
    connection.query("CREATE TABLE IF NOT EXISTS big (id INT PRIMARY KEY, n INT, name CHAR(40), UNIQUE KEY by_name (name))")
    connection.query(f"DELETE FROM big WHERE id >= {rows}")
    for at in range(0, rows, STEP):
        connection.query("REPLACE INTO big VALUES " + ",".join(f"({i}, 0, 'name {i}')" for i in range(at, at + STEP)))


def change(connection, rows):
    """An open transaction with changes of every kind; its second half can be taken back."""
    connection.query("BEGIN")
    for at in range(0, rows // 2, STEP):
        connection.query(f"UPDATE big SET n = n + 1 WHERE id >= {at} AND id < {at + STEP}")
    connection.query("DELETE FROM big WHERE id < 10")
    connection.query(f"INSERT INTO big VALUES ({rows}, 1, 'new'), (5, 5, 'again')")
    connection.query("SAVEPOINT half")
    connection.query("UPDATE big SET n = 100, name = CONCAT('x ', name) WHERE id >= 20 AND id < 1020")
    connection.query("DELETE FROM big WHERE id >= 1100 AND id < 1200")


def as_of_first_half(before, rows):
    """What `big` holds after the first half of `change`."""
    after = {i: (n + 1, name) if i < rows // 2 else (n, name) for i, (n, name) in before.items() if i >= 10}
    return {**after, rows: (1, "new"), 5: (5, "again")}


def held_by(port, rows):
    found = own_rows(port, "big", list(range(rows + 1)))
    return {int(i): (int(n), name) for i, n, name in found}


def check(ports, rows, expected, when):
    for port in ports:
        held = held_by(port, rows)
        odd = [i for i in held.keys() | expected.keys() if held.get(i) != expected.get(i)]
        assert not odd, f"{when}: the replica behind port {port} differs in {len(odd)} rows, e.g. {min(odd)}: " \
                        f"{held.get(min(odd))} instead of {expected.get(min(odd))}"


def rejoin_under(cluster, port, rows):
    """Gives an open transaction that is older than the replica of node 2."""
    cluster.run("stop-node", "2")
    open_one = connect(port)
    change(open_one, rows)
    began = time.monotonic()
    cluster.run("start-node", "2")
    cluster.wait_whole()
    print(f"rejoin: node 2 is a full replica after {time.monotonic() - began:.2f} s, and the transaction still open",
          flush=True)
    return open_one


def committed(cluster, ports, rows):
    """A part is taken back, and the rest is committed."""
    insist(lambda: fill(connect(ports[0]), rows))
    cluster.wait_whole()
    open_one = rejoin_under(cluster, ports[0], rows)
    open_one.query("ROLLBACK TO half")
    open_one.query("COMMIT")
    check(ports, rows, as_of_first_half({i: (0, f"name {i}") for i in range(rows)}, rows), "after a commit")


def rolled_back(cluster, ports, rows, expected):
    rejoin_under(cluster, ports[0], rows).query("ROLLBACK")
    check(ports, rows, expected, "after a rollback")


def lost(cluster, ports, rows, expected):
    """The coordinator dies."""
    open_one = rejoin_under(cluster, ports[0], rows)
    victim = cluster.nodes()[0]["pid"]
    os.kill(victim, signal.SIGKILL)
    is_primary = lambda: cluster.nodes()[1]["primary_slots"] == 2 or cluster.whole([victim])
    wait_until("node 2 is primary of all", is_primary, cluster.describe)
    check(ports[1:], rows, expected, "after its coordinator's death")
    heir = connect(ports[1])
    # Until the locks of the transaction are gone.
    heir.query(f"SET innodb_lock_wait_timeout = {PATIENCE_S // 2}")
    changed = heir.query("UPDATE big SET n = n + 1")
    assert changed == len(expected), f"{changed} rows were changed, of {len(expected)}"
    open_one.close()
    cluster.wait_whole([victim])
    check(ports, rows, {i: (n + 1, name) for i, (n, name) in expected.items()}, "at the end")


def once(args):
    ports, rows = [args.sql_port, args.sql_port + 1], args.rows
    with Cluster(args.binary, args.sql_port) as cluster, cluster.undisturbed():
        cluster.at_last("rejoin", lambda: committed(cluster, ports, rows))
        expected = as_of_first_half({i: (0, f"name {i}") for i in range(rows)}, rows)
        insist(lambda: connect(ports[0]).query(f"DELETE FROM big WHERE id = {rows}"))
        del expected[rows]
        cluster.at_last("rejoin", lambda: rolled_back(cluster, ports, rows, expected))
        cluster.at_last("rejoin", lambda: lost(cluster, ports, rows, held_by(ports[0], rows)))
    print("rejoin: all rows are right")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--sql-port", type=int, default=14506)
    args = parser.parse_args()
    return repeated("rejoin", lambda: once(args))


if __name__ == "__main__":
    sys.exit(main())
