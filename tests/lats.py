#!/usr/bin/env python3
"""The gauge, `latsdb bench lats`: a short load with one kill, whose JSON and picture must have the event and its times, and whose ledger
must be right. Then a load whose counters somebody sets back: the ledger must notice. Then gauges that are told to end by a signal, whatever
they are about: no process, no namespace and no file of theirs may be left. No time decides anything.

If a node was removed besides, because it got no processor time for a lease, all begins once more.

lats.py [--binary target/release/latsdb] [--sql-port 28306]
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from cluster import LOST, PATIENCE_S, Disturbed, connect, removed_by, repeated, wait_until
from minimysql import MySQLError

SHORT = ["--rows", "500", "--rate", "500", "--memory-mib", "128"]
SET_BACK = 3


def command(args, *more):
    return [args.binary, "bench", "lats", "--sql-port", str(args.sql_port), *SHORT, *more]


def fail_or_excuse(why, said):
    """Nothing excuses a wrong ledger; a node that was removed besides excuses the rest."""
    path = re.search(r"^the cluster's log: (.*)$", said, re.MULTILINE)
    if path:
        with open(path[1], encoding="utf8", errors="replace") as log:
            removed = removed_by(log.read())
        if removed and "WRONG" not in said:
            shutil.rmtree(os.path.dirname(path[1]))
            raise Disturbed(f"{why}: nodes {removed} were removed")
    raise RuntimeError(f"{why}:\n{said}")


def check_event(event):
    """What is wrong with the record of a kill and of the rejoin after it."""
    sights = ("detected", "view_agreed") if event["what"] == "kill" else ("in_view", "full_replica")
    for sight in sights:
        if not event[sight] or event[sight]["ms"] < 0 or not event[sight]["from"].startswith("log"):
            yield f"{event['what']}: {sight} is {event[sight]}"
    if event["what"] == "kill" and event["detected"]["ms"] > event["view_agreed"]["ms"]:
        yield f"the view was agreed before the leader decided: {event}"
    for figure in ("at_ms", "first_commit_ms", "longest_gap_ms", "window_ms"):
        if event[figure] is None or event[figure] < 0:
            yield f"{event['what']}: {figure} is {event[figure]}"
    if event["first_commit_ms"] is not None and event["longest_gap_ms"] > event["window_ms"]:
        yield f"{event['what']}: a gap that is longer than the window"


def check(record):
    """What is wrong with the record of a run with one kill."""
    if [event["what"] for event in record["events"]] != ["kill", "rejoin"]:
        yield f"the events are {[event['what'] for event in record['events']]}"
    for event in record["events"]:
        yield from check_event(event)
    bins, ledger = record["bins"], record["ledger"]
    if not ledger["right"] or ledger["acknowledged"] == 0 or ledger["reads"] == 0:
        yield f"the ledger: {ledger}"
    # What was under way when the load ended is in no bin.
    if not 0 < sum(bins["commits"]) <= ledger["acknowledged"]:
        yield f"{sum(bins['commits'])} commits in bins, {ledger['acknowledged']} in the ledger"
    lengths = {name: len(column) for name, column in bins.items() if isinstance(column, list)}
    if set(lengths.values()) != {bins["count"]} or sum(bins["due"]) < sum(bins["answers"]):
        yield f"bins: {lengths} of {bins['count']}, {sum(bins['due'])} due, {sum(bins['answers'])} answered"
    summary = record["summary"]["kill"]["first_commit_ms"]
    if summary["worst"] != record["events"][0]["first_commit_ms"] or "p99" in summary:
        yield f"the summary of one kill says {summary}"
    load = record["load"]
    if load["open"] or load["oldest_open"] or load["operations"] != load["answers"] + load["errors"] + load["unsent"]:
        yield f"the load: {load}"


def kill(args, directory):
    out, picture = os.path.join(directory, "kill.json"), os.path.join(directory, "kill.svg")
    line = command(args, "--calm-ms", "600", "--away-ms", "300", "--json", out, "--svg", picture)
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    said = done.stdout + done.stderr
    if done.returncode != 0:
        fail_or_excuse(f"the gauge ends with {done.returncode}", said)
    with open(out, encoding="utf8") as file:
        wrong = list(check(json.load(file)))
    drawn = "".join(xml.etree.ElementTree.parse(picture).getroot().itertext())
    wrong += [f"the picture lacks: {words}" for words in ("kill ", "rejoin ", "answers a second", "latency") if words not in drawn]
    if wrong:
        raise RuntimeError("\n".join([*wrong, said]))
    print(done.stdout)


def set_back(args):
    """Sets counters back, when they have counted."""
    def done():
        try:
            connection = connect(args.sql_port, 10)
            changed = connection.query(f"UPDATE bench.lats SET n = 0 WHERE n > 1 LIMIT {SET_BACK}")
            connection.close()
            return changed == SET_BACK
        except (MySQLError, *LOST):
            return False
    return done


def tampered(args, directory):
    out = os.path.join(directory, "tampered.json")
    line = command(args, "--events", "0", "--calm-ms", "1500", "--json", out)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as gauge:
        undo = set_back(args)
        wait_until("counters are set back", lambda: undo() or gauge.poll() is not None)
        said = gauge.communicate(timeout=PATIENCE_S)[0]
    if gauge.returncode != 1 or "ledger: WRONG" not in said:
        fail_or_excuse("the gauge does not notice that counters were set back", said)
    with open(out, encoding="utf8") as file:
        ledger = json.load(file)["ledger"]
    if ledger["right"] or ledger["lost"] < SET_BACK or not ledger["example"]:
        raise RuntimeError(f"the ledger does not show what is lost: {ledger}")
    shutil.rmtree(os.path.dirname(re.search(r"^the cluster's log: (.*)$", said, re.MULTILINE)[1]))
    print(f"counters were set back, and the gauge says so: {ledger['lost']} updates are lost, e.g. {ledger['example']}")


def namespaces():
    if not shutil.which("ip"):
        return set()
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    return {line.split()[0] for line in done.stdout.splitlines() if line}


def processes_in(directory):
    """Processes with this directory, or one in it, in their command lines."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if directory in line:
            found.append(f"{pid}: {line}")
    return found


def loaded(args):
    """Looks whether the load runs."""
    def done():
        try:
            connection = connect(args.sql_port, 10)
            counted = connection.query("SELECT COUNT(*) FROM bench.lats WHERE n > 0")
            connection.close()
            return int(counted[0][0]) > 0
        except (MySQLError, *LOST):
            return False
    return done


def interrupted(args, directory, number, when, *more):
    """Tells a gauge to end; looks whether anything is left of it."""
    name = signal.Signals(number).name
    path = os.path.join(directory, "interrupted.txt")
    line = command(args, "--calm-ms", "60000", *more)
    def said():
        with open(path, encoding="utf8") as file:
            return file.read()

    def place():
        return re.search(r"^starting a cluster in (.*)$", said(), re.MULTILINE)

    with open(path, "w", encoding="utf8") as out, subprocess.Popen(line, stdout=out, stderr=subprocess.STDOUT) as gauge:
        def until(what, holds):
            wait_until(what, lambda: holds() or gauge.poll() is not None, said)
        try:
            until("a cluster is started", place)
            if when != "start":
                until("the load runs", loaded(args))
            if when == "struck":
                until("a node is frozen", lambda: frozen(place()[1]))
        finally:
            gauge.send_signal(number)
        gauge.wait(PATIENCE_S)
    if not place():
        return said()
    if gauge.returncode != 1 or f"interrupted by {name}" not in said():
        fail_or_excuse(f"the gauge ends with {gauge.returncode} after {name}", said())
    left = processes_in(place()[1]) + [place()[1]] * os.path.exists(place()[1])
    left += [space for space in namespaces() if space.startswith(f"lats{gauge.pid}-")]
    if left:
        raise RuntimeError(f"after {name} there are still: {left}\n{said()}")
    print(f"{name}, {when} {' '.join(more)}: nothing is left", flush=True)
    return said()


def frozen(directory):
    """A process of the cluster that is stopped, if there is one."""
    for line in processes_in(directory):
        try:
            with open(f"/proc/{line.split(':')[0]}/stat", encoding="utf8") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "T":
                    return line
        except OSError:
            continue
    return None


def interruptions(args, directory):
    interrupted(args, directory, signal.SIGTERM, "start")
    interrupted(args, directory, signal.SIGINT, "load")
    interrupted(args, directory, signal.SIGHUP, "struck", "--kind", "freeze", "--at", "1", "--lasts-ms", "60000")
    # Nodes in namespaces have no ports on this machine.
    said = interrupted(args, directory, signal.SIGTERM, "start", "--kind", "silent")
    if "none can be made here" in said:
        print("no network namespaces can be made here: the gauge says so")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=28306)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="latsdb-gauge-") as directory:
        repeated("lats", lambda: kill(args, directory))
        repeated("lats", lambda: tampered(args, directory))
        repeated("lats", lambda: interruptions(args, directory))


if __name__ == "__main__":
    main()
