"""Registers that show stale reads, and counters that show conflicting updates.

Each register has one client that writes larger and larger numbers into it, and clients at all nodes read all of them: what was
acknowledged before a read began must be seen by it. Counters are counted up by clients of all nodes: two sides that both acknowledge
lose what one of them has counted.
"""

import threading
import time

from cluster import TEMPORARY, UNKNOWN, connect, insist, is_unknown, rows
from kill import COUNTERS, Counter, Ledger, Worker
from minimysql import MySQLError

# Nobody closes a client's connection when a network is cut.
PATIENCE_S = 5
# The one interpreter in which all clients are must also look after the cluster.
REST_S = 0.003


class Registers:
    """What was acknowledged, what was tried, and what reads have shown."""

    def __init__(self, count):
        self.count, self.acknowledged, self.tried = count, [0] * count, [0] * count
        # (begin of the read, its end, words)
        self.wrong, self.reads, self.history = [], 0, []

    def prepare(self, place):
        def ask():
            connection = connect(place)
            connection.query("CREATE TABLE IF NOT EXISTS register (id INT PRIMARY KEY, n BIGINT NOT NULL)")
            connection.query("REPLACE INTO register VALUES " + ",".join(f"({i}, 0)" for i in range(self.count)))
            connection.close()
        insist(ask)

    def note(self, client, begun, outcome, *actions):
        """For the history; an action is ("w" or "r", register, value)."""
        self.history.append((client, int(begun * 1e9), time.monotonic_ns(), outcome, actions))

    def see(self, begun, before, found, where, client=0):
        """A read that began when `before` was acknowledged."""
        self.reads += 1
        now, values = time.monotonic(), {int(number): int(value) for number, value in found}
        # Each row by itself: a plain read of several rows is no snapshot.
        for number, value in values.items():
            self.note((client, number), begun, "committed", ("r", number, value))
        for number, least in enumerate(before):
            value = values.get(number, -1)
            if value < least:
                self.wrong.append((begun, now, f"register {number} was {value} at {where}, after {least} was acknowledged"))
            elif value > self.tried[number]:
                self.wrong.append((begun, now, f"register {number} was {value} at {where}, and {self.tried[number]} is the last that was written"))

    def check(self, places):
        """What is wrong in the end, when nobody writes; and what reads have shown before."""
        for place in places:
            begun, before = time.monotonic(), list(self.acknowledged)
            self.see(begun, before, rows(place, "SELECT id, n FROM register"), f"{place} in the end")
        return [words for _, _, words in self.wrong]


class RegisterClient(threading.Thread):
    """Writes its own register through one node, if it has one, and reads all of them there."""

    def __init__(self, registers, place, stop, number=None):
        super().__init__(daemon=True)
        self.registers, self.place, self.stop, self.number = registers, place, stop, number
        self.connection, self.failure = None, None
        self.everything = "SELECT id, n FROM register WHERE id IN (" + ",".join(map(str, range(registers.count))) + ")"

    def run(self):
        try:
            while not self.stop.is_set():
                try:
                    if self.connection is None:
                        self.connection = connect(self.place, PATIENCE_S)
                    if self.number is not None:
                        self.write()
                    self.read()
                    time.sleep(REST_S)
                except OSError:
                    self.connection = None
                    time.sleep(0.02)
                except MySQLError as error:
                    if error.number not in TEMPORARY | UNKNOWN:
                        raise
                    time.sleep(0.005)
        except Exception as error:  # Whatever it is, the thread must not look as if it had done its work.
            self.failure = repr(error)

    def write(self):
        registers, number = self.registers, self.number
        registers.tried[number] += 1
        value, begun, outcome = registers.tried[number], time.monotonic(), "unknown"
        try:
            # A statement that a client has given up may still run: it must not undo a later one.
            changed = self.connection.query(f"UPDATE register SET n = {value} WHERE id = {number} AND n < {value}")
            outcome = "committed"
        except MySQLError as error:
            outcome = "unknown" if is_unknown(error) else "rolled_back"
            raise
        finally:
            registers.note((id(self), -1), begun, outcome, ("w", number, value))
        if changed == 1:
            registers.acknowledged[number] = value
        else:
            now = time.monotonic()
            registers.wrong.append((now, now, f"writing {value} to register {number} has changed {changed} rows"))

    def read(self):
        begun, before = time.monotonic(), list(self.registers.acknowledged)
        found = self.connection.query(self.everything)
        self.registers.see(begun, before, found, self.place, id(self))


class SharedCounter(Counter):
    """Counts up a row that others count up, too, always through the same node; `ledger` is its own."""

    patience_s = PATIENCE_S
    away = Worker.away

    def transfer(self):
        super().transfer()
        time.sleep(REST_S)


def counters(places, stop, rows_of_each=2):
    """Clients that count up the same rows at all places."""
    return [SharedCounter(row, [place], Ledger(), stop) for place in places for row in range(min(rows_of_each, COUNTERS))]


def add_counts(ledger, clients):
    """What all counters were told."""
    for client in clients:
        own = client.ledger
        ledger.add(own)
        for mine, theirs in ((ledger.counted, own.counted), (ledger.cut_off, own.cut_off)):
            for row, count in theirs.items():
                mine[row] = mine.get(row, 0) + count
