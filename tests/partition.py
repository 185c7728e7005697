#!/usr/bin/env python3
"""Partitions a running cluster, and checks that nothing acknowledged is lost and that histories have no anomaly.

Each node lives in a network namespace of its own, joined by a bridge; nftables drops what must not arrive:
everything of a node, one direction between two, the link between the data nodes only, the witness, a share
of all packets. Transfers go on through all data nodes (see kill.py, whose ledger and checks these are), and so does work
with lists (see history.py). A fault lasts until a transfer is committed that began well after it: how long nobody got on is printed.
After each fault the cluster must be whole again. Needs root, `ip` and `nft`; says so and ends with 77 if it
may not make namespaces here. Touches no network of the machine.

If a node is removed besides, because it got no processor time for a lease, the one that is cut off may have the only rows: then the
same is done once more.
"""

import argparse
import contextlib
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import history
from cluster import ATTEMPTS, PATIENCE_S, SETTLED_S, Disturbed, connect, removed_by, wait_until
from kill import Ledger, Pinned, check, longest_gap, prepare
from minimysql import MySQLError

FAULT_SECONDS = 2.0
# A fault has been noticed by then.
NOTICED_S = 1.0
# Nobody gets on for so long: the node that is cut off may have the only rows.
ALONE_S = 20.0
SKIPPED = 77


def address(node):
    return f"10.77.0.{node}"


def run(*line, quiet=True):
    subprocess.run(line, check=True, timeout=30, stdout=subprocess.DEVNULL if quiet else None,
                   stderr=subprocess.DEVNULL if quiet else None)


class Net:
    """The namespaces: one for each node, and a hub with the bridge, in which the clients are."""

    def __init__(self, name, nodes):
        self.name, self.nodes = name, nodes

    def of(self, node):
        return f"{self.name}-{node}"

    def build(self):
        for place in ("hub", *self.nodes):
            run("ip", "netns", "add", self.of(place))
            run("ip", "-n", self.of(place), "link", "set", "lo", "up")
        hub = self.of("hub")
        run("ip", "-n", hub, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", hub, "addr", "add", "10.77.0.100/24", "dev", "br0")
        run("ip", "-n", hub, "link", "set", "br0", "up")
        for node in self.nodes:
            own = self.of(node)
            run("ip", "link", "add", "eth0", "netns", own, "type", "veth", "peer", "name", f"p{node}", "netns", hub)
            run("ip", "-n", hub, "link", "set", f"p{node}", "master", "br0", "up")
            run("ip", "-n", own, "addr", "add", f"{address(node)}/24", "dev", "eth0")
            run("ip", "-n", own, "link", "set", "eth0", "up")
            self.nft(node, "add table inet fault")
            self.nft(node, "add chain inet fault in { type filter hook input priority 0; }")

    def end_what_is_left(self):
        """Kills all processes in the namespaces: all of them were started by the test."""
        for place in ("hub", *self.nodes):
            found = subprocess.run(["ip", "netns", "pids", self.of(place)], check=False, timeout=30, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
            for pid in found.stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def remove(self):
        for place in ("hub", *self.nodes):
            subprocess.run(["ip", "netns", "del", self.of(place)], check=False, timeout=30,
                           stderr=subprocess.DEVNULL)

    def nft(self, node, command):
        run("ip", "netns", "exec", self.of(node), "nft", command)

    def drop(self, source, target, share=100):
        """What `source` sends does not arrive at `target`, or so many percent of it."""
        which = "" if share == 100 else f"numgen random mod 100 < {share} "
        self.nft(target, f"add rule inet fault in ip saddr {address(source)} {which}drop")

    def reset(self, source, target):
        """What `source` sends to `target` is answered with RST, as routers do it; what is no TCP is lost."""
        self.nft(target, f"add rule inet fault in ip saddr {address(source)} meta l4proto tcp reject with tcp reset")
        self.drop(source, target)

    def heal(self):
        for node in self.nodes:
            self.nft(node, "flush chain inet fault in")


def apart(net, some, others):
    """Neither hears the other."""
    for one in some:
        for other in others:
            net.drop(one, other)
            net.drop(other, one)


# What happens to the data node `a`: `b` is another one, `others` are all but `a`, the witness too if there is one.
FAULTS = {
    "a data node is alone": lambda net, a, b, others: apart(net, [a], others),
    "two data nodes cannot talk": lambda net, a, b, others: apart(net, [a], [b]),
    "one data node is not heard by another": lambda net, a, b, others: net.drop(a, b),
    "a data node is not heard by anybody": lambda net, a, b, others: [net.drop(a, o) for o in others],
    "a data node hears nobody": lambda net, a, b, others: [net.drop(o, a) for o in others],
    "the witness is alone": lambda net, a, b, others: apart(net, [others[-1]], [a, b]),
    "a tenth of all packets is lost": lambda net, a, b, others: [net.drop(x, y, 10) for x in net.nodes
                                                                 for y in net.nodes if x != y],
}


# Of two nodes that do not hear each other either one may be removed.
BETWEEN_TWO = {"two data nodes cannot talk", "one data node is not heard by another"}


# Clients rest between transactions: the one interpreter in which they all are must also look after the cluster.
REST_S = 0.003


class Client(Pinned):
    """Nobody closes its connections when a network is cut."""

    patience_s = 5

    def transfer(self):
        super().transfer()
        time.sleep(REST_S)


class ListClient(history.ListClient):
    """As `Client`, with lists."""

    def change(self):
        super().change()
        time.sleep(REST_S)


def guardians(directory):
    """The guardians of nodes whose files are there: (process, node)."""
    found = []
    for name in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(name, "rb") as file:
            words = file.read().split(b"\0")
            if b"guardian" in words[1:2] and os.fsencode(directory) in words:
                found.append((int(name.split("/")[2]), int(words[words.index(b"--node-id") + 1])))
    return found


class Cluster:
    """Processes, started again when they end."""

    def __init__(self, binary, net, directory, data_nodes, replicas, keeps=False):
        self.binary, self.net, self.directory, self.data_nodes = binary, net, directory, data_nodes
        nodes = [{"node_id": n, "data": n in data_nodes, "native_address": f"{address(n)}:4406",
                  "sql_address": f"{address(n)}:4306" if n in data_nodes else None} for n in net.nodes]
        record = {"format": 1, "cluster_id": random.getrandbits(60) | 1, "replicas": replicas, "ldm_instances": 1,
                  "tc_instances": 1, "memory_mib": 512, "keeps": keeps, "nodes": nodes}
        with open(os.path.join(directory, "cluster.json"), "w", encoding="utf8") as file:
            json.dump(record, file)
        with open(os.open(os.path.join(directory, "secret"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf8") as file:
            file.write(f"{random.getrandbits(256):064x}\n")
        self.log = open(os.path.join(directory, "log"), "wb")
        self.processes, self.over, self.restarts = {}, threading.Event(), 0
        self.keeper = threading.Thread(target=self.keep, daemon=True)
        try:
            for node in net.nodes:
                self.processes[node] = self.start(node, "--found")
            self.keeper.start()
        except BaseException:
            self.stop()
            raise

    def environment(self, _node):
        """What processes of the node get; none: what this one has."""
        return None

    def start(self, node, *more):
        line = ["ip", "netns", "exec", self.net.of(node), self.binary, "node", "--data-dir", self.directory,
                "--node-id", str(node), "--insecure", *more]
        return subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.environment(node))

    def keep(self):
        while not self.over.wait(0.3):
            for node, process in list(self.processes.items()):
                if process.poll() is not None and not self.over.is_set():
                    self.restarts += 1
                    self.processes[node] = self.start(node)

    def stop(self):
        self.over.set()
        if self.keeper.is_alive():
            self.keeper.join()
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
            process.wait()
        # They notice that all nodes are gone only while the network is there.
        wait_until("the guardians end", lambda: not guardians(self.directory), lambda: guardians(self.directory))

    def status(self, node):
        line = [self.binary, "status", "--json", "--address", f"{address(node)}:4406",
                "--secret-file", os.path.join(self.directory, "secret")]
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)

    def states(self):
        """What each node says, or why it says nothing."""
        said = {}
        for node in self.net.nodes:
            try:
                said[node] = self.status(node)
            except RuntimeError as error:
                said[node] = str(error)
        return said

    def whole(self):
        try:
            # A node that has been cut off believes in its old view until it hears of the new one.
            said = [self.status(node) for node in self.net.nodes]
            same = len({s["view"] for s in said}) == 1 and len({s["leader"] for s in said}) == 1
            if not same or any(n["state"] != "serving" for n in said[0]["nodes"]):
                return False
            for node in self.data_nodes:
                connect((address(node), 4306), 10).close()
            return True
        except (RuntimeError, OSError, MySQLError):
            return False

    def wait_whole(self):
        wait_until("the cluster is whole", self.whole, self.states)

    def settle(self):
        """Until it is whole and stays so: who has come late may be removed when the others have called the cluster whole."""
        before = None
        while self.removed() != before:
            before = self.removed()
            self.wait_whole()
            time.sleep(SETTLED_S)

    def removed(self):
        """The nodes that the others have removed, or that have ended because they came too late, in the order of the log."""
        with open(os.path.join(self.directory, "log"), encoding="utf8", errors="replace") as log:
            return removed_by(log.read())


def one_fault(cluster, ledger, what, chooser):
    time.sleep(chooser.uniform(0.2, 0.6))
    removed = len(cluster.removed())
    cluster.wait_whole()
    victim, other = chooser.sample(cluster.data_nodes, 2)
    before, begun = cluster.restarts, time.monotonic()
    FAULTS[what](cluster.net, victim, other, [n for n in cluster.net.nodes if n != victim])
    time.sleep(FAULT_SECONDS)

    def goes_on():
        if time.monotonic() > begun + ALONE_S:
            others = set(cluster.removed()[removed:]) - ({victim, other} if what in BETWEEN_TWO else {victim})
            if others and "packets" not in what:
                raise Disturbed(f"{what} (node {victim}): nodes {others} were removed besides")
        with ledger.lock:
            return any(b > begun + NOTICED_S for _, _, b in ledger.commits[-100:])

    try:
        wait_until(f"a transfer is committed that began while {what} (node {victim})", goes_on, cluster.states)
    finally:
        cluster.net.heal()
    with ledger.lock:
        times = sorted(t for t, _, _ in ledger.commits if t > begun)
    gap = longest_gap([begun, *times, time.monotonic()]) * 1000
    cluster.wait_whole()
    print(f"partition: {what} (node {victim}): {len(times)} commits meanwhile, longest time without one {gap:.0f} ms, "
          f"{cluster.restarts - before} node(s) removed", flush=True)


def one_fault_at_last(cluster, ledger, what, chooser):
    for attempt in range(ATTEMPTS):
        try:
            return one_fault(cluster, ledger, what, chooser)
        except Disturbed as why:
            if attempt + 1 == ATTEMPTS:
                raise
            print(f"partition: once more: {why}", flush=True)


def members(args):
    """The data nodes, and all nodes: two data nodes have a witness."""
    data = tuple(range(1, args.nodes + 1))
    return data, data + ((args.nodes + 1,) if args.nodes == 2 else ())


def inside(args):
    data, nodes = members(args)
    directory = tempfile.mkdtemp(prefix="latsdb-partition-")
    places = [(address(n), 4306) for n in data]
    stop, ledger, wrong = threading.Event(), Ledger(), []
    cluster = Cluster(args.binary, Net(args.net, nodes), directory, data, args.replicas)
    try:
        cluster.settle()
        prepare(places[0])
        history.prepare(places[0])
        workers = [Client(i + 1, places, ledger, stop) for i in range(args.threads)]
        clients = [ListClient(i + 1, places, args.seed + i, stop) for i in range(len(places))]
        for thread in workers + clients:
            thread.start()
        chooser = random.Random(args.seed)
        faults = [f for f in FAULTS if args.only in f and (len(nodes) > len(data) or "witness" not in f)]
        for what in faults * args.rounds:
            one_fault_at_last(cluster, ledger, what, chooser)
        stop.set()
        for thread in workers + clients:
            thread.join(PATIENCE_S)
        # Packets that were lost are sent again late: a link may have been given up after all was whole.
        time.sleep(1)
        cluster.wait_whole()
        wrong += [f"worker {w.index} hangs" for w in workers if w.is_alive()] + check(ledger, places)
        wrong += [f"worker {w.index}: {w.failure}" for w in workers if w.failure]
        wrong += [f"list client {c.number}: {c.failure}" for c in clients if c.failure or c.is_alive()]
        own = [t for client in clients for t in client.history]
        history.write(f"{directory}/lists.json", own + [history.final_reads(places[0], clients)])
        if not history.check(args.checker, [f"{directory}/lists.json"]):
            wrong.append("the history has anomalies")
    finally:
        stop.set()
        cluster.stop()
    print(f"partition: {len(ledger.committed)} committed, {len(ledger.refused)} refused, {len(ledger.unknown)} cut off "
          f"while committing, {cluster.restarts} processes started again; errors {ledger.errors}")
    for what in wrong:
        print(f"partition: WRONG: {what} (log: {directory}/log)")
    if not wrong:
        shutil.rmtree(directory)
    return 1 if wrong else 0


def in_namespaces(nodes, binary, *more):
    """Runs this script again in the hub of namespaces made for these nodes; gives its exit status, or SKIPPED. Whatever happens, the
    namespaces go, and all that runs in them."""
    script = os.path.abspath(sys.argv[0])
    net, status = Net(f"lats{os.getpid()}", nodes), None
    # So that `finally` is done then, too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        try:
            net.build()
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            print(f"{os.path.basename(script)}: skipped, namespaces cannot be made here: {error}")
            return SKIPPED
        line = ["ip", "netns", "exec", net.of("hub"), sys.executable, script, "--net", net.name, "--binary", os.path.abspath(binary), *more]
        status = subprocess.run(line, check=False).returncode
        return status
    finally:
        # A test that has ended well leaves nothing; if it does, the checks are to see it.
        if status != 0:
            net.end_what_is_left()
        net.remove()


def outside(args):
    return in_namespaces(members(args)[1], args.binary, "--rounds", str(args.rounds), "--threads", str(args.threads),
                         "--seed", str(args.seed), "--only", args.only, "--nodes", str(args.nodes),
                         "--replicas", str(args.replicas), "--checker", os.path.abspath(args.checker))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--checker", default=os.environ.get("LATS_HISTORY", "target/release/lats-history"))
    parser.add_argument("--nodes", type=int, default=2, help="data nodes; two of them get a witness")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", help="faults whose description has this in it")
    parser.add_argument("--net", help=argparse.SUPPRESS)
    args = parser.parse_args()
    return inside(args) if args.net else outside(args)


if __name__ == "__main__":
    sys.exit(main())
