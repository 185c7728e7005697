"""Rows of TPC-H's eight tables, by the rules of its specification (clause 4.2), from a seed: the same rows each time.

The sequence of numbers is our own, so that rows differ from those of other generators; how values are distributed does not.
"""

import datetime
import random

NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3),
    ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0),
    ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3),
    ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
COLOURS = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon chocolate "
    "coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green "
    "grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint "
    "misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle "
    "salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow"
).split()
TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINERS = (("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
NOUNS = (
    "foxes ideas theodolites pinto_beans instructions dependencies excuses platelets asymptotes courts dolphins multipliers sauternes "
    "warthogs frets dinos attainments somas Tiresias' patterns forges braids hockey_players frays warhorses dugouts notornis epitaphs "
    "pearls tithes waters orbits gifts sheaves depths sentiments decoys realms pains grouches escapades packages requests accounts "
    "deposits"
).split()
VERBS = (
    "sleep wake are cajole haggle nag use boost affix detect integrate maintain nod was lose sublate solve thrash promise engage hinder "
    "print x-ray breach eat grow impress mold poach serve run dazzle snooze doze unwind kindle play hang believe doubt"
).split()
ADJECTIVES = (
    "furious sly careful blithe quick fluffy slow quiet ruthless thin close dogged daring brave stealthy permanent enticing idle busy "
    "regular final ironic even bold silent special pending unusual express"
).split()
ADVERBS = (
    "sometimes always never furiously slyly carefully blithely quickly fluffily slowly quietly ruthlessly thinly closely doggedly "
    "daringly bravely stealthily permanently enticingly idly busily regularly finally ironically evenly boldly silently"
).split()
PREPOSITIONS = (
    "about above according_to across after against along alongside_of among around at atop before behind beneath beside besides between "
    "beyond by despite during except for from in_place_of inside instead_of into near of on outside over past since through throughout "
    "to toward under until up upon without with within"
).split()
AUXILIARIES = (
    "do may might shall will would can could should ought_to must will_have_to shall_have_to could_have_to should_have_to must_have_to "
    "need_to try_to"
).split()
ENDS = (".", ".", ".", ";", ":", "?", "!", "--")
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,"
POOL_BYTES = 400_000
FIRST_DAY = datetime.date(1992, 1, 1)
# Orders end so early that their items have come by the end of 1998.
ORDER_DAYS = (datetime.date(1998, 12, 31) - FIRST_DAY).days - 151 + 1
TODAY = (datetime.date(1995, 6, 17) - FIRST_DAY).days
DAYS = [(FIRST_DAY + datetime.timedelta(day)).isoformat() for day in range(ORDER_DAYS + 400)]

TABLES = {
    "region": "r_regionkey INT PRIMARY KEY, r_name CHAR(25) NOT NULL, r_comment VARCHAR(152)",
    "nation": "n_nationkey INT PRIMARY KEY, n_name CHAR(25) NOT NULL, n_regionkey INT NOT NULL, n_comment VARCHAR(152), "
    "KEY n_region (n_regionkey)",
    "supplier": "s_suppkey INT PRIMARY KEY, s_name CHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL, s_nationkey INT NOT NULL, "
    "s_phone CHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL, s_comment VARCHAR(101) NOT NULL, KEY s_nation (s_nationkey)",
    "customer": "c_custkey INT PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL, c_nationkey INT NOT NULL, "
    "c_phone CHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment CHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL, "
    "KEY c_nation (c_nationkey)",
    "part": "p_partkey INT PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr CHAR(25) NOT NULL, p_brand CHAR(10) NOT NULL, "
    "p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL, p_container CHAR(10) NOT NULL, p_retailprice DECIMAL(15,2) NOT NULL, "
    "p_comment VARCHAR(23) NOT NULL",
    "partsupp": "ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT NOT NULL, ps_supplycost DECIMAL(15,2) NOT NULL, "
    "ps_comment VARCHAR(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey), KEY ps_supplier (ps_suppkey)",
    "orders": "o_orderkey INT PRIMARY KEY, o_custkey INT NOT NULL, o_orderstatus CHAR(1) NOT NULL, o_totalprice DECIMAL(15,2) NOT NULL, "
    "o_orderdate DATE NOT NULL, o_orderpriority CHAR(15) NOT NULL, o_clerk CHAR(15) NOT NULL, o_shippriority INT NOT NULL, "
    "o_comment VARCHAR(79) NOT NULL, KEY o_customer (o_custkey), KEY o_date (o_orderdate)",
    "lineitem": "l_orderkey INT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL, l_linenumber INT NOT NULL, "
    "l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL, "
    "l_tax DECIMAL(15,2) NOT NULL, l_returnflag CHAR(1) NOT NULL, l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL, "
    "l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL, "
    "l_comment VARCHAR(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber), KEY l_part_supplier (l_partkey, l_suppkey), "
    "KEY l_supplier (l_suppkey), KEY l_ship (l_shipdate)",
}


def money(cents):
    """An amount of cents as a decimal number."""
    sign, cents = ("-", -cents) if cents < 0 else ("", cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"


class Data:
    """All rows of a scale. Each method gives a table's rows, as texts of SQL in parentheses."""

    def __init__(self, scale, seed=1):
        self.seed = seed
        self.suppliers = max(int(scale * 10_000), 4)
        self.parts = max(int(scale * 200_000), 1)
        self.customers = max(int(scale * 150_000), 3)
        self.orders_count = max(int(scale * 1_500_000), 1)
        self.clerks = max(int(scale * 1_000), 1)
        self.complaints = max(int(scale * 5), 1)
        self.pool = self._pool()

    def _stream(self, name):
        return random.Random(f"{self.seed} {name}").random

    def _pool(self):
        rnd = self._stream("text")

        def one(words):
            return words[int(rnd() * len(words))].replace("_", " ")

        def noun():
            kind = int(rnd() * 4)
            if kind == 0:
                return one(NOUNS)
            if kind == 1:
                return f"{one(ADJECTIVES)} {one(NOUNS)}"
            if kind == 2:
                return f"{one(ADJECTIVES)}, {one(ADJECTIVES)} {one(NOUNS)}"
            return f"{one(ADVERBS)} {one(ADJECTIVES)} {one(NOUNS)}"

        def verb():
            kind = int(rnd() * 4)
            if kind == 0:
                return one(VERBS)
            if kind == 1:
                return f"{one(AUXILIARIES)} {one(VERBS)}"
            if kind == 2:
                return f"{one(VERBS)} {one(ADVERBS)}"
            return f"{one(AUXILIARIES)} {one(VERBS)} {one(ADVERBS)}"

        parts, size = [], 0
        while size < POOL_BYTES:
            words = [noun(), verb()]
            for _ in range(int(rnd() * 3)):
                words.append(f"{one(PREPOSITIONS)} the {noun()}" if rnd() < 0.5 else noun())
            sentence = " ".join(words) + one(ENDS) + " "
            parts.append(sentence)
            size += len(sentence)
        return "".join(parts).replace("'", "")

    def _text(self, rnd, low, high):
        size = low + int(rnd() * (high - low + 1))
        at = int(rnd() * (len(self.pool) - size))
        return self.pool[at : at + size]

    @staticmethod
    def _address(rnd):
        return "".join(LETTERS[int(rnd() * len(LETTERS))] for _ in range(10 + int(rnd() * 31)))

    @staticmethod
    def _phone(rnd, nation):
        return f"{nation + 10}-{100 + int(rnd() * 900)}-{100 + int(rnd() * 900)}-{1000 + int(rnd() * 9000)}"

    def region(self):
        rnd = self._stream("region")
        for key, name in enumerate(REGIONS):
            yield f"({key},'{name}','{self._text(rnd, 31, 115)}')"

    def nation(self):
        rnd = self._stream("nation")
        for key, (name, region) in enumerate(NATIONS):
            yield f"({key},'{name}',{region},'{self._text(rnd, 31, 114)}')"

    def supplier(self):
        rnd = self._stream("supplier")
        chosen = set()
        while len(chosen) < min(2 * self.complaints, self.suppliers):
            chosen.add(1 + int(rnd() * self.suppliers))
        said = dict(zip(sorted(chosen), ("Complaints", "Recommends") * self.complaints))
        for key in range(1, self.suppliers + 1):
            nation = int(rnd() * 25)
            comment = self._text(rnd, 25, 100)
            if key in said:
                gap = int(rnd() * (len(comment) - 18)) if len(comment) > 18 else 0
                comment = f"Customer{comment[:gap]}{said[key]}{comment[gap + 18:]}"[:101]
            balance = money(-99_999 + int(rnd() * 1_099_999))
            yield (
                f"({key},'Supplier#{key:09d}','{self._address(rnd)}',{nation},'{self._phone(rnd, nation)}',{balance},'{comment}')"
            )

    def customer(self):
        rnd = self._stream("customer")
        for key in range(1, self.customers + 1):
            nation = int(rnd() * 25)
            balance = money(-99_999 + int(rnd() * 1_099_999))
            yield (
                f"({key},'Customer#{key:09d}','{self._address(rnd)}',{nation},'{self._phone(rnd, nation)}',{balance},"
                f"'{SEGMENTS[int(rnd() * 5)]}','{self._text(rnd, 29, 116)}')"
            )

    @staticmethod
    def price(part):
        """A part's price in cents."""
        return 90_000 + (part // 10) % 20_001 + 100 * (part % 1_000)

    def supplier_of(self, part, which):
        """One of a part's four suppliers."""
        count = self.suppliers
        return (part + which * (count // 4 + (part - 1) // count)) % count + 1

    def part(self):
        rnd = self._stream("part")
        for key in range(1, self.parts + 1):
            names = list(COLOURS)
            for at in range(5):
                other = at + int(rnd() * (len(names) - at))
                names[at], names[other] = names[other], names[at]
            maker, brand = 1 + int(rnd() * 5), 1 + int(rnd() * 5)
            kind = " ".join(words[int(rnd() * len(words))] for words in TYPES)
            box = " ".join(words[int(rnd() * len(words))] for words in CONTAINERS)
            yield (
                f"({key},'{' '.join(names[:5])}','Manufacturer#{maker}','Brand#{maker}{brand}','{kind}',{1 + int(rnd() * 50)},"
                f"'{box}',{money(self.price(key))},'{self._text(rnd, 5, 22)}')"
            )

    def partsupp(self):
        rnd = self._stream("partsupp")
        for part in range(1, self.parts + 1):
            for which in range(4):
                yield (
                    f"({part},{self.supplier_of(part, which)},{1 + int(rnd() * 9_999)},{money(100 + int(rnd() * 99_901))},"
                    f"'{self._text(rnd, 49, 198)}')"
                )

    def orders_and_items(self):
        """Orders with their items: pairs of a row and a list of rows."""
        rnd = self._stream("orders")
        for number in range(self.orders_count):
            # Of 32 keys the first eight are in use.
            key = number // 8 * 32 + number % 8 + 1
            # Every third customer never orders.
            customer = 1 + int(rnd() * self.customers)
            while customer % 3 == 0:
                customer = 1 + int(rnd() * self.customers)
            day = int(rnd() * ORDER_DAYS)
            total, open_items, items = 0, 0, []
            for line in range(1, 2 + int(rnd() * 7)):
                part = 1 + int(rnd() * self.parts)
                quantity, discount, tax = 1 + int(rnd() * 50), int(rnd() * 11), int(rnd() * 9)
                ship = day + 1 + int(rnd() * 121)
                commit, receipt = day + 30 + int(rnd() * 61), ship + 1 + int(rnd() * 30)
                flag = ("R" if rnd() < 0.5 else "A") if receipt <= TODAY else "N"
                is_open = ship > TODAY
                open_items += is_open
                price = quantity * self.price(part)
                total += price * (100 + tax) * (100 - discount)
                items.append(
                    f"({key},{part},{self.supplier_of(part, int(rnd() * 4))},{line},{quantity}.00,{money(price)},0.{discount:02d},"
                    f"0.{tax:02d},'{flag}','{'O' if is_open else 'F'}','{DAYS[ship]}','{DAYS[commit]}','{DAYS[receipt]}',"
                    f"'{INSTRUCTIONS[int(rnd() * 4)]}','{MODES[int(rnd() * 7)]}','{self._text(rnd, 10, 43)}')"
                )
            status = "F" if open_items == 0 else "O" if open_items == len(items) else "P"
            yield (
                f"({key},{customer},'{status}',{money((total + 5_000) // 10_000)},'{DAYS[day]}','{PRIORITIES[int(rnd() * 5)]}',"
                f"'Clerk#{1 + int(rnd() * self.clerks):09d}',0,'{self._text(rnd, 19, 78)}')",
                items,
            )
