//! UPDATE and DELETE of rows that a query finds, and INSERT … SELECT.

use crate::testing::Desk;

fn shop() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE item (id INT PRIMARY KEY, price INT, kind INT);
         CREATE TABLE kind (id INT PRIMARY KEY, name VARCHAR(9), factor INT);
         INSERT INTO item VALUES (1, 10, 1), (2, 20, 2), (3, 30, NULL), (4, 40, 1);
         INSERT INTO kind VALUES (1, 'tea', 3), (2, 'ink', 5), (9, 'odd', 7)",
    );
    desk
}

#[test]
fn several_tables() {
    shop().check(
        "UPDATE item i JOIN kind k ON k.id = i.kind SET i.price = i.price * k.factor, k.factor = 1
         => ok 5
         SELECT id, price FROM item ORDER BY id
         => 1|30;2|100;3|30;4|120
         SELECT id, factor FROM kind ORDER BY id
         => 1|1;2|1;9|7
         DELETE k FROM kind k LEFT JOIN item i ON i.kind = k.id WHERE i.id IS NULL
         => ok 1
         DELETE FROM i, k USING item i JOIN kind k ON k.id = i.kind WHERE k.name = 'tea'
         => ok 3
         SELECT id FROM item ORDER BY id
         => 2;3
         SELECT id FROM kind
         => 2
         UPDATE item, kind SET item.price = 1 ORDER BY item.id
         => ERROR 1221 Incorrect usage of UPDATE and ORDER BY
         DELETE nope FROM item
         => ERROR 1109 Unknown table 'nope' in MULTI DELETE
         UPDATE item JOIN (SELECT 1 AS n) d SET d.n = 2
         => ERROR 1288 …",
    );
}

#[test]
fn subqueries() {
    shop().check(
        "UPDATE item SET price = price + 1, kind = price WHERE kind IN (SELECT id FROM kind WHERE name = 'tea')
         => ok 2
         SELECT id, price, kind FROM item ORDER BY id
         => 1|11|11;2|20|2;3|30|NULL;4|41|41
         UPDATE item SET price = (SELECT SUM(factor) FROM kind WHERE id > item.id)
         => ok 4
         SELECT id, price FROM item ORDER BY id
         => 1|12;2|7;3|7;4|7
         UPDATE item SET price = 0 WHERE EXISTS (SELECT * FROM kind WHERE id = item.kind) ORDER BY id DESC LIMIT 1
         => ok 1
         DELETE FROM item WHERE price < (SELECT MAX(factor) FROM kind)
         => ok 1
         SELECT id FROM item ORDER BY id
         => 1;3;4
         DELETE FROM item WHERE id = (SELECT MAX(id) FROM item)
         => ERROR 1093 You can't specify target table 'item' for update in FROM clause
         DELETE FROM item WHERE id = (SELECT m FROM (SELECT MAX(id) AS m FROM item) d)
         => ok 1
         WITH k AS (SELECT id FROM kind) DELETE FROM item WHERE id IN (SELECT id FROM k)
         => ok 1
         SELECT id FROM item
         => 3",
    );
}

#[test]
fn keys_may_change() {
    shop().check(
        "UPDATE item i JOIN kind k ON k.id = i.kind SET i.id = i.id + 100
         => ok 3
         SELECT id FROM item ORDER BY id
         => 3;101;102;104
         UPDATE item SET id = 3 WHERE id = (SELECT MAX(i) FROM (SELECT id AS i FROM item) d)
         => ERROR 1062 Duplicate entry '3' for key 'item.PRIMARY'
         BEGIN
         => ok 0
         UPDATE item SET id = 3 WHERE id IN (SELECT id + 92 FROM kind)
         => ERROR 1062 …
         SELECT id FROM item ORDER BY id
         => 3;101;102;104
         COMMIT
         => ok 0",
    );
}

#[test]
fn rows_of_a_query() {
    shop().check(
        "CREATE TABLE copy (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(9), n INT)
         => ok 0
         INSERT INTO copy (name, n) SELECT name, COUNT(item.id) FROM kind LEFT JOIN item ON item.kind = kind.id GROUP BY kind.id ORDER BY kind.id
         => ok 3
         SELECT * FROM copy ORDER BY id
         => 1|tea|2;2|ink|1;3|odd|0
         INSERT INTO copy SELECT id + 10, name, n FROM copy
         => ok 3
         REPLACE INTO copy SELECT id, 'new', 5 FROM copy WHERE id > 11
         => ok 4
         SELECT id, name FROM copy WHERE id > 10 ORDER BY id
         => 11|tea;12|new;13|new
         INSERT IGNORE INTO copy SELECT 11, 'x', 1 UNION ALL SELECT 21, 'y', 2
         => ok 1
         INSERT INTO copy SELECT 1, 2
         => ERROR 1136 …
         INSERT INTO copy (id, n) VALUES (31, id + 1), (32, DEFAULT)
         => ok 2
         SELECT id, n FROM copy WHERE id > 30 ORDER BY id
         => 31|32;32|NULL",
    );
}

#[test]
fn tables_of_a_query() {
    shop().check(
        "CREATE TABLE sums AS SELECT kind.name, SUM(price) AS total, COUNT(*) AS n FROM item JOIN kind ON kind.id = kind GROUP BY kind.id
         => ok 2
         SELECT name, total, n FROM sums ORDER BY name
         => ink|20|1;tea|50|2
         CREATE TABLE IF NOT EXISTS sums AS SELECT 1 AS one
         => ok 0
         CREATE TABLE keyed (id BIGINT PRIMARY KEY, extra INT DEFAULT 7) SELECT id, price FROM item WHERE kind = 1
         => ok 2
         SELECT id, extra, price FROM keyed ORDER BY id
         => 1|7|10;4|7|40
         CREATE TABLE twice (kind INT PRIMARY KEY) SELECT kind FROM item WHERE kind = 1
         => ERROR 1062 …
         SELECT * FROM twice
         => ERROR 1146 …
         CREATE TABLE once (kind INT PRIMARY KEY) IGNORE SELECT kind FROM item WHERE kind = 1
         => ok 1",
    );
}

#[test]
fn values_of_subqueries() {
    shop().check(
        "INSERT INTO item VALUES (5, (SELECT MAX(price) FROM item) + 1, NULL)
         => ERROR 1093 You can't specify target table 'item' for update in FROM clause
         INSERT INTO item VALUES (5, (SELECT m FROM (SELECT MAX(price) AS m FROM item) AS d) + 1, (SELECT id FROM kind WHERE name = 'ink')), (6, 1, NULL)
         => ok 2
         SELECT * FROM item WHERE id > 4 ORDER BY id
         => 5|41|2;6|1|NULL
         INSERT INTO item (id, price) VALUES (7, DEFAULT), (8, (SELECT 1))
         => ERROR 1235 …
         SET @m = (SELECT MAX(price) FROM item), @n = 5
         => ok 0
         SELECT @m, @n
         => 41|5
         INSERT INTO item VALUES (7, 1, 1) ON DUPLICATE KEY UPDATE price = (SELECT 1)
         => ERROR 1235 …",
    );
}

#[test]
fn windows() {
    shop().check(
        "SELECT id, SUM(price) OVER (ORDER BY id) AS s, SUM(price) OVER () AS a, SUM(price) OVER (ORDER BY id ROWS 1 PRECEDING) AS p FROM item ORDER BY id
         => 1|10|100|10;2|30|100|30;3|60|100|50;4|100|100|70
         SELECT id, DENSE_RANK() OVER (ORDER BY kind) AS d, RANK() OVER (ORDER BY kind) AS r, COUNT(*) OVER (PARTITION BY kind) AS c FROM item ORDER BY id
         => 1|2|2|2;2|3|4|1;3|1|1|1;4|2|2|2
         SELECT id, LAG(id, 1, 0) OVER w AS a, LEAD(id) OVER w AS b, NTILE(3) OVER w AS n FROM item WINDOW w AS (ORDER BY price DESC) ORDER BY id
         => 1|2|NULL|3;2|3|1|2;3|4|2|1;4|0|3|1",
    );
}
