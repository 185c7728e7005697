#!/usr/bin/env python3
"""Backups under load, with real processes: taken while transfers go on and while a node is killed, checked, damaged, and
restored into a cluster of another shape, where the rows must be those of one moment.
backup.py [--binary target/release/latsdb] [--sql-port 15906]"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from cluster import PATIENCE_S, Cluster, CommandFailed, Durable, connect, insist, repeated, rows, wait_until
from kill import Ledger, Worker, prepare
from minimysql import MySQLError

# Transfers before a backup is taken.
SOME = 500
ODD = """CREATE TABLE odd (id BIGINT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL, amount DECIMAL(20,4), at DATETIME(6),
         data VARBINARY(300), ratio DOUBLE, UNIQUE KEY by_name (name), KEY by_amount (amount, id))"""


def run(binary, *arguments):
    return subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)


def expect(done, code, words):
    said = done.stdout + done.stderr
    if code == 0 and done.returncode != 0:
        # A node may have been removed meanwhile.
        raise CommandFailed(f"{done.args}: {done.returncode}, {said}")
    assert done.returncode == code and re.search(words, said), f"{done.args}: {done.returncode}, {said}"


def fill_odd(connection):
    connection.query(ODD)
    connection.query("CREATE DATABASE empty_one")
    connection.query("CREATE TABLE empty_one.nothing (a INT, b INT, PRIMARY KEY (b, a))")
    connection.query("CREATE TABLE keyless (a INT, b TEXT)")
    for at in range(0, 3_000, 500):
        values = ",".join(f"('name {i} äß',{i}.{i % 10000:04},'2026-01-01 00:00:{i % 60:02}.{i:06}',x'{i:08x}00ff',{i}/7)"
                          if i % 5 else f"('name {i}',NULL,NULL,NULL,NULL)" for i in range(at, at + 500))
        connection.query("INSERT INTO odd (name, amount, at, data, ratio) VALUES " + values)
    connection.query("INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (2, NULL)")
    connection.query("DELETE FROM odd WHERE id < 100")


def content(port):
    odd = rows(port, "SELECT id, name, amount, at, HEX(data), ratio FROM odd ORDER BY id")
    return odd, sorted(map(str, rows(port, "SELECT a, b FROM keyless")))


def check_bank(port, ledger, before, began):
    """The rows of one moment: all transfers that were committed before the backup, and balances that follow from what is there."""
    transfers = rows(port, "SELECT id, source, target, amount FROM transfer")
    there = {int(row[0]) for row in transfers}
    assert not before - there, f"{len(before - there)} transfers that were committed before the backup are missing"
    strange = there - set(ledger.committed) - set(ledger.unknown)
    assert not strange, f"{len(strange)} transfers are there that nobody has committed"
    balances = {}
    for _, source, target, amount in transfers:
        balances[int(source)] = balances.get(int(source), 0) - int(amount)
        balances[int(target)] = balances.get(int(target), 0) + int(amount)
    accounts = {int(k): int(v) for k, v in rows(port, "SELECT id, balance FROM account")}
    assert accounts == {k: balances.get(k, 0) for k in accounts}, "the balances do not follow from the transfers"
    print(f"backup: {len(there)} transfers, {len(ledger.committed)} were committed by the end; {time.monotonic() - began:.1f} s",
          flush=True)


def backup_under_load(args, cluster, ports, folder, kills):
    """Gives the ledger, and what was committed before."""
    stop, ledger = threading.Event(), Ledger()
    workers = [Worker(i + (100 if kills else 1), ports, ledger, stop) for i in range(4)]
    for worker in workers:
        worker.start()
    wait_until("transfers are committed", lambda: len(ledger.committed) > SOME, cluster.describe)
    victim = cluster.wait_whole()[1]["pid"]
    with ledger.lock:
        before = set(ledger.committed)
    taking = subprocess.Popen([args.binary, "backup", "--data-dir", cluster.directory, "--to", folder],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if kills:
        time.sleep(0.05)
        os.kill(victim, signal.SIGKILL)
    said, _ = taking.communicate(timeout=2 * PATIENCE_S)
    time.sleep(0.3)
    stop.set()
    for worker in workers:
        worker.join(PATIENCE_S)
        assert not worker.is_alive() and not worker.failure, worker.failure
    if taking.returncode != 0:
        raise CommandFailed(said)
    print(said.strip().splitlines()[-1], flush=True)
    return ledger, before


def damage(args, folder, chooser):
    """Whatever byte is another: it is noticed, and nothing is restored from it."""
    expect(run(args.binary, "inspect", folder), 0, r"backup of cluster [0-9a-f]+ as of epoch \d+.*\n(.*\n)*.*part 1 of a backup of cluster")
    for name in sorted(os.listdir(folder)):
        for _ in range(3):
            spoilt = folder + "-spoilt"
            shutil.copytree(folder, spoilt)
            path = os.path.join(spoilt, name)
            with open(path, "r+b") as file:
                at = chooser.randrange(os.path.getsize(path))
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ (1 << chooser.randrange(8))]))
            expect(run(args.binary, "backup", "verify", spoilt), 1, name.replace(".", r"\."))
            expect(run(args.binary, "inspect", spoilt), 1, "can(not)? be used")
            shutil.rmtree(spoilt)
        spoilt = folder + "-spoilt"
        shutil.copytree(folder, spoilt)
        os.remove(os.path.join(spoilt, name))
        expect(run(args.binary, "backup", "verify", spoilt), 1, name.replace(".", r"\."))
        shutil.rmtree(spoilt)


def cut_between_blocks(folder):
    """All checksums are right, and rows are missing."""
    spoilt = folder + "-cut"
    shutil.copytree(folder, spoilt)
    with open(os.path.join(spoilt, "rows-0001.lats"), "r+b") as file:
        file.seek(48)
        head = file.read(32)
        file.truncate(48 + 32 + int.from_bytes(head[8:12], "little"))
    return spoilt


def refused(args, cluster, folder):
    """What cannot be done is refused in words."""
    at = ("--data-dir", cluster.directory)
    expect(run(args.binary, "backup", *at, "--to", folder), 1, "not empty")
    expect(run(args.binary, "restore", *at, "--from", folder), 1, "test.account.*already")
    expect(run(args.binary, "restore", *at, "--from", os.path.dirname(folder)), 1, "no backup")
    expect(run(args.binary, "restore", *at, "--from", folder, "--table", "test.nobody"), 1, "no table test.nobody")


def into_fewer_nodes(args, cluster, folder, expected):
    """Four nodes in two groups, then one that is alone: nobody removes it."""
    expect(run(args.binary, "backup", "--data-dir", cluster.directory, "--to", folder), 0, "epoch")
    with Cluster(args.binary, args.sql_port + 60, "--nodes", "1", "--replicas", "1") as alone:
        expect(run(args.binary, "restore", "--data-dir", alone.directory, "--from", folder), 0, "restored 6 tables")
        assert content(args.sql_port + 60) == expected, "the rows are others"


def with_two(args, cluster, folder, chooser):
    """Backups of one cluster, and another one of another shape: four nodes in two groups, and nothing on disk."""
    ports = [args.sql_port, args.sql_port + 1]
    prepare(ports[0])
    fill_odd(connect(ports[0]))
    connect(ports[0]).query("CREATE VIEW later AS SELECT name FROM odd WHERE name > 'name 5' WITH CHECK OPTION")
    shown = connect(ports[0]).query("SHOW CREATE VIEW later")
    expected, began = content(ports[0]), time.monotonic()
    ledger, before = backup_under_load(args, cluster, ports, folder, False)
    expect(run(args.binary, "backup", "verify", folder), 0, "it is whole")
    refused(args, cluster, folder)
    damage(args, folder, chooser)
    with Cluster(args.binary, args.sql_port + 50, "--nodes", "4") as other, other.undisturbed():
        expect(run(args.binary, "restore", "--data-dir", other.directory, "--from", folder), 0, "restored 6 tables and 1 views")
        there = connect(args.sql_port + 52)
        assert there.query("SHOW CREATE VIEW later") == shown and there.query("SELECT name FROM later"), "the view is another one"
        assert content(args.sql_port + 52) == expected, "the rows are others"
        check_bank(args.sql_port + 52, ledger, before, began)
        assert there.query("SHOW TABLES FROM empty_one") == [["nothing"]]
        try:
            there.query("INSERT INTO odd (name) VALUES ('name 200')")
            raise AssertionError("the unique key was not restored")
        except MySQLError as error:
            if error.number != 1062:
                raise
        newest = max(int(row[0]) for row in expected[0])
        there.query("INSERT INTO odd (name) VALUES ('new')")
        assert int(there.query("SELECT id FROM odd WHERE name = 'new'")[0][0]) > newest, "AUTO_INCREMENT has begun again"
        into_fewer_nodes(args, other, folder + "-of-four", content(args.sql_port + 52))
        # One table of it, while the rest is there.
        there.query("DROP TABLE odd")
        expect(run(args.binary, "restore", "--data-dir", other.directory, "--from", folder, "--table", "test.odd"), 0, "restored 1 tables")
        assert content(args.sql_port + 51)[0] == expected[0], "the rows are others"
        # Rows are missing: it says so, and which tables are not complete.
        there.query("DROP TABLE odd")
        spoilt = cut_between_blocks(folder)
        expect(run(args.binary, "restore", "--data-dir", other.directory, "--from", spoilt, "--table", "test.odd"), 1,
               r"it has 1 of its \d+ blocks.*may lack rows: .*test.odd")
        # A node dies while a backup is taken.
        began = time.monotonic()
        again = folder + "-again"
        insist(lambda: connect(ports[0]).query("TRUNCATE TABLE transfer"))
        insist(lambda: connect(ports[0]).query("UPDATE account SET balance = 0"))
        ledger, before = backup_under_load(args, cluster, ports, again, True)
        for table in ("account", "transfer"):
            there.query(f"DROP TABLE {table}")
        expect(run(args.binary, "restore", "--data-dir", other.directory, "--from", again, "--table", "test.account",
                   "--table", "test.transfer"), 0, "restored 2 tables")
        check_bank(args.sql_port + 50, ledger, before, began)
        # What did not come to its end is no backup.
        os.remove(os.path.join(again, "backup.lats"))
        expect(run(args.binary, "restore", "--data-dir", other.directory, "--from", again), 1, "did not come to its end")


def once(args, chooser):
    folder = os.path.join(tempfile.mkdtemp(prefix="latsdb-backups-"), "one")
    with Durable(args.binary, args.sql_port) as cluster, cluster.undisturbed():
        with_two(args, cluster, folder, chooser)
    shutil.rmtree(os.path.dirname(folder))
    print("backup: all is right")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=15906)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"backup: seed {args.seed}", flush=True)
    chooser = random.Random(args.seed)
    return repeated("backup", lambda: once(args, chooser))


if __name__ == "__main__":
    sys.exit(main())
