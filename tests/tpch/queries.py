"""TPC-H's 22 queries, with parameters drawn as the specification says (clause 2.4). MySQL's words for dates and limits."""

import datetime
import random

from data import COLOURS, CONTAINERS, MODES, NATIONS, REGIONS, SEGMENTS, TABLES, TYPES

# {name} is a parameter. The columns behind each query are those that its ORDER BY names, counted from 0.
QUERIES = {
    1: """SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
  SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price, SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
  AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order
FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL {days} DAY
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    2: """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM part, supplier, partsupp, nation, region
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = {size} AND p_type LIKE '%{metal}'
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = '{region}'
  AND ps_supplycost = (SELECT MIN(ps_supplycost) FROM partsupp, supplier, nation, region
    WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
      AND r_name = '{region}')
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    3: """SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = '{segment}' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '{date}'
  AND l_shipdate > DATE '{date}'
GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
    4: """SELECT o_orderpriority, COUNT(*) AS order_count FROM orders
WHERE o_orderdate >= DATE '{date}' AND o_orderdate < DATE '{date}' + INTERVAL 3 MONTH
  AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    5: """SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = '{region}' AND o_orderdate >= DATE '{date}'
  AND o_orderdate < DATE '{date}' + INTERVAL 1 YEAR
GROUP BY n_name ORDER BY revenue DESC""",
    6: """SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
WHERE l_shipdate >= DATE '{date}' AND l_shipdate < DATE '{date}' + INTERVAL 1 YEAR
  AND l_discount BETWEEN {discount} - 0.01 AND {discount} + 0.01 AND l_quantity < {quantity}""",
    7: """SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue
FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, EXTRACT(YEAR FROM l_shipdate) AS l_year,
    l_extendedprice * (1 - l_discount) AS volume
  FROM supplier, lineitem, orders, customer, nation n1, nation n2
  WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey
    AND c_nationkey = n2.n_nationkey AND ((n1.n_name = '{nation1}' AND n2.n_name = '{nation2}')
      OR (n1.n_name = '{nation2}' AND n2.n_name = '{nation1}'))
    AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipping
GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
    8: """SELECT o_year, SUM(CASE WHEN nation = '{nation}' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share
FROM (SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
  FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
  WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
    AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = '{region}' AND s_nationkey = n2.n_nationkey
    AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' AND p_type = '{type}') AS all_nations
GROUP BY o_year ORDER BY o_year""",
    9: """SELECT nation, o_year, SUM(amount) AS sum_profit
FROM (SELECT n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year,
    l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
  FROM part, supplier, lineitem, partsupp, orders, nation
  WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
    AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%{colour}%') AS profit
GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    10: """SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '{date}'
  AND o_orderdate < DATE '{date}' + INTERVAL 3 MONTH AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment ORDER BY revenue DESC LIMIT 20""",
    11: """SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = '{nation}'
GROUP BY ps_partkey HAVING SUM(ps_supplycost * ps_availqty) > (SELECT SUM(ps_supplycost * ps_availqty) * {fraction}
  FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = '{nation}')
ORDER BY value DESC""",
    12: """SELECT l_shipmode,
  SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
  SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
FROM orders, lineitem
WHERE o_orderkey = l_orderkey AND l_shipmode IN ('{mode1}', '{mode2}') AND l_commitdate < l_receiptdate
  AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '{date}' AND l_receiptdate < DATE '{date}' + INTERVAL 1 YEAR
GROUP BY l_shipmode ORDER BY l_shipmode""",
    13: """SELECT c_count, COUNT(*) AS custdist
FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count
  FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%{word1}%{word2}%'
  GROUP BY c_custkey) AS c_orders
GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    14: """SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
  / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem, part
WHERE l_partkey = p_partkey AND l_shipdate >= DATE '{date}' AND l_shipdate < DATE '{date}' + INTERVAL 1 MONTH""",
    15: """WITH revenue (supplier_no, total_revenue) AS (SELECT l_suppkey, SUM(l_extendedprice * (1 - l_discount)) FROM lineitem
  WHERE l_shipdate >= DATE '{date}' AND l_shipdate < DATE '{date}' + INTERVAL 3 MONTH GROUP BY l_suppkey)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue
WHERE s_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue) ORDER BY s_suppkey""",
    16: """SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
WHERE p_partkey = ps_partkey AND p_brand <> '{brand}' AND p_type NOT LIKE '{start}%' AND p_size IN ({sizes})
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    17: """SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
WHERE p_partkey = l_partkey AND p_brand = '{brand}' AND p_container = '{box}'
  AND l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    18: """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > {quantity})
  AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
    19: """SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
WHERE (p_partkey = l_partkey AND p_brand = '{brand1}' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
    AND l_quantity >= {quantity1} AND l_quantity <= {quantity1} + 10 AND p_size BETWEEN 1 AND 5
    AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
  OR (p_partkey = l_partkey AND p_brand = '{brand2}' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
    AND l_quantity >= {quantity2} AND l_quantity <= {quantity2} + 10 AND p_size BETWEEN 1 AND 10
    AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
  OR (p_partkey = l_partkey AND p_brand = '{brand3}' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
    AND l_quantity >= {quantity3} AND l_quantity <= {quantity3} + 10 AND p_size BETWEEN 1 AND 15
    AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')""",
    20: """SELECT s_name, s_address FROM supplier, nation
WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
    WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '{colour}%')
      AND ps_availqty > (SELECT 0.5 * SUM(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
        AND l_shipdate >= DATE '{date}' AND l_shipdate < DATE '{date}' + INTERVAL 1 YEAR))
  AND s_nationkey = n_nationkey AND n_name = '{nation}' ORDER BY s_name""",
    21: """SELECT s_name, COUNT(*) AS numwait FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
    AND l3.l_receiptdate > l3.l_commitdate)
  AND s_nationkey = n_nationkey AND n_name = '{nation}'
GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    22: """SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
FROM (SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer
  WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ({codes})
    AND c_acctbal > (SELECT AVG(c_acctbal) FROM customer
      WHERE c_acctbal > 0.00 AND SUBSTRING(c_phone FROM 1 FOR 2) IN ({codes}))
    AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
GROUP BY cntrycode ORDER BY cntrycode""",
}
ORDERS = {
    1: (0, 1), 2: (0, 2, 1, 3), 3: (1, 2), 4: (0,), 5: (1,), 6: (), 7: (0, 1, 2), 8: (0,), 9: (0, 1), 10: (2,), 11: (1,), 12: (0,),
    13: (1, 0), 14: (), 15: (0,), 16: (3, 0, 1, 2), 17: (), 18: (4, 3), 19: (), 20: (0,), 21: (1, 0), 22: (0,),
}
WORDS = (("special", "pending", "unusual", "express"), ("packages", "requests", "accounts", "deposits"))


def _first_of_month(rnd, first, months):
    """The first day of one of so many months from the first month on."""
    at = (first - 1) + int(rnd() * months)
    return datetime.date(1993 + at // 12, at % 12 + 1, 1).isoformat()


def draw(number, scale, seed):
    """A query's parameters."""
    rnd = random.Random(f"{seed} {number}").random

    def low_to_high(low, high):
        return low + int(rnd() * (high - low + 1))

    def one(items):
        return items[int(rnd() * len(items))]

    def brand():
        return f"Brand#{low_to_high(1, 5)}{low_to_high(1, 5)}"

    def some(items, count):
        left = list(items)
        return [left.pop(int(rnd() * len(left))) for _ in range(count)]

    nation, region = one(NATIONS)
    match number:
        case 1:
            return {"days": low_to_high(60, 120)}
        case 2:
            return {"size": low_to_high(1, 50), "metal": one(TYPES[2]), "region": one(REGIONS)}
        case 3:
            return {"segment": one(SEGMENTS), "date": f"1995-03-{low_to_high(1, 31):02d}"}
        case 4:
            return {"date": _first_of_month(rnd, 1, 58)}
        case 5:
            return {"region": one(REGIONS), "date": f"{low_to_high(1993, 1997)}-01-01"}
        case 6:
            discount, quantity = low_to_high(2, 9), low_to_high(24, 25)
            return {"date": f"{low_to_high(1993, 1997)}-01-01", "discount": f"0.{discount:02d}", "quantity": quantity}
        case 7:
            first, second = some(NATIONS, 2)
            return {"nation1": first[0], "nation2": second[0]}
        case 8:
            return {"nation": nation, "region": REGIONS[region], "type": " ".join(one(words) for words in TYPES)}
        case 9:
            return {"colour": one(COLOURS)}
        case 10:
            return {"date": _first_of_month(rnd, 2, 24)}
        case 11:
            return {"nation": nation, "fraction": f"{0.0001 / scale:.10f}"}
        case 12:
            first, second = some(MODES, 2)
            return {"mode1": first, "mode2": second, "date": f"{low_to_high(1993, 1997)}-01-01"}
        case 13:
            return {"word1": one(WORDS[0]), "word2": one(WORDS[1])}
        case 14:
            return {"date": _first_of_month(rnd, 1, 60)}
        case 15:
            return {"date": _first_of_month(rnd, 1, 58)}
        case 16:
            sizes = ", ".join(str(size) for size in some(range(1, 51), 8))
            return {"brand": brand(), "start": f"{one(TYPES[0])} {one(TYPES[1])}", "sizes": sizes}
        case 17:
            return {"brand": brand(), "box": f"{one(CONTAINERS[0])} {one(CONTAINERS[1])}"}
        case 18:
            return {"quantity": low_to_high(312, 315)}
        case 19:
            first, second, third = low_to_high(1, 10), low_to_high(10, 20), low_to_high(20, 30)
            return {
                "brand1": brand(), "brand2": brand(), "brand3": brand(), "quantity1": first, "quantity2": second, "quantity3": third,
            }
        case 20:
            return {"colour": one(COLOURS), "date": f"{low_to_high(1993, 1997)}-01-01", "nation": nation}
        case 21:
            return {"nation": nation}
        case 22:
            return {"codes": ", ".join(f"'{10 + code}'" for code in some(range(25), 7))}
    raise ValueError(number)


def text(number, scale, seed, prefix=""):
    """A query, with tables that have this before their names."""
    found = QUERIES[number].format(**draw(number, scale, seed))
    return found if not prefix else renamed(found, prefix)


def renamed(query, prefix):
    """The query with other names of tables."""
    import re

    names = "|".join(TABLES)
    # Names of tables stand behind FROM or a comma; what is in quotes, and columns, have other neighbours.
    return re.sub(rf"(?<![\w.'])({names})(?![\w.'(])", rf"{prefix}\1", query)
