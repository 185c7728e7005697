#!/usr/bin/env python3
"""The checkers of the tests of real processes find what they are to find, and nothing else. No cluster is started: a small table of
rows stands for one, and histories are made by hand, right ones and such with a planted error (see plant.py).

test_checkers.py [--verbose]

Lists are looked at by `lats-history`; where it is not built yet (LATS_HISTORY, or target/release) that part is skipped.
"""

import os
import sys
import tempfile
import threading
import time
import unittest
from types import SimpleNamespace
from unittest import mock

import campaign
import elle
import history
import kill
import meddle
import partition
import preload
import registers
import reset
from campaign_faults import SlowSyncs, draw
from minimysql import MySQLError
from plant import OF_THE_CAMPAIGN, PLANTS, stale_read

CHECKER = os.environ.get("LATS_HISTORY", "target/release/lats-history")
PLACES = [("node", 1), ("node", 2)]
# The checker wants so many transactions.
APPENDS = history.AT_LEAST


class Rows:
    """What all nodes would answer."""

    def __init__(self):
        self.transfers = [["1", "3", "4", "10"], ["2", "4", "3", "25"]]
        self.balances = {row: 0 for row in range(kill.ACCOUNTS)} | {3: 15, 4: -15}
        self.counters = {0: 7, 1: 2}
        self.registers, self.kept = [5, 9], [[1]]
        self.behind = {}

    def answer(self, place, statement):
        """To the statements of the checkers."""
        table = statement.split(" FROM ")[1].split()[0]
        return {
            "transfer": [row[:1] for row in self.transfers] if statement.startswith("SELECT id FROM") else self.transfers,
            "account": [[str(row), str(balance)] for row, balance in sorted(self.balances.items())],
            "counter": [[str(row), str(n)] for row, n in self.counters.items()],
            "register": [[str(row), str(n)] for row, n in enumerate(self.behind.get(place, self.registers))],
            "kept": self.kept,
        }[table]

    def own(self, place, table, _keys):
        return self.answer(place, f"SELECT * FROM {table}")


def appends():
    """A client that has appended to one list, and has read it now and then."""
    done, elements = [], []
    for number in range(1, APPENDS + 1):
        action = {"append": {"list": 0, "element": number}} if number % 4 else {"read": {"list": 0, "elements": list(elements)}}
        elements += [number] if number % 4 else []
        done.append({"client": 1, "begun_ns": 10 * number, "ended_ns": 10 * number + 5, "outcome": "committed", "locks": True, "actions": [action]})
    return SimpleNamespace(history=done, current=[0]), elements


def clean_load():
    """What clients were told, as `Rows` has it: a transfer is unknown, a counter was cut off once, a write had no answer."""
    load = campaign.Clients.__new__(campaign.Clients)
    load.places, load.stop, load.directory = PLACES, threading.Event(), None
    load.ledger, load.on_disk, load.bank = kill.Ledger(), kill.Ledger(), kill.Ledger()
    load.ledger.committed, load.ledger.unknown, load.ledger.refused = [1], [2], [3]
    load.ledger.counted, load.ledger.cut_off, load.ledger.not_told = {0: 6, 1: 1}, {0: 1}, [(1, "(LDB-29)")]
    load.ledger.errors = {1297: 3, 50029: 1}
    load.bank.committed, load.bank.errors = [(kill.ACCOUNTS, 0)], {1213: 2}
    load.registers = registers.Registers(2)
    load.registers.acknowledged, load.registers.tried = [5, 8], [5, 9]
    client, elements = appends()
    load.lists, load.probes, load.threads, load.counters = [client], [], [], []
    load.kept = {1}
    return load, elements


class OneRound(campaign.Round):
    """A round whose faults are over."""

    def __init__(self, directory, kept):
        self.directory, self.number, self.touched, self.killed, self.killed_at, self.lost = directory, 2, set(), set(), None, 0
        self.group_was_lost = False
        self.cluster = SimpleNamespace(text=lambda: "", groups=lambda: [[1, 2]])
        waits = SimpleNamespace(is_alive=lambda: True)
        self.campaign = SimpleNamespace(kept=kept, transactions=0, waits=waits, planted=False, args=SimpleNamespace(checker=CHECKER, plant=None))


class Checked(unittest.TestCase):
    """With rows instead of a cluster."""

    def setUp(self):
        self.rows, (self.load, self.elements) = Rows(), clean_load()
        folder = tempfile.TemporaryDirectory(prefix="latsdb-checkers-")
        self.addCleanup(folder.cleanup)
        self.load.directory = self.directory = folder.name
        read = {"client": 0, "begun_ns": time.monotonic_ns() + 10**9, "ended_ns": time.monotonic_ns() + 2 * 10**9, "outcome": "committed",
                "locks": True, "actions": [{"read": {"list": 0, "elements": self.elements}}]}
        with open(f"{folder.name}/native.json", "w", encoding="utf8"):
            pass
        places = ((kill, "rows", self.rows.answer), (kill, "own_rows", self.rows.own), (registers, "rows", self.rows.answer),
                  (campaign, "rows", self.rows.answer), (campaign, "insist", lambda _: None), (history, "final_reads", lambda *_: read))
        for module, name, instead in places:
            patched = mock.patch.object(module, name, instead)
            patched.start()
            self.addCleanup(patched.stop)
        self.has_checker = os.path.exists(CHECKER)
        if not self.has_checker:
            for module, name, instead in ((history, "check", lambda *_: True), (campaign.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=0))):
                patched = mock.patch.object(module, name, instead)
                patched.start()
                self.addCleanup(patched.stop)

    def found_by_reset(self):
        with mock.patch("builtins.print"):
            return self.load.check(CHECKER, self.directory)

    def found_by_campaign(self):
        return OneRound(self.directory, self.load.kept).judge(self.load)

    def look(self, plants, find):
        """Each planted error is found, and only it."""
        for name, (plant, word) in plants.items():
            if name == "lost append" and not self.has_checker:
                continue
            with self.subTest(name):
                self.load, _ = clean_load()
                self.load.directory = self.directory
                plant(self.load)
                found = find()
                self.assertTrue(found, "nothing was found")
                self.assertTrue(all(word in one for one in found), found)


class Plants(Checked):
    """What `--plant` changes is found."""

    def test_right_histories_are_right(self):
        self.assertEqual(self.found_by_reset(), [])
        self.load, _ = clean_load()
        self.load.directory = self.directory
        self.assertEqual(self.found_by_campaign(), [])

    def test_reset_finds_what_is_planted(self):
        self.look(PLANTS, self.found_by_reset)

    def test_the_campaign_finds_what_is_planted(self):
        self.look(OF_THE_CAMPAIGN, self.found_by_campaign)

    def test_an_error_is_planted_once_and_only_where_nothing_may_be_lost(self):
        one = OneRound(self.directory, self.load.kept)
        one.campaign.args.plant = "lost transfer"
        one.killed, one.touched = {1}, {1, 2}
        one.plant(self.load)
        self.assertEqual((self.load.ledger.committed, one.campaign.planted), ([1], False))
        one.killed, one.touched = {1}, {1}
        with mock.patch("builtins.print"):
            one.plant(self.load)
            one.plant(self.load)
        self.assertEqual((len(self.load.ledger.committed), one.campaign.planted), (2, True))

    @unittest.skipUnless(os.path.exists(CHECKER), "lats-history is not built")
    def test_a_list_that_has_forgotten_an_element_is_found(self):
        del self.elements[10]
        self.assertEqual(len(self.found_by_campaign()), 1)


class WhatNodesSay(Checked):
    """Rows that are wrong are found, whatever clients were told."""

    def test_a_replica_that_is_behind(self):
        self.rows.behind[PLACES[1]] = [5, 7]
        self.assertIn("register 1 was 7", self.found_by_reset()[0])

    def test_a_value_that_nobody_wrote(self):
        self.rows.registers[1] = 10
        self.assertIn("9 is the last that was written", self.found_by_campaign()[0])

    def test_half_a_transfer(self):
        self.rows.balances[3] += 1
        self.assertEqual(self.found_by_reset(), ["the balances do not follow from the transfers"])

    def test_a_panic(self):
        one = OneRound(self.directory, self.load.kept)
        one.cluster.text = lambda: "thread panicked at x.rs:1"
        self.assertEqual(one.judge(self.load), ["a node has panicked"])

    def test_a_round_that_may_lose_excuses_what_came_last_and_no_more(self):
        one = OneRound(self.directory, self.load.kept)
        one.killed, one.touched, one.killed_at = {1, 2}, {1, 2}, time.monotonic()
        # After the first death.
        stale_read(self.load)
        self.rows.counters[0] = 0
        self.load.ledger.committed.append(77)
        self.assertEqual(one.judge(self.load), [])
        self.assertEqual(one.lost, 1)
        # What was on disk is there, and a refused transfer is not.
        self.load.ledger.refused.append(1)
        self.load.kept.add(8)
        found = OneRound.judge(one, self.load)
        self.assertEqual(["refused" in found[0], "were on disk" in found[-1]], [True, True], found)

    def test_what_was_told_before_the_loss_is_judged(self):
        one = OneRound(self.directory, self.load.kept)
        stale_read(self.load)
        one.killed, one.touched, one.killed_at = {1, 2}, {1, 2}, time.monotonic() + 1
        self.assertIn("a planted read", one.judge(self.load)[0])

    def test_rows_that_stay_locked(self):
        locked = {("register", 3), ("account", 49)}

        class Connection:
            """Of a client that wants to lock rows."""

            def query(self, statement):
                words = statement.split()
                if words[0] == "SELECT" and (words[3], int(words[7])) in locked:
                    raise MySQLError(1205, "HY000", "Lock wait timeout exceeded")

            def close(self):
                """It is no connection."""

        with mock.patch.object(reset, "connect", lambda _: Connection()), mock.patch.object(reset, "LOCKED_S", 0.01):
            self.assertEqual(set(reset.held_rows(PLACES[0], 4)), locked)


class Threads(unittest.TestCase):
    """Clients that end early, or do nothing, are seen."""

    def test_a_probe_that_fails_is_a_finding(self):
        load, _ = clean_load()
        probe = campaign.Probe(1, load.stop)
        with mock.patch.object(campaign, "connect", side_effect=ValueError("no such answer")):
            probe.start()
            probe.join(10)
        load.threads = [probe]
        load.native = SimpleNamespace(returncode=0, communicate=lambda timeout: ("", ""))
        self.assertEqual(load.end(), ["Probe: ValueError('no such answer')"])

    def test_a_native_client_that_fails_is_a_finding(self):
        load, _ = clean_load()
        load.native = SimpleNamespace(returncode=1, communicate=lambda timeout: ("", "it has lost its way"))
        self.assertEqual(load.end(), ["the native client: it has lost its way"])

    def test_who_gets_nothing_done_is_named(self):
        load, _ = clean_load()
        begun = time.monotonic()
        self.assertEqual(len(load.idle_since(begun)), 5)
        for ledger in (load.ledger, load.on_disk):
            for place in PLACES:
                ledger.note(ledger.committed, 1, place, begun + 1)
        self.assertEqual(load.idle_since(begun), ["the bank"])
        load.bank.note(load.bank.committed, (kill.ACCOUNTS, 0), PLACES[0], begun + 1)
        self.assertEqual(load.idle_since(begun), [])
        # It has begun before.
        self.assertEqual(len(load.idle_since(begun + 2)), 5)

    def test_errors_are_judged_wherever_they_were_met(self):
        load, _ = clean_load()
        load.probes = [campaign.Probe(2, load.stop)]
        self.assertEqual(campaign.unexpected(load.ledgers()), [])
        for ledger in load.ledgers().values():
            ledger.error(1021)
        self.assertEqual(len(campaign.unexpected(load.ledgers())), 4)

    def test_a_lost_group_is_expected_only_where_one_was_lost(self):
        load, _ = clean_load()
        load.bank.error(campaign.LOST_GROUP)
        one = OneRound(None, set())
        one.bear([], load)
        self.assertEqual(len(campaign.unexpected(load.ledgers())), 1)
        one.group_was_lost = True
        one.bear([], load)
        self.assertEqual(campaign.unexpected(load.ledgers()), [])


class Tools(unittest.TestCase):
    """What checkers and faults are made of."""

    def test_what_was_under_way_at_a_loss_is_unknown(self):
        one = {"begun_ns": 10, "ended_ns": 20, "outcome": "committed", "actions": [{"read": {}}, {"append": {}}]}
        self.assertEqual(campaign.before_the_loss([one], 30), [one])
        self.assertEqual(campaign.before_the_loss([one], 15), [{**one, "outcome": "unknown", "actions": [{"append": {}}]}])
        self.assertEqual(campaign.before_the_loss([one], 5), [])

    def test_who_is_told_of_no_end_is_another_process_afterwards(self):
        with tempfile.TemporaryDirectory() as folder:
            elle.write(f"{folder}/x.edn", [(7, 1, 2, "unknown", [("w", 0, 1)]), (7, 3, 4, "committed", [("r", 0, 1)])])
            with open(f"{folder}/x.edn", encoding="utf8") as file:
                lines = file.read().splitlines()
        self.assertEqual([line.split(":process ")[1].split(",")[0] for line in lines], ["0", "0", "1", "1"])
        self.assertEqual([line.split(":type ")[1].split(",")[0] for line in lines], [":invoke", ":info", ":invoke", ":ok"])

    def test_faults_that_are_left_out_are_not_drawn(self):
        cluster = SimpleNamespace(net=SimpleNamespace(nodes=(1, 2, 3)), data_nodes=(1, 2), group_of=lambda _: [1, 2])
        chooser = campaign.random.Random(1)
        plans = [draw(chooser, cluster, False, ["slow syncs"]) for _ in range(200)]
        self.assertFalse([fault for plan in plans for _, fault in plan if isinstance(fault, SlowSyncs)])

    @unittest.skipUnless(preload.shutil.which("cc"), "there is no C compiler")
    def test_clocks_are_held_back_past_libc(self):
        with tempfile.TemporaryDirectory() as folder:
            orders, library = meddle.Orders(f"{folder}/orders"), meddle.build(folder)
            orders.set(meddle.MONOTONIC_HELD_NS, 20 * 10**9)
            orders.set(meddle.BOOT_HELD_NS, 40 * 10**9)
            # The vDSO itself is asked, as rustix does it.
            program = ("import ctypes, platform, time\n"
                       "name = '__vdso_clock_gettime' if platform.machine() == 'x86_64' else '__kernel_clock_gettime'\n"
                       "vdso, now = ctypes.CDLL('linux-vdso.so.1'), (ctypes.c_long * 2)()\n"
                       "for clock in (1, 7, 0):\n"
                       "    assert getattr(vdso, name)(clock, now) == 0\n"
                       "    print(now[0] + now[1] / 1e9, time.clock_gettime(clock))\n")
            done = campaign.subprocess.run([sys.executable, "-c", program], env=orders.environment(library), check=True, capture_output=True, text=True)
            shown = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
            if not orders.get(meddle.BOOT_IS_READ):
                self.skipTest("the kernel does not let the library stand between processes and their clocks")
        # It was some time ago, and a busy machine may make that longer.
        for clock, held_s, said in zip((1, 7, 0), (20, 40, 0), shown):
            for seconds in said:
                self.assertTrue(0 <= time.clock_gettime(clock) - held_s - seconds < 15, (clock, said))

    def test_guardians_of_other_clusters_are_none(self):
        self.assertEqual(partition.guardians("/no/such/directory"), [])


def main():
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    done = unittest.TextTestRunner(stream=sys.stdout, verbosity=2 if "--verbose" in sys.argv else 1).run(tests)
    failed = len(done.failures + done.errors)
    print(f"{max(0, done.testsRun - failed - len(done.skipped))} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
