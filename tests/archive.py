#!/usr/bin/env python3
"""Restores rows as of several moments, from a backup and what the nodes have archived meanwhile, with real processes.

Threads move money while a backup is taken, a node is killed, all nodes are killed at once, and a table is dropped. For each of
several moments another cluster of another shape is filled: every transfer that was acknowledged well before the moment must be
there, but for those of the last second before all nodes died; none that was begun after the moment; and balances must follow from
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
from blackout import Durable
from kill import TEMPORARY, Cluster, Ledger, Worker, connect, prepare
from minimysql import MySQLError

# An epoch has ended, is sealed and noted so long after its last commits, also when a node dies: in seconds.
NOTED_WITHIN = 2.0
# Of commits that wait for no disk the last ones are lost with all nodes.
LOST_BEFORE = 1.0


class Moments:
    """Times by both clocks, and when all nodes died."""

    def __init__(self):
        self.taken, self.died = [], None

    def take(self):
        self.taken.append((time.time(), time.monotonic()))


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
                connection = connection or connect(random.choice(self.ports), 5)
                connection.query(f"DELETE FROM token WHERE id = {number}")
            except OSError:
                connection = None
            except MySQLError as error:
                if error.number not in TEMPORARY:
                    self.failure = repr(error)
                    return
                connection = None if error.number in (1040, 1053) else connection
            else:
                self.gone.append((begun, time.monotonic()))
                number, begun = number + 1, None
            time.sleep(0.01)

    def check(self, there, moments, at):
        left = {int(row[0]) for row in there.query("SELECT id FROM token")}
        absent = 0
        for number, (begun, done) in enumerate(self.gone, 1):
            if begun > at:
                assert number in left, f"row {number} was deleted later, and is not there"
            elif done < at - NOTED_WITHIN and not moments.died - LOST_BEFORE < done <= moments.died:
                assert number not in left, f"row {number} was deleted before, and is there"
                absent += 1
        assert set(range(len(self.gone) + 2, self.ROWS + 1)) <= left, "rows that nobody has deleted are not there"
        print(f"archive: {absent} of {len(self.gone)} deleted rows must be gone", flush=True)


def load(args, cluster, ports, ledger, moments, folder):
    stop, chooser = threading.Event(), random.Random(args.seed)
    workers = [Worker(i + 1, ports, ledger, stop) for i in range(4)]
    deleter = Deleter(ports, stop)
    for worker in workers + [deleter]:
        worker.start()
    time.sleep(1)
    expect(run(args.binary, "backup", "--data-dir", cluster.directory, "--to", folder), 0, "backup of")
    time.sleep(chooser.uniform(1, 2))
    moments.take()
    os.kill(chooser.choice(cluster.nodes())["pid"], signal.SIGKILL)
    time.sleep(chooser.uniform(0, 1))
    moments.take()
    cluster.wait_whole()
    time.sleep(1)
    cluster.kill_all(False, chooser)
    moments.died = time.monotonic()
    time.sleep(0.1)
    cluster.wait_whole()
    moments.take()
    time.sleep(NOTED_WITHIN + 0.5)
    moments.take()
    stop.set()
    for worker in workers + [deleter]:
        worker.join(20)
        assert not worker.is_alive() and not worker.failure, worker.failure
    return deleter


def check_moment(there, ledger, moments, at):
    transfers = there.query("SELECT id, source, target, amount FROM transfer")
    found = {int(row[0]) for row in transfers}
    must, must_not = set(), set()
    for number, (committed, _, begun) in zip(ledger.committed, ledger.commits):
        if begun > at:
            must_not.add(number)
        elif committed < at - NOTED_WITHIN and not moments.died - LOST_BEFORE < committed <= moments.died:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=15960)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"archive: seed {args.seed}", flush=True)
    above = tempfile.mkdtemp(prefix="latsdb-archive-")
    folder, archive = os.path.join(above, "backup"), os.path.join(above, "archive")
    cluster, ports = Durable(args.binary, args.sql_port, "--archive", archive), [args.sql_port, args.sql_port + 1]
    other, ledger, moments = None, Ledger(), Moments()
    try:
        setup = connect(ports[0], 60)
        prepare(setup)
        setup.query("CREATE TABLE token (id INT PRIMARY KEY)")
        setup.query("INSERT INTO token VALUES " + ", ".join(f"({n})" for n in range(1, Deleter.ROWS + 1)))
        deleter = load(args, cluster, ports, ledger, moments, folder)
        setup = connect(ports[0], 60)
        setup.query("CREATE TABLE late (name VARCHAR(20) PRIMARY KEY, n INT, UNIQUE KEY (n))")
        setup.query("INSERT INTO late VALUES ('a', 1), ('b', 2)")
        setup.query("UPDATE late SET n = 3 WHERE name = 'a'")
        setup.query("INSERT INTO late VALUES ('c', 1)")
        time.sleep(NOTED_WITHIN)
        moments.take()
        time.sleep(0.5)
        # The mistake that all this is there for.
        for table in ("transfer", "account", "token", "late"):
            setup.query(f"DROP TABLE {table}")
        time.sleep(NOTED_WITHIN)
        other = Cluster(args.binary, args.sql_port + 20, "--nodes", "4")

        def restore(*options, code=0, words="restored"):
            expect(run(args.binary, "restore", "--data-dir", other.directory, "--from", folder, *options), code, words)

        check_upkeep(args.binary, cluster, archive, folder)
        for wall, at in moments.taken:
            until = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(wall)) + f".{int(wall * 1000) % 1000:03}"
            restore("--archive", archive, "--until", until, words=r"restored [34] tables")
            # On a busy machine a node may have been started once more.
            other.wait_whole()
            there = connect(args.sql_port + 22, 60)
            check_moment(there, ledger, moments, at)
            deleter.check(there, moments, at)
            last = at == moments.taken[-1][1]
            if last:
                assert there.query("SELECT name, n FROM late ORDER BY n") == [["c", "1"], ["b", "2"], ["a", "3"]]
                restore("--archive", archive, "--until", until, code=1, words="test.*already")
            for table in ("transfer", "account", "token") + (("late",) if last else ()):
                there.query(f"DROP TABLE {table}")
        # In the end nothing was left.
        restore("--archive", archive, words=r"restored 0 tables")
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
    finally:
        for one in filter(None, (cluster, other)):
            one.run("stop")
            shutil.rmtree(os.path.dirname(one.directory))
        shutil.rmtree(above)
    print("archive: all is right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
