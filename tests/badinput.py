#!/usr/bin/env python3
"""Bad input on every port of a running cluster: each is refused, and the nodes go on.

If a node is removed meanwhile, because it got no processor time for a lease, what was seen says nothing: then the status is 75, and
with_cluster.py runs this once more. Rows that are wrong are wrong in any case.
"""

import argparse
import os
import random
import socket
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from cluster import (INCONCLUSIVE, PATIENCE_S, Cluster, Running, concluded, connect, is_temporary, port_of, repeated,
                     wait_until)
from minimysql import Connection, MySQLError
from native import ADMIN, CLIENT, NODE, greeted, hello, secret_of

PASSED, FAILED = [], []
# Ports beside those of the running cluster: of a cluster of its own, and of one that is never to start.
SMALL, NEVER = 10, 20


def case(name, good, detail=""):
    (PASSED if good else FAILED).append(name)
    print(f"badinput: {'ok  ' if good else 'FAIL'} {name} {detail if not good else ''}", flush=True)


def throw(port, data, wait=0.3):
    """Sends bytes and listens a little."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as s:
            s.settimeout(wait)
            s.sendall(data)
            try:
                while s.recv(65536):
                    pass
            except OSError:
                pass
    except OSError:
        pass


def garbage(native, sql, directory, seed):
    chooser, ports = random.Random(seed), native + sql
    secret = secret_of(directory)
    for port in ports:
        for _ in range(60):
            throw(port, chooser.randbytes(chooser.choice([1, 4, 47, 48, 300, 5000])), 0.02)
        throw(port, b"GET / HTTP/1.1\r\n\r\n", 0.1)
        throw(port, b"\xff\xff\xff\x00" + b"a" * 1000, 0.1)
        throw(port, b"\x00\x00\x00\x00" * 100, 0.1)
        throw(port, hello(NODE, node=1), 0.05)
        throw(port, hello(CLIENT) + chooser.randbytes(300), 0.05)
    for port in native:
        # Who has proved to be a client, and then sends what no client can send.
        for kind in (CLIENT, ADMIN):
            for tail in (chooser.randbytes(64), b"\xff" * 64, bytes(64), (64).to_bytes(4, "little") + bytes(60)):
                link = greeted(port, secret, kind)
                link.send(tail)
                link.close()
    return [socket.create_connection(("127.0.0.1", p), timeout=PATIENCE_S) for p in ports for _ in range(20)]


class Bystander(threading.Thread):
    """A client that works all the while through one node and must notice nothing."""

    def __init__(self, port, table):
        super().__init__(daemon=True)
        self.port, self.table = port, table
        self.stop = threading.Event()
        self.done, self.slowest, self.wrong, self.error = 0, 0.0, [], None

    def run(self):
        try:
            connection = connect(self.port)
            connection.query(f"CREATE TABLE {self.table} (id INT PRIMARY KEY, v INT)")
            while not self.stop.is_set() and len(self.wrong) < 5:
                since = time.monotonic()
                connection.query(f"INSERT INTO {self.table} VALUES ({self.done}, {self.done})")
                rows = connection.query(f"SELECT v FROM {self.table} WHERE id = {self.done}")
                if rows != [[str(self.done)]]:
                    self.wrong.append(f"row {self.done} is {rows}")
                self.done += 1
                self.slowest = max(self.slowest, time.monotonic() - since)
                time.sleep(0.005)
            connection.query(f"DROP TABLE {self.table}")
        except Exception as error:  # Whatever it is, the thread must not look as if it had done its work.
            self.error = error

    def report(self, cluster):
        wait_until(f"a client of port {self.port} gets on", lambda: self.done > 20 or not self.is_alive(), cluster.describe)
        self.stop.set()
        self.join(PATIENCE_S)
        case(f"a client of port {self.port} notices nothing ({self.done} rows, slowest {self.slowest * 1000:.0f} ms)",
             not self.wrong and not self.error and not self.is_alive(), f"{self.wrong} {self.error!r}")


def answer(connection, sequence, body):
    """The reply to a raw packet: an error's number, 0 for anything else, None for a closed connection."""
    try:
        connection._send(sequence, body)
        reply = connection._packet()
        return int.from_bytes(reply[1:3], "little") if reply[0] == 0xFF else 0
    except OSError:
        return None


def still_usable(connection):
    try:
        return connection.query("SELECT 1") == [["1"]]
    except (OSError, MySQLError):
        return False


def protocol(port):
    """A client that has logged in and then loses the thread."""
    # Wrong commands: an error, and the session goes on.
    for name, body, numbers in [
        ("an unknown command", b"\x7f", (1047,)),
        ("an unknown statement executed", b"\x17" + (99).to_bytes(4, "little") + b"\0" + (1).to_bytes(4, "little"), (1243,)),
        ("half an execute", b"\x17\x01", (1835, 1047, 1243)),
        ("an unknown statement reset", b"\x1a" + (99).to_bytes(4, "little"), (1243,)),
        ("a text that is not UTF-8", b"\x03SELECT '\xff\xfe\x80'", ()),
        ("an empty statement", b"\x03", (1065,)),
        ("a zero byte in a statement", b"\x03SELECT \0 1", (1064,)),
        ("a database that is not UTF-8", b"\x02\xff\xfe", None),
        ("parentheses, many", b"\x03SELECT " + b"(" * 100_000 + b"1" + b")" * 100_000, None),
        ("a NOT before a NOT, many", b"\x03SELECT " + b"NOT " * 100_000 + b"1", None),
        ("an expression of many parts", b"\x03SELECT 1" + b"+1" * 100_000, ()),
    ]:
        connection = connect(port)
        number = answer(connection, 0, body)
        # `()`: an answer or an error, as long as there is one; None: any error.
        good = number is not None and (numbers == () or (number > 0 if numbers is None else number in numbers))
        usable = number != 0 and still_usable(connect(port)) if numbers == () else still_usable(connection)
        case(f"{name}: error {number}", good and (usable or number == 0), f"error {number}, session usable: {usable}")
        connection.close()
    # Wrong framing: an error or a closed connection; nobody can follow such a stream.
    connection = connect(port)
    number = answer(connection, 5, b"\x03SELECT 1")
    case(f"a wrong sequence number: {number}", number in (None, 1156), f"{number}")
    connection.close()
    connection = connect(port)
    number = answer(connection, 0, b"")
    case(f"an empty packet: {number}", number is None or number > 0, f"{number}")
    connection.close()
    connection = connect(port)
    connection.socket.sendall((1 << 20).to_bytes(3, "little") + b"\0" + b"\x03SELECT")
    connection.close()
    case("a client that leaves within a packet", still_usable(connect(port)))


def oversized(port):
    """More than max_allowed_packet, in packets that go on and on."""
    connection = connect(port)
    limit = int(connection.query("SELECT @@max_allowed_packet")[0][0])
    full, number, sent = b"\0" * 0xFFFFFF, None, 0
    try:
        for sequence in range(limit // len(full) + 2):
            connection.socket.sendall(b"\xff\xff\xff" + bytes([sequence % 256]) + full)
            sent += len(full)
        reply = connection._packet()
        number = int.from_bytes(reply[1:3], "little")
    except OSError:
        pass
    connection.close()
    case(f"a statement of {sent >> 20} MiB (the limit is {limit >> 20}): {number}", number in (None, 1153), f"{number}")
    # A value that a packet may have and a column may not.
    connection = connect(port)
    try:
        connection.query(f"SELECT LENGTH('{'x' * (8 << 20)}')")
        fine = True
    except MySQLError:
        fine = True
    except OSError:
        fine = False
    case("a literal of 8 MiB gets an answer", fine and still_usable(connection))


def slow_login(port):
    """A client that sends its login byte by byte is slow, not wrong."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as s:
        s.recv(4096)
        body = (0x0200 | 0x8000 | 0x80000).to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + b"\x2d" + bytes(23)
        body += b"root\0\0mysql_native_password\0"
        for byte in len(body).to_bytes(3, "little") + b"\1" + body:
            s.sendall(bytes([byte]))
            time.sleep(0.01)
        reply = s.recv(4096)
    case("a slow login", len(reply) > 4 and reply[4] == 0)


def logins(port):
    """Logins that are refused."""
    for name, sequence, user, number in [
        ("an unknown user", 1, b"nobody", (1045,)),
        ("a login with a wrong sequence number", 9, b"root", (None, 1156, 1043)),
    ]:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as s:
            s.recv(4096)
            body = (0x0200 | 0x8000 | 0x80000).to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + b"\x2d" + bytes(23)
            body += user + b"\0\0mysql_native_password\0"
            got = None
            try:
                s.sendall(len(body).to_bytes(3, "little") + bytes([sequence]) + body)
                reply = s.recv(4096)
                got = int.from_bytes(reply[5:7], "little") if len(reply) > 7 and reply[4] == 0xFF else (None if not reply else 0)
            except OSError:
                pass
        case(f"{name}: {got}", got in number, f"{got}")
    try:
        Connection(port, "nowhere")
        case("1049: a login to an unknown database", False, "no error")
    except MySQLError as error:
        case("1049: a login to an unknown database", error.number == 1049, str(error))


def memory_limit(binary, sql_port):
    """A cluster that is full says so, keeps what it has, and takes rows again when there is room."""
    with Cluster(binary, sql_port, memory_mib=64) as cluster, cluster.undisturbed():
        removed, before = cluster.removed(), cluster.pids()
        c = connect(sql_port)
        c.query("CREATE TABLE big (id INT PRIMARY KEY, v VARBINARY(8000))")
        c.query("INSERT INTO big VALUES (0, 'first')")
        value, error, rows = "v" * 8000, None, 1
        for first in range(1, 40_000, 20):
            values = ",".join(f"({i}, '{value}')" for i in range(first, first + 20))
            try:
                c.query(f"INSERT INTO big VALUES {values}")
                rows += 20
            except MySQLError as refused:
                if is_temporary(refused):
                    raise
                error = refused
                break
        case(f"a full memory limit after {rows * 8000 >> 20} MiB: {error.number if error else None}",
             error is not None and error.number == 1114, str(error))
        case("what is there can be read", c.query("SELECT COUNT(*) FROM big") == [[str(rows)]] and
             c.query("SELECT v FROM big WHERE id = 0") == [["first"]])
        try:
            c.query(f"DELETE FROM big WHERE id BETWEEN 1 AND {rows // 2}")
            c.query(f"INSERT INTO big VALUES (1, '{value}')")
            case("there is room again after a DELETE", True)
        except MySQLError as refused:
            if is_temporary(refused):
                raise
            case("there is room again after a DELETE", False, str(refused))
        after = cluster.pids()
        if before != after and cluster.was_disturbed(removed):
            print(f"badinput: a full node was removed, which says nothing: {cluster.removed()}", flush=True)
        else:
            case("the full nodes are the same processes", before == after, f"{before} {after}")


def expect(connection, statement, number):
    try:
        connection.query(statement)
        case(f"{number}: {statement[:60]}", False, "no error")
    except MySQLError as error:
        case(f"{number}: {statement[:60]}", error.number == number, str(error))


def statements(port):
    c = connect(port)
    c.query("DROP TABLE IF EXISTS bad")
    c.query("CREATE TABLE bad (id INT PRIMARY KEY, name VARCHAR(5), small TINYINT NOT NULL, blobs BLOB)")
    c.query("INSERT INTO bad VALUES (1, 'one', 1, NULL)")
    expect(c, "SELEKT 1", 1064)
    expect(c, "SELECT * FROM nothing", 1146)
    expect(c, "SELECT nothing FROM bad", 1054)
    expect(c, "USE nowhere", 1049)
    expect(c, "CREATE TABLE bad (id INT PRIMARY KEY)", 1050)
    expect(c, "CREATE DATABASE test", 1007)
    expect(c, "DROP DATABASE nowhere", 1008)
    expect(c, "INSERT INTO bad VALUES (1, 'x', 1, NULL)", 1062)
    expect(c, "INSERT INTO bad VALUES (2, 'too long', 1, NULL)", 1406)
    expect(c, "INSERT INTO bad VALUES (2, 'x', 1000, NULL)", 1264)
    expect(c, "INSERT INTO bad VALUES (2, 'x', 'abc', NULL)", 1366)
    expect(c, "INSERT INTO bad VALUES (2, 'x', NULL, NULL)", 1048)
    expect(c, "INSERT INTO bad (id, name) VALUES (2, 'x')", 1364)
    expect(c, "INSERT INTO bad VALUES (2, 'x')", 1136)
    expect(c, f"INSERT INTO bad VALUES (2, 'x', 1, '{'b' * 40000}')", 1118)
    expect(c, "UPDATE bad SET small = small + 1000 WHERE id = 1", 1264)
    expect(c, "SELECT * FROM bad WHERE JSON_VALID(id)", 1235)
    expect(c, "CREATE TABLE u (id INT PRIMARY KEY, v INT, FOREIGN KEY (v) REFERENCES t (id))", 1235)
    case("the session goes on", c.query("SELECT name FROM bad") == [["one"]])
    c.query("DROP TABLE bad")


def refused(name, line, words):
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    text = done.stderr.strip()
    good = done.returncode != 0 and any(w in text for w in words) and len(text.splitlines()) <= 2
    case(name, good, f"status {done.returncode}: {text}")


def command_line(binary, directory, port):
    fresh = os.path.join(tempfile.mkdtemp(prefix="latsdb-bad-"), "data")
    other = tempfile.mkdtemp(prefix="latsdb-bad-")
    with open(os.path.join(other, "letter.txt"), "w", encoding="utf-8") as letter:
        letter.write("not a database")
    # Where it would be wrong not to refuse, nothing starts at ports that are not ours.
    never = ["--sql-port", str(port + NEVER)]
    refused("a port in use", [binary, "start", "--data-dir", fresh, "--sql-port", str(port), "--detach"], ["in use"])
    refused("a directory in use", [binary, "start", "--data-dir", directory, *never], ["runs in"])
    refused("a directory of something else", [binary, "start", "--data-dir", other, *never], ["something else"])
    refused("no cluster there", [binary, "status", "--data-dir", fresh], ["no cluster"])
    refused("another cluster's directory",
            [binary, "node", "--data-dir", directory, "--node-id", "1", "--cluster-id", "5"], ["another cluster"])
    refused("replicas that do not divide", [binary, "start", "--data-dir", fresh, "--nodes", "3", "--replicas", "2", *never], ["multiple"])
    shutil.rmtree(other)
    shutil.rmtree(os.path.dirname(fresh))


def all_cases(args, cluster):
    nodes = cluster.all_nodes()
    before = cluster.pids()
    native = [int(n["native_address"].rsplit(":", 1)[1]) for n in nodes]
    sql = [port_of(n) for n in nodes if n["sql_address"]]
    bystanders = [Bystander(port, f"bystander{port}") for port in sql]
    for bystander in bystanders:
        bystander.start()
    held = garbage(native, sql, args.data_dir, args.seed)
    case("garbage on every port", True)
    slow_login(args.sql_port)
    logins(args.sql_port)
    protocol(args.sql_port)
    oversized(args.sql_port)
    statements(args.sql_port)
    for s in held:
        s.close()
    for bystander in bystanders:
        bystander.report(cluster)
    for port in sql:
        case(f"a new client of port {port} works", still_usable(connect(port)))
    command_line(args.binary, args.data_dir, args.sql_port)
    after = cluster.pids()
    case("the nodes are the same processes", before == after, f"{before} {after}")
    return [text for bystander in bystanders for text in bystander.wrong]


def once(args):
    cluster = Running(args.binary, args.data_dir)
    removed = cluster.removed()
    wrong = all_cases(args, cluster)
    if FAILED and not wrong and cluster.was_disturbed(removed):
        print(f"badinput: {len(FAILED)} bad, but a node was removed meanwhile", flush=True)
        return INCONCLUSIVE
    repeated("badinput", lambda: memory_limit(args.binary, args.sql_port + SMALL))
    print(f"badinput: {len(PASSED)} good, {len(FAILED)} bad")
    return 1 if FAILED else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--sql-port", type=int, required=True)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"badinput: seed {args.seed}")
    return concluded(lambda: once(args))


if __name__ == "__main__":
    sys.exit(main())
