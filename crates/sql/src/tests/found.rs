//! FOUND_ROWS(), and INTO of set operations.

use crate::testing::Desk;

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE a (x INT PRIMARY KEY);
         CREATE TABLE b (x INT PRIMARY KEY);
         INSERT INTO a VALUES (1), (2), (3);
         INSERT INTO b VALUES (3), (4), (5)",
    );
    desk
}

#[test]
fn limits_of_parts_hold_where_all_rows_are_counted() {
    desk().check(
        "(SELECT SQL_CALC_FOUND_ROWS x FROM a ORDER BY x LIMIT 1) UNION ALL (SELECT x FROM b) ORDER BY x LIMIT 2
         => 1;3
         SELECT FOUND_ROWS()
         => 4
         SELECT SQL_CALC_FOUND_ROWS x FROM a UNION SELECT x FROM b ORDER BY x DESC LIMIT 2
         => 5;4
         SELECT FOUND_ROWS()
         => 5
         ((SELECT SQL_CALC_FOUND_ROWS x FROM a ORDER BY x LIMIT 2)) LIMIT 1
         => 1
         SELECT SQL_CALC_FOUND_ROWS x FROM a ORDER BY x LIMIT 1, 1
         => 2
         SELECT FOUND_ROWS()
         => 3",
    );
}

#[test]
fn options_about_the_result_stand_first() {
    desk().check(
        "SELECT x FROM a UNION SELECT SQL_CALC_FOUND_ROWS x FROM b
         => ERROR 1234 Incorrect usage/placement of 'SQL_CALC_FOUND_ROWS'
         SELECT x FROM a UNION SELECT SQL_BUFFER_RESULT x FROM b
         => ERROR 1234 Incorrect usage/placement of 'SQL_BUFFER_RESULT'
         SELECT * FROM (SELECT SQL_CALC_FOUND_ROWS x FROM a LIMIT 1) d
         => ERROR 1234 …
         SELECT x FROM a WHERE x IN (SELECT SQL_BUFFER_RESULT x FROM b)
         => ERROR 1234 …",
    );
}

#[test]
fn the_last_into_is_about_the_whole() {
    desk().check(
        "SELECT x FROM a WHERE x = 7 UNION SELECT x FROM b WHERE x = 5 INTO @v
         => ok 1
         SELECT @v
         => 5
         (SELECT 1) UNION (SELECT 2 INTO @v)
         => ERROR 1172 …",
    );
}

#[test]
fn show_takes_variables_and_subqueries() {
    desk().check(
        "SET @n = 'b'
         => ok 0
         SHOW TABLES WHERE Tables_in_test = @n
         => b
         SHOW TABLES WHERE Tables_in_test IN (SELECT 'a' FROM a)
         => a
         SHOW TABLES WHERE (1) IN (SELECT x FROM a)
         => a;b
         SHOW TABLES WHERE EXISTS (SELECT * FROM b WHERE x = 9)
         =>
         PREPARE p FROM 'SHOW COLUMNS FROM a WHERE Field IN (SELECT ?)'
         => ok 0
         SET @f = 'x'
         => ok 0
         EXECUTE p USING @f
         => x|int|NO|PRI|NULL|
         SET @f = 'y'
         => ok 0
         EXECUTE p USING @f
         =>
         SHOW TABLES WHERE (@n := 1)
         => ERROR 1235 …",
    );
}
