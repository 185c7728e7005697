#!/usr/bin/env python3
"""TPC-H: loads the same rows into LatsDB and MariaDB (InnoDB), compares the answers of the 22 queries, and prints how long they took.

run.py --scale 0.01                     starts both servers, loads, compares with --seeds parameter sets, and stops them
run.py --lats-port P --maria-port Q     uses servers that run already; --load loads the rows first, otherwise they must be there
  --only 1,5,21 --skip 17               some of the queries
  --seeds 1-100                         parameter sets; answers are compared for each
  --repeat 5                            times each query that often with the first set, and prints the medians
  --timeout 60                          a query without answer after so many seconds has failed
  --max-ratio 3                         ends with 1 if a query takes longer than so many times MariaDB's time
  --prefix x_                           puts this before the names of the tables
  --explain                             prints LatsDB's plans too
  --csv FILE                            writes the times
Ends with 1 if an answer differs or a query fails. Without MariaDB (--no-maria) nothing is compared, and times alone are printed.
"""

import argparse
import contextlib
import os
import pathlib
import queue
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import data
import queries
from cluster import Cluster
from minimysql import Connection, MySQLError

ROWS_PER_INSERT = 500
DATABASE = "tpch"


class Client(Connection):
    """A connection that takes large answers fast: the time of a query ends with the last byte."""

    def _read(self, count):
        while len(self.buffer) - self.at < count:
            more = self.socket.recv(1 << 20)
            if not more:
                raise ConnectionError("connection closed")
            self.buffer = self.buffer[self.at :] + more
            self.at = 0
        self.at += count
        return self.buffer[self.at - count : self.at]

    at = 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def mariadb():
    """A MariaDB server of our own; gives its port."""
    with tempfile.TemporaryDirectory(prefix="tpch-") as directory:
        user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
        where = [f"--datadir={directory}/data", f"--user={user}"]
        install = ["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", *where]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = free_port()
        options = [
            f"--socket={directory}/socket", f"--port={port}", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=1G",
            "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin", "--character-set-server=utf8mb4",
            "--collation-server=utf8mb4_uca1400_nopad_ai_ci", "--transaction-isolation=READ-COMMITTED",
            "--innodb-stats-persistent-sample-pages=200",
            "--sql-mode=ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,TIME_ROUND_FRACTIONAL",
        ]  # fmt: skip
        with open(f"{directory}/log", "wb") as log:
            server = subprocess.Popen(["mariadbd", "--no-defaults", *where, *options], stdout=log, stderr=log)
        try:
            for _ in range(200):
                with contextlib.suppress(OSError, MySQLError):
                    Client(port).close()
                    break
                time.sleep(0.1)
            yield port
        finally:
            server.terminate()
            server.wait()


def connect(port, timeout):
    return Client(port, DATABASE, timeout=timeout)


class Loader:
    """Sends INSERT statements to a server, in a thread of its own."""

    def __init__(self, port, of_maria, prefix):
        first = Client(port, timeout=600)
        first.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        first.close()
        self.connection, self.prefix = connect(port, 600), prefix
        self.of_maria = of_maria
        for name, columns in data.TABLES.items():
            self.connection.query(f"DROP TABLE IF EXISTS {prefix}{name}")
            self.connection.query(f"CREATE TABLE {prefix}{name} ({columns})")
        self.queue, self.error = queue.Queue(8), None
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        while (statement := self.queue.get()) is not None:
            if self.error is None:
                try:
                    self._send_all(statement)
                except (OSError, MySQLError) as error:
                    self.error = error

    def _send_all(self, statement):
        # A node that gets no processor time for a while gives temporary errors.
        for attempt in range(20):
            try:
                return self.connection.query(statement)
            except MySQLError as error:
                if error.number not in (1205, 1213, 1297) or attempt == 19:
                    raise
                time.sleep(0.2)

    def insert(self, table, rows):
        self.queue.put(f"INSERT INTO {self.prefix}{table} VALUES {','.join(rows)}")

    def finish(self):
        self.queue.put(None)
        self.thread.join()
        if self.error is not None:
            raise self.error
        names = ", ".join(self.prefix + name for name in data.TABLES)
        if self.of_maria:
            self.connection.query(f"ANALYZE TABLE {names}")
        self.connection.close()


def load(loaders, scale, seed):
    """The same rows for all of the servers."""
    made = data.Data(scale, seed)
    held = {name: [] for name in data.TABLES}
    count = 0

    def put(table, row):
        held[table].append(row)
        if len(held[table]) >= ROWS_PER_INSERT:
            send(table)

    def send(table):
        if held[table]:
            for loader in loaders:
                loader.insert(table, held[table])
            held[table] = []

    for table in ("region", "nation", "supplier", "customer", "part", "partsupp"):
        for row in getattr(made, table)():
            count += 1
            put(table, row)
    for order, items in made.orders_and_items():
        count += 1 + len(items)
        put("orders", order)
        for item in items:
            put("lineitem", item)
    for table in held:
        send(table)
    for loader in loaders:
        loader.finish()
    return count


class Server:
    """A server that answers queries, or says what went wrong."""

    def __init__(self, name, port, timeout):
        self.name, self.port, self.timeout, self.connection = name, port, timeout, None

    def ask(self, text):
        """Rows or an error, and the milliseconds that it took."""
        if self.connection is None:
            self.connection = connect(self.port, self.timeout)
        begun = time.monotonic()
        try:
            answer = self.connection.query(text)
        except MySQLError as error:
            answer = error
        except OSError as error:
            self.connection.close()
            self.connection = None
            answer = error
        return answer, (time.monotonic() - begun) * 1000


def same(one, other, order):
    """True if these are the same rows, in the same order as far as the query gives one."""
    if one == other:
        return True
    keys = [[row[at] for at in order] for row in one] == [[row[at] for at in order] for row in other]
    return keys and sorted(map(repr, one)) == sorted(map(repr, other))


def check(number, args, seed, lats, maria):
    """Compares one answer; what is wrong, or none."""
    text = queries.text(number, args.scale, seed, args.prefix)
    answer, spent = lats.ask(text)
    if isinstance(answer, Exception):
        return f"{type(answer).__name__} {answer} after {spent:.0f} ms"
    if maria is None:
        return None
    wanted, _ = maria.ask(text)
    if isinstance(wanted, Exception):
        return f"nothing to compare with: MariaDB: {wanted}"
    if same(answer, wanted, queries.ORDERS[number]):
        return None
    pairs = [(a, b) for a, b in zip(answer, wanted) if a != b][:2]
    return f"{len(answer)} rows, MariaDB has {len(wanted)}; first differences: {pairs}"


def times(number, args, seed, lats, maria):
    """The medians of both, in milliseconds; and the rows of the answer."""
    text = queries.text(number, args.scale, seed, args.prefix)
    found = {}
    rows = 0
    for server in (lats, maria):
        taken = []
        for _ in range(args.repeat if server is not None else 0):
            answer, spent = server.ask(text)
            if isinstance(answer, Exception):
                taken = []
                break
            rows = len(answer)
            taken.append(spent)
        found[server] = statistics.median(taken) if taken else None
    return found[lats], found[maria] if maria is not None else None, rows


def run(args, lats, maria):
    numbers = [number for number in queries.QUERIES if (not args.only or number in args.only) and number not in args.skip]
    bad, total = [], [0.0, 0.0]
    lines = ["query,rows,latsdb_ms,mariadb_ms,ratio"]
    print(f"{'query':>6} {'rows':>7} {'LatsDB ms':>10} {'MariaDB ms':>11} {'ratio':>7}  answers", flush=True)
    for number in numbers:
        if args.explain:
            plan, _ = lats.ask("EXPLAIN FORMAT=TREE " + queries.text(number, args.scale, args.seeds[0], args.prefix))
            print(plan if isinstance(plan, Exception) else "\n".join(row[0] for row in plan), flush=True)
        wrong = 0
        for seed in args.seeds:
            complaint = check(number, args, seed, lats, maria)
            if complaint is not None:
                wrong += 1
                print(f"Q{number} seed {seed}: {complaint}", flush=True)
        own, other, rows = times(number, args, args.seeds[0], lats, maria) if wrong < len(args.seeds) else (None, None, 0)
        ratio = own / other if own is not None and other else None
        if own is not None and other is not None:
            total[0] += own
            total[1] += other
        is_slow = args.max_ratio is not None and (ratio is None or ratio > args.max_ratio)
        if wrong or is_slow:
            bad.append(number)

        def shown(value, digits):
            return "-" if value is None else f"{value:.{digits}f}"

        said = "right" if not wrong else f"{wrong} of {len(args.seeds)} wrong"
        print(f"{'Q' + str(number):>6} {rows:>7} {shown(own, 1):>10} {shown(other, 1):>11} {shown(ratio, 2):>7}  {said}", flush=True)
        lines.append(f"{number},{rows},{shown(own, 2)},{shown(other, 2)},{shown(ratio, 3)}")
    print(f"{'total':>6} {'':>7} {total[0]:>10.1f} {total[1]:>11.1f} {total[0] / total[1] if total[1] else 0:>7.2f}")
    if args.csv:
        pathlib.Path(args.csv).write_text("\n".join(lines) + "\n")
    same_answers = "nothing was compared" if maria is None or not numbers else "all answers are the same"
    print(f"queries that are wrong, failed or too slow: {bad}" if bad else same_answers)
    return 1 if bad or not numbers else 0


def seeds_of(text):
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def numbers_of(text):
    return {int(part) for part in text.split(",") if part}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--data-seed", type=int, default=1)
    parser.add_argument("--seeds", type=seeds_of, default=[1])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", type=numbers_of, default=set())
    parser.add_argument("--skip", type=numbers_of, default=set())
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--max-ratio", type=float)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--csv")
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--start", default="--nodes 1 --replicas 1", help="options for latsdb start")
    parser.add_argument("--sql-port", type=int, default=15306)
    parser.add_argument("--lats-port", type=int)
    parser.add_argument("--maria-port", type=int)
    parser.add_argument("--no-maria", action="store_true")
    parser.add_argument("--load", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
    with contextlib.ExitStack() as stack:
        loads = []
        if args.lats_port is None:
            stack.enter_context(Cluster(args.binary, args.sql_port, *args.start.split()))
            args.lats_port = args.sql_port
            loads.append((args.lats_port, False))
        elif args.load:
            loads.append((args.lats_port, False))
        if args.maria_port is None and not args.no_maria:
            args.maria_port = stack.enter_context(mariadb())
            loads.append((args.maria_port, True))
        elif args.load and not args.no_maria:
            loads.append((args.maria_port, True))
        if loads:
            begun = time.monotonic()
            count = load([Loader(port, of_maria, args.prefix) for port, of_maria in loads], args.scale, args.data_seed)
            print(f"tpch: {count} rows of scale {args.scale} loaded in {time.monotonic() - begun:.1f} s", flush=True)
        lats = Server("LatsDB", args.lats_port, args.timeout)
        maria = None if args.no_maria else Server("MariaDB", args.maria_port, args.timeout)
        return run(args, lats, maria)


if __name__ == "__main__":
    sys.exit(main())
