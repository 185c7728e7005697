#!/usr/bin/env python3
"""Runs sqllogictest files against a server that speaks MySQL's protocol, and compares what it answers.

slt.py --port PORT FILE-OR-FOLDER...   these files, or all *.slt and *.test files below these folders
slt.py --port PORT --sample            ../shared/suites/sqllogictest.tar.zst; ends with 77 if it is not there
slt.py --port PORT --record FILE...    writes the answers of the server into the files: read them before you keep them

Each file runs in a new database, over one connection; --jobs files run at the same time. Each statement counts once:

right    as the file says
refused  the server does not support it (error 1235), and the file does not say so
wrong    other values, another number of columns, no error where one is expected, or another one
error    any other error, no answer within --limit seconds, or a lost connection

The status is 1 if a statement is wrong or ends in an error (with --strict: or is refused) and is not in the --allow list, or if there
is no statement. If one of the errors was a temporary one, the status is 75 instead: with_cluster.py runs this once more if a node was
removed meanwhile. A line of the list has a file, a line or lines as FIRST-LAST, and the reason; lines that are not needed are named.

A statement that is refused leaves its mark: what asks for rows that it should have inserted is wrong. Mend what is refused first.

Values become text as the sqllogictest program does it: I as %d, R as %.3f, NULL as NULL, an empty text as (empty), each byte that is
not printable ASCII as @. Here an integer has as many digits as it needs. `statement error` may be followed by the error's number.
"""

import argparse
import collections
import concurrent.futures
import csv
import hashlib
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from cluster import INCONCLUSIVE, LOST, PATIENCE_S, TEMPORARY
from minimysql import Connection, MySQLError

ENGINE = b"mysql"
SKIPPED = 77
NOT_SUPPORTED = 1235
HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "shared" / "suites" / "sqllogictest.tar.zst"
SAMPLE_ALLOW = HERE / "slt" / "sample.allow"
OUTCOMES = ("right", "refused", "wrong", "error")
HASH = re.compile(rb"\d+ values hashing to [0-9a-f]{32}")
NUMBER = re.compile(rb"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
PRINTABLE = bytes(byte if 0x20 <= byte <= 0x7E else ord("@") for byte in range(256))
SHOWN = 12


class Malformed(Exception):
    """A file that is not in the format."""


class Away(Exception):
    """The server does not take connections any more."""


class Session(Connection):
    """A connection that gives values as the server sent them."""

    def answer(self, text):
        """The number of columns, and the values of all rows one after the other; no columns for what is no query."""
        self._send(0, b"\x03" + text)
        first = self._packet()
        if first[0] == 0xFF:
            raise self._error(first)
        if first[0] == 0x00:
            return 0, []
        columns = self._length(first, 0)[0]
        for _ in range(columns + 1):
            self._packet()
        return columns, self._values(columns)

    def _values(self, columns):
        values, buffer, at = [], self.buffer, self.at
        while True:
            while len(buffer) < at + 4 or len(buffer) < (end := at + 4 + int.from_bytes(buffer[at:at + 3], "little")):
                more = self.socket.recv(1 << 18)
                if not more:
                    raise ConnectionError("connection closed")
                buffer, at = buffer[at:] + more, 0
            at += 4
            if buffer[at] >= 0xFE and (buffer[at] == 0xFF or end - at < 9):
                self.buffer, self.at = buffer, end
                if buffer[at] == 0xFF:
                    raise self._error(buffer[at:end])
                return values
            for _ in range(columns):
                length = buffer[at]
                at += 1
                if length >= 0xFB:
                    length, at = self._length(buffer, at - 1)
                values.append(None if length is None else buffer[at:at + length])
                at += length or 0


def integer(value):
    if value.isdigit() and (value[0] != 0x30 or len(value) == 1):
        return value
    number = NUMBER.match(value)
    if not number:
        return b"0"
    try:
        return b"%d" % int(number[1])
    except ValueError:
        whole, dot, fraction = number[1].partition(b".")
        # Decimals may have more digits than a float.
        exact = dot and b"e" not in fraction.lower() and whole.strip(b"+-")
        return b"%d" % (int(whole) if exact else int(float(number[1])))


def real(value):
    number = NUMBER.match(value)
    return b"%.3f" % (float(number[1]) if number else 0.0)


def text(value):
    return value.translate(PRINTABLE) or b"(empty)"


FORMATS = {"I": integer, "R": real, "T": text}


def formatted(types, values):
    letters = itertools.cycle([FORMATS[letter] for letter in types])
    return [b"NULL" if value is None else letter(value) for letter, value in zip(letters, values)]


def arranged(sort, columns, values):
    if sort == "valuesort":
        return sorted(values)
    if sort == "rowsort" and len(values) > columns:
        rows = sorted(zip(*[iter(values)] * columns))
        return list(itertools.chain.from_iterable(rows))
    return values


def hashed(values):
    digest = hashlib.md5(b"".join(value + b"\n" for value in values), usedforsecurity=False).hexdigest()
    return b"%d values hashing to %s" % (len(values), digest.encode())


class Record:
    """A statement or a query of a file."""

    __slots__ = ("line", "sql", "is_query", "error", "types", "sort", "label", "threshold", "wanted", "answer_lines")

    def __init__(self, line, words, threshold):
        self.line, self.threshold = line, threshold
        self.is_query = words[0] == "query"
        self.error = self.wanted = self.answer_lines = None
        if self.is_query:
            self.types, self.sort, self.label = (*words[1:4], *["", "nosort", ""][len(words[1:4]):])
            if not self.types or set(self.types) - set(FORMATS) or self.sort not in ("nosort", "rowsort", "valuesort"):
                raise Malformed(f"line {line}: {' '.join(words)}")
        elif words[1:2] == ["error"]:
            self.error = int(words[2]) if len(words) > 2 and words[2].isdigit() else 0
        elif words[1:2] != ["ok"]:
            raise Malformed(f"line {line}: {' '.join(words)}")

    def says(self):
        """What is to come, for a person."""
        if self.is_query:
            return as_text(self.wanted)
        return "ok" if self.error is None else f"error {self.error}" if self.error else "an error"


def records(lines):
    """What a file has for this engine, in its order."""
    at, skip, threshold = 0, False, 0
    while at < len(lines):
        words = lines[at].split(b"#")[0].split()
        line = at + 1
        at += 1
        if not words:
            continue
        if words[0] in (b"skipif", b"onlyif"):
            skip |= (words[1].lower() == ENGINE) == (words[0] == b"skipif")
            continue
        if words[0] in (b"statement", b"query"):
            record = Record(line, [word.decode() for word in words], threshold)
            begin = at
            while at < len(lines) and lines[at] not in (b"", b"----"):
                at += 1
            record.sql = b"\n".join(lines[begin:at])
            begin = at
            while at < len(lines) and lines[at]:
                at += 1
            if begin < at:
                record.wanted = lines[begin + 1:at]
            record.answer_lines = (begin, at)
            if not skip:
                yield record
        elif words[0] == b"hash-threshold":
            threshold = int(words[1])
        elif words[0] != b"halt":
            raise Malformed(f"line {line}: {words[0].decode()}")
        elif not skip:
            return
        skip = False


def read(file):
    return [line.rstrip() for line in file.read_bytes().split(b"\n")]


# A statement that is not right: line, outcome, statement, what the file says, what the server said.
Difference = collections.namedtuple("Difference", "line outcome sql wanted got allowed")


class Run:
    """A file in a database of its own."""

    def __init__(self, args, name, file, database):
        self.args, self.name, self.file, self.database = args, name, file, database
        self.count = collections.Counter()
        self.differences = []
        self.labels = {}
        self.temporary = 0
        self.session = None
        self.answers = []
        self.seconds = 0

    def connect(self):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                session = Session(self.args.port, timeout=self.args.limit, host=self.args.host)
                for statement in self.args.set:
                    session.query(statement)
                return session
            except (MySQLError, *LOST) as error:
                if isinstance(error, MySQLError) and error.number not in TEMPORARY or time.monotonic() > end:
                    raise Away(str(error)) from error
                time.sleep(0.2)

    def ask(self, sql):
        """Columns and values, or an error in words."""
        try:
            return self.session.answer(sql), None, ""
        except MySQLError as error:
            self.temporary += error.number in TEMPORARY
            return None, error.number, str(error)
        except LOST as error:
            self.session.close()
            in_time = not isinstance(error, TimeoutError)
            self.temporary += in_time
            self.session = self.connect()
            self.session.query(f"USE {self.database}")
            return None, 0, f"lost: {error}" if in_time else f"no answer within {self.args.limit:g} s"

    def judge(self, record):
        """The outcome, what was wanted and what came, for a person."""
        answer, number, complaint = self.ask(record.sql)
        if complaint:
            if record.error is not None and number and record.error in (0, number) and (number != NOT_SUPPORTED or record.error):
                return "right", "", ""
            outcome = "refused" if number == NOT_SUPPORTED else "wrong" if record.error else "error"
            return outcome, record.says(), complaint
        if not record.is_query:
            return ("right", "", "") if record.error is None else ("wrong", record.says(), "ok")
        columns, values = answer
        if columns != len(record.types):
            return "wrong", f"{len(record.types)} columns", f"{columns} columns"
        values = arranged(record.sort, columns, formatted(record.types, values))
        return self.compare(record, values)

    def compare(self, record, values):
        wanted = record.wanted
        if self.args.record:
            over = 0 < record.threshold < len(values)
            self.answers.append((record, [hashed(values)] if over else values))
        elif wanted is not None and len(wanted) == 1 and HASH.fullmatch(wanted[0]):
            if hashed(values) != wanted[0]:
                return "wrong", as_text(wanted), f"{hashed(values).decode()}: {as_text(values)}"
        # The reader of files has taken blanks at the end away.
        elif wanted is not None and wanted != values and wanted != [value.rstrip() for value in values]:
            return "wrong", as_text(wanted), as_text(values)
        if record.label:
            line, first = self.labels.setdefault(record.label, (record.line, hashed(values)))
            if hashed(values) != first:
                return "wrong", f"the values of {record.label} in line {line}", as_text(values)
        return "right", "", ""

    def run(self):
        begun = time.monotonic()
        lines = read(self.file)
        line = 0
        try:
            self.session = self.connect()
            for statement in (f"DROP DATABASE IF EXISTS {self.database}", f"CREATE DATABASE {self.database}", f"USE {self.database}"):
                self.session.query(statement)
            for record in records(lines):
                line = record.line
                outcome, wanted, got = self.judge(record)
                self.count[outcome] += 1
                if outcome != "right":
                    allowed = self.args.allowed.allows(self.file, line)
                    self.differences.append(Difference(line, outcome, as_line(record.sql), wanted, got, allowed))
            self.session.query(f"DROP DATABASE {self.database}")
        except (Away, Malformed, MySQLError, *LOST) as error:
            self.count["error"] += 1
            self.temporary += not isinstance(error, Malformed)
            self.differences.append(Difference(line, "error", "", "", f"the rest of the file was not run: {error}", False))
        if self.session:
            self.session.close()
        if self.args.record:
            self.write(lines)
        self.seconds = time.monotonic() - begun
        return self

    def write(self, lines):
        """Puts the answers into the file, last one first, so that places stay."""
        for record, values in reversed(self.answers):
            begin, end = record.answer_lines
            lines[begin:end] = [b"----", *values]
        self.file.write_bytes(b"\n".join(lines))

    def failures(self):
        counted = OUTCOMES[1 if self.args.strict else 2:]
        return [difference for difference in self.differences if difference.outcome in counted and not difference.allowed]

    def show(self):
        shown = [difference for difference in self.differences if not difference.allowed]
        for difference in shown[:self.args.first]:
            print(f"{self.name}:{difference.line}: {difference.outcome}: {difference.sql}")
            print(f"    wanted  {difference.wanted}\n    got     {difference.got}", flush=True)
        if self.args.first and len(shown) > self.args.first:
            print(f"{self.name}: and {len(shown) - self.args.first} more", flush=True)

    def row(self):
        allowed = sum(difference.allowed for difference in self.differences)
        return [self.name, sum(self.count.values()), *(self.count[outcome] for outcome in OUTCOMES), allowed, round(self.seconds, 1)]


def as_text(values):
    """Values in one line, for a person."""
    shown = ", ".join(value.decode(errors="replace") for value in (values or [])[:SHOWN])
    return shown + (f", ... ({len(values)} values)" if values and len(values) > SHOWN else "")


def as_line(sql):
    return " ".join(sql.decode(errors="replace").split())


class Allowed:
    """Statements that need not be right."""

    def __init__(self, file):
        self.entries, self.used = [], set()
        for line in file.read_text(encoding="utf-8").splitlines() if file else ():
            if not line.strip() or line.startswith("#"):
                continue
            name, place, _reason = line.split(maxsplit=2)
            first, _, last = place.partition("-")
            self.entries.append((name, int(first), int(last or first)))

    def allows(self, file, line):
        for entry in self.entries:
            if entry[1] <= line <= entry[2] and names(entry, file):
                self.used.add(entry)
                return True
        return False

    def unused(self, files):
        return [e for e in self.entries if e not in self.used and any(names(e, file) for file in files)]


def names(entry, file):
    return f"/{file.as_posix()}".endswith(f"/{entry[0]}")


def found(paths):
    """[(name, file)]: a file is called as below the folder that was given."""
    files = []
    for path in paths:
        if path.is_dir():
            below = sorted(file for file in path.rglob("*") if file.suffix in (".slt", ".test"))
            files += [(file.relative_to(path).as_posix(), file.resolve()) for file in below]
        else:
            files.append((path.name, path.resolve()))
    return files


def table(rows):
    head = ["file", "statements", *OUTCOMES, "allowed", "right %", "seconds"]
    lines = [head]
    for row in rows:
        share = f"{100 * row[2] / row[1]:.1f}" if row[1] else "-"
        lines.append([str(cell) for cell in (*row[:-1], share, row[-1])])
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    for line in lines:
        print(line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:])), sep="  ")


def write_csv(file, head, rows):
    with open(file, "w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([head, *rows])


def run_all(args, files):
    runs = [Run(args, name, file, f"slt_{at}") for at, (name, file) in enumerate(files)]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        # The longest first: none is left to run alone at the end.
        order = sorted(runs, key=lambda run: -run.file.stat().st_size)
        for done in concurrent.futures.as_completed([pool.submit(run.run) for run in order]):
            done.result().show()
    rows = [run.row() for run in runs]
    table([*rows, ["all", *(sum(column) for column in list(zip(*rows))[1:-1]), round(sum(row[-1] for row in rows), 1)]])
    if args.csv:
        write_csv(args.csv, ["file", "statements", *OUTCOMES, "allowed", "seconds"], rows)
    if args.differences:
        write_csv(args.differences, ["file", *Difference._fields], [[run.name, *d] for run in runs for d in run.differences])
    for name, first, last in args.allowed.unused([file for _, file in files]):
        print(f"slt: not needed in the list: {name} {first}{'' if first == last else f'-{last}'}")
    statements, failures = sum(row[1] for row in rows), sum(len(run.failures()) for run in runs)
    print(f"slt: {statements} statements in {len(runs)} files, {sum(row[2] for row in rows)} right, {failures} failures", flush=True)
    if args.record:
        return 0
    if failures and any(run.temporary for run in runs):
        return INCONCLUSIVE
    return 1 if failures or not statements else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--jobs", type=int, default=2, help="files that run at the same time")
    parser.add_argument("--limit", type=float, default=20, help="seconds for each statement")
    parser.add_argument("--first", type=int, default=3, help="differences of each file that are shown")
    parser.add_argument("--set", action="append", default=[], metavar="STATEMENT", help="runs at the beginning of each connection")
    parser.add_argument("--allow", type=pathlib.Path, help="statements that need not be right")
    parser.add_argument("--strict", action="store_true", help="what is refused is a failure, too")
    parser.add_argument("--csv", help="the table")
    parser.add_argument("--differences", help="a CSV file of all statements that are not right")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    if args.sample == bool(args.paths):
        parser.error("either files or --sample")
    if not args.sample:
        args.allowed = Allowed(args.allow)
        return run_all(args, found(args.paths))
    if not SAMPLE.exists():
        print(f"slt: skipped: there is no {SAMPLE}")
        return SKIPPED
    args.allowed = Allowed(args.allow or SAMPLE_ALLOW)
    with tempfile.TemporaryDirectory(prefix="latsdb-slt-") as folder:
        subprocess.run(["tar", "--zstd", "-xf", str(SAMPLE), "-C", folder], check=True)
        return run_all(args, found([pathlib.Path(folder)]))


if __name__ == "__main__":
    sys.exit(main())
