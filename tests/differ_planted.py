#!/usr/bin/env python3
"""Looks for the planted bugs of queries with the generated statements of differ.py.

differ_planted.py --binary latsdb --oracle-port Q [--oracle mariadb|mysql] [--bugs NAME,…] [--statements N] [--seed N] [--csv FILE]
bash tests/with_mariadb.sh python3 tests/differ_planted.py --binary target/checked/latsdb --oracle-port {port}

The binary is one with the feature `planted` (`cargo xtask planted-sql` builds it). The names are in tests/differ/planted. For each of
them a server is started that has this bug, and is asked until an answer is wrong which a server without it gives right: beside the
oracle first, then with rules off, then in three parts (TLP), then counted against filtered (NoREC).
The status is 1 if a bug is not found, or if a server without bugs is wrong.
"""

import argparse
import contextlib
import io
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import differ

LIST = pathlib.Path(__file__).resolve().parent / "differ" / "planted"
# The share of the statements that each mode may ask.
SHARES = {"oracle": 1.0, "rules": 0.15, "tlp": 0.5, "norec": 0.5}


def names():
    """The bugs, in the order of the list."""
    lines = (line.split("#")[0].strip() for line in LIST.read_text(encoding="utf-8").splitlines())
    return [line.split()[0] for line in lines if line]


def free_port():
    """A port of which that of nodes, a hundred behind it, is free too."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                other.bind(("127.0.0.1", port + 100))
            except (OSError, OverflowError):
                continue
            return port


class Cluster:
    """A server of one node that has a bug, or none."""

    def __init__(self, binary, bug):
        self.port, self.directory = free_port(), tempfile.mkdtemp(prefix="latsdb-planted-")
        environment = {**os.environ, **({"LATSDB_PLANTED": bug} if bug else {})}
        command = [binary, "start", "--nodes", "1", "--replicas", "1", "--ephemeral", "--data-dir", f"{self.directory}/data",
                   "--sql-port", str(self.port), "--memory-mib", "512"]
        with open(f"{self.directory}/log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self.wait()

    def wait(self):
        end = time.monotonic() + 60
        while "the cluster serves" not in pathlib.Path(f"{self.directory}/log").read_text(encoding="utf-8"):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(pathlib.Path(f"{self.directory}/log").read_text(encoding="utf-8")[-2000:])
            time.sleep(0.05)

    def stop(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class Erring(differ.Server):
    """A server with a bug; while it is not active, the one without is asked."""

    def __init__(self, port, limit, clean):
        super().__init__(port, False, limit)
        self.clean, self.active, self.asked = clean, True, None

    def send(self, text):
        self.asked = super() if self.active else self.clean
        self.asked.send(text)

    def answer(self):
        return self.asked.answer()

    def use(self, database, tables):
        self.clean.use(database, tables)
        super().use(database, tables)


class Both:
    """Two modes `rules`: of the server with a bug, and of the one without."""

    def __init__(self, erring, clean):
        self.erring, self.clean, self.active = erring, clean, True
        self.server = erring.server

    def prepare(self, database, tables):
        self.clean.prepare(database, tables)
        self.erring.prepare(database, tables)

    def check(self, case):
        return (self.erring if self.active else self.clean).check(case)


def mode_of(name, args, ports):
    """What is asked, and what knows whether the bug is active."""
    with_bug, without = ports
    ours = Erring(with_bug, args.limit, differ.Server(without, False, args.limit))
    if name == "oracle":
        return differ.Pair(ours, differ.Server(args.oracle_port, args.oracle, args.limit)), ours
    if name == "rules":
        of = [differ.Variants(argparse.Namespace(port=port, limit=args.limit)) for port in ports]
        both = Both(*of)
        return both, both
    return differ.Alone(ours), ours


def look(args, ports):
    """The mode that finds it, after how many statements of that mode, and what is wrong; or none."""
    asked = 0
    for name in args.modes.split(","):
        options = argparse.Namespace(
            mode=name, oracle=args.oracle, seed=args.seed, only=None, statements=int(args.statements * SHARES[name]), minutes=None,
            changes=0.25, plant=name == "oracle", allow=None, shrink=False, verbose=False, formats=False, most=1, out=None)
        mode, switch = mode_of(name, args, ports)
        run = differ.Run(options, mode)
        run.planted = switch
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            try:
                run.run(stop_at_first=True)
            except (RuntimeError, ConnectionError) as error:
                if f"port {ports[0]}:" in str(error):
                    # The server with the bug is lost, or does not even take the tables' rows.
                    return name, asked + run.statements, str(error).splitlines()[0]
        asked += run.statements
        if run.found:
            return name, asked, told.getvalue().strip()
    return None, asked, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--oracle-port", type=int, required=True)
    parser.add_argument("--oracle", choices=["mariadb", "mysql"], default="mariadb")
    parser.add_argument("--bugs", help="names with commas between them; all by default")
    parser.add_argument("--modes", default=",".join(SHARES))
    parser.add_argument("--statements", type=int, default=4000, help="beside the oracle; the other modes get a part of it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=15)
    parser.add_argument("--csv", type=pathlib.Path)
    args = parser.parse_args()
    # Servers are stopped also then.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    clean, missed = Cluster(args.binary, None), []
    try:
        for bug in args.bugs.split(",") if args.bugs else names():
            begun, erring = time.monotonic(), Cluster(args.binary, bug)
            try:
                found, asked, what = look(args, (erring.port, clean.port))
            finally:
                erring.stop()
            seconds = time.monotonic() - begun
            print(f"{bug}: {f'found by {found}' if found else 'NOT FOUND'} after {asked} statements, {seconds:.0f} s\n{what[:600]}", flush=True)
            if args.csv:
                with open(args.csv, "a", encoding="utf-8") as file:
                    file.write(f"{bug},{found or 'none'},{asked},{args.seed}\n")
            if not found:
                missed.append(bug)
    finally:
        clean.stop()
    print(f"planted bugs of queries: {len(missed)} not found: {', '.join(missed)}" if missed else "planted bugs of queries: all found", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
