#!/usr/bin/env python3
"""Directories of nodes that run are removed, renamed, replaced, or lose a file, with real processes and clients that go on.

A node whose rows others have leaves, says why, and is filled again. The last full replica goes on, `status` says so, and all its rows are
written anew where that can be. A directory that is away for a moment is not gone. In the end everything is killed: whatever was acknowledged
is there. Then the last replica's directory is away for longer, and is there again: what is in it stays, and is found by a restart. At last
its file system is unmounted, and mounted again.
directory_gone.py [--binary target/release/latsdb] [--sql-port 18106]"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from blackout import DiskWorker
from cluster import PATIENCE_S, Durable, connect, is_alive, rows, wait_until
from kill import Ledger, Worker, check, prepare


PAD = "x" * 500
ROWS = 2_000


class Clients:
    """Transfers at all nodes; every other client waits for disks."""

    def __init__(self, ports):
        self.stop = threading.Event()
        self.workers = [(DiskWorker if i % 2 else Worker)(i + 1, ports, Ledger(), self.stop) for i in range(4)]
        for worker in self.workers:
            worker.start()

    def count(self):
        return sum(len(w.ledger.committed) for w in self.workers if not isinstance(w, DiskWorker))

    def count_on_disk(self):
        return sum(len(w.ledger.committed) for w in self.workers if isinstance(w, DiskWorker))

    def go_on(self, cluster, commits=50):
        before = self.count()
        wait_until("clients get on", lambda: self.count() >= before + commits, cluster.describe)

    def end(self):
        self.stop.set()
        for worker in self.workers:
            worker.join(PATIENCE_S)
        failures = [f"a thread of the test failed: {w.failure}" for w in self.workers if w.failure]
        failures += [f"thread {w.name} hangs" for w in self.workers if w.is_alive()]
        ledger = Ledger()
        for worker in self.workers:
            ledger.add(worker.ledger)
        on_disk = {n for w in self.workers if isinstance(w, DiskWorker) for n in w.ledger.committed}
        return failures, ledger, on_disk


def own(cluster, node):
    return os.path.join(cluster.directory, f"node-{node}")


def remove(path):
    while os.path.exists(path):
        shutil.rmtree(path, ignore_errors=True)


def rename(path):
    aside = path + ".aside"
    remove(aside)
    os.rename(path, aside)


def replace(path):
    rename(path)
    os.mkdir(path)


def remove_log(path):
    """The segment that is written: not the directory itself."""
    for name in os.listdir(path):
        if name.startswith("redo-"):
            os.remove(os.path.join(path, name))


def said(cluster, words, before):
    return cluster.log().count(words) > before


def notices(cluster, words, do, path):
    """Does it, and waits until the log says that the directory is gone; gives the seconds."""
    before = cluster.log().count(words)
    do(path)
    _, seconds = wait_until(f"the log says `{words}`", lambda: said(cluster, words, before), cluster.describe)
    return seconds


def node_leaves(cluster, clients, node, what, do):
    pid = cluster.pids()[node]
    seconds = notices(cluster, f"THE DIRECTORY {own(cluster, node)} IS GONE", do, own(cluster, node))
    _, left = wait_until(f"node {node} leaves", lambda: not is_alive(pid), cluster.describe)
    clients.go_on(cluster)
    cluster.wait_whole([pid])
    print(f"directory gone: {what}: noticed after {seconds:.2f} s, left {left:.2f} s later, and is filled again", flush=True)
    wrong = []
    if "its directory is gone" not in cluster.log():
        wrong.append("the node does not say why it leaves")
    return wrong


def last_one_goes_on(cluster, clients):
    """Node 2 is stopped; the whole directory of the cluster is removed under node 1."""
    cluster.run("stop-node", "2")
    pid = cluster.pids()[1]
    secret = cluster.directory + ".secret"
    shutil.copy(os.path.join(cluster.directory, "secret"), secret)
    done = threading.Event()
    states, texts = set(), []

    def watch():
        # Not through the directory, which is gone for a while.
        while not done.is_set():
            text = cluster.popen("status", "--address", f"127.0.0.1:{cluster.sql_port + 100}", "--secret-file", secret).communicate()[0]
            texts.append(text)
            states.update(re.findall(r"^ +1  (no disk|rewriting|serving)", text, re.MULTILINE))
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    time.sleep(0.5)
    before = cluster.log().count("data manager 0 has all its rows in a new redo log")
    seconds = notices(cluster, f"THE DIRECTORY {own(cluster, 1)} IS GONE", remove, cluster.directory)
    clients.go_on(cluster)
    wait_until("all rows are written anew", lambda: said(cluster, "data manager 0 has all its rows in a new redo log", before), cluster.describe)
    on_disk = clients.count_on_disk()
    wait_until("clients that wait for disks get on again", lambda: clients.count_on_disk() > on_disk + 4, cluster.describe)
    wait_until("the directory is there again", lambda: os.path.exists(os.path.join(cluster.directory, "cluster.json")), cluster.describe)
    time.sleep(0.3)
    done.set()
    watcher.join()
    wrong = []
    if not is_alive(pid):
        wrong.append("the last full replica has ended")
    if "no disk" not in states or "serving" not in states:
        wrong.append(f"`status` has shown {states}")
    if not any("node 1 HAS NO DISK" in text for text in texts):
        wrong.append("`status` does not say that node 1 has no disk")
    if "no other node has all of its rows on a disk: it goes on" not in cluster.log():
        wrong.append("the log does not say that it goes on")
    print(f"directory gone: the last replica: noticed after {seconds:.2f} s, went on, and has written all rows anew; `status` has shown {sorted(states)}",
          flush=True)
    wait_until("the supervisor is found", lambda: os.path.exists(os.path.join(cluster.directory, "supervisor.pid")), cluster.describe)
    cluster.run("start-node", "2")
    cluster.wait_whole()
    os.remove(secret)
    return wrong


def all_are_gone(cluster, clients):
    """The directory of the whole cluster is removed under both nodes: neither leaves for the sake of one that has nothing on a disk."""
    pids, words = cluster.pids(), "data manager 0 has all its rows in a new redo log"
    gone = [f"THE DIRECTORY {own(cluster, node)} IS GONE" for node in (1, 2)]
    told, written = [cluster.log().count(text) for text in gone], cluster.log().count(words)
    remove(cluster.directory)
    wait_until("both nodes notice it", lambda: all(said(cluster, text, count) for text, count in zip(gone, told)), cluster.describe)
    clients.go_on(cluster)
    # One that has noticed it much later than the other, on a busy machine, may have sent the other away.
    stay = wait_until("all rows are written anew", lambda: [n for n in (1, 2) if is_alive(pids[n])]
                      if said(cluster, words, written) else None, cluster.describe)[0]
    on_disk = clients.count_on_disk()
    wait_until("clients that wait for disks get on again", lambda: clients.count_on_disk() > on_disk + 4, cluster.describe)
    cluster.wait_whole()
    print(f"directory gone: of the whole cluster, with both nodes: nodes {stay} went on, and have written all rows anew", flush=True)
    return [] if stay else ["no node went on"]


def others_files(cluster, clients):
    """Somebody puts a directory with files in the place of the last replica's: these are left alone until they are gone."""
    cluster.run("stop-node", "2")
    pid, path = cluster.pids()[1], own(cluster, 1)
    foreign = os.path.join(path, "redo-0-0000000001.log")

    def put(path):
        replace(path)
        with open(foreign, "w", encoding="utf8") as file:
            file.write("somebody's")

    notices(cluster, f"THE DIRECTORY {path} IS GONE", put, path)
    wait_until("it says why it does not begin anew", lambda: "move them away" in cluster.log(), cluster.describe)
    clients.go_on(cluster)
    with open(foreign, encoding="utf8") as file:
        wrong = [] if file.read() == "somebody's" else ["files of somebody were written to"]
    text = cluster.run("status")
    if "move them away" not in text:
        wrong.append(f"`status` does not say what to do: {text}")
    before = cluster.log().count("data manager 0 has all its rows in a new redo log")
    os.remove(foreign)
    wait_until("all rows are written anew", lambda: said(cluster, "data manager 0 has all its rows in a new redo log", before), cluster.describe)
    if not is_alive(pid):
        wrong.append("the last full replica has ended")
    print("directory gone: another directory with files in its place: left alone, and written anew when they were moved away", flush=True)
    cluster.run("start-node", "2")
    cluster.wait_whole()
    return wrong


def away_for_a_moment(cluster, clients):
    """The directory of the whole cluster has another name for a moment: nobody leaves."""
    pids, before = cluster.pids(), cluster.log().count("IS GONE")
    for _ in range(3):
        os.rename(cluster.directory, cluster.directory + ".aside")
        time.sleep(0.05)
        os.rename(cluster.directory + ".aside", cluster.directory)
        clients.go_on(cluster)
    if cluster.log().count("IS GONE") > before:
        print("directory gone: away for a moment: the machine was slow, and took it for gone: this says nothing", flush=True)
        cluster.wait_whole()
        return []
    print("directory gone: away for a moment, three times: nobody has left", flush=True)
    return [] if cluster.pids() == pids else [f"nodes have left: {pids} {cluster.pids()}"]


def transfers(port):
    try:
        return {int(r[0]) for r in rows(port, "SELECT id FROM transfer")}
    except Exception:  # Nobody answers yet.
        return None


def killed(cluster, port, on_disk):
    """The only node with rows is killed, and starts again from its disk. Gives what is wrong."""
    pid = cluster.pids()[1]
    os.kill(pid, signal.SIGKILL)
    wait_until("node 1 has ended", lambda: not is_alive(pid), cluster.describe)
    there, _ = wait_until("node 1 serves again", lambda: transfers(port), cluster.describe)
    lost = on_disk - there
    return [f"{len(lost)} transfers that were on disk are lost, e.g. {min(lost)}"] if lost else []


def is_there_again(cluster, port, on_disk):
    """The last replica's directory is away, and there again, with all that was on disk: it stays so, whatever happens next."""
    cluster.run("stop-node", "2")
    path, words = own(cluster, 1), "Move it, or its files"
    wrong = []
    for moves in (False, True):
        pid = cluster.pids()[1]
        before, done = cluster.log().count(words), cluster.log().count("data manager 0 has all its rows in a new redo log")
        notices(cluster, f"THE DIRECTORY {path} IS GONE", rename, path)
        os.rename(path + ".aside", path)
        wait_until("it says what to do", lambda before=before: said(cluster, words, before), cluster.describe)
        stopping = cluster.popen("stop")
        text = "".join(stopping.communicate(timeout=PATIENCE_S))
        if stopping.returncode == 0 or "HAS NO DISK" not in text or not is_alive(pid):
            wrong.append(f"`stop` of the last replica without a disk: {stopping.returncode}: {text}")
        if moves:
            rename(path)
            wait_until("all rows are written anew", lambda done=done: said(cluster, "data manager 0 has all its rows in a new redo log", done),
                       cluster.describe)
            wait_until("node 1 serves", lambda: cluster.nodes()[0]["state"] == "serving", cluster.describe)
        wrong += killed(cluster, port, on_disk)
        print(f"directory gone: the last replica's is there again, {'moved aside, written anew' if moves else 'left so'}, and killed: "
              f"{'WRONG' if wrong else 'all that was on disk is there'}", flush=True)
    cluster.run("start-node", "2")
    cluster.wait_whole()
    return wrong


def system(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def fill_table(port):
    connection = connect(port)
    connection.query("SET durability = 'disk'")
    connection.query("CREATE TABLE kept (id INT PRIMARY KEY, pad VARCHAR(2000))")
    for first in range(0, ROWS, 200):
        connection.query("INSERT INTO kept VALUES " + ",".join(f"({n},'{PAD}')" for n in range(first, first + 200)))


def is_unmounted(binary, sql_port):
    """The file system of the last replica's directory is not mounted any more: nothing is written in its place. It is mounted again, its
    files are moved away, and all rows are written anew."""
    cluster = Durable(binary, sql_port)
    path, disk = own(cluster, 1), os.path.join(os.path.dirname(cluster.directory), "disk")
    try:
        with cluster:
            cluster.stop()
            os.mkdir(disk)
            if (mounted := system("mount", "-t", "tmpfs", "-o", "size=300m", "latsdb-test", disk)).returncode != 0:
                print(f"directory gone: no file system can be mounted here: {mounted.stderr.strip()}", flush=True)
                return []
            return without_its_disk(cluster, path, disk)
    finally:
        for mounted in (path, disk):
            system("umount", "-l", mounted)
        shutil.rmtree(os.path.dirname(cluster.directory))


def without_its_disk(cluster, path, disk):
    inside, aside, port = os.path.join(disk, "node"), os.path.join(disk, "aside"), cluster.sql_port
    shutil.move(path, inside)
    os.mkdir(path)
    os.mkdir(aside)
    system("mount", "--bind", inside, path)
    cluster.start()
    cluster.wait_whole()
    fill_table(port)
    cluster.run("stop-node", "2")
    pid = cluster.pids()[1]
    system("umount", "-l", path)
    wait_until("it says that the disk is to be mounted", lambda: "was on another file system: mount it" in cluster.log(), cluster.describe)
    wrong = [] if "HAS NO DISK" in cluster.run("status") else ["`status` does not say that the node has no disk"]
    time.sleep(1)
    if os.listdir(path):
        wrong.append(f"there are files where no disk is mounted: {os.listdir(path)}")
    system("mount", "--bind", inside, path)
    wait_until("it says that its files are there", lambda: "Move it, or its files" in cluster.log(), cluster.describe)
    for name in os.listdir(inside):
        os.rename(os.path.join(inside, name), os.path.join(aside, name))
    wait_until("all rows are written anew", lambda: cluster.nodes()[0]["state"] == "serving", cluster.describe)
    if not is_alive(pid):
        wrong.append("the last full replica has ended")
    os.kill(pid, signal.SIGKILL)
    wait_until("node 1 has ended", lambda: not is_alive(pid), cluster.describe)
    count, _ = wait_until("node 1 serves again", lambda: counted(port), cluster.describe)
    if count != ROWS:
        wrong.append(f"{count} rows are left of {ROWS}")
    print(f"directory gone: its file system was not mounted for a while: nothing was written in its place, and {count} rows are there", flush=True)
    cluster.run("start-node", "2")
    cluster.wait_whole()
    return wrong


def counted(port):
    try:
        return int(rows(port, "SELECT COUNT(*) FROM kept")[0][0])
    except Exception:  # Nobody answers yet.
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=18106)
    args = parser.parse_args()
    with Durable(args.binary, args.sql_port) as cluster:
        ports = [args.sql_port, args.sql_port + 1]
        prepare(ports[0])
        clients, wrong = Clients(ports), []
        clients.go_on(cluster)
        wrong += away_for_a_moment(cluster, clients)
        for node, what, do in [(2, "removed", remove), (1, "renamed", rename), (2, "replaced", replace), (1, "without its log", remove_log)]:
            wrong += node_leaves(cluster, clients, node, what, do)
        wrong += last_one_goes_on(cluster, clients)
        wrong += others_files(cluster, clients)
        wrong += all_are_gone(cluster, clients)
        failures, ledger, on_disk = clients.end()
        cluster.wait_whole()
        wrong += failures + check(ledger, ports)
        print(f"directory gone: {len(ledger.committed)} acknowledged, {len(ledger.refused)} refused, {len(ledger.unknown)} unknown", flush=True)
        cluster.kill_all(False, random.Random(1))
        cluster.wait_whole()
        there = {int(r[0]) for r in rows(ports[0], "SELECT id FROM transfer")}
        if lost := on_disk - there:
            wrong.append(f"{len(lost)} transfers that were on disk are lost, e.g. {min(lost)}")
        wrong += is_there_again(cluster, ports[0], on_disk)
    shutil.rmtree(os.path.dirname(cluster.directory))
    wrong += is_unmounted(args.binary, args.sql_port + 20)
    print(f"directory gone: WRONG: {wrong}" if wrong else "directory gone: all is right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
