#!/usr/bin/env python3
"""Looks whether each node's guardian sees the ends of the node's threads (DEATH-1), stays with it, and is replaced when it ends.

A guardian that cannot be started, or that sees only the process's end, makes failures last longer and nothing else: no other test
would notice. Then a node is killed, and the time until the others have removed it is printed.

guardian.py [--binary FILE] [--sql-port N]
"""

import argparse
import os
import signal
import time

from cluster import Cluster, wait_until
from partition import guardians

# What the shared memory is called (crates/runtime/src/ends.rs).
MEMORY = "memfd:latsdb-ends"


def watches(pid):
    """True if the process has the memory in which threads show that they live."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            return MEMORY in maps.read()
    except OSError:
        return False


def of_nodes(cluster):
    """By node: the guardian that watches its threads."""
    return {node: pid for pid, node in guardians(cluster.directory) if watches(pid)}


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/checked/latsdb")
    parser.add_argument("--sql-port", type=int, default=24306)
    args = parser.parse_args()
    with Cluster(args.binary, args.sql_port) as cluster:
        nodes = {node["node_id"]: node["pid"] for node in cluster.wait_whole()}
        wait_until("each node has a guardian that watches its threads", lambda: set(nodes) <= set(of_nodes(cluster)))
        first = of_nodes(cluster)
        time.sleep(1.5)
        check(of_nodes(cluster) == first, f"guardians stay: {first} became {of_nodes(cluster)}")
        for node in nodes:
            check(watches(nodes[node]), f"node {node} shows its threads")
        victim = min(nodes)
        os.kill(first[victim], signal.SIGKILL)
        wait_until("a guardian that was killed is replaced", lambda: of_nodes(cluster).get(victim, first[victim]) != first[victim])
        print("guardian: each node has one that watches its threads, also after it was killed")

        others = [node for node in nodes if node != victim]
        begun = time.monotonic()
        os.kill(nodes[victim], signal.SIGKILL)
        wait_until("the killed node is removed", lambda: not_alive(cluster, victim, nodes[victim]))
        print(f"guardian: node {victim} was killed, and {len(others)} others have removed it within {time.monotonic() - begun:.3f} s")
        wait_until("the next process has a guardian, too", lambda: set(nodes) <= set(of_nodes(cluster)))
        cluster.wait_whole()
    print("guardian: passed")


def not_alive(cluster, node, pid):
    """True if no member is this process of the node any more."""
    return all(member["pid"] != pid for member in cluster.status()["nodes"] if member["node_id"] == node)


if __name__ == "__main__":
    main()
