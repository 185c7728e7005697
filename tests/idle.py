#!/usr/bin/env python3
"""Clients that ask nothing, or have vanished without a word, do not keep what they hold.

idle.py --data-dir DIRECTORY --sql-port PORT: a cluster of two replicas runs there. `wait_timeout` and `interactive_timeout` do what MySQL
says, all sockets ask for signs of life, and SHOW PROCESSLIST shows the sessions of all nodes. Where network namespaces may be made, a client
vanishes, and its locks are free within a minute.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from cluster import PATIENCE_S, Running, concluded, connect, insist, port_of, wait_until
from minimysql import Connection, MySQLError

INTERACTIVE = 1 << 10
# What the kernel needs at most: 45 s, and a busy machine besides.
VANISHED_WITHIN_S = 60


def end_of(connection):
    """The error with which the node ends an idle session, and the seconds until then."""
    begun = time.monotonic()
    try:
        packet = connection._packet()
    except OSError as error:
        return error, time.monotonic() - begun
    assert packet[0] == 0xFF, packet
    error = connection._error(packet)
    assert connection.socket.recv(1) == b"", "the connection stays open"
    return error, time.monotonic() - begun


def rests(port):
    desk = connect(port)
    desk.query("CREATE TABLE idle (id INT PRIMARY KEY, v INT)")
    desk.query("INSERT INTO idle VALUES (1, 1), (2, 2)")
    # Whatever a client asks for is a sign of life.
    pings = connect(port)
    pings.query("SET SESSION wait_timeout = 2")
    for _ in range(6):
        time.sleep(0.6)
        pings._send(0, b"\x0e")
        assert pings._packet()[0] == 0, "a session that pings has ended"
    pings.close()
    idle = connect(port)
    idle.query("SET SESSION wait_timeout = 2")
    # It may work, or wait for others, for as long as it wants.
    desk.query("BEGIN")
    desk.query("UPDATE idle SET v = 3 WHERE id = 2")
    idle.query("SET SESSION innodb_lock_wait_timeout = 4")
    try:
        idle.query("UPDATE idle SET v = 4 WHERE id = 2")
        raise AssertionError("it has not waited for the lock")
    except MySQLError as error:
        assert error.number == 1205, error
    desk.query("ROLLBACK")
    idle.query("BEGIN")
    idle.query("UPDATE idle SET v = 7 WHERE id = 1")
    error, took = end_of(idle)
    print(f"idle: with wait_timeout = 2 a session ends after {took:.2f} s: {error}")
    assert isinstance(error, MySQLError) and error.number == 4031, error
    assert took >= 1.5, "it has ended too soon"
    wait_until("its change is taken back", lambda: desk.query("UPDATE idle SET v = 8 WHERE id = 1") == 1)
    # The defaults of sessions that begin later, and of those that say that a person types.
    desk.query("SET GLOBAL wait_timeout = 1000")
    desk.query("SET GLOBAL interactive_timeout = 2")
    try:
        script, person = connect(port), Connection(port, "test", more_flags=INTERACTIVE)
        assert script.query("SELECT @@wait_timeout, @@interactive_timeout") == [["1000", "2"]]
        assert person.query("SELECT @@wait_timeout") == [["2"]]
        error, took = end_of(person)
        print(f"idle: with interactive_timeout = 2 a person's session ends after {took:.2f} s")
        assert isinstance(error, MySQLError) and error.number == 4031, error
        assert script.query("SELECT 1") == [["1"]]
    finally:
        desk.query("SET GLOBAL wait_timeout = DEFAULT")
        desk.query("SET GLOBAL interactive_timeout = DEFAULT")
    desk.query("DROP TABLE idle")


def sessions(cluster):
    """Each node shows the sessions of all."""
    ports = [port_of(node) for node in cluster.nodes()]
    clients = [connect(port) for port in ports]
    ids = {client.query("SELECT CONNECTION_ID()")[0][0] for client in clients}
    for client in clients:
        shown = {row[0] for row in client.query("SHOW PROCESSLIST")}
        assert ids <= shown, f"{ids - shown} are not shown"
    print(f"idle: all of {len(ports)} nodes show the sessions of all")


def keepalive(cluster):
    """The system asks for signs of life on all connections of the nodes."""
    link = connect(port_of(cluster.nodes()[0]))
    pids = [node["pid"] for node in cluster.all_nodes()]
    shown = subprocess.run(["ss", "-Htnpo", "state", "established"], capture_output=True, text=True, check=True).stdout
    of_nodes = [line for line in shown.splitlines() if any(f"pid={pid}," in line for pid in pids)]
    # A timer of another kind runs while something is not confirmed.
    silent = [line for line in of_nodes if "timer:" not in line]
    print(f"idle: {len(of_nodes)} connections of nodes, {len(of_nodes) - len(silent)} of them with a timer")
    assert len(of_nodes) > 4, shown
    assert not silent, silent
    link.close()


def processor_seconds(pids):
    """What the processes have used of processors in their lives."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf8") as stat:
            ticks += sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def leaves(cluster):
    """Nothing works for a client that has gone."""
    port = port_of(cluster.nodes()[0])
    pids = [node["pid"] for node in cluster.all_nodes()]
    desk = connect(port)
    desk.query("CREATE TABLE long_texts (id INT PRIMARY KEY, v VARCHAR(2000))")
    for first in range(0, 20_000, 500):
        desk.query("INSERT INTO long_texts VALUES " + ", ".join(f"({first + n}, REPEAT('ab', 900))" for n in range(500)))
    looks = " OR ".join(f"v LIKE '%a%b%a%b%a_c%{n}'" for n in range(40))
    for name, statement in (("a data node's work", f"SELECT COUNT(*) FROM long_texts WHERE {looks}"),
                            ("a session's work", "SELECT COUNT(*) FROM long_texts a, long_texts b WHERE a.v LIKE CONCAT('%', b.id, '%c')")):
        before = processor_seconds(pids)
        gone = connect(port)
        gone._send(0, b"\x03" + statement.encode())
        wait_until(f"{name} is under way", lambda before=before: processor_seconds(pids) > before + 0.5)
        # It is a lot of work: there is no answer for long.
        gone.socket.settimeout(2)
        try:
            raise AssertionError(f"{name} is through at once: {gone._packet()}")
        except TimeoutError:
            gone.close()

        def rests():
            used = processor_seconds(pids)
            time.sleep(0.5)
            return processor_seconds(pids) - used < 0.25
        _, took = wait_until(f"{name} ends when its client is gone", rests, cluster.describe, 20)
        print(f"idle: {name} is over {max(0.0, took - 0.5):.2f} s after its client has gone")
    desk.query("DROP TABLE long_texts")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def alone(cluster, own, address):
    """A cluster of one node, which serves MySQL clients at this address; its process."""
    shutil.copy(os.path.join(cluster.directory, "secret"), own)
    with open(os.path.join(cluster.directory, "cluster.json"), encoding="utf8") as file:
        description = json.load(file)
    with socket.create_server(("127.0.0.1", 0)) as free:
        native = f"127.0.0.1:{free.getsockname()[1]}"
    node = {**description["nodes"][0], "native_address": native, "sql_address": address}
    description.update(cluster_id=4242, replicas=1, nodes=[node], keeps=False, memory_mib=256)
    with open(os.path.join(own, "cluster.json"), "w", encoding="utf8") as file:
        json.dump(description, file)
    line = [cluster.binary, "node", "--data-dir", own, "--node-id", "1", "--found", "--insecure"]
    return subprocess.Popen(line, stderr=subprocess.DEVNULL)


CLIENT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from cluster import connect
one = connect(("10.231.7.1", 4306))
one.query("BEGIN")
one.query("UPDATE gone SET v = 7 WHERE id = 1")
print("locked", flush=True)
time.sleep(1000)
"""


def cut(cluster, space, ours):
    """A client at the other end of a cable, which is cut in the middle of a transaction."""
    place = ("10.231.7.1", 4306)
    with tempfile.TemporaryDirectory(prefix="latsdb-idle-") as own, alone(cluster, own, f"{place[0]}:{place[1]}") as node:
        client = None
        try:
            insist(lambda: connect(place).query("CREATE TABLE IF NOT EXISTS gone (id INT PRIMARY KEY, v INT)"))
            desk = connect(place)
            desk.query("INSERT INTO gone VALUES (1, 1)")
            line = ["ip", "netns", "exec", space, sys.executable, "-c", CLIENT, os.path.dirname(os.path.abspath(__file__))]
            client = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
            assert client.stdout.readline().strip() == "locked"
            assert run("ip", "netns", "exec", space, "ip", "link", "set", ours + "x", "down").returncode == 0
            begun = time.monotonic()

            def is_free():
                try:
                    return desk.query("UPDATE gone SET v = 8 WHERE id = 1") == 1
                except MySQLError as error:
                    assert error.number == 1205, error
                    return False
            assert not is_free(), "the row was not locked"
            wait_until("the row of who has vanished is free", is_free, patience_s=VANISHED_WITHIN_S)
            print(f"idle: {time.monotonic() - begun:.0f} s after a client has vanished its locks are free")
        finally:
            node.kill()
            if client:
                client.kill()
                client.wait()


def vanishes(cluster):
    """Somebody goes without a word, where networks of one's own may be made."""
    space, ours = f"idle{os.getpid()}", f"i{os.getpid()}"
    if run("ip", "netns", "add", space).returncode != 0:
        print("idle: no network namespaces here: nobody vanishes")
        return
    try:
        for words in (f"ip link add {ours} type veth peer name {ours}x netns {space}", f"ip addr add 10.231.7.1/30 dev {ours}",
                      f"ip link set {ours} up", f"ip netns exec {space} ip addr add 10.231.7.2/30 dev {ours}x",
                      f"ip netns exec {space} ip link set {ours}x up"):
            done = run(*words.split())
            assert done.returncode == 0, f"{words}: {done.stderr}"
        cut(cluster, space, ours)
    finally:
        run("ip", "link", "del", ours)
        run("ip", "netns", "del", space)


def test(args):
    cluster = Running(args.binary, args.data_dir)
    cluster.wait_whole()
    sessions(cluster)
    rests(port_of(cluster.nodes()[0]))
    keepalive(cluster)
    leaves(cluster)
    if not args.quick:
        vanishes(cluster)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--sql-port", type=int, required=True)
    parser.add_argument("--quick", action="store_true", help="nobody vanishes")
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    args = parser.parse_args()
    return concluded(lambda: test(args))


if __name__ == "__main__":
    sys.exit(main())
