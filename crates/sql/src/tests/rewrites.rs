//! Rewrites: what they give, and that answers are the same with and without each of them.

use crate::optimizer_switch::NAMES;
use crate::testing::Desk;

/// Tables with NULLs, values that are equal but not the same, and rows without partners.
const TABLES: &str = "
    CREATE TABLE r (id INT PRIMARY KEY, k INT, t VARCHAR(9), d DECIMAL(9,2), n INT NOT NULL);
    INSERT INTO r VALUES (1,1,'a',1.5,1),(2,1,'A',2.5,2),(3,2,'b',NULL,1),(4,NULL,NULL,3,3),(5,7,'c',0,9);
    CREATE TABLE s (id INT PRIMARY KEY, k INT, t VARCHAR(9), m BIGINT, n INT NOT NULL, KEY (k));
    INSERT INTO s VALUES (1,1,'a',10,1),(2,1,'B',20,2),(3,2,'b',NULL,2),(4,NULL,'C',40,4),(5,3,NULL,50,5),(6,2,'x',60,1);
    CREATE TABLE u (a INT, b INT, c INT, PRIMARY KEY (a, b));
    INSERT INTO u VALUES (1,1,5),(1,2,6),(2,1,7),(3,3,NULL)";

/// Queries and their answers, as MySQL gives them.
const QUERIES: &[(&str, &str)] = &[
    ("SELECT id FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k) ORDER BY id", "1;2;3"),
    ("SELECT id FROM r WHERE NOT EXISTS (SELECT * FROM s WHERE s.k = r.k) ORDER BY id", "4;5"),
    (
        "SELECT id FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k AND s.m > r.d * 10) ORDER BY id",
        "1",
    ),
    ("SELECT id FROM r WHERE k IN (SELECT k FROM s WHERE s.n >= r.n) ORDER BY id", "1;2;3"),
    ("SELECT id FROM r WHERE k NOT IN (SELECT k FROM s) ORDER BY id", ""),
    ("SELECT id FROM r WHERE n NOT IN (SELECT n FROM s) ORDER BY id", "4;5"),
    ("SELECT id FROM r WHERE n NOT IN (SELECT n FROM s WHERE s.k = r.k) ORDER BY id", "4;5"),
    ("SELECT id FROM r WHERE k NOT IN (SELECT k FROM s WHERE s.n > r.n) ORDER BY id", "5"),
    ("SELECT id FROM r WHERE t IN (SELECT t FROM s) ORDER BY id", "1;2;3;5"),
    ("SELECT id FROM r WHERE (k, n) IN (SELECT k, n FROM s) ORDER BY id", "1;2;3"),
    (
        "SELECT id FROM r WHERE EXISTS (SELECT DISTINCT n FROM s WHERE s.k = r.k ORDER BY n) ORDER BY id",
        "1;2;3",
    ),
    (
        "SELECT id FROM r WHERE EXISTS (SELECT COUNT(*) FROM s WHERE s.k = r.k) ORDER BY id",
        "1;2;3;4;5",
    ),
    (
        "SELECT id FROM r WHERE EXISTS (SELECT s.k FROM s WHERE s.k = r.k GROUP BY s.k HAVING COUNT(*) > 1) ORDER BY id",
        "1;2;3",
    ),
    ("SELECT id FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k LIMIT 0) ORDER BY id", ""),
    (
        "SELECT id FROM r WHERE EXISTS (SELECT * FROM s) AND NOT EXISTS (SELECT * FROM s WHERE s.id = 99) ORDER BY id",
        "1;2;3;4;5",
    ),
    (
        "SELECT id FROM r WHERE EXISTS (SELECT * FROM s JOIN u ON u.a = s.k WHERE u.b = r.n AND s.n = r.n) ORDER BY id",
        "1;2;3",
    ),
    (
        "SELECT id FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k AND EXISTS (SELECT * FROM u WHERE u.a = s.k AND u.b = r.n)) ORDER BY id",
        "1;2;3",
    ),
    (
        "SELECT id FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k) OR id = 5 ORDER BY id",
        "1;2;3;5",
    ),
    (
        "SELECT id, EXISTS (SELECT * FROM s WHERE s.k = r.k) AS e FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k) ORDER BY id",
        "1|1;2|1;3|1",
    ),
    ("SELECT id FROM r WHERE k IN (SELECT k FROM s UNION SELECT 7) ORDER BY id", "1;2;3;5"),
    (
        "SELECT id, (SELECT SUM(m) FROM s WHERE s.k = r.k) AS v FROM r ORDER BY id",
        "1|30;2|30;3|60;4|NULL;5|NULL",
    ),
    (
        "SELECT id, (SELECT COUNT(*) FROM s WHERE s.k = r.k) AS v FROM r ORDER BY id",
        "1|2;2|2;3|2;4|0;5|0",
    ),
    (
        "SELECT id, (SELECT COUNT(*) + 1 FROM s WHERE s.k = r.k HAVING COUNT(*) <> 2) AS v FROM r ORDER BY id",
        "1|NULL;2|NULL;3|NULL;4|1;5|1",
    ),
    (
        "SELECT id, (SELECT COALESCE(MAX(m), -r.id) FROM s WHERE s.k = r.k AND s.n > 1) AS v FROM r ORDER BY id",
        "1|20;2|20;3|-3;4|-4;5|-5",
    ),
    (
        "SELECT id, (SELECT BIT_AND(m) FROM s WHERE s.k = r.k) AS v FROM r WHERE id > 3 ORDER BY id",
        "4|18446744073709551615;5|18446744073709551615",
    ),
    (
        "SELECT id, (SELECT SUM(s.m) FROM s WHERE s.t = r.t) AS v FROM r ORDER BY id",
        "1|10;2|10;3|20;4|NULL;5|40",
    ),
    (
        "SELECT id, (SELECT SUM(s.m) FROM s WHERE s.t = r.k) AS v FROM r WHERE id < 2 ORDER BY id",
        "1|NULL",
    ),
    ("SELECT id FROM r WHERE d < (SELECT 0.1 * AVG(m) FROM s WHERE s.k = r.k) ORDER BY id", ""),
    ("SELECT id FROM r WHERE d > (SELECT 0.1 * AVG(m) FROM s WHERE s.k = r.k) ORDER BY id", "2"),
    (
        "SELECT id, (SELECT COUNT(*) FROM s WHERE s.k < r.k) AS v FROM r ORDER BY id",
        "1|0;2|0;3|2;4|0;5|5",
    ),
    (
        "SELECT r.id, s.id FROM r LEFT JOIN s ON s.k = r.k WHERE s.n > 1 ORDER BY 1, 2",
        "1|2;2|2;3|3",
    ),
    (
        "SELECT r.id, s.id FROM r LEFT JOIN s ON s.k = r.k WHERE s.n > 1 OR s.id IS NULL ORDER BY 1, 2",
        "1|2;2|2;3|3;4|NULL;5|NULL",
    ),
    (
        "SELECT r.id, s.id FROM r LEFT JOIN s ON s.k = r.k WHERE NOT (s.n <=> 1) ORDER BY 1, 2",
        "1|2;2|2;3|3;4|NULL;5|NULL",
    ),
    (
        "SELECT r.id, s.id FROM r LEFT JOIN s ON s.k = r.k AND r.id > 2 WHERE COALESCE(s.n, 1) = 1 ORDER BY 1, 2",
        "1|NULL;2|NULL;3|6;4|NULL;5|NULL",
    ),
    (
        "SELECT r.id, s.id, u.b FROM r, s, u WHERE r.k = s.k AND s.k = u.a AND r.k = 1 AND u.b < 2 ORDER BY 1, 2, 3",
        "1|1|1;1|2|1;2|1|1;2|2|1",
    ),
    ("SELECT r.id, s.id FROM r JOIN s ON r.t = s.t WHERE r.t = 'A' ORDER BY 1, 2", "1|1;2|1"),
    (
        "SELECT r.id, s.id FROM r JOIN s ON r.t = s.t WHERE r.t = 'A' COLLATE utf8mb4_bin ORDER BY 1, 2",
        "2|1",
    ),
    ("SELECT r.id, s.id FROM r JOIN s ON r.t = s.t WHERE r.t = BINARY 'A' ORDER BY 1, 2", "2|1"),
    ("SELECT r.id, s.id FROM r LEFT JOIN s ON s.k = r.k WHERE r.k = 2 ORDER BY 1, 2", "3|3;3|6"),
    (
        "SELECT r.id, s.id FROM r, s WHERE (r.k = s.k AND r.n = 1 AND s.n = 2) OR (r.k = s.k AND r.n = 2 AND s.n = 1) ORDER BY 1, 2",
        "1|2;2|1;3|3",
    ),
    (
        "SELECT r.id, s.id FROM r, s WHERE (r.k = s.k) OR (r.k = s.k AND r.n = 2) ORDER BY 1, 2",
        "1|1;1|2;2|1;2|2;3|3;3|6",
    ),
    (
        "SELECT g.k, g.c FROM (SELECT k, COUNT(*) AS c FROM s GROUP BY k) g WHERE g.k > 1 AND g.c > 1 ORDER BY 1",
        "2|2",
    ),
    (
        "SELECT g.t, g.c FROM (SELECT t, COUNT(*) AS c FROM r GROUP BY t) g WHERE g.t = 'a' ORDER BY 1",
        "a|2",
    ),
    ("SELECT d.n FROM (SELECT DISTINCT n FROM s) d WHERE d.n < 3 ORDER BY 1", "1;2"),
    (
        "SELECT w.id, w.x FROM (SELECT id, k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS x FROM s) w WHERE w.k = 2 AND w.x > 1",
        "6|2",
    ),
    (
        "SELECT v.a, r.id FROM (SELECT a, b + 1 AS b FROM u) v JOIN r ON r.id = v.b ORDER BY 1, 2",
        "1|2;1|3;2|2;3|4",
    ),
    (
        "SELECT r.id, l.m FROM r, LATERAL (SELECT s.m FROM s WHERE s.k = r.k AND s.n > 1) l ORDER BY 1, 2",
        "1|20;2|20;3|NULL",
    ),
    (
        "SELECT r.id, l.m FROM r LEFT JOIN LATERAL (SELECT s.m FROM s WHERE s.k = r.k AND s.n > 1) l ON TRUE ORDER BY 1, 2",
        "1|20;2|20;3|NULL;4|NULL;5|NULL",
    ),
    (
        "SELECT r.id, l.m FROM r, LATERAL (SELECT s.m FROM s WHERE s.k = r.k ORDER BY s.m DESC LIMIT 1) l ORDER BY 1",
        "1|20;2|20;3|60",
    ),
    ("SELECT k, COUNT(*) FROM r GROUP BY k HAVING k IN (SELECT k FROM s) ORDER BY k", "1|2;2|1"),
    (
        "SELECT id FROM r WHERE id IN (SELECT r2.id FROM r r2 WHERE EXISTS (SELECT * FROM s WHERE s.k = r2.k AND s.n = r.n)) ORDER BY id",
        "1;2;3",
    ),
    // Subqueries of which some have more than one row, for rows that do not need them.
    (
        "SELECT id FROM r WHERE k = 2 AND EXISTS (SELECT * FROM u WHERE u.a = r.id AND (SELECT s.m FROM s WHERE s.k = u.b) > 0)",
        "3",
    ),
    (
        "SELECT id, (SELECT SUM(u.a + COALESCE((SELECT s.m FROM s WHERE s.k = u.b), 0)) FROM u WHERE u.a = r.id) AS v FROM r WHERE k = 2",
        "3|53",
    ),
    (
        "SELECT id, IF(k = 2, (SELECT s.m FROM s WHERE s.k = r.id), 0) AS v FROM r WHERE id < 4 ORDER BY id",
        "1|0;2|0;3|50",
    ),
    (
        "SELECT id, IF(k = 2, (SELECT SUM(m) FROM s WHERE s.k = r.id), 0) AS v FROM r WHERE id < 4 ORDER BY id",
        "1|0;2|0;3|50",
    ),
    (
        "SELECT id FROM r WHERE k = 1 OR (SELECT s.m FROM s WHERE s.k = r.id) = 50 ORDER BY id",
        "1;2;3",
    ),
    ("SELECT id FROM r WHERE k = 2 AND (SELECT s.m FROM s WHERE s.k = r.id) = 50", "3"),
    (
        "SELECT id, (SELECT AVG(n) FROM u JOIN s ON u.a = s.n WHERE s.k = r.k) * 3,
            CONCAT((SELECT AVG(n) FROM u JOIN s ON u.a = s.n WHERE s.k = r.k)) FROM r ORDER BY id",
        "1|4.0000|1.3333;2|4.0000|1.3333;3|4.0000|1.3333;4|NULL|NULL;5|NULL|NULL",
    ),
    (
        "SELECT id, (SELECT AVG(n) FROM u JOIN s ON u.a = s.n WHERE s.k = r.k HAVING COUNT(*) > 2) * 3 FROM r WHERE id < 5 ORDER BY id",
        "1|4.0000;2|4.0000;3|4.0000;4|NULL",
    ),
    (
        "SELECT r.id, s.id, u.b FROM u, s, r WHERE s.k = r.k AND u.a = s.k AND u.b = s.n ORDER BY 1, 2, 3",
        "1|1|1;1|2|2;2|1|1;2|2|2;3|6|1",
    ),
    (
        "SELECT r.id, s.id, u.c FROM r JOIN s ON s.k = r.k LEFT JOIN u ON u.a = s.k AND u.b = r.n ORDER BY 1, 2, 3",
        "1|1|5;1|2|5;2|1|6;2|2|6;3|3|7;3|6|7",
    ),
    (
        "SELECT r.id, s.id, u.c FROM r LEFT JOIN s ON s.k = r.k AND s.m > 10 LEFT JOIN u ON u.a = s.n ORDER BY 1, 2, 3",
        "1|2|7;2|2|7;3|6|5;3|6|6;4|NULL|NULL;5|NULL|NULL",
    ),
    (
        "SELECT r.id, s.id, u.c FROM r LEFT JOIN s ON s.k = r.k JOIN u ON u.a = r.n WHERE COALESCE(s.n, 2) = u.b ORDER BY 1, 2, 3",
        "1|1|5;1|2|6;2|1|7;3|3|6;3|6|5",
    ),
    (
        "SELECT r.id, s.id FROM r JOIN (s LEFT JOIN u ON u.a = s.k AND u.b = 2) ON s.k = r.k AND (u.c IS NULL OR u.c > r.n + 4) ORDER BY 1, 2",
        "1|1;1|2;3|3;3|6",
    ),
    (
        "SELECT r.id, s.id FROM r, s WHERE s.k = r.k AND EXISTS (SELECT * FROM u WHERE u.a = r.n) AND NOT EXISTS (SELECT * FROM u WHERE u.b = s.n AND u.c > s.m) ORDER BY 1, 2",
        "1|1;1|2;2|1;2|2;3|3;3|6",
    ),
    (
        "SELECT r.id, x.id, y.id FROM r, s x, s y WHERE x.k = r.k AND y.k = x.k AND y.n <> x.n AND r.id < 4 ORDER BY 1, 2, 3",
        "1|1|2;1|2|1;2|1|2;2|2|1;3|3|6;3|6|3",
    ),
    (
        "SELECT a.id, b.id, c.id, d.id FROM r a, r b, s c, s d WHERE a.n = b.n AND c.k = a.k AND d.k = b.k AND c.n = d.n AND a.id <= b.id ORDER BY 1, 2, 3, 4",
        "1|1|1|1;1|1|2|2;1|3|1|6;1|3|2|3;2|2|1|1;2|2|2|2;3|3|3|3;3|3|6|6",
    ),
    ("SELECT r.id, s.id FROM r, s WHERE r.n + 1 = s.n AND s.id > 2 ORDER BY 1, 2", "1|3;3|3;4|4"),
    (
        "SELECT r.id FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k AND s.n < r.n) ORDER BY 1",
        "2",
    ),
    (
        "SELECT r.id FROM r WHERE NOT EXISTS (SELECT * FROM u WHERE u.a = r.k AND u.b > r.n) ORDER BY 1",
        "2;3;4;5",
    ),
    (
        "SELECT r.id, u.b FROM r LEFT JOIN u ON u.a = r.n AND u.b > r.id ORDER BY 1, 2",
        "1|2;2|NULL;3|NULL;4|NULL;5|NULL",
    ),
    (
        "SELECT r.id, u.b FROM r LEFT JOIN u ON u.a = r.d ORDER BY 1, 2",
        "1|NULL;2|NULL;3|NULL;4|3;5|NULL",
    ),
    (
        "SELECT s.id, r.id FROM s JOIN r ON r.id = s.k + 1 AND r.n <= s.n WHERE s.m IS NOT NULL ORDER BY 1, 2",
        "2|2;5|4;6|3",
    ),
    (
        "SELECT r.id, (SELECT COUNT(*) FROM u, s WHERE u.a = r.k AND s.k = u.a AND s.n = u.b) AS v FROM r ORDER BY 1",
        "1|2;2|2;3|1;4|0;5|0",
    ),
    ("SELECT r.id, s.id FROM r, s WHERE 1 = 0 AND s.k = r.k", ""),
    ("SELECT COUNT(*) FROM r, s, u", "120"),
];

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.run(TABLES);
    desk
}

#[test]
fn answers_are_those_of_mysql() {
    let mut desk = desk();
    for (query, answer) in QUERIES {
        assert_eq!(desk.run(query), *answer, "{query}");
    }
}

#[test]
fn each_rule_off_and_all_off() {
    let mut desk = desk();
    for rule in NAMES {
        assert_eq!(desk.run(&format!("SET optimizer_switch = 'default,{rule}=off'")), "ok 0");
        for (query, answer) in QUERIES {
            assert_eq!(desk.run(query), *answer, "without {rule}: {query}");
        }
    }
    let all_off: Vec<String> = NAMES.iter().map(|rule| format!("{rule}=off")).collect();
    assert_eq!(desk.run(&format!("SET optimizer_switch = '{}'", all_off.join(","))), "ok 0");
    for (query, answer) in QUERIES {
        assert_eq!(desk.run(query), *answer, "without any rule: {query}");
    }
}

#[test]
fn each_rule_alone() {
    let mut desk = desk();
    let all_off: Vec<String> = NAMES.iter().map(|rule| format!("{rule}=off")).collect();
    let all_off = all_off.join(",");
    for rule in NAMES {
        assert_eq!(desk.run(&format!("SET optimizer_switch = '{all_off},{rule}=on'")), "ok 0");
        for (query, answer) in QUERIES {
            assert_eq!(desk.run(query), *answer, "with {rule} alone: {query}");
        }
    }
}

/// Two tables of which one is large.
fn sized() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE big (id INT PRIMARY KEY, k INT NOT NULL, n INT NOT NULL, KEY (k));
         CREATE TABLE small (id INT PRIMARY KEY, b INT NOT NULL, c INT NOT NULL);
         CREATE TABLE tiny (id INT PRIMARY KEY, n INT NOT NULL)",
    );
    let rows: Vec<String> = (0..2_000).map(|n| format!("({n},{},{})", n / 4, n % 7)).collect();
    desk.run(&format!("INSERT INTO big VALUES {}", rows.join(",")));
    let rows: Vec<String> = (0..40).map(|n| format!("({n},{},{})", n * 11, n % 5)).collect();
    desk.run(&format!("INSERT INTO small VALUES {}", rows.join(",")));
    desk.run("INSERT INTO tiny VALUES (1, 1), (2, 2)");
    desk
}

/// The tables of a plan in the order in which EXPLAIN shows them, and how each is read.
fn shown(desk: &mut Desk, query: &str) -> String {
    let rows = desk.run(&format!("EXPLAIN {query}"));
    let part = |row: &str| {
        let cells: Vec<&str> = row.split('|').collect();
        format!("{} {} {}", cells[2], cells[4], cells[9])
    };
    rows.split(';').map(part).collect::<Vec<_>>().join(", ")
}

#[test]
fn large_tables_are_asked_with_rows_of_small_ones() {
    let mut desk = sized();
    let cases = [
        (
            "SELECT COUNT(*) FROM big, small, tiny WHERE big.k = small.b AND small.c = tiny.n AND tiny.id = 1",
            "small ALL 40, tiny const 1, big ref 4",
            "32",
        ),
        (
            "SELECT COUNT(*) FROM small WHERE EXISTS (SELECT * FROM big WHERE big.k = small.b AND big.n > small.c)",
            "small ALL 40, big ref 4",
            "36",
        ),
        (
            // The subquery is run for each row, by the index.
            "SELECT COUNT(*) FROM small WHERE id < 9 AND b > (SELECT SUM(n) FROM big WHERE big.k = small.b)",
            "small range 9, big ref 4",
            "7",
        ),
        // Many rows of one side: both tables are read once.
        ("SELECT COUNT(*) FROM big a, big b WHERE a.k = b.k", "a ALL 2000, b ALL 2000", "8000"),
        ("SELECT COUNT(*) FROM big JOIN small USING (id)", "small ALL 40, big eq_ref 1", "40"),
    ];
    for (query, plan, answer) in cases {
        assert_eq!(desk.run(query), answer, "{query}");
        assert_eq!(shown(&mut desk, query), plan, "{query}");
    }
}

#[test]
fn statements_say_how_tables_are_joined() {
    let mut desk = sized();
    let ends = "FROM big, small, tiny WHERE big.k = small.b AND small.c = tiny.n AND tiny.id = 1";
    let mut check = |begins: &str, ends: &str, plan: &str| {
        let query = format!("SELECT {begins} COUNT(*) {ends}");
        assert_eq!(desk.run(&query), "32", "{query}");
        let tables = shown(&mut desk, &query);
        assert!(tables.contains(plan), "{query}: {tables}");
    };
    let fixed = "big ALL 2000, small";
    check("/*+ JOIN_FIXED_ORDER() */", ends, fixed);
    check("STRAIGHT_JOIN", ends, fixed);
    let straight = "FROM big STRAIGHT_JOIN small ON big.k = small.b JOIN tiny ON small.c = tiny.n WHERE tiny.id = 1";
    check("", straight, fixed);
    check("/*+ JOIN_ORDER(small, tiny) */", ends, "small ALL 40, tiny");
    check("/*+ JOIN_PREFIX(big) */", ends, "big ALL 2000, ");
    check("/*+ JOIN_SUFFIX(tiny) */", ends, "small ALL 40, big ref 4, tiny const 1");
    check("/*+ NO_INDEX(big k) */", ends, "big ALL 2000");
    check("/*+ NO_INDEX(big) */", ends, "big ALL 2000");
    check("/*+ INDEX(big k) */", ends, "big ref 4");
    let ignored = ends.replace("big,", "big IGNORE INDEX (k),");
    check("", &ignored, "big ALL 2000");
    assert_eq!(
        desk.run("ANALYZE TABLE tiny, nope"),
        "test.tiny|analyze|status|OK;test.nope|analyze|Error|Table 'test.nope' doesn't exist;test.nope|analyze|status|Operation failed"
    );
}

#[test]
fn plans_are_made_anew_when_tables_have_grown() {
    let mut desk = sized();
    desk.run(
        "CREATE TABLE grows (id INT PRIMARY KEY, b INT NOT NULL); INSERT INTO grows VALUES (1, 22)",
    );
    let query = "SELECT COUNT(*) FROM grows JOIN big ON big.k = grows.b";
    assert_eq!(desk.run(query), "4");
    desk.store.inner().log.clear();
    assert_eq!(desk.run(query), "4");
    assert_eq!(desk.store.inner().log, ["scan 0 x1", "scan 1 x1"]);
    let rows: Vec<String> = (2..3_000).map(|n| format!("({n},{})", n % 500)).collect();
    desk.run(&format!("INSERT INTO grows VALUES {}", rows.join(",")));
    desk.run("ANALYZE TABLE grows");
    desk.store.inner().log.clear();
    assert_eq!(desk.run(query), "11996");
    assert_eq!(desk.store.inner().log, ["scan 0 x1", "scan 0 x1"]);
}

/// What EXPLAIN must and must not say.
#[test]
fn plans() {
    let mut desk = desk();
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("SELECT id FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k)", &["Semi"], &["Apply"]),
        (
            "SELECT id FROM r WHERE NOT EXISTS (SELECT * FROM s WHERE s.k = r.k)",
            &["Anti"],
            &["Apply"],
        ),
    ];
    for (query, has, lacks) in cases {
        let plan = desk.run(&format!("EXPLAIN FORMAT=TREE {query}"));
        for text in *has {
            assert!(plan.contains(text), "{text} in {plan}");
        }
        for text in *lacks {
            assert!(!plan.contains(text), "{text} in {plan}");
        }
    }
}

/// A statement that would copy a value 2^24 times, and one with millions of implied terms.
#[test]
fn short_statements_make_no_large_plans() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE r (k INT, v INT)");
    desk.run("INSERT INTO r VALUES (1, 2)");
    let mut query = "SELECT SUM(v) x FROM r s WHERE s.k = r.k".to_owned();
    for _ in 0..24 {
        query = format!("SELECT x + x x FROM ({query}) d");
    }
    assert_eq!(desk.run(&format!("SELECT k, ({query}) FROM r")), "1|33554432");
    let columns: Vec<String> = (0..100).map(|n| format!("c{n} INT")).collect();
    desk.run(&format!("CREATE TABLE w (id INT PRIMARY KEY, {})", columns.join(", ")));
    let same: Vec<String> = (1..100).map(|n| format!("c{} = c{n}", n - 1)).collect();
    let less: Vec<String> = (0..800).map(|n| format!("c0 < {n}")).collect();
    let all = format!("{} AND {}", same.join(" AND "), less.join(" AND "));
    assert_eq!(desk.run(&format!("SELECT COUNT(*) FROM w JOIN r ON r.k = id WHERE {all}")), "0");
}
