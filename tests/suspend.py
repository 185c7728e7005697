#!/usr/bin/env python3
"""A machine is suspended for some seconds while the others go on: when it wakes, its node answers nothing from old rows (LEASE-8).

suspend.py [--binary target/release/latsdb]

No machine is suspended for it. The processes run in network namespaces (see partition.py), with a library that can hold back
`CLOCK_MONOTONIC`, which stands still in a suspend. A process is stopped with SIGSTOP, and what the other nodes send it is lost; its
`CLOCK_MONOTONIC` is set back by as long, and it goes on. What other clocks show is as after a suspend. Clients that have asked meanwhile,
when the others had acknowledged new rows, must not be shown the old ones. Ends with 77 where no namespaces can be made.
"""

import argparse
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from cluster import PATIENCE_S, connect, insist
from minimysql import MySQLError
from partition import Cluster, Net, address, apart, in_namespaces

SUSPENDED_S = 1.5
# What the others have sent comes so much later: TCP waits longer each time before it sends again.
DEAF_S = 0.4
READERS = 16
ROWS = 16
ROUNDS = 2
NODES = (1, 2, 3)

LIBRARY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic(long) *held_ns;

__attribute__((constructor)) static void begin(void) {
    char name[4096];
    const char *directory = getenv("LATS_CLOCKS");
    if (!directory) return;
    snprintf(name, sizeof name, "%s/%d", directory, (int)getpid());
    int file = open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 8)) return;
    void *at = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED) held_ns = at;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (failed || clock != CLOCK_MONOTONIC || !held_ns) return failed;
    long ns = now->tv_sec * 1000000000L + now->tv_nsec - atomic_load(held_ns);
    now->tv_sec = ns / 1000000000L;
    now->tv_nsec = ns % 1000000000L;
    return 0;
}
"""


def library(directory):
    """Builds it."""
    source, made = os.path.join(directory, "clock.c"), os.path.join(directory, "clock.so")
    with open(source, "w", encoding="ascii") as file:
        file.write(LIBRARY)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", made, source], check=True)
    return made


def hold_back(directory, pid, seconds):
    """The clock of a process is behind by so much more."""
    with open(os.path.join(directory, str(pid)), "r+b") as file, mmap.mmap(file.fileno(), 8) as held:
        before, = struct.unpack("<q", held[:8])
        held[:8] = struct.pack("<q", before + int(seconds * 1e9))


class Reader(threading.Thread):
    """Reads rows at the node that is suspended; its first request is there when the node goes on."""

    def __init__(self, place, row):
        super().__init__(daemon=True)
        self.connection, self.row = connect(place), row
        # Plans and rows are known.
        self.read()
        self.stale, self.reads, self.refusal = [], 0, None

    def read(self):
        self.row = (self.row + 1) % ROWS
        return self.connection.query(f"SELECT v FROM suspended WHERE id = {self.row}")[0][0]

    def run(self):
        end = time.monotonic() + SUSPENDED_S + DEAF_S
        try:
            while time.monotonic() < end:
                value = self.read()
                self.reads += 1
                if value != "new":
                    self.stale.append(f"row {self.row} was {value}")
        except (MySQLError, OSError) as error:
            # The node has noticed that it serves nothing, or has ended.
            self.refusal = str(error)


def suspend(cluster, directory, places):
    """One suspend of node 2; the stale reads, and all reads."""
    cluster.wait_whole()
    insist(lambda: connect(places[0]).query("UPDATE suspended SET v = 'old'"))
    victim, readers = cluster.processes[2].pid, [Reader(places[1], number) for number in range(READERS)]
    os.kill(victim, signal.SIGSTOP)
    stopped = time.monotonic()
    apart(cluster.net, [2], [1, 3])
    # Node 2 is removed before this is answered.
    insist(lambda: connect(places[0]).query("UPDATE suspended SET v = 'new'"))
    for reader in readers:
        reader.start()
    time.sleep(max(0.1, stopped + SUSPENDED_S - time.monotonic()))
    hold_back(directory, victim, time.monotonic() - stopped)
    os.kill(victim, signal.SIGCONT)
    time.sleep(DEAF_S)
    cluster.net.heal()
    for reader in readers:
        reader.join(PATIENCE_S)
    # What was asked while the machine was suspended was answered somehow: with a row, or a refusal.
    unanswered = [reader.row for reader in readers if not (reader.reads or reader.refusal)]
    assert not unanswered, f"readers of rows {unanswered} were not answered at all"
    print(f"suspend: {sum(reader.refusal is not None for reader in readers)} of {READERS} readers were refused, one of them with: "
          f"{next((reader.refusal for reader in readers if reader.refusal), 'nothing')}", flush=True)
    return [text for reader in readers for text in reader.stale], sum(reader.reads for reader in readers)


def inside(args):
    places = [(address(node), 4306) for node in NODES[:2]]
    with tempfile.TemporaryDirectory(prefix="latsdb-suspend-") as directory:
        os.environ["LD_PRELOAD"], os.environ["LATS_CLOCKS"] = library(directory), directory
        os.mkdir(os.path.join(directory, "data"))
        cluster = Cluster(args.binary, Net(args.net, NODES), os.path.join(directory, "data"), NODES[:2], 2)
        try:
            cluster.settle()
            first = connect(places[0])
            first.query("CREATE DATABASE IF NOT EXISTS test")
            first.query("CREATE TABLE suspended (id INT PRIMARY KEY, v CHAR(3))")
            first.query("INSERT INTO suspended VALUES " + ",".join(f"({row}, 'old')" for row in range(ROWS)))
            results = [suspend(cluster, directory, places) for _ in range(ROUNDS)]
        finally:
            cluster.stop()
    stale = [text for found, _ in results for text in found]
    print(f"suspend: {ROUNDS} suspends of {SUSPENDED_S} s: {len(stale)} stale reads of {sum(reads for _, reads in results)}")
    for text in stale[:5]:
        print(f"suspend: WRONG: {text}")
    return 1 if stale else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--net", help=argparse.SUPPRESS)
    args = parser.parse_args()
    return inside(args) if args.net else in_namespaces(NODES, args.binary)


if __name__ == "__main__":
    sys.exit(main())
