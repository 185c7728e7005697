#!/usr/bin/env python3
"""CREATE UNIQUE INDEX on a table that is being written to, through several nodes, again and again.

Afterwards no two rows have the same key, each row is found by its key and nothing else is. An index that
cannot be made, because two rows have the same key, leaves nothing behind. If a node is removed meanwhile, because it got no
processor time for a lease, the status is 75: with_cluster.py runs this once more.

unique.py --ports 15306,15307 [--rounds 4] [--writers 6]
"""

import argparse
import random
import sys
import threading
import time

from cluster import LOST, PATIENCE_S, concluded, is_temporary, wait_until
from minimysql import Connection, MySQLError

# 1062 a key is taken, 1205 a lock, 1213 a deadlock, 1297 and 1412 the definition has changed.
EXPECTED = {1062, 1205, 1213, 1297, 1412}
ROWS = 3000
# Statements of each writer before the index is built, and after it.
SOME = 50


class Writer(threading.Thread):
    """Changes rows until it is told to stop. Keys are drawn so that conflicts are rare but happen."""

    def __init__(self, port, seed):
        super().__init__(daemon=True)
        self.port, self.random = port, random.Random(seed)
        self.stopped, self.done, self.refused, self.failure = False, 0, 0, None
        self.keys = set()

    def run(self):
        try:
            self.work()
        except Exception as error:  # Whatever it is, the thread must not look as if it had done its work.
            self.failure = error

    def work(self):
        connection = Connection(self.port, "unique_test", timeout=PATIENCE_S)
        while not self.stopped:
            try:
                self.step(connection)
                self.done += 1
            except MySQLError as error:
                if error.number not in EXPECTED:
                    raise
                self.refused += 1
                connection.query("ROLLBACK")
        connection.close()

    def step(self, connection):
        row, key = self.random.randrange(2 * ROWS), self.random.randrange(10**6)
        kind = self.random.randrange(4)
        self.keys.add(key)
        if kind == 0:
            connection.query(f"INSERT INTO t VALUES ({row}, {key}, 0)")
        elif kind == 1:
            connection.query(f"DELETE FROM t WHERE id = {row}")
        elif kind == 2:
            connection.query(f"UPDATE t SET k = {key} WHERE id = {row}")
        else:
            # Long enough for a transaction to be older than the index.
            connection.query("BEGIN")
            connection.query(f"REPLACE INTO t VALUES ({row}, {key}, 1)")
            time.sleep(self.random.random() / 20)
            connection.query("COMMIT")


def check(connection, ports, used):
    rows = connection.query("SELECT id, k FROM t")
    keys = [key for _, key in rows]
    assert len(set(keys)) == len(keys), "two rows have the same key"
    assert len(rows) > ROWS // 2, f"only {len(rows)} rows are left"
    for port in ports:
        other = Connection(port, "unique_test", timeout=PATIENCE_S)
        for at in range(0, len(rows), 500):
            part = rows[at:at + 500]
            listed = ",".join(str(key) for _, key in part)
            found = other.query(f"SELECT id, k FROM t WHERE k IN ({listed})")
            assert sorted(found) == sorted(part), f"port {port}: rows are not found by their keys"
        other.close()
    no_entries_without_rows(connection, used - set(int(key) for key in keys))
    return len(rows)


def no_entries_without_rows(connection, free):
    """Readers ask the rows, so an entry without one shows in writes: its key is free and cannot be had."""
    free = sorted(free)
    connection.query("BEGIN")
    for at in range(0, len(free), 1000):
        values = ",".join(f"({-key - 1}, {key}, 0)" for key in free[at:at + 1000])
        connection.query(f"INSERT INTO t VALUES {values}")
    connection.query("ROLLBACK")


def fill(connection):
    for at in range(0, ROWS, 500):
        values = ",".join(f"({row}, {row * 7 + 10**7}, 0)" for row in range(at, at + 500))
        connection.query(f"REPLACE INTO t VALUES {values}")


def write_some(writers):
    """Until each has done something."""
    had = [writer.done for writer in writers]
    get_on = lambda: all(w.done >= before + SOME for w, before in zip(writers, had)) or any(w.failure for w in writers)
    wait_until("each writer gets on", get_on, lambda: f"{[(w.done, w.refused) for w in writers]}")


def build(connection, ports, writers):
    """One round: writers, the index, more writes, the end."""
    running = [Writer(ports[at % len(ports)], random.random()) for at in range(writers)]
    for writer in running:
        writer.start()
    write_some(running)
    tries = 0
    while True:
        tries += 1
        try:
            connection.query("CREATE UNIQUE INDEX by_k ON t (k)")
            break
        except MySQLError as error:
            if is_temporary(error):
                raise
            # Two writers may have drawn the same key before.
            assert error.number == 1062 and tries < 20, error
            key = str(error).split("'")[1]
            twins = connection.query(f"SELECT id FROM t WHERE k = {key}")
            for (row, *_) in twins[1:]:
                connection.query(f"DELETE FROM t WHERE id = {row}")
    write_some(running)
    for writer in running:
        writer.stopped = True
    for writer in running:
        writer.join(PATIENCE_S)
        assert not writer.is_alive(), "a writer hangs"
        if writer.failure:
            raise writer.failure
    used = set().union(*(writer.keys for writer in running))
    return tries, used, sum(w.done for w in running), sum(w.refused for w in running)


def answer(connection, text):
    """What a statement gives, or its error."""
    try:
        return connection.query(text)
    except (MySQLError, *LOST) as error:
        return error


def keys_pass_on(ports):
    """Who waits for the lock of a row gets the row that has the key by then."""
    here, there = (Connection(port, "unique_test", timeout=PATIENCE_S) for port in ports[:2])
    there.query(f"SET innodb_lock_wait_timeout = {PATIENCE_S // 2}")
    here.query("CREATE TABLE p (id INT PRIMARY KEY, u CHAR(1) UNIQUE, n INT)")
    statements = (
        ("UPDATE p SET n = n + 1 WHERE u = 'k'", 1),
        ("SELECT id FROM p WHERE u = 'k' FOR UPDATE", [["2"]]),
        ("SELECT id FROM p WHERE u IN ('k', 'x', 'y') FOR UPDATE", [["2"]]),
        ("DELETE FROM p WHERE u = 'k'", 1),
    )
    for text, expected in statements:
        here.query("REPLACE INTO p VALUES (1, 'k', 0)")
        here.query("BEGIN")
        here.query("REPLACE INTO p VALUES (2, 'k', 0)")
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(answer(there, text)))
        waiting.start()
        time.sleep(0.2)
        assert not answers, f"{text} did not wait: {answers}"
        here.query("COMMIT")
        waiting.join(PATIENCE_S)
        if answers and is_temporary(answers[0]):
            raise answers[0]
        assert answers == [expected], f"{text}: {answers}"
        here.query("DELETE FROM p")
    here.query("INSERT INTO p VALUES (1, 'a', 0)")
    here.query("BEGIN")
    here.query("INSERT INTO p VALUES (2, 'b', 0)")
    there.query("SET innodb_lock_wait_timeout = 3")
    began = time.monotonic()
    try:
        there.query("INSERT INTO p VALUES (3, 'b', 0)")
        raise AssertionError("the key of an open transaction was taken")
    except MySQLError as error:
        waited = time.monotonic() - began
        # Not sooner; how much later is a matter of speed.
        assert error.number == 1205 and waited > 2.5, (error, waited)
        print(f"unique: a wait for at most 3 s took {waited:.2f} s")
    here.query("ROLLBACK")
    here.close()
    there.close()


def two_builds_at_once(ports):
    """One of them cannot be made; the other one is, though both enter the same rows."""
    here, there = (Connection(port, "unique_test", timeout=PATIENCE_S) for port in ports[:2])
    here.query("CREATE TABLE b (id INT PRIMARY KEY, u INT, v INT)")
    for at in range(0, 6000, 1000):
        rows = ",".join(f"({row}, {row}, {min(row, 5990)})" for row in range(at, at + 1000))
        here.query(f"INSERT INTO b VALUES {rows}")
    answers = []
    other = threading.Thread(target=lambda: answers.append(answer(there, "CREATE UNIQUE INDEX bad ON b (v)")))
    other.start()
    here.query("CREATE UNIQUE INDEX good ON b (u)")
    other.join(PATIENCE_S)
    if answers and is_temporary(answers[0]):
        raise answers[0]
    assert len(answers) == 1 and getattr(answers[0], "number", 0) == 1062, answers
    shown = str(here.query("SHOW CREATE TABLE b"))
    assert "good" in shown and "bad" not in shown, shown
    assert here.query("SELECT v FROM b WHERE u = 5999") == [["5990"]]
    # Keys as wide as they may be, in the rows of one statement.
    here.query("CREATE TABLE w (id INT PRIMARY KEY, k VARBINARY(3000) UNIQUE)")
    rows = ",".join(f"({row}, CONCAT(REPEAT('x', 2900), {row}))" for row in range(300))
    here.query(f"INSERT INTO w VALUES {rows}")
    assert here.query("UPDATE w SET k = CONCAT(k, 'y')") == 300
    here.close()
    there.close()


def test(arguments):
    ports = [int(port) for port in arguments.ports.split(",")]
    connection = Connection(ports[0], timeout=2 * PATIENCE_S)
    connection.query("CREATE DATABASE IF NOT EXISTS unique_test")
    connection.query("USE unique_test")
    connection.query("DROP TABLE IF EXISTS t")
    connection.query("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, n INT, KEY plain (k))")
    for number in range(arguments.rounds):
        fill(connection)
        tries, used, done, refused = build(connection, ports, arguments.writers)
        rows = check(connection, ports, used)
        print(f"unique: round {number + 1}: {rows} rows, built at try {tries}; {done} statements, {refused} refused")
        connection.query("DROP INDEX by_k ON t")
    connection.query("REPLACE INTO t VALUES (-1, -5, 0), (-2, -5, 0)")
    try:
        connection.query("CREATE UNIQUE INDEX by_k ON t (k)")
        raise AssertionError("an index over equal keys was made")
    except MySQLError as error:
        if is_temporary(error):
            raise
        assert error.number == 1062 and "'-5' for key 't.by_k'" in str(error), error
    connection.query("INSERT INTO t VALUES (-3, -5, 0)")
    assert "by_k" not in str(connection.query("SHOW CREATE TABLE t")), "the index is still there"
    keys_pass_on(ports)
    two_builds_at_once(ports)
    connection.query("DROP DATABASE unique_test")
    connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", required=True)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--writers", type=int, default=6)
    arguments = parser.parse_args()
    return concluded(lambda: test(arguments))


if __name__ == "__main__":
    sys.exit(main())
