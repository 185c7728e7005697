#!/usr/bin/env python3
"""The disk of one node is slow, and then fails to sync, with real processes: a library that is loaded into them stands between them
and the kernel (fsync, fdatasync). While it is slow all goes on, and who waits for disks waits longer. A process whose sync has failed once ends,
with a clear word, though the next sync would succeed: what the device has dropped nobody knows. The other node goes on, and the
next life is filled from it. In the end everything is killed: whatever was acknowledged as being on disk is there.
broken_disk.py [--binary target/release/latsdb] [--rounds 4] [--sql-port 16206]"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from blackout import DiskWorker, Durable
from kill import Ledger, Worker, check, connect, is_alive, prepare, wait_until
from minimysql import Connection

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file says: process, "slow" or "fail", and how many microseconds a sync takes. */
static int meddle(void) {
    static int has_failed;
    char text[64] = "", mode[16] = "";
    int pid = 0, wait_us = 0;
    const char *path = getenv("BROKEN_DISK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return 0;
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    if (bytes <= 0 || sscanf(text, "%d %15s %d", &pid, mode, &wait_us) < 2 || pid != getpid()) return 0;
    if (!strcmp(mode, "slow")) usleep(wait_us);
    /* As Linux does it: an error is told once. */
    if (!strcmp(mode, "fail") && !__atomic_exchange_n(&has_failed, 1, __ATOMIC_SEQ_CST)) { errno = EIO; return -1; }
    return 0;
}

#define SYNC(name) \
    int name(int fd) { \
        static int (*real)(int); \
        if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, #name); \
        return meddle() ? -1 : real(fd); \
    }
SYNC(fsync)
SYNC(fdatasync)
"""
SLOW_MS = 300
SLOW_SECONDS = 4.0


class Broken(Durable):
    """A cluster whose disks do as a file says."""

    def __init__(self, binary, sql_port):
        self.tools = tempfile.mkdtemp(prefix="latsdb-broken-disk-")
        source, library = os.path.join(self.tools, "sync.c"), os.path.join(self.tools, "sync.so")
        with open(source, "w", encoding="utf8") as file:
            file.write(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        self.orders = os.path.join(self.tools, "orders")
        os.environ.update(LD_PRELOAD=library, BROKEN_DISK=self.orders)
        super().__init__(binary, sql_port)

    def order(self, text):
        with open(self.orders + ".new", "w", encoding="utf8") as file:
            file.write(text)
        os.rename(self.orders + ".new", self.orders)

    def pid_of(self, node):
        return next(n["pid"] for n in self.nodes() if n["node_id"] == node)

    def log(self):
        with open(self.directory + ".log", encoding="utf8", errors="replace") as log:
            return log.read()


def commits(workers):
    return sum(len(w.ledger.committed) for w in workers)


def be_slow(cluster, workers):
    """Gives what is wrong."""
    on_disk = [w for w in workers if isinstance(w, DiskWorker)]
    others = [w for w in workers if not isinstance(w, DiskWorker)]
    cluster.order(f"{cluster.pid_of(2)} slow {1_000 * SLOW_MS}")
    # Those that wait for disks are held up from now on.
    time.sleep(2 * SLOW_MS / 1_000)
    before = commits(on_disk), commits(others)
    time.sleep(SLOW_SECONDS)
    done = commits(on_disk) - before[0], commits(others) - before[1]
    cluster.order("0 none")
    print(f"broken disk: while each sync of node 2 took {SLOW_MS} ms: {done[0] / SLOW_SECONDS:.0f} commits/s on disk, "
          f"{done[1] / SLOW_SECONDS:.0f} others", flush=True)
    wrong = []
    # Each waits for one whole sync at least, most of them for the one under way, too.
    most = len(on_disk) * SLOW_SECONDS * 1_000 / SLOW_MS
    if not len(on_disk) <= done[0] <= 1.5 * most + len(on_disk):
        wrong.append(f"{done[0]} commits waited for a disk that is slow, in {SLOW_SECONDS} s")
    if done[1] < 100:
        wrong.append(f"only {done[1]} commits that wait for no disk in {SLOW_SECONDS} s")
    if any(not n["in_sync"] for n in cluster.nodes()):
        wrong.append("a node with a slow disk is no full replica any more")
    return wrong


def fail(cluster, node, workers):
    """Gives what is wrong."""
    pid, told = cluster.pid_of(node), cluster.log().count("disk has failed")
    cluster.order(f"{pid} fail")
    wait_until(lambda: not is_alive(pid), 20, f"node {node} goes on although a sync has failed")
    before = commits(workers)
    nodes = cluster.wait_whole(60)
    done = commits(workers) - before
    print(f"broken disk: a sync of node {node} failed, it ended and is a full replica again; {done} commits meanwhile", flush=True)
    wrong = []
    if cluster.log().count("disk has failed") <= told:
        wrong.append(f"node {node} does not say that its disk has failed: {cluster.log()[-500:]}")
    if done == 0:
        wrong.append(f"nothing was committed while node {node} was away")
    if any(n["pid"] == pid for n in nodes):
        wrong.append("the same process is there still")
    return wrong


def under_load(cluster, ports, rounds):
    """Gives what is wrong, and what was acknowledged as being on disk."""
    stop = threading.Event()
    workers = [(DiskWorker if i % 2 else Worker)(i + 1, ports, Ledger(), stop) for i in range(6)]
    for worker in workers:
        worker.start()
    time.sleep(1)
    wrong = be_slow(cluster, workers)
    for number in range(rounds):
        wrong += fail(cluster, 1 + number % 2, workers)
    stop.set()
    for worker in workers:
        worker.join(20)
    wrong += [f"thread {w.name} hangs" for w in workers if w.is_alive()]
    wrong += [f"a thread of the test failed: {w.failure}" for w in workers if w.failure]
    ledger = Ledger()
    for worker in workers:
        ledger.add(worker.ledger)
    wrong += check(ledger, ports)
    print(f"broken disk: {len(ledger.committed)} acknowledged, {len(ledger.refused)} refused, {len(ledger.unknown)} unknown", flush=True)
    return wrong, {n for w in workers if isinstance(w, DiskWorker) for n in w.ledger.committed}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--sql-port", type=int, default=16206)
    args = parser.parse_args()
    if shutil.which("cc") is None:
        print("broken disk: there is no C compiler")
        return 77
    cluster = Broken(args.binary, args.sql_port)
    ports = [args.sql_port, args.sql_port + 1]
    try:
        cluster.wait_whole()
        setup = Connection(ports[0], "test")
        prepare(setup)
        setup.close()
        wrong, on_disk = under_load(cluster, ports, args.rounds)
        cluster.kill_all(False, random.Random(1))
        cluster.wait_whole(60)
        there = {int(r[0]) for r in connect(ports[0], 30).query("SELECT id FROM transfer")}
        if lost := on_disk - there:
            wrong.append(f"{len(lost)} transfers that were on disk are lost, e.g. {min(lost)}")
    finally:
        cluster.run("stop")
    shutil.rmtree(os.path.dirname(cluster.directory))
    shutil.rmtree(cluster.tools)
    print(f"broken disk: WRONG: {wrong}" if wrong else "broken disk: all is right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
