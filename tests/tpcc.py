#!/usr/bin/env python3
"""The five transactions of TPC-C, while nodes die, freeze or are told to stop; then its conditions of consistency, and whether all is
there that was acknowledged, and nothing that was refused.

Conditions are checked twice: by queries of the server, and by adding up all rows here. With --port it only runs the transactions
against a server that is there, LatsDB or another one, and says how many it has done: terminals do not think, so this is no result of TPC-C.

tpcc.py [--binary latsdb] [--nodes 2] [--replicas 2] [--faults kill,freeze,stop] [--rounds 5] [--sql-port 14606] [--seed N]
tpcc.py --port P [--seconds 20] [--warehouses 2] [--threads 6]
"""

import argparse
import os
import random
import sys
import threading
import time
from collections import Counter
from decimal import Decimal

from cluster import PATIENCE_S, TEMPORARY, UNKNOWN, Cluster, connect, insist, is_unknown, repeated, rows, wait_until
from history import disturb
from minimysql import MySQLError
from tpcc_schema import CONDITIONS, DISTRICTS, LINES_MAX, Scale, broken, last_name, load, overlooked

# How many of a hundred transactions are of each kind (clause 5.2.3).
MIX = [("new_order", 45), ("payment", 43), ("order_status", 4), ("delivery", 4), ("stock_level", 4)]
# Fewer of each kind say nothing.
AT_LEAST = 5


class Terminal(threading.Thread):
    """Does one transaction after the other through one node, or through another one while that is away."""

    patience_s = 5

    def __init__(self, number, places, scale, seed, stop):
        super().__init__(daemon=True)
        self.number, self.places, self.scale, self.stop = number, places, scale, stop
        self.random = random.Random(seed)
        self.warehouse = number % scale.warehouses + 1
        self.place, self.connection, self.failure = places[number % len(places)], None, None
        self.done, self.refused, self.longest_s = Counter(), Counter(), 0.0
        # What became of each payment, by its tag, and of each new order, by its key.
        self.payments, self.orders = {}, {}
        self.tags = 0

    def run(self):
        names, weights = zip(*MIX)
        try:
            while not self.stop.is_set():
                try:
                    if self.connection is None:
                        self.connection = connect(self.place, self.patience_s)
                    self.transact(self.random.choices(names, weights)[0])
                except OSError:
                    self.away()
                except MySQLError as error:
                    if error.number not in TEMPORARY | UNKNOWN:
                        raise
                    self.refused[error.number] += 1
                    if error.number in (1040, 1053):
                        self.away()
        except Exception as error:  # a thread of a test: whatever ends it is told at the end
            self.failure = error
        finally:
            if self.connection:
                self.connection.close()

    def away(self):
        self.connection = None
        self.place = self.random.choice(self.places)
        time.sleep(0.005)

    def ask(self, text):
        return self.connection.query(text)

    def transact(self, kind):
        """One transaction; `kind` gives where its outcome is kept and under which key, or nothing of both."""
        begun, committing, note, outcome = time.monotonic(), False, None, "rolled back"
        try:
            self.ask("BEGIN")
            note = getattr(self, kind)()
            if note is not None and note[1] is None:
                self.ask("ROLLBACK")
                note = None
                return
            committing = True
            self.ask("COMMIT")
            outcome = "committed"
            self.done[kind] += 1
        except OSError:
            outcome = "unknown" if committing else outcome
            raise
        except MySQLError as error:
            outcome = "unknown" if committing and is_unknown(error) else outcome
            try:
                self.ask("ROLLBACK")
            except MySQLError:
                pass
            raise
        finally:
            self.longest_s = max(self.longest_s, time.monotonic() - begun)
            if note is not None:
                note[0][note[1]] = outcome

    def customer(self, place, by_name):
        """The number of a customer of a district: of one with some last name the one in the middle (clause 2.5.2.2)."""
        w, d = place
        if not by_name:
            return self.random.randint(1, self.scale.customers)
        name = last_name(self.random.randrange(20))
        found = self.ask(f"SELECT c_id FROM customer WHERE c_w_id = {w} AND c_d_id = {d} AND c_last = '{name}' ORDER BY c_first")
        return int(found[(len(found) - 1) // 2][0]) if found else self.random.randint(1, self.scale.customers)

    def new_order(self):
        w, d = self.warehouse, self.random.randint(1, DISTRICTS)
        c, count = self.random.randint(1, self.scale.customers), self.random.randint(5, LINES_MAX)
        # One of a hundred names an item that there is not, and takes all back (clause 2.4.1.4).
        wrong = self.random.random() < 0.01
        items = [self.random.randint(1, self.scale.items) for _ in range(count)]
        self.ask(f"SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse"
                 f" WHERE w_id = {w} AND c_w_id = w_id AND c_d_id = {d} AND c_id = {c}")
        (o, _), = self.ask(f"SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = {w} AND d_id = {d} FOR UPDATE")
        self.ask(f"UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = {w} AND d_id = {d}")
        # Others' warehouses supply one line of a hundred.
        supply = [self.other_warehouse() if self.random.random() < 0.01 else w for _ in items]
        local = int(all(s == w for s in supply))
        self.ask(f"INSERT INTO orders VALUES ({w}, {d}, {o}, {c}, NOW(), NULL, {count}, {local})")
        self.ask(f"INSERT INTO new_order VALUES ({w}, {d}, {o})")
        for number, (item, source) in enumerate(sorted(zip(items, supply)), 1):
            item = 0 if wrong and number == count else item
            price = self.ask(f"SELECT i_price, i_name, i_data FROM item WHERE i_id = {item}")
            if not price:
                return self.orders, None
            self.order_line((w, d, o, number), item, source, Decimal(price[0][0]))
        return self.orders, (w, d, int(o), c, count)

    def order_line(self, key, item, source, price):
        w, d, o, number = key
        quantity = self.random.randint(1, 10)
        (left, info), = self.ask(f"SELECT s_quantity, s_dist FROM stock WHERE s_w_id = {source} AND s_i_id = {item} FOR UPDATE")
        left = int(left) - quantity + (91 if int(left) - quantity < 10 else 0)
        self.ask(f"UPDATE stock SET s_quantity = {left}, s_ytd = s_ytd + {quantity}, s_order_cnt = s_order_cnt + 1,"
                 f" s_remote_cnt = s_remote_cnt + {int(source != w)} WHERE s_w_id = {source} AND s_i_id = {item}")
        self.ask(f"INSERT INTO order_line VALUES ({w}, {d}, {o}, {number}, {item}, {source}, NULL, {quantity},"
                 f" {price * quantity}, '{info}')")

    def other_warehouse(self):
        return self.random.randint(1, self.scale.warehouses)

    def payment(self):
        w, d = self.warehouse, self.random.randint(1, DISTRICTS)
        # Fifteen of a hundred customers pay elsewhere.
        home = (w, d) if self.random.random() < 0.85 else (self.other_warehouse(), self.random.randint(1, DISTRICTS))
        amount = Decimal(self.random.randint(100, 500_000)) / 100
        self.tags += 1
        tag = f"{self.number}:{self.tags}"
        self.ask(f"UPDATE warehouse SET w_ytd = w_ytd + {amount} WHERE w_id = {w}")
        self.ask(f"SELECT w_name, w_street_1, w_city, w_state, w_zip FROM warehouse WHERE w_id = {w}")
        self.ask(f"UPDATE district SET d_ytd = d_ytd + {amount} WHERE d_w_id = {w} AND d_id = {d}")
        c = self.customer(home, self.random.random() < 0.6)
        where = f"c_w_id = {home[0]} AND c_d_id = {home[1]} AND c_id = {c}"
        (credit, _), = self.ask(f"SELECT c_credit, c_data FROM customer WHERE {where} FOR UPDATE")
        data = f", c_data = LEFT(CONCAT('{c} {d} {w} {amount}|', c_data), 500)" if credit == "BC" else ""
        self.ask(f"UPDATE customer SET c_balance = c_balance - {amount}, c_ytd_payment = c_ytd_payment + {amount},"
                 f" c_payment_cnt = c_payment_cnt + 1{data} WHERE {where}")
        self.ask(f"INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
                 f" VALUES ({c}, {home[1]}, {home[0]}, {d}, {w}, NOW(), {amount}, '{tag}')")
        return self.payments, tag

    def order_status(self):
        place = self.warehouse, self.random.randint(1, DISTRICTS)
        c = self.customer(place, self.random.random() < 0.6)
        found = self.ask(f"SELECT o_id, o_entry_d, o_carrier_id, o_ol_cnt FROM orders WHERE o_w_id = {place[0]} AND o_d_id = {place[1]}"
                         f" AND o_c_id = {c} ORDER BY o_id DESC LIMIT 1")
        if found:
            lines = self.ask(f"SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line"
                             f" WHERE ol_w_id = {place[0]} AND ol_d_id = {place[1]} AND ol_o_id = {found[0][0]}")
            # An order and its lines come into being at once. Both reads see what is committed.
            assert len(lines) == int(found[0][3]), f"order {place} {found[0]} has {len(lines)} lines"

    def delivery(self):
        w, carrier = self.warehouse, self.random.randint(1, 10)
        for d in range(1, DISTRICTS + 1):
            open_ones = self.ask(f"SELECT no_o_id FROM new_order WHERE no_w_id = {w} AND no_d_id = {d} ORDER BY no_o_id LIMIT 1 FOR UPDATE")
            if not open_ones:
                continue
            o = open_ones[0][0]
            self.ask(f"DELETE FROM new_order WHERE no_w_id = {w} AND no_d_id = {d} AND no_o_id = {o}")
            (c,), = self.ask(f"SELECT o_c_id FROM orders WHERE o_w_id = {w} AND o_d_id = {d} AND o_id = {o} FOR UPDATE")
            self.ask(f"UPDATE orders SET o_carrier_id = {carrier} WHERE o_w_id = {w} AND o_d_id = {d} AND o_id = {o}")
            self.ask(f"UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {o}")
            (total,), = self.ask(f"SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {o}")
            self.ask(f"UPDATE customer SET c_balance = c_balance + {total}, c_delivery_cnt = c_delivery_cnt + 1"
                     f" WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {c}")

    def stock_level(self):
        w, d, threshold = self.warehouse, self.random.randint(1, DISTRICTS), self.random.randint(10, 20)
        (following,), = self.ask(f"SELECT d_next_o_id FROM district WHERE d_w_id = {w} AND d_id = {d}")
        self.ask(f"SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id < {following}"
                 f" AND ol_o_id >= {following} - 20 AND s_w_id = {w} AND s_i_id = ol_i_id AND s_quantity < {threshold}")


def compared(what, outcomes, there):
    """What was acknowledged and is not there, and what was refused and is."""
    lost = [key for key, outcome in outcomes.items() if outcome == "committed" and key not in there]
    undead = [key for key, outcome in outcomes.items() if outcome == "rolled back" and key in there]
    return [f"{what} {k} was acknowledged, and is lost" for k in lost] + [f"{what} {k} was refused, and is there" for k in undead]


def look(place, terminals):
    """Everything that is wrong at the end."""
    def ask(text):
        return rows(place, text)

    wrong = broken(ask)
    for number, query in CONDITIONS.items():
        if found := ask(query):
            wrong.append(f"condition {number}, by a query: {found[:5]}")
    payments = Counter(tag for tag, in ask("SELECT h_data FROM history"))
    orders = {tuple(map(int, o)) for o in ask("SELECT o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt FROM orders")}
    for terminal in terminals:
        wrong += compared("payment", terminal.payments, payments)
        # A number that a refused order had may be another order's later, of the same customer and as long as it.
        wrong += [w for w in compared("order", terminal.orders, orders) if "is lost" in w]
    # Transactions that were refused before their COMMIT are in no list: whatever is there must be somebody's.
    known = {key for t in terminals for kept in (t.payments, t.orders) for key, outcome in kept.items() if outcome != "rolled back"}
    wrong += [f"payment {tag} is there {n} times" for tag, n in payments.items() if tag != "first" and (n > 1 or tag not in known)]
    wrong += [f"order {o} is there, and is nobody's" for t in terminals[:1] for o in orders if o[2] > t.scale.customers and o not in known]
    return wrong


def summary(terminals, seconds):
    done = sum((t.done for t in terminals), Counter())
    refused = sum((t.refused for t in terminals), Counter())
    outcomes = Counter(o for t in terminals for o in (*t.payments.values(), *t.orders.values()))
    kinds = ", ".join(f"{done[name]} {name}" for name, _ in MIX)
    longest = max((t.longest_s for t in terminals), default=0)
    return (f"tpcc: {kinds}; {60 * done['new_order'] / seconds:.0f} new orders a minute; refused {dict(refused)};"
            f" {outcomes['unknown']} outcomes unknown; longest transaction {longest:.2f} s")


def failures(terminals):
    return [f"terminal {t.number}: {t.failure!r}" for t in terminals if t.failure or t.is_alive()]


def started(args, places, stop):
    terminals = [Terminal(at, places, args.scale, args.seed + at, stop) for at in range(args.threads)]
    for terminal in terminals:
        terminal.start()
    return terminals


def ended(terminals, stop):
    stop.set()
    for terminal in terminals:
        terminal.join(PATIENCE_S)


def enough(terminals):
    done = sum((t.done for t in terminals), Counter())
    return all(done[name] >= AT_LEAST for name, _ in MIX)


def prepare(place, args):
    def ask():
        connection = connect(place)
        load(connection, args.scale, args.seed)
        connection.close()
    insist(ask)


def noticed(place):
    """Whether it is noticed when a condition does not hold."""
    def ask():
        connection = connect(place)
        try:
            return overlooked(connection)
        finally:
            connection.close()
    return insist(ask)


def judged(terminals, seconds, wrong):
    print(summary(terminals, seconds), flush=True)
    wrong = failures(terminals) + wrong
    for line in wrong[:20]:
        print(f"tpcc: WRONG: {line}", flush=True)
    print("tpcc: all conditions hold" if not wrong else f"tpcc: {len(wrong)} things are wrong", flush=True)
    return not wrong


def through_faults(args):
    chooser, stop = random.Random(args.seed), threading.Event()
    with Cluster(args.binary, args.sql_port, "--nodes", str(args.nodes), "--replicas", str(args.replicas), memory_mib=512) as cluster:
        places = [("127.0.0.1", args.sql_port + at) for at in range(args.nodes)]
        prepare(places[0], args)
        if wrong := look(places[0], []) + noticed(places[0]):
            return judged([], 1, wrong)
        begun = time.monotonic()
        terminals = started(args, places, stop)
        try:
            for _ in range(args.rounds):
                with cluster.undisturbed():
                    disturb(cluster, chooser, args.faults.split(","), "tpcc")
            cluster.wait_whole()
            wait_until(f"{AT_LEAST} transactions of each kind are done", lambda: enough(terminals) or any(t.failure for t in terminals),
                       cluster.describe)
        finally:
            ended(terminals, stop)
        seconds = time.monotonic() - begun
        cluster.wait_whole()
        # Each node answers, also from the rows that it got when it came back.
        wrong = [f"at {place}: {what}" for place in places for what in look(place, terminals)]
        return judged(terminals, seconds, wrong)


def against(args):
    """Only the transactions, against a server that is there."""
    place, stop = ("127.0.0.1", args.port), threading.Event()
    prepare(place, args)
    terminals, begun = started(args, [place], stop), time.monotonic()
    time.sleep(args.seconds)
    ended(terminals, stop)
    return judged(terminals, time.monotonic() - begun, look(place, terminals))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("LATSDB", "target/release/latsdb"))
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--faults", default="kill,freeze,stop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--warehouses", type=int, default=2)
    parser.add_argument("--customers", type=int, default=60)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--sql-port", type=int, default=14606)
    parser.add_argument("--port", type=int)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    args.scale = Scale(args.warehouses, args.customers, args.items)
    print(f"tpcc: seed {args.seed}", flush=True)
    good = against(args) if args.port else repeated("tpcc", lambda: through_faults(args))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
