#!/usr/bin/env python3
"""Wrong settings, of all commands: each is refused at once, in words that say which setting is wrong, and nothing is made or started.
Then files and directories are their user's alone, and `start` says why it waits for nodes that cannot start.

settings.py [--binary target/release/latsdb] [--sql-port 17906]
"""

import argparse
import fcntl
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

from cluster import LOST, PATIENCE_S, Durable, connect, wait_until
from minimysql import MySQLError

FAILED = []


def check(what, holds, seen=""):
    if not holds:
        FAILED.append(f"{what}: {seen}")
        print(f"settings: WRONG: {what}: {seen}", flush=True)


class Shell:
    """Commands of one binary, in an empty directory."""

    def __init__(self, binary, sql_port):
        self.binary, self.port = os.path.abspath(binary), sql_port
        self.place = tempfile.mkdtemp(prefix="latsdb-settings-")
        self.count = 0

    def run(self, line, environment=None):
        words = [word.replace("{place}", self.place) for word in line]
        return subprocess.run([self.binary, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              cwd=self.place, env={**os.environ, **(environment or {})})

    def refused(self, line, *parts, environment=None):
        """The command ends with a status other than 0, says all these parts, and leaves nothing behind."""
        before, begun = sorted(os.listdir(self.place)), time.monotonic()
        done = self.run(line.split() if isinstance(line, str) else line, environment)
        said, seconds = done.stdout + done.stderr, time.monotonic() - begun
        check(f"`{line}` is refused", done.returncode not in (0, 101) and done.returncode > 0, f"{done.returncode}: {said}")
        for part in parts:
            check(f"`{line}` says {part!r}", part in said, said)
        check(f"`{line}` makes nothing", sorted(os.listdir(self.place)) == before, sorted(os.listdir(self.place)))
        check(f"`{line}` is quick", seconds < 30, f"{seconds:.1f} s")
        self.count += 1


def of_start(shell):
    """Options of `start`, as words and in a file."""
    for line, *parts in [
        ("--memory-mib 0", "--memory-mib 0", "64 MiB at least"),
        ("--memory-mib 63", "--memory-mib 63", "64 MiB at least"),
        ("--memory-mib 100000000000000", "--memory-mib 100000000000000", "each at most", "MiB"),
        ("--memory-mib=-1", "--memory-mib"),
        ("--nodes 0 --replicas 1", "--nodes 0", "1 to 48"),
        ("--nodes 49 --replicas 1", "--nodes 49", "1 to 48"),
        ("--nodes 3", "--nodes 3", "multiple of --replicas (2)"),
        ("--nodes 2 --replicas 4", "--replicas 4", "--nodes is 2"),
        ("--replicas 0", "--replicas 0", "1 to 4"),
        ("--nodes 5 --replicas 5", "--replicas 5", "1 to 4"),
        ("--sql-port 0", "--sql-port 0", "1 to 65535"),
        ("--sql-port 65535", "--sql-port 65535", "1 to 65535"),
        ("--sql-port 70000", "--sql-port"),
        ("--sql-port 5000 --native-port 0", "--native-port 0", "1 to 65535"),
        ("--sql-port 5000 --native-port 65534", "--native-port 65534", "1 to 65535"),
        ("--sql-port 5000 --native-port 5001", "collide", "5000 to 5001", "5001 to 5003"),
        ("--sql-port 5001 --native-port 4999", "collide"),
        ("--restart-delay-ms 3600001", "--restart-delay-ms 3600001", "0 to 3600000"),
        ("--no-restart --restart-delay-ms 5", "--no-restart", "leave one of them out"),
        ("--cut-off-wait-ms 99", "99", "100"),
        ("--lease-ms 99", "--lease-ms 99", "100 to 10000"),
        ("--lease-ms 10001", "--lease-ms 10001", "100 to 10000"),
        ("--scheduler-responsiveness 11", "11", "0..=10"),
        ("--spin-method fast", "--spin-method", "static, cost-based, or latency-optimised"),
        ("--read-placement there", "--read-placement", "adaptive, receiver or owner"),
        ("--thread-config ldm={count=many}", "--thread-config"),
        ("--thread-config nonsense", "--thread-config"),
        ("--locations a,,b", "location domain \"\"", "1 to 64 bytes"),
        ("--locations a,b,c,d", "--locations names 4", "3 nodes"),
        ("--durability sometimes", "--durability", "replicated, disk"),
        ("--ephemeral --durability disk", "--ephemeral", "leave one of them out"),
        ("--ephemeral --archive {place}/archive", "--ephemeral", "leave one of them out"),
        ("--ephemeral --partial", "--partial", "leave one of them out"),
        ("--archive s3://bucket/path", "archives are directories"),
        ("--archive {place}/data/archive", "lie in each other"),
        ("--archive {place}", "lie in each other"),
        ("--config {place}/missing.toml", "cannot read the configuration"),
        ("--unknown 1", "--unknown"),
    ]:
        shell.refused(f"start --detach --data-dir {{place}}/data {line}", *parts)
    shell.refused("start --detach --data-dir /", "--data-dir /", "a directory of its own")
    shell.refused("start --detach --data-dir /dev/null", "/dev/null", "no directory")
    shell.refused("start --detach --data-dir /dev/null/data", "/dev/null is no directory")
    for text, *parts in [
        ("memory_mib = 0", "--memory-mib 0", "64 MiB at least"),
        ("nodes = 2\nmemory = 5", "line 2", "unknown field"),
        ("sql_port = 'x'", "line 1"),
        ("nodes = 2\n\ncut_off_wait_ms = 1", "--cut-off-wait-ms 1", "100 to 3600000"),
        ("lease_ms = 0", "--lease-ms 0", "100 to 10000"),
        ("scheduler_responsiveness = 12", "--scheduler-responsiveness 12"),
        ("data_dir = ''", "--data-dir is empty"),
        ("durability = 'never'", "line 1"),
        ("nodes = ", "line 1"),
    ]:
        path = os.path.join(shell.place, "settings.toml")
        with open(path, "w", encoding="utf8") as file:
            file.write(text)
        data = [] if "data_dir" in text else ["--data-dir", "{place}/data"]
        shell.refused(["start", "--detach", *data, "--config", path], *parts)
        os.remove(path)


def of_others(shell, data):
    """Options of the other commands; `data`: the directory of a cluster that runs."""
    for line, *parts in [
        (f"node --data-dir {data} --node-id 9", "no node 9"),
        (f"node --data-dir {data} --node-id 0", "no node 0"),
        (f"node --data-dir {data} --node-id 1 --cluster-id 0", "--cluster-id"),
        (f"node --data-dir {data} --node-id 1 --cluster-id 5", "another cluster"),
        (f"node --data-dir {data} --node-id 1 --found --partial", "--partial"),
        (f"node --data-dir {data} --node-id 1 --memory-mib 1", "--memory-mib 1", "64 MiB at least"),
        (f"node --data-dir {data} --node-id 1 --memory-mib 99999999", "--memory-mib 99999999", "at most"),
        (f"node --data-dir {data} --node-id 1 --listen here", "HOST:PORT"),
        (f"node --data-dir {data} --node-id 1 --listen 0.0.0.0:9000", "cannot be told to others"),
        (f"node --data-dir {data} --node-id 1 --listen 127.0.0.1:0", "cannot be told to others"),
        (f"node --data-dir {data} --node-id 1 --listen 127.0.0.1:9000 --sql-listen 127.0.0.1:9000", "a port each"),
        (f"node --data-dir {data} --node-id 3 --sql-listen 127.0.0.1:9000", "serves no SQL"),
        (f"node --data-dir {data} --node-id 3 --roles data,sql", "other roles"),
        ("node", "--node-id"),
        (f"stop-node --data-dir {data} 9", "no node 9"),
        (f"stop-node --data-dir {data} 1 --wait-s 0", "--wait-s", "1..=86400"),
        (f"start-node --data-dir {data} 9", "no node 9"),
        (f"declare-dead --data-dir {data} 9", "no node 9"),
        (f"declare-dead --data-dir {data} 1 --wait-s 0", "--wait-s"),
        (f"top --data-dir {data} --times 0", "--times"),
        (f"top --data-dir {data} --seconds 0", "--seconds"),
        (f"top --data-dir {data} --json --metrics", "--metrics"),
        ("status --data-dir {place}/missing", "there is no cluster"),
        ("status --address nowhere", "HOST:PORT"),
        (f"status --data-dir {data} --secret-file {{place}}/missing", "--secret-file"),
        (f"bench flex --data-dir {data} --rows 0", "--rows"),
        (f"bench flex --data-dir {data} --seconds 0", "--seconds"),
        (f"bench flex --data-dir {data} --operations 0", "--operations"),
        (f"bench flex --data-dir {data} --json {{place}}/missing/x.json", "no such directory"),
        (f"bench flex --data-dir {data} --json {{place}}", "is a directory"),
        (f"bench ycsb --data-dir {data} --json {{place}}/x --svg {{place}}/x", "the same file"),
        (f"bench ycsb --data-dir {data} --workloads z", "--workloads"),
        (f"bench ycsb --data-dir {data} --peer mysql://root@127.0.0.1", "--sql"),
        (f"bench keys --data-dir {data} --keys 0", "--keys"),
        ("bench layouts --sql-port 65500", "--sql-port"),
        (f"backup --data-dir {data}", "--to"),
        (f"backup --data-dir {data} --to {data}", data),
        (f"restore --data-dir {data} --from {{place}}/missing", "missing"),
        (f"restore --data-dir {data} --from {{place}}/missing --until yesterday", "--until"),
        ("archive show {place}/missing", "missing"),
        (f"archive show --data-dir {data}", "does not archive"),
        ("inspect {place}/missing", "cannot read"),
        (f"sql --data-dir {data} --database missing -e SELECT+1", "nknown database"),
    ]:
        shell.refused(line, *parts)
    shell.refused(f"status --data-dir {data}", "RUST_LOG", "is no filter", environment={"RUST_LOG": "a=b=c"})
    shell.refused(f"status --data-dir {data}", "/missing", environment={"LATSDB_SECRET_FILE": "/missing"})
    shell.refused(f"start --detach --data-dir {data}", "runs in", "latsdb stop")


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def open_to_others(directory):
    """What others may read or enter of all that a cluster has on disk."""
    found = [directory, directory + ".log"]
    for above, directories, files in os.walk(directory):
        found += [os.path.join(above, name) for name in directories + files]
    return [f"{mode(path):o} {path}" for path in found if mode(path) != (0o700 if os.path.isdir(path) else 0o600)]


def says_why_it_waits(cluster, kept):
    """A node's newest control file is damaged: the node says how, and does without it."""
    control = max(name for name in os.listdir(kept) if name.startswith("control-"))
    path = os.path.join(kept, control)
    with open(path, "rb") as file:
        good = file.read()
    for what, bad, part in [
        ("damaged head", good[:9] + b"\xff" + good[10:], "the checksum of its head is wrong"),
        ("damaged content", good[:-1] + bytes([good[-1] ^ 1]), "the checksum of its content is wrong"),
        ("cut off", good[:-9], "it is shorter than its head says"),
    ]:
        with open(path, "wb") as file:
            file.write(bad)
        cluster.start()
        cluster.wait_whole()
        check(f"a control file that is {what}", f"is passed over: {part}" in cluster.log(), cluster.log()[-1500:])
        check(f"a control file that is {what} is no newer version", "newer version" not in cluster.log())
        cluster.stop()
        control = max(name for name in os.listdir(kept) if name.startswith("control-"))
        path = os.path.join(kept, control)
        with open(path, "rb") as file:
            good = file.read()


def gives_up(cluster, shell):
    """Node 1 cannot ever start: its directory is a file."""
    own, aside = os.path.join(cluster.directory, "node-1"), os.path.join(shell.place, "aside")
    shutil.move(own, aside)
    with open(own, "w", encoding="utf8") as file:
        file.write("not a directory")
    begun = time.monotonic()
    starting = cluster.starting()
    said, errors = starting.communicate(timeout=PATIENCE_S)
    check("a cluster whose node cannot start is given up", starting.returncode != 0, said)
    check("it says which node", "node 1 has ended" in errors and "node-1" in errors, errors)
    check("it says which commands help", "--partial" in errors, errors)
    print(f"settings: `start` gave up after {time.monotonic() - begun:.1f} s: {errors.strip()}", flush=True)
    check("nothing runs any more", not cluster.processes()[0], cluster.processes())
    os.remove(own)
    shutil.move(aside, own)


def waits_aloud(cluster, shell):
    """Node 1 does not start, for somebody has its lock: `start` says so after 5 s."""
    with open(os.path.join(cluster.directory, "node-1", "lock"), "w", encoding="utf8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        starting = cluster.starting()
        begun, text = time.monotonic(), ""
        while "does not serve yet" not in text and time.monotonic() < begun + PATIENCE_S:
            if not (line := starting.stdout.readline()):
                break
            text += line
        after = re.search(r"does not serve yet, after (\d+) s", text)
        check("`start` says that it waits", after, text)
        if after:
            print(f"settings: `start` said after {after[1]} s why it waits", flush=True)
            check("it says so after five seconds", 5 <= int(after[1]) < 30, text)
        for part in ("another process uses", "node 2", "latsdb stop --data-dir"):
            while part not in text and time.monotonic() < begun + PATIENCE_S:
                if not (line := starting.stdout.readline()):
                    break
                text += line
            check(f"it names {part}", part in text, text)
    starting.communicate(timeout=PATIENCE_S)
    # Where the lock was waited for too long, the node has been started again.
    cluster.wait_whole()
    cluster.stop()


def is_not_mounted(cluster):
    """The directories of all nodes are empty, as mount points without their disks are: no empty cluster takes their place."""
    with open(os.path.join(cluster.directory, "cluster.json"), encoding="utf8") as file:
        before = file.read()
    aside = {}
    for node in (1, 2):
        directory = os.path.join(cluster.directory, f"node-{node}")
        aside[directory] = directory + ".aside"
        os.rename(directory, aside[directory])
        os.mkdir(directory)
    _, errors = (starting := cluster.starting()).communicate(timeout=PATIENCE_S)
    check("`start` founds nothing over disks that are not mounted", starting.returncode != 0, errors)
    check("and says what is missing", "node-1" in errors and "mount" in errors, errors)
    with open(os.path.join(cluster.directory, "cluster.json"), encoding="utf8") as file:
        check("the cluster keeps its id", file.read() == before)
    for directory, kept in aside.items():
        os.rmdir(directory)
        os.rename(kept, directory)


def one_never_starts(cluster, port):
    """A cluster that serves is not ended because one of its nodes cannot start, or because a file of the command is missing then."""
    directory, described = (os.path.join(cluster.directory, name) for name in ("node-2", "cluster.json"))
    os.rename(directory, directory + ".aside")
    with open(directory, "w", encoding="utf8"):
        pass
    starting = cluster.starting("--partial")
    wait_until("the other node serves", lambda: serves(port), cluster.describe)
    os.rename(described, described + ".aside")
    time.sleep(1.5)
    check("a cluster that serves goes on", serves(port), cluster.log()[-400:])
    os.rename(described + ".aside", described)
    starting.kill()
    starting.communicate()
    cluster.run("stop", "--force")
    wait_until("nothing runs any more", lambda: not cluster.processes()[0])
    os.remove(directory)
    os.rename(directory + ".aside", directory)


def serves(port):
    try:
        connect(port, 10).close()
        return True
    except (MySQLError, *LOST):
        return False


def is_gone(cluster):
    """The directory goes while the cluster starts: it waits for node 1, whose lock somebody has."""
    with open(os.path.join(cluster.directory, "node-1", "lock"), "w", encoding="utf8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        starting = cluster.starting()
        wait_until("it starts", lambda: len(cluster.processes()[0]) == 3, cluster.describe)
        while os.path.exists(cluster.directory):
            # Nodes make files in it.
            shutil.rmtree(cluster.directory, ignore_errors=True)
        _, errors = starting.communicate(timeout=PATIENCE_S)
    check("`start` ends when its directory is gone", starting.returncode != 0, errors)
    check("and says so", "is gone" in errors or "cannot" in errors, errors)
    wait_until("nothing runs any more", lambda: not cluster.processes()[0])
    # A node that was just starting may have made its own once more.
    shutil.rmtree(cluster.directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--sql-port", type=int, default=17906)
    args = parser.parse_args()
    shell = Shell(args.binary, args.sql_port)
    of_start(shell)
    with Durable(args.binary, args.sql_port) as cluster:
        of_others(shell, cluster.directory)
        said = [name for name in os.listdir(cluster.directory) if name.endswith(".says")]
        check("nodes that are started by hand leave nothing", not said, said)
        check("a cluster's files are its user's alone", not open_to_others(cluster.directory), open_to_others(cluster.directory))
        print(f"settings: {shell.count} wrong settings were refused", flush=True)
        cluster.stop()
        for above, directories, files in os.walk(cluster.directory):
            for name in directories + files:
                path = os.path.join(above, name)
                os.chmod(path, 0o755 if os.path.isdir(path) else 0o644)
        os.chmod(cluster.directory, 0o755)
        tool = os.path.join(cluster.directory, "tool")
        with open(tool, "w", encoding="utf8") as file:
            file.write("somebody's")
        os.chmod(tool, 0o755)
        cluster.start()
        cluster.wait_whole()
        check("files of others are left alone", mode(tool) == 0o755, f"{mode(tool):o}")
        os.remove(tool)
        check("what was open to others is closed", not open_to_others(cluster.directory), open_to_others(cluster.directory))
        cluster.stop()
        shell.refused(f"start --detach --data-dir {cluster.directory} --sql-port {args.sql_port} --lease-ms 200", "leases of 300 ms",
                      "without that option")
        says_why_it_waits(cluster, os.path.join(cluster.directory, "node-1"))
        waits_aloud(cluster, shell)
        gives_up(cluster, shell)
        is_not_mounted(cluster)
        one_never_starts(cluster, args.sql_port)
        is_gone(cluster)
        # There is nothing that could be there in part: a new cluster is founded.
        cluster.start("--partial", "--lease-ms", "150")
        cluster.wait_whole()
        cluster.stop()
        # It stays, also if nobody names it.
        cluster.start()
        cluster.wait_whole()
        with open(os.path.join(cluster.directory, "cluster.json"), encoding="utf8") as file:
            kept = json.load(file)
        check("a lease stays as the cluster was founded", kept["lease_ms"] == 150, kept)
    shutil.rmtree(shell.place)
    shutil.rmtree(os.path.dirname(cluster.directory))
    print(f"settings: {len(FAILED)} WRONG" if FAILED else "settings: all is right")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
