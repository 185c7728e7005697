#!/usr/bin/env python3
"""MariaDB's own .test files on LatsDB, statement by statement beside reference servers.

run.py --port P --mariadb P --mysql P --suite DIR --out NAME [FILE...]   without FILE: all that the list `files` names

DIR is MariaDB's mysql-test folder, with main/ in it. NAME.csv gets a line for each file, NAME.jsonl one for each statement that was
not answered the same, NAME.md the table by area and what was refused most. Keep them where they are: they have the suite's statements.

MariaDB leads; what MySQL answers otherwise counts as MySQL has it. A statement is the same if the values, the order (with ORDER BY),
the number of changed rows, or the number of the error are the same. Statements that MySQL refuses, too, are MariaDB's alone."""

import argparse
import csv
import json
import os
import re
import time
from collections import Counter

import lockstep
import mtr

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["same", "refused", "refused, lead only", "cascade", "wrong", "other error", "order", "format", "not comparable", "lost"]
SHOWN = 60


def listed():
    """Areas and their files."""
    areas = {}
    with open(os.path.join(HERE, "files")) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                area, names = line.split(":", 1)
                areas[area] = names.split()
    return areas


class Report:
    """What is written of one file's statements."""

    def __init__(self, name, details, refusals):
        self.name, self.details, self.refusals = name, details, refusals

    def __call__(self, area, kind, difference, sql, line, ours, right, theirs, note):
        if area == "sql" and kind == "refused":
            self.refusals[re.sub(r"\d+", "N", ours.short(110))] += 1
        entry = {"file": self.name, "line": line, "area": area, "kind": kind, "difference": difference, "sql": sql[:1500]}
        entry |= {"latsdb": ours.short(900), "lead": right.short(900), "second": theirs.short(500) if theirs else "", "note": note}
        self.details.write(json.dumps(entry) + "\n")


def run_file(name, servers, arguments, report):
    """Runs one file; its counts, and why it ended early."""
    path = os.path.join(arguments.suite, "main", name + ".test")
    runner = lockstep.Runner(*servers, report)
    deadline, plain = time.time() + arguments.limit, runner.statement

    def limited(sql, line):
        if time.time() > deadline:
            raise mtr.Skip("time limit")
        plain(sql, line)

    runner.statement = limited
    remark = ""
    try:
        mtr.Program(arguments.suite, runner).file(path)
    except StopIteration:
        remark = "ends early"
    except (mtr.Skip, lockstep.Lost, FileNotFoundError) as why:
        remark = str(why)
    return runner, remark


def table(areas, counts):
    """The table by area: of what MySQL has, too, how much is the same."""
    lines = ["| area | statements | same | refused | follows from that | otherwise | % |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    total = Counter()
    for area, names in [*areas.items(), ("all", None)]:
        row = total if names is None else sum((counts[n] for n in names if n in counts), Counter())
        if names is not None:
            total += row
        theirs = sum(row[k] for k in KINDS) - row["refused, lead only"] - row["not comparable"]
        otherwise = sum(row[k] for k in ("wrong", "other error", "order", "format", "lost"))
        share = 100 * row["same"] / max(1, theirs)
        lines.append(f"| {area} | {theirs} | {row['same']} | {row['refused']} | {row['cascade']} | {otherwise} | {share:.1f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mariadb", type=int, required=True)
    parser.add_argument("--mysql", type=int, default=0)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for a file")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    areas = listed()
    names = arguments.names or [name for names in areas.values() for name in names]
    second = lockstep.Server("mysql", arguments.mysql) if arguments.mysql else None
    servers = (lockstep.Server("latsdb", arguments.port), lockstep.Server("mariadb", arguments.mariadb), second)
    counts, refusals, left_out, plans = {}, Counter(), Counter(), Counter()
    with open(arguments.out + ".csv", "w", newline="") as out, open(arguments.out + ".jsonl", "w") as details:
        writer = csv.writer(out)
        writer.writerow(["file", *KINDS, "excluded", "seconds", "remark"])
        for name in names:
            began = time.time()
            runner, remark = run_file(name, servers, arguments, Report(name, details, refusals))
            counts[name] = Counter({k: runner.counts[("sql", k)] for k in KINDS})
            left_out += runner.left_out
            plans += Counter({kind[1]: n for kind, n in runner.counts.items() if kind[0] == "plans"})
            seconds = round(time.time() - began, 1)
            writer.writerow([name, *(counts[name][k] for k in KINDS), runner.counts["excluded"], seconds, remark])
            out.flush()
            details.flush()
            print(name, {k: n for k, n in counts[name].items() if n}, remark, f"{seconds}s", flush=True)
    lines = table(areas, counts) + ["", "Plans: " + ", ".join(f"{n} {kind}" for kind, n in plans.most_common())]
    lines += ["", "| times | refused |", "| ---: | --- |"]
    lines += [f"| {n} | {why} |" for why, n in refusals.most_common(SHOWN)]
    lines += ["", "| left out | why |", "| ---: | --- |"] + [f"| {n} | {why} |" for why, n in left_out.most_common()]
    with open(arguments.out + ".md", "w") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines[: len(areas) + 5]))


if __name__ == "__main__":
    main()
