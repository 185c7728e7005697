#!/usr/bin/env python3
"""Locks, refused statements, waits and deadlocks, with sessions of the `mariadb` client on both nodes. How long deadlocks last is printed.

locks.py PORT    the cluster's first SQL port; the second node is on the next

If a node is removed meanwhile, because it got no processor time for a lease, the status is 75: with_cluster.py runs this once more.
"""

import os
import queue
import re
import subprocess
import sys
import threading
import time

from cluster import PATIENCE_S, concluded
from minimysql import Connection, MySQLError

JOBS = 300
# Statements that wait for a transaction of two rows.
WAITS = 180
# The `mariadb` client cannot connect, or its connection is gone; temporary errors that no other client is the reason of: the node
# does not serve, another node has failed, or the coordinator.
DISTURBED = r"ERROR (2002|2003|2006|2013|1297|1040|1053) |\(LDB-(12|28)\)"
# Who waits for a lock gets it, or is in a deadlock: the client may be slow.
LONG_WAIT = f"SET innodb_lock_wait_timeout = {PATIENCE_S // 2}"


class Wrong(Exception):
    """An answer is not the expected one."""


class Session:
    """A `mariadb` client that is fed one statement after the other."""

    def __init__(self, port):
        line = ["mariadb", "--no-defaults", "--host=127.0.0.1", f"--port={port}", "--user=root", "--force",
                "--unbuffered", "--skip-column-names", "--batch", "lats_locks"]
        self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.lines, self.marks = queue.Queue(), 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def start(self, statement):
        """Sends a statement; `finish` gives its answer."""
        self.marks += 1
        self.process.stdin.write(f"{statement};\nSELECT 'mark {self.marks}';\n")
        self.process.stdin.flush()

    def finish(self):
        """The lines of the answer; an error as `ERROR number text`."""
        answer, end = [], time.monotonic() + PATIENCE_S
        while True:
            line = self.line_until(end)
            if line == f"mark {self.marks}":
                return answer
            error = re.match(r"ERROR (\d+) \(\w+\)[^:]*: (.*)", line)
            if error:
                if re.search(DISTURBED, line):
                    raise ConnectionError(line)
                answer.append(f"ERROR {error.group(1)} {error.group(2)}")
            elif line and not line.startswith("---") and not line.startswith(("SELECT", "UPDATE", "INSERT")):
                answer.append(line)

    def line_until(self, end):
        try:
            return self.lines.get(timeout=max(0.01, end - time.monotonic()))
        except queue.Empty:
            raise Wrong(f"locks: a statement was not answered within {PATIENCE_S} s") from None

    def run(self, statement):
        self.start(statement)
        return self.finish()

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE_S)


def must(what, answer, expected):
    """The answer, or the number of its error, is the expected one."""
    wanted = [expected] if isinstance(expected, str) else expected
    got = [" ".join(line.split(" ")[:2]) if line.startswith("ERROR") else line for line in answer]
    if got != wanted:
        raise Wrong(f"locks: {what}: expected {wanted}, got {answer}")


def refused_statements(a, b):
    """A refused statement undoes itself, and its transaction goes on."""
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (100, 1)")
    must("a duplicate", a.run("INSERT INTO t VALUES (100, 2)"), "ERROR 1062")
    must("a duplicate among many", a.run("INSERT INTO t VALUES (101, 1), (102, 1), (100, 1), (103, 1)"), "ERROR 1062")
    must("out of range", a.run("UPDATE t SET v = v + 2147483647 WHERE id <= 100"), "ERROR 1264")
    must("the commit", a.run("COMMIT"), [])
    must("what is there", b.run("SELECT id, v FROM t WHERE id >= 100 ORDER BY id"), ["100\t1"])
    a.run("BEGIN")
    a.run("UPDATE t SET v = 50 WHERE id = 1")
    b.run("BEGIN")
    b.run("INSERT INTO t VALUES (110, 1)")
    must("a lock timeout", b.run("UPDATE t SET v = 51 WHERE id = 1"), "ERROR 1205")
    b.run("INSERT INTO t VALUES (111, 1)")
    must("the commit after it", b.run("COMMIT"), [])
    a.run("ROLLBACK")
    must("its rows", a.run("SELECT id FROM t WHERE id >= 110 ORDER BY id"), ["110", "111"])
    a.run("DELETE FROM t WHERE id >= 100")


def modes(a, b):
    """Shared and exclusive, with and without patience."""
    a.run("BEGIN")
    b.run("BEGIN")
    must("a shared lock", a.run("SELECT v FROM t WHERE id = 1 FOR SHARE"), ["0"])
    must("another one", b.run("SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE"), ["0"])
    must("no exclusive one", b.run("SELECT v FROM t WHERE id = 1 FOR UPDATE NOWAIT"), "ERROR 3572")
    must("an exclusive one", a.run("SELECT v FROM t WHERE id = 2 FOR UPDATE"), ["0"])
    must("nor a shared one", b.run("SELECT v FROM t WHERE id = 2 FOR SHARE NOWAIT"), "ERROR 3572")
    must("rows left out", b.run("SELECT id FROM t WHERE id <= 4 ORDER BY id FOR UPDATE SKIP LOCKED"), ["3", "4"])
    must("rows left out, by key", a.run("SELECT id FROM t WHERE id IN (2, 3, 5) FOR UPDATE SKIP LOCKED"), ["2", "5"])
    b.run(LONG_WAIT)
    b.start("UPDATE t SET v = 7 WHERE id = 2")
    time.sleep(0.3)
    a.run("UPDATE t SET v = 6 WHERE id = 2")
    must("the first writer", a.run("COMMIT"), [])
    must("the second, who waited", b.finish(), [])
    must("its commit", b.run("COMMIT"), [])
    must("the last value", a.run("SELECT v FROM t WHERE id = 2"), ["7"])
    a.run("UPDATE t SET v = 0")


# What one has not committed, what another does beside it, and what is there when it has waited: (changes, how they end, statement, its
# answer, the rows then).
NOT_COMMITTED = [
    (["INSERT INTO late VALUES (5, 2, 0)"], "COMMIT", "SELECT id FROM late WHERE id BETWEEN 4 AND 6 FOR UPDATE", ["5"], "1:1:0 2:9:0 5:2:0"),
    (["INSERT INTO late VALUES (5, 2, 0)"], "ROLLBACK", "SELECT id FROM late WHERE id BETWEEN 4 AND 6 FOR UPDATE", [], "1:1:0 2:9:0"),
    (["INSERT INTO late VALUES (5, 2, 0)"], "COMMIT", "DELETE FROM late WHERE id >= 2", [], "1:1:0"),
    (["UPDATE late SET k = 3 WHERE id = 2"], "COMMIT", "UPDATE late SET v = v + 1 WHERE k < 5", [], "1:1:1 2:3:1"),
    # A row with two entries of an index in what is looked at is one row.
    (["UPDATE late SET k = 3 WHERE id = 1"], "COMMIT", "UPDATE late SET v = v + 1 WHERE k < 5", [], "1:3:1 2:9:0"),
    (["UPDATE late SET k = 3 WHERE id = 1"], "COMMIT", "SELECT id FROM late WHERE k < 5 FOR UPDATE", ["1"], "1:3:0 2:9:0"),
    (["UPDATE late SET k = 3 WHERE id = 1"], "COMMIT",
     "SELECT l.id FROM late l JOIN t ON t.id = l.id WHERE l.k < 5 FOR UPDATE", ["1"], "1:3:0 2:9:0"),
    (["UPDATE late SET k = 3 WHERE id = 1"], "COMMIT", "UPDATE late l JOIN t ON t.id = l.id SET l.v = l.v + 1 WHERE l.k < 5", [],
     "1:3:1 2:9:0"),
    # A row that comes to nothing takes no place of a LIMIT.
    (["INSERT INTO late VALUES (0, 0, 0)"], "ROLLBACK", "DELETE FROM late ORDER BY id LIMIT 1", [], "2:9:0"),
    (["INSERT INTO late VALUES (0, 0, 0)"], "ROLLBACK", "UPDATE late SET v = 1 ORDER BY k LIMIT 1", [], "1:1:1 2:9:0"),
    # Nor does one that is not the first after all.
    (["UPDATE late SET k = 0 WHERE id = 2"], "ROLLBACK", "UPDATE late SET v = 1 ORDER BY k LIMIT 1", [], "1:1:1 2:9:0"),
    (["UPDATE late SET k = 0 WHERE id = 2"], "ROLLBACK", "DELETE FROM late WHERE k < 20 ORDER BY k LIMIT 1", [], "2:9:0"),
    (["UPDATE late SET k = 3 WHERE id = 1"], "ROLLBACK", "DELETE FROM late WHERE k < 20 LIMIT 2", [], ""),
    (["INSERT INTO late VALUES (0, 0, 0)"], "ROLLBACK", "SELECT id FROM late ORDER BY id LIMIT 1 FOR UPDATE", ["1"], "1:1:0 2:9:0"),
]


def not_committed(a, b):
    """What others have not committed is waited for, also if nothing else is (LOCK-7)."""
    a.run("CREATE TABLE late (id INT PRIMARY KEY, k INT, v INT, KEY (k))")
    b.run(LONG_WAIT)
    for changes, end, statement, answer, left in NOT_COMMITTED:
        for alone in (True, False):
            a.run("DELETE FROM late")
            a.run("INSERT INTO late VALUES (1, 1, 0), (2, 9, 0)")
            a.run("BEGIN")
            for change in changes:
                must(change, a.run(change), [])
            if not alone:
                b.run("BEGIN")
            b.start(statement)
            time.sleep(0.05)
            must(end, a.run(end), [])
            must(f"{statement} beside {changes}", b.finish(), answer)
            if not alone:
                must("its commit", b.run("COMMIT"), [])
            rows = a.run("SELECT CONCAT_WS(':', id, k, v) FROM late ORDER BY id")
            must(f"rows after {statement} beside {changes}", rows, left.split())
    a.run("BEGIN")
    a.run("INSERT INTO late VALUES (5, 2, 0)")
    must("no row of others", b.run("SELECT id FROM late WHERE id > 4 FOR UPDATE NOWAIT"), "ERROR 3572")
    must("one left out", b.run("SELECT id FROM late WHERE id > 1 ORDER BY id FOR UPDATE SKIP LOCKED"), ["2"])
    a.run("ROLLBACK")


def deadlock(a, b, before, last):
    """Both lock something, then each wants what the other has: one gives way at once."""
    for session, statement in zip((a, b), before):
        session.run("BEGIN")
        session.run(statement)
    began = time.monotonic()
    a.start(last[0])
    b.start(last[1])
    answers = [a.finish(), b.finish()]
    took_ms = (time.monotonic() - began) * 1000
    errors = [answer[0] for answer in answers if answer]
    named = r"ERROR 1213 .*transaction (\w+-\d+) waited for the row `lats_locks`.`t` \(\d\), locked by transaction (\w+-\d+)"
    if len(errors) != 1 or not re.match(named, errors[0]):
        raise Wrong(f"locks: a deadlock: {answers}")
    winner = b if answers[0] else a
    must("the commit of the other", winner.run("COMMIT"), [])
    loser = a if answers[0] else b
    must("the victim has nothing left", loser.run("SELECT v FROM t WHERE id = 1 FOR UPDATE NOWAIT"), ["1"])
    loser.run("UPDATE t SET v = 0")
    return took_ms


def jobs(port):
    """A table as a queue: each job is done once."""
    Connection(port, "lats_locks").query(
        "INSERT INTO jobs VALUES " + ", ".join(f"({job}, 0)" for job in range(JOBS)))
    done, lock, failures = [], threading.Lock(), []

    def work(node):
        connection = Connection(port + node, "lats_locks")
        try:
            while True:
                connection.query("BEGIN")
                found = connection.query("SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED")
                if not found:
                    connection.query("ROLLBACK")
                    if connection.query("SELECT COUNT(*) FROM jobs") == [["0"]]:
                        return
                    continue
                connection.query(f"DELETE FROM jobs WHERE id = {found[0][0]}")
                connection.query("COMMIT")
                with lock:
                    done.append(int(found[0][0]))
        except (MySQLError, OSError) as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number % 2,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE_S)
    if failures:
        raise failures[0]
    if sorted(done) != list(range(JOBS)):
        raise Wrong(f"locks: {len(done)} of {JOBS} jobs done")


# LOCK-7: conditions that cover a row and its neighbour.
COVERED = ("BETWEEN {0} AND {1}", "IN ({0}, {1})", ">= {0} AND id < {1} + 1")


def whole_transactions(port):
    """A statement that has waited for a transaction sees all of it, at any node, in a transaction or alone."""
    writer, readers = Connection(port, "lats_locks"), [Connection(port + node, "lats_locks") for node in (0, 1)]
    writer.query("CREATE TABLE pairs (id INT PRIMARY KEY, k INT, v INT, KEY (k))")
    for reader in readers:
        reader.query(LONG_WAIT)
    halves, waited = [], 0
    for number in range(WAITS):
        row, reader = 10 * number, readers[number % 2]
        condition = COVERED[number % 3].format(row, row + 1)
        verb, alone = ("SELECT", "UPDATE", "DELETE")[number // 6 % 3], number // 2 % 2
        # The insert comes while the other waits, or before: then the other finds nothing to wait for but the changed row.
        late, above = number % 5 < 3, number % 4 < 2
        old, new = (row, row + 1) if above else (row + 1, row)
        statement = {"SELECT": f"SELECT id FROM pairs WHERE id {condition} FOR UPDATE",
                     "UPDATE": f"UPDATE pairs SET v = v + 1 WHERE id {condition}",
                     "DELETE": f"DELETE FROM pairs WHERE id {condition}"}[verb]
        writer.query(f"INSERT INTO pairs VALUES ({old}, 0, 0)")
        writer.query("BEGIN")
        writer.query(f"UPDATE pairs SET v = 10 WHERE id = {old}")
        if not late:
            writer.query(f"INSERT INTO pairs VALUES ({new}, 0, 10)")
        found, failures = [], []

        def wait(found=found, failures=failures, statement=statement, reader=reader, alone=alone):
            try:
                if not alone:
                    reader.query("BEGIN")
                answer = reader.query(statement)
                found.extend(answer if isinstance(answer, list) else [])
                if not alone:
                    reader.query("COMMIT")
            except (MySQLError, OSError) as error:
                failures.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.004)
        waited += thread.is_alive()
        if late:
            writer.query(f"INSERT INTO pairs VALUES ({new}, 0, 10)")
        writer.query("COMMIT")
        thread.join(PATIENCE_S)
        if failures:
            raise failures[0]
        left = writer.query(f"SELECT v FROM pairs WHERE id IN ({row}, {row + 1})")
        met = {"SELECT": len(found), "UPDATE": left.count(["11"]), "DELETE": 2 - len(left)}[verb]
        if met != 2:
            halves.append(f"{statement}: {met} of 2")
    if halves:
        raise Wrong(f"locks: {len(halves)} of {WAITS} statements met half of a transaction, such as {halves[0]}")
    return waited


def test(port):
    first = Connection(port)
    for statement in ("DROP DATABASE IF EXISTS lats_locks", "CREATE DATABASE lats_locks",
                      "CREATE TABLE lats_locks.t (id INT PRIMARY KEY, v INT)",
                      "CREATE TABLE lats_locks.jobs (id INT PRIMARY KEY, state INT)",
                      "INSERT INTO lats_locks.t VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)"):
        first.query(statement)
    a, b = Session(port), Session(port + 1)
    refused_statements(a, b)
    modes(a, b)
    not_committed(a, b)
    took = []
    a.run(LONG_WAIT)
    for _ in range(10):
        took.append(deadlock(a, b, ("UPDATE t SET v = 1 WHERE id = 1", "UPDATE t SET v = 1 WHERE id = 2"),
                             ("UPDATE t SET v = 1 WHERE id = 2", "UPDATE t SET v = 1 WHERE id = 1")))
        took.append(deadlock(a, b, ("SELECT v FROM t WHERE id = 1 FOR SHARE", "SELECT v FROM t WHERE id = 1 FOR SHARE"),
                             ("UPDATE t SET v = 1 WHERE id = 1", "UPDATE t SET v = 1 WHERE id = 1")))
    took.sort()
    jobs(port)
    waited = whole_transactions(port)
    for session in (a, b):
        session.close()
    first.query("DROP DATABASE lats_locks")
    print(f"locks: {len(took)} deadlocks ended within {took[-1]:.0f} ms (median {took[len(took) // 2]:.0f} ms); "
          f"{JOBS} jobs done once each; {waited} of {WAITS} statements waited for a transaction, and met all of it")


if __name__ == "__main__":
    sys.exit(concluded(lambda: test(int(sys.argv[1]))))
