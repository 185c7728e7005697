#!/usr/bin/env python3
"""Thousands of MySQL clients connect at once, and all of them are greeted; a process says how many it has room for.

connections.py --data-dir DIRECTORY --sql-port PORT [--count 4000]: a cluster of two replicas runs there. How long the last one waits is
printed; the test has failed when one is not greeted before the system has given up and asked again several times.
"""

import argparse
import errno
import os
import re
import resource
import select
import socket
import subprocess
import sys
import tempfile
import time

from cluster import PATIENCE_S, Running, concluded, connect, port_of, wait_until

# A connection for which the port has no room comes again after 1, 3, 7 and 15 seconds.
GREETED_WITHIN_S = 10


def crowd(port, count):
    """Connects so often at once; gives the seconds after which each was greeted, or None."""
    begun = time.monotonic()
    poll, waiting, greeted = select.epoll(), {}, []
    for _ in range(count):
        one = socket.socket()
        one.setblocking(False)
        if (code := one.connect_ex(("127.0.0.1", port))) not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        waiting[one.fileno()] = one
        poll.register(one, select.EPOLLIN | select.EPOLLET)
    kept = list(waiting.values())
    while waiting and time.monotonic() < begun + GREETED_WITHIN_S:
        for number, _ in poll.poll(0.1):
            try:
                greeting = waiting[number].recv(4096)
            except BlockingIOError:
                continue
            # A packet's head, and the protocol's version: no error, and no end.
            if len(greeting) > 5 and greeting[4] == 10:
                greeted.append(time.monotonic() - begun)
            del waiting[number]
            poll.unregister(number)
    return kept, greeted


def crowds(cluster, count):
    port = port_of(cluster.nodes()[0])
    before = connect(port)
    kept, greeted = crowd(port, count)
    print(f"connections: {len(greeted)} of {count} are greeted, the last one after {max(greeted, default=0):.2f} s", flush=True)
    assert len(greeted) == count, "not all were greeted"
    assert before.query("SELECT 1") == [["1"]], "who was there before is not served"
    for one in kept:
        one.close()
    wait_until("the crowd is gone", lambda: len(before.query("SHOW PROCESSLIST")) < 100, cluster.describe)
    before.close()


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def started(binary, soft, hard, talk):
    """Starts a cluster of one node with such limits of open files; talks to it."""
    sql, native = free_ports(2)
    with tempfile.TemporaryDirectory(prefix="latsdb-files-") as directory:
        data = os.path.join(directory, "data")
        limited = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        line = [binary, "start", "--nodes", "1", "--replicas", "1", "--ephemeral", "--detach", "--memory-mib", "256",
                "--data-dir", data, "--sql-port", str(sql), "--native-port", str(native)]
        # The limit that the nodes inherit.
        subprocess.run(line, preexec_fn=limited, check=True, capture_output=True, timeout=PATIENCE_S)
        try:
            with open(data + ".log", encoding="utf8") as log:
                return talk(sql, log.read())
        finally:
            subprocess.run([binary, "stop", "--data-dir", data], check=True, capture_output=True, timeout=PATIENCE_S)


def limits(binary):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def raised(port, log):
        kept, greeted = crowd(port, 1_000)
        assert len(greeted) == 1_000, f"{len(greeted)} of 1,000 are greeted with a soft limit of 256 files"
        pid = int(re.search(r"node 1 runs as process (\d+)", log).group(1))
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            print("connections:", next(line for line in file if "open files" in line).strip())
        return [one.close() for one in kept]
    started(binary, 256, hard, raised)

    def said(port, log):
        room = int(re.search(r"only 400 files open, and so (\d+) MySQL clients", log).group(1))
        connection = connect(port)
        assert connection.query("SELECT @@max_connections") == [[str(room)]]
        kept, greeted = crowd(port, room + 50)
        assert room - 10 <= len(greeted) < room, f"{len(greeted)} are greeted where {room} have room"
        print(f"connections: with 400 files {room} clients have room, and the others are told so")
        return [one.close() for one in kept]
    started(binary, 400, 400, said)


def test(args):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    cluster = Running(args.binary, args.data_dir)
    cluster.wait_whole()
    crowds(cluster, args.count)
    limits(args.binary)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--sql-port", type=int, required=True)
    parser.add_argument("--count", type=int, default=4_000)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    args = parser.parse_args()
    return concluded(lambda: test(args))


if __name__ == "__main__":
    sys.exit(main())
