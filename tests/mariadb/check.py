#!/usr/bin/env python3
"""Runs tests/mariadb/*.sql through the `mariadb` text client and compares what it prints.

check.py PORT              with the .expected files
check.py PORT --record     writes the .expected files: read them before you keep them
check.py PORT --reference  the server is MariaDB

The .expected files say what MySQL 8.4 answers. Where MariaDB answers otherwise, `differences` lists the
statement; where LatsDB still does, `defects` does. A listed statement that is answered as expected is
reported too, so that the lists stay short. Of an error only number and state count, not the text. Every file runs in a new database.

If an answer is wrong, and one is that the node is gone or does not serve for the moment, the status is 75: with_cluster.py runs this
once more if a node was removed meanwhile.
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
RULE = "-" * 14
DATABASE = "lats_text"
INCONCLUSIVE = 75
# No statement in these files has such an answer: it cannot connect, the connection is gone, temporary errors, a shutdown.
DISTURBED = re.compile(r"ERROR (2002|2003|2006|2013|1205|1213|1297|1053) ")


class Disturbed(Exception):
    """The server was away for a moment."""


def client(port, arguments, text):
    """What the client prints, statements and answers and errors in their order."""
    line = ["stdbuf", "-o0", "mariadb", "--no-defaults", "--host=127.0.0.1", f"--port={port}", "--user=root",
            "--default-character-set=utf8mb4", *arguments]
    done = subprocess.run(line, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"})
    return done.stdout.decode(errors="backslashreplace"), done.returncode


def blocks(output):
    """[(statement, lines of the answer)]"""
    found, lines, at = [], output.split("\n"), 0
    while at < len(lines):
        if lines[at] != RULE:
            if lines[at] not in ("", "Bye"):
                answer = found[-1][1] if found else None
                error = re.match(r"ERROR (\d+) \((\w+)\)", lines[at])
                text = error.group(0) if error else lines[at]
                if answer is None and DISTURBED.match(lines[at]):
                    raise Disturbed(lines[at])
                if answer is None:
                    raise SystemExit(f"mariadb: not a word of SQL came back: {lines[at]}")
                answer.append(text)
            at += 1
            continue
        end = lines.index(RULE, at + 1)
        found.append((" ".join(line.strip() for line in lines[at + 1:end]), []))
        at = end + 1
    return found


def as_text(found):
    return "".join(f"> {statement}\n" + "".join(f"{line}\n" for line in answer) for statement, answer in found)


def from_text(text):
    found = []
    for line in text.splitlines():
        if line.startswith("> "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def listed(name):
    """{(file, statement)} that the server is known to answer otherwise."""
    entries = set()
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            file, statement = line.split(": ", 1)
            entries.add((file, statement))
    return entries


def run(port, file):
    """The blocks of a file, run in a database of its own."""
    prepare = f"DROP DATABASE IF EXISTS {DATABASE}; DROP DATABASE IF EXISTS lats_other; CREATE DATABASE {DATABASE};"
    said, status = client(port, [], prepare)
    if status != 0 and DISTURBED.search(said):
        raise Disturbed(said.strip())
    if status != 0:
        raise SystemExit(f"mariadb: the server on port {port} does not take statements: {said.strip()}")
    output, _ = client(port, ["--force", "--unbuffered", "-vv", DATABASE], file.read_text(encoding="utf-8"))
    return blocks(output)


def compare(file, expected, actual, excused):
    """Number of statements that are wrong, after printing them; and which excuses were needed."""
    wrong, used = 0, set()
    for _, answer in actual:
        for line in answer:
            if DISTURBED.match(line):
                raise Disturbed(f"{file.name}: {line}")
    if [s for s, _ in expected] != [s for s, _ in actual]:
        print(f"mariadb: {file.name}: not the statements of its .expected file; the client stopped early, or the file has changed")
        print("\n".join(list(difflib.unified_diff([s for s, _ in expected], [s for s, _ in actual], lineterm=""))[:20]))
        return 1, used
    for (statement, wanted), (_, got) in zip(expected, actual):
        if wanted == got:
            continue
        if (file.stem, statement) in excused:
            used.add((file.stem, statement))
            continue
        wrong += 1
        print(f"mariadb: {file.name}: {statement}")
        for line in wanted:
            print(f"    expected  {line}")
        for line in got:
            print(f"    got       {line}")
    return wrong, used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("files", nargs="*", help="only these, e.g. errors")
    args = parser.parse_intermixed_args()
    files = [f for f in sorted(HERE.glob("*.sql")) if not args.files or f.stem in args.files]
    # What only LatsDB refuses says nothing about MariaDB.
    files = [f for f in files if not (args.reference and f.stem == "unsupported")]
    excused = listed("differences" if args.reference else "defects")
    statements = wrong = 0
    needed = set()
    for file in files:
        actual = run(args.port, file)
        kept = file.with_suffix(".expected")
        if args.record:
            kept.write_text(as_text(actual), encoding="utf-8")
            print(f"mariadb: {kept.name} written")
            continue
        bad, used = compare(file, from_text(kept.read_text(encoding="utf-8")), actual, excused)
        statements += len(actual)
        wrong += bad
        needed |= used
    client(args.port, [], f"DROP DATABASE IF EXISTS {DATABASE}; DROP DATABASE IF EXISTS lats_other;")
    if args.record:
        return 0
    for file, statement in sorted(e for e in excused - needed if e[0] in {f.stem for f in files}):
        print(f"mariadb: is answered as expected now; take it off the list: {file}: {statement}")
        wrong += 1
    also = f", {len(needed)} are otherwise, as listed" if needed else ""
    print(f"mariadb: {statements} statements in {len(files)} files, {wrong} wrong{also}")
    return 1 if wrong or not statements else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Disturbed as why:
        print(f"mariadb: {why}")
        sys.exit(INCONCLUSIVE)
