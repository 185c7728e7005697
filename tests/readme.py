#!/usr/bin/env python3
"""Does what the README says, word for word: its statements through node 1, its program against the native port of node 2.

readme.py --sql-port PORT --data-dir DIRECTORY [--program target/release/examples/subscriber]
"""

import argparse
import os
import re
import subprocess
import sys

from minimysql import Connection


def block(page, language):
    found = re.search(rf"```{language}\n(.*?)```", page, re.S)
    assert found, f"README.md has no block of {language}"
    return found.group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    beside = os.path.dirname(os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--program", default=os.path.join(beside, "examples", "subscriber"))
    parser.add_argument("--sql-port", type=int, required=True)
    parser.add_argument("--data-dir", required=True)
    args = parser.parse_args()
    with open(os.path.join(os.path.dirname(__file__), "..", "README.md"), encoding="utf8") as file:
        page = file.read()
    connection = Connection(args.sql_port, "test", timeout=30)
    statements = [s.strip() for s in block(page, "sql").split(";") if s.strip()]
    answers = [connection.query(statement) for statement in statements]
    assert answers[-1] == [["2", "120"]], f"{statements[-1]}: {answers[-1]}"
    before = int(connection.query("SELECT balance FROM test.subscriber WHERE id = 1")[0][0])
    address = f"127.0.0.1:{args.sql_port + 101}"
    done = subprocess.run([args.program, address, os.path.join(args.data_dir, "secret")], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"the README's program: {done.stderr}"
    after = int(connection.query("SELECT balance FROM test.subscriber WHERE id = 1")[0][0])
    assert after == before + 5, f"the README's program added {after - before} instead of 5"
    print(f"readme: {len(statements)} statements, and the program said: {done.stdout.strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
