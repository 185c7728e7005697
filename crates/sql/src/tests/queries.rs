//! SELECT.

use crate::testing::Desk;
use lats_values::Value;

const PEOPLE: &str = "
    CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(20), age INT, city VARCHAR(20), KEY (age), KEY city_age (city, age));
    INSERT INTO people VALUES (1,'Ann',30,'Oslo'),(2,'Bob',25,'Rome'),(3,'Cyd',30,'Rome'),(4,'Dan',NULL,'Oslo'),(5,'Eve',41,'Paris')";

fn people() -> Desk {
    let mut desk = Desk::new();
    desk.run(PEOPLE);
    desk
}

#[test]
fn without_a_table() {
    Desk::new().check(
        "SELECT 1
         => 1
         SELECT 1+1, 'a', NULL
         => 2|a|NULL
         SELECT 1 FROM dual
         => 1
         SELECT 1 WHERE 1=0
         => 
         SELECT 7/2, 7 DIV 2, -7 % 3
         => 3.5000|3|-1
         SELECT @x
         => NULL
         SELECT DATABASE(), CONNECTION_ID(), USER()
         => test|7|root@localhost
         SELECT NOW(), CURDATE(), UNIX_TIMESTAMP()
         => 2023-11-14 22:13:20|2023-11-14|1700000000
         SELECT CASE WHEN 1 THEN 'y' ELSE 'n' END, IF(NULL, 1, 2)
         => y|2
         SELECT 1 IN (1,2), 3 NOT IN (1, 2), 2 BETWEEN 1 AND 3, 'abc' LIKE 'a%'
         => 1|1|1|1
         SELECT NULL IS TRUE, 0 IS FALSE, 1 IS NOT NULL
         => 0|1|1
         SELECT DATE '2024-02-28' + INTERVAL 2 DAY
         => 2024-03-01
         SELECT CAST('12' AS UNSIGNED) + 1, CONVERT('3', SIGNED)
         => 13|3
         SELECT *
         => ERROR 1096 No tables used",
    );
}

#[test]
fn by_primary_key() {
    let mut desk = people();
    desk.check(
        "SELECT name FROM people WHERE id = 3
         => Cyd
         SELECT * FROM people WHERE id = '2'
         => 2|Bob|25|Rome
         SELECT name FROM people WHERE id = 1.5
         => 
         SELECT name FROM people WHERE id = 99999999999
         => 
         SELECT name FROM people WHERE id IN (5, 1, 1, 77, NULL)
         => Ann;Eve
         SELECT name FROM people WHERE id = NULL
         => 
         SELECT name FROM people WHERE id = 3 AND age = 30
         => Cyd
         SELECT name FROM people WHERE id = 3 AND age = 31
         => 
         SELECT name FROM people WHERE 3 = id AND id > 1
         => Cyd
         SELECT p.name FROM people AS p WHERE p.id = 1
         => Ann
         SELECT test.people.name, people.* FROM test.people WHERE id = 1
         => Ann|1|Ann|30|Oslo",
    );
    assert_eq!(desk.store.inner().log.last().map(String::as_str), Some("read 1"));
}

#[test]
fn by_ranges_and_indexes() {
    people().check(
        "SELECT id FROM people WHERE id BETWEEN 2 AND 4
         => 2;3;4
         SELECT id FROM people WHERE id > 3
         => 4;5
         SELECT id FROM people WHERE id >= 2.5 AND id < 4.5
         => 3;4
         SELECT id FROM people WHERE id < 2 OR id > 4
         => 1;5
         SELECT id FROM people WHERE age = 30 ORDER BY id DESC
         => 3;1
         SELECT id FROM people WHERE age IS NULL
         => 4
         SELECT id FROM people WHERE age > 25
         => 1;3;5
         SELECT COUNT(id) FROM people WHERE age BETWEEN 20 AND 26 OR age BETWEEN 40 AND 50
         => 2
         SELECT id FROM people WHERE city = 'ROME' AND age >= 26
         => 3
         SELECT id FROM people WHERE name = 'bob'
         => 2
         SELECT id FROM people WHERE name LIKE '_y%' OR age + 1 = 42
         => 3;5
         SELECT id FROM people WHERE name = 0 AND id < 3
         => 1;2
         SELECT id FROM people WHERE city = 'oslo' AND city <> 'rome' ORDER BY 1
         => 1;4",
    );
}

#[test]
fn order_and_limit() {
    people().check(
        "SELECT id FROM people ORDER BY id DESC LIMIT 2
         => 5;4
         SELECT id FROM people ORDER BY age, id
         => 4;2;1;3;5
         SELECT id, age AS a FROM people ORDER BY a DESC, id LIMIT 1, 2
         => 1|30;3|30
         SELECT id FROM people ORDER BY 1 LIMIT 2 OFFSET 3
         => 4;5
         SELECT id FROM people ORDER BY city DESC, age
         => 2;3;5;4;1
         SELECT id FROM people ORDER BY age DESC, city, id DESC
         => 5;1;3;2;4
         SELECT DISTINCT city FROM people ORDER BY city DESC
         => Rome;Paris;Oslo
         SELECT id FROM people ORDER BY CHAR_LENGTH(city), id DESC LIMIT 3
         => 4;3;2
         SELECT id FROM people LIMIT 0
         => 
         SELECT id FROM people WHERE id >= 2 ORDER BY id LIMIT 2
         => 2;3
         SELECT id FROM people ORDER BY 7
         => ERROR 1054 Unknown column '7' in 'order clause'",
    );
}

#[test]
fn aggregates_and_groups() {
    people().check(
        "SELECT COUNT(*), COUNT(age), SUM(age), MIN(age), MAX(age), AVG(age) FROM people
         => 5|4|126|25|41|31.5000
         SELECT COUNT(*), SUM(age), MAX(name) FROM people WHERE id > 100
         => 0|NULL|NULL
         SELECT COUNT(DISTINCT age), SUM(DISTINCT age) FROM people
         => 3|96
         SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY city
         => Oslo|2;Paris|1;Rome|2
         SELECT city c, COUNT(*) n FROM people GROUP BY c HAVING n > 1 ORDER BY n, c DESC
         => Rome|2;Oslo|2
         SELECT age + 1, COUNT(*) FROM people GROUP BY age + 1 ORDER BY 1
         => NULL|1;26|1;31|2;42|1
         SELECT city FROM people GROUP BY city ORDER BY COUNT(*), city LIMIT 1
         => Paris
         SELECT id, name, COUNT(*) FROM people GROUP BY id LIMIT 1
         => 1|Ann|1
         SELECT DISTINCT city FROM people ORDER BY city
         => Oslo;Paris;Rome
         SELECT DISTINCT age FROM people WHERE age IS NOT NULL ORDER BY age DESC
         => 41;30;25
         SELECT city, age FROM people GROUP BY city
         => ERROR 1055 Expression #2 of SELECT list is not in GROUP BY clause and contains nonaggregated column 'test.people.age' which…
         SELECT city, COUNT(*) FROM people
         => ERROR 1140 In aggregated query without GROUP BY, expression #1 of SELECT list contains nonaggregated column 'test.people.city'; …
         SELECT id FROM people WHERE COUNT(*) > 1
         => ERROR 1111 Invalid use of group function
         SELECT DISTINCT city FROM people ORDER BY age
         => ERROR 3065 Expression #1 of ORDER BY clause is not in SELECT list, references column…",
    );
}

#[test]
fn prepared_statements() {
    let mut desk = people();
    let by_id = "SELECT name FROM people WHERE id = ?";
    let id = desk.prepare(by_id.as_bytes()).unwrap().id;
    assert_eq!(desk.again(id, &[Value::Int(2)]), "Bob");
    assert_eq!(desk.again(id, &[Value::text("3")]), "Cyd");
    assert_eq!(desk.again(id, &[Value::Null]), "");
    assert_eq!(desk.again(id, &[Value::Double(1.5)]), "");
    desk.run("CREATE TABLE other (a INT PRIMARY KEY)");
    assert_eq!(desk.again(id, &[Value::Int(1)]), "Ann");
    let limited = "SELECT id FROM people WHERE age > ? ORDER BY id LIMIT ?, ?";
    assert_eq!(desk.execute(limited, &[Value::Int(0), Value::Int(1), Value::UInt(2)]), "2;3");
    assert_eq!(desk.execute("SELECT ? + 1, ?", &[Value::Int(1), Value::text("x")]), "2|x");
    assert!(desk.again(id, &[]).starts_with("ERROR 1210"));
    desk.session.close_statement(id);
    assert!(desk.again(id, &[Value::Int(1)]).starts_with("ERROR 1243"));
    desk.run("DROP TABLE people");
    assert!(desk.execute(by_id, &[]).starts_with("ERROR 1146"));
}

#[test]
fn names_of_columns() {
    let mut desk = people();
    let columns =
        desk.columns("SELECT id, p.Name, age+ 1, 'x', COUNT(*) n FROM people p GROUP BY id");
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["id", "Name", "age+ 1", "x", "n"]);
    assert_eq!((columns[1].table.as_str(), columns[1].org_table.as_str()), ("p", "people"));
    assert_eq!((columns[1].org_name.as_str(), columns[0].primary_key), ("name", true));
    assert_eq!(columns[2].column_type.sql_name(), "bigint");
    assert_eq!(columns[4].column_type.sql_name(), "bigint");
}

#[test]
fn an_index_that_a_value_cannot_use_gives_no_order() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(9), a INT, KEY ca (c, a))");
    desk.run("INSERT INTO t VALUES (1, '05', 9), (2, '5', 3), (3, '5.0', 1), (4, '6', 0)");
    assert_eq!(desk.run("SELECT id FROM t WHERE c = 5 ORDER BY a"), "3;2;1");
    assert_eq!(desk.run("SELECT id FROM t WHERE c = 5 ORDER BY a LIMIT 1"), "3");
    assert_eq!(desk.run("UPDATE t SET a = 50 WHERE c = 5 ORDER BY a LIMIT 1"), "ok 1");
    assert_eq!(desk.run("SELECT id FROM t WHERE a = 50"), "3");
    assert_eq!(desk.run("SELECT id FROM t WHERE c = '5' ORDER BY a"), "2");
}

#[test]
fn prepared_statements_keep_their_database() {
    let mut desk = people();
    let id = desk.prepare(b"SELECT name FROM people WHERE id = 1").unwrap().id;
    desk.run(
        "CREATE DATABASE other; USE other; CREATE TABLE people (id INT PRIMARY KEY, name INT)",
    );
    assert_eq!(desk.again(id, &[]), "Ann");
    desk.run("SET sql_mode = ''");
    assert_eq!(desk.again(id, &[]), "Ann");
}

#[test]
fn hexadecimal_literals_are_numbers_beside_numbers() {
    let mut desk = people();
    desk.check(
        "SELECT id FROM people WHERE id IN (0x1, 0x02)
         => 1;2
         SELECT id FROM people WHERE id = 0x3
         => 3
         SELECT id FROM people WHERE id BETWEEN 0x4 AND x'05'
         => 4;5
         SELECT 0x41 + 1, 0x10 > 5, 0x41, CONCAT(0x41, 'b')
         => 66|1|A|Ab
         SELECT id FROM people WHERE name = 0x426f62
         => 2
         INSERT INTO people VALUES (0x10, 0x41, 0x07, 'x')
         => ok 1
         UPDATE people SET age = age + 0x01, city = 0x59 WHERE id = 16
         => ok 1
         SELECT * FROM people WHERE id = 16
         => 16|A|8|Y",
    );
}

#[test]
fn branches_of_several_types_have_one_order() {
    let mut desk = people();
    desk.check(
        "SELECT id FROM people ORDER BY IF(id > 2, name, 0), id
         => 1;2;3;4;5
         SELECT IF(id = 1, 1, 1.0) x, COUNT(*) FROM people WHERE id < 4 GROUP BY x
         => 1.0|3
         SELECT MAX(IF(id = 1, 10, '9')), MAX(IFNULL(age, 0.5)) FROM people
         => 9|41.0
         SELECT DISTINCT IF(id = 1, 1, 1.0) FROM people
         => 1.0",
    );
}

#[test]
fn long_lists_of_keys_are_read_by_key() {
    let mut desk = people();
    let keys: Vec<String> = (0..40_000).map(|id| id.to_string()).collect();
    let text = format!("SELECT COUNT(*) FROM people WHERE id IN ({})", keys.join(","));
    desk.store.inner().log.clear();
    assert_eq!(desk.run(&text), "5");
    let log = desk.store.inner().log.join(" ");
    assert!(!log.contains("scan"), "{log:.200}");
}
