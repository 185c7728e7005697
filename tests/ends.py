#!/usr/bin/env python3
"""Statements that end early: KILL from any node, limits of time, clients that are gone. How long the ends take is printed.

ends.py PORT    the cluster's first SQL port; the second node is on the next

If a node is removed meanwhile, because it got no processor time for a lease, the status is 75: with_cluster.py runs this once more.
"""

import os
import signal
import struct
import subprocess
import sys
import threading
import time

from cluster import PATIENCE_S, concluded
from minimysql import Connection, MySQLError

# Takes minutes if nobody ends it.
NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
LONG = NUMBERS + "SELECT COUNT(*) FROM n a, n b, n c WHERE a.i * b.i + c.i = -1"
# More rows than sockets take.
WIDE = NUMBERS + "SELECT a.i, b.i, c.i FROM n a, n b, n c"
KILL_COMMAND = 0x0C


class Wrong(Exception):
    """What happened is not what must happen."""


class Running:
    """A statement that runs in a thread."""

    def __init__(self, connection, statement):
        self.error, self.ended = None, None
        self.thread = threading.Thread(target=self._run, args=(connection, statement), daemon=True)
        self.thread.start()

    def _run(self, connection, statement):
        try:
            connection.query(statement)
        except (MySQLError, OSError) as error:
            self.error = error
        self.ended = time.monotonic()

    def must_fail(self, what, number, began):
        """The milliseconds until it failed, with this error; None: the connection is lost."""
        self.thread.join(PATIENCE_S)
        found = self.error.number if isinstance(self.error, MySQLError) else None
        if self.ended is None or self.error is None or found != number:
            raise Wrong(f"{what}: expected {number}, got {self.error!r}")
        return (self.ended - began) * 1000


def identity(connection):
    return int(connection.query("SELECT CONNECTION_ID()")[0][0])


def listed(connection, number):
    """The line of SHOW PROCESSLIST; None if the session is gone."""
    return next((row for row in connection.query("SHOW FULL PROCESSLIST") if int(row[0]) == number), None)


def wait_for(what, condition):
    """The milliseconds until it is so."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > PATIENCE_S:
            raise Wrong(f"{what} has not come about within {PATIENCE_S} s")
        time.sleep(0.002)
    return (time.monotonic() - began) * 1000


def wait_until_busy(watcher, number, text):
    wait_for(f"{text} runs", lambda: (listed(watcher, number) or [None] * 8)[4] == "Query")


def must(what, found, expected):
    if found != expected:
        raise Wrong(f"{what}: expected {expected}, got {found}")


def error_of(run):
    try:
        run()
    except MySQLError as error:
        return error.number
    return None


def kill_queries(port, took):
    """KILL QUERY from the other node: what waits and what computes; the transaction goes on."""
    holder, session, killer = Connection(port, "lats_ends"), Connection(port, "lats_ends"), Connection(port + 1)
    number = identity(session)
    holder.query("BEGIN")
    holder.query("UPDATE t SET v = 1 WHERE id = 1")
    session.query("SET innodb_lock_wait_timeout = 1000")
    session.query("BEGIN")
    session.query("UPDATE t SET v = 2 WHERE id = 2")
    for name, statement in (("waits for a lock", "UPDATE t SET v = 2 WHERE id IN (1, 3)"),
                            ("locks what it reads", "SELECT * FROM t WHERE id = 1 FOR UPDATE"),
                            ("computes", LONG)):
        running = Running(session, statement)
        wait_until_busy(killer, number, name)
        # So that it has begun to wait.
        time.sleep(0.1)
        began = time.monotonic()
        killer.query(f"KILL QUERY {number}")
        took[name] = running.must_fail(name, 1317, began)
    holder.query("ROLLBACK")
    session.query("UPDATE t SET v = v + 1 WHERE id = 4")
    session.query("COMMIT")
    must("rows", killer.query("SELECT id, v FROM lats_ends.t ORDER BY id"),
         [["1", "0"], ["2", "2"], ["3", "0"], ["4", "1"]])
    # Who runs nothing has nothing to end.
    killer.query(f"KILL QUERY {number}")
    must("the next statement", session.query("SELECT 7"), [["7"]])
    must("nobody", error_of(lambda: killer.query("KILL QUERY 99999")), 1094)
    must("nobody at the other node", error_of(lambda: killer.query(f"KILL {number + 5000}")), 1094)
    must("itself", error_of(lambda: killer.query("KILL QUERY CONNECTION_ID()")), 1317)
    must("the statement behind it", killer.query("SELECT 8"), [["8"]])


def kill_sessions(port, took):
    """KILL from either node, with statement and with command."""
    killer = Connection(port)
    for name, place, kills in (
            ("KILL here", port, lambda number: killer.query(f"KILL {number}")),
            ("KILL at the other node", port + 1, lambda number: killer.query(f"KILL CONNECTION {number}")),
            ("COM_PROCESS_KILL", port + 1, lambda number: process_kill(killer, number))):
        session = Connection(place, "lats_ends")
        number = identity(session)
        session.query("BEGIN")
        session.query("UPDATE t SET v = 100 WHERE id = 1")
        running = Running(session, LONG)
        wait_until_busy(killer, number, name)
        began = time.monotonic()
        kills(number)
        took[name] = running.must_fail(name, None, began)
        wait_for("it is not listed any more", lambda number=number: listed(killer, number) is None)
        must("its locks are gone", error_of(lambda: killer.query(
            "SELECT v FROM lats_ends.t WHERE id = 1 FOR UPDATE NOWAIT")), None)
        must("its change is gone", killer.query("SELECT v FROM lats_ends.t WHERE id = 1"), [["0"]])
        must("it is unknown now", error_of(lambda number=number: killer.query(f"KILL {number}")), 1094)
    # One that rests, and one that reads nothing of what is sent.
    resting = Connection(port + 1)
    killer.query(f"KILL {identity(resting)}")
    try:
        resting.query("SELECT 1")
        raise Wrong("a killed session answers")
    except OSError:
        pass
    deaf = Connection(port + 1)
    number = identity(deaf)
    deaf._send(0, b"\x03" + WIDE.encode())
    wait_until_busy(killer, number, "one that does not read")
    time.sleep(0.3)
    began = time.monotonic()
    killer.query(f"KILL {number}")
    wait_for("who does not read is gone", lambda: listed(killer, number) is None)
    took["KILL of one that does not read"] = (time.monotonic() - began) * 1000


def process_kill(connection, number):
    connection._send(0, bytes([KILL_COMMAND]) + struct.pack("<I", number))
    answer = connection._packet()
    if answer[0] == 0xFF:
        raise connection._error(answer)


def limits_of_time(port, took):
    session = Connection(port)
    for name, before, statement in (
            ("max_execution_time", "SET max_execution_time = 100", LONG),
            ("MAX_EXECUTION_TIME()", "SET max_execution_time = 0",
             LONG.replace("SELECT COUNT", "SELECT /*+ MAX_EXECUTION_TIME(100) */ COUNT"))):
        session.query(before)
        began = time.monotonic()
        took[f"{name} of 100 ms"] = Running(session, statement).must_fail(name, 3024, began)
    must("the next statement", session.query("SELECT 9"), [["9"]])


def clients_that_go(port, took):
    """A client that goes away: what it runs is ended, computed or waiting."""
    holder, watcher = Connection(port, "lats_ends"), Connection(port + 1)
    holder.query("BEGIN")
    holder.query("UPDATE t SET v = 1 WHERE id = 1")
    for name, statement in (("computes", LONG), ("waits for a lock", "DELETE FROM t WHERE id = 1")):
        session = Connection(port, "lats_ends")
        number = identity(session)
        session.query("SET innodb_lock_wait_timeout = 1000")
        session._send(0, b"\x03" + statement.encode())
        wait_until_busy(watcher, number, name)
        session.close()
        took[f"the client of what {name} is gone"] = wait_for(
            f"what {name} ends", lambda number=number: listed(watcher, number) is None)
    holder.query("COMMIT")
    must("what is there", watcher.query("SELECT v FROM lats_ends.t WHERE id = 1"), [["1"]])


def control_c(port, took):
    """Ctrl-C in the `mariadb` client ends the statement, and the client goes on."""
    watcher = Connection(port + 1)
    client = subprocess.Popen(
        ["mariadb", "--no-defaults", "--host=127.0.0.1", f"--port={port}", "--user=root", "--force", "--batch"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"})
    client.stdin.write(f"{LONG};\nSELECT 'after';\n")
    client.stdin.flush()
    wait_for("the client's statement runs", lambda: any(
        row[4] == "Query" and "RECURSIVE" in (row[7] or "") for row in watcher.query("SHOW PROCESSLIST")))
    began = time.monotonic()
    client.send_signal(signal.SIGINT)
    answer = client.communicate(timeout=PATIENCE_S)[0]
    took["Ctrl-C, and the end of the client"] = (time.monotonic() - began) * 1000
    if "1317" not in answer or "after" not in answer:
        raise Wrong(f"Ctrl-C: {answer}")


def test(port):
    first = Connection(port)
    for statement in ("DROP DATABASE IF EXISTS lats_ends", "CREATE DATABASE lats_ends",
                      "CREATE TABLE lats_ends.t (id INT PRIMARY KEY, v INT)",
                      "INSERT INTO lats_ends.t VALUES (1, 0), (2, 0), (3, 0), (4, 0)"):
        first.query(statement)
    took = {}
    for part in (kill_queries, kill_sessions, limits_of_time, clients_that_go, control_c):
        part(port, took)
    first.query("DROP DATABASE lats_ends")
    for name, milliseconds in took.items():
        print(f"ends: {name}: {milliseconds:.0f} ms")


if __name__ == "__main__":
    sys.exit(concluded(lambda: test(int(sys.argv[1]))))
