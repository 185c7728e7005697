"""The tables of TPC-C, the rows that they begin with, and the conditions that hold between them at all times.

Definitions and conditions: TPC-C, revision 5.11, clauses 1.3, 4.3.3 and 3.3.2. There are fewer rows than a real run has: `Scale` says
how many. The amounts that a warehouse begins with follow from that, so that all conditions hold from the start.
"""

import dataclasses
import datetime
import random
from collections import defaultdict
from decimal import Decimal

DISTRICTS = 10
LINES_MAX = 15
# So many orders of each ten are delivered in the beginning.
DELIVERED_OF_TEN = 7
FIRST_PAYMENT = Decimal("10.00")
SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")
ROWS_PER_INSERT = 200

TABLES = {
    "warehouse": """CREATE TABLE warehouse (w_id INT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_city VARCHAR(20),
        w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2), PRIMARY KEY (w_id))""",
    "district": """CREATE TABLE district (d_w_id INT NOT NULL, d_id TINYINT NOT NULL, d_name VARCHAR(10), d_tax DECIMAL(4,4),
        d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id))""",
    "customer": """CREATE TABLE customer (c_w_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_id INT NOT NULL, c_first VARCHAR(16),
        c_middle CHAR(2), c_last VARCHAR(16), c_since DATETIME, c_credit CHAR(2), c_credit_lim DECIMAL(12,2),
        c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2), c_payment_cnt SMALLINT,
        c_delivery_cnt SMALLINT, c_data TEXT, PRIMARY KEY (c_w_id, c_d_id, c_id), KEY by_name (c_w_id, c_d_id, c_last, c_first))""",
    "history": """CREATE TABLE history (h_id BIGINT NOT NULL AUTO_INCREMENT, h_c_id INT, h_c_d_id TINYINT, h_c_w_id INT, h_d_id TINYINT,
        h_w_id INT, h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24), PRIMARY KEY (h_id))""",
    "new_order": """CREATE TABLE new_order (no_w_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_o_id INT NOT NULL,
        PRIMARY KEY (no_w_id, no_d_id, no_o_id))""",
    "orders": """CREATE TABLE orders (o_w_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_id INT NOT NULL, o_c_id INT, o_entry_d DATETIME,
        o_carrier_id TINYINT, o_ol_cnt TINYINT, o_all_local TINYINT, PRIMARY KEY (o_w_id, o_d_id, o_id),
        KEY by_customer (o_w_id, o_d_id, o_c_id, o_id))""",
    "order_line": """CREATE TABLE order_line (ol_w_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_o_id INT NOT NULL,
        ol_number TINYINT NOT NULL, ol_i_id INT, ol_supply_w_id INT, ol_delivery_d DATETIME, ol_quantity TINYINT,
        ol_amount DECIMAL(6,2), ol_dist_info CHAR(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))""",
    "item": """CREATE TABLE item (i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50),
        PRIMARY KEY (i_id))""",
    "stock": """CREATE TABLE stock (s_w_id INT NOT NULL, s_i_id INT NOT NULL, s_quantity SMALLINT, s_dist CHAR(24), s_ytd DECIMAL(8,0),
        s_order_cnt SMALLINT, s_remote_cnt SMALLINT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id))""",
}


@dataclasses.dataclass
class Scale:
    """How many rows there are in the beginning."""

    warehouses: int = 2
    customers: int = 60  # of a district, each with one order
    items: int = 500


def last_name(number):
    return SYLLABLES[number // 100 % 10] + SYLLABLES[number // 10 % 10] + SYLLABLES[number % 10]


def literal(value):
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, (int, Decimal)) else f"'{value}'"


def insert(connection, table, rows):
    for at in range(0, len(rows), ROWS_PER_INSERT):
        values = ",".join(f"({','.join(map(literal, row))})" for row in rows[at : at + ROWS_PER_INSERT])
        connection.query(f"INSERT INTO {table} VALUES {values}")


def load(connection, scale, seed):
    """Makes the tables anew, with the rows that they begin with."""
    chance = random.Random(seed)
    for name, definition in TABLES.items():
        connection.query(f"DROP TABLE IF EXISTS {name}")
        connection.query(definition)
    now = datetime.datetime(2026, 1, 1)
    paid = FIRST_PAYMENT * scale.customers
    insert(connection, "item", [(i, chance.randint(1, 10_000), f"item {i}", Decimal(chance.randint(100, 10_000)) / 100, "data")
                                for i in range(1, scale.items + 1)])
    for w in range(1, scale.warehouses + 1):
        tax = Decimal(chance.randint(0, 2000)) / 10_000
        insert(connection, "warehouse", [(w, f"w{w}", "street", "city", "st", "123411111", tax, paid * DISTRICTS)])
        insert(connection, "stock", [(w, i, chance.randint(10, 100), "d" * 24, 0, 0, 0, "data") for i in range(1, scale.items + 1)])
        for d in range(1, DISTRICTS + 1):
            load_district(connection, scale, chance, (w, d), now, paid)


def load_district(connection, scale, chance, place, now, paid):
    w, d = place
    insert(connection, "district", [(w, d, f"d{d}", Decimal(chance.randint(0, 2000)) / 10_000, paid, scale.customers + 1)])
    ids = list(range(1, scale.customers + 1))
    insert(connection, "customer", [
        (w, d, c, f"first{c}", "OE", last_name(c % 20), now, chance.choice(("GC", "GC", "BC")), 50_000,
         Decimal(chance.randint(0, 5000)) / 10_000, -FIRST_PAYMENT, FIRST_PAYMENT, 1, 0, "data") for c in ids])
    insert(connection, "history", [(None, c, d, w, d, w, now, FIRST_PAYMENT, "first") for c in ids])
    chance.shuffle(ids)
    orders, lines, open_orders = [], [], []
    first_open = scale.customers * DELIVERED_OF_TEN // 10 + 1
    for o, customer in enumerate(ids, 1):
        count, delivered = chance.randint(5, LINES_MAX), o < first_open
        orders.append((w, d, o, customer, now, chance.randint(1, 10) if delivered else None, count, 1))
        if not delivered:
            open_orders.append((w, d, o))
        for number in range(1, count + 1):
            amount = Decimal("0.00") if delivered else Decimal(chance.randint(1, 999_999)) / 100
            lines.append((w, d, o, number, chance.randint(1, scale.items), w, now if delivered else None, 5, amount, "i" * 24))
    insert(connection, "orders", orders)
    insert(connection, "order_line", lines)
    insert(connection, "new_order", open_orders)


# Each query gives the rows that break a condition of clause 3.3.2.
CONDITIONS = {
    1: """SELECT w_id, w_ytd, SUM(d_ytd) AS s FROM warehouse JOIN district ON d_w_id = w_id GROUP BY w_id, w_ytd HAVING w_ytd <> s""",
    2: """SELECT d_w_id, d_id FROM district d WHERE d_next_o_id - 1 <> (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d.d_id)
        OR d_next_o_id - 1 <> (SELECT MAX(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d.d_id)""",
    3: """SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)""",
    4: """SELECT o.w, o.d, o.n, l.n FROM (SELECT o_w_id AS w, o_d_id AS d, SUM(o_ol_cnt) AS n FROM orders GROUP BY o_w_id, o_d_id) o
        JOIN (SELECT ol_w_id AS w, ol_d_id AS d, COUNT(*) AS n FROM order_line GROUP BY ol_w_id, ol_d_id) l USING (w, d) WHERE o.n <> l.n""",
    5: """SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
        WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)""",
    6: """SELECT o_w_id, o_d_id, o_id FROM orders WHERE o_ol_cnt <>
        (SELECT COUNT(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id)""",
    7: """SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
        WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)""",
    8: """SELECT w_id, w_ytd FROM warehouse WHERE w_ytd <> (SELECT SUM(h_amount) FROM history WHERE h_w_id = w_id)""",
    9: """SELECT d_w_id, d_id, d_ytd FROM district WHERE d_ytd <> (SELECT SUM(h_amount) FROM history WHERE h_w_id = d_w_id AND h_d_id = d_id)""",
    10: """SELECT c_w_id, c_d_id, c_id, c_balance FROM customer WHERE c_balance <>
        COALESCE((SELECT SUM(ol_amount) FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
            WHERE o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id AND ol_delivery_d IS NOT NULL), 0)
        - (SELECT SUM(h_amount) FROM history WHERE h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id)""",
    12: """SELECT c_w_id, c_d_id, c_id FROM customer LEFT JOIN
        (SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, SUM(ol_amount) AS delivered FROM orders
            JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL
            GROUP BY o_w_id, o_d_id, o_c_id) sums ON w = c_w_id AND d = c_d_id AND c = c_id
        WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0)""",
}


def by_key(rows, width):
    return {tuple(map(int, row[:width])): row[width:] for row in rows}


def broken(ask):
    """The conditions that do not hold for the rows themselves, which are read whole and added up here. `ask` runs a query."""
    found = []

    def must(number, what, good):
        if not good:
            found.append(f"condition {number}: {what}")

    payments = ask("SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount FROM history")
    of_warehouse, of_district, of_customer = defaultdict(Decimal), defaultdict(Decimal), defaultdict(Decimal)
    for w, d, cw, cd, c, amount in payments:
        of_warehouse[int(w)] += Decimal(amount)
        of_district[int(w), int(d)] += Decimal(amount)
        of_customer[int(cw), int(cd), int(c)] += Decimal(amount)
    orders = by_key(ask("SELECT o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt FROM orders"), 3)
    waiting = by_key(ask("SELECT no_w_id, no_d_id, no_o_id FROM new_order"), 3)
    lines, delivered = defaultdict(int), defaultdict(Decimal)
    for w, d, o, amount, moment in ask("SELECT ol_w_id, ol_d_id, ol_o_id, ol_amount, ol_delivery_d FROM order_line"):
        key = int(w), int(d), int(o)
        lines[key] += 1
        order = orders.get(key)
        must(7, f"a line of order {key}", order is not None and (moment is None) == (order[1] is None))
        if moment is not None and order is not None:
            delivered[key[0], key[1], int(order[0])] += Decimal(amount)
    for key, (_, carrier, count) in orders.items():
        must(5, f"order {key}", (carrier is None) == (key in waiting))
        must(6, f"order {key} has {lines[key]} lines, and not {count}", lines[key] == int(count))
    must(4, "lines without an order", set(lines) <= set(orders))
    must(4, "the sum of lines", sum(int(o[2]) for o in orders.values()) == sum(lines.values()))
    must(5, "open orders without an order", set(waiting) <= set(orders))
    sums = defaultdict(Decimal)
    for w, d, ytd, following in ask("SELECT d_w_id, d_id, d_ytd, d_next_o_id FROM district"):
        place = int(w), int(d)
        sums[place[0]] += Decimal(ytd)
        must(9, f"district {place}: {ytd}, and {of_district[place]} were paid", Decimal(ytd) == of_district[place])
        numbers = sorted(o for ow, od, o in orders if (ow, od) == place)
        must(2, f"district {place}: orders end with {numbers[-1]}, the next one is {following}", numbers[-1] == int(following) - 1)
        must(2, f"district {place}: a number is missing", numbers == list(range(1, int(following))))
        open_ones = sorted(o for ow, od, o in waiting if (ow, od) == place)
        must(3, f"district {place}: open orders have gaps", not open_ones or open_ones == list(range(open_ones[0], int(following))))
    for w, ytd in ask("SELECT w_id, w_ytd FROM warehouse"):
        must(1, f"warehouse {w}", Decimal(ytd) == sums[int(w)])
        must(8, f"warehouse {w}", Decimal(ytd) == of_warehouse[int(w)])
    for w, d, c, balance, paid in ask("SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment FROM customer"):
        customer = int(w), int(d), int(c)
        must(10, f"customer {customer}: {balance}", Decimal(balance) == delivered[customer] - of_customer[customer])
        must(12, f"customer {customer}: {balance} and {paid}", Decimal(balance) + Decimal(paid) == delivered[customer])
    return found


# A statement that breaks each condition: whoever looks must notice.
SPOILERS = {
    1: "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 1",
    2: "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3",
    3: "INSERT INTO new_order VALUES (1, 4, 0)",
    4: "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 5 AND o_id = 2",
    5: "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 6 AND o_id = 1",
    6: "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 7 AND ol_o_id = 1 AND ol_number = 1",
    7: "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 8 AND ol_o_id = 1 AND ol_number = 2",
    8: "UPDATE history SET h_amount = h_amount + 0.01 WHERE h_w_id = 1 AND h_d_id = 1 LIMIT 1",
    9: "UPDATE history SET h_d_id = 2 WHERE h_w_id = 1 AND h_d_id = 1 LIMIT 1",
    10: "UPDATE customer SET c_balance = c_balance + 0.01 WHERE c_w_id = 1 AND c_d_id = 9 AND c_id = 1",
    12: "UPDATE customer SET c_ytd_payment = c_ytd_payment + 0.01 WHERE c_w_id = 1 AND c_d_id = 10 AND c_id = 2",
}


def overlooked(connection):
    """The conditions that can be broken without anybody noticing. Everything is taken back."""
    found = []
    for number, spoiler in SPOILERS.items():
        connection.query("BEGIN")
        connection.query(spoiler)
        if not connection.query(CONDITIONS[number]):
            found.append(f"condition {number} can be broken, and its query does not notice")
        if not any(w.startswith(f"condition {number}:") for w in broken(connection.query)):
            found.append(f"condition {number} can be broken, and the sums do not notice")
        connection.query("ROLLBACK")
    return found
