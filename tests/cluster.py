"""Clusters of real processes: started, asked, waited for, and ended.

Nothing is decided by how fast something is. What must come about is waited for, PATIENCE_S at most; how long it took is printed where
that says something.

A node that gets no processor time for longer than its lease is removed by the others, and starts again. On a busy machine that may
happen to any node at any time, and then clients get temporary errors. A test that has not done it to the node must not take that for
a fault of what it tests: it begins once more, a few times, and says so (`undisturbed`, `repeated`). A wrong answer is never excused.
"""

import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import traceback

from minimysql import Connection, MySQLError

# Whatever is to happen has happened by then, also on a busy machine.
PATIENCE_S = 120
ATTEMPTS = 8
# How long a node may serve without having heard from the others.
LEASE_S = 0.3
# A removal that is under way has come about by then.
SETTLED_S = 0.5
# Lock wait timeout, transaction rolled back, temporary error; too many connections, shutdown; a full disk.
TEMPORARY = {1205, 1213, 1297, 1040, 1053, 1021}
# Nobody knows what became of a commit; or how many rows it has changed.
UNKNOWN = {50029, 50038}
# What a client of a node whose process has ended gets.
LOST = (ConnectionError, TimeoutError)
# The status of a test that has met temporary errors only: with_cluster.py looks whether the machine was to blame.
INCONCLUSIVE = 75


class CommandFailed(RuntimeError):
    """A command of `latsdb` has ended with an error."""


class Disturbed(Exception):
    """A node was removed that the test had done nothing to: what was seen says nothing."""


def is_temporary(error):
    """True if a client tries again after such an error."""
    if isinstance(error, MySQLError):
        return error.number in TEMPORARY
    # Without the process that was to be killed: a node has another one by now.
    return isinstance(error, (CommandFailed, Disturbed, ProcessLookupError, *LOST))


def is_unknown(error):
    """True if the server does not know what became of a commit, or whether it is on disk."""
    return getattr(error, "number", None) in UNKNOWN or "(LDB-35)" in str(error)


def connect(place, timeout=PATIENCE_S):
    """A connection to a node: a port of this machine, or host and port."""
    host, port = place if isinstance(place, tuple) else ("127.0.0.1", place)
    return Connection(port, "test", timeout=timeout, host=host)


def insist(ask):
    """The answer to a question that changes nothing: it is asked again after temporary errors."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except (MySQLError, *LOST) as error:
            if not is_temporary(error) or time.monotonic() > end:
                raise
            time.sleep(0.2)


def rows(place, statement):
    """What a query gives at a node; it is asked again while the node is away."""
    def ask():
        connection = connect(place)
        try:
            return connection.query(statement)
        finally:
            connection.close()
    return insist(ask)


def wait_until(what, holds, describe=lambda: "", patience_s=PATIENCE_S):
    """Waits until it holds; gives what `holds` gave, and the seconds that it took."""
    begun = time.monotonic()
    while not (found := holds()):
        if time.monotonic() > begun + patience_s:
            raise RuntimeError(f"waited {patience_s} s, and not yet: {what}\n{describe()}")
        time.sleep(0.02)
    return found, time.monotonic() - begun


def repeated(name, once):
    """Does it once more when it was disturbed."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return once()
        except Disturbed as why:
            if attempt == ATTEMPTS:
                raise
            print(f"{name}: once more ({attempt} of {ATTEMPTS - 1}): {why}", flush=True)


def concluded(test):
    """Runs a test that with_cluster.py has started; gives its exit status."""
    try:
        return test() or 0
    except Exception as error:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
        return INCONCLUSIVE if is_temporary(error) else 1


def is_alive(pid):
    """True until all threads of the process are gone: the last one of a killed process frees its memory, and then closes its ports and
    files. Its first thread may look dead long before."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return False
    state, threads = fields[0], int(fields[17])
    return state != "Z" or threads > 1


def removed_by(log):
    """The nodes that the others have removed, or that have ended because they came too late. Who was told to stop says something
    else, who was killed says nothing, and who has met a state that must not be says that."""
    return [int(node) for node in re.findall(r"node stops: .*a new process can join.* node=(\d+)", log)]


def port_of(node):
    return int(node["sql_address"].rsplit(":", 1)[1])


class Waits(threading.Thread):
    """Looks whether threads of nodes that work get a processor. A node that waits for one may be without a lease for a moment, and refuse
    what it is asked, although nobody removes it and no log says so."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.over = cluster, threading.Event()
        self.samples = {}  # by thread: (when, seconds that it has waited in its life), not older than a lease
        self.starved = []  # (when, process)

    def run(self):
        looked, pids = None, []
        while not self.over.wait(LEASE_S / 6):
            if looked is None or time.monotonic() - looked > LEASE_S:
                looked, pids = time.monotonic(), self.cluster.processes()[0]
            for pid in pids:
                for path in glob.glob(f"/proc/{pid}/task/*"):
                    self.look(pid, path)

    def look(self, pid, path):
        try:
            with open(path + "/comm", encoding="utf8") as name, open(path + "/schedstat", encoding="utf8") as stat:
                if not name.read().startswith("lats-exec"):
                    return
                sample = time.monotonic(), int(stat.read().split()[1]) / 1e9
        except (OSError, IndexError):
            return
        samples = [s for s in self.samples.get(path, []) if s[0] > sample[0] - LEASE_S] + [sample]
        self.samples[path] = samples
        if sample[1] - samples[0][1] > LEASE_S / 2:
            self.starved.append((sample[0], pid))

    def since(self, moment):
        """The processes that have waited for half of a lease within a lease, at a time since then."""
        return sorted({pid for when, pid in list(self.starved) if when > moment})


class Running:
    """A cluster that somebody has started on this machine."""

    def __init__(self, binary, directory):
        self.binary, self.directory = binary, directory
        # What logs had in them before the cluster was started again.
        self.former = ""

    def popen(self, command, *arguments):
        line = [self.binary, command, "--data-dir", self.directory, *arguments]
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, command, *arguments):
        line = [self.binary, command, "--data-dir", self.directory, *arguments]
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise CommandFailed(f"{' '.join(line)}: {done.stderr}")
        return done.stdout

    def status(self):
        """What the cluster says of itself; it is asked again while nobody answers."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return json.loads(self.run("status", "--json"))
            except CommandFailed:
                if self.has_ended() or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def all_nodes(self):
        """The witness too."""
        return self.status()["nodes"]

    def nodes(self):
        return [n for n in self.all_nodes() if "data" in n["roles"]]

    def processes(self):
        """Node processes, and the supervisor, if it lives."""
        nodes, supervisor = [], None
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            pid = int(path.split("/")[2])
            try:
                with open(path, encoding="utf8", errors="replace") as file:
                    words = file.read().split("\0")
            except OSError:
                continue
            if self.directory in words and is_alive(pid):
                if words[1] == "node":
                    nodes.append(pid)
                elif words[1] == "start" and "--detach" not in words:
                    supervisor = pid
        return nodes, supervisor

    def pids(self):
        return {n["node_id"]: n["pid"] for n in self.all_nodes()}

    def has_ended(self):
        """True if all its rows were lost: it has ended by itself then."""
        return os.path.exists(os.path.join(self.directory, "ended.txt"))

    def has_lost_rows(self):
        """True if all replicas of some rows are gone."""
        try:
            return self.has_ended() or bool(json.loads(self.run("status", "--json"))["lost_node_groups"])
        except CommandFailed:
            return False

    def log(self):
        try:
            with open(self.directory + ".log", encoding="utf8", errors="replace") as log:
                return self.former + log.read()
        except FileNotFoundError:
            return self.former

    def describe(self):
        """For a person who looks for what went wrong."""
        try:
            state = self.run("status")
        except (CommandFailed, subprocess.TimeoutExpired) as error:
            state = str(error)
        end = "\n".join(self.log().splitlines()[-20:])
        return f"{state}nodes that were removed: {self.removed()}\nthe log, {self.directory}.log, ends with:\n{end}"

    def whole(self, gone=()):
        """The data nodes, if all nodes serve and none is one of the processes that are gone; else none."""
        try:
            nodes = json.loads(self.run("status", "--json"))["nodes"]
            if any(n["state"] != "serving" or n["pid"] in (None, *gone) for n in nodes):
                return None
            data = [n for n in nodes if "data" in n["roles"]]
            for node in data:
                connect(port_of(node), 10).close()
            return data
        except (CommandFailed, MySQLError, *LOST):
            return None

    def wait_whole(self, gone=()):
        """Waits until it is whole, with other processes than those that are gone; gives the data nodes."""
        def look():
            if self.has_ended():
                raise CommandFailed(f"the cluster has ended: {self.describe()}")
            return self.whole(gone)
        return wait_until("the cluster is whole", look, self.describe)[0]

    def removed(self):
        """The nodes that the others have removed, or that have ended because they came too late, in the order of the log."""
        return removed_by(self.log())

    def was_disturbed(self, before):
        """True if a node was removed since `removed` gave `before`. It says so late: when it gets processor time. When all is whole
        again it has said it."""
        def known():
            return self.has_ended() or len(self.removed()) > len(before) or self.whole()
        with contextlib.suppress(RuntimeError):
            wait_until("it is known whether a node was removed", known)
        return len(self.removed()) > len(before)

    @contextlib.contextmanager
    def undisturbed(self):
        """Temporary errors in here do not count if a node was removed meanwhile."""
        before = self.removed()
        try:
            yield
        except Exception as error:
            if is_temporary(error) and self.was_disturbed(before):
                raise Disturbed(f"{error} (removed: {self.removed()[len(before):]})") from error
            raise

    def at_last(self, name, work):
        """Does it when all nodes are there, and once more if one was removed meanwhile."""
        def once():
            with self.undisturbed():
                self.wait_whole()
                return work()
        return repeated(name, once)


class Cluster(Running):
    """A cluster of two replicas that this test has started, and ends. It keeps nothing on disk."""

    kept = ("--ephemeral",)
    restart_delay_ms = 300

    def __init__(self, binary, sql_port, *options, memory_mib=1024):
        super().__init__(binary, os.path.join(tempfile.mkdtemp(prefix="latsdb-"), "data"))
        self.sql_port = sql_port
        self.options = ("--restart-delay-ms", str(self.restart_delay_ms), "--memory-mib", str(memory_mib), *self.kept, *options)
        try:
            self.start()
            self.settle()
        except BaseException:
            print(self.describe(), flush=True)
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            try:
                self.stop()
            except BaseException:
                self.kill_all(True)
                raise
        else:
            print(f"the cluster's log: {self.directory}.log; nodes that were removed: {self.removed()}", flush=True)
            self.end()
        # Nobody excuses a node that has met a state that must not be.
        if kind in (None, Disturbed) and "panicked at" in self.log():
            raise AssertionError(f"something has panicked: see {self.directory}.log")

    def starting(self, *more):
        """The command that starts it; it is not waited for."""
        # A start begins a new log.
        self.former = self.log()
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.directory + ".log")
        return self.popen("start", "--sql-port", str(self.sql_port), "--detach", *self.options, *more)

    def start(self, *more):
        starting = self.starting(*more)
        _, errors = starting.communicate(timeout=PATIENCE_S)
        if starting.returncode != 0:
            raise CommandFailed(f"the cluster does not start: {errors}")
        self.start_who_was_left_out()

    def start_who_was_left_out(self):
        """Who is removed while a cluster is founded is not started again by itself."""
        for node in re.findall(r"^latsdb: node (\d+) has died$", self.log()[len(self.former):], re.MULTILINE):
            print(f"node {node} was removed while the cluster was founded, and is started again", flush=True)
            self.run("start-node", node)

    def settle(self):
        """Until it is whole and stays so: who has come late may be removed when the others have called the cluster whole."""
        before = None
        while (now := ([(n["node_id"], n["pid"]) for n in self.wait_whole()], self.removed())) != before:
            before = now
            time.sleep(SETTLED_S)

    def stop(self):
        """Ends it. On a busy machine that may take longer than the command waits."""
        try:
            self.run("stop")
        except CommandFailed as error:
            if "have died, and nothing becomes durable" in str(error):
                # What was committed since is lost with a restart, as the command has said.
                self.run("stop", "--force")
                return
            if "does not end" not in str(error):
                raise
            wait_until("the supervisor ends", lambda: not self.processes()[1], self.describe)

    def end(self):
        """Ends it, whatever its state is."""
        try:
            self.run("stop", "--force")
        except (CommandFailed, OSError, subprocess.TimeoutExpired):
            self.kill_all(True)

    def kill_all(self, supervisor_too, chooser=None, at_once=False):
        """Kills all nodes, in any order. `at_once`: none of them finds out before that others are gone."""
        nodes, supervisor = self.processes()
        if chooser:
            chooser.shuffle(nodes)
        # The load goes on until the processes are dead.
        victims = ([supervisor] if supervisor_too and supervisor else []) + nodes
        for what in ([signal.SIGSTOP] if at_once else []) + [signal.SIGKILL]:
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, what)
        for pid in victims:
            wait_until("a killed process ends", lambda pid=pid: not is_alive(pid))


class Durable(Cluster):
    """A cluster that keeps its rows."""

    kept = ()
    restart_delay_ms = 200
