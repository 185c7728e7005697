#!/usr/bin/env python3
"""Compares `latsdb bench flex` with Redis on this machine, in one run: ratios of operations per second.

Redis keeps nothing on disk and gets a hundred requests at a time (-P 100) with values of 100 bytes, over a million keys.
LatsDB has a million rows with a value of 100 bytes. All servers and clients share the machine; only one pair runs at a time.

flex_redis.py [--binary target/release/latsdb] [--seconds 10] [--json FILE]
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

ROWS = 1_000_000
REDIS_PORT = 26379
# What is compared: stage of flex, replicas, operations and transactions in flight, command of Redis, and the ratio that is wanted.
PAIRS = [
    ("read", 1, 32, 32, "get", 1.5),
    ("insert", 1, 32, 32, "set", 1.0),
    ("update", 1, 32, 32, "set", 1.0),
    ("insert", 2, 32, 32, "set", 0.5),
    ("update", 2, 32, 32, "set", 0.5),
    ("read", 1, 1, 300, "get", 0.8),
]


def redis(seconds):
    """Operations per second of GET and SET."""
    server = subprocess.Popen(["redis-server", "--port", str(REDIS_PORT), "--save", "", "--appendonly", "no"],
                              stdout=subprocess.DEVNULL)
    try:
        wait_for_port(REDIS_PORT)
        found = {}
        for command in ("set", "get"):
            # As many as take about so long; -c 1 and more clients differ little when each has 100 requests under way.
            count, rate = 500_000, 0
            for _ in range(2):
                line = ["redis-benchmark", "-p", str(REDIS_PORT), "-t", command, "-P", "100", "-d", "100", "-c", "10",
                        "-r", str(ROWS), "-n", str(count), "--csv"]
                out = subprocess.run(line, capture_output=True, text=True, check=True, timeout=300).stdout
                rate = float(out.strip().splitlines()[-1].split(",")[1].strip('"'))
                count = int(rate * seconds)
            found[command] = rate
        return found
    finally:
        server.terminate()
        server.wait(10)


def wait_for_port(port):
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


def flex(binary, replicas, operations, transactions, seconds):
    directory = os.path.join(tempfile.mkdtemp(prefix="latsdb-flex-"), "data")
    start = [binary, "start", "--data-dir", directory, "--sql-port", "16500", "--nodes", str(replicas),
             "--replicas", str(replicas), "--ephemeral", "--detach"]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, timeout=60)
    try:
        line = [binary, "bench", "flex", "--data-dir", directory, "--operations", str(operations), "--transactions",
                str(transactions), "--rows", str(ROWS), "--seconds", str(seconds), "--json", "-"]
        # What it says when it fails is for whoever runs this.
        out = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout
        return json.loads(out)
    finally:
        subprocess.run([binary, "stop", "--data-dir", directory], check=False, stdout=subprocess.DEVNULL, timeout=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/latsdb")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--json", help="a file for all figures")
    arguments = parser.parse_args()
    binary = os.path.abspath(arguments.binary)
    before = redis(arguments.seconds)
    runs = {}
    for _, replicas, operations, transactions, _, _ in PAIRS:
        shape = (replicas, operations, transactions)
        if shape not in runs:
            runs[shape] = flex(binary, *shape, arguments.seconds)
    after = redis(arguments.seconds)
    print(f"Redis: GET {before['get']:,.0f} and {after['get']:,.0f} a second, SET {before['set']:,.0f} and "
          f"{after['set']:,.0f} (before and after)\n")
    print("| stage | replicas | operations × transactions | LatsDB, ops/s | median, 99 % | Redis, ops/s | ratio | wanted |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for stage, replicas, operations, transactions, command, wanted in PAIRS:
        one = runs[(replicas, operations, transactions)][stage]
        peer = (before[command] + after[command]) / 2
        errors = f" ({one['errors']} errors)" if one["errors"] else ""
        print(f"| {stage} | {replicas} | {operations} × {transactions} | {one['ops_per_second']:,.0f}{errors} | "
              f"{one['p50_us']:,} µs, {one['p99_us']:,} µs | {command.upper()} {peer:,.0f} | "
              f"{one['ops_per_second'] / peer:.2f} | {wanted} |")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf8") as file:
            json.dump({"redis": [before, after], "flex": [[*shape, run] for shape, run in runs.items()]}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
