#!/usr/bin/env python3
"""Looks whether each node's guardian sees the ends of the node's threads (DEATH-1), stays with it, and is replaced when it ends.

A guardian that cannot be started, or that sees only the process's end, makes failures last longer and nothing else: no other test
would notice. Then a node is killed, and the time until the others have removed it is printed.

guardian.py [--binary FILE] [--sql-port N]
"""

import argparse
import contextlib
import glob
import os
import re
import signal
import time

from cluster import Cluster, wait_until

# What a node says once its guardian waits for its threads (crates/server/src/guardian.rs).
SEES = re.compile(r"the guardian sees this node's threads guardian=(\d+)")
CANNOT = "the guardian does not see this node's threads"
# What the shared memory is called (crates/runtime/src/ends.rs).
MEMORY = "memfd:latsdb-ends"


def watches(pid):
    """True if the process has the memory in which threads show that they live."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return MEMORY in maps.read()
    return False


def guardians(cluster):
    """By the process that each guards: the guardian."""
    found = {}
    for name in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(name, "rb") as file:
            words = file.read().split(b"\0")
            if b"guardian" in words[1:2] and os.fsencode(cluster.directory) in words:
                found[int(words[words.index(b"--pid") + 1])] = int(name.split("/")[2])
    return found


def watching(cluster, pids):
    """The guardians of these processes, if each has one that waits for its threads, as the node has said."""
    found = guardians(cluster)
    said = {int(pid) for pid in SEES.findall(cluster.log())}
    fine = all(found.get(pid) in said and watches(found[pid]) and watches(pid) for pid in pids)
    return {pid: found[pid] for pid in pids} if fine else None


def data_nodes(cluster):
    return {node["node_id"]: node["pid"] for node in cluster.wait_whole()}


def is_removed(cluster, node, pid):
    """True if the process is no member any more: the node is down, or another process has taken its place."""
    members = [member for member in cluster.status()["nodes"] if member["node_id"] == node]
    return all(member["state"] == "down" or member["pid"] not in (None, pid) for member in members)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/checked/latsdb")
    parser.add_argument("--sql-port", type=int, default=24306)
    args = parser.parse_args()
    with Cluster(args.binary, args.sql_port) as cluster:
        wait_until("each node has a guardian that watches its threads", lambda: watching(cluster, data_nodes(cluster).values()), cluster.log)
        nodes = data_nodes(cluster)
        victim = min(nodes)
        former, _ = wait_until("the same", lambda: watching(cluster, nodes.values()), cluster.log)
        os.kill(former[nodes[victim]], signal.SIGKILL)

        def another():
            found = watching(cluster, [nodes[victim]])
            return found and found[nodes[victim]] != former[nodes[victim]]

        wait_until("a guardian that was killed is replaced by one that watches, too", another, cluster.log)
        print("guardian: each node has one that watches its threads, also after it was killed")

        begun = time.monotonic()
        os.kill(nodes[victim], signal.SIGKILL)
        wait_until("the killed node is removed", lambda: is_removed(cluster, victim, nodes[victim]), cluster.log)
        print(f"guardian: node {victim} was killed, and the others had removed it within {time.monotonic() - begun:.3f} s")
        wait_until("the next process has a guardian that watches, too", lambda: watching(cluster, data_nodes(cluster).values()), cluster.log)
        if CANNOT in cluster.log():
            raise AssertionError("a guardian could not see the threads of its node")
    print("guardian: passed")


if __name__ == "__main__":
    main()
