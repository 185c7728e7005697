#!/usr/bin/env python3
"""Bad input on every port of a running cluster: each is refused, and the nodes go on."""

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile

from minimysql import Connection, MySQLError

PASSED, FAILED = [], []


def case(name, good, detail=""):
    (PASSED if good else FAILED).append(name)
    print(f"badinput: {'ok  ' if good else 'FAIL'} {name} {detail if not good else ''}", flush=True)


def throw(port, data, wait=0.3):
    """Sends bytes and listens a little; True if the other side took it without harm."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as s:
            s.settimeout(wait)
            s.sendall(data)
            try:
                while s.recv(65536):
                    pass
            except OSError:
                pass
    except OSError:
        pass


def garbage(ports, seed):
    chooser = random.Random(seed)
    hello = b"LatsDB\r\n" + (1).to_bytes(2, "little")
    for port in ports:
        for _ in range(60):
            throw(port, chooser.randbytes(chooser.choice([1, 4, 47, 48, 300, 5000])), 0.02)
        throw(port, b"GET / HTTP/1.1\r\n\r\n", 0.1)
        throw(port, b"\xff\xff\xff\x00" + b"a" * 1000, 0.1)
        throw(port, b"\x00\x00\x00\x00" * 100, 0.1)
        # A client's greeting on the native port, and then what no client can send.
        client = hello + (2).to_bytes(2, "little") + bytes(36)
        for tail in (chooser.randbytes(64), b"\xff" * 64, bytes(64), (64).to_bytes(4, "little") + bytes(60)):
            throw(port, client + tail, 0.05)
        node = hello + (1).to_bytes(2, "little") + (1).to_bytes(2, "little") + bytes(34)
        throw(port, node, 0.05)
    held = [socket.create_connection(("127.0.0.1", p), timeout=2) for p in ports for _ in range(20)]
    return held


def expect(connection, statement, number):
    try:
        connection.query(statement)
        case(f"{number}: {statement[:60]}", False, "no error")
    except MySQLError as error:
        case(f"{number}: {statement[:60]}", error.number == number, str(error))


def statements(port):
    c = Connection(port, "test")
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
    expect(c, "SELECT * FROM bad a JOIN bad b ON a.id = b.id", 1235)
    expect(c, "CREATE TABLE u (id INT PRIMARY KEY, v INT UNIQUE)", 1235)
    case("the session goes on", c.query("SELECT name FROM bad") == [["one"]])
    c.query("DROP TABLE bad")


def pids(binary, directory):
    line = [binary, "status", "--json", "--data-dir", directory]
    done = subprocess.run(line, capture_output=True, text=True, timeout=20, check=True)
    nodes = json.loads(done.stdout)["nodes"]
    return {n["node_id"]: n["pid"] for n in nodes}, nodes


def refused(name, line, words):
    done = subprocess.run(line, capture_output=True, text=True, timeout=40, check=False)
    text = done.stderr.strip()
    good = done.returncode != 0 and any(w in text for w in words) and len(text.splitlines()) <= 2
    case(name, good, f"status {done.returncode}: {text}")


def command_line(binary, directory, port):
    fresh = os.path.join(tempfile.mkdtemp(prefix="latsdb-bad-"), "data")
    refused("a port in use", [binary, "start", "--data-dir", fresh, "--sql-port", str(port), "--detach"], ["in use"])
    refused("a directory in use", [binary, "start", "--data-dir", directory, "--sql-port", "24306"], ["runs in"])
    other = tempfile.mkdtemp(prefix="latsdb-bad-")
    with open(os.path.join(other, "letter.txt"), "w", encoding="utf-8") as letter:
        letter.write("not a database")
    refused("a directory of something else", [binary, "start", "--data-dir", other], ["something else"])
    refused("no cluster there", [binary, "status", "--data-dir", fresh], ["no cluster"])
    refused("another cluster's directory",
            [binary, "node", "--data-dir", directory, "--node-id", "1", "--cluster-id", "5"], ["another cluster"])
    refused("replicas that do not divide", [binary, "start", "--nodes", "3", "--replicas", "2"], ["multiple"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--sql-port", type=int, required=True)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"badinput: seed {args.seed}")
    before, nodes = pids(args.binary, args.data_dir)
    native = [int(n["native_address"].rsplit(":", 1)[1]) for n in nodes]
    sql = [int(n["sql_address"].rsplit(":", 1)[1]) for n in nodes if n["sql_address"]]
    held = garbage(native + sql, args.seed)
    statements(args.sql_port)
    for s in held:
        s.close()
    command_line(args.binary, args.data_dir, args.sql_port)
    after, _ = pids(args.binary, args.data_dir)
    case("the nodes are the same processes", before == after, f"{before} {after}")
    print(f"badinput: {len(PASSED)} good, {len(FAILED)} bad")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
