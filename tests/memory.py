#!/usr/bin/env python3
"""Statements, packets and clients that want more memory than a node has, all at once: they get errors, and others go on.

with_cluster.py --start "--memory-mib 1024" -- memory.py --data-dir '{data}' --sql-port P [--long]

Sixty clients ask the first node for far more than its limit. The node must stay within the limit and 256 MiB, as the system counts
it; each client must be answered; neighbours must read all the while; and the memory must be back soon after.
--only KIND runs one kind of client alone and prints what it took.
"""

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time

from cluster import INCONCLUSIVE, is_temporary
from minimysql import Connection, MySQLError
from native import CLIENT, Closed, greeted, secret_of, signal

MIB = 1 << 20
SLACK_MIB, LEFT_MIB, COUNTED_MIB = 256, 512, 96
# Errors that say what there was too much of.
REFUSALS = {1038, 1117, 1153, 1296, 1301, 3170, 4081, 4082}
# Many at once wait for one another: all must have an answer within this, the long ones within three times as much.
PATIENCE_S = 150
MULTI_STATEMENTS = 0x10000
CATALOG_REQ = 92


def frames(body):
    """A payload as packets."""
    at, sequence, out = 0, 0, []
    while True:
        part = body[at : at + 0xFFFFFF]
        out.append(len(part).to_bytes(3, "little") + bytes([sequence % 256]) + part)
        at, sequence = at + len(part), sequence + 1
        if len(part) < 0xFFFFFF:
            return b"".join(out)


class Raw(Connection):
    """A client that sends any bytes."""

    def __init__(self, port):
        super().__init__(port, timeout=3 * PATIENCE_S, more_flags=MULTI_STATEMENTS)

    def pass_over(self, count):
        """Reads so many bytes, and forgets them."""
        while count > 0:
            self._need(1)
            part = min(count, len(self.buffer) - self.at)
            self.at, count = self.at + part, count - part

    def glance(self):
        """The first bytes of a packet, and its length; the rest is passed over."""
        length = int.from_bytes(self._read(4)[:3], "little")
        head = self._read(min(length, 600))
        self.pass_over(length - len(head))
        if head[:1] == b"\xff":
            raise self._error(head)
        return head, length

    def answer(self):
        """Reads an answer; raises what the server says."""
        head, length = self.glance()
        if head[0] == 0:
            return 0
        for _ in range(self._length(head, 0)[0] + 1):
            self.glance()
        while True:
            head, length = self.glance()
            if head[:1] == b"\xfe" and length < 9:
                return 0
            while length == 0xFFFFFF:
                length = int.from_bytes(self._read(4)[:3], "little")
                self.pass_over(length)

    def ask(self, body):
        self.socket.sendall(frames(body))
        return self.answer()

    def prepare(self, text):
        self.socket.sendall(frames(b"\x16" + text))
        head, _ = self.glance()
        for count in (int.from_bytes(head[7:9], "little"), int.from_bytes(head[5:7], "little")):
            for _ in range(count + 1 if count else 0):
                self.glance()
        return head[1:5]


class Sizes:
    """How much each asks for."""

    def __init__(self, long):
        self.text = (50 if long else 8) * MIB
        self.packet = (60 if long else 40) * MIB
        self.blanks = (63 if long else 24) * MIB
        self.hold_s = 20 if long else 5
        self.statements = 500 if long else 120
        self.rounds = 3 if long else 1


def constants(port, sizes):
    client = Raw(port)
    return client.ask(b"\x03SELECT 1" + b",1" * (sizes.text // 2))


def sums(port, sizes):
    client = Raw(port)
    return client.ask(b"\x03SELECT 1" + b"+1" * (sizes.text // 2))


def lists(port, sizes):
    client = Raw(port)
    return client.ask(b"\x03SELECT v FROM memory.t WHERE v IN ('1'" + b",'1'" * (sizes.text // 4) + b")")


def blanks(port, sizes):
    client = Raw(port)
    client.ask(b"\x03SELECT" + b" " * sizes.blanks + b"1")
    client = Raw(port)
    return client.ask(b"\x03" + b" " * sizes.blanks)


def rows(port, sizes):
    # Of its own: nobody waits for another's lock.
    row = b"(%d,'')" % random.randrange(1_000_000, 1 << 31)
    client = Raw(port)
    return client.ask(b"\x03INSERT IGNORE INTO memory.t VALUES " + row + (b"," + row) * (sizes.text // 14))


def uses(port, sizes):
    """One variable, asked for in many places."""
    client = Raw(port)
    client.ask(b"\x03SET @a = REPEAT('x', 4000000)")
    client.ask(b"\x03SELECT @a" + b",@a" * 399)
    return 0


def variables(port, sizes):
    """Many variables, and then what is kept of them is in the way of nobody else."""
    client = Raw(port)
    for number in range(300):
        client.ask(b"\x03SET @v%d = REPEAT('x', 4000000)" % number)
    time.sleep(sizes.hold_s)
    return 0


def unread(port, sizes):
    """Many statements in a packet; their answers are not read for a while."""
    client = Raw(port)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
    client.socket.sendall(frames(b"\x03" + b"SELECT REPEAT('x', 4000000);" * sizes.statements))
    time.sleep(sizes.hold_s)
    return client.answer()


def long_data(port, sizes):
    """Parameters that are sent ahead of statements."""
    client = Raw(port)
    ids = [client.prepare(b"SELECT LENGTH(?)") for _ in range(10)]
    piece = b"x" * (4 * MIB)
    for number in ids:
        for _ in range(sizes.packet // len(piece)):
            client.socket.sendall(frames(b"\x18" + number + b"\0\0" + piece))
    time.sleep(sizes.hold_s)
    return client.ask(b"\x17" + ids[-1] + b"\0\1\0\0\0" + b"\0\1" + b"\xfe\0")


def packets(port, sizes):
    """A packet that never ends."""
    client = Raw(port)
    body = frames(b"\x03SELECT '" + b"x" * sizes.packet + b"'")
    client.socket.sendall(body[:-1000])
    time.sleep(sizes.hold_s)
    client.socket.sendall(body[-1000:])
    return client.answer()


def prepared(port, sizes):
    """Prepared statements that are long."""
    client = Raw(port)
    text = b"SELECT '" + b"x" * (8 * MIB) + b"'"
    for _ in range(12):
        client.prepare(text)
    time.sleep(sizes.hold_s)
    return 0


def sorts(port, sizes):
    client = Raw(port)
    return client.ask(
        b"\x03SELECT MAX(LENGTH(w)) FROM (SELECT REPEAT(a.v, 2000) w FROM memory.t a, memory.t b, memory.t c "
        b"WHERE c.id < 40 ORDER BY RAND() LIMIT 300000) x")


def locks(port, sizes):
    """Transactions that stay open, each with a lock on each row."""
    client = Raw(port)
    client.query("BEGIN")
    locked = client.ask(b"\x03SELECT id FROM memory.locked FOR SHARE")
    time.sleep(sizes.hold_s)
    client.close()
    return locked


def catalogs(_, sizes):
    """A native client that asks for the catalog, again and again, and does not read."""
    link = greeted(sizes.native, sizes.secret, CLIENT)
    try:
        for number in range(20):
            link.send(b"".join(signal(CATALOG_REQ, sizes.node, bytes(16)) for _ in range(50)))
            time.sleep(sizes.hold_s / 20)
    except Closed:
        # So much waited for clients that do not read.
        pass
    link.close()
    return 0


def executes(port, sizes):
    """One variable, for many placeholders."""
    client = Raw(port)
    client.ask(b"\x03SET @a = REPEAT('x', 4000000)")
    client.ask(b"\x03PREPARE s FROM 'SELECT ?" + b",?" * 399 + b"'")
    client.ask(b"\x03EXECUTE s USING @a" + b",@a" * 399)
    return 0


def leaves(port, sizes):
    """Clients that are gone before their statement has been read."""
    for _ in range(5):
        client = Raw(port)
        client.socket.sendall(frames(b"\x03SELECT 1" + b"+1" * (sizes.text // 4)))
        time.sleep(0.1)
        client.close()
    return 0


KINDS = [executes, leaves, locks, catalogs, constants, sums, lists, rows, blanks, uses, variables, unread, long_data, packets, prepared, sorts]


class Attacker(threading.Thread):
    """One client; what it was told."""

    def __init__(self, kind, port, sizes):
        super().__init__(daemon=True)
        self.kind, self.port, self.sizes = kind, port, sizes
        self.refused, self.wrong, self.is_temporary = 0, None, False

    def run(self):
        for _ in range(self.sizes.rounds):
            try:
                self.kind(self.port, self.sizes)
            except MySQLError as error:
                self.refused += 1
                if error.number not in REFUSALS:
                    # An empty text has an error of its own.
                    if not (self.kind is blanks and error.number == 1065):
                        self.wrong, self.is_temporary = str(error)[:300], is_temporary(error)
            except (OSError, Closed) as error:
                self.wrong, self.is_temporary = f"not answered: {error!r}", is_temporary(error)


class Neighbour(threading.Thread):
    """A client that reads a row, again and again, and must notice nothing."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.stop = threading.Event()
        self.done, self.slowest, self.wrong, self.is_temporary = 0, 0.0, None, False

    def run(self):
        chooser = random.Random(self.port)
        try:
            client = Connection(self.port, timeout=PATIENCE_S)
            while not self.stop.is_set():
                number, start = chooser.randrange(1, 100), time.monotonic()
                rows = client.query(f"SELECT v FROM memory.t WHERE id = {number}")
                self.slowest = max(self.slowest, time.monotonic() - start)
                if rows != [[f"value {number}"]]:
                    self.wrong = f"row {number} is {rows}"
                self.done += 1
                time.sleep(0.005)
        except (MySQLError, OSError) as error:
            self.wrong, self.is_temporary = repr(error), is_temporary(error)


class Watch(threading.Thread):
    """What the system says that a process has in memory."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.stop = pid, threading.Event()
        self.most = 0

    def now(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
        return int(lines["RssAnon"].split()[0]) // 1024

    def run(self):
        while not self.stop.is_set():
            try:
                self.most = max(self.most, self.now())
            except OSError:
                return
            time.sleep(0.02)


def status(binary, directory):
    line = [binary, "status", "--data-dir", directory, "--json"]
    return json.loads(subprocess.run(line, check=True, capture_output=True, timeout=30).stdout)


def fill(client, mib):
    """Rows of about so many MiB, or as many as there is room for."""
    client.query("CREATE TABLE memory.filled (id INT PRIMARY KEY, v VARBINARY(10000))")
    row = "(%d, REPEAT('x', 9900))"
    for part in range(mib):
        numbers = range(part * 100, part * 100 + 100)
        try:
            client.query("INSERT INTO memory.filled VALUES " + ", ".join(row % number for number in numbers))
        except MySQLError as error:
            print(f"memory: after {part} MiB of rows: {error}", flush=True)
            return


def by_kind(binary, directory, node):
    """What a node says that it has, in bytes."""
    figures = status(binary, directory)["memory"][str(node)]
    return {name: of["bytes"] for name, of in figures.items()}, figures["all"]["refused"]


def is_as_before(before, after):
    """Nothing is counted for clients that are gone."""
    kinds = [name for name in after if name not in ("all", "rows") and after[name] > 0]
    return not kinds and after["all"] <= before["all"] + COUNTED_MIB * MIB


def attack(port, watch, kinds, clients, sizes):
    """All at once; the attackers, when they are through."""
    attackers = [Attacker(kinds[number % len(kinds)], port, sizes) for number in range(clients)]
    start = time.monotonic()
    for attacker in attackers:
        attacker.start()
    end = start + PATIENCE_S * sizes.rounds
    for attacker in attackers:
        attacker.join(max(0.1, end - time.monotonic()))
        if attacker.is_alive():
            attacker.wrong = "has no answer"
    took = time.monotonic() - start
    print(f"memory: {clients} clients took {took:.1f} s; at most {watch.most} MiB resident; "
          f"{sum(a.refused for a in attackers)} refusals", flush=True)
    return attackers


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--sql-port", type=int, required=True)
    parser.add_argument("--limit-mib", type=int, default=1024)
    parser.add_argument("--clients", type=int, default=60)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--fill-mib", type=int, default=0, help="rows that are there before")
    parser.add_argument("--only", choices=[kind.__name__ for kind in KINDS])
    args = parser.parse_args()
    binary, failures = os.environ.get("LATSDB", "target/release/latsdb"), []
    nodes = status(binary, args.data_dir)["nodes"]
    node = next(node for node in nodes if node["sql_address"].endswith(f":{args.sql_port}"))
    pid = node["pid"]
    client = Connection(args.sql_port)
    client.query("CREATE DATABASE memory")
    client.query("CREATE TABLE memory.t (id INT PRIMARY KEY, v VARCHAR(100))")
    for number in range(1, 100):
        client.query(f"INSERT INTO memory.t VALUES ({number}, 'value {number}')")
    for number in range(30):
        client.query(f"CREATE TABLE memory.c{number} (id INT PRIMARY KEY) COMMENT '{'x' * 2000}'")
    client.query("CREATE TABLE memory.locked (id INT PRIMARY KEY, v INT)")
    for start in range(0, 100_000 if args.long else 20_000, 10_000):
        client.query("INSERT INTO memory.locked VALUES " + ", ".join(f"({number}, 0)" for number in range(start, start + 10_000)))
    if args.fill_mib:
        fill(client, args.fill_mib)
        print("memory: " + json.dumps(status(binary, args.data_dir)["memory"][str(node["node_id"])]), flush=True)
    watch, sizes = Watch(pid), Sizes(args.long)
    counted, _ = by_kind(binary, args.data_dir, node["node_id"])
    sizes.secret, sizes.node = secret_of(args.data_dir), node["node_id"]
    sizes.native = int(node["native_address"].rsplit(":", 1)[1])
    before = watch.now()
    watch.start()
    neighbours = [Neighbour(args.sql_port) for _ in range(2)]
    for neighbour in neighbours:
        neighbour.start()
    kinds = [kind for kind in KINDS if args.only in (None, kind.__name__)]
    attackers = attack(args.sql_port, watch, kinds, args.clients, sizes)
    for neighbour in neighbours:
        neighbour.stop.set()
        neighbour.join(PATIENCE_S)
        print(f"memory: a neighbour read {neighbour.done} rows, the slowest in {neighbour.slowest * 1000:.0f} ms")
        if neighbour.wrong or neighbour.done == 0:
            failures.append(f"a neighbour: {neighbour.wrong or 'has read nothing'}")
    # A node that was removed, and what its clients were told: with_cluster.py knows whether it was.
    disturbed = any(client.is_temporary for client in [*neighbours, *attackers])
    for attacker in attackers:
        if attacker.wrong:
            failures.append(f"{attacker.kind.__name__}: {attacker.wrong}")
    if watch.most > args.limit_mib + SLACK_MIB:
        failures.append(f"{watch.most} MiB were resident, with a limit of {args.limit_mib}")
    del attackers
    if not os.path.exists(f"/proc/{pid}"):
        # Out of memory, or without a processor for a lease: with_cluster.py knows.
        print(f"memory: FAIL the node is gone, with {watch.most} MiB resident at most", flush=True)
        return INCONCLUSIVE if watch.most <= args.limit_mib + SLACK_MIB else 1
    end, left = time.monotonic() + 60, watch.now()
    while left > before + LEFT_MIB and time.monotonic() < end:
        time.sleep(0.5)
        left = watch.now()
    print(f"memory: {before} MiB resident before, {left} MiB after", flush=True)
    if left > before + LEFT_MIB:
        failures.append(f"{left} MiB are resident a minute later; {before} were before")
    after, refused = by_kind(binary, args.data_dir, node["node_id"])
    while not is_as_before(counted, after) and time.monotonic() < end:
        time.sleep(0.5)
        after, refused = by_kind(binary, args.data_dir, node["node_id"])
    print(f"memory: {refused} refusals; counted before: {counted}; after: {after}", flush=True)
    if not is_as_before(counted, after):
        failures.append(f"what is counted for clients stays: {after}")
    held = status(binary, args.data_dir)["memory"][str(node["node_id"])]["native_output"]["most_bytes"]
    if catalogs in kinds and held < MIB:
        failures.append(f"native clients that do not read have held {held} bytes only: they were not answered")
    if refused == 0 and args.only is None:
        failures.append("nobody was refused")
    for failure in failures[:20]:
        print(f"memory: FAIL {failure}", flush=True)
    if failures:
        return INCONCLUSIVE if disturbed else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
