#!/usr/bin/env python3
"""Damages files of a stopped cluster at random: bits flipped, files cut off, removed, of another version, or swapped with another node's.

One node's files at a time: the cluster must start with all rows, the damaged node filled by the other one or told what to do. Files
of both nodes: the cluster must start with the rows of one epoch, or say what is wrong and not serve at all; it never serves other rows.
"""

import argparse
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import time

from cluster import PATIENCE_S, Disturbed, Durable, connect, insist, repeated, rows, wait_until

ROWS = 3_000
# A cluster that says what is wrong might serve all the same, a little later.
LATER_S = 4.0
# What a node says that cannot use its files, or waits for others.
REASONS = ("cannot be used", "damaged", "starts again when")


def flip(path, chooser):
    with open(path, "r+b") as file:
        size = os.path.getsize(path)
        if size == 0:
            return
        file.seek(chooser.randrange(size))
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ (1 << chooser.randrange(8))]))


def cut(path, chooser):
    with open(path, "r+b") as file:
        file.truncate(chooser.randrange(os.path.getsize(path) + 1))


def newer(path, _chooser):
    with open(path, "r+b") as file:
        file.seek(8)
        file.write(b"\x09")


def swapped(path, _chooser):
    """With the file of the same name of the other node, if there is one."""
    node = "node-1" if "node-1" in path else "node-2"
    other = path.replace(node, "node-2" if node == "node-1" else "node-1")
    if os.path.exists(other):
        os.rename(other, other + ".swapped")
        os.rename(path, other)
        os.rename(other + ".swapped", path)
    else:
        os.rename(path, other)


DAMAGES = {"a bit is flipped": flip, "it is cut off": cut, "it is gone": lambda path, _: os.remove(path),
           "its version is another": newer, "it is the other node's": swapped}


# A file that is whole and wrong: somebody has to look.
REFUSED = {"its version is another", "it is the other node's"}


def files(directory, node, kind):
    return sorted(glob.glob(os.path.join(directory, f"node-{node}", f"{kind}-*")))


def who_was_left_out(cluster):
    """The data nodes that another one has called dead in what it has written last."""
    dead = set()
    for node in (1, 2):
        line = [cluster.binary, "inspect", files(cluster.directory, node, "control")[-1]]
        said = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
        assert f"control state of node {node}" in said, said
        dead.update(n for n in (1, 2) if not re.search(rf"^ *node {n} .*: full replica,", said, re.MULTILINE))
    return dead


def several_lives(cluster, ports):
    """So that there are several segments; gives the rows. Nodes end one after the other. The last one, if it gets processor time, notes
    that it is alone, and may have committed more then: nothing begins without its log."""
    cluster.start()
    cluster.wait_whole()
    expected = content(ports)[0]
    cluster.stop()
    if dead := who_was_left_out(cluster):
        raise Disturbed(f"the nodes {dead} were gone before the others had ended")
    return expected


def content(ports):
    return [rows(p, "SELECT id, value FROM thing ORDER BY id") for p in ports]


def start(cluster, must_serve, says):
    """Starts it; gives whether it serves, and what its log says. If it does not serve, because of what it `says`, it is stopped."""
    earlier = len(cluster.log())
    process = cluster.starting()
    has_ended = lambda: process.poll() is not None
    wait_until("the cluster serves, or says why not",
               lambda: has_ended() or (not must_serve and says(cluster.log()[earlier:])), cluster.describe)
    later = time.monotonic() + LATER_S
    wait_until("a little later", lambda: has_ended() or time.monotonic() > later)
    text = cluster.log()[earlier:]
    if process.poll() == 0:
        return True, text
    process.kill()
    process.communicate()
    cluster.stop()
    return False, text


def one_damage(cluster, ports, expected, kind, what, nodes, keep, chooser):
    """What is wrong with what the cluster does then."""
    shutil.rmtree(cluster.directory)
    shutil.copytree(keep, cluster.directory)
    touched = []
    # To swap the files of one node is to swap those of the other.
    for node in nodes[:1] if DAMAGES[what] is swapped else nodes:
        found = files(cluster.directory, node, kind)
        path = chooser.choice(found)
        DAMAGES[what](path, chooser)
        touched.append(os.path.basename(path))
    must_serve = len(nodes) == 1 and what not in REFUSED
    told_in = lambda text: [line for line in text.splitlines() if any(r in line for r in REASONS)]
    serves, text = start(cluster, must_serve, told_in)
    name = f"{kind} of node {nodes} ({', '.join(touched)}): {what}"
    if not serves:
        told = told_in(text)
        if must_serve:
            return [f"{name}: the cluster does not start: {told[-1:] or text[-300:]}"], name
        if not told:
            return [f"{name}: it does not say why it does not start: {text[-300:]}"], name
        return [], name + ": told, does not serve"
    cluster.wait_whole()
    found = content(ports)
    cluster.stop()
    if any(f != found[0] for f in found):
        return [f"{name}: the nodes give different rows"], name
    if len(nodes) == 1 and found[0] != expected:
        return [f"{name}: {len(found[0])} rows, not the {len(expected)} that were there"], name
    # Values were written one after the other: an earlier epoch has the first so many of them.
    if found[0] != expected[:len(found[0])]:
        return [f"{name}: rows that never were together"], name
    return [], f"{name}: {len(found[0])} rows"


def damage_head(path):
    with open(path, "r+b") as file:
        file.seek(20)
        byte = file.read(1)[0]
        file.seek(20)
        file.write(bytes([byte ^ 1]))


def all_logs(cluster, what, damage, words):
    """Nothing is left in the logs that says what was durable: the cluster must not begin with empty tables, but say what is wrong."""
    keep = cluster.directory + ".first"
    shutil.copytree(cluster.directory, keep)
    for node in (1, 2):
        for path in files(cluster.directory, node, "redo"):
            damage(path)
    told_in = lambda text: all(word in text for word in words)
    serves, text = start(cluster, False, told_in)
    if serves:
        cluster.stop()
    shutil.rmtree(cluster.directory)
    os.rename(keep, cluster.directory)
    if serves:
        return [f"{what}, and the cluster serves"]
    return [] if told_in(text) else [f"{what}: it does not say so: {text[-300:]}"]


def fill(port):
    connection = connect(port)
    connection.query("CREATE TABLE IF NOT EXISTS thing (id INT PRIMARY KEY, value VARCHAR(200), KEY (value))")
    connection.query("SET durability = 'disk'")
    for at in range(0, ROWS, 100):
        connection.query("REPLACE INTO thing VALUES " + ",".join(f"({i}, 'value {i} {'x' * 100}')" for i in range(at, at + 100)))
    connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--sql-port", type=int, default=14306)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    print(f"damage: seed {args.seed}", flush=True)
    chooser, wrong = random.Random(args.seed), []
    ports = [args.sql_port, args.sql_port + 1]
    with Durable(args.binary, args.sql_port) as cluster:
        insist(lambda: fill(ports[0]))
        cluster.wait_whole()
        cluster.stop()
        words = ["can give back epoch", "has a head that can be read"]
        wrong += all_logs(cluster, "all heads of redo logs are damaged", damage_head, words)
        wrong += all_logs(cluster, "all redo logs are gone", os.remove, ["can give back epoch"])
        expected = repeated("damage", lambda: several_lives(cluster, ports))
        keep = cluster.directory + ".kept"
        shutil.copytree(cluster.directory, keep)
        for _ in range(args.rounds):
            for kind in ("redo", "control"):
                for what in DAMAGES:
                    for nodes in ([1], [2], [1, 2]):
                        found, said = one_damage(cluster, ports, expected, kind, what, nodes, keep, chooser)
                        wrong += found
                        print(f"damage: {'WRONG' if found else 'ok   '} {found[0] if found else said}", flush=True)
    print(f"damage: {len(wrong)} wrong: {wrong}" if wrong else "damage: all is right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
