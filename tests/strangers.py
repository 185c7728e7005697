#!/usr/bin/env python3
"""Who does not know the cluster's secret gets nothing at the native port, and changes nothing (docs/protocols/greeting.md).

strangers.py --data-dir DIRECTORY --sql-port PORT: a cluster of two replicas runs there. Each case says what must hold; after each
the view must be the one from before: no node was removed, replaced or stopped.
"""

import argparse
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

from cluster import ATTEMPTS, PATIENCE_S, Running, concluded
from native import (ADMIN, CLIENT, MAGIC, NODE, NOT_A_MEMBER, SECRET_WRONG, VERSION_UNSUPPORTED, WRONG_CLUSTER, Closed, Link, greeted,
                    hello, proof, secret_of, signal)

MAP_REQ, CHANGE_REQ, STOP_NODE_REQ, DECLARE_DEAD_REQ, VIEW_ORD, RAFT_ORD = 90, 94, 114, 118, 100, 80
LAST_LIFE = 2**32 - 1
PASSED, FAILED = [], []


def case(name, good, detail=""):
    (PASSED if good else FAILED).append(name)
    print(f"strangers: {'ok  ' if good else 'FAIL'} {name} {'' if good else detail}", flush=True)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def refused_with(what):
    """The code with which the node closes; None if it does not."""
    try:
        what()
        return None
    except Closed as closed:
        return closed.code


class Strangers:
    def __init__(self, cluster, binary):
        self.cluster, self.binary = cluster, binary
        self.secret = secret_of(cluster.directory)
        status = cluster.status()
        self.members = {n["node_id"]: int(n["native_address"].rsplit(":", 1)[1]) for n in status["nodes"]}
        self.port = self.members[1]
        link = Link(self.port)
        self.id = int.from_bytes(link.open(hello(CLIENT))[24:32], "little")
        link.close()

    def view(self):
        status = self.cluster.status()
        return status["view"], sorted((n["node_id"], n["pid"], n["state"]) for n in status["nodes"])

    def unproved(self):
        """Greetings without a right proof."""
        as_node = hello(NODE, node=2, life=LAST_LIFE - 1, cluster=self.id)
        wrong, zeros = os.urandom(32), bytes(32)

        def tries(kind, greeting, secret, of=None):
            link = Link(self.port)
            link.open(greeting)
            link.send(proof(secret, of or kind, b"opener", link.opener, link.acceptor))
            link.check(secret, kind)

        for name, secret in (("a wrong secret", wrong), ("zeros as secret", zeros)):
            for kind, greeting in ((NODE, as_node), (CLIENT, hello(CLIENT)), (ADMIN, hello(ADMIN, cluster=self.id))):
                case(f"{name}, kind {kind}", refused_with(lambda: tries(kind, greeting, secret)) == SECRET_WRONG)
        case("a client's proof is none of a node", refused_with(lambda: tries(NODE, as_node, self.secret, CLIENT)) == SECRET_WRONG)
        case("a client's proof is none of an administrator", refused_with(lambda: tries(ADMIN, hello(ADMIN), self.secret, CLIENT)) == SECRET_WRONG)

        def unreadable():
            link = Link(self.port, timeout=1.5)
            link.open(as_node)
            # Half of the time that a silent connection has: it must be closed for what it says.
            link.send(MAGIC + bytes(40))
            link.check(self.secret, NODE)
        case("no proof, but what begins like a greeting", refused_with(unreadable) == SECRET_WRONG)

        def back(kind, greeting, end, opener=None):
            link = Link(self.port)
            link.open(greeting, opener)
            # What the node itself would say at its end of this connection, or what was right in another connection.
            link.send(proof(self.secret, kind, end, link.opener, link.acceptor))
            link.check(self.secret, kind)
        for kind, greeting in ((NODE, hello(NODE, node=2, life=LAST_LIFE - 1, cluster=self.id)), (CLIENT, hello(CLIENT))):
            case(f"the node's own words given back to it, kind {kind}", refused_with(lambda: back(kind, greeting, b"acceptor")) == SECRET_WRONG)
        case("the same with an opener's words is no refusal", refused_with(lambda: back(CLIENT, hello(CLIENT), b"opener")) is None)

        def elsewhere():
            challenge = os.urandom(32)
            first, second = Link(self.port), Link(self.port)
            first.open(hello(CLIENT), challenge)
            second.open(hello(CLIENT), challenge)
            case("two connections have two challenges", first.acceptor[:48] == second.acceptor[:48] and first.acceptor != second.acceptor)
            second.send(proof(self.secret, CLIENT, b"opener", first.opener, first.acceptor))
            second.check(self.secret, CLIENT)
        case("a proof of another connection", refused_with(elsewhere) == SECRET_WRONG)

    def replayed(self):
        """What a command says to a node is recorded, and said again."""
        listener = socket.create_server(("127.0.0.1", 0))
        recorded = []

        def between():
            client, _ = listener.accept()
            with client, socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as node:
                def pump(source, target, keep):
                    try:
                        while data := source.recv(65536):
                            if keep:
                                recorded.append(data)
                            target.sendall(data)
                        target.shutdown(socket.SHUT_WR)
                    except OSError:
                        pass
                back = threading.Thread(target=pump, args=(node, client, False), daemon=True)
                back.start()
                pump(client, node, True)
        threading.Thread(target=between, daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        said = subprocess.run([self.binary, "status", "--address", address, "--secret-file", os.path.join(self.cluster.directory, "secret")],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        case("status through a proxy", said.returncode == 0 and "view" in said.stdout, said.stderr)
        words = b"".join(recorded)
        assert words.startswith(MAGIC) and len(words) > 112, "nothing was recorded"

        def again():
            link = Link(self.port)
            link.open(words[:48], words[48:80])
            link.send(words[80:])
            link.check(self.secret, ADMIN)
        case("a greeting that is said again", refused_with(again) == SECRET_WRONG)
        listener.close()

    def impossible(self):
        """Greetings that nobody can send who belongs to the cluster; the proof is right."""
        cases = [
            ("the last of all lives, and no cluster", WRONG_CLUSTER, dict(node=2, life=LAST_LIFE)),
            ("the last of all lives", NOT_A_MEMBER, dict(node=2, life=LAST_LIFE, cluster=self.id)),
            ("no life", NOT_A_MEMBER, dict(node=2, life=0, cluster=self.id)),
            ("no cluster", WRONG_CLUSTER, dict(node=2, life=1)),
            ("another cluster", WRONG_CLUSTER, dict(node=2, life=1, cluster=self.id ^ 1)),
            ("a node that the cluster does not have", NOT_A_MEMBER, dict(node=40, life=5, cluster=self.id)),
            ("node 0", NOT_A_MEMBER, dict(node=0, life=5, cluster=self.id)),
            ("node 65535", NOT_A_MEMBER, dict(node=65535, life=5, cluster=self.id)),
            ("the node itself", NOT_A_MEMBER, dict(node=1, life=5, cluster=self.id)),
            ("a version without proofs", VERSION_UNSUPPORTED, dict(node=2, life=LAST_LIFE, version=1)),
            ("a version of the far future", VERSION_UNSUPPORTED, dict(node=2, life=5, cluster=self.id, version=9)),
        ]
        for name, code, who in cases:
            said = refused_with(lambda: greeted(self.port, self.secret, NODE, **who))
            case(f"as a node: {name}", said == code, f"{said} instead of {code}")

    def out_of_scope(self):
        """Signals of who has proved to be a client."""
        stop = (2).to_bytes(8, "little") + (1).to_bytes(8, "little") + bytes(8)
        for name, number, body in (("stop a node", STOP_NODE_REQ, stop), ("declare a node dead", DECLARE_DEAD_REQ, stop), ("define", CHANGE_REQ, bytes(8)),
                                   ("a view", VIEW_ORD, bytes(8)), ("consensus", RAFT_ORD, bytes(24))):
            link = greeted(self.port, self.secret, CLIENT)
            link.send(signal(number, 1, body))
            case(f"a client may not: {name}", link.is_closed())
        link = greeted(self.port, self.secret, ADMIN)
        link.send(signal(VIEW_ORD, 1, bytes(8)))
        case("an administrator may not: a view", link.is_closed())
        log = self.cluster.log()
        case("the log says why", log.count("only clients that administer the cluster may send") == 3
             and log.count("clients may not send this signal") == 3, log[-3000:])
        for kind in (CLIENT, ADMIN):
            link = greeted(self.port, self.secret, kind)
            link.send(signal(MAP_REQ, 1, bytes(16)))
            case(f"kind {kind} gets the map", len(link.take(32)) == 32)
            link.close()

    def crowds(self):
        """Strangers that say nothing, or not enough, keep nobody out."""
        for _ in range(ATTEMPTS):
            begun = time.monotonic()
            said = self.crowd()
            # Nobody has more time than three seconds to prove itself, on a busy machine either.
            if said is None or time.monotonic() - begun < 2.5:
                break
        case("a crowd drives out nobody who greets", said is None, said)
        refused = self.cluster.status()["refused_connections"]
        case("status counts who was sent away", refused >= 700 - 256, refused)

    def crowd(self):
        """One crowd; gives the refusal of who has greeted before it came, and proves itself after it."""
        waits = Link(self.port)
        waits.open(hello(CLIENT))
        crowd, passed = [], 0
        for number in range(700):
            link = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
            link.sendall(hello(NODE, node=2, life=7, cluster=self.id)[:number % 49])
            crowd.append(link)
            if number % 100 == 99:
                passed += refused_with(lambda: greeted(self.port, self.secret, CLIENT).close()) is None
        case("clients come through a crowd", passed == 7, f"{passed} of 7")
        # The oldest of the crowd is gone: as many have come as there are places, and more.
        crowd[0].settimeout(PATIENCE_S)
        case("a crowd drives out its oldest", not crowd[0].recv(1))
        said = refused_with(lambda: waits.prove(self.secret, CLIENT))
        for link in crowd:
            link.close()
        return said

    def commands(self):
        """Commands without the secret, or with another one."""
        with tempfile.TemporaryDirectory() as directory:
            other = os.path.join(directory, "secret")
            with open(os.open(other, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
                file.write(os.urandom(32).hex())
            letter = os.path.join(directory, "letter")
            with open(os.open(letter, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
                file.write("dear node")
            address = f"127.0.0.1:{self.port}"
            for name, words, more in (("another secret", "do not have the same secret", ["--secret-file", other]),
                                      ("no secret", "name it with --secret-file", ["--data-dir", directory + "/none"]),
                                      ("something else", "holds something else", ["--secret-file", letter])):
                done = subprocess.run([self.binary, "status", "--address", address, *more], capture_output=True, text=True,
                                      timeout=PATIENCE_S, check=False)
                case(f"status with {name}", done.returncode == 1 and words in done.stderr, done.stderr)
            self.joining(directory, other, address)
            open_to_all = [self.binary, "node", "--data-dir", self.cluster.directory, "--node-id", "1", "--listen", "192.0.2.1:4406"]
            done = subprocess.run(open_to_all, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            case("off the loopback without --insecure", done.returncode == 1 and "--insecure" in done.stderr, done.stderr)

    def joining(self, directory, other, address):
        """A node with another secret."""
        own = os.path.join(directory, "own")
        os.makedirs(os.path.join(own, "node-2"), mode=0o700)
        shutil.copy(os.path.join(self.cluster.directory, "cluster.json"), own)
        # As if it had been here before: who finds no cluster goes on with what it has.
        with open(os.path.join(own, "node-2", "control-0000000001.state"), "wb"):
            pass
        line = [self.binary, "node", "--data-dir", own, "--secret-file", other]
        listen = ["--listen", f"127.0.0.1:{free_port()}", "--sql-listen", f"127.0.0.1:{free_port()}"]
        done = subprocess.run([*line, "--join", address, *listen], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        case("node --join with another secret", done.returncode == 1 and "do not have the same secret" in done.stderr, done.stderr)
        with subprocess.Popen([*line, "--node-id", "2", *listen], stderr=subprocess.PIPE, text=True) as node:
            timer = threading.Timer(PATIENCE_S, node.kill)
            timer.start()
            said = next((text for text in node.stderr if "no link to this node" in text), "")
            node.kill()
            timer.cancel()
        case("a node says who refuses its link", re.search(r"secret.*node=[13] address=\"?127\.0\.0\.1:", said), said)

    def files(self):
        """What the cluster has written is its user's alone."""
        shown = []
        for directory, _, files in os.walk(self.cluster.directory):
            for path in [directory, *(os.path.join(directory, file) for file in files)]:
                try:
                    if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
                        shown.append(path)
                except FileNotFoundError:
                    pass
        case("nobody else reads the cluster's files", not shown, shown[:5])


def test(args):
    cluster = Running(args.binary, args.data_dir)
    cluster.wait_whole()
    strangers = Strangers(cluster, args.binary)
    for part in (strangers.unproved, strangers.replayed, strangers.impossible, strangers.out_of_scope, strangers.crowds,
                 strangers.commands, strangers.files):
        before = strangers.view()
        part()
        after = strangers.view()
        case(f"{part.__name__}: the nodes are as before", before == after, f"{before} {after}")
    print(f"strangers: {len(PASSED)} cases are right, {len(FAILED)} are not")
    return 1 if FAILED else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--sql-port", type=int, required=True)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    args = parser.parse_args()
    return concluded(lambda: test(args))


if __name__ == "__main__":
    sys.exit(main())
