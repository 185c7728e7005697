#!/usr/bin/env python3
"""How soon each kind of work ends after KILL QUERY: sorts, joins, groups, windows, patterns, changes and large results.

ending.py PORT [--rows N] [--times N] [--limit-ms N]    status 1 if one of the medians is above the limit

The statements of one session are killed by another at places drawn between their beginning and their end.
"""

import argparse
import random
import statistics
import sys
import threading
import time

from minimysql import Connection, MySQLError

NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) "


def statements(rows):
    """Names, and what runs for seconds."""
    words = "lats_ending.words"
    return [
        ("sort", f"SELECT COUNT(*) FROM (SELECT a.id FROM {words} a ORDER BY a.word, a.v DESC LIMIT {rows}) x"),
        ("sort of texts, all rows sent", f"SELECT word FROM {words} ORDER BY CONCAT(word, v) DESC"),
        ("hash join", f"SELECT COUNT(*) FROM {words} a JOIN {words} b ON a.v = b.v"),
        ("left hash join", f"SELECT COUNT(*) FROM {words} a LEFT JOIN {words} b ON a.v = b.v AND a.word < b.word"),
        ("nested join", f"SELECT COUNT(*) FROM {words} a JOIN {words} b ON a.v < b.v AND a.word > b.word"),
        ("lookup join", f"SELECT SUM(b.v) FROM {words} a JOIN {words} b ON b.id = a.other"),
        ("groups", f"SELECT COUNT(*) FROM (SELECT word, SUM(v), AVG(v) FROM {words} GROUP BY word) x"),
        ("COUNT(DISTINCT)", f"SELECT COUNT(DISTINCT word, v) FROM {words}"),
        ("DISTINCT", f"SELECT COUNT(*) FROM (SELECT DISTINCT word, v FROM {words}) x"),
        ("GROUP_CONCAT", f"SELECT v, LENGTH(GROUP_CONCAT(word ORDER BY word DESC)) FROM {words} GROUP BY v"),
        ("one group with GROUP_CONCAT", f"SELECT LENGTH(GROUP_CONCAT(DISTINCT word ORDER BY word)) FROM {words}"),
        ("ROLLUP", f"SELECT COUNT(*) FROM (SELECT v, word, COUNT(*) FROM {words} GROUP BY v, word WITH ROLLUP) x"),
        ("window, one partition",
         f"SELECT MAX(s) FROM (SELECT SUM(v) OVER (ORDER BY word, id) AS s FROM {words}) x"),
        ("window, wide frame", "SELECT MAX(s) FROM (SELECT MAX(v) OVER (ORDER BY id ROWS BETWEEN 5000 PRECEDING AND "
         f"CURRENT ROW) AS s FROM {words}) x"),
        ("window, ranks", f"SELECT MAX(r) FROM (SELECT RANK() OVER (PARTITION BY v ORDER BY word) AS r FROM {words}) x"),
        ("UNION", f"SELECT COUNT(*) FROM (SELECT word FROM {words} UNION SELECT CONCAT(word, 'x') FROM {words}) x"),
        ("EXCEPT", f"SELECT COUNT(*) FROM (SELECT id, word FROM {words} EXCEPT SELECT id + 5, word FROM {words}) x"),
        ("recursive, long",
         "WITH RECURSIVE r (i, t) AS (SELECT 1, CAST('' AS CHAR(40)) UNION ALL SELECT i + 1, CONCAT(i) FROM r "
         "WHERE i < 900000) SELECT COUNT(*) FROM r"),
        ("recursive, broad", f"WITH RECURSIVE r (i, d) AS (SELECT id, 0 FROM {words} UNION ALL SELECT i + 1, d + 1 FROM r "
         "WHERE d < 20) SELECT COUNT(*) FROM r"),
        ("cross join", NUMBERS + "SELECT COUNT(*) FROM n a, n b, n c WHERE a.i * b.i + c.i = -1"),
        ("subquery for each row",
         f"SELECT SUM((SELECT COUNT(*) FROM {words} b WHERE b.v < a.v AND b.id < a.id)) FROM {words} a"),
        ("subquery by key",
         f"SELECT SUM((SELECT b.v FROM {words} b WHERE b.id = a.other LIMIT 1)) FROM {words} a"),
        ("NOT IN", f"SELECT COUNT(*) FROM {words} a WHERE a.word NOT IN (SELECT CONCAT(b.word, 'x') FROM {words} b)"),
        ("REGEXP", f"SELECT COUNT(*) FROM {words} WHERE CONCAT(word, word, word) REGEXP '(a|b|[c-x]+y)*[0-9]+z$'"),
        ("REGEXP with steps", f"SELECT COUNT(*) FROM {words} WHERE REPEAT(word, 4) REGEXP '(.)(.+)\\\\2\\\\1$'"),
        ("REGEXP_REPLACE of long texts",
         f"SELECT SUM(LENGTH(REGEXP_REPLACE(REPEAT(word, 3000), '[a-f]+', '-'))) FROM {words}"),
        ("REGEXP_REPLACE that looks far",
         f"SELECT SUM(LENGTH(REGEXP_REPLACE(REPEAT('a', 9000), 'a.*b|a', '-'))) FROM {words}"),
        ("texts", f"SELECT SUM(LENGTH(REPLACE(UPPER(REPEAT(word, 2000)), 'A', 'bc'))) FROM {words}"),
        ("LIKE", f"SELECT COUNT(*) FROM {words} WHERE REPEAT(word, 300) LIKE '%a%b%c%d%e%zz%'"),
        ("SHA2", f"SELECT COUNT(*) FROM {words} WHERE SHA2(REPEAT(word, 2000), 512) LIKE '00%'"),
        ("condition in data nodes", f"SELECT COUNT(*) FROM {words} WHERE REPEAT(word, 200) LIKE '%a%b%c%d%zz%'"),
        ("large result", f"SELECT a.*, b.* FROM {words} a JOIN {words} b ON a.v = b.v"),
        ("INSERT … SELECT", f"INSERT INTO lats_ending.copy SELECT * FROM {words}"),
        ("UPDATE", f"UPDATE {words} SET v = v + 0, word = CONCAT(word, '')"),
        ("DELETE", f"DELETE FROM {words} WHERE word LIKE '%'"),
        ("UPDATE with a join", f"UPDATE {words} a JOIN {words} b ON b.id = a.other SET a.v = a.v + b.v"),
    ]


def prepare(connection, rows):
    connection.query("DROP DATABASE IF EXISTS lats_ending")
    connection.query("CREATE DATABASE lats_ending")
    definition = "(id INT PRIMARY KEY, v INT, other INT, word VARCHAR(60))"
    for table in ("words", "copy"):
        connection.query(f"CREATE TABLE lats_ending.{table} {definition}")
    draw = random.Random(28)
    for first in range(0, rows, 1000):
        values = ",".join(
            f"({i},{draw.randrange(rows // 40)},{draw.randrange(rows)},'{draw.getrandbits(100):x}')"
            for i in range(first, min(first + 1000, rows)))
        connection.query(f"INSERT INTO lats_ending.words VALUES {values}")


class Victim(threading.Thread):
    """A statement that runs in a thread. What it sends is read as it comes, and only its end is looked at: otherwise a client that
    is slower than the server would be measured, which has megabytes to read behind a KILL."""

    def __init__(self, port, statement):
        super().__init__(daemon=True)
        self.connection, self.statement = Connection(port, timeout=300), statement
        self.number = int(self.connection.query("SELECT CONNECTION_ID()")[0][0])
        self.connection.query("SET cte_max_recursion_depth = 1000000")
        self.error, self.ended = None, None
        self.start()

    def run(self):
        body = b"\x03" + self.statement.encode()
        taker = self.connection.socket
        taker.sendall(len(body).to_bytes(3, "little") + b"\0" + body)
        end = b""
        try:
            while not self.has_ended(end):
                data = taker.recv(1 << 20)
                if not data:
                    raise ConnectionError("connection closed")
                end = (end + data)[-1024:]
        except OSError as error:
            self.error = error
        self.ended = time.monotonic()
        self.connection.close()

    def has_ended(self, end):
        """True behind the packet of an error, of rows' end, or of a change."""
        for length in range(7, min(len(end), 512) + 1):
            packet = end[-length:]
            if int.from_bytes(packet[:3], "little") != length - 4:
                continue
            if packet[4] == 0xFF and packet[7:8] == b"#":
                number = int.from_bytes(packet[5:7], "little")
                self.error = MySQLError(number, packet[8:13].decode(), packet[13:].decode(errors="replace"))
                return True
            if packet[4] == 0xFE and length == 9 or packet[4] == 0 and packet[3] == 1 and length == len(end):
                return True
        return False


def measure(port, killer, statement, times, longest):
    """The milliseconds from each KILL to the statement's end, how long it runs, and what else it said."""
    took, other = [], []
    draw = random.Random(statement)
    for _ in range(times):
        victim = Victim(port, statement)
        time.sleep(draw.uniform(0.02, longest))
        began = time.monotonic()
        if not victim.is_alive():
            longest = max(0.03, longest * 0.7)
        killer.query(f"KILL QUERY {victim.number}") if victim.is_alive() else None
        victim.join(300)
        if isinstance(victim.error, MySQLError) and victim.error.number == 1317:
            took.append((victim.ended - began) * 1000)
        elif victim.error is not None:
            other.append(str(victim.error))
    return took, other


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("port", type=int)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--longest", type=float, default=0.6, help="seconds until the latest KILL")
    parser.add_argument("--limit-ms", type=float)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    killer = Connection(args.port, timeout=300)
    prepare(killer, args.rows)
    late = []
    for name, statement in statements(args.rows):
        if args.only and args.only not in name:
            continue
        took, other = measure(args.port, killer, statement, args.times, args.longest)
        middle = statistics.median(took) if took else float("nan")
        longest = max(took) if took else float("nan")
        print(f"{name:32} {len(took):3} killed, median {middle:8.1f} ms, longest {longest:8.1f} ms"
              + (f"; {len(other)} said {other[0]}" if other else ""), flush=True)
        if args.limit_ms is not None and took and middle > args.limit_ms:
            late.append(name)
    killer.query("DROP DATABASE lats_ending")
    if late:
        print(f"ending: later than {args.limit_ms} ms: {', '.join(late)}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
