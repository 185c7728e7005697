#!/usr/bin/env python3
"""A campaign of mixed faults on real processes: a seed draws what happens, and all that clients were told is held against it.

The processes of a cluster run in network namespaces (see partition.py) with a library that meddles with clocks and syncs (meddle.py).
A cluster lives for some rounds. In each one clients begin: transfers, half of them on disk, a bank, counters, registers and lists through
SQL, lists through the native client. Then one to three faults come, which may overlap (campaign_faults.py). When they are over all
nodes must be members again, and these are violations:

- something acknowledged is lost, although in each group a full replica has lived; something on disk is lost, whatever happened;
- a refused change is there, a counter shows a statement that ran twice, money appears or goes;
- a read is older than what was acknowledged before it began, a list is out of order, a transaction saw half of another one;
- a node group is called lost although a replica has lived, a node has panicked, or the cluster does not become whole;
- the cluster is whole again, and some clients get nothing done; clients get errors that nobody expects; a part of the test has failed.

Nodes that were removed although no fault has touched them are counted; if threads of theirs got no processor for half a lease that is
said, and excused. The longest times without a commit, and without an answer at nodes that no fault has touched, are printed.
Histories are written for Elle, too (elle.py). What has found something is kept, and the status is 1. Ends with 77 where no namespaces
can be made.

campaign.py [--binary target/release/latsdb] [--checker target/release/lats-history] [--minutes 2] [--seed N] [--nodes 2] [--json FILE]
            [--plant NAME]

`--plant NAME` changes what clients were told in one round (see plant.py): then the status must be 1.
"""

import argparse
import contextlib
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
import traceback

import elle
import history
from blackout import DiskWorker
from campaign_faults import SecondLife, draw, kind_of
from cluster import PATIENCE_S, Waits, connect, insist, rows, wait_until
from kill import ACCOUNTS, Ledger, Pinned, check, longest_gap
from meddle import Orders, build
from minimysql import MySQLError
from partition import Cluster, Net, address, guardians, in_namespaces
from plant import OF_THE_CAMPAIGN
from preload import need_compiler
from registers import PATIENCE_S as CLIENT_S, REST_S
from reset import Load, states

SPARE = 9
ALL = (1, 2, 3, 4, SPARE)
# Data nodes, all nodes, replicas.
SHAPES = (((1, 2), (1, 2, 3), 2), ((1, 2), (1, 2), 2), ((1, 2, 3), (1, 2, 3), 3), ((1, 2, 3, 4), (1, 2, 3, 4), 2))
ROUNDS_OF_A_CLUSTER = 12
# A campaign that is longer draws faults of a minute, too.
LONG_MINUTES = 8
# The cluster goes on for so long after a fault before it is looked at.
AFTER_S = 0.4
LOST_GROUP = 1296
PROBED_ROW = 7
# What clients may be told while nodes die and come back. No disk is full here, and there are few clients.
EXPECTED = {
    1205: "waited too long for a lock",
    1213: "the transaction was rolled back",
    1297: "the cluster cannot do it now",
    1053: "the node is ending",
    50029: "nobody knows what became of a commit",
    50038: "nobody knows how many rows were changed",
}


class Violation(Exception):
    """What must not be."""


class Nodes(Cluster):
    """The cluster of a campaign."""

    def __init__(self, binary, net, directory, shape):
        data, nodes, replicas = shape
        self.held, self.spare, self.copy, self.replicas = set(), SPARE, None, replicas
        self.library = build(directory)
        self.orders = {node: Orders(os.path.join(directory, f"orders-{node}")) for node in (*nodes, SPARE)}
        words = subprocess.run([binary, "node", "--help"], capture_output=True, text=True, check=True).stdout
        # Builds from before links proved a secret have no such options.
        self.options = ["--insecure"] if "--insecure" in words else []
        self.has_secret = "--secret-file" in words
        super().__init__(binary, net, directory, data, replicas, keeps=True)

    def line(self, place, directory, node):
        return ["ip", "netns", "exec", self.net.of(place), self.binary, "node", "--data-dir", directory, "--node-id", str(node), *self.options]

    def environment(self, node):
        return self.orders[node].environment(self.library)

    def start(self, node, *more):
        return subprocess.Popen([*self.line(node, self.directory, node), *more], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                env=self.environment(node))

    def keep(self):
        while not self.over.wait(0.1):
            for node, process in list(self.processes.items()):
                if node not in self.held and process.poll() is not None and not self.over.is_set():
                    self.restarts += 1
                    self.processes[node] = self.start(node)

    def status(self, node):
        line = [self.binary, "status", "--json", "--address", f"{address(node)}:4406"]
        line += ["--secret-file", os.path.join(self.directory, "secret")] if self.has_secret else []
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)

    def signal(self, node, what):
        with contextlib.suppress(ProcessLookupError):
            self.processes[node].send_signal(what)

    def guardians(self):
        return guardians(self.directory)

    def kill(self, node, of_guardians=()):
        """Also those of the guardians that are the node's."""
        for pid in [pid for pid, watched in of_guardians if watched == node]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.signal(node, signal.SIGKILL)

    def mend(self):
        """All cables."""
        self.net.heal()
        self.net.nft(SPARE, "flush chain inet fault in")

    def own(self, node, directory=None):
        return os.path.join(directory or self.directory, f"node-{node}")

    def groups(self):
        """The node groups: nodes in their order."""
        return [self.data_nodes[at:at + self.replicas] for at in range(0, len(self.data_nodes), self.replicas)]

    def group_of(self, node):
        return next(group for group in self.groups() if node in group)

    def lost_groups(self):
        found = []
        for node in self.data_nodes:
            with contextlib.suppress(RuntimeError):
                found += self.status(node)["lost_node_groups"]
        return found

    def start_copy(self, node):
        """On another machine, from a copy of the node's directory."""
        place = self.directory + "-copy"
        os.mkdir(place)
        names = [n for n in ("cluster.json", "secret", f"node-{node}") if os.path.exists(os.path.join(self.directory, n))]
        # Files may go while they are copied.
        subprocess.run(["cp", "-r", *[os.path.join(self.directory, n) for n in names], place], check=False, stderr=subprocess.DEVNULL)
        line = self.line(SPARE, place, node) + ["--listen", f"{address(SPARE)}:4406", "--sql-listen", f"{address(SPARE)}:4306"]
        self.copy = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                     env=self.environment(SPARE))

    def stop_copy(self):
        if self.copy:
            for pid, _ in guardians(self.directory + "-copy"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.copy.kill()
            self.copy.wait()
            self.copy = None
            shutil.rmtree(self.directory + "-copy", ignore_errors=True)

    def stop(self):
        self.stop_copy()
        super().stop()

    def text(self):
        with open(os.path.join(self.directory, "log"), encoding="utf8", errors="replace") as log:
            return log.read()


class Watched:
    """The processes, for `Waits`."""

    def __init__(self, cluster):
        self.cluster = cluster

    def processes(self):
        return [p.pid for p in self.cluster.processes.values() if p.poll() is None], None


class DiskClient(DiskWorker):
    """Waits for disks, and stays with its node."""

    patience_s = CLIENT_S
    away = Pinned.away

    def transfer(self):
        super().transfer()
        time.sleep(REST_S)


class Bank(Pinned):
    """Looks at all accounts in one transaction: nobody adds money, or takes it."""

    patience_s = CLIENT_S

    def transfer(self):
        run, begun = self.connection.query, time.monotonic()
        try:
            run("BEGIN")
            balances = [int(row[0]) for row in run("SELECT balance FROM account FOR SHARE")]
            run("COMMIT")
            self.ledger.note(self.ledger.committed, (len(balances), sum(balances)), self.port, begun)
        except MySQLError:
            with contextlib.suppress(MySQLError):
                run("ROLLBACK")
            raise
        time.sleep(10 * REST_S)


class Probe(threading.Thread):
    """Asks one node for a change and a read, over and over: how long an answer takes, whatever it is."""

    def __init__(self, node, stop):
        super().__init__(daemon=True)
        self.node, self.stop, self.longest, self.failure, self.ledger = node, stop, 0.0, None, Ledger()

    def run(self):
        try:
            self.work()
        except Exception as error:  # Whatever it is, the thread must not look as if it had done its work.
            self.failure = repr(error)

    def work(self):
        connection = None
        while not self.stop.is_set():
            asked = time.monotonic()
            try:
                connection = connection or connect((address(self.node), 4306), PATIENCE_S)
                connection.query(f"SELECT n FROM counter WHERE id = {PROBED_ROW}")
                connection.query(f"UPDATE counter SET n = n WHERE id = {PROBED_ROW}")
            except MySQLError as error:
                self.ledger.error(error.number)
            except OSError:
                connection = None
            self.longest = max(self.longest, time.monotonic() - asked)
            time.sleep(0.02)


class Clients(Load):
    """All clients of a round."""

    def __init__(self, campaign, number, plan, directory):
        cluster = campaign.cluster
        places = [(address(n), 4306) for n in cluster.data_nodes]
        wipe(places[0])
        elsewhere = [(address(SPARE), 4306)] if any(isinstance(f, SecondLife) for _, f in plan) else []
        super().__init__(places, campaign.args.seed + 100 * number, 20 * number + 1, elsewhere)
        self.directory, self.native, self.kept = directory, None, campaign.kept
        self.on_disk, self.bank = Ledger(), Ledger()
        self.more = [DiskClient(20 * number + 11 + at, places, self.on_disk, self.stop) for at in range(len(places))]
        self.more.append(Bank(number, places, self.bank, self.stop))
        self.probes = [Probe(node, self.stop) for node in cluster.data_nodes]
        for thread in self.more + self.probes:
            thread.start()
        self.threads += self.more + self.probes
        try:
            self.begin_native(campaign, int(sum(before + fault.seconds for before, fault in plan)) + 2)
        except BaseException:
            self.abandon()
            raise

    def begin_native(self, campaign, seconds):
        """The client that does without SQL, in a process of its own."""
        cluster, directory = campaign.cluster, self.directory
        addresses = [part for n in cluster.data_nodes for part in ("--address", f"{address(n)}:4406")]
        with open(os.path.join(cluster.directory, "cluster.json"), encoding="utf8") as file:
            cluster_id = json.load(file)["cluster_id"]
        line = [campaign.args.checker, "native", "--cluster-id", str(cluster_id), "--seconds", str(seconds), "--clients", "2",
                "--out", f"{directory}/native.json", "--places", str(history.PLACES), "--per-place", str(history.PER_PLACE), *addresses]
        line += ["--secret-file", os.path.join(cluster.directory, "secret")] if cluster.has_secret else []
        self.native = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def end(self):
        """What the clients themselves have found."""
        wrong = super().end()
        try:
            _, errors = self.native.communicate(timeout=PATIENCE_S)
            if self.native.returncode != 0:
                wrong.append(f"the native client: {errors.strip()[-300:]}")
        except subprocess.TimeoutExpired:
            wrong.append("the native client hangs")
        return wrong

    def abandon(self):
        self.stop.set()
        if self.native and self.native.poll() is None:
            self.native.kill()
            self.native.wait()

    def ledgers(self):
        """By name: all in which errors are noted, and what was told besides."""
        probes = {f"the probe of node {probe.node}": probe.ledger for probe in self.probes}
        return {"transfers": self.ledger, "transfers on disk": self.on_disk, "the bank": self.bank, **probes}

    def idle_since(self, moment):
        """Whoever has got nothing done that began since: there is something of each kind, and transfers at each node."""
        ledgers = {"transfers": (self.ledger, self.places), "transfers on disk": (self.on_disk, self.places), "the bank": (self.bank, [])}
        found = []
        for name, (ledger, places) in ledgers.items():
            with ledger.lock:
                done = {port for _, port, begun in ledger.commits if begun > moment}
            found += [f"{name} at {port[0]}" for port in places if port not in done] or ([] if done else [name])
        return found

    def transactions(self):
        """All on lists; none if the native client has left no history, which it does not when it meets a lost group."""
        try:
            with open(f"{self.directory}/native.json", encoding="utf8") as file:
                return [t for client in self.lists for t in client.history] + [json.loads(line) for line in file]
        except FileNotFoundError:
            return []


def wipe(place):
    """Begins with no transfers."""
    def ask():
        try:
            connect(place).query("TRUNCATE TABLE transfer")
        except MySQLError as error:
            if error.number != 1146:
                raise
    insist(ask)


def unexpected(ledgers):
    """What is wrong with the errors that clients were told."""
    odd = {name: {number: count for number, count in ledger.errors.items() if number not in EXPECTED} for name, ledger in ledgers.items()}
    return [f"errors that nobody expects, by number: {name} {errors}" for name, errors in odd.items() if errors]


def before_the_loss(transactions, lost_ns):
    """What was told before all replicas of some rows died; of what was under way nobody knows."""
    kept = []
    for one in transactions:
        if one["ended_ns"] < lost_ns:
            kept.append(one)
        elif one["begun_ns"] < lost_ns:
            appends = [a for a in one["actions"] if "append" in a]
            kept.append({**one, "outcome": "unknown", "actions": appends})
    return kept


class Round:
    """One round: clients, faults, and what must hold."""

    def __init__(self, campaign, number):
        self.campaign, self.cluster, self.number = campaign, campaign.cluster, number
        self.directory = os.path.join(self.cluster.directory, f"round-{number}")
        os.mkdir(self.directory)
        self.plan = draw(campaign.chooser, self.cluster, campaign.args.minutes >= LONG_MINUTES, campaign.args.without)
        self.touched, self.killed = set(), set()
        self.killed_at, self.group_was_lost, self.lost = None, False, 0
        self.removed_before = len(self.cluster.removed())

    def happen(self, fault):
        self.touched |= fault.touched
        self.killed |= fault.killed
        if fault.killed and self.killed_at is None:
            self.killed_at = time.monotonic()
        print(f"campaign: {self.number}: {fault.words}", flush=True)
        fault.begin(self.cluster)
        self.campaign.count(fault)

    def faults(self):
        """Each begins and ends at its time; cables are mended when all are over."""
        at, events = time.monotonic(), []
        for before, fault in self.plan:
            at += before
            events += [(at, fault, True), (at + fault.seconds, fault, False)]
        try:
            for moment, fault, begins in sorted(events, key=lambda event: event[0]):
                time.sleep(max(0.0, moment - time.monotonic()))
                if begins:
                    self.happen(fault)
                else:
                    fault.end(self.cluster)
                    self.plan = [one for one in self.plan if one[1] is not fault]
        finally:
            for _, fault in self.plan:
                fault.end(self.cluster)
            self.cluster.mend()

    def may_lose(self):
        """True if all full replicas of a group may have died."""
        return any(self.killed & set(group) and set(group) <= self.touched for group in self.cluster.groups())

    def come_back(self):
        """Until all nodes are members; a lost group needs a person, who starts all again."""
        cluster = self.cluster
        wait_until("all nodes are members again", lambda: cluster.whole() or cluster.lost_groups(), lambda: states(cluster))
        if cluster.lost_groups():
            self.group_was_lost = True
            if not self.may_lose():
                raise Violation("a node group is called lost, although a full replica of it has lived")
            print(f"campaign: {self.number}: a node group has died, and all nodes are started again", flush=True)
            for node in cluster.net.nodes:
                cluster.kill(node)
            # Not before they are dead: else they look whole for a moment.
            time.sleep(0.5)
            wait_until("all nodes are members again", cluster.whole, lambda: states(cluster))

    def excuse(self, begun):
        """Nodes that were removed though nothing has touched them; those that got no processor count as touched from now on."""
        healthy = set(self.cluster.removed()[self.removed_before:]) - self.touched
        starved = self.campaign.waits.since(begun)
        if healthy and starved:
            print(f"campaign: {self.number}: nodes {sorted(healthy)} were removed, and threads had no processor for half a lease", flush=True)
            self.touched |= healthy
            self.campaign.excused += len(healthy)
        elif healthy:
            print(f"campaign: {self.number}: HEALTHY nodes {sorted(healthy)} were removed", flush=True)
            self.campaign.healthy += len(healthy)

    def run(self):
        clients, begun = Clients(self.campaign, self.number, self.plan, self.directory), time.monotonic()
        try:
            self.faults()
            over = time.monotonic()
            self.come_back()
            whole = time.monotonic()
            time.sleep(AFTER_S)
            wait_until("all clients get on when the cluster is whole", lambda: not clients.idle_since(whole),
                       lambda: f"idle: {clients.idle_since(whole)}\n{states(self.cluster)}")
            self.excuse(begun)
            wrong = clients.end()
            wait_until("all nodes are members in the end", self.cluster.whole, lambda: states(self.cluster))
            self.plant(clients)
            wrong = self.bear(wrong, clients) + self.judge(clients)
        finally:
            clients.abandon()
        self.tell(clients, begun, over, whole)
        if wrong:
            raise Violation("; ".join(wrong[:6]))
        shutil.rmtree(self.directory)

    def plant(self, clients):
        """An error for the checkers, in the first round that may lose nothing."""
        args = self.campaign.args
        if args.plant and not self.campaign.planted and not self.may_lose():
            print(f"campaign: {self.number}: planted: {args.plant}", flush=True)
            self.campaign.planted = True
            OF_THE_CAMPAIGN[args.plant][0](clients)

    def bear(self, wrong, clients):
        """A lost group is no temporary error."""
        if not self.group_was_lost:
            return wrong
        for ledger in clients.ledgers().values():
            ledger.errors.pop(LOST_GROUP, None)
        return [text for text in wrong if str(LOST_GROUP) not in text and "native" not in text]

    def judge(self, clients):
        loses, ledger = self.may_lose(), clients.ledger
        lost_at = self.killed_at if loses else float("inf")
        wrong = unexpected(clients.ledgers())
        if loses:
            there = {int(row[0]) for row in rows(clients.places[0], "SELECT id FROM transfer")}
            gone = [n for n in ledger.committed if n not in there]
            self.lost = len(gone)
            ledger.unknown += gone
            ledger.committed = [n for n in ledger.committed if n in there]
            for row, count in ledger.counted.items():
                ledger.cut_off[row] = ledger.cut_off.get(row, 0) + count
            ledger.counted.clear()
        ledger.add(clients.on_disk)
        wrong += check(ledger, clients.places)
        clients.registers.check([] if loses else clients.places)
        wrong += [words for _, ended, words in clients.registers.wrong if ended < lost_at][:3]
        odd = sorted(set(clients.bank.committed) - {(ACCOUNTS, 0)})
        wrong += [f"a transaction saw {count} accounts with {total} together" for count, total in odd[:3]]
        wrong += self.judge_lists(clients, lost_at) + self.judge_kept(clients.places[0])
        if "panicked at" in self.cluster.text():
            wrong.append("a node has panicked")
        if not self.campaign.waits.is_alive():
            wrong.append("the thread that looks whether nodes get a processor has ended")
        return wrong

    def judge_lists(self, clients, lost_at):
        transactions = clients.transactions()
        if not transactions:
            print(f"campaign: {self.number}: the native client has met a lost group, so lists say nothing", flush=True)
            return []
        if lost_at == float("inf"):
            transactions.append(history.final_reads(clients.places[0], clients.lists))
        else:
            transactions = before_the_loss(transactions, int(lost_at * 1e9))
        path = f"{self.directory}/lists.json"
        history.write(path, transactions)
        # Plain reads promise an order of one list, not of all.
        elle.write(f"{self.directory}/lists.edn", [elle.of_lists(t) for t in transactions if t["locks"]])
        elle.write(f"{self.directory}/registers.edn", [t for t in clients.registers.history if t[2] < lost_at * 1e9])
        done = subprocess.run([self.campaign.args.checker, "check", "--at-least", "0", path], capture_output=True, text=True,
                              timeout=300, check=False)
        self.campaign.transactions += len(transactions)
        return [] if done.returncode == 0 else [f"the history has anomalies: {(done.stdout or done.stderr)[:600]}"]

    def judge_kept(self, place):
        """A row of each round, on disk: none is ever lost."""
        found = {int(row[0]) for row in rows(place, "SELECT round FROM kept")}
        wrong = [f"rounds {sorted(self.campaign.kept - found)[:5]} were on disk, and are gone"] if self.campaign.kept - found else []

        def note():
            connection = connect(place)
            connection.query("SET durability = 'disk'")
            connection.query(f"REPLACE INTO kept VALUES ({self.number})")
            connection.close()

        insist(note)
        self.campaign.kept.add(self.number)
        return wrong

    def tell(self, clients, begun, over, whole):
        commits = sorted(t for t, _, _ in clients.ledger.commits + clients.on_disk.commits if begun < t < whole)
        gap = longest_gap([begun, *commits, whole])
        calm = [p.longest for p in clients.probes if p.node not in self.touched]
        answer = max(calm, default=0.0)
        campaign = self.campaign
        campaign.gap, campaign.answer = max(campaign.gap, gap), max(campaign.answer, answer)
        campaign.commits += len(clients.ledger.committed)
        lost = f", {self.lost} last ones lost with all replicas" if self.may_lose() else ""
        print(f"campaign: {self.number}: {len(clients.ledger.committed)} transfers{lost}; nobody committed for {gap:.2f} s; an answer at an untouched node "
              f"took {answer:.2f} s at most; whole {whole - over:.1f} s after", flush=True)


class Campaign:
    """All of it."""

    def __init__(self, args):
        self.args, self.chooser = args, random.Random(args.seed)
        self.cluster, self.waits, self.kept, self.wrong = None, None, set(), []
        self.by_kind, self.rounds, self.healthy, self.excused = {}, 0, 0, 0
        self.gap, self.answer, self.commits, self.transactions = 0.0, 0.0, 0, 0
        self.planted = False

    def count(self, fault):
        kind = "reset" if fault.words.startswith("reset") else kind_of(type(fault))
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1

    def one_cluster(self, end):
        """Some rounds. Whatever ends them, the cluster is ended, too."""
        shape = self.chooser.choice([s for s in SHAPES if self.args.nodes in (None, len(s[0]))])
        directory = tempfile.mkdtemp(prefix="latsdb-campaign-")
        print(f"campaign: data nodes {shape[0]} of {shape[1]}, {shape[2]} replicas: {directory}", flush=True)
        try:
            with contextlib.ExitStack() as ends:
                # The spare machine belongs to no cluster.
                self.cluster, self.kept = Nodes(self.args.binary, Net(self.args.net, shape[1]), directory, shape), set()
                # The last one is done first.
                for done in (self.cluster.log.close, self.cluster.stop, self.cluster.mend):
                    ends.callback(done)
                self.waits = Waits(Watched(self.cluster))
                self.waits.start()
                ends.callback(self.waits.over.set)
                self.rounds_until(end)
        except Violation as why:
            self.find(str(why), directory)
        except Exception as why:  # Whatever it is, the campaign has not shown what it should.
            traceback.print_exc()
            self.find(f"{type(why).__name__}: {why}", directory)
        if not self.wrong:
            shutil.rmtree(directory)

    def rounds_until(self, end):
        self.cluster.settle()
        insist(lambda: connect((address(1), 4306)).query("CREATE TABLE kept (round INT PRIMARY KEY)"))
        for _ in range(ROUNDS_OF_A_CLUSTER):
            if time.monotonic() > end:
                break
            self.rounds += 1
            Round(self, self.rounds).run()

    def find(self, what, directory):
        self.wrong.append(what)
        print(f"campaign: {self.rounds}: WRONG: {what}\ncampaign: all is kept in {directory}", flush=True)

    def run(self):
        begun = time.monotonic()
        while not self.wrong and time.monotonic() < begun + 60 * self.args.minutes:
            self.one_cluster(begun + 60 * self.args.minutes)
        minutes = (time.monotonic() - begun) / 60
        print(f"campaign: seed {self.args.seed}: {self.rounds} rounds in {minutes:.1f} minutes, {self.commits} transfers, "
              f"{self.transactions} transactions on lists; faults {self.by_kind}", flush=True)
        print(f"campaign: {len(self.wrong)} violations; {self.healthy} healthy nodes removed, {self.excused} without a processor; longest time without a "
              f"commit {self.gap:.2f} s, without an answer at an untouched node {self.answer:.2f} s", flush=True)
        if self.args.plant and not self.planted:
            print(f"campaign: there was no round for the planted error {self.args.plant!r}", flush=True)
        if self.args.json:
            self.write_json(minutes)
        return 1 if self.wrong else 0

    def write_json(self, minutes):
        """As the simulator does it (`sim --json`): the soak reads both."""
        args = self.args
        repeat = f"python3 tests/campaign.py --minutes {args.minutes:g} --seed {args.seed}"
        repeat += f" --nodes {args.nodes}" if args.nodes else ""
        repeat += "".join(f" --without '{kind}'" for kind in args.without)
        faults = {**self.by_kind, "healthy node removed": self.healthy, "longest without a commit (ms)": int(1000 * self.gap),
                  "longest without an answer (ms)": int(1000 * self.answer)}
        said = {"first_seed": args.seed, "runs": self.rounds, "commits": self.commits, "minutes": minutes, "faults": faults,
                "findings": [{"seed": args.seed, "failure": what, "repeat": repeat} for what in self.wrong]}
        with open(args.json, "w", encoding="utf8") as file:
            json.dump(said, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--checker", default=os.environ.get("LATS_HISTORY", "target/release/lats-history"))
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--nodes", type=int, choices=[2, 3, 4], help="only clusters of so many data nodes")
    parser.add_argument("--without", action="append", default=[], help="no such faults, e.g. 'second life'")
    parser.add_argument("--json", metavar="FILE", help="write there what was done and found, as `sim --json` does")
    parser.add_argument("--plant", choices=OF_THE_CAMPAIGN, help="change what clients were told in one round: the status must be 1 then")
    parser.add_argument("--net", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.net:
        return Campaign(args).run()
    need_compiler("campaign")
    print(f"campaign: seed {args.seed}, {args.minutes} minutes", flush=True)
    more = ["--json", os.path.abspath(args.json)] if args.json else []
    more += ["--plant", args.plant] if args.plant else []
    more += ["--nodes", str(args.nodes)] if args.nodes else []
    more += [word for kind in args.without for word in ("--without", kind)]
    more += ["--checker", os.path.abspath(args.checker), "--minutes", str(args.minutes), "--seed", str(args.seed)]
    return in_namespaces(ALL, args.binary, *more)


if __name__ == "__main__":
    sys.exit(main())
