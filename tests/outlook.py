#!/usr/bin/env python3
"""What `latsdb status` says of the future, and what `declare-dead` can do: two data nodes and a witness in namespaces.

A witness that is cut off is shown as unheard, and no machine may fail then; a person may take it out. When no two nodes hear each other
both data nodes wait with their rows, and say for whom; they go on when the cables are mended. When the other nodes are gone for ever a
person's word lets the last one go on alone. Needs root, `ip` and `nft`; ends with 77 if it may not make namespaces here.

outlook.py [--binary target/release/latsdb]"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

import cluster as clusters
from cluster import PATIENCE_S, insist
from minimysql import MySQLError
from partition import Cluster, Net, address, apart, in_namespaces

DATA, NODES, WITNESS = (1, 2), (1, 2, 3), 3
# Nobody ends within this time.
STAYS_S = 4.0


def check(good, what):
    assert good, what
    print(f"outlook: ok   {what}", flush=True)


def wait_until(cluster, what, holds):
    took = clusters.wait_until(what, holds, cluster.states)[1]
    print(f"outlook: {what} after {1000 * took:.0f} ms", flush=True)


def connect(node):
    return clusters.connect((address(node), 4306))


def may_fail(cluster, node=1):
    said = cluster.status(node)["may_fail"]
    return said["machines"], said["processes"]


def state_of(cluster, node, at=1):
    return next(n["state"] for n in cluster.status(at)["nodes"] if n["node_id"] == node)


def waits_for(cluster, node):
    said = cluster.status(node)
    return "" if said["leader"] else said["waits_for"].get(str(node), "")


def declare_dead(cluster, node, *more, at=1):
    line = [cluster.binary, "declare-dead", str(node), "--address", f"{address(at)}:4406",
            "--secret-file", os.path.join(cluster.directory, "secret"), *more]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def the_witness_is_cut_off(cluster, net):
    wait_until(cluster, "one machine or process may fail", lambda: may_fail(cluster) == (1, 1))
    code, words = declare_dead(cluster, WITNESS)
    check(code != 0 and "not called silent" in words and "ms ago" in words, f"of one that is heard: {words}")
    apart(net, [WITNESS], DATA)
    wait_until(cluster, "the witness is unheard", lambda: state_of(cluster, WITNESS) == "unheard")
    check(may_fail(cluster) == (0, 1), "no machine may fail, and one process")
    code, words = declare_dead(cluster, WITNESS)
    check(code == 0, f"declare-dead: {words}")
    check(state_of(cluster, WITNESS) == "down", "the witness is no voter any more")
    net.heal()
    cluster.wait_whole()
    wait_until(cluster, "the witness is back", lambda: may_fail(cluster) == (1, 1))


def nobody_hears_anybody(cluster, net):
    insist(lambda: connect(1).query("INSERT INTO t VALUES (1)"))
    before = {n: cluster.processes[n].pid for n in DATA}
    for node in NODES:
        apart(net, [node], [n for n in NODES if n > node])
    for node, other in ((1, 2), (2, 1)):
        wait_until(cluster, f"node {node} waits for node {other}",
                   lambda n=node, o=other: f"node {o}" in waits_for(cluster, n))
        check(may_fail(cluster, node) == (0, 0), "nothing may fail")
    code, words = declare_dead(cluster, 2)
    check(code != 0 and "--give-up-rows" in words and "acknowledged" in words, f"declare-dead asks: {words}")
    code, words = declare_dead(cluster, WITNESS)
    check(code != 0 and "node 1 waits for node 2" in words, f"of one that nobody waits for: {words}")
    time.sleep(STAYS_S)
    check({n: cluster.processes[n].pid for n in DATA} == before, f"both live after {STAYS_S} s")
    net.heal()
    # One of two that have not heard each other is removed, perhaps a moment later, and the witness if they form the group anew.
    cluster.settle()
    wait_until(cluster, "all three are heard", lambda: may_fail(cluster) == (1, 1))
    now = {n: cluster.processes[n].pid for n in DATA}
    check(any(now[n] == before[n] for n in DATA), "one of them at least has gone on with its memory")
    check(insist(lambda: connect(1).query("SELECT COUNT(*) FROM t")) == [["1"]], "its rows are there")


def the_others_are_gone(cluster, net):
    insist(lambda: connect(1).query("INSERT INTO t VALUES (2)"))
    # Not before it is cut off: a process that ends says so.
    apart(net, [1], [2, WITNESS])
    gone = {node: cluster.processes.pop(node) for node in (2, WITNESS)}
    for process in gone.values():
        process.send_signal(signal.SIGKILL)
        process.wait()
    net.heal()
    wait_until(cluster, "node 1 waits for node 2", lambda: "node 2" in waits_for(cluster, 1))
    code, words = declare_dead(cluster, 2, "--give-up-rows")
    check(code == 0, f"declare-dead: {words}")

    def inserts():
        try:
            connect(1).query("INSERT INTO t VALUES (3)")
            return True
        except (OSError, MySQLError):
            return False

    wait_until(cluster, "node 1 serves alone", inserts)
    for node in gone:
        cluster.processes[node] = cluster.start(node)
    cluster.wait_whole()
    for node in DATA:
        found = insist(lambda n=node: connect(n).query("SELECT id FROM t ORDER BY id"))
        check(found == [["1"], ["2"], ["3"]], f"node {node} has all rows")


def inside(args):
    net = Net(args.net, NODES)
    directory = tempfile.mkdtemp(prefix="latsdb-outlook-")
    cluster = Cluster(args.binary, net, directory, DATA, 2)
    try:
        cluster.settle()
        insist(lambda: connect(1).query("CREATE TABLE t (id INT PRIMARY KEY)"))
        the_witness_is_cut_off(cluster, net)
        nobody_hears_anybody(cluster, net)
        the_others_are_gone(cluster, net)
    except BaseException:
        print(f"outlook: log: {directory}/log")
        raise
    finally:
        cluster.stop()
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--net", help=argparse.SUPPRESS)
    args = parser.parse_args()
    return inside(args) if args.net else in_namespaces(NODES, args.binary)


if __name__ == "__main__":
    sys.exit(main())
