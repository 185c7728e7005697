#!/usr/bin/env python3
"""Nodes that are away for long, or for ever.

A data node is stopped; meanwhile a table is written over and over, until the others have trimmed what it would need from their logs,
tables are dropped and made anew, and the other nodes are killed and restarted, too. When it comes back it must have the same rows as
the others, in memory, and on its disk: it is then the only one that is left. With --long its disk is replaced by an empty one, too.

Then all nodes die, and a disk is gone: the cluster must wait and say for whom; started with --partial it serves all rows with the other
replica of each group, and fills the one that comes back with an empty disk.
"""

import argparse
import glob
import os
import random
import shutil
import signal
import sys
import time

from cluster import PATIENCE_S, Durable, connect, insist, repeated, rows, wait_until
from minimysql import MySQLError

ROWS = 2_000
TABLES = ("kept", "written", "made_anew")
# A cluster that says what it waits for might serve all the same, a little later.
LATER_S = 1.0


def do(port, *statements):
    """Statements that may be run again, in a session that waits for disks."""
    def ask():
        connection = connect(port)
        for statement in ("SET durability = 'disk'", *statements):
            connection.query(statement)
        connection.close()
    insist(ask)


def fill(port, name, text):
    values = [",".join(f"({i}, 0, '{text}')" for i in range(at, at + 500)) for at in range(0, ROWS, 500)]
    do(port, f"CREATE TABLE IF NOT EXISTS {name} (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(1000) NOT NULL, KEY (n))",
       *(f"REPLACE INTO {name} VALUES {part}" for part in values))


def content(port):
    """All rows, by the primary key and by another index."""
    found = {}
    for name in TABLES:
        found[name] = rows(port, f"SELECT id, n, pad FROM {name} ORDER BY id")
        by_index = rows(port, f"SELECT id, n FROM {name} WHERE n >= 0 ORDER BY n, id")
        assert sorted(by_index) == sorted(row[:2] for row in found[name]), f"the index of {name} on port {port} has other rows"
    return found


def segments(cluster, node):
    """The numbers of the segments of a node's log."""
    paths = glob.glob(os.path.join(cluster.directory, f"node-{node}", "redo-0-*.log"))
    return sorted(int(path.rsplit("-", 1)[1].split(".")[0]) for path in paths)


def directory(cluster, node):
    return os.path.join(cluster.directory, f"node-{node}")


def change_much(cluster, port, chooser, node):
    """Until the log of another node begins behind all that it had."""
    last, turns = segments(cluster, node)[-1], 0
    end = time.monotonic() + 3 * PATIENCE_S
    while segments(cluster, node)[0] <= last:
        assert time.monotonic() < end, f"the log is not trimmed: {segments(cluster, node)}"
        rows(port, f"UPDATE written SET n = n + 1, pad = '{chooser.choice('abcdef') * 900}'")
        turns += 1
    return turns


def away(cluster, ports, chooser, empty):
    for name in TABLES:
        do(ports[0], f"DROP TABLE IF EXISTS {name}")
        fill(ports[0], name, "x" * 100)
    cluster.wait_whole()
    cluster.run("stop-node", "2")
    turns = change_much(cluster, ports[0], chooser, 1)
    gone = chooser.sample(range(ROWS), ROWS // 2)
    do(ports[0], "DELETE FROM kept WHERE id IN (" + ",".join(map(str, gone)) + ")", "DROP TABLE IF EXISTS made_anew")
    fill(ports[0], "made_anew", "y" * 200)
    do(ports[0], "UPDATE made_anew SET n = 7 WHERE id < 10")
    expected = content(ports[0])
    if empty:
        shutil.rmtree(directory(cluster, 2))
    cluster.run("start-node", "2")
    cluster.wait_whole()
    for port in ports[:2]:
        assert content(port) == expected, f"port {port} has other rows than before"
    cluster.kill_all(False, chooser)
    cluster.wait_whole()
    # What node 2 has on its disk is all that there is now.
    cluster.run("stop-node", "1")
    assert content(ports[1]) == expected, "the node that was away has other rows"
    cluster.run("start-node", "1")
    cluster.wait_whole()
    how = "with an empty disk" if empty else "with its log"
    print(f"away: a node came back {how} after all of its log was trimmed at the other one ({turns} rounds of {ROWS} changes)", flush=True)


def partial(cluster, ports, chooser, lost):
    """Disks of one replica of each group are gone."""
    do(ports[0], "SET PERSIST durability = 'disk'")
    do(ports[-1], "UPDATE kept SET n = 3")
    cluster.wait_whole()
    expected = content(ports[0])
    # Who has noted that the others are gone does not wait for their disks.
    cluster.kill_all(True, chooser, at_once=True)
    for node in lost:
        shutil.rmtree(directory(cluster, node))
    earlier = len(cluster.log())
    waiting = cluster.starting()
    wait_until("somebody says what can be done", lambda: waiting.poll() is not None or "--partial" in cluster.log()[earlier:],
               cluster.describe)
    time.sleep(LATER_S)
    served = None
    try:
        served = connect(ports[0], 2).query("SELECT COUNT(*) FROM kept")
    except (OSError, MySQLError):
        pass
    assert waiting.poll() is None, f"start has ended: {waiting.communicate()}"
    assert served is None, f"without the disks of {lost} the cluster serves {served}"
    cluster.kill_all(True, chooser)
    # The command shows the last line of the log only, and that may be another one.
    said = "".join(waiting.communicate(timeout=PATIENCE_S)) + cluster.log()[earlier:]
    assert "--partial" in said, f"nobody says what can be done: {said}"
    began = time.monotonic()
    cluster.start("--partial")
    cluster.wait_whole()
    took = time.monotonic() - began
    for port in ports:
        assert content(port) == expected, f"port {port} has other rows than before"
        found = rows(port, "SELECT @@durability")
        assert found == [["disk"]], f"port {port} has forgotten what commits wait for: {found}"
    print(f"away: without the disks of {lost} the cluster waits, and with --partial it is whole after {took:.1f} s", flush=True)


def lost(cluster, ports, chooser):
    """Both nodes of a group die at once. They come back with their disks, and the others go on without: they say what is to be done."""
    do(ports[0], "UPDATE kept SET n = 4")
    cluster.wait_whole()
    expected, pids = content(ports[0]), cluster.pids()
    for node in (3, 4):
        os.kill(pids[node], signal.SIGKILL)
    wait_until("somebody says that a node group is lost, and what can be done",
               lambda: "all nodes are stopped and started again" in cluster.log(), cluster.describe)
    cluster.stop()
    cluster.start()
    cluster.wait_whole()
    for port in ports:
        assert content(port) == expected, f"port {port} has other rows than before"
    print("away: a lost node group is back when all nodes were started again, as a waiting node had said", flush=True)


def one_cluster(args, nodes, gone, chooser):
    ports = [args.sql_port + i for i in range(nodes)]
    with Durable(args.binary, args.sql_port, "--nodes", str(nodes), "--replicas", "2") as cluster, cluster.undisturbed():
        if nodes == 2:
            away(cluster, ports, chooser, False)
            if args.long:
                away(cluster, ports, chooser, True)
        else:
            for name in TABLES:
                fill(ports[0], name, "z" * 50)
            lost(cluster, ports, chooser)
        partial(cluster, ports, chooser, gone)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=16906)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--long", action="store_true", help="a node comes back with an empty disk after so long, too")
    args = parser.parse_args()
    print(f"away: seed {args.seed}", flush=True)
    chooser = random.Random(args.seed)
    for nodes, gone in ((2, [2]), (4, [chooser.choice([1, 2]), chooser.choice([3, 4])])):
        repeated("away", lambda nodes=nodes, gone=gone: one_cluster(args, nodes, gone, chooser))
    print("away: all is right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
