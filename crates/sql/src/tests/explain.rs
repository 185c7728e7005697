//! EXPLAIN: MySQL's table and MySQL's JSON.

use crate::testing::Desk;

fn tables() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE a (id INT PRIMARY KEY, k INT, u INT UNIQUE, n INT, KEY k (k), KEY kn (k, n));
         CREATE TABLE b (id INT PRIMARY KEY, k INT, u INT UNIQUE, n INT, KEY k (k))",
    );
    for table in ["a", "b"] {
        let rows: Vec<String> =
            (0..1_000).map(|n| format!("({n},{},{n},{})", n / 100, n / 10 % 10)).collect();
        desk.run(&format!("INSERT INTO {table} VALUES {}", rows.join(",")));
    }
    desk.run("ANALYZE TABLE a, b");
    desk
}

/// The id, the kind of select, the table, the kind of access, the index, what it is equal to, and the rest.
fn shown(desk: &mut Desk, statement: &str) -> String {
    let rows = desk.run(&format!("EXPLAIN {statement}"));
    let part = |row: &str| {
        let cells: Vec<&str> = row.split('|').collect();
        [0, 1, 2, 4, 5, 6, 7, 8, 9, 11].map(|at| cells[at].replace("NULL", "-")).join(" ")
    };
    rows.split(';').filter(|row| row.contains('|')).map(part).collect::<Vec<_>>().join("\n")
}

/// As MySQL 9.7 says, but for rows of ranges and for "Using index", which LatsDB does not have.
#[test]
fn the_kind_of_access_is_mysqls() {
    let mut desk = tables();
    for (statement, wanted) in [
        ("SELECT * FROM a WHERE id = 5", "1 SIMPLE a const PRIMARY PRIMARY 4 const 1 -"),
        (
            "SELECT * FROM a WHERE id IN (5, 6)",
            "1 SIMPLE a range PRIMARY PRIMARY 4 - 2 Using where",
        ),
        ("SELECT * FROM a WHERE u = 5", "1 SIMPLE a const u u 5 const 1 -"),
        ("SELECT * FROM a WHERE k = 5", "1 SIMPLE a ref k,kn k 5 const 100 -"),
        ("SELECT * FROM a WHERE k = 5 AND n = 3", "1 SIMPLE a ref k,kn kn 10 const,const 10 -"),
        ("SELECT * FROM a", "1 SIMPLE a ALL - - - - 1000 -"),
        (
            "SELECT id, (SELECT n FROM b WHERE b.id = a.k) FROM a",
            "1 PRIMARY a ALL - - - - 1000 -\n2 DEPENDENT SUBQUERY b eq_ref PRIMARY PRIMARY 4 test.a.k 1 -",
        ),
        (
            "SELECT id, (SELECT n FROM b WHERE b.k = a.id LIMIT 1) FROM a",
            "1 PRIMARY a ALL - - - - 1000 -\n2 DEPENDENT SUBQUERY b ref k k 5 test.a.id 100 -",
        ),
        (
            "SELECT * FROM a JOIN b ON b.id = a.n WHERE a.u = 7",
            "1 SIMPLE a const u u 5 const 1 -\n1 SIMPLE b eq_ref PRIMARY PRIMARY 4 test.a.n 1 -",
        ),
        ("UPDATE a SET n = 1 WHERE k = 3", "1 UPDATE a range k,kn k 5 const 100 Using where"),
        ("DELETE FROM a WHERE id = 3", "1 DELETE a range PRIMARY PRIMARY 4 const 1 Using where"),
        (
            "SELECT k, COUNT(*) FROM a GROUP BY k ORDER BY COUNT(*)",
            "1 SIMPLE a ALL - - - - 1000 Using temporary",
        ),
        (
            "SELECT k FROM a UNION SELECT k FROM b",
            "1 PRIMARY a ALL - - - - 1000 -\n2 UNION b ALL - - - - 1000 -\n3 UNION RESULT <union1,2> ALL - - - - - Using temporary",
        ),
        ("SELECT 1", "1 SIMPLE - - - - - - - No tables used"),
        ("INSERT INTO a VALUES (1, 2, 3, 4)", "1 INSERT a ALL - - - - - -"),
    ] {
        assert_eq!(shown(&mut desk, statement), wanted, "{statement}");
    }
}

#[test]
fn plans_are_shown_as_json() {
    let mut desk = tables();
    let json = desk.run("EXPLAIN FORMAT=JSON SELECT * FROM a WHERE k = 5 AND u <> 3");
    let wanted = [
        "{\n  \"query_block\": {\n    \"select_id\": 1,\n    \"cost_info\": {\n      \"query_cost\": \"",
        "\n    \"table\": {\n      \"table_name\": \"a\",\n      \"access_type\": \"ref\",\n      \"possible_keys\": [\n        \"k\",\n",
        "\"key\": \"k\",\n      \"used_key_parts\": [\n        \"k\"\n      ],\n      \"key_length\": \"5\",\n      \"ref\": [\n        \"const\"\n      ],\n",
        "\"rows_examined_per_scan\": 100,",
        "\"filtered\": \"100.00\"",
        "\"attached_condition\": \"(`a`.`u` <> 3)\"",
    ];
    for part in wanted {
        assert!(json.contains(part), "{part} in {json}");
    }
    let json = desk.run(
        "EXPLAIN FORMAT=JSON SELECT a.k, COUNT(*) c FROM a JOIN b ON b.id = a.n WHERE a.id < 5 AND a.n LIKE '\"%' GROUP BY a.k ORDER BY c",
    );
    let order = [
        "\"ordering_operation\": {",
        "\"using_filesort\": true",
        "\"grouping_operation\": {",
        "\"using_temporary_table\": true",
        "\"nested_loop\": [",
        "\"table_name\": \"a\"",
        "\"attached_condition\": \"",
        "like '\\\"%'",
        "\"table_name\": \"b\"",
        "\"access_type\": \"eq_ref\"",
        "\"test.a.n\"",
    ];
    let mut at = 0;
    for part in order {
        let found = json[at..].find(part);
        at += found.unwrap_or_else(|| panic!("{part} behind {at} in {json}"));
    }
    let json = desk.run("EXPLAIN FORMAT=JSON SELECT id, (SELECT n FROM b WHERE b.id = a.k) FROM a UNION SELECT 1, 2");
    for part in [
        "\"union_result\": {",
        "\"<union1,3>\"",
        "\"dependent\": true",
        "\"attached_subqueries\": [",
        "\"message\": \"No tables used\"",
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }
    assert!(desk.run("EXPLAIN FORMAT=JSON DELETE FROM a WHERE k = 3").contains("\"delete\": true"));
    let opened = json.chars().filter(|c| matches!(c, '{' | '[')).count();
    assert_eq!(opened, json.chars().filter(|c| matches!(c, '}' | ']')).count());
}
