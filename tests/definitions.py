#!/usr/bin/env python3
"""What one session has defined all other sessions of the node know at once, whichever thread serves them.

Hundreds of sessions make a table each at the same moment: each is told once, and rightly, what became of it.

definitions.py PORT
"""

import collections
import sys
import threading

from cluster import concluded, is_temporary
from minimysql import Connection, MySQLError

# More than a node has threads on most machines: every pair of threads meets.
SESSIONS = 7
ROUNDS = 40
NO_SUCH_TABLE = 1146
# More than the cluster works on at a time.
AT_ONCE = 400


def at_once(port):
    """All at the same moment."""
    answers, barrier = [None] * AT_ONCE, threading.Barrier(AT_ONCE)

    def one(at):
        try:
            connection = Connection(port)
            barrier.wait(60)
            connection.query(f"CREATE TABLE lats_definitions.t{at} (id INT PRIMARY KEY)")
            answers[at] = "made"
            connection.close()
        except (MySQLError, OSError, threading.BrokenBarrierError) as error:
            answers[at] = str(error)
            barrier.abort()

    threads = [threading.Thread(target=one, args=(at,), daemon=True) for at in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    told = collections.Counter(answers)
    assert told == {"made": AT_ONCE}, told.most_common(5)


def test(port):
    sessions = [Connection(port) for _ in range(SESSIONS)]
    sessions[0].query("CREATE DATABASE IF NOT EXISTS lats_definitions")
    for step in range(ROUNDS):
        one, other, third = (sessions[(step + at) % SESSIONS] for at in (0, 1, 3))
        one.query("CREATE TABLE lats_definitions.t (id INT PRIMARY KEY, v INT)")
        other.query(f"INSERT INTO lats_definitions.t VALUES (1, {step})")
        other.query("CREATE INDEX by_v ON lats_definitions.t (v)")
        rows = third.query(f"SELECT id FROM lats_definitions.t WHERE v = {step}")
        assert len(rows) == 1, rows
        third.query("DROP TABLE lats_definitions.t")
        for session in sessions:
            try:
                session.query("SELECT * FROM lats_definitions.t")
            except MySQLError as error:
                if is_temporary(error):
                    raise
                assert error.number == NO_SUCH_TABLE, error
            else:
                raise AssertionError("a session reads a table that is gone")
    at_once(port)
    made = sessions[0].query("SHOW TABLES FROM lats_definitions")
    assert len(made) == AT_ONCE, made
    sessions[0].query("DROP DATABASE lats_definitions")
    print(f"definitions: {ROUNDS} tables made, indexed and dropped by {SESSIONS} sessions, {AT_ONCE} made at once")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(concluded(lambda: test(int(sys.argv[1]))))
