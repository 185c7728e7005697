#!/usr/bin/env python3
"""Statements that are a lot of work, and changes of the schema under open transactions, on a running
two-replica cluster: no node may be taken for dead over them, and no transaction may be torn.

If a node is removed all the same, the status is 75: with_cluster.py runs this once more, for the machine may have been busy.

heavy.py --binary LATSDB --data-dir DIR --sql-port PORT
"""

import argparse
import os
import sys
import threading
import time

from cluster import PATIENCE_S, Disturbed, Running, concluded, is_temporary, wait_until
from minimysql import Connection, MySQLError

ROWS = 200_000
DATABASE = "heavy"


def fill(connection):
    connection.query("CREATE TABLE w (id INT PRIMARY KEY, a INT, v VARCHAR(100))")
    for first in range(0, ROWS, 2_000):
        rows = ", ".join(f"({n}, {n % 977}, 'value {n} and some more to look through')"
                         for n in range(first, first + 2_000))
        connection.query(f"INSERT INTO w VALUES {rows}")


def refusal(connection, text):
    """The error that a statement ends in, if it does."""
    try:
        connection.query(text)
        return None
    except MySQLError as error:
        return error


def others_go_on(args, connection):
    """Long statements while somebody else changes single rows at the other node; nobody leaves."""
    connection.query("CREATE TABLE small (id INT PRIMARY KEY, n INT)")
    connection.query("INSERT INTO small VALUES (1, 0)")
    over, done, trouble = threading.Event(), [], []

    def change():
        try:
            other = Connection(args.sql_port + 1, DATABASE, timeout=PATIENCE_S)
            while not over.is_set():
                other.query("UPDATE small SET n = n + 1 WHERE id = 1")
                done.append(1)
            other.close()
        except Exception as error:  # Whatever it is, the thread must not look as if it had done its work.
            trouble.append(error)

    before = args.cluster.status()["view"]
    began = time.monotonic()
    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    try:
        connection.query("SELECT COUNT(*) FROM w WHERE a / 7 + id * 3 > 1e12 OR REPLACE(v, 'a', 'b') = 'q' OR CONCAT(v, id) = 'x'")
        connection.query("SELECT COUNT(DISTINCT v) FROM w")
        connection.query("UPDATE w SET a = a + 1 WHERE id < 4000")
        connection.query("DELETE FROM w WHERE id < 3000")
        connection.query("CREATE INDEX by_a ON w (a)")
        connection.query("UPDATE w SET a = a + 1")
        assert connection.query("SELECT COUNT(*) FROM w WHERE a < 2")[0][0] == \
            str(len([n for n in range(3_000, ROWS) if n % 977 + (n < 4_000) < 1])), "the index misses rows"
        connection.query("DROP INDEX by_a ON w")
        connection.query("BEGIN")
        connection.query("DELETE FROM w")
        connection.query("ROLLBACK")
        took = time.monotonic() - began
        wait_until("somebody else has done something", lambda: done or trouble, args.cluster.describe)
    finally:
        over.set()
        thread.join(PATIENCE_S)
    if trouble:
        raise trouble[0]
    assert connection.query("SELECT n FROM small")[0][0] == str(len(done)), "updates were lost"
    assert connection.query("SELECT COUNT(*) FROM w")[0][0] == str(ROWS - 3_000)
    after = args.cluster.status()["view"]
    if after != before:
        raise Disturbed(f"a node was removed: view {before} became {after}")
    connection.query("DELETE FROM w")
    assert connection.query("SELECT COUNT(*) FROM w")[0][0] == "0"
    print(f"heavy: long statements took {took:.1f} s, and somebody else made {len(done)} updates meanwhile")


def no_torn_transactions(args, connection):
    """What a transaction did to a table that goes away takes the rest of it along."""
    for change in ("TRUNCATE TABLE first", "DROP TABLE first"):
        for finish in ("INSERT INTO second VALUES (2)", "COMMIT"):
            connection.query("DROP TABLE IF EXISTS first, second")
            connection.query("CREATE TABLE first (id INT PRIMARY KEY)")
            connection.query("CREATE TABLE second (id INT PRIMARY KEY)")
            writer = Connection(args.sql_port + 1, DATABASE, timeout=PATIENCE_S)
            writer.query("BEGIN")
            writer.query("INSERT INTO first VALUES (1)")
            writer.query("INSERT INTO second VALUES (1)")
            connection.query(change)
            error = refusal(writer, finish)
            if error and is_temporary(error):
                raise error
            assert error and error.number == 1412, f"{change}, then {finish}: {error} instead of 1412"
            refusal(writer, "COMMIT")
            left = connection.query("SELECT * FROM second")
            assert not left, f"{change}, then {finish}: half of the transaction is there: {left}"
            writer.close()
    print("heavy: no transaction is torn by DROP or TRUNCATE")


def test(args):
    connection = Connection(args.sql_port, "", timeout=2 * PATIENCE_S)
    connection.query(f"DROP DATABASE IF EXISTS {DATABASE}")
    connection.query(f"CREATE DATABASE {DATABASE}")
    connection.query(f"USE {DATABASE}")
    no_torn_transactions(args, connection)
    fill(connection)
    others_go_on(args, connection)
    connection.query(f"DROP DATABASE {DATABASE}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--sql-port", type=int, required=True)
    args = parser.parse_args()
    args.cluster = Running(args.binary, args.data_dir)
    return concluded(lambda: test(args))


if __name__ == "__main__":
    sys.exit(main())
