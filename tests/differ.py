#!/usr/bin/env python3
"""Asks LatsDB and MariaDB the same generated statements, and says where the answers differ; or asks LatsDB alone in several ways.

differ.py --port P --oracle-port Q [--oracle mariadb|mysql] [--seed N] [--statements N | --minutes M] [--shrink] [--out DIR]
differ.py --port P --mode tlp|norec ...      a query equals the union of its three parts; counting equals filtering
differ.py --port P --mode views ...          a query equals the view of it, also when that is made again from what SHOW says
differ.py --port P --mode rules ...          each rule of optimizer_switch off, all off, plans new and kept, and prepared statements
differ.py --port P --oracle-port Q --cases   what was found before: the files beside tests/differ/allowed
differ.py --oracle-port Q --plant            wrong answers that are made on purpose, each of which must be found
bash tests/with_mariadb.sh python3 tests/differ.py --port P --oracle-port {port} --shrink --out /tmp/found

The seed, the number of a schema and the number of a statement make a statement again: --seed 7 --only 3/41.
What MariaDB may answer otherwise than MySQL is in tests/differ/allowed, and what a newer MySQL may in tests/differ/allowed_mysql.
The status is 1 if there are other differences.
"""

import argparse
import collections
import copy
import os
import pathlib
import random
import re
import sys
import time

from differ_sql import COLLATIONS, SEVERAL, Generator, Node, Scope, empty, make_schema, raw, sequence
from minimysql import Connection, MySQLError

CASES = pathlib.Path(__file__).resolve().parent / "differ"
ALLOWED = {"mariadb": CASES / "allowed", "mysql": CASES / "allowed_mysql"}
ALLOWED_MAX = 50
NOT_SUPPORTED = 1235
# Errors of values that a plan may compute or not: rules may leave out what nobody needs.
NEEDED_ONLY = (1365, 1292, 1690)
# A plan without rules may need more memory than a statement may have.
NEEDS_MEMORY = 1038
MODE = "STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
# Runs at the same time do not disturb each other.
DATABASE, SHRINK_DATABASE = f"differ_{os.getpid()}", f"differ_{os.getpid()}_shrink"
STATEMENTS_PER_SCHEMA = 120
# Statements of which one is taken that fills an empty cell of the coverage table.
CANDIDATES = 4
# Cells that no statement can fill.
IMPOSSIBLE = {("nested join", "none"), ("UPDATE join", "none"), ("DELETE join", "none")}
SHRINK_TESTS = 700
SHRINK_SECONDS = 40


class Server:
    """A server that is asked; connects again when the connection is lost."""

    def __init__(self, port, oracle, limit, switch=None):
        """`oracle` is mariadb or mysql, and false for LatsDB; `switch` is LatsDB's optimizer_switch."""
        self.port, self.oracle, self.limit, self.switch = port, oracle, limit, switch
        self.connection, self.database, self.unsent = None, None, None
        self.is_oracle = oracle == "mariadb"

    def connect(self):
        end = time.monotonic() + 60
        while True:
            try:
                self.connection = Connection(self.port, timeout=self.limit)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        # The generator and the shrinker must not ask for columns that have no one value in a group: MariaDB knows less about them.
        self.connection.query(f"SET sql_mode = '{MODE}{'' if self.is_oracle else ',ONLY_FULL_GROUP_BY'}'")
        if self.switch:
            self.connection.query(f"SET optimizer_switch = '{self.switch}'")
        self.connection.query("SET group_concat_max_len = 100000")
        collation = "utf8mb4_uca1400_nopad_ai_ci" if self.is_oracle else "utf8mb4_0900_ai_ci"
        self.connection.query(f"SET NAMES utf8mb4 COLLATE {collation}")
        if self.is_oracle:
            self.connection.query("SET max_statement_time = 2")
        if self.oracle == "mysql":
            self.connection.query("SET max_execution_time = 10000")
        if self.database:
            self.connection.query(f"USE {self.database}")

    def ask(self, text):
        """('rows', rows), ('count', number), ('error', number, text) or ('lost', what)."""
        self.send(text)
        return self.answer()

    def send(self, text):
        """Sends a statement, so that several servers work at the same time."""
        self.unsent = None
        try:
            if self.connection is None:
                self.connect()
            self.connection.send_query(text)
        except (OSError, MySQLError) as error:
            self.unsent = error

    def answer(self):
        """What `ask` gives, of what was sent."""
        try:
            if self.unsent:
                raise self.unsent
            answer = self.connection.receive_answer()
        except MySQLError as error:
            return ("error", error.number, str(error))
        except IndexError:
            # A row with fewer columns than were announced.
            self.connection.close()
            self.connection = None
            return ("malformed", "an answer that breaks the protocol")
        except OSError as error:
            if self.connection:
                self.connection.close()
            self.connection = None
            return ("timeout" if isinstance(error, TimeoutError) else "lost", str(error))
        return ("rows", [tuple(row) for row in answer]) if isinstance(answer, list) else ("count", answer)

    def must(self, text):
        answer = self.ask(text)
        if answer[0] not in ("rows", "count"):
            kind = ConnectionError if answer[0] == "lost" else RuntimeError
            raise kind(f"port {self.port}: {text[:300]}: {answer}")
        return answer

    def use(self, database, tables):
        """A new database with these tables. An oracle that has crashed comes back."""
        for _ in range(5):
            try:
                return self.use_once(database, tables)
            except ConnectionError:
                if not self.oracle:
                    raise
                self.database = None
        raise RuntimeError(f"port {self.port} is lost")

    def use_once(self, database, tables):
        if self.connection is None:
            # It may have forgotten the database.
            self.database = None
        self.must(f"DROP DATABASE IF EXISTS {database}")
        self.must(f"CREATE DATABASE {database}")
        self.must(f"USE {database}")
        self.database = database
        for table in tables:
            self.must(table.create(self.is_oracle))
            if table.rows:
                self.must(table.insert())

    def fill(self, table):
        self.must(f"DELETE FROM {table.name}")
        if table.rows:
            self.must(table.insert())


def ask_all(servers, text):
    """The answers of servers that work at the same time."""
    for server in servers:
        server.send(text)
    return [server.answer() for server in servers]


def ask_in_turn(servers, texts):
    """The answers to several statements as one: all their rows, or the first error."""
    whole = [("rows", []) for _ in servers]
    for text in texts:
        for at, answer in enumerate(ask_all(servers, text)):
            if whole[at][0] == "rows" and answer[0] != "count":
                whole[at] = ("rows", whole[at][1] + answer[1]) if answer[0] == "rows" else answer
    return whole


# Planted wrong answers: name, what is done to the statement, what is done to the rows.
def without(pattern, replacement, flags=0):
    return lambda text: re.sub(pattern, replacement, text, flags=flags)


def cells(change):
    return lambda text, rows: [tuple(change(cell) for cell in row) for row in rows]


PLANTS = {
    "drops the last row": (None, lambda text, rows: rows[:-1]),
    "gives a row twice": (None, lambda text, rows: rows + rows[-1:]),
    "NULL becomes 0": (None, cells(lambda cell: "0" if cell is None else cell)),
    "0 becomes NULL": (None, cells(lambda cell: None if cell == "0" else cell)),
    "an empty text becomes NULL": (None, cells(lambda cell: cell or None)),
    "ignores DISTINCT": (without(r"SELECT DISTINCT", "SELECT"), None),
    "ignores DISTINCT of aggregates": (without(r"\(DISTINCT ", "("), None),
    "UNION is UNION ALL": (without(r"UNION \(", "UNION ALL ("), None),
    "LEFT JOIN is JOIN": (without(r"LEFT JOIN", "JOIN"), None),
    "ignores OFFSET": (without(r" OFFSET \d+", ""), None),
    "ORDER BY the other way": (None, lambda text, rows: rows[::-1] if " ORDER BY 1" in text[-80:] and not text.endswith(")") else rows),
    "NOT IN forgets NULL": (without(r"NOT IN \(SELECT", "NOT IN (SELECT 77777 UNION SELECT"), None),
    "COUNT(x) counts NULL": (without(r"COUNT\(r\d+\.\w+\)", "COUNT(*)"), None),
    ">= is >": (without(r" >= ", " > "), None),
    "<=> is =": (without(r" <=> ", " = "), None),
    "ALL is ANY": (without(r" ALL \(SELECT", " ANY (SELECT"), None),
    "ignores HAVING": (without(r" HAVING \(.*$", ""), None),
    "OR is XOR": (without(r" OR ", " XOR "), None),
    "numbers lose their fractions": (None, cells(lambda cell: re.sub(r"^(-?\d+)\.\d+$", r"\1", cell) if cell else cell)),
    "DELETE forgets its condition": (lambda text: re.sub(r" WHERE .*$", "", text) if text.startswith("DELETE") else text, None),
    "UPDATE does nothing": (lambda text: "DO 0" if text.startswith("UPDATE") else text, None),
    "REPLACE is INSERT IGNORE": (without(r"^REPLACE", "INSERT IGNORE"), None),
}
# What is wrong within one server: found without an oracle. (In TLP and NoREC all statements go to the wrong server.)
PLANTS_ALONE = {
    "a condition that is unknown is true": (lambda text: re.sub(r" WHERE ((?:(?! IS NULL\)$).)*)$", r" WHERE COALESCE(\1, 1)", text)
                                            if text.count(" WHERE ") == 1 and "GROUP BY" not in text else text, None),
    "NOT forgets NULL": (without(r" WHERE \(NOT (.*)\)$", r" WHERE (COALESCE(\1, 0) = 0)"), None),
    "a filter loses a row": (None, lambda text, rows: rows[:-1] if re.search(r" (WHERE|HAVING) .*[^)]$|WHERE \(\(", text) and len(rows) > 1 else rows),
    "COUNT of a filter is one less": (None, lambda text, rows: [(str(int(rows[0][0]) - 1),)] if text.startswith("SELECT COUNT(*) FROM") and rows[0][0] != "0" else rows),
}


class Planted(Server):
    """A server whose answers are wrong on purpose."""

    def __init__(self, port, is_oracle, limit, plant):
        super().__init__(port, is_oracle, limit)
        self.rewrite, self.spoil, self.active = (*plant, True)

    def send(self, text):
        spared = ("SET ", "USE ", "CREATE ", "DROP ", "INSERT INTO t", "BEGIN", "ROLLBACK")
        self.asked = None if not self.active or text.startswith(spared) and " SELECT " not in text[:60] else text
        super().send(self.rewrite(text) if self.asked and self.rewrite else text)

    def answer(self):
        answer = super().answer()
        if self.asked and answer[0] == "rows" and self.spoil:
            return ("rows", self.spoil(self.asked, answer[1]))
        return answer


# Comparison.

def plain(cell):
    """A value of which equal ones are written alike: numbers without their scale, texts without case and trailing blanks."""
    if cell is None:
        return None
    if NUMBER.fullmatch(cell):
        value = float(cell)
        if abs(value) < 1e15 or "." in cell or "e" in cell:
            return "0" if abs(value) < 1e-12 else f"{value:.9g}"
        return cell
    return cell.rstrip().casefold()


def plain_rows(rows):
    return [tuple(map(plain, row)) for row in rows]


def key(row):
    return tuple((cell is not None, cell or "") for cell in row)


def close(one, two):
    """Rows that differ by rounding only."""
    for left, right in zip(one, two):
        if left != right:
            if left is None or right is None or not (NUMBER.fullmatch(left) and NUMBER.fullmatch(right)):
                return False
            left, right = float(left), float(right)
            if abs(left - right) > 1e-7 * max(1.0, abs(left), abs(right)):
                return False
    return True


def is_late(answer):
    """True if there is no answer in the time that a statement may take."""
    return answer[0] in ("lost", "timeout") or answer[:2] in (("error", 1969), ("error", 1317), ("error", 3024))


def compare(ours, theirs, ordered):
    """What differs: None, or a word; words in brackets are no wrong answers."""
    if ours[0] == "malformed":
        return ours[0]
    if ours[0] in ("lost", "timeout"):
        also = theirs[0] == "lost" or ours[0] == "timeout" and is_late(theirs)
        return "(no answer from the oracle, either)" if also else ours[0]
    if is_late(theirs):
        return "(no answer from the oracle)"
    if theirs[:2] == ("error", NOT_SUPPORTED):
        return "(the oracle refuses)"
    if theirs == ("count", 0) and ours == ("rows", []):
        # MySQL says so of a query that it knows to be empty.
        return None
    if "error" in (ours[0], theirs[0]):
        if ours[0] == theirs[0]:
            return None if ours[1] == theirs[1] else f"(number {ours[1]} for {theirs[1]})"
        if ours[0] == "error":
            return "(refused)" if ours[1] == NOT_SUPPORTED else f"error {ours[1]}"
        return f"no error {theirs[1]}"
    if ours[0] != theirs[0]:
        return "rows"
    if ours[0] == "count":
        return None if ours[1] == theirs[1] else "affected"
    if ours[1] == theirs[1] or not ordered and collections.Counter(ours[1]) == collections.Counter(theirs[1]):
        return None
    left, right = plain_rows(ours[1]), plain_rows(theirs[1])
    if len(left) != len(right):
        return "rows"
    if left and len(left[0]) != len(right[0]):
        return "columns"
    if not all(map(close, sorted(left, key=key), sorted(right, key=key))):
        return "rows"
    if ordered and not all(map(close, left, right)):
        return "order"
    if sorted(left, key=key) == sorted(right, key=key) and sorted(ours[1], key=key) != sorted(theirs[1], key=key):
        return "(format)" if not any(kind_of_double(a, b) for one, two in zip(ours[1], theirs[1]) for a, b in zip(one, two)) else None
    return None


def kind_of_double(one, two):
    """True for values that only differ in case or the last digits."""
    return one != two and one is not None and two is not None and (one.rstrip().casefold() == two.rstrip().casefold() or len(one) + len(two) > 30)


def tables_differ(ours, theirs):
    return any(compare(one, two, False) not in (None, "(format)") for one, two in zip(ours, theirs))


def any_null(answer):
    return answer[0] == "rows" and any(cell is None for row in answer[1] for cell in row)


AS_JUDGED = "(MySQL answers as LatsDB)"


class Pair:
    """The mode `oracle`: two servers; and a MySQL server that is asked where they differ."""

    def __init__(self, ours, theirs, judge=None):
        self.servers, self.judge, self.judged = (ours, theirs), judge, None

    def all(self):
        return (*self.servers, self.judge) if self.judge else self.servers

    def prepare(self, database, tables):
        self.database = database
        for server in self.all():
            server.use(database, tables)

    def fill(self, table):
        for server in self.all():
            server.fill(table)

    def answers(self, case, servers=None):
        text, servers = case.root.sql(), servers or self.servers
        if case.root.kind == "several":
            return ask_in_turn(servers, text.split(SEVERAL)), []
        if not case.changed:
            return ask_all(servers, text), []
        ask_all(servers, "BEGIN")
        answers = ask_all(servers, text)
        contents = [ask_all(servers, f"SELECT * FROM {name}") for name in case.changed]
        ask_all(servers, "ROLLBACK")
        return answers, [list(of_server) for of_server in zip(*contents)]

    def check(self, case):
        answers, contents = self.answers(case)
        found = compare(*answers, case.root.kind in ("select", "set") and is_ordered(case.root))
        case.returned = answers[0][0] == "count" and answers[0][1] > 0 or answers[0][0] == "rows" and bool(answers[0][1])
        case.has_null = any(any_null(answer) for answer in [answers[0], *(contents[0] if contents else ())])
        case.last = answers
        if found in (None, "affected") and tables_differ(*(contents or ([], []))):
            found = "tables"
        return self.judgement(case, answers[0], contents[0] if contents else [], found) if found else None

    def judgement(self, case, ours, content, found):
        """What differs, unless MySQL has given the same answer."""
        self.judged = None
        if self.judge is None or found.startswith("("):
            return found
        (theirs,), contents = self.answers(case, (self.judge,))
        if theirs[0] == "lost":
            # It has crashed, and may have forgotten everything.
            self.judge.use(self.database, case.tables)
        judged = compare(ours, theirs, case.root.kind in ("select", "set") and is_ordered(case.root))
        if judged in (None, "affected") and tables_differ(content, contents[0] if contents else []):
            judged = "tables"
        self.judged = judged
        return AS_JUDGED if judged in (None, "(format)") else found

    def describe(self, case):
        answers, contents = self.answers(case)
        lines = []
        for name, answer, content in zip(("LatsDB", "MariaDB"), answers, contents or ((), ())):
            lines += [f"{name}: {shown(answer)}"] + [f"{name}, {table}: {shown(rows)}" for table, rows in zip(case.changed, content)]
        return lines


class Alone:
    """The modes `tlp` and `norec`: one server that is asked in two ways."""

    def __init__(self, server):
        self.server = server

    def prepare(self, database, tables):
        self.server.use(database, tables)

    def fill(self, table):
        self.server.fill(table)

    def answers(self, case):
        one, others = case.root.extra(case.root)
        whole, parts = self.server.ask(one), [self.server.ask(text) for text in others]
        return (one, others), whole, parts

    def check(self, case):
        texts, whole, parts = self.answers(case)
        answers = [whole, *parts]
        case.returned, case.has_null = whole[0] == "rows" and bool(whole[1]), False
        case.last = answers
        for answer in answers:
            if answer[0] == "timeout":
                return "(timeout)"
            if answer[0] in ("lost", "malformed"):
                return answer[0]
        errors = [answer for answer in answers if answer[0] == "error"]
        if errors:
            # Which rows are computed may depend on the form of the statement.
            return "(refused)" if errors[0][1] == NOT_SUPPORTED else f"(error {errors[0][1]})"
        rows = [row for part in parts for row in part[1]]
        if case.root.kind == "tlp distinct":
            # Texts that are equal without case may come from several parts; bytes that differ in case count once here.
            rows, whole = list(set(plain_rows(rows))), ("rows", list(set(plain_rows(whole[1]))))
        found = compare(whole, ("rows", rows), False)
        return None if found == "(format)" else found

    def describe(self, case):
        (one, others), whole, parts = self.answers(case)
        return [f"{one};", f"  {shown(whole)}"] + [line for text, part in zip(others, parts) for line in (f"{text};", f"  {shown(part)}")]


class Variants:
    """The mode `rules`: LatsDB is asked in ways that must not matter, some of them for each statement."""

    def __init__(self, args):
        first = Server(args.port, False, args.limit)
        shown_rules = first.must("SELECT @@optimizer_switch")[1][0][0]
        rules = [rule.split("=")[0] for rule in shown_rules.split(",")]
        off = ",".join(f"{rule}=off" for rule in rules)
        switches = {"as it is": None, "all rules off": off, **{f"without {rule}": f"default,{rule}=off" for rule in rules},
                    **{f"{rule} alone": f"{off},{rule}=on" for rule in rules}}
        self.named = {name: Server(args.port, False, args.limit, switch) for name, switch in switches.items()}
        self.first, self.server = self.named["as it is"], self.named["as it is"]
        self.others = [name for name in self.named if name not in ("as it is", "all rules off")]
        self.asked = 0

    def prepare(self, database, tables):
        self.first.use(database, tables)
        for server in self.named.values():
            server.must(f"USE {database}")
            server.database = database

    def fill(self, table):
        self.first.fill(table)

    def ask(self, server, text, case):
        """The answer, and what is in the changed tables then."""
        if not case.changed:
            return server.ask(text), []
        server.ask("BEGIN")
        answer = server.ask(text)
        contents = [server.ask(f"SELECT * FROM {name}") for name in case.changed]
        server.ask("ROLLBACK")
        return answer, contents

    def prepared(self, text, case):
        """As a prepared statement, run twice: the second run has the plan of the first one."""
        quoted = text.replace("\\", "\\\\").replace("'", "''")
        answer = self.first.ask(f"PREPARE differ FROM '{quoted}'")
        if answer[0] == "error":
            return [(answer, [])]
        return [self.ask(self.first, "EXECUTE differ", case) for _ in range(2)]

    def answers(self, case):
        text = case.root.sql()
        yield "as it is", self.ask(self.first, text, case)
        yield "again", self.ask(self.first, text, case)
        yield "as a new text", self.ask(self.first, f"/* {self.asked} */ {text}", case)
        yield from zip(("prepared", "prepared, again"), self.prepared(text, case))
        yield "all rules off", self.ask(self.named["all rules off"], text, case)
        # A case keeps its variants while it is made smaller.
        if not hasattr(case, "variants"):
            self.asked += 1
            case.variants = [self.others[(self.asked * 4 + at) % len(self.others)] for at in range(4)]
        for name in case.variants:
            yield name, self.ask(self.named[name], text, case)

    def with_other_constants(self, case):
        """A plan that was made for other constants, or for names in another case, must not be used where it is wrong."""
        text = case.root.sql()
        for name, other in (("texts for numbers", re.sub(r"( (?:=|<>|<=|>=|<|>) )(-?\d+)(?=\))", r"\1'\2'", text)),
                            ("other case", re.sub(r"'[A-Za-z]+'", lambda found: found[0].swapcase(), text))):
            if other != text:
                answers = [self.ask(self.first, given, case) for given in (other, f"/* {self.asked} {name} */ {other}")]
                yield name, answers

    def of_other_constants(self, case, ordered):
        for name, ((one, ones), (two, twos)) in self.with_other_constants(case):
            found = compare(one, two, ordered)
            if found is None and any(compare(a, b, False) for a, b in zip(ones, twos)):
                found = "tables"
            if found and not found.startswith("("):
                return f"{found}, {name}"
        return None

    def check(self, case):
        one = None
        ordered = case.root.kind in ("select", "set") and is_ordered(case.root)
        for name, (answer, contents) in self.answers(case):
            if one is None:
                one = answer, contents
                case.returned = answer[0] == "count" and answer[1] > 0 or answer[0] == "rows" and bool(answer[1])
                case.has_null = any(map(any_null, [answer, *contents]))
                case.last = [answer]
                if answer[:2] == ("error", NOT_SUPPORTED):
                    return "(refused)"
            found = compare(answer, one[0], ordered)
            if any(given[0] == "timeout" or given[0] == "error" and given[1] in (*NEEDED_ONLY, NEEDS_MEMORY) for given in (answer, one[0])):
                found = found and f"({found.strip('()')})"
            if found is None and any(compare(a, b, False) for a, b in zip(contents, one[1])):
                found = "tables"
            if found:
                return found if found.startswith("(") else f"{found}, {name}"
        return self.of_other_constants(case, ordered)

    def describe(self, case):
        lines = []
        for name, (answer, contents) in self.answers(case):
            lines += [f"{name}: {shown(answer)}"] + [f"{name}, {table}: {shown(rows)}" for table, rows in zip(case.changed, contents)]
        return lines


class Viewed(Alone):
    """The mode `views`: one server; a query, its view, and the view that SHOW CREATE VIEW tells of."""

    def answers(self, case):
        text = case.root.sql()
        whole = self.server.ask(text)
        names = "(" + ", ".join(f"v{at}" for at in range(len(whole[1][0]))) + ")" if whole[0] == "rows" and whole[1] else ""
        made, views = f"CREATE VIEW asked {names} AS {text}", []
        for _ in range(2):
            self.server.ask("DROP VIEW IF EXISTS asked")
            answer = self.server.ask(made)
            if answer[0] == "count":
                answer = self.server.ask("SELECT * FROM asked")
                told = self.server.ask("SHOW CREATE VIEW asked")
                if told[0] != "rows":
                    answer = told
            views.append((made, answer))
            if answer[0] != "rows":
                break
            made = told[1][0][1]
        return (text, [one for one, _ in views]), whole, [answer for _, answer in views]

    def check(self, case):
        _, whole, views = self.answers(case)
        case.last, case.returned, case.has_null = [whole, *views], whole[0] == "rows" and bool(whole[1]), False
        for answer in case.last:
            if answer[0] == "timeout":
                return "(timeout)"
            if answer[0] in ("lost", "malformed"):
                return answer[0]
        if whole[0] == "error":
            return "(refused)" if whole[1] == NOT_SUPPORTED else f"(error {whole[1]})"
        for view in views:
            if view[0] == "error":
                # Names of columns that are the same are no fault.
                return "(same names)" if view[1] == 1060 else f"error {view[1]}"
            found = compare(whole, view, False)
            if found and found != "(format)":
                return found
        return None


def shown(answer, limit=12):
    if answer[0] == "rows":
        rows = sorted(answer[1], key=key) if len(answer[1]) > limit else answer[1]
        text = " ".join("(" + ", ".join("NULL" if cell is None else cell for cell in row) + ")" for row in rows[:limit])
        return f"{len(rows)} rows: {text}{' ...' if len(rows) > limit else ''}"
    return {"count": "ok, {} rows affected", "error": "error {1}", "lost": "the connection is lost: {}", "timeout": "no answer: {}", "malformed": "{}"}[answer[0]].format(*answer[1:])


def is_ordered(root):
    if not root.parts:
        return False
    last = root.parts[-1]
    return last.kind in ("order all", "ordered limit") and "ORDER BY" in last.sql()


def cells_of(coverage):
    """The cells of the coverage table that a statement is about, without NULLs."""
    return [(production, what) for production in coverage["productions"] for what in coverage["types"] | coverage["joins"]]


class Case:
    """A statement with its data, and what was wrong."""

    def __init__(self, place, tables, root, changed=()):
        self.place, self.tables, self.root, self.changed, self.kind = place, tables, root, changed, None
        self.returned = self.has_null = False
        self.last = None


# Statements of the modes without an oracle.

def tlp_where(root):
    items, from_, condition = root.parts
    start = f"SELECT {items.sql()} FROM {from_.sql()}"
    text = condition.sql()
    return start, [f"{start} WHERE {part}" for part in (f"({text})", f"(NOT ({text}))", f"(({text}) IS NULL)")]


def tlp_distinct(root):
    items, from_, condition = root.parts
    start = f"SELECT DISTINCT {items.sql()} FROM {from_.sql()}"
    text = condition.sql()
    return start, [f"{start} WHERE {part}" for part in (f"({text})", f"(NOT ({text}))", f"(({text}) IS NULL)")]


def tlp_having(root):
    items, from_, group, condition = root.parts
    start = f"SELECT {items.sql()} FROM {from_.sql()} GROUP BY {group.sql()}"
    text = condition.sql()
    return start, [f"{start} HAVING {part}" for part in (f"({text})", f"(NOT ({text}))", f"(({text}) IS NULL)")]


def tlp_aggregate(root):
    item, from_, condition = root.parts
    text = condition.sql()
    argument = item.sql()
    columns = f"COUNT(*) AS a, COUNT({argument}) AS b, SUM({argument}) AS c, MIN({argument}) AS d, MAX({argument}) AS e"
    start = f"SELECT {columns} FROM {from_.sql()}"
    parts = " UNION ALL ".join(f"{start} WHERE {part}" for part in (f"({text})", f"(NOT ({text}))", f"(({text}) IS NULL)"))
    return start, [f"SELECT SUM(a), SUM(b), SUM(c), MIN(d), MAX(e) FROM ({parts}) AS parts"]


def norec(root):
    from_, condition = root.parts
    text = condition.sql()
    return (f"SELECT COUNT(*) FROM {from_.sql()} WHERE {text}",
            [f"SELECT COALESCE(SUM(hit), 0) FROM (SELECT ({text}) IS TRUE AS hit FROM {from_.sql()}) AS all_rows"])


def make_alone(generator, mode):
    rng = generator.rng
    scope, from_ = generator.from_(None, rng.choice([1, 1, 2, 2, 3]), 2)
    condition = generator.predicate(scope, rng.choice([1, 2, 3]))
    if mode == "norec":
        root = Node("norec", "{} WHERE {}", [from_, condition], kind="norec")
        root.extra = norec
        return root
    kind = rng.choice(["where", "where", "distinct", "having", "aggregate"])
    generator.note(f"TLP {kind}")
    if kind == "aggregate":
        types = [column.type for column in scope.columns if column.type in "iud"]
        item = generator.expr(rng.choice(types), Scope(scope.columns), 1) if types else raw("1")
        root = Node("tlp", "{} FROM {} WHERE {}", [item, from_, condition], kind="tlp aggregate")
        root.extra = tlp_aggregate
    elif kind == "having":
        for _ in range(20):
            items, tail = generator.grouped([generator.any_type(scope) for _ in range(2)], scope, 1, False)
            if tail and tail[0].kind == "group" and len(tail) == 1:
                break
        else:
            return make_alone(generator, mode)
        group = tail[0].parts[0]
        having = Scope([column for column in scope.columns if column.node.sql() in {part.sql() for part in group.parts}], None, True)
        for letter in "iids":
            aggregate = generator.aggregate(letter, scope, 1)
            having.columns.append(type(scope.columns[0])(aggregate, letter) if scope.columns else None)
        condition = generator.predicate(having, rng.choice([1, 2]))
        root = Node("tlp", "{} FROM {} GROUP BY {} HAVING {}", [sequence(items), from_, group, condition], kind="tlp having")
        root.extra = tlp_having
    else:
        items = sequence([generator.expr(generator.any_type(scope), scope, 1) for _ in range(rng.randint(1, 3))])
        root = Node("tlp", "{} FROM {} WHERE {}", [items, from_, condition], kind=f"tlp {kind}")
        root.extra = tlp_where if kind == "where" else tlp_distinct
    return root


# Shrinking.

class Enough(Exception):
    """No more tests for this difference."""


class Shrinker:
    """Makes the statement and the data of a difference as small as they go."""

    def __init__(self, mode, case):
        self.mode, self.case = mode, case
        self.tests, self.end = 0, time.monotonic() + SHRINK_SECONDS

    def holds(self):
        self.tests += 1
        if self.tests > SHRINK_TESTS or time.monotonic() > self.end:
            raise Enough
        return self.mode.check(self.case) == self.case.kind

    def run(self):
        self.case.tables = copy.deepcopy(self.case.tables)
        self.mode.prepare(SHRINK_DATABASE, self.case.tables)
        if self.mode.check(self.case) != self.case.kind:
            return False
        try:
            self.statement()
            self.drop_tables()
            self.rows()
            self.statement()
            self.columns()
            self.rows()
            self.values()
            self.statement()
        except Enough:
            pass
        self.mode.prepare(SHRINK_DATABASE, self.case.tables)
        return self.mode.check(self.case) == self.case.kind

    def attempt(self, change, undo):
        """True if the difference stays; else all is as before."""
        before = len(self.case.root.sql())
        change()
        try:
            if len(self.case.root.sql()) < before and self.holds():
                return True
        except (IndexError, KeyError):
            pass
        except Enough:
            undo()
            raise
        undo()
        return False

    def replaced(self, parent, at, new):
        old = parent.parts[at]

        def put(node):
            parent.parts[at] = node
        return self.attempt(lambda: put(new), lambda: put(old))

    def statement(self):
        progress = True
        while progress:
            progress = self.whole() or self.below(self.case.root)

    def whole(self):
        """A part of a query in the place of the statement."""
        root = self.case.root
        if root.category != "query":
            return False
        for node in list(root.walk()):
            if node is not root and node.category == "query":
                if self.attempt(lambda n=node: setattr(self.case, "root", n), lambda: setattr(self.case, "root", root)):
                    return True
        return False

    def below(self, parent):
        if parent.kind in ("order all", "window order"):
            return False
        progress = False
        if parent.kind == "set":
            progress |= self.set_columns(parent)
        if parent.separator is not None:
            at = 0
            while at < len(parent.parts) and len(parent.parts) > parent.minimum:
                old = parent.parts[:]
                if self.attempt(lambda i=at: parent.parts.pop(i), lambda o=old: setattr(parent, "parts", o)):
                    progress = True
                else:
                    at += 1
        for at in range(len(parent.parts)):
            progress |= self.part(parent, at)
            if at < len(parent.parts):
                progress |= self.below(parent.parts[at])
        return progress

    def part(self, parent, at):
        node = parent.parts[at]
        if node.optional and node.sql() and self.replaced(parent, at, empty()):
            return True
        if node.kind == "join":
            for word in ("LEFT ", "RIGHT ", "NATURAL "):
                if word in node.text:
                    old = node.text
                    if self.attempt(lambda w=word: setattr(node, "text", old.replace(w, "")), lambda: setattr(node, "text", old)):
                        return True
        if node.category == "expr":
            constants = {"s": ("NULL", "'a'"), "x": ("NULL", "'a'"), "D": ("NULL", "DATE '2020-01-01'"), "T": ("NULL", "TIMESTAMP '2020-01-01 00:00:00'"),
                         "M": ("NULL", "TIME '00:00:00'")}.get(node.type, ("1", "NULL", "0"))
            for text in () if parent.category == "key" else constants:
                if self.replaced(parent, at, raw(text, type_=node.type)):
                    return True
        if node.category in ("expr", "query", "from"):
            below = [other for other in node.walk() if other is not node and other.category == node.category]
            for other in sorted(below, key=lambda n: len(n.sql()))[:14]:
                if self.replaced(parent, at, other):
                    return True
        return False

    def set_columns(self, node):
        """The same column of all parts of a UNION."""
        lists = []

        def collect(query):
            if query.kind == "set":
                collect(query.parts[0])
                collect(query.parts[1])
            elif query.kind == "select":
                found = next((part for part in query.parts if part.separator == ", "), None)
                lists.append(found)
        collect(node)
        if not lists or any(one is None or len(one.parts) != len(lists[0].parts) for one in lists) or len({id(one) for one in lists}) < len(lists):
            return False
        orders = [other.extra for other in node.walk() if other.kind == "order all" and all(other.extra is not one for one in lists)]
        progress, at = False, 0
        while at < len(lists[0].parts) > 1:
            every = lists + [one for one in orders if len(one.parts) == len(lists[0].parts)]
            old = [one.parts[:] for one in every]

            def drop(i=at, every=every):
                for one in every:
                    one.parts.pop(i)

            def back(every=every, old=old):
                for one, parts in zip(every, old):
                    one.parts = parts
            if self.attempt(drop, back):
                progress = True
            else:
                at += 1
        return progress

    def data(self, table, change):
        """True if the difference stays with a changed table."""
        old = copy.copy(table.rows), copy.copy(table.columns), copy.copy(table.indexes)
        change()
        shape = old[1] != table.columns or old[2] != table.indexes
        try:
            self.load(table, shape)
            if self.holds():
                return True
        except RuntimeError:
            pass
        except Enough:
            table.rows, table.columns, table.indexes = old
            raise
        table.rows, table.columns, table.indexes = old
        self.load(table, shape)
        return False

    def load(self, table, shape):
        for server in getattr(self.mode, "servers", None) or (self.mode.server,):
            if shape:
                server.must(f"DROP TABLE IF EXISTS {table.name}")
                server.must(table.create(server.is_oracle))
            server.fill(table)

    def drop_tables(self):
        text = self.case.root.sql()
        self.case.tables = [table for table in self.case.tables if re.search(rf"\b{table.name}\b", text)]

    def rows(self):
        for table in self.case.tables:
            size = len(table.rows)
            while size >= 1 and table.rows:
                at = 0
                while at < len(table.rows):
                    rest = table.rows[:at] + table.rows[at + size:]
                    if not self.data(table, lambda t=table, r=rest: setattr(t, "rows", r)):
                        at += size
                size //= 2

    def columns(self):
        for table in self.case.tables:
            for index in list(table.indexes):
                self.data(table, lambda t=table, i=index: t.indexes.remove(i))
            for column in list(table.columns):
                if column[0] in table.key or any(column[0] in index[2] for index in table.indexes):
                    continue
                at = table.columns.index(column)

                def drop(t=table, i=at):
                    t.columns = t.columns[:i] + t.columns[i + 1:]
                    t.rows = [row[:i] + row[i + 1:] for row in t.rows]
                self.data(table, drop)

    def values(self):
        for table in self.case.tables:
            if sum(map(len, table.rows)) > 40:
                continue
            for row_at in range(len(table.rows)):
                for at in range(len(table.columns)):
                    for simple in ("0", "1", "NULL"):
                        old = table.rows[row_at]
                        if old[at] in ("0", "NULL") or old[at] == simple:
                            break
                        new = old[:at] + [simple] + old[at + 1:]
                        if self.data(table, lambda t=table, r=row_at, n=new: setattr(t, "rows", t.rows[:r] + [n] + t.rows[r + 1:])):
                            break


def skeleton(case):
    """Differences that are alike have the same one."""
    text = re.sub(r"'[^']*'|\b\d+(\.\d+)?\b", "?", case.root.sql())
    text = re.sub(r"\b[rgwz]\d*\.\w+|\bt\d\.\w+|\b[rgwzt]\d+\b", "n", text)
    return f"{case.kind}: {text}"


# The run.

class Allowed:
    """Lines `KIND | STATEMENT | REASON`, with regular expressions."""

    def __init__(self, file):
        self.entries = []
        if file and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                if line and not line.startswith("#"):
                    kind, statement, reason = line.split(" | ", 2)
                    self.entries.append((re.compile(kind), re.compile(statement), reason))
        if len(self.entries) > ALLOWED_MAX:
            raise SystemExit(f"differ: {len(self.entries)} lines in {file}; at most {ALLOWED_MAX}")

    def reason(self, kind, text):
        return next((reason for k, s, reason in self.entries if k.fullmatch(kind) and s.search(text)), None)


class Run:
    """Schemas and statements, their differences and their coverage."""

    def __init__(self, args, mode):
        self.args, self.mode, self.planted = args, mode, None
        # What an oracle answers otherwise excuses nothing within LatsDB.
        self.allowed = Allowed(args.allow or (ALLOWED[args.oracle] if args.mode == "oracle" or args.plant else None))
        self.allowed_judge = Allowed(ALLOWED["mysql"])
        self.outcomes, self.soft, self.refusals, self.excused = (collections.Counter() for _ in range(4))
        self.first_soft, self.found, self.skeletons = {}, [], {}
        self.coverage = collections.defaultdict(collections.Counter)
        self.statements = self.returned = self.cells = 0
        self.seen = set()

    def run(self, stop_at_first=False):
        args, begun = self.args, time.monotonic()
        only = tuple(map(int, (args.only + "/0").split("/")[:3])) if args.only else None
        schema = only[0] if only else 0
        while True:
            rng = random.Random(f"{args.seed}/{schema}")
            tables = make_schema(rng)
            self.mode.prepare(DATABASE, tables)
            for number in [only[1]] if only else range(STATEMENTS_PER_SCHEMA):
                if not only and (self.statements >= args.statements if args.minutes is None else time.monotonic() > begun + 60 * args.minutes):
                    return
                self.one(tables, schema, number, only[2] if only else None)
                if stop_at_first and self.found:
                    return
            if only:
                return
            schema += 1

    def choose(self, tables, schema, number):
        """A statement; at times one of several, that fills empty cells of the coverage table."""
        first = None
        for candidate in range(CANDIDATES if number % 3 == 0 else 1):
            found = self.make(tables, schema, number, candidate)
            first = first or found
            if any((production, what, null) not in self.seen for production, what in cells_of(found[1]) for null in ("NULL", "no NULL")):
                return found
        return first

    def make(self, tables, schema, number, candidate):
        lateral = self.args.mode != "oracle" or self.args.oracle == "mysql"
        name = f"{self.args.seed}/{schema}/{number}" + (f"/{candidate}" if candidate else "")
        generator = Generator(random.Random(name), tables, lateral, rounds=self.args.oracle == "mysql")
        generator.representatives, generator.several = self.args.mode == "rules", self.args.mode == "oracle"
        if self.args.mode in ("tlp", "norec"):
            root, changed = make_alone(generator, self.args.mode), ()
        elif self.args.mode != "views" and generator.chance(self.args.changes):
            root, changed = generator.change()
        else:
            root, changed = generator.select(), ()
        place = f"{schema}/{number}" + (f"/{candidate}" if candidate else "")
        return Case(place, tables, root, changed), generator.coverage()

    def one(self, tables, schema, number, candidate):
        case, coverage = self.choose(tables, schema, number) if candidate is None else self.make(tables, schema, number, candidate)
        text = case.root.sql()
        if self.args.verbose:
            print(f"-- {case.place}\n{text};", flush=True)
        found = self.mode.check(case)
        if any(answer[0] == "lost" for answer in case.last or ()):
            # A server that has crashed may have forgotten something, in a transaction or out of it.
            self.mode.prepare(DATABASE, tables)
        self.statements += 1
        self.returned += case.returned
        self.cover(case, coverage)
        if found == "(refused)":
            answer = next(answer for answer in case.last if answer[0] == "error")
            self.refusals[answer[2]] += 1
        if case.last and len(case.last) == 2 and case.last[1][0] == "error":
            self.outcomes["the oracle gives an error"] += 1
        if found is None:
            return
        if found.startswith("("):
            self.soft[found] += 1
            self.first_soft.setdefault(found, (case.place, text))
            if found != "(format)" or not self.args.formats:
                return
        reason = self.allowed.reason(found, text) or self.of_judge(text)
        if reason:
            self.excused[reason] += 1
            return
        if self.planted:
            # What is wrong without the planted answer, too, is not its merit.
            self.planted.active = False
            same = self.mode.check(case)
            self.planted.active = True
            if same:
                return
        self.outcomes[found] += 1
        case.kind = found
        if self.args.shrink and "error" in found and sum(other.kind == found for other in self.found) >= 4:
            return
        if self.args.shrink and len(self.found) < self.args.most:
            self.shrink(case)
        else:
            self.found.append(case)
            print(f"-- difference: {found}, --seed {self.args.seed} --only {case.place}\n{text};", flush=True)

    def of_judge(self, text):
        """Why MySQL answers as the oracle does, and not as its manual says."""
        judged = getattr(self.mode, "judged", None)
        return self.allowed_judge.reason(judged, text) if judged else None

    def shrink(self, case):
        steady = Shrinker(self.mode, case).run()
        reason = self.allowed.reason(case.kind, case.root.sql()) or self.of_judge(case.root.sql())
        name = skeleton(case)
        self.skeletons[name] = self.skeletons.get(name, 0) + 1
        if reason or not steady:
            self.excused[reason or "does not come again"] += 1
            if not steady:
                print(f"-- does not come again: {case.kind}, --seed {self.args.seed} --only {case.place}\n{case.root.sql()};", flush=True)
        elif self.skeletons[name] == 1:
            self.found.append(case)
            lines = self.file(case)
            print("\n".join(lines), flush=True)
            if self.args.out:
                self.args.out.mkdir(parents=True, exist_ok=True)
                word = re.sub(r"\W+", "_", f"{case.kind}_{self.args.mode}_{self.args.seed}_{case.place}")
                (self.args.out / f"{word}.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for server in servers_of(self.mode):
            server.must(f"USE {DATABASE}")
            server.database = DATABASE

    def file(self, case):
        lines = [f"-- {case.kind}: differ.py --mode {self.args.mode} --seed {self.args.seed} --only {case.place}"]
        for table in case.tables:
            lines.append(f"{table.create(False)};")
            if table.rows:
                lines.append(f"{table.insert()};")
        if self.args.mode in ("oracle", "rules"):
            lines.append(f"{case.root.sql()};")
        return lines + [f"-- {line}" if self.args.mode in ("oracle", "rules") or line.startswith("  ") else line for line in self.mode.describe(case)]

    def cover(self, case, coverage):
        null = "NULL" if case.has_null else "no NULL"
        for production in coverage["productions"]:
            row = self.coverage[production]
            row["all"] += 1
            row[null] += 1
        for production, what in cells_of(coverage):
            self.coverage[production][what] += 1
            self.seen.add((production, what, null))

    def report(self):
        types, joins = list("iudfsxDTM"), sorted({j for row in self.coverage.values() for j in row if j not in "iudfsxDTM" and j not in ("all", "NULL", "no NULL")})
        head = ["production", "all", "NULL", "no NULL", *types, *joins]
        rows = [[name] + [str(row[column]) for column in head[1:]] for name, row in sorted(self.coverage.items())]
        names = {"i": "int", "u": "uns", "d": "dec", "f": "dbl", "s": "text", "x": "bin", "D": "date", "T": "dtime", "M": "time", "no NULL": "none"}
        short = {"CROSS JOIN": "CROSS", "STRAIGHT_JOIN": "STRAIGHT", "LEFT JOIN": "LEFT", "RIGHT JOIN": "RIGHT", "LEFT USING": "L USING",
                 "RIGHT USING": "R USING", "NATURAL": "NAT", "NATURAL LEFT": "NAT L", "NATURAL RIGHT": "NAT R"}
        titles = [names.get(column, short.get(column, column)) for column in head]
        widths = [max(len(titles[at]), *(len(row[at]) for row in rows)) for at in range(len(head))] if rows else []
        if self.args.coverage:
            for row in [titles, *rows]:
                print(row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:])), sep="  ")
        cells = {(name, what, null) for name in self.coverage for what in types + joins for null in ("NULL", "no NULL")
                 if (name, what) not in IMPOSSIBLE}
        empty_cells = sorted(cells - self.seen)
        if self.args.coverage and empty_cells:
            print("empty:", "; ".join(" / ".join(cell) for cell in empty_cells[:200]))
        refused = self.soft["(refused)"]
        print(f"differ: seed {self.args.seed}, mode {self.args.mode}: {self.statements} statements, "
              f"{100 * self.returned / max(self.statements, 1):.1f} % gave rows, {100 * (1 - refused / max(self.statements, 1)):.1f} % were not refused, "
              f"{len(cells) - len(empty_cells)} of {len(cells)} cells of the coverage table")
        for what, count in self.refusals.most_common(12):
            print(f"  refused {count}: {what[:150]}")
        for what, count in self.soft.most_common():
            print(f"  {what} {count}, e.g. --only {self.first_soft[what][0]}: {self.first_soft[what][1][:250]}")
        for what, count in self.excused.most_common():
            print(f"  allowed {count}: {what}")
        for what, count in self.outcomes.most_common():
            print(f"  {what}: {count}")
        print(f"differ: {len(self.found)} differences", flush=True)
        if self.args.csv:
            self.record(100 * self.returned / max(self.statements, 1), 100 * (1 - refused / max(self.statements, 1)), len(empty_cells))

    def record(self, returned, taken, empty_cells):
        """A line of docs/differ.csv."""
        asked = self.args.mode if self.args.mode != "oracle" else self.args.oracle + (" and mysql" if self.args.judge_port else "")
        fields = [time.strftime("%Y-%m-%d", time.gmtime()), self.args.commit, asked, self.args.seed, self.statements, f"{returned:.1f}",
                  f"{taken:.1f}", empty_cells, sum(self.excused.values()), len(self.found)]
        with open(self.args.csv, "a", encoding="utf-8") as file:
            file.write(",".join(map(str, fields)) + "\n")


def servers_of(mode):
    return mode.all() if isinstance(mode, Pair) else (mode.server,)


def cases(args):
    """Findings of earlier runs: all statements of all files. A file whose first line begins with `-- Open` may still differ."""
    servers = [Server(args.port, False, args.limit), Server(args.oracle_port, args.oracle, args.limit)]
    wrong = 0
    for file in sorted(CASES.glob("*.sql")):
        text = file.read_text(encoding="utf-8")
        for server in servers:
            server.use(DATABASE, [])
        lines = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        differences = []
        for statement in filter(None, (part.strip() for part in lines.split(";\n"))):
            statement = statement.rstrip(";")
            if statement.startswith("CREATE TABLE") and args.oracle == "mariadb":
                statement = statement.replace(*COLLATIONS[0])
            answers = [server.ask(statement) for server in servers]
            found = compare(*answers, False)
            if found and not found.startswith("("):
                differences.append(f"{found}: {statement};\n  LatsDB {shown(answers[0])}\n  {args.oracle} {shown(answers[1])}")
        is_open = text.startswith("-- Open")
        print(f"{file.name}: {'different' if differences else 'the same'}{', open' if is_open else ''}", *differences, sep="\n", flush=True)
        wrong += bool(differences) and not is_open
        for server in servers:
            if server.connection:
                server.connection.close()
            server.connection, server.database = None, None
    for server in servers:
        server.ask(f"DROP DATABASE IF EXISTS {DATABASE}")
    return 1 if wrong else 0


def plant(args):
    """Each planted wrong answer must be found; without one there must be no difference."""
    missed = []
    for mode, plants in [("oracle", PLANTS), ("tlp", PLANTS_ALONE), ("norec", {"COUNT of a filter is one less": PLANTS_ALONE["COUNT of a filter is one less"]})]:
        args.mode, args.shrink = mode, False
        for name, what in [("nothing", (None, None)), *plants.items()]:
            if mode == "tlp" and name.startswith("COUNT"):
                continue
            ours = Planted(args.oracle_port, args.oracle, args.limit, what)
            run = Run(args, Pair(ours, Server(args.oracle_port, args.oracle, args.limit)) if mode == "oracle" else Alone(ours))
            run.planted = ours
            output, sys.stdout = sys.stdout, open("/dev/null", "w", encoding="utf-8")
            try:
                run.run(stop_at_first=name != "nothing")
            finally:
                sys.stdout.close()
                sys.stdout = output
            right = bool(run.found) == (name != "nothing")
            print(f"{'found' if run.found else 'not found'} after {run.statements} statements: {mode}: {name}", flush=True)
            if not right:
                missed.append(f"{mode}: {name}")
    print(f"differ: missed: {missed}" if missed else "differ: all planted wrong answers are found", flush=True)
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, help="LatsDB")
    parser.add_argument("--oracle-port", type=int, help="MariaDB")
    parser.add_argument("--oracle", choices=["mariadb", "mysql"], default="mariadb", help="what answers at --oracle-port")
    parser.add_argument("--judge-port", type=int, help="a MySQL server: what it answers as LatsDB does is no difference from MariaDB")
    parser.add_argument("--csv", type=pathlib.Path, metavar="FILE", help="add a line of figures to this file (docs/differ.csv)")
    parser.add_argument("--commit", default="", help="which commit the server is made from, for --csv")
    parser.add_argument("--mode", choices=["oracle", "tlp", "norec", "rules", "views"], default="oracle")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--statements", type=int, default=5000)
    parser.add_argument("--minutes", type=float, help="instead of a number of statements")
    parser.add_argument("--changes", type=float, default=0.25, help="share of statements that change rows")
    parser.add_argument("--only", metavar="SCHEMA/STATEMENT", help="one statement")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--most", type=int, default=60, help="differences that are made small")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--allow", type=pathlib.Path)
    parser.add_argument("--formats", action="store_true", help="numbers with another scale are differences, too")
    parser.add_argument("--coverage", action="store_true", help="print the coverage table")
    parser.add_argument("--limit", type=float, default=15, help="seconds for each statement")
    parser.add_argument("--verbose", action="store_true", help="print each statement")
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--cases", action="store_true", help="what was found before")
    args = parser.parse_args()
    args.seed = random.SystemRandom().randrange(1 << 31) if args.seed is None else args.seed
    if args.plant:
        return plant(args)
    if args.cases:
        return cases(args)
    ours = Server(args.port, False, args.limit)
    if args.mode == "oracle":
        judge = Server(args.judge_port, "mysql", args.limit) if args.judge_port else None
        mode = Pair(ours, Server(args.oracle_port, args.oracle, args.limit), judge)
    else:
        mode = Variants(args) if args.mode == "rules" else Viewed(ours) if args.mode == "views" else Alone(ours)
    run = Run(args, mode)
    print(f"differ: --seed {args.seed}", flush=True)
    lost = None
    try:
        run.run()
    except (RuntimeError, ConnectionError) as error:
        # What was asked until then counts.
        lost = error
        print(f"differ: ended early: {error}", flush=True)
    for server in servers_of(run.mode):
        server.ask(f"DROP DATABASE IF EXISTS {DATABASE}")
        server.ask(f"DROP DATABASE IF EXISTS {SHRINK_DATABASE}")
    run.report()
    return 1 if run.found or lost or not run.statements else 0


if __name__ == "__main__":
    sys.exit(main())
