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
import sys
import tempfile
import threading
import time

import preload
from blackout import DiskWorker
from cluster import ATTEMPTS, PATIENCE_S, Durable, is_alive, rows, wait_until
from kill import Ledger, Worker, check, prepare

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
# Commits that wait for no disk go on meanwhile: so many of them.
OTHERS = 100


class Broken(Durable):
    """A cluster whose disks do as a file says."""

    def __init__(self, binary, sql_port):
        self.tools = tempfile.mkdtemp(prefix="latsdb-broken-disk-")
        self.orders = os.path.join(self.tools, "orders")
        os.environ.update(LD_PRELOAD=preload.build("sync", SHIM, self.tools), BROKEN_DISK=self.orders)
        super().__init__(binary, sql_port)

    def order(self, text):
        with open(self.orders + ".new", "w", encoding="utf8") as file:
            file.write(text)
        os.rename(self.orders + ".new", self.orders)

    def pid_of(self, node):
        return next(n["pid"] for n in self.wait_whole() if n["node_id"] == node)


def commits(workers):
    return sum(len(w.ledger.committed) for w in workers)


def be_slow(cluster, workers):
    """Gives what is wrong."""
    on_disk = [w for w in workers if isinstance(w, DiskWorker)]
    others = [w for w in workers if not isinstance(w, DiskWorker)]
    removed = cluster.removed()
    cluster.order(f"{cluster.pid_of(2)} slow {1_000 * SLOW_MS}")
    # Those that wait for disks are held up from now on.
    time.sleep(2 * SLOW_MS / 1_000)
    begun, counts = time.monotonic(), [len(w.ledger.committed) for w in on_disk]
    before = commits(on_disk), commits(others)
    wait_until("all that wait for a slow disk get on, and those that do not",
               lambda: all(len(w.ledger.committed) > count + 2 for w, count in zip(on_disk, counts)) and
               commits(others) >= before[1] + OTHERS, cluster.describe)
    done, seconds = (commits(on_disk) - before[0], commits(others) - before[1]), time.monotonic() - begun
    nodes = cluster.nodes()
    states, disk = [n["state"] for n in nodes], next(n["disk"] for n in nodes if n["node_id"] == 2)
    cluster.order("0 none")
    print(f"broken disk: while each sync of node 2 took {SLOW_MS} ms: {done[0] / seconds:.0f} commits/s on disk, "
          f"{done[1] / seconds:.0f} others", flush=True)
    if cluster.was_disturbed(removed):
        print(f"broken disk: nodes {cluster.removed()[len(removed):]} were removed meanwhile: this says nothing", flush=True)
        return None
    wrong = []
    # Each waits for one whole sync at least, most of them for the one under way, too. A busy machine does not make it more.
    most = len(on_disk) * seconds * 1_000 / SLOW_MS
    if done[0] > 1.5 * most + len(on_disk):
        wrong.append(f"{done[0]} commits waited for a disk that is slow, in {seconds:.1f} s")
    longest = max(disk["sync_last_us"], disk["sync_under_way_us"])
    if disk["state"] != "slow" or max(longest, disk["sync_p99_us"]) < 900 * SLOW_MS:
        wrong.append(f"`status` does not show that the disk is slow: {disk}")
    if states != ["serving", "serving"]:
        wrong.append(f"a node with a slow disk is no full replica any more: {states}")
    return wrong


def fail(cluster, node, workers):
    """Gives what is wrong; none if it says nothing."""
    pid, removed, told = cluster.pid_of(node), cluster.removed(), cluster.log().count("disk has failed")
    cluster.order(f"{pid} fail")
    wait_until(f"node {node} ends, for a sync has failed", lambda: not is_alive(pid), cluster.describe)
    before = commits(workers)
    cluster.wait_whole([pid])
    done = commits(workers) - before
    if cluster.log().count("disk has failed") == told:
        if node in cluster.removed()[len(removed):]:
            print(f"broken disk: node {node} was removed before its disk could fail: this says nothing", flush=True)
            return None
        return [f"node {node} does not say that its disk has failed: {cluster.log()[-500:]}"]
    print(f"broken disk: a sync of node {node} failed, it ended and is a full replica again; {done} commits meanwhile", flush=True)
    if done == 0:
        print("broken disk: nobody got on while it was away: this says nothing", flush=True)
        return None
    return []


def at_last(what, *arguments):
    """What is wrong by an attempt that says something."""
    for _ in range(ATTEMPTS):
        if (wrong := what(*arguments)) is not None:
            return wrong
    return [f"{what.__name__}: nothing can be said after {ATTEMPTS} attempts, see above"]


def under_load(cluster, ports, rounds):
    """Gives what is wrong, and what was acknowledged as being on disk."""
    stop = threading.Event()
    workers = [(DiskWorker if i % 2 else Worker)(i + 1, ports, Ledger(), stop) for i in range(6)]
    for worker in workers:
        worker.start()
    wait_until("all clients get on", lambda: all(w.ledger.committed for w in workers), cluster.describe)
    wrong = at_last(be_slow, cluster, workers)
    for number in range(rounds):
        wrong += at_last(fail, cluster, 1 + number % 2, workers)
    stop.set()
    for worker in workers:
        worker.join(PATIENCE_S)
    cluster.wait_whole()
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
    preload.need_compiler("broken disk")
    with Broken(args.binary, args.sql_port) as cluster:
        ports = [args.sql_port, args.sql_port + 1]
        prepare(ports[0])
        wrong, on_disk = under_load(cluster, ports, args.rounds)
        cluster.kill_all(False, random.Random(1))
        cluster.wait_whole()
        there = {int(r[0]) for r in rows(ports[0], "SELECT id FROM transfer")}
        if lost := on_disk - there:
            wrong.append(f"{len(lost)} transfers that were on disk are lost, e.g. {min(lost)}")
    shutil.rmtree(cluster.tools)
    if wrong:
        print(f"broken disk: WRONG: {wrong} (all is kept in {os.path.dirname(cluster.directory)})")
        return 1
    shutil.rmtree(os.path.dirname(cluster.directory))
    print("broken disk: all is right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
