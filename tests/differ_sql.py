"""What differ.py asks: schemas, skewed rows and statements, made from a seed as trees that can be made smaller.

A statement is a tree of `Node`. Each node has a category ('expr', 'query', 'from', 'list', 'clause', ...): a shrinker may put a
descendant of the same category into its place, leave optional nodes out, and take elements from lists. Whether the smaller
statement makes sense is for the servers to say: what both refuse is no difference.

Statements have one possible answer: LIMIT has a total order, windows whose functions see the order of rows too.
"""

import copy
import random

# Types: i signed, u unsigned, d decimal, f double, s text, x bytes, D date, T datetime, M time.
COLUMN_TYPES = {
    "INT": "i", "BIGINT": "i", "TINYINT": "i", "INT UNSIGNED": "u", "BIGINT UNSIGNED": "u", "DECIMAL(8,2)": "d", "DECIMAL(12,4)": "d",
    "DOUBLE": "f", "VARCHAR(20)": "s", "CHAR(6)": "s", "VARCHAR(20) COLLATE utf8mb4_bin": "s", "VARBINARY(8)": "x", "DATE": "D", "DATETIME": "T", "TIME": "M",
}
TYPE_WEIGHTS = {
    "INT": 9, "BIGINT": 3, "TINYINT": 3, "INT UNSIGNED": 3, "BIGINT UNSIGNED": 1, "DECIMAL(8,2)": 3, "DECIMAL(12,4)": 1, "DOUBLE": 3,
    "VARCHAR(20)": 7, "CHAR(6)": 2, "VARCHAR(20) COLLATE utf8mb4_bin": 1, "VARBINARY(8)": 2, "DATE": 3, "DATETIME": 3, "TIME": 2,
}
TYPE_NAMES = {"i": "int", "u": "unsigned", "d": "decimal", "f": "double", "s": "text", "x": "bytes", "D": "date", "T": "datetime", "M": "time"}
NUMERIC = "iudf"
DOMAINS = {
    "i": ["0", "1", "2", "3", "-1", "5", "7", "10", "100", "-7"],
    "u": ["0", "1", "2", "3", "5", "7", "10", "100"],
    "d": ["0.00", "1.00", "1.50", "2.25", "-1.50", "-2.25", "10.00", "0.05", "99.99", "3.00"],
    "f": ["0", "-0e0", "1", "0.5", "2.25", "-1.5", "10", "1e3", "3"],
    "s": ["'a'", "'A'", "'b'", "'ab'", "''", "'abc'", "'x y'", "'1'", "'10'", "'zz'", "'a%'", "'B'", "'Ab'", "'AB'"],
    "x": ["'a'", "'b'", "'A'", "'ab'", "''", "'zz'"],
    "D": ["'2020-01-01'", "'2020-02-29'", "'2021-03-31'", "'1999-12-31'", "'2020-12-31'", "'2018-12-31'"],
    "T": ["'2020-01-01 00:00:00'", "'2020-02-29 12:30:45'", "'2021-03-31 23:59:59'", "'1999-12-31 23:59:59'", "'2020-01-01 08:00:00'", "'2020-02-01 07:00:00'", "'2018-12-31 12:00:00'"],
    "M": ["'00:00:00'", "'12:30:45'", "'-01:00:00'", "'23:59:59'", "'100:00:00'"],
}
CAST_LITERAL = {"D": "DATE {}", "T": "TIMESTAMP {}", "M": "TIME {}"}
# Name on LatsDB, name on MariaDB.
COLLATIONS = [("utf8mb4_0900_ai_ci", "utf8mb4_uca1400_nopad_ai_ci"), ("utf8mb4_bin", "utf8mb4_bin"), ("utf8mb4_general_ci", "utf8mb4_general_ci")]


# Between statements that are asked one after the other.
SEVERAL = ";\n"


class Node:
    """A part of a statement. `text` has one {} for each part; a list has a separator instead."""

    __slots__ = ("category", "kind", "type", "text", "parts", "separator", "minimum", "optional", "extra")

    def __init__(self, category, text, parts=(), kind="", type_=None, separator=None, minimum=1, optional=False):
        self.category, self.text, self.parts, self.kind, self.type = category, text, list(parts), kind, type_
        self.separator, self.minimum, self.optional, self.extra = separator, minimum, optional, None

    def sql(self):
        if self.kind == "order all":
            count = len(self.extra.parts)
            return self.text.format(", ".join(f"{at + 1}{d}" for at, d in zip(range(count), self.parts)))
        if self.kind == "window order":
            names = [name for from_ in self.extra.parts for factor in factors(from_) for name in factor.extra]
            return self.text.format(", ".join(name + self.separator for name in names) or "1")
        texts = [part.sql() for part in self.parts]
        return self.separator.join(texts) if self.separator is not None else self.text.format(*texts)

    def __deepcopy__(self, memo):
        out = memo[id(self)] = Node.__new__(Node)
        out.category, out.text, out.kind, out.type = self.category, self.text, self.kind, self.type
        out.separator, out.minimum, out.optional = self.separator, self.minimum, self.optional
        out.parts = [memo.get(id(part)) or part.__deepcopy__(memo) if isinstance(part, Node) else part for part in self.parts]
        out.extra = None if self.extra is None else copy.deepcopy(self.extra, memo)
        return out

    def walk(self):
        yield self
        if self.kind != "order all":
            for part in self.parts:
                yield from part.walk()


def factors(node):
    """The tables and derived tables of a FROM clause."""
    if node.kind in ("table", "derived"):
        return [node]
    return [factor for part in node.parts if part.category == "from" for factor in factors(part)]


def with_columns(node, columns):
    node.extra = [column.node.text for column in columns]
    return node


def raw(text, category="expr", type_=None, kind=""):
    return Node(category, text, kind=kind, type_=type_)


def empty():
    return Node("empty", "")


def clause(text, *parts, kind=""):
    return Node("clause", text, parts, kind=kind, optional=True)


def sequence(parts, minimum=1, separator=", "):
    return Node("list", None, parts, separator=separator, minimum=minimum)


class Col:
    """A column that an expression may name."""

    __slots__ = ("node", "type", "nullable", "unique")

    def __init__(self, node, type_, nullable=True):
        self.node, self.type, self.nullable = (raw(node) if isinstance(node, str) else node), type_, nullable

    def ref(self):
        return copy.deepcopy(self.node)


class Table:
    def __init__(self, name, columns, key, indexes, collation):
        self.name, self.columns, self.key, self.indexes, self.collation = name, columns, key, indexes, collation
        self.rows = []

    def create(self, oracle):
        parts = [f"{name} {kind}{'' if nullable else ' NOT NULL'}" for name, kind, nullable in self.columns]
        parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        parts += [f"{'UNIQUE ' if unique else ''}KEY {name} ({', '.join(columns)})" for name, unique, columns in self.indexes]
        collation = self.collation[1 if oracle else 0]
        return f"CREATE TABLE {self.name} ({', '.join(parts)}) DEFAULT CHARACTER SET utf8mb4 COLLATE {collation}"

    def insert(self, rows=None):
        rows = self.rows if rows is None else rows
        if not rows:
            return None
        return f"INSERT INTO {self.name} VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)


def weighted(rng, table):
    return rng.choices(list(table), list(table.values()))[0]


def skewed(rng, values):
    """Small places are much more frequent than large ones."""
    return values[min(int(rng.expovariate(0.45)), len(values) - 1)]


def make_schema(rng):
    """Three to six tables, which share some names and have the same small domains."""
    collation = rng.choices(COLLATIONS, [3, 2, 1])[0]
    shared = {"a": "INT", "b": rng.choice(["VARCHAR(20)", "INT", "DATE"]), "c": weighted(rng, TYPE_WEIGHTS)}
    domains = {}
    for letter, values in DOMAINS.items():
        values = values[:]
        rng.shuffle(values)
        domains[letter] = values
    tables = []
    for at in range(rng.randint(3, 6)):
        two = rng.random() < 0.35
        columns = [("id", "INT", False)] + ([("k", rng.choice(["INT", "VARCHAR(20)", "DATE"]), False)] if two else [])
        for name, kind in shared.items():
            if rng.random() < 0.75:
                columns.append((name, kind, rng.random() < 0.85))
        for number in range(rng.randint(1, 4)):
            columns.append((f"c{at}{number}", weighted(rng, TYPE_WEIGHTS), rng.random() < 0.85))
        key = ["id", "k"] if two else ["id"]
        indexes, others = [], [name for name, _, _ in columns[len(key):]]
        for number in range(rng.choice([0, 0, 1, 1, 2, 3])):
            chosen = rng.sample(others, min(len(others), rng.choice([1, 1, 2, 3])))
            indexes.append((f"i{number}", rng.random() < 0.25, chosen))
        table = Table(f"t{at}", columns, key, indexes, collation)
        count = rng.choice([0, 1, 3, 5, 8, 12, 12, 16, 20, 30, 40, 60])
        nulls = rng.choice([0, 0.1, 0.25, 0.5])
        seen = [set() for _ in range(len(indexes) + 1)]
        for number in range(count):
            row = []
            for name, kind, nullable in columns:
                letter = COLUMN_TYPES[kind]
                if name == "id":
                    row.append(str(number + 1 if not two else rng.randint(1, 1 + count // 3)))
                elif nullable and rng.random() < nulls:
                    row.append("NULL")
                else:
                    row.append(skewed(rng, domains[letter]))
            keys = [key] + [chosen if unique else None for _, unique, chosen in indexes]
            values = dict(zip([column[0] for column in columns], row))
            # Keys are unique also where texts are compared without case; both zeros are one.
            marks = [None if names is None else tuple(values[name].lower().replace("-0e0", "0") for name in names) for names in keys]
            if any(mark is not None and mark in had and "null" not in mark for mark, had in zip(marks, seen)):
                continue
            for mark, had in zip(marks, seen):
                had.add(mark)
            table.rows.append(row)
        tables.append(table)
    return tables


class Scope:
    def __init__(self, columns, parent=None, grouped=False):
        self.columns, self.parent, self.grouped = columns, parent, grouped


class Generator:
    """Makes statements for a schema."""

    def __init__(self, rng, tables, lateral=False, rounds=False):
        """With `rounds`, quotients have four digits: some servers keep more of them until they are shown."""
        self.rng, self.tables, self.lateral, self.rounds = rng, tables, lateral, rounds
        self.features, self.types, self.joins = set(), set(), set()
        self.names, self.size, self.ctes = 0, 0, []
        # MariaDB knows neither GROUPING nor the defaults of LAG and LEAD.
        self.defaults, self.has_rows = rounds, False
        # Which of the texts of a group that are equal but for case is shown is each server's own affair.
        self.representatives, self.several = False, False
        # Whether a text that is no number is compared with one, which is an error in a change, depends on the plan.
        self.mixes = True
        self.connection_texts = tables[0].collation == COLLATIONS[0]

    def chance(self, probability):
        return self.rng.random() < probability

    def pick(self, table):
        return weighted(self.rng, table)

    def note(self, feature):
        self.features.add(feature)

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    # Expressions.

    def literal(self, type_):
        if self.chance(0.04):
            self.note("NULL literal")
            return raw("NULL", type_=type_)
        value = skewed(self.rng, DOMAINS[type_])
        return raw(CAST_LITERAL.get(type_, "{}").format(value), type_=type_)

    def column(self, type_, scope):
        """A column of this type, of an outer query at times."""
        if scope.parent and self.chance(0.3):
            # Of an outer query with groups, only its plain keys have one value, and aggregates may belong to either query.
            outer = scope.parent
            if outer.grouped:
                outer = Scope([column for column in outer.columns if column.node.kind != "aggregate" and not column.node.parts], outer.parent, True)
            found = self.column(type_, outer)
            if found:
                self.note("correlated" if not scope.parent.parent else "correlated, two levels")
                return found
        fitting = [column for column in scope.columns if column.type == type_]
        if not fitting and type_ in NUMERIC:
            fitting = [column for column in scope.columns if column.type in NUMERIC and (type_ != "u" or column.type == "u")]
        if not fitting:
            return None
        column = self.rng.choice(fitting)
        self.types.add(column.type)
        return column.ref()

    def atom(self, type_, scope):
        node = self.column(type_, scope) if self.chance(0.85) else None
        return node or self.literal(type_)

    def any_type(self, scope, allowed="iudfsxDTM"):
        types = [column.type for column in scope.columns if column.type in allowed]
        return self.rng.choice(types) if types and self.chance(0.9) else self.rng.choice([t for t in "iidfsDT" if t in allowed] or [allowed[0]])

    def expr(self, type_, scope, depth):
        if depth <= 0 or self.chance(0.35):
            return self.atom(type_, scope)
        if self.chance(0.10) and self.size < 5:
            self.note("scalar subquery")
            return Node("expr", "{}", [self.scalar(type_, scope, depth - 1)], type_=type_)
        if self.chance(0.25):
            return self.generic(type_, scope, depth)
        return getattr(self, {"i": "integer", "u": "unsigned", "d": "decimal", "f": "double", "s": "string", "x": "bytes_", "D": "date",
                              "T": "datetime", "M": "time"}[type_])(scope, depth)

    def call(self, type_, text, *parts, feature=None):
        self.note(feature or text.split("(")[0].strip("{} ") or text)
        return Node("expr", text, parts, type_=type_)

    def generic(self, type_, scope, depth):
        def sub():
            return self.expr(type_, scope, depth - 1)
        choice = self.rng.randrange(7)
        if choice == 0:
            return self.call(type_, "COALESCE({}, {})", sub(), sub())
        if choice == 1:
            return self.call(type_, "IFNULL({}, {})", sub(), sub())
        if choice == 2:
            return self.call(type_, "NULLIF({}, {})", sub(), sub())
        if choice == 3:
            return self.call(type_, "IF({}, {}, {})", self.predicate(scope, depth - 1), sub(), sub())
        if choice == 4:
            return self.call(type_, "CASE WHEN {} THEN {} WHEN {} THEN {} ELSE {} END", self.predicate(scope, depth - 1), sub(),
                             self.predicate(scope, depth - 1), sub(), sub(), feature="CASE WHEN")
        if choice == 5:
            of = self.any_type(scope)
            when = raw("NULL", type_=of) if self.chance(0.12) else self.literal(of)
            return self.call(type_, "CASE {} WHEN {} THEN {} ELSE {} END", self.expr(of, scope, depth - 1), when, sub(), sub(),
                             feature="CASE of")
        return self.call(type_, self.rng.choice(["GREATEST({}, {})", "LEAST({}, {})"]), sub(), sub())

    def integer(self, scope, depth):
        def sub():
            return self.expr("i", scope, depth - 1)

        def text():
            return self.expr("s", scope, depth - 1)
        choice = self.rng.randrange(24)
        if choice < 6:
            return self.call("i", self.rng.choice(["({} + {})", "({} - {})", "({} * {})"]), sub(), sub(), feature="+ - *")
        if choice == 6:
            return self.call("i", self.rng.choice(["({} DIV {})", "({} % {})", "MOD({}, {})"]), sub(), sub(), feature="DIV MOD")
        if choice == 7:
            return self.call("i", self.rng.choice(["(- {})", "ABS({})", "SIGN({})"]), sub(), feature="- ABS SIGN")
        if choice == 8:
            return self.call("i", self.rng.choice(["({} & 7)", "(ABS({}) | 3)", "(ABS({}) ^ 1)", "(ABS({}) << 2)", "(ABS({}) >> 1)"]), sub(), feature="& | ^ << >>")
        if choice == 9:
            return self.call("i", self.rng.choice(["LENGTH({})", "CHAR_LENGTH({})", "ASCII({})"]), text())
        if choice == 10:
            return self.call("i", self.rng.choice(["INSTR({}, {})", "LOCATE({}, {})", "STRCMP({}, {})"]), self.expr("s", scope, depth - 1), text())
        if choice == 11:
            return self.call("i", self.rng.choice(["YEAR({})", "MONTH({})", "DAYOFMONTH({})", "DAYOFWEEK({})", "WEEKDAY({})", "DAYOFYEAR({})", "TO_DAYS({})",
                                                   "QUARTER({})", "WEEK({})", "WEEK({}, 1)", "WEEK({}, 3)", "WEEK({}, 6)", "YEARWEEK({})"]), self.expr(self.rng.choice("DT"), scope, depth - 1))
        if choice == 12:
            return self.call("i", self.rng.choice(["HOUR({})", "MINUTE({})", "SECOND({})"]), self.expr(self.rng.choice("TM"), scope, depth - 1))
        if choice == 13:
            return self.call("i", "DATEDIFF({}, {})", self.expr("D", scope, depth - 1), self.expr(self.rng.choice("DT"), scope, depth - 1))
        if choice == 14:
            return self.call("i", "TIMESTAMPDIFF(" + self.rng.choice(["DAY", "MONTH", "HOUR", "YEAR", "SECOND"]) + ", {}, {})",
                             self.expr("T", scope, depth - 1), self.expr(self.rng.choice("DT"), scope, depth - 1))
        if choice == 15:
            return self.call("i", "CAST({} AS SIGNED)", self.expr(self.rng.choice("du"), scope, depth - 1), feature="CAST SIGNED")
        if choice == 16:
            return self.call("i", self.rng.choice(["FLOOR({})", "CEIL({})", "ROUND({})"]), self.expr("d", scope, depth - 1))
        if choice == 17:
            of = self.any_type(scope)
            return self.call("i", "FIELD({}, {}, {})", self.expr(of, scope, depth - 1), self.literal(of), self.literal(of))
        if choice == 18:
            of = self.any_type(scope)
            return self.call("i", "INTERVAL({}, {}, {})", sub(), raw("1"), raw("5")) if self.chance(0.3) else \
                self.call("i", "ISNULL({})", self.expr(of, scope, depth - 1))
        return Node("expr", "({})", [self.predicate(scope, depth - 1)], type_="i", kind="truth")

    def unsigned(self, scope, depth):
        def sub():
            return self.expr("u", scope, depth - 1)
        choice = self.rng.randrange(5)
        if choice < 2:
            return self.call("u", self.rng.choice(["({} + {})", "({} * {})", "({} % {})", "({} DIV {})"]), sub(), sub(), feature="unsigned + *")
        if choice == 2:
            return self.call("u", self.rng.choice(["({} & {})", "({} | {})", "({} ^ {})"]), sub(), sub(), feature="unsigned & | ^")
        if choice == 3:
            return self.call("u", "CAST(ABS({}) AS UNSIGNED)", self.expr("i", scope, depth - 1), feature="CAST UNSIGNED")
        return self.atom("u", scope)

    def decimal(self, scope, depth):
        def sub():
            return self.expr("d", scope, depth - 1)
        choice = self.rng.randrange(9)
        if choice < 3:
            return self.call("d", self.rng.choice(["({} + {})", "({} - {})", "({} * {})"]), sub(), self.expr(self.rng.choice("di"), scope, depth - 1),
                             feature="decimal + - *")
        if choice == 3:
            return self.call("d", "CAST(({} / {}) AS DECIMAL(30,4))" if self.rounds else "({} / {})", self.expr(self.rng.choice("di"), scope, depth - 1), self.expr("i", scope, depth - 1), feature="/")
        if choice == 4:
            return self.call("d", "({} % {})", sub(), sub(), feature="decimal %")
        if choice == 5:
            return self.call("d", self.rng.choice(["ROUND({}, 1)", "TRUNCATE({}, 1)", "ABS({})", "(- {})"]), sub())
        if choice == 6:
            return self.call("d", "CAST({} AS DECIMAL(10,3))", self.expr(self.rng.choice("idf"), scope, depth - 1), feature="CAST DECIMAL")
        return self.atom("d", scope)

    def double(self, scope, depth):
        def sub():
            return self.expr("f", scope, depth - 1)
        choice = self.rng.randrange(8)
        if choice < 3:
            return self.call("f", self.rng.choice(["({} + {})", "({} - {})", "({} * {})", "((0e0 + {}) / {})" if self.rounds else "({} / {})"]), sub(), self.expr(self.rng.choice("fid"), scope, depth - 1),
                             feature="double + - * /")
        if choice == 3:
            return self.call("f", self.rng.choice(["SQRT({})", "FLOOR({})", "CEIL({})", "ROUND({})", "ABS({})", "POW({}, 2)", "EXP({} / 1000)"]), sub())
        if choice == 4:
            return self.call("f", "CAST({} AS DOUBLE)", self.expr(self.rng.choice("id"), scope, depth - 1), feature="CAST DOUBLE")
        return self.atom("f", scope)

    def string(self, scope, depth):
        def sub():
            return self.expr("s", scope, depth - 1)
        choice = self.rng.randrange(12)
        if choice < 2:
            return self.call("s", self.rng.choice(["CONCAT({}, {})", "CONCAT_WS('-', {}, {})"]), sub(), sub())
        if choice == 2:
            return self.call("s", self.rng.choice(["UPPER({})", "LOWER({})", "TRIM({})", "LTRIM({})", "RTRIM({})", "REVERSE({})"]), sub())
        if choice == 3:
            return self.call("s", self.rng.choice(["LEFT({}, 2)", "RIGHT({}, 2)", "SUBSTRING({}, 2)", "SUBSTRING({}, 1, 2)", "SUBSTRING({}, -2, 1)"]), sub())
        if choice == 4:
            return self.call("s", self.rng.choice(["LPAD({}, 4, '*')", "RPAD({}, 4, '*')", "REPEAT({}, 2)"]), sub())
        if choice == 5:
            return self.call("s", "REPLACE({}, 'a', {})", sub(), sub())
        if choice == 6 and self.connection_texts:
            return self.call("s", "CAST({} AS CHAR)", self.expr(self.rng.choice("iudD"), scope, depth - 1), feature="CAST CHAR")
        if choice == 7 and self.connection_texts:
            return self.call("s", "CONCAT({}, {})", sub(), self.expr(self.rng.choice("idTM"), scope, depth - 1), feature="CONCAT number")
        if choice == 8 and self.connection_texts:
            return self.call("s", self.rng.choice(["DATE_FORMAT({}, '%Y-%m')", "DATE_FORMAT({}, '%d %b %H')", "DATE_FORMAT({}, '%W')"]),
                             self.expr("T", scope, depth - 1))
        if choice == 9:
            return self.call("s", "ELT({}, {}, {})", self.expr("i", scope, depth - 1), sub(), sub())
        if choice == 10:
            return self.call("s", "SUBSTRING_INDEX({}, ' ', 1)", sub())
        return self.atom("s", scope)

    def bytes_(self, scope, _depth):
        return self.atom("x", scope)

    def date(self, scope, depth):
        def sub():
            return self.expr("D", scope, depth - 1)
        choice = self.rng.randrange(6)
        unit = self.rng.choice(["1 DAY", "1 MONTH", "-1 YEAR", "2 WEEK", "1 QUARTER"])
        if choice == 0:
            return self.call("D", self.rng.choice(["DATE_ADD({}, INTERVAL ", "DATE_SUB({}, INTERVAL ", "({} + INTERVAL "]) + unit + ")", sub(), feature="date + interval")
        if choice == 1:
            return self.call("D", "LAST_DAY({})", sub())
        if choice == 2:
            return self.call("D", self.rng.choice(["DATE({})", "CAST({} AS DATE)"]), self.expr("T", scope, depth - 1))
        return self.atom("D", scope)

    def datetime(self, scope, depth):
        choice = self.rng.randrange(5)
        unit = self.rng.choice(["1 DAY", "1 MONTH", "90 MINUTE", "-1 SECOND", "2 HOUR"])
        if choice == 0:
            return self.call("T", self.rng.choice(["DATE_ADD({}, INTERVAL ", "({} - INTERVAL "]) + unit + ")", self.expr("T", scope, depth - 1),
                             feature="datetime + interval")
        if choice == 1:
            return self.call("T", "CAST({} AS DATETIME)", self.expr("D", scope, depth - 1), feature="CAST DATETIME")
        return self.atom("T", scope)

    def time(self, scope, depth):
        if self.chance(0.2):
            return self.call("M", "TIME({})", self.expr("T", scope, depth - 1))
        return self.atom("M", scope)

    # Predicates.

    def predicate(self, scope, depth):
        if depth > 0 and self.chance(0.4):
            choice = self.rng.randrange(8)
            if choice < 2:
                return self.call("i", "({} AND {})", self.predicate(scope, depth - 1), self.predicate(scope, depth - 1), feature="AND")
            if choice < 6:
                return self.call("i", "({} OR {})", self.predicate(scope, depth - 1), self.predicate(scope, depth - 1), feature="OR")
            if choice == 6:
                return self.call("i", "(NOT {})", self.predicate(scope, depth - 1), feature="NOT")
            return self.call("i", "({} XOR {})", self.predicate(scope, depth - 1), self.predicate(scope, depth - 1), feature="XOR")
        if depth > 0 and self.size < 5 and self.chance(0.25):
            return self.subquery_predicate(scope, depth - 1)
        if depth > 0 and self.chance(0.07) and scope.columns and (found := self.ranges(scope)):
            return found
        type_ = self.any_type(scope)
        left = self.expr(type_, scope, depth - 1)
        choice = self.rng.randrange(20)
        if choice < 9:
            other = self.rng.choice(NUMERIC) if type_ in NUMERIC and self.chance(0.3) else "DT"["D" == type_] if type_ in "DT" and self.chance(0.2) else type_
            return self.call("i", "({} " + self.rng.choice(["=", "=", "=", "<", "<=", ">", ">=", "<>", "<=>"]) + " {})", left, self.expr(other, scope, depth - 1),
                             feature="comparison")
        if choice < 11:
            return self.call("i", self.rng.choice(["({} IS NULL)", "({} IS NOT NULL)"]), left, feature="IS NULL")
        if choice == 11:
            return self.call("i", "(" + self.rng.choice(["({}) IS TRUE", "({}) IS FALSE", "({}) IS UNKNOWN", "({}) IS NOT TRUE", "({}) IS NOT FALSE"]) + ")",
                             self.predicate(scope, depth - 1), feature="IS TRUE")
        if choice < 14:
            word = self.rng.choice(["BETWEEN", "BETWEEN", "NOT BETWEEN"])
            return self.call("i", "({} " + word + " {} AND {})", left, self.expr(type_, scope, depth - 2), self.expr(type_, scope, depth - 2), feature=word)
        if choice < 17:
            word = self.rng.choice(["IN", "IN", "NOT IN"])
            parts = [self.literal(type_) if self.chance(0.8) else self.expr(type_, scope, depth - 2) for _ in range(self.rng.choice([1, 2, 3, 4, 4, 9, 12]))]
            return self.call("i", "({} " + word + " ({}))", left, sequence(parts), feature=word + " list")
        if choice == 17:
            word = self.rng.choice(["LIKE", "LIKE", "NOT LIKE"])
            pattern = raw(self.rng.choice(["'a%'", "'%b'", "'_'", "'%'", "'a_%'", "'%1%'", "'a\\\\%'"]))
            return self.call("i", "({} " + word + " {})", self.expr("s", scope, depth - 1), pattern, feature=word)
        if choice == 18:
            other = self.any_type(scope)
            pair = sequence([left, self.expr(other, scope, depth - 2)], 2)
            if self.chance(0.5):
                rows = [Node("list", "({}, {})", [self.literal(type_), self.literal(other)]) for _ in range(self.rng.randint(1, 3))]
                return self.call("i", "(({}) " + self.rng.choice(["IN", "NOT IN"]) + " ({}))", pair, sequence(rows), feature="row IN list")
            return self.call("i", "(({}) " + self.rng.choice(["=", "<>", "<=>", "<", ">="]) + " ({}))", pair,
                             sequence([self.expr(type_, scope, depth - 2), self.expr(other, scope, depth - 2)], 2), feature="row comparison")
        if type_ in NUMERIC:
            return left
        return self.call("i", "({} = {})", left, self.expr(type_, scope, depth - 1), feature="comparison")

    def simple_column(self, columns, types="iudfsxDTM"):
        """A plain column of a table or a derived table, and its type."""
        fitting = [column for column in columns if column.type in types and not column.node.parts and column.node.kind != "aggregate"]
        return self.rng.choice(fitting) if fitting else None

    def ranges(self, scope):
        """What an index may serve: a column beside constants, in one or two ranges, which may overlap."""
        column = self.simple_column(scope.columns)
        if column is None:
            return None
        self.types.add(column.type)

        def one():
            word = self.rng.choice(["=", "<", "<=", ">", ">=", "BETWEEN", "IS NULL", "IN"])
            own = column.type if column.type not in "iu" or self.chance(0.5) else "d"
            if word == "IS NULL":
                return Node("expr", "({} IS NULL)", [column.ref()], type_="i")
            if word == "BETWEEN":
                return Node("expr", "({} BETWEEN {} AND {})", [column.ref(), self.literal(own), self.literal(own)], type_="i")
            if word == "IN":
                return Node("expr", "({} IN ({}))", [column.ref(), sequence([self.literal(own) for _ in range(self.rng.randint(2, 5))])], type_="i")
            other = raw("18446744073709551615", type_="u") if column.type in "iu" and self.chance(0.15) else self.literal(own)
            return Node("expr", "({} " + word + " {})", [column.ref(), other], type_="i")
        self.note("ranges")
        if self.chance(0.4):
            return one()
        return Node("expr", self.rng.choice(["({} OR {})", "({} OR {})", "({} AND {})"]), [one(), one()], type_="i")

    def subquery_predicate(self, scope, depth):
        choice = self.rng.randrange(12)
        if choice < 3:
            word = self.rng.choice(["EXISTS", "EXISTS", "NOT EXISTS"])
            self.note(word)
            if self.chance(0.4) and (query := self.tied(scope, depth)):
                return Node("expr", "(" + word + " ({}))", [query], type_="i")
            query = self.query([self.any_type(scope)], scope, depth, limits=False)
            return Node("expr", "(" + word + " ({}))", [query], type_="i")
        type_ = self.any_type(scope)
        left = self.expr(type_, scope, depth - 1)
        if choice < 8:
            word = self.rng.choice(["IN", "IN", "NOT IN"])
            self.note(word + " subquery")
            return Node("expr", "({} " + word + " ({}))", [left, self.query([type_], scope, depth, limits=False)], type_="i")
        if choice == 8:
            other = self.any_type(scope)
            word = self.rng.choice(["IN", "NOT IN"])
            self.note("row " + word + " subquery")
            query = self.query([type_, other], scope, depth, limits=False)
            return Node("expr", "(({}) " + word + " ({}))", [sequence([left, self.expr(other, scope, depth - 1)], 2), query], type_="i")
        if choice < 11:
            word = self.rng.choice(["ANY", "ALL", "SOME"])
            self.note(word)
            sign = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
            return Node("expr", "({} " + sign + " " + word + " ({}))", [left, self.query([type_], scope, depth, limits=False)], type_="i")
        self.note("comparison with scalar subquery")
        sign = self.rng.choice(["=", "<", ">=", "<>"])
        return Node("expr", "({} " + sign + " {})", [left, self.scalar(type_, scope, depth)], type_="i")

    def tie(self, inner):
        """An equality of a plain column with one of the query around it."""
        outer = inner.parent
        if outer is None or outer.grouped:
            return None
        plain = [[column for column in scope.columns if not column.node.parts and "." in column.node.text] for scope in (inner, outer)]
        pairs = [(one, two) for one in plain[0] for two in plain[1] if one.type == two.type]
        if not pairs:
            return None
        self.note("correlated")
        one, two = self.rng.choice(pairs)
        self.types.add(one.type)
        return Node("expr", "({} = {})", [one.ref(), two.ref()], type_="i")

    def tied(self, scope, depth):
        """Rows of a table that are tied to the row around them, and something else about them."""
        inner, from_ = self.from_(scope, 1, 0, base_only=True)
        tie = self.tie(inner)
        if tie is None:
            return None
        self.note("tied subquery")
        condition = Node("expr", "({} AND {})", [tie, self.predicate(inner, min(depth, 1))], type_="i") if self.chance(0.6) else tie
        return Node("query", "SELECT {} FROM {} WHERE {}", [sequence([raw("1")]), from_, condition], kind="select")

    def scalar(self, type_, scope, depth):
        """A query with one row at most."""
        self.size += 1
        if self.chance(0.75) and type_ in "iudfsDT":
            inner, from_ = self.from_(scope, self.rng.choice([1, 1, 2]), depth)
            word = {"i": ["COUNT", "MIN", "MAX", "SUM"], "d": ["MIN", "MAX", "SUM", "AVG"]}.get(type_, ["MIN", "MAX"])
            word = self.rng.choice(word)
            self.note(f"scalar {word}")
            argument = self.expr(type_, Scope(inner.columns), 1) if inner.columns else self.literal(type_)
            items = sequence([Node("expr", word + "({})", [argument], type_=type_, kind="aggregate")])
            where = clause(" WHERE {}", self.predicate(inner, depth)) if self.chance(0.7) else empty()
            having = empty()
            if self.chance(0.4) and (tie := self.tie(inner)):
                self.note("tied scalar subquery")
                where = clause(" WHERE {}", Node("expr", "({} AND {})", [tie, self.predicate(inner, 1)], type_="i") if self.chance(0.4) else tie)
                if self.chance(0.2):
                    having = clause(" HAVING " + self.rng.choice(["(COUNT(*) > 1)", "(COUNT(*) > 2)", "(COUNT(*) = 0)"]))
            return Node("query", "(SELECT {}{}{}{})", [items, clause(" FROM {}", from_), where, having], kind="select")
        if self.mixes and self.chance(0.08):
            # More than one row is error 1242.
            self.note("scalar subquery without LIMIT")
            return Node("query", "({})", [self.query([type_], scope, 0, limits=False)], kind="paren")
        query = self.query([type_], scope, depth, limits=False, limit_one=True)
        return Node("query", "({})", [query], kind="paren")

    # FROM.

    def factor(self, scope, depth, base_only=False):
        """A table, a derived table, or a common table expression, with an alias."""
        alias = self.name("r")
        if not base_only and self.ctes and self.chance(0.3):
            name, types = self.rng.choice(self.ctes)
            self.note("CTE reference")
            columns = [Col(f"{alias}.x{at}", t) for at, t in enumerate(types)]
            return columns, with_columns(raw(f"{name} AS {alias}", "from", kind="table"), columns), {}
        if not base_only and depth > 0 and self.size < 4 and self.chance(0.22):
            self.note("derived table")
            types = [self.rng.choice("iisdDfT") for _ in range(self.rng.randint(1, 3))]
            query = self.query(types, None, depth - 1)
            columns = [Col(f"{alias}.x{at}", t) for at, t in enumerate(types)]
            node = with_columns(Node("from", "({}) AS " + alias, [query], kind="derived"), columns)
            return columns, node, {f"x{at}": t for at, t in enumerate(types)}
        table = self.rng.choice(self.tables if not self.chance(0.88) else [t for t in self.tables if t.rows] or self.tables)
        columns = [Col(f"{alias}.{name}", COLUMN_TYPES[kind], nullable) for name, kind, nullable in table.columns]
        return columns, with_columns(raw(f"{table.name} AS {alias}", "from", kind="table"), columns), {name: COLUMN_TYPES[kind] for name, kind, _ in table.columns}

    def condition(self, left, right, parent, depth):
        """What a join is on: equal columns, mostly."""
        scope = Scope(left + right, parent)
        pairs = [(one, two) for one in left for two in right if one.type == two.type or (one.type in "iu" and two.type in "iu")
                 or (one.type + two.type in ("di", "id", "DT", "TD") and self.chance(0.5)) or (self.mixes and one.type + two.type in ("is", "si") and self.chance(0.05))]
        if not pairs or self.chance(0.12):
            return self.predicate(scope, min(depth, 2))
        one, two = self.rng.choice(pairs)
        self.types.update((one.type, two.type))
        node = Node("expr", "({} " + self.rng.choice(["=", "=", "=", "=", "=", "<", "<=>", ">="]) + " {})", [one.ref(), two.ref()], type_="i")
        if self.chance(0.1):
            self.note("constant of a join column")
            column = self.rng.choice([one, two])
            literal = self.literal(self.rng.choice([one.type, two.type]))
            constant = Node("expr", "({} " + self.rng.choice(["=", "<=", ">", "<>"]) + " {})", [column.ref(), literal], type_="i")
            node = Node("expr", "({} AND {})", [node, constant], type_="i")
        elif self.chance(0.3):
            node = Node("expr", self.rng.choice(["({} AND {})", "({} AND {})", "({} OR {})"]), [node, self.predicate(scope, min(depth, 1))], type_="i")
        return node

    def from_(self, parent, count, depth, base_only=False):
        self.size += count
        columns, node, names = self.factor(parent, depth, base_only)
        simple = True
        for at in range(count - 1):
            other_columns, other, other_names = self.factor(parent, depth, base_only)
            if count - at > 2 and self.chance(0.2):
                more_columns, more, _ = self.factor(parent, depth, base_only)
                word = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
                other = Node("from", "({} " + word + " {} ON {})", [other, more, self.condition(other_columns, more_columns, parent, depth)], kind="join")
                other_columns, other_names = other_columns + more_columns, {}
                self.note("nested join")
            word = self.pick({"JOIN": 30, "LEFT JOIN": 25, "RIGHT JOIN": 12, "CROSS JOIN": 6, ",": 8, "STRAIGHT_JOIN": 6, "USING": 10, "LEFT USING": 9,
                              "RIGHT USING": 9, "NATURAL": 9, "NATURAL LEFT": 8, "NATURAL RIGHT": 8, "LATERAL": 6 if self.lateral else 0})
            shared = [name for name in names if other_names.get(name) == names[name]]
            clash = [name for name in names if name in other_names and name not in shared]
            if "NATURAL" in word or "USING" in word:
                if not simple or not shared or ("NATURAL" in word and clash) or at != count - 2:
                    word = "JOIN"
            if word == "LATERAL":
                alias, types = self.name("r"), [self.rng.choice("isd")]
                query = self.query(types, Scope(columns), max(depth - 1, 0))
                other_columns, other_names = [Col(f"{alias}.x0", types[0])], {}
                lateral = with_columns(Node("from", "LATERAL ({}) AS " + alias, [query], kind="derived"), other_columns)
                node = Node("from", "{} JOIN {}", [node, lateral], kind="join")
            elif "NATURAL" in word:
                node = Node("from", "{} " + word + " JOIN {}", [node, other], kind="join")
            elif "USING" in word:
                chosen = self.rng.sample(shared, self.rng.randint(1, min(2, len(shared))))
                node = Node("from", "{} " + word.replace("USING", "JOIN").replace("RIGHT", "RIGHT") + " {} USING (" + ", ".join(chosen) + ")", [node, other], kind="join")
                shared = chosen
            elif word == ",":
                node = Node("from", "({}, {})" if at != count - 2 else "{}, {}", [node, other], kind="join")
            elif word == "CROSS JOIN" or (word == "STRAIGHT_JOIN" and self.chance(0.1)):
                node = Node("from", "{} " + word + " {}", [node, other], kind="join")
            else:
                node = Node("from", "{} " + word + " {} ON {}", [node, other, self.condition(columns, other_columns, parent, depth)], kind="join")
            self.joins.add(word)
            columns = columns + other_columns
            if ("NATURAL" in word or "USING" in word) and at == count - 2 and "RIGHT" not in word:
                columns = columns + [Col(name, names[name]) for name in shared]
            simple = False
            names = {}
        return Scope(columns, parent), node

    # Queries.

    def query(self, types, parent, depth, limits=True, limit_one=False, top=False):
        """A query that gives these types. Its columns are called x0, x1, ..."""
        self.size += 1
        if depth > 0 and self.chance(0.13) and not limit_one:
            return self.set_operation(types, parent, depth, limits)
        kind = self.pick({"plain": 50, "grouped": 22, "aggregate": 6, "window": 10, "distinct": 12})
        if limit_one and kind != "aggregate":
            kind = self.rng.choice(["plain", "distinct"])
        count = self.rng.choice([1, 1, 2, 2, 2, 3, 3] if top else [1, 1, 1, 2])
        with_ = empty()
        if top and self.chance(0.15):
            with_ = self.with_(depth)
        scope, from_ = self.from_(parent, count, depth)
        if parent and count == 1 and from_.kind == "table" and kind in ("plain", "distinct") and self.chance(0.25):
            self.note("names without a table")
            for column in scope.columns:
                column.node = raw(column.node.text.rpartition(".")[2])
        source = clause(" FROM {}", from_)
        types = types or [self.any_type(scope) for _ in range(self.rng.randint(1, 4))]
        where = empty()
        if self.chance(0.36):
            where = clause(" WHERE {}", self.predicate(scope, min(depth, 2) + (1 if top else 0)), kind="where")
            self.note("WHERE")
        tail, window = [], empty()
        if kind in ("plain", "distinct"):
            items = [self.expr(t, scope, depth) for t in types]
        elif kind == "window":
            items, window = self.windows(types, scope, depth, source)
        else:
            self.has_rows = where.category == "empty" and from_.kind == "table" and any(
                table.rows and from_.text.startswith(f"{table.name} ") for table in self.tables)
            items, tail = self.grouped(types, scope, depth, kind == "aggregate")
        if kind != "plain":
            self.note({"grouped": "GROUP BY", "aggregate": "aggregate of all", "window": "window", "distinct": "DISTINCT"}[kind])
        items = sequence([Node("item", "{} AS x" + str(at), [item]) for at, item in enumerate(items)])
        distinct = Node("clause", "DISTINCT ", optional=True) if kind == "distinct" else empty()
        order = empty()
        # MariaDB takes no ORDER BY after WITH ROLLUP.
        if (limits and self.chance(0.35) or limit_one) and not any("ROLLUP" in part.text for part in tail):
            order = self.order(items, limit=limit_one or self.chance(0.6), one=limit_one)
        return Node("query", "{}SELECT {}{}{}{}{}{}{}", [with_, distinct, items, source, where,
                                                       Node("clauses", None, tail, separator="", minimum=0), window, order], kind="select")

    def order(self, items, limit, one=False):
        directions = [self.rng.choice(["", "", " DESC", " ASC"]) for _ in range(max(len(items.parts), 1))]
        node = Node("clause", " ORDER BY {}", directions, kind="order all", optional=not limit)
        node.extra = items
        self.note("ORDER BY")
        if not limit:
            return node
        self.note("LIMIT")
        text = " LIMIT 1" if one else self.rng.choice([" LIMIT 1", " LIMIT 2", " LIMIT 3", " LIMIT 5", " LIMIT 10", " LIMIT 3 OFFSET 1", " LIMIT 4 OFFSET 2", " LIMIT 1, 5", " LIMIT 0"][0 if self.chance(0.95) else 8:])
        limited = Node("clause", text, optional=not one, kind="limit")
        return Node("clauses", "{}{}", [node, limited], kind="ordered limit", optional=not one)

    def set_operation(self, types, parent, depth, limits):
        word = self.rng.choice(["UNION", "UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        self.note(word)
        types = types or [self.rng.choice("iiisssdfDTuM") for _ in range(self.rng.randint(1, 3))]
        left = self.query(types, parent, depth - 1, limits=limits)
        right = self.query(types, parent, depth - 1, limits=limits)
        order = empty()
        if limits and self.chance(0.3):
            order = self.order(sequence([raw("x") for _ in types]), self.chance(0.6))
        return Node("query", "({}) " + word + " ({}){}", [left, right, order], kind="set")

    def with_(self, depth):
        ctes, recursive = [], False
        for _ in range(self.rng.choice([1, 1, 2])):
            name = self.name("w")
            if self.chance(0.35):
                recursive = True
                self.note("recursive CTE")
                table = self.rng.choice(self.tables)
                numbers = [column for column, kind, _ in table.columns if COLUMN_TYPES[kind] == "i"]
                if self.chance(0.5):
                    body = raw(f"SELECT 1 AS x0 UNION ALL SELECT x0 + 1 FROM {name} WHERE x0 < {self.rng.randint(2, 8)}", "query")
                elif self.chance(0.5):
                    body = raw(f"SELECT {self.rng.choice(numbers)} AS x0 FROM {table.name} UNION SELECT z.{self.rng.choice(numbers)} FROM {name} JOIN "
                               f"{table.name} AS z ON z.{self.rng.choice(numbers)} = {name}.x0", "query")
                else:
                    body = raw(f"SELECT id AS x0 FROM {table.name} UNION SELECT z.{self.rng.choice(numbers)} + 1 FROM {table.name} AS z, {name} "
                               f"WHERE z.{self.rng.choice(numbers)} = {name}.x0 AND x0 < 20", "query")
                types = ["i"]
            else:
                types = [self.rng.choice("iisdDf") for _ in range(self.rng.randint(1, 3))]
                body = self.query(types, None, min(depth, 1))
                self.note("CTE")
            ctes.append(Node("cte", name + " AS ({})", [body]))
            self.ctes.append((name, types))
        return Node("clause", "WITH " + ("RECURSIVE " if recursive else "") + "{} ", [sequence(ctes)], optional=True)

    def aggregate(self, type_, scope, depth):
        """An aggregate of this type, of columns of this query only."""
        inner = Scope(scope.columns)
        if not scope.columns:
            return raw("COUNT(*)", type_="i", kind="aggregate")

        def argument(of):
            return self.expr(of, inner, min(depth, 1)) if self.chance(0.4) else self.column(of, inner) or self.literal(of)
        word = {"i": ["COUNT(*)", "COUNT({})", "COUNT(DISTINCT {})", "MIN({})", "MAX({})", "SUM({})", "SUM(DISTINCT {})", "COUNT(DISTINCT {}, {})", "BIT_OR"],
                "u": ["MIN({})", "MAX({})"], "d": ["SUM({})", "AVG({})", "AVG(DISTINCT {})", "MIN({})", "MAX({})"],
                "f": ["SUM({})", "AVG({})", "MIN({})", "STDDEV_POP(0e0 + {})", "VAR_SAMP(0e0 + {})", "STDDEV_SAMP(0e0 + {})", "VAR_POP(0e0 + {})"],
                "s": ["MIN({})", "MAX({})", "GROUP_CONCAT", "GROUP_CONCAT DISTINCT"]}.get(type_, ["MIN({})", "MAX({})"])
        word = self.rng.choice(word)
        self.note(word.replace("{}", "x"))
        if word == "COUNT(*)":
            return raw(word, type_="i", kind="aggregate")
        if "GROUP_CONCAT" in word:
            of = self.any_type(scope, "iusDd")
            value = argument(of)
            direction = self.rng.choice(["", " DESC"])
            # Whole numbers would be places in the list.
            other = self.column(self.any_type(scope, "iuDd"), inner)
            if other and "DISTINCT" not in word and value.sql() != "NULL" and "r" in value.sql() and self.chance(0.3):
                self.note("GROUP_CONCAT by two keys")
                return Node("expr", "GROUP_CONCAT({} ORDER BY {}" + direction + ", {}" + self.rng.choice(["", " DESC"]) + ")",
                            [value, other, copy.deepcopy(value)], type_="s", kind="aggregate")
            return Node("expr", "GROUP_CONCAT(" + ("DISTINCT " if "DISTINCT" in word else "") + "{} ORDER BY {}" + direction + self.rng.choice(["", " SEPARATOR '|'"]) + ")",
                        [value, copy.deepcopy(value)], type_="s", kind="aggregate")
        if word == "BIT_OR":
            return Node("expr", self.rng.choice(["BIT_OR({})", "BIT_AND({})", "BIT_XOR({})"]), [argument("u")], type_="i", kind="aggregate")
        if "COUNT" in word:
            parts = [argument(self.any_type(scope)) for _ in range(word.count("{}"))]
        else:
            parts = [argument(type_)]
        return Node("expr", word, parts, type_=type_, kind="aggregate")

    def grouped(self, types, scope, depth, all_):
        """Items and clauses of a query with groups."""
        # MySQL's GROUPING of the total of no rows is 1 or 0.
        keys, has_rows = [], self.has_rows
        if not all_:
            for _ in range(self.rng.choice([1, 1, 2])):
                of = self.any_type(scope)
                inner = Scope(scope.columns)
                key = (self.column(of, inner) if self.chance(0.75) else self.expr(of, inner, 1)) or self.column(of, inner)
                if key is not None and "r" in key.sql() and not key.sql().startswith("NULL"):
                    keys.append(Col(key, of))
        pseudo = Scope(keys, scope.parent, grouped=True)
        items = []
        for type_ in types:
            fitting = [key for key in keys if key.type == type_]
            if fitting and self.chance(0.6):
                items.append(self.rng.choice(fitting).ref())
            else:
                item = self.aggregate(type_, scope, depth)
                if self.chance(0.12) and type_ in "ifd":
                    item = Node("expr", self.rng.choice(["({} + 1)", "COALESCE({}, 0)", "(- {})"]), [item], type_=type_)
                items.append(item)
        tail = []
        if keys:
            tail.append(clause(" GROUP BY {}", sequence([Node("key", "{}", [key.ref()]) for key in keys]), kind="group"))
            plain = all(not key.node.parts for key in keys) and len({item.sql() for item in items}) == len(items)
            plain = plain and len({key.node.sql() for key in keys}) == len(keys)
            if plain and self.chance(0.12):
                # MariaDB leaves keys that are expressions, or are named twice, as they are.
                self.note("WITH ROLLUP")
                tail.append(clause(" WITH ROLLUP"))
                integers = [at for at, type_ in enumerate(types) if type_ == "i"]
                if self.defaults and integers and has_rows:
                    self.note("GROUPING")
                    named = [key.ref() for key in keys]
                    self.rng.shuffle(named)
                    items[self.rng.choice(integers)] = Node("expr", "GROUPING({})", [sequence(named)], type_="i", kind="aggregate")
            elif self.chance(0.35):
                self.note("HAVING")
                having = Scope(pseudo.columns + [Col(self.aggregate(t, scope, depth), t) for t in self.rng.choices("iidfs", k=2)], scope.parent, grouped=True)
                tail.append(clause(" HAVING {}", self.predicate(having, min(depth, 2)), kind="having"))
        return items, tail

    def windows(self, types, scope, depth, source):
        """Items of which some are window functions."""
        items, named = [], empty()
        name = None
        columns = scope.columns
        inner = Scope(columns)

        def simple():
            # MariaDB does not find columns of USING by their bare names here.
            named = [column for column in columns if "." in column.node.text]
            return self.rng.choice(named).ref() if named else raw("1")

        directions = self.rng.sample(["", " DESC"], 1)
        # Rows of derived tables may be alike: which of them gets which place differs from window to window.
        repeats = any(not factor.text.startswith("t") for from_ in source.parts for factor in factors(from_))

        def total(direction):
            """All columns of all tables: equal rows are alike. All windows of a query have one direction, so that their results go together."""
            direction = directions[0]
            node = Node("window order", "{}", kind="window order", separator=direction)
            node.extra = source
            node.parts = []
            return node
        if self.chance(0.25):
            name = self.name("w")
            named = Node("clause", " WINDOW " + name + " AS (PARTITION BY {} ORDER BY {})", [simple(), total("")], optional=True)
            self.note("named window")
        for type_ in types:
            if type_ not in "idfsDT" or self.chance(0.25) or (repeats and any(item.kind == "window" for item in items)):
                items.append(self.expr(type_, scope, min(depth, 1)))
                continue
            ordered = {"i": ["ROW_NUMBER()", "NTILE(3)", "RANK()", "DENSE_RANK()"], "f": ["PERCENT_RANK()", "CUME_DIST()"]}.get(type_, [])
            ranks = {"i": ["RANK()", "DENSE_RANK()"], "f": ["PERCENT_RANK()", "CUME_DIST()"]}.get(type_, [])
            if ranks and self.chance(0.3):
                self.note("rank of peers")
                partition = clause("PARTITION BY {}", simple()) if self.chance(0.6) else empty()
                order = clause(" ORDER BY {}" + self.rng.choice(["", " DESC"]), simple())
                items.append(Node("expr", self.rng.choice(ranks) + " OVER ({}{})", [partition, order], type_=type_, kind="window"))
                continue
            if self.defaults and self.chance(0.12):
                self.note("LAG with default")
                ordered = [self.rng.choice(["LAG", "LEAD"]) + "({}, " + self.rng.choice("123") + ", " + self.literal(type_).sql() + ")"]
            ordered = ordered + ["LAG({})", "LEAD({})", "LAG({}, 2)", "FIRST_VALUE({})", "LAST_VALUE({})", "NTH_VALUE({}, 2)"]
            plain = {"i": ["COUNT({})", "SUM({})", "COUNT(*)"], "d": ["SUM({})", "AVG({})"], "f": ["SUM({})", "AVG({})"]}.get(type_, []) + ["MIN({})", "MAX({})"]
            is_plain = self.chance(0.5)
            word = self.rng.choice(plain if is_plain else ordered)
            self.note(word.replace("{}", "x") + " OVER")
            parts = [self.expr(type_, inner, 1)] if "{}" in word else []
            if name and self.chance(0.6):
                items.append(Node("expr", word + " OVER " + name, parts, type_=type_, kind="window"))
                continue
            partition = clause("PARTITION BY {}", simple()) if self.chance(0.6) else empty()
            descending = self.rng.choice(["", " DESC"])
            if is_plain and self.chance(0.3):
                order = empty()
            elif is_plain and self.chance(0.5):
                order = clause(" ORDER BY {}" + descending, simple())
                key = self.simple_column([column for column in columns if "." in column.node.text], "iudf")
                if key and self.chance(0.4):
                    frame = self.rng.choice(["1 PRECEDING", "BETWEEN 2 PRECEDING AND 1 FOLLOWING", "BETWEEN 1 FOLLOWING AND 5 FOLLOWING", "BETWEEN 3 PRECEDING AND 1 PRECEDING",
                                             "BETWEEN CURRENT ROW AND 2 FOLLOWING", "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING"])
                    self.note("RANGE frame")
                    order = clause(" ORDER BY {}" + descending + " RANGE " + frame, key.ref())
            else:
                order = Node("clause", " ORDER BY {}", [total(descending)])
                if self.chance(0.4) and ("VALUE" in word or is_plain):
                    frame = self.rng.choice(["UNBOUNDED PRECEDING", "1 PRECEDING", "BETWEEN 2 PRECEDING AND 1 FOLLOWING", "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                                             "BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "BETWEEN 3 PRECEDING AND 1 PRECEDING", "CURRENT ROW"])
                    self.note("ROWS frame")
                    order = Node("clauses", "{}{}", [order, clause(" ROWS " + frame)])
            items.append(Node("expr", word + " OVER ({}{})", [*parts, partition, order], type_=type_, kind="window"))
        return items, named

    # Statements.

    def select(self):
        choice = self.rng.random()
        if choice < 0.05:
            return self.filtered()
        if choice < 0.08:
            return self.star()
        if choice < 0.10 and (found := self.names_of_list()):
            return found
        if choice < 0.115 and (found := self.distinct_key()):
            return found
        if choice < 0.215 and (found := self.corner()):
            return found
        return self.query(None, None, self.rng.choice([1, 2, 2, 3]), top=True)

    def filtered(self):
        """A condition on the columns of a derived table with windows, totals, groups, or a limit, which may not move below them."""
        self.note("filtered derived table")
        if self.chance(0.5):
            types, query = self.plain_beside_computed()
        else:
            types = [self.rng.choice("iisdDf") for _ in range(self.rng.randint(2, 3))]
            query = self.query(types, None, 1)
        alias = self.name("r")
        scope = Scope([Col(f"{alias}.x{at}", type_) for at, type_ in enumerate(types)])
        items = sequence([Node("item", "{} AS y" + str(at), [column.ref()]) for at, column in enumerate(scope.columns)])
        from_ = with_columns(Node("from", "({}) AS " + alias, [query], kind="derived"), scope.columns)
        condition, texts = self.ranges(scope), [column for column in scope.columns if column.type == "s"]
        if texts and self.representatives and self.chance(0.4):
            condition = Node("expr", "(ASCII({}) " + self.rng.choice(["<", ">"]) + " 95)", [self.rng.choice(texts).ref()], type_="i")
        elif self.chance(0.3):
            condition = Node("expr", "({} AND {})", [condition, self.ranges(scope)], type_="i")
        return Node("query", "SELECT {} FROM {} WHERE {}", [items, from_, condition], kind="select")

    def plain_beside_computed(self):
        """Columns as they are beside windows over them, or keys beside totals."""
        scope, from_ = self.from_(None, self.rng.choice([1, 1, 2]), 0, base_only=True)
        plain = [column for column in scope.columns if "." in column.node.text]
        columns = self.rng.sample(plain, 2)
        names, types = [column.node.text for column in columns], [column.type for column in columns]
        self.types.update(types)
        if self.chance(0.5):
            self.note("columns beside windows")
            word = self.rng.choice([f"COUNT({names[1]}) OVER ()", f"COUNT(*) OVER (PARTITION BY {names[0]})", f"RANK() OVER (ORDER BY {names[1]})",
                                    f"COUNT(*) OVER (PARTITION BY {names[0]} ORDER BY {names[1]})", f"MAX({names[1]}) OVER (ORDER BY {names[0]})"])
            types.append(types[1] if word.startswith("MAX") else "i")
            items = sequence([Node("item", "{} AS x" + str(at), [raw(text)]) for at, text in enumerate([*names, word])])
            return types, Node("query", "SELECT {} FROM {}", [items, from_], kind="select")
        self.note("keys beside totals")
        items = sequence([Node("item", "{} AS x" + str(at), [raw(text)]) for at, text in enumerate([names[0], "COUNT(*)", f"MAX({names[1]})"])])
        rollup = self.rng.choice(["", " WITH ROLLUP"])
        return [types[0], "i", types[1]], Node("query", "SELECT {} FROM {} GROUP BY " + names[0] + rollup, [items, from_], kind="select")

    def star(self):
        """All columns, in their order: those of USING and NATURAL come first, and once."""
        self.note("*")
        one, other = (self.rng.choice([t for t in self.tables if t.rows] or self.tables) for _ in range(2))
        kinds = {name: kind for name, kind, _ in other.columns}
        shared = [name for name, kind, _ in one.columns if kinds.get(name) == kind]
        clash = [name for name, kind, _ in one.columns if name in kinds and kinds[name] != kind]
        aliases = self.name("r"), self.name("r")
        tables = [raw(f"{table.name} AS {alias}", "from", kind="table") for table, alias in zip((one, other), aliases)]
        word = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
        self.joins.add({"JOIN": "USING", "LEFT JOIN": "LEFT USING", "RIGHT JOIN": "RIGHT USING"}[word])
        if shared and not clash and self.chance(0.4):
            from_ = Node("from", "{} NATURAL " + word + " {}", tables, kind="join")
        elif shared:
            chosen = self.rng.sample(shared, self.rng.randint(1, min(3, len(shared))))
            from_ = Node("from", "{} " + word + " {} USING (" + ", ".join(chosen) + ")", tables, kind="join")
        else:
            from_ = Node("from", "{} " + word + f" {{}} ON {aliases[0]}.id = {aliases[1]}.id", tables, kind="join")
        what = raw(self.rng.choice(["*", "*", "*", f"{aliases[1]}.*", f"{aliases[0]}.*, {aliases[1]}.id"]))
        return Node("query", "SELECT {} FROM {}", [what, from_], kind="select")

    def names_of_list(self):
        """Names of the select list that columns have, too: GROUP BY takes the column, HAVING and ORDER BY the list's."""
        table = self.rng.choice([t for t in self.tables if t.rows] or self.tables)
        numbers = [name for name, kind, _ in table.columns if COLUMN_TYPES[kind] in "iud"]
        others = [name for name, _, _ in table.columns if name not in ("id", "k")]
        if len(others) < 2 or not numbers:
            return None
        self.note("names of the select list")
        key, number = self.rng.choice(others), self.rng.choice(numbers)
        other = self.rng.choice([name for name in others if name != key])
        self.types.update(COLUMN_TYPES[kind] for name, kind, _ in table.columns if name in (key, number, other))
        text = self.rng.choice([
            f"SELECT MAX({number}) AS {key}, COUNT(*) AS n FROM {table.name} GROUP BY {key}",
            f"SELECT MIN({number}) AS {key}, COUNT({other}) AS n FROM {table.name} GROUP BY {key} ORDER BY n, {key}",
            f"SELECT {key}, COUNT(*) AS {other} FROM {table.name} GROUP BY {key} HAVING {other} > 1",
            f"SELECT {key} AS y, SUM({number}) AS {other} FROM {table.name} GROUP BY y HAVING {other} >= 1",
            f"SELECT COUNT(*) AS n, {key} AS {other} FROM {table.name} GROUP BY {table.name}.{key} HAVING n > 1"])
        return Node("query", text, [], kind="select")

    def distinct_key(self):
        """Values of an index, each once, and only some of them."""
        found = [(table, columns[0]) for table in self.tables if table.rows for _, _, columns in table.indexes]
        if not found:
            return None
        self.note("DISTINCT of an index")
        table, name = self.rng.choice(found)
        # Texts that are equal without case would be any of them.
        kind = next(kind for column, kind, _ in table.columns if column == name)
        if COLUMN_TYPES[kind] == "s":
            return None
        self.types.add(COLUMN_TYPES[kind])
        direction = self.rng.choice(["", " DESC"])
        condition = self.rng.choice(["", f" WHERE {name} IS NOT NULL"])
        limit = self.rng.choice([" LIMIT 2", " LIMIT 3", " LIMIT 3 OFFSET 1"])
        return Node("query", f"SELECT DISTINCT {name} FROM {table.name}{condition} ORDER BY {name}{direction}{limit}", [], kind="select")

    def corner(self):
        """What one kind of mistake would show in, and statements at large meet too seldom."""
        several = [self.table_of_outer_side, self.variable_of_types] if self.several else []
        shape = self.rng.choice([*several, self.anti_by_index, self.text_beside_number, self.text_of_subquery, self.rows_of_value, self.in_outer_side, self.all_of_itself,
                                 self.gap_of_index, self.constant_in_other_collation, self.quotient_of_whole, self.range_without_value])
        text = shape()
        if text is None:
            return None
        self.note(shape.__name__.replace("_", " "))
        return Node("query", text, [], kind="several" if SEVERAL in text else "select")

    def filled(self):
        return self.rng.choice([table for table in self.tables if table.rows] or self.tables)

    def columns_of(self, table, types="iudfsxDTM"):
        """Names of columns of these types, each with its type and whether it may be NULL."""
        return [(name, COLUMN_TYPES[kind], nullable) for name, kind, nullable in table.columns if COLUMN_TYPES[kind] in types]

    def some_column(self, table, types="iudfsxDTM"):
        found = self.columns_of(table, types)
        name, type_, _ = self.rng.choice(found) if found else (None, None, None)
        if name:
            self.types.add(type_)
        return name, type_

    def indexed(self, table, types):
        """The first column of an index."""
        kinds = {name: COLUMN_TYPES[kind] for name, kind, _ in table.columns}
        found = [columns[0] for _, _, columns in table.indexes] + [table.key[0]]
        return [(name, kinds[name]) for name in found if kinds[name] in types]

    def anti_by_index(self):
        """Rows without a partner that an index finds, and of which something else is true."""
        inner, outer = self.filled(), self.filled()
        keys = [(name, other) for name, type_ in self.indexed(inner, "iusD") for other, its, _ in self.columns_of(outer) if its == type_]
        rest = [(one, two) for one, type_, _ in self.columns_of(inner, "iudfD") for two, its, _ in self.columns_of(outer) if its == type_]
        if not keys or not rest:
            return None
        (key, of_key), (one, two) = self.rng.choice(keys), self.rng.choice(rest)
        word, sign = self.rng.choice(["NOT EXISTS", "NOT EXISTS", "EXISTS"]), self.rng.choice(["<>", "<", ">", ">="])
        where = f"r2.{key} = r1.{of_key} AND r2.{one} {sign} r1.{two}"
        return f"SELECT r1.id, r1.{two} FROM {outer.name} AS r1 WHERE {word} (SELECT 1 FROM {inner.name} AS r2 WHERE {where})"

    def text_beside_number(self):
        """Texts that are equal to numbers, and ordered as texts."""
        if not self.mixes:
            return None
        one, two = self.filled(), self.filled()
        (number, _), (text, _) = self.some_column(one, "iu"), self.some_column(two, "s")
        if not number or not text:
            return None
        sign, constant = self.rng.choice(["<", "<=", ">", ">="]), self.rng.choice(["'2'", "'5'", "'7'", "'3'"])
        return f"SELECT r1.id, r2.{text} FROM {one.name} AS r1 JOIN {two.name} AS r2 ON r1.{number} = r2.{text} WHERE r2.{text} {sign} {constant}"

    def text_of_subquery(self):
        """A subquery that tells texts apart which are equal."""
        one, two = self.filled(), self.filled()
        (text, _), (other, _) = self.some_column(one, "s"), self.some_column(two, "s")
        if not text or not other:
            return None
        sign = self.rng.choice(["<=", ">", "<"])
        return f"SELECT r1.id, (SELECT COUNT(*) FROM {two.name} AS r2 WHERE HEX(r2.{other}) {sign} HEX(r1.{text})) AS n FROM {one.name} AS r1"

    def rows_of_value(self):
        """A subquery as a value, which has several rows for some rows around it."""
        table = self.filled()
        name, _ = self.some_column(table, "iudsD")
        if not name:
            return None
        if self.chance(0.5):
            return f"SELECT r1.id, (SELECT r2.id FROM {table.name} AS r2 WHERE r2.{name} = r1.{name} AND r2.id >= r1.id) AS n FROM {table.name} AS r1"
        return f"SELECT r1.id FROM {table.name} AS r1 WHERE r1.id = (SELECT r2.id FROM {table.name} AS r2 WHERE r2.{name} = r1.{name})"

    def in_outer_side(self):
        """NOT IN with columns of an outer join's right side that are declared NOT NULL."""
        one, two, outer = self.filled(), self.filled(), self.filled()
        declared = [(name, type_) for name, type_, nullable in self.columns_of(two) if not nullable and type_ in "iusd"]
        tests = [(name, other) for name, type_ in declared for other, its, _ in self.columns_of(outer) if its == type_]
        ties = [(left, right) for left, type_, _ in self.columns_of(one) for right, its, _ in self.columns_of(two) if its == type_]
        if not tests or not ties:
            return None
        (name, other), (left, right) = self.rng.choice(tests), self.rng.choice(ties)
        word = self.rng.choice(["NOT IN", "NOT IN", "IN"])
        inner = f"SELECT r3.{name} FROM {one.name} AS r2 LEFT JOIN {two.name} AS r3 ON r2.{left} = r3.{right}"
        if self.chance(0.3):
            return f"SELECT r2.id, r3.{name} IS NULL AS n FROM {one.name} AS r2 LEFT JOIN {two.name} AS r3 ON r2.{left} = r3.{right}"
        return f"SELECT r1.id FROM {outer.name} AS r1 WHERE r1.{other} {word} ({inner})"

    def table_of_outer_side(self):
        """A table that is made of an outer join: its columns take NULL, whatever those of the right side are declared."""
        one, two = self.filled(), self.filled()
        ties = [(left, right) for left, type_, _ in self.columns_of(one) for right, its, _ in self.columns_of(two) if its == type_ and type_ in "iusd"]
        if not ties:
            return None
        left, right = self.rng.choice(ties)
        names = [name for name, _, _ in self.columns_of(two, "iudsD")]
        shown = ", ".join(f"r2.{name} AS y{at}" for at, name in enumerate(names))
        from_ = f"{one.name} AS r1 LEFT JOIN {two.name} AS r2 ON r1.{left} = r2.{right} AND r2.{right} <> r1.id"
        made = f"CREATE TABLE made AS SELECT r1.id AS x, {shown} FROM {from_}"
        return SEVERAL.join(["DROP TABLE IF EXISTS made", made, "SELECT * FROM made", "DROP TABLE IF EXISTS made"])

    def variable_of_types(self):
        """One statement with a variable whose values have different types."""
        table = self.filled()
        name, type_ = self.some_column(table, "iuds")
        if not name:
            return None
        values = self.rng.sample(["5", "'5'", "2.50", "'b'", "3e0", "'2.5'", "-1", "X'35'"], 3)
        query = self.rng.choice([f"SELECT id, COALESCE(@v, {name}) AS n FROM {table.name}", f"SELECT id FROM {table.name} WHERE {name} >= @v",
                                 f"SELECT id, @v AS n FROM {table.name}", f"SELECT id, IF({name} IS NULL, {name}, @v) AS n FROM {table.name}",
                                 f"SELECT id FROM {table.name} WHERE CONCAT(@v, '') < '3'", f"SELECT id, {name} = @v AS n FROM {table.name}"])
        if type_ in "iu" and self.chance(0.5):
            query = f"SELECT id, CONCAT(GREATEST(@v, {name}), 'x') AS n FROM {table.name}"
        return SEVERAL.join(part for value in values for part in (f"SET @v = {value}", query))

    def all_of_itself(self):
        """ANY and ALL where values are equal."""
        table = self.filled()
        name, _ = self.some_column(table, "iudsDT")
        if not name:
            return None
        sign, word = self.rng.choice(["<", "<=", ">", ">=", "<>", "="]), self.rng.choice(["ALL", "ALL", "ANY"])
        inner = f"SELECT r2.{name} FROM {table.name} AS r2 WHERE r2.{name} IS NOT NULL"
        return f"SELECT r1.id FROM {table.name} AS r1 WHERE r1.{name} {sign} {word} ({inner})"

    def gap_of_index(self):
        """Ranges of an index that begin or end between two values of its type."""
        table = self.filled()
        found = self.indexed(table, "iud")
        if not found:
            return None
        name, type_ = self.rng.choice(found)
        self.types.add(type_)
        middle = self.rng.choice(["0.5", "1.5", "2.5", "-0.5", "4.5", "6.5", "9.5", "1.005", "2.245"])
        condition = self.rng.choice([f"{name} > {middle}", f"{name} >= {middle}", f"{name} < {middle}", f"{name} <= {middle}",
                                     f"{name} BETWEEN {middle} AND 7.5", f"{name} BETWEEN -1.5 AND {middle}"])
        return f"SELECT id, {name} FROM {table.name} WHERE {condition}"

    def constant_in_other_collation(self):
        """Constants beside columns of another collation than the connection's."""
        found = [(table, name) for table in self.tables if table.rows for name, kind, _ in table.columns
                 if COLUMN_TYPES[kind] == "s" and ("utf8mb4_bin" in kind or table.collation[0] == "utf8mb4_bin")]
        if not found:
            return None
        table, name = self.rng.choice(found)
        self.types.add("s")
        test = self.rng.choice([f"{name} IN ('A', 'b', 'AB')", f"{name} BETWEEN 'A' AND 'Z'", f"CASE {name} WHEN 'A' THEN 1 WHEN 'ab' THEN 2 ELSE 0 END",
                                f"{name} = 'A'", f"NULLIF({name}, 'A') IS NULL", f"CONCAT({name}, '') IN ('A', 'B')", f"{name} LIKE 'A%'"])
        return f"SELECT r1.id, {test} AS n FROM {table.name} AS r1" + self.rng.choice(["", " ORDER BY r1.id", f" WHERE {test}"])

    def quotient_of_whole(self):
        """Quotients that go on being computed with."""
        table = self.filled()
        name, _ = self.some_column(table, "iud")
        if not name:
            return None
        by = self.rng.choice(["3", "7", "9"])
        # MariaDB keeps more digits than the nine of MySQL.
        equal = f", ({name} / {by}) * {by} = {name} AS m" if self.rounds else ""
        return f"SELECT id, ROUND(({name} / {by}) * {by}, 3) AS n{equal} FROM {table.name}"

    def range_without_value(self):
        """Frames by RANGE of rows without a value, which come last."""
        table = self.filled()
        name, _ = self.some_column(table, "iud")
        if not name:
            return None
        start, end = self.rng.choice(["1 PRECEDING", "2 PRECEDING", "CURRENT ROW"]), self.rng.choice(["CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING"])
        direction = self.rng.choice([" DESC", " DESC", ""])
        frame = f"ORDER BY {name}{direction} RANGE BETWEEN {start} AND {end}"
        return f"SELECT id, {name}, {self.rng.choice(['COUNT(*)', 'SUM(id)'])} OVER ({frame}) AS n FROM {table.name}"

    def assignments(self, table, alias, scope, depth):
        """What an UPDATE sets: columns outside unique keys, mostly."""
        keys = set(table.key).union(*[set(columns) for _, unique, columns in table.indexes if unique])
        others = [column for column in table.columns if column[0] not in keys] or table.columns[-1:]
        chosen = self.rng.sample(others, min(len(others), self.rng.randint(1, 2)))
        parts = []
        for name, kind, _ in chosen:
            type_ = COLUMN_TYPES[kind]
            self.types.add(type_)
            value = self.expr(type_, scope, depth) if type_ not in "sx" else self.atom(type_, scope)
            parts.append(Node("item", f"{alias}{name} = " + "{}", [value]))
        return sequence(parts)

    def change(self):
        """A statement that changes one table or two: tree, names of the tables."""
        self.mixes = False
        kind = self.pick({"UPDATE": 22, "DELETE": 14, "UPDATE join": 12, "DELETE join": 12, "INSERT SELECT": 12, "REPLACE": 8, "ON DUPLICATE": 14, "INSERT VALUES": 6})
        self.note(kind)
        table = self.rng.choice([t for t in self.tables if t.rows] or self.tables)
        others = [t for t in self.tables if t is not table]
        everything, depth = self.tables, self.rng.choice([1, 1, 2])
        scope = Scope([Col(f"{table.name}.{name}", COLUMN_TYPES[kind], nullable) for name, kind, nullable in table.columns])
        if kind in ("UPDATE", "DELETE"):
            self.tables = others
            where = clause(" WHERE {}", self.predicate(scope, depth + 1), kind="where") if self.chance(0.85) else empty()
            limit = clause(" ORDER BY " + ", ".join(table.key) + self.rng.choice([" LIMIT 2", " LIMIT 5", ""])) if self.chance(0.15) else empty()
            if kind == "UPDATE":
                node = Node("statement", "UPDATE " + table.name + " SET {}{}{}", [self.assignments(table, "", scope, depth), where, limit])
            else:
                node = Node("statement", "DELETE FROM " + table.name + "{}{}", [where, limit])
        elif kind in ("UPDATE join", "DELETE join"):
            alias = "g"
            own = [Col(f"g.{name}", COLUMN_TYPES[kind], nullable) for name, kind, nullable in table.columns]
            inner, from_ = self.from_(None, 1, 0, base_only=True)
            word = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
            self.joins.add(word)
            joined = Node("from", f"{table.name} AS {alias} {word} " + "{} ON {}", [from_, self.condition(own, inner.columns, None, 1)], kind="join")
            self.tables = others
            where = clause(" WHERE {}", self.predicate(Scope(own + inner.columns), depth), kind="where") if self.chance(0.6) else empty()
            if kind == "UPDATE join":
                node = Node("statement", "UPDATE {} SET {}{}", [joined, self.assignments(table, "g.", Scope(own), 1), where])
            else:
                node = Node("statement", "DELETE g FROM {}{}", [joined, where])
        else:
            names = [column[0] for column in table.columns if not column[2] or self.chance(0.8)]
            types = [COLUMN_TYPES[column[1]] for column in table.columns if column[0] in names]
            verb = "REPLACE" if kind == "REPLACE" else "INSERT IGNORE" if kind == "INSERT SELECT" and self.chance(0.2) else "INSERT"
            head = f"{verb} INTO {table.name} ({', '.join(names)}) "
            if kind == "INSERT VALUES" or self.chance(0.3):
                self.tables = others
                rows = [Node("list", "({})", [sequence([self.new_value(name, t, table) for name, t in zip(names, types)], len(names))]) for _ in range(self.rng.randint(1, 4))]
                source = Node("values", "VALUES {}", [sequence(rows)])
            else:
                inner, from_ = self.from_(None, self.rng.choice([1, 1, 2]), 1)
                items = []
                for name, t in zip(names, types):
                    value = self.column(t, inner) if t in "sx" else self.expr(t, inner, 1)
                    if name == "id" and self.chance(0.6):
                        value = Node("expr", "({} + " + self.rng.choice(["0", "5", "50"]) + ")", [self.column("i", inner) or raw("1")])
                    items.append(Node("item", "{} AS x" + str(len(items)), [value or self.literal(t)]))
                items = sequence(items, len(names))
                where = clause(" WHERE {}", self.predicate(inner, 1)) if self.chance(0.6) else empty()
                distinct = Node("clause", "DISTINCT ", optional=True) if self.chance(0.4) else empty()
                order = self.order(items, limit=False)
                source = Node("query", "SELECT {}{} FROM {}{}{}", [distinct, items, from_, where, order])
            tail = empty()
            if kind == "ON DUPLICATE":
                parts = []
                keys = set(table.key).union(*[set(columns) for _, unique, columns in table.indexes if unique])
                for name, kind_, _ in table.columns:
                    if name in names and name not in keys and self.chance(0.6):
                        choice = self.rng.choice(["VALUES({0})", "{1}.{0}", "COALESCE(VALUES({0}), {1}.{0})", "IF(VALUES({0}) > {1}.{0}, VALUES({0}), NULL)"]
                                                 + (["{1}.{0} + 1", "VALUES({0}) + {1}.{0}"] if COLUMN_TYPES[kind_] in "if" else []))
                        parts.append(raw(f"{name} = " + choice.format(name, table.name), "item"))
                parts = parts or [raw("id = VALUES(id)", "item")]
                tail = Node("clause", " ON DUPLICATE KEY UPDATE {}", [sequence(parts)])
            node = Node("statement", head + "{}{}", [source, tail])
        self.tables = everything
        return node, [table.name]

    def new_value(self, name, type_, table):
        if name == "id":
            return raw(str(self.rng.randint(1, len(table.rows) + 4)))
        self.types.add(type_)
        if self.chance(0.12) and self.size < 4:
            self.note("scalar subquery")
            return Node("expr", "{}", [self.scalar(type_, None, 1)], type_=type_)
        return self.literal(type_)

    def coverage(self):
        return {"productions": self.features, "types": self.types, "joins": self.joins or {"none"}}
