#!/usr/bin/env python3
"""Compares what two servers say of the columns of results: type, length, decimals, flags, character set, table; and DESCRIBE's types.

columns.py --port PORT --oracle-port PORT [--only WORD] [--fields type,width,…] [--all]

The oracle is a MySQL server. Expressions are those below, over the tables below; each is asked as a query, and as the one column of a
table that CREATE TABLE … AS SELECT makes. Differences are printed by kind, with how many there are of each; the status is 1 if there is one.
"""

import argparse
import collections
import sys

from wire import Connection

TYPES = {
    "ti": "TINYINT", "tu": "TINYINT UNSIGNED", "si": "SMALLINT", "mi": "MEDIUMINT", "i": "INT", "iu": "INT UNSIGNED", "n": "INT NOT NULL",
    "b": "BIGINT", "bu": "BIGINT UNSIGNED", "dc": "DECIMAL(10,2)", "dn": "DECIMAL(5,0) NOT NULL", "f": "FLOAT", "d": "DOUBLE",
    "c": "CHAR(5)", "v": "VARCHAR(20)", "vn": "VARCHAR(10) NOT NULL", "vb": "VARCHAR(12) COLLATE utf8mb4_bin", "x": "TEXT",
    "bi": "BINARY(4)", "vy": "VARBINARY(9)", "bl": "BLOB", "da": "DATE", "t": "TIME", "t3": "TIME(3)", "dt": "DATETIME",
    "d6": "DATETIME(6)", "ts": "TIMESTAMP NULL", "y": "YEAR",
}
NUMBERS = ["ti", "tu", "i", "iu", "n", "b", "bu", "dc", "dn", "f", "d", "y"]
TEXTS = ["c", "v", "vn", "x", "vb"]
BYTES = ["bi", "vy", "bl"]
MOMENTS = ["da", "t", "t3", "dt", "d6", "ts"]
CONSTANTS = ["1", "-1", "0", "127", "128", "255", "256", "1000000", "2147483648", "9223372036854775807", "9223372036854775808", "1.5", "-1.50",
             "0.001", "1e0", "'a'", "'abc'", "''", "NULL", "TRUE", "X'4142'", "0x41", "b'101'", "DATE'2020-01-02'", "TIME'10:00:00'",
             "TIME'10:00:00.123'", "TIMESTAMP'2020-01-02 03:04:05'", "TIMESTAMP'2020-01-02 03:04:05.12'", "_binary'ab'", "N'ab'", "PI()"]


def expressions():
    """Expressions by kind."""
    for name in TYPES:
        yield "columns", name
        yield "min", f"MIN({name})"
        yield "count", f"COUNT({name})"
        yield "ifnull", f"IFNULL({name}, {name})"
        yield "coalesce null", f"COALESCE(NULL, {name})"
        yield "if", f"IF(n > 0, {name}, NULL)"
        yield "case", f"CASE WHEN n > 0 THEN {name} END"
        yield "nullif", f"NULLIF({name}, {name})"
        yield "greatest", f"GREATEST({name}, {name})"
        yield "subquery", f"(SELECT {name} FROM m LIMIT 1)"
        yield "as char", f"CAST({name} AS CHAR)"
        yield "concat", f"CONCAT({name})"
        yield "any value", f"ANY_VALUE({name})"
        yield "max over", f"MAX({name}) OVER ()"
        yield "lag", f"LAG({name}) OVER (ORDER BY n)"
        yield "group_concat", f"GROUP_CONCAT({name})"
        yield "length", f"LENGTH({name})"
        yield "is null", f"{name} IS NULL"
        yield "hex", f"HEX({name})"
        yield "equal", f"{name} = {name}"
    for name in NUMBERS:
        for function in ("SUM", "AVG", "STD", "VARIANCE", "BIT_AND", "ABS", "CEIL", "FLOOR", "ROUND", "SIGN", "SQRT", "-", "NOT ", "~", "+"):
            yield function.strip().lower(), f"{function}({name})"
        for sign in "+ - * / DIV % & | << ^".split():
            for other in ("i", "bu", "dc", "d", "1", "1.5", "'1'", "NULL"):
                yield f"operator {sign}", f"{name} {sign} {other}"
        for other in ("ti", "iu", "bu", "dc", "d", "f", "v", "da", "1", "1.25", "'a'"):
            yield "mix ifnull", f"IFNULL({name}, {other})"
            yield "mix case", f"CASE WHEN n > 0 THEN {name} ELSE {other} END"
            yield "mix greatest", f"GREATEST({name}, {other})"
        yield "round digits", f"ROUND({name}, 1)"
        yield "round digits", f"ROUND({name}, -1)"
        yield "truncate", f"TRUNCATE({name}, 1)"
        yield "mod", f"MOD({name}, 3)"
        yield "pow", f"POW({name}, 2)"
        yield "format", f"FORMAT({name}, 2)"
    for to in ("SIGNED", "UNSIGNED", "DECIMAL", "DECIMAL(8,3)", "CHAR", "CHAR(4)", "BINARY", "BINARY(3)", "DATE", "TIME", "TIME(2)", "DATETIME",
               "DATETIME(3)", "DOUBLE", "FLOAT", "YEAR"):
        for name in ("i", "bu", "dc", "d", "v", "vy", "dt"):
            yield "cast", f"CAST({name} AS {to})"
    for name in TEXTS + BYTES + ["i", "dc", "da"]:
        for call in ("UPPER({})", "LOWER({})", "TRIM({})", "LTRIM({})", "REVERSE({})", "LEFT({}, 3)", "RIGHT({}, 2)", "SUBSTRING({}, 2)", "SUBSTRING({}, 2, 3)",
                     "REPLACE({}, 'a', 'bb')", "REPEAT({}, 3)", "LPAD({}, 7, 'x')", "RPAD({}, 7, 'x')", "INSERT({}, 1, 2, 'xyz')", "CONCAT({}, 'abc')",
                     "CONCAT({}, v)", "CONCAT_WS(',', {}, {})", "QUOTE({})", "SUBSTRING_INDEX({}, ',', 1)", "ELT(1, {}, 'abcdef')", "INSTR({}, 'a')",
                     "LOCATE('a', {})", "CHAR_LENGTH({})", "ASCII({})", "ORD({})", "STRCMP({}, 'a')", "FIELD({}, 'a')", "FIND_IN_SET('a', {})", "{} LIKE 'a%'",
                     "MD5({})", "SHA1({})", "SHA2({}, 256)", "TO_BASE64({})", "FROM_BASE64({})", "UNHEX({})", "CRC32({})", "SOUNDEX({})", "SPACE(3)",
                     "CONVERT({} USING utf8mb4)", "{} COLLATE utf8mb4_bin", "COERCIBILITY({})", "CHARSET({})", "COLLATION({})", "BIN({})", "OCT({})",
                     "CONV({}, 10, 16)", "BIT_LENGTH({})", "BIT_COUNT({})", "MAKE_SET(3, {}, 'b')", "EXPORT_SET(5, {}, 'N')", "INET_ATON({})", "UNCOMPRESSED_LENGTH({})",
                     "{} REGEXP 'a'", "REGEXP_REPLACE({}, 'a', 'b')", "REGEXP_SUBSTR({}, 'a')", "REGEXP_INSTR({}, 'a')", "IS_UUID({})", "MAX({})", "CHAR({})"):
            if "COLLATE" in call and name not in TEXTS:
                continue
            yield call.split("(")[0].lower() if call[0] != "{" else call, call.replace("{}", name)
    for name in MOMENTS + ["v", "i"]:
        for call in ("DATE({})", "TIME({})", "TIMESTAMP({})", "YEAR({})", "MONTH({})", "DAY({})", "HOUR({})", "MINUTE({})", "SECOND({})", "MICROSECOND({})", "QUARTER({})",
                     "WEEK({})", "YEARWEEK({})", "WEEKDAY({})", "DAYOFWEEK({})", "DAYOFYEAR({})", "DAYNAME({})", "MONTHNAME({})", "LAST_DAY({})", "TO_DAYS({})",
                     "TO_SECONDS({})", "TIME_TO_SEC({})", "SEC_TO_TIME({})", "FROM_DAYS({})", "UNIX_TIMESTAMP({})", "FROM_UNIXTIME({})", "DATE_FORMAT({}, '%Y-%m')",
                     "TIME_FORMAT({}, '%H')", "DATEDIFF({}, da)", "TIMEDIFF({}, {})", "ADDTIME({}, '1:00')", "SUBTIME({}, '1:00')", "{} + INTERVAL 1 DAY", "{} - INTERVAL 1 HOUR",
                     "{} + INTERVAL 1 MICROSECOND", "TIMESTAMPDIFF(DAY, {}, dt)", "TIMESTAMPADD(MINUTE, 1, {})", "EXTRACT(YEAR FROM {})", "EXTRACT(DAY_HOUR FROM {})",
                     "{} + 0", "{} + 1.5", "SUM({})", "AVG({})", "STR_TO_DATE({}, '%Y-%m-%d')", "CONVERT_TZ({}, '+00:00', '+01:00')"):
            yield (call.split("(")[0].lower() if call[0] != "{" else call), call.replace("{}", name)
    for one in CONSTANTS:
        yield "constants", one
        yield "constants concat", f"CONCAT({one}, 'x')"
        for other in ("i", "v", "dc", "da", "1", "'abcdef'", "NULL"):
            yield "constants coalesce", f"COALESCE({one}, {other})"
    for call in ("NOW()", "NOW(3)", "CURDATE()", "CURTIME()", "CURTIME(2)", "UTC_DATE()", "UTC_TIME()", "UTC_TIMESTAMP(6)", "SYSDATE()", "UNIX_TIMESTAMP()", "VERSION()",
                 "DATABASE()", "USER()", "CURRENT_USER()", "CONNECTION_ID()", "LAST_INSERT_ID()", "ROW_COUNT()", "FOUND_ROWS()", "UUID()", "RAND()", "@nosuch", "@@sql_mode",
                 "@@max_connections", "@@autocommit", "@@version", "MAKEDATE(2020, 3)", "MAKETIME(1, 2, 3)", "MAKETIME(1, 2, 3.5)", "PERIOD_ADD(202001, 2)", "PERIOD_DIFF(202001, 201901)",
                 "INTERVAL(3, 1, 2)", "EXISTS (SELECT 1)", "1 IN (1, 2)", "n BETWEEN 1 AND 2", "n AND 1", "n OR 1", "n XOR 1", "NOT n", "COUNT(*)", "COUNT(DISTINCT i, v)",
                 "ROW_NUMBER() OVER ()", "RANK() OVER (ORDER BY n)", "DENSE_RANK() OVER (ORDER BY n)", "NTILE(3) OVER (ORDER BY n)", "PERCENT_RANK() OVER (ORDER BY n)",
                 "CUME_DIST() OVER (ORDER BY n)", "SUM(i) OVER ()", "AVG(dc) OVER ()", "FIRST_VALUE(v) OVER (ORDER BY n)", "LEAD(v, 1, 'zzz') OVER (ORDER BY n)",
                 "NTH_VALUE(dc, 2) OVER (ORDER BY n)", "GROUPING(n)", "EXP(1)", "LN(2)", "LOG(2, 8)", "LOG2(8)", "LOG10(100)", "SIN(1)", "ATAN(1, 2)", "DEGREES(1)", "RADIANS(180)",
                 "PI() + 1", "PI() * 2.5", "ROUND(1.5e0, 3)", "ROUND(1.555, 1)", "TRUNCATE(1.999, 1)", "RANDOM_BYTES(4)", "BIN_TO_UUID(UUID_TO_BIN(UUID()))", "INET6_NTOA(INET6_ATON('::1'))",
                 "FORMAT(1234.5, 1)", "1 + 1", "1 / 3", "5 DIV 2", "5.5 % 2", "1 - 2.5", "2 * 3.25", "18446744073709551615 + 0", "-9223372036854775808"):
        yield "others", call


def groups(expression):
    return "GROUP BY n WITH ROLLUP" if expression.startswith("GROUPING") else ""


FIELDS = ("type", "width", "decimals", "flags", "charset", "table", "declared", "value")
# not null, primary key, unique key, multiple key, blob, unsigned, zerofill, binary, enum, auto_increment, timestamp, set, no default, on update, number
FLAGS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80 | 0x200


def described(connection, expression):
    """What a server says of an expression."""
    answer = connection.query(f"SELECT {expression} AS x FROM m {groups(expression)}")
    if answer.kind != "rows":
        return {"error": answer.code}
    found = {
        "type": answer.types[0], "width": answer.widths[0], "decimals": answer.decimals[0], "flags": answer.flags[0] & FLAGS,
        "charset": answer.charsets[0], "table": answer.places[0], "value": answer.rows[0][0] if answer.rows else None,
    }
    connection.query("DROP TABLE IF EXISTS made")
    made = connection.query(f"CREATE TABLE made AS SELECT {expression} AS x FROM m {groups(expression)}")
    if made.kind == "ok":
        rows = connection.query("DESCRIBE made").rows
        found["declared"] = (rows[0][1], rows[0][2]) if rows else None
    else:
        found["declared"] = made.code
    return found


def prepare(connection):
    columns = ", ".join(f"{name} {of}" for name, of in TYPES.items())
    for text in (
        "CREATE DATABASE IF NOT EXISTS columns_of", "USE columns_of", "DROP TABLE IF EXISTS m", f"CREATE TABLE m ({columns})",
        "INSERT INTO m VALUES (1,2,3,4,5,6,7,8,9,1.25,2,1.5,2.5,'a','bc','d','E','long','ab','cd','ef','2020-01-02','10:11:12','10:11:12.345',"
        "'2020-01-02 03:04:05','2020-01-02 03:04:05.678901','2020-01-02 03:04:05',2020)",
    ):
        answer = connection.query(text)
        if answer.kind == "error":
            raise SystemExit(f"{text[:60]}: {answer.short()}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--port", type=int, required=True)
    arguments.add_argument("--oracle-port", type=int, required=True)
    arguments.add_argument("--only", default="", help="kinds with this word in their name")
    arguments.add_argument("--fields", default=",".join(FIELDS), help="what is compared")
    arguments.add_argument("--all", action="store_true", help="all differences, not three of each kind")
    given = arguments.parse_args()
    fields = [field for field in given.fields.split(",") if field]
    own, oracle = Connection(given.port, database=None), Connection(given.oracle_port, database=None, plugin="caching_sha2_password")
    prepare(own)
    prepare(oracle)
    differences, counts, refused = collections.defaultdict(list), collections.Counter(), collections.Counter()
    for kind, expression in expressions():
        if given.only not in kind:
            continue
        mine, theirs = described(own, expression), described(oracle, expression)
        counts["asked"] += 1
        if "error" in theirs or "error" in mine:
            if theirs.get("error") != mine.get("error"):
                refused[mine.get("error"), theirs.get("error")] += 1
                if mine.get("error") != 1235:
                    differences[kind, "error"].append((expression, mine.get("error"), theirs.get("error")))
            continue
        wrong = [field for field in fields if mine[field] != theirs[field]]
        counts["same"] += not wrong
        for field in wrong:
            counts[field] += 1
            differences[kind, field].append((expression, mine[field], theirs[field]))
    for (kind, field), found in sorted(differences.items(), key=lambda item: (item[0][1], item[0][0])):
        print(f"{field} of {kind}: {len(found)}")
        for expression, mine, theirs in found if given.all else found[:3]:
            print(f"    {expression}: {mine} instead of {theirs}")
    print(dict(counts), "errors, own and the oracle's:", dict(refused))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
