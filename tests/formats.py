#!/usr/bin/env python3
"""Reads files as docs/formats says that they are, and finds in them what SQL has said of the rows.

A table with a column of each type is filled, changed and backed up; the cluster is stopped. Then its control file, its redo logs and
the backup are read by what is below, which was written from the documents alone: definitions, rows and keys must be those of the
cluster, and all checksums must be right.
"""

import argparse
import datetime
import glob
import os
import random
import shutil
import struct
import sys
import tempfile
import time
from decimal import Decimal

from cluster import Disturbed, Durable, connect, repeated
from object_store import packages

sys.path.append(packages())
import xxhash  # noqa: E402
import zstandard  # noqa: E402

COLUMNS = [
    ("id", "INT NOT NULL"), ("name", "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"), ("tiny", "TINYINT"), ("small", "SMALLINT UNSIGNED"),
    ("medium", "MEDIUMINT"), ("big", "BIGINT UNSIGNED"), ("single", "FLOAT"), ("twice", "DOUBLE"), ("exact", "DECIMAL(20,5)"), ("short", "CHAR(8)"),
    ("raw", "VARBINARY(30)"), ("filled", "BINARY(6)"), ("long_text", "TEXT"), ("day", "DATE"), ("span", "TIME(6)"), ("moment", "DATETIME(3)"),
    ("stamp", "TIMESTAMP(6) NULL"), ("year_of", "YEAR"), ("truth", "BOOLEAN"),
]
KINDS = ("TINYINT SMALLINT MEDIUMINT INT BIGINT FLOAT DOUBLE DECIMAL CHAR VARCHAR BINARY VARBINARY TINYTEXT TEXT MEDIUMTEXT LONGTEXT TINYBLOB BLOB "
         "MEDIUMBLOB LONGBLOB DATE TIME DATETIME TIMESTAMP YEAR").split()
COLLATIONS = ("binary", "utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci")


def xxh3(data):
    return xxhash.xxh3_64_intdigest(data)


class Postcard:
    """What control.md says of the encoding."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, count):
        out = self.data[self.at:self.at + count]
        assert len(out) == count, "the content ends early"
        self.at += count
        return out

    def byte(self):
        return self.bytes(1)[0]

    def number(self):
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self):
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def bool(self):
        value = self.byte()
        assert value in (0, 1)
        return value == 1

    def text(self):
        return self.bytes(self.number()).decode()

    def list(self, item):
        return [item() for _ in range(self.number())]

    def option(self, item):
        return item() if self.bool() else None

    def map(self, key, value):
        return {key(): value() for _ in range(self.number())}

    def column_type(self):
        kind, arguments = KINDS[self.number()], ()
        if kind == "DECIMAL":
            arguments = (self.byte(), self.byte())
        elif kind in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
            arguments = (self.number(),)
        elif kind in ("TIME", "DATETIME", "TIMESTAMP"):
            arguments = (self.byte(),)
        unsigned, nullable, collation, is_boolean = self.bool(), self.bool(), COLLATIONS[self.number()], self.bool()
        return {"kind": kind, "arguments": arguments, "unsigned": unsigned, "nullable": nullable, "collation": collation, "is_boolean": is_boolean}

    def literal(self):
        kind = self.number()
        readers = [lambda: None, self.signed, self.number, lambda: self.bytes(4), lambda: self.bytes(8),
                   lambda: (self.bytes(self.number()), self.byte(), self.byte()), lambda: (self.text(), COLLATIONS[self.number()]),
                   lambda: self.bytes(self.number()), lambda: (self.number(), self.byte(), self.byte()), lambda: (self.signed(), self.byte()),
                   lambda: (self.number(), self.byte())]
        return readers[kind]()

    def column(self):
        name, kind = self.text(), self.column_type()
        default = [lambda: None, self.literal, lambda: "now"][self.number()]()
        return {"name": name, "type": kind, "default": default, "flags": (self.bool(), self.bool(), self.bool())}

    def index(self):
        unique = lambda: (self.number(), self.option(lambda: (self.number(), self.number())))
        return {"id": self.number(), "name": self.text(), "columns": self.list(self.number), "unique": self.option(unique)}

    def table(self):
        return {"id": self.number(), "version": self.number(), "database": self.text(), "name": self.text(), "columns": self.list(self.column),
                "primary_key": self.list(self.number), "partition_key": self.list(self.number), "indexes": self.list(self.index),
                "fragments": self.number(), "comment": self.text(), "index_of": self.option(lambda: (self.number(), self.number()))}

    def catalog(self):
        return {"version": self.number(), "databases": self.list(self.text), "tables": self.map(self.number, self.table), "next": self.number(),
                "views": self.map(self.number, self.defined_view)}

    def defined_view(self):
        return {"id": self.number(), "database": self.text(), "name": self.text(), "columns": self.list(self.text), "query": self.text(),
                "algorithm": self.number(), "definer": (self.text(), self.text()), "security": self.number(), "check": self.number(),
                "sql_mode": self.text(), "character_set": (self.text(), self.text())}

    def member(self):
        return {"node": self.number(), "life": self.number(), "data": self.bool(), "sql": self.bool(), "native": self.text(), "address": self.text(),
                "location": self.text(), "joined_in": self.number(), "pid": self.number(), "alive": self.bool(), "stopping": self.option(self.number),
                "dead": self.bool(), "had": self.bool()}

    def group(self):
        return {"nodes": self.list(self.number), "replicas": self.list(lambda: (self.number(), self.bool())), "primaries": self.list(self.number),
                "next": self.list(self.number), "last": self.list(self.number)}

    def view(self):
        config = lambda: {"cluster": self.number(), "replicas": self.number(), "ldms": self.number(), "tcs": self.number(), "lease_ms": self.number(),
                          "lock_wait_ms": self.number(), "keeps": self.bool(), "to_disk": self.bool()}
        return {"number": self.number(), "restarts": self.number(), "config": config(), "members": self.list(self.member), "groups": self.list(self.group)}

    def control_state(self):
        result = lambda: self.number() if self.number() == 0 else (self.number(), self.text())
        return {"view": self.view(), "catalog": self.catalog(), "recent": self.list(lambda: (self.number(), result())), "ceiling": self.number(),
                "commands": self.number(), "restored": self.list(self.number),
                "nonces": self.list(lambda: (self.number(), self.number(), self.number())), "fence": self.number()}


def read_control(path):
    data = open(path, "rb").read()
    magic, version, head, cluster, node, zero, length, content_sum, head_sum = struct.unpack_from("<8sIIQHHIQQ", data)
    assert (magic, version, head, zero) == (b"LATSCTRL", 1, 48, 0)
    assert head_sum == xxh3(data[:40]) and content_sum == xxh3(data[48:48 + length]) and len(data) == 48 + length
    reader = Postcard(data[48:])
    assert reader.byte() == 2
    promised, state, durable = reader.number(), reader.control_state(), reader.number()
    assert reader.at == length, "there is more than the document says"
    assert promised <= state["view"]["restarts"] + 1 and state["view"]["config"]["cluster"] == cluster
    return node, state, durable


def read_segment(path, expected):
    """The records of a segment: (number, kind, epoch, changes)."""
    data = open(path, "rb").read()
    fields = struct.unpack_from("<8sIIQHHIQQIIQQ", data)
    magic, version, head, cluster, node, instance, _, segment, first = fields[:9]
    if magic != b"LATSREDO":
        return None
    assert (version, head, cluster, node, instance, segment) == (3, 72, *expected), path
    assert fields[-1] == xxh3(data[:64]), "the head's checksum"
    mark, at, records = xxh3(data[16:32]), 72, []
    while at + 64 <= len(data):
        checksum, length, kind, _, number, epoch, _, _, count = struct.unpack_from("<QIHHQQQQI", data, at)
        if length < 64 or at + length > len(data) or number != first + len(records) or checksum != xxh3(data[at + 8:at + length]) ^ mark:
            break
        assert kind in (1, 2) and length % 8 == 0
        changes, place = [], at + 64
        for _ in range(count):
            table, fragment, gone, row, change, key_bytes, image_bytes = struct.unpack_from("<IHHQQII", data, place)
            key = data[place + 32:place + 32 + key_bytes]
            image = data[place + 32 + key_bytes:place + 32 + key_bytes + image_bytes]
            changes.append((table, fragment, change, key, None if gone else image))
            place += (32 + key_bytes + image_bytes + 7) // 8 * 8
        assert kind == 2 or place == at + length, "changes fill their record"
        records.append((number, kind, epoch, changes))
        at += length
    assert data[at:at + 64].strip(b"\0") == b"" or at + 64 > len(data), "zeros stand behind the last record"
    return records


def width(kind, arguments):
    if kind == "DECIMAL":
        return -(-(-(-arguments[0] * 332193 // 100000) + 1) // 8)
    return {"TINYINT": 1, "SMALLINT": 2, "MEDIUMINT": 3, "INT": 4, "BIGINT": 8, "FLOAT": 4, "DOUBLE": 8, "DATE": 3, "TIME": 6, "DATETIME": 8, "TIMESTAMP": 8,
            "YEAR": 1}.get(kind)


def value_of(column, data):
    kind, arguments = column["kind"], column["arguments"]
    whole = int.from_bytes(data, "little", signed=not column["unsigned"])
    plain = int.from_bytes(data, "little")
    day = lambda packed: f"{packed >> 9:04}-{packed >> 5 & 15:02}-{packed & 31:02}"
    if kind in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"):
        return whole
    if kind in ("FLOAT", "DOUBLE"):
        return struct.unpack("<f" if kind == "FLOAT" else "<d", data)[0]
    if kind == "DECIMAL":
        return Decimal(int.from_bytes(data, "little", signed=True)).scaleb(-arguments[1])
    if kind == "DATE":
        return day(plain)
    if kind == "TIME":
        return datetime.timedelta(microseconds=int.from_bytes(data, "little", signed=True))
    if kind in ("DATETIME", "TIMESTAMP"):
        return day(plain >> 37), datetime.timedelta(microseconds=plain & (1 << 37) - 1)
    if kind == "YEAR":
        return 0 if plain == 0 else 1900 + plain
    return data.decode() if kind.endswith(("TEXT", "CHAR")) else data


def read_row(columns, image):
    assert image[0] == 1
    at, found = 1 + -(-len(columns) // 8), [None] * len(columns)
    nulls = int.from_bytes(image[1:at], "little")
    fixed = [(i, width(c["kind"], c["arguments"])) for i, c in enumerate(columns)]
    for number, size in fixed:
        if size is not None:
            found[number] = image[at:at + size]
            at += size
    variable = [number for number, size in fixed if size is None]
    heap, begin = at + 2 * len(variable), 0
    for number in variable:
        end = int.from_bytes(image[at:at + 2], "little")
        found[number] = image[heap + begin:heap + end]
        at, begin = at + 2, end
    assert heap + begin == len(image)
    return [None if nulls >> i & 1 else value_of(columns[i], data) for i, data in enumerate(found)]


def key_of(row):
    """Of `id` and `name`."""
    key = b"\1" + (row[0] + (1 << 31)).to_bytes(4, "big") + b"\1"
    text, at = row[1].encode(), 0
    text = text.rstrip(b" ")
    while at < len(text):
        run = len(text[at:]) - len(text[at:].lstrip(b" "))
        if run:
            above = text[at + run] > 32
            key += b" " + (b"\3" + (run ^ 0xFFFFFFFF).to_bytes(4, "big") if above else b"\1" + run.to_bytes(4, "big"))
            at += run
        key += text[at:at + 1]
        at += 1
    return key + b" \2"


def fragment_of(key, count):
    return xxh3(key) % 3840 % count


def random_row(number, chooser):
    """A row's values as SQL literals."""
    texts = ["", "a", "b  c", "b\x01", "Äpfel", " x", "tab\tend", "z" * 39]
    signed = lambda bits: str(chooser.choice([-1 << bits - 1, (1 << bits - 1) - 1, 0, chooser.randint(-99, 99)]))
    day = f"{chooser.randint(1, 9999):04}-{chooser.randint(1, 12):02}-{chooser.randint(1, 28):02}"
    clock = f"{chooser.randint(0, 23):02}:{chooser.randint(0, 59):02}:{chooser.randint(0, 59):02}.{chooser.randint(0, 999):03}"
    values = [str(number - 50), "'" + chooser.choice(texts).replace("'", "''") + "'", signed(8), str(chooser.choice([0, 65535, 7])), signed(24),
              str(chooser.choice([0, (1 << 64) - 1, 12345678901])), str(chooser.choice([0.5, -1.25, 1e30])), str(chooser.choice([0.1, -1e300, 3.0])),
              str(chooser.choice(["0", "-123456789012345.67891", "999999999999999.99999", "0.00001"])), "'ab c'",
              "X'" + os.urandom(chooser.randint(0, 30)).hex() + "'", "X'00ff20'", "'" + "long " * chooser.randint(0, 200) + "'", f"'{day}'",
              f"'{chooser.choice(['-838:59:59', '12:00:00.000001', '00:00:00'])}'", f"'{day} {clock}'", f"'2024-0{chooser.randint(1, 9)}-01 {clock}'",
              str(chooser.choice([0, 1901, 2155])), chooser.choice(["TRUE", "FALSE"])]
    return [v if i < 2 or chooser.random() > 0.2 else "NULL" for i, v in enumerate(values)]


def as_sql_says(columns, row):
    """A value that was read from a file, as the text protocol prints it."""
    out = []
    for column, value in zip(columns, row):
        fraction = column["arguments"][0] if column["kind"] in ("TIME", "DATETIME", "TIMESTAMP") else 0
        clock = lambda span: f"{span // datetime.timedelta(hours=1):02}:{span // datetime.timedelta(minutes=1) % 60:02}:" + (
            f"{span.total_seconds() % 60:0{3 + fraction}.{fraction}f}" if fraction else f"{int(span.total_seconds()) % 60:02}")
        if value is None or isinstance(value, bytes):
            out.append(value)
        elif column["kind"] == "TIME":
            out.append(("-" if value.days < 0 else "") + clock(abs(value)))
        elif isinstance(value, tuple):
            out.append(f"{value[0]} {clock(value[1])}")
        elif column["kind"] == "DECIMAL":
            out.append(f"{value:.{column['arguments'][1]}f}")
        elif column["kind"] == "YEAR":
            out.append(f"{value:04}")
        else:
            out.append(value if isinstance(value, (float, str)) else str(value))
    return out


def same(found, said):
    number = lambda text: struct.unpack("<f", struct.pack("<f", float(text)))[0]
    for mine, theirs in zip(found, said):
        if isinstance(mine, float):
            if theirs is None or (mine != float(theirs) and abs(mine - number(theirs)) > abs(mine) * 1e-5):
                return False
        elif isinstance(mine, bytes):
            if theirs != "0x" + mine.hex().upper() and theirs != mine.hex().upper():
                return False
        elif mine != theirs:
            return False
    return True


def selected(connection, name):
    hexed = {"raw", "filled"}
    columns = ", ".join(f"HEX({c})" if c in hexed else c for c, _ in COLUMNS)
    return {(int(row[0]), row[1]): list(row) for row in connection.query(f"SELECT {columns} FROM {name}")}


def from_logs(directory, state, node):
    """The rows of each table, by key, from a node's logs; and which fragment each was in."""
    newest, fragments = {}, {}
    for instance in range(state["view"]["config"]["ldms"]):
        paths = glob.glob(os.path.join(directory, f"redo-{instance}-*.log"))
        numbered = sorted((int(path.rsplit("-", 1)[1].split(".")[0]), path) for path in paths)
        last = 0
        for segment, path in numbered:
            records = read_segment(path, (state["view"]["config"]["cluster"], node, instance, segment))
            for number, _, _, changes in records or []:
                assert number > last, "records are numbered across segments"
                last = number
                for table, fragment, change, key, image in changes:
                    if newest.get((table, key), (0, None))[0] <= change:
                        newest[table, key], fragments[table, key] = (change, image), fragment
    rows = {}
    for (table, key), (_, image) in newest.items():
        if image is not None:
            rows.setdefault(table, {})[key] = image
    return rows, fragments


def from_backup(directory):
    """The catalog and the rows of each table of a backup."""
    def blocks(path, kind):
        data = open(path, "rb").read()
        magic, version, head, cluster, epoch, part, flag, head_sum = struct.unpack_from("<8sIIQQIIQ", data)
        assert (magic, version, head) == (kind, 1, 48) and head_sum == xxh3(data[:40])
        at, number = 48, 0
        turn = lambda value, by: (value << by | value >> 64 - by) & (1 << 64) - 1
        while at < len(data):
            number += 1
            checksum, stored, plain, table, rows, count = struct.unpack_from("<QIIIIQ", data, at)
            content = data[at + 32:at + 32 + stored]
            assert count == number and checksum == head_sum ^ turn(xxh3(data[at + 8:at + 32]), 1) ^ turn(xxh3(content), 2)
            content = zstandard.ZstdDecompressor().decompress(content, max_output_size=plain)
            assert len(content) == plain
            yield table, rows, content
            at += 32 + stored

    (_, _, described), = blocks(os.path.join(directory, "backup.lats"), b"LATSBKUP")
    reader = Postcard(described)
    assert reader.byte() == 2
    reader.text(), reader.number(), reader.number(), reader.number(), reader.number()
    catalog, rows = reader.catalog(), {}
    for path in sorted(glob.glob(os.path.join(directory, "rows-*.lats"))):
        for table, count, content in blocks(path, b"LATSPART"):
            at = 0
            for _ in range(count):
                size, = struct.unpack_from("<I", content, at)
                rows.setdefault(table, []).append(content[at + 4:at + 4 + size])
                at += 4 + size
            assert at == len(content)
    return catalog, rows


def fill(connection, chooser):
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
    connection.query(f"CREATE TABLE every_type ({columns}, PRIMARY KEY (id, name), UNIQUE KEY u (big), KEY s (small, tiny)) COMMENT 'of each one'")
    connection.query("DROP INDEX u ON every_type")
    for at in range(0, 400, 100):
        rows = ", ".join("(" + ", ".join(random_row(n, chooser)) + ")" for n in range(at, at + 100))
        connection.query(f"INSERT INTO every_type VALUES {rows}")
    connection.query("UPDATE every_type SET tiny = 5, long_text = 'changed' WHERE id % 7 = 0")
    connection.query("DELETE FROM every_type WHERE id % 11 = 0")
    connection.query("CREATE TABLE made_unique (id INT PRIMARY KEY, n INT, UNIQUE KEY (n))")
    connection.query("INSERT INTO made_unique VALUES (1, 10), (2, NULL), (3, 30)")
    connection.query("CREATE SQL SECURITY INVOKER VIEW some (k) AS SELECT n FROM made_unique WHERE n > 10 WITH LOCAL CHECK OPTION")


def check_table(table):
    assert [c["name"] for c in table["columns"]] == [name for name, _ in COLUMNS]
    assert table["primary_key"] == [0, 1] and table["comment"] == "of each one" and table["partition_key"] == []
    assert [(i["name"], i["columns"]) for i in table["indexes"]] == [("s", [3, 2])]
    for column, (_, wanted) in zip(table["columns"], COLUMNS):
        said = column["type"]
        kind = "TINYINT" if wanted == "BOOLEAN" else wanted.split("(")[0].split(" ")[0]
        assert said["kind"] == kind and said["unsigned"] == ("UNSIGNED" in wanted) and said["nullable"] == ("NOT NULL" not in wanted), (said, wanted)
        assert said["is_boolean"] == (wanted == "BOOLEAN") and ("utf8mb4_bin" in wanted) == (said["collation"] == "utf8mb4_bin")


def check_view(catalog):
    view, = catalog["views"].values()
    assert view["query"].startswith("select `test`.`made_unique`.`n` AS `n` from `test`.`made_unique`"), view
    assert (view["name"], view["columns"], view["algorithm"], view["security"], view["check"]) == ("some", ["k"], 0, 1, 1)


def check_rows(table, images, expected, what):
    types = [c["type"] for c in table["columns"]]
    assert len(images) == len(expected), f"{what} has {len(images)} rows, SQL {len(expected)}"
    for image in images:
        row = read_row(types, image)
        printed, said = as_sql_says(types, row), expected[row[0], row[1]]
        assert same(printed, said), f"{what}: {printed}, and SQL says {said}"


def check_node(directory, expected):
    """A node's own files."""
    control = max(glob.glob(os.path.join(directory, "control-*")), key=lambda path: int(path.rsplit("-", 1)[1].split(".")[0]))
    node, state, durable = read_control(control)
    assert durable > 0 and state["view"]["config"]["to_disk"], "what commits wait for is there"
    tables = {table["name"]: table for table in state["catalog"]["tables"].values()}
    table = tables["every_type"]
    check_table(table)
    check_view(state["catalog"])
    rows, fragments = from_logs(directory, state, node)
    images = rows[table["id"]]
    check_rows(table, images.values(), expected, f"the logs of node {node}")
    types = [c["type"] for c in table["columns"]]
    for key, image in images.items():
        assert key == key_of(read_row(types, image)), f"a key: {key.hex()}"
        assert fragments[table["id"], key] == fragment_of(key, table["fragments"])
    hidden = next(t for t in tables.values() if t["index_of"] == (tables["made_unique"]["id"], tables["made_unique"]["indexes"][0]["id"]))
    entries = sorted(tuple(read_row([c["type"] for c in hidden["columns"]], image)) for image in rows[hidden["id"]].values())
    number = lambda n: b"\1" + (n + (1 << 31)).to_bytes(4, "big")
    assert entries == [(number(10), number(1)), (number(30), number(3))], f"entries of a unique index: {entries}"
    return len(images)


def filled(args, chooser, backup):
    """The directory of a cluster that was filled, and stopped when both nodes had all rows on their disks; and the rows."""
    with Durable(args.binary, args.sql_port, memory_mib=512) as cluster:
        with cluster.undisturbed():
            connection = connect(args.sql_port)
            connection.query("SET PERSIST durability = 'disk', SESSION durability = DEFAULT")
            fill(connection, chooser)
            expected = selected(connection, "every_type")
            cluster.run("backup", "--to", backup)
        cluster.wait_whole()
        removed = cluster.removed()
    if cluster.removed() != removed:
        raise Disturbed("a node was removed while the cluster was stopped: its files may lack rows")
    return cluster.directory, expected


def once(args, chooser):
    directory = tempfile.mkdtemp(prefix="latsdb-formats-")
    backup = os.path.join(directory, "backup")
    data, expected = filled(args, chooser, backup)
    counts = [check_node(os.path.join(data, f"node-{node}"), expected) for node in (1, 2)]
    catalog, rows = from_backup(backup)
    table = next(t for t in catalog["tables"].values() if t["name"] == "every_type")
    check_table(table)
    check_view(catalog)
    check_rows(table, rows[table["id"]], expected, "the backup")
    shutil.rmtree(directory)
    print(f"formats: control files, logs and a backup have {counts} and {len(rows[table['id']])} rows, as SQL says and as the documents say")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=16936)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    print(f"formats: seed {args.seed}", flush=True)
    chooser = random.Random(args.seed)
    return repeated("formats", lambda: once(args, chooser))


if __name__ == "__main__":
    sys.exit(main())
