#!/usr/bin/env python3
"""Starts a cluster of two replicas that keeps nothing, runs a test against it, and stops it.

with_cluster.py [--binary target/release/latsdb] [--sql-port 15306] [--start "OPTION ..."] -- COMMAND...
`{data}` in the command is the cluster's directory, and CLUSTER_LOG in its environment the cluster's log. Ends with the command's status; if that is not 0, prints the end of the cluster's log.

A test that has met nothing worse than temporary errors ends with the status 75. If a node was removed meanwhile, because it got no
processor time for a lease, the test is run once more in a new cluster, a few times (see cluster.py); else it has failed.
"""

import argparse
import os
import subprocess
import sys

from cluster import INCONCLUSIVE, Cluster, Disturbed, repeated


def once(args):
    with Cluster(args.binary, args.sql_port, *args.start.split()) as cluster:
        removed = cluster.removed()
        line = [word.replace("{data}", cluster.directory) for word in args.command]
        status = subprocess.run(line, check=False, env={**os.environ, "CLUSTER_LOG": cluster.directory + ".log"}).returncode
        if status == INCONCLUSIVE and cluster.was_disturbed(removed):
            raise Disturbed(f"the test met temporary errors (removed: {cluster.removed()[len(removed):]})")
        if status != 0:
            print(f"the test ended with the status {status}\n{cluster.describe()}", flush=True)
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=15306)
    parser.add_argument("--start", default="", help="more options for latsdb start")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    return repeated("with_cluster", lambda: once(args))


if __name__ == "__main__":
    sys.exit(main())
