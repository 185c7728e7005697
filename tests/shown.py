#!/usr/bin/env python3
"""What a session with durability = 'disk' has seen is there after all processes were killed at once, whoever committed it (READ-7).

Writers whose commits wait for memory only count rows up. Readers look at these rows in several ways, by key, by range, under locks and
in transactions, with durability = 'disk', one way in each round, so that none waits for what another has read; one more reader does so
without, at the other node. All processes are killed; the counts are not below what the readers have seen. What the reader without it has
seen may be gone: how often it was is printed, and how long reads take in each case.

shown.py [--binary target/release/latsdb] [--rounds 5] [--sql-port 17906]"""

import argparse
import os
import random
import statistics
import sys
import threading
import time

from cluster import PATIENCE_S, Durable, connect, insist, rows
from minimysql import MySQLError

ROWS = 4
# How rows are looked at: words before, the query, and words behind.
WAYS = {
    "by key": ([], "SELECT id, n FROM counts WHERE id = {row}", []),
    "all": ([], "SELECT id, n FROM counts", []),
    "under locks": ([], "SELECT id, n FROM counts WHERE id = {row} FOR SHARE", []),
    "under locks in a transaction": (["BEGIN"], "SELECT id, n FROM counts WHERE id = {row} FOR UPDATE", ["ROLLBACK"]),
    "beside a change": (["BEGIN", "INSERT INTO other VALUES (NULL)"], "SELECT id, n FROM counts WHERE id = {row}", ["ROLLBACK"]),
}


class Writer(threading.Thread):
    """Counts a row up."""

    def __init__(self, port, row, stop):
        super().__init__(daemon=True)
        self.port, self.row, self.stop = port, row, stop

    def run(self):
        try:
            connection = connect(self.port)
            while not self.stop.is_set():
                connection.query(f"UPDATE counts SET n = n + 1 WHERE id = {self.row}")
        except (MySQLError, OSError):
            return


class Reader(threading.Thread):
    """Remembers the largest counts that it has seen."""

    def __init__(self, port, way, durability, stop):
        super().__init__(daemon=True)
        self.port, self.way, self.durability, self.stop = port, way, durability, stop
        self.seen, self.spans, self.failure = {}, [], None

    def run(self):
        before, query, behind = WAYS[self.way]
        try:
            connection = connect(self.port)
            connection.query(f"SET durability = '{self.durability}'")
            row = 0
            while not self.stop.is_set():
                row = row % ROWS + 1
                try:
                    for word in before:
                        connection.query(word)
                    begun = time.monotonic()
                    found = connection.query(query.format(row=row))
                    self.spans.append(time.monotonic() - begun)
                    for number, count in found:
                        self.seen[int(number)] = max(self.seen.get(int(number), 0), int(count))
                    for word in behind:
                        connection.query(word)
                except MySQLError as error:
                    if error.number not in (1205, 1213):
                        raise
        except (MySQLError, OSError) as error:
            self.failure = error


def round_of(cluster, port, way, chooser, counts):
    stop = threading.Event()
    writers = [Writer(port + row % 2, row, stop) for row in range(1, ROWS + 1)]
    readers = [Reader(port + 1, way, "disk", stop) for _ in range(2)]
    plain = Reader(port, "by key", "replicated", stop)
    for thread in writers + readers + [plain]:
        thread.start()
    time.sleep(chooser.uniform(0.5, 1.5))
    early = [(r.way, r.failure) for r in readers + [plain] if r.failure]
    assert not early, f"readers fail: {early}"
    cluster.kill_all(True, chooser, at_once=True)
    stop.set()
    for thread in writers + readers + [plain]:
        thread.join(PATIENCE_S)
    cluster.start()
    cluster.wait_whole()
    there = {int(row[0]): int(row[1]) for row in insist(lambda: rows(port, "SELECT id, n FROM counts"))}
    for reader in readers:
        # The end of its node is the only reason to end.
        wrong = isinstance(reader.failure, MySQLError) and reader.failure.number != 1053
        assert not (wrong or reader.is_alive()), f"the reader {reader.way}: {reader.failure}"
        assert len(reader.spans) > 20, f"the reader {reader.way} was answered {len(reader.spans)} times only"
        for row, count in reader.seen.items():
            assert there[row] >= count, f"row {row} is at {there[row]}; the reader {reader.way} has seen {count}"
        counts.setdefault(reader.way, []).extend(reader.spans)
    counts.setdefault("by key, replicated", []).extend(plain.spans)
    return sum(there[row] < count for row, count in plain.seen.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--rounds", type=int, default=len(WAYS))
    parser.add_argument("--sql-port", type=int, default=17906)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"shown: seed {args.seed}", flush=True)
    chooser, spans, gone = random.Random(args.seed), {}, 0
    with Durable(args.binary, args.sql_port, "--nodes", "2", "--replicas", "2") as cluster:
        port = args.sql_port
        connection = insist(lambda: connect(port))
        connection.query("CREATE TABLE counts (id INT PRIMARY KEY, n BIGINT)")
        connection.query("CREATE TABLE other (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
        connection.query("SET durability = 'disk'")
        connection.query("INSERT INTO counts VALUES " + ", ".join(f"({row}, 0)" for row in range(1, ROWS + 1)))
        for number in range(args.rounds):
            way = list(WAYS)[number % len(WAYS)]
            gone += round_of(cluster, port, way, chooser, spans)
            print(f"shown: {way}: all that was seen is there", flush=True)
    for way, list_of in spans.items():
        print(f"shown: {way}: {len(list_of)} reads, median {statistics.median(list_of) * 1e6:.0f} us", flush=True)
    print(f"shown: of what was seen without durability = 'disk', {gone} of {args.rounds * ROWS} counts were gone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
