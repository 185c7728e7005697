#!/usr/bin/env python3
"""Statements with long lists and values, longer than a message between nodes may be: each is answered or refused, and nothing else
happens. The connection lives on, the transaction is whole, and no invariant of a node fires.

large.py PORT --data-dir DIR    the cluster's SQL port, and where its nodes have their logs
"""

import argparse
import pathlib
import sys
import time

from minimysql import Connection, MySQLError

LONG = "x" * 9_000_000
# As many texts as fit into a message.
FEW = "'a'," + ",".join(f"'t{i}'" for i in range(60_000))
TEXTS = "'a'," + ",".join(f"'t{i}'" for i in range(900_000))
# What answers a statement that does not fit.
TOO_LARGE, NOT_SUPPORTED, TOO_LONG, ROW_TOO_LARGE = 1296, 1235, 1406, 1118
REFUSALS = {TOO_LARGE, NOT_SUPPORTED, TOO_LONG, ROW_TOO_LARGE}

TABLES = [
    "DROP DATABASE IF EXISTS lats_large",
    "CREATE DATABASE lats_large",
    "CREATE TABLE lats_large.t (id INT PRIMARY KEY, v VARCHAR(200), w VARCHAR(300), x TEXT, KEY (v), UNIQUE KEY (w))",
    "CREATE TABLE lats_large.k (k VARCHAR(200) PRIMARY KEY, n INT)",
    "INSERT INTO lats_large.t VALUES (1,'a','a','a'), (2,'b','b','b'), (3,'c','c','c')",
    "INSERT INTO lats_large.k VALUES ('a', 1), ('b', 2)",
]


def must_be_answered():
    """Statements whose parts fit, and the rows that they give."""
    for column in ("v", "w", "x", "CONCAT(v)"):
        yield f"SELECT id FROM lats_large.t WHERE {column} IN ({FEW})", [["1"]]
        yield f"SELECT id FROM lats_large.t WHERE {column} NOT IN ({FEW}) ORDER BY id", [["2"], ["3"]]
    yield f"SELECT k FROM lats_large.k WHERE k IN ({TEXTS})", [["a"]]
    yield "SELECT id FROM lats_large.t o WHERE EXISTS (SELECT * FROM lats_large.k WHERE k = CONCAT(o.v, @long))", []


def statements():
    """Statements, and the rows that they give if they are not refused; none: any."""
    yield from must_be_answered()
    for column in ("v", "w", "x", "CONCAT(v)"):
        yield f"SELECT id FROM lats_large.t WHERE {column} IN ({TEXTS})", [["1"]]
        yield f"SELECT id FROM lats_large.t WHERE {column} NOT IN ({TEXTS}) ORDER BY id", [["2"], ["3"]]
    yield f"SELECT k FROM lats_large.k WHERE k NOT IN ({TEXTS})", [["b"]]
    yield f"SELECT id FROM lats_large.t WHERE x IN ({TEXTS}) FOR UPDATE", [["1"]]
    yield f"SELECT t.id FROM lats_large.t t JOIN lats_large.k k ON t.v = k.k WHERE t.x IN ({TEXTS})", [["1"]]
    yield f"UPDATE lats_large.t SET v = v WHERE x NOT IN ({TEXTS})", None
    yield f"DELETE FROM lats_large.t WHERE id > 5 AND x IN ({TEXTS})", None
    for column in ("v", "w", "x"):
        for operator in ("=", "<", "LIKE"):
            yield f"SELECT id FROM lats_large.t WHERE {column} {operator} @long", None
        yield f"SELECT id FROM lats_large.t WHERE {column} <> @long ORDER BY id", [["1"], ["2"], ["3"]]
        yield f"UPDATE lats_large.t SET {column} = @long WHERE id = 1", None
        yield f"UPDATE lats_large.t SET id = id WHERE {column} = @long", None
    yield "SELECT k FROM lats_large.k WHERE k = @long", []
    yield "SELECT k FROM lats_large.k WHERE k > @long", None
    yield "SELECT id FROM lats_large.t WHERE id = @long", []
    yield "SELECT id FROM lats_large.t WHERE v BETWEEN @long AND @long", []
    yield "INSERT INTO lats_large.k VALUES (@long, 1)", None
    yield "REPLACE INTO lats_large.k VALUES (@long, 1)", None
    yield "INSERT INTO lats_large.k VALUES ('a', 1) ON DUPLICATE KEY UPDATE n = LENGTH(@long) - 8999999", None
    yield "DELETE FROM lats_large.t WHERE v = @long", None


def run(connection, text, wanted):
    """What is wrong with the answer, and how the statement was answered."""
    try:
        rows = connection.query(text)
    except MySQLError as error:
        return (None if error.number in REFUSALS else str(error)[:200]), "refused"
    except OSError as error:
        return f"no answer: {error}", "lost"
    if wanted is not None and rows != wanted:
        return f"rows {rows!r:.200}", "answered"
    return None, "answered"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--data-dir", type=pathlib.Path, required=True)
    args = parser.parse_args()
    connection = Connection(args.port)
    for text in TABLES:
        connection.query(text)
    connection.query(f"SET @long = '{LONG}'")
    wrong, counts = [], {}
    fits = {text for text, _ in must_be_answered()}
    for text, wanted in statements():
        begun = time.monotonic()
        # The transaction has a row of its own before the statement, and commits it afterwards.
        connection.query("BEGIN")
        connection.query("UPDATE lats_large.k SET n = n + 1 WHERE k = 'b'")
        problem, how = run(connection, text, wanted)
        counts[how] = counts.get(how, 0) + 1
        if how == "lost":
            connection = Connection(args.port)
            connection.query(f"SET @long = '{LONG}'")
        else:
            connection.query("COMMIT")
        if text in fits and how != "answered":
            problem = problem or "refused, though it fits"
        if problem:
            wrong.append(f"{text[:90]}: {problem}")
        print(f"{how:9} {time.monotonic() - begun:5.2f} s  {text[:80]}", flush=True)
    kept = connection.query("SELECT n FROM lats_large.k WHERE k = 'b'")[0][0]
    if int(kept) != 2 + sum(counts.values()) - counts.get("lost", 0):
        wrong.append(f"{kept} after {counts}: a transaction with a refused statement was not committed whole")
    for log in args.data_dir.rglob("*.log"):
        if "panicked at" in log.read_text(errors="replace"):
            wrong.append(f"an invariant has fired: see {log}")
    connection.query("DROP DATABASE lats_large")
    print(", ".join(f"{count} {how}" for how, count in sorted(counts.items())))
    for line in wrong:
        print(f"WRONG: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
