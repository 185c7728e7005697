#!/usr/bin/env python3
"""Restores rows as of several moments, from a backup and what the nodes have archived meanwhile, with real processes.

Threads move money while a backup is taken, a node is killed, all nodes are killed at once, and a table is dropped. For each of
several moments another cluster of another shape is filled: every transfer that was acknowledged before must be there, where before
is when the nodes had archived its epoch by that moment, but for those that were not yet on disk when all nodes died; none that was
begun after the moment; and balances must follow from
the transfers. Rows that are deleted meanwhile are gone, or there, likewise. One node's archive may be missing; where both lack something it says so, and how far it can go.
archive.py [--binary target/release/latsdb] [--sql-port 15960]"""

import argparse
import glob
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

from backup import expect, run
from cluster import PATIENCE_S, Cluster, Durable, connect, insist, is_temporary, repeated, rows, wait_until
from kill import ACCOUNTS, Ledger, Worker, prepare
from minimysql import MySQLError

# Transfers, and deleted rows, before the next thing happens.
SOME = 200


class Moments:
    """Moments as of which rows are to be restored: by both clocks, and until when what was acknowledged must be there. And when all
    nodes died, and since when what was acknowledged may be lost with them."""

    def __init__(self, cluster, archive):
        self.cluster, self.archive = cluster, archive
        self.taken, self.safe, self.died = [], None, None

    def on_disk(self, accounts=range(ACCOUNTS)):
        """Gives a moment: what was acknowledged before is on disk now."""
        moment = time.monotonic()
        insist(lambda: touch(self.cluster.sql_port, accounts))
        return moment

    def archived(self, accounts=range(ACCOUNTS)):
        """Gives a moment: that what was acknowledged before has ended has been noted in the archive by now."""
        moment = self.on_disk(accounts)
        durable = max(self.status_of(node)["epoch"]["durable"] for node in self.cluster.nodes() if node["state"] != "down")
        wait_until(f"epoch {durable} is archived", lambda: self.newest() >= durable, self.cluster.describe)
        return moment

    def status_of(self, node):
        """What this node knows. One that has just been killed says nothing any more."""
        done = run(self.cluster.binary, "status", "--json", "--address", node["native_address"],
                   "--secret-file", os.path.join(self.cluster.directory, "secret"))
        return json.loads(done.stdout) if done.returncode == 0 else self.cluster.status()

    def newest(self):
        """The newest epoch with all before it that was noted; 0 if there is none, or the archive changes meanwhile."""
        shown = run(self.cluster.binary, "archive", "show", self.archive, "--json")
        ranges = json.loads(shown.stdout)[0]["ranges"] if shown.returncode == 0 else []
        return max((r["to_epoch"] for r in ranges if r["to_ms"] is not None), default=0)

    def take(self):
        # Definitions are archived besides, ten times a second.
        before = self.archived()
        self.archived()
        self.taken.append((time.time(), time.monotonic(), before))

    def nothing_is_left(self):
        """The tables are dropped, and that is archived."""
        self.archived([])
        self.archived([])

    def is_kept(self, begun, done, before):
        """True if what was begun and acknowledged then must be there as of a moment that has all from `before`. What was acknowledged
        when all nodes died may have been heard of later."""
        return done < before and (done < self.safe or begun > self.died)


def touch(port, accounts):
    """A transaction that waits for disks. With rows that others have changed its epoch is not older than theirs."""
    connection = connect(port)
    connection.query("SET durability = 'disk'")
    connection.query("BEGIN")
    for account in accounts:
        connection.query(f"SELECT id FROM account WHERE id = {account} FOR UPDATE")
    connection.query(f"REPLACE INTO mark VALUES (1, {time.monotonic_ns()})")
    connection.query("COMMIT")
    connection.close()


class Deleter(threading.Thread):
    """Deletes one row after the other, and notes when each was first asked to go, and when it had gone."""

    ROWS = 2_000

    def __init__(self, ports, stop):
        super().__init__(daemon=True)
        self.ports, self.stop, self.gone, self.failure = ports, stop, [], None

    def run(self):
        connection, number, begun = None, 1, None
        while not self.stop.is_set() and number <= self.ROWS:
            begun = begun or time.monotonic()
            try:
                connection = connection or connect(random.choice(self.ports))
                connection.query(f"DELETE FROM token WHERE id = {number}")
            except OSError:
                connection = None
            except MySQLError as error:
                if not is_temporary(error):
                    self.failure = repr(error)
                    return
                connection = None if error.number in (1040, 1053) else connection
            else:
                self.gone.append((begun, time.monotonic()))
                number, begun = number + 1, None
            time.sleep(0.01)

    def check(self, there, moments, at, before):
        left = {int(row[0]) for row in there.query("SELECT id FROM token")}
        absent = 0
        for number, (begun, done) in enumerate(self.gone, 1):
            if begun > at:
                assert number in left, f"row {number} was deleted later, and is not there"
            elif moments.is_kept(begun, done, before):
                assert number not in left, f"row {number} was deleted before, and is there"
                absent += 1
        assert set(range(len(self.gone) + 2, self.ROWS + 1)) <= left, "rows that nobody has deleted are not there"
        print(f"archive: {absent} of {len(self.gone)} deleted rows must be gone", flush=True)


def load(args, cluster, ports, ledger, moments, folder, chooser):
    stop = threading.Event()
    workers = [Worker(i + 1, ports, ledger, stop) for i in range(4)]
    deleter = Deleter(ports, stop)

    def some_more():
        transfers, deleted = len(ledger.committed), len(deleter.gone)
        wait_until("clients get on", lambda: len(ledger.committed) > transfers + SOME and len(deleter.gone) > deleted, cluster.describe)

    try:
        for worker in workers + [deleter]:
            worker.start()
        some_more()
        expect(run(args.binary, "backup", "--data-dir", cluster.directory, "--to", folder), 0, "backup of")
        some_more()
        moments.take()
        victim = chooser.choice(cluster.wait_whole())["pid"]
        os.kill(victim, signal.SIGKILL)
        time.sleep(chooser.uniform(0, 1))
        moments.take()
        cluster.wait_whole([victim])
        some_more()
        moments.safe = moments.on_disk()
        time.sleep(chooser.uniform(0, 0.2))
        cluster.kill_all(False, chooser)
        moments.died = time.monotonic()
        cluster.wait_whole()
        moments.take()
        some_more()
        moments.take()
    finally:
        stop.set()
    for worker in workers + [deleter]:
        worker.join(PATIENCE_S)
        assert not worker.is_alive() and not worker.failure, worker.failure
    return deleter


def check_moment(there, ledger, moments, at, before):
    transfers = there.query("SELECT id, source, target, amount FROM transfer")
    found = {int(row[0]) for row in transfers}
    must, must_not = set(), set()
    for number, (committed, _, begun) in zip(ledger.committed, ledger.commits):
        if begun > at:
            must_not.add(number)
        elif moments.is_kept(begun, committed, before):
            must.add(number)
    assert not must - found, f"{len(must - found)} of {len(must)} transfers that were committed before are missing"
    assert not must_not & found, f"{len(must_not & found)} transfers are there that were begun later"
    strange = found - set(ledger.committed) - set(ledger.unknown)
    assert not strange, f"{len(strange)} transfers are there that nobody has committed"
    balances = {}
    for _, source, target, amount in transfers:
        balances[int(source)] = balances.get(int(source), 0) - int(amount)
        balances[int(target)] = balances.get(int(target), 0) + int(amount)
    accounts = {int(k): int(v) for k, v in there.query("SELECT id, balance FROM account")}
    assert accounts == {k: balances.get(k, 0) for k in accounts}, "the balances do not follow from the transfers"
    print(f"archive: {len(found)} transfers; {len(must)} must be there, {len(must_not)} must not", flush=True)


def check_upkeep(binary, cluster, archive, folder):
    """What is there is shown; what is older than the backup goes, and the nodes go on."""
    expect(run(binary, "archive", "show", archive), 0, r"node 1: \d+ segments.*at work until.*\n.*node 2.*\n.*as of any moment since, up to epoch")
    shown = run(binary, "archive", "show", "--data-dir", cluster.directory, "--json")
    before, = json.loads(shown.stdout)
    assert len(before["nodes"]) == 2 and before["ranges"], shown.stdout
    # Files that nodes work with look like those of an archive, and may lie within it: they must stay.
    work = os.path.join(archive, "latsdb-data", "node-1")
    os.makedirs(work)
    for path in glob.glob(os.path.join(archive, "*", "node-1", "*.log")):
        shutil.copy(path, work)
    there = sorted(os.listdir(work))
    assert there
    expect(run(binary, "archive", "prune", archive, "--keep", folder, "--dry-run"), 0, "would be removed")
    expect(run(binary, "archive", "prune", archive, "--keep", folder), 0, r"files removed, .* older than epoch")
    assert sorted(os.listdir(work)) == there, "prune has removed files that are not the archive's"
    shutil.rmtree(os.path.join(archive, "latsdb-data"))
    expect(run(binary, "archive", "prune", archive, "--keep", archive), 1, "no backup")
    expect(run(binary, "archive", "prune", cluster.directory, "--keep", folder), 1, "is no archive")
    expect(run(binary, "archive", "show", folder), 1, "nothing has been archived into")
    expect(run(binary, "archive", "show", "s3://bucket/archive"), 1, "archives are directories")
    expect(run(binary, "restore", "--from", folder, "--archive", "s3://bucket/archive"), 1, "archives are directories")
    expect(run(binary, "restore", "--from", folder, "--archive", archive, "--table", "no.such", "--dry-run"), 1, "no table no.such")
    after, = json.loads(run(binary, "archive", "show", archive, "--json").stdout)
    assert after["ranges"][-1]["to_epoch"] >= before["ranges"][-1]["to_epoch"], (before, after)


def fill(port):
    connection = connect(port)
    connection.query("CREATE TABLE IF NOT EXISTS mark (id INT PRIMARY KEY, n BIGINT)")
    connection.query("CREATE TABLE IF NOT EXISTS token (id INT PRIMARY KEY)")
    connection.query("REPLACE INTO token VALUES " + ", ".join(f"({n})" for n in range(1, Deleter.ROWS + 1)))
    connection.close()


def fill_late(connection):
    connection.query("CREATE TABLE late (name VARCHAR(20) PRIMARY KEY, n INT, UNIQUE KEY (n))")
    connection.query("INSERT INTO late VALUES ('a', 1), ('b', 2)")
    connection.query("UPDATE late SET n = 3 WHERE name = 'a'")
    connection.query("INSERT INTO late VALUES ('c', 1)")


def restored(args, cluster, other, archive, folder, ledger, moments, deleter):
    """Rows as of each moment are in another cluster as they were."""
    def restore(*options, code=0, words="restored"):
        expect(run(args.binary, "restore", "--data-dir", other.directory, "--from", folder, *options), code, words)

    for wall, at, before in moments.taken:
        until = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(wall)) + f".{int(wall * 1000) % 1000:03}"
        restore("--archive", archive, "--until", until, words=r"restored [56] tables")
        there = connect(args.sql_port + 22)
        check_moment(there, ledger, moments, at, before)
        deleter.check(there, moments, at, before)
        last = at == moments.taken[-1][1]
        if last:
            assert there.query("SELECT name, n FROM late ORDER BY n") == [["c", "1"], ["b", "2"], ["a", "3"]]
            restore("--archive", archive, "--until", until, code=1, words="test.*already")
        for table in ("transfer", "account", "counter", "token", "mark") + (("late",) if last else ()):
            there.query(f"DROP TABLE {table}")
    # In the end nothing was left but marks.
    restore("--archive", archive, words=r"restored 1 tables")
    restore("--archive", archive, "--until", "2001-01-01 00:00:00", code=1, words="begins at")
    restore("--archive", archive, "--until", "2101-01-01 00:00:00", code=1, words="goes up to")
    restore("--archive", archive, "--until", "tomorrow", code=2, words="write a time like")
    restore("--archive", folder, code=1, words="no redo logs and states")
    restore("--archive", archive, "--until", "2026-03-01 14:05-05", code=2, words="write a time like")
    # The files of nodes serve as well, if they are there.
    restore("--archive", cluster.directory, "--dry-run", words="an archive that tells what happened")
    # One node's archive is enough where it was there all the time; a gap is named.
    logs = sorted(glob.glob(os.path.join(archive, "*", "node-*", "redo-0-*")))
    os.remove(next(log for log in logs if "node-1" in log))
    os.remove(next(log for log in logs if "node-2" in log))
    restore("--archive", archive, "--until", until, code=1, words="does not tell everything of the epochs")
    restore("--archive", archive, code=1, words="does not tell everything of the epochs")


def once(args, chooser):
    above = tempfile.mkdtemp(prefix="latsdb-archive-")
    folder, archive = os.path.join(above, "backup"), os.path.join(above, "archive")
    ports, ledger = [args.sql_port, args.sql_port + 1], Ledger()
    with Durable(args.binary, args.sql_port, "--archive", archive) as cluster, cluster.undisturbed():
        moments = Moments(cluster, archive)
        prepare(ports[0])
        insist(lambda: fill(ports[0]))
        deleter = load(args, cluster, ports, ledger, moments, folder, chooser)
        fill_late(connect(ports[0]))
        moments.take()
        # The mistake that all this is there for.
        for table in ("transfer", "account", "counter", "token", "late"):
            rows(ports[0], f"DROP TABLE IF EXISTS {table}")
        moments.nothing_is_left()
        with Cluster(args.binary, args.sql_port + 20, "--nodes", "4") as other, other.undisturbed():
            check_upkeep(args.binary, cluster, archive, folder)
            restored(args, cluster, other, archive, folder, ledger, moments, deleter)
    shutil.rmtree(above)
    print("archive: all is right")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=15960)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"archive: seed {args.seed}", flush=True)
    chooser = random.Random(args.seed)
    return repeated("archive", lambda: once(args, chooser))


if __name__ == "__main__":
    sys.exit(main())
