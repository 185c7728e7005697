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
import subprocess
import sys
import time

from blackout import Durable
from minimysql import Connection, MySQLError

ROWS = 2_000
TABLES = ("kept", "written", "made_anew")


def connect(port):
    return Connection(port, "test", timeout=30)


def fill(connection, name, text):
    connection.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(1000) NOT NULL, KEY (n))")
    for at in range(0, ROWS, 500):
        connection.query(f"INSERT INTO {name} VALUES " + ",".join(f"({i}, 0, '{text}')" for i in range(at, at + 500)))


def content(port):
    """All rows, by the primary key and by another index."""
    connection = connect(port)
    found = {}
    for name in TABLES:
        found[name] = connection.query(f"SELECT id, n, pad FROM {name} ORDER BY id")
        by_index = connection.query(f"SELECT id, n FROM {name} WHERE n >= 0 ORDER BY n, id")
        assert sorted(by_index) == sorted(row[:2] for row in found[name]), f"the index of {name} on port {port} has other rows"
    connection.close()
    return found


def segments(cluster, node):
    """The numbers of the segments of a node's log."""
    paths = glob.glob(os.path.join(cluster.directory, f"node-{node}", "redo-0-*.log"))
    return sorted(int(path.rsplit("-", 1)[1].split(".")[0]) for path in paths)


def directory(cluster, node):
    return os.path.join(cluster.directory, f"node-{node}")


def change_much(cluster, connection, chooser, node):
    """Until the log of another node begins behind all that it had."""
    last = segments(cluster, node)[-1]
    end = time.monotonic() + 150
    for turn in range(1, 100_000):
        if segments(cluster, node)[0] > last:
            return turn
        assert time.monotonic() < end, f"the log is not trimmed: {segments(cluster, node)}"
        connection.query(f"UPDATE written SET n = n + 1, pad = '{chooser.choice('abcdef') * 900}'")
    return 0


def away(cluster, ports, chooser, empty):
    connection = connect(ports[0])
    for name in TABLES:
        connection.query(f"DROP TABLE IF EXISTS {name}")
        fill(connection, name, "x" * 100)
    cluster.run("stop-node", "2")
    turns = change_much(cluster, connection, chooser, 1)
    gone = chooser.sample(range(ROWS), ROWS // 2)
    connection.query("DELETE FROM kept WHERE id IN (" + ",".join(map(str, gone)) + ")")
    connection.query("DROP TABLE made_anew")
    fill(connection, "made_anew", "y" * 200)
    connection.query("SET durability = 'disk'")
    connection.query("UPDATE made_anew SET n = 7 WHERE id < 10")
    connection.close()
    expected = content(ports[0])
    if empty:
        shutil.rmtree(directory(cluster, 2))
    cluster.run("start-node", "2")
    cluster.wait_whole(60)
    for port in ports[:2]:
        assert content(port) == expected, f"port {port} has other rows than before"
    cluster.kill_all(False, chooser)
    cluster.wait_whole(60)
    # What node 2 has on its disk is all that there is now.
    cluster.run("stop-node", "1")
    assert content(ports[1]) == expected, "the node that was away has other rows"
    cluster.run("start-node", "1")
    cluster.wait_whole(60)
    how = "with an empty disk" if empty else "with its log"
    print(f"away: a node came back {how} after all of its log was trimmed at the other one ({turns} rounds of {ROWS} changes)", flush=True)


def start(cluster, *options):
    line = [cluster.binary, "start", "--data-dir", cluster.directory, "--sql-port", str(cluster.sql_port), "--detach",
            "--restart-delay-ms", "200", "--memory-mib", "1024", *cluster.options, *options]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def partial(cluster, ports, chooser, lost):
    """Disks of one replica of each group are gone."""
    connection = connect(ports[0])
    connection.query("SET PERSIST durability = 'disk'")
    connection.close()
    connection = connect(ports[-1])
    connection.query("UPDATE kept SET n = 3")
    connection.close()
    expected = content(ports[0])
    cluster.kill_all(True, chooser)
    for node in lost:
        shutil.rmtree(directory(cluster, node))
    waiting = start(cluster)
    time.sleep(6)
    served = None
    try:
        served = connect(ports[0]).query("SELECT COUNT(*) FROM kept")
    except (OSError, MySQLError):
        pass
    assert waiting.poll() is None, f"start has ended: {waiting.communicate()}"
    assert served is None, f"without the disks of {lost} the cluster serves {served}"
    cluster.kill_all(True, chooser)
    said, _ = waiting.communicate(timeout=30)
    assert "--partial" in said, f"nobody says what can be done: {said}"
    began = time.monotonic()
    started = start(cluster, "--partial")
    said, _ = started.communicate(timeout=120)
    assert started.returncode == 0, said
    cluster.wait_whole(60)
    took = time.monotonic() - began
    for port in ports:
        assert content(port) == expected, f"port {port} has other rows than before"
        found = connect(port).query("SELECT @@durability")
        assert found == [("disk",)] or found == [["disk"]], f"port {port} has forgotten what commits wait for: {found}"
    print(f"away: without the disks of {lost} the cluster waits, and with --partial it is whole after {took:.1f} s", flush=True)


def lost(cluster, ports, chooser):
    """Both nodes of a group die at once. They come back with their disks, and the others go on without: they say what is to be done."""
    connection = connect(ports[0])
    connection.query("SET durability = 'disk'")
    connection.query("UPDATE kept SET n = 4")
    connection.close()
    expected = content(ports[0])
    pids = {node["node_id"]: node["pid"] for node in cluster.nodes()}
    for node in (3, 4):
        os.kill(pids[node], signal.SIGKILL)
    end = time.monotonic() + 30
    while "all nodes are stopped and started again" not in open(cluster.directory + ".log").read():
        assert time.monotonic() < end, "nobody says that a node group is lost, and what can be done"
        time.sleep(0.2)
    cluster.run("stop")
    started = start(cluster)
    said, _ = started.communicate(timeout=120)
    assert started.returncode == 0, said
    cluster.wait_whole(60)
    for port in ports:
        assert content(port) == expected, f"port {port} has other rows than before"
    print("away: a lost node group is back when all nodes were started again, as a waiting node had said", flush=True)


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
        ports = [args.sql_port + i for i in range(nodes)]
        cluster = Durable(args.binary, args.sql_port, "--nodes", str(nodes), "--replicas", "2")
        try:
            if nodes == 2:
                away(cluster, ports, chooser, False)
                if args.long:
                    away(cluster, ports, chooser, True)
            else:
                connection = connect(ports[0])
                for name in TABLES:
                    fill(connection, name, "z" * 50)
                connection.close()
                lost(cluster, ports, chooser)
            partial(cluster, ports, chooser, gone)
        except BaseException:
            print(f"away: files are left in {cluster.directory}", flush=True)
            cluster.kill_all(True, chooser)
            raise
        cluster.run("stop")
        shutil.rmtree(cluster.directory)
    print("away: all is right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
