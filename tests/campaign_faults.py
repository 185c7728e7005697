"""The faults of the campaign: each says which nodes it touches and which it kills, begins, and ends."""

import os
import shutil
import signal
import time

from meddle import MONOTONIC_HELD_NS, SYNCS_FAIL, SYNC_US, WALL_NS
from partition import apart
from reset import refuse

# Deaths that are meant to be at once come within this time.
TOGETHER_S = 0.003
DAY_NS = 86_400 * 1_000_000_000
# Outcomes were kept for a minute once; links are given up long before.
LONG_S = (62, 70)
# A node without the others has noticed it by then.
ALONE_S = 1.2


class Fault:
    """One. `touched`: whoever may be removed for it; `killed`: whose memory is gone. It lasts `seconds`."""

    def __init__(self, words, touched, seconds=0.0, killed=()):
        self.words, self.touched, self.seconds, self.killed = words, set(touched), seconds, set(killed)

    # Such a fault comes alone: with deaths besides, disks and memory would be lost at the same time.
    alone = False

    def begin(self, cluster):
        """It happens."""

    def end(self, cluster):
        """It is over; cables are mended by the campaign."""


class Kill(Fault):
    """SIGKILL, perhaps to guardians, too; those that are dead come back after some time."""

    def __init__(self, chooser, cluster):
        count = chooser.choices((1, 2, chooser.randint(1, len(cluster.net.nodes)), len(cluster.net.nodes)), (8, 6, 4, 1))[0]
        self.victims = chooser.sample(cluster.net.nodes, min(count, len(cluster.net.nodes)))
        self.gaps = [chooser.uniform(0, TOGETHER_S) for _ in self.victims]
        self.guardians_too = chooser.random() < 0.3
        seconds = chooser.choice((0.0, 0.0, chooser.uniform(0.5, 4)))
        super().__init__(f"kill {self.victims}{' with guardians' if self.guardians_too else ''}, {seconds:.1f} s", self.victims, seconds,
                         self.victims)

    def begin(self, cluster):
        cluster.held.update(self.victims)
        # Looking for them takes longer than the deaths.
        guardians = cluster.guardians() if self.guardians_too else []
        for node, gap in zip(self.victims, self.gaps):
            cluster.kill(node, guardians)
            time.sleep(gap)

    def end(self, cluster):
        cluster.held.difference_update(self.victims)


class End(Fault):
    """SIGTERM to a data node."""

    def __init__(self, chooser, cluster):
        self.node = chooser.choice(cluster.data_nodes)
        super().__init__(f"tell {self.node} to end", [self.node])

    def begin(self, cluster):
        cluster.signal(self.node, signal.SIGTERM)


class Freeze(Fault):
    """SIGSTOP and SIGCONT; with `cut_off` what is sent meanwhile is lost."""

    def __init__(self, chooser, cluster, cut_off=False, seconds=None):
        count = chooser.choices((1, 2, len(cluster.net.nodes)), (6, 2, 1))[0]
        self.victims = chooser.sample(cluster.net.nodes, 1 if cut_off else min(count, len(cluster.net.nodes)))
        self.cut_off, seconds = cut_off, seconds or chooser.choice((chooser.uniform(0.1, 0.5), chooser.uniform(0.5, 3)))
        super().__init__(f"freeze {self.victims}{' and cut off' if cut_off else ''}, {seconds:.1f} s", self.victims, seconds)

    def begin(self, cluster):
        for node in self.victims:
            cluster.signal(node, signal.SIGSTOP)
        if self.cut_off:
            apart(cluster.net, self.victims, [n for n in cluster.net.nodes if n not in self.victims])

    def end(self, cluster):
        for node in self.victims:
            cluster.signal(node, signal.SIGCONT)


class LongFreeze(Freeze):
    """Longer than anybody remembers outcomes."""

    def __init__(self, chooser, cluster):
        super().__init__(chooser, cluster, True, chooser.uniform(*LONG_S))


class Suspend(Freeze):
    """As a suspended machine: its `CLOCK_MONOTONIC` stands still, and what is sent is lost."""

    def __init__(self, chooser, cluster):
        super().__init__(chooser, cluster, True, chooser.uniform(0.5, 3))
        self.words, self.stopped = self.words.replace("freeze", "suspend"), 0.0

    def begin(self, cluster):
        self.stopped = time.monotonic()
        super().begin(cluster)

    def end(self, cluster):
        held = int((time.monotonic() - self.stopped) * 1e9)
        cluster.orders[self.victims[0]].change(MONOTONIC_HELD_NS, lambda before: before + held)
        super().end(cluster)


class WallClock(Fault):
    """The wall clocks of some nodes step; one of them may be killed, and its next process begins with that clock."""

    def __init__(self, chooser, cluster):
        self.nodes = chooser.sample(cluster.net.nodes, chooser.randint(1, len(cluster.net.nodes)))
        self.days = [chooser.choice((-400.0, 400.0, 36_500.0, chooser.uniform(-2, 2), 0.0)) for _ in self.nodes]
        self.victims = self.nodes[:1] if chooser.random() < 0.6 else []
        super().__init__(f"wall clocks of {self.nodes} are {[round(d, 2) for d in self.days]} days off, kill {self.victims}", self.victims,
                         killed=self.victims)

    def begin(self, cluster):
        for node, days in zip(self.nodes, self.days):
            cluster.orders[node].set(WALL_NS, int(days * DAY_NS))
        for node in self.victims:
            cluster.kill(node)


class SlowSyncs(Fault):
    """Syncs of some data nodes take long."""

    def __init__(self, chooser, cluster):
        self.nodes = chooser.sample(cluster.data_nodes, chooser.randint(1, len(cluster.data_nodes)))
        self.sync_us = chooser.randint(20_000, 500_000)
        seconds = chooser.uniform(1, 4)
        super().__init__(f"syncs of {self.nodes} take {self.sync_us // 1000} ms, {seconds:.1f} s", [], seconds)

    def begin(self, cluster):
        for node in self.nodes:
            cluster.orders[node].set(SYNC_US, self.sync_us)

    def end(self, cluster):
        for node in self.nodes:
            cluster.orders[node].set(SYNC_US, 0)


class FailedSync(Fault):
    """One sync of a data node fails."""

    alone = True

    def __init__(self, chooser, cluster):
        self.node = chooser.choice(cluster.data_nodes)
        super().__init__(f"a sync of {self.node} fails", [self.node], 1.0)

    def begin(self, cluster):
        cluster.orders[self.node].set(SYNCS_FAIL, 1)

    def end(self, cluster):
        cluster.orders[self.node].set(SYNCS_FAIL, 0)


class Directory(Fault):
    """A data node's directory is moved away: it comes back at once, later, or never."""

    alone = True

    def __init__(self, chooser, cluster):
        self.node = chooser.choice(cluster.data_nodes)
        seconds = chooser.choice((0.1, chooser.uniform(0.5, 3), None))
        self.comes_back = seconds is not None
        back = f"for {seconds:.1f} s" if self.comes_back else "for good"
        super().__init__(f"the directory of {self.node} is moved away {back}", [self.node], seconds or 1.0)

    def begin(self, cluster):
        os.rename(cluster.own(self.node), cluster.own(self.node) + ".aside")

    def end(self, cluster):
        aside = cluster.own(self.node) + ".aside"
        # A process that was started meanwhile has made another one.
        if self.comes_back and not os.path.exists(cluster.own(self.node)):
            os.rename(aside, cluster.own(self.node))
        else:
            shutil.rmtree(aside)


class SecondLife(Fault):
    """A node is cut off, and a copy of its directory is started on another machine. Before, its peers may be killed: then it serves
    alone, and they come back beside the copy."""

    alone = True

    def __init__(self, chooser, cluster):
        self.node = chooser.choice(cluster.data_nodes)
        others = [n for n in cluster.net.nodes if n != self.node]
        self.victims = [n for n in others if n in cluster.group_of(self.node) or n not in cluster.data_nodes] if chooser.random() < 0.6 else []
        seconds = chooser.uniform(3, 6)
        # It has the only rows if the others are dead, so it must not be removed; else it may.
        super().__init__(f"node {self.node} is cut off{f' when {self.victims} are dead' if self.victims else ''}, a copy of its directory is started "
                         f"elsewhere, {seconds:.1f} s", others if self.victims else [self.node], seconds, self.victims)

    def begin(self, cluster):
        cluster.held.update(self.victims)
        for node in self.victims:
            cluster.kill(node)
            time.sleep(TOGETHER_S)
        if self.victims:
            time.sleep(ALONE_S)
        apart(cluster.net, [self.node], [n for n in (*cluster.net.nodes, cluster.spare) if n != self.node])
        cluster.start_copy(self.node)
        cluster.held.difference_update(self.victims)

    def end(self, cluster):
        cluster.stop_copy()


class Cut(Fault):
    """Packets between some nodes are lost, or answered with RST."""

    def __init__(self, chooser, cluster):
        nodes = list(cluster.net.nodes)
        self.how = chooser.choice((apart, refuse))
        chooser.shuffle(nodes)
        kind = chooser.choice(("halves", "halves", "pair", "all", "ring", "one way", "loss"))
        share, at = chooser.randint(5, 30), chooser.randint(1, len(nodes) // 2)
        self.pairs = {
            "halves": [(nodes[:at], nodes[at:])],
            "pair": [(nodes[:1], nodes[1:2])],
            "all": [([n], [m]) for n in nodes for m in nodes if n < m],
            "ring": [([nodes[i]], [nodes[i + 2]]) for i in range(len(nodes) - 2)],
            "one way": [], "loss": [],
        }[kind]
        self.drops = {"one way": [(nodes[0], m, 100) for m in nodes[1:1 + at]],
                      "loss": [(n, m, share) for n in nodes for m in nodes if n != m]}.get(kind, [])
        # Whoever is with the majority stays.
        touched = nodes[:at] if kind == "halves" and 2 * at < len(nodes) else nodes
        seconds = chooser.choice((chooser.uniform(0.1, 0.6), chooser.uniform(0.6, 4)))
        which = {"halves": f"{sorted(nodes[:at])} | {sorted(nodes[at:])}", "pair": f"{nodes[:2]}", "one way": f"{nodes[0]} is not heard by {nodes[1:1 + at]}",
                 "loss": f"{share} %", "ring": f"all but neighbours in {nodes}", "all": "nobody hears anybody"}[kind]
        name = "cut" if self.how is apart or self.drops else "reset"
        super().__init__(f"{name} ({kind}): {which}, {seconds:.1f} s", touched, seconds)

    def begin(self, cluster):
        for some, others in self.pairs:
            self.how(cluster.net, some, others)
        for source, target, share in self.drops:
            cluster.net.drop(source, target, share)


KINDS = ((Kill, 9), (Cut, 9), (Freeze, 4), (Suspend, 2), (WallClock, 2), (SlowSyncs, 3), (End, 1), (FailedSync, 1), (Directory, 2), (SecondLife, 2))


def kind_of(kind):
    """What the class of a fault is called."""
    return "".join(" " + c.lower() if c.isupper() else c for c in kind.__name__).strip()


def draw(chooser, cluster, long, without=()):
    """The faults of one round, with the time before each."""
    kinds, weights = zip(*[one for one in KINDS + (((LongFreeze, 1),) if long else ()) if kind_of(one[0]) not in without])
    first = chooser.choices(kinds, weights)[0](chooser, cluster)
    plan = [(chooser.uniform(0.2, 0.8), first)]
    # Who loses disks, or has two lives, is not killed besides: what is lost then is nobody's fault.
    while not first.alone and len(plan) < 3 and chooser.random() < 0.4:
        other = chooser.choices(kinds, weights)[0](chooser, cluster)
        if not other.alone and not isinstance(other, LongFreeze):
            plan.append((chooser.choice((0.0, chooser.uniform(0, 0.4), chooser.uniform(0, 2))), other))
    return plan
